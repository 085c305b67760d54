//! Rates, and the time that bytes take at a rate.

use core::fmt;

use crate::{Bytes, Frac, Span, mul_checked, mul_div, mul_saturating};

const PS_PER_S: u64 = 1_000_000_000_000;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Rate(u64);

impl Rate {
    /// No transmission.
    pub const ZERO: Self = Self(0);
    /// A limit that is not set.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate in bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate in megabits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// A rate in gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns whether the rate is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the rate that moves `bytes` in `span`: exact (rounded down) for spans up to 18 s and 2 TB. Returns
    /// [`Rate::MAX`] for a span of zero or less.
    #[inline]
    pub const fn of(bytes: Bytes, span: Span) -> Self {
        let ps = span.unsigned_ps();
        if ps == 0 {
            return Self::MAX;
        }
        // bits * 10^12 / ps in two steps of 10^6: bits * 10^6 < 2^64 for 2.3 TB, and the remainder, under
        // ps < 1.8 * 10^13, times 10^6 fits too.
        let bits = mul_saturating(bytes.get(), 8);
        match mul_checked(bits, 1_000_000) {
            Some(first) if ps < u64::MAX / 1_000_000 => {
                let whole = first / ps;
                let rest = first % ps;
                Self(mul_saturating(whole, 1_000_000).saturating_add(rest * 1_000_000 / ps))
            }
            _ => Self(mul_div(bits, PS_PER_S, ps)),
        }
    }

    /// Returns the transmission time of `bytes` at this rate, rounded down; [`Span::MAX`] if the rate is 0. One
    /// division for up to 2.3 MB.
    #[inline]
    pub const fn tx_time(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let ps = mul_div(bytes.get(), 8 * PS_PER_S, self.0);
        Span::from_ps(if ps > i64::MAX as u64 { i64::MAX } else { ps as i64 })
    }

    /// Returns the bytes transmitted in `span` at this rate, rounded down.
    #[inline]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes::new(mul_div(span.unsigned_ps(), self.0, 8 * PS_PER_S))
    }

    /// Scales the rate by `f`.
    pub const fn scaled(self, f: Frac) -> Self {
        Self(f.of(self.0))
    }

    /// The smaller of two.
    pub const fn min(self, other: Self) -> Self {
        if self.0 < other.0 { self } else { other }
    }
}

/// Prints in the largest unit with up to three decimals: `100 Gbps`, `952.381 Mbps`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} bps", self.0),
            1_000..1_000_000 => (1_000, "kbps"),
            1_000_000..1_000_000_000 => (1_000_000, "Mbps"),
            _ => (1_000_000_000, "Gbps"),
        };
        let (whole, thousandths) = (self.0 / unit, self.0 % unit / (unit / 1_000));
        if thousandths == 0 { write!(f, "{whole} {name}") } else { write!(f, "{whole}.{thousandths:03} {name}") }
    }
}

/// A rate prepared for the hot path: the time of a packet by one multiplication, no division.
///
/// Holds picoseconds a byte with 20 fractional bits, so a 64 KiB packet at 1 Mb/s (2^23 ps a byte) stays under
/// 2^59, and the rounding of any packet is under a picosecond. Rates that divide 8 * 10^12 (every usual link)
/// are exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrecomputedRate {
    ps_per_byte: u64,
}

impl PrecomputedRate {
    const BITS: u32 = 20;

    /// Prepares `rate`.
    ///
    /// # Panics
    /// If `rate` is zero.
    pub const fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "a link needs a rate");
        Self { ps_per_byte: mul_div(8 * PS_PER_S, 1 << Self::BITS, rate.0) }
    }

    /// The time that `bytes` take, rounded to the nearest picosecond.
    #[inline]
    pub const fn tx_time(self, bytes: u32) -> u64 {
        (bytes as u64 * self.ps_per_byte + (1 << (Self::BITS - 1))) >> Self::BITS
    }

    /// The time that many bytes take (buffers, thresholds), rounded down; saturates.
    pub const fn long_tx_time(self, bytes: Bytes) -> u64 {
        mul_div(bytes.get(), self.ps_per_byte, 1 << Self::BITS)
    }

    /// Returns the bytes transmitted in `ps` picoseconds, rounded down: for reading a queue, not for decisions.
    pub const fn bytes_in(self, ps: u64) -> Bytes {
        Bytes::new(mul_div(ps, 1 << Self::BITS, self.ps_per_byte))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn usual_links_are_exact() {
        let hundred = PrecomputedRate::new(Rate::from_gbps(100));
        assert_eq!(hundred.tx_time(64), 5_120);
        assert_eq!(hundred.tx_time(4160), 332_800);
        assert_eq!(Rate::from_gbps(400).tx_time(Bytes::new(64)), Span::from_ps(1_280));
    }

    #[test]
    fn rate_of_a_long_haul_window_is_exact() {
        let window = Bytes::new(5_000_000_000);
        assert_eq!(Rate::of(window, Span::from_ms(100)), Rate::from_gbps(400));
        assert_eq!(Rate::from_gbps(400).bytes_in(Span::from_ms(100)), window);
    }

    #[test]
    fn rates_print_shortly() {
        assert_eq!(Rate::from_gbps(100).to_string(), "100 Gbps");
        assert_eq!(Rate::from_bps(95_238_095_238).to_string(), "95.238 Gbps");
    }

    proptest! {
        #[test]
        fn rate_of_is_exact(bytes in 1..1u64 << 40, ps in 1..18_000_000_000_000u64) {
            let exact = u128::from(bytes) * 8_000_000_000_000 / u128::from(ps);
            let got = Rate::of(Bytes::new(bytes), Span::from_ps(ps as i64)).bps();
            if exact <= u128::from(u64::MAX) {
                prop_assert_eq!(u128::from(got), exact);
            }
        }

        #[test]
        fn precomputed_rate_is_within_a_picosecond(mbps in 1..800_000u64, bytes in 1..65_536u32) {
            let rate = Rate::from_mbps(mbps);
            let exact = rate.tx_time(Bytes::new(bytes.into())).unsigned_ps();
            prop_assert!(PrecomputedRate::new(rate).tx_time(bytes).abs_diff(exact) <= 1);
        }
    }
}
