//! The hosts of one partition: which flow's packet goes next, what answers a packet, timers and flow starts.
//!
//! A host gives its card a packet only when the card is idle, round robin among the flows that may send, so a
//! flow's packet never waits behind another flow's burst in the host. Acknowledgements and notifications go to the card
//! at once and so pass all data that has not begun, unless their class is paused (`pauses`). What few flows have between
//! their law and the card is in `edge`.
//!
//! Hosts know no engine: one carries packets to them, tells the time, and takes what they send over a [`Wire`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use experiment::{Cause, FlowId, FlowOutcome, FlowSample, FlowSpec, Pending, Predictions, Setup, Start, Waits};
use fabric::{HostId, LinkId};
use flow::credits::Scheduled;
use flow::{Hold, PathChoice};
use laws::on_ramp::{Memory, OnRamp};
use laws::{ControlLaw, Hop, Path};
use units::{Bytes, Span, Time};

use crate::packet::{Packet, Report};
use crate::ticks::Ticks;

mod calendar;
mod check;
mod connections;
mod credits;
mod edge;
mod jitter;
mod pauses;
mod policy;
mod predictors;
mod receiving;
mod sending;
mod signals;
mod turns;
mod view;

use calendar::{Calendar, Due, End};
use connections::Connections;
pub use credits::Elsewhere;
use credits::{Answering, HostCredits};
use edge::AtEdge;
use jitter::Delayed;
use pauses::Pauses;
use policy::{credit_config, credits_of, flow_config};
use receiving::Receiving;
use sending::{Active, Queued};
use turns::Turns;

/// A host's network card.
pub trait Wire {
    /// When the card falls idle.
    fn idle_at(&self) -> Time;
    /// Sends a packet that is handed over at `packet.time`.
    fn transmit(&mut self, packet: Packet);
    /// The same with the report that it carries back.
    fn transmit_with(&mut self, packet: Packet, report: Report) {
        self.forget(report);
        self.transmit(packet);
    }
    /// The transport receives a packet that waited in the host.
    fn received_late(&mut self, packet: &Packet) {
        let _ = packet;
    }
    /// Puts something beside a packet that is about to be sent; nothing where packets carry nothing.
    fn note(&mut self, note: Hop) -> Report {
        let _ = note;
        Report::NONE
    }
    /// What the ports that a packet passed reported, in order.
    fn hops(&self, report: Report) -> &[Hop] {
        let _ = report;
        &[]
    }
    /// A report is read, or lost.
    fn forget(&mut self, report: Report) {
        let _ = report;
    }
}

/// Everything that hosts read and never change.
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

/// A cause of a flow has happened somewhere, and the flow's sender hears of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct News {
    /// The flow that waited for it.
    pub flow: FlowId,
    /// When its sender hears of it.
    pub heard: Time,
}

struct HostState {
    now: Time,
    /// What the host does at a time of its own, but for pacing.
    calendar: Calendar,
    /// (slot, flow) of flows that may send now, in turn.
    ready: Turns,
    /// Flows that may send later: (time, flow, slot). The flow breaks ties, as in the calendar.
    paced: BinaryHeap<Reverse<(Time, u32, u32)>>,
    /// Flows that wait for the rest of their causes.
    pending: Pending,
    /// The classes that are paused, one bit each.
    paused: u8,
    /// The classes of answers that wait in `pauses`.
    answering: u8,
    /// Whether the card lets control go first: then acknowledgements and notifications are of class 0 here.
    control_first: bool,
    pauses: Option<Box<Pauses>>,
    /// The host's card.
    uplink: LinkId,
    /// What credits need; made with the first.
    credits: Option<Box<HostCredits>>,
    /// Packets that came and that the transport has not heard of. Made with the first one, where hosts have `jitter`.
    delayed: Option<Box<Delayed>>,
    /// Of each destination, what the last OR-ACK from there left behind; where flows start with that.
    memories: BTreeMap<u32, Memory>,
    /// OR-ACKs sent.
    or_acks: u64,
}

impl HostState {
    /// This host hears of a cause of one of its flows. Gives when the flow starts, if that was the last cause.
    fn hear_of(&mut self, news: News, setup: &Setup) -> Option<Time> {
        let time = self.pending.happened(news.flow, news.heard, setup)?;
        self.calendar.put(time, Due::Start(news.flow.0));
        Some(time)
    }

    fn new(uplink: LinkId, setup: &Setup) -> Self {
        Self {
            now: Time::ZERO,
            calendar: Calendar::new(),
            ready: Turns::default(),
            paced: BinaryHeap::new(),
            pending: Pending::default(),
            paused: 0,
            answering: 0,
            control_first: setup.network.port(uplink).config().control_priority,
            pauses: setup.series.samples(uplink).then(|| Box::new(Pauses::new(fabric::Pauses::new(true)))),
            uplink,
            credits: None,
            delayed: None,
            memories: BTreeMap::new(),
            or_acks: 0,
        }
    }
}

const NO_SLOT: u32 = u32::MAX;

/// The hosts of one partition, numbered locally.
pub struct Hosts<L> {
    states: Vec<HostState>,
    senders: Vec<Option<Active<L>>>,
    connections: Connections<L>,
    free_senders: Vec<u32>,
    receivers: Vec<Option<Receiving>>,
    free_receivers: Vec<u32>,
    sender_of: Vec<u32>,
    receiver_of: Vec<u32>,
    /// By flow: what receivers here do for credits.
    answering: BTreeMap<u32, Answering<L>>,
    /// Flows that have ended: (flow, outcome).
    pub outcomes: Vec<(u32, FlowOutcome)>,
    /// What was counted of flows' credits elsewhere than at their senders.
    pub elsewhere: BTreeMap<u32, Elsewhere>,
    /// Samples of flows, in no order.
    pub samples: Vec<FlowSample>,
    /// News for senders, for the engine to deliver.
    pub news: Vec<News>,
    /// Flows of these hosts that have not ended.
    pub open: u64,
    /// Data packets sent.
    pub data_packets: u64,
    /// Data packets that came.
    pub data_received: u64,
    /// What senders knew when packets left that arrived here, and how long those took.
    pub predictions: Predictions,
}

impl<L: ControlLaw> Hosts<L> {
    /// The hosts with these numbers, and the flows that start at them.
    pub fn new(ids: &[HostId], setup: &Setup) -> Self {
        let mut local = vec![NO_SLOT; setup.network.hosts().len()];
        for (index, id) in ids.iter().enumerate() {
            local[id.index()] = index as u32;
        }
        let state = |id: &HostId| HostState::new(setup.network.uplink(*id), setup);
        let mut states: Vec<HostState> = ids.iter().map(state).collect();
        let mut open = 0;
        for (flow, spec) in (0u32..).zip(&setup.flows) {
            let host = local[spec.src.index()];
            if host == NO_SLOT {
                continue;
            }
            open += 1;
            if let Start::At(time) = spec.start {
                states[host as usize].calendar.put(time, Due::Start(flow));
            }
        }
        Self {
            states,
            senders: Vec::new(),
            connections: Connections::new(),
            free_senders: Vec::new(),
            receivers: Vec::new(),
            free_receivers: Vec::new(),
            sender_of: vec![NO_SLOT; setup.flows.len()],
            receiver_of: vec![NO_SLOT; setup.flows.len()],
            answering: BTreeMap::new(),
            outcomes: Vec::new(),
            elsewhere: BTreeMap::new(),
            samples: Vec::new(),
            news: Vec::new(),
            open,
            data_packets: 0,
            data_received: 0,
            predictions: Predictions::default(),
        }
    }

    /// A host hears of a cause of one of its flows, now or later. Gives when the flow starts, if that was the last cause.
    pub fn hear_of(&mut self, host: usize, news: News, setup: &Setup) -> Option<Time> {
        self.states[host].hear_of(news, setup)
    }

    /// A cause has happened at a host. Flows of this host hear of it at once; the engine takes it to others. It takes there,
    /// too, that a flow is complete: at the same time a host first does everything else.
    fn happened<F>(&mut self, host: usize, cause: Cause, now: Time, context: &Context<F>) {
        let setup = context.setup;
        for flow in context.waits.followers(cause) {
            let spec = &setup.flows[flow.0 as usize];
            let news = News { flow, heard: now + setup.news_takes(cause, spec) };
            if spec.src == setup.happens_at(cause) && !matches!(cause, Cause::Complete(_)) {
                self.states[host].hear_of(news, setup);
            } else {
                self.news.push(news);
            }
        }
    }

    /// When a host next acts by itself, its card falling idle at `idle_at`; [`Time::NEVER`] if never.
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

    /// When a host next does something at a time of its own, pacing apart; [`Time::NEVER`] if never.
    pub(crate) fn alarm(&self, host: usize) -> Time {
        self.states[host].calendar.first_at()
    }

    /// When a flow that is open here and has something left to send may send next by its pace.
    pub(crate) fn paced_at(&mut self, flow: u32) -> Option<Time> {
        let slot = *self.sender_of.get(flow as usize)?;
        let active = self.senders.get_mut(slot as usize)?.as_mut()?;
        active.sender.next_bytes().map(|_| active.sender.next_send())
    }

    /// A packet arrives at a host.
    #[inline(always)]
    pub fn on_packet<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: Report,
        context: &Context<F>,
        wire: &mut impl Wire,
    ) {
        debug_assert!(packet.time >= self.states[host].now, "an arrival in the past");
        self.states[host].now = packet.time;
        match &context.setup.host.jitter {
            Some(jitter) if !packet.is_frame() => self.delay(host, packet, report, jitter, context),
            _ => self.hear(host, packet, report, context, wire),
        }
    }

    /// A host's transport hears of a packet that has come.
    #[inline(always)]
    fn hear<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: Report,
        context: &Context<F>,
        wire: &mut impl Wire,
    ) {
        if packet.is_signal() {
            self.on_signal(host, packet, report, context, wire);
        } else if packet.is_ack() {
            let hops = if report == Report::NONE { &[] } else { wire.hops(report) };
            self.on_ack(host, packet, hops, context);
            if report != Report::NONE {
                wire.forget(report);
            }
        } else {
            self.data_received += 1;
            let report = if report != Report::NONE && !context.predicted.is_empty() {
                self.compare(packet, report, wire);
                Report::NONE
            } else {
                report
            };
            self.on_data(host, packet, report, context, wire);
        }
    }

    #[inline(never)]
    fn on_ack<F>(&mut self, host: usize, packet: &Packet, hops: &[Hop], context: &Context<F>) {
        let slot = self.sender_of[packet.flow as usize];
        if slot == NO_SLOT {
            return;
        }
        let now = packet.time;
        let Some(active) = &mut self.senders[slot as usize] else { return };
        active.sample(now, &mut self.samples);
        let header = packet.acknowledged();
        if let Some(at) = &mut active.edge {
            at.measure(&active.sender, now, header.seq, header.attempt);
        }
        if active.sender.recycles() {
            active.sender.recycle(now, packet.entropy, header.marked);
        }
        active.sender.on_ack(now, &header, hops);
        if active.sender.is_complete() {
            self.complete(host, slot, now, context);
        } else {
            self.states[host].heard(slot, active, now);
        }
    }

    fn complete<F>(&mut self, host: usize, slot: u32, now: Time, context: &Context<F>) {
        let Some(active) = self.senders[slot as usize].take() else { return };
        self.sender_of[active.flow as usize] = NO_SLOT;
        self.free_senders.push(slot);
        self.open -= 1;
        self.outcomes.push((active.flow, active.outcome(now, now)));
        self.happened(host, Cause::Complete(FlowId(active.flow)), now, context);
        let spec = &context.setup.flows[active.flow as usize];
        let remembers = context.setup.host.tcp.remembers;
        if spec.kept || remembers {
            self.connections.close(host, spec, active, remembers);
        }
    }

    /// The time that [`Hosts::next_at`] gave has come.
    #[inline(always)]
    pub fn on_local<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        host: usize,
        now: Time,
        context: &Context<F>,
        wire: &mut impl Wire,
    ) {
        debug_assert!(now >= self.states[host].now, "an event in the past");
        self.states[host].now = now;
        if self.states[host].calendar.first_at() <= now {
            self.ring(host, now, context, wire);
        }
        if wire.idle_at() <= now {
            self.send_one(host, now, context, wire);
        }
    }

    /// Does what is due.
    #[inline(never)]
    fn ring<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        host: usize,
        now: Time,
        context: &Context<F>,
        wire: &mut impl Wire,
    ) {
        while let Some((time, due)) = self.states[host].calendar.take(now) {
            match due {
                Due::Delayed => self.hear_delayed(host, time, now, context, wire),
                Due::Start(flow) => self.start(host, flow, now, context),
                Due::Timer(flow) => self.on_timer(host, flow, time, now),
                Due::Flush(flow) => self.flush(host, flow, time, context.setup, wire),
                Due::Block(flow) => self.on_block_timer(host, flow, time, context.setup, wire),
                Due::CreditQueue => self.release_credits(host, time, context.setup, wire),
                Due::Give => self.give(host, time, context.setup, wire),
                Due::Credits(flow, End::Sender) => self.act_as_sender(host, flow, time, now, context.setup, wire),
                Due::Credits(flow, End::Receiver) => self.act_as_receiver(host, flow, time, now, context.setup, wire),
            }
        }
    }

    fn start<F: Fn(&FlowSpec, &Path) -> L>(&mut self, host: usize, flow: u32, now: Time, context: &Context<F>) {
        let setup = context.setup;
        let spec = &setup.flows[flow as usize];
        let path = setup.law_path(spec);
        let law = || (context.make_law)(spec, &path);
        let first = law();
        let credits = credits_of(setup, &first);
        let early = setup.host.initial_quantum.of(first.permit().window, &path);
        let config = flow_config(setup, spec, flow, credits.is_some());
        let (mut sender, connection) = self.connections.open(host, spec, config, first, law, now);
        let hold = self.hold(host, spec, now, setup);
        let scheduled = credits.map(|credits| Scheduled::new(credit_config(setup, flow, &path, credits), now));
        let edge = AtEdge::new(hold, scheduled, &setup.host, &sender, context.predicts(flow));
        // No timeout can come sooner; then it is asked again.
        let first_timer = now + config.rto_min;
        let interval = if context.samples(flow) { setup.series.interval } else { Span::ZERO };
        let slot = self.free_senders.pop().unwrap_or_else(|| {
            self.senders.push(None);
            self.senders.len() as u32 - 1
        });
        let armed = first_timer.min(sender.next_timer()).max(now);
        self.states[host].calendar.put(armed, Due::Timer(flow));
        let active = self.senders[slot as usize].insert(Active {
            sender,
            flow,
            connection,
            pinned: spec.kept && !matches!(config.paths, PathChoice::PerPacket(_)),
            dst: spec.dst.0,
            queued: Queued::Nowhere,
            class: spec.class,
            armed,
            edge,
            started: now,
            ticks: Ticks::new(interval, now),
            sent: Bytes::ZERO,
            early,
            by_size: setup.host.known_sizes,
        });
        self.sender_of[flow as usize] = slot;
        let state = &mut self.states[host];
        state.queue(slot, active, now);
        state.call(active, now);
        self.happened(host, Cause::Begun(FlowId(flow)), now, context);
    }

    /// The hold of a flow that has one. It starts with what the last OR-ACK from its destination left.
    fn hold(&self, host: usize, spec: &FlowSpec, now: Time, setup: &Setup) -> Option<Hold> {
        let params = setup.host.on_ramp.filter(|_| spec.on_ramp)?.params;
        let memory = self.states[host].memories.get(&spec.dst.0);
        let remembering = |&last| OnRamp::remembering(params, now, last);
        let on_ramp = memory.map_or_else(|| OnRamp::new(params), remembering);
        Some(Hold::new(on_ramp, setup.hold_base(spec, now)))
    }

    /// A flow's timer fires, if it is the one that was set last.
    fn on_timer(&mut self, host: usize, flow: u32, time: Time, now: Time) {
        let slot = self.sender_of[flow as usize];
        let Some(active) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if active.armed != time {
            return;
        }
        active.sample(now, &mut self.samples);
        let strikes = active.sender.next_timer() <= now;
        if strikes {
            active.sender.on_timer(now);
        }
        // Nothing in flight, so nothing to wait for: look again when something could have been.
        let idle = now + active.sender.least_wait();
        let next = active.sender.next_timer();
        let again = if next.is_set() { next } else { idle };
        self.states[host].arm(active, again);
        if strikes {
            self.states[host].heard(slot, active, now);
        }
    }

    /// OR-ACKs that these hosts sent.
    pub fn or_acks(&self) -> u64 {
        self.states.iter().map(|state| state.or_acks).sum()
    }

    /// Ends the run: flows that are still open are given as they stand.
    pub fn finish(&mut self, now: Time, setup: &Setup) {
        for active in self.senders.iter_mut().flatten() {
            active.sample(now, &mut self.samples);
            self.outcomes.push((active.flow, active.outcome(Time::NEVER, now)));
        }
        self.finish_answering();
        self.count_unacknowledged(setup);
    }
}
