//! A subflow that has a law of its own, and the choice among several.
//!
//! Most senders have one. Where each subflow has a law, there are several. Each law receives only the events of its own
//! packets and controls only them, as for a separate flow: n subflows may send as much as n flows. Each has its own packet
//! numbers, round trip, reordering window and timeout. Losses are detected by later packets of the same subflow.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use laws::{Ack, ControlLaw, LawActions, LossCause, Notification, SendLimits};
use units::{Bytes, Rate, Time};

use crate::law_state::{LawState, SendState};
use crate::outstanding::{Batch, NotifyLaw, Outstanding, Timing};
use crate::sent_packets::{SentPacket, Transmission};

/// A subflow of a [`crate::Sender`]: its packets in flight, and the law of its own that they are sent under.
///
/// A [`crate::Channel`] keeps the same two parts, [`LawState`] and [`Outstanding`], in two types, `SubflowState` and
/// `LawGroup`: there one law may decide for several subflows, so no subflow can own it. Here the law's state is stored next
/// to its packets, which saves an index on the simulator's hot path.
#[derive(Debug)]
pub(crate) struct Subflow<L, C> {
    pub(crate) law_state: LawState<L>,
    pub(crate) out: Outstanding<C>,
}

impl<L: ControlLaw, C: Copy> Subflow<L, C> {
    pub(crate) fn new(law: L, timing: &Timing, now: Time) -> Self {
        Self { law_state: LawState::new(law, now), out: Outstanding::new(timing) }
    }

    #[inline(always)]
    pub(crate) fn sent(&mut self, departure: Transmission<C>) -> u64 {
        self.out.sent(&mut self.law_state, departure)
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, number: u64) -> Option<SentPacket<C>> {
        self.out.take(&mut self.law_state, number)
    }

    #[inline(always)]
    pub(crate) fn acked<'a>(&mut self, now: Time, batch: &Batch<'a, C>) -> Ack<'a> {
        self.out.acked(&mut self.law_state, now, batch)
    }

    pub(crate) fn lose(&mut self, number: u64) -> SentPacket<C> {
        self.out.lose(&mut self.law_state, number)
    }

    pub(crate) fn report_losses(&mut self, now: Time, cause: LossCause, notify: NotifyLaw) -> Bytes {
        self.out.report_losses(&mut self.law_state, now, cause, notify)
    }

    pub(crate) fn notify(&mut self, notification: &Notification) {
        self.law_state.notify(notification, self.out.smoothed_rtt());
    }

    /// Drops the records of all sent packets. Nothing is left to send.
    pub(crate) fn abandon(&mut self) {
        self.out.abandon();
        self.law_state.fall_idle();
    }

    /// Checks that the counts match the records. Returns the number of records examined.
    pub(crate) fn check(&self) -> Result<usize, String> {
        let (in_flight, count) = (self.out.check()?, self.law_state.in_flight);
        if in_flight == count {
            return Ok((self.out.sent_packets.end() - self.out.sent_packets.first()) as usize);
        }
        Err(format!("{in_flight} are in flight by the records and {count} by the count"))
    }
}

/// The subflows of a sender, at least one.
#[derive(Debug)]
pub(crate) struct Subflows<L, C> {
    first: Subflow<L, C>,
    others: Option<Box<Others<L, C>>>,
}

#[derive(Debug)]
struct Others<L, C> {
    /// Subflow that sends next in round-robin order.
    turn: u8,
    subflows: Vec<Subflow<L, C>>,
}

impl<L: ControlLaw, C: Copy> Subflows<L, C> {
    pub(crate) fn new(only: Subflow<L, C>) -> Self {
        Self { first: only, others: None }
    }

    /// Adds subflows behind the existing ones; 255 in all at most.
    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Subflow<L, C>>) {
        let others = self.others.get_or_insert_with(|| Box::new(Others { turn: 0, subflows: Vec::new() }));
        others.subflows.extend(more);
        debug_assert!(others.subflows.len() < 255, "{} subflows", others.subflows.len() + 1);
    }

    /// Returns whether there are several subflows.
    #[inline(always)]
    pub(crate) fn are_several(&self) -> bool {
        self.others.is_some()
    }

    pub(crate) fn count(&self) -> u8 {
        1 + self.others.as_ref().map_or(0, |others| others.subflows.len() as u8)
    }

    /// # Panics
    /// If there is no such subflow.
    #[inline(always)]
    pub(crate) fn get(&self, subflow: u8) -> &Subflow<L, C> {
        match &self.others {
            Some(others) if subflow > 0 => &others.subflows[usize::from(subflow - 1)],
            _ => &self.first,
        }
    }

    /// # Panics
    /// If there is no such subflow.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, subflow: u8) -> &mut Subflow<L, C> {
        match &mut self.others {
            Some(others) if subflow > 0 => &mut others.subflows[usize::from(subflow - 1)],
            _ => &mut self.first,
        }
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subflow<L, C>> {
        core::iter::once(&self.first).chain(self.others.iter().flat_map(|others| &others.subflows))
    }

    /// All, in order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow<L, C>> {
        core::iter::once(&mut self.first).chain(self.others.iter_mut().flat_map(|others| &mut others.subflows))
    }

    /// The numbers of all, in order.
    #[inline(always)]
    pub(crate) fn all(&self) -> core::ops::Range<u8> {
        0..self.count()
    }

    /// Returns the action counts of their laws together.
    pub(crate) fn actions(&self) -> LawActions {
        let mut actions = LawActions::default();
        self.iter().for_each(|subflow| actions.add(&subflow.law_state.law.actions()));
        actions
    }

    #[inline(always)]
    pub(crate) fn sum(&self, of: impl Fn(&Subflow<L, C>) -> Bytes) -> Bytes {
        match &self.others {
            None => of(&self.first),
            Some(_) => self.iter().map(of).fold(Bytes::ZERO, |sum, bytes| sum + bytes),
        }
    }

    #[inline(always)]
    pub(crate) fn earliest(&self, of: impl Fn(&Subflow<L, C>) -> Time) -> Time {
        match &self.others {
            None => of(&self.first),
            Some(_) => self.iter().map(of).fold(Time::NEVER, Time::min),
        }
    }

    /// Returns the next subflow, in round-robin order, that `poll` permits to send now, or the earliest time at which one
    /// may; `last` only if no other may. A single subflow is returned without a poll.
    #[inline(never)]
    pub(crate) fn choose(
        &self,
        last: Option<u8>,
        mut poll: impl FnMut(u8, &Subflow<L, C>) -> SendState,
    ) -> Result<u8, SendState> {
        let Some(others) = &self.others else { return Ok(0) };
        in_turn(self.count(), others.turn, last, |subflow| poll(subflow, self.get(subflow)))
    }

    /// Records that a packet is sent on this subflow: the next one has its turn.
    #[inline(always)]
    pub(crate) fn end_turn(&mut self, subflow: u8) {
        let count = self.count();
        debug_assert!(subflow < count, "subflow {subflow} of {count}");
        if let Some(others) = &mut self.others {
            others.turn = if subflow + 1 < count { subflow + 1 } else { 0 };
        }
    }

    /// Returns the last permit of the law, or of all laws together.
    #[inline]
    pub(crate) fn send_limits(&self) -> SendLimits {
        if !self.are_several() {
            return self.first.law_state.send_limits;
        }
        combined_limits(self.iter().map(|subflow| subflow.law_state.send_limits))
    }
}

/// Returns the next of `count` subflows, from `turn` on, that `poll` permits to send now, or the earliest time at which one
/// may; `last` only if no other may.
pub(crate) fn in_turn(
    count: u8,
    turn: u8,
    last: Option<u8>,
    mut poll: impl FnMut(u8) -> SendState,
) -> Result<u8, SendState> {
    let after = (turn..count).chain(0..turn).filter(|&subflow| Some(subflow) != last);
    let mut soonest = SendState::Blocked;
    for subflow in after.chain(last) {
        soonest = match (poll(subflow), soonest) {
            (SendState::Now, _) => return Ok(subflow),
            (SendState::At(time), SendState::At(other)) => SendState::At(time.min(other)),
            (SendState::At(time), _) => SendState::At(time),
            (SendState::Blocked, soonest) => soonest,
        };
    }
    Err(soonest)
}

/// Returns the combined permit of several laws: they pace if one of them does.
pub(crate) fn combined_limits(permits: impl Iterator<Item = SendLimits>) -> SendLimits {
    let nothing = SendLimits { window: Bytes::ZERO, pacing: Rate::MAX };
    permits.fold(nothing, |sum, send_limits| SendLimits {
        window: sum.window.saturating_add(send_limits.window),
        pacing: match (sum.pacing, send_limits.pacing) {
            (Rate::MAX, rate) | (rate, Rate::MAX) => rate,
            (one, other) => Rate::from_bps(one.bps().saturating_add(other.bps())),
        },
    })
}
