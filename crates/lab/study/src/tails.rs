//! Slowdowns over all seeds together and the slowest flows, for the page. Both are computed by the code of
//! `narrows show` and `narrows explain`.
//!
//! They need every flow of a point's runs at once, but the flows of a study with several runs are on disk only. So they
//! are read back, one point of the grid at a time on each thread, and on fewer threads if points are large: see
//! [`FLOWS`]. Columns in memory would instead have to hold most attributes of a flow, for all runs of the study.

use std::borrow::Cow;
use std::collections::BTreeMap;

use report::{Counted, SlowFlow, SlowestOfClass};
use results::RunResults;
use results::averages::points;
use results::explain::{ExplainedScheme, FlowAttribute, SHARE, SlowFlowEntry, SlowestFlows, ValueKind, by_scheme};
use results::pooled::{ConfidenceInterval, Pooled, pooled};
use units::Span;

use crate::workers::{run_parallel, threads};

/// Maximum number of schemes at points of the grid that the page includes: about a megabyte of the page, and minutes of
/// work if each has 100,000 flows. A point is included completely, and the first one always.
const MAX: usize = 200;
/// Number of the slowest flows of a class that are listed individually.
const LISTED: usize = 5;

/// Maximum number of flows of several points in memory at once: about a gigabyte. A single point may have more.
const FLOWS: u64 = 4_000_000;

/// Tail data of the page.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TailReport {
    /// Slowdowns over all seeds together, point by point.
    pub pooled: Vec<report::Pooled>,
    /// The slowest flows of each scheme, point by point.
    pub slowest: Vec<report::Slowest>,
    /// Number of omitted points of the grid: the last ones.
    pub left_out: u64,
}

/// Returns the attributes of the slowest flows, for [`report::Trait::counted`].
pub(crate) fn counted() -> Vec<Counted> {
    let kind = |attribute: FlowAttribute| match attribute.kind() {
        ValueKind::Number => "number",
        ValueKind::Bytes => "bytes",
        ValueKind::Share => "share",
    };
    FlowAttribute::ALL
        .map(|attribute| Counted { label: attribute.label().to_owned(), kind: kind(attribute).to_owned() })
        .to_vec()
}

/// Returns the tails of runs with flows in memory.
pub fn tails(runs: &[RunResults]) -> TailReport {
    let borrowed = |run| Ok::<_, std::convert::Infallible>(Cow::Borrowed(run));
    match read(runs, None, borrowed) {
        Ok(tails) => tails,
        Err(never) => match never {},
    }
}

/// Returns the tails of runs without their flows, which `with_flows` adds; on `on` threads, or one per core.
///
/// # Errors
/// See `with_flows`.
pub(crate) fn read<'a, E: Send>(
    runs: &'a [RunResults],
    on: Option<u16>,
    with_flows: impl Fn(&'a RunResults) -> Result<Cow<'a, RunResults>, E> + Sync,
) -> Result<TailReport, E> {
    let all = points(runs);
    let included = leading_points(&all.iter().map(|indices| schemes(runs, indices)).collect::<Vec<_>>());
    let of_point = |point: usize| {
        let indices = &all[point];
        let point_runs = indices.iter().map(|&index| with_flows(&runs[index])).collect::<Result<Vec<_>, E>>()?;
        let point_runs = || point_runs.iter().map(AsRef::as_ref);
        let index_of: BTreeMap<&str, usize> =
            indices.iter().map(|&index| (runs[index].manifest.run.as_str(), index)).collect();
        let index = |run: &str| index_of.get(run).copied().unwrap_or_default();
        let mut rows = Vec::new();
        for part in pooled(point_runs()) {
            rows.extend(part.rows.iter().map(|row| of_row(row, &part.first, index(&row.run))));
        }
        let slowest = |scheme: &ExplainedScheme| report::Slowest {
            run: scheme.runs.first().map_or(0, |run| index(run)),
            seeds: scheme.runs.len() as u64,
            classes: scheme.classes.iter().map(of_class).collect(),
        };
        Ok((rows, by_scheme(point_runs(), SHARE).iter().map(slowest).collect::<Vec<_>>()))
    };
    let mut tails = TailReport { left_out: (all.len() - included) as u64, ..TailReport::default() };
    let flows = |indices: &Vec<usize>| indices.iter().map(|&index| runs[index].summary.flows.all.count).sum();
    let largest = all[..included].iter().map(flows).max().unwrap_or_default();
    for result in run_parallel(concurrent_points(largest, threads(on)), included, of_point) {
        let (rows, slowest) = result?;
        tails.pooled.extend(rows);
        tails.slowest.extend(slowest);
    }
    Ok(tails)
}

/// Returns the number of schemes of the runs at these indices.
fn schemes(runs: &[RunResults], indices: &[usize]) -> usize {
    let mut labels: Vec<&str> = indices.iter().map(|&index| runs[index].manifest.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.len()
}

/// Returns how many leading points the page includes, from the number of schemes of each point.
fn leading_points(schemes: &[usize]) -> usize {
    let mut sum = 0;
    let fit = schemes.iter().take_while(|&&schemes| {
        sum += schemes;
        sum <= MAX
    });
    fit.count().max(1).min(schemes.len())
}

/// Returns the number of threads, at most `threads`, that process points with this many flows.
fn concurrent_points(flows: u64, threads: usize) -> usize {
    usize::try_from(FLOWS / flows.max(1)).map_or(threads, |fit| fit.clamp(1, threads.max(1)))
}

fn of_row(row: &Pooled, first: &str, run: usize) -> report::Pooled {
    let interval = |of: ConfidenceInterval| report::IntervalData { value: of.value, low: of.low, high: of.high };
    let ratio = |of: ConfidenceInterval| report::RatioData { of: interval(of), differs: of.excludes(1.0) };
    report::Pooled {
        run,
        class: row.class.name().to_owned(),
        seeds: row.seeds as u64,
        flows: row.flows as u64,
        few: row.is_of_few(),
        p50: interval(row.p50),
        p99: interval(row.p99),
        first: first.to_owned(),
        ratios: row.ratios.map(|ratios| ratios.map(ratio)),
    }
}

fn of_class(of: &SlowestFlows) -> SlowestOfClass {
    let index =
        |attribute: FlowAttribute| FlowAttribute::ALL.iter().position(|known| *known == attribute).unwrap_or_default();
    let one = |it: &results::explain::Trait| report::Trait {
        counted: index(it.attribute),
        slowest: it.slowest,
        typical: it.typical,
        stands_out: it.stands_out(),
    };
    SlowestOfClass {
        class: of.class.name().to_owned(),
        count: of.slowest.len() as u64,
        flows: of.flows as u64,
        unfinished: of.unfinished as u64,
        few: of.is_of_few(),
        traits: of.present().map(one).collect(),
        listed: of.slowest.iter().take(LISTED).map(of_flow).collect(),
    }
}

fn of_flow(slow: &SlowFlowEntry) -> SlowFlow {
    let row = &slow.row;
    let ns = |ps: u64| ps as f64 / 1e3;
    SlowFlow {
        seed: slow.seed,
        flow: row.flow.into(),
        src: row.src.into(),
        dst: row.dst.into(),
        size_bytes: row.size.get(),
        start_ns: ns(row.started.ps()),
        fct_ns: ns(row.fct().map_or(0, Span::unsigned_ps)),
        slowdown: slow.slowdown,
        marked_share: row.marked_share(),
        retransmitted_share: row.retransmitted_share(),
        timeouts: row.stats.timeouts.into(),
        quick_adapts: row.actions.quick_adapts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_points_are_included_completely() {
        assert_eq!(leading_points(&[5; 1_000]), 40);
        assert_eq!(leading_points(&[3, 2]), 2);
        // At least one.
        assert_eq!(leading_points(&[MAX + 1, 1]), 1);
        assert_eq!(leading_points(&[MAX - 1, 2, 1]), 1);
        assert_eq!(leading_points(&[]), 0);
    }

    #[test]
    fn large_points_are_processed_sequentially() {
        assert_eq!([0, 1_000, FLOWS / 3, FLOWS, u64::MAX].map(|flows| concurrent_points(flows, 8)), [8, 8, 3, 1, 1]);
    }
}
