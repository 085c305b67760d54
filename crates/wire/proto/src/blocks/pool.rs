//! Symbol storage: buffers that are reused.

use alloc::vec::Vec;
use core::mem;

use crate::narrow::to_u32;

/// Maximum capacity of the spare buffers, in bytes.
const MAX_SPARE: usize = 1 << 19;

/// Symbols by number.
#[derive(Default, Debug)]
pub(super) struct SymbolPool {
    slots: Vec<Vec<u8>>,
    /// Slots without a symbol.
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
    /// Capacity of the spare buffers, in bytes.
    spare_bytes: usize,
}

impl SymbolPool {
    /// Returns a buffer of `len` bytes with arbitrary contents. Its capacity is at most about twice that.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        if buffer.capacity() > 2 * len + 64 {
            buffer = Vec::new();
        }
        buffer.truncate(len);
        buffer.reserve_exact(len - buffer.len());
        buffer.resize(len, 0);
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.spare_bytes + buffer.capacity() <= MAX_SPARE {
            self.spare_bytes += buffer.capacity();
            self.spare.push(buffer);
        }
    }

    /// Stores a symbol. Returns its number.
    pub(super) fn store(&mut self, symbol: Vec<u8>) -> u32 {
        if let Some(free) = self.free.pop() {
            self.slots[free as usize] = symbol;
            return free;
        }
        self.slots.push(symbol);
        // Symbols count at least 64 bytes each in less than 2^62 bytes of memory; a machine with 2^32 of them has 256
        // GiB.
        to_u32(self.slots.len() as u64 - 1)
    }

    pub(super) fn get(&self, symbol: u32) -> &[u8] {
        &self.slots[symbol as usize]
    }

    /// Appends zeros to a symbol, up to this length.
    pub(super) fn pad(&mut self, symbol: u32, len: usize) {
        self.slots[symbol as usize].resize(len, 0);
    }

    /// Forgets a symbol.
    pub(super) fn free(&mut self, symbol: u32) {
        let buffer = mem::take(&mut self.slots[symbol as usize]);
        self.recycle(buffer);
        self.free.push(symbol);
    }

    /// Returns the capacity of all buffers, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.slots.iter().chain(&self.spare).map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused() {
        let mut pool = SymbolPool::default();
        let numbers: Vec<u32> =
            (0..4).map(|_| pool.take(1400)).collect::<Vec<_>>().into_iter().map(|it| pool.store(it)).collect();
        let all = pool.bytes();
        for _ in 0..100 {
            for &number in &numbers {
                pool.free(number);
            }
            for _ in 0..4 {
                let buffer = pool.take(1400);
                let number = pool.store(buffer);
                assert!(numbers.contains(&number));
            }
            assert_eq!(pool.bytes(), all);
        }
    }

    /// Short symbols do not hold long buffers, and spare buffers are bounded.
    #[test]
    fn memory_follows_stored_symbols() {
        let mut pool = SymbolPool::default();
        for len in [65_000, 10] {
            let numbers: Vec<u32> = (0..100)
                .map(|_| {
                    let buffer = pool.take(len);
                    pool.store(buffer)
                })
                .collect();
            assert!(pool.bytes() <= 100 * (2 * len + 64) + MAX_SPARE);
            for number in numbers {
                pool.free(number);
            }
            assert!(pool.bytes() <= MAX_SPARE);
        }
    }
}
