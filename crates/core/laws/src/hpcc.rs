//! HPCC: keep the bytes in flight on every link a little under its bandwidth-delay product, as reported by the links.
//! Li et al., "HPCC: High Precision Congestion Control" (SIGCOMM 2019), §3.2 and §3.3, Algorithm 1. With `near_loop`
//! also HPCC* of LSCC (Long et al., §III-D): a second loop over the ports near the source, used where it asks for less.
//!
//! The state is the rate R, and the window is W = BDP * R / line, as the authors' simulator has it: W = R * T is the
//! same law with finer steps (a byte a round trip is 570 kb/s inside a datacenter). Losses and marks change nothing.

use units::{Bytes, Frac, Rate, Span, mul_div};

use crate::info::LawInfo;
use crate::limits::{Limits, RateWindow};
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, Hop, LawActions, Loss, MAX_HOPS, Notification, PathInfo, SendLimits};

parameters! { path;
    /// Initial and maximum rate.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(10), "10 Mb/s", range::SLOW, range::FAST;
    /// Share of a link's bandwidth-delay product that may be in flight (eta).
    utilisation: Fraction = Frac::millionths(950_000), "0.95", Frac::millionths(10_000), Frac::ONE;
    /// Additive steps in a row before a multiplicative one (maxStage); 0 for multiplicative steps only.
    max_stage: Count = 5, "5", 0, 1_000_000;
    /// Additive increase (`W_AI` over T).
    additive: Rate = Rate::from_bps(path.line_rate.bps() / 2_000), "1/2000 of the narrowest link: (1 - eta) / N for N = 100 flows", range::ZERO_RATE, range::FAST;
    /// Round trip by which queues and averages are measured (T).
    base_rtt: Span = path.base_rtt, "own base RTT", range::SHORT, range::LONG;
    /// Updates the rate on every ACK, from the reference that each round trip sets; off: once per round trip.
    fast_react: Switch = true, "true", false, true;
    /// Averages with 48 fractional bits instead of 32, close to the floating point of the authors' simulator.
    fine: Switch = false, "false", false, true;
    /// Runs a second loop on reports of ports near the source; the smaller of both rates applies (HPCC*).
    near_loop: Switch = false, "false", false, true;
    /// Round trip by which `near_loop` measures queues and averages.
    near_rtt: Span = path.intra_rtt, "base RTT inside a datacenter", range::SHORT, range::LONG;
    /// Limits the bytes in flight by a window.
    windowed: Switch = true, "true", false, true;
    /// Window at line rate, with `windowed`.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Scales the window in proportion to the rate; off: it stays at `window`.
    window_scales: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "hpcc",
    title: "HPCC",
    summary: "keeps what is in flight on every link under its bandwidth-delay product; HPCC* with a loop near the source",
    source: "Li et al. (SIGCOMM 2019), §3, Algorithm 1; LSCC, §III-D",
    signals: "in-band telemetry, direct telemetry if switched on",
    reads_reports: true,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Hpcc {
    limits: Limits,
    settings: HpccSettings,
    far: ControlLoop,
    near: ControlLoop,
    last: [PortReport; REPORTS], // the far loop's from the front, the near loop's from the back
    actions: LawActions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct HpccSettings {
    utilisation: Frac,
    additive: Rate,
    base_rtt: Span,
    near_rtt: Span,
    max_stage: u32,
    fast_react: bool,
    near_loop: bool,
    precision: Precision,
}

/// Precision of averages and measurements of U.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Precision {
    /// 32 fractional bits.
    Coarse,
    /// 48 fractional bits: values are times 2^16.
    Fine,
}

/// A control loop of HPCC*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoopKind {
    /// Over the ports of the path, reported by acknowledgements.
    Far,
    /// Over the ports near the source, reported directly.
    Near,
}

/// Ports that are remembered, of both loops together: a path over two fat trees has four on either side of the long
/// haul, and one pseudo queue. Reports that would need more are ignored.
const REPORTS: usize = 9;
const _: () = assert!(MAX_HOPS <= REPORTS);

/// One control loop: Algorithm 1's U, W^c and incStage, and the resulting rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct ControlLoop {
    in_flight: Frac, // U of the fullest link: bytes in flight over the BDP, starts at 1; times 2^16 if fine
    reference: Rate, // R^c
    rate: Rate,
    round: u64, // start of the round: a delivered count, or a time
    stage: u32,
    ports: u8, // in the last report; 0 before the first
}

impl ControlLoop {
    const fn new(rate: Rate, precision: Precision) -> Self {
        let in_flight = Frac::from_bits(match precision {
            Precision::Coarse => 1 << 32,
            Precision::Fine => 1 << 48,
        });
        Self { in_flight, reference: rate, rate, round: 0, stage: 0, ports: 0 }
    }

    /// Algorithm 1, `MeasureInflight`, lines 8 and 9: U <- (1 - tau/T) * U + tau/T * u, with tau at most T.
    fn average(&mut self, measured: LinkMeasurement, rtt: Span, precision: Precision) {
        if precision == Precision::Fine {
            let (rtt, over) = (rtt.unsigned_ps(), measured.over.min(rtt).unsigned_ps());
            let kept = mul_div(self.in_flight.bits(), rtt - over, rtt);
            self.in_flight = Frac::from_bits(kept.saturating_add(mul_div(measured.in_flight.bits(), over, rtt)));
            return;
        }
        let weight = Frac::ratio(measured.over.min(rtt).unsigned_ps(), rtt.unsigned_ps());
        self.in_flight = self.in_flight.ewma(measured.in_flight, weight);
    }

    /// Algorithm 1, `ComputeWind`, as a rate, without its `updateWc`. Returns the incStage to commit.
    fn compute(&mut self, settings: &HpccSettings, limits: &Limits) -> u32 {
        // eta, in the same units as U
        let share = match settings.precision {
            Precision::Coarse => settings.utilisation.bits(),
            Precision::Fine => fine_share(settings),
        };
        let multiplies = self.in_flight.bits() >= share || self.stage >= settings.max_stage;
        // W = W^c / (U / eta) + W_AI, or W = W^c + W_AI
        let kept =
            if multiplies { mul_div(self.reference.bps(), share, self.in_flight.bits()) } else { self.reference.bps() };
        self.rate = limits.raised(Rate::from_bps(kept), settings.additive);
        if multiplies { 0 } else { self.stage.saturating_add(1) }
    }

    /// Algorithm 1, `ComputeWind` with `updateWc`: the rate becomes the reference.
    fn commit(&mut self, stage: u32) {
        (self.reference, self.stage) = (self.rate, stage);
    }
}

/// eta with 48 binary places, from whole millionths: a [`Frac`] rounds 0.95 down.
fn fine_share(settings: &HpccSettings) -> u64 {
    let millionths = mul_div(settings.utilisation.bits(), 1_000_000, 1 << 31).div_ceil(2);
    mul_div(millionths, 1 << 48, 1_000_000)
}

/// Last report of a port, in 16 bytes: time (picoseconds) and bytes sent modulo 2^44, and a queue of 40 bits in two
/// halves. Differences hold for 17.6 s and 17.6 TB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
struct PortReport {
    time: u64,
    sent: u64,
}

const LOW: u64 = (1 << 44) - 1;
const HALF_QUEUE: u64 = (1 << 20) - 1;

impl PortReport {
    fn of(hop: &Hop) -> Self {
        let queue = hop.queue.get().min((1 << 40) - 1);
        Self {
            time: (hop.time.ps() & LOW) | ((queue & HALF_QUEUE) << 44),
            sent: (hop.sent.get() & LOW) | ((queue >> 20) << 44),
        }
    }

    fn queue(self) -> Bytes {
        Bytes::new((self.time >> 44) | ((self.sent >> 44) << 20))
    }

    /// Time and bytes since this report; nothing if either ran backwards.
    fn until(self, hop: &Hop) -> Option<(Span, Bytes)> {
        let time = hop.time.ps().wrapping_sub(self.time) & LOW;
        let sent = hop.sent.get().wrapping_sub(self.sent) & LOW;
        (time <= LOW / 2 && sent <= LOW / 2).then(|| (Span::from_ps(time as i64), Bytes::new(sent)))
    }
}

/// The fullest link of a report: Algorithm 1's u and tau.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LinkMeasurement {
    in_flight: Frac, // times 2^16 if fine
    over: Span,
}

/// Algorithm 1, `MeasureInflight`, lines 2 to 7. None if some port's counters ran backwards: another path, or reports
/// out of order. A port that repeats a report is skipped; if all do, nothing is measured.
fn measure<'a>(
    ports: impl Iterator<Item = (&'a PortReport, &'a Hop)>,
    rtt: Span,
    precision: Precision,
) -> Option<LinkMeasurement> {
    let mut fullest = LinkMeasurement { in_flight: Frac::ZERO, over: Span::ZERO };
    for (last, hop) in ports {
        let (over, sent) = last.until(hop)?;
        if over.is_zero() {
            continue;
        }
        // u' = min(qlen, last qlen) / (B * T) + txRate / B
        let in_flight = if precision == Precision::Fine {
            fine_in_flight(*last, hop, over, sent, rtt)
        } else {
            let least = hop.queue.min(last.queue());
            // Usually nothing waits, which saves two divisions.
            let waiting = if least.is_zero() { Frac::ZERO } else { least.fraction_of(hop.rate.bytes_in(rtt)) };
            waiting + Frac::ratio(Rate::of(sent, over).bps(), hop.rate.bps())
        };
        if in_flight > fullest.in_flight {
            fullest = LinkMeasurement { in_flight, over };
        }
    }
    (!fullest.over.is_zero()).then_some(fullest)
}

/// Returns 2^16 times u' of one port.
fn fine_in_flight(last: PortReport, hop: &Hop, over: Span, sent: Bytes, rtt: Span) -> Frac {
    let waiting = mul_div(hop.queue.min(last.queue()).get(), 1 << 48, hop.rate.bytes_in(rtt).get().max(1));
    // Transmission time of the sent bytes at the line rate, in units of 2^-20 ps.
    let busy = mul_div(sent.get().saturating_mul(8), 1_000_000_000_000 << 20, hop.rate.bps().max(1));
    Frac::from_bits(waiting.saturating_add(mul_div(busy, 1 << 28, over.unsigned_ps())))
}

impl Hpcc {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, params.min_rate).with_window(RateWindow {
            windowed: params.windowed,
            at_line_rate: params.window,
            scales: params.window_scales,
        });
        let precision = if params.fine { Precision::Fine } else { Precision::Coarse };
        Self {
            limits,
            settings: HpccSettings {
                utilisation: params.utilisation,
                additive: params.additive,
                base_rtt: params.base_rtt,
                near_rtt: params.near_rtt,
                max_stage: params.max_stage.min(u32::MAX.into()) as u32,
                fast_react: params.fast_react,
                near_loop: params.near_loop,
                precision,
            },
            far: ControlLoop::new(limits.line(), precision),
            near: ControlLoop::new(limits.line(), precision),
            last: [PortReport::default(); REPORTS],
            actions: LawActions::default(),
        }
    }

    /// Returns the smaller of both loops' rates: W* applies only if it is less than W.
    fn rate(&self) -> Rate {
        if self.settings.near_loop { self.far.rate.min(self.near.rate) } else { self.far.rate }
    }

    fn ppm(&self, of: &ControlLoop) -> i64 {
        let extra_bits = if self.settings.precision == Precision::Fine { 16 } else { 0 };
        Frac::from_bits(of.in_flight.bits() >> extra_bits).ppm().min(i64::MAX as u64) as i64
    }

    /// Processes a report of one loop's ports. It ends the loop's round if the reported packet, sent at `left`, was sent no
    /// earlier than the round began; the next round begins at `next`.
    fn on_report(&mut self, kind: LoopKind, hops: &[Hop], left: u64, next: u64) {
        let before = self.rate();
        let (this, other, rtt) = match kind {
            LoopKind::Far => (&mut self.far, self.near.ports, self.settings.base_rtt),
            LoopKind::Near => (&mut self.near, self.far.ports, self.settings.near_rtt),
        };
        let round_over = left >= this.round;
        if hops.is_empty() || hops.len() + usize::from(other) > REPORTS || !(round_over || self.settings.fast_react) {
            return;
        }
        let known = usize::from(this.ports) == hops.len();
        let measured = if !known {
            None
        } else if kind == LoopKind::Near {
            measure(self.last.iter().rev().zip(hops), rtt, self.settings.precision)
        } else {
            measure(self.last.iter().zip(hops), rtt, self.settings.precision)
        };
        if let Some(measured) = measured {
            this.average(measured, rtt, self.settings.precision);
            let stage = this.compute(&self.settings, &self.limits);
            if round_over {
                this.commit(stage);
            }
        }
        if round_over || !known {
            this.round = next;
        }
        this.ports = hops.len() as u8;
        if kind == LoopKind::Near {
            self.last.iter_mut().rev().zip(hops).for_each(|(last, hop)| *last = PortReport::of(hop));
        } else {
            self.last.iter_mut().zip(hops).for_each(|(last, hop)| *last = PortReport::of(hop));
        }
        self.actions.increases += u64::from(self.rate() > before);
        self.actions.cuts += u64::from(self.rate() < before);
    }
}

impl ControlLaw for Hpcc {
    fn on_ack(&mut self, ack: &Ack) {
        self.on_report(LoopKind::Far, ack.hops, ack.delivered_at_send.get(), ack.delivered.get());
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn rate_change_is_immediate(&self) -> bool {
        true
    }

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::DirectInt { now, sent_at, hops } if self.settings.near_loop => {
                self.on_report(LoopKind::Near, hops, sent_at.ps(), now.ps());
            }
            Notification::Mss(mss) => self.limits.follow(mss),
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.limits.send_limits(self.rate())
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("in_flight_ppm", self.ppm(&self.far));
        emit("rate_bps", self.far.rate.bps() as i64);
        if self.settings.near_loop {
            emit("near_in_flight_ppm", self.ppm(&self.near));
            emit("near_rate_bps", self.near.rate.bps() as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::testbed::{PATH, ack, jain};
    use proptest::prelude::*;
    use std::vec::Vec;
    use units::Time;

    fn law(change: impl Fn(&mut Params)) -> Hpcc {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        Hpcc::new(&PATH, params)
    }

    fn hop(ns: u64, sent: u64, queue: u64) -> Hop {
        Hop { time: Time::from_ns(ns), sent: Bytes::new(sent), queue: Bytes::new(queue), rate: PATH.line_rate }
    }

    /// Reports the acknowledgement of a packet that was sent when `before` bytes were delivered; now `delivered` bytes are.
    fn ack_with_hops(law: &mut Hpcc, hops: &[Hop], before: u64, delivered: u64) -> f64 {
        law.on_ack(&Ack {
            delivered: Bytes::new(delivered),
            delivered_at_send: Bytes::new(before),
            hops,
            ..ack(&PATH, 0)
        });
        law.rate().bps() as f64 / 1e9
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b
    }

    /// Algorithm 1 by hand: T = 14 us, B T = 175,000 B, `W_AI` over T = 50 Mb/s.
    #[test]
    fn the_first_rounds() {
        let mut law = law(|_| {});
        assert_eq!(law.send_limits(), SendLimits { window: Bytes::new(175_000), pacing: Rate::from_gbps(100) });
        // The first acknowledgement only stores its report.
        assert!(near(ack_with_hops(&mut law, &[hop(1_000, 5_000_000, 40_000)], 0, 4_096), 100.0));
        // A round trip later the link was busy all the time, and 17,500 B waited at the lower end: u = 1 + 0.1. Then
        // U = u, since tau = T, and R = 100 / (1.1 / 0.95) + 0.05.
        let first = ack_with_hops(&mut law, &[hop(15_000, 5_175_000, 17_500)], 4_096, 8_192);
        assert!(near(first, 86.413_636_36), "{first}");
        assert!(near(law.far.in_flight.ppm() as f64, 1_100_000.0));
        // 1.4 us later, in the same round: half busy, no queue: u = 0.5, U = 0.9 * 1.1 + 0.1 * 0.5 = 1.04. From the
        // same reference: R = R^c / (1.04 / 0.95) + 0.05.
        let second = ack_with_hops(&mut law, &[hop(16_400, 5_183_750, 0)], 4_096, 12_288);
        assert!(near(second, 86.413_636_36 * 0.95 / 1.04 + 0.05), "{second}");
        assert!(near(law.far.reference.bps() as f64 / 1e9, first));
        // The next report of the same kind replaces that rate, without a cumulative effect: U = 0.9 * 1.04 + 0.05 = 0.986.
        let third = ack_with_hops(&mut law, &[hop(17_800, 5_192_500, 0)], 4_096, 16_384);
        assert!(near(third, 86.413_636_36 * 0.95 / 0.986 + 0.05), "{third}");
        // U = 0.9 * 0.986 + 0.05 = 0.9374 is under eta: R^c + 0.05, and a round is over.
        let fourth = ack_with_hops(&mut law, &[hop(19_200, 5_201_250, 0)], 8_192, 20_480);
        assert!(near(fourth, 86.463_636_36), "{fourth}");
        assert_eq!((law.far.stage, law.send_limits().window), (1, Bytes::new(151_311)));
        assert_eq!((law.actions.cuts, law.actions.increases), (2, 2));
    }

    /// Rounds a little over eta, against the same in floating point: with 48 binary places they end within a bit
    /// a second of it, with 32 they do not.
    #[test]
    fn fine_averages_are_as_floating_point() {
        let rounds = |fine| {
            let mut law = law(|params| (params.fine, params.max_stage) = (fine, 0));
            ack_with_hops(&mut law, &[hop(1_000, 0, 0)], 0, 1);
            for n in 1..=1_000 {
                ack_with_hops(&mut law, &[hop(1_000 + 87 * n, 1_040 * n, 0)], n, n + 1);
            }
            law.rate().bps()
        };
        let (mut u, mut rate) = (1.0f64, 100e9f64);
        for _ in 1..=1_000 {
            u = (u * (14_000.0 - 87.0) + 1_040.0 * 8.0 / 87.0 / 100.0 * 87.0) / 14_000.0;
            rate = ((rate / (u / 0.95)).floor() + 50e6).min(100e9);
        }
        assert!(rate < 100e9, "{rate}");
        assert!(rounds(true).abs_diff(rate as u64) <= 1, "{} and {rate}", rounds(true));
        assert!(rounds(false).abs_diff(rate as u64) > 100, "{} and {rate}", rounds(false));
    }

    /// After `max_stage` additive rounds an idle link is taken at once.
    #[test]
    fn five_additive_rounds_then_a_multiplicative_one() {
        let mut law = law(|_| {});
        ack_with_hops(&mut law, &[hop(0, 0, 0)], 0, 1);
        // Three round trips at u = 2 reduce 100 to slightly more than 100 * (0.475)^3.
        for n in 1..=3 {
            ack_with_hops(&mut law, &[hop(n * 14_000, n * 350_000, 0)], n, n + 1);
        }
        let start = law.rate().bps();
        for n in 1..=6 {
            let rate = ack_with_hops(&mut law, &[hop(42_000 + n * 14_000, 1_050_000 + n * 17_500, 0)], 10 + n, 11 + n);
            if n <= 5 {
                assert_eq!(law.rate().bps(), start + n * 50_000_000);
            } else {
                assert!(near(rate, 100.0), "U = 0.1 asks for 9.5 times as much: {rate}");
            }
        }
    }

    #[test]
    fn the_fullest_link_counts() {
        let mut law = law(|params| params.max_stage = 0);
        ack_with_hops(&mut law, &[hop(0, 0, 0), hop(500, 0, 35_000)], 0, 1);
        ack_with_hops(&mut law, &[hop(14_000, 87_500, 0), hop(14_500, 175_000, 70_000)], 1, 2);
        assert!(near(law.far.in_flight.ppm() as f64, 1_200_000.0));
    }

    #[test]
    fn without_fast_reaction_only_rounds_count() {
        let mut law = law(|params| params.fast_react = false);
        ack_with_hops(&mut law, &[hop(0, 0, 0)], 0, 1);
        assert!(near(ack_with_hops(&mut law, &[hop(1_000, 500_000, 0)], 0, 2), 100.0));
        // Measured against the report of the last round: 1.2 over 14 us.
        ack_with_hops(&mut law, &[hop(14_000, 210_000, 0)], 1, 3);
        assert!(near(law.far.in_flight.ppm() as f64, 1_200_000.0));
    }

    #[test]
    fn a_path_change_resets_the_measurement() {
        let mut law = law(|_| {});
        ack_with_hops(&mut law, &[hop(0, 0, 0)], 0, 1);
        for hops in [
            // A longer path, no report, counters that ran backwards, a clock that ran backwards.
            &[hop(14_000, 400_000, 0), hop(15_000, 400_000, 0)][..],
            &[],
            &[hop(28_000, 300_000, 0), hop(29_000, 800_000, 0)],
            &[hop(20_000, 900_000, 0), hop(30_000, 900_000, 0)],
            // The same report again.
            &[hop(20_000, 900_000, 0), hop(30_000, 900_000, 0)],
        ] {
            ack_with_hops(&mut law, hops, 100, 200);
            assert!(near(law.rate().bps() as f64 / 1e9, 100.0), "{hops:?}");
        }
        ack_with_hops(&mut law, &[hop(34_000, 1_250_000, 0), hop(44_000, 1_000_000, 0)], 200, 300);
        assert!(law.rate() < Rate::from_gbps(50));
    }

    #[test]
    fn the_near_loop_applies_if_its_rate_is_lower() {
        let direct = |law: &mut Hpcc, sent_us: u64, now_us: u64, hops: &[Hop]| {
            let (now, sent_at) = (Time::from_us(now_us), Time::from_us(sent_us));
            law.on_notification(&Notification::DirectInt { now, sent_at, hops });
            law.rate().bps() as f64 / 1e9
        };
        let pseudo = |ns, sent, queue| Hop { rate: Rate::from_gbps(40), ..hop(ns, sent, queue) };
        let mut law = law(|params| params.near_loop = true);
        direct(&mut law, 0, 14, &[hop(0, 0, 0), pseudo(100, 0, 0)]);
        // The pseudo queue drains at 40 Gb/s and receives 60: u = 1.5 without waiting bytes. R* = 100 / (1.5 / 0.95) + 0.05.
        let rate = direct(&mut law, 14, 28, &[hop(14_000, 105_000, 0), pseudo(14_100, 105_000, 35_000)]);
        assert!(near(rate, 63.383_333_33), "{rate}");
        // The far loop finds its ports half idle, and may not raise the rate.
        ack_with_hops(&mut law, &[hop(0, 0, 0)], 0, 1);
        ack_with_hops(&mut law, &[hop(14_000, 87_500, 0)], 1, 2);
        assert!(near(law.rate().bps() as f64 / 1e9, rate) && law.far.rate == Rate::from_gbps(100));
        // A report of the same flight does not move the reference; one of the next does.
        let reference = law.near.reference;
        direct(&mut law, 20, 30, &[hop(15_000, 112_500, 0), pseudo(15_100, 112_500, 37_500)]);
        assert_eq!(law.near.reference, reference);
        direct(&mut law, 28, 42, &[hop(16_000, 120_000, 0), pseudo(16_100, 120_000, 40_000)]);
        assert!(law.near.reference < reference);
        // The far loop takes over where it is stricter.
        ack_with_hops(&mut law, &[hop(28_000, 787_500, 175_000)], 2, 3);
        assert_eq!(law.rate(), law.far.rate);
        assert!(law.far.rate < law.near.rate);

        let mut plain = self::law(|_| {});
        direct(&mut plain, 0, 14, &[hop(0, 0, 0)]);
        assert!(near(direct(&mut plain, 14, 28, &[hop(14_000, 900_000, 0)]), 100.0));
    }

    #[test]
    fn loops_share_their_memory() {
        let hops = |n: usize, ns, sent| -> Vec<Hop> { (0..n).map(|_| hop(ns, sent, 0)).collect() };
        let mut law = law(|params| params.near_loop = true);
        let direct = |law: &mut Hpcc, us, hops: &[Hop]| {
            let now = Time::from_us(us);
            law.on_notification(&Notification::DirectInt { now, sent_at: now, hops });
        };
        ack_with_hops(&mut law, &hops(4, 0, 0), 0, 1);
        direct(&mut law, 0, &hops(5, 0, 0));
        assert_eq!((law.far.ports, law.near.ports), (4, 5));
        ack_with_hops(&mut law, &hops(4, 14_000, 350_000), 1, 2);
        direct(&mut law, 14, &hops(5, 14_000, 262_500));
        assert_eq!((law.far.in_flight.ppm(), law.near.in_flight.ppm()), (2_000_000, 1_500_000));
        // A sixth port of the near loop does not fit.
        direct(&mut law, 28, &hops(6, 28_000, 262_500));
        assert_eq!(law.near.ports, 5);
    }

    /// Checks that four flows on one link, advanced a round trip at a time, use slightly more than eta of it, in equal
    /// shares.
    #[test]
    fn flows_fill_eta_and_share() {
        let mut flows: Vec<Hpcc> = (0..4).map(|_| law(|_| {})).collect();
        let rates = [70.0, 20.0, 8.0, 2.0];
        for (flow, rate) in flows.iter_mut().zip(rates) {
            ack_with_hops(flow, &[hop(0, 0, 0)], 0, 1);
            flow.far.rate = Rate::from_bps((rate * 1e9) as u64);
            flow.far.reference = flow.far.rate;
        }
        let mut sent = 0;
        for round in 1..3_000u64 {
            sent += flows.iter().map(|flow| flow.rate().bytes_in(PATH.base_rtt).get()).sum::<u64>();
            for flow in &mut flows {
                ack_with_hops(flow, &[hop(round * 14_000, sent, 0)], round, round + 1);
            }
        }
        let shares: Vec<f64> = flows.iter().map(|flow| flow.rate().bps() as f64 / 1e9).collect();
        let sum: f64 = shares.iter().sum();
        assert!((95.0..96.5).contains(&sum), "{shares:?}");
        assert!(jain(&shares) > 0.999, "{shares:?}");
    }

    proptest! {
        #[test]
        fn reports_are_packed_without_loss(
            time: u64, sent: u64, queue in 0..1u64 << 40, gap in 0..1u64 << 43, more in 0..1u64 << 43,
        ) {
            let of = |time, sent| Hop {
                time: Time::from_ps(time), sent: Bytes::new(sent), queue: Bytes::new(queue), rate: Rate::ZERO,
            };
            let report = PortReport::of(&of(time, sent));
            prop_assert_eq!(report.queue().get(), queue);
            let later = report.until(&of(time.wrapping_add(gap), sent.wrapping_add(more)));
            prop_assert_eq!(later, Some((Span::from_ps(gap as i64), Bytes::new(more))));
            prop_assert_eq!(report.until(&of(time.wrapping_sub(gap + 1), sent)), None);
        }

        /// Rates stay between the least and the line rate, windows between a packet and a BDP, for any port reports.
        #[test]
        fn permits_are_sane_after_any_reports(
            reports in proptest::collection::vec(
                (any::<bool>(), 0..10usize, 0..1u64 << 36, 0..1u64 << 30, any::<u64>(), any::<u64>(), any::<bool>()),
                1..200,
            ),
            max_stage in 0..6u64,
        ) {
            let mut law = law(|params| {
                params.near_loop = true;
                params.max_stage = max_stage;
            });
            let (mut time, mut sent) = (0u64, 0u64);
            for (near, ports, gap, more, queue, rate, round) in reports {
                time += gap;
                sent += more;
                let hop = Hop {
                    time: Time::from_ps(time),
                    sent: Bytes::new(sent),
                    queue: Bytes::new(queue >> (gap % 64)),
                    rate: Rate::from_bps(rate >> (more % 64)),
                };
                let hops = [hop; 10];
                let hops = &hops[..ports];
                if near {
                    let (now, sent_at) = (Time::from_ps(time), Time::from_ps(if round { time } else { 0 }));
                    law.on_notification(&Notification::DirectInt { now, sent_at, hops });
                } else {
                    ack_with_hops(&mut law, hops, if round { sent } else { 0 }, sent);
                }
                let send_limits = law.send_limits();
                prop_assert!(send_limits.pacing >= Rate::from_mbps(10) && send_limits.pacing <= PATH.line_rate);
                prop_assert!(send_limits.window >= PATH.mss && send_limits.window <= PATH.bdp());
            }
            law.trace(&mut |name, value| assert!(!name.is_empty() && value >= 0, "{name} {value}"));
        }
    }
}
