//! DCTCP: cut the window in proportion to the fraction of marked bytes. Alizadeh et al., SIGCOMM 2010, §3; RFC 8257. The
//! first mark triggers a cut, and then none follows for the window that was in flight: ECN's rule of one response per window.
//! (A law that waits for the end of a round trip responds twice to one event: the next round is full of marks from before the
//! cut, and the sawtooth is more than twice as tall as analysed.) Sending is not paced. State fits 104 bytes without the
//! counters of [`LawActions`].

use units::{Bytes, Frac, Time};

use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::{
    Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, RecoveryPeriod, Round, SendLimits, SlowStart, Window,
};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Weight of the newest round in the average marked fraction (g).
    ewma_gain: Fraction = Frac::ratio(1, 16), "1/16", Frac::ZERO, Frac::ONE;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "dctcp",
    title: "DCTCP",
    summary: "cuts the window in proportion to the fraction of marked bytes",
    source: "Alizadeh et al. (SIGCOMM 2010), §3; RFC 8257",
    signals: "ECN, loss",
    marks: EcnSupport::Used,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Dctcp {
    window: Window,
    initial: Bytes,
    slow_start: SlowStart,
    gain: Frac,
    alpha: Frac, // EWMA of the marked fraction, starts at 1 (RFC 8257 §3.3)
    round: Round,
    last_cut: Time,
    episode: RecoveryPeriod,
    actions: LawActions,
}

impl Dctcp {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        Self {
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            initial: params.initial_window,
            slow_start: SlowStart::new(),
            gain: params.ewma_gain,
            alpha: Frac::ONE,
            round: Round::new(),
            last_cut: Time::ZERO,
            episode: RecoveryPeriod::new(),
            actions: LawActions::default(),
        }
    }
}

impl ControlLaw for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.round.count(ack);
        if self.round.is_over(ack) {
            // alpha <- (1 - g) * alpha + g * F          (eq. 1)
            self.alpha = self.alpha.ewma(self.round.marked_fraction(), self.gain);
            self.round.restart(ack);
        }
        if !ack.marked.is_zero() && ack.sent_at >= self.last_cut {
            // cwnd <- cwnd * (1 - alpha / 2)            (eq. 2)
            self.actions.cuts += u64::from(self.window.cut(self.alpha.half()));
            self.slow_start.leave(&self.window);
            self.last_cut = ack.now;
        } else if !ack.app_limited {
            let before = self.window.bytes();
            let rest = self.slow_start.grow(&mut self.window, ack.acked);
            self.window.increase(self.window.floor(), rest);
            self.actions.increases += u64::from(self.window.bytes() > before);
        }
    }

    /// A loss halves the window once an episode, for any `alpha` (RFC 8257 §3.5); a timeout collapses it.
    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if response.apply(&mut self.window, &mut self.slow_start, Frac::HALF) {
            self.actions.loss_cuts += 1;
            self.last_cut = loss.now;
        }
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
        emit("alpha_ppm", self.alpha.ppm() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, Testbed, TestbedLink, ack, loss, marked};
    use units::{Bytes, Rate, Span, Time};

    fn law() -> Dctcp {
        Dctcp::new(&PATH, Params::for_path(&PATH))
    }

    #[test]
    fn the_first_mark_cuts_by_half_of_alpha() {
        let mut law = law();
        // alpha starts at 1, and the first ACK ends the first round: 15/16 + 1/16 of 1.
        law.on_ack(&marked(&PATH, 0));
        assert_eq!(law.alpha.ppm(), 1_000_000);
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        assert!(!law.slow_start.is_on(&law.window));
    }

    #[test]
    fn alpha_fades_over_clean_rounds() {
        let mut law = law();
        for round in 0..3u64 {
            law.on_ack(&Ack { delivered_at_send: law.round.acked(), ..ack(&PATH, 100 * (round + 1)) });
            // Each delivered count of a later packet is past the round's beginning.
            law.round = Round::new();
        }
        // (15/16)^3
        assert_eq!(law.alpha.ppm(), 823_974);
        assert_eq!(law.actions().cuts, 0);
        assert_eq!(law.send_limits().window, PATH.mss.times(13));
    }

    #[test]
    fn cuts_once_a_window() {
        let mut law = law();
        law.on_ack(&ack(&PATH, 0));
        // All of these were sent before the first of them was acknowledged at 20 us.
        for us in 20..34 {
            law.on_ack(&marked(&PATH, us));
        }
        assert_eq!(law.actions().cuts, 1);
        law.on_ack(&marked(&PATH, 34));
        assert_eq!(law.actions().cuts, 2);
    }

    #[test]
    fn a_loss_covers_the_marks_of_its_flight() {
        let mut law = law();
        law.on_loss(&loss(0, 20, LossCause::Nack));
        law.on_ack(&marked(&PATH, 21));
        assert_eq!(law.actions().cuts, 0);
    }

    #[test]
    fn a_loss_halves_and_a_timeout_collapses() {
        let mut law = law();
        law.on_loss(&loss(0, 20, LossCause::Nack));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        law.on_loss(&loss(1, 21, LossCause::Nack));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        law.on_loss(&loss(30, 90, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        assert_eq!(law.actions().loss_cuts, 2);
    }

    /// SIGCOMM 2010, §3.3: one flow at C x RTT + K of W* packets swings by sqrt(W* / 2) and never empties the queue if K is
    /// over a seventh of C x RTT. Tolerance: a packet at either end of the swing, which consists of whole packets.
    #[test]
    fn the_sawtooth_has_the_analysed_amplitude() {
        let path = PathInfo {
            base_rtt: Span::from_us(400),
            intra_rtt: Span::from_us(400),
            line_rate: Rate::from_gbps(10),
            mss: Bytes::new(1_500),
        };
        let k = 100.0;
        let link = TestbedLink {
            rate: path.line_rate,
            mark_over: path.mss.times(100),
            drop_over: Bytes::new(1 << 30),
            phantom: None,
        };
        let mut bed = Testbed::new(link);
        bed.add(Dctcp::new(&path, Params::for_path(&path)), &path, Time::ZERO);
        bed.run(Time::from_ms(300));
        bed.forget_backlog();
        bed.run(Time::from_ms(400));
        let (max_queue, min_queue) = (bed.backlog.0.get() as f64 / 1_500.0, bed.backlog.1.get() as f64 / 1_500.0);
        let w_star = 400e-6 * 10e9 / 8.0 / 1_500.0 + k;
        let amplitude = (w_star / 2.0_f64).sqrt();
        assert!((k..k + 4.0).contains(&max_queue), "the queue peaks at K + 1 a round late, at {max_queue}");
        assert!((max_queue - min_queue - amplitude).abs() < 2.0, "{} against {amplitude}", max_queue - min_queue);
        assert!(min_queue > 0.0);
    }
}
