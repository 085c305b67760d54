//! Whose turn it is: a queue of which the first lies apart, because most hosts have one flow that sends.

use std::collections::VecDeque;

/// A flow that may send: its slot and its number.
pub(super) type Turn = (u32, u32);

/// Flows that may send, in turn.
#[derive(Default)]
pub(super) struct Turns {
    /// None only where `rest` is empty, too.
    first: Option<Turn>,
    rest: VecDeque<Turn>,
}

impl Turns {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn first(&self) -> Option<Turn> {
        self.first
    }

    /// All, in turn.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.first.iter().chain(&self.rest)
    }

    #[inline(always)]
    pub(super) fn push_back(&mut self, turn: Turn) {
        if self.first.is_none() {
            self.first = Some(turn);
        } else {
            self.rest.push_back(turn);
        }
    }

    /// Gives the next turn.
    #[inline(always)]
    pub(super) fn push_front(&mut self, turn: Turn) {
        if let Some(second) = self.first.replace(turn) {
            self.rest.push_front(second);
        }
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<Turn> {
        let next = if self.rest.is_empty() { None } else { self.rest.pop_front() };
        std::mem::replace(&mut self.first, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It does as a queue does.
        #[test]
        fn as_a_queue(steps in proptest::collection::vec(0..5u32, 1..100)) {
            let (mut turns, mut queue) = (Turns::default(), VecDeque::new());
            for (number, step) in (0..).zip(steps) {
                match step {
                    0 | 1 => {
                        turns.push_back((number, step));
                        queue.push_back((number, step));
                    }
                    2 => {
                        turns.push_front((number, step));
                        queue.push_front((number, step));
                    }
                    _ => prop_assert_eq!(turns.pop_front(), queue.pop_front()),
                }
                prop_assert_eq!((turns.first(), turns.is_empty()), (queue.front().copied(), queue.is_empty()));
            }
        }
    }
}
