//! A law for each subflow, instead of one for the flow.
//!
//! What a law decides and is told of is a [`Lane`]. A flow has one; where each subflow has a law it has as many, and the
//! sender has one of them in hand: that of the packet that it deals with. The others wait here. Each law hears of its own
//! subflow's packets alone, as if that were a flow, and decides for it alone: n subflows may send what n flows may. What
//! names no packet all of them hear.
//!
//! A packet goes on the next subflow in turn that may send it at that moment; one that is sent again goes on that which lost
//! it only if no other may. So packets do not belong to subflows by their number, and their records say where they went
//! last. If an earlier transmission comes after all, that one delivers its bytes for the law, and its mark is nobody's.
//!
//! The round-trip estimate, the tolerance of reordering and the retransmission timeout stay the flow's: what is lost shows
//! by what left later on any subflow.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::mem;

use laws::{Acted, ControlLaw, Permit};
use units::{Bytes, Rate, Time};

use super::lane::Lane;
use super::{Recovery, SendState, Sender};

/// The lanes of a flow of which each subflow has one.
#[derive(Debug)]
pub(super) struct Lanes<L> {
    /// The subflow whose lane is in hand.
    in_hand: u8,
    /// The subflow whose turn is next.
    turn: u8,
    /// When something was last acknowledged, or the first packet left of a flight.
    heard: Time,
    /// By subflow; none for the one in hand.
    away: Vec<Option<Lane<L>>>,
}

impl<L: ControlLaw> Sender<L> {
    /// Gives each subflow a law of its own: the first has the flow's, and these are the others', so that there are as many as
    /// [`crate::PathChoice::laws`] says. Before the first packet, and only with [`Recovery::Selective`], where each packet is
    /// acknowledged alone and without a history.
    #[must_use]
    pub fn with_laws(mut self, others: impl IntoIterator<Item = L>, now: Time) -> Self {
        let away: Vec<_> = iter::once(None).chain(others.into_iter().map(|law| Some(Lane::new(law, now)))).collect();
        debug_assert_eq!(away.len(), usize::from(self.config.paths.laws()));
        debug_assert!(self.config.recovery == Recovery::Selective && self.records.end() == 0);
        debug_assert!(self.config.coding.is_none_or(|coding| coding.history == 0));
        self.lanes = Some(Box::new(Lanes { in_hand: 0, turn: 0, heard: now, away }));
        self
    }

    fn lane_count(&self) -> u8 {
        self.lanes.as_ref().map_or(1, |lanes| lanes.away.len() as u8)
    }

    fn lane_of(&self, subflow: u8) -> &Lane<L> {
        let away = self.lanes.as_ref().and_then(|lanes| lanes.away[usize::from(subflow)].as_ref());
        away.unwrap_or(&self.lane)
    }

    /// In order of subflows.
    fn all_lanes(&self) -> impl Iterator<Item = &Lane<L>> {
        (0..self.lane_count()).map(|subflow| self.lane_of(subflow))
    }

    #[inline(always)]
    pub(super) fn sum_over_lanes(&self, of: impl Fn(&Lane<L>) -> Bytes) -> Bytes {
        match &self.lanes {
            None => of(&self.lane),
            Some(_) => self.all_lanes().map(of).fold(Bytes::ZERO, |sum, bytes| sum + bytes),
        }
    }

    #[inline(always)]
    pub(super) fn earliest(&self, of: impl Fn(&Lane<L>) -> Time) -> Time {
        match &self.lanes {
            None => of(&self.lane),
            Some(_) => self.all_lanes().map(of).fold(Time::NEVER, Time::min),
        }
    }

    /// Whether a packet may not leave, though it were its time.
    #[inline(always)]
    pub(super) fn all_are_shut(&self, bytes: u32) -> bool {
        match &self.lanes {
            None => self.is_shut(&self.lane, bytes),
            Some(_) => self.all_lanes().all(|lane| self.is_shut(lane, bytes)),
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
        for subflow in 0..self.lane_count() {
            self.take_in_hand(subflow);
            act(self);
        }
    }

    /// Ends the turn of the subflow whose lane is in hand, and gives that.
    pub(super) fn end_turn(&mut self) -> u8 {
        let count = self.lane_count();
        self.lanes.as_mut().map_or(0, |lanes| {
            lanes.turn = (lanes.in_hand + 1) % count;
            lanes.in_hand
        })
    }

    /// Whether a packet of so many bytes may leave on some subflow at `now`: takes the lane of the next such in turn in hand.
    #[inline(never)]
    pub(super) fn poll_lanes(&mut self, now: Time, bytes: u32) -> SendState {
        let Some(lanes) = &self.lanes else { return SendState::Blocked };
        let (count, turn) = (self.lane_count(), lanes.turn);
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

    /// What the law last permitted, or all of them together: they pace if one of them does.
    #[inline]
    pub fn permit(&self) -> Permit {
        if self.lanes.is_none() {
            return self.lane.permit;
        }
        let window = self.all_lanes().fold(Bytes::ZERO, |sum, lane| sum.saturating_add(lane.permit.window));
        let paced = self.all_lanes().map(|lane| lane.permit.pacing).filter(|&pacing| pacing != Rate::MAX);
        let pacing = paced.map(Rate::bps).reduce(u64::saturating_add).map_or(Rate::MAX, Rate::from_bps);
        Permit { window, pacing }
    }

    /// Since when the flow waits to hear of what is in flight: something was acknowledged then, or the first packet left.
    pub(super) fn heard(&self) -> Time {
        self.lanes.as_ref().map_or(self.lane.delivered_time, |lanes| lanes.heard)
    }

    /// Something is acknowledged on the lane in hand, or the first packet leaves of its flight.
    #[inline(always)]
    pub(super) fn hear(&mut self, now: Time) {
        self.lane.delivered_time = now;
        if let Some(lanes) = &mut self.lanes {
            lanes.heard = now;
        }
    }
}
