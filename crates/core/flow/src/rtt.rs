//! Round-trip estimation and the retransmission timeout (RFC 6298). It works at round trips of 14 us and of 100 ms alike,
//! because its only fixed times are the two bounds that the host sets.

use units::Span;

#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Span,
    variance: Span,
    min_timeout: Span,
    max_timeout: Span,
    backoff: u32,
}

impl RttEstimator {
    /// Creates an estimator that starts from the path's base round trip, as if it had been measured without variance.
    pub(crate) fn new(base: Span, min_timeout: Span, max_timeout: Span) -> Self {
        Self { smoothed: base, variance: Span::ZERO, min_timeout, max_timeout, backoff: 0 }
    }

    /// srtt <- 7/8 srtt + 1/8 r;  rttvar <- 3/4 rttvar + 1/4 |srtt - r|     (RFC 6298 §2.3)
    pub(crate) fn sample(&mut self, rtt: Span) {
        let deviation = Span::from_ps((self.smoothed - rtt).ps().abs());
        self.variance = Span::from_ps(self.variance.ps() - (self.variance.ps() >> 2) + (deviation.ps() >> 2));
        self.smoothed = Span::from_ps(self.smoothed.ps() - (self.smoothed.ps() >> 3) + (rtt.ps() >> 3));
    }

    pub(crate) fn smoothed(&self) -> Span {
        self.smoothed
    }

    /// rto = srtt + max(G, 4 rttvar), at least the lower bound, doubled at each consecutive timeout (RFC 6298 §2.3, §5.5).
    /// Time is exact here, so G is not a clock granularity but the minimum uncertainty of the next round trip: a quarter of
    /// srtt. Without it a constant queue reduces the variance to zero, and the first packet that is slightly later than
    /// the ones before it causes a timeout.
    pub(crate) fn timeout(&self) -> Span {
        let margin = self.variance.times(4).max(self.smoothed.over(4));
        let timeout = (self.smoothed + margin).max(self.min_timeout);
        timeout.times(1 << self.backoff.min(20)).min(self.max_timeout)
    }

    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Returns the number of consecutive timeouts.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_follows_the_path_at_any_scale() {
        for base in [Span::from_us(14), Span::from_ms(100)] {
            let mut rtt = RttEstimator::new(base, base.times(2), Span::from_s(60));
            assert_eq!(rtt.timeout(), base.times(2));
            for _ in 0..200 {
                rtt.sample(base.times(3));
            }
            assert!(rtt.timeout() >= base.times(3) - base.over(100) && rtt.timeout() < base.times(4));
            rtt.back_off();
            rtt.back_off();
            assert!(rtt.timeout() >= base.times(11));
            rtt.reset_backoff();
            assert!(rtt.timeout() < base.times(4));
        }
    }

    #[test]
    fn a_constant_queue_leaves_a_timeout_margin() {
        let base = Span::from_us(14);
        let mut rtt = RttEstimator::new(base, base, Span::from_s(1));
        for _ in 0..1_000 {
            rtt.sample(base.times(3));
        }
        assert!(rtt.timeout() >= Span::from_us(52), "{}", rtt.timeout());
    }

    #[test]
    fn backoff_ends_at_the_upper_bound() {
        let mut rtt = RttEstimator::new(Span::from_ms(100), Span::from_ms(1), Span::from_s(60));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(), Span::from_s(60));
    }
}
