//! Credits at hosts: a host's own credit queue, the roles of both ends, and their packets ([`flow::credits`]).
//!
//! A host's NIC pulls packets and holds no queue, so the credit queue of its port is here: credits and emulation
//! packets pass it, and then go to the NIC at once, like acknowledgements. An emulation packet is stamped when it
//! passes: its data leaves `T_wait` after that. All other packets of credit schemes (requests, stops, echoes and
//! probes) go to the NIC directly.

use std::collections::VecDeque;

use experiment::{FlowOutcome, FlowSpec, Setup};
use fabric::{Arrival, CreditParams, CreditShaper, Offered};
use flow::Recovery;
use flow::credits::{
    CreditReceiver, CreditSender, CreditStats, CreditingConfig, Echo, EmulationReceiver, Signal, Spacing,
};
use laws::credits::{CREDIT_SIZE, Driver};
use laws::{ControlLaw, LawActions, PathInfo};
use units::{Bytes, Span, Time};

use super::calendar::{Due, FlowSide};
use super::policy::{credit_config, credits_of};
use super::receiving::{ReceiverState, Receiving, last_acknowledgement};
use super::sending::Active;
use super::{Context, HostState, Nic, PartitionHosts};
use crate::body::Body;
use crate::packet::{ForwardingHeader, Packet, TelemetrySlot};

/// Bytes that each further time stamp adds to an echo.
const STAMP: u32 = 4;

/// Credit state of a host.
#[derive(Default)]
pub(super) struct HostCredits {
    queue: CreditShaper<Packet>,
    drops: u64,
    /// The next release of the queue, if it is in the host's calendar.
    scheduled_at: Option<Time>,
    scheduler: HostCreditScheduler,
}

/// State of a host that sends credits for its own link.
#[derive(Default)]
struct HostCreditScheduler {
    /// Flows with due credits, in turn.
    turns: VecDeque<u32>,
    /// The time at which the link has room for the data of the next credit.
    next: Time,
    /// The time of the next credit, if it is in the host's calendar.
    scheduled_at: Option<Time>,
}

/// A flow to which its receiver's host sends credits.
#[derive(Default)]
struct HostCreditState {
    /// Credits that it has requested and that it has received, from its start.
    requested: u32,
    granted: u32,
    /// Credits that were sent to it again.
    repeated: u32,
}

/// The receiving end.
pub(super) struct HostAckState<L> {
    part: CreditRole<L>,
    scheduled_at: Time,
    /// Header of the packets that it sends, except for their times and sizes.
    back: ForwardingHeader,
}

enum CreditRole<L> {
    Credits(CreditReceiver<L>),
    Echoes(EmulationReceiver),
    /// The host sends them.
    Host(HostCreditState),
}

/// Counters of a flow that are kept elsewhere than at its sender.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReceiverCounters {
    credits: CreditStats,
    actions: LawActions,
    /// Payload received, if the sender is informed only at the end.
    received: Bytes,
}

impl ReceiverCounters {
    /// Adds it to the flow's outcome.
    pub fn add_to(&self, flow: &mut FlowOutcome) {
        flow.credits.add(&self.credits);
        flow.actions.add(&self.actions);
        flow.delivered = flow.delivered.max(self.received);
    }
}

impl<L: ControlLaw> Active<L> {
    /// Returns the counters so far.
    pub(super) fn credit_stats(&self) -> CreditStats {
        self.credit_sender().map_or(CreditStats::default(), |credit_sender| *credit_sender.stats())
    }

    /// Returns the counters of a complete flow.
    pub(super) fn final_credit_stats(&self) -> CreditStats {
        self.credit_sender().map_or(CreditStats::default(), CreditSender::final_stats)
    }

    /// A packet to the receiver that is no data.
    fn signal(&self, body: Body, now: Time, setup: &Setup) -> Packet {
        let size = if matches!(body, Body::Emulation { .. }) { CREDIT_SIZE } else { setup.host.ack_size };
        let header = ForwardingHeader {
            time: now,
            flow: self.flow,
            dst: self.dst,
            entropy: self.sender.signal_entropy(),
            size: size as u16,
            class: self.class,
            pinned: false,
        };
        Packet::new(header, body)
    }
}

impl HostState {
    /// Schedules a sending end that may have changed its next time.
    #[inline]
    pub(super) fn schedule_sender<L: ControlLaw>(&mut self, active: &mut Active<L>, now: Time) {
        let Some(at) = &mut active.shim else { return };
        let Some(credit_sender) = at.credit_sender() else { return };
        let next = credit_sender.next_action(&mut active.sender, now);
        if next < at.scheduled_at {
            at.scheduled_at = next;
            self.calendar.schedule(next, Due::Credits(active.flow, FlowSide::Sender));
        }
    }

    /// Queues a credit or an emulation packet at the host at `now`. Returns it if it leaves at once.
    fn offer(&mut self, packet: Packet, setup: &Setup) -> Option<Packet> {
        let Some(params) = setup.network.port(self.uplink).credits() else { return Some(packet) };
        let credits = self.credits.get_or_insert_default();
        let arrival = Arrival { now: self.now, ..packet.arrival() };
        match credits.queue.offer(params, packet, &arrival) {
            Offered::Leaves(packet) => return Some(packet),
            Offered::Waits => self.schedule_queue_release(params),
            Offered::Refused(_) => credits.drops += 1,
        }
        None
    }

    /// Schedules the next credit of the host, if one is due and not yet scheduled.
    fn schedule_host_credit(&mut self) {
        let Some(credits) = &mut self.credits else { return };
        let scheduler = &mut credits.scheduler;
        if scheduler.scheduled_at.is_none() && !scheduler.turns.is_empty() {
            let time = scheduler.next.max(self.now);
            scheduler.scheduled_at = Some(time);
            self.calendar.schedule(time, Due::HostCredit);
        }
    }

    /// Schedules the next release of the host's queue, if a packet waits and that is not yet scheduled.
    fn schedule_queue_release(&mut self, params: &CreditParams) {
        let Some(credits) = &mut self.credits else { return };
        let Some(next) = credits.queue.eligible_at(params) else { return };
        if credits.scheduled_at.is_none_or(|at| next < at) {
            credits.scheduled_at = Some(next);
            self.calendar.schedule(next, Due::CreditQueue);
        }
    }

    /// Returns the first packet of the host's queue, if it may leave now.
    fn release(&mut self, params: &CreditParams) -> Option<Packet> {
        let queue = &mut self.credits.as_mut()?.queue;
        queue.eligible_at(params).filter(|&time| time <= self.now)?;
        queue.pop(params, self.now).map(|(packet, _)| packet)
    }

    /// Sends a credit or an emulation packet that leaves the host's queue.
    fn depart(&mut self, mut packet: Packet, setup: &Setup, nic: &mut impl Nic) {
        packet.time = self.now;
        if let Body::Emulation { number, .. } = packet.body() {
            let src = setup.flows[packet.flow as usize].src;
            packet = packet.with_body(Body::Emulation { number, clock_ns: setup.clock_ns(src, self.now) });
        }
        self.send_reply(packet, TelemetrySlot::NONE, nic);
    }
}

impl<L> PartitionHosts<L> {
    /// Credits that a host's own queue had no room for.
    pub fn credit_drops(&self, host: usize) -> u64 {
        self.states[host].credits.as_ref().map_or(0, |credits| credits.drops)
    }
}

impl<L: ControlLaw> PartitionHosts<L> {
    /// Releases the packets of the host's queue that may leave, if this is the time that was scheduled last.
    pub(super) fn release_credits(&mut self, host: usize, time: Time, setup: &Setup, nic: &mut impl Nic) {
        match &mut self.states[host].credits {
            Some(credits) if credits.scheduled_at == Some(time) => credits.scheduled_at = None,
            _ => return,
        }
        let Some(params) = setup.network.port(self.states[host].uplink).credits() else { return };
        while let Some(packet) = self.states[host].release(params) {
            self.left(host, &packet);
            self.states[host].depart(packet, setup, nic);
        }
        self.states[host].schedule_queue_release(params);
    }

    /// Records an emulation packet that leaves its host.
    fn left(&mut self, host: usize, packet: &Packet) {
        let Body::Emulation { number, .. } = packet.body() else { return };
        let now = self.states[host].now;
        if let Some(active) = self.sender(packet.flow)
            && let Some(credit_sender) = active.shim.as_mut().and_then(|at| at.credit_sender_mut())
        {
            credit_sender.on_left(number, now);
        }
    }

    fn sender(&mut self, flow: u32) -> Option<&mut Active<L>> {
        self.sender_of[flow as usize].get().and_then(|slot| self.senders[slot as usize].as_mut())
    }

    pub(super) fn run_credit_sender(
        &mut self,
        host: usize,
        flow: u32,
        time: Time,
        now: Time,
        setup: &Setup,
        nic: &mut impl Nic,
    ) {
        let slot = self.sender_of[flow as usize].position();
        let Some(active) = self.senders.get_mut(slot).and_then(Option::as_mut) else { return };
        let state = &mut self.states[host];
        match &mut active.shim {
            Some(at) if at.scheduled_at == time => at.scheduled_at = Time::NEVER,
            _ => return,
        }
        active.sample(now, &mut self.samples);
        while let Some(credit_sender) = active.shim.as_mut().and_then(|at| at.credit_sender_mut())
            && let Some(signal) = credit_sender.act(&mut active.sender, now)
        {
            let body = match signal {
                Signal::Request { packets } => Body::Request { packets },
                Signal::Stop => Body::Stop,
                Signal::Probe => Body::Probe,
                // It is stamped when it leaves the host's queue.
                Signal::Emulation { number, .. } => Body::Emulation { number, clock_ns: 0 },
            };
            let mut packet = active.signal(body, now, setup);
            let Signal::Emulation { expendable, .. } = signal else {
                state.send_reply(packet, TelemetrySlot::NONE, nic);
                continue;
            };
            if expendable {
                packet.set_expendable();
            }
            if let Some(packet) = state.offer(packet, setup) {
                state.depart(packet, setup, nic);
            }
        }
        state.schedule_sender(active, now);
    }

    pub(super) fn run_credit_receiver(
        &mut self,
        host: usize,
        flow: u32,
        time: Time,
        now: Time,
        setup: &Setup,
        nic: &mut impl Nic,
    ) {
        let Some(ack_state) = self.receiver_credits.get_mut(&flow).filter(|it| it.scheduled_at == time) else { return };
        ack_state.scheduled_at = Time::NEVER;
        let state = &mut self.states[host];
        match &mut ack_state.part {
            CreditRole::Credits(credit_receiver) => {
                while let Some(number) = credit_receiver.act(now) {
                    if let Some(packet) = state.offer(ack_state.back.credit(number, now), setup) {
                        state.depart(packet, setup, nic);
                    }
                }
            }
            CreditRole::Host(_) => {}
            CreditRole::Echoes(emulation_receiver) => {
                if emulation_receiver.next_action() <= now
                    && let Some(echo) = emulation_receiver.flush()
                {
                    state.send_reply(ack_state.back.echo(echo, now), TelemetrySlot::NONE, nic);
                }
            }
        }
        state.schedule_receiver(flow, ack_state);
    }

    /// Handles a request, a stop or an emulation packet that arrives.
    pub(super) fn on_credit_signal<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        let (setup, now) = (context.setup, packet.time);
        let spec = &setup.flows[packet.flow as usize];
        let complete = self.receiver_of[packet.flow as usize].state() == ReceiverState::Complete;
        if complete {
            let reply = match packet.body() {
                // The path of the data was kept free: its sender is notified, even if it ignores that.
                Body::Emulation { number, .. } => {
                    ForwardingHeader::back(packet, spec).echo(Echo { newest: number, map: 1 }, now)
                }
                // A sender that still requests credits has missed the last acknowledgements.
                Body::Request { .. } => last_acknowledgement(packet, spec, setup),
                _ => return,
            };
            self.states[host].send_reply(reply, TelemetrySlot::NONE, nic);
            return;
        }
        let ack_state = self.receiver_credits.entry(packet.flow).or_insert_with(|| {
            let part = credit_role(packet.flow, spec, context);
            HostAckState { part, scheduled_at: Time::NEVER, back: ForwardingHeader::back(packet, spec) }
        });
        match (&mut ack_state.part, packet.body()) {
            (CreditRole::Credits(credit_receiver), Body::Request { packets }) => {
                credit_receiver.on_request(now, packets);
            }
            (CreditRole::Credits(credit_receiver), Body::Stop) => credit_receiver.stop(),
            (CreditRole::Host(state_of_flow), Body::Request { packets }) => {
                let state = &mut self.states[host];
                let waits = state_of_flow.granted < state_of_flow.requested;
                state_of_flow.requested = state_of_flow.requested.max(packets);
                if state_of_flow.granted < state_of_flow.requested {
                    if !waits {
                        state.credits.get_or_insert_default().scheduler.turns.push_back(packet.flow);
                        state.schedule_host_credit();
                    }
                } else if let Some(last) = state_of_flow.granted.checked_sub(1) {
                    // A sender that requests credits that it was already granted has missed the last one.
                    state_of_flow.repeated += 1;
                    state.send_reply(ack_state.back.credit(last, now), TelemetrySlot::NONE, nic);
                }
            }
            (CreditRole::Echoes(emulation_receiver), Body::Emulation { number, clock_ns }) => {
                let here_ns = setup.clock_ns(spec.dst, now);
                let delay = Span::from_ns(here_ns.wrapping_sub(clock_ns).cast_signed().into());
                for echo in emulation_receiver.on_emulation(now, number, delay).into_iter().flatten() {
                    self.states[host].send_reply(ack_state.back.echo(echo, now), TelemetrySlot::NONE, nic);
                }
            }
            _ => {}
        }
        self.states[host].schedule_receiver(packet.flow, ack_state);
    }

    /// Sends the host's next credit for its link, if this is the time that was scheduled last.
    pub(super) fn send_host_credit(&mut self, host: usize, time: Time, setup: &Setup, nic: &mut impl Nic) {
        let state = &mut self.states[host];
        let Some(credits) = &mut state.credits else { return };
        let scheduler = &mut credits.scheduler;
        if scheduler.scheduled_at != Some(time) {
            return;
        }
        scheduler.scheduled_at = None;
        while let Some(flow) = scheduler.turns.pop_front() {
            // Flows that have everything wait no more.
            let Some(HostAckState { part: CreditRole::Host(state_of_flow), back, .. }) =
                self.receiver_credits.get_mut(&flow)
            else {
                continue;
            };
            let credit = back.credit(state_of_flow.granted, state.now);
            state_of_flow.granted += 1;
            if state_of_flow.granted < state_of_flow.requested {
                scheduler.turns.push_back(flow);
            }
            let packet = Bytes::new(u64::from(setup.host.mss + setup.host.header));
            let downlink = setup.network.links()[state.uplink.index()].reverse;
            scheduler.next = state.now + setup.network.port(downlink).config().rate.tx_time(packet);
            state.send_reply(credit, TelemetrySlot::NONE, nic);
            break;
        }
        state.schedule_host_credit();
    }

    /// Handles arriving data of a flow that uses a credit.
    pub(super) fn on_scheduled(&mut self, flow: u32, now: Time, credit: u32) {
        if let Some(ack_state) = self.receiver_credits.get_mut(&flow)
            && let CreditRole::Credits(credit_receiver) = &mut ack_state.part
        {
            credit_receiver.on_data(now, credit);
        }
    }

    /// Ends the receiving end of a flow that is completely received.
    pub(super) fn end_credit_receiver(&mut self, host: usize, flow: u32, nic: &mut impl Nic) {
        let Some(mut ack_state) = self.receiver_credits.remove(&flow) else { return };
        if let CreditRole::Echoes(emulation_receiver) = &mut ack_state.part
            && let Some(echo) = emulation_receiver.flush()
        {
            let now = self.states[host].now;
            self.states[host].send_reply(ack_state.back.echo(echo, now), TelemetrySlot::NONE, nic);
        }
        self.count(flow, &ack_state);
    }

    /// Adds up the counters of a receiving end.
    fn count(&mut self, flow: u32, ack_state: &HostAckState<L>) {
        let (sent, actions) = match &ack_state.part {
            CreditRole::Credits(credit_receiver) => credit_receiver.stats(),
            CreditRole::Host(state_of_flow) => {
                (u64::from(state_of_flow.granted) + u64::from(state_of_flow.repeated), LawActions::default())
            }
            CreditRole::Echoes(_) => return,
        };
        let counters = self.receiver_counters.entry(flow).or_default();
        counters.credits.add(&CreditStats { sent, ..CreditStats::default() });
        counters.actions = actions;
    }

    /// Ends the receiving ends with the run.
    pub(super) fn finish_credit_receivers(&mut self) {
        for (flow, ack_state) in std::mem::take(&mut self.receiver_credits) {
            self.count(flow, &ack_state);
        }
    }

    /// Counts, at the end of the run, the received payload of flows with receivers that do not acknowledge.
    pub(super) fn count_unacknowledged(&mut self, setup: &Setup) {
        if !matches!(setup.host.recovery, Recovery::GoBackN { acks: false, .. }) {
            return;
        }
        for (flow, (&slot, spec)) in (0..).zip(self.receiver_of.iter().zip(&setup.flows)) {
            let packets = match slot.state() {
                ReceiverState::Unstarted => continue,
                ReceiverState::Complete => setup.packets(spec),
                ReceiverState::Open(slot) => self.receivers[slot as usize].as_ref().map_or(0, Receiving::cumulative),
            };
            let payload = Bytes::new(u64::from(packets) * u64::from(setup.host.mss));
            self.receiver_counters.entry(flow).or_default().received = payload.min(spec.size);
        }
    }

    /// Answers a probe, after all that was held back before it.
    pub(super) fn reply_to_probe(&mut self, host: usize, packet: &Packet, setup: &Setup, nic: &mut impl Nic) {
        let spec = &setup.flows[packet.flow as usize];
        let cumulative = self.flush_now(host, packet.flow, setup, nic);
        let size = setup.host.ack_size as u16;
        let header = ForwardingHeader { time: packet.time, size, ..ForwardingHeader::back(packet, spec) };
        self.states[host].send_reply(Packet::new(header, Body::ProbeReply { cumulative }), TelemetrySlot::NONE, nic);
    }

    /// Handles credits, or the response to a probe, at their sender.
    pub(super) fn on_credits<F>(&mut self, host: usize, packet: &Packet, context: &Context<F>) {
        let now = packet.time;
        let slot = self.sender_of[packet.flow as usize].get();
        let Some((slot, active)) = slot.and_then(|slot| Some((slot, self.senders[slot as usize].as_mut()?))) else {
            // They arrive too late to be used.
            let wasted = match packet.body() {
                Body::Credit { .. } => 1,
                Body::Echo(echo) => echo.count().into(),
                _ => 0,
            };
            let credits = CreditStats { received: wasted, wasted, ..CreditStats::default() };
            self.receiver_counters.entry(packet.flow).or_default().credits.add(&credits);
            return;
        };
        active.sample(now, &mut self.samples);
        let Some(credit_sender) = active.shim.as_mut().and_then(|at| at.credit_sender_mut()) else { return };
        let sender = &mut active.sender;
        match packet.body() {
            Body::Credit { number } => credit_sender.on_credit(sender, now, number),
            Body::Echo(echo) => credit_sender.on_echo(sender, now, echo),
            Body::ProbeReply { cumulative } => credit_sender.on_probe_reply(sender, now, cumulative),
            _ => {}
        }
        if active.sender.is_complete() {
            self.complete(host, slot, now, context);
        } else {
            self.states[host].on_feedback(slot, active, now);
        }
    }
}

impl HostState {
    /// Schedules a receiving end that may have changed its next time.
    fn schedule_receiver<L: ControlLaw>(&mut self, flow: u32, ack_state: &mut HostAckState<L>) {
        let next = match &ack_state.part {
            CreditRole::Credits(credit_receiver) => credit_receiver.next_action(),
            CreditRole::Echoes(emulation_receiver) => emulation_receiver.next_action(),
            CreditRole::Host(_) => Time::NEVER,
        };
        if next.is_set() && next < ack_state.scheduled_at {
            ack_state.scheduled_at = next;
            self.calendar.schedule(next, Due::Credits(flow, FlowSide::Receiver));
        }
    }
}

/// Returns the receiving end of a flow, as its law requires.
fn credit_role<L: ControlLaw, F: Fn(&FlowSpec, &PathInfo) -> L>(
    flow: u32,
    spec: &FlowSpec,
    context: &Context<F>,
) -> CreditRole<L> {
    let setup = context.setup;
    let path = setup.law_path(spec);
    let law = (context.make_law)(spec, &path);
    let Some(config) = credits_of(setup, &law).map(|credits| credit_config(setup, flow, &path, credits)) else {
        return CreditRole::Echoes(EmulationReceiver::new(None));
    };
    match config.credits.driver {
        Driver::Receiver { jitter, stops_at_demand, .. } => {
            let spacing = Spacing { jitter, tick: config.tick, salt: config.salt };
            let (base_rtt, longest) = (path.base_rtt, config.longest);
            CreditRole::Credits(CreditReceiver::new(
                law,
                CreditingConfig { spacing, stops_at_demand, base_rtt, longest },
            ))
        }
        Driver::Host => CreditRole::Host(HostCreditState::default()),
        Driver::Sender { batches, .. } => CreditRole::Echoes(EmulationReceiver::new(config.wait().filter(|_| batches))),
    }
}

impl ForwardingHeader {
    /// Returns the header of a packet back to the source of another, on its path as far as that depends on entropy.
    fn back(packet: &Packet, spec: &FlowSpec) -> Self {
        let (flow, entropy, class) = (packet.flow, packet.entropy, packet.class());
        Self { flow, dst: spec.src.0, entropy, class, ..Self::default() }
    }

    /// A credit with this header.
    fn credit(self, number: u32, now: Time) -> Packet {
        Packet::new(Self { time: now, size: CREDIT_SIZE as u16, ..self }, Body::Credit { number })
    }

    /// An echo with this header.
    fn echo(self, echo: Echo, now: Time) -> Packet {
        let size = CREDIT_SIZE + STAMP * (echo.count() - 1);
        Packet::new(Self { time: now, size: size as u16, ..self }, Body::Echo(echo))
    }
}
