//! Randomness as a hash of the decision's inputs, never a stream: two decisions never share a state, so their order cannot
//! change them.

/// A 64-bit finalizer: every input bit changes every output bit with probability near 1/2
/// (Stafford's variant 13 of `MurmurHash3`'s finalizer, as in `SplitMix64`).
#[inline]
pub const fn mix64(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Maps a 64-bit hash to `0..n` without a division (the high 32 bits, scaled). Returns 0 for an `n` of 0.
#[inline]
pub const fn below(hash: u64, n: u32) -> u32 {
    (((hash >> 32) * n as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut seen = [0u32; 7];
        for i in 0..7_000 {
            seen[below(mix64(i), 7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
