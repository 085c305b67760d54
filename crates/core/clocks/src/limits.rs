//! Stated limits of clocks and paths. Bounds hold as long as these do.

use crate::line::{Reading, Skew};
use crate::network::PairInterval;

/// Stated limits of clocks and paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest difference between the minimum delays of the two directions of a path within a site, in nanoseconds. Half
    /// of it cannot be observed and is part of each bound.
    pub asymmetry: i64,
    /// The same for paths between sites; without it the bound of such a pair is half its round trip.
    pub asymmetry_between_sites: Option<i64>,
    /// Largest part of a timestamp's error that is not a delay, in nanoseconds.
    pub timestamp_error: i64,
    /// Largest change of the skew of two clocks in a second.
    pub wander: Skew,
    /// Largest skew of two clocks.
    pub max_skew: Skew,
    /// Largest change of the spacing of a coded pair that is pure, in nanoseconds.
    pub purity: i64,
}

impl Default for Limits {
    /// 1 us of asymmetry, 200 ns of timestamp error, 50 ppb of wander in a second, 300 ppm of skew.
    fn default() -> Self {
        Self {
            asymmetry: 1_000,
            asymmetry_between_sites: None,
            timestamp_error: 200,
            wander: Skew::from_ppb(50),
            max_skew: Skew::from_ppb(300_000),
            purity: 300,
        }
    }
}

/// Returns the largest error of a pair's offset at a reading of the prober's clock, in nanoseconds.
pub(crate) fn error_at(interval: &PairInterval, at: Reading) -> i64 {
    interval.error.saturating_add(interval.skew_error.over(at.since(interval.line.at).saturating_abs()))
}
