//! One timer per block, for many blocks: a heap of times that may be early, checked again when they come first.
//!
//! A timer that moves later, as it does with every packet, costs nothing until its old time is first.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use units::Time;

/// Timer state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timer {
    /// Due time; [`Time::NEVER`] if not set.
    due: Time,
    /// The time of its entry, not later than `due`; [`Time::NEVER`] if it has none.
    entry: Time,
}

impl Timer {
    pub(super) const UNSET: Self = Self { due: Time::NEVER, entry: Time::NEVER };
}

/// Blocks that have timers.
pub(super) trait Timed {
    /// Returns the timer of a block, if the block still exists.
    fn timer(&mut self, block: u64) -> Option<&mut Timer>;
}

/// The entries of all timers.
#[derive(Default, Debug)]
pub(super) struct Timers {
    entries: BinaryHeap<Reverse<(Time, u64)>>,
}

impl Timers {
    /// Sets or moves the timer of `block`.
    pub(super) fn set(&mut self, timer: &mut Timer, block: u64, due: Time) {
        timer.due = due;
        if due < timer.entry {
            timer.entry = due;
            self.entries.push(Reverse((due, block)));
        }
    }

    /// Returns the timer with the earliest time, and its block.
    pub(super) fn first(&mut self, blocks: &mut impl Timed) -> Option<(Time, u64)> {
        while let Some(mut first) = self.entries.peek_mut() {
            let Reverse((time, block)) = *first;
            match blocks.timer(block) {
                Some(timer) if timer.entry == time && timer.due == time => return Some((time, block)),
                Some(timer) if timer.entry == time && timer.due.is_set() => {
                    timer.entry = timer.due;
                    *first = Reverse((timer.due, block));
                }
                other => {
                    // An entry of a timer that was moved to an earlier time, or stopped, or of a block that no longer exists.
                    if let Some(timer) = other.filter(|timer| timer.entry == time) {
                        timer.entry = Time::NEVER;
                    }
                    alloc::collections::binary_heap::PeekMut::pop(first);
                }
            }
        }
        None
    }

    /// Drops entries of blocks that no longer exist, if they are the majority: `live` blocks remain.
    pub(super) fn prune(&mut self, live: usize, is_live: impl Fn(u64) -> bool) {
        if self.entries.len() > 2 * live + 64 {
            self.entries.retain(|Reverse((_, block))| is_live(*block));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    impl Timed for BTreeMap<u64, (Timer, Time)> {
        fn timer(&mut self, block: u64) -> Option<&mut Timer> {
            self.get_mut(&block).map(|(timer, _)| timer)
        }
    }

    proptest! {
        /// The timers agree with a search through all of them.
        #[test]
        fn agrees_with_a_linear_search(steps in proptest::collection::vec((0..8u64, 0..100u64, 0..4u8), 0..200)) {
            let (mut timers, mut live) = (Timers::default(), BTreeMap::<u64, (Timer, Time)>::new());
            let mut fresh = 0..;
            let mut names = [0; 8];
            for (block, time, action) in steps {
                let time = Time::from_us(time);
                match action {
                    0 => drop(live.remove(&names[block as usize])),
                    1 => timers.prune(live.len(), |block| live.contains_key(&block)),
                    _ => {
                        if !live.contains_key(&names[block as usize]) {
                            names[block as usize] = fresh.next().unwrap();
                        }
                        let name = names[block as usize];
                        let entry = live.entry(name).or_insert((Timer::UNSET, Time::NEVER));
                        let due = if action == 2 { Time::NEVER } else { time };
                        timers.set(&mut entry.0, name, due);
                        entry.1 = due;
                    }
                }
                let wanted = live.values().map(|&(_, due)| due).min().unwrap_or(Time::NEVER);
                let first = timers.first(&mut live);
                prop_assert_eq!(first.map_or(Time::NEVER, |(time, _)| time), wanted);
            }
        }
    }

    #[test]
    fn removed_blocks_take_no_memory() {
        let mut timers = Timers::default();
        for block in 0..10_000 {
            timers.set(&mut { Timer::UNSET }, block, Time::from_us(block));
            timers.prune(1, |live| live == block);
            assert!(timers.len() <= 67);
        }
    }
}
