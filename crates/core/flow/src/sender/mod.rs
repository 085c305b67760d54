//! The sending end of a flow: the next packet and its send time, loss detection, and completion.
//!
//! Loss detection is by time (RACK, RFC 8985, without its probe): a packet is lost once one sent `reordering` later has
//! been acknowledged, or, when a timer expires, one sent later at all. The reordering window is chosen by the host, a
//! quarter of the base round trip on one path and the spread of the queues where packets are sprayed, and it doubles
//! when a packet that was sent again turns out to have been late. The last packets are covered by the retransmission
//! timeout, which runs from the last acknowledgement: when it expires, all packets sent over a round trip and that
//! window ago are lost.
//!
//! A cumulative acknowledgement never acknowledges by itself, because the packet's own acknowledgement, still on
//! another path, carries its mark and its round trip. It only prevents a packet from being declared lost.
//!
//! With [`LossTimer::Packet`] each packet has a timer of its own instead, of a fixed length from its send time.
//!
//! All of this is [`Recovery::Selective`]; the other recovery scheme is in `go_back_n`, and erasure coding in `coded`.
//! Packets in flight under a law are an [`Outstanding`](crate::outstanding::Outstanding), which also detects losses;
//! `numbers` maps them to packets of the flow and keeps the state of those.

mod check;
mod coded;
mod config;
mod connection;
#[cfg(test)]
mod cost;
mod go_back_n;
mod losses;
mod send_sequence;
mod sender_blocks;
mod subflows;
mod tcp;

use alloc::boxed::Box;

use laws::{ControlLaw, Hop, LossCause, Notification};
use units::{Bytes, Span, Time};

use crate::law_state::{Lack, RateChange, SendState};
use crate::outstanding::{AckedTransmission, Batch, LossTimer, Timing};
use crate::paths::{EntropyEcho, PathSelector};
use crate::sent_packets::{SentPacket, State, Transmission};
use crate::subflow::Subflow;
pub use config::{FlowConfig, Recovery, SenderCoding};
use connection::Before;
pub use connection::{DestinationMetrics, IdleConnection};
use send_sequence::{LastTransmission, SendSequence};
use sender_blocks::SenderBlocks;
pub use tcp::TcpConfig;
use tcp::{CumulativeAck, Tcp};

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its number in the flow.
    pub seq: u32,
    /// Its payload.
    pub bytes: u32,
    /// 1 when it is sent for the first time, and never 1 again.
    pub attempt: u8,
    /// Number of its path within the flow, under 64: a subflow, or 0.
    pub path: u8,
    /// Permission for the next packet.
    pub then: SendState,
}

impl Segment {
    /// Returns whether the receiver should acknowledge at once, because the sender can send no more until then.
    #[inline]
    pub fn requests_ack(&self) -> bool {
        self.then == SendState::Blocked
    }
}

/// Fields of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckHeader {
    /// The newest packet acknowledged.
    pub seq: u32,
    /// Number of consecutive packets, ending with `seq`; with a history as in [`crate::AckReply::covers`].
    pub covers: u8,
    /// Every packet below this has arrived, or was recovered by its block.
    pub cumulative: u32,
    /// The covered packets were marked.
    pub marked: bool,
    /// Acknowledged transmission of `seq`.
    pub attempt: u8,
}

/// Counters of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowStats {
    /// Packets sent by the host, retransmissions included. Packets in a queue below the law do not count.
    pub packets_sent: u64,
    /// Packets among them that had been sent before, or had been declared lost in a queue below the law.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Number of loss reports to a law.
    pub loss_events: u32,
    /// Packets declared lost that arrived after all.
    pub spurious: u64,
    /// Acknowledged payload that was marked; parity is no payload. At most the delivered payload.
    pub marked: Bytes,
    /// Number of retransmission requests by the receiver.
    pub nacks: u32,
    /// Notifications of congestion, from the receiver or from switches.
    pub cnps: u64,
    /// Total time that the flow was held at the edge. Counted where it is held, outside of the sender.
    pub held: Span,
    /// Parity packets among those sent, retransmissions included.
    pub parity: u64,
    /// Blocks that parity completed: when enough packets were acknowledged, some of its data was not.
    pub recovered: u64,
}

/// Contents are packets of the flow.
type Subflows<L> = crate::subflow::Subflows<L, u32>;

/// The newest packet that an acknowledgement newly acknowledges, with the subflow, the number and the previous record
/// of its last transmission. The law's value for that number stays until the law has been notified.
#[derive(Clone, Copy)]
struct Newest {
    seq: u32,
    subflow: u8,
    number: u64,
    was: SentPacket<u32>,
}

/// Update of the block of an acknowledged packet of a coded flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockCount {
    /// The packet counts in its block.
    Update,
    /// Its block is not changed: it is updated elsewhere, or there are no blocks.
    Leave,
}

/// The sending end of one flow under the law `L`.
#[derive(Debug)]
pub struct Sender<L> {
    subflows: Subflows<L>,
    /// Counts of the subflows before this flow.
    before: Before,
    config: FlowConfig,
    numbers: SendSequence,
    cumulative: u32,
    /// [`Recovery::GoBackN`].
    in_order: bool,
    /// Property of the law.
    rate_change: RateChange,
    stats: FlowStats,
    paths: PathSelector,
    /// Block state of a coded flow.
    coded_blocks: Option<Box<SenderBlocks>>,
    /// State of Linux's TCP features, if any is enabled.
    tcp: Option<Box<Tcp>>,
}

impl<L: ControlLaw> Sender<L> {
    /// A flow that starts at `now`, on a connection of its own.
    pub fn new(config: FlowConfig, law: L, now: Time) -> Self {
        IdleConnection::new(&config, law, now).send(config)
    }

    /// Returns whether every byte is acknowledged, or recovered by its block.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.delivered() == self.config.size
    }

    /// Returns the entropy of a packet that goes to the NIC now: switches choose its path by it. Call it once for each
    /// packet.
    #[inline]
    pub fn entropy(&mut self, segment: &Segment) -> u16 {
        self.paths.entropy(segment.seq, segment.attempt, segment.path)
    }

    /// Returns the entropy of packets to the receiver other than data.
    pub fn signal_entropy(&self) -> u16 {
        self.paths.signal_entropy()
    }

    /// Returns whether path selection needs ACK feedback through [`Sender::recycle`].
    #[inline(always)]
    pub fn recycles(&self) -> bool {
        self.paths.recycles()
    }

    /// Records the entropy of the packet that an acknowledgement acknowledges (REPS). Call it before
    /// [`Sender::on_ack`].
    pub fn recycle(&mut self, now: Time, echo: EntropyEcho) {
        self.paths.recycle(now, echo);
    }

    /// Counters so far.
    pub fn stats(&self) -> &FlowStats {
        &self.stats
    }

    /// Returns the payload acknowledged, or recovered by its block; parity does not count.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        match &self.coded_blocks {
            None => self.subflows.sum(|subflow| subflow.law_state.delivered) - self.before.delivered,
            Some(sender_blocks) => sender_blocks.delivered(),
        }
    }

    /// Returns the bytes that remain for the law once `acked` more is acknowledged. In a coded flow delivery is counted
    /// already: a block once it is complete.
    #[inline(always)]
    fn left_after(&self, acked: Bytes) -> Bytes {
        if !self.config.reports_size {
            return Bytes::MAX;
        }
        let more = if self.coded_blocks.is_some() { Bytes::ZERO } else { acked };
        self.config.size.saturating_sub(self.delivered()).saturating_sub(more)
    }

    /// Returns the payload sent and neither acknowledged nor declared lost.
    pub fn in_flight(&self) -> Bytes {
        self.subflows.sum(|subflow| subflow.law_state.in_flight)
    }

    /// Returns whether an event can move an already scheduled packet to an earlier time: a new rate does, or another
    /// subflow may send sooner.
    #[inline]
    pub fn may_reschedule(&self) -> bool {
        self.rate_change == RateChange::Immediate || self.subflows.are_several()
    }

    /// Returns the law's own timer; part of [`Sender::next_timer`]. Unlike the rest of that it can move to an earlier
    /// time, at any event that the law receives.
    #[inline]
    pub fn law_timer(&self) -> Time {
        self.subflows.earliest(|subflow| subflow.law_state.law.next_timer())
    }

    /// The first packet that is not acknowledged, or has not been sent.
    #[inline]
    pub fn first_unsettled(&self) -> u32 {
        self.numbers.first()
    }

    /// Returns whether this transmission is the last one of its packet and neither acknowledged nor declared lost.
    pub fn is_outstanding(&self, seq: u32, attempt: u8) -> bool {
        self.last_departure(seq, attempt).is_some_and(SentPacket::is_in_flight)
    }

    /// The record of this transmission, if it is the last one of its packet and that is not settled.
    fn last_departure(&self, seq: u32, attempt: u8) -> Option<&SentPacket<u32>> {
        self.numbers.record(seq, &self.subflows).filter(|record| record.attempt() == attempt)
    }

    /// The round trip that an acknowledgement of this transmission measures, before it is processed; none where the
    /// packet has been sent again since or is acknowledged.
    pub fn round_trip(&self, now: Time, seq: u32, attempt: u8) -> Option<Span> {
        self.last_departure(seq, attempt).map(|record| now.since(record.sent_at))
    }

    /// Payload of a full packet.
    pub fn mss(&self) -> u32 {
        self.config.mss
    }

    /// The smoothed round trip; of the first subflow where there are several.
    pub fn smoothed_rtt(&self) -> Span {
        self.subflows.get(0).out.smoothed_rtt()
    }

    /// Returns the earliest send time of the next packet by its pacing, regardless of the window.
    pub fn next_send(&self) -> Time {
        self.subflows.earliest(|subflow| subflow.law_state.pacer.next())
    }

    fn timing(&self) -> Timing {
        self.config.timing()
    }

    /// Returns whether a packet may be sent at `now`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> SendState {
        match self.next_bytes() {
            Some(bytes) => self.poll_for(now, bytes),
            None => SendState::Blocked,
        }
    }

    /// Returns whether a packet of `bytes` may be sent at `now`.
    #[inline(always)]
    fn poll_for(&self, now: Time, bytes: u32) -> SendState {
        if self.subflows.are_several() {
            return self.poll_several(now, bytes);
        }
        self.subflows.get(0).law_state.poll(now, self.counted(bytes))
    }

    /// Returns the bytes that a packet counts against the window: one byte where the window may be overshot.
    #[inline(always)]
    fn counted(&self, bytes: u32) -> u32 {
        if self.config.overshoots { 1 } else { bytes }
    }

    /// The payload of the packet that would go next, a lost one first; none if there is nothing to send.
    #[inline(always)]
    pub fn next_bytes(&mut self) -> Option<u32> {
        self.numbers.next(&self.subflows).map(|seq| self.numbers.bytes_of(seq))
    }

    /// Returns the number of packets that wait to be sent: lost ones, and those never sent. Lost packets that arrived after
    /// all may still be counted while others wait.
    pub fn waiting(&mut self) -> u32 {
        match self.next_bytes() {
            None => 0,
            Some(_) => self.numbers.lost_count() + (self.numbers.total() - self.numbers.end()),
        }
    }

    /// An upper bound of the payload that waits to be sent: its packets, each counted as a full one.
    #[inline]
    pub fn unsent(&mut self) -> Bytes {
        Bytes::new(u64::from(self.waiting()) * u64::from(self.config.mss))
    }

    /// Returns whether a lost packet waits to be sent again.
    pub fn has_lost(&mut self) -> bool {
        self.next_bytes().is_some() && self.numbers.lost_count() > 0
    }

    /// Sends the packet that [`Sender::poll`] allowed.
    ///
    /// # Panics
    /// If there is nothing to send.
    #[inline(always)]
    pub fn send(&mut self, now: Time) -> Segment {
        let segment = self.release(now);
        self.count_sent(&segment);
        segment
    }

    /// Counts a packet that leaves the host.
    #[inline(always)]
    pub(crate) fn count_sent(&mut self, segment: &Segment) {
        self.stats.packets_sent += 1;
        self.stats.retransmits += u64::from(segment.attempt != 1);
        self.stats.parity += u64::from(self.is_parity(segment.seq));
    }

    /// Returns whether a packet of the flow is parity.
    #[inline(always)]
    fn is_parity(&self, seq: u32) -> bool {
        self.coded_blocks.as_ref().is_some_and(|sender_blocks| sender_blocks.blocks().is_parity(seq))
    }

    /// Releases the packet that [`Sender::poll`] allowed into a queue below the law. It is in flight for the law from now on,
    /// and counts as sent once it leaves the queue ([`Sender::count_sent`]): if it is declared lost first, it never leaves.
    ///
    /// # Panics
    /// If there is nothing to send.
    #[inline(always)]
    pub(crate) fn release(&mut self, now: Time) -> Segment {
        let bytes = self.next_bytes().expect("poll allowed a packet");
        let chosen = if self.subflows.are_several() { self.choose(now, bytes).unwrap_or(0) } else { 0 };
        if self.tcp.is_some() {
            self.restart_if_idle(now);
        }
        let (seq, attempt) = match self.numbers.take_lost() {
            Some(seq) => (seq, self.supersede(seq)),
            None => (self.numbers.end(), 1),
        };
        if self.subflows.get(chosen).law_state.in_flight.is_zero() {
            self.paths.on_idle();
        }
        let path = if self.subflows.are_several() { chosen } else { self.paths.subflow(seq, attempt) };
        self.subflows.end_turn(chosen);
        let subflow = self.subflows.get_mut(chosen);
        let number = subflow.sent(Transmission { now, bytes, content: seq, attempt, path });
        self.numbers.sent(seq, chosen, number);
        let send_limits = subflow.law_state.send_limits;
        subflow.law_state.pacer.on_sent(now, send_limits.pacing, bytes, &self.config.pacing);
        let then = if let Some(next) = self.next_bytes() {
            self.poll_for(now, next)
        } else {
            self.run_out(chosen, number);
            SendState::Blocked
        };
        let segment = Segment { seq, bytes, attempt, path, then };
        if self.tcp.is_some() {
            self.note_sent(now, &segment);
        }
        segment
    }

    /// Notes that nothing is left to send after packet `number` of the subflow `chosen`.
    #[inline(never)]
    fn run_out(&mut self, chosen: u8, number: u64) {
        for subflow in self.subflows.all() {
            let it = self.subflows.get_mut(subflow);
            if it.law_state.run_out(Lack::Data) && subflow == chosen {
                it.out.mark_limited(number, &it.law_state);
            }
        }
    }

    /// Prepares the retransmission of a lost packet: the record of its last transmission is done. Returns the number of
    /// the next transmission.
    fn supersede(&mut self, seq: u32) -> u8 {
        self.numbers.keep_transmissions(&self.subflows);
        let Some((subflow, number)) = self.numbers.last(seq, &self.subflows) else { return 1 };
        let record = self.subflows.get_mut(subflow).out.sent_packets.get_mut(number);
        record.become_state(State::Done);
        record.attempt().checked_add(1).unwrap_or(2)
    }

    /// Processes an acknowledgement, with the reports of the ports that its packet passed.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &AckHeader, hops: &[Hop]) {
        if self.in_order {
            self.on_ack_in_order(now, ack, hops);
            return;
        }
        let cumulative =
            if ack.cumulative > self.cumulative { CumulativeAck::Advanced } else { CumulativeAck::Repeated };
        self.cumulative = self.cumulative.max(ack.cumulative);
        if self.tcp.is_some() {
            self.end_reduction();
        }
        let mut acked = Bytes::ZERO;
        let mut newest = None;
        let with_history = self.config.coding.is_some_and(|coding| coding.history > 0);
        let covers = if with_history { 1 } else { u32::from(ack.covers) };
        let first = (ack.seq + 1 - covers).max(self.numbers.first());
        let mut parity = Bytes::ZERO;
        for seq in first..=ack.seq {
            let bytes = self.take(seq, &mut newest, BlockCount::Update);
            acked += bytes;
            if self.is_parity(seq) {
                parity += bytes;
            }
        }
        // The law receives marks of all packets; the counter is of payload, like the delivered bytes.
        let marked = if ack.marked { acked } else { Bytes::ZERO };
        self.stats.marked += marked.saturating_sub(parity);
        if with_history {
            acked += self.take_history(ack, &mut newest);
        }
        if self.coded_blocks.is_some() {
            self.settle_complete_blocks();
        }
        let Some(newest) = newest else {
            self.settle_if_complete();
            return;
        };
        if self.tcp.is_some() {
            self.note_acked(acked);
        }
        self.report_ack(now, ack, newest, acked, marked, hops);
        self.find_reordered_losses(now, newest.subflow);
        self.settle_if_complete();
        if self.tcp.is_some() {
            self.reduce(cumulative);
        }
    }

    /// Records the acknowledgement of a packet, if it is not settled. Returns its payload.
    #[inline(always)]
    fn take(&mut self, seq: u32, newest: &mut Option<Newest>, count: BlockCount) -> Bytes {
        self.take_was(seq, newest, count).map_or(Bytes::ZERO, |(bytes, _)| bytes)
    }

    /// Records the acknowledgement of a packet, if it is not settled. Returns its payload and its previous state.
    #[inline(always)]
    fn take_was(&mut self, seq: u32, newest: &mut Option<Newest>, count: BlockCount) -> Option<(Bytes, State)> {
        let (subflow, number) = self.numbers.last(seq, &self.subflows)?;
        let was = self.subflows.get_mut(subflow).take(number)?;
        self.numbers.settle(seq);
        self.stats.spurious += u64::from(!was.is_in_flight());
        *newest = Some(Newest { seq, subflow, number, was });
        if count == BlockCount::Update && self.coded_blocks.is_some() {
            self.count_in_block(seq, subflow, was.state());
        }
        Some((was.bytes(), was.state()))
    }

    /// Forgets settled packets.
    #[inline(always)]
    fn trim(&mut self, subflow: u8) {
        self.subflows.get_mut(subflow).out.sent_packets.trim();
        self.numbers.trim(&self.subflows);
    }

    /// Counts newly acknowledged packets, notifies the law, and forgets settled packets.
    #[inline(always)]
    fn report_ack(&mut self, now: Time, ack: &AckHeader, newest: Newest, acked: Bytes, marked: Bytes, hops: &[Hop]) {
        let Newest { seq, subflow, number, was: record } = newest;
        // The acknowledgement states which transmission of its own packet arrived.
        let acked_transmission = match (seq == ack.seq, record.attempt() == ack.attempt) {
            (true, true) => AckedTransmission::Latest,
            (true, false) => AckedTransmission::Earlier,
            (false, _) => AckedTransmission::OtherPacket,
        };
        let noisy = acked_transmission == AckedTransmission::Latest && self.config.noise.max > Span::ZERO;
        let noise = if noisy { self.config.noise.of(seq, record.attempt()) } else { Span::ZERO };
        // With several subflows, a mark on another transmission belongs to another subflow.
        let unmarked = acked_transmission == AckedTransmission::Earlier && self.subflows.are_several();
        let marked = if unmarked { Bytes::ZERO } else { marked };
        let (limited, before) =
            if self.tcp.is_some() { self.before_ack(now, record.sent_at, acked, marked) } else { (false, None) };
        let left = self.left_after(acked);
        let it = self.subflows.get_mut(subflow);
        let batch = Batch {
            number,
            record,
            acked_transmission,
            acked,
            marked,
            bytes_remaining: left,
            noise,
            limited,
            unfilled: false,
            hops,
        };
        let law_ack = it.acked(now, &batch);
        it.out.sent_packets.trim();
        it.law_state.read_permit(self.rate_change, &self.config.pacing);
        if acked_transmission == AckedTransmission::Earlier {
            self.stats.spurious += 1;
            it.out.widen_reordering_window(&self.config.timing());
        }
        if acked_transmission == AckedTransmission::Latest && self.paths.uses_acks() {
            self.paths.on_ack(&law_ack, record.path());
        }
        if self.tcp.is_some() {
            self.spread_cut_of_ack(before, law_ack.marked);
            self.after_ack(&law_ack);
        }
        self.numbers.trim(&self.subflows);
    }

    /// Processes a CNP: the receiver saw a mark on a transmission of packet `seq`.
    pub fn on_cnp(&mut self, now: Time, seq: u32, attempt: u8) {
        self.stats.cnps += 1;
        let cnp = Notification::Cnp { now };
        match self.last_departure(seq, attempt).map(SentPacket::path).filter(|_| self.subflows.are_several()) {
            Some(subflow) => self.notify(subflow, &cnp),
            None => self.notify_all(&cnp),
        }
    }

    /// Processes a signal that refers to no packet. A direct CNP for a law that does not read it is reported as marks: all
    /// that is acknowledged within a round trip counts as marked, as if the switch had marked the packets in flight.
    pub fn on_notification(&mut self, notification: &Notification) {
        if matches!(notification, Notification::DirectCnp { .. }) {
            self.stats.cnps += 1;
        }
        self.notify_all(notification);
    }

    fn notify_all(&mut self, notification: &Notification) {
        for subflow in self.subflows.all() {
            self.notify(subflow, notification);
        }
    }

    /// Processes a signal for a subflow's law.
    fn notify(&mut self, subflow: u8, notification: &Notification) {
        self.subflows.get_mut(subflow).notify(notification);
        self.read_permit(subflow);
    }

    /// Processes a switch's report of the ports that a transmission of packet `seq` has passed so far. Where that is
    /// not the last transmission, or the packet is settled, the report is outdated and ignored: no time is known for
    /// it.
    pub fn on_direct_int(&mut self, now: Time, seq: u32, attempt: u8, hops: &[Hop]) {
        let Some(last) = self.numbers.last_transmission(seq, &self.subflows) else { return };
        let LastTransmission { subflow, record, .. } = last;
        if record.attempt() == attempt {
            let sent_at = record.sent_at;
            self.notify(subflow, &Notification::DirectInt { now, sent_at, hops });
        }
    }

    /// Processes the receiver's acknowledgement of a probe sent at `sent_at`, on the path of the data and behind it;
    /// the receiver has every packet below `cumulative`. All packets sent before the probe that are not acknowledged
    /// are lost.
    pub fn on_probe_reply(&mut self, now: Time, sent_at: Time, cumulative: u32) {
        self.cumulative = self.cumulative.max(cumulative);
        if self.in_order {
            self.on_probe_reply_in_order(now, sent_at);
        } else {
            for subflow in self.subflows.all() {
                self.subflows.get_mut(subflow).out.arrived(sent_at);
                self.lose_while(now, subflow, LossCause::Reordered, |out| out.oldest_if(|left| left <= sent_at));
            }
        }
        self.settle_if_complete();
    }

    /// Updates the permit of a subflow's law.
    fn read_permit(&mut self, subflow: u8) {
        self.subflows.get_mut(subflow).law_state.read_permit(self.rate_change, &self.config.pacing);
        self.reduce_window();
    }

    /// Returns the time from a packet of `bytes` payload to the next one by the law's pacing; zero if the law does not
    /// pace.
    pub fn gap_after(&self, bytes: u32) -> Span {
        self.config.pacing.gap(self.send_limits().pacing, bytes)
    }

    /// Completes the flow once every byte has arrived, even if some acknowledgements are outstanding or lost.
    #[inline(always)]
    fn settle_if_complete(&mut self) {
        if self.cumulative >= self.numbers.total() && !self.is_complete() {
            self.settle_all();
        }
    }

    #[inline(never)]
    fn settle_all(&mut self) {
        for seq in self.numbers.first()..self.numbers.end() {
            self.settle(seq);
        }
        self.trim_all();
    }

    fn trim_all(&mut self) {
        for subflow in self.subflows.all() {
            self.trim(subflow);
        }
    }

    /// Settles a packet that a cumulative acknowledgement covers.
    fn settle(&mut self, seq: u32) {
        let Some((subflow, number)) = self.numbers.last(seq, &self.subflows) else { return };
        let it = self.subflows.get_mut(subflow);
        let Some(record) = it.take(number) else { return };
        it.law_state.deliver(record.bytes());
        self.numbers.settle(seq);
        if self.coded_blocks.is_some() {
            self.count_in_block(seq, subflow, record.state());
        }
    }

    /// Returns the minimum time between sending a packet and its retransmission timeout.
    pub fn min_rto_wait(&self) -> Span {
        let timing = self.timing();
        self.subflows.iter().map(|subflow| subflow.out.min_rto_wait(&timing)).min().unwrap_or(Span::ZERO)
    }

    /// Returns the next time at which [`Sender::on_timer`] must be called. It moves with every acknowledgement (RFC 6298
    /// §5.3), so a host keeps one timer per flow and reads this again when it expires; only [`Sender::law_timer`] can move to
    /// an earlier time.
    #[inline]
    pub fn next_timer(&mut self) -> Time {
        let timeout = self.timeout();
        let block = self
            .coded_blocks
            .as_mut()
            .map_or(Time::NEVER, |sender_blocks| sender_blocks.waits_since().saturating_add(timeout));
        self.retransmission_at().min(block).min(self.law_timer())
    }

    /// Returns the expiry of the first retransmission timeout.
    #[inline]
    fn retransmission_at(&mut self) -> Time {
        let timing = self.timing();
        if self.in_order {
            let out = &self.subflows.get(0).out;
            return self.timer_start_in_order().map_or(Time::NEVER, |sent_at| out.times_out(sent_at, &timing));
        }
        let deadlines = self.subflows.iter_mut().map(|subflow| subflow.out.deadline(&timing));
        deadlines.min().unwrap_or(Time::NEVER)
    }

    /// The longest retransmission timeout of all subflows.
    fn timeout(&self) -> Span {
        let timing = self.timing();
        self.subflows.iter().map(|subflow| subflow.out.timeout(&timing)).max().unwrap_or(Span::ZERO)
    }

    /// Handles the expiry of [`Sender::next_timer`].
    pub fn on_timer(&mut self, now: Time) {
        for subflow in self.subflows.all() {
            let law = &mut self.subflows.get_mut(subflow).law_state.law;
            if law.next_timer() <= now {
                law.on_timer(now);
                self.read_permit(subflow);
            }
        }
        if self.in_order {
            self.on_timeout_in_order(now);
            return;
        }
        let mut timed_out_paths = 0;
        for subflow in self.subflows.all() {
            let paths = self.lose_overdue(now, subflow);
            if self.coded_blocks.is_none() && paths != 0 {
                self.count_timeout(now, subflow, paths);
            } else if paths != 0 {
                self.subflows.get_mut(subflow).out.back_off();
            }
            timed_out_paths |= paths;
        }
        if self.coded_blocks.is_some() {
            self.resend_overdue(now, timed_out_paths);
        }
    }

    fn count_timeout(&mut self, now: Time, subflow: u8, paths: u64) {
        self.stats.timeouts += 1;
        self.subflows.get_mut(subflow).out.back_off();
        self.paths.on_timeout(now, paths);
    }
}
