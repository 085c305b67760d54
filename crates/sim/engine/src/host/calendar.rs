//! A host's own events: one calendar, in order of time.
//!
//! A host's flows, receivers and credits make an entry here for each of their timers. No entry is removed before its
//! time: an owner that reschedules makes another entry and remembers its time. An entry that fires at any other time is
//! outdated, and its owner ignores it. So the usual flow has one timer here, which is checked again when it fires, even
//! if its timeout has moved often meanwhile.
//!
//! Pacing is separate: packets due there also wait for the NIC.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Time;

/// An event that is due. Events at the same time are handled in this order, and flow by flow: a flow's slot in a host's
/// tables depends on the order in which nodes ran, so it may not determine the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Due {
    /// The transport receives packets that were delayed in the host, in the order of their arrival.
    Delayed,
    /// A flow starts.
    Start(u32),
    /// A flow's timer.
    Timer(u32),
    /// A flow's acknowledgement is held back no longer.
    Flush(u32),
    /// The receiver requests a block of a flow.
    Block(u32),
    /// The host's queue of credits lets the first one out.
    CreditQueue,
    /// The host sends the next credit for data that it is to receive.
    HostCredit,
    /// An end of a flow acts on its credits.
    Credits(u32, FlowSide),
}

/// An end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FlowSide {
    Sender,
    Receiver,
}

/// A host's calendar.
pub(super) struct Calendar {
    /// The time of the first entry; [`Time::NEVER`] if there is none. Stored outside of the heap so that a query costs
    /// one load.
    first_at: Time,
    heap: BinaryHeap<Reverse<(Time, Due)>>,
    /// The time up to which entries have been removed.
    done: Time,
}

impl Calendar {
    pub(super) const fn new() -> Self {
        Self { first_at: Time::NEVER, heap: BinaryHeap::new(), done: Time::ZERO }
    }

    /// Returns the time of the first entry; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(super) fn first_at(&self) -> Time {
        self.first_at
    }

    /// Puts an entry down, not in the past.
    #[inline]
    pub(super) fn schedule(&mut self, time: Time, due: Due) {
        debug_assert!(time.is_set(), "{due:?} is never due");
        debug_assert!(time >= self.done, "{due:?} at {time:?} is scheduled in the past: the time is {:?}", self.done);
        self.heap.push(Reverse((time, due)));
        self.first_at = self.first_at.min(time);
    }

    /// Takes out the first entry that is due at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<(Time, Due)> {
        debug_assert!(now >= self.done, "time goes back from {:?} to {now:?}", self.done);
        if self.first_at > now {
            return None;
        }
        let Reverse((time, due)) = self.heap.pop()?;
        self.first_at = self.heap.peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
        debug_assert!(self.done <= time && time <= now, "{due:?} scheduled at {time:?} fires at {now:?}");
        self.done = time;
        Some((time, due))
    }
}

impl Calendar {
    /// Returns the entries that owners remember, sorted: all but starts of flows.
    pub(super) fn remembered(&self) -> Vec<(Time, Due)> {
        let all = self.heap.iter().map(|Reverse(entry)| *entry);
        let mut entries: Vec<_> = all.filter(|(_, due)| !matches!(due, Due::Start(_))).collect();
        entries.sort_unstable();
        entries
    }

    /// Checks that the first entry is in its place, and none before `now`. Returns the number of entries examined.
    pub(super) fn check(&self, now: Time) -> Result<usize, String> {
        let first = self.heap.iter().map(|Reverse((time, _))| *time).min().unwrap_or(Time::NEVER);
        if first != self.first_at {
            return Err(format!("the calendar's first entry is at {first:?} instead of {:?}", self.first_at));
        }
        if first < now {
            return Err(format!("an entry of the calendar was due at {first:?}"));
        }
        Ok(1 + self.heap.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// At one time: in order of causes, then of flows, and at a flow's ends the sender first.
    #[test]
    fn simultaneous_events_are_ordered() {
        let dues = [
            Due::Delayed,
            Due::Start(0),
            Due::Start(7),
            Due::Timer(3),
            Due::Flush(2),
            Due::Block(1),
            Due::CreditQueue,
            Due::Credits(4, FlowSide::Sender),
            Due::Credits(4, FlowSide::Receiver),
            Due::Credits(5, FlowSide::Sender),
        ];
        let mut calendar = Calendar::new();
        for &due in dues.iter().rev() {
            calendar.schedule(Time::from_ns(5), due);
        }
        assert!(calendar.take(Time::from_ns(4)).is_none());
        let taken: Vec<Due> = std::iter::from_fn(|| calendar.take(Time::from_ns(5))).map(|(_, due)| due).collect();
        assert_eq!(taken, dues);
        assert_eq!(calendar.first_at(), Time::NEVER);
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Reverse<(Time, Due)>>(), 16);
    }

    #[test]
    #[should_panic(expected = "scheduled in the past")]
    #[cfg(debug_assertions)]
    fn nothing_is_put_into_the_past() {
        let mut calendar = Calendar::new();
        calendar.schedule(Time::from_ns(5), Due::Start(0));
        calendar.take(Time::from_ns(6));
        calendar.schedule(Time::from_ns(4), Due::Timer(0));
    }

    #[test]
    fn check_finds_each_inconsistency() {
        let ns = Time::from_ns;
        let mut calendar = Calendar::new();
        for at in 1..9 {
            calendar.schedule(ns(at), Due::Timer(at as u32));
        }
        assert_eq!(calendar.check(ns(1)), Ok(9));
        calendar.schedule(ns(2), Due::Start(1));
        assert_eq!(calendar.remembered(), (1..9).map(|at| (ns(at), Due::Timer(at as u32))).collect::<Vec<_>>());
        assert!(calendar.check(ns(2)).unwrap_err().contains("was due"));
        calendar.first_at = ns(7);
        assert!(calendar.check(ns(1)).unwrap_err().contains("first entry"));
    }

    proptest! {
        /// The calendar matches a sorted list.
        #[test]
        fn calendar_matches_a_sorted_list(steps in proptest::collection::vec((0..9u64, 0..5u64, 0..6u32), 1..200)) {
            let (mut calendar, mut list) = (Calendar::new(), Vec::new());
            let mut now = 0;
            for (ahead, passes, flow) in steps {
                let due = [
                    Due::Delayed, Due::Start(flow), Due::Timer(flow), Due::Flush(flow), Due::Block(flow), Due::CreditQueue,
                    Due::Credits(flow, if ahead % 2 == 0 { FlowSide::Sender } else { FlowSide::Receiver }),
                ][flow as usize];
                calendar.schedule(Time::from_ns(now + ahead), due);
                list.push((Time::from_ns(now + ahead), due));
                list.sort_unstable();
                prop_assert_eq!(calendar.first_at(), list[0].0);
                now += passes;
                while let Some(&first) = list.first().filter(|(time, _)| *time <= Time::from_ns(now)) {
                    prop_assert_eq!(calendar.take(Time::from_ns(now)), Some(first));
                    list.remove(0);
                }
                prop_assert_eq!(calendar.take(Time::from_ns(now)), None);
                prop_assert_eq!(calendar.first_at(), list.first().map_or(Time::NEVER, |(time, _)| *time));
            }
        }
    }
}
