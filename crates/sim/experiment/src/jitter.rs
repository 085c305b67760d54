//! Processing delays of packets in a host between the NIC and the transport.

use units::{EXPONENTIAL_BITS, Span, exponential, mul_div};

/// A distribution of processing delays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Jitter {
    /// The mean, over zero.
    pub mean: Span,
    /// The shape.
    pub shape: JitterShape,
}

/// The distribution of processing delays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JitterShape {
    /// Exponentially, up to 64 ln 2 = 44.4 means: a chance has 64 bits.
    Exponential,
    /// Evenly between zero and twice the mean.
    Uniform,
}

impl Jitter {
    /// Returns the delay for 64 random bits.
    pub fn of(&self, bits: u64) -> Span {
        let mean_ps = self.mean.unsigned_ps();
        let ps = match self.shape {
            JitterShape::Exponential => mul_div(exponential(bits), mean_ps, 1 << EXPONENTIAL_BITS),
            JitterShape::Uniform => mul_div(bits, 2 * mean_ps, u64::MAX),
        };
        Span::from_ps(ps as i64)
    }

    /// The longest delay that can be drawn.
    pub fn longest(&self) -> Span {
        match self.shape {
            JitterShape::Exponential => self.of(0),
            JitterShape::Uniform => self.of(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::mix64;

    /// By hand: `-ln(1/2)` is 0.693 means, and half of twice the mean is the mean.
    #[test]
    fn delays_have_their_distribution() {
        let mean = Span::from_us(1);
        let exponential = Jitter { mean, shape: JitterShape::Exponential };
        let uniform = Jitter { mean, shape: JitterShape::Uniform };
        assert_eq!(exponential.of((1 << 63) - 1).ps(), 693_147);
        assert_eq!((uniform.of(1 << 63).ps(), uniform.longest()), (1_000_000, mean.times(2)));
        assert_eq!(exponential.longest().ps(), 44_361_419);
        for jitter in [exponential, uniform] {
            let of = |nth: u64| jitter.of(mix64(nth));
            let measured = (0..20_000).map(of).sum::<Span>().over(20_000);
            assert!((measured - mean).ps().abs() < 30_000, "{measured} under {jitter:?}");
            let under = (0..20_000).filter(|&nth| of(nth) < Span::from_ns(200)).count();
            // 1 - e^-0.2 of 20,000, and a tenth of them.
            let theory = if jitter == exponential { 3_625 } else { 2_000 };
            assert!(under.abs_diff(theory) < 150, "{under} under {jitter:?}");
        }
    }
}
