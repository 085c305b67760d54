//! Priority flow control at a host: the switch at the other end of its cable pauses classes of its card.
//!
//! A flow of a paused class is not asked to send: it waits apart, and comes back in turn. Acknowledgements and
//! notifications of a paused class wait in the host and leave when it resumes, before data. What the card was given
//! before is not called back; that is at most one packet and the acknowledgements behind it.

use std::collections::VecDeque;

use units::Span;

use super::{Active, HostState, Hosts, Queued, Wire};
use crate::packet::{Packet, Report};

/// What pauses have done to a host; made at the first.
#[derive(Default)]
pub(super) struct Pauses {
    count: u64,
    /// The time in which at least one class was paused, until all ran last.
    paused_ps: u64,
    /// Since when one is, where one is.
    since_ps: u64,
    /// (slot, flow) of flows that wait for their class, in the order in which their turns came.
    flows: VecDeque<(u32, u32)>,
    /// Acknowledgements and notifications that wait, in order.
    answers: VecDeque<(Packet, Report)>,
}

impl<L> Hosts<L> {
    /// How often a host's card was paused up to now, each class counted, and the time in which at least one class was.
    pub fn pauses(&self, host: usize, now: units::Time) -> (u64, Span) {
        let it = &self.states[host];
        let Some(pauses) = &it.pauses else { return (0, Span::ZERO) };
        let running = if it.paused == 0 { 0 } else { now.ps().saturating_sub(pauses.since_ps) };
        (pauses.count, Span::from_ps((pauses.paused_ps + running).cast_signed()))
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
        let pauses = self.pauses.get_or_insert_default();
        pauses.count += 1;
        if self.paused == 0 {
            pauses.since_ps = self.now_ps;
        }
        self.paused |= 1 << class;
    }

    pub(super) fn resume<L>(&mut self, class: u8, senders: &mut [Option<Active<L>>], wire: &mut impl Wire) {
        if !self.is_paused(class) {
            return;
        }
        self.paused &= !(1 << class);
        let Some(pauses) = &mut self.pauses else { return };
        if self.paused == 0 {
            pauses.paused_ps += self.now_ps - pauses.since_ps;
        }
        let (flows, answers) = (std::mem::take(&mut pauses.flows), std::mem::take(&mut pauses.answers));
        for (packet, report) in answers {
            self.answer(Packet { time_ps: self.now_ps, ..packet }, report, wire);
        }
        for (slot, flow) in flows {
            let Some(active) = &mut senders[slot as usize] else { continue };
            if (active.flow, active.queued) != (flow, Queued::Parked) {
                continue;
            }
            if self.is_paused(active.class) {
                self.park(slot, active);
            } else {
                active.queued = Queued::Ready;
                self.ready.push_back((slot, flow));
            }
        }
    }

    /// A flow's turn has come, and its class is paused.
    pub(super) fn park<L>(&mut self, slot: u32, active: &mut Active<L>) {
        active.queued = Queued::Parked;
        self.pauses.get_or_insert_default().flows.push_back((slot, active.flow));
    }

    /// Sends an acknowledgement or a notification, unless its class is paused.
    #[inline(always)]
    pub(super) fn answer(&mut self, packet: Packet, report: Report, wire: &mut impl Wire) {
        if self.paused != 0 && self.is_paused(if self.control_first { 0 } else { packet.class() }) {
            self.keep_answer(packet, report);
        } else if report == Report::NONE {
            wire.transmit(packet);
        } else {
            wire.transmit_with(packet, report);
        }
    }

    #[cold]
    fn keep_answer(&mut self, packet: Packet, report: Report) {
        self.pauses.get_or_insert_default().answers.push_back((packet, report));
    }
}
