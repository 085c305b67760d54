//! Packets in flight on a path: their send times, loss detection, and the events for the law ([`LawState`]).
//!
//! A packet is lost once one sent `reordering` later has been acknowledged (RACK, RFC 8985, without its probe), or,
//! when a timer expires, one sent later at all. Packets are kept in the order in which they were sent, so the oldest
//! one in flight is found by walking on. With [`LossTimer::Packet`] each packet has a timer of its own instead, of a
//! fixed length from its send time.
//!
//! Each packet carries a content. It is kept and returned, and has no meaning here.

use alloc::format;
use alloc::string::String;
use core::mem;

use laws::{Ack, ControlLaw, Cookie, Hop, Loss, LossCause, Sent};
use units::{Bytes, Span, Time};

use crate::law_state::LawState;
use crate::rtt::RttEstimator;
use crate::sent_packets::{SentPacket, SentPackets, State, Transmission};

/// Start of a retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LossTimer {
    /// One timer for the flow. It starts again with each acknowledgement, follows the round trips and backs off
    /// (RFC 6298).
    Flow,
    /// One timer for each packet. It expires [`crate::FlowConfig::rto_min`] after the packet was sent, and declares
    /// only that packet lost. It follows no estimate and does not back off (as in htsim).
    Packet,
    /// [`LossTimer::Flow`] with probes (RFC 8985 §7, RFC 9002 §6.2): at the first two consecutive expirations nothing is
    /// lost, and one more packet may be sent. Its acknowledgement shows which packets are missing, without a timeout's cut.
    /// In addition, packets sent before an acknowledged one are lost once they are a round trip and the reordering window
    /// old, though no acknowledgement arrives then (RFC 8985 §6.2, step 5). A [`crate::Sender`] without coding approximates the
    /// probes: it sends the oldest packet again, if the window has room for it.
    Probe,
}

/// The transmission that an acknowledgement acknowledges, relative to the newest packet that it newly acknowledges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckedTransmission {
    /// The newest packet's last transmission.
    Latest,
    /// An earlier transmission of it.
    Earlier,
    /// The acknowledgement's own packet is not the newest one.
    OtherPacket,
}

/// Report of losses to the law, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotifyLaw {
    /// The law is notified.
    Yes,
    /// The losses are dropped without a notification.
    No,
}

/// Evidence of loss of a packet after its timer has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LossEvidence {
    /// A packet that was sent later has arrived, so time alone proves the older one lost.
    LaterArrival,
    /// The retransmission timeout alone.
    Timeout,
}

/// Packets newly acknowledged by one acknowledgement, or several at once.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a, C> {
    /// Number and record of the newest packet among them.
    pub(crate) number: u64,
    pub(crate) record: SentPacket<C>,
    pub(crate) acked_transmission: AckedTransmission,
    /// Payload of all packets.
    pub(crate) acked: Bytes,
    /// ECN-marked part of `acked`.
    pub(crate) marked: Bytes,
    /// Bytes of the flow that remain after this batch, as reported to the law ([`Ack::bytes_remaining`]).
    pub(crate) bytes_remaining: Bytes,
    /// Difference between the RTT reported to the law and the true RTT; negative where the receiver's delay is
    /// subtracted.
    pub(crate) noise: Span,
    /// The flow was limited by something other than the law's window.
    pub(crate) limited: bool,
    /// The window never filled since the newest packet was sent, nor did the pacer delay packets, although there was always
    /// something to send: the host was slower, or the flow ended first.
    pub(crate) unfilled: bool,
    /// In-band telemetry of the ports that the newest packet passed.
    pub(crate) hops: &'a [Hop],
}

/// Loss detection parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Round trip with empty queues: the estimator's start.
    pub base_rtt: Span,
    /// Reordering window: how much later than a missing packet an acknowledged one must have been sent to prove it
    /// lost.
    pub reordering: Span,
    /// Lower bound of the retransmission timeout; with [`LossTimer::Packet`] the timeout itself.
    pub rto_min: Span,
    /// Upper bound of the retransmission timeout.
    pub rto_max: Span,
    /// Start of a retransmission timeout.
    pub loss_timer: LossTimer,
}

/// Packets in flight, each with a content `C`.
#[derive(Debug)]
pub(crate) struct Outstanding<C> {
    /// Last time at which something was acknowledged.
    last_ack_at: Time,
    pub(crate) sent_packets: SentPackets<C>,
    /// No packet below is in flight.
    oldest: u64,
    /// Lower bound of the send times in flight.
    oldest_sent_at: Time,
    /// Send time of the newest packet that is known to have arrived.
    newest_arrived: Time,
    rtt: RttEstimator,
    /// Reordering window: how much later than a missing packet an acknowledged one must have been sent to prove it
    /// lost.
    reordering: Span,
    /// Payload declared lost and not yet reported to the law.
    lost: Bytes,
    /// Send time of the newest packet in `lost`.
    lost_sent_at: Time,
}

impl<C: Copy> Outstanding<C> {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            last_ack_at: Time::ZERO,
            sent_packets: SentPackets::new(),
            oldest: 0,
            oldest_sent_at: Time::ZERO,
            newest_arrived: Time::ZERO,
            rtt: RttEstimator::new(timing.base_rtt, timing.rto_min, timing.rto_max),
            reordering: timing.reordering,
            lost: Bytes::ZERO,
            lost_sent_at: Time::ZERO,
        }
    }

    /// Resets all state except packet numbers and what late acknowledgements refer to. Nothing may be in flight.
    pub(crate) fn reset(&mut self, timing: &Timing) {
        debug_assert_eq!(self.oldest(), None, "a packet is in flight on a subflow that is reset");
        let sent_packets = mem::replace(&mut self.sent_packets, SentPackets::new());
        let Self { last_ack_at, oldest, .. } = *self;
        *self = Self { last_ack_at, sent_packets, oldest, ..Self::new(timing) };
    }

    /// Records a transmission under `law_state`. Returns its packet number.
    #[inline(always)]
    pub(crate) fn sent<L: ControlLaw>(&mut self, law_state: &mut LawState<L>, departure: Transmission<C>) -> u64 {
        let now = departure.now;
        let size = Bytes::new(departure.bytes.into());
        if law_state.in_flight.is_zero() {
            law_state.flight_began = now;
            law_state.delivered_time = now;
        }
        let elapsed = now.since(law_state.flight_began);
        let mut record = SentPacket::new(departure, law_state.delivered, law_state.delivered_time, elapsed);
        record.set_sample_limit(law_state.lack());
        debug_assert!(now >= self.oldest_sent_at, "a packet leaves at {now:?}, before one that left already");
        debug_assert!(self.oldest <= self.sent_packets.end(), "packet {} is unsent and not in flight", self.oldest);
        let number = self.sent_packets.push(record);
        law_state.in_flight += size;
        let retransmission = departure.attempt != 1;
        let sent = Sent { now, bytes: size, in_flight: law_state.in_flight, retransmission };
        let cookie = law_state.law.on_sent(&sent);
        self.sent_packets.set_cookie(cookie);
        number
    }

    /// Uses a number for a packet that no window counts and no timer covers. Returns it. `content` is never returned.
    pub(crate) fn on_sent_uncounted(&mut self, now: Time, content: C) -> u64 {
        let nothing = Transmission { now, bytes: 0, content, attempt: 0, path: 0 };
        let mut record = SentPacket::new(nothing, Bytes::ZERO, now, Span::ZERO);
        record.become_state(State::Done);
        debug_assert!(now >= self.oldest_sent_at, "a packet leaves at {now:?}, before one that left already");
        let number = self.sent_packets.push(record);
        self.sent_packets.set_cookie(Cookie::NONE);
        // A sender of acknowledgements alone has nothing in flight, and keeps no records.
        self.sent_packets.trim();
        number
    }

    /// Marks a packet that was sent while there was less to send under `law_state` than its law permitted.
    pub(crate) fn mark_limited<L>(&mut self, number: u64, law_state: &LawState<L>) {
        debug_assert_eq!(number + 1, self.sent_packets.end(), "only the packet sent last can end a burst");
        let record = self.sent_packets.get_mut(number);
        record.mark_app_limited();
        record.set_sample_limit(law_state.lack());
    }

    /// Removes a packet from flight, because its content is known to have arrived. Returns its previous record, unless
    /// that is done already.
    #[inline(always)]
    pub(crate) fn take<L>(&mut self, law_state: &mut LawState<L>, number: u64) -> Option<SentPacket<C>> {
        let record = self.sent_packets.get_mut(number);
        let was = *record;
        if was.state() == State::Done {
            return None;
        }
        record.become_state(State::Done);
        if was.is_in_flight() {
            law_state.leave_flight(was.bytes());
        }
        Some(was)
    }

    /// Reports newly acknowledged packets to the law.
    #[inline(always)]
    pub(crate) fn acked<'a, L: ControlLaw>(
        &mut self,
        law_state: &mut LawState<L>,
        now: Time,
        batch: &Batch<'a, C>,
    ) -> Ack<'a> {
        let Batch {
            number,
            record,
            acked_transmission,
            acked,
            marked,
            bytes_remaining: left,
            noise,
            limited,
            unfilled,
            hops,
        } = *batch;
        debug_assert!(
            now >= self.last_ack_at,
            "an acknowledgement at {now:?} is processed after one at {:?}",
            self.last_ack_at
        );
        debug_assert!(
            number < self.sent_packets.end() && marked <= acked,
            "{marked:?} of {acked:?} up to packet {number}"
        );
        law_state.deliver(acked);
        self.rtt.reset_backoff();
        // Only the transmission that the acknowledgement acknowledges yields an RTT sample.
        let rtt = if acked_transmission == AckedTransmission::Latest {
            now.since(record.sent_at)
        } else {
            self.rtt.smoothed()
        };
        let sent_at = now - rtt;
        if acked_transmission == AckedTransmission::Latest {
            self.rtt.sample(rtt);
            law_state.flight_began = law_state.flight_began.max(sent_at);
            self.newest_arrived = self.newest_arrived.max(sent_at);
        }
        let ack = Ack {
            now,
            sent_at,
            rtt: rtt + noise,
            acked,
            marked: if now < law_state.marked_until { acked } else { marked },
            in_flight: law_state.in_flight,
            delivered: law_state.delivered,
            bytes_remaining: left,
            delivered_at_send: record.delivered(law_state.delivered),
            delivered_time_at_send: record.delivered_time(),
            send_elapsed: record.send_elapsed(),
            app_limited: record.is_app_limited() || limited || unfilled,
            sample_limited: record.is_sample_limited(),
            cookie: self.sent_packets.cookie(number),
            hops,
        };
        law_state.law.on_ack(&ack);
        (law_state.delivered_time, self.last_ack_at) = (now, now);
        ack
    }

    /// Checks that packets are in sending order and that none is in flight below the oldest one. Returns the payload in
    /// flight.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub(crate) fn check(&self) -> Result<Bytes, String> {
        let (mut in_flight, mut left) = (Bytes::ZERO, Time::ZERO);
        for number in self.sent_packets.first()..self.sent_packets.end() {
            let record = self.sent_packets.get(number);
            if record.sent_at < left {
                return Err(format!("packet {number} has an earlier send time than its predecessor"));
            }
            left = record.sent_at;
            if record.is_in_flight() {
                in_flight += record.bytes();
                if number < self.oldest || record.sent_at < self.oldest_sent_at {
                    let from = (self.oldest, self.oldest_sent_at);
                    return Err(format!("packet {number} is in flight; none sent before {from:?} may be"));
                }
            }
        }
        Ok(in_flight)
    }

    /// Returns the oldest packet in flight, and its send time.
    #[inline(always)]
    pub(crate) fn oldest(&mut self) -> Option<(u64, Time)> {
        self.oldest = self.oldest.max(self.sent_packets.first());
        while self.oldest < self.sent_packets.end() {
            let record = self.sent_packets.get(self.oldest);
            if record.is_in_flight() {
                return Some((self.oldest, record.sent_at));
            }
            self.oldest += 1;
        }
        None
    }

    /// Returns the oldest packet in flight, if it was sent early enough to have been overtaken.
    #[inline(always)]
    pub(crate) fn next_rack_loss(&mut self) -> Option<u64> {
        // The bound that was found last time mostly suffices.
        if self.oldest_sent_at + self.reordering < self.newest_arrived { self.find_rack_loss() } else { None }
    }

    #[inline(never)]
    fn find_rack_loss(&mut self) -> Option<u64> {
        let (reordering, newest_arrived) = (self.reordering, self.newest_arrived);
        let (number, sent_at) = self.oldest()?;
        self.oldest_sent_at = sent_at;
        (sent_at + reordering < newest_arrived).then_some(number)
    }

    /// Returns the oldest packet in flight, if `is_lost` returns true for its send time.
    #[inline(always)]
    pub(crate) fn oldest_if(&mut self, is_lost: impl Fn(Time) -> bool) -> Option<u64> {
        self.oldest().filter(|&(_, sent_at)| is_lost(sent_at)).map(|(number, _)| number)
    }

    /// Declares a packet in flight lost. [`Outstanding::report_losses`] notifies the law.
    pub(crate) fn lose<L>(&mut self, law_state: &mut LawState<L>, number: u64) -> SentPacket<C> {
        let record = self.sent_packets.get_mut(number);
        debug_assert!(record.is_in_flight(), "packet {number} is lost twice");
        record.become_state(State::Lost);
        let record = *record;
        law_state.leave_flight(record.bytes());
        self.lost += record.bytes();
        self.lost_sent_at = self.lost_sent_at.max(record.sent_at);
        record
    }

    /// Returns the payload declared lost and not yet reported to the law, and the send time of its newest packet.
    pub(crate) fn unreported_losses(&self) -> (Bytes, Time) {
        (self.lost, self.lost_sent_at)
    }

    /// Reports the losses that the law has not received yet, or drops them. Returns their payload.
    pub(crate) fn report_losses<L: ControlLaw>(
        &mut self,
        law_state: &mut LawState<L>,
        now: Time,
        cause: LossCause,
        notify: NotifyLaw,
    ) -> Bytes {
        debug_assert!(self.lost_sent_at <= now, "a packet sent at {:?} is lost at {now:?}", self.lost_sent_at);
        debug_assert!(!self.lost.is_zero() || self.lost_sent_at == Time::ZERO, "a send time without a loss");
        let (lost, sent_at) = (mem::take(&mut self.lost), mem::replace(&mut self.lost_sent_at, Time::ZERO));
        if !lost.is_zero() && notify == NotifyLaw::Yes {
            law_state.law.on_loss(&Loss { now, sent_at, lost, in_flight: law_state.in_flight, cause });
        }
        lost
    }

    /// Drops all records of sent packets and frees their memory: a connection may be idle for long.
    pub(crate) fn abandon(&mut self) {
        self.sent_packets.abandon();
        debug_assert!(self.oldest <= self.sent_packets.end(), "packet {} is unsent and not in flight", self.oldest);
        (self.lost, self.lost_sent_at) = (Bytes::ZERO, Time::ZERO);
    }

    /// Records that a packet sent at `sent_at` is known to have arrived.
    pub(crate) fn arrived(&mut self, sent_at: Time) {
        self.newest_arrived = self.newest_arrived.max(sent_at);
    }

    /// Doubles the reordering window after a spurious loss.
    pub(crate) fn widen_reordering_window(&mut self, timing: &Timing) {
        self.reordering = self.reordering.times(2).min(self.rtt.smoothed().max(timing.reordering));
    }

    #[inline(always)]
    pub(crate) fn smoothed_rtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// Returns the retransmission timeout. With one timer for the flow it is never shorter than later packets take to
    /// prove one lost.
    #[inline(always)]
    pub(crate) fn timeout(&self, timing: &Timing) -> Span {
        match timing.loss_timer {
            LossTimer::Packet => timing.rto_min,
            LossTimer::Flow | LossTimer::Probe => self.rtt.timeout().max(self.rtt.smoothed() + self.reordering),
        }
    }

    /// Backs off after a timeout.
    pub(crate) fn back_off(&mut self) {
        self.rtt.back_off();
    }

    /// Returns the number of consecutive timeouts since the last acknowledgement.
    pub(crate) fn backoff(&self) -> u32 {
        self.rtt.backoff()
    }

    /// Returns the expiry of the timeout of a packet sent at `sent_at`.
    #[inline(always)]
    pub(crate) fn times_out(&self, sent_at: Time, timing: &Timing) -> Time {
        let from = match timing.loss_timer {
            LossTimer::Flow | LossTimer::Probe => sent_at.max(self.last_ack_at),
            LossTimer::Packet => sent_at,
        };
        from + self.timeout(timing)
    }

    /// Returns the minimum time between sending a packet and its retransmission timeout.
    pub(crate) fn min_rto_wait(&self, timing: &Timing) -> Span {
        match timing.loss_timer {
            LossTimer::Flow | LossTimer::Probe => self.rtt.smoothed(),
            LossTimer::Packet => timing.rto_min,
        }
    }

    /// Returns the next loss deadline of the oldest packet, if nothing is acknowledged until then: reordering timer or
    /// retransmission timeout.
    #[inline(always)]
    pub(crate) fn deadline(&mut self, timing: &Timing) -> Time {
        let newest_arrived = self.newest_arrived;
        match self.oldest() {
            None => Time::NEVER,
            Some((_, sent_at)) if timing.loss_timer == LossTimer::Probe && sent_at < newest_arrived => {
                sent_at + self.rtt.smoothed() + self.reordering
            }
            Some((_, sent_at)) => self.times_out(sent_at, timing),
        }
    }

    /// Returns whether the oldest packet's timeout has expired.
    pub(crate) fn rto_expired(&mut self, now: Time, timing: &Timing) -> bool {
        self.oldest().is_some_and(|(_, sent_at)| self.times_out(sent_at, timing) <= now)
    }

    /// Returns the next packet to declare lost once [`Outstanding::rto_expired`] returns true, one per call, the oldest
    /// first.
    ///
    /// If a later packet has arrived, time has proved the older one lost (RFC 8985 §6.2, step 5): the path works, and this is
    /// no timeout. Acknowledgements alone cannot prove it if no packet was sent long enough after it, as in a burst shorter
    /// than the tolerance.
    ///
    /// Once one is overdue, the rest need only be older than a round trip and its reordering (RFC 8985 §6.3). If each waited
    /// for its own timeout, backed off after the one before, a lost window larger than the law then permits would be resent
    /// one packet at a time, and ever more slowly.
    pub(crate) fn next_expired(&mut self, now: Time, evidence: LossEvidence, timing: &Timing) -> Option<u64> {
        if timing.loss_timer == LossTimer::Packet {
            let timeout = timing.rto_min;
            return self.oldest_if(|sent_at| sent_at + timeout <= now);
        }
        let overdue = self.rtt.smoothed() + self.reordering;
        let newest_arrived = self.newest_arrived;
        self.oldest_if(|sent_at| {
            let may_be_lost = match evidence {
                LossEvidence::LaterArrival => sent_at < newest_arrived,
                LossEvidence::Timeout => true,
            };
            may_be_lost && sent_at + overdue <= now
        })
    }
}
