//! The run: partitions in epochs, on one thread or several.
//!
//! An epoch is as long as the shortest link between partitions, so that nothing sent in it arrives in it: the
//! partitions run apart and exchange packets at its end. Which thread runs a partition changes nothing.
//!
//! Threads that run an epoch together synchronise twice, and a barrier costs the same however short the epoch is. So the calling
//! thread leads, and runs an epoch alone unless the one before had enough work for others ([`Threads::min_events`]). Other threads
//! are made for the first epoch that they share, and sleep between those.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use experiment::{
    EngineStats, FlowOutcome, FlowSpec, LinkOutcome, Outcome, PauseSample, Predictions, RecordConfig, Recording, Setup,
};
use fabric::{LinkId, NodeId};
use laws::{ControlLaw, PathInfo};
use thiserror::Error;
use units::{Span, Time};

use crate::host::{Context, DependencyNotice, ReceiverCounters};
use crate::layout::{Layout, lookaheads};
use crate::links::Mail;
use crate::partition::Partition;

/// Windows of an epoch where no other partition limits it: often enough to see that all flows are done.
const WINDOWS_ALONE: u64 = 256;

/// The threads that may run partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// The most threads at once; at least 1 counts, and at most one a partition.
    pub max: usize,
    /// Several threads run an epoch if the threads other than the busiest one would have processed at least this number
    /// of events of the epoch before. With 0 they run every epoch.
    pub min_events: u64,
}

impl Threads {
    /// Least number of events that is worth a barrier. An estimate, not a measurement: at 50 ns an event or more that is 200 µs of
    /// work, and the two barriers of an epoch are taken to cost 15 µs, under a tenth of it.
    const MIN_SHARED_EVENTS: u64 = 4_000;

    /// At most `max` threads, in epochs with enough work for a barrier.
    pub fn up_to(max: usize) -> Self {
        Self { max, min_events: Self::MIN_SHARED_EVENTS }
    }

    /// Always `max` threads, even in epochs with little work: for tests.
    pub fn always(max: usize) -> Self {
        Self { max, min_events: 0 }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunProgress {
    /// Simulated time.
    pub time: Time,
    /// Packets that switches forwarded and hosts received so far.
    pub packet_hops: u64,
    /// Flows that are not complete.
    pub open: u64,
}

/// Messages of a partition for another one, exchanged at the end of an epoch.
#[derive(Default)]
struct Mailbox {
    mail: Vec<Mail>,
    notices: Vec<DependencyNotice>,
}

/// An internal error of the engine, found by [`run_checked`].
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error(
    "internal error at {node} after {time} of simulated time, seed {seed}: {message}; please report this with the scenario"
)]
pub struct InternalError {
    /// The name of the node where it is; `the run` where no node is to blame.
    pub node: String,
    /// The time up to which the node had run.
    pub time: Time,
    /// The run's seed.
    pub seed: u64,
    /// Description of the error.
    pub message: String,
}

/// Runs a simulation on up to `threads` threads, if an epoch has enough work for several. `make_law` returns the law of
/// each flow when it starts; `progress` is called now and then, on the calling thread, and ends the run by returning
/// `false`.
///
/// # Panics
/// If a law or `make_law` panics.
pub fn run<L, F>(setup: &Setup, threads: usize, make_law: F, progress: &mut dyn FnMut(RunProgress) -> bool) -> Outcome
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
{
    run_on(setup, Threads::up_to(threads), make_law, progress)
}

/// Runs a simulation like [`run`], on these threads.
///
/// # Panics
/// As [`run`].
pub fn run_on<L, F>(
    setup: &Setup,
    threads: Threads,
    make_law: F,
    progress: &mut dyn FnMut(RunProgress) -> bool,
) -> Outcome
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
{
    gather(setup, run_partitions(setup, threads, &make_law, progress, Watched::default()))
}

/// Runs a simulation like [`run`]. At the end of epochs it checks the state of links, ports, pools, records and
/// calendars against their invariants, as often as that takes no longer than the run itself. The end of the run is
/// always checked, and so are the [identities](experiment::broken_identities) of its outcome. The outcome is the same.
///
/// # Errors
/// [`InternalError`] at the first check that finds something wrong, of several the one in the node of the lowest number.
///
/// # Panics
/// As [`run`].
pub fn run_checked<L, F>(
    setup: &Setup,
    threads: usize,
    make_law: F,
    progress: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<Outcome, InternalError>
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
{
    let found = Mutex::new(None);
    let watched = Watched { checks: Some(&found), record: None };
    let ran = run_partitions(setup, Threads::up_to(threads), &make_law, progress, watched);
    let broken =
        |node: &str, time, message| Err(InternalError { node: node.to_owned(), time, seed: setup.seed, message });
    if let Some((node, time, message)) = found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return broken(&setup.network.nodes()[node.index()].name, time, message);
    }
    let outcome = gather(setup, ran);
    match experiment::broken_identities(setup, &outcome).into_iter().next() {
        Some(message) => broken("the run", outcome.until, message),
        None => Ok(outcome),
    }
}

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its outcome, as that of [`run`].
    pub outcome: Outcome,
    /// The log.
    pub recording: Recording,
}

/// Runs a simulation like [`run`], with a log of some flows and links. The outcome is the same.
///
/// # Panics
/// As [`run`].
pub fn run_recorded<L, F>(
    setup: &Setup,
    threads: usize,
    make_law: F,
    progress: &mut dyn FnMut(RunProgress) -> bool,
    record: &RecordConfig,
) -> Recorded
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
{
    let watched = Watched { checks: None, record: Some(record) };
    let mut ran = run_partitions(setup, Threads::up_to(threads), &make_law, progress, watched);
    let mut recording = Recording::default();
    ran.partitions.iter_mut().filter_map(Partition::take_recording).for_each(|log| recording.merge(log));
    recording.sort();
    Recorded { outcome: gather(setup, ran), recording }
}

/// Additional work of a run.
#[derive(Clone, Copy, Default)]
struct Watched<'a> {
    /// Sink of check failures, if the run is checked.
    checks: Option<&'a FirstError>,
    /// Recording configuration, if the run is recorded.
    record: Option<&'a RecordConfig>,
}

/// The first error found: its node, the time up to which that had run, and a description.
type FirstError = Mutex<Option<(NodeId, Time, String)>>;

/// The partitions after a run.
struct FinishedPartitions<L> {
    partitions: Vec<Partition<L>>,
    ended: Time,
    /// Set if the caller ended the run before its time.
    interrupted: bool,
    /// The most threads that ran an epoch.
    threads: usize,
}

/// Runs the partitions to the end, with checks if requested.
fn run_partitions<L, F>(
    setup: &Setup,
    threads: Threads,
    make_law: &F,
    progress: &mut dyn FnMut(RunProgress) -> bool,
    Watched { checks, record }: Watched<'_>,
) -> FinishedPartitions<L>
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
{
    let layout = Layout::new(&setup.network);
    let (window, between) = lookaheads(&setup.network);
    let epoch_windows = between.map_or(WINDOWS_ALONE, |between| between.unsigned_ps() / window.unsigned_ps());
    let length = Span::from_unsigned_ps(epoch_windows * window.unsigned_ps());
    let context = Context::new(setup, make_law);
    let count = layout.partitions();
    let part = |index| PartitionState {
        partition: Partition::new(index, setup, &layout, window, record),
        status: PartitionStatus { next: Time::NEVER, open: 0, hops: 0, events: 0 },
    };
    let parts = (0..count).map(|index| Mutex::new(part(index))).collect();
    let mailboxes = [(); 2].map(|()| (0..count).map(|_| Mutex::default()).collect());
    let work = EpochWork { setup, context: &context, layout: &layout, parts, mailboxes, checks };

    let epoch_barrier = EpochBarrier::new(threads.max.clamp(1, count));
    let (ended, interrupted, used) = std::thread::scope(|scope| {
        let mut workers = EngineThreads { epoch_barrier: &epoch_barrier, is_started: false };
        let mut epoch = Epoch { until: (Time::ZERO + length).min(setup.stop), turn: 0 };
        let mut shareable_events = 0;
        loop {
            if epoch_barrier.threads > 1 && shareable_events >= threads.min_events {
                workers.run(scope, &work, epoch);
            } else {
                (0..count).for_each(|index| work.step(index, epoch));
            }
            let status = work.status(epoch_barrier.threads);
            shareable_events = status.shareable_events;
            let until = epoch.until;
            let goes_on = progress(RunProgress { time: until, packet_hops: status.hops, open: status.open });
            let broken = checks.is_some_and(|found| lock(found).is_some());
            let is_over = until >= setup.stop || status.open == 0 || !status.next.is_set() || !goes_on || broken;
            let begins = until.max(Time::from_ps(status.next.ps() / window.unsigned_ps() * window.unsigned_ps()));
            if is_over || begins >= setup.stop {
                (0..count).for_each(|index| work.end(index, epoch));
                let ended = if is_over { until } else { setup.stop };
                return (ended, !goes_on, if workers.is_started { epoch_barrier.threads } else { 1 });
            }
            epoch = Epoch { until: (begins + length).min(setup.stop), turn: epoch.turn ^ 1 };
        }
    });
    let inner = |part: Mutex<PartitionState<L>>| part.into_inner().unwrap_or_else(PoisonError::into_inner).partition;
    FinishedPartitions { partitions: work.parts.into_iter().map(inner).collect(), ended, interrupted, threads: used }
}

/// A stretch of simulated time in which partitions do not affect each other.
#[derive(Clone, Copy)]
struct Epoch {
    until: Time,
    /// The mailboxes that it writes to in this epoch; its partitions read the other ones.
    turn: usize,
}

/// A partition, and its state after the last epoch.
struct PartitionState<L> {
    partition: Partition<L>,
    status: PartitionStatus,
}

/// The state of a partition after an epoch.
#[derive(Clone, Copy)]
struct PartitionStatus {
    /// The next active time of the partition, or of one to which it sent something.
    next: Time,
    /// Flows that have not ended.
    open: u64,
    /// Packets over links so far.
    hops: u64,
    /// Events of the epoch.
    events: u64,
}

/// The state of all partitions after an epoch.
struct CombinedStatus {
    next: Time,
    open: u64,
    hops: u64,
    /// Events of the epoch that others than the busiest thread processed, or would have.
    shareable_events: u64,
}

/// The partitions, and all that it takes to run them. Within an epoch one thread has a partition, so a lock never waits.
struct EpochWork<'a, L, F> {
    setup: &'a Setup,
    context: &'a Context<'a, F>,
    layout: &'a Layout,
    parts: Vec<Mutex<PartitionState<L>>>,
    /// Two of each, used in turn, so that mail of an epoch stays apart from that of the one before.
    mailboxes: [Vec<Mutex<Mailbox>>; 2],
    /// Errors found by checks; none if nothing is checked.
    checks: Option<&'a FirstError>,
}

impl<L: ControlLaw, F: Fn(&FlowSpec, &PathInfo) -> L> EpochWork<'_, L, F> {
    /// Runs a partition through an epoch.
    fn step(&self, index: usize, epoch: Epoch) {
        let mut part = lock(&self.parts[index]);
        let PartitionState { partition, status } = &mut *part;
        let before = partition.events();
        self.collect(index, partition, epoch.turn ^ 1);
        partition.run(epoch.until, self.context);
        if let Some(found) = self.checks
            && let Err((node, message)) = partition.check_if_due(epoch.until, self.setup)
        {
            note(found, node, epoch.until, message);
        }
        *status = PartitionStatus {
            next: self.post(partition, epoch.turn),
            open: partition.hosts.open,
            hops: partition.plane.forwarded + partition.received,
            events: partition.events() - before,
        };
    }

    /// Collects the last epoch's messages for a partition, and checks the partition a last time.
    fn end(&self, index: usize, epoch: Epoch) {
        let mut part = lock(&self.parts[index]);
        let partition = &mut part.partition;
        self.collect(index, partition, epoch.turn);
        if let Some(found) = self.checks
            && let Err((node, message)) = partition.check_at_end(epoch.until, self.setup)
        {
            note(found, node, epoch.until, message);
        }
    }

    /// Returns the state of all partitions after an epoch. Thread i of `threads` has every `threads`-th partition, from
    /// i on.
    fn status(&self, threads: usize) -> CombinedStatus {
        let mut all = CombinedStatus { next: Time::NEVER, open: 0, hops: 0, shareable_events: 0 };
        let mut busiest = 0;
        for thread in 0..threads {
            let mut events = 0;
            for part in self.parts.iter().skip(thread).step_by(threads) {
                let status = lock(part).status;
                all.next = all.next.min(status.next);
                all.open += status.open;
                all.hops += status.hops;
                events += status.events;
            }
            all.shareable_events += events;
            busiest = busiest.max(events);
        }
        all.shareable_events -= busiest;
        all
    }

    /// Posts a partition's messages for the others. Returns the next active time of it or of a partition that it sent a
    /// message to.
    fn post(&self, partition: &mut Partition<L>, turn: usize) -> Time {
        let mailboxes = &self.mailboxes[turn];
        let mut next = partition.plane.schedule().next_active_at();
        for mail in partition.plane.take_mail() {
            next = next.min(mail.packets[0].time);
            lock(&mailboxes[mail.to]).mail.push(mail);
        }
        for notice in std::mem::take(&mut partition.notices) {
            next = next.min(notice.notified_at);
            let host = self.setup.flows[notice.flow.0 as usize].src;
            let to = self.layout.partition_of(self.setup.network.hosts()[host.index()]);
            lock(&mailboxes[to]).notices.push(notice);
        }
        next
    }

    /// Collects the others' messages for a partition. Each link's packets come from one partition, in order.
    fn collect(&self, index: usize, partition: &mut Partition<L>, turn: usize) {
        let mut mailbox = lock(&self.mailboxes[turn][index]);
        for mail in mailbox.mail.drain(..) {
            partition.plane.deliver(mail);
        }
        for notice in mailbox.notices.drain(..) {
            partition.deliver_notice(notice, self.setup);
        }
    }
}

/// Records an error; of several, that of the node with the lowest number is kept.
fn note(found: &FirstError, node: NodeId, until: Time, message: String) {
    let mut found = lock(found);
    if found.as_ref().is_none_or(|&(other, ..)| node < other) {
        *found = Some((node, until, message));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Barrier at the beginning and at the end of an epoch that threads run together.
struct EpochBarrier {
    threads: usize,
    barrier: Barrier,
    /// End of the epoch that begins.
    until: AtomicU64,
    turn: AtomicUsize,
    /// Set after the last epoch.
    is_over: AtomicBool,
    /// A panic of a thread other than the leading one.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl EpochBarrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            barrier: Barrier::new(threads),
            until: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            panic: Mutex::new(None),
        }
    }

    /// Runs the part of an epoch's work that belongs to the thread of this number.
    fn share<L: ControlLaw, F: Fn(&FlowSpec, &PathInfo) -> L>(
        &self,
        thread: usize,
        work: &EpochWork<L, F>,
        epoch: Epoch,
    ) {
        (thread..work.parts.len()).step_by(self.threads).for_each(|index| work.step(index, epoch));
    }

    /// Runs the share of a thread that does not lead, epoch by epoch.
    fn follow<L: ControlLaw, F: Fn(&FlowSpec, &PathInfo) -> L>(&self, thread: usize, work: &EpochWork<L, F>) {
        loop {
            self.barrier.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let until = Time::from_ps(self.until.load(Ordering::Relaxed));
            let epoch = Epoch { until, turn: self.turn.load(Ordering::Relaxed) };
            // A panic waits for the end of the epoch: the others would wait for this thread forever.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.share(thread, work, epoch))) {
                *lock(&self.panic) = Some(panic);
            }
            self.barrier.wait();
        }
    }
}

/// The threads that follow the leading one. They end when this is dropped.
struct EngineThreads<'a> {
    epoch_barrier: &'a EpochBarrier,
    is_started: bool,
}

impl<'env> EngineThreads<'env> {
    /// Runs an epoch on all threads; those that are not there yet are made.
    fn run<'scope, L, F>(&mut self, scope: &'scope Scope<'scope, 'env>, work: &'env EpochWork<'env, L, F>, epoch: Epoch)
    where
        L: ControlLaw + Send,
        F: Fn(&FlowSpec, &PathInfo) -> L + Sync,
    {
        let epoch_barrier = self.epoch_barrier;
        if !self.is_started {
            for thread in 1..epoch_barrier.threads {
                scope.spawn(move || epoch_barrier.follow(thread, work));
            }
            self.is_started = true;
        }
        epoch_barrier.until.store(epoch.until.ps(), Ordering::Relaxed);
        epoch_barrier.turn.store(epoch.turn, Ordering::Relaxed);
        epoch_barrier.barrier.wait();
        let own = catch_unwind(AssertUnwindSafe(|| epoch_barrier.share(0, work, epoch)));
        epoch_barrier.barrier.wait();
        if let Some(panic) = own.err().or_else(|| lock(&epoch_barrier.panic).take()) {
            resume_unwind(panic);
        }
    }
}

impl Drop for EngineThreads<'_> {
    fn drop(&mut self) {
        if self.is_started {
            self.epoch_barrier.is_over.store(true, Ordering::Relaxed);
            self.epoch_barrier.barrier.wait();
        }
    }
}

fn gather<L: ControlLaw>(setup: &Setup, ran: FinishedPartitions<L>) -> Outcome {
    let FinishedPartitions { mut partitions, ended, interrupted, threads } = ran;
    let mut flows = vec![FlowOutcome::never_started(); setup.flows.len()];
    let mut links: Vec<LinkOutcome> = Vec::with_capacity(setup.network.links().len());
    let (mut port_samples, mut switch_samples, mut flow_samples) = (Vec::new(), Vec::new(), Vec::new());
    let mut receiver_counters: Vec<(u32, ReceiverCounters)> = Vec::new();
    let (mut switches, mut held_back, mut pauses) = (Vec::new(), Vec::new(), Vec::new());
    let mut predictions = Predictions::default();
    let (mut lost_of, mut copies_of) = (vec![0; setup.flows.len()], Vec::new());
    let until = ended;
    let mut engine =
        EngineStats { partitions: partitions.len() as u32, threads: threads as u32, ..EngineStats::default() };
    for partition in &mut partitions {
        partition.hosts.finish(ended, setup);
        for (flow, outcome) in std::mem::take(&mut partition.hosts.outcomes) {
            flows[flow as usize] = outcome;
        }
        receiver_counters.extend(std::mem::take(&mut partition.hosts.receiver_counters));
        flow_samples.append(&mut partition.hosts.samples);
        predictions.merge(&partition.hosts.predictions);
        let (mut of_ports, mut of_switches) = partition.plane.finish(ended, setup);
        port_samples.append(&mut of_ports);
        switch_samples.append(&mut of_switches);
        links.extend(partition.links(ended, setup));
        switches.extend(partition.plane.switches());
        held_back.append(&mut partition.plane.held_back(setup));
        pauses.extend(partition.plane.kept_pauses(ended, setup).chain(partition.hosts.kept_pauses(ended)));
        engine.events += partition.events();
        engine.data_packets += partition.hosts.data_packets;
        engine.data_received += partition.hosts.data_received;
        engine.or_acks += partition.hosts.or_acks();
        engine.data_in_flight += partition.plane.data_in_flight() + partition.hosts.data_delayed();
        for (all, &lost) in lost_of.iter_mut().zip(partition.plane.lost_of()) {
            *all = u32::saturating_add(*all, lost);
        }
        let copies = partition.plane.copies_of();
        copies_of.resize(copies.len().max(copies_of.len()), 0);
        for (all, &copied) in copies_of.iter_mut().zip(copies) {
            *all = u32::saturating_add(*all, copied);
        }
    }
    for (flow, counts) in receiver_counters {
        counts.add_to(&mut flows[flow as usize]);
    }
    engine.packet_hops = links.iter().map(|link| link.packets).sum();
    port_samples.sort_by_key(|sample| (sample.time, sample.link));
    switch_samples.sort_by_key(|sample| (sample.time, sample.node));
    flow_samples.sort_by_key(|sample| (sample.time, sample.flow));
    pauses.sort_by_key(|pause: &PauseSample| (pause.from, pause.link));
    let all_done = flows.iter().all(|flow| flow.completed.is_set());
    let last = flows.iter().map(|flow| flow.completed).filter(|time| time.is_set()).max();
    let ended = if all_done { last.unwrap_or(ended) } else { ended };
    Outcome {
        flows,
        links,
        lost_of,
        copies_of,
        switches,
        deadlock: deadlock(setup, &held_back),
        port_samples,
        switch_samples,
        pauses,
        flow_samples,
        predictions,
        ended,
        until,
        interrupted,
        engine,
    }
}

/// Returns the ports that wait for each other in a cycle of one class. `held_back` has (a paused port; a port of the same
/// switch that pauses its own other end in turn; the class): the port at that other end waits for the first.
fn deadlock(setup: &Setup, held_back: &[(LinkId, LinkId, u8)]) -> Vec<LinkId> {
    // The packets that `port` holds back arrived over the other direction of `cable`.
    let waits_for = |(link, class): (LinkId, u8)| -> Vec<(LinkId, u8)> {
        let reverse = |cable: LinkId| setup.network.links()[cable.index()].reverse;
        let of = held_back.iter().filter(|&&(_, cable, of)| (reverse(cable), of) == (link, class));
        of.map(|&(port, ..)| (port, class)).collect()
    };
    // A walk that returns to an earlier port: depth first, each port once.
    let mut state: BTreeMap<(LinkId, u8), bool> = BTreeMap::new();
    for &(start, _, class) in held_back {
        let start = (start, class);
        if state.contains_key(&start) {
            continue;
        }
        let mut path = vec![(start, waits_for(start))];
        state.insert(start, true);
        while let Some((at, left)) = path.last_mut() {
            let Some(next) = left.pop() else {
                state.insert(*at, false);
                path.pop();
                continue;
            };
            match state.get(&next) {
                Some(true) => {
                    let from = path.iter().position(|(at, _)| *at == next).unwrap_or(0);
                    return path[from..].iter().map(|((link, _), _)| *link).collect();
                }
                Some(false) => {}
                None => {
                    state.insert(next, true);
                    path.push((next, waits_for(next)));
                }
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{HostConfig, Start};
    use fabric::{HostId, Network, PortConfig, Routes, topology};
    use laws::fixed::{Fixed, Params};
    use units::{Bytes, Rate};

    fn setup(network: Network, flows: Vec<FlowSpec>) -> Setup {
        Setup {
            routes: Routes::new(&network).unwrap(),
            network,
            symmetric: false,
            flows,
            host: HostConfig::default(),
            dependencies: experiment::Dependencies::default(),
            modules: Vec::new(),
            ties: experiment::TieBreak::default(),
            series: experiment::SeriesConfig::default(),
            seed: 0,
            stop: Time::from_ms(100),
            intra_rtt: Span::from_us(4),
        }
    }

    /// Two datacenters of two hosts with this delay between them, and flows of `size` bytes in both directions, one
    /// each 10 us.
    fn apart(between: Span, flows: u32, size: u64) -> Setup {
        let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
        let side = vec![(port, port); 2];
        let bottleneck = PortConfig { delay: between, ..port };
        let shape = topology::Dumbbell { left: side.clone(), right: side, bottleneck, two_datacenters: true };
        let flow = |number: u32| FlowSpec {
            src: HostId(number % 4),
            dst: HostId((number + 2) % 4),
            size: Bytes::new(size),
            start: Start::At(Time::from_us(10 * u64::from(number))),
            kind: 0,
            class: 1,
            on_ramp: false,
            coded: false,
            kept: false,
        };
        setup(topology::dumbbell(&shape).unwrap(), (0..flows).map(flow).collect())
    }

    fn law(_: &FlowSpec, path: &PathInfo) -> Fixed {
        Fixed::new(path, Params { window: Bytes::new(1 << 26), paced: false })
    }

    /// Datacenters that are 64 ns apart have no epoch that is worth a barrier; those that are 1 ms apart have.
    #[test]
    fn threads_synchronise_if_an_epoch_has_enough_work() {
        for (between, size, meet) in [(Span::from_ns(64), 100_000, 1), (Span::from_ms(1), 40_000_000, 2)] {
            let setup = apart(between, 4, size);
            let ran = |threads| run_on(&setup, threads, law, &mut |_| true);
            let outcomes = [Threads::up_to(1), Threads::up_to(2), Threads::always(2)].map(ran);
            assert_eq!(outcomes.each_ref().map(|outcome| outcome.engine.threads), [1, meet, 2], "{between:?}");
            assert!(outcomes[0].flows.iter().all(|flow| flow.completed.is_set()));
            let same = |outcome: &Outcome| {
                let engine = EngineStats { threads: 1, ..outcome.engine };
                Outcome { engine, ..outcome.clone() } == outcomes[0]
            };
            assert!(outcomes.iter().all(same), "{between:?}");
        }
    }

    /// Panics of the caller's code are propagated, and the other threads end.
    #[test]
    fn a_panic_in_a_callback_ends_all_threads() {
        let setup = apart(Span::from_us(1), 4, 100_000);
        let run = || run_on(&setup, Threads::always(2), law, &mut |_| panic!("enough"));
        let panic = catch_unwind(AssertUnwindSafe(run)).map(drop).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"enough"));
    }

    /// However short epochs are, and however much is held, checks examine about as many entries as events are processed.
    #[test]
    fn checks_take_as_long_as_the_run() {
        let setup = apart(Span::from_ns(64), 400, 100_000);
        let found = Mutex::new(None);
        let watched = Watched { checks: Some(&found), record: None };
        let ran = run_partitions(&setup, Threads::up_to(1), &law, &mut |_| true, watched);
        assert_eq!(*lock(&found), None);
        for partition in &ran.partitions {
            let (events, examined) = (partition.events(), partition.examined());
            assert!(examined <= 2 * events && 2 * examined >= events, "{examined} entries, {events} events");
        }
    }

    /// Two ports that wait for each other: a circle where they hold back one class, none where each holds back another.
    #[test]
    fn a_deadlock_cycle_has_one_class() {
        let port = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
        let network = topology::single_switch(&topology::SingleSwitch { hosts: vec![(port, port); 2] }).unwrap();
        let setup = setup(network, Vec::new());
        let [a, b] = [LinkId(0), LinkId(1)];
        let back = |link: LinkId| setup.network.links()[link.index()].reverse;
        let found = |classes: [u8; 2]| deadlock(&setup, &[(a, back(b), classes[0]), (b, back(a), classes[1])]);
        assert_eq!(found([1, 1]).len(), 2);
        assert_eq!((found([1, 2]), found([2, 1])), (Vec::new(), Vec::new()));
        assert_eq!(deadlock(&setup, &[(a, back(b), 1), (b, back(a), 2), (b, back(a), 1)]).len(), 2);
    }
}
