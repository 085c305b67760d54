//! Erasure coding in a sender. Bonato et al., "Uno" (SC 2025), §4.2.
//!
//! A packet that is declared lost leaves the flight, and the law is notified, as in any flow. But it is sent again only
//! when its block needs it: when the receiver requests the block, when a retransmission timeout expires, when a block
//! has waited that long for a request that may be lost, or, where the sender is eager, at once. Only as many packets
//! are sent again as complete the block, its first missing ones.
//!
//! A request stays valid until its block is complete: later losses of the block are sent again at once where they are needed,
//! since the receiver repeats a request only after another arrival. A request names packets. Those sent less than a base
//! round trip and the longest wait in queues ago are excluded: when the request was sent they could still be in flight. A
//! flow that takes longer to send a block than its receiver's timer receives requests all the time, mostly for such packets.
//! The others are lost, whatever the sender's state of them.
//!
//! The receiver's cumulative number passes packets that blocks recovered, so it settles blocks, but does not show which
//! packets arrived: a packet counts as lost for the law if only its acknowledgement was lost, unless acknowledgements
//! have a history ([`crate::SenderCoding::history`]).

use laws::{ControlLaw, LossCause};
use units::{Bytes, Span, Time};

use super::{AckHeader, BlockCount, LastTransmission, Newest, Sender};
use crate::history;
use crate::receiver_blocks::BlockNack;
use crate::sent_packets::State;

impl<L: ControlLaw> Sender<L> {
    /// Settles the blocks that the receiver reports as complete.
    #[inline(never)]
    pub(super) fn settle_complete_blocks(&mut self) {
        if let Some(sender_blocks) = &mut self.coded_blocks {
            sender_blocks.forget_below(self.numbers.first());
        }
        while let Some(block) =
            self.coded_blocks.as_mut().and_then(|sender_blocks| sender_blocks.next_complete(self.cumulative))
        {
            self.settle_block(block);
        }
    }

    /// Records the packets in the history of an acknowledgement, and returns their bytes. `newest` is the newest packet
    /// that it newly acknowledges.
    #[inline(never)]
    pub(super) fn take_history(&mut self, ack: &AckHeader, newest: &mut Option<Newest>) -> Bytes {
        let mut taken = Bytes::ZERO;
        let subflows = self.config.coding.map_or(1, |coding| coding.history.max(1));
        for seq in history::received(ack.seq, ack.covers, subflows.into()) {
            let mut this = None;
            if let Some((bytes, was)) = self.take_was(seq, &mut this, BlockCount::Leave) {
                taken += bytes;
                *newest = newest.or(this);
                self.settle_in_block(seq, was);
            }
        }
        taken
    }

    /// Records the acknowledgement of a packet that was in state `was` and was sent on this subflow.
    #[inline(never)]
    pub(super) fn count_in_block(&mut self, seq: u32, subflow: u8, was: State) {
        if was == State::Missing {
            // It was late, and no other event will reveal that.
            let timing = self.timing();
            self.subflows.get_mut(subflow).out.widen_reordering_window(&timing);
        }
        self.settle_in_block(seq, was);
    }

    fn settle_in_block(&mut self, seq: u32, was: State) {
        let bytes = self.numbers.bytes_of(seq);
        if let Some(block) =
            self.coded_blocks.as_mut().and_then(|sender_blocks| sender_blocks.on_acked(seq, bytes, was))
        {
            self.settle_block(block);
        }
    }

    /// Settles a block that the receiver has: none of its packets is sent again.
    fn settle_block(&mut self, block: u32) {
        let Some(sender_blocks) = &mut self.coded_blocks else { return };
        let Some(recovered) = sender_blocks.settle(block) else { return };
        self.stats.recovered += u64::from(recovered);
        let packets = sender_blocks.blocks().packets(block);
        for seq in packets {
            let Some(last) = self.numbers.last_transmission(seq, &self.subflows) else { continue };
            let LastTransmission { subflow, number, record } = last;
            if !record.is_in_flight() {
                self.subflows.get_mut(subflow).take(number);
                self.numbers.settle(seq);
            }
        }
    }

    /// Declares a packet in flight, of a block, lost.
    #[inline(never)]
    pub(super) fn miss_in_block(&mut self, now: Time, seq: u32) {
        let Some(sender_blocks) = &mut self.coded_blocks else { return };
        let Some(block) = sender_blocks.blocks().block_of(seq) else { return };
        let needed = sender_blocks.on_missing(now, block);
        let is_eager = sender_blocks.is_eager(block);
        if let Some(last) = self.numbers.last_transmission(seq, &self.subflows) {
            let LastTransmission { subflow, number, .. } = last;
            let record = self.subflows.get_mut(subflow).out.sent_packets.get_mut(number);
            record.become_state(if needed { State::Missing } else { State::Done });
            if !needed {
                self.numbers.settle(seq);
            }
        }
        if is_eager {
            self.resend_requested(now, block);
        }
    }

    /// Resends what a block needs, and moves away from the paths that lost it.
    fn resend_requested(&mut self, now: Time, block: u32) {
        let paths = self.resend_block(block);
        if paths != 0 {
            self.paths.leave_lossy(now, paths);
        }
    }

    /// Resends the packets that a block needs. Returns the paths that lost its missing packets, one bit each; none if it
    /// needs none.
    fn resend_block(&mut self, block: u32) -> u64 {
        let Some(sender_blocks) = &mut self.coded_blocks else { return 0 };
        let packets = sender_blocks.blocks().packets(block);
        let mut excess = sender_blocks.take_excess(block);
        if excess == 0 {
            return 0;
        }
        let mut paths = 0;
        for seq in packets {
            let Some(last) = self.numbers.last_transmission(seq, &self.subflows) else { continue };
            let LastTransmission { subflow, number, .. } = last;
            let record = self.subflows.get_mut(subflow).out.sent_packets.get_mut(number);
            let state = record.state();
            if state == State::Missing && excess > 0 {
                record.become_state(State::Lost);
                self.numbers.wait(seq);
                excess -= 1;
            }
            if matches!(state, State::Missing | State::Lost) {
                paths |= 1 << record.path();
            }
        }
        debug_assert_eq!(excess, 0, "block {block} misses fewer packets than were counted");
        paths
    }

    /// Processes a receiver's request for a block that it cannot recover.
    #[inline(never)]
    pub fn on_block_nack(&mut self, now: Time, nack: &BlockNack) {
        self.stats.nacks += 1;
        let Some(blocks) = self.coded_blocks.as_ref().map(|sender_blocks| *sender_blocks.blocks()) else { return };
        if nack.block >= blocks.count() || blocks.packets(nack.block).start >= self.numbers.end() {
            return;
        }
        if let Some(sender_blocks) = &mut self.coded_blocks {
            sender_blocks.forget_below(self.numbers.first());
            sender_blocks.on_nack(nack.block);
        }
        let packets = blocks.packets(nack.block);
        let max_age_in_flight =
            self.config.base_rtt + self.config.coding.map_or(Span::ZERO, |coding| coding.longest_wait);
        for seq in packets.clone() {
            let Some(last) = self.numbers.last_transmission(seq, &self.subflows) else { continue };
            let LastTransmission { subflow, number, record } = last;
            let is_requested = nack.missing >> (seq - packets.start) & 1 != 0;
            if is_requested && record.is_in_flight() && record.sent_at + max_age_in_flight <= now {
                self.lose(now, subflow, number);
            }
        }
        self.report_losses(now, LossCause::Nack);
        self.resend_requested(now, nack.block);
        self.trim_all();
    }

    /// Resends packets of blocks that have waited for a request as long as a timeout and, if a timeout expired because these
    /// `paths` lost packets, of all blocks. A missing request is no evidence about the path, so it doubles no timeout:
    /// otherwise each of several blocks lost together would double it.
    #[inline(never)]
    pub(super) fn resend_overdue(&mut self, now: Time, paths: u64) {
        let timeout = self.timeout();
        let mut resent = 0;
        loop {
            let Some(sender_blocks) = &mut self.coded_blocks else { return };
            let since = sender_blocks.waits_since();
            let due = since != Time::NEVER && (paths != 0 || since.saturating_add(timeout) <= now);
            let Some(block) = sender_blocks.next_waiting(since).filter(|_| due) else { break };
            sender_blocks.on_nack(block);
            resent |= self.resend_block(block);
        }
        if paths | resent != 0 {
            self.stats.timeouts += 1;
            self.paths.on_timeout(now, paths | resent);
        }
        self.trim_all();
    }
}
