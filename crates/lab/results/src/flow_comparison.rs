//! The same runs on two backends, side by side, flow by flow, over a window of time: rates, round trips and queues; and
//! completion times. A view, not a gate: it shows where a target holds.
//!
//! Means are over time. A flow's rate is the bytes acknowledged in the window divided by the window's length, from the
//! samples in `flow_samples.parquet`, its start and its end; between samples it is taken to go evenly. A round trip is the mean of
//! the smoothed one, a queue the mean of its samples in `port_samples.parquet`. Drops and marks are only counted, not sampled:
//! they are those of the whole run. A completion time is a flow's own, whenever in the window the flow was active.

use std::collections::BTreeMap;

use serde::Serialize;
use units::Span;

use crate::compare::matched;
use crate::input::{BackendKind, Validity};
use crate::stats::Jain;
use crate::store::RunResults;
use crate::tables::{FlowRow, PortRow, SampledPort};
use crate::{Error, stats};

/// Maximum relative difference of the base round trips of one group.
const ALIKE: f64 = 0.05;

/// The tolerated difference between two backends.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Tolerance {
    /// Rates: this share.
    pub rate: f64,
    /// Completion times: this share.
    pub fct: f64,
    /// Mean queueing delays: this share,
    pub delay: f64,
    /// or this much.
    pub delay_floor_ns: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { rate: 0.10, fct: 0.10, delay: 0.15, delay_floor_ns: 500_000.0 }
    }
}

impl Tolerance {
    fn rate_holds(&self, sides: &Paired) -> Option<bool> {
        Some(sides.difference?.abs() <= self.rate * sides.a?)
    }

    fn fct_holds(&self, sides: &Paired) -> Option<bool> {
        Some(sides.difference?.abs() <= self.fct * sides.a?)
    }

    fn delay_holds(&self, sides: &Paired) -> Option<bool> {
        Some(sides.difference?.abs() <= self.delay_floor_ns.max(self.delay * sides.a?))
    }
}

/// The requested window of time; by default the last two thirds of the shorter run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeWindow {
    /// The window's beginning.
    pub from: Option<Span>,
    /// Its end; later than the shorter run's end is that.
    pub to: Option<Span>,
}

/// One quantity on both sides.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Paired {
    /// On the first side; null where it was not measured.
    pub a: Option<f64>,
    /// On the second.
    pub b: Option<f64>,
    /// The second less the first.
    pub difference: Option<f64>,
    /// The difference over the first; null if that is 0.
    pub relative: Option<f64>,
}

impl Paired {
    fn new(a: Option<f64>, b: Option<f64>) -> Self {
        let difference = a.zip(b).map(|(a, b)| b - a);
        let relative = a.zip(difference).filter(|&(a, _)| a != 0.0).map(|(a, difference)| difference / a);
        Self { a, b, difference, relative }
    }

    fn is_measured(&self) -> bool {
        self.a.is_some() || self.b.is_some()
    }
}

/// A flow, or the mean of a group of flows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowSides {
    /// Their numbers.
    pub flows: Vec<u32>,
    /// Their law.
    pub law: String,
    /// `intra` or `inter`.
    pub class: &'static str,
    /// The round trip of the path with empty queues; of a group, the shortest.
    pub base_rtt_ns: f64,
    /// Payload acknowledged in the window, in bits per second.
    pub rate_bps: Paired,
    /// Set if the rates are within the target; null without both.
    pub rate_holds: Option<bool>,
    /// The mean over time of the smoothed round trip.
    pub rtt_ns: Paired,
    /// Time from start to completion; null where the flow, or one of a group, did not complete.
    pub fct_ns: Paired,
    /// Set if the completion times are within the target; null without both.
    pub fct_holds: Option<bool>,
}

/// A sampled port.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PortSides {
    /// Its name.
    pub name: String,
    /// The mean over time of its queue.
    pub queue_bytes: Paired,
    /// The time in which the port sends that.
    pub delay_ns: Paired,
    /// Set if the delays are within the target; null without both.
    pub delay_holds: Option<bool>,
}

/// One run on two backends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunSides {
    /// The run's id on the first side.
    pub a: String,
    /// On the second.
    pub b: String,
    /// The display name.
    pub label: String,
    /// The backend of the first run.
    pub a_backend: BackendKind,
    /// The backend of the second run.
    pub b_backend: BackendKind,
    /// The worse verdict of the two runs, if one of them is not sound.
    pub unsound: Option<Validity>,
    /// The window's beginning.
    pub from_ns: f64,
    /// Its end.
    pub to_ns: f64,
    /// Sampled flows that were active in the window, by number.
    pub flows: Vec<FlowSides>,
    /// Groups of several of these with one law, class and base round trip, which are interchangeable; the shortest
    /// round trip first.
    pub groups: Vec<FlowSides>,
    /// Jain's index of the flows' rates; null for fewer than two.
    pub jain: Paired,
    /// Sampled ports.
    pub ports: Vec<PortSides>,
    /// Packets lost in the whole run.
    pub drops: Paired,
    /// Marks at ports in the whole run.
    pub marks: Paired,
    /// Packets lost per second of the whole run.
    pub drops_per_s: Paired,
    /// Marks at ports per second of the whole run.
    pub marks_per_s: Paired,
}

/// Two sets of runs side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowComparison {
    /// The target by which rows are judged.
    pub target: Tolerance,
    /// Runs that are in both sets, in the order of the first.
    pub runs: Vec<RunSides>,
    /// Ids of runs that only the first set has.
    pub only_a: Vec<String>,
    /// Ids of runs that only the second set has.
    pub only_b: Vec<String>,
}

/// Pairs two sets of runs by id; two sets of one run each regardless of their ids.
///
/// # Errors
/// When the window is empty, or nothing was sampled in it.
pub fn side_by_side(
    a: &[RunResults],
    b: &[RunResults],
    requested: TimeWindow,
    target: Tolerance,
) -> Result<FlowComparison, Error> {
    let (a, b): (Vec<&RunResults>, Vec<&RunResults>) = (a.iter().collect(), b.iter().collect());
    let matched = matched(&a, &b, |run| &run.summary.run);
    let runs = matched.pairs.into_iter().map(|(a, b)| one(a, b, requested, target));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    Ok(FlowComparison { target, runs, only_a: matched.only_before, only_b: matched.only_after })
}

/// From when to when, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MeasuredWindow {
    from: f64,
    to: f64,
}

impl MeasuredWindow {
    fn new(requested: TimeWindow, ended: f64) -> Self {
        let ns = |span: Span| stats::ns(span.unsigned_ps());
        Self { from: requested.from.map_or(ended / 3.0, ns), to: requested.to.map_or(ended, |to| ns(to).min(ended)) }
    }

    fn holds(&self, time_ns: u64) -> bool {
        (self.from..=self.to).contains(&(time_ns as f64))
    }
}

fn one(a: &RunResults, b: &RunResults, requested: TimeWindow, target: Tolerance) -> Result<RunSides, Error> {
    let ended = a.summary.end_ns.min(b.summary.end_ns);
    let window = MeasuredWindow::new(requested, ended);
    let span = |ns: f64| Span::from_ps((ns * 1e3).round() as i64);
    let (run, from, to) = (a.summary.run.clone(), span(window.from), span(window.to));
    if window.to <= window.from {
        return Err(Error::EmptyWindow { run, from, to, ended: span(ended) });
    }
    let (flows, ports) = (flows(a, b, window, &target), ports(a, b, window, &target));
    if flows.is_empty() && ports.is_empty() {
        return Err(Error::NotSampled { run, from, to });
    }
    let index = |of: fn(&Paired) -> Option<f64>| {
        let rates: Vec<u64> = flows.iter().filter_map(|flow| of(&flow.rate_bps)).map(|bps| bps as u64).collect();
        Jain::of(&rates).filter(|_| rates.len() >= 2).map(Jain::index)
    };
    let count = |of: fn(&RunResults) -> u64| Paired::new(Some(of(a) as f64), Some(of(b) as f64));
    let a_second = |of: fn(&RunResults) -> u64| {
        let per_s = |run: &RunResults| (run.summary.end_ns > 0.0).then(|| of(run) as f64 * 1e9 / run.summary.end_ns);
        Paired::new(per_s(a), per_s(b))
    };
    Ok(RunSides {
        a: run,
        b: b.summary.run.clone(),
        label: a.summary.label.clone(),
        a_backend: a.summary.backend,
        b_backend: b.summary.backend,
        unsound: Validity::worse(a.summary.emulator.as_ref(), b.summary.emulator.as_ref()),
        from_ns: window.from,
        to_ns: window.to,
        groups: groups(&flows, &target),
        jain: Paired::new(index(|rate| rate.a), index(|rate| rate.b)),
        flows,
        ports,
        drops: count(|run| run.summary.network.drops),
        marks: count(|run| run.summary.network.ecn_marks),
        drops_per_s: a_second(|run| run.summary.network.drops),
        marks_per_s: a_second(|run| run.summary.network.ecn_marks),
    })
}

/// A flow's activity in the window.
struct WindowActivity<'a> {
    row: &'a FlowRow,
    law: &'a str,
    rate_bps: f64,
    rtt_ns: Option<f64>,
    fct_ns: Option<f64>,
}

/// The sampled flows that were active in the window, by number and ends: two hosts' flows of one number need not be
/// the same flow, where a program ran instead of the scenario's traffic.
fn window_activity(run: &RunResults, window: MeasuredWindow) -> BTreeMap<(u32, u32, u32), WindowActivity<'_>> {
    let mut samples: BTreeMap<u32, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for row in &run.rates.rows {
        samples.entry(row.flow).or_default().push((row.time_ns, row.delivered_bytes, row.srtt_ns));
    }
    let activity = samples.iter().filter_map(|(&flow, samples)| {
        let row = run.flows.row(flow)?;
        let last = if row.completed.is_set() { stats::ns(row.completed.ps()) } else { run.summary.end_ns };
        let started = stats::ns(row.started.ps());
        if !row.started.is_set() || started >= window.to || last <= window.from {
            return None;
        }
        let mut curve = vec![(started, 0.0)];
        curve.extend(samples.iter().map(|&(time, delivered, _)| (time as f64, delivered as f64)));
        curve.push((last, row.delivered.get() as f64));
        let bytes = at(&curve, window.to) - at(&curve, window.from);
        // Before its first round trip a flow has no smoothed one.
        let rtts = samples.iter().filter(|&&(time, _, rtt)| rtt > 0 && window.holds(time));
        let activity = WindowActivity {
            row,
            law: run.flows.laws.get(row.law as usize).map_or("", String::as_str),
            rate_bps: bytes.max(0.0) * 8e9 / (window.to - window.from),
            rtt_ns: time_mean(&rtts.map(|&(time, _, rtt)| (time, rtt as f64)).collect::<Vec<_>>()),
            fct_ns: row.completed.is_set().then_some(last - started),
        };
        Some(((flow, row.src, row.dst), activity))
    });
    activity.collect()
}

fn flows(a: &RunResults, b: &RunResults, window: MeasuredWindow, target: &Tolerance) -> Vec<FlowSides> {
    let (a, b) = (window_activity(a, window), window_activity(b, window));
    let mut keys: Vec<&(u32, u32, u32)> = a.keys().chain(b.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let both = keys.into_iter().filter_map(|key| {
        let (a, b) = (a.get(key), b.get(key));
        let known = a.or(b)?;
        let rate_bps = Paired::new(a.map(|it| it.rate_bps), b.map(|it| it.rate_bps));
        let fct_ns = Paired::new(a.and_then(|it| it.fct_ns), b.and_then(|it| it.fct_ns));
        Some(FlowSides {
            flows: vec![key.0],
            law: known.law.to_owned(),
            class: known.row.class.name(),
            base_rtt_ns: stats::ns(known.row.base_rtt.unsigned_ps()),
            rate_holds: target.rate_holds(&rate_bps),
            rate_bps,
            rtt_ns: Paired::new(a.and_then(|it| it.rtt_ns), b.and_then(|it| it.rtt_ns)),
            fct_holds: target.fct_holds(&fct_ns),
            fct_ns,
        })
    });
    both.collect()
}

/// The means of several flows of one law, class and base round trip.
fn groups(flows: &[FlowSides], target: &Tolerance) -> Vec<FlowSides> {
    let mut order: Vec<&FlowSides> = flows.iter().collect();
    let same_kind = |a: &FlowSides, b: &FlowSides| a.law == b.law && a.class == b.class;
    order.sort_by(|a, b| {
        (&a.law, a.class)
            .cmp(&(&b.law, b.class))
            .then(a.base_rtt_ns.total_cmp(&b.base_rtt_ns))
            .then(a.flows.cmp(&b.flows))
    });
    let mut groups: Vec<Vec<&FlowSides>> = Vec::new();
    for flow in order {
        match groups.last_mut() {
            Some(group) if same_kind(group[0], flow) && flow.base_rtt_ns <= group[0].base_rtt_ns * (1.0 + ALIKE) => {
                group.push(flow);
            }
            _ => groups.push(vec![flow]),
        }
    }
    let several = groups.iter().filter(|group| group.len() > 1);
    let mut sides: Vec<FlowSides> = several.map(|group| mean_of(group, target)).collect();
    sides.sort_by(|a, b| a.base_rtt_ns.total_cmp(&b.base_rtt_ns));
    sides
}

/// Returns the means over a group of at least one flow.
fn mean_of(group: &[&FlowSides], target: &Tolerance) -> FlowSides {
    let mean = |of: &dyn Fn(&FlowSides) -> Option<f64>| {
        stats::mean_real(&group.iter().filter_map(|flow| of(flow)).collect::<Vec<_>>())
    };
    let rate_bps = Paired::new(mean(&|flow| flow.rate_bps.a), mean(&|flow| flow.rate_bps.b));
    // A mean of those that completed would favour the side on which the slow ones did not.
    let mean_if_all = |of: fn(&FlowSides) -> Option<f64>| {
        group.iter().map(|flow| of(flow)).collect::<Option<Vec<_>>>().and_then(|all| stats::mean_real(&all))
    };
    let fct_ns = Paired::new(mean_if_all(|flow| flow.fct_ns.a), mean_if_all(|flow| flow.fct_ns.b));
    let mut flows: Vec<u32> = group.iter().flat_map(|flow| flow.flows.iter().copied()).collect();
    flows.sort_unstable();
    FlowSides {
        flows,
        law: group[0].law.clone(),
        class: group[0].class,
        base_rtt_ns: group[0].base_rtt_ns,
        rate_holds: target.rate_holds(&rate_bps),
        rate_bps,
        rtt_ns: Paired::new(mean(&|flow| flow.rtt_ns.a), mean(&|flow| flow.rtt_ns.b)),
        fct_holds: target.fct_holds(&fct_ns),
        fct_ns,
    }
}

/// The mean queues of the ports that either side sampled, in the order of their first samples.
fn ports(a: &RunResults, b: &RunResults, window: MeasuredWindow, target: &Tolerance) -> Vec<PortSides> {
    let mut names: Vec<&str> = Vec::new();
    for port in a.ports.ports.iter().chain(&b.ports.ports) {
        if !names.contains(&port.name.as_str()) {
            names.push(&port.name);
        }
    }
    let ports = names.into_iter().map(|name| {
        let [a, b] = [a, b].map(|run| queue(run, name, window));
        let queue_bytes = Paired::new(a.map(|it| it.0), b.map(|it| it.0));
        let delay_ns = Paired::new(a.and_then(|it| it.1), b.and_then(|it| it.1));
        PortSides { name: name.to_owned(), queue_bytes, delay_ns, delay_holds: target.delay_holds(&delay_ns) }
    });
    ports.filter(|port| port.queue_bytes.is_measured()).collect()
}

/// The mean queue of a port in bytes and in nanoseconds.
fn queue(run: &RunResults, name: &str, window: MeasuredWindow) -> Option<(f64, Option<f64>)> {
    let index = run.ports.ports.iter().position(|port| port.name == name)?;
    let port: &SampledPort = &run.ports.ports[index];
    let sampled = |row: &&PortRow| row.port as usize == index && window.holds(row.time_ns);
    let samples = run.ports.rows.iter().filter(sampled).map(|row| (row.time_ns, row.queue_bytes as f64));
    let bytes = time_mean(&samples.collect::<Vec<_>>())?;
    let rate = port.rate_bps.filter(|&rate| rate > 0);
    Some((bytes, rate.map(|rate| bytes * 8e9 / rate as f64)))
}

/// A curve's value at a time: even between its points, their first and last beyond them. The points are in the order
/// of time, and there is at least one.
fn at(curve: &[(f64, f64)], time: f64) -> f64 {
    let next = curve.partition_point(|point| point.0 <= time);
    match (next.checked_sub(1).and_then(|last| curve.get(last)), curve.get(next)) {
        (Some(&(before, low)), Some(&(after, high))) => low + (high - low) * (time - before) / (after - before),
        (Some(&(_, value)), None) | (None, Some(&(_, value))) => value,
        (None, None) => 0.0,
    }
}

/// The mean over time, even between samples; of one sample its value, of none none.
fn time_mean(samples: &[(u64, f64)]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    if last.0 == first.0 {
        return Some(first.1);
    }
    let area = samples.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 * (pair[0].1 + pair[1].1) / 2.0);
    Some(area.sum::<f64>() / (last.0 - first.0) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{FlowTable, PortTable, RateRow, RateTable};
    use crate::testbed::{self, flow_row};
    use fabric::LinkClass;
    use units::{Bytes, Time};

    /// A run of 3 s with a sample every 100 ms: `flows` are base round trip, rate and smoothed round trip, `queue` is
    /// bytes at a port of 100 Mb/s.
    fn run(flows: &[(Span, u64, u64)], queue: u64) -> RunResults {
        let mut run = testbed::results();
        run.summary.end_ns = 3e9;
        (run.summary.network.drops, run.summary.network.ecn_marks) = (6, 300);
        let row = |(flow, &(base_rtt, rate, _)): (usize, &(Span, u64, u64))| FlowRow {
            base_rtt,
            started: Time::ZERO,
            completed: Time::NEVER,
            delivered: Bytes::new(rate * 3 / 8),
            ..flow_row(flow as u32)
        };
        run.flows = FlowTable {
            rows: flows.iter().enumerate().map(row).collect(),
            laws: vec!["cubic".into()],
            ..FlowTable::default()
        };
        run.rates = RateTable::default();
        for tick in 0..30 {
            for (flow, &(_, rate, rtt)) in flows.iter().enumerate() {
                let delivered = rate * tick / 80;
                run.rates.rows.push(RateRow {
                    time_ns: tick * 100_000_000,
                    flow: flow as u32,
                    sent_bytes: delivered,
                    delivered_bytes: delivered,
                    cwnd_bytes: None,
                    srtt_ns: if tick == 0 { 0 } else { rtt },
                });
            }
        }
        run.ports = PortTable {
            ports: vec![SampledPort {
                link: 0,
                name: "left>right".into(),
                class: LinkClass::Inter,
                receiver: false,
                rate_bps: Some(100_000_000),
            }],
            rows: (0..30)
                .map(|tick| PortRow {
                    time_ns: tick * 100_000_000,
                    port: 0,
                    queue_bytes: queue,
                    phantom_bytes: None,
                    ingress_bytes: None,
                    pseudo_bytes: None,
                    feedback_bps: None,
                })
                .collect(),
        };
        run
    }

    const MS: u64 = 1_000_000;

    fn sides(a: &RunResults, b: &RunResults, requested: TimeWindow) -> RunSides {
        let comparison =
            side_by_side(std::slice::from_ref(a), std::slice::from_ref(b), requested, Tolerance::default()).unwrap();
        comparison.runs.into_iter().next().unwrap()
    }

    fn close(left: Option<f64>, right: f64) {
        assert!(left.is_some_and(|left| (left - right).abs() <= 1e-9 * right.abs().max(1.0)), "{left:?}, not {right}");
    }

    #[test]
    fn rates_round_trips_and_queues_of_constant_flows_are_those_constants() {
        let far = Span::from_ms(20);
        let near = Span::from_ms(1);
        let a = run(&[(far, 60_000_000, 24 * MS), (near, 40_000_000, 5 * MS)], 50_000);
        let mut b = run(&[(far, 65_000_000, 25 * MS), (near, 35_000_000, 6 * MS)], 56_000);
        b.summary.backend = BackendKind::Emulator;
        let found = sides(&a, &b, TimeWindow::default());
        assert_eq!((found.a_backend, found.b_backend), (BackendKind::Simulator, BackendKind::Emulator));
        assert_eq!((found.from_ns, found.to_ns), (1e9, 3e9));
        let [one, two] = &found.flows[..] else { panic!("{:?}", found.flows) };
        assert_eq!(
            (one.flows.as_slice(), one.base_rtt_ns, one.law.as_str(), one.class),
            (&[0][..], 20e6, "cubic", "intra")
        );
        close(one.rate_bps.a, 60e6);
        close(one.rate_bps.b, 65e6);
        close(one.rate_bps.difference, 5e6);
        close(one.rate_bps.relative, 1.0 / 12.0);
        // 8.3 % is within 10 %, 12.5 % is not.
        assert_eq!((one.rate_holds, two.rate_holds), (Some(true), Some(false)));
        close(one.rtt_ns.a, 24e6);
        close(two.rtt_ns.difference, 1e6);
        // 50 kB at 100 Mb/s are 4 ms, and 0.48 ms more are within 15 %.
        let port = &found.ports[0];
        assert_eq!(port.name, "left>right");
        close(port.queue_bytes.b, 56_000.0);
        close(port.delay_ns.a, 4e6);
        close(port.delay_ns.difference, 0.48e6);
        assert_eq!(port.delay_holds, Some(true));
        close(found.jain.a, 1e16 / (2.0 * (36e14 + 16e14)));
        close(found.drops.a, 6.0);
        close(found.marks.b, 300.0);
        close(found.drops_per_s.a, 2.0);
        close(found.marks_per_s.b, 100.0);
        // Two flows of different round trips are not a group.
        assert_eq!(found.groups, []);
    }

    #[test]
    fn the_target_is_a_share_or_a_floor() {
        let flow = [(Span::from_ms(1), 1_000_000, MS)];
        let holds = |a, b| sides(&run(&flow, a), &run(&flow, b), TimeWindow::default()).ports[0].delay_holds;
        // 12.5 kB are 1 ms.
        assert_eq!(holds(0, 6_250), Some(true));
        assert_eq!(holds(0, 6_300), Some(false));
        assert_eq!(holds(125_000, 143_700), Some(true));
        assert_eq!(holds(125_000, 143_800), Some(false));
        assert_eq!(holds(143_800, 125_000), Some(true));
        let unknown = {
            let mut run = run(&flow, 1_000);
            run.ports.ports[0].rate_bps = None;
            sides(&run, &run, TimeWindow::default()).ports.remove(0)
        };
        assert_eq!((unknown.queue_bytes.difference, unknown.delay_ns.a, unknown.delay_holds), (Some(0.0), None, None));
    }

    #[test]
    fn flows_of_one_round_trip_are_also_one_row() {
        let flows = |rates: [u64; 5]| {
            let base = [20_000, 1_000, 20_900, 1_010, 22_000].map(Span::from_us);
            let rows: Vec<_> = base.into_iter().zip(rates).map(|(base, rate)| (base, rate, rate)).collect();
            run(&rows, 0)
        };
        let (a, b) = (flows([10 * MS, 30 * MS, 20 * MS, 50 * MS, 5]), flows([20 * MS, 50 * MS, 10 * MS, 31 * MS, 5]));
        let found = sides(&a, &b, TimeWindow::default());
        assert!(found.flows[..4].iter().all(|flow| flow.rate_holds == Some(false)));
        let groups: Vec<_> =
            found.groups.iter().map(|group| (group.flows.as_slice(), group.base_rtt_ns, group.rate_holds)).collect();
        assert_eq!(groups, [(&[1, 3][..], 1e6, Some(true)), (&[0, 2][..], 20e6, Some(true))]);
        close(found.groups[0].rate_bps.b, 40.5e6);
        close(found.groups[1].rtt_ns.a, 15.0 * MS as f64);
        // Other laws are other flows.
        let other = |mut run: RunResults| {
            run.flows.laws.push("bbr".into());
            run.flows.rows[3].law = 1;
            run
        };
        let found = sides(&other(a), &other(b), TimeWindow::default());
        assert_eq!(found.groups.iter().map(|group| group.flows.as_slice()).collect::<Vec<_>>(), [[0, 2]]);
    }

    #[test]
    fn flow_rates_cover_the_window_only() {
        let base = Span::from_ms(1);
        let a = run(&[(base, 8_000_000, MS), (base, 8_000_000, MS)], 0);
        let mut b = a.clone();
        // The second flow starts at 1.25 s, is first seen at 1.3 s, and ends at 2.05 s with 1 MB.
        b.flows.rows[1].started = Time::from_ms(1_250);
        b.flows.rows[1].completed = Time::from_ms(2_050);
        b.flows.rows[1].delivered = Bytes::new(1_000_000);
        b.rates.rows.retain(|row| row.flow == 0 || (13..=20).contains(&(row.time_ns / 100_000_000)));
        for row in b.rates.rows.iter_mut().filter(|row| row.flow == 1) {
            row.delivered_bytes = (row.time_ns - 1_250 * MS) / 1_000;
        }
        let requested = |from, to| TimeWindow { from: Some(Span::from_ms(from)), to: Some(Span::from_ms(to)) };
        let rate = |from, to| sides(&a, &b, requested(from, to)).flows[1].rate_bps.b;
        close(rate(1_000, 3_000), 4e6);
        close(rate(1_000, 1_275), 25_000.0 * 8.0 / 0.275);
        // 25 ms before its end it had 875 kB, for its last sample is at 2 s with 750 kB.
        close(rate(2_025, 2_525), 125_000.0 * 8.0 / 0.5);
        // It was not active then.
        for (from, to) in [(100, 1_250), (2_050, 3_000)] {
            let flow = &sides(&a, &b, requested(from, to)).flows[1];
            assert_eq!((flow.rate_bps.b, flow.rate_bps.relative, flow.rate_holds), (None, None, None));
            assert!(flow.rate_bps.a.is_some());
        }
        // Not even on one side, and it is not listed; an end past the run's is the run's.
        let found = sides(&b, &b, requested(2_050, 9_000));
        assert_eq!((found.flows.len(), found.to_ns, found.jain.a), (1, 3e9, None));
    }

    #[test]
    fn completion_times_are_compared_where_all_flows_completed() {
        let base = Span::from_ms(1);
        let mut a = run(&[(base, 8_000_000, MS), (base, 8_000_000, MS)], 0);
        let mut b = a.clone();
        for (run, completed) in [(&mut a, [1_000, 2_000]), (&mut b, [1_050, 2_250])] {
            for (row, completed) in run.flows.rows.iter_mut().zip(completed) {
                (row.started, row.completed) = (Time::from_ms(500), Time::from_ms(completed));
            }
        }
        let complete = TimeWindow { from: Some(Span::ZERO), to: None };
        let found = sides(&a, &b, complete);
        // 500 and 550 ms are within 10 %, 1,500 and 1,750 ms are not.
        close(found.flows[0].fct_ns.a, 5e8);
        close(found.flows[0].fct_ns.b, 5.5e8);
        assert_eq!((found.flows[0].fct_holds, found.flows[1].fct_holds), (Some(true), Some(false)));
        close(found.groups[0].fct_ns.a, 1e9);
        close(found.groups[0].fct_ns.b, 1.15e9);
        b.flows.rows[1].completed = Time::NEVER;
        let found = sides(&a, &b, complete);
        assert_eq!((found.flows[1].fct_ns.b, found.flows[1].fct_holds), (None, None));
        assert_eq!((found.groups[0].fct_ns.b, found.groups[0].fct_holds), (None, None));
        close(found.groups[0].fct_ns.a, 1e9);
    }

    #[test]
    fn means_are_over_time_and_not_over_samples() {
        assert_eq!(time_mean(&[(0, 0.0), (10, 10.0), (40, 10.0)]), Some(8.75));
        assert_eq!((time_mean(&[(7, 3.0)]), time_mean(&[])), (Some(3.0), None));
        let curve = [(0.0, 0.0), (0.0, 4.0), (10.0, 14.0)];
        for (time, value) in [(-1.0, 0.0), (0.0, 4.0), (5.0, 9.0), (10.0, 14.0), (11.0, 14.0)] {
            close(Some(at(&curve, time)), value);
        }
    }

    #[test]
    fn flows_of_one_number_between_other_hosts_are_other_flows() {
        let a = run(&[(Span::from_ms(1), 8_000_000, MS)], 0);
        let mut b = a.clone();
        b.flows.rows[0].dst += 1;
        let found = sides(&a, &b, TimeWindow::default());
        let sides: Vec<_> =
            found.flows.iter().map(|flow| (flow.rate_bps.a.is_some(), flow.rate_bps.b.is_some())).collect();
        assert_eq!(sides, [(true, false), (false, true)]);
    }

    #[test]
    fn an_empty_window_and_runs_without_samples_are_errors() {
        let full = run(&[(Span::from_ms(1), 8_000_000, MS)], 0);
        let error_of = |run: &RunResults, from: Option<i64>| {
            let requested = TimeWindow { from: from.map(Span::from_ms), to: None };
            let runs = std::slice::from_ref(run);
            side_by_side(runs, runs, requested, Tolerance::default()).map(|_| ()).unwrap_err().to_string()
        };
        let message = error_of(&full, Some(3_000));
        assert!(message.contains("3.000 s"), "{message}");
        let mut bare = full;
        (bare.rates, bare.ports) = (RateTable::default(), PortTable::default());
        let message = error_of(&bare, None);
        assert!(message.contains("1.000 s") && message.contains("3.000 s"), "{message}");
    }

    #[test]
    fn simulated_run_compared_with_itself_is_equal() {
        let run = testbed::results();
        let found = sides(&run, &run, TimeWindow { from: Some(Span::ZERO), to: None });
        assert!(found.flows.len() >= 4 && found.ports.len() > 4 && !found.groups.is_empty());
        assert!(found.flows.iter().chain(&found.groups).all(|flow| flow.rate_holds == Some(true)));
        assert!(found.ports.iter().all(|port| port.delay_holds == Some(true)));
        // Over the complete run a flow is credited with all its bytes.
        for flow in &found.flows {
            let delivered = run.flows.rows[flow.flows[0] as usize].delivered.get() as f64;
            close(flow.rate_bps.a, delivered * 8e9 / run.summary.end_ns);
        }
    }
}
