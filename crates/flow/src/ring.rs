//! Values by number, of which the oldest are forgotten and new ones appended. They lie in chunks of `N`, a power of two, so
//! that memory is what the values take and a chunk or two more, however their number grows and shrinks.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Values of the numbers `first..end`.
#[derive(Debug)]
pub(crate) struct Ring<T, const N: usize> {
    /// By number over `N`, modulo their count, which is a power of two; empty where nothing is.
    chunks: Vec<Chunk<T, N>>,
    /// The last chunk that was emptied, for the next that is needed.
    spare: Chunk<T, N>,
    first: u64,
    end: u64,
}

type Chunk<T, const N: usize> = Option<Box<[T; N]>>;

impl<T: Copy, const N: usize> Ring<T, N> {
    /// Nothing yet, the next number being `next`.
    pub(crate) const fn starting_at(next: u64) -> Self {
        const { assert!(N.is_power_of_two()) };
        Self { chunks: Vec::new(), spare: None, first: next, end: next }
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
    fn chunk(&self, number: u64) -> usize {
        (number as usize / N) & (self.chunks.len() - 1)
    }

    #[inline(always)]
    fn check(&self, number: u64) {
        debug_assert!(self.first <= number && number < self.end, "{number} is not in {}..{}", self.first, self.end);
    }

    /// # Panics
    /// If the number is forgotten or not given yet.
    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> &T {
        self.check(number);
        match &self.chunks[self.chunk(number)] {
            Some(chunk) => &chunk[number as usize % N],
            None => absent(number),
        }
    }

    /// # Panics
    /// If the number is forgotten or not given yet.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut T {
        self.check(number);
        let chunk = self.chunk(number);
        match &mut self.chunks[chunk] {
            Some(chunk) => &mut chunk[number as usize % N],
            None => absent(number),
        }
    }

    /// Appends a value, and gives its number.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) -> u64 {
        let number = self.end;
        if (number as usize).is_multiple_of(N) || self.chunks.is_empty() {
            self.make_room(value);
        }
        self.end += 1;
        *self.get_mut(number) = value;
        number
    }

    /// Forgets the oldest values of which `is_over` says so.
    #[inline(always)]
    pub(crate) fn forget_while(&mut self, is_over: impl Fn(&T) -> bool) {
        while self.first < self.end && is_over(self.get(self.first)) {
            self.first += 1;
            if (self.first as usize).is_multiple_of(N) {
                self.empty(self.first - 1);
            }
        }
    }

    /// Forgets what is older than this number.
    pub(crate) fn forget_below(&mut self, number: u64) {
        while self.first < number.min(self.end) {
            self.first += 1;
            if (self.first as usize).is_multiple_of(N) {
                self.empty(self.first - 1);
            }
        }
    }

    /// Makes sure that the next value has a place.
    #[inline(never)]
    fn make_room(&mut self, filler: T) {
        let number = self.end;
        let needed = (number / N as u64 - self.first / N as u64) as usize + 1;
        if needed > self.chunks.len() {
            self.grow();
        }
        let chunk = self.chunk(number);
        if self.chunks[chunk].is_none() {
            self.chunks[chunk] = Some(self.spare.take().unwrap_or_else(|| Box::new([filler; N])));
        }
    }

    /// Twice as many chunks may be in use.
    fn grow(&mut self) {
        let mut chunks = Vec::new();
        chunks.resize_with((self.chunks.len() * 2).max(1), || None);
        let count = chunks.len();
        if self.first < self.end {
            for at in self.first / N as u64..=(self.end - 1) / N as u64 {
                let old = self.chunk(at * N as u64);
                chunks[at as usize & (count - 1)] = self.chunks[old].take();
            }
        }
        self.chunks = chunks;
    }

    /// The last value of a chunk is forgotten.
    #[inline(never)]
    fn empty(&mut self, number: u64) {
        let chunk = self.chunk(number);
        self.spare = self.chunks[chunk].take();
    }
}

#[cold]
#[inline(never)]
fn absent(number: u64) -> ! {
    panic!("there is no value {number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn memory_is_what_the_values_take() {
        let mut ring: Ring<u64, 16> = Ring::starting_at(5);
        for value in 0..1_000u64 {
            assert_eq!(ring.push(value), value + 5);
            ring.forget_while(|&old| old + 40 <= value);
        }
        assert_eq!((ring.first(), ring.end()), (965, 1_005));
        let chunks = ring.chunks.iter().flatten().count();
        assert!((3..=4).contains(&chunks) && ring.chunks.len() == 4, "{chunks} of {}", ring.chunks.len());
    }

    proptest! {
        /// It does as a queue does.
        #[test]
        fn as_a_queue(steps in proptest::collection::vec((0..70u64, 0..90u64), 1..60), next in 0..100u64) {
            let mut ring: Ring<u64, 16> = Ring::starting_at(next);
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
                let gone = (drops as usize).min(queue.len());
                queue.drain(..gone);
                first += gone as u64;
                prop_assert_eq!((ring.first(), ring.end()), (first, first + queue.len() as u64));
                for (number, value) in (first..).zip(&queue) {
                    prop_assert_eq!(ring.get(number), value);
                    prop_assert_eq!(&*ring.get_mut(number), value);
                }
            }
        }
    }
}
