//! What a law decides and is told of: all of a flow, or one of its subflows.

use core::mem;

use laws::{ControlLaw, Loss, LossCause, Permit};
use units::{Bytes, Time};

/// What a law decides, and what it is told of.
#[derive(Debug)]
pub(super) struct Lane<L> {
    pub(super) law: L,
    /// What the law last permitted.
    pub(super) permit: Permit,
    pub(super) in_flight: Bytes,
    /// Acknowledged, parity included.
    pub(super) delivered: Bytes,
    pub(super) delivered_time: Time,
    /// When the packet left whose acknowledgement came last: the flight's beginning.
    pub(super) flight_began: Time,
    /// Until then what is acknowledged counts as marked: a switch asked for less, and the law hears of marks only.
    pub(super) asked_until: Time,
    pub(super) next_send: Time,
    /// Payload of the packet that left last.
    pub(super) last_sent: u32,
    /// Held for lost, and the law has not been told.
    lost: Bytes,
    /// When the newest of that left.
    lost_sent_at: Time,
}

impl<L: ControlLaw> Lane<L> {
    pub(super) fn new(law: L, now: Time) -> Self {
        Self {
            permit: law.permit(),
            law,
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivered_time: now,
            flight_began: now,
            asked_until: Time::ZERO,
            next_send: now,
            last_sent: 0,
            lost: Bytes::ZERO,
            lost_sent_at: Time::ZERO,
        }
    }

    /// A packet that left at `sent_at` is held for lost.
    pub(super) fn lose(&mut self, bytes: Bytes, sent_at: Time) {
        self.in_flight -= bytes;
        self.lost += bytes;
        self.lost_sent_at = self.lost_sent_at.max(sent_at);
    }

    /// What its law is to be told of.
    pub(super) fn take_loss(&mut self, now: Time, cause: LossCause) -> Option<Loss> {
        let (lost, sent_at) = (mem::take(&mut self.lost), mem::replace(&mut self.lost_sent_at, Time::ZERO));
        (!lost.is_zero()).then_some(Loss { now, sent_at, lost, in_flight: self.in_flight, cause })
    }
}
