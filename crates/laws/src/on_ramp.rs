//! On-Ramp: holds a flow's packets at the edge while the one-way delay is over a threshold, under any law.
//! Liu et al., "Breaking the Transience-Equilibrium Nexus" (NSDI 2021), §3.

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

/// What a sender remembers of a packet until its OR-ACK comes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mark {
    /// How long the flow had been paused in all when the packet left ([`OnRamp::paused`]).
    pub paused: Span,
}

/// One flow's hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnRamp {
    params: Params,
    hold_until: Time,
}

impl OnRamp {
    /// A flow that is not held.
    pub fn new(params: Params) -> Self {
        Self { params, hold_until: Time::ZERO }
    }

    /// An OR-ACK arrives at `now`: the packet that left with `mark` took `delay` (the one-way delay as the two clocks
    /// have it, which may be negative).
    pub fn on_or_ack(&mut self, now: Time, delay: Span, mark: Mark) {
        let _ = mark;
        if delay > self.params.threshold {
            self.hold_until = now + (delay - self.params.threshold);
        }
    }

    /// What to remember of a packet that leaves at `now`.
    pub fn mark(&self, now: Time) -> Mark {
        let _ = now;
        Mark::default()
    }

    /// Until when nothing of the flow may leave (`t_NextPkt`).
    pub fn hold_until(&self) -> Time {
        self.hold_until
    }
}
