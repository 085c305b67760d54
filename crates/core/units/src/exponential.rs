//! Integer logarithm for exponentially distributed times, so that every machine computes the same bits.

/// Fraction bits of [`exponential`].
pub const EXPONENTIAL_BITS: u32 = 40;

/// An exponentially distributed number of mean 1 from 64 random bits, in units of 2^-40: `-ln((bits + 1) / 2^64)`.
/// The largest is 64 ln 2 = 44.4; the error is under 2^-39.
pub fn exponential(bits: u64) -> u64 {
    /// ln 2 in units of 2^-63.
    const LN_2: u128 = 6_393_154_322_601_327_829;
    let Some(x) = bits.checked_add(1) else { return 0 };
    let zeros = x.leading_zeros();
    // x = m * 2^(63 - zeros) with m in [1, 2), so -log2(x / 2^64) = 1 + zeros - log2(m).
    let mut m = x << zeros; // in units of 2^-63
    let mut log2_m: u64 = 0; // in units of 2^-48
    for bit in (0..48).rev() {
        // Squaring doubles the logarithm. Whether the square reaches 2 is the next binary digit.
        let square = (u128::from(m) * u128::from(m)) >> 63;
        if square >> 64 == 0 {
            m = square as u64;
        } else {
            m = (square >> 1) as u64;
            log2_m |= 1 << bit;
        }
    }
    let log2 = (u64::from(1 + zeros) << 48) - log2_m;
    ((u128::from(log2) * LN_2) >> (48 + 63 - EXPONENTIAL_BITS)) as u64
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    fn as_float(bits: u64) -> f64 {
        exponential(bits) as f64 / (1u64 << EXPONENTIAL_BITS) as f64
    }

    #[test]
    fn the_ends_are_exact() {
        assert_eq!(exponential(u64::MAX), 0);
        assert!((as_float(0) - 64.0 * std::f64::consts::LN_2).abs() < 1e-9);
        assert!((as_float((1 << 63) - 1) - std::f64::consts::LN_2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_logarithm_agrees_with_floating_point(bits: u64, shift in 0..64u32) {
            let bits = bits >> shift;
            let exact = -((bits as f64 + 1.0) / 2f64.powi(64)).ln();
            prop_assert!((as_float(bits) - exact).abs() < 1e-9, "{} {}", as_float(bits), exact);
        }
    }
}
