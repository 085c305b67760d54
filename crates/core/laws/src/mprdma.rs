//! MPRDMA: one packet of increase a round trip for unmarked packets, half a packet of decrease for each marked one.
//! Lu et al., "Multi-Path Transport for RDMA in Datacenters", NSDI 2018, "Congestion control and
//! multi-path ACK-clocking" (the window only: paths are the host's). A loss halves the window once an episode; a
//! timeout collapses it to one packet, without slow start.
//! No pacing. State fits 104 bytes without the counters of [`LawActions`].

use units::Frac;

use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::{
    Ack, ControlLaw, LawActions, Loss, LossCause, LossResponse, Notification, PathInfo, RecoveryPeriod, SendLimits,
    Window,
};

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Decrease of the window per marked packet, in packets.
    mark_cut: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::from_bits(16 << 32);
    /// Share of the window that is left after a loss.
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Collapses the window to one packet on a timeout; off: a timeout changes nothing.
    timeout_collapses: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "mprdma",
    title: "MPRDMA",
    summary: "one packet more a round trip, half a packet less a marked packet",
    source: "Lu et al. (NSDI 2018), congestion control and multi-path ACK-clocking",
    signals: "ECN, loss",
    marks: EcnSupport::Used,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct MpRdma {
    window: Window,
    mark_cut: Frac,
    beta: Frac,
    timeout_collapses: bool,
    episode: RecoveryPeriod,
    actions: LawActions,
}

impl MpRdma {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let bdp = path.bdp();
        Self {
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            mark_cut: params.mark_cut,
            beta: params.beta,
            timeout_collapses: params.timeout_collapses,
            episode: RecoveryPeriod::new(),
            actions: LawActions::default(),
        }
    }
}

impl ControlLaw for MpRdma {
    /// In packets: cwnd <- cwnd + 1/cwnd for each unmarked one, cwnd <- cwnd - 1/2 for each marked one.
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.marked.is_zero() {
            self.actions.cuts += u64::from(self.window.shrink(ack.marked.scaled(self.mark_cut)));
        } else if !ack.app_limited {
            self.actions.increases += u64::from(self.window.increase(self.window.floor(), ack.acked));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.cause == LossCause::Timeout && !self.timeout_collapses {
            return;
        }
        match self.episode.respond(loss) {
            LossResponse::Ignore => return,
            LossResponse::Cut => drop(self.window.cut(self.beta.complement())),
            LossResponse::Collapse | LossResponse::CollapseAgain => self.window.collapse(),
        }
        self.actions.loss_cuts += 1;
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            self.window.follow(mss);
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.window.bytes())
    }

    fn actions(&self) -> LawActions {
        self.actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, ack, loss, marked};
    use units::Bytes;

    fn law(mark_cut: Frac) -> MpRdma {
        MpRdma::new(&PATH, Params { mark_cut, ..Params::for_path(&PATH) })
    }

    #[test]
    fn a_marked_packet_takes_half_a_packet() {
        let mut law = law(Frac::HALF);
        assert_eq!(law.send_limits().window, Bytes::new(175_000));
        law.on_ack(&marked(&PATH, 0));
        law.on_ack(&marked(&PATH, 1));
        assert_eq!(law.send_limits().window, Bytes::new(175_000 - 4_096));
        // One acknowledgement of four packets counts as four.
        law.on_ack(&Ack { acked: Bytes::new(16_384), marked: Bytes::new(16_384), ..marked(&PATH, 2) });
        assert_eq!(law.send_limits().window, Bytes::new(175_000 - 3 * 4_096));
    }

    #[test]
    fn a_window_of_unmarked_packets_adds_one() {
        let mut law = law(Frac::HALF);
        for us in 0..43 {
            law.on_ack(&ack(&PATH, us));
        }
        // 43 packets are 1.0064 windows, less as the window grows (by 1.2 %): 4,075 B.
        let grown = law.send_limits().window.get() - 175_000;
        assert!((4_070..=4_080).contains(&grown), "{grown}");
    }

    /// With one packet of n marked, increase and decrease are even where (n - 1) / W = c: W = (n - 1) / c packets.
    #[test]
    fn settles_where_increase_meets_decrease() {
        for (mark_cut, packets) in [(500_000, 18.0), (150_000, 60.0)] {
            let mut law = law(Frac::millionths(mark_cut));
            for us in 0..20_000 {
                law.on_ack(&if us % 10 == 0 { marked(&PATH, us) } else { ack(&PATH, us) });
            }
            let window = law.send_limits().window.get() as f64 / 4_096.0;
            assert!((window - packets).abs() < 0.02 * packets, "{window} against {packets}");
        }
    }

    #[test]
    fn a_loss_halves_and_a_timeout_collapses_without_slow_start() {
        let mut law = law(Frac::HALF);
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_loss(&loss(1, 21, LossCause::Reordered));
        assert_eq!(law.send_limits().window, Bytes::new(87_500));
        law.on_loss(&loss(2, 50, LossCause::Timeout));
        law.on_ack(&ack(&PATH, 90));
        assert_eq!(law.send_limits().window, PATH.mss.times(2));
        law.on_ack(&ack(&PATH, 91));
        assert_eq!(law.send_limits().window, Bytes::new(2 * 4_096 + 2_048));
    }

    #[test]
    fn timeouts_change_nothing_where_they_do_not_collapse() {
        let mut law = MpRdma::new(&PATH, Params { timeout_collapses: false, ..Params::for_path(&PATH) });
        let before = law.clone();
        law.on_loss(&loss(2, 50, LossCause::Timeout));
        assert_eq!(law, before);
        law.on_loss(&loss(60, 80, LossCause::Reordered));
        assert_eq!(law.send_limits().window, Bytes::new(87_500));
    }
}
