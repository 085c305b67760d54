//! Blocks by consecutive numbers, with gaps where blocks are over.

use alloc::collections::VecDeque;

use crate::narrow::to_usize;

#[derive(Debug)]
enum Slot<T> {
    Live(T),
    /// Removed, like all from here to before this number.
    Removed(u64),
}

/// Items with consecutive numbers.
#[derive(Debug)]
pub(super) struct BlockRing<T> {
    /// The number of the first slot.
    base: u64,
    slots: VecDeque<Slot<T>>,
    live: usize,
}

impl<T> BlockRing<T> {
    pub(super) const fn new() -> Self {
        Self { base: 0, slots: VecDeque::new(), live: 0 }
    }

    /// Returns the number that the next item gets.
    pub(super) fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Returns the number of items from the first remaining one to the last: those that are over count, too.
    pub(super) fn span(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Returns the number of remaining items.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    fn at(&self, number: u64) -> Option<usize> {
        // Slots are in memory: an offset among them is a `usize`.
        number.checked_sub(self.base).filter(|&at| at < self.span()).map(to_usize)
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        match self.slots.get(self.at(number)?) {
            Some(Slot::Live(item)) => Some(item),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = self.at(number)?;
        match self.slots.get_mut(at) {
            Some(Slot::Live(item)) => Some(item),
            _ => None,
        }
    }

    pub(super) fn push(&mut self, item: T) {
        self.slots.push_back(Slot::Live(item));
        self.live += 1;
    }

    /// Removes an item, if it remains.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let at = self.at(number).filter(|&at| matches!(self.slots.get(at), Some(Slot::Live(_))))?;
        let slot = core::mem::replace(&mut self.slots[at], Slot::Removed(number + 1));
        self.live -= 1;
        while let Some(Slot::Removed(_)) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        match slot {
            Slot::Live(item) => Some(item),
            Slot::Removed(_) => None,
        }
    }

    /// Returns the first remaining item of this number and those above. It takes few steps on average: passed entries then
    /// point further ahead.
    pub(super) fn first_from(&mut self, number: u64) -> Option<u64> {
        let mut number = number.max(self.base);
        while let Some(at) = self.at(number) {
            let Slot::Removed(next) = self.slots[at] else { return Some(number) };
            let beyond = match self.at(next).map(|at| &self.slots[at]) {
                Some(&Slot::Removed(beyond)) => beyond,
                _ => next,
            };
            self.slots[at] = Slot::Removed(beyond);
            number = beyond;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// The ring agrees with a map.
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec((0..60u64, 0..3u8), 0..200)) {
            let (mut ring, mut map, mut next) = (BlockRing::new(), BTreeMap::new(), 0);
            for (number, action) in steps {
                match action {
                    0 => {
                        ring.push(next);
                        map.insert(next, next);
                        next += 1;
                    }
                    1 => prop_assert_eq!(ring.remove(number), map.remove(&number)),
                    _ => prop_assert_eq!(ring.first_from(number), map.range(number..).next().map(|(&at, _)| at)),
                }
                prop_assert_eq!((ring.next(), ring.live()), (next, map.len()));
                prop_assert_eq!(ring.get(number), map.get(&number));
                prop_assert_eq!(ring.get_mut(number), map.get_mut(&number));
                let span = map.first_key_value().map_or(0, |(first, _)| next - first);
                prop_assert_eq!(ring.span(), span);
            }
        }
    }
}
