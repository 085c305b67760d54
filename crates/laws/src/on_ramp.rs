//! On-Ramp: holds a flow's packets at the edge while the one-way delay is over a threshold, under any law.
//! Liu et al., "Breaking the Transience-Equilibrium Nexus" (NSDI 2021), §3.
//!
//! A packet may leave when `now` is not before [`OnRamp::hold_until`]. Time before that is asserted pause, whether or
//! not the flow has anything to send.

use units::{Frac, Span, Time};

/// What can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// One-way delays over this pause the flow (T).
    pub threshold: Span,
    /// Weight of the newest measurement of the gain (g).
    pub gain: Frac,
    /// Whether pauses are not corrected for the lag of the feedback (the strawman, eq. 2).
    pub strawman: bool,
}

impl Params {
    /// The paper's weight (§3.2): 1/16.
    pub const GAIN: Frac = Frac::ratio(1, 16);
}

/// The threshold for clocks whose offsets have the standard deviation `sigma`: twice that over the smallest one-way
/// delay of the path.
pub const fn threshold(sigma: Span, min_delay: Span) -> Span {
    Span::from_ps(sigma.times(2).ps().saturating_add(min_delay.ps()))
}

/// What a sender remembers of a packet until its OR-ACK comes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mark {
    /// How long the flow had been paused in all when the packet left ([`OnRamp::paused`]).
    pub paused: Span,
}

/// What a flow leaves to the next one to the same receiver: the paper lets a new flow use the delays that earlier ones
/// measured (§5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Until when nothing should leave.
    pub hold_until: Time,
    /// The gain found (beta).
    pub beta: Frac,
}

/// One flow's hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnRamp {
    params: Params,
    hold_until: Time, // t_NextPkt
    beta: Frac,       // one-way delay that a unit of pause takes off
    paused: Span,     // asserted up to `counted_until`
    counted_until: Time,
    last: Option<(Span, Span)>, // of the packet acknowledged last: its delay, and the pause before it left
    holds: u64,
}

impl OnRamp {
    /// Where the gain starts. The paper does not say. With 1 a flow trusts its own pauses in full, as is right where it
    /// is alone or all pause together; with 0 it would begin as the strawman.
    pub const INITIAL_BETA: Frac = Frac::ONE;

    /// A flow that is not held.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            hold_until: Time::ZERO,
            beta: Self::INITIAL_BETA,
            paused: Span::ZERO,
            counted_until: Time::ZERO,
            last: None,
            holds: 0,
        }
    }

    /// A flow that begins at `now` where another to the same receiver was. What that one paused is not counted again.
    pub fn remembering(params: Params, now: Time, last: Memory) -> Self {
        let holds = u64::from(last.hold_until > now);
        Self {
            hold_until: last.hold_until,
            beta: last.beta.min(Frac::ONE),
            counted_until: now,
            holds,
            ..Self::new(params)
        }
    }

    /// The same with another gain to start from, at most 1.
    pub fn starting_at(self, beta: Frac) -> Self {
        Self { beta: beta.min(Frac::ONE), ..self }
    }

    /// What to leave to the next flow.
    pub fn memory(&self) -> Memory {
        Memory { hold_until: self.hold_until, beta: self.beta }
    }

    /// An OR-ACK arrives at `now`: the packet that left with `mark` took `delay` (the one-way delay as the two clocks
    /// have it, which may be negative).
    pub fn on_or_ack(&mut self, now: Time, delay: Span, mark: Mark) {
        self.paused = self.paused(now);
        self.counted_until = self.counted_until.max(now);
        self.learn(delay, mark);
        // O - beta * P_LastPktRTT, against T (eq. 4); the strawman has no second term (eq. 2).
        let corrected =
            if self.params.strawman { Span::ZERO } else { share(self.beta, minus(self.paused, mark.paused)) };
        let over = minus(minus(delay, corrected), self.params.threshold);
        if over > Span::ZERO {
            self.hold_until = now.saturating_add(over);
            self.holds += 1;
        }
    }

    /// beta_m = (O_B - O_G) / P_BG, from 0 to 1; beta <- (1 - g) * beta + g * beta_m if P_BG > 0 (eq. 3). B is the
    /// packet acknowledged before this one, G this one, and P_BG the pause between their departures.
    fn learn(&mut self, delay: Span, mark: Mark) {
        if let Some((last_delay, last_paused)) = self.last.replace((delay, mark.paused)) {
            let pause = minus(mark.paused, last_paused);
            if pause > Span::ZERO {
                let drop = minus(last_delay, delay);
                let measured = Frac::ratio(drop.min(pause).unsigned_ps(), pause.unsigned_ps());
                self.beta = self.beta.ewma(measured, self.params.gain);
            }
        }
    }

    /// What to remember of a packet that leaves at `now`.
    pub fn mark(&self, now: Time) -> Mark {
        Mark { paused: self.paused(now) }
    }

    /// How long pause has been asserted in all by `now`.
    pub fn paused(&self, now: Time) -> Span {
        let until = now.min(self.hold_until);
        if until <= self.counted_until {
            return self.paused;
        }
        Span::from_ps(self.paused.ps().saturating_add(until.since(self.counted_until).ps()))
    }

    /// Until when nothing of the flow may leave (`t_NextPkt`).
    pub fn hold_until(&self) -> Time {
        self.hold_until
    }

    /// The gain as found so far (beta), at most 1.
    pub fn beta(&self) -> Frac {
        self.beta
    }

    /// How often an OR-ACK, or the memory of one, has set a hold. 0 where On-Ramp never acted.
    pub fn holds(&self) -> u64 {
        self.holds
    }
}

/// `a - b`, saturating.
fn minus(a: Span, b: Span) -> Span {
    Span::from_ps(a.ps().saturating_sub(b.ps()))
}

/// That share of a span; a negative span counts as 0.
fn share(part: Frac, span: Span) -> Span {
    Span::from_ps(part.of(span.unsigned_ps()).min(i64::MAX as u64) as i64)
}
