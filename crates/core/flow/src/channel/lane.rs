//! One subflow of a channel.

use laws::ControlLaw;
use units::Time;

use super::config::ChannelConfig;
use super::strikes::Strikes;
use super::work::Work;
use crate::acks::Heard;
use crate::control::{Control, SendState};
use crate::outstanding::Outstanding;
use crate::ramp::Ramp;

/// A subflow: packets in flight on a path, and the acknowledgement state of its peer.
#[derive(Debug)]
pub(super) struct Lane<C> {
    pub(super) out: Outstanding<C>,
    /// Index of its law.
    pub(super) law: u8,
    pub(super) heard: Heard,
    pub(super) mss: u32,
    /// Data may be sent.
    pub(super) open: bool,
    pub(super) strikes: Strikes,
    pub(super) ramp: Option<Ramp>,
}

impl<C: Copy> Lane<C> {
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

    /// Returns whether a packet of the work may be sent on this subflow, under `control`.
    pub(super) fn poll<L: ControlLaw, W: Work>(
        &self,
        now: Time,
        config: &ChannelConfig,
        control: &Control<L>,
        work: &mut W,
    ) -> SendState {
        if !self.open || !config.leaves_room(&self.out) {
            return SendState::Blocked;
        }
        match work.next_bytes(self.mss) {
            None => SendState::Blocked,
            Some(_) if self.strikes.allow_a_probe() => SendState::Now,
            Some(_) if self.strikes.hold_all_back() => SendState::Blocked,
            Some(bytes) if self.strikes.open().is_some_and(|open| control.is_full_with(open, bytes)) => {
                SendState::Blocked
            }
            Some(bytes) => self.after_hold(now, control.poll(now, bytes)),
        }
    }
}

impl<C> Lane<C> {
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
