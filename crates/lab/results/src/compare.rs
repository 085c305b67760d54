//! Two runs, or two sets of runs, side by side.

use serde::Serialize;

use crate::input::{BackendKind, Validity};
use crate::summary::{FlowGroupStats, Summary};

/// The unit of a metric; also the last word of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum MetricUnit {
    Ns,
    Ratio,
    Bps,
    Bytes,
    Count,
    Index,
}

/// The better direction of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither: shown, never a regression.
    Neither,
}

/// The change of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricChange {
    /// Within the tolerance.
    Same,
    /// Better by more than the tolerance.
    Improved,
    /// Worse by more than the tolerance, or no longer measured.
    Regressed,
    /// Beyond the tolerance, where neither way is better, or measured only now.
    Different,
}

/// One metric of two runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricComparison {
    /// Its name: `all.fct_ns.p99`, `network.drops`.
    pub metric: String,
    /// The unit.
    pub kind: MetricUnit,
    /// The better direction.
    pub better: Better,
    /// In the first run; null if it was not measured there.
    pub before: Option<f64>,
    /// In the second run.
    pub after: Option<f64>,
    /// The second over the first; null without both, or if the first is 0.
    pub ratio: Option<f64>,
    /// The change.
    pub change: MetricChange,
}

/// Two runs side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunComparison {
    /// The first run's id.
    pub before: String,
    /// The second run's id.
    pub after: String,
    /// The backend of the first run.
    pub before_backend: BackendKind,
    /// The backend of the second run.
    pub after_backend: BackendKind,
    /// The worse verdict of the two runs, if one of them is not sound.
    pub unsound: Option<Validity>,
    /// Their metrics; those that neither measured are left out.
    pub rows: Vec<MetricComparison>,
}

impl RunComparison {
    /// Returns whether any metric got worse.
    pub fn regressed(&self) -> bool {
        self.rows.iter().any(|row| row.change == MetricChange::Regressed)
    }
}

/// Two sets of runs side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunsComparison {
    /// The share by which a metric may change and count as the same.
    pub tolerance: f64,
    /// Runs that are in both sets, in the order of the first.
    pub pairs: Vec<RunComparison>,
    /// Ids of runs that only the first set has.
    pub only_before: Vec<String>,
    /// Ids of runs that only the second set has.
    pub only_after: Vec<String>,
}

impl RunsComparison {
    /// Returns whether any metric of any run got worse, or a run is missing.
    pub fn regressed(&self) -> bool {
        !self.only_before.is_empty() || self.pairs.iter().any(RunComparison::regressed)
    }
}

/// Compares two sets of runs, by id; two sets of one run each are compared whatever their ids. `tolerance` is a
/// share, 0.05 for 5 %.
pub fn compare(before: &[&Summary], after: &[&Summary], tolerance: f64) -> RunsComparison {
    let matched = matched(before, after, |summary| &summary.run);
    RunsComparison {
        tolerance,
        pairs: matched.pairs.into_iter().map(|(one, two)| pair(one, two, tolerance)).collect(),
        only_before: matched.only_before,
        only_after: matched.only_after,
    }
}

/// Runs of two sets that belong together.
pub(crate) struct Matched<'a, T> {
    /// In the order of the first set.
    pub(crate) pairs: Vec<(&'a T, &'a T)>,
    /// Ids of runs that only the first set has.
    pub(crate) only_before: Vec<String>,
    /// Ids of runs that only the second set has.
    pub(crate) only_after: Vec<String>,
}

/// Matches runs by id; two sets of one run each match regardless of their ids.
pub(crate) fn matched<'a, T>(before: &[&'a T], after: &[&'a T], id: impl Fn(&T) -> &str) -> Matched<'a, T> {
    if let ([before], [after]) = (before, after) {
        return Matched { pairs: vec![(before, after)], only_before: Vec::new(), only_after: Vec::new() };
    }
    let find = |one: &T, among: &[&'a T]| among.iter().copied().find(|two| id(two) == id(one));
    let missing = |from: &[&T], other: &[&'a T]| {
        from.iter().filter(|one| find(one, other).is_none()).map(|one| id(one).to_owned()).collect()
    };
    Matched {
        pairs: before.iter().filter_map(|&one| Some((one, find(one, after)?))).collect(),
        only_before: missing(before, after),
        only_after: missing(after, before),
    }
}

fn pair(before: &Summary, after: &Summary, tolerance: f64) -> RunComparison {
    let (one, two) = (metrics(before), metrics(after));
    let mut names: Vec<&Metric> = one.iter().collect();
    names.extend(two.iter().filter(|metric| !one.iter().any(|known| known.name == metric.name)));
    let value =
        |of: &[Metric], name: &str| of.iter().find(|metric| metric.name == name).and_then(|metric| metric.value);
    // Real packets are not better or worse than simulated ones.
    let better = |metric: &Metric| if before.backend == after.backend { metric.better } else { Better::Neither };
    let rows = names.into_iter().filter_map(|metric| {
        let (before, after) = (value(&one, &metric.name), value(&two, &metric.name));
        (before.is_some() || after.is_some()).then(|| MetricComparison {
            metric: metric.name.clone(),
            kind: metric.kind,
            better: better(metric),
            before,
            after,
            ratio: before.zip(after).filter(|&(before, _)| before != 0.0).map(|(before, after)| after / before),
            change: change(before, after, better(metric), tolerance),
        })
    });
    RunComparison {
        before: before.run.clone(),
        after: after.run.clone(),
        before_backend: before.backend,
        after_backend: after.backend,
        unsound: Validity::worse(before.emulator.as_ref(), after.emulator.as_ref()),
        rows: rows.collect(),
    }
}

fn change(before: Option<f64>, after: Option<f64>, better: Better, tolerance: f64) -> MetricChange {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (Some(_), None) if better != Better::Neither => return MetricChange::Regressed,
        (None, None) => return MetricChange::Same,
        _ => return MetricChange::Different,
    };
    if (after - before).abs() <= tolerance * before.abs() {
        return MetricChange::Same;
    }
    match better {
        Better::Neither => MetricChange::Different,
        Better::Lower if after < before => MetricChange::Improved,
        Better::Higher if after > before => MetricChange::Improved,
        Better::Lower | Better::Higher => MetricChange::Regressed,
    }
}

struct Metric {
    name: String,
    kind: MetricUnit,
    better: Better,
    value: Option<f64>,
}

/// Returns the metrics to compare, in display order.
fn metrics(summary: &Summary) -> Vec<Metric> {
    let mut all = Vec::new();
    let mut add = |name: String, kind, better, value| all.push(Metric { name, kind, better, value });
    for (class, cell) in summary.classes().filter(|(_, cell)| cell.count > 0) {
        let FlowGroupStats { count, completed, fct_ns, slowdown, goodput_bps } = cell;
        add(format!("{class}.count"), MetricUnit::Count, Better::Neither, Some(*count as f64));
        add(format!("{class}.completed"), MetricUnit::Count, Better::Neither, Some(*completed as f64));
        add(format!("{class}.unfinished"), MetricUnit::Count, Better::Lower, Some((count - completed) as f64));
        for (stat, value) in [("mean", fct_ns.mean), ("p50", fct_ns.p50), ("p99", fct_ns.p99), ("max", fct_ns.max)] {
            add(format!("{class}.fct_ns.{stat}"), MetricUnit::Ns, Better::Lower, value);
        }
        for (stat, value) in [("mean", slowdown.mean), ("p99", slowdown.p99)] {
            add(format!("{class}.slowdown.{stat}"), MetricUnit::Ratio, Better::Lower, value);
        }
        add(format!("{class}.goodput_bps"), MetricUnit::Bps, Better::Higher, Some(*goodput_bps as f64));
    }
    let fair = &summary.fairness;
    add("fairness.jain_mean".into(), MetricUnit::Index, Better::Higher, fair.jain_mean);
    add("fairness.jain_final".into(), MetricUnit::Index, Better::Higher, fair.jain_final);
    add("fairness.converged_at_ns".into(), MetricUnit::Ns, Better::Lower, fair.converged_at_ns.map(|ns| ns as f64));
    let network = &summary.network;
    for (name, kind, better, value) in [
        ("data_packets", MetricUnit::Count, Better::Neither, network.data_packets),
        ("drops", MetricUnit::Count, Better::Lower, network.drops),
        ("ecn_marks", MetricUnit::Count, Better::Neither, network.ecn_marks),
        ("retransmits", MetricUnit::Count, Better::Lower, network.retransmits),
        ("timeouts", MetricUnit::Count, Better::Lower, network.timeouts),
        ("pfc_pauses", MetricUnit::Count, Better::Lower, network.pfc_pauses),
        ("max_queue_bytes", MetricUnit::Bytes, Better::Lower, network.max_queue_bytes),
    ] {
        add(format!("network.{name}"), kind, better, Some(value as f64));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    fn summary() -> Summary {
        testbed::results().summary
    }

    fn row<'a>(pair: &'a RunComparison, metric: &str) -> &'a MetricComparison {
        pair.rows.iter().find(|row| row.metric == metric).unwrap()
    }

    #[test]
    fn run_compared_with_itself_has_no_differences() {
        let one = summary();
        let comparison = compare(&[&one], &[&one], 0.0);
        assert!(!comparison.regressed());
        let rows = &comparison.pairs[0].rows;
        assert!(rows.len() > 30 && rows.iter().all(|row| row.change == MetricChange::Same));
        assert!(rows.iter().all(|row| row.metric != "collectives.count"));
    }

    #[test]
    fn worse_beyond_the_tolerance_is_a_regression() {
        let one = summary();
        let mut two = summary();
        two.run = "other".into();
        let p99 = &mut two.flows.all.fct_ns.p99;
        *p99 = p99.map(|ns| ns * 1.04);
        two.flows.inter.goodput_bps = two.flows.inter.goodput_bps * 104 / 100;
        two.network.ecn_marks *= 2;
        let lenient = compare(&[&one], &[&two], 0.05);
        assert!(!lenient.regressed());
        assert_eq!(row(&lenient.pairs[0], "network.ecn_marks").change, MetricChange::Different);
        let strict = compare(&[&one], &[&two], 0.03);
        assert!(strict.regressed());
        let worse = row(&strict.pairs[0], "all.fct_ns.p99");
        assert_eq!((worse.change, worse.better), (MetricChange::Regressed, Better::Lower));
        assert!((worse.ratio.unwrap() - 1.04).abs() < 1e-9);
        assert_eq!(row(&strict.pairs[0], "inter.goodput_bps").change, MetricChange::Improved);
        // From nothing to something has no ratio and is beyond any tolerance.
        two.network.drops = 1;
        let dropped = compare(&[&one], &[&two], 0.5);
        assert_eq!((row(&dropped.pairs[0], "network.drops").ratio, dropped.regressed()), (None, true));
    }

    #[test]
    fn real_packets_are_no_regression_of_simulated_ones() {
        let one = summary();
        let mut two = summary();
        two.backend = BackendKind::Emulator;
        two.network.drops += 1_000;
        let comparison = compare(&[&one], &[&two], 0.05);
        assert!(!comparison.regressed());
        assert_eq!(row(&comparison.pairs[0], "network.drops").change, MetricChange::Different);
        assert_eq!((comparison.pairs[0].before_backend, comparison.pairs[0].after_backend), (one.backend, two.backend));
    }

    #[test]
    fn missing_measurement_is_a_regression() {
        let mut one = summary();
        let mut two = summary();
        one.fairness.jain_final = Some(0.99);
        two.fairness.jain_final = None;
        assert!(compare(&[&one], &[&two], 0.1).regressed());
        assert!(!compare(&[&two], &[&one], 0.1).regressed());
    }

    #[test]
    fn sets_are_matched_by_id() {
        let named = |id: &str| Summary { run: id.into(), ..summary() };
        let (a, b, c) = (named("a"), named("b"), named("c"));
        let comparison = compare(&[&a, &b], &[&c, &b], 0.0);
        assert_eq!(comparison.pairs.len(), 1);
        assert_eq!(
            (comparison.only_before.as_slice(), comparison.only_after.as_slice()),
            (&["a".into()][..], &["c".into()][..])
        );
        assert!(comparison.regressed());
        assert!(!compare(&[&a, &b], &[&b, &a, &c], 0.0).regressed());
    }
}
