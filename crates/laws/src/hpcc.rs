//! HPCC: keep the bytes in flight on every link a little under its bandwidth-delay product, as reported by the links.
//! Li et al., "HPCC: High Precision Congestion Control" (SIGCOMM 2019), §3.2 and §3.3, Algorithm 1. With `near_loop`
//! also HPCC* of LSCC (Long et al., §III-D): a second loop over the ports near the source, used where it asks for less.
//!
//! The state is the rate R, and the window is W = BDP * R / line, as the authors' simulator has it: W = R * T is the
//! same law with finer steps (a byte a round trip is 570 kb/s inside a datacenter). Losses and marks change nothing.

use units::{Bytes, Frac, Rate, Span, mul_div};

use crate::limits::Limits;
use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Hop, Loss, MOST_HOPS, Notification, Path, Permit};

parameters! { path;
    /// Rate at which a flow starts and over which it never is.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(10), "10 Mb/s", range::SLOW, range::FAST;
    /// Share of a link's bandwidth-delay product that may be in flight (eta).
    utilisation: Fraction = Frac::millionths(950_000), "0.95", Frac::millionths(10_000), Frac::ONE;
    /// Additive steps in a row before a multiplicative one (maxStage); 0 for multiplicative steps only.
    max_stage: Count = 5, "5", 0, 1_000_000;
    /// Additive increase (W_AI over T).
    additive: Rate = path.line_rate.scaled(Frac::ratio(1, 2_000)), "1/2000 of the narrowest link: (1 - eta) / N for N = 100 flows", range::STILL, range::FAST;
    /// Round trip by which queues and averages are measured (T).
    base_rtt: Span = path.base_rtt, "own base RTT", range::SHORT, range::LONG;
    /// Whether every acknowledgement changes the rate, from the reference that each round trip sets.
    fast_react: Switch = true, "on", false, true;
    /// Whether reports of ports near the source drive a second rate, and the smaller of the two holds (HPCC*).
    near_loop: Switch = false, "off", false, true;
    /// Round trip of that loop.
    near_rtt: Span = path.intra_rtt, "base RTT inside a datacenter", range::SHORT, range::LONG;
    /// Whether a window limits what is in flight.
    windowed: Switch = true, "on", false, true;
    /// That window, at line rate.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Whether the window shrinks with the rate.
    window_scales: Switch = true, "on", false, true;
}

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Hpcc {
    limits: Limits,
    settings: Settings,
    far: Loop,
    near: Loop,
    last: [Report; REPORTS], // the far loop's from the front, the near loop's from the back
    acted: Acted,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct Settings {
    utilisation: Frac,
    additive: Rate,
    base_rtt: Span,
    near_rtt: Span,
    max_stage: u32,
    fast_react: bool,
    near_loop: bool,
}

/// Ports that are remembered, of both loops together: a path over two fat trees has four on either side of the long
/// haul, and one pseudo queue. Reports that would need more are not heard.
const REPORTS: usize = 9;
const _: () = assert!(MOST_HOPS <= REPORTS);

/// One control loop: Algorithm 1's U, W^c and incStage, and the rate that they give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct Loop {
    in_flight: Frac, // U: bytes in flight over the bandwidth-delay product, of the fullest link; starts at 1
    reference: Rate, // R^c
    rate: Rate,
    round: u64, // where the round began: a delivered count, or a time
    stage: u32,
    ports: u8, // that the last report named; 0 before the first
}

impl Loop {
    const fn new(rate: Rate) -> Self {
        Self { in_flight: Frac::ONE, reference: rate, rate, round: 0, stage: 0, ports: 0 }
    }

    /// Algorithm 1, `MeasureInflight`, lines 8 and 9: U <- (1 - tau/T) * U + tau/T * u, with tau at most T.
    fn average(&mut self, measured: Measured, rtt: Span) {
        let weight = Frac::ratio(measured.over.min(rtt).unsigned_ps(), rtt.unsigned_ps());
        self.in_flight = self.in_flight.ewma(measured.in_flight, weight);
    }

    /// Algorithm 1, `ComputeWind`, as a rate; `commits` is its `updateWc`.
    fn compute(&mut self, settings: &Settings, limits: &Limits, commits: bool) {
        let multiplies = self.in_flight >= settings.utilisation || self.stage >= settings.max_stage;
        // W = W^c / (U / eta) + W_AI, or W = W^c + W_AI
        let kept = if multiplies {
            mul_div(self.reference.bps(), settings.utilisation.bits(), self.in_flight.bits())
        } else {
            self.reference.bps()
        };
        self.rate = limits.raised(Rate::from_bps(kept), settings.additive);
        if commits {
            self.reference = self.rate;
            self.stage = if multiplies { 0 } else { self.stage.saturating_add(1) };
        }
    }
}

/// What a port said last, in 16 bytes: time (picoseconds) and bytes sent modulo 2^44, and a queue of 40 bits in two
/// halves. Differences hold for 17.6 s and 17.6 TB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
struct Report {
    time: u64,
    sent: u64,
}

const LOW: u64 = (1 << 44) - 1;
const HALF_QUEUE: u64 = (1 << 20) - 1;

impl Report {
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
struct Measured {
    in_flight: Frac,
    over: Span,
}

/// Algorithm 1, `MeasureInflight`, lines 2 to 7. Nothing if some port's counters ran backwards: another path, or
/// reports out of order. A port that says the same thing again counts for nothing.
fn measure<'a>(ports: impl Iterator<Item = (&'a Report, &'a Hop)>, rtt: Span) -> Option<Measured> {
    let mut fullest = Measured { in_flight: Frac::ZERO, over: Span::ZERO };
    for (last, hop) in ports {
        let (over, sent) = last.until(hop)?;
        if over.is_zero() {
            continue;
        }
        // u' = min(qlen, last qlen) / (B * T) + txRate / B
        let waiting = hop.queue.min(last.queue()).fraction_of(hop.rate.bytes_in(rtt));
        let leaving = Frac::ratio(Rate::of(sent, over).bps(), hop.rate.bps());
        let in_flight = waiting + leaving;
        if in_flight > fullest.in_flight {
            fullest = Measured { in_flight, over };
        }
    }
    Some(fullest)
}

impl Hpcc {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, params.min_rate).with_window(
            params.windowed,
            params.window,
            params.window_scales,
        );
        Self {
            limits,
            settings: Settings {
                utilisation: params.utilisation,
                additive: params.additive,
                base_rtt: params.base_rtt,
                near_rtt: params.near_rtt,
                max_stage: params.max_stage.min(u32::MAX.into()) as u32,
                fast_react: params.fast_react,
                near_loop: params.near_loop,
            },
            far: Loop::new(limits.line()),
            near: Loop::new(limits.line()),
            last: [Report::default(); REPORTS],
            acted: Acted::default(),
        }
    }

    /// The smaller of both loops' rates: W* holds only where it is less than W.
    fn rate(&self) -> Rate {
        if self.settings.near_loop { self.far.rate.min(self.near.rate) } else { self.far.rate }
    }

    /// A report of one loop's ports. It ends that loop's round if what it answers left no earlier than the round
    /// began, at `left`; the next round begins at `next`.
    fn on_report(&mut self, near: bool, hops: &[Hop], left: u64, next: u64) {
        let before = self.rate();
        let (this, other, rtt) = if near {
            (&mut self.near, self.far.ports, self.settings.near_rtt)
        } else {
            (&mut self.far, self.near.ports, self.settings.base_rtt)
        };
        let round_over = left >= this.round;
        if hops.is_empty() || hops.len() + usize::from(other) > REPORTS || !(round_over || self.settings.fast_react) {
            return;
        }
        let known = usize::from(this.ports) == hops.len();
        let measured = if !known {
            None
        } else if near {
            measure(self.last.iter().rev().zip(hops), rtt)
        } else {
            measure(self.last.iter().zip(hops), rtt)
        };
        if let Some(measured) = measured {
            this.average(measured, rtt);
            this.compute(&self.settings, &self.limits, round_over);
        }
        if round_over || !known {
            this.round = next;
        }
        this.ports = hops.len() as u8;
        if near {
            self.last.iter_mut().rev().zip(hops).for_each(|(last, hop)| *last = Report::of(hop));
        } else {
            self.last.iter_mut().zip(hops).for_each(|(last, hop)| *last = Report::of(hop));
        }
        self.acted.increases += u64::from(self.rate() > before);
        self.acted.cuts += u64::from(self.rate() < before);
    }
}

impl ControlLaw for Hpcc {
    fn on_ack(&mut self, ack: &Ack) {
        self.on_report(false, ack.hops, ack.delivered_at_send.get(), ack.delivered.get());
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::DirectInt { now, sent_at, hops } = notification
            && self.settings.near_loop
        {
            self.on_report(true, hops, sent_at.ps(), now.ps());
        }
    }

    fn permit(&self) -> Permit {
        self.limits.permit(self.rate())
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("in_flight_ppm", self.far.in_flight.ppm().min(i64::MAX as u64) as i64);
        emit("rate_bps", self.far.rate.bps() as i64);
        if self.settings.near_loop {
            emit("near_in_flight_ppm", self.near.in_flight.ppm().min(i64::MAX as u64) as i64);
            emit("near_rate_bps", self.near.rate.bps() as i64);
        }
    }
}
