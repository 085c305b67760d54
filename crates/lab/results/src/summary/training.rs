//! Training jobs: how long iterations take, and what they wait for.
//!
//! An iteration lasts from the end of the one before, or from the job's start, to its own end: when every rank is done.
//! Its critical path is followed backwards. The last flow or computation that ended it waited in turn for the last
//! event before it, and so on to the start of the iteration. So each moment of an iteration belongs to one step. A
//! share is the maximum reduction of an iteration's time if that step took no time.
//!
//! The time at which a flow's last byte arrived is not recorded. It is the time of its completion less an acknowledgement's
//! way back, or, if that is earlier, the latest time at which it must have arrived for the flows that waited for it. Both
//! are exact if the last acknowledgement met no queue, and the second one also if a flow began because of this arrival.

use std::collections::BTreeMap;

use experiment::{Dependency, FlowId, Ideals, Outcome, Setup, Start};
use serde::{Deserialize, Serialize};
use units::{Span, Time};

use crate::input::{Class, TrainingJob};
use crate::ordered::Ordered;
use crate::stats;

/// Most pairs of hosts that are listed.
const LISTED: usize = 8;
/// The name of computing among steps.
const COMPUTE: &str = "compute";

/// The iterations of a training job.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Training {
    /// The durations of the iterations that are over, in nanoseconds.
    pub iteration_ns: Vec<f64>,
    /// Their mean.
    pub iteration_mean_ns: Option<f64>,
    /// Their mean duration if no flow took any time: computing on the critical path.
    pub compute_ns: Option<f64>,
    /// Exposed communication: the rest of the mean.
    pub exposed_ns: Option<f64>,
    /// Shares of these iterations by the state of their critical path: `compute`, or waiting for a kind of flows. Their sum
    /// is 1.
    pub critical: Ordered<f64>,
    /// The share of flows between datacenters on it.
    pub inter: f64,
    /// The flows on it by kind and hosts, those that take most of it first.
    pub waits: Vec<Waited>,
}

/// Waiting time on critical paths for flows between two hosts.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Waited {
    /// The kind of the flows.
    pub step: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Inside a datacenter or between two.
    pub class: String,
    /// Their share of all iterations.
    pub share: f64,
}

/// The numbers of a job.
pub(super) fn training(job: &TrainingJob, setup: &Setup, outcome: &Outcome) -> Training {
    let mut path = CriticalPathWalk::new(job, setup, outcome);
    let (mut begins, mut took, mut compute) = (job.start, Vec::new(), Vec::new());
    for iteration in &job.iterations {
        let Some(ends) = path.follow(&iteration.ends, begins) else { break };
        took.push(ends.since(begins).unsigned_ps());
        compute.push(iteration.compute.unsigned_ps());
        begins = ends;
    }
    let total = took.iter().sum::<u64>().max(1) as f64;
    let mean = |list: &[u64]| stats::mean(list).map(|mean| mean.round() / 1_000.0);
    let (mean_ns, compute_ns) = (mean(&took), mean(&compute));
    let share = |ps: u64| ps as f64 / total;
    let mut critical = vec![(COMPUTE.to_owned(), if took.is_empty() { 0.0 } else { share(path.computing) })];
    for (kind, name) in (0u8..).zip(&job.kinds) {
        let ps = path.waits.iter().filter(|((of, ..), _)| *of == kind).map(|(_, ps)| ps).sum();
        if job.kind_of.contains(&kind) {
            critical.push((name.clone(), share(ps)));
        }
    }
    let host = |host: u32| setup.network.nodes()[setup.network.hosts()[host as usize].index()].name.clone();
    let is_inter = |(_, src, dst): &(u8, u32, u32)| {
        setup.network.datacenter_of(fabric::HostId(*src)) != setup.network.datacenter_of(fabric::HostId(*dst))
    };
    let inter: u64 = path.waits.iter().filter(|(pair, _)| is_inter(pair)).map(|(_, ps)| ps).sum();
    let mut pairs: Vec<(&(u8, u32, u32), &u64)> = path.waits.iter().collect();
    pairs.sort_by_key(|&(pair, ps)| (std::cmp::Reverse(*ps), *pair));
    let waits = pairs.into_iter().take(LISTED).map(|(pair, &ps)| Waited {
        step: job.kinds.get(usize::from(pair.0)).cloned().unwrap_or_default(),
        from: host(pair.1),
        to: host(pair.2),
        class: if is_inter(pair) { Class::Inter } else { Class::Intra }.name().to_owned(),
        share: share(ps),
    });
    Training {
        iteration_ns: took.iter().map(|&ps| stats::ns(ps)).collect(),
        iteration_mean_ns: mean_ns,
        compute_ns,
        exposed_ns: mean_ns.zip(compute_ns).map(|(mean, compute)| mean - compute),
        critical: Ordered(critical),
        inter: share(inter),
        waits: waits.collect(),
    }
}

/// Critical paths, followed backwards.
struct CriticalPathWalk<'a> {
    job: &'a TrainingJob,
    setup: &'a Setup,
    outcome: &'a Outcome,
    /// By flow of the job: when its receiver had everything.
    received: Vec<Time>,
    computing: u64,
    /// By kind, sender and receiver.
    waits: BTreeMap<(u8, u32, u32), u64>,
}

impl<'a> CriticalPathWalk<'a> {
    fn new(job: &'a TrainingJob, setup: &'a Setup, outcome: &'a Outcome) -> Self {
        let mut ideals = Ideals::new(setup);
        let first = job.first.0 as usize;
        let flows = first..first + job.kind_of.len();
        let arrival = |flow: usize| {
            let (started, completed) = (outcome.flows[flow].started, outcome.flows[flow].completed);
            if completed.is_set() {
                completed.saturating_sub(ideals.back(&setup.flows[flow])).max(started)
            } else {
                completed
            }
        };
        let mut received: Vec<Time> = flows.clone().map(arrival).collect();
        for flow in flows {
            let (spec, started) = (&setup.flows[flow], outcome.flows[flow].started);
            let Start::Waits { after, .. } = spec.start else { continue };
            for &cause in setup.dependencies_of(spec).iter().filter(|_| started.is_set()) {
                if let (Dependency::Received(FlowId(of)), Some(index)) = (cause, local(job, cause)) {
                    let latest = started.saturating_sub(after + setup.notice_delay(cause, spec));
                    received[index] = received[index].min(latest.max(outcome.flows[of as usize].started));
                }
            }
        }
        Self { job, setup, outcome, received, computing: 0, waits: BTreeMap::new() }
    }

    /// Returns the time at which a cause happened; [`Time::NEVER`] if it has not.
    fn time_of(&self, cause: Dependency) -> Time {
        let flow = &self.outcome.flows[cause.flow().0 as usize];
        match cause {
            Dependency::Begun(_) => flow.started,
            Dependency::Complete(_) => flow.completed,
            Dependency::Received(_) => local(self.job, cause).map_or(flow.completed, |index| self.received[index]),
        }
    }

    /// Follows the path from the end of an iteration to its beginning. Returns its end, if it ended.
    fn follow(&mut self, ends: &[(Dependency, Span)], begins: Time) -> Option<Time> {
        let ready_at = |&(cause, lag): &(Dependency, Span)| {
            let event_time = self.time_of(cause);
            (if event_time.is_set() { event_time + lag } else { Time::NEVER }, cause)
        };
        let (end, mut cause) = ends.iter().map(ready_at).max()?;
        if !end.is_set() {
            return None;
        }
        let mut at = end;
        while at > begins {
            let event_time = self.time_of(cause);
            self.computing += part(event_time, at, begins);
            let FlowId(flow) = cause.flow();
            let spec = &self.setup.flows[flow as usize];
            let started = self.outcome.flows[flow as usize].started;
            if !matches!(cause, Dependency::Begun(_))
                && let Some(kind) = local(self.job, cause).and_then(|index| self.job.kind_of.get(index))
            {
                *self.waits.entry((*kind, spec.src.0, spec.dst.0)).or_default() += part(started, event_time, begins);
            }
            at = started.min(at);
            let last = self
                .setup
                .dependencies_of(spec)
                .iter()
                .map(|&cause| (self.time_of(cause).saturating_add(self.setup.notice_delay(cause, spec)), cause));
            let Some((_, last)) = last.max() else {
                self.computing += part(begins, at, begins);
                break;
            };
            cause = last;
        }
        Some(end)
    }
}

/// Returns the part of an interval, in picoseconds, that is after `begins`.
fn part(from: Time, to: Time, begins: Time) -> u64 {
    to.ps().saturating_sub(from.max(begins).ps())
}

/// The place of a cause's flow among those of its job.
fn local(job: &TrainingJob, cause: Dependency) -> Option<usize> {
    let index = cause.flow().0.checked_sub(job.first.0)? as usize;
    (index < job.kind_of.len()).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::TrainingIteration;
    use crate::testbed;
    use experiment::FlowSpec;
    use units::Bytes;

    /// Two iterations of a chain over four flows of a run: out, computing, and back; the first host computes twice on the
    /// received data.
    fn chain() -> (TrainingJob, Setup) {
        let (_, mut setup, _) = testbed::two_datacenters();
        setup.series = experiment::SeriesConfig::default();
        let (mut there, size) = (setup.flows[0], Bytes::new(1_000));
        there.dst = setup.flows.iter().find(|flow| flow.kind != there.kind).map_or(there.dst, |flow| flow.dst);
        let back = FlowSpec { src: there.dst, dst: there.src, size, ..there };
        let us = Span::from_us;
        let there = FlowSpec { size, start: Start::At(Time::from_us(12)), ..there };
        setup.flows = vec![there, back, there, back];
        let received = |flow| Dependency::Received(FlowId(flow));
        setup.flows[1].start = setup.dependencies.start([received(0)], us(5));
        let both = [(Dependency::Begun(FlowId(0)), us(3)), (received(1), us(8))];
        let causes = setup.dependencies.add_each(both);
        setup.flows[2].start = Start::Waits { dependencies: causes, after: us(2) };
        setup.flows[3].start = setup.dependencies.start([received(2)], us(5));
        let iteration = |ends| TrainingIteration { ends, compute: us(15) };
        let iterations = vec![iteration(vec![(received(1), us(8))]), iteration(vec![(received(3), us(8))])];
        let (name, kinds) = ("gpt".to_owned(), vec!["there".to_owned(), "back".to_owned(), "never".to_owned()]);
        let job = TrainingJob {
            name,
            start: Time::from_us(10),
            first: FlowId(0),
            kinds,
            kind_of: vec![0, 1, 0, 1],
            iterations,
        };
        (job, setup)
    }

    #[test]
    fn iterations_and_their_critical_path_add_up() {
        let (job, setup) = chain();
        let outcome = testbed::run(&setup, 1);
        let numbers = training(&job, &setup, &outcome);
        // Computing of 2, 5 and 8 us, and two flows, alone in the network.
        let mut ideals = Ideals::new(&setup);
        let [there, back] = [0, 1].map(|flow| ideals.arrival(&setup.flows[flow]));
        assert_eq!(outcome.flows[1].started, Time::from_us(12 + 5) + there);
        let each = stats::ns((Span::from_us(15) + there + back).unsigned_ps());
        assert_eq!(numbers.iteration_ns, [each, each]);
        assert_eq!((numbers.iteration_mean_ns, numbers.compute_ns), (Some(each), Some(15_000.0)));
        assert!((numbers.exposed_ns.unwrap() - (each - 15_000.0)).abs() < 1e-6);
        let names: Vec<&str> = numbers.critical.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["compute", "there", "back"]);
        let shares: f64 = numbers.critical.iter().map(|(_, share)| share).sum();
        assert!((shares - 1.0).abs() < 1e-12, "{shares}");
        assert!((numbers.critical.get("compute").unwrap() - 15_000.0 / each).abs() < 1e-12);
        assert_eq!(numbers.waits.len(), 2);
        let waited: f64 = numbers.waits.iter().map(|wait| wait.share).sum();
        assert!((waited + 15_000.0 / each - 1.0).abs() < 1e-12 && (numbers.inter - waited).abs() < 1e-12);
        assert!(numbers.waits.iter().all(|wait| wait.class == "inter" && wait.from != wait.to));
    }

    #[test]
    fn an_iteration_that_is_not_over_does_not_count() {
        let (job, setup) = chain();
        let mut outcome = testbed::run(&setup, 1);
        outcome.flows[3].completed = Time::NEVER;
        assert_eq!(training(&job, &setup, &outcome).iteration_ns.len(), 1);
        outcome.flows[2].started = Time::NEVER;
        outcome.flows[1].completed = Time::NEVER;
        let none = training(&job, &setup, &outcome);
        assert_eq!((none.iteration_ns.len(), none.iteration_mean_ns, none.exposed_ns), (0, None, None));
        assert_eq!(none.critical.get("compute"), Some(&0.0));
    }

    /// Readers of jobs find the keys of any flows where they were, and results without training have no key for it.
    #[test]
    fn job_table_lists_its_keys_together() {
        let mut cell = crate::summary::JobCell::default();
        let json = serde_json::to_value(&cell).unwrap();
        let keys = |json: &serde_json::Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&json), ["count", "completed", "fct_ns", "slowdown", "goodput_bps"]);
        assert_eq!(serde_json::from_value::<crate::summary::JobCell>(json).unwrap(), cell);
        let (job, setup) = chain();
        cell.training = Some(training(&job, &setup, &testbed::run(&setup, 1)));
        let json = serde_json::to_value(&cell).unwrap();
        assert_eq!(keys(&json)[5], "training");
        assert_eq!(serde_json::from_value::<crate::summary::JobCell>(json).unwrap(), cell);
    }
}
