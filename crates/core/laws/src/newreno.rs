//! `NewReno`: slow start, one packet of increase a round trip, half the window at a loss.
//! RFC 5681 and RFC 6582 (its recovery from several losses in one flight is [`RecoveryPeriod`]'s and the host's).
//! Marks count as loss once an episode (RFC 3168) with a cut of their own (RFC 8511) where `ecn` is on.
//! No pacing. State fits 104 bytes without the counters of [`LawActions`].

use units::{Bytes, Frac};

use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::{
    Ack, ControlLaw, LawActions, Loss, LossResponse, Notification, PathInfo, RecoveryPeriod, SendLimits, SlowStart,
    Window,
};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Share of the window that is left after a loss (beta).
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Cuts the window on marks.
    ecn: Switch = false, "false", false, true;
    /// Share of the window that is left after a mark (beta of RFC 8511).
    ecn_beta: Fraction = Frac::millionths(800_000), "0.8", Frac::ZERO, Frac::ONE;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "newreno",
    title: "NewReno",
    summary: "one packet more a round trip, half the window at a loss",
    source: "RFC 5681, §3; RFC 6582; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    marks: EcnSupport::If("ecn"),
    linux: Some("reno"),
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct NewReno {
    window: Window,
    initial: Bytes,
    slow_start: SlowStart,
    episode: RecoveryPeriod,
    beta: Frac,
    ecn: bool,
    ecn_beta: Frac,
    actions: LawActions,
}

impl NewReno {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        Self {
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            initial: params.initial_window,
            slow_start: SlowStart::new(),
            episode: RecoveryPeriod::new(),
            beta: params.beta,
            ecn: params.ecn,
            ecn_beta: params.ecn_beta,
            actions: LawActions::default(),
        }
    }
}

impl ControlLaw for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.ecn && !ack.marked.is_zero() && self.episode.begins(ack.sent_at, ack.now) {
            LossResponse::Cut.apply(&mut self.window, &mut self.slow_start, self.ecn_beta);
            self.actions.cuts += 1;
            return;
        }
        if ack.app_limited {
            return;
        }
        // cwnd <- cwnd + MSS * acked / cwnd          (RFC 5681 eq. 3, counting bytes)
        let before = self.window.bytes();
        let rest = self.slow_start.grow(&mut self.window, ack.acked);
        self.window.increase(self.window.floor(), rest);
        self.actions.increases += u64::from(self.window.bytes() > before);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        self.actions.loss_cuts += u64::from(response.apply(&mut self.window, &mut self.slow_start, self.beta));
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.slow_start.on_notification(notification, &mut self.window, self.initial);
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.slow_start.ended_at()
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.window.bytes())
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("threshold_bytes", self.slow_start.threshold().min(Window::LIMIT).get() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, ack, loss, marked};

    fn law(change: impl Fn(&mut Params)) -> NewReno {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        NewReno::new(&PATH, params)
    }

    #[test]
    fn doubles_halves_and_then_adds_a_packet_a_round_trip() {
        let mut law = law(|_| {});
        for us in 0..10 {
            law.on_ack(&ack(&PATH, us));
        }
        assert_eq!(law.send_limits().window, PATH.mss.times(20));
        law.on_loss(&loss(5, 20, LossCause::Reordered));
        law.on_loss(&loss(6, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(10));
        for us in 40..50 {
            law.on_ack(&ack(&PATH, us));
        }
        // Ten packets: 0.1 packet each, less as the window grows: 0.9586 packets, as in the window's own test.
        assert_eq!(law.send_limits().window.get() - 40_960, 3_926);
        assert_eq!(law.actions(), LawActions { increases: 20, loss_cuts: 1, ..LawActions::default() });
    }

    #[test]
    fn a_timeout_starts_over() {
        let mut law = law(|_| {});
        law.on_loss(&loss(0, 20, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        for us in 40..44 {
            law.on_ack(&ack(&PATH, us));
        }
        // Doubling again, up to half of ten.
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
    }

    #[test]
    fn marks_count_only_if_enabled() {
        let mut without_ecn = law(|_| {});
        without_ecn.on_ack(&marked(&PATH, 0));
        assert_eq!(without_ecn.send_limits().window, PATH.mss.times(11));
        let mut law = law(|params| params.ecn = true);
        law.on_ack(&marked(&PATH, 0));
        assert_eq!(law.send_limits().window, PATH.mss.times(10).scaled(Frac::millionths(800_000)));
        // The same flight's next mark cuts no more, and is acknowledged payload like any other.
        law.on_ack(&marked(&PATH, 1));
        assert_eq!(law.actions().cuts, 1);
        law.on_ack(&marked(&PATH, 20));
        assert_eq!(law.actions().cuts, 2);
    }

    #[test]
    fn the_increase_follows_the_mss() {
        let mut law = law(|_| {});
        law.on_loss(&loss(0, 1, LossCause::Reordered));
        law.on_notification(&Notification::Mss(Bytes::new(1_024)));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        for us in 20..25 {
            law.on_ack(&ack(&PATH, us));
        }
        // A window of 20,480 B: 5 terms of 1,024 * 4,096 / cwnd from 20,480 up are 1,004.
        assert!((1_003..=1_005).contains(&(law.send_limits().window.get() - 20_480)), "{}", law.send_limits().window);
        law.on_loss(&loss(30, 50, LossCause::Timeout));
        assert_eq!(law.send_limits().window, Bytes::new(1_024));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut law = law(|_| {});
        law.on_ack(&Ack { app_limited: true, ..ack(&PATH, 0) });
        assert_eq!(law.send_limits().window, PATH.mss.times(10));
    }
}
