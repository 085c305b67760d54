//! A sender with several subflows, each under a law of its own.
//!
//! A packet is sent on the next subflow, in round-robin order, that may send it at that time; a retransmission uses the
//! subflow that lost it only if no other may send it. So packets do not belong to subflows by their number;
//! [`SendSequence`](super::send_sequence::SendSequence) keeps their last transmissions. If an earlier transmission arrives after all, the
//! subflow of the last one counts its bytes as delivered for the law, and its mark is dropped. Signals that refer to no
//! packet go to all subflows.

use laws::{ControlLaw, LawActions, SendLimits};
use units::Time;

use super::{Recovery, SendState, Sender, Subflow};

impl<L: ControlLaw> Sender<L> {
    /// Assigns each subflow a law of its own: the first has the flow's, and `others` are for the other subflows, so
    /// that there are as many as [`crate::LoadBalancing::laws`] returns. Call it before the first packet, and only with
    /// [`Recovery::Selective`], where each packet is acknowledged alone and without a history.
    #[must_use]
    pub fn with_laws(mut self, others: impl IntoIterator<Item = L>, now: Time) -> Self {
        let timing = self.timing();
        self.subflows.extend(others.into_iter().map(|law| Subflow::new(law, &timing, now)));
        debug_assert_eq!(self.subflows.count(), self.config.paths.laws());
        debug_assert!(self.config.recovery == Recovery::Selective && self.numbers.end() == 0);
        debug_assert!(self.config.coding.is_none_or(|coding| coding.history == 0));
        self.numbers.spread();
        self
    }

    /// Returns the subflow on which a packet of `bytes` may be sent at `now`, or the time at which one may.
    #[inline(never)]
    pub(super) fn choose(&self, now: Time, bytes: u32) -> Result<u8, SendState> {
        let lost = self.numbers.first_lost().and_then(|seq| self.numbers.last_transmission(seq, &self.subflows));
        let lost_by = lost.map(|last| last.subflow);
        let counted = self.counted(bytes);
        self.subflows.choose(lost_by, |_, subflow| subflow.law_state.poll(now, counted))
    }

    /// Returns whether a packet of `bytes` may be sent at `now` on any subflow.
    #[inline(never)]
    pub(super) fn poll_several(&self, now: Time, bytes: u32) -> SendState {
        self.choose(now, bytes).map_or_else(|state| state, |_| SendState::Now)
    }

    /// The law that decides; where each subflow has one, that of the first.
    pub fn law(&self) -> &L {
        &self.subflows.get(0).law_state.law
    }

    /// Returns the action counts of the law on this flow, or of all laws together.
    pub fn actions(&self) -> LawActions {
        self.subflows.actions().since(&self.before.actions)
    }

    /// Returns the last permit of the law, or of all laws together: they pace if one of them does.
    #[inline]
    pub fn send_limits(&self) -> SendLimits {
        self.subflows.send_limits()
    }
}
