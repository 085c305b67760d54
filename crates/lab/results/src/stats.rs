//! Percentiles and means.

/// A quantile of fewer flows than this is moved by one of them.
pub const FEW: usize = 100;

/// The value at the nearest rank: the smallest of `sorted` such that at least `percent` of all are not above it,
/// which is number `ceil(percent / 100 * n)` counted from 1. It is always one of the values. None if there are none.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], percent: u32) -> Option<T> {
    let rank = (sorted.len() as u64 * u64::from(percent)).div_ceil(100).max(1);
    sorted.get(rank as usize - 1).copied()
}

/// The mean of whole numbers, rounded once; none of none.
pub(crate) fn mean(values: &[u64]) -> Option<f64> {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
}

/// The mean in the order given; none of none.
pub(crate) fn mean_real(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Jain's index of fairness: (sum x)^2 / (n * sum x^2), 1 where all are equal, 1/n where one has all. Kept as the two
/// whole numbers: a share is under 2^48 and there are under 2^24 of them, so that both stay under 2^127 when multiplied by
/// 100.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jain {
    numerator: u128,
    denominator: u128,
}

impl Jain {
    /// None where all shares are zero.
    pub(crate) fn of(shares: &[u64]) -> Option<Self> {
        let sum: u128 = shares.iter().map(|&share| u128::from(share)).sum();
        let squares: u128 = shares.iter().map(|&share| u128::from(share) * u128::from(share)).sum();
        let (numerator, denominator) = (sum.saturating_mul(sum), squares.saturating_mul(shares.len() as u128));
        (denominator > 0).then_some(Self { numerator, denominator })
    }

    /// The index.
    pub(crate) fn index(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Returns whether the index is at least `percent` hundredths.
    pub(crate) fn is_at_least(self, percent: u8) -> bool {
        self.numerator.saturating_mul(100) >= self.denominator.saturating_mul(percent.into())
    }
}

/// Picoseconds as nanoseconds: exact to the picosecond for over half an hour.
pub(crate) fn ns(ps: u64) -> f64 {
    ps as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_1_where_all_are_equal_and_1_over_n_where_one_has_all() {
        let index = |shares: &[u64]| Jain::of(shares).map(Jain::index);
        assert_eq!([index(&[7, 7, 7]), index(&[9, 0, 0, 0]), index(&[5])], [Some(1.0), Some(0.25), Some(1.0)]);
        // 4^2 / (2 * 10) = 0.8.
        let uneven = Jain::of(&[1, 3]).unwrap();
        assert_eq!((uneven.index(), uneven.is_at_least(80), uneven.is_at_least(81)), (0.8, true, false));
        assert!(index(&[]).is_none() && index(&[0, 0]).is_none());
    }

    #[test]
    fn nearest_rank_is_one_of_the_values() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!(nearest_rank(&values, 50), Some(100));
        assert_eq!(nearest_rank(&values, 99), Some(198));
        assert_eq!(nearest_rank(&values, 100), Some(200));
        assert_eq!(nearest_rank(&values, 0), Some(1));
        // The textbook example of five values.
        let five = [15, 20, 35, 40, 50];
        assert_eq!([5, 30, 40, 50, 100].map(|p| nearest_rank(&five, p)), [15, 20, 20, 35, 50].map(Some));
        assert_eq!(nearest_rank::<u32>(&[], 50), None);
        assert_eq!(nearest_rank(&[7], 99), Some(7));
    }

    #[test]
    fn means_do_not_overflow() {
        assert_eq!(mean(&[u64::MAX, u64::MAX]), Some(u64::MAX as f64));
        assert_eq!(mean(&[]), None);
        assert_eq!(mean_real(&[1.0, 2.0]), Some(1.5));
    }

    #[test]
    fn nanoseconds_keep_picoseconds() {
        let ps = 123_456_789_012_345;
        assert_eq!((ns(ps) * 1_000.0).round() as u64, ps);
    }
}
