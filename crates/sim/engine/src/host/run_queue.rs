//! Run queue of flows: the first entry is stored separately, because most hosts have one flow that sends. Flows that
//! have sent little, or have little to send, may go before the rest.

use std::collections::VecDeque;

/// A flow that may send: its slot and its number.
pub(super) type RunQueueEntry = (u32, u32);

/// Flows that may send, in turn.
#[derive(Default)]
pub(super) struct RunQueue {
    /// None only where `rest` is empty, too.
    first: Option<RunQueueEntry>,
    rest: VecDeque<RunQueueEntry>,
    /// Number of flows at the front that go before the next one of [`RunQueue::push_early`].
    early: usize,
}

impl RunQueue {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn first(&self) -> Option<RunQueueEntry> {
        self.first
    }

    /// All, in turn.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RunQueueEntry> {
        self.first.iter().chain(&self.rest)
    }

    #[inline(always)]
    pub(super) fn push_back(&mut self, turn: RunQueueEntry) {
        if self.first.is_none() {
            self.first = Some(turn);
        } else {
            self.rest.push_back(turn);
        }
    }

    /// Inserts a turn after those that were inserted by this method, and before all others.
    #[inline]
    pub(super) fn push_early(&mut self, turn: RunQueueEntry) {
        match (self.early, self.first) {
            (0, None) => self.first = Some(turn),
            (0, Some(second)) => {
                self.first = Some(turn);
                self.rest.push_front(second);
            }
            (early, _) => self.rest.insert(early - 1, turn),
        }
        self.early += 1;
    }

    /// Puts a turn first.
    #[inline(always)]
    pub(super) fn push_front(&mut self, turn: RunQueueEntry) {
        self.early += usize::from(self.early > 0);
        if let Some(second) = self.first.replace(turn) {
            self.rest.push_front(second);
        }
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<RunQueueEntry> {
        self.early = self.early.saturating_sub(1);
        let next = if self.rest.is_empty() { None } else { self.rest.pop_front() };
        std::mem::replace(&mut self.first, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The run queue matches a queue, and two queues if some flows go early: a turn put first belongs to the turns
        /// that it precedes.
        #[test]
        fn run_queue_matches_two_queues(steps in proptest::collection::vec(0..7u32, 1..100)) {
            let (mut turns, mut early, mut queue) = (RunQueue::default(), VecDeque::new(), VecDeque::new());
            for (number, step) in (0..).zip(steps) {
                let turn = (number, step);
                match step {
                    0 | 1 => {
                        turns.push_back(turn);
                        queue.push_back(turn);
                    }
                    2 => {
                        turns.push_front(turn);
                        if early.is_empty() { &mut queue } else { &mut early }.push_front(turn);
                    }
                    3 => {
                        turns.push_early(turn);
                        early.push_back(turn);
                    }
                    _ => prop_assert_eq!(turns.pop_front(), early.pop_front().or_else(|| queue.pop_front())),
                }
                let all: Vec<_> = early.iter().chain(&queue).copied().collect();
                prop_assert_eq!(turns.iter().copied().collect::<Vec<_>>(), all.clone());
                prop_assert_eq!((turns.first(), turns.is_empty()), (all.first().copied(), all.is_empty()));
            }
        }
    }
}
