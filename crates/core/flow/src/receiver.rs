//! The receiving end of a flow: the packets that have arrived, and their acknowledgements.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use units::{Span, Time};

use crate::history::History;
use crate::receiver_blocks::ReceiverBlocks;
use crate::{BlockNack, Blocks, Recovery};

/// An acknowledgement to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckReply {
    /// The newest packet acknowledged.
    pub seq: u32,
    /// Number of consecutive packets acknowledged, ending with `seq`; their marks are alike. With a history
    /// ([`Receiver::coded`]) that number is one, and this field has a bit for each of the eight packets before `seq` on
    /// its subflow that arrived.
    pub covers: u8,
    /// Every packet below this has arrived, or was recovered by its block.
    pub cumulative: u32,
    /// The packets covered were marked (ECN).
    pub marked: bool,
    /// Requests retransmission of everything from `cumulative` on, or, where recovery is selective, of `seq`. Then it
    /// covers nothing. In the first case `seq` is the packet that arrived instead.
    pub nack: bool,
}

/// The receiving end of one flow.
///
/// Acknowledges every `ack_every`th packet in order, and at once when order or marking changes (the rule of RFC 8257 §3.2,
/// without which the sender would miscount marks), when the sender requests it, on duplicates, and at the end of the flow.
///
/// Under [`Recovery::GoBackN`] the receiver refuses packets that arrive out of order. It requests the missing packet,
/// the same one at most once in an interval. It acknowledges duplicates, so that a lost acknowledgement does not hang
/// the flow; the ns-3 RDMA simulators do not. With `acks = false` it only sends requests, and reports that all has
/// arrived: at the end, and again for each duplicate after that, because that report may be lost.
///
/// In a coded flow every packet of a block counts as received once enough of them have arrived ([`Receiver::coded`]).
#[derive(Debug)]
pub struct Receiver {
    total: u32,
    /// Every packet below has arrived.
    next: u32,
    /// One bit per packet from `next & !63` on; those of packets below `next` are meaningless. Empty while all arrived
    /// in order.
    bits: VecDeque<u64>,
    early: u32,
    ack_every: u8,
    pending: u8,
    pending_marked: bool,
    /// Set if packets are accepted in order only.
    nack_state: Option<Box<NackState>>,
    /// Set if the flow is coded.
    coded_blocks: Option<Box<ReceiverBlocks>>,
    /// History, where acknowledgements have one.
    history: Option<Box<History>>,
}

/// Header fields of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataHeader {
    /// Its number in the flow.
    pub seq: u32,
    /// Set if it was marked on its way.
    pub marked: bool,
    /// The sender requests an immediate acknowledgement ([`crate::Segment::requests_ack`]).
    pub requests_ack: bool,
}

/// Novelty of a packet of a coded flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Novelty {
    New,
    Duplicate,
}

/// State of the requests for a missing packet.
#[derive(Debug)]
struct NackState {
    interval: Span,
    /// The receiver also acknowledges packets that arrive in order.
    acks: bool,
    missing: u32,
    next_at: Time,
}

impl Receiver {
    /// Creates the receiver of `total` packets. It acknowledges one packet in `ack_every` (at least 1).
    pub fn new(total: u32, ack_every: u8, recovery: Recovery) -> Self {
        Self {
            total,
            next: 0,
            bits: VecDeque::new(),
            early: 0,
            ack_every: ack_every.max(1),
            pending: 0,
            pending_marked: false,
            nack_state: match recovery {
                Recovery::Selective => None,
                Recovery::GoBackN { nack_interval, acks } => {
                    Some(Box::new(NackState { interval: nack_interval, acks, missing: 0, next_at: Time::ZERO }))
                }
            },
            coded_blocks: None,
            history: None,
        }
    }

    /// Creates the receiver of a coded flow. A block is requested `block_timer` after its first packet, and, if
    /// `subflows` is over 0, as soon as gaps in that many subflows show that it cannot be recovered: only where each
    /// keeps its order. If `history` is over 0, acknowledgements have a history over that many subflows; then every
    /// packet has its own.
    pub fn coded(blocks: Blocks, ack_every: u8, block_timer: Span, subflows: u8, history: u8) -> Self {
        debug_assert!(history == 0 || ack_every == 1);
        let coded_blocks = Some(Box::new(ReceiverBlocks::new(blocks, block_timer, subflows)));
        let history = (history > 0).then(|| Box::new(History::new(history.into())));
        Self { coded_blocks, history, ..Self::new(blocks.total(), ack_every, Recovery::Selective) }
    }

    /// Returns the `covers` field of the acknowledgement of one packet.
    #[inline(always)]
    fn covers(&mut self, seq: u32) -> u8 {
        self.history.as_mut().map_or(1, |history| history.on_packet(seq))
    }

    /// Returns the expiry of the first block timer; [`Time::NEVER`] if none runs.
    pub fn next_block_timer(&mut self) -> Time {
        self.coded_blocks.as_mut().map_or(Time::NEVER, |receiver_blocks| receiver_blocks.next_timer())
    }

    /// Returns the next request for a block that is due at `now`. Call it until it returns none, at
    /// [`Receiver::next_block_timer`] and after each packet of a coded flow.
    pub fn next_nack(&mut self, now: Time) -> Option<BlockNack> {
        self.coded_blocks.as_mut()?.next_nack(now)
    }

    /// Records packet `seq` of a coded flow.
    #[inline(never)]
    fn track(&mut self, now: Time, seq: u32, novelty: Novelty) {
        let Some(receiver_blocks) = &mut self.coded_blocks else { return };
        let spare = if novelty == Novelty::New { receiver_blocks.on_new(now, seq) } else { None };
        receiver_blocks.find_gaps(seq);
        let Some((first, spare)) = spare else { return };
        for bit in 0..64 {
            if spare >> bit & 1 != 0 {
                self.record_out_of_order(first + bit);
            }
        }
    }

    /// Returns the number of packets that have arrived, each counted once.
    pub fn received(&self) -> u32 {
        self.next + self.early
    }

    /// Returns the number below which every packet has arrived.
    pub fn cumulative(&self) -> u32 {
        self.next
    }

    /// Returns whether every packet has arrived.
    pub fn is_complete(&self) -> bool {
        self.next == self.total
    }

    /// Records a packet that arrives at `now`. The first reply goes before the second: a change of marks or order flushes the
    /// pending acknowledgement.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: DataHeader) -> [Option<AckReply>; 2] {
        let DataHeader { seq, marked, requests_ack } = packet;
        debug_assert!(seq < self.total, "packet {seq} of {}", self.total);
        debug_assert!(self.next + self.early <= self.total, "{} packets arrived of {}", self.received(), self.total);
        let expected = self.next;
        let in_order = seq == expected;
        if in_order && self.early == 0 {
            self.next += 1;
        } else if self.nack_state.is_some() {
            return self.refuse(now, packet);
        } else if !self.record_out_of_order(seq) {
            self.track(now, seq, Novelty::Duplicate);
            // A duplicate: its acknowledgement was lost, or it was sent again needlessly.
            let covers = self.covers(seq);
            return [None, Some(AckReply { seq, covers, cumulative: self.next, marked, nack: false })];
        }
        if self.coded_blocks.is_some() {
            self.track(now, seq, Novelty::New);
        }
        if self.is_silent() {
            let last = AckReply { seq, covers: 1, cumulative: self.next, marked, nack: false };
            return [None, self.is_complete().then_some(last)];
        }
        if self.ack_every == 1 {
            let covers = self.covers(seq);
            return [None, Some(AckReply { seq, covers, cumulative: self.next, marked, nack: false })];
        }
        let mut flushed = None;
        if self.pending > 0 && (marked != self.pending_marked || !in_order) {
            // Pending packets arrived in order, so they end just below `expected`.
            let covers = core::mem::take(&mut self.pending);
            let (seq, marked) = (expected - 1, self.pending_marked);
            flushed = Some(AckReply { seq, covers, cumulative: expected, marked, nack: false });
        }
        self.pending += 1;
        self.pending_marked = marked;
        // Out of order, or a hole filled, or packets still missing: not the next packet and nothing else.
        let irregular = self.next != expected + 1 || self.early > 0;
        let at_once = requests_ack || irregular || self.next == self.total;
        if at_once || self.pending >= self.ack_every {
            let covers = core::mem::take(&mut self.pending);
            return [flushed, Some(AckReply { seq, covers, cumulative: self.next, marked, nack: false })];
        }
        [flushed, None]
    }

    /// Records packet `seq`, which arrived at `now` without its payload: a switch trimmed it. The first reply goes before the
    /// second, as in [`Receiver::on_data`].
    ///
    /// The second requests this packet alone, not everything from `cumulative` on, unless packets are accepted in order only.
    /// For a packet that arrived before, it repeats the acknowledgement.
    pub fn on_trimmed(&mut self, now: Time, seq: u32) -> [Option<AckReply>; 2] {
        if self.nack_state.is_some() {
            return self.refuse(now, DataHeader { seq, marked: false, requests_ack: false });
        }
        let nack = !self.has(seq);
        // With a history `covers` reports which earlier packets arrived; a packet that arrived before is acknowledged again.
        let covers = if nack { 0 } else { self.covers(seq) };
        [None, Some(AckReply { seq, covers, cumulative: self.next, marked: false, nack })]
    }

    /// Returns whether a packet has arrived.
    fn has(&self, seq: u32) -> bool {
        let word = || (seq - (self.next & !63)) / 64;
        seq < self.next || self.bits.get(word() as usize).is_some_and(|word| word >> (seq % 64) & 1 == 1)
    }

    /// Returns whether an acknowledgement is held back. A host sends it by [`Receiver::flush`] after a while, because
    /// the sender's window may have shrunk since its last packet.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.pending > 0
    }

    /// Returns the acknowledgement that is held back, to be sent now.
    pub fn flush(&mut self) -> Option<AckReply> {
        let covers = core::mem::take(&mut self.pending);
        // Pending packets arrived in order, so they end just below `next`.
        let (cumulative, marked) = (self.next, self.pending_marked);
        (covers > 0).then(|| AckReply { seq: cumulative - 1, covers, cumulative, marked, nack: false })
    }

    /// Returns whether the receiver only reports missing packets and completion.
    fn is_silent(&self) -> bool {
        self.nack_state.as_ref().is_some_and(|nack_state| !nack_state.acks)
    }

    /// Acknowledges a packet that is not the next one where no other is accepted.
    #[inline(never)]
    fn refuse(&mut self, now: Time, packet: DataHeader) -> [Option<AckReply>; 2] {
        let DataHeader { seq, marked, .. } = packet;
        debug_assert!(self.nack_state.is_some(), "packets are taken out of order, too");
        // The reply's cumulative number settles pending packets, so their marks are reported first.
        let flushed = self.flush();
        let ack = AckReply { seq, covers: 1, cumulative: self.next, marked, nack: false };
        if seq < self.next {
            return [flushed, (self.is_complete() || !self.is_silent()).then_some(ack)];
        }
        let Some(nack_state) = &mut self.nack_state else { return [flushed, None] };
        if nack_state.missing == self.next && now < nack_state.next_at {
            return [flushed, None];
        }
        (nack_state.missing, nack_state.next_at) = (self.next, now.saturating_add(nack_state.interval));
        [flushed, Some(AckReply { nack: true, ..ack })]
    }

    /// Advances over the complete prefix, once the next packet has arrived.
    #[inline(always)]
    fn advance(&mut self) {
        let first = self.next;
        let mut bit = first % 64;
        while let Some(&word) = self.bits.front() {
            bit += (word >> bit).trailing_ones();
            if bit < 64 {
                break;
            }
            self.bits.pop_front();
            bit = 0;
            self.next = (self.next | 63) + 1;
        }
        self.next = self.next - self.next % 64 + bit;
        self.early -= self.next - first;
        if self.early == 0 {
            self.bits.clear();
        }
    }

    /// Records a packet that arrives out of order. Returns whether it was new.
    #[inline]
    fn record_out_of_order(&mut self, seq: u32) -> bool {
        if seq < self.next {
            return false;
        }
        let base = self.next & !63;
        let word = ((seq - base) / 64) as usize;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let bit = 1 << (seq % 64);
        if self.bits[word] & bit != 0 {
            return false;
        }
        self.bits[word] |= bit;
        self.early += 1;
        if seq == self.next {
            self.advance();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn replies(receiver: &mut Receiver, seq: u32, marked: bool, requests_ack: bool) -> Vec<AckReply> {
        receiver.on_data(Time::ZERO, DataHeader { seq, marked, requests_ack }).into_iter().flatten().collect()
    }

    #[test]
    fn delayed_acknowledgements_flush_on_a_change_of_marks() {
        let mut receiver = Receiver::new(100, 4, Recovery::Selective);
        assert!(replies(&mut receiver, 0, false, false).is_empty());
        assert!(replies(&mut receiver, 1, false, false).is_empty());
        let flushed = replies(&mut receiver, 2, true, false);
        assert_eq!(flushed, [AckReply { seq: 1, covers: 2, cumulative: 2, marked: false, nack: false }]);
        let asked = replies(&mut receiver, 3, true, true);
        assert_eq!(asked, [AckReply { seq: 3, covers: 2, cumulative: 4, marked: true, nack: false }]);
        assert!(replies(&mut receiver, 4, false, false).is_empty() && receiver.holds_back());
        assert_eq!(receiver.flush(), Some(AckReply { seq: 4, covers: 1, cumulative: 5, marked: false, nack: false }));
        assert_eq!(receiver.flush(), None);
    }

    #[test]
    fn a_hole_is_acknowledged_at_once() {
        let mut receiver = Receiver::new(100, 4, Recovery::Selective);
        replies(&mut receiver, 0, false, false);
        let two = replies(&mut receiver, 2, false, false);
        assert_eq!(two[0], AckReply { seq: 0, covers: 1, cumulative: 1, marked: false, nack: false });
        assert_eq!(two[1], AckReply { seq: 2, covers: 1, cumulative: 1, marked: false, nack: false });
        assert_eq!(replies(&mut receiver, 1, false, false)[0].cumulative, 3);
    }

    /// Out of order under go-back-N: one request an interval and missing packet; duplicates are acknowledged.
    #[test]
    fn go_back_n_requests_a_missing_packet_once_an_interval() {
        let recovery = Recovery::GoBackN { nack_interval: Span::from_us(5), acks: true };
        let mut receiver = Receiver::new(10, 2, recovery);
        let mut at =
            |us, seq, marked| receiver.on_data(Time::from_us(us), DataHeader { seq, marked, requests_ack: false });
        let ack = |seq, covers, cumulative, marked| Some(AckReply { seq, covers, cumulative, marked, nack: false });
        let nack = |seq, cumulative| Some(AckReply { seq, covers: 1, cumulative, marked: false, nack: true });
        assert_eq!(at(0, 0, true), [None, None]);
        // Pending packets are acknowledged first, with their mark.
        assert_eq!(at(1, 2, false), [ack(0, 1, 1, true), nack(2, 1)]);
        assert_eq!(at(2, 3, false), [None, None]);
        assert_eq!(at(5, 4, false), [None, None]);
        assert_eq!(at(6, 5, false), [None, nack(5, 1)]);
        assert_eq!(at(7, 1, false), [None, None]);
        assert_eq!(at(7, 0, false), [ack(1, 1, 2, false), ack(0, 1, 2, false)]);
        // Another packet is missing: it is requested at once.
        assert_eq!(at(8, 3, false), [None, nack(3, 2)]);
        assert_eq!(at(9, 2, false), [None, None]);
        assert_eq!(at(9, 3, false), [None, ack(3, 2, 4, false)]);
        assert_eq!(receiver.received(), 4);
    }

    /// Without acknowledgements the receiver requests each missing packet once in an interval. It sends nothing for
    /// packets in order or duplicates. It reports completion at the end, and again for each packet after that.
    #[test]
    fn a_silent_receiver_requests_and_reports_completion() {
        let recovery = Recovery::GoBackN { nack_interval: Span::from_us(5), acks: false };
        for ack_every in [1, 2] {
            let mut receiver = Receiver::new(4, ack_every, recovery);
            let mut at =
                |us, seq| receiver.on_data(Time::from_us(us), DataHeader { seq, marked: true, requests_ack: true })[1];
            let nack = |seq, cumulative| Some(AckReply { seq, covers: 1, cumulative, marked: true, nack: true });
            let done = |seq| Some(AckReply { seq, covers: 1, cumulative: 4, marked: true, nack: false });
            assert_eq!([at(0, 0), at(1, 0)], [None, None]);
            assert_eq!([at(2, 2), at(3, 3), at(6, 3), at(7, 3)], [nack(2, 1), None, None, nack(3, 1)]);
            assert_eq!([at(8, 1), at(9, 3), at(10, 2)], [None, nack(3, 2), None]);
            assert_eq!([at(11, 3), at(12, 3), at(13, 0)], [done(3), done(3), done(0)]);
            assert!(receiver.is_complete() && !receiver.holds_back() && receiver.flush().is_none());
        }
    }

    proptest! {
        /// In any order, with any duplicates: every packet is counted once and acknowledged at least once, and
        /// the cumulative count is the length of the complete prefix.
        #[test]
        fn each_packet_counts_once_in_any_order(
            total in 1..300u32, picks in proptest::collection::vec((any::<u32>(), any::<bool>()), 1..900), every in 1..5u8
        ) {
            let mut receiver = Receiver::new(total, every, Recovery::Selective);
            let mut have = alloc::vec![false; total as usize];
            let mut acked = alloc::vec![0u32; total as usize];
            let rest: Vec<_> = (0..total).map(|seq| (seq, false)).collect();
            for (pick, marked) in picks.into_iter().map(|(pick, marked)| (pick % total, marked)).chain(rest) {
                have[pick as usize] = true;
                for reply in replies(&mut receiver, pick, marked, false) {
                    for seq in reply.seq + 1 - u32::from(reply.covers)..=reply.seq {
                        prop_assert!(have[seq as usize], "acknowledged a packet that was not received");
                        acked[seq as usize] += 1;
                    }
                }
                let prefix = have.iter().take_while(|&&received| received).count();
                prop_assert_eq!(receiver.next as usize, prefix);
                prop_assert_eq!(receiver.received() as usize, have.iter().filter(|&&received| received).count());
            }
            prop_assert!(receiver.is_complete());
            prop_assert!(acked.iter().all(|&n| n > 0));
        }
    }

    #[test]
    fn a_trimmed_packet_is_requested_unless_received() {
        let mut receiver = Receiver::new(100, 2, Recovery::Selective);
        let nack = |seq, cumulative| Some(AckReply { seq, covers: 0, cumulative, marked: false, nack: true });
        assert_eq!(receiver.on_trimmed(Time::ZERO, 0), [None, nack(0, 0)]);
        replies(&mut receiver, 1, false, false);
        replies(&mut receiver, 70, false, false);
        assert_eq!(receiver.on_trimmed(Time::ZERO, 69), [None, nack(69, 0)]);
        let repeated = Some(AckReply { seq: 70, covers: 1, cumulative: 0, marked: false, nack: false });
        assert_eq!(receiver.on_trimmed(Time::ZERO, 70), [None, repeated]);
        replies(&mut receiver, 0, false, false);
        let repeated = Some(AckReply { seq: 1, covers: 1, cumulative: 2, marked: false, nack: false });
        assert_eq!(receiver.on_trimmed(Time::ZERO, 1), [None, repeated]);
        assert_eq!(receiver.on_trimmed(Time::ZERO, 99), [None, nack(99, 2)]);
        assert_eq!(receiver.received(), 3);
    }

    /// Under go-back-N a trimmed packet counts as missing.
    #[test]
    fn a_trimmed_packet_is_missing_under_go_back_n() {
        let recovery = Recovery::GoBackN { nack_interval: Span::from_us(5), acks: true };
        let mut receiver = Receiver::new(10, 4, recovery);
        receiver.on_data(Time::ZERO, DataHeader { seq: 0, marked: false, requests_ack: false });
        let flushed = Some(AckReply { seq: 0, covers: 1, cumulative: 1, marked: false, nack: false });
        let asked = Some(AckReply { seq: 1, covers: 1, cumulative: 1, marked: false, nack: true });
        assert_eq!(receiver.on_trimmed(Time::from_us(1), 1), [flushed, asked]);
        assert_eq!(receiver.on_trimmed(Time::from_us(2), 2), [None, None]);
    }
}
