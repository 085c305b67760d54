//! Quantiles of the slowdown over all seeds of a scheme together, and the ratio of two schemes' over the same flows.
//!
//! A scenario's flows depend on its seed and not on the scheme, so a flow of one scheme is the same flow under another.
//!
//! Intervals are by the bootstrap in two stages (Davison and Hinkley, "Bootstrap Methods and Their Application", 1997, section
//! 3.8): as many seeds as there are, drawn with replacement, then as many flows of each. Flows of one seed share queues, so
//! they are not independent, and drawing them alone would give intervals that are too narrow. Of a ratio both quantiles are
//! taken of the same draw. The interval holds the middle 95 % of the draws, by nearest rank. Draws are hashes of their numbers:
//! the same results give the same interval.

use std::ops::Range;

use serde::Serialize;
use units::{below, mix64};

use crate::Class;
use crate::averages::{Schemes, by_point};
use crate::explain::FEW;
use crate::store::RunResults;

/// Seeds of a scheme from which the spread between seeds can be estimated.
const SEEDS: usize = 2;
/// The maximum number of draws, enough that the ends of the interval are 25 draws from the last.
const MAX_DRAWS: usize = 1_000;
/// Draws at least.
const MIN_DRAWS: usize = 200;
/// Flows that are drawn together, about: a set of 100,000 has the least draws, and takes some tenths of a second.
const WORK: usize = 20_000_000;
/// 2^64 divided by the golden ratio, odd: the increment of splitmix64.
const GAP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A value and its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ConfidenceInterval {
    /// The measured value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Returns whether a value is outside.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// A scheme's flows of a class, those that ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pooled {
    /// The scheme's display name.
    pub label: String,
    /// The name of its first run.
    pub run: String,
    /// The class.
    pub class: Class,
    /// The number of seeds.
    pub seeds: usize,
    /// The number of flows, over all seeds.
    pub flows: usize,
    /// The median slowdown.
    pub p50: ConfidenceInterval,
    /// The 99th percentile of the slowdown.
    pub p99: ConfidenceInterval,
    /// Both over the first scheme's, of the flows that ended under both; none of the first scheme, or where no flow did.
    pub ratios: Option<[ConfidenceInterval; 2]>,
}

/// The schemes at one point of the grid.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PooledPoint {
    /// The point, such as `load = 0.4`; empty without a grid.
    pub point: String,
    /// The display name of the first scheme, the denominator of the ratios. It has no row if it has a single seed.
    pub first: String,
    /// By class, then by scheme in the order of the runs.
    pub rows: Vec<Pooled>,
}

impl Pooled {
    /// Returns whether so few flows ended that the slowest of them decides the 99th percentile.
    pub fn is_of_few(&self) -> bool {
        self.flows < FEW
    }
}

/// Returns the quantiles over all seeds together; no rows for schemes with a single seed.
pub fn pooled<'a>(runs: impl IntoIterator<Item = &'a RunResults>) -> Vec<PooledPoint> {
    let part = |(point, schemes): (String, Schemes<'_>)| {
        let rows = [Class::Intra, Class::Inter].into_iter().flat_map(|class| of_class(class, &schemes)).collect();
        let first = schemes.first().and_then(|(_, runs)| runs.first());
        PooledPoint { point, first: first.map_or_else(String::new, |run| run.manifest.label.clone()), rows }
    };
    by_point(runs).into_iter().map(part).filter(|part| !part.rows.is_empty()).collect()
}

fn of_class(class: Class, schemes: &Schemes<'_>) -> Vec<Pooled> {
    let samples: Vec<(&RunResults, SlowdownSample)> =
        schemes.iter().filter_map(|(_, runs)| Some((*runs.first()?, SlowdownSample::of(runs, class)))).collect();
    let row = |(index, (run, sample)): (usize, &(&RunResults, SlowdownSample))| {
        if sample.0.len() < SEEDS {
            return None;
        }
        let [p50, p99] = sample.quantiles()?;
        let ratios = samples.first().filter(|_| index > 0).and_then(|(_, first)| sample.over(first));
        let (seeds, flows) = (sample.0.len(), sample.flows());
        let (label, run) = (run.manifest.label.clone(), run.manifest.run.clone());
        Some(Pooled { label, run, class, seeds, flows, p50, p99, ratios })
    };
    samples.iter().enumerate().filter_map(row).collect()
}

/// Slowdowns by seed and flow, seeds and flows in order.
#[derive(Debug)]
struct SlowdownSample(Vec<(u64, Vec<(u32, f64)>)>);

/// The percentiles of a sample.
const PERCENTS: [u32; 2] = [50, 99];

impl SlowdownSample {
    fn of(runs: &[&RunResults], class: Class) -> Self {
        let slowdowns = |run: &&RunResults| {
            let rows = run.flows.rows.iter().filter(|row| row.class == class);
            let mut flows: Vec<(u32, f64)> = rows.filter_map(|row| Some((row.flow, row.slowdown()?))).collect();
            flows.sort_unstable_by_key(|(flow, _)| *flow);
            (run.summary.seed, flows)
        };
        let mut seeds: Vec<_> = runs.iter().map(slowdowns).filter(|(_, flows)| !flows.is_empty()).collect();
        seeds.sort_by_key(|(seed, _)| *seed);
        seeds.dedup_by_key(|(seed, _)| *seed);
        Self(seeds)
    }

    fn flows(&self) -> usize {
        self.0.iter().map(|(_, flows)| flows.len()).sum()
    }

    fn quantiles(&self) -> Option<[ConfidenceInterval; 2]> {
        let strata: Vec<Vec<f64>> =
            self.0.iter().map(|(_, flows)| flows.iter().map(|(_, slowdown)| *slowdown).collect()).collect();
        intervals(&[strata], |drawn| drawn[0])
    }

    /// The quantiles over those of another scheme, of the flows that both have.
    fn over(&self, first: &Self) -> Option<[ConfidenceInterval; 2]> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (seed, flows) in &self.0 {
            let Some((_, reference)) = first.0.iter().find(|(other, _)| other == seed) else { continue };
            let pair = |(flow, value): &(u32, f64)| {
                let at = reference.binary_search_by_key(flow, |(flow, _)| *flow).ok()?;
                Some((*value, reference[at].1))
            };
            let (values, references): (Vec<f64>, Vec<f64>) = flows.iter().filter_map(pair).unzip();
            if !values.is_empty() {
                own.push(values);
                others.push(references);
            }
        }
        intervals(&[own, others], |drawn| drawn[0] / drawn[1])
    }
}

/// A statistic of both quantiles of samples, with its intervals. Of every sample the same values are drawn, by index.
fn intervals(samples: &[Vec<Vec<f64>>], statistic: impl Fn(&[f64]) -> f64) -> Option<[ConfidenceInterval; 2]> {
    let mut total = 0;
    let strata: Vec<Range<u32>> = samples
        .first()?
        .iter()
        .map(|stratum| {
            let start = total;
            total += stratum.len() as u32;
            start..total
        })
        .collect();
    let total = total as usize;
    if total == 0 {
        return None;
    }
    // By sample: the values and their places, in order.
    let sorted: Vec<Vec<(f64, u32)>> = samples
        .iter()
        .map(|strata| {
            let mut sorted: Vec<(f64, u32)> = strata.iter().flatten().copied().zip(0..).collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            sorted
        })
        .collect();
    let of = |weights: &[u32]| {
        let of: Vec<[f64; 2]> = sorted.iter().map(|sorted| quantiles(sorted, weights)).collect();
        [0, 1].map(|index| statistic(&of.iter().map(|of| of[index]).collect::<Vec<_>>()))
    };
    let mut weights = vec![1u32; total];
    let values = of(&weights);
    let draws = (WORK / total).clamp(MIN_DRAWS, MAX_DRAWS);
    let mut drawn = PERCENTS.map(|_| Vec::with_capacity(draws));
    for draw in 0..draws {
        weights.fill(0);
        redraw(&strata, draw as u64, &mut weights);
        for (all, value) in drawn.iter_mut().zip(of(&weights)) {
            all.push(value);
        }
    }
    let mut interval = values.map(|value| ConfidenceInterval { value, low: value, high: value });
    for (interval, all) in interval.iter_mut().zip(&mut drawn) {
        all.sort_unstable_by(f64::total_cmp);
        // The middle 95 %, from both ends alike.
        let ends = (nearest_per_mille(all, 25)?, nearest_per_mille(all, 975)?);
        (interval.low, interval.high) = ends;
    }
    Some(interval)
}

fn nearest_per_mille(sorted: &[f64], per_mille: usize) -> Option<f64> {
    let rank = (sorted.len() * per_mille).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied()
}

/// Counts how often each index is drawn: first strata, then places in each.
fn redraw(strata: &[Range<u32>], draw: u64, weights: &mut [u32]) {
    // As in splitmix64: a stream of its own for the strata, and for every stratum that is drawn.
    let stream = |number: u64| mix64((draw << 20 | number).wrapping_add(GAP));
    let hash = |stream: u64, number: u32| mix64(stream.wrapping_add(GAP.wrapping_mul(u64::from(number) + 1)));
    for drawn in 0..strata.len() as u32 {
        let chosen = &strata[below(hash(stream(0), drawn), strata.len() as u32) as usize];
        let stream = stream(u64::from(drawn) + 1);
        for number in 0..chosen.end - chosen.start {
            let index = chosen.start + below(hash(stream, number), chosen.end - chosen.start);
            weights[index as usize] += 1;
        }
    }
}

/// The values at the nearest ranks of [`PERCENTS`], of values that count so often.
fn quantiles(sorted: &[(f64, u32)], weights: &[u32]) -> [f64; 2] {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let [low, high] = PERCENTS.map(|percent| (total * u64::from(percent)).div_ceil(100).max(1));
    let (mut cumulative, mut found) = (0, [f64::NAN; 2]);
    for (value, index) in sorted {
        cumulative += u64::from(weights[*index as usize]);
        if cumulative >= low && found[0].is_nan() {
            found[0] = *value;
        }
        if cumulative >= high {
            found[1] = *value;
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::nearest_rank;
    use crate::testbed;

    /// Numbers in 0 to 1 that look random.
    fn uniform(seed: u64, number: u64) -> f64 {
        (mix64(mix64(seed.wrapping_add(GAP)).wrapping_add(GAP.wrapping_mul(number + 1))) >> 11) as f64
            / (1u64 << 53) as f64
    }

    /// Returns five seeds of `flows` flows. Slowdowns are exponentially distributed, with a mean per seed.
    fn sample(seed: u64, flows: u32, mean: impl Fn(u64) -> f64) -> SlowdownSample {
        let of = |stratum: u64| {
            let slowdown = |flow: u32| -mean(stratum) * (1.0 - uniform(seed * 100 + stratum, flow.into())).ln();
            (stratum, (0..flows).map(|flow| (flow, slowdown(flow))).collect())
        };
        SlowdownSample((0..5).map(of).collect())
    }

    #[test]
    fn undrawn_quantiles_are_at_the_nearest_rank() {
        let sample = sample(1, 40, |_| 1.0);
        let mut all: Vec<f64> = sample.0.iter().flat_map(|(_, flows)| flows.iter().map(|(_, it)| *it)).collect();
        all.sort_unstable_by(f64::total_cmp);
        let [p50, p99] = sample.quantiles().unwrap();
        assert_eq!((Some(p50.value), Some(p99.value)), (nearest_rank(&all, 50), nearest_rank(&all, 99)));
        assert!(p50.low < p50.value && p50.value < p50.high && p99.low < p99.value, "{p50:?} {p99:?}");
        assert_eq!(sample.quantiles(), sample.quantiles());
    }

    /// The same flows twice as slow are twice as slow whatever is drawn, however wide the interval of each is.
    #[test]
    fn ratios_are_of_the_same_flows() {
        let one = sample(1, 40, |seed| 1.0 + seed as f64);
        let mut two = sample(1, 40, |seed| 1.0 + seed as f64);
        two.0.iter_mut().flat_map(|(_, flows)| flows).for_each(|(_, slowdown)| *slowdown *= 2.0);
        let twice = ConfidenceInterval { value: 2.0, low: 2.0, high: 2.0 };
        assert_eq!(two.over(&one), Some([twice, twice]));
        // Flows and seeds that one of them lacks are left out of both.
        two.0[1].1.remove(7);
        two.0.remove(3);
        assert_eq!(two.over(&one), Some([twice, twice]));
        assert_eq!(SlowdownSample(Vec::new()).over(&one), None);
    }

    /// The 95 % intervals hold the true value in about 95 % of 200 experiments, with independent flows.
    #[test]
    fn bootstrap_intervals_have_nominal_coverage() {
        let coverage = |truth: f64, index: usize| {
            let holds = |seed: &u64| !sample(*seed, 100, |_| 1.0).quantiles().unwrap()[index].excludes(truth);
            (0..200).filter(holds).count()
        };
        // The median of an exponential distribution is ln 2.
        let median = coverage(std::f64::consts::LN_2, 0);
        assert!((184..=200).contains(&median), "{median} of 200");
    }

    /// Five seeds that differ carry less information than five that do not, however many flows each has.
    #[test]
    fn seeds_that_differ_widen_the_interval() {
        let width = |sample: SlowdownSample| {
            let [p50, _] = sample.quantiles().unwrap();
            p50.high - p50.low
        };
        assert!(width(sample(3, 1_000, |seed| 1.0 + seed as f64)) > 5.0 * width(sample(3, 1_000, |_| 3.0)));
    }

    /// A row names the run that it begins with; the first scheme is named though it has a single seed and so no row.
    #[test]
    fn ratios_are_over_the_first_scheme_whether_or_not_it_has_a_row() {
        let of = |scheme: &str, seed: u64| {
            let mut run = testbed::results();
            run.summary.seed = seed;
            run.manifest.label = scheme.to_uppercase();
            run.manifest.run = format!("{scheme},seed={seed}");
            run.manifest.point =
                crate::Ordered(vec![("scheme".into(), scheme.into()), ("seed".into(), serde_json::json!(seed))]);
            run
        };
        let parts = pooled(&[of("a", 1), of("b", 1), of("b", 2)]);
        let [PooledPoint { point, first, rows }] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!((point.as_str(), first.as_str()), ("", "A"));
        let summaries: Vec<_> =
            rows.iter().map(|row| (row.run.as_str(), row.class, row.seeds, row.is_of_few())).collect();
        assert_eq!(summaries, [("b,seed=1", Class::Intra, 2, true), ("b,seed=1", Class::Inter, 2, true)]);
        let same = ConfidenceInterval { value: 1.0, low: 1.0, high: 1.0 };
        assert!(rows.iter().all(|row| row.ratios == Some([same; 2])), "{rows:?}");
        assert_eq!(pooled(&[of("a", 1), of("b", 1)]), []);
    }
}
