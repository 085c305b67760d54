//! The sending side: the queues of flows that wait to send, their order, and the packet that leaves.

use std::cmp::Reverse;

use experiment::{FlowId, FlowOutcome, FlowSample, Setup};
use flow::credits::ScheduledPacket;
use flow::{FlowStats, HostShim, SendState, Sender};
use laws::ControlLaw;
use units::{Bytes, Span, Time};

use super::calendar::Due;
use super::pauses::REPLIES;
use super::shim::{PacketNotes, ShimState};
use super::{Context, HostState, Nic, PartitionHosts};
use crate::body::Body;
use crate::packet::{ForwardingHeader, Packet};
use crate::ticks::Ticks;

/// The queue of a sending flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendQueue {
    Idle,
    /// The flow is in the run queue; when its turn comes it may send, if it is still allowed to.
    Runnable,
    /// The same, and nothing can have changed since it was polled.
    Confirmed,
    Paced,
    /// Its class is paused.
    PfcPaused,
}

pub(super) struct Active<L> {
    pub(super) sender: Sender<L>,
    pub(super) flow: u32,
    /// The flow that its connection was opened for.
    pub(super) connection: u32,
    /// Set if its packets' entropies alone select their paths: it shares them with other flows of the connection.
    pub(super) pinned: bool,
    pub(super) dst: u32,
    pub(super) queued: SendQueue,
    pub(super) class: u8,
    /// The time at which the flow's valid timer fires; entries at other times are outdated.
    pub(super) armed: Time,
    /// State that few flows have.
    pub(super) shim: Option<Box<ShimState>>,
    pub(super) started: Time,
    pub(super) ticks: Ticks,
    pub(super) sent: Bytes,
    /// The flow precedes others while it has sent less than this or, if its size is known, while it has less left to send.
    pub(super) early: Bytes,
    /// Set if its size is known: [`HostConfig::size_aware`](experiment::HostConfig::size_aware).
    pub(super) by_size: bool,
}

impl<L: ControlLaw> PartitionHosts<L> {
    #[inline]
    pub(super) fn send_one<F>(&mut self, host: usize, now: Time, context: &Context<F>, nic: &mut impl Nic) {
        let state = &mut self.states[host];
        while let Some(&Reverse((time, flow, slot))) = state.paced.peek() {
            if time > now {
                break;
            }
            state.paced.pop();
            if let Some(active) = &mut self.senders[slot as usize]
                && (active.flow, active.queued) == (flow, SendQueue::Paced)
                && active.shim.as_ref().is_none_or(|shim| shim.paced_at == time)
            {
                state.make_ready(slot, active);
            }
        }
        while let Some((slot, flow)) = state.ready.pop_front() {
            let Some(active) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else {
                if (slot, flow) == REPLIES && state.send_next_reply(nic) {
                    return;
                }
                continue;
            };
            if active.flow != flow || !matches!(active.queued, SendQueue::Runnable | SendQueue::Confirmed) {
                continue;
            }
            if state.paused != 0 && state.is_paused(active.class) {
                state.park(slot, active);
                continue;
            }
            let is_confirmed = active.queued == SendQueue::Confirmed;
            active.queued = SendQueue::Idle;
            debug_assert!(!is_confirmed || active.poll(now) == SendState::Now, "flow {flow} was expected to send");
            match if is_confirmed { SendState::Now } else { active.poll(now) } {
                SendState::Now => {
                    active.sample(now, &mut self.samples);
                    let (packet, then) = active.next_packet(now, context.setup);
                    let size = packet.size;
                    self.data_packets += 1;
                    match &active.shim {
                        Some(shim) if shim.notes == PacketNotes::Attached => active.transmit_noted(now, packet, nic),
                        _ => nic.transmit(packet),
                    }
                    if active.shim.is_some() {
                        state.schedule_sender(active, now);
                    }
                    if active.keeps_turn(size, context.setup) {
                        active.queued = SendQueue::Runnable;
                        state.ready.push_front((slot, flow));
                    } else if active.shim.is_none() {
                        state.queue_as(slot, active, then);
                    } else {
                        state.queue(slot, active, now);
                    }
                    return;
                }
                SendState::At(time) => state.pace(slot, active, time),
                SendState::Blocked => {}
            }
        }
    }
}

impl HostState {
    /// Puts a flow where it waits to send, if it may send at all.
    #[inline]
    pub(super) fn queue<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>, now: Time) {
        let polled = active.poll(now);
        self.queue_as(slot, active, polled);
    }

    /// Queues a flow by the result of a poll.
    #[inline(always)]
    fn queue_as<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>, polled: SendState) {
        match polled {
            SendState::Now => {
                self.make_ready(slot, active);
                // A shim has times of its own.
                if active.shim.is_none() {
                    active.queued = SendQueue::Confirmed;
                }
            }
            SendState::At(time) => self.pace(slot, active, time),
            SendState::Blocked => active.queued = SendQueue::Idle,
        }
    }

    #[inline(always)]
    pub(super) fn make_ready<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>) {
        active.queued = SendQueue::Runnable;
        self.take_turn(slot, active);
    }

    /// Queues a flow for a turn, before others if it has sent little, or is known to have little to send.
    #[inline(always)]
    pub(super) fn take_turn<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>) {
        if !active.early.is_zero() && active.counts_as() < active.early {
            self.ready.push_early((slot, active.flow));
        } else {
            self.ready.push_back((slot, active.flow));
        }
    }

    #[inline(always)]
    fn pace<L>(&mut self, slot: u32, active: &mut Active<L>, time: Time) {
        active.queued = SendQueue::Paced;
        self.paced.push(Reverse((time, active.flow, slot)));
        if let Some(shim) = &mut active.shim {
            shim.paced_at = time;
        }
    }

    /// Updates a flow's queue after its sender received feedback: it may be able to send, or at another time, and its
    /// law may require an earlier timer.
    #[inline(always)]
    pub(super) fn on_feedback<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>, now: Time) {
        let timer = active.sender.law_timer();
        if timer < active.armed {
            self.arm(active, timer);
        }
        if active.queued == SendQueue::Idle {
            self.queue(slot, active, now);
        } else if active.queued == SendQueue::Confirmed {
            active.queued = SendQueue::Runnable;
        } else if active.shim.is_some() {
            self.requeue(slot, active, now);
        }
        if active.shim.is_some() {
            self.schedule_sender(active, now);
        }
    }

    /// Sets a flow's timer; the one that was set before is outdated.
    pub(super) fn arm<L>(&mut self, active: &mut Active<L>, time: Time) {
        active.armed = time.max(self.now);
        self.calendar.schedule(active.armed, Due::Timer(active.flow));
    }

    /// Moves a flow that waits already, where its time can change.
    #[inline(never)]
    fn requeue<L: ControlLaw>(&mut self, slot: u32, active: &mut Active<L>, now: Time) {
        active.release(now);
        if active.queued != SendQueue::Paced {
            return;
        }
        match active.poll(now) {
            SendState::Now => self.make_ready(slot, active),
            SendState::At(time) if active.shim.as_ref().is_some_and(|shim| shim.paced_at != time) => {
                self.pace(slot, active, time);
            }
            SendState::At(_) | SendState::Blocked => {}
        }
    }
}

impl<L: ControlLaw> Active<L> {
    /// Returns the bytes that count against the quantum of flows that go first.
    fn counts_as(&mut self) -> Bytes {
        if !self.by_size {
            return self.sent;
        }
        let in_shim =
            self.shim.as_ref().and_then(|at| at.host_shim.as_ref()).map_or(Bytes::ZERO, HostShim::queued_bytes);
        self.sender.unsent() + in_shim
    }

    /// Returns the packet that [`Active::poll`] allowed, and the sender's state for the next.
    #[inline]
    fn next_packet(&mut self, now: Time, setup: &Setup) -> (Packet, SendState) {
        let ScheduledPacket { segment, credit } = self.take(now, setup);
        self.sent += Bytes::new(segment.bytes.into());
        let header = ForwardingHeader {
            time: now,
            flow: self.flow,
            dst: self.dst,
            entropy: self.sender.entropy(&segment),
            size: (segment.bytes + setup.host.header) as u16,
            class: self.class,
            pinned: self.pinned,
        };
        let (credit, expendable) = self.shim.as_ref().map_or((None, false), |at| at.credit_fields(credit));
        let mut packet = Packet::new(header, Body::Data { seq: segment.seq, attempt: segment.attempt, credit });
        if segment.requests_ack() {
            packet.set_requests_ack();
        }
        if expendable {
            packet.set_expendable();
        }
        (packet, segment.then)
    }

    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, samples: &mut Vec<FlowSample>) {
        if self.ticks.are_due(now) {
            self.take_samples(now, samples);
        }
    }

    #[cold]
    fn take_samples(&mut self, now: Time, samples: &mut Vec<FlowSample>) {
        while let Some(due) = self.ticks.due(now) {
            let mut trace = Vec::new();
            self.sender.law().trace(&mut |name, value| trace.push((name, value)));
            if let Some(hold) = self.hold() {
                hold.trace(due, &mut |name, value| trace.push((name, value)));
            }
            samples.push(FlowSample {
                time: due,
                flow: FlowId(self.flow),
                sent: self.sent,
                delivered: self.sender.delivered(),
                window: self.sender.send_limits().window,
                rtt: self.sender.smoothed_rtt(),
                trace,
            });
        }
    }

    /// Returns its outcome up to `now`.
    pub(super) fn outcome(&self, completed: Time, now: Time) -> FlowOutcome {
        let held = self.hold().map_or(Span::ZERO, |hold| hold.held(now));
        FlowOutcome {
            started: self.started,
            completed,
            delivered: self.sender.delivered(),
            stats: FlowStats { held, ..*self.sender.stats() },
            actions: self.sender.actions(),
            credits: if completed.is_set() { self.final_credit_stats() } else { self.credit_stats() },
        }
    }
}
