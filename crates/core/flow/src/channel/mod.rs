//! Sending side of an open-ended connection: subflows, with a law each or a shared one, and a [`DataSource`] that provides their
//! data.
//!
//! Used by transports. A channel has no notion of messages, streams or the end of the data: the work has those. Packets
//! differ in size. Each transmission has its own packet number, below 2^62, and lost content is returned to the work, which
//! sends it again, or not, under another number. Acknowledgements come from a peer ([`AckRanges`]), and are checked completely
//! before they change anything.
//!
//! Loss detection, flight size and send permission are those of the simulator's [`crate::Sender`].

mod config;
mod data_source;
mod law_group;
mod subflow;
mod timeout_state;

use alloc::vec;
use alloc::vec::Vec;

use laws::{ControlLaw, LawActions, Loss, LossCause, Notification, SendLimits, marked_share};
use units::{Bytes, Span, Time};

pub use config::{ChannelConfig, MAX_OUTSTANDING};
pub use data_source::{DataSource, PacketContent, ReturnReason};
use law_group::LawGroup;
use subflow::SubflowState;
pub(crate) use timeout_state::PROBES;
use timeout_state::{TimedOutRange, TimeoutState};

use crate::ack_ranges::{AckError, AckRanges};
use crate::cwnd_usage::PipeSample;
use crate::law_state::{Lack, LawState, RateChange, SendState};
use crate::on_ramp_path::OnRampPath;
use crate::outstanding::{AckedTransmission, Batch, LossEvidence, LossTimer, NotifyLaw, Outstanding};
use crate::ranges::Range;
use crate::sent_packets::{SentPacket, State, Transmission};
use crate::subflow::{combined_limits, in_turn};

/// A packet that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingPacket<C> {
    /// Its subflow.
    pub subflow: u8,
    /// Its number there.
    pub number: u64,
    /// Its content.
    pub parcel: PacketContent<C>,
    /// Permission for the next packet.
    pub then: SendState,
}

/// Counters of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChannelStats {
    /// Packets sent with content.
    pub packets_sent: u64,
    /// Their payload.
    pub bytes_sent: Bytes,
    /// Packets with content that had been sent before.
    pub retransmits: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets declared lost that arrived after all.
    pub spurious: u64,
    /// Probes that were allowed.
    pub probes: u64,
    /// Timeouts that declared packets in flight lost.
    pub timeouts: u64,
    /// Acknowledged payload that was marked.
    pub marked: Bytes,
}

/// Packets newly acknowledged by an ACK frame.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Acked {
    /// Packets newly acknowledged.
    pub packets: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// ECN-marked part of `bytes`.
    pub marked: Bytes,
    /// RTT of the newest packet without the receiver's delay, if the acknowledgement is the first that covers that
    /// packet.
    pub rtt: Option<Span>,
    /// One-way delay of the newest packet that has a time stamp and a record: the receiver's clock minus the sender's.
    pub one_way: Option<Span>,
}

/// Maximum number of subflows of a channel, closed ones included.
const MAX_SUBFLOWS: usize = 255;

/// Permission to send packets of the work on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSending {
    /// Packets of the work may be sent.
    Allowed,
    /// Only packets outside of the work may be sent.
    Forbidden,
}

/// Packet numbers of a subflow that is reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketNumbers {
    /// They continue: the subflow stays in its packet number space.
    Continue,
    /// They begin at 0: the subflow is on another path, in a packet number space of its own.
    Restart,
}

/// A law that moves from one subflow to another.
#[derive(Clone, Debug)]
pub struct MovedLaw<L> {
    /// The law.
    pub law: L,
    /// Delivered payload as reported to it ([`Channel::delivered`]).
    pub delivered: Bytes,
}

/// Sending side of a connection under laws `L`, with the data of the work `W`.
///
/// Subflows are identified by the numbers that the channel returned. [`Channel::acked`] checks the peer's number; all
/// other methods panic at a number that was not returned.
#[derive(Debug)]
pub struct Channel<L, W: DataSource> {
    subflows: Vec<SubflowState<W::Content>>,
    /// One entry per law; several subflows may share a law.
    groups: Vec<LawGroup<L>>,
    /// Subflow that sends next in round-robin order.
    turn: u8,
    config: ChannelConfig,
    rate_change: RateChange,
    work: W,
    stats: ChannelStats,
}

impl<L: ControlLaw, W: DataSource> Channel<L, W> {
    /// Creates a channel of one subflow. Its first packet may be sent at `now`.
    pub fn new(config: ChannelConfig, law: L, work: W, now: Time) -> Self {
        Self {
            rate_change: RateChange::of(&law),
            subflows: vec![SubflowState::new(&config, 0, now)],
            groups: vec![LawGroup::new(&config, law, now)],
            turn: 0,
            config,
            work,
            stats: ChannelStats::default(),
        }
    }

    /// Adds a subflow with a law of its own, or under that of the first: the law then controls the packets in flight on both,
    /// and receives the events of both as of one path. Returns its number; none if there have been 255, closed ones included.
    pub fn add_subflow(&mut self, law: Option<L>, now: Time) -> Option<u8> {
        let number = u8::try_from(self.subflows.len()).ok().filter(|_| self.subflows.len() < MAX_SUBFLOWS)?;
        let of = match law {
            None => 0,
            Some(law) => {
                self.groups.push(LawGroup::new(&self.config, law, now));
                (self.groups.len() - 1) as u8
            }
        };
        self.subflows.push(SubflowState::new(&self.config, of, now));
        self.report_min_mss(of);
        debug_assert_eq!(self.subflows(), number + 1, "a subflow's number is its index");
        Some(number)
    }

    /// A subflow and its law.
    fn parts(&mut self, subflow: u8) -> (&mut SubflowState<W::Content>, &mut LawGroup<L>) {
        let state = &mut self.subflows[usize::from(subflow)];
        let group = &mut self.groups[usize::from(state.law)];
        (state, group)
    }

    fn law_state(&self, subflow: u8) -> &LawState<L> {
        &self.groups[usize::from(self.subflows[usize::from(subflow)].law)].law_state
    }

    /// Closes a subflow: nothing is sent on it any more, and its content in flight is returned to the work. Its packet
    /// numbers stay known. Its law is not notified of timeouts that are still unreported: the state of an abandoned path does
    /// not apply to another.
    pub fn close_subflow(&mut self, subflow: u8) {
        let state = &mut self.subflows[usize::from(subflow)];
        let law_state = &mut self.groups[usize::from(state.law)].law_state;
        state.open = false;
        state.timeouts = TimeoutState::default();
        while let Some((number, _)) = state.out.oldest() {
            if let Some(record) = state.out.take(law_state, number) {
                self.work.lost(record.content, ReturnReason::Closed);
            }
        }
        // A late acknowledgement carries no information about later packets.
        state.out.sent_packets.forget_sent_before(Time::NEVER);
        debug_assert_eq!(state.out.sent_packets.len(), 0, "a closed subflow still has packet records");
        let law = state.law;
        self.report_min_mss(law);
    }

    /// Permits or forbids packets of the work on a subflow. Packets in flight stay in flight, and packets outside of
    /// the work may still be sent.
    pub fn set_data_sending(&mut self, subflow: u8, sending: DataSending) {
        debug_assert!(subflow < self.subflows(), "subflow {subflow} of {}", self.subflows());
        let state = &mut self.subflows[usize::from(subflow)];
        state.open = sending == DataSending::Allowed;
        let law = state.law;
        self.report_min_mss(law);
    }

    /// Resets a subflow, with this law, or with its current one: its content in flight is returned to the work, and its
    /// RTT estimate is discarded. A law that also decides for other open subflows must not be replaced.
    pub fn reset_subflow(&mut self, subflow: u8, law: Option<L>, numbers: PacketNumbers, now: Time) {
        let of = self.subflows[usize::from(subflow)].law;
        let mut others =
            self.subflows.iter().enumerate().filter(|&(at, state)| at != usize::from(subflow) && state.law == of);
        debug_assert!(
            law.is_none() || others.all(|(_, state)| !state.open),
            "a law that other subflows use is replaced"
        );
        self.close_subflow(subflow);
        let config = self.config;
        let (state, group) = self.parts(subflow);
        let new = SubflowState::new(&config, state.law, now);
        match numbers {
            PacketNumbers::Restart => *state = new,
            PacketNumbers::Continue => {
                let SubflowState { out, ack_validator, .. } = core::mem::replace(state, new);
                (state.out, state.ack_validator) = (out, ack_validator);
                state.out.reset(&config.timing);
                state.ack_validator.reset();
            }
        }
        let of = state.law;
        let Some(law) = law else { return self.report_min_mss(of) };
        match numbers {
            PacketNumbers::Restart => *group = LawGroup::new(&config, law, now),
            PacketNumbers::Continue => group.reset(&config, law, now),
        }
    }

    /// Moves the law of another subflow to one on which no packet of the work has been sent yet. The count of delivered
    /// payload continues from the value reported to that law, because laws count round trips by it.
    pub fn adopt(&mut self, subflow: u8, moved: MovedLaw<L>, now: Time) {
        let MovedLaw { law, delivered } = moved;
        self.reset_subflow(subflow, Some(law), PacketNumbers::Continue, now);
        let (state, group) = self.parts(subflow);
        debug_assert_eq!(state.out.sent_packets.len(), 0, "a packet counts from before");
        group.law_state.delivered = delivered;
        // An earlier report to the law was for another path's packets.
        group.mss = None;
    }

    /// Returns the delivered payload as reported to a subflow's law.
    pub fn delivered(&self, subflow: u8) -> Bytes {
        self.law_state(subflow).delivered
    }

    /// Sets the payload of a full packet of a subflow, 1 to 65,535 bytes: its path MTU has changed.
    pub fn set_mss(&mut self, subflow: u8, mss: u32) {
        debug_assert!((1..1 << 16).contains(&mss), "an MSS of {mss} bytes");
        let state = &mut self.subflows[usize::from(subflow)];
        state.mss = mss;
        let law = state.law;
        self.report_min_mss(law);
    }

    /// Notifies a law of the smallest MSS of its subflows, if it has changed: of the open ones, or of all if none is
    /// open.
    fn report_min_mss(&mut self, law: u8) {
        let min_mss = |of: fn(&SubflowState<W::Content>) -> bool| {
            let mine = self.subflows.iter().filter(|state| state.law == law && of(state));
            mine.map(|state| state.mss).min()
        };
        let Some(least) = min_mss(|state| state.open).or_else(|| min_mss(|_| true)) else { return };
        let (rate_change, pacing) = (self.rate_change, self.config.pacing);
        let group = &mut self.groups[usize::from(law)];
        if group.mss.replace(least) != Some(least) {
            group.law_state.law.on_notification(&Notification::Mss(Bytes::new(least.into())));
            group.law_state.read_permit(rate_change, &pacing);
        }
    }

    /// Returns the work that the channel carries.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// Returns the work that the channel carries, for adding more data.
    pub fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    /// Returns the work of a channel that sends nothing more.
    pub fn into_work(self) -> W {
        self.work
    }

    /// Counters so far.
    pub fn stats(&self) -> &ChannelStats {
        &self.stats
    }

    /// Returns the number of subflows, closed ones included.
    pub fn subflows(&self) -> u8 {
        self.subflows.len() as u8
    }

    /// The law of a subflow.
    pub fn law(&self, subflow: u8) -> &L {
        &self.law_state(subflow).law
    }

    /// Returns the last permit of a subflow's law, and the payload in flight under it.
    pub fn state(&self, subflow: u8) -> (SendLimits, Bytes) {
        let law_state = self.law_state(subflow);
        (law_state.send_limits, law_state.in_flight)
    }

    /// Returns the action counts of all laws together.
    pub fn actions(&self) -> LawActions {
        let mut actions = LawActions::default();
        self.groups.iter().for_each(|group| actions.add(&group.law_state.law.actions()));
        actions
    }

    /// Returns the last permits of all laws together, those of closed subflows included.
    pub fn send_limits(&self) -> SendLimits {
        combined_limits(self.groups.iter().map(|group| group.law_state.send_limits))
    }

    /// Payload in flight on all subflows.
    pub fn in_flight(&self) -> Bytes {
        self.groups.iter().fold(Bytes::ZERO, |sum, group| sum + group.law_state.in_flight)
    }

    /// Returns the number of packet records on all subflows.
    pub fn remembered(&self) -> u64 {
        self.subflows.iter().map(|state| state.out.sent_packets.len()).sum()
    }

    /// The smoothed round trip of a subflow.
    pub fn smoothed_rtt(&self, subflow: u8) -> Span {
        self.subflows[usize::from(subflow)].out.smoothed_rtt()
    }

    /// Returns the time that a subflow waits for an acknowledgement before its timer expires.
    pub fn timeout(&self, subflow: u8) -> Span {
        self.subflows[usize::from(subflow)].out.timeout(&self.config.timing)
    }

    /// Returns the total time that On-Ramp has held a subflow, whether there was something to send or not, the current
    /// hold included.
    pub fn held(&self, subflow: u8) -> Span {
        self.subflows[usize::from(subflow)].on_ramp.as_ref().map_or(Span::ZERO, OnRampPath::held)
    }

    /// Returns the time at which a subflow's timer first expired since the last newly acknowledged packet; `None` if it
    /// has not.
    pub fn first_timeout_at(&self, subflow: u8) -> Option<Time> {
        self.subflows[usize::from(subflow)].timeouts.first_at()
    }

    /// Returns the number of consecutive timer expirations of a subflow since the last newly acknowledged packet
    /// (`pto_count`).
    pub fn pto_count(&self, subflow: u8) -> u8 {
        self.subflows[usize::from(subflow)].timeouts.count()
    }

    /// Returns whether a subflow's peer sees the codepoints that packets are sent with. If not, marks are unknown.
    pub fn ecn_works(&self, subflow: u8) -> bool {
        self.subflows[usize::from(subflow)].ack_validator.ecn_works()
    }

    /// Returns whether a packet may be sent at `now`.
    pub fn poll(&mut self, now: Time) -> SendState {
        self.choose(now).map_or_else(|state| state, |_| SendState::Now)
    }

    /// Returns the subflow that sends next at `now`, in round-robin order.
    ///
    /// # Errors
    /// The time at which a subflow may send, if none may send now.
    pub fn choose(&mut self, now: Time) -> Result<u8, SendState> {
        let Self { subflows, groups, turn, work, config, .. } = self;
        for state in subflows.iter_mut() {
            config.free_records(&mut state.out);
        }
        in_turn(subflows.len() as u8, *turn, None, |subflow| {
            let state = &subflows[usize::from(subflow)];
            state.poll(now, config, &groups[usize::from(state.law)].law_state, work)
        })
    }

    /// Sends the packet that [`Channel::poll`] allows; none if it allows none.
    pub fn send(&mut self, now: Time) -> Option<OutgoingPacket<W::Content>> {
        let chosen = self.choose(now).ok()?;
        Some(self.send_chosen(now, chosen))
    }

    /// Sends a packet on this subflow, regardless of the round-robin order; none if none may be sent there now.
    pub fn send_on(&mut self, now: Time, subflow: u8) -> Option<OutgoingPacket<W::Content>> {
        let Self { subflows, groups, work, config, .. } = self;
        let state = &mut subflows[usize::from(subflow)];
        config.free_records(&mut state.out);
        let permission = state.poll(now, config, &groups[usize::from(state.law)].law_state, work);
        (permission == SendState::Now).then(|| self.send_chosen(now, subflow))
    }

    fn send_chosen(&mut self, now: Time, chosen: u8) -> OutgoingPacket<W::Content> {
        let parcel = self.work.take(chosen, self.subflows[usize::from(chosen)].mss);
        let PacketContent { bytes, content, is_retransmission: again } = parcel;
        debug_assert!(bytes <= self.subflows[usize::from(chosen)].mss, "a packet of {bytes} bytes exceeds its MSS");
        debug_assert!(self.subflows[usize::from(chosen)].open, "a closed subflow sends");
        // A sender that retransmits was waiting for an acknowledgement, and was not idle.
        if !again {
            self.resume(now, chosen);
        }
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += Bytes::new(bytes.into());
        self.stats.retransmits += u64::from(again);
        self.turn = if chosen + 1 < self.subflows() { chosen + 1 } else { 0 };
        let pacing = self.config.pacing;
        let (state, group) = self.parts(chosen);
        state.timeouts.sent();
        let attempt = 1 + u8::from(again);
        let number = state.out.sent(&mut group.law_state, Transmission { now, bytes, content, attempt, path: 0 });
        if let Some(on_ramp) = &mut state.on_ramp {
            on_ramp.sent(now, number, state.out.sent_packets.first());
        }
        group.law_state.pacer.on_sent(now, group.law_state.send_limits.pacing, bytes, &pacing);
        let resent = if again { Bytes::new(bytes.into()) } else { Bytes::ZERO };
        group.usage.sent(now, resent);
        let then = self.poll(now);
        let timing = self.config.timing;
        let (state, group) = self.parts(chosen);
        group.usage.note_limits(now, &group.law_state, state.mss);
        if then != SendState::Now {
            let timeout = state.out.timeout(&timing);
            if let Some(notification) = group.usage.after_burst(now, &group.law_state, state.mss, timeout) {
                self.notify(chosen, &notification);
            }
        }
        let ran_out = then == SendState::Blocked && self.work.next_bytes(self.config.mss).is_none();
        let ran_out = ran_out.then(|| if self.work.is_host_limited() { Lack::Room } else { Lack::Data });
        let chosen_law = self.subflows[usize::from(chosen)].law;
        for (law, group) in self.groups.iter_mut().enumerate() {
            group.ran_out = ran_out;
            let Some(lack) = ran_out else { continue };
            if !group.law_state.run_out(lack) {
                continue;
            }
            group.usage.note_lack();
            if law == usize::from(chosen_law) {
                self.subflows[usize::from(chosen)].out.mark_limited(number, &group.law_state);
            }
        }
        OutgoingPacket { subflow: chosen, number, parcel, then }
    }

    /// Prepares to send new data on a subflow: a law with nothing in flight is notified that sending resumes and of an
    /// idle period, if any.
    fn resume(&mut self, now: Time, subflow: u8) {
        let timing = self.config.timing;
        let (state, group) = self.parts(subflow);
        if !group.law_state.in_flight.is_zero() {
            return;
        }
        let (idle, ran_out) = (group.usage.before_sending(now, state.out.timeout(&timing)), group.ran_out);
        if let Some(lack) = ran_out {
            // The last packet may have filled the window, which has been empty since.
            group.law_state.run_out(lack);
            self.notify(subflow, &Notification::Resumed { now });
        }
        if let Some(idle) = idle {
            self.notify(subflow, &idle);
        }
    }

    /// Returns the number of a packet that is sent on a subflow outside of the work: an acknowledgement, or another
    /// that no window counts. None if too much is outstanding for any packet to be sent.
    pub fn number_apart(&mut self, subflow: u8, now: Time) -> Option<u64> {
        let out = &mut self.subflows[usize::from(subflow)].out;
        self.config.free_records(out);
        debug_assert!(out.sent_packets.len() <= self.config.max_outstanding, "{} records", out.sent_packets.len());
        self.config.has_free_records(out).then(|| out.on_sent_uncounted(now, W::Content::default()))
    }

    /// Skips the next number of a subflow, and returns it as [`Channel::number_apart`] does. A peer that acknowledges
    /// it acknowledges a packet that did not arrive. The last number that was skipped is kept.
    pub fn skip_number(&mut self, subflow: u8, now: Time) -> Option<u64> {
        let number = self.number_apart(subflow, now)?;
        let state = &mut self.subflows[usize::from(subflow)];
        debug_assert_eq!(number + 1, state.out.sent_packets.end(), "only the newest packet number can be skipped");
        state.ack_validator.skip(number);
        Some(number)
    }

    /// Processes a peer's acknowledgement for a subflow.
    ///
    /// # Errors
    /// If it cannot be true. Then nothing has changed.
    pub fn acked(&mut self, now: Time, subflow: u8, acks: &AckRanges) -> Result<Acked, AckError> {
        let subflows = self.subflows();
        let Some(state) = self.subflows.get_mut(usize::from(subflow)) else {
            return Err(AckError::NoSubflow { subflow, subflows });
        };
        let law_state = &mut self.groups[usize::from(state.law)].law_state;
        state.ack_validator.check(acks, state.out.sent_packets.end())?;
        let timed = one_way(&state.out, acks);
        if let (Some(on_ramp), Some((number, delay))) = (&mut state.on_ramp, timed) {
            on_ramp.on_ack(now, number, delay);
        }
        let mut taken = Acked { one_way: timed.map(|(_, delay)| delay), ..Acked::default() };
        let mut newest: Option<(u64, SentPacket<W::Content>)> = None;
        let (mut late, mut overtaken) = (0, 0);
        for range in acks.ranges {
            for number in range.first.max(state.out.sent_packets.first())..range.last.saturating_add(1) {
                let Some(record) = state.out.take(law_state, number) else { continue };
                if record.state() == State::Lost {
                    late += 1;
                    overtaken += u64::from(!state.timeouts.on_late_ack(number, record.bytes()));
                }
                taken.packets += 1;
                taken.bytes += record.bytes();
                if newest.is_none_or(|(highest, _)| highest < number) {
                    newest = Some((number, record));
                }
                self.work.acked(record.content);
            }
        }
        debug_assert!(late <= taken.packets && overtaken <= late, "{overtaken} of {late} of {}", taken.packets);
        let marks = state.ack_validator.take(acks, taken.packets);
        let Some((number, record)) = newest else { return Ok(taken) };
        taken.marked = marked_share(taken.bytes, taken.packets, marks);
        let timeout_state::AckEffect { ends_timeout, over } = state.timeouts.on_ack(number);
        // Regardless of the window, a packet must be sent: its acknowledgement shows which of the others arrived.
        if ends_timeout && state.timeouts.unresolved_bytes().is_some() && state.out.oldest().is_none() {
            state.timeouts.probe();
        }
        self.stats.spurious += late;
        self.stats.marked += taken.marked;
        // Only the newest packet of all has a receiver delay and yields an RTT sample.
        let measures = acks.ranges.first().is_some_and(|range| range.last == number);
        let rtt = now.since(record.sent_at);
        let noise =
            if measures { Span::ZERO - state.ack_validator.ack_delay_correction(rtt, acks.delay) } else { Span::ZERO };
        let acked_transmission = if measures { AckedTransmission::Latest } else { AckedTransmission::OtherPacket };
        taken.rtt = measures.then_some(rtt + noise);
        let Acked { bytes: acked, marked, .. } = taken;
        if !marked.is_zero() {
            self.before_reduction(now, subflow, record.sent_at, acked);
        }
        let ChannelConfig { timing, pacing, .. } = self.config;
        let left = self.work.bytes_remaining().map_or(Bytes::MAX, Bytes::new);
        let rate_change = self.rate_change;
        let (state, group) = self.parts(subflow);
        let LawGroup { law_state, usage, .. } = group;
        let limited = !usage.before_ack(now, record.sent_at, law_state.send_limits.window, state.mss);
        let unfilled = usage.is_unlimited_since(record.sent_at);
        let batch = Batch {
            number,
            record,
            acked_transmission,
            acked,
            marked,
            bytes_remaining: left,
            noise,
            limited,
            unfilled,
            hops: &[],
        };
        let law_ack = state.out.acked(law_state, now, &batch);
        // No number is used twice, so packets sent well before this one were overtaken.
        state.out.arrived(record.sent_at);
        if overtaken > 0 {
            state.out.widen_reordering_window(&timing);
        }
        law_state.read_permit(rate_change, &pacing);
        let (delivered, rtt) = (law_ack.delivered - law_ack.delivered_at_send, state.out.smoothed_rtt());
        let (window, mss) = (law_state.send_limits.window, state.mss);
        let sample = PipeSample { now, sent_at: law_ack.sent_at, delivered, rtt, window, mss };
        if let Some(notification) = usage.acked(&sample) {
            self.notify(subflow, &notification);
        }
        if let Some(range) = over {
            self.settle(now, subflow, &range);
        }
        self.lose_while(now, subflow, LossCause::Reordered, Outstanding::next_rack_loss);
        self.forget_done(now, subflow);
        Ok(taken)
    }

    /// Notifies a subflow's law of payload that timeouts declared lost and that has not arrived. If some of it arrived,
    /// the path was not dead: these are ordinary losses.
    fn settle(&mut self, now: Time, subflow: u8, range: &TimedOutRange) {
        let ChannelConfig { pacing, law_sees_timeouts, .. } = self.config;
        let state = &self.subflows[usize::from(subflow)];
        let Range { first, last } = range.numbers;
        // Packets without a record are not counted.
        let (mut lost, mut sent_at) = (Bytes::ZERO, Time::ZERO);
        for number in first.max(state.out.sent_packets.first())..=last {
            let record = state.out.sent_packets.get(number);
            if record.state() == State::Lost {
                lost += record.bytes();
                sent_at = record.sent_at;
            }
        }
        let lost = lost.min(range.unresolved_bytes());
        if lost.is_zero() || !law_sees_timeouts {
            return;
        }
        let cause = if range.acked.is_zero() { LossCause::Timeout } else { LossCause::Reordered };
        if cause != LossCause::Timeout {
            self.before_reduction(now, subflow, sent_at, lost);
        }
        let rate_change = self.rate_change;
        let law_state = &mut self.parts(subflow).1.law_state;
        law_state.law.on_loss(&Loss { now, sent_at, lost, in_flight: law_state.in_flight, cause });
        law_state.read_permit(rate_change, &pacing);
    }

    /// Declares packets in flight on a subflow lost while `next` returns one, and notifies the law. A timeout with
    /// probes only begins a [`TimedOutRange`]; [`Channel::settle`] notifies the law.
    fn lose_while(
        &mut self,
        now: Time,
        subflow: u8,
        cause: LossCause,
        next: impl Fn(&mut Outstanding<W::Content>) -> Option<u64>,
    ) {
        let ChannelConfig { timing, pacing, law_sees_timeouts, .. } = self.config;
        let rate_change = self.rate_change;
        let state = &mut self.subflows[usize::from(subflow)];
        let law_state = &mut self.groups[usize::from(state.law)].law_state;
        let mut numbers: Option<Range> = None;
        while let Some(number) = next(&mut state.out) {
            let record = state.out.lose(law_state, number);
            numbers = Some(Range { first: numbers.map_or(number, |range| range.first), last: number });
            self.stats.lost += 1;
            self.work.lost(record.content, ReturnReason::Lost { subflow, number, cause });
        }
        let (lost, sent_at) = state.out.unreported_losses();
        let is_timeout = cause == LossCause::Timeout;
        let waits = is_timeout && timing.loss_timer == LossTimer::Probe;
        let numbers = numbers.filter(|_| waits);
        if let Some(before) = numbers.and_then(|numbers| state.timeouts.take(numbers, lost)) {
            self.settle(now, subflow, &before);
        }
        if !lost.is_zero() && !is_timeout {
            self.before_reduction(now, subflow, sent_at, lost);
        }
        let notify = if !is_timeout || (law_sees_timeouts && !waits) { NotifyLaw::Yes } else { NotifyLaw::No };
        let (state, LawGroup { law_state, .. }) = self.parts(subflow);
        if !state.out.report_losses(law_state, now, cause, notify).is_zero() {
            law_state.read_permit(rate_change, &pacing);
        }
    }

    /// Prepares the law for losses or marks of packets sent at `sent_at` and later that are no longer in flight.
    fn before_reduction(&mut self, now: Time, subflow: u8, sent_at: Time, removed: Bytes) {
        let (state, LawGroup { law_state, usage, .. }) = self.parts(subflow);
        let (window, flight) = (law_state.send_limits.window, law_state.in_flight + removed);
        if let Some(notification) = usage.before_reduction(now, sent_at, flight, window, state.mss) {
            self.notify(subflow, &notification);
        }
    }

    /// Forgets records that are done. Lost packets are kept for two timeouts more: they may arrive late, and then show
    /// how much reordering there is; packets that timeouts declared lost are kept until it is known whether they
    /// arrived.
    fn forget_done(&mut self, now: Time, subflow: u8) {
        let SubflowState { out, timeouts, .. } = &mut self.subflows[usize::from(subflow)];
        if timeouts.unresolved_bytes().is_some() {
            return;
        }
        let timeout = out.timeout(&self.config.timing);
        out.sent_packets.forget_sent_before(now.saturating_sub(timeout.times(2)));
    }

    /// Returns the next time at which [`Channel::on_timer`] must be called. It moves with every acknowledgement.
    pub fn next_timer(&mut self) -> Time {
        let timing = &self.config.timing;
        let timers = self.subflows.iter_mut().map(|state| state.out.deadline(timing));
        let laws = self.groups.iter().map(|group| group.law_state.law.next_timer());
        timers.chain(laws).min().unwrap_or(Time::NEVER)
    }

    /// Handles the expiry of [`Channel::next_timer`].
    pub fn on_timer(&mut self, now: Time) {
        debug_assert!(self.groups.len() <= self.subflows.len(), "a law without a subflow");
        for LawGroup { law_state, .. } in &mut self.groups {
            if law_state.law.next_timer() <= now {
                law_state.law.on_timer(now);
                law_state.read_permit(self.rate_change, &self.config.pacing);
            }
        }
        for subflow in 0..self.subflows() {
            if self.subflows[usize::from(subflow)].out.deadline(&self.config.timing) <= now {
                self.on_deadline(now, subflow);
                self.forget_done(now, subflow);
            }
        }
    }

    /// Handles the loss deadline of a subflow: its oldest packet is lost, or its timeout has expired.
    fn on_deadline(&mut self, now: Time, subflow: u8) {
        let timing = self.config.timing;
        if timing.loss_timer != LossTimer::Packet {
            self.lose_while(now, subflow, LossCause::Reordered, |out| {
                out.next_expired(now, LossEvidence::LaterArrival, &timing)
            });
            if !self.subflows[usize::from(subflow)].out.rto_expired(now, &timing) {
                return;
            }
        }
        let state = &mut self.subflows[usize::from(subflow)];
        state.out.back_off();
        let probes_still = state.timeouts.expire(now);
        if probes_still && timing.loss_timer == LossTimer::Probe {
            self.stats.probes += 1;
            // If there is nothing new to send, the oldest content is sent again. Its packet stays in flight.
            if self.work.next_bytes(state.mss).is_none()
                && let Some((number, _)) = state.out.oldest()
            {
                self.work.lost(state.out.sent_packets.get(number).content, ReturnReason::Probe);
            }
            self.probe(subflow);
        } else {
            self.stats.timeouts += 1;
            self.lose_while(now, subflow, LossCause::Timeout, |out| {
                out.next_expired(now, LossEvidence::Timeout, &timing)
            });
            if self.subflows[usize::from(subflow)].timeouts.unresolved_bytes().is_some() {
                self.probe(subflow);
            }
        }
    }

    /// Permits one more packet on a subflow; if there is nothing to send, requests a probe from the work.
    fn probe(&mut self, subflow: u8) {
        let state = &mut self.subflows[usize::from(subflow)];
        state.timeouts.probe();
        if self.work.next_bytes(state.mss).is_none() {
            self.work.probe();
        }
    }

    /// Processes a signal for a subflow's law.
    pub fn notify(&mut self, subflow: u8, notification: &Notification) {
        debug_assert!(subflow < self.subflows(), "subflow {subflow} of {}", self.subflows());
        let (rate_change, pacing) = (self.rate_change, self.config.pacing);
        let (state, LawGroup { law_state, .. }) = self.parts(subflow);
        law_state.notify(notification, state.out.smoothed_rtt());
        law_state.read_permit(rate_change, &pacing);
    }
}

/// Returns the newest packet that has a time stamp and a record, and its one-way delay. The time stamp of a packet that
/// the acknowledgement does not cover, or that was never sent, is ignored.
fn one_way<C: Copy>(out: &Outstanding<C>, acks: &AckRanges) -> Option<(u64, Span)> {
    let known = |&&(number, _): &&(u64, Time)| {
        number >= out.sent_packets.first() && acks.ranges.iter().any(|range| range.contains(number))
    };
    let &(number, received_at) = acks.received.iter().filter(known).max_by_key(|stamp| stamp.0)?;
    let one_way_delay = received_at.ps().wrapping_sub(out.sent_packets.get(number).sent_at.ps()).cast_signed();
    Some((number, Span::from_ps(one_way_delay)))
}
