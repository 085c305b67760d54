//! The sending end of a flow: what goes next, when, what is lost, and when the flow is done.
//!
//! Loss detection is by time (RACK, RFC 8985, without its probe): a packet is lost once one that left
//! `reordering` later has been acknowledged, or, once a timer looks, one that left later at all. The tolerance is
//! the host's to choose, a quarter of the base round trip on one path and the spread of the queues where packets
//! are sprayed, and it doubles when a packet that was sent again turns out to have been late. The last packets are
//! covered by the retransmission timeout, which runs from the last acknowledgement: when it strikes, all that left
//! over a round trip and that tolerance ago are lost.
//!
//! A cumulative acknowledgement never acknowledges by itself, because the packet's own acknowledgement, still
//! on another path, carries its mark and its round trip. It only saves a packet from being held for lost.
//!
//! With [`LossTimer::Packet`] each packet has a timer of its own instead, of a fixed length from when it left.
//!
//! All of this is [`Recovery::Selective`]; the other way to recover is in `go_back_n`, and what erasure coding changes in
//! `coded`. What a law decides and is told of is a [`Lane`]; a law for each subflow is in `lanes`.

mod coded;
mod config;
mod go_back_n;
mod lane;
mod lanes;
mod ledger;
mod losses;
mod tcp;
#[cfg(test)]
mod work;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use laws::{Ack, ControlLaw, Hop, LossCause, Notification, Sent};
use units::{Bytes, Rate, Span, Time};

use crate::paths::Paths;
use crate::records::{Record, Records, State};
use crate::rtt::RttEstimator;
pub use config::{FlowConfig, LossTimer, Recovery, SenderCoding};
use lane::Lane;
use lanes::Lanes;
use ledger::Ledger;
use tcp::Tcp;
pub use tcp::TcpConfig;

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its number in the flow.
    pub seq: u32,
    /// Its payload.
    pub bytes: u32,
    /// 1 when it is sent for the first time.
    pub attempt: u8,
    /// The sender can send no more until it hears something, so the receiver should answer at once.
    pub ask: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckHeader {
    /// The newest packet acknowledged.
    pub seq: u32,
    /// How many consecutive packets, ending with `seq`; with a history as in [`crate::Reply::covers`].
    pub covers: u8,
    /// Every packet below this has come, or was given back by its block.
    pub cumulative: u32,
    /// Whether the covered packets were marked.
    pub marked: bool,
    /// Which transmission of `seq` is acknowledged.
    pub attempt: u8,
}

/// Whether a flow can send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendState {
    /// A packet may go now.
    Now,
    /// A packet may go at this time (pacing).
    At(Time),
    /// Nothing until an acknowledgement or a timer.
    Blocked,
}

/// Counters of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowStats {
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Packets sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Packets held for lost that came after all.
    pub spurious: u64,
    /// Acknowledged payload that was marked.
    pub marked: Bytes,
    /// Times that the receiver asked for packets again.
    pub nacks: u32,
    /// Notifications of congestion, from the receiver or from switches.
    pub cnps: u64,
    /// How long the flow was held at the edge. Counted where it is held, outside of the sender.
    pub held: Span,
    /// Parity packets sent, retransmissions included.
    pub parity: u64,
    /// Blocks that parity completed: when enough packets were acknowledged, some of its data was not.
    pub recovered: u64,
}

/// Whom an acknowledgement answers, of what it newly acknowledges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// The newest packet's last transmission.
    This,
    /// An earlier transmission of it.
    Another,
    /// The acknowledgement's own packet is not the newest one.
    Others,
}

/// The sending end of one flow under the law `L`.
#[derive(Debug)]
pub struct Sender<L> {
    /// What the law decides and is told of; where each subflow has a law, that of the one in hand.
    lane: Lane<L>,
    config: FlowConfig,
    packets: u32,
    /// Packets that are not full: the first, and how many, each of `last_bytes`.
    short: u32,
    short_count: u32,
    last_bytes: u32,
    records: Records,
    /// First transmissions below this are settled or sent again; the oldest outstanding one is here or above.
    scan: u32,
    /// Retransmissions in the order they left: (sequence number, attempt).
    resent: VecDeque<(u32, u8)>,
    /// Lost packets that wait to be sent again.
    lost: VecDeque<u32>,
    /// When the newest packet left that is known to have arrived.
    newest_arrived: Time,
    cumulative: u32,
    /// [`Recovery::GoBackN`].
    in_order: bool,
    /// What the law says of itself: [`ControlLaw::retimes`].
    retimes: bool,
    rtt: RttEstimator,
    reordering: Span,
    stats: FlowStats,
    paths: Paths,
    /// Of a coded flow.
    ledger: Option<Box<Ledger>>,
    /// Where each subflow has a law.
    lanes: Option<Box<Lanes<L>>>,
    /// Where something of Linux's TCP is on.
    tcp: Option<Box<Tcp>>,
}

impl<L: ControlLaw> Sender<L> {
    /// A flow that starts at `now`.
    pub fn new(config: FlowConfig, law: L, now: Time) -> Self {
        let packets = config.packets();
        let blocks = config.blocks();
        let short = blocks.map_or(packets - 1..packets, |blocks| blocks.short());
        let ledger = blocks.zip(config.coding).map(|(blocks, coding)| Box::new(Ledger::new(blocks, coding.eager)));
        let selects = ledger.is_some() || config.loss_timer == LossTimer::Packet || config.tcp != TcpConfig::default();
        debug_assert!(!selects || config.recovery == Recovery::Selective);
        Self {
            retimes: law.retimes(),
            in_order: config.recovery != Recovery::Selective,
            lane: Lane::new(law, now),
            packets,
            short: short.start,
            short_count: short.end - short.start,
            last_bytes: ((config.size.get() - 1) % u64::from(config.mss) + 1) as u32,
            records: Records::new(),
            scan: 0,
            resent: VecDeque::new(),
            lost: VecDeque::new(),
            newest_arrived: Time::ZERO,
            cumulative: 0,
            rtt: RttEstimator::new(config.base_rtt, config.rto_min, config.rto_max),
            reordering: config.reordering,
            stats: FlowStats::default(),
            paths: Paths::new(config.paths, config.seed, config.number, config.base_rtt, now),
            ledger,
            lanes: None,
            tcp: Tcp::new(config.tcp).map(Box::new),
            config,
        }
    }

    /// Whether every byte is acknowledged, or given back by its block.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.delivered() == self.config.size
    }

    /// The entropy of a transmission that leaves now: what switches choose its path by.
    #[inline]
    pub fn entropy(&self, seq: u32, attempt: u8) -> u16 {
        self.paths.entropy(seq, attempt, self.subflow(seq, attempt))
    }

    /// The subflow of a transmission: by its number, or, where each has a law, that on which the packet went last.
    #[inline(always)]
    fn subflow(&self, seq: u32, attempt: u8) -> u8 {
        match &self.lanes {
            None => self.paths.subflow(seq, attempt),
            Some(_) => self.record(seq).map_or(0, |record| record.subflow),
        }
    }

    /// Counters so far.
    pub fn stats(&self) -> &FlowStats {
        &self.stats
    }

    /// Payload acknowledged, or given back by its block; parity counts nothing.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        match &self.ledger {
            None => self.sum_over_lanes(|lane| lane.delivered),
            Some(ledger) => ledger.delivered(),
        }
    }

    /// Payload sent and neither acknowledged nor held for lost.
    pub fn in_flight(&self) -> Bytes {
        self.sum_over_lanes(|lane| lane.in_flight)
    }

    /// Whether what it hears can move a packet nearer that waits for its time already: a new rate does, or another subflow
    /// may send sooner.
    #[inline]
    pub fn retimes(&self) -> bool {
        self.retimes || self.lanes.is_some()
    }

    /// When the law itself wants to be woken; part of [`Sender::next_timer`]. Unlike the rest of that it can come
    /// nearer, whenever the law hears something.
    #[inline]
    pub fn law_timer(&self) -> Time {
        self.earliest(|lane| lane.law.next_timer())
    }

    /// The first packet that is not acknowledged, or has not been sent.
    #[inline]
    pub fn first_unsettled(&self) -> u32 {
        self.records.first()
    }

    /// Whether this transmission is the last one of its packet and neither acknowledged nor held for lost.
    pub fn is_outstanding(&self, seq: u32, attempt: u8) -> bool {
        self.record(seq).is_some_and(|record| record.state == State::InFlight && record.attempt == attempt)
    }

    fn record(&self, seq: u32) -> Option<&Record> {
        (self.records.first() <= seq && seq < self.records.end()).then(|| self.records.get(seq))
    }

    /// The round trip that an acknowledgement of this transmission measures, before it is processed; none where the
    /// packet has been sent again since or is acknowledged.
    pub fn round_trip(&self, now: Time, seq: u32, attempt: u8) -> Option<Span> {
        let record = self.record(seq).filter(|record| record.state != State::Acked && record.attempt == attempt)?;
        Some(now.since(record.sent_at))
    }

    /// Payload of a full packet.
    pub fn mss(&self) -> u32 {
        self.config.mss
    }

    /// The smoothed round trip.
    pub fn smoothed_rtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// When the next packet may leave by its pace, whatever the window says.
    pub fn next_send(&self) -> Time {
        self.earliest(|lane| lane.next_send)
    }

    /// Whether a packet may leave at `now`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> SendState {
        let Some(bytes) = self.next_bytes() else { return SendState::Blocked };
        if self.lanes.is_some() {
            return self.poll_lanes(now, bytes);
        }
        if self.is_shut(&self.lane, bytes) {
            return SendState::Blocked;
        }
        if self.lane.next_send > now { SendState::At(self.lane.next_send) } else { SendState::Now }
    }

    /// Whether a packet may not leave, though it were its time. One may always be in flight, or a window under a packet
    /// would stop the flow.
    #[inline(always)]
    fn is_shut(&self, lane: &Lane<L>, bytes: u32) -> bool {
        self.is_full(lane, bytes) && !lane.in_flight.is_zero()
    }

    /// Whether a window has no room for a packet.
    #[inline(always)]
    fn is_full(&self, lane: &Lane<L>, bytes: u32) -> bool {
        // A packet that does not fit counts as one byte where windows may be overshot.
        let bytes = if self.config.overshoots { 1 } else { bytes };
        lane.in_flight + Bytes::new(bytes.into()) > lane.permit.window
    }

    /// The payload of the packet that would go next, a lost one first; none if there is nothing to send.
    #[inline]
    pub fn next_bytes(&mut self) -> Option<u32> {
        while let Some(&seq) = self.lost.front() {
            if self.still_lost(seq) {
                return Some(self.bytes_of(seq));
            }
            self.lost.pop_front();
        }
        let seq = self.records.end();
        (seq < self.packets).then(|| self.bytes_of(seq))
    }

    /// Packets that wait to be sent: lost ones, and those that never were. Lost ones that came after all may still be
    /// counted while others wait.
    pub fn waiting(&mut self) -> u32 {
        match self.next_bytes() {
            None => 0,
            Some(_) => self.lost.len() as u32 + (self.packets - self.records.end()),
        }
    }

    /// Whether a lost packet waits to be sent again.
    pub fn has_lost(&mut self) -> bool {
        self.next_bytes().is_some() && !self.lost.is_empty()
    }

    fn still_lost(&self, seq: u32) -> bool {
        seq >= self.records.first() && self.records.get(seq).state == State::Lost
    }

    #[inline]
    fn bytes_of(&self, seq: u32) -> u32 {
        if seq.wrapping_sub(self.short) < self.short_count { self.last_bytes } else { self.config.mss }
    }

    /// Sends the packet that [`Sender::poll`] allowed; where each subflow has a law, nothing may come between the two.
    ///
    /// # Panics
    /// If there is nothing to send.
    #[inline(always)]
    pub fn send(&mut self, now: Time) -> Segment {
        let bytes = self.next_bytes().expect("poll said that a packet may go");
        debug_assert!(self.lanes.is_none() || !self.is_shut(&self.lane, bytes) && self.lane.next_send <= now);
        if self.tcp.is_some() {
            self.restart_if_idle(now);
        }
        if self.lane.in_flight.is_zero() {
            self.lane.flight_began = now;
            self.lane.delivered_time = now;
            if self.in_flight().is_zero() {
                self.hear(now);
            }
            self.paths.on_idle();
        }
        let (seq, attempt) = match self.lost.pop_front() {
            Some(seq) => (seq, self.records.get(seq).attempt.wrapping_add(1)),
            None => (self.records.end(), 1),
        };
        let mut record = Record::new(now, attempt, self.lane.delivered, self.lane.delivered_time);
        record.set_send_elapsed(now.since(self.lane.flight_began));
        record.subflow = self.end_turn();
        if seq == self.records.end() {
            self.records.push(record);
        } else {
            *self.records.get_mut(seq) = record;
            if !self.in_order {
                self.resent.push_back((seq, attempt));
            }
            self.stats.retransmits += 1;
        }
        let size = Bytes::new(bytes.into());
        self.lane.in_flight += size;
        self.note_sent(now, size);
        self.stats.packets_sent += 1;
        if let Some(ledger) = &self.ledger {
            self.stats.parity += u64::from(ledger.blocks().is_parity(seq));
        }
        let retransmission = attempt != 1;
        let cookie = self.lane.law.on_sent(&Sent { now, bytes: size, in_flight: self.lane.in_flight, retransmission });
        self.records.set_cookie(seq, cookie);
        self.lane.last_sent = bytes;

        let permit = self.lane.permit;
        if permit.pacing != Rate::MAX && !self.config.paced_below {
            let gap = self.gap(permit.pacing, bytes);
            // A packet that the network card held back does not slow the ones behind it.
            let from = if self.config.catches_up { self.lane.next_send } else { now };
            self.lane.next_send = (from + gap).max(now);
        }
        let ask = if let Some(next) = self.next_bytes() {
            self.all_are_shut(next)
        } else {
            self.records.get_mut(seq).app_limited = self.lane.in_flight < permit.window;
            true
        };
        Segment { seq, bytes, attempt, ask }
    }

    /// An acknowledgement arrives, with what the ports reported that its packet passed.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &AckHeader, hops: &[Hop]) {
        if self.in_order {
            self.on_ack_in_order(now, ack, hops);
            return;
        }
        let advanced = ack.cumulative > self.cumulative;
        self.cumulative = self.cumulative.max(ack.cumulative);
        if self.tcp.is_some() {
            self.end_reduction();
        }
        let mut acked = Bytes::ZERO;
        let mut newest = None;
        let with_history = self.config.coding.is_some_and(|coding| coding.history > 0);
        let covers = if with_history { 1 } else { u32::from(ack.covers) };
        let first = (ack.seq + 1 - covers).max(self.records.first());
        for seq in first..=ack.seq {
            let bytes = Bytes::new(self.bytes_of(seq).into());
            self.take_lane_of(seq);
            let record = self.records.get_mut(seq);
            match record.state {
                State::Acked => continue,
                State::InFlight => self.lane.in_flight -= bytes,
                State::Lost | State::Missing => self.stats.spurious += 1,
            }
            let was = record.state;
            record.state = State::Acked;
            acked += bytes;
            newest = Some((seq, *record));
            if self.ledger.is_some() {
                self.count_in_block(seq, was);
            }
        }
        let marked = if ack.marked { acked } else { Bytes::ZERO };
        if with_history {
            acked += self.take_history(ack, &mut newest);
        }
        if self.ledger.is_some() {
            self.settle_whole_blocks();
        }
        if acked.is_zero() {
            self.settle_if_all_came();
            return;
        }
        if self.tcp.is_some() {
            self.note_acked(acked);
        }
        if let Some((seq, record)) = newest
            && self.tell_of_ack(now, ack, seq, record, acked, marked, hops) == Answers::Another
        {
            self.tolerate_more();
        }
        self.hear(now);
        self.records.trim();
        self.find_reordered_losses(now);
        self.settle_if_all_came();
        if self.tcp.is_some() {
            self.reduce(advanced);
        }
    }

    /// Counts what an acknowledgement acknowledges and tells the law. `record` is of the newest packet of that, `seq`.
    #[expect(clippy::too_many_arguments, reason = "what one acknowledgement says")]
    #[inline(always)]
    fn tell_of_ack(
        &mut self,
        now: Time,
        ack: &AckHeader,
        seq: u32,
        record: Record,
        acked: Bytes,
        marked: Bytes,
        hops: &[Hop],
    ) -> Answers {
        self.lane.delivered += acked;
        self.rtt.progress();
        self.stats.marked += marked;
        let cookie = self.records.cookie(seq);
        // The acknowledgement says which transmission of its own packet came, and when an older one than the
        // record's left is forgotten: no time is taken from any other.
        let answers = match (seq == ack.seq, record.attempt == ack.attempt) {
            (true, true) => Answers::This,
            (true, false) => Answers::Another,
            (false, _) => Answers::Others,
        };
        let rtt = if answers == Answers::This { now.since(record.sent_at) } else { self.rtt.smoothed() };
        let sent_at = now - rtt;
        if answers == Answers::This {
            self.rtt.sample(rtt);
            self.lane.flight_began = self.lane.flight_began.max(sent_at);
            self.newest_arrived = self.newest_arrived.max(sent_at);
        } else if answers == Answers::Another {
            self.stats.spurious += 1;
        }
        let noisy = answers == Answers::This && self.config.noise.most > Span::ZERO;
        let acked = Ack {
            now,
            sent_at,
            rtt: if noisy { rtt + self.config.noise.of(seq, record.attempt) } else { rtt },
            acked,
            marked: if now < self.lane.asked_until {
                acked
            } else if answers == Answers::Another && self.lanes.is_some() {
                // Another subflow's packet met it.
                Bytes::ZERO
            } else {
                marked
            },
            in_flight: self.lane.in_flight,
            delivered: self.lane.delivered,
            delivered_at_send: record.delivered,
            delivered_time_at_send: record.delivered_time,
            send_elapsed: record.send_elapsed(),
            app_limited: record.app_limited || self.is_reducing(),
            cookie,
            hops,
        };
        let before = self.window_before();
        self.lane.law.on_ack(&acked);
        if before.is_some() && !acked.marked.is_zero() {
            self.spread_cut(before, Bytes::ZERO, None);
        }
        if answers == Answers::This && self.paths.listens() {
            self.paths.on_ack(&acked, self.subflow(seq, record.attempt));
        }
        self.read_permit();
        answers
    }

    /// The receiver met a mark on a transmission of packet `seq`.
    pub fn on_cnp(&mut self, now: Time, seq: u32, attempt: u8) {
        self.stats.cnps += 1;
        let cnp = Notification::Cnp { now };
        if self.lanes.is_some() && self.record(seq).is_some_and(|record| record.attempt == attempt) {
            self.take_lane_of(seq);
            self.notify(&cnp);
        } else {
            self.on_each_lane(|it| it.notify(&cnp));
        }
    }

    /// Another signal arrives, which names no packet. A direct CNP for a law that does not read it is told as marks: all that is
    /// acknowledged within a round trip counts as marked, as if the switch had marked what is in flight.
    pub fn on_notification(&mut self, notification: &Notification) {
        if matches!(notification, Notification::DirectCnp { .. }) {
            self.stats.cnps += 1;
        }
        self.on_each_lane(|it| it.notify(notification));
    }

    /// A signal arrives for the law in hand.
    fn notify(&mut self, notification: &Notification) {
        if let Notification::DirectCnp { now } = *notification
            && !self.lane.law.reads_direct_cnps()
        {
            self.lane.asked_until = now + self.rtt.smoothed();
        }
        self.lane.law.on_notification(notification);
        self.read_permit();
    }

    /// A switch reports the ports that a transmission of packet `seq` has passed so far. Where that is not the last
    /// transmission, or the packet is settled, the report is old news and says nothing: no time is known for it.
    pub fn on_direct_int(&mut self, now: Time, seq: u32, attempt: u8, hops: &[Hop]) {
        if let Some(record) = self.record(seq).filter(|record| record.attempt == attempt) {
            let sent_at = record.sent_at;
            self.take_lane_of(seq);
            self.notify(&Notification::DirectInt { now, sent_at, hops });
        }
    }

    /// The receiver answers a probe that left at `sent_at`, on the path of the data and behind it, and has every packet
    /// below `cumulative`: all that left before it and is not acknowledged is lost.
    pub fn on_probe_answer(&mut self, now: Time, sent_at: Time, cumulative: u32) {
        self.cumulative = self.cumulative.max(cumulative);
        if self.in_order {
            self.on_probe_answer_in_order(now, sent_at);
        } else {
            self.newest_arrived = self.newest_arrived.max(sent_at);
            self.lose_while(now, LossCause::Reordered, |left| left <= sent_at);
        }
        self.settle_if_all_came();
    }

    /// What the law permits may have changed.
    #[inline(always)]
    fn read_permit(&mut self) {
        let permit = self.lane.law.permit();
        if self.retimes && permit.pacing != self.lane.permit.pacing {
            self.retime(permit.pacing);
        }
        self.lane.permit = permit;
        if let Some(window) = self.reduced_window() {
            self.lane.permit.window = window;
        }
    }

    /// Paces the next packet from the last one as if that had left at the new rate.
    #[inline(never)]
    fn retime(&mut self, pacing: Rate) {
        let gap = |rate: Rate| if rate == Rate::MAX { Span::ZERO } else { self.gap(rate, self.lane.last_sent) };
        self.lane.next_send = self.lane.next_send.saturating_add(gap(pacing) - gap(self.lane.permit.pacing));
    }

    /// The time from a packet of so many payload bytes to the next one by the law's pace; zero if the law does not
    /// pace.
    pub fn gap_after(&self, bytes: u32) -> Span {
        let pacing = self.permit().pacing;
        if pacing == Rate::MAX { Span::ZERO } else { self.gap(pacing, bytes) }
    }

    /// From a packet of so much payload to the next one.
    #[inline(always)]
    fn gap(&self, rate: Rate, bytes: u32) -> Span {
        self.config.tick.time_for(rate, Bytes::new(u64::from(bytes + self.config.paced_header)))
    }

    /// Once every byte has come, the flow is done, though some acknowledgements are still away or lost.
    fn settle_if_all_came(&mut self) {
        if self.cumulative < self.packets || self.is_complete() {
            return;
        }
        for seq in self.records.first()..self.records.end() {
            if self.records.get(seq).state != State::Acked {
                self.settle(seq);
            }
        }
        self.records.trim();
    }

    /// Takes a packet as arrived on the word of a cumulative acknowledgement.
    fn settle(&mut self, seq: u32) {
        let bytes = Bytes::new(self.bytes_of(seq).into());
        self.take_lane_of(seq);
        let record = self.records.get_mut(seq);
        let was = record.state;
        if was == State::InFlight {
            self.lane.in_flight -= bytes;
        }
        record.state = State::Acked;
        self.lane.delivered += bytes;
        if self.ledger.is_some() {
            self.count_in_block(seq, was);
        }
    }

    fn tolerate_more(&mut self) {
        self.reordering = self.reordering.times(2).min(self.rtt.smoothed().max(self.config.reordering));
    }

    /// The retransmission timeout. With one timer for the flow it is never shorter than later packets take to prove one
    /// lost.
    #[inline]
    fn timeout(&self) -> Span {
        if self.config.loss_timer == LossTimer::Packet {
            return self.config.rto_min;
        }
        self.rtt.timeout().max(self.rtt.smoothed() + self.reordering)
    }

    /// When the timeout of the oldest packet ends, which left at `sent_at`.
    #[inline]
    fn times_out(&self, sent_at: Time) -> Time {
        let from = match self.config.loss_timer {
            LossTimer::Flow => sent_at.max(self.heard()),
            LossTimer::Packet => sent_at,
        };
        from + self.timeout()
    }

    /// How long, at least, passes between a packet's departure and the timeout that strikes it.
    pub fn least_wait(&self) -> Span {
        match self.config.loss_timer {
            LossTimer::Flow => self.rtt.smoothed(),
            LossTimer::Packet => self.config.rto_min,
        }
    }

    /// When [`Sender::on_timer`] wants to be called next. It moves with every acknowledgement (RFC 6298 §5.3), so a
    /// host keeps one timer a flow and asks again when it fires; only [`Sender::law_timer`] can come nearer.
    #[inline]
    pub fn next_timer(&mut self) -> Time {
        let timeout = self.timeout();
        let timed = if self.in_order { self.timed_in_order() } else { self.oldest().map(|(_, sent_at)| sent_at) };
        let retransmission = timed.map_or(Time::NEVER, |sent_at| self.times_out(sent_at));
        let block = self.ledger.as_mut().map_or(Time::NEVER, |ledger| ledger.waits_since().saturating_add(timeout));
        retransmission.min(block).min(self.law_timer())
    }

    /// The time of [`Sender::next_timer`] has come.
    pub fn on_timer(&mut self, now: Time) {
        self.on_each_lane(|sender| {
            if sender.lane.law.next_timer() <= now {
                sender.lane.law.on_timer(now);
                sender.read_permit();
            }
        });
        if self.in_order {
            self.on_timeout_in_order(now);
            return;
        }
        let subflows = self.lose_overdue(now);
        if self.ledger.is_some() {
            self.resend_overdue(now, subflows);
        } else if subflows != 0 {
            self.count_timeout(now, subflows);
        }
    }

    fn count_timeout(&mut self, now: Time, subflows: u64) {
        self.stats.timeouts += 1;
        self.rtt.back_off();
        self.paths.on_timeout(now, subflows);
    }
}
