//! BBR, version 1: pace at the bottleneck's bandwidth, keep about two BDPs in flight, and measure both again and
//! again. Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! A single loss changes nothing. A timeout keeps one packet in flight until the next acknowledgement, then the
//! window is as before. Left out: the extra quanta for offload, the long-term bandwidth of policers, packet
//! conservation in fast recovery, pacing 1 % under the estimate.
//! State is over 104 bytes (ten bandwidth samples), so a kernel needs socket storage for it.

mod bandwidth;
mod cycle;
mod mode;
mod startup;

use units::{Bytes, Frac, Rate, Span, Time};

use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Loss, LossCause, Path, Permit, Window};
use bandwidth::MaxBandwidth;
use mode::{Mode, Seen};
use startup::FullPipe;

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Gain of rate and window in startup (2/ln 2).
    startup_gain: Fraction = Frac::millionths(2_885_390), "2.885", Frac::ONE, Frac::from_bits(100 << 32);
    /// Gain of the rate in drain.
    drain_gain: Fraction = Frac::millionths(346_574), "0.347, one over the startup gain", Frac::millionths(10_000), Frac::ONE;
    /// Gain of the window after startup.
    cwnd_gain: Fraction = Frac::from_bits(2 << 32), "2", Frac::ONE, Frac::from_bits(100 << 32);
    /// How long the smallest RTT holds.
    min_rtt_window: Span = Span::from_s(10), "10 s", range::SHORT, range::LONG;
    /// Whether the pipe is drained to measure the smallest RTT again when it has aged.
    probe_rtt: Switch = true, "true", false, true;
    /// How long that takes at least.
    probe_rtt_time: Span = Span::from_ms(200), "200 ms", range::SHORT, range::LONG;
    /// Chooses, with the time, the phase in which the gain cycle starts.
    cycle_seed: Count = 0, "0", 0, u64::MAX;
}

/// What there is to say about it.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "bbr",
    title: "BBR",
    summary: "paces at the measured bandwidth and keeps about two measured BDPs in flight (version 1)",
    source: "Cardwell et al. (ACM Queue 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    signals: "delivery rate, delay, timeout",
    linux: Some("bbr"),
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Bbr {
    params: Params,
    mode: Mode,
    window: Window,
    pacing: Rate,
    bandwidth: MaxBandwidth,
    pipe: FullPipe,
    min_rtt: Span, // Span::MAX before the first sample
    min_rtt_at: Time,
    round: u64,
    round_began: Bytes,           // delivered count
    limited_below: Bytes,         // packets that left at a lower delivered count were held back by the law itself
    window_before: Option<Bytes>, // a timeout, of which nothing was acknowledged yet
    acted: Acted,
}

impl Bbr {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        let window = Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp));
        Self {
            params,
            mode: Mode::Startup,
            pacing: Rate::of(window.bytes(), path.base_rtt).scaled(params.startup_gain),
            window,
            bandwidth: MaxBandwidth::new(),
            pipe: FullPipe::new(),
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            round: 0,
            round_began: Bytes::ZERO,
            limited_below: Bytes::ZERO,
            window_before: None,
            acted: Acted::default(),
        }
    }

    fn bdp(&self) -> Bytes {
        self.bandwidth.get().bytes_in(self.min_rtt)
    }

    /// The four packets that the probe of the RTT keeps, and under which no other mode plans.
    fn least_window(&self) -> Bytes {
        self.window.floor().times(4)
    }

    fn observe_bandwidth(&mut self, ack: &Ack) {
        let round_ended = ack.delivered_at_send >= self.round_began;
        if round_ended {
            self.round_began = ack.delivered;
            self.round += 1;
        }
        let limited = ack.app_limited || ack.delivered_at_send < self.limited_below;
        if let Some(sample) = bandwidth::sample(ack, if self.min_rtt == Span::MAX { Span::ZERO } else { self.min_rtt })
            && (!limited || sample >= self.bandwidth.get())
        {
            let before = self.bandwidth.get();
            self.bandwidth.observe(self.round, sample);
            self.acted.increases += u64::from(self.bandwidth.get() > before);
            self.acted.cuts += u64::from(self.bandwidth.get() < before);
        }
        if round_ended && !limited {
            self.pipe.end_round(self.bandwidth.get());
        }
    }

    fn observe_rtt(&mut self, ack: &Ack) {
        let aged = ack.now > self.min_rtt_at.saturating_add(self.params.min_rtt_window) && self.min_rtt != Span::MAX;
        if ack.rtt <= self.min_rtt || aged {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = ack.now;
        }
        if aged && self.params.probe_rtt && !self.mode.is_probing_rtt() {
            self.mode = Mode::probe_rtt(self.window.bytes());
            self.acted.emergencies += 1;
        }
    }

    /// What comes next, and what ends with the mode before.
    fn move_on(&mut self, ack: &Ack) {
        let (least_window, is_full) = (self.least_window(), self.pipe.is_full());
        let seen = Seen { ack, params: &self.params, is_full, least_window };
        let before = self.mode;
        self.mode = before.after_probe(&seen);
        if let Mode::ProbeRtt(probe) = before
            && !self.mode.is_probing_rtt()
        {
            self.min_rtt_at = ack.now;
            self.window.set(self.window.bytes().max(probe.window));
        }
        self.mode = self.mode.next(&seen, self.bdp(), self.min_rtt);
    }

    fn set_pacing(&mut self) {
        if self.bandwidth.get().is_zero() {
            return;
        }
        let rate = self.bandwidth.get().scaled(self.mode.pacing_gain(&self.params));
        if self.pipe.is_full() || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, ack: &Ack) {
        let window = self.window.bytes();
        let gain = if self.pipe.is_full() { self.params.cwnd_gain } else { self.params.startup_gain };
        let target = self.bdp().scaled(gain).max(self.least_window());
        let grown = window.saturating_add(ack.acked);
        if self.pipe.is_full() {
            self.window.set(grown.min(target));
        } else if window < target || ack.delivered < self.params.initial_window {
            self.window.set(grown);
        }
        if self.mode.is_probing_rtt() {
            self.window.set(self.window.bytes().min(self.least_window()));
        }
    }
}

impl ControlLaw for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        if self.window_before.is_some() || self.mode.is_probing_rtt() {
            // Until all that is in flight now has been delivered, rates tell of the drought.
            self.limited_below = ack.delivered + ack.in_flight + Bytes::new(1);
        }
        if let Some(before) = self.window_before.take()
            && !self.mode.is_probing_rtt()
        {
            self.window.set(self.window.bytes().max(before));
        }
        self.observe_bandwidth(ack);
        self.observe_rtt(ack);
        self.move_on(ack);
        self.set_pacing();
        self.set_window(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.mode.note_loss();
        if loss.cause == LossCause::Timeout {
            let window = self.window.bytes();
            if let Mode::ProbeRtt(probe) = &mut self.mode {
                probe.window = probe.window.max(window);
            }
            self.window_before = Some(self.window_before.map_or(window, |before| before.max(window)));
            self.window.collapse();
            self.acted.loss_cuts += 1;
        }
    }

    fn permit(&self) -> Permit {
        // A packet a second, however little was delivered.
        Permit { window: self.window.bytes(), pacing: self.pacing.max(Rate::of(self.window.floor(), Span::from_s(1))) }
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("bandwidth_bps", self.bandwidth.get().bps() as i64);
        let min_rtt = if self.min_rtt == Span::MAX { Span::ZERO } else { self.min_rtt };
        emit("min_rtt_ns", (min_rtt.unsigned_ps() / 1_000) as i64);
        emit("pacing_gain_ppm", self.mode.pacing_gain(&self.params).ppm() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Bed, Link, PATH, ack, loss, marked};

    const WAN: Path = Path {
        base_rtt: Span::from_ms(1),
        intra_rtt: Span::from_us(14),
        line_rate: Rate::from_gbps(10),
        mss: Bytes::new(1_500),
    };

    fn bed(flows: u64, change: impl Fn(&mut Params)) -> Bed<Bbr> {
        let link = Link { rate: WAN.line_rate, mark_over: Bytes::MAX, drop_over: WAN.bdp().times(4), phantom: None };
        let mut bed = Bed::new(link);
        for flow in 0..flows {
            let mut params = Params::for_path(&WAN);
            change(&mut params);
            bed.add(Bbr::new(&WAN, params), &WAN, Time::from_us(100 * flow));
        }
        bed
    }

    #[test]
    fn starts_fast() {
        let law = Bbr::new(&PATH, Params::for_path(&PATH));
        // Ten packets a base RTT, times 2.885.
        let bps = law.permit().pacing.bps() as f64;
        assert!((bps / (2.885_39 * 40_960.0 * 8.0 / 14e-6) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn finds_the_bottleneck_and_leaves_no_queue() {
        let mut bed = bed(1, |_| {});
        bed.run(Time::from_ms(100));
        assert!(matches!(bed.law(0).mode, Mode::ProbeBw(_)));
        assert_eq!(bed.law(0).min_rtt, WAN.base_rtt);
        let (before, bandwidth) = (bed.delivered(0), bed.law(0).bandwidth.get().bps());
        assert!((9_900_000_000..=10_100_000_000).contains(&bandwidth), "{bandwidth}");
        bed.forget_backlog();
        bed.run(Time::from_ms(200));
        let used = (bed.delivered(0) - before).get() as f64 * 8.0 / 0.1;
        assert!(used > 9.8e9, "{used}");
        let window = bed.law(0).permit().window;
        assert!(window > WAN.bdp().ratio(19, 10) && window < WAN.bdp().ratio(21, 10), "{window}");
        // Probing at 5/4 for a round trip queues a quarter of a BDP, then drains it.
        assert!(bed.backlog.0 < WAN.bdp().ratio(2, 5), "{:?}", bed.backlog);
    }

    #[test]
    fn plans_with_four_packets_at_least() {
        // 2 us at 10 Gb/s: a BDP of 1.7 packets.
        let path = Path { base_rtt: Span::from_us(2), ..WAN };
        let link = Link { rate: path.line_rate, mark_over: Bytes::MAX, drop_over: Bytes::MAX, phantom: None };
        let mut bed = Bed::new(link);
        bed.add(Bbr::new(&path, Params::for_path(&path)), &path, Time::ZERO);
        bed.run(Time::from_ms(1));
        assert!(matches!(bed.law(0).mode, Mode::ProbeBw(_)));
        assert_eq!(bed.law(0).permit().window, path.mss.times(4));
    }

    #[test]
    fn two_flows_share() {
        let mut bed = bed(2, |_| {});
        bed.run(Time::from_ms(300));
        let before = [bed.delivered(0), bed.delivered(1)];
        bed.run(Time::from_ms(600));
        let shares = [0, 1].map(|flow| (bed.delivered(flow) - before[flow]).get() as f64 * 8.0 / 0.3 / 1e9);
        assert!(shares[0] + shares[1] > 9.7, "{shares:?}");
        assert!((0.4..2.5).contains(&(shares[0] / shares[1])), "{shares:?}");
    }

    /// Twenty round trips with four packets each, twice as many as the filter remembers.
    #[test]
    fn measures_the_smallest_rtt_again() {
        let mut bed = bed(1, |params| {
            params.min_rtt_window = Span::from_ms(50);
            params.probe_rtt_time = Span::from_ms(20);
        });
        let (mut probing, mut since) = (0, None);
        for step in 0..1_400 {
            bed.run(Time::from_us(100 * step));
            let law = bed.law(0);
            if law.mode.is_probing_rtt() {
                assert_eq!(law.permit().window, WAN.mss.times(4));
                probing += 1;
                since = Some(0);
            } else if let Some(steps) = &mut since {
                // The window is back at once, and the estimate was never lost.
                assert!(law.permit().window > WAN.bdp(), "{} after {steps}", law.permit().window);
                assert!(law.bandwidth.get() > Rate::from_mbps(9_500), "{} after {steps}", law.bandwidth.get());
                *steps += 1;
            }
        }
        let struck = bed.law(0).acted().emergencies;
        assert!((1..=2).contains(&struck) && (200..460).contains(&probing), "{struck} probes, {probing} steps");
        let mut never = self::bed(1, |params| {
            params.min_rtt_window = Span::from_ms(20);
            params.probe_rtt = false;
        });
        never.run(Time::from_ms(100));
        assert_eq!(never.law(0).acted().emergencies, 0);
    }

    #[test]
    fn rounds_with_little_to_send_do_not_fill_the_pipe() {
        for app_limited in [false, true] {
            let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
            for round in 1..=10u64 {
                let delivered = Bytes::new(round * 100_000);
                let delivered_at_send = Bytes::new((round - 1) * 100_000);
                law.on_ack(&Ack { delivered, delivered_at_send, app_limited, ..ack(&PATH, 14 * round) });
            }
            assert_eq!(law.pipe.is_full(), !app_limited);
        }
    }

    #[test]
    fn startup_never_slows_down() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        let before = law.permit().pacing;
        law.on_ack(&Ack { delivered: Bytes::new(4_096), delivered_at_send: Bytes::ZERO, ..ack(&PATH, 0) });
        assert!(law.bandwidth.get() < before && !law.bandwidth.get().is_zero());
        assert_eq!(law.permit().pacing, before);
    }

    #[test]
    fn always_lets_a_packet_a_second_go() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.pacing = Rate::ZERO;
        assert_eq!(law.permit().pacing, Rate::from_bps(32_768));
    }

    #[test]
    fn a_single_loss_changes_nothing_and_a_timeout_holds_one_packet() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_ack(&ack(&PATH, 0));
        let before = law.permit();
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_loss(&loss(0, 20, LossCause::Nack));
        assert_eq!(law.permit(), before);
        law.on_loss(&loss(0, 20, LossCause::Timeout));
        law.on_loss(&loss(1, 21, LossCause::Timeout));
        assert_eq!(law.permit().window, PATH.mss);
        let next = marked(&PATH, 30);
        law.on_ack(&next);
        assert!(law.permit().window >= before.window);
        // What is in flight then left one packet at a time.
        assert!(law.limited_below > next.delivered + next.in_flight);
    }

    #[test]
    fn packets_of_a_drought_do_not_lower_the_estimate() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_ack(&ack(&PATH, 100));
        let before = law.bandwidth.get();
        for us in 200..260 {
            let delivered_at_send = Bytes::new(us * 4_096 - 4_096);
            law.on_ack(&Ack { app_limited: true, delivered_at_send, ..ack(&PATH, us) });
        }
        assert_eq!(law.bandwidth.get(), before);
    }
}
