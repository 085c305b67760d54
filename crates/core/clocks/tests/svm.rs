//! Comparison of a pair's estimate with a support vector machine, as Huygens uses it (On-Ramp §4.1).
//!
//! The machine is linear, with a soft margin, and is solved by coordinate descent on its dual (Hsieh et al., ICML 2008). Time
//! is scaled to seconds and offsets to round trips, after a rough skew was removed: its margin is perpendicular to the line
//! where ours is vertical, which is the same for flat lines.

use clocks::{OffsetLine, PairSamples, Reading, Sample, Skew, SkewRange, estimate};
use units::{EXPONENTIAL_BITS, exponential, mix64};

struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    fn below(&mut self, limit: i64) -> i64 {
        ((u128::from(self.next()) * limit as u128) >> 64) as i64
    }

    fn exponential(&mut self, mean: i64) -> i64 {
        ((u128::from(exponential(self.next())) * mean as u128) >> EXPONENTIAL_BITS) as i64
    }

    fn gaussian(&mut self, sigma: i64) -> i64 {
        let sum: i64 = (0..12).map(|_| self.below(1 << 20)).sum();
        ((sum - (6 << 20)) * sigma) >> 20
    }
}

/// Round trip of the path without queues, in nanoseconds.
const ROUND_TRIP: f64 = 10_000.0;

/// Samples of one direction in 2 s.
const SAMPLES: i64 = 60;

/// Returns the offset in the middle of the window and the skew, by a support vector machine.
fn svm(forward: &[Sample], backward: &[Sample]) -> (f64, f64) {
    let origin = forward[0].difference;
    let (first, last) = (forward[0], forward[forward.len() - 1]);
    let rough = (last.difference - first.difference) as f64 / last.at.since(first.at) as f64;
    let point = |sample: &Sample| {
        let time = (sample.at.0 - 1_000_000_000) as f64;
        [time / 1e9, ((sample.difference - origin) as f64 - rough * time) / ROUND_TRIP, 1.0]
    };
    let points: Vec<([f64; 3], f64)> =
        forward.iter().map(|it| (point(it), 1.0)).chain(backward.iter().map(|it| (point(it), -1.0))).collect();
    let (mut weights, mut alphas) = ([0.0; 3], vec![0.0; points.len()]);
    let dot = |one: &[f64; 3], other: &[f64; 3]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    for _ in 0..2_000 {
        for ((point, label), alpha) in points.iter().zip(&mut alphas) {
            let gradient = label * dot(&weights, point) - 1.0;
            let new = (*alpha - gradient / dot(point, point)).clamp(0.0, PENALTY);
            for (weight, value) in weights.iter_mut().zip(point) {
                *weight += (new - *alpha) * label * value;
            }
            *alpha = new;
        }
    }
    let [time, value, bias] = weights;
    (origin as f64 - bias / value * ROUND_TRIP, rough - time / value * ROUND_TRIP / 1e9)
}

/// Penalty of a point within the margin.
const PENALTY: f64 = 1_000.0;

/// Returns the sorted errors in the middle of windows: of the estimate, and of the machine.
fn errors(seed: u64, delay: impl Fn(&mut Draws) -> i64) -> [Vec<i64>; 2] {
    let mut draws = Draws(seed);
    let limits = SkewRange::around(Skew::ZERO, Skew::from_ppb(300_000));
    let mut errors = [Vec::new(), Vec::new()];
    for _ in 0..200 {
        let skew = Skew::from_ppb(draws.below(60_000) - 30_000);
        let truth = OffsetLine { at: Reading(0), offset: draws.below(1_000_000), skew };
        let mut side = |sign: i64| -> Vec<Sample> {
            (0..SAMPLES)
                .map(|index| {
                    let at = Reading(index * 2_000_000_000 / SAMPLES + draws.below(30_000_000));
                    let delay = ROUND_TRIP as i64 / 2 + delay(&mut draws);
                    Sample { at, difference: truth.offset_at(at) + sign * delay }
                })
                .collect()
        };
        let (forward, backward) = (side(1), side(-1));
        let estimate = estimate(PairSamples { forward: &forward, backward: &backward }, limits).unwrap();
        let middle = Reading(1_000_000_000);
        let (offset, _) = svm(&forward, &backward);
        errors[0].push((estimate.line.offset_at(middle) - truth.offset_at(middle)).abs());
        errors[1].push((offset as i64 - truth.offset_at(middle)).abs());
    }
    for errors in &mut errors {
        errors.sort_unstable();
    }
    errors
}

/// With queues and with noise of timestamps the estimate is no worse than the machine by more than a tenth, at the median and
/// at the 95th percentile.
#[test]
fn the_estimate_is_as_good_as_a_support_vector_machine() {
    type Delay = fn(&mut Draws) -> i64;
    let cases: [(&str, Delay); 3] = [
        ("queues, exponential, 10 us", |draws| draws.exponential(10_000)),
        ("noise, Gaussian, 1 us", |draws| draws.gaussian(1_000)),
        ("both", |draws| draws.exponential(10_000) + draws.gaussian(300)),
    ];
    for (seed, (name, delay)) in (1..).zip(cases) {
        let [ours, machine] = errors(seed, delay);
        println!("{name}: p50 {} and {} ns, p95 {} and {} ns", ours[100], machine[100], ours[190], machine[190]);
        for rank in [100, 190] {
            assert!(10 * ours[rank] <= 11 * machine[rank] + 100, "{name}: {} and {}", ours[rank], machine[rank]);
        }
    }
}
