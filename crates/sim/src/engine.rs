//! The run: partitions in epochs, on one thread or several.
//!
//! An epoch is as long as the shortest link between partitions, so that nothing sent in it arrives in it: the
//! partitions run apart and exchange packets at its end. Which thread runs a partition changes nothing.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use fabric::{LinkId, NodeId};
use laws::{ControlLaw, Path};
use thiserror::Error;
use units::{Span, Time};

use crate::host::{Context, Elsewhere, News};
use crate::layout::{Layout, lookaheads};
use crate::links::Mail;
use crate::outcome::{EngineStats, FlowOutcome, LinkOutcome, Outcome};
use crate::partition::Partition;
use crate::predictions::Predictions;
use crate::series::PauseSample;
use crate::setup::{FlowSpec, Setup};

/// Windows of an epoch where no other partition limits it: often enough to see that all flows are done.
const WINDOWS_ALONE: u64 = 256;

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Simulated time.
    pub time: Time,
    /// Packets that switches forwarded and hosts received so far.
    pub packet_hops: u64,
    /// Flows that are not complete.
    pub open: u64,
}

/// What a partition has for another at the end of an epoch.
#[derive(Default)]
struct Mailbox {
    mail: Vec<Mail>,
    news: Vec<News>,
}

/// What threads tell each other at the end of an epoch; two of each, used in turn, so that a fast thread's next
/// epoch does not touch what a slow one still reads.
struct Shared {
    barrier: Barrier,
    boxes: [Vec<Mutex<Mailbox>>; 2],
    /// Per partition: when it is next active, in picoseconds; flows open; hops so far.
    next: [Vec<AtomicU64>; 2],
    open: [Vec<AtomicU64>; 2],
    hops: [Vec<AtomicU64>; 2],
    stop: AtomicBool,
}

/// Something in the engine is not as it must be: a mistake of this program, found by [`run_checked`].
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{node} is broken after {time} of simulated time, seed {seed}: {what}; please report this with the scenario")]
pub struct Broken {
    /// The name of the node where it is.
    pub node: String,
    /// Up to when the node had run.
    pub time: Time,
    /// The run's seed.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
}

/// Runs a simulation on up to `threads` threads. `make_law` gives each flow its law when it starts; `progress`
/// is called now and then, on the calling thread, and ends the run by answering `false`.
///
/// # Panics
/// If a law or `make_law` panics.
pub fn run<L, F>(setup: &Setup, threads: usize, make_law: F, progress: &mut dyn FnMut(Progress) -> bool) -> Outcome
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &Path) -> L + Sync,
{
    let (partitions, ended, interrupted, threads) = run_partitions(setup, threads, &make_law, progress, None);
    gather(setup, partitions, ended, interrupted, threads)
}

/// The same, and at the end of every epoch what links, ports, pools, records and calendars hold is checked against what
/// is said of them. The outcome is the same.
///
/// # Errors
/// [`Broken`] at the first epoch in which something is wrong, of several the one in the node of the lowest number.
///
/// # Panics
/// If a law or `make_law` panics.
pub fn run_checked<L, F>(
    setup: &Setup,
    threads: usize,
    make_law: F,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, Broken>
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &Path) -> L + Sync,
{
    let found = Mutex::new(None);
    let (partitions, ended, interrupted, threads) = run_partitions(setup, threads, &make_law, progress, Some(&found));
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(gather(setup, partitions, ended, interrupted, threads)),
        Some((node, time, what)) => {
            let node = setup.network.nodes()[node.index()].name.clone();
            Err(Broken { node, time, seed: setup.seed, what })
        }
    }
}

/// What was found to be wrong: in which node, up to when that had run, and what.
type Found = Mutex<Option<(NodeId, Time, String)>>;

/// Runs the partitions to the end, and looks for what is wrong where that is asked for. Gives them, when that was, whether
/// something ended the run before its time, and on how many threads it ran.
fn run_partitions<L, F>(
    setup: &Setup,
    threads: usize,
    make_law: &F,
    progress: &mut dyn FnMut(Progress) -> bool,
    checks: Option<&Found>,
) -> (Vec<Partition<L>>, Time, bool, usize)
where
    L: ControlLaw + Send,
    F: Fn(&FlowSpec, &Path) -> L + Sync,
{
    let layout = Layout::new(&setup.network);
    let (window, between) = lookaheads(&setup.network);
    let epoch_windows = between.map_or(WINDOWS_ALONE, |between| between.unsigned_ps() / window.unsigned_ps());
    let epoch = Span::from_unsigned_ps(epoch_windows * window.unsigned_ps());
    let context = Context::new(setup, make_law);
    let count = layout.partitions();
    let threads = threads.clamp(1, count);

    let mut shares: Vec<Vec<(usize, Partition<L>)>> = (0..threads).map(|_| Vec::new()).collect();
    for index in 0..count {
        shares[index % threads].push((index, Partition::new(index, setup, &layout, window)));
    }
    let counters = || (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let shared = Shared {
        barrier: Barrier::new(threads),
        boxes: [(); 2].map(|()| (0..count).map(|_| Mutex::default()).collect()),
        next: [counters(), counters()],
        open: [counters(), counters()],
        hops: [counters(), counters()],
        stop: AtomicBool::new(false),
    };
    let worker = Worker { setup, context: &context, layout: &layout, shared: &shared, window, epoch, checks };

    let mine = shares.remove(0);
    let (ended, mut partitions) = std::thread::scope(|scope| {
        let others: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(|| worker.run(share, &mut |_| true, false))).collect();
        let (ended, mut partitions) = worker.run(mine, progress, true);
        for other in others {
            match other.join() {
                Ok((_, share)) => partitions.extend(share),
                Err(panic) => resume_unwind(panic),
            }
        }
        (ended, partitions)
    });
    partitions.sort_by_key(|(index, _)| *index);
    let interrupted = shared.stop.load(Ordering::Relaxed);
    (partitions.into_iter().map(|(_, partition)| partition).collect(), ended, interrupted, threads)
}

/// What every thread of a run shares.
struct Worker<'a, F> {
    setup: &'a Setup,
    context: &'a Context<'a, F>,
    layout: &'a Layout,
    shared: &'a Shared,
    window: Span,
    /// Whole windows.
    epoch: Span,
    /// What checks have found; none where nothing is checked.
    checks: Option<&'a Found>,
}

impl<F> Worker<'_, F> {
    /// Runs a share of the partitions to the end. Returns when that was.
    fn run<L: ControlLaw>(
        &self,
        mut share: Vec<(usize, Partition<L>)>,
        progress: &mut dyn FnMut(Progress) -> bool,
        reports: bool,
    ) -> (Time, Vec<(usize, Partition<L>)>)
    where
        F: Fn(&FlowSpec, &Path) -> L,
    {
        let stop = self.setup.stop;
        let mut begins = Time::ZERO;
        let mut turn = 0;
        loop {
            let until = (begins + self.epoch).min(stop);
            // A panic goes on only when all have left the epoch: the others would wait for this thread forever.
            let epoch = catch_unwind(AssertUnwindSafe(|| {
                for (index, partition) in &mut share {
                    partition.run(until, self.context);
                    if let Some(found) = self.checks {
                        self.check(partition, until, found);
                    }
                    self.post(*index, partition, turn);
                }
            }));
            if epoch.is_err() {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            self.shared.barrier.wait();
            for (index, partition) in &mut share {
                self.collect(*index, partition, turn);
            }
            let sum = |values: &[AtomicU64]| values.iter().map(|value| value.load(Ordering::Relaxed)).sum::<u64>();
            let open = sum(&self.shared.open[turn]);
            let next = self.shared.next[turn].iter().map(|value| value.load(Ordering::Relaxed)).min();
            let next = next.map_or(Time::NEVER, Time::from_ps);
            if reports {
                let packet_hops = sum(&self.shared.hops[turn]);
                if !progress(Progress { time: until, packet_hops, open }) {
                    self.shared.stop.store(true, Ordering::Relaxed);
                }
            }
            // Everyone sees the same counts, and the same wish to stop, so everyone leaves in the same epoch.
            self.shared.barrier.wait();
            if let Err(panic) = epoch {
                resume_unwind(panic);
            }
            let stopped = self.shared.stop.load(Ordering::Relaxed);
            if until >= stop || open == 0 || !next.is_set() || stopped {
                return (until, share);
            }
            let window_ps = self.window.unsigned_ps();
            begins = until.max(Time::from_ps(next.ps() / window_ps * window_ps));
            if begins >= stop {
                return (stop, share);
            }
            turn ^= 1;
        }
    }

    /// Checks a partition that has run up to `until`. If something is wrong the run ends.
    fn check<L: ControlLaw>(&self, partition: &mut Partition<L>, until: Time, found: &Found) {
        if let Err((node, what)) = partition.check(until, self.setup) {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.as_ref().is_none_or(|&(other, ..)| node < other) {
                *found = Some((node, until, what));
            }
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Leaves what a partition has for the others, and its counts.
    fn post<L: ControlLaw>(&self, index: usize, partition: &mut Partition<L>, turn: usize) {
        let boxes = &self.shared.boxes[turn];
        let mut next = partition.plane.schedule().next_active_at();
        for mail in partition.plane.take_mail() {
            next = next.min(mail.packets[0].time);
            boxes[mail.to].lock().unwrap_or_else(PoisonError::into_inner).mail.push(mail);
        }
        for news in std::mem::take(&mut partition.news) {
            next = next.min(news.heard);
            let host = self.setup.flows[news.flow.0 as usize].src;
            let to = self.layout.partition_of(self.setup.network.hosts()[host.index()]);
            boxes[to].lock().unwrap_or_else(PoisonError::into_inner).news.push(news);
        }
        self.shared.next[turn][index].store(next.ps(), Ordering::Relaxed);
        self.shared.open[turn][index].store(partition.hosts.open, Ordering::Relaxed);
        let hops = partition.plane.forwarded + partition.received;
        self.shared.hops[turn][index].store(hops, Ordering::Relaxed);
    }

    /// Takes what the others left for a partition. Each link's packets come from one partition, in order.
    fn collect<L: ControlLaw>(&self, index: usize, partition: &mut Partition<L>, turn: usize) {
        let mut mailbox = self.shared.boxes[turn][index].lock().unwrap_or_else(PoisonError::into_inner);
        for mail in mailbox.mail.drain(..) {
            partition.plane.deliver(mail);
        }
        for news in mailbox.news.drain(..) {
            partition.deliver_news(news, self.setup);
        }
    }
}

fn gather<L: ControlLaw>(
    setup: &Setup,
    mut partitions: Vec<Partition<L>>,
    ended: Time,
    interrupted: bool,
    threads: usize,
) -> Outcome {
    let mut flows = vec![FlowOutcome::never_started(); setup.flows.len()];
    let mut links: Vec<LinkOutcome> = Vec::with_capacity(setup.network.links().len());
    let (mut port_samples, mut switch_samples, mut flow_samples) = (Vec::new(), Vec::new(), Vec::new());
    let mut elsewhere: Vec<(u32, Elsewhere)> = Vec::new();
    let (mut switches, mut held_back, mut pauses) = (Vec::new(), Vec::new(), Vec::new());
    let mut predictions = Predictions::default();
    let mut lost_of = vec![0; setup.flows.len()];
    let until = ended;
    let mut engine =
        EngineStats { partitions: partitions.len() as u32, threads: threads as u32, ..EngineStats::default() };
    for partition in &mut partitions {
        partition.hosts.finish(ended, setup);
        for (flow, outcome) in std::mem::take(&mut partition.hosts.outcomes) {
            flows[flow as usize] = outcome;
        }
        elsewhere.extend(std::mem::take(&mut partition.hosts.elsewhere));
        flow_samples.append(&mut partition.hosts.samples);
        predictions.merge(&partition.hosts.predictions);
        let (mut of_ports, mut of_switches) = partition.plane.finish(ended, setup);
        port_samples.append(&mut of_ports);
        switch_samples.append(&mut of_switches);
        links.extend(partition.links(ended, setup));
        switches.extend(partition.plane.switches());
        held_back.append(&mut partition.plane.held_back(setup));
        pauses.extend(partition.plane.kept_pauses(ended, setup).chain(partition.hosts.kept_pauses(ended)));
        engine.events += partition.plane.forwarded + partition.received + partition.acts;
        engine.data_packets += partition.hosts.data_packets;
        engine.data_received += partition.hosts.data_received;
        engine.or_acks += partition.hosts.or_acks();
        engine.data_in_flight += partition.plane.data_in_flight() + partition.hosts.data_delayed();
        for (all, &lost) in lost_of.iter_mut().zip(partition.plane.lost_of()) {
            *all = u32::saturating_add(*all, lost);
        }
    }
    for (flow, counts) in elsewhere {
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

/// Ports that wait for each other in a circle of one class. `held_back` has (a port that the other end pauses, a port of
/// the same switch whose other end it pauses in turn, the class): the port at that other end waits for the first.
fn deadlock(setup: &Setup, held_back: &[(LinkId, LinkId, u8)]) -> Vec<LinkId> {
    // The packets that `port` holds back came in over the other direction of `cable`.
    let waits_for = |(link, class): (LinkId, u8)| -> Vec<(LinkId, u8)> {
        let reverse = |cable: LinkId| setup.network.links()[cable.index()].reverse;
        let of = held_back.iter().filter(|&&(_, cable, of)| (reverse(cable), of) == (link, class));
        of.map(|&(port, ..)| (port, class)).collect()
    };
    // A walk that comes back to where it was: depth first, each port once.
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
    use crate::setup::HostConfig;
    use fabric::{PortConfig, Routes, topology};
    use units::Rate;

    /// Two ports that wait for each other: a circle where they hold back one class, none where each holds back another.
    #[test]
    fn a_circle_is_of_one_class() {
        let port = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
        let network = topology::single_switch(&topology::SingleSwitch { hosts: vec![(port, port); 2] }).unwrap();
        let setup = Setup {
            routes: Routes::new(&network).unwrap(),
            network,
            symmetric: false,
            flows: Vec::new(),
            host: HostConfig::default(),
            causes: crate::Causes::default(),
            modules: Vec::new(),
            ties: crate::Ties::default(),
            series: crate::SeriesConfig::default(),
            seed: 0,
            stop: Time::ZERO,
            intra_rtt: Span::ZERO,
        };
        let [a, b] = [LinkId(0), LinkId(1)];
        let back = |link: LinkId| setup.network.links()[link.index()].reverse;
        let found = |classes: [u8; 2]| deadlock(&setup, &[(a, back(b), classes[0]), (b, back(a), classes[1])]);
        assert_eq!(found([1, 1]).len(), 2);
        assert_eq!((found([1, 2]), found([2, 1])), (Vec::new(), Vec::new()));
        assert_eq!(deadlock(&setup, &[(a, back(b), 1), (b, back(a), 2), (b, back(a), 1)]).len(), 2);
    }
}
