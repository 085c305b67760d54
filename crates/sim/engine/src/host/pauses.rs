//! Priority flow control at a host: the switch at the other end of its cable pauses classes of its NIC.
//!
//! A flow of a paused class is not polled: it waits in a queue of its own, and returns in turn. Acknowledgements and
//! notifications of a paused class wait in the host and leave when it resumes, before data, each when the NIC is idle.
//! Packets that the NIC already has are not withdrawn; that is at most one packet and the acknowledgements behind it.

use std::collections::VecDeque;

use experiment::PauseSample;
use laws::ControlLaw;
use units::{Span, Time};

use super::run_queue::RunQueueEntry;
use super::{Active, HostState, Nic, PartitionHosts, SendQueue};
use crate::packet::{Packet, TelemetrySlot};

/// The turn of replies that waited: no flow has it, because a slot is below 2^32 - 1.
pub(super) const REPLIES: (u32, u32) = (u32::MAX, u32::MAX);

/// Pause state of a host; created with the first pause.
#[derive(Default)]
pub(super) struct Pauses {
    /// The pauses of its NIC.
    nics: fabric::Pauses,
    /// (slot, flow) of flows that wait for their class, in the order of their turns.
    flows: VecDeque<(u32, u32)>,
    /// Acknowledgements and notifications that wait, in order.
    replies: VecDeque<(Packet, TelemetrySlot)>,
}

impl Pauses {
    /// Creates the state from the pauses of a NIC.
    pub(super) fn new(nics: fabric::Pauses) -> Self {
        Self { nics, ..Self::default() }
    }

    /// The turns of flows that wait for their class.
    pub(super) fn parked(&self) -> impl Iterator<Item = &RunQueueEntry> {
        self.flows.iter()
    }
}

impl<L> PartitionHosts<L> {
    /// Returns the number of pauses of a host's NIC up to now, each class counted, and the time during which at least
    /// one class was paused.
    pub fn pauses(&self, host: usize, now: Time) -> (u64, Span) {
        let state = &self.states[host];
        let Some(pauses) = &state.pauses else { return (0, Span::ZERO) };
        pauses.nics.until(now)
    }

    /// Returns the pauses of sampled host NICs: the NIC, and the start and end of each time during which at least one
    /// of its classes was paused, up to `now`.
    pub fn kept_pauses(&self, now: Time) -> impl Iterator<Item = PauseSample> + '_ {
        self.states.iter().flat_map(move |state| {
            let spans = state.pauses.iter().flat_map(move |pauses| pauses.nics.spans(now));
            spans.map(|(from, until)| PauseSample { link: state.uplink, from, until })
        })
    }
}

impl HostState {
    #[inline(always)]
    pub(super) fn is_paused(&self, class: u8) -> bool {
        self.paused >> class & 1 != 0
    }

    pub(super) fn pause(&mut self, class: u8) {
        if self.is_paused(class) {
            return;
        }
        self.change(self.paused | 1 << class);
    }

    /// Changes the paused classes.
    fn change(&mut self, paused: u8) {
        self.pauses.get_or_insert_default().nics.change(self.paused, paused, self.now);
        self.paused = paused;
    }

    pub(super) fn resume<L: ControlLaw>(&mut self, class: u8, senders: &mut [Option<Active<L>>]) {
        if !self.is_paused(class) {
            return;
        }
        self.change(self.paused & !(1 << class));
        let Some(pauses) = &mut self.pauses else { return };
        let flows = std::mem::take(&mut pauses.flows);
        self.schedule_replies();
        for (slot, flow) in flows {
            let Some(active) = &mut senders[slot as usize] else { continue };
            if (active.flow, active.queued) != (flow, SendQueue::PfcPaused) {
                continue;
            }
            if self.is_paused(active.class) {
                self.park(slot, active);
            } else {
                active.queued = SendQueue::Runnable;
                self.take_turn(slot, active);
            }
        }
    }

    /// Parks a flow if its class is paused when its turn comes.
    pub(super) fn park<L>(&mut self, slot: u32, active: &mut Active<L>) {
        active.queued = SendQueue::PfcPaused;
        self.pauses.get_or_insert_default().flows.push_back((slot, active.flow));
    }

    /// Sends an acknowledgement or a notification, unless its class is paused or others of its class wait.
    #[inline(always)]
    pub(super) fn send_reply(&mut self, packet: Packet, report: TelemetrySlot, nic: &mut impl Nic) {
        let waits = self.paused | self.waiting_replies;
        if waits != 0 && waits >> self.class_of(&packet) & 1 != 0 {
            self.queue_reply(packet, report);
        } else {
            hand_over(packet, report, nic);
        }
    }

    /// The class of an answer at this host.
    #[inline(always)]
    fn class_of(&self, packet: &Packet) -> u8 {
        if self.control_first { 0 } else { packet.class() }
    }

    #[cold]
    fn queue_reply(&mut self, packet: Packet, report: TelemetrySlot) {
        self.waiting_replies |= 1 << self.class_of(&packet);
        self.pauses.get_or_insert_default().replies.push_back((packet, report));
    }

    /// Puts answers first in turn, if one may leave. They take turns like packets of flows: packets that the NIC has
    /// could not be withdrawn at the next pause.
    fn schedule_replies(&mut self) {
        if self.waiting_replies & !self.paused != 0 && self.ready.first() != Some(REPLIES) {
            self.ready.push_front(REPLIES);
        }
    }

    /// Sends the first answer that may leave, in the turn of the answers. Returns whether there was one.
    #[cold]
    pub(super) fn send_next_reply(&mut self, nic: &mut impl Nic) -> bool {
        let Some(pauses) = &mut self.pauses else { return false };
        let (paused, control_first) = (self.paused, self.control_first);
        let class_of = |packet: &Packet| if control_first { 0 } else { packet.class() };
        let index = pauses.replies.iter().position(|(packet, _)| paused >> class_of(packet) & 1 == 0);
        let Some((packet, report)) = index.and_then(|index| pauses.replies.remove(index)) else { return false };
        self.waiting_replies = pauses.replies.iter().fold(0, |classes, (packet, _)| classes | 1 << class_of(packet));
        hand_over(packet.at(self.now), report, nic);
        self.schedule_replies();
        true
    }
}

#[inline(always)]
fn hand_over(packet: Packet, report: TelemetrySlot, nic: &mut impl Nic) {
    if report == TelemetrySlot::NONE {
        nic.transmit(packet);
    } else {
        nic.transmit_with(packet, report);
    }
}
