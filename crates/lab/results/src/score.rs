//! A scheme in one number: its metrics over the best of some schemes, at every point of the grid.
//!
//! A cell is a metric at a point, such as the p99 of the slowdown of small flows inside at 40 % load: the mean over
//! seeds of the values of the runs. A ratio is a scheme's cell over the least of the reference's schemes; the schemes'
//! flows are the same (common random numbers). G is the geometric mean of all ratios, W the greatest. No ratio of a
//! scheme that is in the reference is under 1; G under 1 of another scheme means that it beats the best of each cell on
//! average.
//!
//! The interval of G is of its seeds: each has a G of its own, over the same schemes as the whole, and the logarithms'
//! mean has an interval by Student's t.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::averages::{by_point, entry_mut};
use crate::claims::{Expr, ParseError, Runs, class_text, expression_of_a_run, flows_behind_p99, value};
use crate::explain::FEW;
use crate::mean::Mean;
use crate::store::RunResults;

/// Metrics, less of each being better, and the best of each at some points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The scenario's name: its flows are those of no other one.
    pub scenario: String,
    /// Metrics of a run, as in claims: `p99(intra_small.slowdown)`.
    pub cells: Vec<String>,
    /// By point.
    pub points: Vec<Best>,
}

/// The best of each metric at a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// The point, such as `load = 0.4`; empty without a grid.
    pub point: String,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// By metric.
    pub cells: Vec<BestCell>,
}

/// The least value of a metric at a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestCell {
    /// The scheme that has it, by its name in the scenario.
    pub scheme: String,
    /// Its value by seed, in the metric's unit: ns, bytes, bit/s, or none.
    pub by_seed: Vec<f64>,
}

impl BestCell {
    fn mean(&self) -> f64 {
        mean(&self.by_seed)
    }
}

/// A scheme's score.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Score {
    /// The scheme, by its name in the scenario.
    pub scheme: String,
    /// The display name.
    pub label: String,
    /// By point, then by metric.
    pub ratios: Vec<(String, Vec<f64>)>,
    /// The geometric mean of all ratios.
    pub g: f64,
    /// The 95 % interval of G; none of one seed.
    pub interval: Option<[f64; 2]>,
    /// Each seed's own G.
    pub by_seed: Vec<(u64, f64)>,
    /// The greatest ratio.
    pub w: f64,
    /// The point and the metric of the greatest ratio.
    pub worst: (String, String),
}

/// Reason why there is no score.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ScoreError {
    /// A metric cannot be read.
    #[error("metric `{metric}`: {error}")]
    Metric {
        /// The metric.
        metric: String,
        /// The error and its location.
        error: ParseError,
    },
    /// A newcomer that was not run.
    #[error("there is no scheme `{name}`; there are {known}")]
    Newcomer {
        /// The requested name.
        name: String,
        /// The schemes.
        known: String,
    },
    /// All schemes are newcomers.
    #[error("all schemes are newcomers ({known}), so there is none to compare them with: leave one out")]
    Newcomers {
        /// The schemes.
        known: String,
    },
    /// No runs, or no cells.
    #[error("there is nothing to score")]
    Nothing,
    /// A run has no value of a metric, or none over zero.
    #[error("{run} has no `{metric}` over zero: {reason}")]
    Value {
        /// The run.
        run: String,
        /// The metric.
        metric: String,
        /// The reason.
        reason: String,
    },
    /// A file of values without a table that has all of these metrics.
    #[error("no table of this file has all of these metrics; it has {known}")]
    NoTable {
        /// The metrics of its tables.
        known: String,
    },
    /// Runs of two scenarios.
    #[error("these runs are of the scenario `{actual}`, and the reference is of `{expected}`")]
    Scenario {
        /// Theirs.
        actual: String,
        /// The reference's.
        expected: String,
    },
    /// A reference that was written by hand, or damaged.
    #[error(
        "the reference, point `{point}`: expected this point once, seeds in order, and a number over zero of each of {cells} \
         metrics for each of {seeds} seeds"
    )]
    Reference {
        /// The point.
        point: String,
        /// The number of metrics of the point.
        cells: usize,
        /// The number of seeds.
        seeds: usize,
    },
    /// A duplicate metric, which would count twice.
    #[error("the metric `{metric}` is given twice")]
    DuplicateMetric {
        /// The metric.
        metric: String,
    },
    /// Two sets of runs are not of the same flows.
    #[error("{scheme} at `{point}`: these runs have the seeds {actual}, and the reference has {expected}")]
    Seeds {
        /// The scheme.
        scheme: String,
        /// The point.
        point: String,
        /// The seeds of its runs.
        actual: String,
        /// The reference's.
        expected: String,
    },
    /// A point that the reference does not have.
    #[error("the reference has no point `{point}`; it has {known}")]
    Point {
        /// The point.
        point: String,
        /// Its points.
        known: String,
    },
    /// A point at which a scheme was not run.
    #[error("{scheme} was not run at `{point}`, where the reference was")]
    Missing {
        /// The scheme.
        scheme: String,
        /// The point.
        point: String,
    },
}

/// A scheme's measurements at a point: seeds in order, cells by metric.
struct SchemeMeasurements {
    seeds: Vec<u64>,
    /// By metric, then by seed.
    cells: Vec<Vec<f64>>,
}

/// A scheme's name and label, and its measured values by point.
type OfScheme = (String, String, Vec<(String, SchemeMeasurements)>);

/// Runs by point.
type Points<'a> = Vec<(String, Vec<&'a RunResults>)>;

fn parsed(cells: &[String]) -> Result<Vec<Expr>, ScoreError> {
    if cells.is_empty() {
        return Err(ScoreError::Nothing);
    }
    let parsed = |metric: &String| {
        expression_of_a_run(metric).map_err(|error| ScoreError::Metric { metric: metric.clone(), error })
    };
    cells.iter().map(parsed).collect()
}

fn measured(cells: &[String], runs: &[RunResults]) -> Result<Vec<OfScheme>, ScoreError> {
    let exprs = parsed(cells)?;
    if runs.is_empty() {
        return Err(ScoreError::Nothing);
    }
    let mut schemes: Vec<(String, Points<'_>)> = Vec::new();
    for (point, point_runs) in by_point(runs) {
        for (scheme, runs) in point_runs {
            entry_mut(&mut schemes, &scheme).push((point.clone(), runs));
        }
    }
    let cell = |run: &RunResults, metric: &String, expr: &Expr| {
        let wrong =
            |reason: String| ScoreError::Value { run: run.manifest.run.clone(), metric: metric.clone(), reason };
        let found = value(expr, &Runs::named("", run)).map_err(|error| wrong(error.to_string()))?;
        let (amount, _) = found.as_in_tables();
        if amount.is_finite() && amount > 0.0 { Ok(amount) } else { Err(wrong(format!("it is {amount}"))) }
    };
    let of_point = |(point, mut runs): (String, Vec<&RunResults>)| {
        runs.sort_by_key(|run| run.summary.seed);
        let by_seed = |(metric, expr)| runs.iter().map(|run| cell(run, metric, expr)).collect::<Result<Vec<f64>, _>>();
        let cells = cells.iter().zip(&exprs).map(by_seed).collect::<Result<_, _>>()?;
        Ok((point, SchemeMeasurements { seeds: runs.iter().map(|run| run.summary.seed).collect(), cells }))
    };
    let of_scheme = |(scheme, points): (String, Points<'_>)| {
        let label = points[0].1[0].manifest.label.clone();
        Ok((scheme, label, points.into_iter().map(of_point).collect::<Result<_, _>>()?))
    };
    schemes.into_iter().map(of_scheme).collect()
}

/// The default cells: the median and the p99 of the slowdown of each size bin; without bins, of each class of flows. In
/// addition, a note for each bin or class without a completed flow in some run: it has no cells.
pub fn usual_cells(runs: &[RunResults]) -> (Vec<String>, Vec<String>) {
    let flows = runs.first().map(|run| &run.summary.flows);
    let bins: Vec<&str> = flows.iter().flat_map(|flows| flows.sizes.iter().map(|(name, _)| name)).collect();
    let classes = if bins.is_empty() { vec!["intra", "inter"] } else { bins };
    let (mut metrics, mut without) = (Vec::new(), Vec::new());
    for class in classes {
        let lacks = |run: &&RunResults| run.summary.class(class).is_none_or(|cell| cell.completed == 0);
        match runs.iter().find(lacks) {
            Some(run) => without.push(format!("`{class}` is not scored: no flow of it ended in {}", run.summary.run)),
            None => metrics.extend(["p50", "p99"].map(|stat| format!("{stat}({}.slowdown)", class_text(class)))),
        }
    }
    (metrics, without)
}

/// Returns a note for each metric that is a quantile of so few flows, in some run, that the slowest decides it: `?` in
/// tables.
pub fn of_few(cells: &[String], runs: &[RunResults]) -> Vec<String> {
    let note = |metric: &String| {
        let expr = expression_of_a_run(metric).ok()?;
        let ended = runs.iter().filter_map(|run| flows_behind_p99(&expr, &run.summary));
        let min_flows = ended.min().filter(|flows| *flows < FEW as u64)?;
        Some(format!("`{metric}` is of {min_flows} flows in some run: one of the slowest decides it"))
    };
    cells.iter().filter_map(note).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn listed(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

impl Reference {
    /// The best of these runs' schemes but for the newcomers, so that one of these may have a G under 1.
    ///
    /// # Errors
    /// When a metric cannot be read, a run has no value of one, schemes were not run at the same points and seeds, a newcomer
    /// is not among them, or all schemes are newcomers.
    pub fn of(cells: &[String], runs: &[RunResults], newcomers: &[String]) -> Result<Self, ScoreError> {
        let schemes = measured(cells, runs)?;
        let names: Vec<&str> = schemes.iter().map(|(scheme, ..)| scheme.as_str()).collect();
        let known = || names.join(", ");
        if let Some(name) = newcomers.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(ScoreError::Newcomer { name: name.clone(), known: known() });
        }
        if names.iter().all(|name| newcomers.iter().any(|newcomer| newcomer == name)) {
            return Err(ScoreError::Newcomers { known: known() });
        }
        let mut points: Vec<Best> = Vec::new();
        for (scheme, _, measured) in schemes.iter().filter(|(scheme, ..)| !newcomers.contains(scheme)) {
            for (point, measured) in measured {
                let of = |by_seed: &Vec<f64>| BestCell { scheme: scheme.clone(), by_seed: by_seed.clone() };
                let Some(best) = points.iter_mut().find(|best| best.point == *point) else {
                    let cells = measured.cells.iter().map(of).collect();
                    points.push(Best { point: point.clone(), seeds: measured.seeds.clone(), cells });
                    continue;
                };
                if best.seeds != measured.seeds {
                    return Err(other_seeds(scheme, best, measured));
                }
                for (best, by_seed) in best.cells.iter_mut().zip(&measured.cells) {
                    if mean(by_seed) < best.mean() {
                        *best = of(by_seed);
                    }
                }
            }
        }
        let scenario = runs.first().map_or_else(String::new, |run| run.manifest.scenario.clone());
        let reference = Self { scenario, cells: cells.to_vec(), points };
        reference.check_runs(runs)?;
        Ok(reference)
    }

    /// Refuses a damaged reference, since it may be from a file, and a reference of another scenario than `scenario`. Does
    /// not compare its points and seeds with any runs.
    ///
    /// # Errors
    /// When there are no metrics or points, a metric cannot be read, or a value is missing or duplicate; also when the
    /// scenario is another one.
    pub fn check(&self, scenario: &str) -> Result<(), ScoreError> {
        parsed(&self.cells)?;
        if self.points.is_empty() {
            return Err(ScoreError::Nothing);
        }
        let is_whole = |best: &&Best| {
            let of_cell = |cell: &BestCell| {
                cell.by_seed.len() == best.seeds.len() && cell.by_seed.iter().all(|it| it.is_normal() && *it > 0.0)
            };
            let in_order = best.seeds.is_sorted_by(|one, next| one < next);
            let once = self.points.iter().filter(|other| other.point == best.point).count() == 1;
            let is_full = !best.seeds.is_empty() && best.cells.len() == self.cells.len();
            once && in_order && is_full && best.cells.iter().all(of_cell)
        };
        let is_duplicate = |metric: &&String| self.cells.iter().filter(|other| other == metric).count() > 1;
        if let Some(metric) = self.cells.iter().find(is_duplicate) {
            return Err(ScoreError::DuplicateMetric { metric: metric.clone() });
        }
        if let Some(best) = self.points.iter().find(|best| !is_whole(best)) {
            let (cells, seeds) = (self.cells.len(), best.seeds.len());
            return Err(ScoreError::Reference { point: best.point.clone(), cells, seeds });
        }
        if scenario != self.scenario {
            return Err(ScoreError::Scenario { actual: scenario.to_owned(), expected: self.scenario.clone() });
        }
        Ok(())
    }

    /// Refuses runs of another scenario, and a reference without one of its values.
    fn check_runs(&self, runs: &[RunResults]) -> Result<(), ScoreError> {
        runs.iter().try_for_each(|run| self.check(&run.manifest.scenario))
    }

    /// The scores of these runs' schemes, the least G first. Runs may have some of the reference's seeds alone; then only
    /// these count.
    ///
    /// # Errors
    /// As [`Reference::of`]; also when the runs are of other points or seeds than the reference.
    pub fn scores(&self, runs: &[RunResults]) -> Result<Vec<Score>, ScoreError> {
        self.check_runs(runs)?;
        let schemes = measured(&self.cells, runs)?;
        let mut scores = schemes.iter().map(|scheme| self.score(scheme)).collect::<Result<Vec<_>, _>>()?;
        scores.sort_by(|a, b| a.g.total_cmp(&b.g));
        Ok(scores)
    }

    fn score(&self, (scheme, label, points): &OfScheme) -> Result<Score, ScoreError> {
        if let Some((point, _)) = points.iter().find(|(point, _)| self.points.iter().all(|best| best.point != *point)) {
            let known: Vec<String> = self.points.iter().map(|best| format!("`{}`", best.point)).collect();
            return Err(ScoreError::Point { point: point.clone(), known: known.join(", ") });
        }
        let mut ratios = Vec::new();
        let mut logs_by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for best in &self.points {
            let Some((_, measured)) = points.iter().find(|(point, _)| *point == best.point) else {
                return Err(ScoreError::Missing { scheme: scheme.clone(), point: best.point.clone() });
            };
            let indices: Option<Vec<usize>> =
                measured.seeds.iter().map(|seed| best.seeds.iter().position(|other| other == seed)).collect();
            let indices = indices.ok_or_else(|| other_seeds(scheme, best, measured))?;
            let mut of_point = Vec::new();
            for (best, own) in best.cells.iter().zip(&measured.cells) {
                let best_values: Vec<f64> = indices.iter().map(|&index| best.by_seed[index]).collect();
                of_point.push(mean(own) / mean(&best_values));
                for ((seed, own), best_value) in measured.seeds.iter().zip(own).zip(&best_values) {
                    logs_by_seed.entry(*seed).or_default().push((own / best_value).ln());
                }
            }
            ratios.push((best.point.clone(), of_point));
        }
        let all: Vec<f64> = ratios.iter().flat_map(|(_, ratios)| ratios).copied().collect();
        let g = mean(&all.iter().map(|ratio| ratio.ln()).collect::<Vec<_>>()).exp();
        let of_seeds: Vec<(u64, f64)> = logs_by_seed.iter().map(|(seed, logs)| (*seed, mean(logs))).collect();
        let logs: Vec<f64> = of_seeds.iter().map(|(_, log)| *log).collect();
        let margin = Mean::of_numbers(&logs).and_then(|mean| mean.margin);
        let interval = margin.map(|margin| [g * (-margin).exp(), g * margin.exp()]);
        let cells = ratios
            .iter()
            .flat_map(|(point, ratios)| ratios.iter().zip(&self.cells).map(move |(ratio, cell)| (*ratio, point, cell)));
        let worst = cells.max_by(|a, b| a.0.total_cmp(&b.0)).ok_or(ScoreError::Nothing)?;
        let (w, worst) = (worst.0, (worst.1.clone(), worst.2.clone()));
        let by_seed = of_seeds.into_iter().map(|(seed, log)| (seed, log.exp())).collect();
        Ok(Score { scheme: scheme.clone(), label: label.clone(), ratios, g, interval, by_seed, w, worst })
    }
}

fn other_seeds(scheme: &str, best: &Best, measured: &SchemeMeasurements) -> ScoreError {
    ScoreError::Seeds {
        scheme: scheme.to_owned(),
        point: best.point.clone(),
        actual: listed(&measured.seeds),
        expected: listed(&best.seeds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use serde_json::json;

    /// A run with these numbers of drops and timeouts.
    fn run(scheme: &str, load: f64, seed: u64, drops: u64, timeouts: u64) -> RunResults {
        let mut run = testbed::results();
        run.manifest.label = scheme.to_uppercase();
        run.manifest.run = format!("{scheme},load={load},seed={seed}");
        run.manifest.point.0 =
            vec![("scheme".into(), json!(scheme)), ("load".into(), json!(load)), ("seed".into(), json!(seed))];
        run.summary.seed = seed;
        (run.summary.network.drops, run.summary.network.timeouts) = (drops, timeouts);
        run
    }

    fn cells() -> Vec<String> {
        ["network.drops", "network.timeouts"].map(str::to_owned).into()
    }

    /// At load 0.4 the least drops are 2 (b), the least timeouts 10 (a); at 0.8 they are 4 (a) and 20 (b).
    fn schemes() -> Vec<RunResults> {
        vec![run("a", 0.4, 1, 8, 10), run("b", 0.4, 1, 2, 20), run("a", 0.8, 1, 4, 40), run("b", 0.8, 1, 16, 20)]
    }

    #[test]
    fn ratios_are_relative_to_the_best_cell() {
        let reference = Reference::of(&cells(), &schemes(), &[]).unwrap();
        let best: Vec<&str> =
            reference.points.iter().flat_map(|best| best.cells.iter().map(|cell| cell.scheme.as_str())).collect();
        assert_eq!(best, ["b", "a", "a", "b"]);
        let scores = reference.scores(&schemes()).unwrap();
        // a: 4, 1, 1, 2; b: 1, 2, 4, 1.
        let eight = 8f64.powf(0.25);
        assert!(scores.iter().all(|score| (score.g - eight).abs() < 1e-12 && score.w.to_bits() == 4f64.to_bits()));
        assert_eq!(scores[0].interval, None);
        let a = scores.iter().find(|score| score.scheme == "a").unwrap();
        assert_eq!(a.worst, ("load = 0.4".to_owned(), "network.drops".to_owned()));
        // One that the reference does not have beats it in every cell.
        let new = [run("n", 0.4, 1, 1, 5), run("n", 0.8, 1, 2, 10)];
        let score = &reference.scores(&new).unwrap()[0];
        assert_eq!((score.label.as_str(), score.g, score.w), ("N", 0.5, 0.5));
        // One that does not count is over the best of the others.
        let without_b = Reference::of(&cells(), &schemes(), &["b".to_owned()]).unwrap();
        let b = without_b.scores(&schemes()).unwrap().into_iter().find(|score| score.scheme == "b").unwrap();
        assert_eq!(b.ratios[0].1, [0.25, 2.0]);
        let refused = |newcomers: &[&str]| {
            let newcomers: Vec<String> = newcomers.iter().map(|name| (*name).to_owned()).collect();
            Reference::of(&cells(), &schemes(), &newcomers).unwrap_err().to_string()
        };
        assert_eq!(refused(&["c"]), "there is no scheme `c`; there are a, b");
        let all = "all schemes are newcomers (a, b), so there is none to compare them with: leave one out";
        assert_eq!(refused(&["a", "b"]), all);
        // As a file.
        let text = serde_json::to_string(&reference).unwrap();
        assert_eq!(serde_json::from_str::<Reference>(&text).unwrap(), reference);
    }

    /// A scheme that is 10 % worse under each seed is so surely, however different the seeds are.
    #[test]
    fn the_interval_is_of_paired_seeds() {
        let of = |scheme: &str, scale: u64| -> Vec<RunResults> {
            (1..=3).map(|seed| run(scheme, 0.4, seed, scale * 10u64.pow(seed as u32), scale * seed)).collect()
        };
        let reference = Reference::of(&cells(), &of("a", 10), &[]).unwrap();
        let score = &reference.scores(&of("b", 11)).unwrap()[0];
        let [low, high] = score.interval.unwrap();
        assert!((score.g - 1.1).abs() < 1e-12 && high - low < 1e-9, "{score:?}");
        // Of one seed alone, or of two.
        let two = reference.scores(&of("b", 11)[1..]).unwrap().remove(0);
        assert!((two.g - 1.1).abs() < 1e-12 && two.by_seed.iter().map(|(seed, _)| *seed).eq([2, 3]), "{two:?}");
        assert_eq!(reference.scores(&of("b", 11)[2..]).unwrap()[0].interval, None);
    }

    #[test]
    fn p99_of_few_flows_is_warned_of() {
        let metrics = ["p99(slowdown)", "2 * inter.fct.p99", "fct.p50", "network.drops", "max(fct.p99, 1 ms)"];
        let notes = of_few(&metrics.map(str::to_owned), &schemes());
        let few = [("p99(slowdown)", 5), ("2 * inter.fct.p99", 2), ("max(fct.p99, 1 ms)", 5)];
        let words =
            |(metric, flows)| format!("`{metric}` is of {flows} flows in some run: one of the slowest decides it");
        assert_eq!(notes, few.map(words));
    }

    #[test]
    fn incomparable_runs_are_errors() {
        let reference = Reference::of(&cells(), &schemes(), &[]).unwrap();
        let error_of = |runs: &[RunResults]| reference.scores(runs).unwrap_err().to_string();
        assert_eq!(
            error_of(&[run("n", 0.4, 2, 1, 5), run("n", 0.8, 2, 2, 10)]),
            "n at `load = 0.4`: these runs have the seeds 2, and the reference has 1"
        );
        assert_eq!(error_of(&[run("n", 0.4, 1, 1, 5)]), "n was not run at `load = 0.8`, where the reference was");
        assert!(
            error_of(&[run("n", 0.6, 1, 1, 5)]).contains("no point `load = 0.6`; it has `load = 0.4`, `load = 0.8`")
        );
        assert!(error_of(&[run("n", 0.4, 1, 0, 5), run("n", 0.8, 1, 2, 10)]).contains("no `network.drops` over zero"));
        assert!(matches!(Reference::of(&["network.drop".to_owned()], &schemes(), &[]), Err(ScoreError::Metric { .. })));
        assert_eq!(Reference::of(&[], &schemes(), &[]), Err(ScoreError::Nothing));
        let mut other = schemes();
        other[3].manifest.scenario = "other".into();
        assert!(error_of(&other).contains("`other`"));
        // An edited reference causes no excessive size and no invalid index.
        let broken: [fn(&mut Reference); 7] = [
            |it| it.points[0].cells.truncate(1),
            |it| it.points[1].cells[1].by_seed.clear(),
            |it| it.points[0].cells[0].by_seed[0] = 0.0,
            |it| it.points[0].cells[0].by_seed[0] = 1e-320,
            |it| {
                it.points[0].seeds.push(1);
                it.points[0].cells.iter_mut().for_each(|cell| cell.by_seed.push(1.0));
            },
            |it| it.points[1].point = it.points[0].point.clone(),
            |it| it.points[0].seeds.clear(),
        ];
        let twice = ["network.drops".to_owned(), "network.drops".to_owned()];
        assert!(matches!(Reference::of(&twice, &schemes(), &[]), Err(ScoreError::DuplicateMetric { .. })));
        let after = |change: &dyn Fn(&mut Reference)| {
            let mut reference = reference.clone();
            change(&mut reference);
            reference.scores(&schemes())
        };
        for change in broken {
            assert!(matches!(after(&change), Err(ScoreError::Reference { .. })));
        }
        assert_eq!(after(&|it| it.points.clear()), Err(ScoreError::Nothing));
        assert_eq!(after(&|it| it.cells.clear()), Err(ScoreError::Nothing));
        assert!(matches!(after(&|it| it.cells[0] = "p99(".into()), Err(ScoreError::Metric { .. })));
    }
}
