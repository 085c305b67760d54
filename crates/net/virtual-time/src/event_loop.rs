//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use units::{Span, Time};

use crate::costs::HostCosts;

/// Maximum number of steps, or of calls of one host within a step, without progress of virtual time. More are a bug of
/// a host or of the network.
const MAX_CALLS_AT_ONE_TIME: u32 = 1_000_000;

/// A host's number, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostIndex(pub u32);

impl HostIndex {
    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A sans-IO host: protocol state and its applications.
pub trait Host {
    /// A packet on its way.
    type Packet;

    /// Handles a packet that has arrived.
    fn receive(&mut self, now: Time, packet: Self::Packet);

    /// Handles expired timers, and runs applications. Called once in each round of a host's work, after the packets of
    /// that round: a packet, a timer ([`Host::next_wake`]), an idle NIC or [`EventLoop::wake`] begins a round.
    fn wake(&mut self, now: Time);

    /// Returns the next packet to send, if any. Called repeatedly while the network accepts packets.
    fn poll_send(&mut self, now: Time) -> Option<Self::Packet>;

    /// Returns the time of its next timer; [`Time::NEVER`] if it waits for packets only. Called after
    /// [`Host::poll_send`].
    fn next_wake(&mut self) -> Time;
}

/// A packet for a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// The destination.
    pub host: HostIndex,
    /// The packet.
    pub packet: P,
}

/// The network between the hosts.
pub trait Network {
    /// A packet on its way.
    type Packet;

    /// Returns the time from which a host's NIC accepts packets; [`Time::NEVER`] while it is paused.
    fn accepts_at(&self, host: HostIndex) -> Time;

    /// Accepts a packet from a host. All events before `now` have been processed.
    fn accept(&mut self, now: Time, host: HostIndex, packet: Self::Packet);

    /// Returns the time of the next event; [`Time::NEVER`] if the network is empty.
    fn next_event(&self) -> Time;

    /// Processes the events that are due at `now`, which is the time of [`Network::next_event`]. Appends the packets that
    /// have arrived to `delivered`.
    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Self::Packet>>);
}

/// Work that [`EventLoop::step`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An event of the network.
    Network,
    /// Work of a host.
    Host(HostIndex),
    /// No work: no event is due by the limit. The loop's time is now the limit.
    Idle,
}

/// Stage of a host's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Asleep,
    /// Receiving a batch; the number of packets handled so far.
    Receiving(u32),
    Timers,
    /// Sending a batch; the number of packets sent so far.
    Sending(u32),
}

/// Continuation of a host's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// The next stage, after this time of the processor.
    After(Stage, Span),
    /// Sleep until this time, unless a packet arrives.
    Sleep(Time),
    /// Sleep until this time, when the NIC accepts packets, unless a packet arrives or a timer expires before.
    WaitForNic(Time),
}

#[derive(Debug)]
struct HostState<H: Host> {
    host: H,
    costs: HostCosts,
    /// Packets that have arrived and are not handled.
    inbox: VecDeque<H::Packet>,
    stage: Stage,
    /// Time of its valid entry in `EventLoop::queue`; [`Time::NEVER`] if it has none.
    scheduled: Time,
    /// Set while the host sleeps until its NIC accepts packets. This wake-up costs no time: the processor waits for the
    /// NIC.
    waits_for_nic: bool,
}

/// Hosts and their network in virtual time.
#[derive(Debug)]
pub struct EventLoop<H: Host, N> {
    hosts: Vec<HostState<H>>,
    network: N,
    now: Time,
    /// Times at which hosts want to be called; those that are not a host's [`HostState::scheduled`] are void.
    queue: BinaryHeap<Reverse<(Time, HostIndex)>>,
    /// Hosts with a NIC that is paused until an event of the network.
    paused: Vec<HostIndex>,
    delivered: Vec<Delivery<H::Packet>>,
    steps: u64,
    calls_at_one_time: u32,
}

impl<H: Host, N: Network<Packet = H::Packet>> EventLoop<H, N> {
    /// Creates a loop at time zero. All hosts are called at once.
    pub fn new(hosts: impl IntoIterator<Item = H>, network: N, costs: HostCosts) -> Self {
        let state = |host| HostState {
            host,
            costs,
            inbox: VecDeque::new(),
            stage: Stage::Asleep,
            scheduled: Time::NEVER,
            waits_for_nic: false,
        };
        let mut event_loop = Self {
            hosts: hosts.into_iter().map(state).collect(),
            network,
            now: Time::ZERO,
            queue: BinaryHeap::new(),
            paused: Vec::new(),
            delivered: Vec::new(),
            steps: 0,
            calls_at_one_time: 0,
        };
        (0..event_loop.hosts.len() as u32).for_each(|host| event_loop.wake(HostIndex(host)));
        event_loop
    }

    /// Returns the time now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns a host. If the caller adds work to it, it must call [`EventLoop::wake`].
    pub fn host(&mut self, host: HostIndex) -> &mut H {
        &mut self.hosts[host.index()].host
    }

    /// Returns all hosts, in order.
    pub fn hosts(&self) -> impl Iterator<Item = &H> {
        self.hosts.iter().map(|state| &state.host)
    }

    /// Returns the network.
    pub fn network(&mut self) -> &mut N {
        &mut self.network
    }

    /// Ends the loop and returns the network.
    pub fn into_network(self) -> N {
        self.network
    }

    /// Wakes a host now, because an application has something to do.
    pub fn wake(&mut self, host: HostIndex) {
        if self.hosts[host.index()].stage == Stage::Asleep {
            self.schedule(host, self.now);
        }
    }

    /// Returns the time of the next step; [`Time::NEVER`] if nothing can happen any more.
    pub fn next_at(&mut self) -> Time {
        self.next_host().map_or(Time::NEVER, |(time, _)| time).min(self.network.next_event())
    }

    /// Processes the next event, unless it is after `limit`.
    ///
    /// # Panics
    /// If time stands still for a million steps: a host or the network is broken.
    pub fn step(&mut self, limit: Time) -> Step {
        let host = self.next_host();
        let (host_at, network_at) = (host.map_or(Time::NEVER, |(time, _)| time), self.network.next_event());
        let at = host_at.min(network_at);
        if at > limit || !at.is_set() {
            self.now = self.now.max(limit);
            return Step::Idle;
        }
        self.steps += 1;
        self.calls_at_one_time = if at > self.now { 0 } else { self.calls_at_one_time + 1 };
        assert!(self.calls_at_one_time < MAX_CALLS_AT_ONE_TIME, "time stands still at {} ps", at.ps());
        self.now = self.now.max(at);
        match host {
            Some((_, host)) if host_at < network_at => {
                self.queue.pop();
                self.hosts[host.index()].scheduled = Time::NEVER;
                self.run(host);
                Step::Host(host)
            }
            _ => {
                self.advance_network();
                Step::Network
            }
        }
    }

    /// Returns the host that is called next, and when.
    fn next_host(&mut self) -> Option<(Time, HostIndex)> {
        while let Some(&Reverse((time, host))) = self.queue.peek() {
            if self.hosts[host.index()].scheduled == time {
                return Some((time, host));
            }
            self.queue.pop();
        }
        None
    }

    fn schedule(&mut self, host: HostIndex, at: Time) {
        let state = &mut self.hosts[host.index()];
        if at < state.scheduled {
            state.scheduled = at;
            self.queue.push(Reverse((at, host)));
        }
    }

    fn advance_network(&mut self) {
        let mut delivered = std::mem::take(&mut self.delivered);
        self.network.advance(self.now, &mut delivered);
        for Delivery { host, packet } in delivered.drain(..) {
            self.hosts[host.index()].inbox.push_back(packet);
            self.wake(host);
        }
        self.delivered = delivered;
        if !self.paused.is_empty() {
            self.resume();
        }
    }

    /// Schedules hosts with a NIC that accepts packets again.
    fn resume(&mut self) {
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|&host| {
            let at = self.network.accepts_at(host);
            let is_awake = self.hosts[host.index()].stage != Stage::Asleep;
            if at.is_set() && !is_awake {
                let at = at.max(self.now);
                // A timer that expires before wakes it as always.
                self.hosts[host.index()].waits_for_nic = at < self.hosts[host.index()].scheduled;
                self.schedule(host, at);
            }
            !at.is_set() && !is_awake
        });
        self.paused = paused;
    }

    /// Lets a host work until it sleeps, or its processor is busy for a while.
    fn run(&mut self, index: HostIndex) {
        let mut calls = 0;
        loop {
            calls += 1;
            assert!(calls < MAX_CALLS_AT_ONE_TIME, "host {} works without end", index.0);
            match self.work(index) {
                Next::After(stage, cost) => {
                    self.hosts[index.index()].stage = stage;
                    if !cost.is_zero() {
                        return self.schedule(index, self.now + cost);
                    }
                }
                Next::Sleep(until) => {
                    self.hosts[index.index()].stage = Stage::Asleep;
                    return self.schedule(index, until);
                }
                Next::WaitForNic(until) => {
                    let state = &mut self.hosts[index.index()];
                    (state.stage, state.waits_for_nic) = (Stage::Asleep, true);
                    return self.schedule(index, until);
                }
            }
        }
    }

    /// Does one piece of a host's work: a packet, its timers, or the decision to sleep.
    fn work(&mut self, index: HostIndex) -> Next {
        let Self { hosts, network, now, paused, .. } = self;
        let (state, now) = (&mut hosts[index.index()], *now);
        let costs = state.costs;
        let is_full = |packets: u32| costs.batch_packets > 0 && packets >= costs.batch_packets;
        let of_batch = |packets: u32| if packets > 0 { costs.batch } else { Span::ZERO };
        match state.stage {
            Stage::Asleep => {
                let for_nic = std::mem::take(&mut state.waits_for_nic) && state.inbox.is_empty();
                Next::After(Stage::Receiving(0), if for_nic { Span::ZERO } else { costs.wake_up })
            }
            Stage::Receiving(packets) => match state.inbox.pop_front_if(|_| !is_full(packets)) {
                Some(packet) => {
                    state.host.receive(now, packet);
                    Next::After(Stage::Receiving(packets + 1), costs.packet)
                }
                None => Next::After(Stage::Timers, of_batch(packets)),
            },
            Stage::Timers => {
                state.host.wake(now);
                Next::After(Stage::Sending(0), Span::ZERO)
            }
            Stage::Sending(packets) => {
                let accepts_at = network.accepts_at(index);
                if accepts_at <= now
                    && !is_full(packets)
                    && let Some(packet) = state.host.poll_send(now)
                {
                    network.accept(now, index, packet);
                    return Next::After(Stage::Sending(packets + 1), costs.packet);
                }
                let wake_at = state.host.next_wake();
                if !state.inbox.is_empty() || wake_at <= now || (is_full(packets) && accepts_at <= now) {
                    return Next::After(Stage::Receiving(0), of_batch(packets));
                }
                if packets > 0 && !costs.batch.is_zero() {
                    return Next::After(Stage::Sending(0), costs.batch);
                }
                let wake_at = wake_at.saturating_add(costs.timer_slack);
                if accepts_at > now && !accepts_at.is_set() && !paused.contains(&index) {
                    paused.push(index);
                }
                if accepts_at <= now || wake_at <= accepts_at {
                    return Next::Sleep(wake_at);
                }
                Next::WaitForNic(accepts_at)
            }
        }
    }
}
