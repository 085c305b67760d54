//! Conversion of kernel timestamps, which are readings of `CLOCK_REALTIME`, to `CLOCK_MONOTONIC_RAW`.
//!
//! Other programs slew and step `CLOCK_REALTIME`. Pairs of readings of both clocks, taken around each batch of timestamps,
//! map the one to the other by interpolation. Where two pairs are apart by more than slewing explains, the clock has been
//! stepped, and timestamps from before are discarded.

use std::collections::VecDeque;

use crate::sys::{KernelClock, clock_ns};

/// Readings of both clocks at the same time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClockPair {
    pub(crate) raw: i64,
    pub(crate) real: i64,
    /// Largest error of `raw`, in nanoseconds.
    pub(crate) error: i64,
}

/// Time between the readings of `CLOCK_MONOTONIC_RAW` around one of `CLOCK_REALTIME` that is short enough, in nanoseconds.
const NARROW: i64 = 200;

/// The same, beyond which a pair is not used: half of it is the pair's error.
const TOO_WIDE: i64 = 1_000;

/// Number of attempts to read a narrow pair.
const ATTEMPTS: u32 = 6;

impl ClockPair {
    /// Reads both clocks; none if the thread was interrupted at each attempt.
    pub(crate) fn read() -> Option<Self> {
        let mut best: Option<(i64, Self)> = None;
        for _ in 0..ATTEMPTS {
            let before = clock_ns(KernelClock::MonotonicRaw);
            let real = clock_ns(KernelClock::RealTime);
            let width = clock_ns(KernelClock::MonotonicRaw).wrapping_sub(before);
            if best.is_none_or(|(narrowest, _)| width < narrowest) {
                best = Some((width, Self { raw: before + width / 2, real, error: width / 2 + 1 }));
            }
            if width <= NARROW {
                break;
            }
        }
        best.filter(|&(width, _)| width <= TOO_WIDE).map(|(_, pair)| pair)
    }
}

/// Continuity of `CLOCK_REALTIME` between two pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Continuity {
    Continuous,
    /// Stepped by this many nanoseconds, or slewed at another rate since.
    Stepped(i64),
}

/// Time for which pairs are kept, in nanoseconds.
const KEPT: i64 = 2_000_000_000;

/// Maximum number of pairs.
const MAX_PAIRS: usize = 4_096;

/// Time that pairs must cover to know the rate of the clock, in nanoseconds.
const BASELINE: i64 = 200_000_000;

/// Step that is not noticed, in nanoseconds: a program that slews the clock does not step it by as little.
const MIN_STEP: i64 = 100;

/// Largest change of the rate that is no step while the rate is known, in parts per million. A timestamp is at most
/// milliseconds from a pair, so this bends a line by tens of nanoseconds.
const KNOWN_PPM: i64 = 10;

/// The same while it is not known: the kernel permits 500 ppm.
const UNKNOWN_PPM: i64 = 600;

/// Recent pairs, without steps between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RealTimeMap {
    pairs: VecDeque<ClockPair>,
}

impl RealTimeMap {
    /// Adds the newest pair. After a step the others are discarded.
    pub(crate) fn push(&mut self, pair: ClockPair) -> Continuity {
        let mut continuity = Continuity::Continuous;
        if let Some(&last) = self.pairs.back() {
            let elapsed = pair.raw.saturating_sub(last.raw).max(0);
            let (gained, ppm) = match self.rate() {
                Some((rise, run)) => (scaled(elapsed, rise, run), KNOWN_PPM),
                None => (0, UNKNOWN_PPM),
            };
            let step = pair.real.saturating_sub(last.real).saturating_sub(elapsed).saturating_sub(gained);
            let errors = pair.error + last.error + MIN_STEP;
            let tolerance = errors.saturating_add(scaled(elapsed, ppm, 1_000_000));
            if step.saturating_abs() > tolerance {
                self.pairs.clear();
                continuity = Continuity::Stepped(step);
            }
        }
        // The error of a pair may exceed the time since the last one. Pairs ascend in both clocks.
        if self.pairs.back().is_some_and(|last| pair.real <= last.real || pair.raw <= last.raw) {
            return continuity;
        }
        let is_old = |kept: &ClockPair| pair.raw.saturating_sub(kept.raw) > KEPT;
        while self.pairs.len() >= MAX_PAIRS || self.pairs.front().is_some_and(is_old) {
            self.pairs.pop_front();
        }
        self.pairs.push_back(pair);
        continuity
    }

    /// Discards all pairs.
    pub(crate) fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Returns what `CLOCK_REALTIME` gained on the other clock over the pairs, and their time, in nanoseconds; none if that
    /// is too short.
    fn rate(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.pairs.front()?, self.pairs.back()?);
        let run = last.raw.saturating_sub(first.raw);
        (run >= BASELINE).then(|| (last.real.saturating_sub(first.real).saturating_sub(run), run))
    }

    /// Returns the oldest and the newest pair; none if their distance is too short for a rate.
    pub(crate) fn ends(&self) -> Option<[ClockPair; 2]> {
        self.rate().and(Some([*self.pairs.front()?, *self.pairs.back()?]))
    }

    /// Returns the reading of `CLOCK_MONOTONIC_RAW` at a timestamp; none if it is not between two pairs.
    pub(crate) fn raw_at(&self, real: i64) -> Option<i64> {
        // Most timestamps are newer than all pairs but the last ones.
        let after = self.pairs.iter().rposition(|pair| pair.real < real).map_or(0, |before| before + 1);
        let end = self.pairs.get(after)?;
        if end.real == real {
            return Some(end.raw);
        }
        let start = self.pairs.get(after.checked_sub(1)?)?;
        let (run, rise) = (end.real.saturating_sub(start.real), end.raw.saturating_sub(start.raw));
        Some(start.raw.saturating_add(scaled(real.saturating_sub(start.real), rise, run.max(1))))
    }
}

/// Returns `value * numerator / denominator`, saturated.
fn scaled(value: i64, numerator: i64, denominator: i64) -> i64 {
    let product = i128::from(value) * i128::from(numerator) / i128::from(denominator);
    product.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// A map of pairs every 10 ms for a second, with the system clock at a rate of `ppm`, and the next pair.
    fn steady(ppm: i64) -> (RealTimeMap, ClockPair) {
        let mut map = RealTimeMap::default();
        let pair =
            |index: i64| ClockPair { raw: index * 10 * MS, real: 1_000 * MS + index * 10 * (MS + ppm), error: 0 };
        for index in 0..100 {
            assert_eq!(map.push(pair(index)), Continuity::Continuous, "{ppm} ppm at {index}");
        }
        (map, pair(100))
    }

    #[test]
    fn real_clocks_form_narrow_pairs() {
        let mut map = RealTimeMap::default();
        let pairs: Vec<ClockPair> = (0..1_000).filter_map(|_| ClockPair::read()).collect();
        assert!(pairs.len() > 500, "{}", pairs.len());
        for &pair in &pairs {
            map.push(pair);
        }
        let last = map.pairs[map.pairs.len() - 1];
        assert_eq!(map.raw_at(last.real), Some(last.raw));
        let middle = map.pairs[map.pairs.len() / 2];
        let found = map.raw_at(middle.real + 1).unwrap();
        assert!((0..=2).contains(&(found - middle.raw)), "{found} after {}", middle.raw);
    }

    #[test]
    fn steps_are_noticed_and_discard_what_was_before() {
        for step in [-3_000_000_000, -20 * MS, -250, 250, MS, 3_000_000_000] {
            let (mut map, next) = steady(-40);
            let stepped = ClockPair { real: next.real + step, ..next };
            let Continuity::Stepped(noticed) = map.push(stepped) else { panic!("a step of {step} ns") };
            assert!((noticed - step).abs() <= 1, "{noticed} and {step}");
            assert_eq!(map.raw_at(next.real - 5 * MS), None);
        }
    }

    #[test]
    fn other_rates_are_noticed_before_they_bend_a_line_far() {
        let (map, next) = steady(10);
        // 5 and 25 ppm more in 10 ms.
        let slewed = [50, 250].map(|gained| ClockPair { real: next.real + gained, ..next });
        assert_eq!(map.clone().push(slewed[0]), Continuity::Continuous);
        assert_ne!(map.clone().push(slewed[1]), Continuity::Continuous);
    }

    #[test]
    fn timestamps_outside_of_pairs_are_unknown() {
        let (map, next) = steady(0);
        assert_eq!(map.raw_at(next.real), None);
        assert_eq!(map.raw_at(999 * MS), None);
        assert_eq!(map.raw_at(1_000 * MS), Some(0));
    }

    proptest! {
        #[test]
        fn timestamps_at_a_steady_rate_are_exact(ppm in -500i64..500, at in 0i64..990) {
            let (map, _) = steady(ppm);
            let real = 1_000 * MS + at * (MS + ppm);
            let raw = map.raw_at(real).unwrap();
            prop_assert!((raw - at * MS).abs() <= 1, "{raw}");
        }
    }
}
