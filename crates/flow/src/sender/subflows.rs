//! The subflows of a sender. Most have one; where each subflow has a law, there are several, and each hears of its own packets
//! alone, as if that were a flow, and decides for it alone: n subflows may send what n flows may. What names no packet all of
//! them hear.
//!
//! A packet goes on the next subflow in turn that may send it at that moment; one that is sent again goes on that which lost
//! it only if no other may. So packets do not belong to subflows by their number; [`Numbers`](super::numbers::Numbers) says
//! where they went last. If an earlier transmission comes after all, the subflow of the last one delivers its bytes for the
//! law, and its mark is nobody's.
//!
//! Each subflow has its own packet numbers, round trip, tolerance of reordering and timeout: what is lost shows by what left
//! later on the same subflow.

use alloc::boxed::Box;
use alloc::vec::Vec;

use laws::{Acted, ControlLaw, Permit};
use units::{Bytes, Rate, Time};

use super::{Recovery, SendState, Sender};
use crate::outstanding::{Outstanding, Timing};
use crate::pacer::{Pacer, Pacing};

/// A law, what is in flight under it, and its pace.
#[derive(Debug)]
pub(super) struct Subflow<L> {
    pub(super) out: Outstanding<L, u32>,
    pub(super) pacer: Pacer,
}

impl<L: ControlLaw> Subflow<L> {
    pub(super) fn new(law: L, timing: &Timing, now: Time) -> Self {
        Self { out: Outstanding::new(law, timing, now), pacer: Pacer::new(now) }
    }

    /// What its law permits may have changed; the law `retimes` packets that wait ([`ControlLaw::retimes`]), or not.
    #[inline(always)]
    pub(super) fn read_permit(&mut self, retimes: bool, pacing: &Pacing) {
        let permit = self.out.law.permit();
        if retimes && permit.pacing != self.out.permit.pacing {
            self.pacer.retime(self.out.permit.pacing, permit.pacing, pacing);
        }
        self.out.permit = permit;
    }
}

/// The subflows of a sender, at least one.
#[derive(Debug)]
pub(super) struct Subflows<L> {
    first: Subflow<L>,
    others: Option<Box<Others<L>>>,
}

#[derive(Debug)]
struct Others<L> {
    /// The subflow whose turn is next.
    turn: u8,
    subflows: Vec<Subflow<L>>,
}

impl<L: ControlLaw> Subflows<L> {
    pub(super) fn new(only: Subflow<L>) -> Self {
        Self { first: only, others: None }
    }

    /// Whether there are several.
    #[inline(always)]
    pub(super) fn are_several(&self) -> bool {
        self.others.is_some()
    }

    fn count(&self) -> u8 {
        1 + self.others.as_ref().map_or(0, |others| others.subflows.len() as u8)
    }

    #[inline(always)]
    pub(super) fn get(&self, subflow: u8) -> &Subflow<L> {
        match &self.others {
            Some(others) if subflow > 0 => &others.subflows[usize::from(subflow - 1)],
            _ => &self.first,
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, subflow: u8) -> &mut Subflow<L> {
        match &mut self.others {
            Some(others) if subflow > 0 => &mut others.subflows[usize::from(subflow - 1)],
            _ => &mut self.first,
        }
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Subflow<L>> {
        core::iter::once(&self.first).chain(self.others.iter().flat_map(|others| &others.subflows))
    }

    /// All, in order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Subflow<L>> {
        core::iter::once(&mut self.first).chain(self.others.iter_mut().flat_map(|others| &mut others.subflows))
    }

    /// The numbers of all, in order.
    #[inline(always)]
    pub(super) fn all(&self) -> core::ops::Range<u8> {
        0..self.count()
    }

    /// How often their laws have acted, all together.
    pub(super) fn acted(&self) -> Acted {
        let mut acted = Acted::default();
        self.iter().for_each(|subflow| acted.add(&subflow.out.law.acted()));
        acted
    }

    #[inline(always)]
    pub(super) fn sum(&self, of: impl Fn(&Subflow<L>) -> Bytes) -> Bytes {
        match &self.others {
            None => of(&self.first),
            Some(_) => self.iter().map(of).fold(Bytes::ZERO, |sum, bytes| sum + bytes),
        }
    }

    #[inline(always)]
    pub(super) fn earliest(&self, of: impl Fn(&Subflow<L>) -> Time) -> Time {
        match &self.others {
            None => of(&self.first),
            Some(_) => self.iter().map(of).fold(Time::NEVER, Time::min),
        }
    }
}

impl<L: ControlLaw> Sender<L> {
    /// Gives each subflow a law of its own: the first has the flow's, and these are the others', so that there are as many as
    /// [`crate::PathChoice::laws`] says. Before the first packet, and only with [`Recovery::Selective`], where each packet is
    /// acknowledged alone and without a history.
    #[must_use]
    pub fn with_laws(mut self, others: impl IntoIterator<Item = L>, now: Time) -> Self {
        let timing = self.timing();
        let subflows: Vec<_> = others.into_iter().map(|law| Subflow::new(law, &timing, now)).collect();
        debug_assert_eq!(subflows.len() + 1, usize::from(self.config.paths.laws()));
        debug_assert!(self.config.recovery == Recovery::Selective && self.numbers.end() == 0);
        debug_assert!(self.config.coding.is_none_or(|coding| coding.history == 0));
        self.numbers.spread();
        self.subflows.others = Some(Box::new(Others { turn: 0, subflows }));
        self
    }

    /// The subflow on which a packet of so many bytes may leave at `now`, or when that is.
    #[inline(never)]
    pub(super) fn choose(&self, now: Time, bytes: u32) -> Result<u8, SendState> {
        let Some(others) = &self.subflows.others else { return Ok(0) };
        let (count, turn) = (self.subflows.count(), others.turn);
        let lost_by = self.numbers.first_lost().and_then(|seq| self.numbers.place(seq, &self.subflows)).map(|at| at.0);
        let after = (0..count).map(|step| (turn + step) % count).filter(|&subflow| Some(subflow) != lost_by);
        let mut soonest = Time::NEVER;
        for subflow in after.chain(lost_by) {
            let it = self.subflows.get(subflow);
            if self.is_shut(it, bytes) {
                continue;
            }
            if it.pacer.next() <= now {
                return Ok(subflow);
            }
            soonest = soonest.min(it.pacer.next());
        }
        Err(if soonest.is_set() { SendState::At(soonest) } else { SendState::Blocked })
    }

    /// Whether a packet of so many bytes may leave at `now` on any subflow.
    #[inline(never)]
    pub(super) fn poll_several(&self, now: Time, bytes: u32) -> SendState {
        self.choose(now, bytes).map_or_else(|state| state, |_| SendState::Now)
    }

    /// A packet leaves on this subflow.
    #[inline(always)]
    pub(super) fn end_turn(&mut self, subflow: u8) {
        let count = self.subflows.count();
        if let Some(others) = &mut self.subflows.others {
            others.turn = (subflow + 1) % count;
        }
    }

    /// The law that decides; where each subflow has one, that of the first.
    pub fn law(&self) -> &L {
        &self.subflows.first.out.law
    }

    /// How often the law has acted on this flow, or all of them together.
    pub fn acted(&self) -> Acted {
        self.subflows.acted().since(&self.before.acted)
    }

    /// What the law last permitted, or all of them together: they pace if one of them does.
    #[inline]
    pub fn permit(&self) -> Permit {
        if !self.subflows.are_several() {
            return self.subflows.first.out.permit;
        }
        let permits = || self.subflows.iter().map(|subflow| subflow.out.permit);
        let window = permits().fold(Bytes::ZERO, |sum, permit| sum.saturating_add(permit.window));
        let paced = permits().map(|permit| permit.pacing).filter(|&pacing| pacing != Rate::MAX);
        let pacing = paced.map(Rate::bps).reduce(u64::saturating_add).map_or(Rate::MAX, Rate::from_bps);
        Permit { window, pacing }
    }
}
