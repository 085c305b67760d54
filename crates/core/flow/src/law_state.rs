//! State of a law: its permit and its counters. Packets in flight under it are in
//! [`Outstanding`](crate::outstanding::Outstanding), one for each path: several paths may share a law.

use laws::{ControlLaw, Notification, SendLimits};
use units::{Bytes, Span, Time};

use crate::pacer::{Pacer, Pacing};

/// Effect of a new pacing rate on packets that already wait ([`ControlLaw::rate_change_is_immediate`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RateChange {
    /// Applies to the next packet.
    NextPacket,
    /// Moves packets that already wait, too.
    Immediate,
}

impl RateChange {
    /// Returns the effect that a law requests.
    pub(crate) fn of<L: ControlLaw>(law: &L) -> Self {
        if law.rate_change_is_immediate() { Self::Immediate } else { Self::NextPacket }
    }
}

/// Permission of a flow to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendState {
    /// A packet may be sent now.
    Now,
    /// A packet may be sent at this time (pacing).
    At(Time),
    /// No packet may be sent until an acknowledgement arrives or a timer expires.
    Blocked,
}

/// A lack of data to send, and the delivered count at which it ends.
#[derive(Clone, Copy, Debug)]
struct Limit {
    until: Bytes,
    lack: Lack,
}

/// Reason why no packet is sent although the law permits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lack {
    /// The application has no more data. Packets sent in this state yield no bandwidth samples.
    Data,
    /// More data exists, but the peer's flow control or a full buffer holds it back. Packets sent in this state yield normal
    /// samples.
    Room,
}

/// A law, its last permit, its pacing state, and its counters.
#[derive(Debug)]
pub(crate) struct LawState<L> {
    pub(crate) law: L,
    /// Last permit of the law.
    pub(crate) send_limits: SendLimits,
    pub(crate) pacer: Pacer,
    pub(crate) in_flight: Bytes,
    /// Payload acknowledged, or known to have arrived.
    pub(crate) delivered: Bytes,
    /// Last time at which something was acknowledged, or the first packet of a flight was sent.
    pub(crate) delivered_time: Time,
    /// Send time of the last acknowledged packet, or of the first packet of a flight.
    pub(crate) flight_began: Time,
    /// Until this time acknowledged payload counts as marked: a switch requested a lower rate, and the law only reads marks.
    pub(crate) marked_until: Time,
    /// Limit of packets sent now (`C.app_limited` of draft-ietf-ccwg-bbr, §4.1.2.4; `tp->app_limited` in Linux's
    /// `tcp_rate.c`); none if there was enough to send.
    limit: Option<Limit>,
}

impl<L: ControlLaw> LawState<L> {
    /// Creates the state before the first packet, which may be sent at `now`.
    pub(crate) fn new(law: L, now: Time) -> Self {
        Self {
            send_limits: law.send_limits(),
            law,
            pacer: Pacer::new(now),
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivered_time: now,
            flight_began: now,
            marked_until: Time::ZERO,
            limit: None,
        }
    }

    /// Resets all state, with this law, except for what late acknowledgements refer to. Nothing may be in flight.
    pub(crate) fn reset(&mut self, law: L, now: Time) {
        debug_assert!(self.in_flight.is_zero(), "{:?} are in flight under a law that is replaced", self.in_flight);
        let Self { delivered, delivered_time, .. } = *self;
        *self = Self { delivered, delivered_time, ..Self::new(law, now) };
    }

    /// Updates the permit from the law.
    #[inline(always)]
    pub(crate) fn read_permit(&mut self, rate_change: RateChange, pacing: &Pacing) {
        let send_limits = self.law.send_limits();
        if rate_change == RateChange::Immediate && send_limits.pacing != self.send_limits.pacing {
            self.pacer.retime(self.send_limits.pacing, send_limits.pacing, pacing);
        }
        self.send_limits = send_limits;
    }

    /// Returns whether a packet of `bytes` may be sent at `now`. One packet may always be in flight: otherwise a window
    /// smaller than a packet would stop the flow.
    #[inline(always)]
    pub(crate) fn poll(&self, now: Time, bytes: u32) -> SendState {
        if self.is_full(bytes) && !self.in_flight.is_zero() {
            return SendState::Blocked;
        }
        if self.pacer.next() > now { SendState::At(self.pacer.next()) } else { SendState::Now }
    }

    /// Notifies the law of a signal. A direct CNP for a law that does not read it is reported as marks: all that is
    /// acknowledged within a round trip, `rtt`, counts as marked.
    pub(crate) fn notify(&mut self, notification: &Notification, rtt: Span) {
        if let Notification::DirectCnp { now } = *notification
            && !self.law.reads_direct_cnps()
        {
            self.marked_until = now + rtt;
        }
        self.law.on_notification(notification);
    }
}

impl<L> LawState<L> {
    /// Records that nothing is left to send. If the window has room, packets sent from now on are limited until more is
    /// delivered than has been sent so far: earlier samples reflect the pause. While a lack of data is in effect, a lack of
    /// room afterwards yields no bandwidth samples, either. Returns whether the window has room.
    #[inline]
    pub(crate) fn run_out(&mut self, lack: Lack) -> bool {
        let has_room = self.in_flight < self.send_limits.window;
        if has_room && !(lack == Lack::Room && self.lack() == Some(Lack::Data)) {
            self.limit = Some(Limit { until: self.delivered + self.in_flight, lack });
        }
        has_room
    }

    /// Returns the lack that limits a packet sent now; none if there was enough to send.
    #[inline(always)]
    pub(crate) fn lack(&self) -> Option<Lack> {
        self.limit.map(|limit| limit.lack)
    }

    /// Removes a packet of this payload from flight.
    #[inline(always)]
    pub(crate) fn leave_flight(&mut self, bytes: Bytes) {
        debug_assert!(bytes <= self.in_flight, "{bytes:?} are removed from {:?} in flight", self.in_flight);
        self.in_flight -= bytes;
    }

    /// Counts `acked` bytes more as delivered, which may end a limit.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, acked: Bytes) {
        self.delivered += acked;
        if self.limit.is_some_and(|limit| self.delivered > limit.until) {
            self.limit = None;
        }
    }

    /// Notes that nothing is in flight any more, and nothing is left to send.
    pub(crate) fn fall_idle(&mut self) {
        self.in_flight = Bytes::ZERO;
        self.run_out(Lack::Data);
    }

    /// Returns whether the window has no room for a packet of `bytes`.
    #[inline(always)]
    pub(crate) fn is_full(&self, bytes: u32) -> bool {
        self.is_full_with(Bytes::ZERO, bytes)
    }

    /// Returns whether the window has no room for a packet of `bytes`, with `more` in flight.
    #[inline(always)]
    pub(crate) fn is_full_with(&self, more: Bytes, bytes: u32) -> bool {
        self.in_flight + more + Bytes::new(bytes.into()) > self.send_limits.window
    }
}
