//! Values by number: the oldest are forgotten and new ones appended.

use alloc::vec::Vec;

/// Values of the numbers `first..end`.
#[derive(Debug)]
pub(crate) struct SeqRing<T> {
    slots: Vec<T>,
    /// Number of the first slot: at most `first`, and below it by less than the number of slots.
    base: u64,
    first: u64,
    end: u64,
}

/// Number of slots up to which they double; above, they grow by a fraction.
const DOUBLES: usize = 4_096;
const PART: usize = 16;

impl<T: Copy> SeqRing<T> {
    /// Creates an empty ring with the next number `next`.
    pub(crate) const fn starting_at(next: u64) -> Self {
        Self { slots: Vec::new(), base: next, first: next, end: next }
    }

    /// The oldest number that is not forgotten.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next value gets.
    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    #[inline(always)]
    fn slot(&self, number: u64) -> usize {
        debug_assert!(self.first <= number && number <= self.end, "{number} is not in {}..{}", self.first, self.end);
        let at = (number - self.base) as usize;
        if at < self.slots.len() { at } else { at - self.slots.len() }
    }

    /// # Panics
    /// May panic if the number is forgotten or not assigned yet.
    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> &T {
        &self.slots[self.slot(number)]
    }

    /// # Panics
    /// May panic if the number is forgotten or not assigned yet.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut T {
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    /// Appends a value, and returns its number.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) -> u64 {
        let number = self.end;
        debug_assert!(self.base <= self.first && self.first <= number, "{} {} {number}", self.base, self.first);
        if (number - self.first) as usize == self.slots.len() {
            self.grow(value);
        }
        *self.get_mut(number) = value;
        self.end += 1;
        number
    }

    /// Forgets the oldest values while `is_over` returns true for them.
    #[inline(always)]
    pub(crate) fn forget_while(&mut self, is_over: impl Fn(&T) -> bool) {
        while self.first < self.end && is_over(self.get(self.first)) {
            self.forget_first();
        }
    }

    /// Forgets values below this number.
    pub(crate) fn forget_below(&mut self, number: u64) {
        while self.first < number.min(self.end) {
            self.forget_first();
        }
    }

    #[inline(always)]
    fn forget_first(&mut self) {
        self.first += 1;
        if (self.first - self.base) as usize >= self.slots.len() {
            self.base = self.first;
        }
    }

    /// Adds slots. The first slot is then that of the oldest value.
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let len = self.slots.len();
        if len > 0 {
            let first = self.slot(self.first);
            self.slots.rotate_left(first);
        }
        self.base = self.first;
        let more = if len < DOUBLES { len.max(4) } else { len / PART };
        self.slots.reserve_exact(more);
        self.slots.resize(len + more, filler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn large_rings_have_little_spare_capacity() {
        let mut ring: SeqRing<u64> = SeqRing::starting_at(5);
        for value in 0..100_000u64 {
            assert_eq!(ring.push(value), value + 5);
        }
        assert!(ring.slots.capacity() <= 100_000 * 17 / 16, "{}", ring.slots.capacity());
        ring.forget_while(|&value| value < 99_000);
        for value in 100_000..1_000_000 {
            ring.push(value);
            ring.forget_while(|&old| old + 1_000 <= value);
        }
        assert_eq!((ring.first(), ring.end()), (999_005, 1_000_005));
        assert!(ring.slots.capacity() <= 100_000 * 17 / 16);
    }

    proptest! {
        /// Equivalence with a queue.
        #[test]
        fn ring_matches_a_queue(steps in proptest::collection::vec((0..70u64, 0..90u64), 1..60), next in 0..100u64) {
            let mut ring: SeqRing<u64> = SeqRing::starting_at(next);
            let (mut queue, mut first) = (VecDeque::new(), next);
            for (pushes, drops) in steps {
                for _ in 0..pushes {
                    let value = ring.end() * 7;
                    prop_assert_eq!(ring.push(value), first + queue.len() as u64);
                    queue.push_back(value);
                }
                if drops % 2 == 0 {
                    ring.forget_below(first + drops);
                } else {
                    ring.forget_while(|&value| value < 7 * (first + drops));
                }
                let dropped = (drops as usize).min(queue.len());
                queue.drain(..dropped);
                first += dropped as u64;
                prop_assert_eq!((ring.first(), ring.end()), (first, first + queue.len() as u64));
                for (number, value) in (first..).zip(&queue) {
                    prop_assert_eq!(ring.get(number), value);
                    prop_assert_eq!(&*ring.get_mut(number), value);
                }
            }
        }
    }
}
