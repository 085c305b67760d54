//! Random numbers of a seed.

use units::{EXPONENTIAL_BITS, exponential, mix64};

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix64(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// Returns a number from 0 to `limit`, without `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns an exponential number of this mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        ((u128::from(exponential(self.next())) * u128::from(mean)) >> EXPONENTIAL_BITS) as u64
    }

    /// Returns a number that is approximately Gaussian: the sum of twelve uniform numbers.
    pub(crate) fn gaussian(&mut self, sigma: i64) -> i64 {
        let sum: i64 = (0..12).map(|_| (self.next() >> 32) as i64).sum();
        ((i128::from(sum - (6 << 32)) * i128::from(sigma)) >> 32) as i64
    }
}
