//! Curves for plots, made from the tables of a run: plain values, few enough to draw.

use std::collections::BTreeMap;

use crate::input::{Class, SizeBin};
use crate::stats;
use crate::summary;
use crate::summary::Task;
use crate::tables::{FlowRow, FlowTable, PortTable, RateTable, SwitchTable};

/// Most points of a distribution.
pub const CDF_POINTS: usize = 400;

/// A value, and the share (0 to 1) of flows at or below it.
pub type CdfPoint = (f64, f64);

/// The completion times of one class of flows.
#[derive(Clone, PartialEq, Debug)]
pub struct FctDistribution {
    /// `all`, `intra`, `inter`, a size bin, `requests`, `collectives` or a job.
    pub class: String,
    /// Completion times in nanoseconds.
    pub fct_ns: Vec<CdfPoint>,
    /// Completion times over ideal ones.
    pub slowdown: Vec<CdfPoint>,
}

/// Sending rates over time, all flows on one time axis.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct SendingRates {
    /// The ends of the intervals.
    pub time_ns: Vec<u64>,
    /// The flows.
    pub flows: Vec<FlowRate>,
    /// Jain's index of the flows' rates in each interval, by the rules of [`summary::fairness`]; none if it is not defined.
    pub jain: Vec<Option<f64>>,
}

/// One flow's sending rate.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowRate {
    /// The flow.
    pub flow: u32,
    /// Inside a datacenter or between two; none if the flow is not listed.
    pub class: Option<Class>,
    /// Bits per second, retransmissions included, by interval; none where the flow was not active throughout.
    pub rate_bps: Vec<Option<f64>>,
}

/// Queues over time, all ports on one time axis.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueueSeries {
    /// Sample times.
    pub time_ns: Vec<u64>,
    /// The ports.
    pub ports: Vec<PortQueue>,
}

/// One port's queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortQueue {
    /// The link's name.
    pub name: String,
    /// Bytes in the queue at each sample time.
    pub queue_bytes: Vec<u64>,
    /// Bytes in its phantom queue; empty if it has none.
    pub phantom_bytes: Vec<u64>,
}

/// One traced value of a flow's law.
#[derive(Clone, PartialEq, Debug)]
pub struct LawTrace {
    /// The flow.
    pub flow: u32,
    /// The value's name, its unit last.
    pub name: String,
    /// Sample times.
    pub time_ns: Vec<u64>,
    /// The value at each of these.
    pub values: Vec<f64>,
}

/// The flows of one collective operation: the bytes that its ranks sent, step by step. The lists have one length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// The traffic's name.
    pub job: String,
    /// The number of the job's operation, from 0.
    pub number: u32,
    /// The hosts that sent.
    pub src: Vec<u32>,
    /// The hosts that received.
    pub dst: Vec<u32>,
    /// The start time of each flow.
    pub start_ns: Vec<u64>,
    /// The time at which everything of a flow was acknowledged; none if that did not happen.
    pub end_ns: Vec<Option<u64>>,
}

/// The collective operations, in order of their beginnings, as many as have `limit` flows in all; and how many there are.
/// The first one is cut off rather than left out. Flows that never started are left out.
pub fn collectives(flows: &FlowTable, limit: usize) -> (Vec<Steps>, usize) {
    let mut by_number: BTreeMap<(u32, u32), Vec<&FlowRow>> = BTreeMap::new();
    for row in flows.rows.iter().filter(|row| row.started.is_set()) {
        if let Some(collective) = row.collective {
            by_number.entry((row.traffic, collective)).or_default().push(row);
        }
    }
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut all: Vec<(u32, u32, Vec<&FlowRow>)> = Vec::new();
    for ((traffic, _), mut rows) in by_number {
        rows.sort_by_key(|row| (row.started, row.flow));
        let number = numbers.entry(traffic).or_default();
        all.push((traffic, *number, rows));
        *number += 1;
    }
    all.sort_by_key(|(traffic, _, rows)| (rows[0].started, *traffic));
    let (count, mut left, mut result) = (all.len(), limit, Vec::new());
    for (traffic, number, mut rows) in all {
        if rows.len() > left && !result.is_empty() {
            break;
        }
        rows.truncate(left);
        left -= rows.len();
        result.push(Steps {
            job: flows.traffic.get(traffic as usize).cloned().unwrap_or_default(),
            number,
            src: rows.iter().map(|row| row.src).collect(),
            dst: rows.iter().map(|row| row.dst).collect(),
            start_ns: rows.iter().map(|row| row.started.ns()).collect(),
            end_ns: rows.iter().map(|row| row.completed.is_set().then(|| row.completed.ns())).collect(),
        });
    }
    (result, count)
}

/// The distributions of all classes that have completed flows: `all`, `intra`, `inter`, the size bins, `requests`,
/// `collectives` and jobs, if there are several; each in at most `limit` points.
pub fn distributions(flows: &FlowTable, bins: &[SizeBin], limit: usize) -> Vec<FctDistribution> {
    let mut result = Vec::new();
    let mut add = |class: &str, wanted: &dyn Fn(&FlowRow) -> bool| {
        let rows = || flows.rows.iter().filter(|row| wanted(row));
        let fct: Vec<f64> = rows().filter_map(FlowRow::fct).map(|fct| stats::ns(fct.unsigned_ps())).collect();
        if !fct.is_empty() {
            // Of all flows: those that did not end keep the curve from reaching 1.
            let finished = fct.len() as f64 / rows().count() as f64;
            let slowdown = cdf(rows().filter_map(FlowRow::slowdown).collect(), limit);
            result.push(FctDistribution {
                class: class.to_owned(),
                fct_ns: scaled(cdf(fct, limit), finished),
                slowdown: scaled(slowdown, finished),
            });
        }
    };
    add("all", &|_| true);
    for class in [Class::Intra, Class::Inter] {
        add(class.name(), &|row| row.class == class);
    }
    for bin in bins {
        add(&bin.name, &|row| flows.is_in(row, bin));
    }
    result.extend(tasks("requests", crate::summary::requests(flows), limit));
    result.extend(tasks("collectives", crate::summary::collectives(flows), limit));
    let jobs = crate::summary::jobs(flows);
    if jobs.len() > 1 {
        result.extend(jobs.filter_map(|(name, job)| tasks(name, job, limit)));
    }
    result
}

/// Returns the durations of groups of flows, if any is complete, also over their ideal times.
fn tasks(class: &str, tasks: impl Iterator<Item = Task>, limit: usize) -> Option<FctDistribution> {
    let (fct, slowdown): (Vec<f64>, Vec<Option<f64>>) =
        tasks.filter_map(|it| it.took()).map(|(ps, slow)| (stats::ns(ps), slow)).unzip();
    let slowdown = cdf(slowdown.into_iter().flatten().collect(), limit);
    (!fct.is_empty()).then(|| FctDistribution { class: class.into(), fct_ns: cdf(fct, limit), slowdown })
}

/// A distribution of a part of all.
fn scaled(mut points: Vec<CdfPoint>, part: f64) -> Vec<CdfPoint> {
    for point in &mut points {
        point.1 *= part;
    }
    points
}

/// The cumulative distribution of `values` in at most `limit` points (at least 2): one a distinct value if those are
/// few; else thinned evenly by rank. The smallest and the largest value are always among them.
pub fn cdf(mut values: Vec<f64>, limit: usize) -> Vec<CdfPoint> {
    values.retain(|value| !value.is_nan());
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let mut points: Vec<CdfPoint> = Vec::new();
    for (rank, &value) in values.iter().enumerate() {
        let share = (rank + 1) as f64 / count;
        match points.last_mut() {
            Some(last) if last.0 >= value => last.1 = share,
            _ => points.push((value, share)),
        }
    }
    let limit = limit.max(2);
    if points.len() <= limit {
        return points;
    }
    let last = points.len() - 1;
    (0..limit).map(|index| points[index * last / (limit - 1)]).collect()
}

/// Sending rates in at most about `limit` intervals; where there are more samples, intervals are joined.
pub fn rates(rates: &RateTable, flows: &FlowTable, limit: usize) -> SendingRates {
    let times = distinct(rates.rows.iter().map(|row| row.time_ns));
    let step = times.len().div_ceil(limit.max(1)).max(1);
    // Every `step`-th sample, counted from the last so that the end is drawn.
    let kept: Vec<u64> = times.iter().rev().step_by(step).rev().copied().collect();
    let thin = RateTable {
        rows: rates.rows.iter().filter(|row| kept.binary_search(&row.time_ns).is_ok()).copied().collect(),
        traces: Vec::new(),
    };
    let intervals = kept.len().saturating_sub(1);
    let result = by_flow(&thin).into_iter().map(|(flow, rows)| {
        let mut rate_bps = vec![None; intervals];
        for pair in rows.windows(2) {
            let (before, after) = (&thin.rows[pair[0]], &thin.rows[pair[1]]);
            let (Ok(from), Ok(to)) = (kept.binary_search(&before.time_ns), kept.binary_search(&after.time_ns)) else {
                continue;
            };
            if to == from + 1 {
                let bits = after.sent_bytes.saturating_sub(before.sent_bytes) as f64 * 8.0;
                rate_bps[from] = Some(bits * 1e9 / (kept[to] - kept[from]) as f64);
            }
        }
        let class = flows.row(flow).map(|row| row.class);
        FlowRate { flow, class, rate_bps }
    });
    let result = result.collect();
    let jain = summary::jain_points(&thin, flows, 0).into_iter().map(|point| point.index).collect();
    SendingRates { time_ns: kept.get(1..).unwrap_or_default().to_vec(), flows: result, jain }
}

/// Queues in at most about `limit` points; where there are more samples, the longest of each stretch is kept.
pub fn queues(ports: &PortTable, limit: usize) -> QueueSeries {
    let times = distinct(ports.rows.iter().map(|row| row.time_ns));
    let step = times.len().div_ceil(limit.max(1)).max(1);
    let time_ns: Vec<u64> = times.iter().copied().step_by(step).collect();
    let empty = |port: &crate::tables::SampledPort| PortQueue {
        name: port.name.clone(),
        queue_bytes: vec![0; time_ns.len()],
        phantom_bytes: Vec::new(),
    };
    let mut queues: Vec<PortQueue> = ports.ports.iter().map(empty).collect();
    for row in &ports.rows {
        let index = time_ns.partition_point(|&time| time <= row.time_ns).saturating_sub(1);
        let port = &mut queues[row.port as usize];
        port.queue_bytes[index] = port.queue_bytes[index].max(row.queue_bytes);
        if let Some(phantom) = row.phantom_bytes {
            port.phantom_bytes.resize(time_ns.len(), 0);
            port.phantom_bytes[index] = port.phantom_bytes[index].max(phantom);
        }
    }
    QueueSeries { time_ns, ports: queues }
}

/// Shared buffers in at most about `limit` points, as [`queues`]: a switch takes a port's place.
pub fn buffers(switches: &SwitchTable, limit: usize) -> QueueSeries {
    let times = distinct(switches.rows.iter().map(|row| row.time_ns));
    let step = times.len().div_ceil(limit.max(1)).max(1);
    let time_ns: Vec<u64> = times.iter().copied().step_by(step).collect();
    let empty = |name: &String| PortQueue {
        name: name.clone(),
        queue_bytes: vec![0; time_ns.len()],
        phantom_bytes: Vec::new(),
    };
    let mut buffers: Vec<PortQueue> = switches.names.iter().map(empty).collect();
    for row in &switches.rows {
        let index = time_ns.partition_point(|&time| time <= row.time_ns).saturating_sub(1);
        let buffer = &mut buffers[row.switch as usize].queue_bytes[index];
        *buffer = (*buffer).max(row.buffer_bytes);
    }
    QueueSeries { time_ns, ports: buffers }
}

/// Returns the internal state that laws trace, and the window (`cwnd_bytes`) and round trip (`srtt_ns`), for each flow,
/// in at most about `limit` points each.
pub fn traces(rates: &RateTable, limit: usize) -> Vec<LawTrace> {
    let mut result = Vec::new();
    for (flow, rows) in by_flow(rates) {
        let step = rows.len().div_ceil(limit.max(1)).max(1);
        let mut add = |name: &str, value: &dyn Fn(usize) -> Option<f64>| {
            let known = rows.iter().step_by(step).filter_map(|&row| Some((rates.rows[row].time_ns, value(row)?)));
            let (time_ns, values): (Vec<u64>, Vec<f64>) = known.unzip();
            if !values.is_empty() {
                result.push(LawTrace { flow, name: name.to_owned(), time_ns, values });
            }
        };
        add("cwnd_bytes", &|row| rates.rows[row].cwnd_bytes.map(|bytes| bytes as f64));
        add("srtt_ns", &|row| Some(rates.rows[row].srtt_ns as f64));
        for (name, values) in &rates.traces {
            add(name, &|row| values[row].map(|value| value as f64));
        }
    }
    result
}

/// The rows of each flow.
fn by_flow(rates: &RateTable) -> BTreeMap<u32, Vec<usize>> {
    let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (row, sample) in rates.rows.iter().enumerate() {
        rows.entry(sample.flow).or_default().push(row);
    }
    rows
}

fn distinct(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_buffer_keeps_its_peaks() {
        let row = |time_ns, switch, buffer_bytes| crate::tables::SwitchRow { time_ns, switch, buffer_bytes };
        let rows = vec![row(1, 0, 5), row(2, 0, 9), row(2, 1, 1), row(3, 0, 2), row(4, 1, 3)];
        let table = SwitchTable { names: vec!["a".into(), "b".into()], rows };
        let result = buffers(&table, 2);
        assert_eq!(result.time_ns, [1, 3]);
        let heights: Vec<&[u64]> = result.ports.iter().map(|port| port.queue_bytes.as_slice()).collect();
        assert_eq!(heights, [&[9, 2], &[1, 3]]);
        assert_eq!(buffers(&SwitchTable::default(), 2), QueueSeries::default());
    }
    use crate::testbed;
    use proptest::prelude::*;
    use units::Time;

    proptest! {
        #[test]
        fn thinned_distribution_is_increasing_and_keeps_its_ends(values in prop::collection::vec(0.0..1e6f64, 1..2_000)) {
            let points = cdf(values.clone(), CDF_POINTS);
            prop_assert!(points.len() <= CDF_POINTS);
            prop_assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let greatest = values.iter().copied().fold(f64::MIN, f64::max);
            prop_assert_eq!((points[0].0, points[points.len() - 1]), (least, (greatest, 1.0)));
            for &(value, share) in &points {
                let below = values.iter().filter(|&&other| other <= value).count();
                prop_assert!((share * values.len() as f64 - below as f64).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn equal_values_are_one_point() {
        assert_eq!(cdf(vec![2.0, 1.0, 2.0, f64::NAN], 400), [(1.0, 1.0 / 3.0), (2.0, 1.0)]);
        assert_eq!(cdf(Vec::new(), 400), []);
    }

    #[test]
    fn rates_add_up_to_what_was_sent() {
        let run = testbed::results();
        for limit in [usize::MAX, 7] {
            let curves = rates(&run.rates, &run.flows, limit);
            assert!(curves.time_ns.len() <= limit && !curves.time_ns.is_empty());
            assert_eq!(curves.jain.len(), curves.time_ns.len());
            let flow = curves.flows.iter().find(|flow| flow.flow == 1).unwrap();
            assert_eq!(flow.class, Some(Class::Inter));
            assert_eq!(flow.rate_bps.len(), curves.time_ns.len());
            let step_ns = curves.time_ns[1] - curves.time_ns[0];
            let sent: f64 = flow.rate_bps.iter().flatten().map(|rate| rate * step_ns as f64 / 8e9).sum();
            let rows: Vec<_> = run.rates.rows.iter().filter(|row| row.flow == 1).collect();
            let span = rows[rows.len() - 1].sent_bytes - rows[0].sent_bytes;
            // Joined intervals may leave out up to one at each end of the flow.
            assert!(sent > 0.5 * span as f64 && sent <= 1.000_001 * span as f64, "{sent} of {span}");
            let line = 1e9 * 100.0;
            assert!(curves.flows.iter().flat_map(|flow| flow.rate_bps.iter().flatten()).all(|&rate| rate <= line));
        }
    }

    #[test]
    fn thinned_queues_keep_their_peaks() {
        let run = testbed::results();
        let (all, few) = (queues(&run.ports, usize::MAX), queues(&run.ports, 5));
        assert!(few.time_ns.len() <= 5 && few.time_ns.len() < all.time_ns.len());
        for (all, few) in all.ports.iter().zip(&few.ports) {
            assert_eq!(all.queue_bytes.iter().max(), few.queue_bytes.iter().max());
            assert_eq!(all.phantom_bytes.iter().max(), few.phantom_bytes.iter().max());
        }
        assert!(all.ports.iter().any(|port| port.queue_bytes.iter().any(|&bytes| bytes > 0)));
        assert!(all.ports.iter().any(|port| port.phantom_bytes.is_empty()));
        assert!(all.ports.iter().any(|port| !port.phantom_bytes.is_empty()));
    }

    #[test]
    fn traces_have_the_window_and_the_laws_own_state() {
        let run = testbed::results();
        let traces = traces(&run.rates, 50);
        let names: Vec<&str> = traces.iter().filter(|trace| trace.flow == 1).map(|trace| trace.name.as_str()).collect();
        assert_eq!(&names[..2], ["cwnd_bytes", "srtt_ns"]);
        assert!(names.len() > 2, "{names:?}");
        assert!(traces.iter().all(|trace| trace.values.len() == trace.time_ns.len() && trace.values.len() <= 50));
    }

    #[test]
    fn collectives_are_listed_by_start_up_to_a_flow_limit() {
        let flow = |flow, traffic, collective, us, completed| FlowRow {
            traffic,
            collective: Some(collective),
            started: Time::from_us(us),
            completed,
            ..testbed::flow_row(flow)
        };
        let rows = vec![
            flow(0, 0, 0, 3, Time::from_us(9)),
            flow(1, 0, 0, 1, Time::NEVER),
            flow(2, 0, 1, 9, Time::from_us(10)),
            flow(3, 1, 2, 2, Time::from_us(4)),
            FlowRow { collective: None, ..testbed::flow_row(4) },
            FlowRow { started: Time::NEVER, ..flow(5, 0, 1, 0, Time::NEVER) },
        ];
        let table = FlowTable { rows, traffic: vec!["a".into(), "b".into()], ..FlowTable::default() };
        let (all, count) = collectives(&table, 10);
        assert_eq!(count, 3);
        let names: Vec<(&str, u32, usize)> = all.iter().map(|it| (it.job.as_str(), it.number, it.src.len())).collect();
        assert_eq!(names, [("a", 0, 2), ("b", 0, 1), ("a", 1, 1)]);
        assert_eq!((&all[0].start_ns, &all[0].end_ns), (&vec![1_000, 3_000], &vec![None, Some(9_000)]));
        let lengths = |limit| collectives(&table, limit).0.iter().map(|it| it.src.len()).collect::<Vec<_>>();
        assert_eq!((lengths(3), lengths(2), lengths(1)), (vec![2, 1], vec![2], vec![1]));
        assert_eq!(collectives(&FlowTable::default(), 1), (Vec::new(), 0));
    }

    #[test]
    fn classes_without_completed_flows_have_no_distribution() {
        let run = testbed::results();
        let classes: Vec<String> =
            distributions(&run.flows, &testbed::bins(), CDF_POINTS).into_iter().map(|it| it.class).collect();
        assert_eq!(classes, ["all", "intra", "inter", "small", "large", "requests"]);
        assert!(distributions(&FlowTable::default(), &[], 2).is_empty());
    }
}
