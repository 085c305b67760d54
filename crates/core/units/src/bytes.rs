//! Amounts of data.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::{Frac, mul_div, mul_saturating};

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// None.
    pub const ZERO: Self = Self(0);
    /// More than any network holds: a limit that is not set.
    pub const MAX: Self = Self(u64::MAX);

    /// An amount of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Subtracts `other`; the result is not below zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Adds `other`; the result is not above [`Bytes::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `n` times this, saturating.
    pub const fn times(self, n: u64) -> Self {
        Self(mul_saturating(self.0, n))
    }

    /// Scales by `f`, rounded down. Exact for up to 2^32 bytes; above, exact in the whole part and rounded once in the
    /// fraction. Saturates.
    #[inline]
    pub const fn scaled(self, f: Frac) -> Self {
        Self(f.of(self.0))
    }

    /// `self * num / den`, rounded down; saturates, also where `den` is 0 (see [`mul_div`]).
    #[inline]
    pub const fn ratio(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }

    /// The fraction `self / whole`; 0 if `whole` is 0.
    #[inline]
    pub const fn fraction_of(self, whole: Self) -> Frac {
        Frac::ratio(self.0, whole.0)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}
