//! Fixed-point fractions that read like arithmetic.

use core::fmt;
use core::ops::{Add, Mul, Sub};

use crate::mul_saturating;

/// A non-negative fixed-point number with 32 fractional bits: resolution 2.3e-10, largest value just under 2^32.
/// Every operation rounds down and saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Frac(u64);

impl Frac {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// 1.
    pub const ONE: Self = Self(1 << 32);
    /// 1/2.
    pub const HALF: Self = Self(1 << 31);

    /// From its 2^-32 units.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its 2^-32 units.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// `num / den`, rounded down; 0 if `den` is 0. Exact to the last bit while `num` is under 2^32; above, `den`
    /// loses as many low bits as `num` must, so that the result may be off by a part in 2^31 if `num <= den`.
    /// Saturates at the largest value.
    #[inline]
    pub const fn ratio(num: u64, den: u64) -> Self {
        if den == 0 {
            return Self::ZERO;
        }
        // Drop common low bits until the shifted numerator fits; the divisor keeps at least 32 bits unless
        // the ratio itself is huge.
        let excess = 32u32.saturating_sub(num.leading_zeros());
        let (num, den) = (num >> excess, den >> excess);
        if den == 0 {
            return Self(u64::MAX);
        }
        Self((num << 32) / den)
    }

    /// `parts` millionths: `Frac::millionths(952_000)` is 0.952.
    pub const fn millionths(parts: u64) -> Self {
        Self::ratio(parts, 1_000_000)
    }

    /// Multiplies by the whole number `n`, rounded down. Exact for `n` under 2^32 with a fraction up to 1.
    #[inline]
    pub const fn of(self, n: u64) -> u64 {
        let (whole, part) = (self.0 >> 32, self.0 & 0xffff_ffff);
        let (high, low) = (n >> 32, n & 0xffff_ffff);
        // n * self = n * whole + high * part + low * part / 2^32; each product of two 32-bit numbers fits.
        mul_saturating(whole, n).saturating_add(high * part).saturating_add((low * part) >> 32)
    }

    /// Half of this.
    pub const fn half(self) -> Self {
        Self(self.0 >> 1)
    }

    /// 1 less this, not below 0.
    pub const fn complement(self) -> Self {
        Self(Self::ONE.0.saturating_sub(self.0))
    }

    /// The smaller of two.
    pub const fn min(self, other: Self) -> Self {
        if self.0 < other.0 { self } else { other }
    }

    /// The larger of two.
    pub const fn max(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }

    /// The moving average `(1 - gain) * self + gain * sample`. `gain` is at most 1.
    #[inline]
    pub const fn ewma(self, sample: Self, gain: Self) -> Self {
        Self(gain.complement().of(self.0) + gain.of(sample.0))
    }

    /// Returns whether the fraction is exactly 0.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Parts per million, rounded down: for traces.
    pub const fn ppm(self) -> u64 {
        self.of(1_000_000)
    }
}

impl Add for Frac {
    type Output = Frac;
    #[inline]
    fn add(self, other: Frac) -> Frac {
        Frac(self.0.saturating_add(other.0))
    }
}

impl Sub for Frac {
    type Output = Frac;
    #[inline]
    fn sub(self, other: Frac) -> Frac {
        Frac(self.0.saturating_sub(other.0))
    }
}

impl Mul for Frac {
    type Output = Frac;
    #[inline]
    fn mul(self, other: Frac) -> Frac {
        Frac(self.of(other.0))
    }
}

impl fmt::Display for Frac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ppm = self.ppm();
        write!(f, "{}.{:06}", ppm / 1_000_000, ppm % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_at_long_haul_scale_keeps_its_low_bits() {
        // 400 Gb/s x 100 ms = 5 GB, cut by 1e-6: 5,000 bytes, to the fraction's own resolution of 2^-32 (1.2 B).
        let cut = Frac::millionths(1).of(5_000_000_000);
        assert!((4_998..=5_000).contains(&cut), "{cut}");
    }

    proptest! {
        #[test]
        fn product_matches_wide_arithmetic(bits in 0..1u64 << 34, n in 0..1u64 << 40) {
            let exact = (u128::from(bits) * u128::from(n)) >> 32;
            let got = u128::from(Frac::from_bits(bits).of(n));
            prop_assert!(exact - got <= 1);
        }

        #[test]
        fn ewma_stays_between(a in 0..1u64 << 32, b in 0..1u64 << 32, g in 0..=1u64 << 32) {
            let mean = Frac::from_bits(a).ewma(Frac::from_bits(b), Frac::from_bits(g)).bits();
            prop_assert!(mean + 2 >= a.min(b) && mean <= a.max(b));
        }

        #[test]
        fn ratio_of_parts_is_at_most_one(whole in 1..u64::MAX, part in 0..u64::MAX) {
            prop_assume!(part <= whole);
            prop_assert!(Frac::ratio(part, whole) <= Frac::ONE);
        }

        #[test]
        fn ratio_is_exact_or_within_its_error(num: u64, den in 1..u64::MAX, shift in 0..64u32) {
            let num = num >> shift;
            prop_assume!(num <= den || num < 1 << 32);
            let exact = (u128::from(num) << 32) / u128::from(den);
            let got = u128::from(Frac::ratio(num, den).bits());
            let error = if num < 1 << 32 { 0 } else { (exact >> 31) + 1 };
            prop_assert!(got.abs_diff(exact) <= error, "{} instead of {}", got, exact);
        }
    }
}
