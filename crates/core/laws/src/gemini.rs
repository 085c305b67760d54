//! GEMINI: marks for congestion inside a datacenter, delay for congestion between datacenters, and both AIMD steps scaled
//! with the flow's BDP. Zeng et al., "Congestion Control for Cross-Datacenter Networks", §III, Algorithm 1, Tables III and
//! IV. The base RTT is the smallest sample and never expires. Sending is paced at window / base RTT, twice that in slow
//! start. Parts that the paper leaves to TCP (loss, timeout, slow start) follow RFC 5681. State and parameters are over 104
//! bytes, so a kernel needs socket storage for them.

use units::{Bytes, Frac, Rate, Span, Time, mul_div};

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
    /// Paces packets over the base RTT, in slow start over half of it.
    paced: Switch = true, "true", false, true;
    /// Marking threshold that the cut is scaled by (K).
    k: Bytes = path.mss.ratio(path.line_rate.bps(), 20_000_000), "50 packets per Gb/s", range::BYTE, range::WINDOW;
    /// Queueing delay over which the long haul counts as congested (T).
    delay_threshold: Span = Span::from_ms(5), "5 ms", Span::ZERO, range::LONG;
    /// Share of the window that a cut for delay takes (beta).
    beta: Fraction = Frac::millionths(200_000), "0.2", Frac::ZERO, Frac::ONE;
    /// Additive increase in packets a round trip for each bit of C x RTT, in units of 1e-9 (H).
    h_billionths: Count = 120, "120, for H = 1.2e-7", 0, 1_000_000_000;
    /// Smallest additive increase, in packets a round trip, at most `h_max`.
    h_min: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, range::UNLIMITED;
    /// Largest additive increase, in packets a round trip.
    h_max: Fraction = Frac::from_bits(5 << 32), "5", Frac::ZERO, range::UNLIMITED;
    /// Largest share of the window that a cut for marks takes.
    max_cut: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Weight of the newest round in the average marked fraction.
    ewma_gain: Fraction = Frac::ratio(1, 16), "1/16", Frac::ZERO, Frac::ONE;
    /// Ends slow start at a cut for marks or delay, as in Linux's DCTCP.
    cut_ends_slow_start: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "gemini",
    title: "GEMINI",
    summary: "AIMD on marks inside a datacenter and on delay between them, both scaled with the BDP",
    source: "Zeng et al. (ICNP 2019; journal version), §III, Algorithm 1",
    signals: "ECN, delay, loss",
    marks: EcnSupport::Used,
    pairs: &[("h_min", "h_max")],
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Gemini {
    params: Params,
    line_rate: Rate,
    window: Window,
    slow_start: SlowStart,
    base_rtt: Span, // RTT_base: the smallest seen; the path's until the first sample
    seen_rtt: bool,
    congested_wan: bool, // result of the last round
    factor: Frac,        // F
    step: Bytes,         // h
    alpha: Frac,         // starts at 1, as DCTCP's
    round: Round,
    round_min_rtt: Span, // of packets sent after the last cut
    last_cut: Time,
    episode: RecoveryPeriod,
    actions: LawActions,
}

impl Gemini {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let mut law = Self {
            params,
            line_rate: path.line_rate,
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            slow_start: SlowStart::new(),
            base_rtt: path.base_rtt,
            seen_rtt: false,
            factor: Frac::ZERO,
            step: Bytes::ZERO,
            alpha: Frac::ONE,
            round: Round::new(),
            round_min_rtt: Span::MAX,
            congested_wan: false,
            last_cut: Time::ZERO,
            episode: RecoveryPeriod::new(),
            actions: LawActions::default(),
        };
        law.scale_with_bdp();
        law
    }

    /// Updates F and h for the base RTT.
    fn scale_with_bdp(&mut self) {
        let bdp = self.line_rate.bytes_in(self.base_rtt);
        // F <- 4K / (C * RTT + K)
        let k = self.params.k;
        self.factor = Frac::ratio(k.times(4).get(), bdp.saturating_add(k).get());
        // h <- H * C * RTT in packets, C * RTT in bits: under 2^43 bits times H in 1e-9, saturating.
        let mss = self.window.floor();
        let packets_e9 = bdp.times(8).times(self.params.h_billionths).get();
        let step = Bytes::new(mul_div(packets_e9, mss.get(), 1_000_000_000));
        self.step = step.max(mss.scaled(self.params.h_min)).min(mss.scaled(self.params.h_max));
    }

    fn observe_rtt(&mut self, ack: &Ack) {
        if !self.seen_rtt || ack.rtt < self.base_rtt {
            self.seen_rtt = true;
            self.base_rtt = ack.rtt;
            self.scale_with_bdp();
        }
        if ack.sent_at >= self.last_cut {
            self.round_min_rtt = self.round_min_rtt.min(ack.rtt);
        }
    }

    fn end_round(&mut self, ack: &Ack) {
        self.alpha = self.alpha.ewma(self.round.marked_fraction(), self.params.ewma_gain);
        // RTT_min > RTT_base + T, over the round that ends. Without a sample since the last cut it is not congested.
        let queueing = self.round_min_rtt - self.base_rtt;
        self.congested_wan = self.round_min_rtt != Span::MAX && queueing > self.params.delay_threshold;
        self.round_min_rtt = Span::MAX;
        self.round.restart(ack);
    }

    /// Returns the reduction for marks: `f_dcn` = alpha * F.
    fn marks_cut(&self) -> Frac {
        (self.alpha * self.factor).min(self.params.max_cut)
    }

    /// The heavier of the reduction for marks, `f_dcn`, and the one for delay (Algorithm 1, lines 6 to 9).
    fn decrease(&mut self, now: Time, f_dcn: Frac) {
        // cwnd <- cwnd * (1 - max(f_dcn, f_wan)), f_wan = beta
        let f_wan = if self.congested_wan { self.params.beta } else { Frac::ZERO };
        self.actions.cuts += u64::from(self.window.cut(f_dcn.max(f_wan)));
        if self.params.cut_ends_slow_start {
            self.slow_start.leave(&self.window);
        }
        self.responded(now);
    }

    /// Starts a new period: packets sent before `now` carry no information about the new window.
    fn responded(&mut self, now: Time) {
        self.last_cut = now;
        self.round_min_rtt = Span::MAX;
    }
}

impl ControlLaw for Gemini {
    fn on_ack(&mut self, ack: &Ack) {
        self.round.count(ack);
        if self.round.is_over(ack) {
            self.end_round(ack);
        }
        self.observe_rtt(ack);
        let congested_dcn = !ack.marked.is_zero();
        if congested_dcn || self.congested_wan {
            // Once a round trip: only for a packet sent after the last cut.
            if ack.sent_at >= self.last_cut {
                let f_dcn = if congested_dcn { self.marks_cut() } else { Frac::ZERO };
                self.decrease(ack.now, f_dcn);
            }
        } else if !ack.app_limited {
            // cwnd <- cwnd + h / cwnd
            let before = self.window.bytes();
            let rest = self.slow_start.grow(&mut self.window, ack.acked);
            self.window.increase(self.step, rest);
            self.actions.increases += u64::from(self.window.bytes() > before);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if response.apply(&mut self.window, &mut self.slow_start, Frac::HALF) {
            self.actions.loss_cuts += 1;
            self.responded(loss.now);
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.slow_start.on_notification(notification, &mut self.window, self.params.initial_window);
        if matches!(notification, Notification::Mss(_)) {
            // h is in packets.
            self.scale_with_bdp();
        }
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.slow_start.ended_at()
    }

    fn send_limits(&self) -> SendLimits {
        let window = self.window.bytes();
        match (self.params.paced, self.slow_start.is_on(&self.window)) {
            (false, _) => SendLimits::window(window),
            (true, false) => SendLimits::paced_window(window, self.base_rtt),
            (true, true) => SendLimits::paced_window(window, self.base_rtt.over(2)),
        }
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
        emit("factor_ppm", self.factor.ppm() as i64);
        emit("increase_bytes", self.step.get() as i64);
        emit("base_rtt_ns", (self.base_rtt.unsigned_ps() / 1_000) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{LONG_PATH, PATH, Testbed, TestbedLink, ack, loss, marked};

    /// 1 Gb/s and 8 ms: C x RTT is 8e6 bits, 1 MB.
    const GIGABIT: PathInfo = PathInfo {
        base_rtt: Span::from_ms(8),
        intra_rtt: Span::from_us(200),
        line_rate: Rate::from_gbps(1),
        mss: Bytes::new(1_500),
    };

    fn law(path: &PathInfo, change: impl Fn(&mut Params)) -> Gemini {
        let mut params = Params::for_path(path);
        change(&mut params);
        Gemini::new(path, params)
    }

    fn late(ack: Ack, queueing: Span) -> Ack {
        Ack { now: ack.now + queueing, rtt: ack.rtt + queueing, ..ack }
    }

    #[test]
    fn steps_scale_with_the_bdp() {
        let law = law(&GIGABIT, |_| {});
        // h = 1.2e-7 * 8e6 = 0.96 packets; K = 50 packets; F = 4 * 75 kB / 1.075 MB.
        assert_eq!(law.step, Bytes::new(1_440));
        assert_eq!(law.params.k, Bytes::new(75_000));
        assert_eq!(law.factor.ppm(), 279_069);
        // DCTCP's guideline K = C * RTT / 7 yields F = 1/2.
        let dctcp = self::law(&GIGABIT, |params| params.k = Bytes::new(1_000_000).ratio(1, 7));
        assert!(dctcp.factor.ppm().abs_diff(500_000) <= 1);
    }

    /// Table IV and §III-C on the testbeds of §IV-A: K = 50 packets per Gb/s; h = H C RTT within 0.1 to 5; F = 4K / (C RTT + K).
    #[test]
    fn the_testbeds_have_the_paper_s_steps() {
        let path = |gbps, us| PathInfo { base_rtt: Span::from_us(us), line_rate: Rate::from_gbps(gbps), ..GIGABIT };
        for (gbps, us, packets, factor) in [
            (1, 200, 0.1, 3.0),       // 0.024 packets; a BDP of 16.7 packets
            (1, 8_000, 0.96, 0.2791), // "h = 1 when C = 1 Gbps and RTT = 8 ms"
            (1, 10_000, 1.2, 0.2264),
            (1, 100_000, 5.0, 0.0239), // 12 packets
            (10, 200, 0.24, 3.0),
            (10, 10_000, 5.0, 0.2264),
        ] {
            let law = law(&path(gbps, us), |_| {});
            assert_eq!(law.params.k, Bytes::new(50 * 1_500 * gbps));
            // To a byte: fractions round down.
            assert!((law.step.get() as f64 - packets * 1_500.0).abs() <= 1.0, "{gbps} Gb/s, {us} us: {}", law.step);
            assert!(
                (law.factor.ppm() as f64 / 1e6 - factor).abs() < 1e-4,
                "{gbps} Gb/s, {us} us: {}",
                law.factor.ppm()
            );
        }
        // Appendix A: with DCTCP's guideline K = C RTT / 7 the factor is DCTCP's half, at any RTT; K in whole bytes.
        for us in [200, 10_000] {
            let path = path(1, us);
            let dctcp = self::law(&path, |params| params.k = path.bdp().ratio(1, 7));
            assert!(dctcp.factor.ppm().abs_diff(500_000) <= 100, "{}", dctcp.factor.ppm());
        }
    }

    #[test]
    fn the_increase_follows_the_mss() {
        let mut law = law(&GIGABIT, |_| {});
        law.on_notification(&Notification::Mss(Bytes::new(9_000)));
        // 0.96 packets; K and F stay.
        assert_eq!((law.step, law.params.k, law.factor.ppm()), (Bytes::new(8_640), Bytes::new(75_000), 279_069));
    }

    fn idle(timeouts: u32) -> Notification<'static> {
        Notification::Idle { now: ack(&PATH, 0).now, idle: Span::from_ms(1), timeouts }
    }

    #[test]
    fn idleness_shrinks_the_window_as_linux_does() {
        let mut law = law(&PATH, |params| params.initial_window = PATH.mss.times(16));
        law.params.initial_window = PATH.mss.times(3);
        law.on_notification(&idle(2));
        assert_eq!(law.send_limits().window, PATH.mss.times(4));
        law.on_notification(&idle(9));
        assert_eq!(law.send_limits().window, PATH.mss.times(3));
    }

    #[test]
    fn the_increase_is_bounded() {
        // 14 us at 100 Gb/s: 0.168 packets. 2 ms: 24 packets, bounded to 5. Ten times shorter than 14 us: 0.1.
        assert_eq!(law(&PATH, |_| {}).step, Bytes::new(688));
        assert_eq!(law(&LONG_PATH, |_| {}).step, Bytes::new(5 * 4_096));
        assert_eq!(law(&PathInfo { base_rtt: Span::from_us(1), ..PATH }, |_| {}).step, Bytes::new(409));
        let free = law(&LONG_PATH, |params| {
            params.h_min = Frac::ZERO;
            params.h_max = range::UNLIMITED;
        });
        assert_eq!(free.step, Bytes::new(24 * 4_096));
        // The published simulator's 5376 B a round trip in both scopes.
        let h = Frac::millionths(1_312_500);
        let published = law(&PATH, |params| (params.h_min, params.h_max) = (h, h));
        assert_eq!(published.step, Bytes::new(5_376));
    }

    #[test]
    fn the_smallest_rtt_seen_is_the_base() {
        let mut law = law(&PATH, |_| {});
        law.on_ack(&late(ack(&PATH, 0), Span::from_us(6)));
        assert_eq!(law.base_rtt, Span::from_us(20));
        law.on_ack(&ack(&PATH, 30));
        assert_eq!(law.base_rtt, Span::from_us(14));
        law.on_ack(&late(ack(&PATH, 31), Span::from_us(6)));
        assert_eq!(law.base_rtt, Span::from_us(14));
        assert_eq!(law.step, Bytes::new(688));
    }

    #[test]
    fn a_mark_cuts_by_alpha_f_once_a_round_trip() {
        // F = 1/2 and alpha still 1: half of ten packets.
        let mut law = law(&PATH, |params| params.k = Bytes::new(25_000));
        law.on_ack(&marked(&PATH, 0));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        for us in 1..14 {
            law.on_ack(&marked(&PATH, us));
        }
        assert_eq!(law.actions().cuts, 1);
        law.on_ack(&marked(&PATH, 14));
        assert_eq!(law.actions().cuts, 2);
    }

    #[test]
    fn slow_start_continues_after_a_cut_if_configured() {
        for cut_ends_slow_start in [true, false] {
            let mut law = law(&PATH, |params| {
                params.k = Bytes::new(25_000);
                params.cut_ends_slow_start = cut_ends_slow_start;
            });
            law.on_ack(&marked(&PATH, 0));
            assert_eq!(law.send_limits().window, PATH.mss.times(5));
            law.on_ack(&ack(&PATH, 20));
            assert_eq!(law.send_limits().window == PATH.mss.times(6), !cut_ends_slow_start);
        }
    }

    #[test]
    fn a_cut_for_marks_is_capped() {
        // K far over the BDP: F is near 4.
        let mut law = law(&PATH, |_| {});
        assert!(law.factor > Frac::from_bits(3 << 32));
        law.on_ack(&marked(&PATH, 0));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
    }

    #[test]
    fn the_heavier_of_two_signals_counts() {
        // Marks alone would take half, delay a fifth.
        let mut law = law(&PATH, |_| {});
        law.congested_wan = true;
        law.decrease(ack(&PATH, 0).now, law.marks_cut());
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        law.params.max_cut = Frac::millionths(100_000);
        law.decrease(ack(&PATH, 0).now, law.marks_cut());
        // A fifth of 20,480 B, rounded down.
        assert_eq!(law.send_limits().window, Bytes::new(20_480 - 4_095));
    }

    #[test]
    fn persistent_delay_cuts_by_beta() {
        let mut law = law(&PATH, |_| {});
        let queueing = Span::from_ms(6);
        law.on_ack(&ack(&PATH, 0));
        let mut delivered = Bytes::new(1_000_000);
        let mut window = law.send_limits().window;
        let mut cuts = 0;
        for flight in 0..6u64 {
            // A flight of three packets that met 6 ms of queue, each sent after the previous flight was acknowledged.
            for packet in 0..3 {
                let now = 10_000 + flight * 7_000 + packet;
                let sent = delivered;
                let ack = late(ack(&PATH, now), queueing);
                law.on_ack(&Ack {
                    delivered: delivered + Bytes::new((packet + 1) * 4_096),
                    delivered_at_send: sent,
                    ..ack
                });
            }
            delivered += Bytes::new(3 * 4_096);
            if law.actions().cuts > cuts {
                cuts = law.actions().cuts;
                let left = law.send_limits().window.get() as f64 / window.get() as f64;
                assert!((0.79..0.9).contains(&left), "{left}");
            }
            window = law.send_limits().window;
        }
        assert!((2..=3).contains(&cuts), "{cuts} cuts in six flights: each waits for a round trip of the new window");
    }

    #[test]
    fn one_quick_packet_clears_the_delay_signal() {
        let mut law = law(&PATH, |_| {});
        for us in (10_000..60_000).step_by(10) {
            let queueing = if us % 5_000 == 0 { Span::ZERO } else { Span::from_ms(6) };
            law.on_ack(&Ack {
                delivered_at_send: Bytes::new(us * 4_096).saturating_sub(Bytes::new(24_000_000)),
                ..late(ack(&PATH, us), queueing)
            });
        }
        assert_eq!(law.actions().cuts, 0);
    }

    #[test]
    fn a_loss_halves_and_a_timeout_collapses() {
        let mut law = law(&PATH, |_| {});
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        // Marks of the flight with the loss are the same congestion event.
        law.on_ack(&marked(&PATH, 21));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        law.on_loss(&loss(30, 90, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        assert!(law.slow_start.is_on(&law.window));
    }

    #[test]
    fn paces_over_the_base_rtt_and_twice_as_fast_in_slow_start() {
        let mut law = law(&PATH, |_| {});
        law.on_ack(&ack(&PATH, 0));
        assert_eq!(law.send_limits().pacing, Rate::of(PATH.mss.times(11), Span::from_us(7)));
        law.on_loss(&loss(0, 20, LossCause::Nack));
        assert_eq!(law.send_limits().pacing, Rate::of(law.send_limits().window, Span::from_us(14)));
    }

    /// Equations 7 to 9: `n` flows swing between K + N h and K + N h - sqrt(N h F (C RTT + K)) of queue. Tolerance a quarter,
    /// a regression bound: 6 to 23 % off when it was set. The equations have the mean of alpha where a cut has the moving
    /// average at its time; it is not shown that this is the cause.
    #[test]
    fn the_queue_swings_as_analysed() {
        for (flows, rtt_us) in [(1, 400), (1, 800), (1, 1_600), (2, 400), (2, 1_600), (4, 400), (4, 1_600)] {
            let path = PathInfo {
                base_rtt: Span::from_us(rtt_us),
                intra_rtt: Span::from_us(400),
                line_rate: Rate::from_gbps(10),
                mss: Bytes::new(1_500),
            };
            let k = path.mss.times(100);
            let params = Params { k, paced: false, ..Params::for_path(&path) };
            let link =
                TestbedLink { rate: path.line_rate, mark_over: k, drop_over: Bytes::new(1 << 30), phantom: None };
            let mut bed = Testbed::new(link);
            for _ in 0..flows {
                bed.add(Gemini::new(&path, params), &path, Time::ZERO);
            }
            bed.run(Time::from_ms(1_000));
            bed.forget_backlog();
            bed.run(Time::from_ms(1_300));
            let (n, h) = (f64::from(flows), bed.law(0).step.get() as f64 / 1_500.0);
            let f = bed.law(0).factor.ppm() as f64 / 1e6;
            let w_star = path.bdp().get() as f64 / 1_500.0 + 100.0;
            let amplitude = (n * h * f * w_star).sqrt();
            let (max_queue, min_queue) = (bed.backlog.0.get() as f64 / 1_500.0, bed.backlog.1.get() as f64 / 1_500.0);
            assert!((max_queue - (100.0 + n * h)).abs() < 2.0, "{max_queue}");
            assert!(min_queue > 0.0, "full throughput (Theorem 1)");
            assert!(
                (max_queue - min_queue - amplitude).abs() < 0.25 * amplitude,
                "{} against {amplitude}",
                max_queue - min_queue
            );
        }
    }

    /// §III-C: a cut by beta from a queue of T leaves a queue of (1 - beta) (RTT + T) - RTT, 2 ms here, so the link stays
    /// busy; two cuts for one event would not.
    #[test]
    fn delay_keeps_a_long_haul_queue_near_its_threshold() {
        let path = PathInfo {
            base_rtt: Span::from_ms(10),
            intra_rtt: Span::from_us(200),
            line_rate: Rate::from_gbps(1),
            mss: Bytes::new(1_500),
        };
        let link =
            TestbedLink { rate: path.line_rate, mark_over: Bytes::MAX, drop_over: Bytes::new(1 << 30), phantom: None };
        let mut bed = Testbed::new(link);
        bed.add(law(&path, |_| {}), &path, Time::ZERO);
        bed.run(Time::from_ms(3_000));
        bed.forget_backlog();
        let cuts = bed.law(0).actions().cuts;
        bed.run(Time::from_ms(20_000));
        let [max_queue, min_queue] = [bed.backlog.0, bed.backlog.1].map(|queue| path.line_rate.tx_time(queue));
        assert!(bed.law(0).actions().cuts > cuts + 2);
        assert!(Span::from_us(1_800) < min_queue && min_queue < Span::from_us(2_300), "{min_queue}");
        assert!(Span::from_us(5_000) < max_queue && max_queue < Span::from_us(5_300), "{max_queue}");
    }

    /// Theorem 2: with h in proportion to the RTT, flows of different RTTs share a marking queue evenly.
    #[test]
    fn flows_of_different_rtts_share_evenly() {
        let path = |us| PathInfo {
            base_rtt: Span::from_us(us),
            intra_rtt: Span::from_us(200),
            line_rate: Rate::from_gbps(10),
            mss: Bytes::new(1_500),
        };
        let k = Bytes::new(75_000);
        let link =
            TestbedLink { rate: Rate::from_gbps(10), mark_over: k, drop_over: Bytes::new(1 << 30), phantom: None };
        let mut bed = Testbed::new(link);
        for us in [200, 800] {
            let params = Params { k, h_min: Frac::ZERO, h_max: range::UNLIMITED, ..Params::for_path(&path(us)) };
            bed.add(Gemini::new(&path(us), params), &path(us), Time::ZERO);
        }
        bed.run(Time::from_ms(1_000));
        let before = [bed.delivered(0), bed.delivered(1)];
        bed.run(Time::from_ms(2_000));
        let shares = [0, 1].map(|flow| (bed.delivered(flow) - before[flow]).get() as f64 * 8.0 / 1e9);
        assert!((1.1..1.4).contains(&(shares[0] / shares[1])), "{shares:?} Gb/s");
    }
}
