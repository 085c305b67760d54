//! On-Ramp: holds a flow's packets at the edge while the one-way delay is over a threshold, under any law.
//! Liu et al., "Breaking the Transience-Equilibrium Nexus" (NSDI 2021), §3.
//!
//! A packet may be sent when `now` is not before [`OnRamp::hold_until`]. Time before that counts as asserted pause, whether
//! or not the flow has anything to send.

use units::{Frac, Span, Time};

/// Parameters of On-Ramp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OnRampParams {
    /// One-way delays over this pause the flow (T).
    pub threshold: Span,
    /// Weight of the newest measurement of the gain (g).
    pub gain: Frac,
    /// True if pauses are not corrected for the feedback delay (the strawman, eq. 2).
    pub strawman: bool,
}

impl OnRampParams {
    /// The paper's weight (§3.2): 1/16.
    pub const GAIN: Frac = Frac::ratio(1, 16);
}

/// The threshold for clocks with offsets of standard deviation `sigma`: twice that over the smallest one-way delay of the
/// path.
pub const fn threshold(sigma: Span, min_delay: Span) -> Span {
    Span::from_ps(sigma.times(2).ps().saturating_add(min_delay.ps()))
}

/// Per-packet state that a sender keeps until the packet's OR-ACK arrives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PendingOwd {
    /// Total pause of the flow when the packet was sent ([`OnRamp::paused`]).
    pub paused: Span,
}

/// State that a flow passes on to the next one to the same receiver: the paper lets a new flow use the delays measured
/// by earlier ones (§5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastOwd {
    /// Time before which no packet should be sent.
    pub hold_until: Time,
    /// The gain found (beta).
    pub beta: Frac,
}

/// One flow's hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnRamp {
    params: OnRampParams,
    hold_until: Time, // t_NextPkt
    beta: Frac,       // reduction of the one-way delay per unit of pause
    paused: Span,     // asserted up to `counted_until`
    counted_until: Time,
    last: Option<(Span, Span)>, // of the last acknowledged packet: its delay, and the pause before its departure
    holds: u64,
}

impl OnRamp {
    /// Initial gain. The paper does not specify it. With 1 a flow trusts its own pauses in full, as is right if it is
    /// alone or all pause together; with 0 it would begin as the strawman.
    pub const INITIAL_BETA: Frac = Frac::ONE;

    /// A flow that is not held.
    pub fn new(params: OnRampParams) -> Self {
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

    /// Creates the state of a flow that begins at `now`, after another flow to the same receiver. Pauses of that flow are not
    /// counted again.
    pub fn remembering(params: OnRampParams, now: Time, last: LastOwd) -> Self {
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
    #[cfg(test)]
    fn starting_at(self, beta: Frac) -> Self {
        Self { beta: beta.min(Frac::ONE), ..self }
    }

    /// Returns the state for the next flow.
    pub fn memory(&self) -> LastOwd {
        LastOwd { hold_until: self.hold_until, beta: self.beta }
    }

    /// Processes an OR-ACK that arrives at `now`: the packet sent with `mark` took `delay` (the one-way delay by the two
    /// clocks, which may be negative).
    pub fn process_or_ack(&mut self, now: Time, delay: Span, mark: PendingOwd) {
        self.paused = self.paused(now);
        self.counted_until = self.counted_until.max(now);
        self.update_beta(delay, mark);
        // O - beta * P_LastPktRTT, against T (eq. 4); the strawman has no second term (eq. 2).
        let paused = if self.params.strawman { Span::ZERO } else { saturating_difference(self.paused, mark.paused) };
        let corrected = paused.max(Span::ZERO).scaled(self.beta);
        let over = saturating_difference(saturating_difference(delay, corrected), self.params.threshold);
        if over > Span::ZERO {
            self.hold_until = now.saturating_add(over);
            self.holds += 1;
        }
    }

    /// `beta_m = (O_B - O_G) / P_BG`, from 0 to 1; beta <- (1 - g) * beta + g * `beta_m` if `P_BG` > 0 (eq. 3). B is the
    /// packet acknowledged before this one, G this one, and `P_BG` the pause between their departures.
    fn update_beta(&mut self, delay: Span, mark: PendingOwd) {
        if let Some((last_delay, last_paused)) = self.last.replace((delay, mark.paused)) {
            let pause = saturating_difference(mark.paused, last_paused);
            if pause > Span::ZERO {
                let drop = saturating_difference(last_delay, delay);
                let measured = Frac::ratio(drop.min(pause).unsigned_ps(), pause.unsigned_ps());
                self.beta = self.beta.ewma(measured, self.params.gain);
            }
        }
    }

    /// Returns the state to keep for a packet sent at `now`.
    pub fn mark(&self, now: Time) -> PendingOwd {
        PendingOwd { paused: self.paused(now) }
    }

    /// Returns the total time of pauses up to `now`.
    pub fn paused(&self, now: Time) -> Span {
        let until = now.min(self.hold_until);
        if until <= self.counted_until {
            return self.paused;
        }
        Span::from_ps(self.paused.ps().saturating_add(until.since(self.counted_until).ps()))
    }

    /// Returns the time before which no packet of the flow may be sent (`t_NextPkt`).
    pub fn hold_until(&self) -> Time {
        self.hold_until
    }

    /// The gain as found so far (beta), at most 1.
    pub fn beta(&self) -> Frac {
        self.beta
    }

    /// Returns the number of holds set by an OR-ACK or by remembered state. 0 if On-Ramp never acted.
    pub fn holds(&self) -> u64 {
        self.holds
    }
}

/// `a - b`, saturating.
fn saturating_difference(a: Span, b: Span) -> Span {
    Span::from_ps(a.ps().saturating_sub(b.ps()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PARAMS: OnRampParams =
        OnRampParams { threshold: Span::from_us(16), gain: OnRampParams::GAIN, strawman: false };

    fn us(n: i64) -> Span {
        Span::from_us(n)
    }

    fn at(n: u64) -> Time {
        Time::from_us(n)
    }

    /// Eq. 2: `t_NextPkt = t_Now + O - T`, regardless of earlier pauses.
    #[test]
    fn the_strawman_pauses_again_for_the_same_queue() {
        let mut flow = OnRamp::new(OnRampParams { strawman: true, ..PARAMS });
        let mark = flow.mark(at(0));
        flow.process_or_ack(at(100), us(16), mark);
        assert_eq!((flow.hold_until(), flow.holds()), (Time::ZERO, 0));
        flow.process_or_ack(at(100), us(46), mark);
        assert_eq!(flow.hold_until(), at(130));
        // Sent before the pause, acknowledged in it: the pause starts over.
        flow.process_or_ack(at(120), us(46), mark);
        assert_eq!((flow.hold_until(), flow.holds()), (at(150), 2));
        // A negative delay, caused by clock offsets, does not pause the flow.
        flow.process_or_ack(at(121), us(-5), mark);
        assert_eq!(flow.hold_until(), at(150));
    }

    /// Eq. 4 with beta = 1: the pause since the departure of the packet counts as drained.
    #[test]
    fn the_final_version_takes_the_pause_since_departure_off() {
        let mut flow = OnRamp::new(PARAMS);
        let (black, green) = (flow.mark(at(90)), flow.mark(at(95)));
        flow.process_or_ack(at(100), us(46), black);
        assert_eq!(flow.hold_until(), at(130));
        // At 120 the flow has paused 20 of the 30 us: 46 - 20 - 16 = 10 us are left. The pause ends at the same time.
        flow.process_or_ack(at(120), us(46), green);
        assert_eq!((flow.hold_until(), flow.holds()), (at(130), 2));
        // At 140 all 30 us are over: 46 - 30 = 16 is not over the threshold.
        flow.process_or_ack(at(140), us(46), green);
        assert_eq!((flow.hold_until(), flow.paused(at(200))), (at(130), us(30)));
    }

    /// Eq. 3: B was sent before a pause of 30 us, G after it; the delay fell by 15 us: `beta_m` = 1/2.
    #[test]
    fn beta_is_measured_between_packets_acknowledged_in_turn() {
        let mut flow = OnRamp::new(PARAMS);
        let black = flow.mark(at(90));
        flow.process_or_ack(at(100), us(46), black);
        let green = flow.mark(at(131));
        assert_eq!(green, PendingOwd { paused: us(30) });
        flow.process_or_ack(at(150), us(31), green);
        // 15/16 + 1/16 * 1/2 = 31/32, and 31 us - 16 us more: no pause since the departure of G.
        assert_eq!((flow.beta().ppm(), flow.hold_until()), (968_750, at(165)));
        // No pause between them: nothing measured.
        flow.process_or_ack(at(151), us(100), green);
        assert_eq!(flow.beta().ppm(), 968_750);
        // A delay that grew counts as 0, one that fell by more than the pause as 1.
        let risen = flow.mark(at(160));
        assert_eq!(risen.paused, us(40));
        flow.process_or_ack(at(170), us(200), risen);
        assert_eq!(flow.beta().ppm(), 908_203);
        let fallen = flow.mark(at(180));
        flow.process_or_ack(at(190), us(1), fallen);
        assert_eq!(flow.beta().ppm(), 913_940);
        // Acknowledged out of order, P_BG is negative: nothing measured.
        flow.process_or_ack(at(191), us(1), black);
        assert_eq!(flow.beta().ppm(), 913_940);
    }

    #[test]
    fn only_asserted_time_counts() {
        let mut flow = OnRamp::new(PARAMS);
        flow.process_or_ack(at(100), us(46), PendingOwd::default());
        assert_eq!(flow.paused(at(110)), us(10));
        assert_eq!(flow.paused(at(130)), us(30));
        assert_eq!(flow.paused(at(1_000)), us(30));
        // The next hold lasts from its own OR-ACK on.
        let mark = flow.mark(at(1_000));
        flow.process_or_ack(at(1_010), us(26), mark);
        assert_eq!((flow.hold_until(), flow.paused(at(1_015)), flow.paused(at(2_000))), (at(1_020), us(35), us(40)));
    }

    #[test]
    fn a_new_flow_remembers_the_last_one() {
        let mut last = OnRamp::new(PARAMS).starting_at(Frac::HALF);
        last.process_or_ack(at(100), us(46), PendingOwd::default());
        let next = OnRamp::remembering(PARAMS, at(110), last.memory());
        assert_eq!((next.hold_until(), next.beta(), next.holds()), (at(130), Frac::HALF, 1));
        assert_eq!((next.paused(at(110)), next.paused(at(200))), (Span::ZERO, us(20)));
        let late = OnRamp::remembering(PARAMS, at(500), last.memory());
        assert_eq!((late.holds(), late.paused(at(600))), (0, Span::ZERO));
    }

    #[test]
    fn thresholds() {
        assert_eq!(threshold(us(5), us(6)), us(16));
        assert_eq!(threshold(Span::MAX, us(6)), Span::MAX);
    }

    proptest! {
        /// Packets are sent and acknowledged in any order, with any delays.
        #[test]
        fn pauses_are_counted_once(
            steps in proptest::collection::vec((0..200u64, -100..500i64, 0..20usize, any::<bool>()), 1..100),
            strawman: bool,
        ) {
            let mut flow = OnRamp::new(OnRampParams { strawman, ..PARAMS });
            let mut marks = [PendingOwd::default(); 20];
            let mut now = Time::ZERO;
            // Time in which a hold was in force, counted step by step.
            let mut held = Span::ZERO;
            for (gap, delay, slot, leaves) in steps {
                let next = now + us(gap as i64);
                held = Span::from_ps(held.ps() + next.min(flow.hold_until().max(now)).since(now).ps());
                now = next;
                prop_assert_eq!(flow.paused(now), held);
                if leaves {
                    marks[slot] = flow.mark(now);
                } else {
                    flow.process_or_ack(now, us(delay), marks[slot]);
                    prop_assert!(flow.hold_until() <= now.saturating_add(us(delay.max(0))).max(flow.hold_until()));
                }
                prop_assert!(flow.beta() <= Frac::ONE);
            }
        }
    }
}
