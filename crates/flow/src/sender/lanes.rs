//! A law for each subflow, instead of one for the flow.
//!
//! What a law decides and is told of is a [`Lane`]. A flow has one; where each subflow has a law it has as many, and the
//! sender has one of them in hand: that of the packet that it deals with. The others wait here. Each law hears of its own
//! subflow's packets alone, as if that were a flow, and decides for it alone: n subflows may send what n flows may. What
//! names no packet all of them hear.
//!
//! A packet goes on the next subflow in turn that may send it; one that is sent again goes on that which lost it only if no
//! other may. So packets do not belong to subflows by their number, and their records say where they went.
//!
//! The round-trip estimate, the tolerance of reordering and the retransmission timeout stay the flow's: subflows have the
//! same base round trip, and what is lost shows by what left later on any of them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::mem;

use laws::{Acted, ControlLaw, Loss, LossCause, Notification, Permit};
use units::{Bytes, Rate, Time};

use super::{SendState, Sender};

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
    fn take_loss(&mut self, now: Time, cause: LossCause) -> Option<Loss> {
        let (lost, sent_at) = (mem::take(&mut self.lost), mem::replace(&mut self.lost_sent_at, Time::ZERO));
        (!lost.is_zero()).then_some(Loss { now, sent_at, lost, in_flight: self.in_flight, cause })
    }
}

/// The lanes of a flow of which each subflow has one.
#[derive(Debug)]
pub(super) struct Lanes<L> {
    /// The subflow whose lane is in hand.
    in_hand: u8,
    /// The subflow whose turn is next.
    turn: u8,
    /// By subflow; none for the one in hand.
    away: Vec<Option<Lane<L>>>,
}

impl<L: ControlLaw> Sender<L> {
    /// Gives each subflow a law of its own: the first has the flow's, and these are the others'. Before the first packet, and
    /// only under [`crate::PathChoice::UnoLb`] with [`Recovery::Selective`](crate::Recovery::Selective), where each packet is
    /// acknowledged alone and without a history.
    #[must_use]
    pub fn with_laws(mut self, others: impl IntoIterator<Item = L>, now: Time) -> Self {
        let away = iter::once(None).chain(others.into_iter().map(|law| Some(Lane::new(law, now)))).collect();
        self.lanes = Some(Box::new(Lanes { in_hand: 0, turn: 0, away }));
        self
    }

    fn count(&self) -> u8 {
        self.lanes.as_ref().map_or(1, |lanes| lanes.away.len() as u8)
    }

    fn lane_of(&self, subflow: u8) -> &Lane<L> {
        let away = self.lanes.as_ref().and_then(|lanes| lanes.away[usize::from(subflow)].as_ref());
        away.unwrap_or(&self.lane)
    }

    /// In order of subflows.
    fn all_lanes(&self) -> impl Iterator<Item = &Lane<L>> {
        (0..self.count()).map(|subflow| self.lane_of(subflow))
    }

    #[inline(always)]
    pub(super) fn sum(&self, of: impl Fn(&Lane<L>) -> Bytes) -> Bytes {
        match &self.lanes {
            None => of(&self.lane),
            Some(_) => self.all_lanes().map(of).fold(Bytes::ZERO, |sum, bytes| sum + bytes),
        }
    }

    #[inline(always)]
    pub(super) fn first(&self, of: impl Fn(&Lane<L>) -> Time) -> Time {
        match &self.lanes {
            None => of(&self.lane),
            Some(_) => self.all_lanes().map(of).fold(Time::NEVER, Time::min),
        }
    }

    /// Whether no window has room for a packet.
    #[inline(always)]
    pub(super) fn are_full(&self, bytes: u32) -> bool {
        match &self.lanes {
            None => self.is_full(&self.lane, bytes),
            Some(_) => self.all_lanes().all(|lane| self.is_full(lane, bytes)),
        }
    }

    fn take_in_hand(&mut self, subflow: u8) {
        let Some(lanes) = &mut self.lanes else { return };
        if let Some(lane) = lanes.away[usize::from(subflow)].take() {
            lanes.away[usize::from(lanes.in_hand)] = Some(mem::replace(&mut self.lane, lane));
            lanes.in_hand = subflow;
        }
    }

    /// Takes in hand the lane on which a packet went last.
    #[inline(always)]
    pub(super) fn take_lane_of(&mut self, seq: u32) {
        if self.lanes.is_some() {
            self.take_in_hand(self.records.get(seq).subflow);
        }
    }

    /// Does something with each lane in hand, in order of subflows.
    #[inline(always)]
    pub(super) fn on_each_lane(&mut self, mut act: impl FnMut(&mut Self)) {
        if self.lanes.is_none() {
            act(self);
            return;
        }
        for subflow in 0..self.count() {
            self.take_in_hand(subflow);
            act(self);
        }
    }

    /// The subflow whose lane is in hand; it has had its turn.
    pub(super) fn take_turn(&mut self) -> u8 {
        let count = self.count();
        self.lanes.as_mut().map_or(0, |lanes| {
            lanes.turn = (lanes.in_hand + 1) % count;
            lanes.in_hand
        })
    }

    /// Whether a packet of so many bytes may leave on some subflow at `now`: takes the lane of the next such in turn in hand.
    #[inline(never)]
    pub(super) fn poll_lanes(&mut self, now: Time, bytes: u32) -> SendState {
        let Some(lanes) = &self.lanes else { return SendState::Blocked };
        let (count, turn) = (self.count(), lanes.turn);
        let lost_by = self.lost.front().map(|&seq| self.records.get(seq).subflow);
        let others = (0..count).map(|step| (turn + step) % count).filter(|&subflow| Some(subflow) != lost_by);
        let (mut found, mut soonest) = (None, Time::NEVER);
        for subflow in others.chain(lost_by) {
            let lane = self.lane_of(subflow);
            if self.is_shut(lane, bytes) {
                continue;
            }
            if lane.next_send <= now {
                found = Some(subflow);
                break;
            }
            soonest = soonest.min(lane.next_send);
        }
        if let Some(subflow) = found {
            self.take_in_hand(subflow);
            return SendState::Now;
        }
        if soonest.is_set() { SendState::At(soonest) } else { SendState::Blocked }
    }

    /// Tells the laws of the packets that were held for lost and that they have not heard of.
    pub(super) fn tell_of_losses(&mut self, now: Time, cause: LossCause) {
        self.on_each_lane(|it| {
            let Some(loss) = it.lane.take_loss(now, cause) else { return };
            if cause != LossCause::Timeout || it.config.timeouts_cut {
                it.lane.law.on_loss(&loss);
                it.read_permit();
            }
        });
    }

    /// Another signal arrives for the law in hand.
    pub(super) fn notify(&mut self, notification: &Notification) {
        if let Notification::DirectCnp { now } = *notification
            && !self.lane.law.reads_direct_cnps()
        {
            self.lane.asked_until = now + self.rtt.smoothed();
        }
        self.lane.law.on_notification(notification);
        self.read_permit();
    }

    /// The law that decides; where each subflow has one, that of the first.
    pub fn law(&self) -> &L {
        &self.lane_of(0).law
    }

    /// How often the law has acted, or all of them together.
    pub fn acted(&self) -> Acted {
        let mut acted = Acted::default();
        self.all_lanes().for_each(|lane| acted.add(&lane.law.acted()));
        acted
    }

    /// What the law last permitted, or all of them together.
    #[inline]
    pub fn permit(&self) -> Permit {
        if self.lanes.is_none() {
            return self.lane.permit;
        }
        let all = |sum: Permit, lane: &Lane<L>| Permit {
            window: sum.window.saturating_add(lane.permit.window),
            pacing: Rate::from_bps(sum.pacing.bps().saturating_add(lane.permit.pacing.bps())),
        };
        self.all_lanes().fold(Permit { window: Bytes::ZERO, pacing: Rate::ZERO }, all)
    }

    /// When something was last acknowledged.
    pub(super) fn heard(&self) -> Time {
        match &self.lanes {
            None => self.lane.delivered_time,
            Some(_) => self.all_lanes().fold(Time::ZERO, |last, lane| last.max(lane.delivered_time)),
        }
    }
}
