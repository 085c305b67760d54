//! TIMELY: a rate that follows the gradient of the RTT.
//! Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter" (SIGCOMM 2015), §4.3, Algorithm 1.
//!
//! The defaults are the paper's. HPCC's authors simulate it with one step a round trip and with hyperactive increase
//! below `T_low` too: `per_round`, `hyper_below_low`. Losses and marks change nothing.

use units::{Bytes, Frac, Rate, Span};

use crate::info::LawInfo;
use crate::limits::{Limits, RateWindow};
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, Round, SendLimits};

parameters! { path;
    /// Initial and maximum rate.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(10), "10 Mb/s", range::SLOW, range::FAST;
    /// Additive increase (delta).
    additive: Rate = Rate::from_mbps(10), "10 Mb/s", range::ZERO_RATE, range::FAST;
    /// Hyperactive increase (N times delta).
    hyper: Rate = Rate::from_mbps(50), "50 Mb/s, five times the paper's delta", range::ZERO_RATE, range::FAST;
    /// Increases in a row after which they are hyperactive (HAI).
    hyper_after: Count = 5, "5", 0, 1_000_000;
    /// Counts increases below `t_low`, too, and makes them hyperactive.
    hyper_below_low: Switch = false, "false", false, true;
    /// Multiplicative decrease (beta).
    beta: Fraction = Frac::millionths(800_000), "0.8", Frac::ZERO, Frac::ONE;
    /// Weight of the newest difference of RTTs (alpha).
    ewma_gain: Fraction = Frac::millionths(875_000), "0.875", Frac::ZERO, Frac::ONE;
    /// RTT under which the rate grows whatever the gradient (`T_low`), at most `t_high`.
    t_low: Span = Span::from_us(50), "50 us", Span::ZERO, range::LONG;
    /// RTT over which the rate is cut whatever the gradient (`T_high`).
    t_high: Span = Span::from_us(500), "500 us", Span::ZERO, range::LONG;
    /// Divisor of the gradient (`minRTT`).
    min_rtt: Span = Span::from_us(20), "20 us", range::SHORT, range::LONG;
    /// Payload acknowledged between two steps; 0: a step per ACK.
    segment: Bytes = Bytes::new(65_536), "64 KiB", Bytes::ZERO, range::WINDOW;
    /// Takes one step per round trip instead.
    per_round: Switch = false, "false", false, true;
    /// Limits the bytes in flight by a window.
    windowed: Switch = false, "false", false, true;
    /// Window at line rate, with `windowed`.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Scales the window in proportion to the rate; off: it stays at `window`.
    window_scales: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "timely",
    title: "TIMELY",
    summary: "moves the rate against the gradient of the RTT",
    source: "Mittal et al. (SIGCOMM 2015), §4, Algorithm 1; variants of HPCC's simulator",
    signals: "delay",
    pairs: &[("t_low", "t_high")],
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Timely {
    params: Params,
    limits: Limits,
    rate: Rate,
    last_rtt: Option<Span>,
    difference: Span, // EWMA of differences of RTTs
    increases: u64,   // in a row
    pending: Bytes,   // acknowledged since the last step
    round: Round,
    actions: LawActions,
}

impl Timely {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, params.min_rate).with_window(RateWindow {
            windowed: params.windowed,
            at_line_rate: params.window,
            scales: params.window_scales,
        });
        Self {
            params,
            limits,
            rate: limits.line(),
            last_rtt: None,
            difference: Span::ZERO,
            increases: 0,
            pending: Bytes::ZERO,
            round: Round::new(),
            actions: LawActions::default(),
        }
    }

    /// Returns whether `ack` completes the payload or round of one step.
    fn is_due(&mut self, ack: &Ack) -> bool {
        if self.params.per_round {
            let over = self.round.is_over(ack);
            if over {
                self.round.restart(ack);
            }
            return over;
        }
        self.pending = self.pending.saturating_add(ack.acked);
        let due = self.pending >= self.params.segment && !ack.acked.is_zero();
        if due {
            self.pending = Bytes::ZERO;
        }
        due
    }

    /// Algorithm 1 for the RTT of a completed segment.
    fn step(&mut self, rtt: Span) {
        let Some(last) = self.last_rtt.replace(rtt) else { return };
        // rtt_diff <- (1 - alpha) * rtt_diff + alpha * (new_rtt - prev_rtt)
        let newest = Span::from_ps(rtt.ps().saturating_sub(last.ps()));
        let gain = self.params.ewma_gain;
        let (kept, added) = (self.difference.scaled(gain.complement()), newest.scaled(gain));
        self.difference = Span::from_ps(kept.ps().saturating_add(added.ps()));
        if rtt < self.params.t_low {
            if self.params.hyper_below_low {
                self.increase();
            } else {
                self.raise(self.params.additive);
            }
        } else if rtt > self.params.t_high {
            // rate <- rate * (1 - beta * (1 - T_high / new_rtt))
            let excess = Frac::ratio(self.params.t_high.unsigned_ps(), rtt.unsigned_ps()).complement();
            self.cut(self.params.beta * excess);
        } else if self.difference <= Span::ZERO {
            self.increase();
        } else {
            // rate <- rate * (1 - beta * normalized_gradient), the gradient being rtt_diff / minRTT
            let gradient = Frac::ratio(self.difference.unsigned_ps(), self.params.min_rtt.unsigned_ps());
            self.cut(self.params.beta * gradient);
        }
    }

    /// rate <- rate + delta, or + N * delta after enough of these in a row.
    fn increase(&mut self) {
        let hyper = self.increases >= self.params.hyper_after;
        self.raise(if hyper { self.params.hyper } else { self.params.additive });
        self.increases = self.increases.saturating_add(1);
    }

    /// rate <- rate + `by`.
    fn raise(&mut self, by: Rate) {
        let before = self.rate;
        self.rate = self.limits.raised(before, by);
        self.actions.increases += u64::from(self.rate > before);
    }

    fn cut(&mut self, by: Frac) {
        let before = self.rate;
        self.rate = self.limits.clamp(before.scaled(by.complement()));
        self.increases = 0;
        self.actions.cuts += u64::from(self.rate < before);
    }
}

impl ControlLaw for Timely {
    fn on_ack(&mut self, ack: &Ack) {
        if self.is_due(ack) {
            self.step(ack.rtt);
        }
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            self.limits.follow(mss);
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.limits.send_limits(self.rate)
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("rate_bps", self.rate.bps() as i64);
        emit("rtt_ns", (self.last_rtt.unwrap_or(Span::ZERO).unsigned_ps() / 1_000) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};
    use crate::{SendLimits, Window};
    use proptest::prelude::*;

    /// Steps with every acknowledgement.
    fn law(change: impl Fn(&mut Params)) -> Timely {
        let mut params = Params { segment: Bytes::ZERO, ..Params::for_path(&PATH) };
        change(&mut params);
        Timely::new(&PATH, params)
    }

    fn ack_with_rtt(law: &mut Timely, rtt_us: i64) -> u64 {
        law.on_ack(&Ack { rtt: Span::from_us(rtt_us), ..ack(&PATH, 0) });
        law.rate.bps() / 10_000
    }

    /// Algorithm 1 by hand, in units of 10 kb/s. Within 1 of it: fractions round down.
    #[test]
    fn the_first_rounds() {
        let mut law = law(|_| {});
        assert_eq!(law.send_limits(), SendLimits { window: Window::LIMIT, pacing: Rate::from_gbps(100) });
        assert_eq!(ack_with_rtt(&mut law, 100), 10_000_000);
        // rtt_diff = 7/8 of 16 us = 14 us; gradient 0.7; the rate falls by 0.8 * 0.7 = 0.56.
        assert!(ack_with_rtt(&mut law, 116).abs_diff(4_400_000) <= 1);
        // rtt_diff = 14 / 8 = 1.75 us; gradient 0.0875; by 0.07.
        assert!(ack_with_rtt(&mut law, 116).abs_diff(4_092_000) <= 1);
        // rtt_diff = 1.75 / 8 - 14 us < 0, and negative from here on: five times 10 Mb/s, then 50 Mb/s.
        for n in 1..=5 {
            assert!(ack_with_rtt(&mut law, 100).abs_diff(4_092_000 + n * 1_000) <= 1);
        }
        assert!(ack_with_rtt(&mut law, 100).abs_diff(4_102_000) <= 1);
        // Below T_low: delta, regardless of earlier RTTs.
        assert!(ack_with_rtt(&mut law, 40).abs_diff(4_103_000) <= 1);
        // Over T_high: by 0.8 * (1 - 500 / 1000) = 0.4.
        assert!(ack_with_rtt(&mut law, 1_000).abs_diff(2_461_800) <= 1);
        assert_eq!(law.actions, LawActions { increases: 7, cuts: 3, ..LawActions::default() });
    }

    #[test]
    fn the_simulator_s_increase_is_hyperactive_below_t_low_too() {
        let mut law = law(|params| params.hyper_below_low = true);
        ack_with_rtt(&mut law, 40);
        ack_with_rtt(&mut law, 1_000);
        let before = law.rate.bps();
        for _ in 0..5 {
            ack_with_rtt(&mut law, 40);
        }
        assert_eq!(law.rate.bps() - before, 50_000_000);
        ack_with_rtt(&mut law, 40);
        assert_eq!(law.rate.bps() - before, 100_000_000);
    }

    #[test]
    fn steps_once_a_segment_or_once_a_round_trip() {
        let mut by_segment = Timely::new(&PATH, Params::for_path(&PATH));
        let mut by_round = law(|params| params.per_round = true);
        // The first segment of 16 packets only yields an RTT, the second cuts.
        for packet in 0..32 {
            assert_eq!(by_segment.actions.cuts, 0);
            by_segment.on_ack(&Ack { rtt: Span::from_ms(1), ..ack(&PATH, packet) });
        }
        assert_eq!(by_segment.actions.cuts, 1);
        // A round trip is 175,000 B, 42.7 packets: rounds end with packets 1, 44, 87, and the first only yields an RTT.
        for packet in 1..100 {
            by_round.on_ack(&Ack { rtt: Span::from_ms(1), ..ack(&PATH, packet) });
        }
        assert_eq!(by_round.actions.cuts, 2);
    }

    #[test]
    fn a_steep_gradient_stops_at_the_least_rate() {
        let mut law = law(|_| {});
        ack_with_rtt(&mut law, 60);
        ack_with_rtt(&mut law, 400);
        assert_eq!(law.rate, Rate::from_mbps(10));
    }

    proptest! {
        #[test]
        fn stays_between_least_and_line(rtts in proptest::collection::vec(0..10_000_000_000_000i64, 1..200)) {
            let mut law = law(|params| params.windowed = true);
            for rtt in rtts {
                law.on_ack(&Ack { rtt: Span::from_ps(rtt), ..ack(&PATH, 0) });
                let send_limits = law.send_limits();
                prop_assert!(send_limits.pacing >= Rate::from_mbps(10) && send_limits.pacing <= PATH.line_rate);
                prop_assert!(send_limits.window >= PATH.mss && send_limits.window <= PATH.bdp());
            }
        }
    }
}
