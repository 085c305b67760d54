//! BBR, version 1: pace at the bottleneck's bandwidth, keep about two BDPs in flight, and measure both again and
//! again. Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! Where draft and code differ, Linux's `net/ipv4/tcp_bbr.c` is followed: the window's response to losses
//! (`recovery.rs`), the window for acknowledgements that arrive in bursts (`aggregation.rs`), pacing 1 % under the
//! estimate. Each has a parameter that switches it off.
//!
//! Left out, with reasons:
//! - The long-term bandwidth of policers (`lt_bw`): no port here polices, so it could not be tested.
//! - The quanta for offload (`bbr_quantization_budget`): packets are sent one by one, and a window in bytes is over 5/4 of
//!   the BDP without them.
//! - Pacing at gain 1 after idleness (`idle_restart`): a departure is reported too late for a law to change its
//!   pace.
//!
//! State is over 104 bytes (ten bandwidth samples), so a kernel needs socket storage for it.

mod aggregation;
mod bandwidth;
mod cycle;
mod mode;
mod recovery;
mod startup;

use units::{Bytes, Frac, Rate, Span, Time};

use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, LossCause, Notification, PathInfo, SendLimits, Window};
use aggregation::Aggregation;
use bandwidth::MaxBandwidth;
use mode::{Mode, TransitionInputs};
use recovery::Recovery;
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
    /// Length of the min RTT filter: time after which the smallest RTT expires.
    min_rtt_window: Span = Span::from_s(10), "10 s", range::SHORT, range::LONG;
    /// Drains the pipe to measure the smallest RTT again once it has expired (`ProbeRTT`).
    probe_rtt: Switch = true, "true", false, true;
    /// Window in `ProbeRTT`, in measured BDPs; at least 4 packets.
    probe_rtt_window: Fraction = Frac::ZERO, "0", Frac::ZERO, Frac::ONE;
    /// Limits the window after a loss: packet conservation for a round trip; restores it after recovery.
    recovery: Switch = true, "true", false, true;
    /// Collapses the window to one packet on a timeout, for good; off: to in flight plus a packet until recovery ends.
    timeout_collapses: Switch = false, "false", false, true;
    /// Enlarges the window by the measured ACK aggregation (Linux's `extra_acked`).
    ack_aggregation: Switch = true, "true", false, true;
    /// Share by which the pacing rate stays below pacing gain times bandwidth.
    pacing_margin: Fraction = Frac::millionths(10_000), "0.01", Frac::ZERO, Frac::HALF;
    /// Minimum duration of `ProbeRTT`.
    probe_rtt_time: Span = Span::from_ms(200), "200 ms", range::SHORT, range::LONG;
    /// Chooses, with the time, the phase in which the gain cycle starts.
    cycle_seed: Count = 0, "0", 0, u64::MAX;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "bbr",
    title: "BBR",
    summary: "paces at the measured bandwidth and keeps about two measured BDPs in flight (version 1)",
    source: "Cardwell et al. (ACM Queue 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    signals: "delivery rate, delay, loss",
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
    round_began: Bytes,   // delivered count
    limited_below: Bytes, // packets sent at a lower delivered count were limited by the law itself
    recovery: Recovery,
    prior_window: Bytes, // before the last recovery or RTT probe that cut it
    aggregation: Aggregation,
    counts: PackedActions,
}

/// [`LawActions`] in half the memory. Each count saturates at 2^32 - 1.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
struct PackedActions {
    increases: u32,
    cuts: u32,
    loss_cuts: u32,
    probe_rtts: u32,
}

impl Bbr {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let window = Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp));
        Self {
            params,
            mode: Mode::Startup,
            pacing: paced(Rate::of(window.bytes(), path.base_rtt), params.startup_gain, &params),
            window,
            bandwidth: MaxBandwidth::new(),
            pipe: FullPipe::new(),
            min_rtt: Span::MAX,
            min_rtt_at: Time::ZERO,
            round_began: Bytes::ZERO,
            limited_below: Bytes::ZERO,
            recovery: Recovery::OPEN,
            prior_window: Bytes::ZERO,
            aggregation: Aggregation::new(),
            counts: PackedActions::default(),
        }
    }

    fn bdp(&self) -> Bytes {
        self.bandwidth.get().bytes_in(self.min_rtt)
    }

    /// Returns the minimum window of all modes: four packets.
    fn min_window(&self) -> Bytes {
        self.window.floor().times(4)
    }

    /// Returns the window during an RTT probe.
    fn probe_window(&self) -> Bytes {
        self.bdp().scaled(self.params.probe_rtt_window).max(self.min_window())
    }

    /// Notes the window before a recovery or a probe of the RTT cuts it (`bbr_save_cwnd`).
    fn save_window(&mut self) {
        let window = self.window.bytes();
        let is_cut = !self.recovery.is_open() || self.mode.is_probing_rtt();
        self.prior_window = if is_cut { self.prior_window.max(window) } else { window };
    }

    /// Updates the bandwidth estimate. Returns whether a round ended.
    fn observe_bandwidth(&mut self, ack: &Ack) -> bool {
        let round_ended = ack.delivered_at_send >= self.round_began;
        if round_ended {
            self.round_began = ack.delivered;
            if self.bandwidth.end_round() {
                self.aggregation.end_rounds();
            }
        }
        let limited = ack.sample_limited || ack.delivered_at_send < self.limited_below;
        if let Some(sample) = bandwidth::sample(ack, if self.min_rtt == Span::MAX { Span::ZERO } else { self.min_rtt })
            && (!limited || sample >= self.bandwidth.get())
        {
            let before = self.bandwidth.get();
            self.bandwidth.observe(sample);
            count(&mut self.counts.increases, u32::from(self.bandwidth.get() > before));
            count(&mut self.counts.cuts, u32::from(self.bandwidth.get() < before));
        }
        if round_ended && !limited {
            self.pipe.end_round(self.bandwidth.get());
        }
        round_ended
    }

    /// Returns whether the smallest RTT has expired at `then`.
    fn min_rtt_has_expired(&self, then: Time) -> bool {
        then > self.min_rtt_at.saturating_add(self.params.min_rtt_window)
    }

    fn observe_rtt(&mut self, ack: &Ack) {
        let aged = self.min_rtt_has_expired(ack.now) && self.min_rtt != Span::MAX;
        if ack.rtt <= self.min_rtt || aged {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = ack.now;
        }
        if aged && self.params.probe_rtt && !self.mode.is_probing_rtt() {
            self.save_window();
            self.mode = Mode::probe_rtt();
            count(&mut self.counts.probe_rtts, 1);
        }
    }

    /// Performs the mode transition that is due.
    fn advance_mode(&mut self, ack: &Ack) {
        let probe_window = self.probe_window();
        let inputs = TransitionInputs { ack, params: &self.params, pipe: &self.pipe, probe_window };
        let before = self.mode;
        self.mode = before.after_probe(&inputs);
        if before.is_probing_rtt() && !self.mode.is_probing_rtt() {
            self.min_rtt_at = ack.now;
            self.window.set(self.window.bytes().max(self.prior_window));
        }
        self.mode = self.mode.next(&inputs, self.bdp(), self.min_rtt);
    }

    fn set_pacing(&mut self) {
        if self.bandwidth.get().is_zero() {
            return;
        }
        let rate = paced(self.bandwidth.get(), self.mode.pacing_gain(&self.params), &self.params);
        if self.pipe.is_full() || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, ack: &Ack) {
        let (window, full) = (self.window.bytes(), self.pipe.is_full());
        let gain = if full { self.params.cwnd_gain } else { self.params.startup_gain };
        let extra = if full && self.params.ack_aggregation {
            self.aggregation.extra(self.bandwidth.get(), self.window.floor())
        } else {
            Bytes::ZERO
        };
        let target = self.bdp().scaled(gain).saturating_add(extra).max(self.min_window());
        let grown = window.saturating_add(ack.acked);
        if self.recovery.conserves() {
            self.window.set(window.max(ack.in_flight + ack.acked));
        } else if full {
            self.window.set(grown.min(target));
        } else if window < target || ack.delivered < self.params.initial_window {
            self.window.set(grown.max(self.min_window()));
        }
        if self.mode.is_probing_rtt() {
            self.window.set(self.window.bytes().min(self.probe_window()));
        }
    }

    /// Resumes sending after everything was acknowledged (`bbr_cwnd_event`, `CA_EVENT_TX_START`): paced at the bandwidth and
    /// no faster until the first packet is acknowledged. As after a probe, its RTT is that of an empty path: it replaces a
    /// smallest RTT that has at least half of its lifetime behind it.
    fn resume(&mut self, now: Time) {
        self.aggregation.restart(now);
        if self.min_rtt != Span::MAX && self.min_rtt_has_expired(now.saturating_add(self.params.min_rtt_window.over(2)))
        {
            self.min_rtt = Span::MAX;
        }
        let is_over = self.mode.is_probe_over(now);
        if is_over {
            self.mode = Mode::after_rtt_probe(&self.pipe, &self.params, now);
            self.min_rtt_at = now;
        }
        if is_over || !self.recovery.is_open() {
            self.recovery = Recovery::OPEN;
            if !self.mode.is_probing_rtt() {
                self.window.set(self.window.bytes().max(self.prior_window));
            }
        }
        if matches!(self.mode, Mode::ProbeBw(_)) {
            self.pacing = paced(self.bandwidth.get(), Frac::ONE, &self.params);
        }
    }

    /// Updates the recovery by `ack`.
    fn recover(&mut self, ack: &Ack) {
        let was_open = self.recovery.is_open();
        self.recovery = self.recovery.next(ack, self.window.floor());
        if !was_open && self.recovery.is_open() {
            self.window.set(self.window.bytes().max(self.prior_window));
        }
    }
}

/// The pace at `gain`, less the margin. `bandwidth` is under 2^47 b/s and a gain at most 100.
fn paced(bandwidth: Rate, gain: Frac, params: &Params) -> Rate {
    bandwidth.scaled(gain).scaled(params.pacing_margin.complement())
}

/// `bytes` in packets of `mss` bytes, one that is not full counted whole; 2^32 - 1 for more.
fn packets(bytes: Bytes, mss: Bytes) -> u32 {
    bytes.get().div_ceil(mss.get().max(1)).min(u32::MAX.into()) as u32
}

fn count(counter: &mut u32, events: u32) {
    *counter = counter.saturating_add(events);
}

impl ControlLaw for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        if self.recovery.restarts() || self.mode.is_probing_rtt() {
            // Rate samples reflect the lack of data until everything now in flight has been delivered.
            self.limited_below = ack.delivered + ack.in_flight + Bytes::new(1);
        }
        let (recovery, restarts_round) = self.recovery.begin_round();
        self.recovery = recovery;
        if restarts_round {
            self.round_began = ack.delivered.saturating_sub(ack.acked);
        }
        let round_ended = self.observe_bandwidth(ack);
        if self.params.ack_aggregation {
            self.aggregation.observe(ack, self.bandwidth.get(), self.window.bytes(), self.window.floor());
        }
        if round_ended {
            self.recovery = self.recovery.end_round();
        }
        self.recover(ack);
        self.observe_rtt(ack);
        self.advance_mode(ack);
        self.set_pacing();
        self.set_window(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.mode.note_loss();
        if loss.cause == LossCause::Timeout && self.params.timeout_collapses {
            let before = self.window.bytes();
            self.window.collapse();
            count(&mut self.counts.loss_cuts, u32::from(self.window.bytes() < before));
            return;
        }
        // A timeout means that the pipe is empty. With a timer per packet it does not, if more bytes stay in flight than are
        // lost: then it is a loss like others. Rates measured since reflect the path, and the rounds of startup continue.
        let emptied = loss.cause == LossCause::Timeout && loss.in_flight <= loss.lost;
        if !emptied && !self.params.recovery {
            return;
        }
        self.save_window();
        let (before, mss) = (self.recovery, self.window.floor());
        self.recovery =
            if emptied { before.time_out(loss.lost, loss.now, mss) } else { before.lose(loss.lost, loss.now, mss) };
        let window = self.window.bytes();
        if emptied || before.is_open() {
            // One packet may be sent at once: the lost one.
            self.window.set(window.min(loss.in_flight.saturating_add(mss)));
        } else {
            // Lost packets make no room for others.
            self.window.shrink(loss.lost);
        }
        if emptied {
            self.pipe.forget();
        }
        count(&mut self.counts.loss_cuts, u32::from(emptied || self.window.bytes() < window));
    }

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::Mss(mss) => {
                let before = self.window.floor();
                self.window.follow(mss);
                let mss = self.window.floor();
                self.recovery = self.recovery.counted_in(before, mss);
                self.aggregation.count_in(before, mss);
            }
            Notification::Resumed { now } => self.resume(now),
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        // At least a packet a second, however little was delivered.
        SendLimits {
            window: self.window.bytes(),
            pacing: self.pacing.max(Rate::of(self.window.floor(), Span::from_s(1))),
        }
    }

    fn actions(&self) -> LawActions {
        let PackedActions { increases, cuts, loss_cuts, probe_rtts } = self.counts;
        let [increases, cuts, loss_cuts, probe_rtts] = [increases, cuts, loss_cuts, probe_rtts].map(u64::from);
        LawActions { increases, cuts, loss_cuts, quick_adapts: 0, probe_rtts }
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
    extern crate std;

    use super::*;
    use crate::testbed::{PATH, Testbed, TestbedLink, ack, loss};

    const WAN: PathInfo = PathInfo {
        base_rtt: Span::from_ms(1),
        intra_rtt: Span::from_us(14),
        line_rate: Rate::from_gbps(10),
        mss: Bytes::new(1_500),
    };

    fn bed(flows: u64, change: impl Fn(&mut Params)) -> Testbed<Bbr> {
        let link =
            TestbedLink { rate: WAN.line_rate, mark_over: Bytes::MAX, drop_over: WAN.bdp().times(4), phantom: None };
        let mut bed = Testbed::new(link);
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
        // Ten packets a base RTT, times 2.885, less 1 %.
        let bps = law.send_limits().pacing.bps() as f64;
        assert!((bps / (0.99 * 2.885_39 * 40_960.0 * 8.0 / 14e-6) - 1.0).abs() < 1e-6);
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
        // Six phases of eight at 99 %, the two others at the full link rate: 99.25 %.
        assert!((9.9e9..9.95e9).contains(&used), "{used}");
        let window = bed.law(0).send_limits().window;
        assert!(window > WAN.bdp().ratio(19, 10) && window < WAN.bdp().ratio(21, 10), "{window}");
        // Probing at 5/4 for a round trip queues a quarter of a BDP, then drains it.
        assert!(bed.backlog.0 < WAN.bdp().ratio(2, 5), "{:?}", bed.backlog);
    }

    #[test]
    fn window_is_at_least_four_packets() {
        // 2 us at 10 Gb/s: a BDP of 1.7 packets.
        let path = PathInfo { base_rtt: Span::from_us(2), ..WAN };
        let link = TestbedLink { rate: path.line_rate, mark_over: Bytes::MAX, drop_over: Bytes::MAX, phantom: None };
        let mut bed = Testbed::new(link);
        let params = Params { ack_aggregation: false, ..Params::for_path(&path) };
        bed.add(Bbr::new(&path, params), &path, Time::ZERO);
        bed.run(Time::from_ms(1));
        assert!(matches!(bed.law(0).mode, Mode::ProbeBw(_)));
        assert_eq!(bed.law(0).send_limits().window, path.mss.times(4));
    }

    /// Two flows share a link, however much later the second one starts: neither has over three fifths, and over six starts the first
    /// one has half, within a tenth.
    #[test]
    fn two_flows_share() {
        let mut firsts = 0.0;
        for late in (0..6).map(|step| Time::from_us(100 + 700 * step)) {
            let mut bed = bed(1, |_| {});
            bed.add(Bbr::new(&WAN, Params::for_path(&WAN)), &WAN, late);
            bed.run(Time::from_ms(1_000));
            let before = [bed.delivered(0), bed.delivered(1)];
            bed.run(Time::from_ms(2_000));
            let rates = [0, 1].map(|flow| (bed.delivered(flow) - before[flow]).get() as f64 * 8.0 / 1e9);
            assert!(rates[0] + rates[1] > 9.7, "{late}: {rates:?}");
            let first = rates[0] / (rates[0] + rates[1]);
            assert!((0.4..0.6).contains(&first), "{late}: {first}");
            firsts += first / 6.0;
        }
        assert!((0.45..0.55).contains(&firsts), "{firsts}");
    }

    /// Twenty round trips with four packets each, twice as many as the filter remembers. Without the margin a queue of a few
    /// packets remains, and the smallest RTT is not measured between two probes.
    #[test]
    fn measures_the_smallest_rtt_again() {
        let mut bed = bed(1, |params| {
            params.pacing_margin = Frac::ZERO;
            params.min_rtt_window = Span::from_ms(50);
            params.probe_rtt_time = Span::from_ms(20);
        });
        let (mut probing, mut since) = (0, None);
        for step in 0..1_400 {
            bed.run(Time::from_us(100 * step));
            let law = bed.law(0);
            if law.mode.is_probing_rtt() {
                assert_eq!(law.send_limits().window, WAN.mss.times(4));
                probing += 1;
                since = Some(0);
            } else if let Some(steps) = &mut since {
                // The window is back at once, and the estimate was never lost.
                assert!(law.send_limits().window > WAN.bdp(), "{} after {steps}", law.send_limits().window);
                assert!(law.bandwidth.get() > Rate::from_mbps(9_500), "{} after {steps}", law.bandwidth.get());
                *steps += 1;
            }
        }
        let probes_done = bed.law(0).actions().probe_rtts;
        assert!(
            (1..=2).contains(&probes_done) && (200..460).contains(&probing),
            "{probes_done} probes, {probing} steps"
        );
        let mut half = self::bed(1, |params| {
            params.pacing_margin = Frac::ZERO;
            params.min_rtt_window = Span::from_ms(50);
            params.probe_rtt_window = Frac::HALF;
        });
        let mut step = 0;
        while !half.law(0).mode.is_probing_rtt() {
            step += 1;
            assert!(step < 1_400, "no probe");
            half.run(Time::from_us(100 * step));
        }
        let window = half.law(0).send_limits().window;
        assert!(window > WAN.bdp().ratio(9, 20) && window < WAN.bdp().ratio(11, 20), "{window}");
        let mut never = self::bed(1, |params| {
            params.min_rtt_window = Span::from_ms(20);
            params.probe_rtt = false;
        });
        never.run(Time::from_ms(100));
        assert_eq!(never.law(0).actions().probe_rtts, 0);
    }

    /// Rounds limited by the peer or by a buffer measure the path; rounds limited by the application do not.
    #[test]
    fn rounds_with_little_to_send_do_not_fill_the_pipe() {
        for (app_limited, sample_limited) in [(false, false), (false, true), (true, true), (true, false)] {
            let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
            for round in 1..=10u64 {
                let delivered = Bytes::new(round * 100_000);
                let delivered_at_send = Bytes::new((round - 1) * 100_000);
                law.on_ack(&Ack {
                    delivered,
                    delivered_at_send,
                    app_limited,
                    sample_limited,
                    ..ack(&PATH, 14 * round)
                });
            }
            assert_eq!(law.pipe.is_full(), !sample_limited);
        }
    }

    #[test]
    fn startup_never_slows_down() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        let before = law.send_limits().pacing;
        law.on_ack(&Ack { delivered: Bytes::new(4_096), delivered_at_send: Bytes::ZERO, ..ack(&PATH, 0) });
        assert!(law.bandwidth.get() < before && !law.bandwidth.get().is_zero());
        assert_eq!(law.send_limits().pacing, before);
    }

    #[test]
    fn pacing_is_at_least_a_packet_a_second() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.pacing = Rate::ZERO;
        assert_eq!(law.send_limits().pacing, Rate::from_bps(32_768));
    }

    #[test]
    fn under_the_estimate_the_queue_drains_and_no_probe_is_due() {
        let mut bed = bed(1, |params| params.min_rtt_window = Span::from_ms(50));
        bed.run(Time::from_ms(500));
        assert_eq!((bed.law(0).actions().probe_rtts, bed.law(0).min_rtt), (0, WAN.base_rtt));
    }

    fn losing(in_flight: u64, lost: u64, now_us: u64, cause: LossCause) -> Loss {
        let (lost, in_flight) = (PATH.mss.times(lost), PATH.mss.times(in_flight));
        Loss { lost, in_flight, ..loss(0, now_us, cause) }
    }

    /// A packet acknowledged, all counts in packets.
    fn acked(now_us: u64, in_flight: u64, delivered: u64, delivered_at_send: u64) -> Ack<'static> {
        let [in_flight, delivered, delivered_at_send] =
            [in_flight, delivered, delivered_at_send].map(|n| PATH.mss.times(n));
        Ack { in_flight, delivered, delivered_at_send, ..ack(&PATH, now_us) }
    }

    #[test]
    fn a_loss_conserves_packets_for_a_round_trip_and_then_restores_the_window() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        let packets = |law: &Bbr| law.send_limits().window.get() / PATH.mss.get();
        law.on_ack(&acked(0, 10, 1, 0));
        assert_eq!(packets(&law), 11);
        // Eleven in flight, the first lost: the window is the bytes in flight plus the lost packet.
        law.on_loss(&losing(9, 1, 1, LossCause::Reordered));
        assert_eq!(packets(&law), 10);
        // One packet acknowledged, one sent.
        law.on_ack(&acked(2, 9, 2, 0));
        assert_eq!(packets(&law), 10);
        // Two more lost: no room for more.
        law.on_loss(&losing(7, 2, 3, LossCause::Reordered));
        assert_eq!(packets(&law), 8);
        law.on_ack(&acked(4, 7, 3, 0));
        assert_eq!(packets(&law), 8);
        // A packet sent after the loss (1 us, and one was delivered) ends the round: two sent for one acknowledged.
        law.on_ack(&acked(15, 7, 4, 1));
        assert_eq!(packets(&law), 9);
        law.on_ack(&acked(16, 8, 5, 2));
        assert_eq!(packets(&law), 10);
        // Three acknowledged after the round, and this one was sent after the last loss (3 us): 11 as before, and one more.
        law.on_ack(&acked(17, 9, 6, 3));
        assert_eq!((packets(&law), law.recovery), (12, Recovery::OPEN));
        assert_eq!(law.actions().loss_cuts, 2);
    }

    #[test]
    fn a_timeout_starts_from_a_packet_and_then_restores_the_window() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_ack(&acked(0, 10, 1, 0));
        let before = law.send_limits().window;
        law.on_loss(&losing(0, 5, 20, LossCause::Timeout));
        law.on_loss(&losing(0, 1, 21, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        // From BBR's minimum of four packets, a packet more for each.
        for packet in 1..=5 {
            let ack = acked(34 + packet, 1, 1 + packet, packet);
            law.on_ack(&ack);
            assert_eq!(law.send_limits().window, PATH.mss.times(3 + packet));
            // Packets in flight were sent while the pipe was nearly empty.
            assert!(law.limited_below > ack.delivered + ack.in_flight);
        }
        // The sixth lost packet has arrived.
        law.on_ack(&acked(45, 1, 7, 6));
        assert_eq!((law.send_limits().window, law.recovery), (before + PATH.mss, Recovery::OPEN));
    }

    /// Per-packet timers: a timeout while other packets are acknowledged is a loss like others. In each round trip of
    /// ten packets one times out: startup ends, and ten round trips after the rate of the path is halved the estimate
    /// is halved.
    #[test]
    fn a_timeout_with_a_full_pipe_is_a_loss() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        let (mut now_us, mut delivered, mut estimates) = (0, 0, [Rate::ZERO; 2]);
        for (halved, estimate) in estimates.iter_mut().enumerate() {
            for _ in 0..20 {
                law.on_loss(&losing(9, 1, now_us, LossCause::Timeout));
                // Ten packets in a round trip, or in two.
                for _ in 0..10 {
                    now_us += 2 << halved;
                    delivered += 1;
                    let rtt = Span::from_us(20 << halved);
                    let ack = acked(now_us, 9, delivered, u64::saturating_sub(delivered, 10));
                    law.on_ack(&Ack { rtt, sent_at: ack.now - rtt, delivered_time_at_send: ack.now - rtt, ..ack });
                }
            }
            *estimate = law.bandwidth.get();
        }
        assert!(law.pipe.is_full());
        assert_eq!(estimates, [20, 40].map(|us| Rate::of(PATH.mss.times(10), Span::from_us(us))));
        // After the last packet of a flight is lost, the pipe is empty.
        law.on_loss(&losing(0, 1, now_us, LossCause::Timeout));
        assert!(law.recovery.restarts());
    }

    #[test]
    fn a_timeout_that_collapses_restores_nothing() {
        let mut law = Bbr::new(&PATH, Params { timeout_collapses: true, ..Params::for_path(&PATH) });
        law.on_ack(&acked(0, 10, 1, 0));
        // Eight packets are still in flight; Linux would keep nine.
        law.on_loss(&losing(8, 1, 20, LossCause::Timeout));
        assert_eq!((law.send_limits().window, law.recovery), (PATH.mss, Recovery::OPEN));
        // From BBR's minimum of four packets, a packet more for each.
        for packet in 1..=2 {
            law.on_ack(&acked(34 + packet, 8, 1 + packet, packet));
            assert_eq!(law.send_limits().window, PATH.mss.times(3 + packet));
        }
    }

    #[test]
    fn without_recovery_only_timeouts_change_the_window() {
        let mut law = Bbr::new(&PATH, Params { recovery: false, ..Params::for_path(&PATH) });
        law.on_ack(&ack(&PATH, 0));
        let before = law.send_limits();
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        law.on_loss(&loss(0, 20, LossCause::Nack));
        assert_eq!(law.send_limits(), before);
        law.on_loss(&loss(0, 20, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        law.on_ack(&ack(&PATH, 34));
        assert!(law.send_limits().window > before.window);
    }

    #[test]
    fn the_minimum_window_follows_the_mss() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_notification(&Notification::Mss(Bytes::new(9_000)));
        assert_eq!((law.send_limits().window, law.min_window()), (PATH.mss.times(10), Bytes::new(36_000)));
    }

    /// A loss in the last flight holds the window until nothing is in flight, and new packets find it as it was.
    #[test]
    fn recovery_ends_when_nothing_is_in_flight() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_ack(&acked(0, 10, 1, 0));
        let before = law.send_limits().window;
        law.on_loss(&losing(0, 1, 1, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss);
        for _ in 0..2 {
            law.on_notification(&Notification::Resumed { now: Time::from_us(50) });
            assert_eq!((law.send_limits().window, law.recovery), (before, Recovery::OPEN));
        }
    }

    /// The smallest RTT expired while nothing was sent: the first acknowledgement after that measures it, and no probe
    /// begins. Where packets were always in flight, one does.
    #[test]
    fn idleness_replaces_a_probe_of_the_rtt() {
        for was_idle in [false, true] {
            let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
            law.on_ack(&acked(0, 10, 1, 0));
            let later = 11_000_000;
            if was_idle {
                law.on_notification(&Notification::Resumed { now: Time::from_us(later) });
            }
            law.on_ack(&acked(later + 14, 10, 2, 1));
            assert_eq!(law.mode.is_probing_rtt(), !was_idle);
            // Its next expiry counts again.
            law.on_ack(&acked(2 * later + 28, 10, 3, 2));
            assert!(law.mode.is_probing_rtt());
        }
    }

    /// A smallest RTT measured at time 0 is replaced by the first one after idleness if half of its lifetime is over, so that
    /// no probe begins during the following packets.
    #[test]
    fn the_rtt_is_measured_after_idleness_before_a_probe_is_due() {
        for (resumed, probes) in [(4_000_000, true), (6_000_000, false)] {
            let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
            law.on_ack(&acked(0, 10, 1, 0));
            // Times of acknowledgements are counted from 1 s on.
            law.on_notification(&Notification::Resumed { now: Time::from_us(1_000_000 + resumed) });
            for (ack, at) in [resumed + 15, 10_500_000].into_iter().enumerate() {
                let slower = Ack { rtt: PATH.base_rtt + Span::from_us(1), ..acked(at, 10, 2 + ack as u64, 1) };
                law.on_ack(&slower);
            }
            assert_eq!(law.mode.is_probing_rtt(), probes, "idle until {resumed} us");
        }
    }

    /// Eight packets of a window are lost each round trip, so the flow never leaves recovery.
    #[test]
    fn random_loss_costs_only_the_lost_bytes() {
        let mut bed = bed(1, |_| {});
        bed.lost_in_a_million = 10_000;
        bed.run(Time::from_ms(100));
        let before = (bed.delivered(0), bed.lost);
        bed.run(Time::from_ms(500));
        let used = (bed.delivered(0) - before.0).get() as f64 * 8.0 / 0.4;
        std::println!("1 % lost: {used:.4e} b/s, {} lost", bed.lost - before.1);
        // 99 % of the 99.25 % used without losses.
        assert!((0.98 * 10e9..0.9926 * 0.995 * 10e9).contains(&used), "{used}");
        assert!(!bed.law(0).recovery.is_open());
    }

    /// A round trip of 200 us, and acknowledgements that arrive once per millisecond: a window W is delivered once in a
    /// millisecond, the estimate is W / 1 ms, and two BDPs of that are 0.4 W. So the window shrinks to four packets, 48 Mb/s.
    #[test]
    fn aggregated_acks_need_the_extra_window() {
        let path = PathInfo { base_rtt: Span::from_us(200), ..WAN };
        let [with, without] = [true, false].map(|ack_aggregation| {
            let link =
                TestbedLink { rate: path.line_rate, mark_over: Bytes::MAX, drop_over: Bytes::MAX, phantom: None };
            let mut bed = Testbed::new(link);
            bed.bunches = Span::from_ms(1);
            let params = Params { ack_aggregation, ..Params::for_path(&path) };
            bed.add(Bbr::new(&path, params), &path, Time::ZERO);
            bed.run(Time::from_ms(500));
            let before = bed.delivered(0);
            bed.run(Time::from_ms(1_000));
            (bed.delivered(0) - before).get() as f64 * 8.0 / 0.5
        });
        std::println!("bunches: {with:.4e} with, {without:.4e} b/s without");
        assert!(with > 0.98 * 10e9, "{with}");
        assert!((4e7..=4.8e7).contains(&without), "{without}");
    }

    #[test]
    fn app_limited_samples_do_not_lower_the_estimate() {
        let mut law = Bbr::new(&PATH, Params::for_path(&PATH));
        law.on_ack(&ack(&PATH, 100));
        let before = law.bandwidth.get();
        for us in 200..260 {
            let delivered_at_send = Bytes::new(us * 4_096 - 4_096);
            law.on_ack(&Ack { sample_limited: true, delivered_at_send, ..ack(&PATH, us) });
        }
        assert_eq!(law.bandwidth.get(), before);
    }
}
