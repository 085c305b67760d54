//! A queue in a ring. Entries are written and read in their slots: removed by value, an entry would be assembled from parts on
//! the stack, and the next copy would wait for the store buffer, at every hop.

/// A first-in-first-out queue; its store grows and never shrinks.
#[derive(Clone, Debug)]
pub(crate) struct PacketRing<T> {
    /// A power of two of slots, or none.
    slots: Vec<T>,
    head: u32,
    len: u32,
}

impl<T> Default for PacketRing<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), head: 0, len: 0 }
    }
}

/// Places of a ring that has held something.
const FIRST_SIZE: usize = 8;

impl<T: Copy> PacketRing<T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> usize {
        (self.head.wrapping_add(index) as usize) & (self.slots.len().wrapping_sub(1))
    }

    /// Appends a slot to be written; it contains an older entry, or `filler`.
    #[inline(always)]
    pub(crate) fn append(&mut self, filler: impl FnOnce() -> T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(filler());
        }
        let slot = self.slot(self.len);
        self.len += 1;
        &mut self.slots[slot]
    }

    /// The first one.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.slot(0)) }
    }

    /// Drops the first one, of at least one. An empty ring begins at its first slot again: it is near the processor.
    #[inline(always)]
    pub(crate) fn drop_front(&mut self) {
        debug_assert!(!self.is_empty());
        self.len -= 1;
        self.head = if self.len == 0 { 0 } else { self.head.wrapping_add(1) };
    }

    /// Returns the item at `index` behind the first, if there is one.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let slot = self.slot(index as u32);
        if index < self.len() { self.slots.get_mut(slot) } else { None }
    }

    /// Moves the last one forward, to `index` slots behind the first.
    pub(crate) fn move_last_to(&mut self, index: usize) {
        for later in (index as u32 + 1..self.len).rev() {
            let (a, b) = (self.slot(later - 1), self.slot(later));
            self.slots.swap(a, b);
        }
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self.slots[self.slot(index)])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let mut slots: Vec<T> = self.iter().copied().collect();
        slots.resize((self.len() * 2).max(FIRST_SIZE), filler);
        *self = Self { slots, head: 0, len: self.len };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn ring_matches_a_deque(steps in proptest::collection::vec(0..8usize, 0..300)) {
            let mut ring = PacketRing::default();
            let mut model = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0..=2 if !model.is_empty() => {
                        ring.drop_front();
                        model.pop_front();
                    }
                    3 if !model.is_empty() => {
                        let to = number % model.len();
                        ring.move_last_to(to);
                        let last = model.pop_back().unwrap();
                        model.insert(to, last);
                    }
                    4 => {
                        let index = number % (model.len() + 1);
                        prop_assert_eq!(ring.get_mut(index), model.get_mut(index));
                    }
                    _ => {
                        *ring.append(|| 0) = number;
                        model.push_back(number);
                    }
                }
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(ring.iter().eq(model.iter()));
            }
        }
    }
}
