//! Go-back-N: the receiver takes packets in order only, so an acknowledgement settles every packet below its cumulative
//! number, and a lost packet makes all those sent after it lost, too. Models RDMA's reliable connections as in the public
//! ns-3 RDMA simulators (alibaba-edu/High-Precision-Congestion-Control): every NACK moves the sender back, even while a
//! window is already being resent; the receiver limits the rate of NACKs.
//!
//! Two things differ from those simulators. A retransmission timer goes back, too; without it a lost tail would hang
//! the flow. And the receiver acknowledges duplicates, where there it is silent; without that a lost last
//! acknowledgement would.
//!
//! Only the packets that an acknowledgement covers can be marked: marks of the other packets that it settles are unknown,
//! because their own acknowledgements were lost.
//!
//! A receiver that does not acknowledge (`acks` of [`Recovery::GoBackN`](super::Recovery)) does as the receiver of
//! `ExpressPass`'s public simulator (kaist-ina/ns2-xpass): it requests the packet that it misses, and sends no other
//! feedback. So the absence of feedback is no evidence as long as packets are sent. The timer runs from the send time
//! of the flow's last packet, and sends that packet again. The receiver replies to it: it ends the flow, or requests
//! what it misses.
//!
//! One timer thus covers a lost request and a lost last packet, and the receiver reports once that all has arrived. In
//! ns2-xpass a timer of the receiver repeats a lost request; a lost last packet is not missed there, because a flow
//! ends when its sender has nothing left.

use laws::{ControlLaw, Hop, LossCause};
use units::{Bytes, Time};

use super::{AckHeader, BlockCount, LastTransmission, Recovery, Sender};

impl<L: ControlLaw> Sender<L> {
    #[inline(never)]
    pub(super) fn on_ack_in_order(&mut self, now: Time, ack: &AckHeader, hops: &[Hop]) {
        self.cumulative = self.cumulative.max(ack.cumulative);
        let settled = self.numbers.first()..ack.cumulative.min(self.numbers.end());
        let covered = ack.seq + 1 - u32::from(ack.covers)..=ack.seq;
        let (mut acked, mut marked) = (Bytes::ZERO, Bytes::ZERO);
        let (mut newest, mut later) = (None, None);
        // The acknowledgement's own packet is the most informative, otherwise the last packet before it that is settled only
        // now. It may not be the last of all.
        let mut is_past_own = false;
        for seq in settled {
            let bytes = self.take(seq, if is_past_own { &mut later } else { &mut newest }, BlockCount::Leave);
            acked += bytes;
            if ack.marked && covered.contains(&seq) {
                marked += bytes;
            }
            is_past_own |= seq == ack.seq && newest.is_some();
        }
        if let Some(newest) = newest {
            self.stats.marked += marked;
            self.report_ack(now, ack, newest, acked, marked, hops);
        }
    }

    /// Processes a NACK. The receiver misses the packet of the cumulative number: it and all packets sent after it are
    /// resent. With selective recovery the receiver misses only the transmission that the NACK names.
    #[inline(never)]
    pub fn on_nack(&mut self, now: Time, nack: &AckHeader) {
        self.stats.nacks += 1;
        if !self.in_order {
            self.on_trimmed(now, nack);
            return;
        }
        // If the NACK is old, the first missing packet has been acknowledged since.
        if nack.cumulative >= self.numbers.first() {
            self.on_ack_in_order(now, &AckHeader { marked: false, ..*nack }, &[]);
            self.go_back(now, LossCause::Nack);
        }
    }

    /// Sends everything again from the first packet that is not acknowledged.
    #[inline(never)]
    fn go_back(&mut self, now: Time, cause: LossCause) {
        self.numbers.clear_lost();
        for seq in self.numbers.first()..self.numbers.end() {
            let Some(last) = self.numbers.last_transmission(seq, &self.subflows) else { continue };
            let LastTransmission { subflow, number, record } = last;
            if record.is_in_flight() {
                self.subflows.get_mut(subflow).lose(number);
            }
            self.numbers.wait(seq);
        }
        self.report_losses(now, cause);
    }

    /// Processes a probe's acknowledgement: the receiver has every packet below the cumulative number, and no other packet
    /// sent before the probe.
    pub(super) fn on_probe_reply_in_order(&mut self, now: Time, sent_at: Time) {
        // The acknowledgement names none of the packets that it settles, so it yields no RTT sample.
        let cumulative = self.cumulative;
        let ack = AckHeader { seq: cumulative, covers: 1, cumulative, marked: false, attempt: 0 };
        self.on_ack_in_order(now, &ack, &[]);
        if self.departure(self.numbers.first()).is_some_and(|left| left <= sent_at) {
            self.go_back(now, LossCause::Reordered);
        }
    }

    /// Returns the send time of the packet that the timer counts from; none while no timer runs. Packets are resent in
    /// order, so the oldest outstanding packet is the first one, or there is none.
    pub(super) fn timer_start_in_order(&self) -> Option<Time> {
        self.departure(if self.is_silent() { self.numbers.total() - 1 } else { self.numbers.first() })
    }

    /// Returns the send time of a packet in flight.
    fn departure(&self, seq: u32) -> Option<Time> {
        let record = self.numbers.record(seq, &self.subflows);
        record.filter(|record| record.is_in_flight()).map(|record| record.sent_at)
    }

    /// Returns whether the receiver acknowledges nothing before the end.
    fn is_silent(&self) -> bool {
        matches!(self.config.recovery, Recovery::GoBackN { acks: false, .. })
    }

    #[inline(never)]
    pub(super) fn on_timeout_in_order(&mut self, now: Time) {
        if self.retransmission_at() > now {
            return;
        }
        // The subflow does not matter: with several subflows few packets arrive in order.
        self.count_timeout(now, 0, 1);
        let last = self.numbers.last_transmission(self.numbers.total() - 1, &self.subflows);
        if let Some(LastTransmission { subflow, number, .. }) = last.filter(|_| self.is_silent()) {
            self.lose(now, subflow, number);
            self.report_losses(now, LossCause::Timeout);
        } else {
            self.go_back(now, LossCause::Timeout);
        }
    }
}
