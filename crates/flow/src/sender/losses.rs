//! Which packets are held for lost, under [`Recovery::Selective`](super::Recovery): what time proves lost (RACK, RFC 8985), and
//! what a retransmission timeout strikes.

use laws::{ControlLaw, LossCause};
use units::{Bytes, Time};

use super::{LossTimer, Sender};
use crate::records::State;

impl<L: ControlLaw> Sender<L> {
    /// The outstanding packet that left first, and when that was.
    #[inline]
    pub(super) fn oldest(&mut self) -> Option<(u32, Time)> {
        self.scan = self.scan.max(self.records.first());
        while self.scan < self.records.end() {
            let record = self.records.get(self.scan);
            if record.state == State::InFlight && record.attempt == 1 {
                break;
            }
            self.scan += 1;
        }
        let first = (self.scan < self.records.end()).then(|| (self.scan, self.records.get(self.scan).sent_at));
        if self.resent.is_empty() {
            return first;
        }
        while let Some(&(seq, attempt)) = self.resent.front() {
            if seq >= self.records.first() {
                let record = self.records.get(seq);
                if record.state == State::InFlight && record.attempt == attempt {
                    let again = (seq, record.sent_at);
                    return Some(first.map_or(again, |first| if first.1 <= again.1 { first } else { again }));
                }
            }
            self.resent.pop_front();
        }
        first
    }

    #[inline]
    pub(super) fn find_reordered_losses(&mut self, now: Time) {
        let reordering = self.reordering;
        let newest_arrived = self.newest_arrived;
        let subflows = self.lose_while(now, LossCause::Reordered, |sent_at| sent_at + reordering < newest_arrived);
        // A coded flow leaves a path when it must send again.
        if subflows != 0 && self.ledger.is_none() {
            self.paths.leave_bad(now, subflows);
        }
    }

    /// Holds outstanding packets for lost, oldest first, while `gone` says so of the time they left. Gives the subflows
    /// that lost them, one bit each; none if nothing is lost.
    #[inline]
    pub(super) fn lose_while(&mut self, now: Time, cause: LossCause, gone: impl Fn(Time) -> bool) -> u64 {
        let mut subflows = 0;
        while let Some((seq, sent_at)) = self.oldest() {
            if !gone(sent_at) {
                break;
            }
            if seq < self.came_below() {
                self.settle(seq);
                continue;
            }
            subflows |= self.lose(now, seq);
        }
        if subflows == 0 {
            self.records.trim();
        } else {
            self.tell_of_losses(now, cause);
        }
        subflows
    }

    /// Holds a packet in flight for lost, of which its law is still to be told. Gives its subflow as a bit.
    pub(super) fn lose(&mut self, now: Time, seq: u32) -> u64 {
        let bytes = Bytes::new(self.bytes_of(seq).into());
        self.take_lane_of(seq);
        let record = self.records.get_mut(seq);
        record.state = State::Lost;
        let (sent_at, attempt) = (record.sent_at, record.attempt);
        self.lane.lose(bytes, sent_at);
        let subflow = 1 << self.subflow(seq, attempt);
        if self.ledger.as_ref().is_some_and(|ledger| ledger.blocks().block_of(seq).is_some()) {
            self.miss_in_block(now, seq);
        } else {
            self.lost.push_back(seq);
        }
        subflow
    }

    /// Tells the laws of the packets that were held for lost and that they have not heard of.
    pub(super) fn tell_of_losses(&mut self, now: Time, cause: LossCause) {
        self.on_each_lane(|sender| {
            let Some(loss) = sender.lane.take_loss(now, cause) else { return };
            let before = sender.window_before();
            if cause != LossCause::Timeout || sender.config.timeouts_cut {
                sender.lane.law.on_loss(&loss);
                sender.read_permit();
            }
            if sender.tcp.is_some() {
                sender.spread_cut(before, loss.lost, Some(cause));
            }
        });
    }

    /// Every packet below this has come itself.
    fn came_below(&self) -> u32 {
        match &self.ledger {
            None => self.cumulative,
            // Below the receiver's number some may only have been given back, and the law must hear that they were lost.
            Some(ledger) => self.cumulative.min(ledger.blocks().head()),
        }
    }

    /// Holds for lost what a retransmission timeout strikes, if it is time. Gives the subflows that lost it, one bit each.
    pub(super) fn lose_overdue(&mut self, now: Time) -> u64 {
        let Some((_, sent_at)) = self.oldest() else { return 0 };
        if self.times_out(sent_at) > now {
            return 0;
        }
        if self.config.loss_timer == LossTimer::Packet {
            let timeout = self.timeout();
            return self.lose_while(now, LossCause::Timeout, |sent_at| sent_at + timeout <= now);
        }
        // Where a packet that left later has arrived, time has proved the older one lost (RFC 8985 §6.2, step 5):
        // the path works, and this is no timeout. Acknowledgements alone cannot prove it when no packet left long
        // enough after it, as in a burst shorter than the tolerance.
        let overdue = self.rtt.smoothed() + self.reordering;
        let newest_arrived = self.newest_arrived;
        self.lose_while(now, LossCause::Reordered, |sent_at| sent_at < newest_arrived && sent_at + overdue <= now);
        let Some((_, sent_at)) = self.oldest() else { return 0 };
        if self.times_out(sent_at) > now {
            return 0;
        }
        // One is overdue, so the rest need only be older than a round trip and its reordering (RFC 8985 §6.3). Were
        // they to wait for a timeout each, backed off by the one before, a window lost whole and larger than what
        // the law then permits would come back a packet at a time and ever more slowly.
        self.lose_while(now, LossCause::Timeout, |sent_at| sent_at + overdue <= now)
    }
}
