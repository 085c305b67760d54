//! The receiving side: responses to packets, immediate or delayed.

use experiment::{Dependency, FlowId, FlowSpec, Setup};
use flow::{AckHeader, AckReply, DataHeader, LoadBalancing, Receiver};
use laws::ControlLaw;
use laws::cnp::Generator;
use units::{Span, Time};

use super::calendar::Due;
use super::{Context, HostState, Nic, PartitionHosts};
use crate::body::Body;
use crate::packet::{ForwardingHeader, Packet, TelemetrySlot};

/// State of a flow's receiving end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReceiverState {
    /// No packet has arrived.
    Unstarted,
    /// The receiver is at this place.
    Open(u32),
    /// All packets have arrived and the receiver is freed.
    Complete,
}

/// [`ReceiverState`] in four bytes. Places are below 2^32 - 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReceiverSlot(u32);

impl ReceiverSlot {
    pub(super) const UNSTARTED: Self = Self(u32::MAX);
    pub(super) const COMPLETE: Self = Self(u32::MAX - 1);

    #[inline(always)]
    pub(super) const fn open(place: u32) -> Self {
        debug_assert!(place < Self::COMPLETE.0);
        Self(place)
    }

    #[inline(always)]
    pub(super) const fn state(self) -> ReceiverState {
        match self {
            Self::UNSTARTED => ReceiverState::Unstarted,
            Self::COMPLETE => ReceiverState::Complete,
            Self(place) => ReceiverState::Open(place),
        }
    }
}

/// The receiving end of a flow, with the state for delayed responses.
pub(super) struct Receiving {
    receiver: Receiver,
    flow: u32,
    /// The newest packet with a delayed acknowledgement; not a duplicate, which is acknowledged at once.
    held_back: Packet,
    /// The time at which the delayed acknowledgement is sent; [`Time::NEVER`] if there is none.
    flush_at: Time,
    ack_delay: Span,
    notes: Option<Box<FeedbackState>>,
}

/// Receiver state for answers other than acknowledgements, and for reports.
struct FeedbackState {
    /// The newest packet of a coded flow: requests for blocks take its reverse path.
    newest: Option<Packet>,
    /// The expiry of the first block's timer, if it is in the host's calendar; otherwise [`Time::NEVER`].
    blocks_at: Time,
    /// Determines when marks trigger a notification.
    notifier: Option<Generator>,
    /// Data packets since the last OR-ACK.
    unacked: u32,
    /// The reports of the ports that the packet held back passed.
    report: TelemetrySlot,
}

impl<L: ControlLaw> PartitionHosts<L> {
    #[inline(never)]
    pub(super) fn on_data<F>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: TelemetrySlot,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        let setup = context.setup;
        let spec = &setup.flows[packet.flow as usize];
        let mut receiver = self.receiver_of[packet.flow as usize].state();
        if receiver == ReceiverState::Unstarted {
            receiver = ReceiverState::Open(self.new_receiver(packet, spec, setup));
        }
        let (seq, _) = packet.transmission();
        if let Some(credit) = packet.used_credit() {
            self.on_scheduled(packet.flow, packet.time, credit);
        }
        let state = &mut self.states[host];
        let ReceiverState::Open(slot) = receiver else {
            let (cumulative, marked) = (setup.packets(spec), packet.is_marked());
            let reply = AckReply { seq, covers: 1, cumulative, marked, nack: false };
            state.send_reply(acknowledgement(packet, spec, reply, packet.time, setup), report, nic);
            return;
        };
        let Some(receiving) = &mut self.receivers[slot as usize] else { return };
        if let Some(notes) = &mut receiving.notes {
            notes.send_notifications(packet, spec, setup, state, nic);
        }
        let now = packet.time;
        let replies = receiving
            .receiver
            .on_data(now, DataHeader { seq, marked: packet.is_marked(), requests_ack: packet.requests_ack() });
        if let Some(flushed) = replies[0] {
            let report = receiving.take_report();
            state.send_reply(acknowledgement(&receiving.held_back, spec, flushed, packet.time, setup), report, nic);
        }
        if let Some(reply) = replies[1] {
            // A request to retransmit concerns another packet than the one that arrived.
            let ack_report = if reply.nack { TelemetrySlot::NONE } else { report };
            forget(if reply.nack { report } else { TelemetrySlot::NONE }, nic);
            state.send_reply(acknowledgement(packet, spec, reply, packet.time, setup), ack_report, nic);
        }
        if spec.coded {
            receiving.request_blocks(Some(packet), state, setup, nic);
        }
        let is_acked = replies[1].is_some();
        if setup.host.ack_every == 1 && !receiving.receiver.is_complete() {
            if !is_acked {
                forget(report, nic);
            }
            return;
        }
        if !is_acked {
            receiving.hold_back(packet, report, nic);
        }
        let holds_back = receiving.forget_unused(nic);
        if receiving.receiver.is_complete() {
            self.finish_receiver(host, slot, packet, context, nic);
        } else if !holds_back {
            receiving.flush_at = Time::NEVER;
        } else if !receiving.flush_at.is_set() || replies[0].is_some() {
            receiving.flush_at = packet.time + receiving.ack_delay;
            state.calendar.schedule(receiving.flush_at, Due::Flush(packet.flow));
        }
    }

    /// Handles the header of a packet with a payload that was trimmed by a switch.
    pub(super) fn on_trimmed(&mut self, host: usize, header: &Packet, setup: &Setup, nic: &mut impl Nic) {
        let spec = &setup.flows[header.flow as usize];
        let slot = match self.receiver_of[header.flow as usize].state() {
            ReceiverState::Complete => {
                let ack = last_acknowledgement(header, spec, setup);
                return self.states[host].send_reply(ack, TelemetrySlot::NONE, nic);
            }
            ReceiverState::Unstarted => self.new_receiver(header, spec, setup),
            ReceiverState::Open(slot) => slot,
        };
        let Some(receiving) = &mut self.receivers[slot as usize] else { return };
        let state = &mut self.states[host];
        let (seq, _) = header.transmission();
        let [flushed, reply] = receiving.receiver.on_trimmed(header.time, seq);
        if let Some(flushed) = flushed {
            receiving.flush_at = Time::NEVER;
            let report = receiving.take_report();
            state.send_reply(acknowledgement(&receiving.held_back, spec, flushed, header.time, setup), report, nic);
        }
        if let Some(reply) = reply {
            state.send_reply(acknowledgement(header, spec, reply, header.time, setup), TelemetrySlot::NONE, nic);
        }
    }

    /// Ends the receiver of a flow that is completely received.
    #[inline]
    fn finish_receiver<F>(
        &mut self,
        host: usize,
        slot: u32,
        packet: &Packet,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        self.receivers[slot as usize] = None;
        self.free_receivers.push(slot);
        self.receiver_of[packet.flow as usize] = ReceiverSlot::COMPLETE;
        self.on_dependency_event(host, Dependency::Received(FlowId(packet.flow)), packet.time, context);
        if !self.receiver_credits.is_empty() {
            self.end_credit_receiver(host, packet.flow, nic);
        }
    }

    fn new_receiver(&mut self, packet: &Packet, spec: &FlowSpec, setup: &Setup) -> u32 {
        let host = &setup.host;
        let ack_delay = if host.ack_every > 1 {
            let quarter = || setup.paths(spec.src, spec.dst, host.mss).base_rtt.over(4);
            host.ack_delay.unwrap_or_else(quarter)
        } else {
            Span::ZERO
        };
        let slot = self.free_receivers.pop().unwrap_or_else(|| {
            self.receivers.push(None);
            self.receivers.len() as u32 - 1
        });
        let on_ramp = host.on_ramp.is_some() && spec.on_ramp;
        let takes_notes = host.cnp.is_some() || host.int || on_ramp || spec.coded;
        let receiver = match (setup.blocks(spec), setup.block_timer(spec)) {
            (Some(blocks), Some(timer)) => {
                let subflows = match host.path {
                    _ if host.coding.is_none_or(|coding| !coding.gaps) => 0,
                    LoadBalancing::PerPacket(_) | LoadBalancing::Reps(_) => 0,
                    LoadBalancing::UnoLb(unolb) => unolb.subflows,
                    LoadBalancing::PerFlow | LoadBalancing::AfterTimeout | LoadBalancing::Plb(_) => 1,
                };
                Receiver::coded(blocks, host.ack_every, timer, subflows, setup.history())
            }
            _ => Receiver::new(setup.packets(spec), host.ack_every, host.recovery),
        };
        self.receivers[slot as usize] = Some(Receiving {
            receiver,
            flow: packet.flow,
            held_back: *packet,
            flush_at: Time::NEVER,
            ack_delay,
            notes: takes_notes.then(|| {
                let notifier = host.cnp.map(|cnp| Generator::new(cnp.interval));
                Box::new(FeedbackState {
                    newest: None,
                    blocks_at: Time::NEVER,
                    notifier,
                    unacked: 0,
                    report: TelemetrySlot::NONE,
                })
            }),
        });
        self.receiver_of[packet.flow as usize] = ReceiverSlot::open(slot);
        slot
    }

    /// Sends a flow's delayed acknowledgements now. Returns the number below which every packet has arrived.
    pub(super) fn flush_now(&mut self, host: usize, flow: u32, setup: &Setup, nic: &mut impl Nic) -> u32 {
        match self.receiver_of[flow as usize].state() {
            ReceiverState::Unstarted => 0,
            ReceiverState::Complete => setup.packets(&setup.flows[flow as usize]),
            ReceiverState::Open(slot) => {
                let Some(receiving) = &mut self.receivers[slot as usize] else { return 0 };
                let cumulative = receiving.receiver.cumulative();
                if receiving.receiver.holds_back() {
                    receiving.flush(&mut self.states[host], setup, nic);
                }
                cumulative
            }
        }
    }

    /// Sends an acknowledgement at the end of its delay, if it is still held back.
    pub(super) fn flush(&mut self, host: usize, flow: u32, time: Time, setup: &Setup, nic: &mut impl Nic) {
        let ReceiverState::Open(slot) = self.receiver_of[flow as usize].state() else { return };
        let receiving = self.receivers.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(receiving) = receiving.filter(|it| it.flush_at == time) else { return };
        receiving.flush(&mut self.states[host], setup, nic);
    }

    /// Handles the timer of a block, if it is the one that was set last.
    pub(super) fn on_block_timer(&mut self, host: usize, flow: u32, time: Time, setup: &Setup, nic: &mut impl Nic) {
        let ReceiverState::Open(slot) = self.receiver_of[flow as usize].state() else { return };
        let Some(receiving) = self.receivers.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        let Some(notes) = receiving.notes.as_mut().filter(|notes| notes.blocks_at == time) else { return };
        notes.blocks_at = Time::NEVER;
        receiving.request_blocks(None, &mut self.states[host], setup, nic);
    }
}

impl Receiving {
    pub(super) fn flow(&self) -> u32 {
        self.flow
    }

    /// Returns its entries in the host's calendar, by their times; [`Time::NEVER`] if there is no entry.
    pub(super) fn calendar_entries(&self) -> [(Time, Due); 2] {
        let blocks_at = self.notes.as_ref().map_or(Time::NEVER, |notes| notes.blocks_at);
        [(self.flush_at, Due::Flush(self.flow)), (blocks_at, Due::Block(self.flow))]
    }

    /// Returns the number below which every packet has arrived.
    pub(super) fn cumulative(&self) -> u32 {
        self.receiver.cumulative()
    }

    /// Sends the acknowledgement that is held back.
    fn flush(&mut self, state: &mut HostState, setup: &Setup, nic: &mut impl Nic) {
        self.flush_at = Time::NEVER;
        if let Some(reply) = self.receiver.flush() {
            let report = self.take_report();
            state.send_reply(
                acknowledgement(&self.held_back, &setup.flows[self.flow as usize], reply, state.now, setup),
                report,
                nic,
            );
        }
    }

    /// Requests the blocks that are due after the arrival of `packet`, and sets the timer of the next one.
    #[inline(never)]
    fn request_blocks(&mut self, packet: Option<&Packet>, state: &mut HostState, setup: &Setup, nic: &mut impl Nic) {
        let Some(notes) = &mut self.notes else { return };
        notes.newest = packet.copied().or(notes.newest);
        let Some(newest) = notes.newest else { return };
        let now = state.now;
        let spec = &setup.flows[self.flow as usize];
        while let Some(nack) = self.receiver.next_nack(now) {
            let request = reply_to(&newest, spec, Body::BlockNack(nack), setup.host.ack_size, now);
            state.send_reply(request, TelemetrySlot::NONE, nic);
        }
        let alarm = self.receiver.next_block_timer();
        if alarm < notes.blocks_at {
            notes.blocks_at = alarm;
            state.calendar.schedule(alarm, Due::Block(self.flow));
        }
    }

    /// Stores a packet that was not answered as the newest one with a delayed acknowledgement, with its report, and drops
    /// the report that no acknowledgement will carry.
    #[inline]
    fn hold_back(&mut self, packet: &Packet, report: TelemetrySlot, nic: &mut impl Nic) {
        let mut unused = report;
        if self.receiver.holds_back() {
            self.held_back = *packet;
            if let Some(notes) = &mut self.notes {
                unused = std::mem::replace(&mut notes.report, report);
            }
        }
        forget(unused, nic);
    }

    /// Drops the stored report if no acknowledgement is held back to carry it. Returns whether one is.
    #[inline]
    fn forget_unused(&mut self, nic: &mut impl Nic) -> bool {
        let holds_back = self.receiver.holds_back();
        if !holds_back {
            forget(self.take_report(), nic);
        }
        holds_back
    }

    fn take_report(&mut self) -> TelemetrySlot {
        self.notes
            .as_mut()
            .map_or(TelemetrySlot::NONE, |notes| std::mem::replace(&mut notes.report, TelemetrySlot::NONE))
    }
}

impl FeedbackState {
    /// Answers a packet by other packets than acknowledgements, before it is acknowledged: the NIC does that (On-Ramp's
    /// §4.1, DCQCN's notification point), and the flow's last acknowledgement ends the state that could use the answer.
    fn send_notifications(
        &mut self,
        packet: &Packet,
        spec: &FlowSpec,
        setup: &Setup,
        state: &mut HostState,
        nic: &mut impl Nic,
    ) {
        let now = packet.time;
        let (seq, attempt) = packet.transmission();
        let notifies = packet.is_marked() && self.notifier.as_mut().is_some_and(|notifier| notifier.on_mark(now));
        if let (Some(cnp), true) = (setup.host.cnp, notifies) {
            state.send_reply(
                reply_to(packet, spec, Body::Cnp { seq, attempt }, cnp.size, now),
                TelemetrySlot::NONE,
                nic,
            );
        }
        if let Some(on_ramp) = setup.host.on_ramp
            && spec.on_ramp
        {
            self.unacked += 1;
            if self.unacked >= on_ramp.ack_every || seq + 1 == setup.packets(spec) {
                self.unacked = 0;
                let or_ack = Body::OrAck { seq, attempt, clock_ns: setup.clock_ns(spec.dst, now) };
                state.or_acks += 1;
                state.send_reply(reply_to(packet, spec, or_ack, on_ramp.ack_size, now), TelemetrySlot::NONE, nic);
            }
        }
    }
}

fn forget(report: TelemetrySlot, nic: &mut impl Nic) {
    if report != TelemetrySlot::NONE {
        nic.forget(report);
    }
}

/// Returns the acknowledgement of a data packet, on the path determined by the packet's entropy.
#[inline]
fn acknowledgement(packet: &Packet, spec: &FlowSpec, reply: AckReply, now: Time, setup: &Setup) -> Packet {
    let AckReply { seq, covers, cumulative, marked, nack } = reply;
    let (_, attempt) = packet.transmission();
    let header = AckHeader { seq, covers, cumulative, marked, attempt };
    let body = if nack { Body::Nack(header) } else { Body::Ack(header) };
    reply_to(packet, spec, body, setup.host.ack_size, now)
}

/// The acknowledgement of all of a flow's packets, in answer to a packet that is no data.
pub(super) fn last_acknowledgement(packet: &Packet, spec: &FlowSpec, setup: &Setup) -> Packet {
    let cumulative = setup.packets(spec);
    let header = AckHeader { seq: cumulative - 1, covers: 1, cumulative, marked: false, attempt: 0 };
    reply_to(packet, spec, Body::Ack(header), setup.host.ack_size, packet.time)
}

/// Returns a receiver's answer to a packet, on the path determined by the packet's entropy.
#[inline(always)]
fn reply_to(packet: &Packet, spec: &FlowSpec, body: Body, size: u32, now: Time) -> Packet {
    let header = ForwardingHeader {
        time: now,
        flow: packet.flow,
        dst: spec.src.0,
        entropy: packet.entropy,
        size: size as u16,
        class: packet.class(),
        pinned: packet.is_pinned(),
    };
    Packet::new(header, body)
}
