//! Cubic: the window follows a cubic function of the time since the last cut.
//!
//! RFC 9438. Slow start is RFC 9406's where `hystart` is on, and Linux's where `hystart_train` or `hystart_delay` is.
//! Left out: spurious-congestion detection (§4.9). W(t + RTT) uses the RTT of the acknowledgement at hand. Pacing,
//! where `paced` is on, is Linux's for TCP under its FQ. Marks cut like a loss, once an episode, with a factor of their
//! own (RFC 8511) where `ecn` is on. State is over 104 bytes with 64-bit windows, so a kernel needs socket storage for
//! it.

use units::{Bytes, Frac, Rate, Span, Time, cube_root, mul_div, mul_saturating};

use crate::hystart::HyStart;
use crate::info::{EcnSupport, LawInfo};
use crate::linux_hystart::{Detect, LinuxHyStart};
use crate::params::{parameters, range};
use crate::window::share;
use crate::{
    Ack, ControlLaw, LawActions, Loss, LossResponse, Notification, PathInfo, RecoveryPeriod, SendLimits, SlowStart,
    Window,
};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Share of the window that is left after a loss (beta of RFC 9438).
    beta: Fraction = Frac::millionths(700_000), "0.7", Frac::ZERO, Frac::ONE;
    /// Constant of window growth, in packets per second cubed (C).
    c: Fraction = Frac::millionths(400_000), "0.4", Frac::millionths(1), Frac::from_bits(1_000 << 32);
    /// Makes a flow that is still shrinking give up more, so that newcomers grow (fast convergence, §4.7).
    fast_convergence: Switch = true, "true", false, true;
    /// Keeps the window at or above that of AIMD with the same cut (Reno-friendly region, §4.3).
    reno_friendly: Switch = true, "true", false, true;
    /// Paces packets over the smoothed RTT: at 2 times window / RTT below half of ssthresh, else at 1.2 times.
    paced: Switch = false, "false", false, true;
    /// Cuts the window on marks.
    ecn: Switch = false, "false", false, true;
    /// Share of the window that is left after a mark (beta of RFC 8511).
    ecn_beta: Fraction = Frac::millionths(850_000), "0.85", Frac::ZERO, Frac::ONE;
    /// Ends the first slow start when RTTs grow (`HyStart++`, RFC 9406).
    hystart: Switch = false, "false", false, true;
    /// Ends slow start when an ACK train lasts half the smallest RTT, all of it if paced (Linux's `HyStart`).
    hystart_train: Switch = false, "false", false, true;
    /// Ends slow start when RTTs grow by an eighth, at least 4 and at most 16 ms (Linux's `HyStart`).
    hystart_delay: Switch = false, "false", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "cubic",
    title: "Cubic",
    summary: "grows as a cubic function of the time since the last cut",
    source: "RFC 9438, §4; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    marks: EcnSupport::If("ecn"),
    linux: Some("cubic"),
    ..LawInfo::of(Params::TABLE)
};

/// Pacing over window / smoothed RTT while the window is under half the threshold, and then (Linux's
/// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`).
const PACING_IN_SLOW_START: Frac = Frac::from_bits(2 << 32);
const PACING: Frac = Frac::millionths(1_200_000);

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Cubic {
    params: Params,
    window: Window,
    slow_start: SlowStart,
    hystart: HyStart,
    linux_hystart: LinuxHyStart,
    episode: RecoveryPeriod,
    w_max: Bytes,      // W_max: the window before the last cut, less by fast convergence; 0 if unknown
    cwnd_prior: Bytes, // the window before the last cut
    curve: Option<Curve>,
    settled: Time,  // the curve's clock has run, or was stopped, up to this time
    smoothed: Span, // srtt; zero before the first sample
    actions: LawActions,
}

/// The curve of one stage of congestion avoidance, and the AIMD estimate.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
struct Curve {
    began: Time, // t_epoch, plus the sender's idle time
    w_max: Bytes,
    k: u64, // K in 2^-20 s
    w_est: Bytes,
    carry: u64,
}

impl Cubic {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        Self {
            params,
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            slow_start: SlowStart::new(),
            hystart: HyStart::new(),
            linux_hystart: LinuxHyStart::new(),
            episode: RecoveryPeriod::new(),
            w_max: Bytes::ZERO,
            cwnd_prior: Bytes::ZERO,
            curve: None,
            settled: Time::ZERO,
            smoothed: Span::ZERO,
            actions: LawActions::default(),
        }
    }

    const fn has_linux_hystart(&self) -> bool {
        self.params.hystart_train || self.params.hystart_delay
    }

    /// Runs Linux's `HyStart`, which may end slow start before this acknowledgement grows the window.
    fn detect(&mut self, ack: &Ack) {
        self.linux_hystart.observe(ack);
        if !self.slow_start.is_on(&self.window) {
            return;
        }
        let Params { hystart_train: train, hystart_delay: delay, paced, .. } = self.params;
        let pace = self.pace();
        if self.linux_hystart.ends(ack, &self.window, pace, Detect { train, delay, paced }) {
            self.slow_start.leave(&self.window);
        }
    }

    /// The rate at which Linux paces, or would pace if `paced` is off; at least 1 b/s.
    fn pace(&self) -> Rate {
        let window = self.window.bytes();
        let doubling = window < self.slow_start.threshold().ratio(1, 2);
        let rate = Rate::of(window, self.smoothed).scaled(if doubling { PACING_IN_SLOW_START } else { PACING });
        rate.max(Rate::from_bps(1))
    }

    /// Performs slow start (§4.10). Returns the bytes left over for congestion avoidance.
    fn grow_in_slow_start(&mut self, ack: &Ack) -> Bytes {
        if !self.params.hystart || !self.slow_start.is_first() {
            return self.slow_start.grow(&mut self.window, ack.acked);
        }
        if let Some(acked) = self.hystart.on_ack(ack) {
            self.slow_start.grow(&mut self.window, acked)
        } else {
            // The curve begins where the window is, with K = 0.
            self.slow_start.leave(&self.window);
            ack.acked
        }
    }

    /// Congestion avoidance (§4.2 to §4.5).
    fn avoid(&mut self, ack: &Ack, acked: Bytes) {
        let (cwnd, mss) = (self.window.bytes(), self.window.floor());
        let (c, w_max) = (self.params.c, self.w_max);
        let curve = self.curve.get_or_insert_with(|| Curve::begin(ack.now, cwnd, w_max, c, mss));
        let target = curve.at(ack.now.since(curve.began) + ack.rtt, c, mss).min(cwnd + cwnd.scaled(Frac::HALF));
        // cwnd <- cwnd + (target - cwnd) / cwnd for each packet, target within [cwnd, 1.5 cwnd].
        self.window.increase(target.saturating_sub(cwnd), acked);
        if self.params.reno_friendly {
            // W_est <- W_est + alpha_cubic * acked / cwnd, alpha_cubic = 1 once it reaches the window before the cut.
            let alpha = if curve.w_est >= self.cwnd_prior { Frac::ONE } else { reno_alpha(self.params.beta) };
            let grown = share(&mut curve.carry, mss.scaled(alpha), acked, cwnd);
            curve.w_est = curve.w_est.saturating_add(grown).min(self.window.cap());
            if curve.w_est > self.window.bytes() {
                self.window.set(curve.w_est);
            }
        }
    }

    /// Excludes the time from `began` to `now` from the curve: there was not enough to send (§5.8; `cubictcp_cwnd_event` in
    /// Linux). No instant may be excluded twice, or the curve would begin in the future. As in Linux, the curve begins now at
    /// the latest: a kernel takes the times of acknowledgements and losses from different clocks.
    fn stop_clock(&mut self, began: Time, now: Time) {
        if let Some(curve) = &mut self.curve {
            curve.began = (curve.began + now.since(began)).min(now);
        }
    }

    /// Sets the maximum at a cut (§4.6 and §4.7).
    fn set_w_max(&mut self) {
        let cwnd = self.window.bytes();
        self.w_max = if self.params.fast_convergence && cwnd < self.w_max {
            cwnd.scaled((Frac::ONE + self.params.beta).half())
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.curve = None;
    }
}

impl Curve {
    /// The curve that begins at `cwnd` and flattens at `w_max` (§4.2).
    fn begin(now: Time, cwnd: Bytes, w_max: Bytes, c: Frac, mss: Bytes) -> Self {
        // K <- cbrt((W_max - cwnd) / C). In units of 2^-10 s: K^3 = (W_max - cwnd) / (C * mss) * 2^30. The product
        // C * mss has 32 fractional bits and is under 2^58; cube_root takes up to 2^63.
        let below = w_max.saturating_sub(cwnd).get();
        let cube = mul_div(below, 1 << 62, (mul_saturating(c.bits(), mss.get())).max(1));
        let k = cube_root(cube.min(i64::MAX as u64)) << 10;
        Self { began: now, w_max: w_max.max(cwnd), k, w_est: cwnd, carry: 0 }
    }

    /// The window that the curve has at `t` after it began, not under 0 (§4.2).
    fn at(&self, t: Span, c: Frac, mss: Bytes) -> Bytes {
        // W_cubic(t) = C * (t - K)^3 + W_max
        const SECOND: u64 = 1 << 20;
        // 10^12 ps = 2^12 * 5^12 ps, so 2^-20 s is 5^12 / 2^8 ps.
        let t = mul_div(t.unsigned_ps(), 1 << 8, 244_140_625);
        // At most 2^30 (1024 s), its cube in 2^-20 s^3 at most 2^50.
        let distance = t.abs_diff(self.k).min(1 << 30);
        let cube = mul_div(distance * distance / SECOND, distance, SECOND);
        let change = Bytes::new(mul_div(cube, mul_saturating(c.bits(), mss.get()), 1 << 52));
        if t >= self.k { self.w_max.saturating_add(change) } else { self.w_max.saturating_sub(change) }
    }
}

/// The increase with which AIMD has Cubic's mean window: 3 (1 - beta) / (1 + beta) (§4.3, eq. 4).
fn reno_alpha(beta: Frac) -> Frac {
    Frac::ratio(3 * beta.complement().bits(), (Frac::ONE + beta).bits())
}

impl ControlLaw for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        let began = core::mem::replace(&mut self.settled, ack.now);
        if self.params.paced || self.has_linux_hystart() {
            // srtt <- 7/8 srtt + 1/8 rtt (RFC 6298)
            let before = if self.smoothed.is_zero() { ack.rtt } else { self.smoothed };
            self.smoothed = before - before.over(8) + ack.rtt.over(8);
        }
        if self.has_linux_hystart() {
            self.detect(ack);
        }
        if self.params.ecn && !ack.marked.is_zero() && self.episode.begins(ack.sent_at, ack.now) {
            self.set_w_max();
            LossResponse::Cut.apply(&mut self.window, &mut self.slow_start, self.params.ecn_beta);
            self.actions.cuts += 1;
            return;
        }
        if ack.app_limited {
            self.stop_clock(began, ack.now);
            return;
        }
        let before = self.window.bytes();
        let rest = self.grow_in_slow_start(ack);
        if !rest.is_zero() {
            self.avoid(ack, rest);
        }
        self.actions.increases += u64::from(self.window.bytes() > before);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if matches!(response, LossResponse::Cut | LossResponse::Collapse) {
            self.set_w_max();
        }
        if response.apply(&mut self.window, &mut self.slow_start, self.params.beta) {
            self.actions.loss_cuts += 1;
        }
        if matches!(response, LossResponse::Collapse | LossResponse::CollapseAgain) {
            // The next stage begins at its own W_max, with K = 0 (§4.8).
            self.w_max = Bytes::ZERO;
            self.curve = None;
            // As in Linux's `cubictcp_state`.
            self.linux_hystart = LinuxHyStart::new();
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification
            && self.window.follow(mss)
        {
            // C counts packets. Below W_max the new curve continues from the current window, above it with K = 0.
            self.curve = None;
        }
        self.slow_start.on_notification(notification, &mut self.window, self.params.initial_window);
        if let Notification::Idle { now, idle, .. } = *notification {
            // The last packets may have been acknowledged since, and the next acknowledgement may report again that the
            // window was not used.
            let began = core::mem::replace(&mut self.settled, now).max(now - idle);
            self.stop_clock(began, now);
        }
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.slow_start.ended_at()
    }

    fn send_limits(&self) -> SendLimits {
        let window = self.window.bytes();
        // The initial window is not paced: no RTT is known yet.
        if !self.params.paced || self.smoothed.is_zero() {
            return SendLimits::window(window);
        }
        SendLimits { window, pacing: self.pace() }
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("w_max_bytes", self.w_max.get() as i64);
        emit("threshold_bytes", self.slow_start.threshold().min(Window::LIMIT).get() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{LONG_PATH, PATH, ack, loss, marked};
    use proptest::prelude::*;

    fn law(path: &PathInfo, change: impl Fn(&mut Params)) -> Cubic {
        let mut params = Params::for_path(path);
        change(&mut params);
        Cubic::new(path, params)
    }

    /// RFC 9438's curve (§4.2) in packets.
    fn w_cubic(t: f64, cwnd: f64, w_max: f64, c: f64) -> f64 {
        let k = ((w_max - cwnd).max(0.0) / c).cbrt();
        c * (t - k).powi(3) + w_max.max(cwnd)
    }

    proptest! {
        /// The integer curve against the formula, from one packet to 5 GB and up to a quarter of an hour.
        #[test]
        fn curve_matches_rfc9438(
            packets in 2..3_000_000u64, kept in 0.1..1.0f64, ms in 0..1_000_000i64, c in 10_000..10_000_000u64,
        ) {
            let mss = Bytes::new(1_500);
            let w_max = mss.times(packets);
            let cwnd = Bytes::new((w_max.get() as f64 * kept) as u64);
            let fraction = Frac::millionths(c);
            let curve = Curve::begin(Time::ZERO, cwnd, w_max, fraction, mss);
            let c = c as f64 / 1e6;
            let exact = w_cubic(ms as f64 / 1e3, cwnd.get() as f64 / 1_500.0, packets as f64, c).max(0.0);
            let got = curve.at(Span::from_ms(ms), fraction, mss).get() as f64 / 1_500.0;
            // K is exact to 1 ms, so W is exact to the slope of the curve times 1 ms.
            let k = ((packets as f64 - cwnd.get() as f64 / 1_500.0) / c).cbrt();
            let distance = ms as f64 / 1e3 - k;
            let slope = 3.0 * c * distance * distance;
            prop_assert!((got - exact).abs() <= 0.01 + 0.002 * slope + 1e-5 * exact, "{} for {}", got, exact);
        }

        #[test]
        fn the_curve_never_falls(w_max in 1..1u64 << 40, below in 0..1u64 << 40, ms in 0..2_000_000i64, more in 0..100_000i64) {
            let (mss, c) = (Bytes::new(1_500), Frac::millionths(400_000));
            let curve = Curve::begin(Time::ZERO, Bytes::new(w_max.saturating_sub(below)), Bytes::new(w_max), c, mss);
            prop_assert!(curve.at(Span::from_ms(ms), c, mss) <= curve.at(Span::from_ms(ms + more), c, mss));
        }
    }

    #[test]
    fn the_curve_does_not_overflow() {
        let (mss, c) = (Bytes::new(65_536), Frac::from_bits(1_000 << 32));
        let curve = Curve::begin(Time::ZERO, Bytes::ZERO, Window::LIMIT, c, mss);
        // 1024 s past K at 1000 packets per second cubed is a long way up, and nothing overflows on the way.
        assert!(curve.at(Span::MAX, c, mss) > Window::LIMIT.times(64));
    }

    #[test]
    fn a_loss_cuts_by_beta_and_sets_w_max() {
        let mut law = law(&PATH, |_| {});
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, Bytes::new(28_671));
        assert_eq!(law.w_max, Bytes::new(40_960));
        // Fast convergence: a flow that loses packets before it is back at W_max reduces it by 15 % more.
        law.on_loss(&loss(30, 50, LossCause::Reordered));
        assert_eq!(law.w_max, Bytes::new(28_671).scaled(Frac::millionths(850_000)));
    }

    /// A cut of 0.2 instead of 0.3, as in some papers: AIMD's increase is then 3 * 0.2 / 1.8 packets (eq. 4).
    #[test]
    fn beta_is_a_parameter() {
        let mut law = law(&PATH, |params| params.beta = Frac::millionths(800_000));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(10).scaled(Frac::millionths(800_000)));
        law.on_loss(&loss(30, 50, LossCause::Reordered));
        // Fast convergence: (1 + beta) / 2.
        assert_eq!(law.w_max, PATH.mss.times(10).scaled(Frac::millionths(800_000)).scaled(Frac::millionths(900_000)));
        assert!(reno_alpha(law.params.beta).ppm().abs_diff(333_333) <= 1);
        assert!(reno_alpha(Frac::millionths(700_000)).ppm().abs_diff(529_411) <= 1);
    }

    #[test]
    fn paces_if_enabled() {
        let mut law = law(&PATH, |params| params.paced = true);
        assert_eq!(law.send_limits(), SendLimits::window(PATH.mss.times(10)));
        law.on_ack(&ack(&PATH, 0));
        let even = Rate::of(PATH.mss.times(11), PATH.base_rtt);
        assert_eq!(law.send_limits().pacing, even.scaled(PACING_IN_SLOW_START));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        let even = Rate::of(law.send_limits().window, PATH.base_rtt);
        assert_eq!(law.send_limits().pacing, even.scaled(PACING));
        // An eighth of the way to a round trip twice as long.
        law.on_ack(&Ack { acked: Bytes::ZERO, rtt: Span::from_us(28), ..ack(&PATH, 60) });
        assert_eq!(law.smoothed, Span::from_ns(15_750));
    }

    #[test]
    fn without_fast_convergence_the_maximum_is_the_window() {
        let mut law = law(&PATH, |params| params.fast_convergence = false);
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_loss(&loss(30, 50, LossCause::Reordered));
        assert_eq!(law.w_max, Bytes::new(28_671));
    }

    /// A flow of 10,000 packets and 100 ms recovers along the formula: checked each round trip.
    #[test]
    fn the_window_follows_the_curve() {
        let path = PathInfo { base_rtt: Span::from_ms(100), mss: Bytes::new(1_500), ..LONG_PATH };
        let mut law = law(&path, |params| {
            params.initial_window = path.mss.times(10_000);
            params.reno_friendly = false;
        });
        law.on_loss(&loss(0, 100_000, LossCause::Reordered));
        let mut now_us = 200_000;
        let began = now_us;
        let mut checked = 0;
        while now_us < 40_000_000 {
            let window = law.send_limits().window;
            let acks = 100;
            for part in 0..acks {
                let ack = ack(&path, now_us + part * 1_000);
                law.on_ack(&Ack { acked: window.ratio(1, acks), ..ack });
            }
            now_us += 100_000;
            let t = (now_us - began) as f64 / 1e6;
            let exact = w_cubic(t, 7_000.0, 10_000.0, 0.4);
            let got = law.send_limits().window.get() as f64 / 1_500.0;
            if exact < 1.4 * got {
                assert!((got / exact - 1.0).abs() < 0.02, "{got} for {exact} at {t} s");
                checked += 1;
            }
        }
        assert!(checked > 300);
    }

    /// §4.3: where round trips are short, Cubic grows as AIMD with alpha = 3 (1 - beta) / (1 + beta) = 0.529.
    #[test]
    fn is_friendly_to_reno_on_short_paths() {
        let mut law = law(&PATH, |params| params.initial_window = PATH.mss.times(1_000));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        let before = law.send_limits().window;
        for round in 0..100u64 {
            let window = law.send_limits().window;
            law.on_ack(&Ack { acked: window, ..ack(&PATH, 100 + 14 * round) });
        }
        let grown = (law.send_limits().window - before).get() as f64 / 4_096.0;
        assert!((grown - 52.9).abs() < 0.3, "{grown} packets in 100 round trips");
        // After 567 round trips it is back at the window before the cut, and adds a packet each.
        for round in 100..768u64 {
            let window = law.send_limits().window;
            law.on_ack(&Ack { acked: window, ..ack(&PATH, 100 + 14 * round) });
        }
        let over = law.send_limits().window.get() as f64 / 4_096.0 - 1_000.0;
        assert!((over - 200.0).abs() < 2.5, "{over} packets over the window of the cut");
    }

    /// §4.2: the first round trip already aims at W(RTT): slope 3 C K^2 = 460 packets a second, K = 19.6 s.
    #[test]
    fn aims_a_round_trip_ahead() {
        let path = PathInfo { base_rtt: Span::from_ms(100), ..LONG_PATH };
        let mut law = law(&path, |params| params.initial_window = path.mss.times(10_000));
        law.on_loss(&loss(0, 100_000, LossCause::Reordered));
        let before = law.send_limits().window;
        law.on_ack(&Ack { acked: before, ..ack(&path, 200_000) });
        let grown = (law.send_limits().window - before).get() as f64 / 4_096.0;
        assert!((45.0..47.0).contains(&grown), "{grown}");
    }

    #[test]
    fn grows_by_half_a_round_trip_at_most() {
        let mut law = law(&PATH, |params| params.c = Frac::from_bits(1_000 << 32));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_ack(&ack(&PATH, 40));
        let before = law.send_limits().window;
        law.on_ack(&Ack { acked: before, ..ack(&PATH, 60_000_000) });
        assert_eq!(law.send_limits().window, before + before.scaled(Frac::HALF));
    }

    #[test]
    fn a_timeout_starts_over_with_a_flat_curve() {
        let mut law = law(&PATH, |_| {});
        law.on_loss(&loss(0, 20, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        for us in 40..48 {
            law.on_ack(&ack(&PATH, us));
        }
        let curve = law.curve.as_ref().map(|curve| (curve.k, curve.w_max));
        assert_eq!(curve, Some((0, Bytes::new(28_671))));
        assert_eq!(law.cwnd_prior, Bytes::new(40_960));
    }

    #[test]
    fn marks_count_only_if_enabled() {
        let mut without_ecn = law(&PATH, |_| {});
        without_ecn.on_ack(&marked(&PATH, 0));
        assert_eq!(without_ecn.actions().cuts, 0);
        let mut law = law(&PATH, |params| params.ecn = true);
        law.on_ack(&marked(&PATH, 0));
        assert_eq!(law.send_limits().window, Bytes::new(40_960).scaled(Frac::millionths(850_000)));
        law.on_ack(&marked(&PATH, 1));
        assert_eq!(law.actions().cuts, 1);
    }

    /// Round trips of 20 ms instead of 10: seven packets to detect it, then a quarter for five rounds, then the curve,
    /// flat.
    #[test]
    fn hystart_ends_the_first_slow_start_early_if_enabled() {
        let rounds = |hystart: bool| {
            let mut law = law(&LONG_PATH, |params| params.hystart = hystart);
            for number in 1..=7u64 {
                for nth in 0..8 {
                    let delivered = Bytes::new(number * 1_000_000 + nth);
                    let delivered_at_send = Bytes::new(((number - 1) * 1_000_000).saturating_sub(u64::from(nth > 0)));
                    let rtt = Span::from_ms(if number == 1 { 10 } else { 20 });
                    law.on_ack(&Ack { rtt, delivered, delivered_at_send, ..ack(&LONG_PATH, number) });
                }
            }
            law
        };
        let off = rounds(false);
        assert_eq!(off.window.bytes(), LONG_PATH.mss.times(10 + 7 * 8));
        assert!(off.slow_start.is_first());
        let on = rounds(true);
        let doubled = LONG_PATH.mss.times(10 + 8 + 7) + LONG_PATH.mss.ratio(1 + 4 * 8, 4);
        assert_eq!(on.slow_start.threshold(), doubled);
        assert!(on.window.bytes() >= doubled && on.window.bytes() < doubled + LONG_PATH.mss);
        let curve = on.curve.as_ref().map(|curve| (curve.k, curve.w_max));
        assert_eq!(curve, Some((0, doubled)));
    }

    /// Acknowledgements of one round, one every 100 us, with a round trip of 2 ms. Slow start ends over half of the
    /// round trip and the allowance. At a pace of over 60 packets in 2 ms, four segments of 64 KiB take at most half a
    /// millisecond. So the end is between 1,000 and 1,500 us after the round's beginning.
    #[test]
    fn an_ack_train_ends_slow_start_if_enabled() {
        let run = |train: bool| {
            let mut law = law(&LONG_PATH, |params| {
                params.hystart_train = train;
                params.initial_window = LONG_PATH.mss.times(60);
            });
            for nth in 0..30u64 {
                let delivered_at_send = Bytes::ZERO;
                let delivered = Bytes::new(1 + nth);
                law.on_ack(&Ack { delivered, delivered_at_send, ..ack(&LONG_PATH, 100 * nth) });
            }
            law
        };
        assert!(run(false).slow_start.is_first());
        let on = run(true);
        let packets = on.slow_start.threshold().get() / LONG_PATH.mss.get();
        assert!((71..=76).contains(&packets), "{packets}");
        // `paced` is off.
        assert_eq!(on.send_limits().pacing, Rate::MAX);
    }

    #[test]
    fn a_timeout_resets_the_min_rtt() {
        let mut law = law(&LONG_PATH, |params| params.hystart_delay = true);
        law.on_ack(&ack(&LONG_PATH, 0));
        assert_ne!(law.linux_hystart, LinuxHyStart::new());
        law.on_loss(&loss(10_000, 20_000, LossCause::Timeout));
        assert_eq!(law.linux_hystart, LinuxHyStart::new());
    }

    /// C counts packets. The new curve continues from the current window, with the same maximum: K = cbrt(3,000 packets / C)
    /// is 19.574 s, and with packets an eighth as large twice that.
    #[test]
    fn a_new_mss_restarts_the_curve_at_the_window() {
        let path = PathInfo { base_rtt: Span::from_ms(100), ..LONG_PATH };
        let mut law = law(&path, |params| params.initial_window = path.mss.times(10_000));
        law.on_loss(&loss(0, 100_000, LossCause::Reordered));
        let none = |us| Ack { acked: Bytes::ZERO, ..ack(&path, us) };
        let k = |law: &Cubic| law.curve.as_ref().map_or(0.0, |curve| curve.k as f64 / f64::from(1 << 20));
        law.on_ack(&Ack { acked: Bytes::new(1), ..none(200_000) });
        assert!((k(&law) - 19.574).abs() < 0.002, "{}", k(&law));
        let window = law.send_limits().window;
        law.on_notification(&Notification::Mss(path.mss.ratio(1, 8)));
        assert_eq!((law.send_limits().window, law.w_max), (window, path.mss.times(10_000)));
        law.on_ack(&Ack { acked: Bytes::new(1), ..none(300_000) });
        assert!((k(&law) - 39.149).abs() < 0.004, "{}", k(&law));
    }

    #[test]
    fn idleness_restarts_slow_start_and_stops_the_curve_s_clock() {
        let mut law = law(&PATH, |params| params.initial_window = PATH.mss.times(4));
        law.window.set(PATH.mss.times(40));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_ack(&ack(&PATH, 40));
        let began = law.curve.as_ref().map(|curve| curve.began);
        let cwnd = law.window.bytes();
        law.on_notification(&Notification::Idle {
            now: ack(&PATH, 3_040).now,
            idle: Span::from_ms(3) + PATH.base_rtt,
            timeouts: 2,
        });
        assert_eq!(law.window.bytes(), cwnd.ratio(1, 4));
        assert!(law.slow_start.is_on(&law.window));
        assert_eq!(law.curve.as_ref().map(|curve| curve.began), began.map(|began| began + Span::from_ms(3)));
    }

    /// Idle time is reported twice: before the first packet is sent again, and with its acknowledgement, which was
    /// application-limited. The last packet before it was sent at 26 us and was acknowledged at 40 us.
    #[test]
    fn idle_time_stops_the_curve_s_clock_once() {
        let mut law = law(&PATH, |_| {});
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_ack(&ack(&PATH, 40));
        let began = |law: &Cubic| law.curve.as_ref().map(|curve| curve.began);
        let resumed = ack(&PATH, 3_040).now;
        law.on_notification(&Notification::Idle { now: resumed, idle: Span::from_ms(3) + PATH.base_rtt, timeouts: 2 });
        assert_eq!(began(&law), Some(resumed));
        let limited = Ack { app_limited: true, ..ack(&PATH, 3_054) };
        law.on_ack(&limited);
        assert_eq!(began(&law), Some(limited.now));
        // From now on the clock runs.
        law.on_ack(&ack(&PATH, 4_000));
        assert_eq!(began(&law), Some(limited.now));
    }

    proptest! {
        /// However acknowledgements and idle times alternate, the clock stops for no more than the time that passes.
        #[test]
        fn the_curve_never_begins_in_the_future(steps in proptest::collection::vec((1..5_000u64, 0..3u8), 1..100)) {
            let mut law = law(&PATH, |_| {});
            law.on_loss(&loss(0, 20, LossCause::Reordered));
            law.on_ack(&ack(&PATH, 40));
            let mut now_us = 40;
            for (gap_us, kind) in steps {
                now_us += gap_us;
                let ack = ack(&PATH, now_us);
                let before = law.curve.as_ref().unwrap().began;
                match kind {
                    0 => law.on_ack(&ack),
                    1 => law.on_ack(&Ack { app_limited: true, ..ack }),
                    _ => {
                        let idle = Span::from_us(gap_us as i64) + PATH.base_rtt;
                        law.on_notification(&Notification::Idle { now: ack.now, idle, timeouts: 1 });
                    }
                }
                let began = law.curve.as_ref().unwrap().began;
                let most = if kind == 0 { Span::ZERO } else { Span::from_us(gap_us as i64) };
                prop_assert!(began == before + most && began <= ack.now);
            }
        }
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut law = law(&PATH, |_| {});
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_ack(&ack(&PATH, 40));
        law.on_ack(&Ack { app_limited: true, ..ack(&PATH, 10_000_040) });
        let began = law.curve.as_ref().map(|curve| curve.began);
        assert_eq!(began, Some(ack(&PATH, 10_000_040).now));
    }
}
