//! What is in flight on a path: what left and when, what of it is lost, and what its law ([`Control`]) hears of that.
//!
//! A packet is lost once one that left `reordering` later has been acknowledged (RACK, RFC 8985, without its probe), or, once
//! a timer looks, one that left later at all. Packets lie in the order in which they left, so the oldest one in flight is
//! found by walking on. With [`LossTimer::Packet`] each packet has a timer of its own instead, of a fixed length from when it
//! left.
//!
//! What a packet carries is its content. It is kept and given back, and means nothing here.

use alloc::format;
use alloc::string::String;
use core::mem;

use laws::{Ack, ControlLaw, Cookie, Hop, Loss, LossCause, Sent};
use units::{Bytes, Span, Time};

use crate::control::{Control, Lack};
use crate::records::{Departure, Record, Records, State};
use crate::rtt::RttEstimator;

/// What a retransmission timeout counts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LossTimer {
    /// One timer for the flow. It starts again with each acknowledgement, follows the round trips and backs off
    /// (RFC 6298).
    Flow,
    /// One timer for each packet. It strikes [`crate::FlowConfig::rto_min`] after the packet left, and takes that packet
    /// alone. It follows no estimate and does not back off (as in htsim).
    Packet,
    /// As [`LossTimer::Flow`], with probes (RFC 8985 §7, RFC 9002 §6.2): the first two times in a row that it strikes, nothing
    /// is lost, and a packet more may leave. Its acknowledgement shows what is missing, without a timeout's cut. And packets
    /// that a later one has overtaken are lost once they are a round trip and the tolerance old, though no acknowledgement
    /// comes then (RFC 8985 §6.2, step 5). Only a [`crate::Channel`] has it.
    Probe,
}

/// Whom an acknowledgement answers, of what it newly acknowledges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The newest packet's last transmission.
    This,
    /// An earlier transmission of it.
    Another,
    /// The acknowledgement's own packet is not the newest one.
    Others,
}

/// What one acknowledgement, or several at once, newly acknowledge.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a, C> {
    /// The number and record of the newest packet of it.
    pub(crate) number: u64,
    pub(crate) record: Record<C>,
    pub(crate) answers: Answers,
    /// Payload of all.
    pub(crate) acked: Bytes,
    /// Of that, what was marked.
    pub(crate) marked: Bytes,
    /// What the law hears of what the flow has left once that is taken ([`Ack::left`]).
    pub(crate) left: Bytes,
    /// What the law hears of the round trip beyond the truth; less than the truth, where the receiver's delay is taken off.
    pub(crate) noise: Span,
    /// Whether the law's window was not what limited the flow.
    pub(crate) limited: bool,
    /// Whether the window was never full since that packet left, nor the pace what held packets, although there was always something
    /// to send: the host was slower, or the end came first.
    pub(crate) unfilled: bool,
    /// What the ports reported that the newest packet passed.
    pub(crate) hops: &'a [Hop],
}

/// How losses show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Round trip with empty queues: the estimator's start.
    pub base_rtt: Span,
    /// How much later a packet must have left than a missing one to prove it lost.
    pub reordering: Span,
    /// Lower bound of the retransmission timeout; with [`LossTimer::Packet`] the timeout itself.
    pub rto_min: Span,
    /// Upper bound of the retransmission timeout.
    pub rto_max: Span,
    /// What a retransmission timeout counts from.
    pub loss_timer: LossTimer,
}

/// What is in flight, each packet with a content `C`.
#[derive(Debug)]
pub(crate) struct Outstanding<C> {
    /// When something was last acknowledged.
    heard: Time,
    pub(crate) records: Records<C>,
    /// No packet below is in flight.
    oldest: u64,
    /// Nothing is in flight that left before this.
    left_from: Time,
    /// When the newest packet left that is known to have arrived.
    newest_arrived: Time,
    rtt: RttEstimator,
    /// How much later a packet must have left than a missing one to prove it lost.
    reordering: Span,
    /// Held for lost, and the law has not been told.
    lost: Bytes,
    /// When the newest of that left.
    lost_sent_at: Time,
}

impl<C: Copy> Outstanding<C> {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            heard: Time::ZERO,
            records: Records::new(),
            oldest: 0,
            left_from: Time::ZERO,
            newest_arrived: Time::ZERO,
            rtt: RttEstimator::new(timing.base_rtt, timing.rto_min, timing.rto_max),
            reordering: timing.reordering,
            lost: Bytes::ZERO,
            lost_sent_at: Time::ZERO,
        }
    }

    /// Nothing is in flight, and all begins anew but for packet numbers and what late acknowledgements refer to.
    pub(crate) fn begin_anew(&mut self, timing: &Timing) {
        debug_assert_eq!(self.oldest(), None);
        let records = mem::replace(&mut self.records, Records::new());
        let Self { heard, oldest, .. } = *self;
        *self = Self { heard, records, oldest, ..Self::new(timing) };
    }

    /// A packet leaves under `control`. Gives its number.
    #[inline(always)]
    pub(crate) fn sent<L: ControlLaw>(&mut self, control: &mut Control<L>, departure: Departure<C>) -> u64 {
        let now = departure.now;
        let size = Bytes::new(departure.bytes.into());
        if control.in_flight.is_zero() {
            control.flight_began = now;
            control.delivered_time = now;
        }
        let elapsed = now.since(control.flight_began);
        let mut record = Record::new(departure, control.delivered, control.delivered_time, elapsed);
        record.set_sample_limited(control.lack() == Some(Lack::Data));
        debug_assert!(now >= self.left_from, "a packet leaves at {now:?}, before one that left already");
        let number = self.records.push(record);
        control.in_flight += size;
        let retransmission = departure.attempt != 1;
        let sent = Sent { now, bytes: size, in_flight: control.in_flight, retransmission };
        let cookie = control.law.on_sent(&sent);
        self.records.keep(cookie);
        number
    }

    /// A number is used for a packet that no window counts, and that nobody waits for. Gives it. `content` is never given back.
    pub(crate) fn sent_apart(&mut self, now: Time, content: C) -> u64 {
        let nothing = Departure { now, bytes: 0, content, attempt: 0, path: 0 };
        let mut record = Record::new(nothing, Bytes::ZERO, now, Span::ZERO);
        record.become_state(State::Done);
        let number = self.records.push(record);
        self.records.keep(Cookie::NONE);
        // Who only answers has nothing in flight, and keeps nothing.
        self.records.trim();
        number
    }

    /// Marks a packet that left while there was less to send under `control` than its law permitted.
    pub(crate) fn mark_limited<L>(&mut self, number: u64, control: &Control<L>) {
        let record = self.records.get_mut(number);
        record.set_app_limited(true);
        record.set_sample_limited(control.lack() == Some(Lack::Data));
    }

    /// A packet's content has come, by whatever word: it is in flight no more. Gives what its record was, if that is not over.
    #[inline(always)]
    pub(crate) fn take<L>(&mut self, control: &mut Control<L>, number: u64) -> Option<Record<C>> {
        let record = self.records.get_mut(number);
        let was = *record;
        if was.state() == State::Done {
            return None;
        }
        record.become_state(State::Done);
        if was.is_in_flight() {
            control.in_flight -= was.bytes();
        }
        Some(was)
    }

    /// Tells the law of what was taken.
    #[inline(always)]
    pub(crate) fn acked<'a, L: ControlLaw>(
        &mut self,
        control: &mut Control<L>,
        now: Time,
        batch: &Batch<'a, C>,
    ) -> Ack<'a> {
        let Batch { number, record, answers, acked, marked, left, noise, limited, unfilled, hops } = *batch;
        control.deliver(acked);
        self.rtt.progress();
        // No time is taken from any departure but the one that the acknowledgement answers.
        let rtt = if answers == Answers::This { now.since(record.sent_at) } else { self.rtt.smoothed() };
        let sent_at = now - rtt;
        if answers == Answers::This {
            self.rtt.sample(rtt);
            control.flight_began = control.flight_began.max(sent_at);
            self.newest_arrived = self.newest_arrived.max(sent_at);
        }
        let ack = Ack {
            now,
            sent_at,
            rtt: rtt + noise,
            acked,
            marked: if now < control.asked_until { acked } else { marked },
            in_flight: control.in_flight,
            delivered: control.delivered,
            left,
            delivered_at_send: record.delivered(control.delivered),
            delivered_time_at_send: record.delivered_time(),
            send_elapsed: record.send_elapsed(),
            app_limited: record.is_app_limited() || limited || unfilled,
            sample_limited: record.is_sample_limited(),
            cookie: self.records.cookie(number),
            hops,
        };
        control.law.on_ack(&ack);
        (control.delivered_time, self.heard) = (now, now);
        ack
    }

    /// Checks that packets left in order and that none is in flight where none is looked for. Gives the payload in flight.
    ///
    /// # Errors
    /// When something is wrong: what.
    pub(crate) fn check(&self) -> Result<Bytes, String> {
        let (mut in_flight, mut left) = (Bytes::ZERO, Time::ZERO);
        for number in self.records.first()..self.records.end() {
            let record = self.records.get(number);
            if record.sent_at < left {
                return Err(format!("packet {number} left before the one before it"));
            }
            left = record.sent_at;
            if record.is_in_flight() {
                in_flight += record.bytes();
                if number < self.oldest || record.sent_at < self.left_from {
                    let from = (self.oldest, self.left_from);
                    return Err(format!("packet {number} is in flight, and none before {from:?} should be"));
                }
            }
        }
        Ok(in_flight)
    }

    /// The packet in flight that left first, and when that was.
    #[inline(always)]
    pub(crate) fn oldest(&mut self) -> Option<(u64, Time)> {
        self.oldest = self.oldest.max(self.records.first());
        while self.oldest < self.records.end() {
            let record = self.records.get(self.oldest);
            if record.is_in_flight() {
                return Some((self.oldest, record.sent_at));
            }
            self.oldest += 1;
        }
        None
    }

    /// The oldest packet in flight, if it left early enough to have been overtaken.
    #[inline(always)]
    pub(crate) fn overtaken(&mut self) -> Option<u64> {
        // Mostly what was found last time is enough.
        if self.left_from + self.reordering < self.newest_arrived { self.look_for_overtaken() } else { None }
    }

    #[inline(never)]
    fn look_for_overtaken(&mut self) -> Option<u64> {
        let (reordering, newest_arrived) = (self.reordering, self.newest_arrived);
        let (number, sent_at) = self.oldest()?;
        self.left_from = sent_at;
        (sent_at + reordering < newest_arrived).then_some(number)
    }

    /// The oldest packet in flight, if `gone` says so of the time at which it left.
    #[inline(always)]
    pub(crate) fn oldest_if(&mut self, gone: impl Fn(Time) -> bool) -> Option<u64> {
        self.oldest().filter(|&(_, sent_at)| gone(sent_at)).map(|(number, _)| number)
    }

    /// Holds a packet in flight for lost. The law is told by [`Outstanding::tell_of_losses`].
    pub(crate) fn lose<L>(&mut self, control: &mut Control<L>, number: u64) -> Record<C> {
        let record = self.records.get_mut(number);
        debug_assert!(record.is_in_flight(), "packet {number} is lost twice");
        record.become_state(State::Lost);
        let record = *record;
        control.in_flight -= record.bytes();
        self.lost += record.bytes();
        self.lost_sent_at = self.lost_sent_at.max(record.sent_at);
        record
    }

    /// What was held for lost and the law has not been told of, and when the newest of that left.
    pub(crate) fn held_for_lost(&self) -> (Bytes, Time) {
        (self.lost, self.lost_sent_at)
    }

    /// Tells the law of what was held for lost and it has not heard of, unless it is not to hear. Gives how much that is.
    pub(crate) fn tell_of_losses<L: ControlLaw>(
        &mut self,
        control: &mut Control<L>,
        now: Time,
        cause: LossCause,
        hears: bool,
    ) -> Bytes {
        let (lost, sent_at) = (mem::take(&mut self.lost), mem::replace(&mut self.lost_sent_at, Time::ZERO));
        if !lost.is_zero() && hears {
            control.law.on_loss(&Loss { now, sent_at, lost, in_flight: control.in_flight, cause });
        }
        lost
    }

    /// Nothing more is to be known of what left. Its memory is given back: a connection may be idle for long.
    pub(crate) fn abandon(&mut self) {
        self.records.abandon();
        (self.lost, self.lost_sent_at) = (Bytes::ZERO, Time::ZERO);
    }

    /// Something that left at this time is known to have arrived.
    pub(crate) fn arrived(&mut self, sent_at: Time) {
        self.newest_arrived = self.newest_arrived.max(sent_at);
    }

    /// A packet was held for lost that came after all.
    pub(crate) fn tolerate_more(&mut self, timing: &Timing) {
        self.reordering = self.reordering.times(2).min(self.rtt.smoothed().max(timing.reordering));
    }

    #[inline(always)]
    pub(crate) fn smoothed_rtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// The retransmission timeout. With one timer for the flow it is never shorter than later packets take to prove one
    /// lost.
    #[inline(always)]
    pub(crate) fn timeout(&self, timing: &Timing) -> Span {
        match timing.loss_timer {
            LossTimer::Packet => timing.rto_min,
            LossTimer::Flow | LossTimer::Probe => self.rtt.timeout().max(self.rtt.smoothed() + self.reordering),
        }
    }

    /// A timeout struck.
    pub(crate) fn back_off(&mut self) {
        self.rtt.back_off();
    }

    /// When the timeout of a packet ends that left at `sent_at`.
    #[inline(always)]
    pub(crate) fn times_out(&self, sent_at: Time, timing: &Timing) -> Time {
        let from = match timing.loss_timer {
            LossTimer::Flow | LossTimer::Probe => sent_at.max(self.heard),
            LossTimer::Packet => sent_at,
        };
        from + self.timeout(timing)
    }

    /// How long, at least, passes between a packet's departure and the timeout that strikes it.
    pub(crate) fn least_wait(&self, timing: &Timing) -> Span {
        match timing.loss_timer {
            LossTimer::Flow | LossTimer::Probe => self.rtt.smoothed(),
            LossTimer::Packet => timing.rto_min,
        }
    }

    /// When the oldest packet is lost, or its timeout strikes, if nothing is heard until then.
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

    /// Whether the oldest packet's timeout has ended.
    pub(crate) fn is_overdue(&mut self, now: Time, timing: &Timing) -> bool {
        self.oldest().is_some_and(|(_, sent_at)| self.times_out(sent_at, timing) <= now)
    }

    /// What [`Outstanding::is_overdue`] takes, one at a time, the oldest first.
    ///
    /// Where a packet that left later has arrived, time has proved the older one lost (RFC 8985 §6.2, step 5): the path
    /// works, and this is no timeout. Acknowledgements alone cannot prove it when no packet left long enough after it, as in
    /// a burst shorter than the tolerance.
    ///
    /// Once one is overdue, the rest need only be older than a round trip and its reordering (RFC 8985 §6.3). Were they to
    /// wait for a timeout each, backed off by the one before, a window lost whole and larger than what the law then permits
    /// would come back a packet at a time and ever more slowly.
    pub(crate) fn next_overdue(&mut self, now: Time, proved: bool, timing: &Timing) -> Option<u64> {
        if timing.loss_timer == LossTimer::Packet {
            let timeout = timing.rto_min;
            return self.oldest_if(|sent_at| sent_at + timeout <= now);
        }
        let overdue = self.rtt.smoothed() + self.reordering;
        let newest_arrived = self.newest_arrived;
        self.oldest_if(|sent_at| (!proved || sent_at < newest_arrived) && sent_at + overdue <= now)
    }
}
