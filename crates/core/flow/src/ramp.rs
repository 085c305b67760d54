//! On-Ramp on a path between two clocks that nobody has set: the one-way delay counts from the least of late.
//! Liu et al., "Breaking the Transience-Equilibrium Nexus" (NSDI 2021), §3. When to hold is `laws::on_ramp`'s; a host of the simulator,
//! whose clocks are set, has a [`Hold`](crate::Hold).
//!
//! The difference between two clocks is constant but for drift, so it cancels when delays are compared. Clocks that differ by 20 ppm
//! drift apart by 20 us a second. So the base is the least delay of the last 10 to 20 s; a queue that stands for longer is not seen.

use alloc::collections::VecDeque;

use laws::on_ramp::{Mark, OnRamp, Params};
use units::{Span, Time};

/// The least delay of this period and the one before counts as none.
const PERIOD: Span = Span::from_s(10);

/// The longest hold: a peer may say anything of when packets came.
const LONGEST: Span = Span::from_s(1);

/// The hold of one path.
#[derive(Debug)]
pub(crate) struct Ramp {
    rule: OnRamp,
    /// A delay counts for so much at most.
    most: Span,
    /// Packets of which no time was heard, in the order in which they left.
    sent: VecDeque<(u64, Mark)>,
    /// The least delay of this period and of the one before, by the two clocks.
    least: [Span; 2],
    began: Time,
}

impl Ramp {
    pub(crate) fn new(params: Params, now: Time) -> Self {
        let most = params.threshold + LONGEST;
        Self { rule: OnRamp::new(params), most, sent: VecDeque::new(), least: [Span::MAX; 2], began: now }
    }

    /// Until when nothing may leave (`t_NextPkt`).
    pub(crate) fn until(&self) -> Time {
        self.rule.hold_until()
    }

    /// A packet leaves; nothing is remembered any more of those below `first`.
    pub(crate) fn sent(&mut self, now: Time, number: u64, first: u64) {
        while self.sent.front().is_some_and(|&(number, _)| number < first) {
            self.sent.pop_front();
        }
        self.sent.push_back((number, self.rule.mark(now)));
    }

    /// A packet came so long after it left, by the two clocks. Says nothing if a later one was heard of before.
    pub(crate) fn heard(&mut self, now: Time, number: u64, delay: Span) {
        let Ok(place) = self.sent.binary_search_by_key(&number, |&(number, _)| number) else { return };
        let (_, mark) = self.sent[place];
        self.sent.drain(..=place);
        let passed = now.saturating_since(self.began);
        if passed >= PERIOD.times(2) {
            (self.least, self.began) = ([Span::MAX; 2], now);
        } else if passed >= PERIOD {
            self.least = [Span::MAX, self.least[0]];
            self.began += PERIOD;
        }
        self.least[0] = self.least[0].min(delay);
        let least = self.least[0].min(self.least[1]);
        let over = Span::from_ps(delay.ps().saturating_sub(least.ps()));
        self.rule.on_or_ack(now, over.min(self.most), mark);
    }

    /// For how long it has held, whether there was something to send or not, a hold that has not ended included.
    pub(crate) fn held(&self) -> Span {
        self.rule.paused(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Frac;

    fn ramp() -> Ramp {
        Ramp::new(Params { threshold: Span::from_us(10), gain: Frac::ratio(1, 16), strawman: true }, Time::ZERO)
    }

    #[test]
    fn a_delay_counts_from_the_least_of_late_whatever_the_clocks_say() {
        for apart in [Span::from_s(-7_000), Span::ZERO, Span::from_s(7_000)] {
            let mut ramp = ramp();
            let mut hear = |at_us: u64, number, took_us| {
                let now = Time::from_us(at_us);
                ramp.sent(now, number, 0);
                ramp.heard(now, number, apart + Span::from_us(took_us));
                ramp.until().saturating_since(now).ns() / 1_000
            };
            // The first is the least; 15 us more are 5 over the threshold; 3 us less make them 8.
            assert_eq!(
                [hear(10, 0, 20), hear(100, 1, 35), hear(200, 2, 17), hear(300, 3, 35)],
                [0, 5, 0, 8],
                "{apart}"
            );
            // A while later the clocks have drifted by 40 us; what was least is forgotten in two periods.
            assert_eq!([hear(10_000_000, 4, 60), hear(19_000_000, 5, 60), hear(20_000_000, 6, 60)], [33, 33, 0]);
        }
    }

    /// Neither what was least before a long silence nor a wild word of the peer's holds for long.
    #[test]
    fn no_hold_is_long() {
        let mut ramp = ramp();
        let mut hear = |at_s: u64, number, took: Span| {
            let now = Time::from_ms(1_000 * at_s);
            ramp.sent(now, number, 0);
            ramp.heard(now, number, took);
            ramp.until().saturating_since(now)
        };
        assert_eq!(hear(1, 0, Span::ZERO), Span::ZERO);
        assert_eq!(hear(3_600, 1, Span::from_ms(72)), Span::ZERO);
        assert_eq!(hear(3_601, 2, Span::from_s(9_000_000)), LONGEST);
        assert_eq!(hear(3_605, 3, Span::from_ms(72)), Span::ZERO);
    }

    #[test]
    fn no_more_is_remembered_than_may_be_heard_of() {
        let mut ramp = ramp();
        for number in 0..1_000 {
            ramp.sent(Time::from_us(number), number, number.saturating_sub(10));
        }
        assert_eq!(ramp.sent.len(), 11);
        ramp.heard(Time::from_us(1_000), 995, Span::ZERO);
        ramp.heard(Time::from_us(1_000), 993, Span::ZERO);
        assert_eq!(ramp.sent.len(), 4);
    }
}
