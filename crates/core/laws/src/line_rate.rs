//! Line rate: no congestion control, as in networks where only flow control (PFC) limits senders.

use units::Rate;

use crate::info::LawInfo;
use crate::limits::{Limits, RateWindow};
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits};

parameters! { path;
    /// The rate.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// Limits the bytes in flight by a window.
    windowed: Switch = false, "false", false, true;
    /// Window, with `windowed`.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "line-rate",
    title: "Line rate",
    summary: "sends at line rate whatever happens: only flow control holds it back",
    source: "none",
    signals: "none",
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct LineRate {
    limits: Limits,
}

impl LineRate {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, Rate::ZERO);
        let window = RateWindow { windowed: params.windowed, at_line_rate: params.window, scales: false };
        Self { limits: limits.with_window(window) }
    }
}

impl ControlLaw for LineRate {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            self.limits.follow(mss);
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.limits.send_limits(self.limits.line())
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, loss, marked};
    use crate::{LossCause, Window};
    use units::Bytes;

    #[test]
    fn no_event_changes_the_rate() {
        let mut law = LineRate::new(&PATH, Params::for_path(&PATH));
        let before = law.send_limits();
        assert_eq!(before, SendLimits { window: Window::LIMIT, pacing: Rate::from_gbps(100) });
        law.on_ack(&marked(&PATH, 0));
        law.on_loss(&loss(0, 1, LossCause::Timeout));
        assert_eq!((law.send_limits(), law.actions()), (before, LawActions::default()));
    }

    #[test]
    fn a_window_applies_if_enabled() {
        let params = Params { windowed: true, line_rate: Rate::from_gbps(40), ..Params::for_path(&PATH) };
        let send_limits = SendLimits { window: Bytes::new(175_000), pacing: Rate::from_gbps(40) };
        assert_eq!(LineRate::new(&PATH, params).send_limits(), send_limits);
    }
}
