//! Memory of parity packets under construction.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A parity packet under construction: it begins at a cache line, because vectors that cross one are written at half
/// speed.
#[derive(Clone, Default, Debug)]
pub(crate) struct ParityBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl ParityBuffer {
    const LINE: usize = 64;

    /// Resizes the buffer to `length` bytes, with unspecified contents.
    pub(crate) fn resize(&mut self, length: usize) {
        self.bytes.resize(length + Self::LINE, 0);
        // The distance of an address from a line may be unknown; then any place will do.
        self.start = self.bytes.as_ptr().align_offset(Self::LINE).min(Self::LINE);
        self.length = length;
    }
}

impl Deref for ParityBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for ParityBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}
