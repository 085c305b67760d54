//! A law of a channel, and how its window is used.

use laws::ControlLaw;
use units::{Bytes, Time};

use super::config::ChannelConfig;
use crate::control::Control;
use crate::usage::Usage;

/// There was less to send than the law permitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// It holds for packets that leave until so much was delivered (draft-cheng-iccrg-delivery-rate-estimation §3.4).
    pub(super) until: Bytes,
    /// Whether there was more, and something else kept it. If not, those packets measure no bandwidth.
    pub(super) held_back: bool,
}

/// A law of one subflow or of several, and what is known of how its window is used.
#[derive(Debug)]
pub(super) struct Governor<L> {
    pub(super) control: Control<L>,
    pub(super) usage: Usage,
    /// What was lacking is more than room; none if nothing was.
    pub(super) limit: Option<Limit>,
    /// When the window was full for the last time.
    pub(super) full_at: Option<Time>,
    /// When the pace held packets for the last time, unless data ran out since then with the window not full: so few would not have
    /// filled it without a pace, either (RFC 9002 §7.8).
    pub(super) paced_at: Option<Time>,
    /// Whether nothing was left to send as the last packet left.
    pub(super) ran_out: bool,
    /// The payload of a full packet that the law knows.
    pub(super) mss: u32,
}

impl<L: ControlLaw> Governor<L> {
    pub(super) fn new(config: &ChannelConfig, law: L, now: Time) -> Self {
        let usage = Usage::new(config.usage, law.permit().window, now);
        Self {
            control: Control::new(law, now),
            usage,
            limit: None,
            full_at: None,
            paced_at: None,
            ran_out: false,
            mss: config.mss,
        }
    }

    /// With this law, but for what late acknowledgements refer to.
    pub(super) fn begin_anew(&mut self, config: &ChannelConfig, law: L, now: Time) {
        self.usage = Usage::new(config.usage, law.permit().window, now);
        self.control.begin_anew(law, now);
        (self.limit, self.full_at, self.paced_at) = (None, None, None);
        (self.ran_out, self.mss) = (false, config.mss);
    }
}
