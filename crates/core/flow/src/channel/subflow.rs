//! One subflow of a channel.

use laws::ControlLaw;
use units::Time;

use super::config::ChannelConfig;
use super::data_source::DataSource;
use super::timeout_state::TimeoutState;
use crate::ack_ranges::AckValidator;
use crate::law_state::{LawState, SendState};
use crate::on_ramp_path::OnRampPath;
use crate::outstanding::Outstanding;

/// A subflow: packets in flight on a path, and the acknowledgement state of its peer.
///
/// Its law is in a [`LawGroup`](super::law_group::LawGroup), because one law may decide for several subflows. A
/// [`crate::Sender`], with a law for each subflow, keeps both in one `Subflow`.
#[derive(Debug)]
pub(super) struct SubflowState<C> {
    pub(super) out: Outstanding<C>,
    /// Index of the group of its law.
    pub(super) law: u8,
    pub(super) ack_validator: AckValidator,
    pub(super) mss: u32,
    /// Data may be sent.
    pub(super) open: bool,
    pub(super) timeouts: TimeoutState,
    pub(super) on_ramp: Option<OnRampPath>,
}

impl<C: Copy> SubflowState<C> {
    pub(super) fn new(config: &ChannelConfig, law: u8, now: Time) -> Self {
        Self {
            out: Outstanding::new(&config.timing),
            law,
            ack_validator: AckValidator::new(),
            mss: config.mss,
            open: true,
            timeouts: TimeoutState::default(),
            on_ramp: config.on_ramp.map(|params| OnRampPath::new(params, now)),
        }
    }

    /// Returns whether a packet of the work may be sent on this subflow, under `law_state`.
    pub(super) fn poll<L: ControlLaw, W: DataSource>(
        &self,
        now: Time,
        config: &ChannelConfig,
        law_state: &LawState<L>,
        work: &mut W,
    ) -> SendState {
        if !self.open || !config.has_free_records(&self.out) {
            return SendState::Blocked;
        }
        match work.next_bytes(self.mss) {
            None => SendState::Blocked,
            Some(_) if self.timeouts.may_probe() => SendState::Now,
            Some(_) if self.timeouts.is_probe_only() => SendState::Blocked,
            Some(bytes) if self.timeouts.unresolved_bytes().is_some_and(|open| law_state.is_full_with(open, bytes)) => {
                SendState::Blocked
            }
            Some(bytes) => self.after_hold(now, law_state.poll(now, bytes)),
        }
    }
}

impl<C> SubflowState<C> {
    /// Delays a permitted send time until the On-Ramp hold ends.
    fn after_hold(&self, now: Time, state: SendState) -> SendState {
        let until = self.on_ramp.as_ref().map_or(Time::ZERO, OnRampPath::until);
        match state {
            SendState::Now if until > now => SendState::At(until),
            SendState::At(at) => SendState::At(at.max(until)),
            state => state,
        }
    }
}
