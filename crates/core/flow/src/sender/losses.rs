//! Handling of packets that are declared lost, under [`Recovery::Selective`](super::Recovery).

use laws::{ControlLaw, LossCause};
use units::Time;

use super::{AckHeader, LastTransmission, LossTimer, Sender};
use crate::channel::PROBES;
use crate::outstanding::{LossEvidence, NotifyLaw, Outstanding};

impl<L: ControlLaw> Sender<L> {
    #[inline(always)]
    pub(super) fn find_reordered_losses(&mut self, now: Time, subflow: u8) {
        if self.subflows.get_mut(subflow).out.next_rack_loss().is_none() {
            return;
        }
        let paths = self.lose_while(now, subflow, LossCause::Reordered, Outstanding::next_rack_loss);
        // A coded flow changes its path when it must send again.
        if paths != 0 && self.coded_blocks.is_none() {
            self.paths.leave_lossy(now, paths);
        }
    }

    /// Processes a report that the receiver got a transmission without its payload.
    pub(super) fn on_trimmed(&mut self, now: Time, nack: &AckHeader) {
        self.cumulative = self.cumulative.max(nack.cumulative);
        let last = self.numbers.last_transmission(nack.seq, &self.subflows);
        // If the report is old, the packet has been resent since, or was already declared lost.
        let cut = last.filter(|last| last.record.attempt() == nack.attempt && last.record.is_in_flight());
        if let Some(LastTransmission { subflow, number, .. }) = cut {
            let paths = self.lose(now, subflow, number);
            self.report_losses(now, LossCause::Nack);
            if self.coded_blocks.is_none() {
                self.paths.leave_lossy(now, paths);
            }
        }
        self.settle_if_complete();
    }

    /// Declares packets in flight on a subflow lost while `next` returns one. Returns the paths that lost them, one bit
    /// each; none if nothing is lost.
    #[inline(never)]
    pub(super) fn lose_while(
        &mut self,
        now: Time,
        subflow: u8,
        cause: LossCause,
        next: impl Fn(&mut Outstanding<u32>) -> Option<u64>,
    ) -> u64 {
        let mut paths = 0;
        while let Some(number) = next(&mut self.subflows.get_mut(subflow).out) {
            let seq = self.subflows.get(subflow).out.sent_packets.get(number).content;
            if seq < self.received_below() {
                self.settle(seq);
                continue;
            }
            paths |= self.lose(now, subflow, number);
        }
        if paths == 0 {
            self.trim(subflow);
        } else {
            self.report_losses(now, cause);
        }
        paths
    }

    /// Declares a packet in flight lost, without notifying its law. Returns its path as a bit.
    pub(super) fn lose(&mut self, now: Time, subflow: u8, number: u64) -> u64 {
        let record = self.subflows.get_mut(subflow).lose(number);
        let seq = record.content;
        if self.coded_blocks.as_ref().is_some_and(|sender_blocks| sender_blocks.blocks().block_of(seq).is_some()) {
            self.miss_in_block(now, seq);
        } else {
            self.numbers.wait(seq);
        }
        1 << record.path()
    }

    /// Reports declared losses to the laws that have not received them.
    pub(super) fn report_losses(&mut self, now: Time, cause: LossCause) {
        let notifies = cause != LossCause::Timeout || self.config.law_sees_timeouts;
        let notify = if notifies { NotifyLaw::Yes } else { NotifyLaw::No };
        for subflow in self.subflows.all() {
            if self.tcp.is_some() && notifies && cause != LossCause::Timeout {
                let (lost, sent_at) = self.subflows.get(subflow).out.unreported_losses();
                if !lost.is_zero() {
                    self.before_reduction(now, sent_at, lost);
                }
            }
            let before = self.window_before();
            let lost = self.subflows.get_mut(subflow).report_losses(now, cause, notify);
            if lost.is_zero() {
                continue;
            }
            self.stats.loss_events += u32::from(notifies);
            self.read_permit(subflow);
            if self.tcp.is_some() {
                self.spread_cut(before, lost, Some(cause));
            }
        }
    }

    /// Returns the number below which every packet has arrived itself.
    fn received_below(&self) -> u32 {
        match &self.coded_blocks {
            None => self.cumulative,
            // Below the receiver's cumulative number some packets may only have been recovered, and their loss must be
            // reported to the law.
            Some(sender_blocks) => self.cumulative.min(sender_blocks.blocks().head()),
        }
    }

    /// Sends the oldest packet of a subflow again, without notifying its law, if its timer has expired for the first or second
    /// consecutive time. Returns whether it has.
    fn probe(&mut self, now: Time, subflow: u8) -> bool {
        let out = &mut self.subflows.get_mut(subflow).out;
        if out.backoff() >= u32::from(PROBES) || self.coded_blocks.is_some() {
            return false;
        }
        out.back_off();
        if let Some((number, _)) = out.oldest() {
            self.lose(now, subflow, number);
            self.subflows.get_mut(subflow).report_losses(now, LossCause::Timeout, NotifyLaw::No);
        }
        true
    }

    /// Declares the packets of a subflow's expired retransmission timeout lost, if it has expired. Returns the paths
    /// that lost them, one bit each; none if it was no timeout.
    pub(super) fn lose_overdue(&mut self, now: Time, subflow: u8) -> u64 {
        let timing = self.timing();
        if timing.loss_timer == LossTimer::Probe {
            self.lose_while(now, subflow, LossCause::Reordered, |out| {
                out.next_expired(now, LossEvidence::LaterArrival, &timing)
            });
        }
        if !self.subflows.get_mut(subflow).out.rto_expired(now, &timing) {
            return 0;
        }
        if timing.loss_timer == LossTimer::Probe && self.probe(now, subflow) {
            return 0;
        }
        if timing.loss_timer != LossTimer::Packet {
            self.lose_while(now, subflow, LossCause::Reordered, |out| {
                out.next_expired(now, LossEvidence::LaterArrival, &timing)
            });
            if !self.subflows.get_mut(subflow).out.rto_expired(now, &timing) {
                return 0;
            }
        }
        self.lose_while(now, subflow, LossCause::Timeout, |out| out.next_expired(now, LossEvidence::Timeout, &timing))
    }
}
