//! Completion times, slowdowns and goodput of groups of flows.

use std::collections::{BTreeMap, BTreeSet};

use units::{Bytes, Rate, Span, Time};

use super::{DistributionStats, FlowGroupStats};
use crate::input::{Class, SizeBin};
use crate::ordered::Ordered;
use crate::stats;
use crate::tables::{FlowRow, FlowTable};

/// One thing that completes: a flow, or a group of flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    started: Time,
    completed: Time,
    ideal: Span,
    delivered: Bytes,
}

impl Task {
    /// Returns the duration in picoseconds, if the task is complete, and its ratio to the ideal time, if that is known.
    pub(crate) fn took(&self) -> Option<(u64, Option<f64>)> {
        let ps = self.completed.is_set().then(|| self.completed.since(self.started).unsigned_ps())?;
        Some((ps, (self.ideal > Span::ZERO).then(|| ps as f64 / self.ideal.ps() as f64)))
    }
}

impl From<&FlowRow> for Task {
    fn from(row: &FlowRow) -> Self {
        Self { started: row.started, completed: row.completed, ideal: row.ideal, delivered: row.delivered }
    }
}

/// The numbers of the flows that `wanted` picks; `ended` is the simulated time at the end of the run.
pub fn cell(flows: &FlowTable, ended: Time, wanted: impl Fn(&FlowRow) -> bool) -> FlowGroupStats {
    of_tasks(flows.rows.iter().filter(|row| wanted(row)).map(Task::from), ended)
}

/// The numbers of each size bin.
pub fn bin_cells(flows: &FlowTable, ended: Time, bins: &[SizeBin]) -> Ordered<FlowGroupStats> {
    Ordered(bins.iter().map(|bin| (bin.name.clone(), cell(flows, ended, |row| flows.is_in(row, bin)))).collect())
}

/// The numbers of a class of flows.
pub(crate) fn class_cell(flows: &FlowTable, ended: Time, class: Class) -> FlowGroupStats {
    cell(flows, ended, |row| row.class == class)
}

/// The numbers of requests.
pub(crate) fn request_cell(flows: &FlowTable, ended: Time) -> FlowGroupStats {
    of_tasks(requests(flows), ended)
}

/// The numbers of collective operations.
pub(crate) fn collective_cell(flows: &FlowTable, ended: Time) -> FlowGroupStats {
    of_tasks(collectives(flows), ended)
}

/// The same by the name of their traffic.
pub(crate) fn job_cells(flows: &FlowTable, ended: Time) -> Ordered<FlowGroupStats> {
    Ordered(jobs(flows).map(|(name, tasks)| (name.to_owned(), of_tasks(tasks, ended))).collect())
}

/// The requests. One lasts from its first flow's start to its last flow's completion; its ideal time is its slowest
/// flow's.
pub(crate) fn requests(flows: &FlowTable) -> impl Iterator<Item = Task> {
    group_tasks(flows, |row| Some((row.request?, Task::from(row))))
}

/// The collective operations. One lasts from when the last of its ranks begins that need nothing of it first, for till then
/// the wait is the last one's, to its last flow's completion; its ideal time is that of its longest chain of flows, each in
/// its ideal time.
pub(crate) fn collectives(flows: &FlowTable) -> impl Iterator<Item = Task> {
    let begins = begins(flows);
    group_tasks(flows, move |row| part_of_collective(row, &begins))
}

/// The collective operations of each job, which is a name of traffic.
pub(crate) fn jobs(flows: &FlowTable) -> impl ExactSizeIterator<Item = (&str, impl Iterator<Item = Task>)> {
    let is_job: BTreeSet<u32> =
        flows.rows.iter().filter(|row| row.collective.is_some()).map(|row| row.traffic).collect();
    let jobs: Vec<(u32, &str)> =
        is_job.into_iter().filter_map(|job| Some((job, flows.traffic.get(job as usize)?.as_str()))).collect();
    let begins = begins(flows);
    let of_job = move |job| group_tasks(flows, |row| part_of_collective(row, &begins).filter(|_| row.traffic == job));
    jobs.into_iter().map(move |(traffic, name)| (name, of_job(traffic)))
}

/// Returns the time at which the last rank of each collective operation begins: a rank begins with its first flow. Only
/// ranks with a flow that waits for no other flow of the operation count; a pipeline stage that waits for the previous
/// stage does not.
fn begins(flows: &FlowTable) -> BTreeMap<u32, Time> {
    let mut ranks: BTreeMap<(u32, u32), Time> = BTreeMap::new();
    for row in flows.rows.iter().filter(|row| row.ideal_start == Span::ZERO) {
        if let Some(collective) = row.collective {
            let begins = ranks.entry((collective, row.src)).or_insert(row.started);
            *begins = row.started.min(*begins);
        }
    }
    let mut begins = BTreeMap::new();
    for ((collective, _), rank) in ranks {
        let begin = begins.entry(collective).or_insert(rank);
        *begin = rank.max(*begin);
    }
    begins
}

fn part_of_collective(row: &FlowRow, begins: &BTreeMap<u32, Time>) -> Option<(u32, Task)> {
    let collective = row.collective?;
    let started = *begins.get(&collective)?;
    Some((collective, Task { started, ideal: row.ideal_start + row.ideal, ..Task::from(row) }))
}

/// Groups of flows, by number.
type FlowGroups = std::collections::btree_map::IntoValues<u32, Task>;

/// Flows that complete together, by the number of their group.
fn group_tasks(flows: &FlowTable, of: impl Fn(&FlowRow) -> Option<(u32, Task)>) -> FlowGroups {
    let mut groups: BTreeMap<u32, Task> = BTreeMap::new();
    for (group, flow) in flows.rows.iter().filter_map(of) {
        // `NEVER` is later than any time: a group with an open flow is open.
        let join = |rest: &mut Task| {
            *rest = Task {
                started: rest.started.min(flow.started),
                completed: rest.completed.max(flow.completed),
                ideal: rest.ideal.max(flow.ideal),
                delivered: rest.delivered + flow.delivered,
            };
        };
        groups.entry(group).and_modify(join).or_insert(flow);
    }
    groups.into_values()
}

fn of_tasks(tasks: impl Iterator<Item = Task>, ended: Time) -> FlowGroupStats {
    let mut cell = FlowGroupStats::default();
    let (mut fct_ps, mut slowdown) = (Vec::new(), Vec::new());
    let (mut first, mut last, mut delivered, mut open) = (Time::NEVER, Time::ZERO, 0u64, false);
    for task in tasks {
        cell.count += 1;
        first = first.min(task.started);
        delivered = delivered.saturating_add(task.delivered.get());
        let Some((ps, over_ideal)) = task.took() else {
            open |= task.started.is_set();
            continue;
        };
        cell.completed += 1;
        last = last.max(task.completed);
        fct_ps.push(ps);
        slowdown.extend(over_ideal);
    }
    let last = if open { ended } else { last };
    if first.is_set() && last > first {
        cell.goodput_bps = Rate::of(Bytes::new(delivered), last.since(first)).bps();
    }
    cell.fct_ns = spread_ns(fct_ps);
    cell.slowdown = spread(slowdown);
    cell
}

fn spread_ns(mut ps: Vec<u64>) -> DistributionStats {
    let mean = stats::mean(&ps).map(|mean| mean.round() / 1_000.0);
    ps.sort_unstable();
    let at = |percent| stats::nearest_rank(&ps, percent).map(stats::ns);
    DistributionStats { mean, p50: at(50), p90: at(90), p95: at(95), p99: at(99), max: at(100) }
}

fn spread(mut values: Vec<f64>) -> DistributionStats {
    let mean = stats::mean_real(&values);
    values.sort_unstable_by(f64::total_cmp);
    let at = |percent| stats::nearest_rank(&values, percent);
    DistributionStats { mean, p50: at(50), p90: at(90), p95: at(95), p99: at(99), max: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::flow_row;

    fn table(rows: Vec<FlowRow>) -> FlowTable {
        FlowTable { rows, laws: vec!["fixed".into()], ..FlowTable::default() }
    }

    #[test]
    fn a_class_in_numbers() {
        let rows = (1..=100).map(|n| FlowRow {
            started: Time::from_us(10),
            completed: Time::from_us(10 + n),
            ideal: Span::from_us(1),
            delivered: Bytes::new(1_000),
            ..flow_row(n as u32)
        });
        let cell = cell(&table(rows.collect()), Time::from_ms(9), |_| true);
        assert_eq!((cell.count, cell.completed), (100, 100));
        let times = [50_500.0, 50_000.0, 90_000.0, 95_000.0, 99_000.0, 100_000.0].map(Some);
        let DistributionStats { mean, p50, p90, p95, p99, max } = cell.fct_ns;
        assert_eq!([mean, p50, p90, p95, p99, max], times);
        assert_eq!((cell.slowdown.p99, cell.slowdown.mean), (Some(99.0), Some(50.5)));
        // 100 KB from 10 us to 110 us.
        assert_eq!(cell.goodput_bps, 8_000_000_000);
    }

    #[test]
    fn open_flows_count_and_unstarted_flows_do_not() {
        let done = FlowRow { completed: Time::from_us(1), delivered: Bytes::new(1_000), ..flow_row(0) };
        let open = FlowRow { completed: Time::NEVER, delivered: Bytes::new(1_000), ..flow_row(1) };
        let never = FlowRow { started: Time::NEVER, completed: Time::NEVER, delivered: Bytes::ZERO, ..flow_row(2) };
        let both = cell(&table(vec![done, never]), Time::from_us(4), |_| true);
        assert_eq!((both.count, both.completed, both.goodput_bps), (2, 1, 8_000_000_000));
        let all = cell(&table(vec![done, open, never]), Time::from_us(4), |_| true);
        assert_eq!((all.count, all.completed, all.goodput_bps), (3, 1, 4_000_000_000));
    }

    /// One rank begins at 10 us, the other has only then ended the iteration before, at 40 us: all are done at 90 us.
    #[test]
    fn collective_starts_with_its_last_rank() {
        let flow = |src, started_us, completed_us| FlowRow {
            src,
            collective: Some(0),
            started: Time::from_us(started_us),
            completed: Time::from_us(completed_us),
            ..flow_row(0)
        };
        let rows = vec![flow(0, 10, 30), flow(0, 60, 90), flow(1, 40, 60), flow(1, 45, 70)];
        let cell = collective_cell(&table(rows.clone()), Time::from_ms(1));
        assert_eq!((cell.count, cell.completed, cell.fct_ns.max), (1, 1, Some(50_000.0)));
        // A rank that waits for the others does not count.
        let mut waiting = rows.clone();
        waiting.push(FlowRow { ideal_start: Span::from_us(7), ..flow(2, 80, 90) });
        let cell = collective_cell(&table(waiting), Time::from_ms(1));
        assert_eq!(cell.fct_ns.max, Some(50_000.0));
        // A rank that never begins leaves it open.
        let mut rows = rows;
        (rows[2].started, rows[2].completed) = (Time::NEVER, Time::NEVER);
        (rows[3].started, rows[3].completed) = (Time::NEVER, Time::NEVER);
        let cell = collective_cell(&table(rows), Time::from_ms(1));
        assert_eq!((cell.count, cell.completed, cell.fct_ns.max), (1, 0, None));
    }

    #[test]
    fn jobs_are_identified_by_traffic_name() {
        let flow = |traffic, collective: Option<u32>, us| FlowRow {
            traffic,
            collective,
            completed: Time::from_us(us),
            ideal: Span::from_us(1),
            ..flow_row(0)
        };
        let rows =
            vec![flow(0, None, 9), flow(1, Some(0), 2), flow(1, Some(0), 4), flow(1, Some(1), 6), flow(2, Some(2), 8)];
        let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
        let two = FlowTable { traffic: names(["web", "llama", "mixtral"]), ..table(rows.clone()) };
        let cells = job_cells(&two, Time::from_ms(1));
        let of = |job: &str| cells.get(job).map(|cell| (cell.count, cell.fct_ns.mean));
        assert_eq!((of("llama"), of("mixtral")), (Some((2, Some(5_000.0))), Some((1, Some(8_000.0)))));
        assert_eq!(cells.iter().count(), 2);
        // A job that has not completed its second iteration.
        let mut open = rows[..4].to_vec();
        open[3].completed = Time::NEVER;
        let one = FlowTable { traffic: names(["web", "llama", "mixtral"]), ..table(open) };
        let cells = job_cells(&one, Time::from_ms(1));
        let cells: Vec<_> = cells.iter().map(|(name, cell)| (name, cell.count, cell.completed)).collect();
        assert_eq!(cells, [("llama", 2, 1)]);
    }

    #[test]
    fn empty_input_has_no_causes() {
        let cell = cell(&table(vec![flow_row(0)]), Time::from_us(4), |_| false);
        assert_eq!(cell, FlowGroupStats::default());
        assert_eq!(cell.fct_ns.p99, None);
    }

    #[test]
    fn picoseconds_survive() {
        let row = FlowRow { completed: Time::from_ps(14_027_521), ..flow_row(0) };
        assert_eq!(cell(&table(vec![row]), Time::ZERO, |_| true).fct_ns.mean, Some(14_027.521));
    }

    #[test]
    fn a_request_lasts_until_its_last_flow_ends() {
        let part = |flow: u32, started, completed| FlowRow {
            request: Some(flow / 2),
            started: Time::from_us(started),
            completed: Time::from_us(completed),
            ideal: Span::from_us(i64::from(flow) + 1),
            delivered: Bytes::new(500),
            ..flow_row(flow)
        };
        let mut rows = vec![part(0, 0, 4), part(1, 2, 10), part(2, 5, 6), part(3, 5, 7)];
        rows[3].completed = Time::NEVER;
        let cell = request_cell(&table(rows), Time::from_us(16));
        assert_eq!((cell.count, cell.completed, cell.fct_ns.max), (2, 1, Some(10_000.0)));
        assert_eq!(cell.slowdown.max, Some(5.0));
        assert_eq!(cell.goodput_bps, 1_000_000_000);
    }

    /// Two chains: the ideal time is the end of the longer one.
    #[test]
    fn a_collective_is_measured_against_its_longest_chain() {
        let step = |flow: u32, start: u64, ideal, ideal_start| FlowRow {
            collective: Some(0),
            started: Time::from_us(100 + start),
            completed: Time::from_us(100 + start + 6),
            ideal: Span::from_us(ideal),
            ideal_start: Span::from_us(ideal_start),
            ..flow_row(flow)
        };
        let rows = vec![step(0, 0, 4, 0), step(1, 0, 3, 0), step(2, 5, 4, 2), step(3, 6, 4, 3), flow_row(4)];
        let cell = collective_cell(&table(rows), Time::from_us(900));
        assert_eq!((cell.count, cell.fct_ns.max), (1, Some(12_000.0)));
        assert_eq!(cell.slowdown.max, Some(12.0 / 7.0));
    }

    #[test]
    fn bins_hold_their_sizes() {
        let rows = [99, 100, 101].map(|size| FlowRow { size: Bytes::new(size), ..flow_row(0) });
        let bin = |name: &str, low, high| SizeBin {
            name: name.into(),
            low: Bytes::new(low),
            high: Option::map(high, Bytes::new),
            ..SizeBin::default()
        };
        let cells = bin_cells(&table(rows.to_vec()), Time::ZERO, &[bin("small", 0, Some(100)), bin("rest", 100, None)]);
        assert_eq!(
            cells.iter().map(|(name, cell)| (name, cell.count)).collect::<Vec<_>>(),
            [("small", 1), ("rest", 2)]
        );
        let rows = [Class::Intra, Class::Inter, Class::Inter].map(|class| FlowRow { class, ..flow_row(0) });
        let between = SizeBin { class: Some(Class::Inter), ..bin("between", 0, None) };
        assert_eq!(bin_cells(&table(rows.to_vec()), Time::ZERO, &[between]).0[0].1.count, 2);
        let rows = [0, 1, 1, 1].map(|traffic| FlowRow { traffic, ..flow_row(0) });
        let named = FlowTable { traffic: vec!["web".into(), "incast".into()], ..table(rows.to_vec()) };
        let bins = ["web", "incast", "other"].map(|name| SizeBin { traffic: Some(name.into()), ..bin(name, 0, None) });
        let counts: Vec<u64> = bin_cells(&named, Time::ZERO, &bins).iter().map(|(_, cell)| cell.count).collect();
        assert_eq!(counts, [1, 3, 0]);
    }
}
