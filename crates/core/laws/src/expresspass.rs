//! `ExpressPass`: the receiver's credits on the reverse path emulate data, and the rate of credits follows their loss.
//! Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters" (SIGCOMM 2017), §3.2, as the authors'
//! simulator has it (kaist-ina/ns2-xpass), which `FlashPass` compares with.
//!
//! This is the rate of credits, which the receiver uses: the law runs at both ends of a flow. The sender's instance only
//! states that credits limit the data.

use units::{Bytes, Frac, Rate, Span};

use crate::credits::{CREDIT_SIZE, Credits, Driver, largest_rate, min_rate_of, send_limits};
use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits};

parameters! { path;
    /// Maximum rate of credits (`max_rate`).
    max_rate: Rate = largest_rate(path), "84/(162 B + payload) of the narrowest link", range::SLOW, range::FAST;
    /// Initial rate of credits, as a share of `max_rate` (alpha).
    initial: Fraction = Frac::HALF, "0.5", Frac::millionths(1_000), Frac::ONE;
    /// Packets below which the initial rate of a flow is proportionally lower.
    small_flow: Count = 40, "40", 1, 1 << 20;
    /// Initial and largest weight of `max_rate` in an increase (`w_max`).
    w_max: Fraction = Frac::HALF, "0.5", Frac::millionths(1_000), Frac::ONE;
    /// Smallest such weight (`w_min`), at most `w_max`.
    w_min: Fraction = Frac::millionths(10_000), "0.01", Frac::millionths(100), Frac::ONE;
    /// Growth of the weight at an increase that follows another one.
    w_step: Fraction = Frac::millionths(50_000), "0.05", Frac::ZERO, Frac::ONE;
    /// Credit loss above which the rate is cut (`target_loss`).
    target_loss: Fraction = Frac::millionths(125_000), "0.125", Frac::ZERO, Frac::ONE;
    /// Scales the target loss by the distance of the rate from `max_rate`: `1 - rate / max_rate`.
    target_scales: Switch = true, "true", false, true;
    /// Jitter of the gaps between credits: each is drawn from 1 minus this to 1 plus this times the even gap.
    jitter: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, Frac::ONE;
    /// Time after which a request that no credit follows is repeated.
    retry: Span = Span::from_ms(100), "100 ms", range::SHORT, range::LONG;
    /// Limits the credits of a receiver to the packets requested.
    stops_at_demand: Switch = false, "false", false, true;
    /// Stops credits once those of the last RTT cover the packets left; off: once no packet is left.
    stops_ahead: Switch = true, "true", false, true;
    /// Sends at line rate, without credits, for the first round trip (Aeolus).
    early_start: Switch = false, "false", false, true;
    /// Sends a probe after an early start to detect its losses (Aeolus); off: later packets or timeouts detect them.
    probe: Switch = true, "true", false, true;
    /// Size of the application's send buffer, from which the demand is read; 0: the flow's size is known.
    send_buffer: Bytes = Bytes::ZERO, "0", Bytes::ZERO, range::WINDOW;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "expresspass",
    title: "ExpressPass",
    summary: "receivers send credits at a rate that follows their loss, senders a packet for each",
    source: "Cho et al. (SIGCOMM 2017), §3; kaist-ina/ns2-xpass",
    signals: "loss of credits",
    pairs: &[("w_min", "w_max")],
    credits: true,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ExpressPass {
    params: Params,
    rate: Rate,
    weight: Frac,
    /// True if the last update did not cut: then the weight may grow.
    grew: bool,
    floor: Rate,
    actions: LawActions,
}

impl ExpressPass {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let max_rate = params.max_rate.max(Rate::from_bps(1));
        let floor = min_rate_of(path.base_rtt, max_rate);
        let params = Params { max_rate, ..params };
        Self {
            rate: max_rate.scaled(params.initial).max(floor),
            weight: params.w_max,
            grew: true,
            floor,
            actions: LawActions::default(),
            params,
        }
    }

    /// Restarts the rate for a sender's request of credits for `packets` packets.
    fn on_request(&mut self, packets: u32) {
        let start = self.params.max_rate.scaled(self.params.initial);
        let share = Frac::ratio(u64::from(packets).min(self.params.small_flow), self.params.small_flow);
        self.rate = start.scaled(share).max(self.floor);
        self.weight = self.params.w_max;
        self.grew = true;
    }

    /// Updates the rate after a round trip in which the outcome of `sent` credits became known; `returned` of them triggered
    /// data.
    fn on_round(&mut self, sent: u64, returned: u64, elapsed: Span, rtt: Span) {
        if sent == 0 {
            return;
        }
        let Params { max_rate, w_max, w_min, w_step, target_loss, target_scales, .. } = self.params;
        let before = self.rate;
        let headroom = Frac::ratio(self.rate.bps(), max_rate.bps()).complement();
        let target = if target_scales { target_loss * headroom } else { target_loss };
        let floor = min_rate_of(rtt, max_rate);
        if Frac::ratio(returned.min(sent), sent).complement() > target {
            // rate = min(rate, arrival rate * (1 + target))
            let arrival_rate = Rate::of(Bytes::new(u64::from(CREDIT_SIZE) * returned), elapsed);
            self.rate = self.rate.min(arrival_rate.scaled(Frac::ONE + target)).max(floor);
            self.weight = self.weight.half().max(w_min).min(w_max);
            self.grew = false;
        } else {
            if self.grew {
                self.weight = (self.weight + w_step).min(w_max);
            }
            self.grew = true;
            // rate = w * max_rate + (1 - w) * rate
            let grown = max_rate.scaled(self.weight).bps() + self.rate.scaled(self.weight.complement()).bps();
            self.rate = Rate::from_bps(grown).min(max_rate).max(floor);
        }
        self.actions.increases += u64::from(self.rate > before);
        self.actions.cuts += u64::from(self.rate < before);
    }
}

impl ControlLaw for ExpressPass {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::Request { packets } => self.on_request(packets),
            Notification::Credits { sent, returned, elapsed, rtt } => self.on_round(sent, returned, elapsed, rtt),
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        send_limits()
    }

    fn credits(&self) -> Option<Credits> {
        let Params { jitter, retry, stops_at_demand, stops_ahead, early_start, probe, send_buffer, .. } = self.params;
        Some(Credits {
            driver: Driver::Receiver { jitter, retry, stops_at_demand, stops_ahead },
            early_start,
            probe,
            send_buffer: Credits::buffer(send_buffer),
        })
    }

    fn credit_rate(&self) -> Rate {
        self.rate
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("credit_bps", self.rate.bps().cast_signed());
        emit("weight_ppm", self.weight.ppm().cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A maximum of 100 Mb/s of credits, so that steps are easy to follow.
    const WAN: PathInfo = PathInfo {
        base_rtt: Span::from_ms(40),
        intra_rtt: Span::from_ms(40),
        line_rate: Rate::from_gbps(10),
        mss: Bytes::new(1_460),
    };

    fn law() -> ExpressPass {
        ExpressPass::new(&WAN, Params { max_rate: Rate::from_mbps(100), ..Params::for_path(&WAN) })
    }

    fn round(law: &mut ExpressPass, sent: u64, returned: u64) -> u64 {
        let (elapsed, rtt) = (Span::from_ms(40), Span::from_ms(40));
        law.on_notification(&Notification::Credits { sent, returned, elapsed, rtt });
        law.credit_rate().bps()
    }

    #[test]
    fn a_flow_starts_by_its_size() {
        let mut law = law();
        for (packets, rate) in [(10_000, 50_000_000), (40, 50_000_000), (10, 12_500_000), (0, 16_800)] {
            law.on_notification(&Notification::Request { packets });
            assert_eq!(law.credit_rate().bps(), rate, "{packets} packets");
        }
    }

    #[test]
    fn steps_computed_by_hand() {
        let mut law = law();
        // Nothing lost: halfway to the maximum, w at its largest.
        assert_eq!(round(&mut law, 1_000, 1_000), 75_000_000);
        // The target is 0.125 * (1 - 0.75) = 1/32: a loss of 3% is tolerated and the rate moves halfway again.
        assert_eq!(round(&mut law, 1_000, 970), 87_500_000);
        // Target 1/64. 4000 of 5000 in 40 ms: 84 * 4000 * 8 / 0.04 = 67.2 Mb/s, times 1 + 1/64; w = 0.25.
        assert_eq!(round(&mut law, 5_000, 4_000), 68_250_000);
        assert_eq!(law.weight, Frac::HALF.half());
        // The first growth after a cut keeps w: 0.25 * 100 + 0.75 * 68.25.
        assert_eq!(round(&mut law, 1_000, 1_000), 76_187_500);
        // Then w = 0.3: 30 + 0.7 * 76.1875 = 83.33125.
        assert!(round(&mut law, 1_000, 1_000).abs_diff(83_331_250) <= 2);
        // Received credits alone never increase the rate.
        assert!(round(&mut law, 50_000, 40_000).abs_diff(83_331_250) <= 2);
        // All lost: one credit in a round trip.
        assert_eq!(round(&mut law, 1_000, 0), 16_800);
        assert_eq!(law.actions(), LawActions { increases: 4, cuts: 2, ..LawActions::default() });
    }

    #[test]
    fn a_target_that_does_not_scale_holds_at_the_maximum() {
        let params = Params { initial: Frac::ONE, ..law().params };
        let fixed = Params { target_scales: false, ..params };
        assert_eq!(round(&mut ExpressPass::new(&WAN, fixed), 1_000, 900), 100_000_000);
        assert!(round(&mut ExpressPass::new(&WAN, params), 1_000, 900) < 100_000_000);
    }

    proptest! {
        #[test]
        fn the_rate_stays_within_bounds(rounds in proptest::collection::vec((0..2_000u64, 0..2_000u64), 0..100)) {
            let mut law = law();
            for (sent, returned) in rounds {
                let before = law.credit_rate();
                let rate = Rate::from_bps(round(&mut law, sent, returned));
                prop_assert!(rate <= law.params.max_rate && rate >= law.floor);
                // A round trip without losses never lowers the rate, and the weight stays within its bounds.
                prop_assert!(returned < sent || rate >= before.min(law.params.max_rate));
                prop_assert!(law.weight >= law.params.w_min && law.weight <= law.params.w_max);
            }
        }
    }
}
