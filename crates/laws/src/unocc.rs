//! `UnoCC`: one AIMD loop for flows inside and between datacenters, driven by marks, with delay to tell a phantom
//! queue from a real one and Quick Adapt for extreme congestion.
//! Uno, SC 2025, §4.1 and Algorithm 1. Losses and timeouts cut nothing: the paper has no rule for them, and
//! Quick Adapt answers what they mean. The published simulator's increase on falling marks is left out.
//! State and parameters are over 104 bytes, so a kernel needs socket storage for them.

use units::{Bytes, Frac, Span, Time};

use crate::params::{parameters, range};
use crate::round::marked_fraction;
use crate::{Ack, Acted, ControlLaw, Loss, Notification, Path, Permit, Window};

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Whether packets are spread over the base RTT.
    paced: Switch = true, "on", false, true;
    /// Additive increase a round trip, as a share of the own BDP (alpha).
    alpha: Fraction = Frac::millionths(1_000), "0.001", Frac::ZERO, Frac::ONE;
    /// Least time between the ends of two epochs (epoch period).
    epoch_period: Span = path.intra_rtt, "the intra-datacenter RTT", range::SHORT, range::LONG;
    /// Weight of the newest epoch in the average marked fraction (gain of E).
    ewma_gain: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// How strongly marks cut: 4K / (K + own BDP) at a marked fraction of 1 (K).
    k: Bytes = path.intra_bdp().ratio(1, 7), "1/7 of the intra-datacenter BDP", Bytes::ZERO, range::WINDOW;
    /// Smallest RTT of an epoch over the base RTT that still means an empty real queue (delay == 0).
    delay_tolerance: Span = path.intra_rtt.times(55).over(1_000), "5.5 % of the intra-datacenter RTT", Span::ZERO, range::LONG;
    /// What a cut is scaled by when only the phantom queue is congested (0.3 in Algorithm 1, line 10).
    md_scale: Fraction = Frac::millionths(300_000), "0.3", Frac::ZERO, Frac::ONE;
    /// Whether that scale multiplies again at each such epoch until the real queue is congested.
    md_scale_compounds: Switch = false, "off", false, true;
    /// Whether Quick Adapt acts at all.
    quick_adapt: Switch = true, "on", false, true;
    /// Share of the window under which the bytes acknowledged in a period mean extreme congestion (beta).
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// How long Quick Adapt counts, in base RTTs.
    qa_period: Fraction = Frac::millionths(1_050_000), "1.05", Frac::millionths(100_000), Frac::from_bits(100 << 32);
    /// Share of the acknowledged bytes that becomes the window when Quick Adapt strikes.
    qa_keep: Fraction = Frac::ONE, "1", Frac::ZERO, Frac::ONE;
}

/// The law.
#[derive(Clone, Debug)]
pub struct UnoCc {
    params: Params,
    base_rtt: Span,
    step: Bytes,     // alpha in bytes
    md_factor: Frac, // 4K / (K + own BDP), at most 1
    window: Window,
    ewma: Frac, // E, starts at 0
    scale: Frac,
    epoch: Epoch,
    adapt: QuickAdapt,
    acted: Acted,
}

/// What was heard since the last epoch ended.
#[derive(Clone, Debug)]
struct Epoch {
    ends: Time, // T_epoch: it ends with a packet that left then or later; never before the first ACK
    acked: Bytes,
    marked: Bytes,
    min_rtt: Span,
}

/// What was acknowledged in the current period of Quick Adapt.
#[derive(Clone, Debug)]
struct QuickAdapt {
    from: Time, // in the future after a strike: until then there is neither QA nor MD
    acked: Bytes,
    app_limited: bool,
}

impl UnoCc {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        let bdp = path.bdp();
        let four_k = params.k.times(4).get();
        Self {
            params,
            base_rtt: path.base_rtt,
            step: bdp.scaled(params.alpha),
            md_factor: Frac::ratio(four_k, params.k.saturating_add(bdp).get()).min(Frac::ONE),
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            ewma: Frac::ZERO,
            scale: Frac::ONE,
            epoch: Epoch::begin(Time::NEVER),
            adapt: QuickAdapt { from: Time::NEVER, acked: Bytes::ZERO, app_limited: false },
            acted: Acted::default(),
        }
    }

    /// Multiplicative decrease: Algorithm 1, `onEpoch`, in an epoch with marks.
    fn decrease(&mut self, delay: Span) {
        self.scale = if delay > self.params.delay_tolerance {
            Frac::ONE
        } else if self.params.md_scale_compounds {
            self.scale * self.params.md_scale
        } else {
            self.params.md_scale
        };
        // cwnd <- cwnd * (1 - MD_ECN * MD_scale), MD_ECN = E * 4K / (K + BDP)
        let cut = self.ewma * self.md_factor * self.scale;
        self.acted.cuts += u64::from(self.window.cut(cut));
    }

    fn end_epoch(&mut self, ack: &Ack) {
        // E <- (1 - g) * E + g * F
        let fraction = marked_fraction(self.epoch.marked, self.epoch.acked);
        self.ewma = self.ewma.ewma(fraction, self.params.ewma_gain);
        if !self.epoch.marked.is_zero() && ack.now >= self.adapt.from {
            self.decrease(self.epoch.min_rtt - self.base_rtt);
        }
        // T_epoch <- T_epoch + period, but no epoch is shorter than a period after the flow was silent.
        let next = self.epoch.ends + self.params.epoch_period;
        let ends = if next > ack.sent_at { next } else { ack.sent_at + self.params.epoch_period };
        self.epoch = Epoch::begin(ends);
    }

    /// Quick Adapt: Algorithm 1, `onQA`.
    fn quick_adapt(&mut self, ack: &Ack) {
        let adapt = &mut self.adapt;
        if ack.now < adapt.from {
            return;
        }
        let period = Span::from_ps(self.params.qa_period.of(self.base_rtt.unsigned_ps()) as i64);
        if ack.now > adapt.from + period {
            let starved = adapt.acked < self.window.bytes().scaled(self.params.beta);
            if starved && !adapt.app_limited && !ack.app_limited {
                self.window.set(adapt.acked.scaled(self.params.qa_keep));
                self.acted.emergencies += 1;
                *adapt = QuickAdapt::begin(ack.now + self.base_rtt);
                return;
            }
            *adapt = QuickAdapt::begin(ack.now);
        }
        adapt.acked = adapt.acked.saturating_add(ack.acked);
        adapt.app_limited |= ack.app_limited;
    }
}

impl ControlLaw for UnoCc {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.epoch.ends.is_set() {
            self.epoch.ends = ack.now;
            self.adapt.from = ack.now;
        }
        if ack.marked.is_zero() {
            // cwnd <- cwnd + alpha * acked / cwnd
            self.acted.increases += u64::from(self.window.increase(self.step, ack.acked));
        }
        self.epoch.count(ack);
        if ack.sent_at >= self.epoch.ends {
            self.end_epoch(ack);
        }
        if self.params.quick_adapt {
            self.quick_adapt(ack);
        }
    }

    /// Nothing: see the module's header.
    fn on_loss(&mut self, _: &Loss) {}

    /// A new base RTT moves the reading of delay, the pace and the period of Quick Adapt. Everything that was set
    /// in BDPs keeps its bytes.
    fn on_notification(&mut self, notification: &Notification) {
        let Notification::BaseRtt(base_rtt) = notification;
        self.base_rtt = *base_rtt;
    }

    fn permit(&self) -> Permit {
        if self.params.paced {
            Permit::paced_window(self.window.bytes(), self.base_rtt)
        } else {
            Permit::window(self.window.bytes())
        }
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("marked_ewma_ppm", self.ewma.ppm() as i64);
        emit("md_scale_ppm", self.scale.ppm() as i64);
        emit("quick_adapt_acked_bytes", self.adapt.acked.get() as i64);
    }
}

impl Epoch {
    const fn begin(ends: Time) -> Self {
        Self { ends, acked: Bytes::ZERO, marked: Bytes::ZERO, min_rtt: Span::MAX }
    }

    fn count(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(ack.marked);
        self.min_rtt = self.min_rtt.min(ack.rtt);
    }
}

impl QuickAdapt {
    const fn begin(from: Time) -> Self {
        Self { from, acked: Bytes::ZERO, app_limited: false }
    }
}
