//! Ticks of a clock that counts time in whole steps.

use crate::{Bytes, PrecomputedRate, Rate, Span};

/// Clock granularity of a network: service times of ports and gaps between paced packets are whole multiples of it, rounded
/// down. [`Tick::NONE`] stands for exact times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tick {
    span: Span,
    short: bool,
}

impl Tick {
    /// Exact times.
    pub const NONE: Self = Self { span: Span::ZERO, short: false };

    /// A tick of `span`, over zero. A time that is a whole number of ticks stays.
    pub const fn new(span: Span) -> Self {
        Self { span, short: false }
    }

    /// A tick of `span`, over zero. A time that is a whole number of ticks loses one, as in the ns-3 of HPCC's simulator:
    /// its conversion from floating point truncates.
    pub const fn short(span: Span) -> Self {
        Self { span, short: true }
    }

    /// Returns whether times are exact.
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.span.ps() <= 0
    }

    /// Returns the length of a tick; zero if times are exact.
    pub const fn span(self) -> Span {
        self.span
    }

    /// Returns whether a time that is a whole number of ticks loses one.
    pub const fn is_short(self) -> bool {
        self.short
    }

    /// Returns the transmission time of `bytes` at `rate`; [`Span::MAX`] if the rate is 0.
    #[inline]
    pub const fn tx_time(self, rate: Rate, bytes: Bytes) -> Span {
        let exact = rate.tx_time(bytes);
        if self.is_none() || rate.is_zero() { exact } else { self.counted(exact, rate, bytes) }
    }

    #[cold]
    const fn counted(self, exact: Span, rate: Rate, bytes: Bytes) -> Span {
        let down = self.floor(exact);
        if !self.short || down.ps() != exact.ps() || down.is_zero() {
            return down;
        }
        // `exact` is rounded down itself. The remainder is below the rate, so arithmetic modulo 2^64 is exact.
        let all = bytes.get().wrapping_mul(8 * 1_000_000_000_000);
        let left = all.wrapping_sub(exact.unsigned_ps().wrapping_mul(rate.bps()));
        if left == 0 { Span::from_ps(down.ps() - self.span.ps()) } else { down }
    }

    /// Returns the transmission time of `size` bytes, in picoseconds, at a rate that has a serializer. Without a tick
    /// this is the serializer's time; otherwise it is divided exactly, so that a time of a whole number of ticks loses
    /// none to rounding.
    #[inline(always)]
    pub const fn service_ps(self, rate: Rate, serializer: PrecomputedRate, size: u32) -> u64 {
        if self.is_none() { serializer.tx_time(size) } else { self.whole_service_ps(rate, size) }
    }

    #[cold]
    const fn whole_service_ps(self, rate: Rate, size: u32) -> u64 {
        self.tx_time(rate, Bytes::new(size as u64)).unsigned_ps()
    }

    /// The largest multiple of the tick that is not over `span`, where a negative span counts as 0; `span` itself where
    /// there is no tick.
    #[inline]
    pub const fn floor(self, span: Span) -> Span {
        if self.is_none() {
            return span;
        }
        let ps = span.unsigned_ps();
        Span::from_ps((ps - ps % self.span.unsigned_ps()) as i64)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    const DOWN: Tick = Tick::new(Span::from_ns(1));
    const SHORT: Tick = Tick::short(Span::from_ns(1));

    fn ns(tick: Tick, gbps: u64, bytes: u64) -> i64 {
        let span = tick.tx_time(Rate::from_gbps(gbps), Bytes::new(bytes));
        assert_eq!(span.ps() % 1_000, 0);
        span.ns()
    }

    /// HPCC's simulator at 100 Gb/s: data without and with reports, an acknowledgement without and with them.
    #[test]
    fn whole_nanoseconds() {
        for tick in [DOWN, SHORT] {
            assert_eq!([1_048, 1_056, 1_090, 60, 88].map(|bytes| ns(tick, 100, bytes)), [83, 84, 87, 4, 7]);
        }
        // 1056 B last 8448 ns at 1 Gb/s, 1090 B 218 ns at 40 Gb/s.
        assert_eq!([ns(DOWN, 1, 1_056), ns(SHORT, 1, 1_056)], [8_448, 8_447]);
        assert_eq!([ns(DOWN, 40, 1_090), ns(SHORT, 40, 1_090)], [218, 217]);
        assert_eq!(Tick::NONE.tx_time(Rate::from_gbps(100), Bytes::new(1_048)), Span::from_ps(83_840));
        assert_eq!(SHORT.tx_time(Rate::ZERO, Bytes::new(1)), Span::MAX);
    }

    /// A time that exceeds a whole number of ticks by less than a picosecond loses none.
    #[test]
    fn only_whole_numbers_lose_a_tick() {
        let slower = Rate::from_bps(999_999_999);
        assert_eq!(slower.tx_time(Bytes::new(1_056)), Span::from_ps(8_448_000));
        assert_eq!(SHORT.tx_time(slower, Bytes::new(1_056)).ns(), 8_448);
        let hardly = Rate::from_bps(99_999_999_999_999);
        assert_eq!(hardly.tx_time(Bytes::new(12_500)), Span::from_ns(1));
        assert_eq!(SHORT.tx_time(hardly, Bytes::new(12_500)), Span::from_ns(1));
    }

    proptest! {
        #[test]
        fn is_the_quotient_rounded_down(bps in 1_000_000..800_000_000_000u64, bytes in 1..65_536u64, ps in 1..100_000i64) {
            let (rate, bytes) = (Rate::from_bps(bps), Bytes::new(bytes));
            let (all, each) = (u128::from(bytes.get()) * 8_000_000_000_000, u128::from(bps) * ps as u128);
            let down = Tick::new(Span::from_ps(ps)).tx_time(rate, bytes);
            prop_assert_eq!(down.ps() as u128, all / each * ps as u128);
            let below = (all - 1) / each * ps as u128;
            prop_assert_eq!(Tick::short(Span::from_ps(ps)).tx_time(rate, bytes).ps() as u128, below);
        }
    }
}
