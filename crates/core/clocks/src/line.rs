//! Readings of clocks, and the offset between two clocks as a line over time.

use core::ops::{Add, Neg, Sub};

/// A reading of one host's clock, in nanoseconds since an epoch of its own. Readings of different clocks are not comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Reading(pub i64);

impl Reading {
    /// Returns the nanoseconds from an earlier reading of the same clock to this one; negative if that one is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the reading this many nanoseconds later.
    pub fn after(self, ns: i64) -> Self {
        Self(self.0.wrapping_add(ns))
    }
}

/// Relative difference of the rates of two clocks: nanoseconds gained a nanosecond, in units of 2^-48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Skew(pub i64);

/// Bits behind the binary point of a [`Skew`].
const SKEW_BITS: u32 = 48;

impl Skew {
    /// Equal rates.
    pub const ZERO: Self = Self(0);

    /// Returns a skew of parts per billion.
    pub const fn from_ppb(ppb: i64) -> Self {
        Self((((ppb as i128) << SKEW_BITS) / 1_000_000_000) as i64)
    }

    /// Returns a skew of `rise` nanoseconds in `run` nanoseconds, saturated at 2^15. `run` is not 0.
    pub fn ratio(rise: i64, run: i64) -> Self {
        let ratio = (i128::from(rise) << SKEW_BITS) / i128::from(run);
        Self(ratio.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Returns the skew in parts per billion, rounded towards zero.
    pub fn ppb(self) -> i64 {
        ((i128::from(self.0) * 1_000_000_000) >> SKEW_BITS) as i64
    }

    /// Returns the difference that accumulates in `ns` nanoseconds, rounded to the nearest nanosecond.
    pub fn over(self, ns: i64) -> i64 {
        let product = i128::from(self.0) * i128::from(ns);
        ((product + (1 << (SKEW_BITS - 1))) >> SKEW_BITS) as i64
    }

    /// Returns the skew that a change of this much a second reaches in `ns` nanoseconds.
    pub fn times_s(self, ns: i64) -> Self {
        let skew = i128::from(self.0) * i128::from(ns) / 1_000_000_000;
        Self(skew.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Returns the absolute value.
    pub fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
}

impl Add for Skew {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Skew {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Skew {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

/// The offset of a remote clock from the local one, as a function of the local clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct OffsetLine {
    /// Local reading at which `offset` holds.
    pub at: Reading,
    /// Remote reading less local reading, in nanoseconds.
    pub offset: i64,
    /// Rate of the remote clock relative to the local one.
    pub skew: Skew,
}

impl OffsetLine {
    /// Returns the offset at a local reading, in nanoseconds.
    pub fn offset_at(&self, at: Reading) -> i64 {
        self.offset.wrapping_add(self.skew.over(at.since(self.at)))
    }

    /// Returns the remote clock's reading at a local reading.
    pub fn remote(&self, at: Reading) -> Reading {
        at.after(self.offset_at(at))
    }

    /// Returns the line with the same values, anchored at another reading.
    pub fn anchored(&self, at: Reading) -> Self {
        Self { at, offset: self.offset_at(at), skew: self.skew }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_per_billion_survive_the_conversion() {
        for ppb in [-200_000, -1, 0, 1, 30_000, 200_000] {
            assert!((Skew::from_ppb(ppb).ppb() - ppb).abs() <= 1, "{ppb}");
        }
        assert_eq!(Skew::from_ppb(10_000).over(1_000_000_000), 10_000);
        assert_eq!(Skew::ratio(-5, 1_000_000).ppb(), -5_000);
    }

    proptest! {
        /// A line that is anchored elsewhere has the same offsets, but for rounding.
        #[test]
        fn anchors_do_not_change_a_line(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            ppb in -200_000i64..200_000,
            moved in -100_000_000_000i64..100_000_000_000,
            at in -100_000_000_000i64..100_000_000_000,
        ) {
            let line = OffsetLine { at: Reading(7), offset, skew: Skew::from_ppb(ppb) };
            let difference = line.anchored(Reading(moved)).offset_at(Reading(at)) - line.offset_at(Reading(at));
            prop_assert!(difference.abs() <= 1, "{difference}");
        }
    }
}
