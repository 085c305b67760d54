//! Offset and skew of a pair of clocks, from bounds in both directions.
//!
//! A packet to the remote host takes at least the path's minimum delay, so its difference of timestamps is at least the
//! offset plus that delay: all such points are above the line of the offset. Points of packets in the other direction are
//! below it. The estimate is the middle line of the widest strip of constant height between both sets: of all slopes the
//! one at which the lines that touch the sets are farthest apart. Huygens finds it by a support vector machine (On-Ramp
//! §4.1, NSDI 2018); the touching points are on the convex hulls, so a walk over both hulls finds it exactly, in integers.
//!
//! Deviations: outliers are peeled off only where the sets overlap, as many as a share of the samples; and the estimate is
//! the mean over several peeled layers, which averages the noise of timestamps.

use alloc::vec::Vec;

use crate::line::{OffsetLine, Reading, Skew};
use crate::samples::Sample;

/// Range of skews that are possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SkewRange {
    /// The lowest skew.
    pub min: Skew,
    /// The highest skew, not below `min`.
    pub max: Skew,
}

impl SkewRange {
    /// Returns the skews up to `limit` in both directions around `centre`.
    pub fn around(centre: Skew, limit: Skew) -> Self {
        Self { min: centre - limit.abs(), max: centre + limit.abs() }
    }

    fn clamp(self, skew: Skew) -> Skew {
        skew.clamp(self.min, self.max)
    }
}

/// Samples of a pair of clocks, each direction in order of time.
#[derive(Clone, Copy, Debug)]
pub struct PairSamples<'a> {
    /// Packets to the remote host.
    pub forward: &'a [Sample],
    /// Packets from the remote host.
    pub backward: &'a [Sample],
}

/// Offset and skew of a remote clock relative to the local one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PairEstimate {
    /// The offset, anchored in the middle of the samples' time.
    pub line: OffsetLine,
    /// Height of the strip in nanoseconds: the lowest sum of the delays of both directions that the samples permit. If
    /// delays are not negative, the offset is within half of this of the line for the time of the samples.
    pub round_trip: i64,
    /// Growth of the strip when the touching points are removed seven times, in nanoseconds; none if there are too few
    /// samples. The delays that remain above the paths' minima in both directions exceed it rarely: with exponential delays
    /// they are one spacing of the order statistics, and this is seven.
    pub spread: Option<i64>,
    /// Time from the first to the last sample, in nanoseconds.
    pub span: i64,
    /// Number of samples of both directions.
    pub samples: u32,
}

/// Reasons why samples have no estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoEstimate {
    /// A direction has no samples.
    NoSamples,
    /// No pair of clocks with a constant skew explains the samples: a clock stepped, or a host lies.
    Contradiction,
}

/// Number of peeled layers in the mean.
const LAYERS: i128 = 2;

/// Number of layers that are removed for [`PairEstimate::spread`].
const SPREAD_LAYERS: i128 = 7;

/// Minimum number of samples of a direction that are left.
const MIN_LEFT: usize = 4;

/// One sample in this many may be an outlier.
const SAMPLES_PER_OUTLIER: usize = 32;

/// Differences of timestamps that are farther apart than this within a window are a contradiction, in nanoseconds. It
/// keeps products of coordinates within 128 bits.
const MAX_COORDINATE: i64 = 1 << 50;

/// A sample relative to the origin of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    time: i64,
    value: i64,
}

/// Two parallel lines that touch the sets.
#[derive(Clone, Copy, Debug)]
struct Strip {
    skew: Skew,
    /// Value at time 0 of the line below all points of the forward direction.
    top: i64,
    /// Value at time 0 of the line above all points of the backward direction.
    bottom: i64,
    /// Points that are touched.
    touches: [usize; 2],
}

/// Estimates offset and skew.
///
/// # Errors
/// If a direction has no samples, or the samples contradict each other; see [`NoEstimate`].
pub fn estimate(samples: PairSamples, skews: SkewRange) -> Result<PairEstimate, NoEstimate> {
    let PairSamples { forward, backward } = samples;
    let (Some(first), Some(_)) = (forward.first(), backward.first()) else { return Err(NoEstimate::NoSamples) };
    let ends = [forward, backward].map(|side| (side[0].at, side[side.len() - 1].at));
    let (start, end) = (ends[0].0.min(ends[1].0), ends[0].1.max(ends[1].1));
    let span = end.since(start);
    let origin = Sample { at: start.after(span / 2), difference: first.difference };
    let mut above = points(forward, origin)?;
    let mut below = points(backward, origin)?;
    let mut strip = strip(&above, &below, skews);
    let mut outliers = (forward.len() + backward.len()) / SAMPLES_PER_OUTLIER;
    while strip.top <= strip.bottom {
        if outliers == 0 {
            return Err(NoEstimate::Contradiction);
        }
        outliers -= 1;
        strip = peel_worse(&mut above, &mut below, strip, skews).ok_or(NoEstimate::Contradiction)?;
    }
    let round_trip = strip.top - strip.bottom;
    let (mut offsets, mut slopes, mut layers) = (0i128, 0i128, 0i128);
    let mut removed = 0;
    let spread = loop {
        if removed < LAYERS {
            offsets += i128::from(strip.top) + i128::from(strip.bottom);
            slopes += i128::from(strip.skew.0);
            layers += 1;
        }
        if removed == SPREAD_LAYERS {
            break Some(strip.top - strip.bottom - round_trip);
        }
        if above.len() <= MIN_LEFT || below.len() <= MIN_LEFT {
            break None;
        }
        above.remove(strip.touches[0]);
        below.remove(strip.touches[1]);
        removed += 1;
        strip = self::strip(&above, &below, skews);
    };
    Ok(PairEstimate {
        line: OffsetLine {
            at: origin.at,
            offset: origin.difference.wrapping_add((offsets / (2 * layers)) as i64),
            skew: Skew((slopes / layers) as i64),
        },
        round_trip,
        spread,
        span,
        samples: (forward.len() + backward.len()) as u32,
    })
}

/// Returns the samples relative to an origin.
fn points(samples: &[Sample], origin: Sample) -> Result<Vec<Point>, NoEstimate> {
    samples
        .iter()
        .map(|sample| {
            let time = sample.at.since(origin.at);
            let value = sample.difference.wrapping_sub(origin.difference);
            let is_near = [time, value].iter().all(|it| it.unsigned_abs() <= MAX_COORDINATE.unsigned_abs());
            is_near.then_some(Point { time, value }).ok_or(NoEstimate::Contradiction)
        })
        .collect()
}

/// Removes the point of either set without which the strip is higher. Returns the new strip; none if a set would be empty.
fn peel_worse(above: &mut Vec<Point>, below: &mut Vec<Point>, strip: Strip, skews: SkewRange) -> Option<Strip> {
    if above.len() < 2 || below.len() < 2 {
        return None;
    }
    let top = above.remove(strip.touches[0]);
    let without_top = self::strip(above, below, skews);
    above.insert(strip.touches[0], top);
    let bottom = below.remove(strip.touches[1]);
    let without_bottom = self::strip(above, below, skews);
    if without_bottom.top - without_bottom.bottom >= without_top.top - without_top.bottom {
        return Some(without_bottom);
    }
    below.insert(strip.touches[1], bottom);
    above.remove(strip.touches[0]);
    Some(without_top)
}

/// Returns the highest strip below one set and above the other, among lines with these skews. It has a negative height if the
/// sets overlap. Both sets have points, in order of time.
fn strip(above: &[Point], below: &[Point], skews: SkewRange) -> Strip {
    let tops = hull(above, |it| it.value);
    let bottoms = hull(below, |it| -it.value);
    let skew = skews.clamp(best_skew(above, &tops, below, &bottoms, skews));
    let value = |point: Point| point.value - skew.over(point.time);
    let top = tops.iter().copied().min_by_key(|&it| value(above[it])).unwrap_or(0);
    let bottom = bottoms.iter().copied().max_by_key(|&it| value(below[it])).unwrap_or(0);
    Strip { skew, top: value(above[top]), bottom: value(below[bottom]), touches: [top, bottom] }
}

/// Returns the skew of the highest strip. The height is a concave function of the skew, so its slope changes sign once: where
/// the point that the upper line touches is no longer before the one that the lower line touches.
fn best_skew(above: &[Point], tops: &[usize], below: &[Point], bottoms: &[usize], skews: SkewRange) -> Skew {
    let edge = |points: &[Point], hull: &[usize], from: usize| {
        let [from, to] = [points[hull[from]], points[hull[from + 1]]];
        Skew::ratio(to.value - from.value, to.time - from.time)
    };
    let (mut top, mut bottom) = (0, bottoms.len() - 1);
    let mut crossed = skews.min;
    loop {
        let rising = above[tops[top]].time < below[bottoms[bottom]].time;
        let next_top = (top + 1 < tops.len()).then(|| edge(above, tops, top));
        let next_bottom = (bottom > 0).then(|| edge(below, bottoms, bottom - 1));
        let next = match (next_top, next_bottom) {
            (Some(top), Some(bottom)) => top.min(bottom),
            (Some(skew), None) | (None, Some(skew)) => skew,
            (None, None) => skews.max,
        };
        if !rising {
            let is_flat = above[tops[top]].time == below[bottoms[bottom]].time;
            let next = skews.clamp(next);
            return if is_flat { Skew(i64::midpoint(skews.clamp(crossed).0, next.0)) } else { crossed };
        }
        crossed = next;
        match (next_top, next_bottom) {
            (Some(skew), _) if skew == next => top += 1,
            (_, Some(_)) => bottom -= 1,
            _ => return skews.max,
        }
    }
}

/// Returns the indices of the points on the lower convex hull of `(time, height)`, in order of time.
fn hull(points: &[Point], height: impl Fn(Point) -> i64) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::new();
    for (index, &point) in points.iter().enumerate() {
        // Of points of one time the lowest is on the hull.
        if let Some(&last) = hull.last()
            && points[last].time == point.time
        {
            if height(points[last]) <= height(point) {
                continue;
            }
            hull.pop();
        }
        while let [.., first, middle] = hull[..] {
            let [first, middle] = [points[first], points[middle]];
            let cross = i128::from(middle.time - first.time) * i128::from(height(point) - height(first))
                - i128::from(point.time - first.time) * i128::from(height(middle) - height(first));
            if cross > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(index);
    }
    hull
}

impl PairEstimate {
    /// Returns the local reading of the first sample.
    pub fn start(&self) -> Reading {
        self.line.at.after(-(self.span / 2))
    }

    /// Returns the local reading of the last sample.
    pub fn end(&self) -> Reading {
        self.line.at.after(self.span - self.span / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::mix64;

    const LIMIT: SkewRange = SkewRange { min: Skew::from_ppb(-300_000), max: Skew::from_ppb(300_000) };

    /// Draws of a seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: i64) -> i64 {
            self.0 = mix64(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
            ((u128::from(self.0) * limit as u128) >> 64) as i64
        }

        /// Approximately exponential, in whole numbers.
        fn exponential(&mut self, mean: i64) -> i64 {
            let uniform = (self.below(1 << 40) + 1) as f64 / (1u64 << 40) as f64;
            (-uniform.ln() * mean as f64) as i64
        }

        /// Approximately Gaussian.
        fn gaussian(&mut self, sigma: i64) -> i64 {
            let sum: i64 = (0..12).map(|_| self.below(1 << 20)).sum();
            ((sum - (6 << 20)) * sigma) >> 20
        }
    }

    /// Probes of 2 s, 30 a second in each direction, over a path of 5 us.
    fn probes(dice: &mut Dice, truth: OffsetLine, mut delay: impl FnMut(&mut Dice) -> i64) -> [Vec<Sample>; 2] {
        let mut direction = |sign: i64| {
            let mut at = 0;
            let mut samples = Vec::new();
            while at < 2_000_000_000 {
                let (now, delay) = (Reading(at), 5_000 + delay(dice));
                samples.push(Sample { at: now, difference: truth.offset_at(now) + sign * delay });
                at += 20_000_000 + dice.below(26_000_000);
            }
            samples
        };
        [direction(1), direction(-1)]
    }

    fn of(samples: &[Vec<Sample>; 2]) -> Result<PairEstimate, NoEstimate> {
        estimate(PairSamples { forward: &samples[0], backward: &samples[1] }, LIMIT)
    }

    fn truth(dice: &mut Dice) -> OffsetLine {
        let ppb = dice.below(400_000) - 200_000;
        OffsetLine { at: Reading(0), offset: dice.below(2_000_000_000) - 1_000_000_000, skew: Skew::from_ppb(ppb) }
    }

    /// The largest errors within the window of many estimates, sorted.
    fn errors(seed: u64, delay: impl Fn(&mut Dice) -> i64 + Copy) -> Vec<i64> {
        let mut dice = Dice(seed);
        let mut errors: Vec<i64> = (0..1_000)
            .map(|_| {
                let truth = truth(&mut dice);
                let line = of(&probes(&mut dice, truth, delay)).unwrap().line;
                let at = |ns| (line.offset_at(Reading(ns)) - truth.offset_at(Reading(ns))).abs();
                at(0).max(at(2_000_000_000))
            })
            .collect();
        errors.sort_unstable();
        errors
    }

    #[test]
    fn without_noise_the_line_is_exact() {
        let errors = errors(1, |_| 0);
        assert!(errors[999] <= 1, "{}", errors[999]);
    }

    /// Delays that are exponential in both directions: the minima of some 60 samples remain, 1/60 of the mean each.
    #[test]
    fn queueing_delays_are_filtered() {
        let errors = errors(2, |dice| dice.exponential(10_000));
        std::println!("exponential 10 us: p50 {} p99 {}", errors[500], errors[990]);
        assert!(errors[500] < 500 && errors[990] < 2_000, "p50 {}, p99 {}", errors[500], errors[990]);
    }

    #[test]
    fn gaussian_noise_of_timestamps_is_averaged() {
        let errors = errors(3, |dice| dice.gaussian(1_000));
        std::println!("gaussian 1 us: p50 {} p99 {}", errors[500], errors[990]);
        assert!(errors[500] < 600 && errors[990] < 2_000, "p50 {}, p99 {}", errors[500], errors[990]);
    }

    #[test]
    fn outliers_are_peeled() {
        let mut dice = Dice(4);
        for _ in 0..200 {
            let truth = truth(&mut dice);
            let mut samples = probes(&mut dice, truth, |dice| dice.exponential(1_000));
            // A timestamp that is wrong by more than the round trip.
            let at = dice.below(samples[0].len() as i64) as usize;
            samples[0][at].difference -= 50_000;
            // With any skew, an outlier near the end of the window could as well be a skew.
            let narrow = SkewRange::around(truth.skew, Skew::from_ppb(1_000));
            let estimate = estimate(PairSamples { forward: &samples[0], backward: &samples[1] }, narrow);
            let line = estimate.unwrap().line;
            let middle = Reading(1_000_000_000);
            let error = line.offset_at(middle) - truth.offset_at(middle);
            assert!(error.abs() < 1_500, "{error}");
        }
    }

    #[test]
    fn a_step_is_a_contradiction() {
        let mut dice = Dice(5);
        for step in [-100_000, 20_000, 1 << 55] {
            let truth = truth(&mut dice);
            let mut samples = probes(&mut dice, truth, |dice| dice.exponential(1_000));
            for sample in samples.iter_mut().flatten().filter(|sample| sample.at > Reading(900_000_000)) {
                sample.difference += step;
            }
            // A line of at most 300 ppm bridges 600 us over 2 s: the limit of the caller is what detects a step.
            let narrow = SkewRange::around(truth.skew, Skew::from_ppb(1_000));
            let estimate = estimate(PairSamples { forward: &samples[0], backward: &samples[1] }, narrow);
            assert_eq!(estimate, Err(NoEstimate::Contradiction), "{step}");
        }
    }

    #[test]
    fn a_direction_without_samples_has_no_estimate() {
        let mut dice = Dice(6);
        let mut samples = probes(&mut dice, OffsetLine::default(), |_| 0);
        samples[1].clear();
        assert_eq!(of(&samples), Err(NoEstimate::NoSamples));
    }

    proptest! {
        /// With delays that are not negative, and no outliers to peel, the offset is within half the strip of the line at
        /// each sample, and the strip is at most the sum of the smallest delays.
        #[test]
        fn the_strip_contains_the_offset(seed: u64, mean in 0i64..100_000, ppb in -200_000i64..200_000) {
            let mut dice = Dice(seed);
            let truth = OffsetLine { at: Reading(0), offset: 5, skew: Skew::from_ppb(ppb) };
            let samples = probes(&mut dice, truth, |dice| dice.exponential(mean + 1));
            let tops: Vec<Point> = points(&samples[0], samples[0][0]).unwrap();
            let bottoms: Vec<Point> = points(&samples[1], samples[0][0]).unwrap();
            let strip = strip(&tops, &bottoms, LIMIT);
            let value = |time: i64, base: i64| base + strip.skew.over(time);
            for point in &tops {
                prop_assert!(point.value >= value(point.time, strip.top) - 1);
            }
            for point in &bottoms {
                prop_assert!(point.value <= value(point.time, strip.bottom) + 1);
            }
            // No other slope has a higher strip: compare with a search over a grid around it.
            let height = |skew: Skew| {
                let value = |point: &Point| point.value - skew.over(point.time);
                tops.iter().map(value).min().unwrap() - bottoms.iter().map(value).max().unwrap()
            };
            let best = height(strip.skew);
            for ppb in (-300_000..=300_000).step_by(1_000) {
                prop_assert!(height(Skew::from_ppb(ppb)) <= best + 2, "{} at {ppb}, {best}", height(Skew::from_ppb(ppb)));
            }
            for step in [-1_000, -100, -10, -1, 1, 10, 100, 1_000] {
                prop_assert!(height(strip.skew + Skew::from_ppb(step)) <= best + 2);
            }
        }

        /// Any timestamps: no overflow, and no panic.
        #[test]
        fn any_samples_are_handled(
            forward in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..40),
            backward in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..40),
            near: bool,
        ) {
            let samples = |side: Vec<(i64, i64)>| {
                let shift = if near { 16 } else { 0 };
                let sample = |(at, difference): (i64, i64)| {
                    Sample { at: Reading(at >> shift), difference: difference >> shift }
                };
                let mut samples: Vec<Sample> = side.into_iter().map(sample).collect();
                samples.sort_unstable();
                samples
            };
            let (forward, backward) = (samples(forward), samples(backward));
            let _ = estimate(PairSamples { forward: &forward, backward: &backward }, LIMIT);
        }
    }
}
