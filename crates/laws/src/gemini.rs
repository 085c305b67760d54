//! GEMINI: marks for congestion inside a datacenter, delay for congestion between datacenters, and both AIMD steps
//! scaled with the flow's BDP.
//! Zeng et al., "Congestion Control for Cross-Datacenter Networks", §III, Algorithm 1, Tables III and IV.
//! The base RTT is the smallest one seen and never ages. Sending is paced at window / base RTT, twice that in slow
//! start. What the paper leaves to TCP (loss, timeout, slow start) follows RFC 5681.
//! State and parameters are over 104 bytes, so a kernel needs socket storage for them.

use units::{Bytes, Frac, Rate, Span, Time, mul_div};

use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Episode, Loss, Path, Permit, Round, SlowStart, Window};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Whether packets are spread over the base RTT.
    paced: Switch = true, "on", false, true;
    /// Marking threshold that the cut is scaled by (K).
    k: Bytes = path.mss.ratio(path.line_rate.bps(), 20_000_000), "50 packets per Gb/s", Bytes::ZERO, range::WINDOW;
    /// Queueing delay over which the long haul counts as congested (T).
    delay_threshold: Span = Span::from_ms(5), "5 ms", Span::ZERO, range::LONG;
    /// Share of the window that a cut for delay takes (beta).
    beta: Fraction = Frac::millionths(200_000), "0.2", Frac::ZERO, Frac::ONE;
    /// Additive increase in packets a round trip for each bit of C x RTT, in units of 1e-9 (H).
    h_billionths: Count = 120, "120, for H = 1.2e-7", 0, 1_000_000_000;
    /// Smallest additive increase, in packets a round trip.
    h_min: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, range::UNLIMITED;
    /// Largest additive increase, in packets a round trip.
    h_max: Fraction = Frac::from_bits(5 << 32), "5", Frac::ZERO, range::UNLIMITED;
    /// Largest share of the window that a cut for marks takes.
    max_cut: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Weight of the newest round in the average marked fraction.
    ewma_gain: Fraction = Frac::ratio(1, 16), "1/16", Frac::ZERO, Frac::ONE;
}

/// The law.
#[derive(Clone, Debug)]
pub struct Gemini {
    params: Params,
    line_rate: Rate,
    window: Window,
    slow_start: SlowStart,
    base_rtt: Span, // RTT_base: the smallest seen; the path's until the first sample
    seen_rtt: bool,
    factor: Frac, // F
    step: Bytes,  // h
    alpha: Frac,  // starts at 1, as DCTCP's
    round: Round,
    round_min_rtt: Span, // of packets that left after the last cut
    congested_wan: bool, // what the last round said
    last_cut: Time,
    episode: Episode,
    acted: Acted,
}

impl Gemini {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
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
            episode: Episode::new(),
            acted: Acted::default(),
        };
        law.scale_with_bdp();
        law
    }

    /// F and h follow the base RTT.
    fn scale_with_bdp(&mut self) {
        let bdp = self.line_rate.bytes_in(self.base_rtt);
        // F <- 4K / (C * RTT + K)
        let k = self.params.k;
        self.factor = Frac::ratio(k.times(4).get(), bdp.saturating_add(k).get());
        // h <- H * C * RTT in packets, C * RTT in bits: up to 8e12 bits * 1e9 / 1e9 * 2^16 B, in saturating steps.
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
        // RTT_min > RTT_base + T, over the round that ends; a round without a sample since the last cut says no.
        let queueing = self.round_min_rtt - self.base_rtt;
        self.congested_wan = self.round_min_rtt != Span::MAX && queueing > self.params.delay_threshold;
        self.round_min_rtt = Span::MAX;
        self.round.restart(ack);
    }

    /// cwnd <- cwnd * (1 - max(f_dcn, f_wan)), f_dcn = alpha * F, f_wan = beta.
    fn decrease(&mut self, now: Time, congested_dcn: bool) {
        let f_dcn = if congested_dcn { (self.alpha * self.factor).min(self.params.max_cut) } else { Frac::ZERO };
        let f_wan = if self.congested_wan { self.params.beta } else { Frac::ZERO };
        self.acted.cuts += u64::from(self.window.cut(f_dcn.max(f_wan)));
        self.slow_start.leave(&self.window);
        self.responded(now);
    }

    /// What was sent before `now` says nothing of the window that holds from now on.
    fn responded(&mut self, now: Time) {
        self.last_cut = now;
        self.congested_wan = false;
        self.round_min_rtt = Span::MAX;
    }
}

impl ControlLaw for Gemini {
    fn on_ack(&mut self, ack: &Ack) {
        self.round.count(ack);
        self.observe_rtt(ack);
        if self.round.is_over(ack) {
            self.end_round(ack);
        }
        let congested_dcn = !ack.marked.is_zero();
        if congested_dcn || self.congested_wan {
            // Once a round trip: only for a packet that left after the last cut.
            if ack.sent_at >= self.last_cut {
                self.decrease(ack.now, congested_dcn);
            }
        } else if !ack.app_limited {
            // cwnd <- cwnd + h / cwnd
            let before = self.window.bytes();
            let rest = self.slow_start.grow(&mut self.window, ack.acked);
            self.window.increase(self.step, rest);
            self.acted.increases += u64::from(self.window.bytes() > before);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if response.apply(&mut self.window, &mut self.slow_start, Frac::HALF) {
            self.acted.loss_cuts += 1;
            self.responded(loss.now);
        }
    }

    fn permit(&self) -> Permit {
        let window = self.window.bytes();
        match (self.params.paced, self.slow_start.is_on(&self.window)) {
            (false, _) => Permit::window(window),
            (true, false) => Permit::paced_window(window, self.base_rtt),
            (true, true) => Permit::paced_window(window, self.base_rtt.over(2)),
        }
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
        emit("factor_ppm", self.factor.ppm() as i64);
        emit("increase_bytes", self.step.get() as i64);
        emit("base_rtt_ns", self.base_rtt.ns());
    }
}
