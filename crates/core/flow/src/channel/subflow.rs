//! One subflow of a channel.

use laws::ControlLaw;
use units::Time;

use super::config::ChannelConfig;
use super::strikes::Strikes;
use super::work::Work;
use crate::acks::Heard;
use crate::law_state::{LawState, SendState};
use crate::outstanding::Outstanding;
use crate::ramp::Ramp;

/// A subflow: packets in flight on a path, and the acknowledgement state of its peer.
///
/// Its law is in a [`LawGroup`](super::law_group::LawGroup), because one law may decide for several subflows. A
/// [`crate::Sender`], with a law for each subflow, keeps both in one `Subflow`.
#[derive(Debug)]
pub(super) struct SubflowState<C> {
    pub(super) out: Outstanding<C>,
    /// Index of the group of its law.
    pub(super) law: u8,
    pub(super) heard: Heard,
    pub(super) mss: u32,
    /// Data may be sent.
    pub(super) open: bool,
    pub(super) strikes: Strikes,
    pub(super) ramp: Option<Ramp>,
}

impl<C: Copy> SubflowState<C> {
    pub(super) fn new(config: &ChannelConfig, law: u8, now: Time) -> Self {
        Self {
            out: Outstanding::new(&config.timing),
            law,
            heard: Heard::new(),
            mss: config.mss,
            open: true,
            strikes: Strikes::default(),
            ramp: config.on_ramp.map(|params| Ramp::new(params, now)),
        }
    }

    /// Returns whether a packet of the work may be sent on this subflow, under `law_state`.
    pub(super) fn poll<L: ControlLaw, W: Work>(
        &self,
        now: Time,
        config: &ChannelConfig,
        law_state: &LawState<L>,
        work: &mut W,
    ) -> SendState {
        if !self.open || !config.leaves_room(&self.out) {
            return SendState::Blocked;
        }
        match work.next_bytes(self.mss) {
            None => SendState::Blocked,
            Some(_) if self.strikes.allow_a_probe() => SendState::Now,
            Some(_) if self.strikes.hold_all_back() => SendState::Blocked,
            Some(bytes) if self.strikes.open().is_some_and(|open| law_state.is_full_with(open, bytes)) => {
                SendState::Blocked
            }
            Some(bytes) => self.after_hold(now, law_state.poll(now, bytes)),
        }
    }
}

impl<C> SubflowState<C> {
    /// Delays a permitted send time until the On-Ramp hold ends.
    fn after_hold(&self, now: Time, state: SendState) -> SendState {
        let until = self.ramp.as_ref().map_or(Time::ZERO, Ramp::until);
        match state {
            SendState::Now if until > now => SendState::At(until),
            SendState::At(at) => SendState::At(at.max(until)),
            state => state,
        }
    }
}
