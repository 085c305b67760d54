//! Two runs, or two sets of runs, side by side.

use serde::Serialize;

use crate::input::{Host, Soundness};
use crate::summary::{Cell, Summary};

/// The unit of a metric; also the last word of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Kind {
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
pub enum Change {
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
pub struct Row {
    /// Its name: `all.fct_ns.p99`, `network.drops`.
    pub metric: String,
    /// The unit.
    pub kind: Kind,
    /// The better direction.
    pub better: Better,
    /// In the first run; null if it was not measured there.
    pub before: Option<f64>,
    /// In the second run.
    pub after: Option<f64>,
    /// The second over the first; null without both, or if the first is 0.
    pub ratio: Option<f64>,
    /// The change.
    pub change: Change,
}

/// Two runs side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// The first run's id.
    pub before: String,
    /// The second run's id.
    pub after: String,
    /// The backend of the first run.
    pub before_host: Host,
    /// The backend of the second run.
    pub after_host: Host,
    /// The worse verdict of the two runs, if one of them is not sound.
    pub unsound: Option<Soundness>,
    /// Their metrics; those that neither measured are left out.
    pub rows: Vec<Row>,
}

impl Pair {
    /// Returns whether any metric got worse.
    pub fn regressed(&self) -> bool {
        self.rows.iter().any(|row| row.change == Change::Regressed)
    }
}

/// Two sets of runs side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The share by which a metric may change and count as the same.
    pub tolerance: f64,
    /// Runs that are in both sets, in the order of the first.
    pub pairs: Vec<Pair>,
    /// Ids of runs that only the first set has.
    pub only_before: Vec<String>,
    /// Ids of runs that only the second set has.
    pub only_after: Vec<String>,
}

impl Comparison {
    /// Returns whether any metric of any run got worse, or a run is missing.
    pub fn regressed(&self) -> bool {
        !self.only_before.is_empty() || self.pairs.iter().any(Pair::regressed)
    }
}

/// Compares two sets of runs, by id; two sets of one run each are compared whatever their ids. `tolerance` is a
/// share, 0.05 for 5 %.
pub fn compare(before: &[&Summary], after: &[&Summary], tolerance: f64) -> Comparison {
    let matched = matched(before, after, |summary| &summary.run);
    Comparison {
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

/// Matches runs by id; two sets of one run each match whatever their ids.
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

fn pair(before: &Summary, after: &Summary, tolerance: f64) -> Pair {
    let (one, two) = (metrics(before), metrics(after));
    let mut names: Vec<&Metric> = one.iter().collect();
    names.extend(two.iter().filter(|metric| !one.iter().any(|known| known.name == metric.name)));
    let value =
        |of: &[Metric], name: &str| of.iter().find(|metric| metric.name == name).and_then(|metric| metric.value);
    // Real packets are not better or worse than simulated ones.
    let better = |metric: &Metric| if before.host == after.host { metric.better } else { Better::Neither };
    let rows = names.into_iter().filter_map(|metric| {
        let (before, after) = (value(&one, &metric.name), value(&two, &metric.name));
        (before.is_some() || after.is_some()).then(|| Row {
            metric: metric.name.clone(),
            kind: metric.kind,
            better: better(metric),
            before,
            after,
            ratio: before.zip(after).filter(|&(before, _)| before != 0.0).map(|(before, after)| after / before),
            change: change(before, after, better(metric), tolerance),
        })
    });
    Pair {
        before: before.run.clone(),
        after: after.run.clone(),
        before_host: before.host,
        after_host: after.host,
        unsound: Soundness::worse(before.emulator.as_ref(), after.emulator.as_ref()),
        rows: rows.collect(),
    }
}

fn change(before: Option<f64>, after: Option<f64>, better: Better, tolerance: f64) -> Change {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (Some(_), None) if better != Better::Neither => return Change::Regressed,
        (None, None) => return Change::Same,
        _ => return Change::Different,
    };
    if (after - before).abs() <= tolerance * before.abs() {
        return Change::Same;
    }
    match better {
        Better::Neither => Change::Different,
        Better::Lower if after < before => Change::Improved,
        Better::Higher if after > before => Change::Improved,
        Better::Lower | Better::Higher => Change::Regressed,
    }
}

struct Metric {
    name: String,
    kind: Kind,
    better: Better,
    value: Option<f64>,
}

/// Returns the metrics to compare, in display order.
fn metrics(summary: &Summary) -> Vec<Metric> {
    let mut all = Vec::new();
    let mut add = |name: String, kind, better, value| all.push(Metric { name, kind, better, value });
    for (class, cell) in summary.classes().filter(|(_, cell)| cell.count > 0) {
        let Cell { count, completed, fct_ns, slowdown, goodput_bps } = cell;
        add(format!("{class}.count"), Kind::Count, Better::Neither, Some(*count as f64));
        add(format!("{class}.completed"), Kind::Count, Better::Neither, Some(*completed as f64));
        add(format!("{class}.unfinished"), Kind::Count, Better::Lower, Some((count - completed) as f64));
        for (stat, value) in [("mean", fct_ns.mean), ("p50", fct_ns.p50), ("p99", fct_ns.p99), ("max", fct_ns.max)] {
            add(format!("{class}.fct_ns.{stat}"), Kind::Ns, Better::Lower, value);
        }
        for (stat, value) in [("mean", slowdown.mean), ("p99", slowdown.p99)] {
            add(format!("{class}.slowdown.{stat}"), Kind::Ratio, Better::Lower, value);
        }
        add(format!("{class}.goodput_bps"), Kind::Bps, Better::Higher, Some(*goodput_bps as f64));
    }
    let fair = &summary.fairness;
    add("fairness.jain_mean".into(), Kind::Index, Better::Higher, fair.jain_mean);
    add("fairness.jain_final".into(), Kind::Index, Better::Higher, fair.jain_final);
    add("fairness.converged_at_ns".into(), Kind::Ns, Better::Lower, fair.converged_at_ns.map(|ns| ns as f64));
    let network = &summary.network;
    for (name, kind, better, value) in [
        ("data_packets", Kind::Count, Better::Neither, network.data_packets),
        ("drops", Kind::Count, Better::Lower, network.drops),
        ("ecn_marks", Kind::Count, Better::Neither, network.ecn_marks),
        ("retransmits", Kind::Count, Better::Lower, network.retransmits),
        ("timeouts", Kind::Count, Better::Lower, network.timeouts),
        ("pfc_pauses", Kind::Count, Better::Lower, network.pfc_pauses),
        ("max_queue_bytes", Kind::Bytes, Better::Lower, network.max_queue_bytes),
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

    fn row<'a>(pair: &'a Pair, metric: &str) -> &'a Row {
        pair.rows.iter().find(|row| row.metric == metric).unwrap()
    }

    #[test]
    fn a_run_is_the_same_as_itself() {
        let one = summary();
        let comparison = compare(&[&one], &[&one], 0.0);
        assert!(!comparison.regressed());
        let rows = &comparison.pairs[0].rows;
        assert!(rows.len() > 30 && rows.iter().all(|row| row.change == Change::Same));
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
        assert_eq!(row(&lenient.pairs[0], "network.ecn_marks").change, Change::Different);
        let strict = compare(&[&one], &[&two], 0.03);
        assert!(strict.regressed());
        let worse = row(&strict.pairs[0], "all.fct_ns.p99");
        assert_eq!((worse.change, worse.better), (Change::Regressed, Better::Lower));
        assert!((worse.ratio.unwrap() - 1.04).abs() < 1e-9);
        assert_eq!(row(&strict.pairs[0], "inter.goodput_bps").change, Change::Improved);
        // From nothing to something has no ratio and is beyond any tolerance.
        two.network.drops = 1;
        let dropped = compare(&[&one], &[&two], 0.5);
        assert_eq!((row(&dropped.pairs[0], "network.drops").ratio, dropped.regressed()), (None, true));
    }

    #[test]
    fn real_packets_are_no_regression_of_simulated_ones() {
        let one = summary();
        let mut two = summary();
        two.host = Host::Emulator;
        two.network.drops += 1_000;
        let comparison = compare(&[&one], &[&two], 0.05);
        assert!(!comparison.regressed());
        assert_eq!(row(&comparison.pairs[0], "network.drops").change, Change::Different);
        assert_eq!((comparison.pairs[0].before_host, comparison.pairs[0].after_host), (one.host, two.host));
    }

    #[test]
    fn what_is_no_longer_measured_is_a_regression() {
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
