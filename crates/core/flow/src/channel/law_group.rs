//! Control law of one or several subflows, and the use of its window.

use laws::ControlLaw;
use units::Time;

use super::config::ChannelConfig;
use crate::cwnd_usage::CwndUsage;
use crate::law_state::{Lack, LawState};

/// Control law of one or several subflows, and what is known about the use of its window.
#[derive(Debug)]
pub(super) struct LawGroup<L> {
    pub(super) law_state: LawState<L>,
    pub(super) usage: CwndUsage,
    /// Reason why nothing was left to send after the last packet; none if there was more to send.
    pub(super) ran_out: Option<Lack>,
    /// Payload of a full packet as last reported to the law; none if the last report was for another path.
    pub(super) mss: Option<u32>,
}

impl<L: ControlLaw> LawGroup<L> {
    pub(super) fn new(config: &ChannelConfig, law: L, now: Time) -> Self {
        let usage = CwndUsage::new(config.usage, law.send_limits().window, now);
        Self { law_state: LawState::new(law, now), usage, ran_out: None, mss: Some(config.mss) }
    }

    /// Resets all state, with this law, except for what late acknowledgements refer to.
    pub(super) fn reset(&mut self, config: &ChannelConfig, law: L, now: Time) {
        self.usage = CwndUsage::new(config.usage, law.send_limits().window, now);
        self.law_state.reset(law, now);
        self.ran_out = None;
        self.mss = Some(config.mss);
    }
}
