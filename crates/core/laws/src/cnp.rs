//! DCQCN's notification point: the receiver's rules for notifying the sender of marks. Zhu et al., "Congestion Control
//! for Large-Scale RDMA Deployments" (SIGCOMM 2015), §3.1.

use units::{Span, Time};

/// One flow's notifications: at most one an interval, and only for marked packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generator {
    interval: Span,
    next: Time, // earliest time of the next one
}

impl Generator {
    /// The paper's interval (N).
    pub const INTERVAL: Span = Span::from_us(50);

    /// A flow before its first packet arrives. With an `interval` of 0, every marked packet triggers a notification.
    pub const fn new(interval: Span) -> Self {
        Self { interval, next: Time::ZERO }
    }

    /// Handles a marked data packet. Returns whether to send a notification now: for the first one at once, for a later
    /// one if none was sent for an interval. Marks in between are not remembered.
    pub fn on_mark(&mut self, now: Time) -> bool {
        let notifies = now >= self.next;
        if notifies {
            self.next = now.saturating_add(self.interval);
        }
        notifies
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn the_first_mark_is_notified_at_once_then_one_per_interval() {
        let mut generator = Generator::new(Generator::INTERVAL);
        let notified: Vec<u64> = (0..200).filter(|&us| us >= 7 && generator.on_mark(Time::from_us(us))).collect();
        assert_eq!(notified, [7, 57, 107, 157]);
    }

    #[test]
    fn marks_within_an_interval_are_ignored() {
        let mut generator = Generator::new(Span::from_us(50));
        assert!(generator.on_mark(Time::from_us(0)));
        assert!(!generator.on_mark(Time::from_us(49)));
        assert!(generator.on_mark(Time::from_us(61)));
    }

    #[test]
    fn without_an_interval_each_mark_is_notified() {
        let mut generator = Generator::new(Span::ZERO);
        assert!((0..5).all(|_| generator.on_mark(Time::from_us(1))));
    }

    proptest! {
        #[test]
        fn never_two_within_an_interval(
            interval in 0..1_000i64, gaps in proptest::collection::vec(0..2_000i64, 1..100),
        ) {
            let interval = Span::from_ns(interval);
            let mut generator = Generator::new(interval);
            let (mut now, mut last) = (Time::ZERO, None::<Time>);
            for gap in gaps {
                now += Span::from_ns(gap);
                let due = last.is_none_or(|last| now.since(last) >= interval);
                let notified = generator.on_mark(now);
                prop_assert_eq!(notified, due);
                if notified {
                    last = Some(now);
                }
            }
        }
    }
}
