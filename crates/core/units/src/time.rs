//! Points in time and the spans between them, in picoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::{Frac, mul_saturating};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in time: picoseconds since the run (or the flow) began. [`Time::NEVER`] is later than all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Time(u64);

/// A signed span of time in picoseconds. Most spans are positive; a clock offset may not be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Span(i64);

impl Time {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// Later than every other time: a timer that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// A time from picoseconds since the start.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A time from nanoseconds since the start.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * PS_PER_NS)
    }

    /// A time from microseconds since the start.
    pub const fn from_us(us: u64) -> Self {
        Self(us * PS_PER_US)
    }

    /// A time from milliseconds since the start.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * PS_PER_MS)
    }

    /// Picoseconds since the start.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since the start, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The span since `earlier`; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.wrapping_sub(earlier.0) as i64)
    }

    /// The span since `earlier`, and zero if `earlier` is later. The two are less than 2^63 ps apart.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0) as i64)
    }

    /// Subtracts `span`; returns [`Time::ZERO`] if the result would be before the start.
    #[inline]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub_signed(span.0))
    }

    /// Returns the next picosecond: events before it are at this time or earlier.
    #[inline]
    pub const fn just_after(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Adds `span`; returns [`Time::NEVER`] on overflow.
    pub const fn saturating_add(self, span: Span) -> Self {
        match self.0.checked_add_signed(span.0) {
            Some(ps) => Self(ps),
            None if span.0 < 0 => Self(0),
            None => Self::NEVER,
        }
    }

    /// Returns whether this is a real time and not [`Time::NEVER`].
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(i64::MAX);

    /// A span of picoseconds.
    pub const fn from_ps(ps: i64) -> Self {
        Self(ps)
    }

    /// A span of picoseconds that are not negative; [`Span::MAX`] where it cannot hold them.
    pub const fn from_unsigned_ps(ps: u64) -> Self {
        Self(if ps > i64::MAX as u64 { i64::MAX } else { ps as i64 })
    }

    /// A span of nanoseconds.
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns * PS_PER_NS as i64)
    }

    /// A span of microseconds.
    pub const fn from_us(us: i64) -> Self {
        Self(us * PS_PER_US as i64)
    }

    /// A span of milliseconds.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms * PS_PER_MS as i64)
    }

    /// A span of seconds.
    pub const fn from_s(s: i64) -> Self {
        Self(s * PS_PER_S as i64)
    }

    /// Picoseconds.
    pub const fn ps(self) -> i64 {
        self.0
    }

    /// Picoseconds of a span that is not negative; a negative one counts as 0.
    pub const fn unsigned_ps(self) -> u64 {
        if self.0 < 0 { 0 } else { self.0 as u64 }
    }

    /// Whole nanoseconds, rounded towards zero.
    pub const fn ns(self) -> i64 {
        self.0 / PS_PER_NS as i64
    }

    /// Returns whether the span is exactly zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `n` times this span, saturating.
    pub const fn times(self, n: u32) -> Self {
        let Self(ps) = Self::from_unsigned_ps(mul_saturating(self.0.unsigned_abs(), n as u64));
        Self(if self.0 < 0 { -ps } else { ps })
    }

    /// Scales the span by `f`, with its sign, rounded towards zero; saturates.
    pub const fn scaled(self, f: Frac) -> Self {
        let Self(ps) = Self::from_unsigned_ps(f.of(self.0.unsigned_abs()));
        Self(if self.0 < 0 { -ps } else { ps })
    }

    /// Divides the span by `n`, rounded down; a negative span counts as 0 (BPF has no signed division), and any span
    /// divided by 0 is 0.
    pub const fn over(self, n: u32) -> Self {
        Self(if n == 0 { 0 } else { (self.unsigned_ps() / n as u64) as i64 })
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.wrapping_add_signed(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.wrapping_sub(span.0 as u64))
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

/// Prints in the largest unit that leaves a whole part: `14.028 us`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (unit, name) = match ps {
            0..PS_PER_NS => return write!(f, "{sign}{ps} ps"),
            PS_PER_NS..PS_PER_US => (PS_PER_NS, "ns"),
            PS_PER_US..PS_PER_MS => (PS_PER_US, "us"),
            PS_PER_MS..PS_PER_S => (PS_PER_MS, "ms"),
            _ => (PS_PER_S, "s"),
        };
        // To the nearest thousandth of the unit, half up; 999.9996 us shows as 1000.000 us.
        let thousandths = (ps + unit / 2_000) / (unit / 1_000);
        write!(f, "{sign}{}.{:03} {name}", thousandths / 1_000, thousandths % 1_000)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_set() { Span(self.0 as i64).fmt(f) } else { f.write_str("never") }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn spans_print_with_three_digits() {
        assert_eq!(Span::from_ps(14_027_520).to_string(), "14.028 us");
        assert_eq!(Span::from_ps(-5_120).to_string(), "-5.120 ns");
        assert_eq!(Time::NEVER.to_string(), "never");
    }

    #[test]
    fn scaled_spans_keep_their_sign() {
        let third = Frac::ratio(1, 3);
        assert_eq!([100, -100].map(|ps| Span::from_ps(ps).scaled(third)), [33, -33].map(Span::from_ps));
        let twice = Frac::ONE + Frac::ONE;
        assert_eq!([Span::MAX, Span::from_ps(-i64::MAX)].map(|span| span.scaled(twice).ps()), [i64::MAX, -i64::MAX]);
        assert_eq!(Span::from_us(7).scaled(Frac::ONE), Span::from_us(7));
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER.saturating_add(Span::from_s(1)), Time::NEVER);
        assert_eq!(Time::from_us(2).since(Time::from_us(3)), Span::from_us(-1));
    }

    #[test]
    fn times_and_spans_saturate() {
        let (early, late) = (Time::from_us(2), Time::from_us(3));
        assert_eq!([late.saturating_since(early), early.saturating_since(late)], [Span::from_us(1), Span::ZERO]);
        assert_eq!(
            [late.saturating_sub(Span::from_us(1)), early.saturating_sub(Span::from_us(3))],
            [early, Time::ZERO]
        );
        assert_eq!(early.saturating_sub(Span::from_us(-1)), late);
        assert_eq!(early.just_after().since(early), Span::from_ps(1));
        let most = i64::MAX.unsigned_abs();
        assert_eq!(
            [1, most, most + 1, u64::MAX].map(Span::from_unsigned_ps),
            [Span::from_ps(1), Span::MAX, Span::MAX, Span::MAX]
        );
    }
}
