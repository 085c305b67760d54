//! Fixed: a constant window under all conditions. A baseline, and an aid to tests of a law's host.

use units::Span;

use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits, Window};

parameters! { path;
    /// The window.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Paces packets over the base RTT.
    paced: Switch = false, "false", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "fixed",
    title: "Fixed window",
    summary: "a constant window, whatever happens: a baseline and an aid to tests",
    source: "none",
    signals: "none",
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Fixed {
    window: Window,
    base_rtt: Span, // zero: no pacing
}

impl Fixed {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        Self {
            window: Window::new(params.window, path.mss, Window::LIMIT),
            base_rtt: if params.paced { path.base_rtt } else { Span::ZERO },
        }
    }
}

impl ControlLaw for Fixed {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            self.window.follow(mss);
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::paced_window(self.window.bytes(), self.base_rtt)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, loss, marked};
    use units::{Bytes, Rate};

    #[test]
    fn no_event_changes_the_window() {
        let mut law = Fixed::new(&PATH, Params::for_path(&PATH));
        let before = law.send_limits();
        assert_eq!(before, SendLimits::window(Bytes::new(175_000)));
        law.on_ack(&marked(&PATH, 0));
        law.on_loss(&loss(0, 1, LossCause::Timeout));
        assert_eq!(law.send_limits(), before);
    }

    #[test]
    fn paces_if_enabled() {
        let params = Params { paced: true, window: Bytes::new(87_500) };
        assert_eq!(Fixed::new(&PATH, params).send_limits().pacing, Rate::from_gbps(50));
    }
}
