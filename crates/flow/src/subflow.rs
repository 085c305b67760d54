//! A subflow: a law, what is in flight under it, and its pace. And the choice among several of them.
//!
//! Most senders have one. Where each subflow has a law, there are several. Each hears of its own packets alone, as if that
//! were a flow, and decides for it alone: n subflows may send what n flows may. Each has its own packet numbers, round trip,
//! tolerance of reordering and timeout. What is lost shows by what left later on the same subflow.

use alloc::boxed::Box;
use alloc::vec::Vec;

use laws::{Acted, ControlLaw, Permit};
use units::{Bytes, Rate, Time};

use crate::outstanding::{Outstanding, Timing};
use crate::pacer::{Pacer, Pacing};

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

/// A law, what is in flight under it, and its pace.
#[derive(Debug)]
pub(crate) struct Subflow<L, C> {
    pub(crate) out: Outstanding<L, C>,
    pub(crate) pacer: Pacer,
}

impl<L: ControlLaw, C: Copy> Subflow<L, C> {
    pub(crate) fn new(law: L, timing: &Timing, now: Time) -> Self {
        Self { out: Outstanding::new(law, timing, now), pacer: Pacer::new(now) }
    }

    /// What its law permits may have changed; the law `retimes` packets that wait ([`ControlLaw::retimes`]), or not.
    #[inline(always)]
    pub(crate) fn read_permit(&mut self, retimes: bool, pacing: &Pacing) {
        let permit = self.out.law.permit();
        if retimes && permit.pacing != self.out.permit.pacing {
            self.pacer.retime(self.out.permit.pacing, permit.pacing, pacing);
        }
        self.out.permit = permit;
    }

    /// Whether a packet of so many bytes may leave at `now`. One may always be in flight, or a window under a packet would
    /// stop the flow.
    #[inline(always)]
    pub(crate) fn poll(&self, now: Time, bytes: u32) -> SendState {
        if self.is_full(bytes) && !self.out.in_flight.is_zero() {
            return SendState::Blocked;
        }
        if self.pacer.next() > now { SendState::At(self.pacer.next()) } else { SendState::Now }
    }
}

impl<L, C> Subflow<L, C> {
    /// Whether the window has no room for a packet of so many bytes.
    #[inline(always)]
    pub(crate) fn is_full(&self, bytes: u32) -> bool {
        self.out.in_flight + Bytes::new(bytes.into()) > self.out.permit.window
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
    /// The subflow whose turn is next.
    turn: u8,
    subflows: Vec<Subflow<L, C>>,
}

impl<L: ControlLaw, C: Copy> Subflows<L, C> {
    pub(crate) fn new(only: Subflow<L, C>) -> Self {
        Self { first: only, others: None }
    }

    /// As many more, behind those that are there; 255 in all at most.
    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Subflow<L, C>>) {
        let others = self.others.get_or_insert_with(|| Box::new(Others { turn: 0, subflows: Vec::new() }));
        others.subflows.extend(more);
        debug_assert!(others.subflows.len() < 255, "{} subflows", others.subflows.len() + 1);
    }

    /// Whether there are several.
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

    /// How often their laws have acted, all together.
    pub(crate) fn acted(&self) -> Acted {
        let mut acted = Acted::default();
        self.iter().for_each(|subflow| acted.add(&subflow.out.law.acted()));
        acted
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

    /// The next subflow in turn that `poll` lets send now, or when the first may; `last` only if no other may. Where there is
    /// one alone, that one is not asked.
    #[inline(never)]
    pub(crate) fn choose(
        &self,
        last: Option<u8>,
        mut poll: impl FnMut(u8, &Subflow<L, C>) -> SendState,
    ) -> Result<u8, SendState> {
        let Some(others) = &self.others else { return Ok(0) };
        let (count, turn) = (usize::from(self.count()), usize::from(others.turn));
        let after = (0..count).map(|step| ((turn + step) % count) as u8).filter(|&subflow| Some(subflow) != last);
        let mut soonest = SendState::Blocked;
        for subflow in after.chain(last) {
            soonest = match (poll(subflow, self.get(subflow)), soonest) {
                (SendState::Now, _) => return Ok(subflow),
                (SendState::At(time), SendState::At(other)) => SendState::At(time.min(other)),
                (SendState::At(time), _) => SendState::At(time),
                (SendState::Blocked, soonest) => soonest,
            };
        }
        Err(soonest)
    }

    /// A packet leaves on this subflow.
    #[inline(always)]
    pub(crate) fn end_turn(&mut self, subflow: u8) {
        let count = self.count();
        if let Some(others) = &mut self.others {
            others.turn = if subflow + 1 < count { subflow + 1 } else { 0 };
        }
    }

    /// What the law last permitted, or all of them together: they pace if one of them does.
    #[inline]
    pub(crate) fn permit(&self) -> Permit {
        if !self.are_several() {
            return self.first.out.permit;
        }
        let permits = || self.iter().map(|subflow| subflow.out.permit);
        let window = permits().fold(Bytes::ZERO, |sum, permit| sum.saturating_add(permit.window));
        let paced = permits().map(|permit| permit.pacing).filter(|&pacing| pacing != Rate::MAX);
        let pacing = paced.map(Rate::bps).reduce(u64::saturating_add).map_or(Rate::MAX, Rate::from_bps);
        Permit { window, pacing }
    }
}
