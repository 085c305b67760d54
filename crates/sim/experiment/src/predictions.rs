//! Accuracy of predictions of the next packet's delay from the sender's last feedback: Liu et al., "Breaking the
//! Transience-Equilibrium Nexus" (NSDI 2021), §3.3 and Figure 6. For each pair of times only sums are kept, exact and
//! in integers, so that they are the same for any order of arrivals.

use units::Span;

/// Sums over pairs of times: a predictor, and the actual value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pairs {
    /// Number of pairs.
    pub count: u64,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
    yy: i128,
}

impl Pairs {
    /// Counts a pair, to the nanosecond.
    pub fn add(&mut self, predictor: Span, actual: Span) {
        let (x, y) = (i128::from(predictor.ns()), i128::from(actual.ns()));
        self.count += 1;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
    }

    /// Returns `n` times the sums of squares about the means, and of products: of predictors, of both, of actual
    /// values. Exact as long as the times add up to under 2^63 ns (292 years).
    pub fn about_means(&self) -> [i128; 3] {
        let n = i128::from(self.count);
        [n * self.xx - self.x * self.x, n * self.xy - self.x * self.y, n * self.yy - self.y * self.y]
    }
}

/// Correlation of two signals with the next packet's one-way delay, over all packets of the chosen flows that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Predictions {
    /// The one-way delay that the last OR-ACK brought, by the hosts' clocks.
    pub owd: Pairs,
    /// The last round trip that an acknowledgement measured.
    pub rtt: Pairs,
}

impl Predictions {
    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.owd.merge(&other.owd);
        self.rtt.merge(&other.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_about_means_are_exact_and_add_up() {
        let ns = |x: i64, y: i64| (Span::from_ns(x), Span::from_ns(y));
        // Means 3 and 5 (x: 1, 3, 5; y: 2, 5, 8): deviations -2, 0, 2 and -3, 0, 3.
        let (mut one, mut other) = (Pairs::default(), Pairs::default());
        for (x, y) in [ns(1, 2), ns(5, 8)] {
            one.add(x, y);
        }
        other.add(Span::from_ns(3), Span::from_ns(5));
        one.merge(&other);
        assert_eq!((one.count, one.about_means()), (3, [3 * 8, 3 * 12, 3 * 18]));
        // A clock that is off by a day moves nothing.
        let mut far = Pairs::default();
        for (x, y) in [ns(1, 2), ns(3, 5), ns(5, 8)] {
            far.add(x - Span::from_s(86_400), y);
        }
        assert_eq!(far.about_means(), one.about_means());
    }
}
