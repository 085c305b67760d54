//! The hosts of one partition: selection of the next packet, responses to packets, timers and flow starts.
//!
//! A host passes its NIC a packet only when the NIC is idle, round robin among the flows that may send, so a flow's packet
//! never waits behind another flow's burst in the host. Acknowledgements and notifications go to the NIC at once and so
//! overtake all data that is not yet in transmission, unless their class is paused (`pauses`). The stages of a few flows
//! between their law and the NIC are in `shim`.
//!
//! Hosts do not depend on an engine: an engine delivers packets to them, supplies the time, and takes their packets
//! over a [`Nic`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use experiment::{Dependency, FlowId, FlowOutcome, FlowSample, FlowSpec, Pending, Predictions, Setup, Start, Waits};
use fabric::{HostId, LinkId};
use flow::credits::CreditSender;
use flow::{EntropyEcho, LoadBalancing, OnRampHold};
use laws::on_ramp::{LastOwd, OnRamp};
use laws::{ControlLaw, Hop, PathInfo};
use units::{Bytes, Span, Time};

use crate::optional_index::OptionalIndex;
use crate::packet::{Packet, TelemetrySlot};
use crate::ticks::Ticks;

mod calendar;
mod check;
mod connections;
mod credits;
mod jitter;
mod pauses;
mod policy;
mod predictors;
mod receiving;
mod run_queue;
mod sending;
mod shim;
mod signals;
mod view;

use calendar::{Calendar, Due, FlowSide};
use connections::Connections;
pub use credits::ReceiverCounters;
use credits::{HostAckState, HostCredits};
use jitter::Delayed;
use pauses::Pauses;
use policy::{credit_config, credits_of, flow_config};
use receiving::{ReceiverSlot, Receiving};
use run_queue::RunQueue;
use sending::{Active, SendQueue};
use shim::{PacketNotes, ShimState};

/// A host's NIC.
pub trait Nic {
    /// Returns the time at which the NIC becomes idle.
    fn idle_at(&self) -> Time;
    /// Sends a packet that is handed over at `packet.time`.
    fn transmit(&mut self, packet: Packet);
    /// Sends a packet, with the report that it carries back.
    fn transmit_with(&mut self, packet: Packet, report: TelemetrySlot) {
        self.forget(report);
        self.transmit(packet);
    }
    /// Records that the transport receives a packet that waited in the host.
    fn received_late(&mut self, packet: &Packet) {
        let _ = packet;
    }
    /// Attaches a note to a packet that is about to be sent; does nothing if packets carry no reports.
    fn note(&mut self, note: Hop) -> TelemetrySlot {
        let _ = note;
        TelemetrySlot::NONE
    }
    /// Returns the reports of the ports that a packet passed, in order.
    fn hops(&self, report: TelemetrySlot) -> &[Hop] {
        let _ = report;
        &[]
    }
    /// Releases a report that was read, or lost.
    fn forget(&mut self, report: TelemetrySlot) {
        let _ = report;
    }
}

/// Constant data that hosts read.
pub struct Context<'a, F> {
    /// The run.
    pub setup: &'a Setup,
    /// Makes each flow's law.
    pub make_law: &'a F,
    waits: Waits,
    sampled: Vec<bool>,
    /// Empty where no flow's packets are compared.
    predicted: Vec<bool>,
}

impl<'a, F> Context<'a, F> {
    /// Indexes a setup.
    pub fn new(setup: &'a Setup, make_law: &'a F) -> Self {
        let chosen = |flows: &[FlowId]| {
            let mut chosen = vec![false; if flows.is_empty() { 0 } else { setup.flows.len() }];
            for flow in flows {
                chosen[flow.0 as usize] = true;
            }
            chosen
        };
        let predicted = if setup.host.int { Vec::new() } else { chosen(&setup.series.predictors) };
        Self { setup, make_law, waits: Waits::new(setup), sampled: chosen(&setup.series.flows), predicted }
    }

    fn samples(&self, flow: u32) -> bool {
        self.sampled.get(flow as usize).copied().unwrap_or(false)
    }

    fn predicts(&self, flow: u32) -> bool {
        self.predicted.get(flow as usize).copied().unwrap_or(false)
    }
}

/// Notice to a flow's sender that a dependency of the flow is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DependencyNotice {
    /// The flow that waited for it.
    pub flow: FlowId,
    /// The time at which its sender is notified.
    pub notified_at: Time,
}

struct HostState {
    now: Time,
    /// The host's own events, except for pacing.
    calendar: Calendar,
    /// (slot, flow) of flows that may send now, in turn.
    ready: RunQueue,
    /// Flows that may send later: (time, flow, slot). The flow breaks ties, as in the calendar.
    paced: BinaryHeap<Reverse<(Time, u32, u32)>>,
    /// Flows that wait for the rest of their causes.
    pending: Pending,
    /// The classes that are paused, one bit each.
    paused: u8,
    /// The classes of answers that wait in `pauses`.
    waiting_replies: u8,
    /// Set if the NIC sends control first: then acknowledgements and notifications are of class 0 here.
    control_first: bool,
    pauses: Option<Box<Pauses>>,
    /// The host's NIC.
    uplink: LinkId,
    /// Credit state; created with the first credit.
    credits: Option<Box<HostCredits>>,
    /// Packets that arrived and that the transport has not received. Created with the first one, if hosts have
    /// `jitter`.
    delayed: Option<Box<Delayed>>,
    /// By destination: the state left by the last OR-ACK from there; used if flows start with that.
    memories: BTreeMap<u32, LastOwd>,
    /// OR-ACKs sent.
    or_acks: u64,
}

impl HostState {
    /// Notifies this host that a dependency of one of its flows is met. Returns the start of the flow, if that was the
    /// last dependency.
    fn on_dependency_met(&mut self, notice: DependencyNotice, setup: &Setup) -> Option<Time> {
        let time = self.pending.mark_met(notice.flow, notice.notified_at, setup)?;
        self.calendar.schedule(time, Due::Start(notice.flow.0));
        Some(time)
    }

    fn new(uplink: LinkId, setup: &Setup) -> Self {
        Self {
            now: Time::ZERO,
            calendar: Calendar::new(),
            ready: RunQueue::default(),
            paced: BinaryHeap::new(),
            pending: Pending::default(),
            paused: 0,
            waiting_replies: 0,
            control_first: setup.network.port(uplink).config().control_priority,
            pauses: setup.series.samples(uplink).then(|| Box::new(Pauses::new(fabric::Pauses::with_spans()))),
            uplink,
            credits: None,
            delayed: None,
            memories: BTreeMap::new(),
            or_acks: 0,
        }
    }
}

/// The hosts of one partition, numbered locally.
pub struct PartitionHosts<L> {
    states: Vec<HostState>,
    senders: Vec<Option<Active<L>>>,
    connections: Connections<L>,
    free_senders: Vec<u32>,
    receivers: Vec<Option<Receiving>>,
    free_receivers: Vec<u32>,
    /// By flow: its place in `senders`.
    sender_of: Vec<OptionalIndex>,
    /// By flow: its place in `receivers`.
    receiver_of: Vec<ReceiverSlot>,
    /// By flow: the receivers' state for credits.
    receiver_credits: BTreeMap<u32, HostAckState<L>>,
    /// Flows that have ended: (flow, outcome).
    pub outcomes: Vec<(u32, FlowOutcome)>,
    /// Counters of flows' credits that are kept elsewhere than at their senders.
    pub receiver_counters: BTreeMap<u32, ReceiverCounters>,
    /// Samples of flows, in no order.
    pub samples: Vec<FlowSample>,
    /// News for senders, for the engine to deliver.
    pub notices: Vec<DependencyNotice>,
    /// Flows of these hosts that have not ended.
    pub open: u64,
    /// Data packets sent.
    pub data_packets: u64,
    /// Data packets that arrived.
    pub data_received: u64,
    /// Predictions of senders for packets that arrived here, and the delays of these packets.
    pub predictions: Predictions,
}

impl<L: ControlLaw> PartitionHosts<L> {
    /// The hosts with these numbers, and the flows that start at them.
    pub fn new(ids: &[HostId], setup: &Setup) -> Self {
        let mut local = vec![OptionalIndex::NONE; setup.network.hosts().len()];
        for (index, id) in ids.iter().enumerate() {
            local[id.index()] = OptionalIndex::some(index as u32);
        }
        let state = |id: &HostId| HostState::new(setup.network.uplink(*id), setup);
        let mut states: Vec<HostState> = ids.iter().map(state).collect();
        let mut open = 0;
        for (flow, spec) in (0u32..).zip(&setup.flows) {
            let Some(host) = local[spec.src.index()].get() else { continue };
            open += 1;
            if let Start::At(time) = spec.start {
                states[host as usize].calendar.schedule(time, Due::Start(flow));
            }
        }
        Self {
            states,
            senders: Vec::new(),
            connections: Connections::new(),
            free_senders: Vec::new(),
            receivers: Vec::new(),
            free_receivers: Vec::new(),
            sender_of: vec![OptionalIndex::NONE; setup.flows.len()],
            receiver_of: vec![ReceiverSlot::UNSTARTED; setup.flows.len()],
            receiver_credits: BTreeMap::new(),
            outcomes: Vec::new(),
            receiver_counters: BTreeMap::new(),
            samples: Vec::new(),
            notices: Vec::new(),
            open,
            data_packets: 0,
            data_received: 0,
            predictions: Predictions::default(),
        }
    }

    /// Notifies a host, now or later, that a dependency of one of its flows is met. Returns the start of the flow, if
    /// that was the last dependency.
    pub fn on_dependency_met(&mut self, host: usize, notice: DependencyNotice, setup: &Setup) -> Option<Time> {
        self.states[host].on_dependency_met(notice, setup)
    }

    /// Reports a dependency that is met at a host. Flows of this host are notified at once; the engine delivers the
    /// notice to others. The engine also delivers a flow's completion: at the same time a host first handles everything
    /// else.
    fn on_dependency_event<F>(&mut self, host: usize, dependency: Dependency, now: Time, context: &Context<F>) {
        let setup = context.setup;
        for flow in context.waits.followers(dependency) {
            let spec = &setup.flows[flow.0 as usize];
            let notice = DependencyNotice { flow, notified_at: now + setup.notice_delay(dependency, spec) };
            if spec.src == setup.location_of(dependency) && !matches!(dependency, Dependency::Complete(_)) {
                self.states[host].on_dependency_met(notice, setup);
            } else {
                self.notices.push(notice);
            }
        }
    }

    /// Returns the next time at which a host acts by itself, if its NIC becomes idle at `idle_at`; [`Time::NEVER`] if
    /// never.
    #[inline]
    pub fn next_at(&self, host: usize, idle_at: Time) -> Time {
        let state = &self.states[host];
        let send = if state.ready.is_empty() {
            state.paced.peek().map_or(Time::NEVER, |Reverse((time, _, _))| (*time).max(idle_at))
        } else {
            state.now.max(idle_at)
        };
        send.min(state.calendar.first_at())
    }

    /// Returns the time of a host's next event, except for pacing; [`Time::NEVER`] if there is none.
    pub(crate) fn alarm(&self, host: usize) -> Time {
        self.states[host].calendar.first_at()
    }

    /// Returns the time at which an open flow here with data left to send may send next by its pace.
    pub(crate) fn paced_at(&mut self, flow: u32) -> Option<Time> {
        let slot = *self.sender_of.get(flow as usize)?;
        let active = self.senders.get_mut(slot.position())?.as_mut()?;
        active.sender.next_bytes().map(|_| active.sender.next_send())
    }

    /// Handles the arrival of a packet at a host.
    #[inline(always)]
    pub fn on_packet<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: TelemetrySlot,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        debug_assert!(packet.time >= self.states[host].now, "an arrival in the past");
        self.states[host].now = packet.time;
        match &context.setup.host.jitter {
            Some(jitter) if !packet.is_frame() => self.delay(host, packet, report, jitter, context),
            _ => self.deliver(host, packet, report, context, nic),
        }
    }

    /// Delivers an arrived packet to a host's transport.
    #[inline(always)]
    fn deliver<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: TelemetrySlot,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        if packet.is_signal() {
            self.on_signal(host, packet, report, context, nic);
        } else if packet.is_ack() {
            let hops = if report == TelemetrySlot::NONE { &[] } else { nic.hops(report) };
            self.on_ack(host, packet, hops, context);
            if report != TelemetrySlot::NONE {
                nic.forget(report);
            }
        } else {
            self.data_received += 1;
            let report = if report != TelemetrySlot::NONE && !context.predicted.is_empty() {
                self.compare(packet, report, nic);
                TelemetrySlot::NONE
            } else {
                report
            };
            self.on_data(host, packet, report, context, nic);
        }
    }

    #[inline(never)]
    fn on_ack<F>(&mut self, host: usize, packet: &Packet, hops: &[Hop], context: &Context<F>) {
        let Some(slot) = self.sender_of[packet.flow as usize].get() else { return };
        let now = packet.time;
        let Some(active) = &mut self.senders[slot as usize] else { return };
        active.sample(now, &mut self.samples);
        let header = packet.acknowledged();
        if let Some(at) = &mut active.shim {
            at.measure(&active.sender, now, header.seq, header.attempt);
        }
        if active.sender.recycles() {
            active.sender.recycle(now, EntropyEcho { entropy: packet.entropy, marked: header.marked });
        }
        active.sender.on_ack(now, &header, hops);
        if active.sender.is_complete() {
            self.complete(host, slot, now, context);
        } else {
            self.states[host].on_feedback(slot, active, now);
        }
    }

    fn complete<F>(&mut self, host: usize, slot: u32, now: Time, context: &Context<F>) {
        let Some(active) = self.senders[slot as usize].take() else { return };
        self.sender_of[active.flow as usize] = OptionalIndex::NONE;
        self.free_senders.push(slot);
        self.open -= 1;
        self.outcomes.push((active.flow, active.outcome(now, now)));
        self.on_dependency_event(host, Dependency::Complete(FlowId(active.flow)), now, context);
        let spec = &context.setup.flows[active.flow as usize];
        let tcp = context.setup.host.tcp;
        if spec.kept || tcp.remembers {
            self.connections.close(host, spec, active, tcp);
        }
    }

    /// Handles the host's own events at the time returned by [`PartitionHosts::next_at`].
    #[inline(always)]
    pub fn on_local<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        now: Time,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        debug_assert!(now >= self.states[host].now, "an event in the past");
        self.states[host].now = now;
        if self.states[host].calendar.first_at() <= now {
            self.handle_due(host, now, context, nic);
        }
        if nic.idle_at() <= now {
            self.send_one(host, now, context, nic);
        }
    }

    /// Handles all due events.
    #[inline(never)]
    fn handle_due<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        now: Time,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        while let Some((time, due)) = self.states[host].calendar.take(now) {
            match due {
                Due::Delayed => self.deliver_delayed(host, time, now, context, nic),
                Due::Start(flow) => self.start(host, flow, now, context),
                Due::Timer(flow) => self.on_timer(host, flow, time, now),
                Due::Flush(flow) => self.flush(host, flow, time, context.setup, nic),
                Due::Block(flow) => self.on_block_timer(host, flow, time, context.setup, nic),
                Due::CreditQueue => self.release_credits(host, time, context.setup, nic),
                Due::HostCredit => self.send_host_credit(host, time, context.setup, nic),
                Due::Credits(flow, FlowSide::Sender) => {
                    self.run_credit_sender(host, flow, time, now, context.setup, nic);
                }
                Due::Credits(flow, FlowSide::Receiver) => {
                    self.run_credit_receiver(host, flow, time, now, context.setup, nic);
                }
            }
        }
    }

    fn start<F: Fn(&FlowSpec, &PathInfo) -> L>(&mut self, host: usize, flow: u32, now: Time, context: &Context<F>) {
        let setup = context.setup;
        let spec = &setup.flows[flow as usize];
        let path = setup.law_path(spec);
        let law = || (context.make_law)(spec, &path);
        let first = law();
        let credits = credits_of(setup, &first);
        let early = setup.host.initial_quantum.of(first.send_limits().window, &path);
        let config = flow_config(setup, spec, flow, credits.as_ref());
        let (mut sender, connection) = self.connections.open(host, spec, config, first, law, now);
        let hold = self.hold(host, spec, now, setup);
        let scheduled = credits.map(|credits| CreditSender::new(credit_config(setup, flow, &path, credits), now));
        let notes = if context.predicts(flow) { PacketNotes::Attached } else { PacketNotes::Omitted };
        let shim = ShimState::new(hold, scheduled, &setup.host, &sender, notes);
        // No timeout can be earlier; then it is checked again.
        let first_timer = now + config.rto_min;
        let interval = if context.samples(flow) { setup.series.interval } else { Span::ZERO };
        let slot = self.free_senders.pop().unwrap_or_else(|| {
            self.senders.push(None);
            self.senders.len() as u32 - 1
        });
        let armed = first_timer.min(sender.next_timer()).max(now);
        self.states[host].calendar.schedule(armed, Due::Timer(flow));
        let active = self.senders[slot as usize].insert(Active {
            sender,
            flow,
            connection,
            pinned: spec.kept && !matches!(config.paths, LoadBalancing::PerPacket(_)),
            dst: spec.dst.0,
            queued: SendQueue::Idle,
            class: spec.class,
            armed,
            shim,
            started: now,
            ticks: Ticks::new(interval, now),
            sent: Bytes::ZERO,
            early,
            by_size: setup.host.size_aware,
        });
        self.sender_of[flow as usize] = OptionalIndex::some(slot);
        let state = &mut self.states[host];
        state.queue(slot, active, now);
        state.schedule_sender(active, now);
        self.on_dependency_event(host, Dependency::Begun(FlowId(flow)), now, context);
    }

    /// Returns the hold of a flow that has one. It starts with the state left by the last OR-ACK from its destination.
    fn hold(&self, host: usize, spec: &FlowSpec, now: Time, setup: &Setup) -> Option<OnRampHold> {
        let params = setup.host.on_ramp.filter(|_| spec.on_ramp)?.params;
        let memory = self.states[host].memories.get(&spec.dst.0);
        let remembering = |&last| OnRamp::remembering(params, now, last);
        let on_ramp = memory.map_or_else(|| OnRamp::new(params), remembering);
        Some(OnRampHold::new(on_ramp, setup.hold_base(spec, now)))
    }

    /// Handles a flow's timer, if it is the one that was set last.
    fn on_timer(&mut self, host: usize, flow: u32, time: Time, now: Time) {
        let Some(slot) = self.sender_of[flow as usize].get() else { return };
        let Some(active) = &mut self.senders[slot as usize] else { return };
        if active.armed != time {
            return;
        }
        active.sample(now, &mut self.samples);
        let expires = active.sender.next_timer() <= now;
        if expires {
            active.sender.on_timer(now);
        }
        // Nothing in flight, so nothing to wait for: look again when something could have been.
        let idle = now + active.sender.min_rto_wait();
        let next = active.sender.next_timer();
        let again = if next.is_set() { next } else { idle };
        self.states[host].arm(active, again);
        if expires {
            self.states[host].on_feedback(slot, active, now);
        }
    }

    /// OR-ACKs that these hosts sent.
    pub fn or_acks(&self) -> u64 {
        self.states.iter().map(|state| state.or_acks).sum()
    }

    /// Ends the run: flows that are still open are returned in their present state.
    pub fn finish(&mut self, now: Time, setup: &Setup) {
        for active in self.senders.iter_mut().flatten() {
            active.sample(now, &mut self.samples);
            self.outcomes.push((active.flow, active.outcome(Time::NEVER, now)));
        }
        self.finish_credit_receivers();
        self.count_unacknowledged(setup);
    }
}
