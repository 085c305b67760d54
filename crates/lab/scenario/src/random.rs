//! Random numbers as hashes of numbered decisions. They are integers, so that the same seed produces the same bits on
//! every machine.

use units::mix64;

/// The decisions of one traffic entry, each numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    salt: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64, traffic: u64) -> Self {
        Self {
            salt: mix64(mix64(seed).wrapping_add(traffic.wrapping_mul(0xd1b5_4a32_d192_ed03)) ^ 0x7472_6166_6669_6300),
        }
    }

    /// 64 random bits for one decision.
    pub(crate) fn at(self, index: u64) -> u64 {
        mix64(self.salt.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a number under `n`, each equally likely to one part in 2^32; 0 if `n` is 0.
    pub(crate) fn below(self, index: u64, n: usize) -> usize {
        usize::try_from((u128::from(self.at(index)) * n as u128) >> 64).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{EXPONENTIAL_BITS, exponential};

    #[test]
    fn exponential_times_have_their_mean() {
        let draws = Draws::new(1, 0);
        #[expect(clippy::cast_precision_loss, reason = "a mean is compared to two digits")]
        let as_float = |bits| exponential(bits) as f64 / (1u64 << EXPONENTIAL_BITS) as f64;
        let mean = (0..100_000).map(|i| as_float(draws.at(i))).sum::<f64>() / 100_000.0;
        // The standard error is 1 / sqrt(100,000) = 0.0032.
        assert!((mean - 1.0).abs() < 0.013, "{mean}");
    }
}
