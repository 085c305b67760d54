//! On-Ramp with unsynchronised clocks: delay above its recent minimum. Liu et al., "Breaking the Transience-Equilibrium
//! Nexus" (NSDI 2021), §3. `laws::on_ramp` decides when to hold; a host of the simulator, with synchronised clocks, has a
//! [`OnRampHold`](crate::OnRampHold).
//!
//! The difference between two clocks is constant but for drift, so it cancels when delays are compared. Clocks that
//! differ by 20 ppm drift apart by 20 us a second. So the base is the minimum delay of the last 10 to 20 s; a queue
//! that persists for longer is not detected.

use alloc::collections::VecDeque;

use laws::on_ramp::{OnRamp, OnRampParams, PendingOwd};
use units::{Span, Time};

/// Period of the minimum: the minimum delay of this period and the one before is the base.
const PERIOD: Span = Span::from_s(10);

/// Maximum hold: a peer may report any receive times.
const MAX: Span = Span::from_s(1);

/// The hold of one path.
#[derive(Debug)]
pub(crate) struct OnRampPath {
    rule: OnRamp,
    /// Maximum delay that counts.
    max_delay: Span,
    /// Packets without a known delay, in the order in which they were sent.
    sent: VecDeque<(u64, PendingOwd)>,
    /// Minimum delay of this period and of the one before, by the two clocks; none where no delay was measured.
    minima: [Option<Span>; 2],
    began: Time,
}

impl OnRampPath {
    pub(crate) fn new(params: OnRampParams, now: Time) -> Self {
        let max_delay = params.threshold + MAX;
        Self { rule: OnRamp::new(params), max_delay, sent: VecDeque::new(), minima: [None; 2], began: now }
    }

    /// Returns the time until which nothing may be sent (`t_NextPkt`).
    pub(crate) fn until(&self) -> Time {
        self.rule.hold_until()
    }

    /// Records a transmission, and drops the records of packets below `first`.
    pub(crate) fn sent(&mut self, now: Time, number: u64, first: u64) {
        while self.sent.front().is_some_and(|&(number, _)| number < first) {
            self.sent.pop_front();
        }
        debug_assert!(self.sent.back().is_none_or(|&(last, _)| last < number), "packet {number} is sent twice");
        self.sent.push_back((number, self.rule.mark(now)));
    }

    /// Processes a packet's one-way delay by the two clocks. Does nothing if a later packet's delay was processed
    /// before.
    pub(crate) fn on_ack(&mut self, now: Time, number: u64, delay: Span) {
        let Ok(index) = self.sent.binary_search_by_key(&number, |&(number, _)| number) else { return };
        let (_, mark) = self.sent[index];
        self.sent.drain(..=index);
        let passed = now.saturating_since(self.began);
        if passed >= PERIOD.times(2) {
            (self.minima, self.began) = ([None; 2], now);
        } else if passed >= PERIOD {
            self.minima = [None, self.minima[0]];
            self.began += PERIOD;
        }
        let of_period = self.minima[0].map_or(delay, |min| min.min(delay));
        self.minima[0] = Some(of_period);
        let min_delay = self.minima[1].map_or(of_period, |before| before.min(of_period));
        let excess = Span::from_ps(delay.ps().saturating_sub(min_delay.ps()));
        self.rule.process_or_ack(now, excess.min(self.max_delay), mark);
    }

    /// Returns the total time of holds, whether there was something to send or not, the current hold included.
    pub(crate) fn held(&self) -> Span {
        self.rule.paused(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Frac;

    fn path() -> OnRampPath {
        OnRampPath::new(
            OnRampParams { threshold: Span::from_us(10), gain: Frac::ratio(1, 16), strawman: true },
            Time::ZERO,
        )
    }

    #[test]
    fn delay_is_relative_to_the_recent_minimum_for_any_clock_offset() {
        for apart in [Span::from_s(-7_000), Span::ZERO, Span::from_s(7_000)] {
            let mut path = path();
            let mut on_delay = |at_us: u64, number, took_us| {
                let now = Time::from_us(at_us);
                path.sent(now, number, 0);
                path.on_ack(now, number, apart + Span::from_us(took_us));
                path.until().saturating_since(now).ns() / 1_000
            };
            // The first is the minimum. 15 us more exceed the threshold by 5 us; a minimum that is 3 us lower makes that 8
            // us.
            assert_eq!(
                [on_delay(10, 0, 20), on_delay(100, 1, 35), on_delay(200, 2, 17), on_delay(300, 3, 35)],
                [0, 5, 0, 8],
                "{apart}"
            );
            // A while later the clocks have drifted by 40 us; the old minimum is forgotten after two periods.
            assert_eq!(
                [on_delay(10_000_000, 4, 60), on_delay(19_000_000, 5, 60), on_delay(20_000_000, 6, 60)],
                [33, 33, 0]
            );
        }
    }

    /// No hold is long, neither after a long silence nor for an implausible receive time of the peer.
    #[test]
    fn holds_are_bounded() {
        let mut path = path();
        let mut on_delay = |at_s: u64, number, took: Span| {
            let now = Time::from_ms(1_000 * at_s);
            path.sent(now, number, 0);
            path.on_ack(now, number, took);
            path.until().saturating_since(now)
        };
        assert_eq!(on_delay(1, 0, Span::ZERO), Span::ZERO);
        assert_eq!(on_delay(3_600, 1, Span::from_ms(72)), Span::ZERO);
        assert_eq!(on_delay(3_601, 2, Span::from_s(9_000_000)), MAX);
        assert_eq!(on_delay(3_605, 3, Span::from_ms(72)), Span::ZERO);
    }

    #[test]
    fn records_of_unreportable_packets_are_dropped() {
        let mut path = path();
        for number in 0..1_000 {
            path.sent(Time::from_us(number), number, number.saturating_sub(10));
        }
        assert_eq!(path.sent.len(), 11);
        path.on_ack(Time::from_us(1_000), 995, Span::ZERO);
        path.on_ack(Time::from_us(1_000), 993, Span::ZERO);
        assert_eq!(path.sent.len(), 4);
    }
}
