//! Line rate: no congestion control, as in networks where only flow control (PFC) limits senders.

use units::Rate;

use crate::info::LawInfo;
use crate::limits::Limits;
use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Loss, Notification, Path, Permit};

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
    pub fn new(path: &Path, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, Rate::ZERO);
        Self { limits: limits.with_window(params.windowed, params.window, false) }
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

    fn permit(&self) -> Permit {
        self.limits.permit(self.limits.line())
    }

    fn acted(&self) -> Acted {
        Acted::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, loss, marked};
    use crate::{LossCause, Window};
    use units::Bytes;

    #[test]
    fn nothing_slows_it() {
        let mut law = LineRate::new(&PATH, Params::for_path(&PATH));
        let before = law.permit();
        assert_eq!(before, Permit { window: Window::LIMIT, pacing: Rate::from_gbps(100) });
        law.on_ack(&marked(&PATH, 0));
        law.on_loss(&loss(0, 1, LossCause::Timeout));
        assert_eq!((law.permit(), law.acted()), (before, Acted::default()));
    }

    #[test]
    fn a_window_holds_on_request() {
        let params = Params { windowed: true, line_rate: Rate::from_gbps(40), ..Params::for_path(&PATH) };
        let permit = Permit { window: Bytes::new(175_000), pacing: Rate::from_gbps(40) };
        assert_eq!(LineRate::new(&PATH, params).permit(), permit);
    }
}
