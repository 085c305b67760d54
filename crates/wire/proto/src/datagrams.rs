//! Queue of datagrams to be sent or read, in bounded memory.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum memory of all waiting datagrams, in bytes. To be sent: the bytes of a millisecond at 8 Gb/s. To be read: the
/// bytes that a reader finds when it is a millisecond late.
const MAX: usize = 1 << 20;
/// Cost of a datagram in addition to its length, in bytes.
const COST: usize = 64;

/// A queue of datagrams.
#[derive(Default, Debug)]
pub(crate) struct Datagrams {
    queue: VecDeque<Vec<u8>>,
    counted: usize,
}

impl Datagrams {
    /// Appends a datagram. Returns whether there was room for it.
    pub(crate) fn push(&mut self, datagram: &[u8]) -> bool {
        let counts = datagram.len() + COST;
        let fits = self.counted + counts <= MAX;
        if fits {
            self.counted += counts;
            self.queue.push_back(datagram.to_vec());
        }
        debug_assert!(self.counted <= MAX && self.queue.len() * COST <= self.counted, "{} bytes count", self.counted);
        fits
    }

    pub(crate) fn front(&self) -> Option<&[u8]> {
        self.queue.front().map(Vec::as_slice)
    }

    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let datagram = self.queue.pop_front()?;
        self.counted -= datagram.len() + COST;
        debug_assert_eq!(self.queue.is_empty(), self.counted == 0, "{} bytes count", self.counted);
        Some(datagram)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_bounded_memory() {
        for len in [0, 1_000] {
            let datagram = alloc::vec![1; len];
            let mut datagrams = Datagrams::default();
            let max_count = MAX / (len + COST);
            assert_eq!((0..2 * max_count).filter(|_| datagrams.push(&datagram)).count(), max_count);
            assert_eq!(datagrams.pop().map(|datagram| datagram.len()), Some(len));
            assert!(datagrams.push(&datagram) && !datagrams.push(&datagram));
        }
    }
}
