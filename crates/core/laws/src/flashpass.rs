//! FlashPass: emulation packets rehearse data in the same direction, and data is sent a constant time after the emulation
//! packet that returned its credit. Zeng et al., "FlashPass: Proactive Congestion Control for Shallow-buffered WAN" (ICNP
//! 2021), §III-B, Algorithm 1.
//!
//! This is the rate of emulation packets; the flow handles the packets, as described by [`FlashPass::credits`]. A loss
//! of data does not affect the law: credits have scheduled the data.

use units::{Bytes, Frac, Rate, Span};

use crate::credits::{CREDIT_SIZE, Credits, Driver, OverProvisioning, Wait, largest_rate, min_rate_of, send_limits};
use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits};

parameters! { path;
    /// Initial and maximum rate of emulation packets (`max_emulation_rate`).
    max_rate: Rate = largest_rate(path), "84/(162 B + payload) of the narrowest link", range::SLOW, range::FAST;
    /// Loss of emulation packets below which the rate grows, at most `max_target_loss`.
    min_target_loss: Fraction = Frac::millionths(10_000), "0.01", Frac::ZERO, Frac::ONE;
    /// Loss of emulation packets above which the rate is cut.
    max_target_loss: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, Frac::ONE;
    /// Controls the rate (Algorithm 1); off: it stays at `max_rate`.
    feedback: Switch = true, "true", false, true;
    /// Cuts to the arrival rate of credits, so that losses of one rate cut once; off: Algorithm 1, line 4, as written.
    cuts_once: Switch = true, "true", false, true;
    /// Holds data until its exact time (`T + T_wait`); off: data leaves when its credit arrives.
    timed: Switch = true, "true", false, true;
    /// `T_wait`; 0: the longest base RTT of the network plus the longest waits of emulation packets on its path.
    wait: Span = Span::ZERO, "0", Span::ZERO, range::LONG;
    /// Marks emulation packets beyond the demand to be dropped first (over-provisioning).
    over_provisioning: Switch = true, "true", false, true;
    /// Counts over-provisioned packets among those expected to return as credits (`E_out` of equation 2).
    counts_spared: Switch = true, "true", false, true;
    /// Lets the receiver echo several emulation packets at once where time allows.
    batches: Switch = true, "true", false, true;
    /// Jitter of the gaps between emulation packets: drawn from 1 minus this to 1 plus this times the even gap.
    jitter: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, Frac::ONE;
    /// Sends at line rate, without credits, for the first round trip (Aeolus).
    early_start: Switch = true, "true", false, true;
    /// Sends a probe after an early start to detect its losses (Aeolus); off: later packets or timeouts detect them.
    probe: Switch = true, "true", false, true;
    /// Size of the application's send buffer, from which the demand is read; 0: the flow's size is known.
    send_buffer: Bytes = Bytes::ZERO, "0", Bytes::ZERO, range::WINDOW;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "flashpass",
    title: "FlashPass",
    summary: "senders rehearse data by emulation packets, and send it a constant time after them",
    source: "Zeng et al. (ICNP 2021), §III, Algorithm 1",
    signals: "loss of emulation packets",
    pairs: &[("min_target_loss", "max_target_loss")],
    credits: true,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct FlashPass {
    params: Params,
    rate: Rate,
    floor: Rate,
    actions: LawActions,
}

impl FlashPass {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let max_rate = params.max_rate.max(Rate::from_bps(1));
        let floor = min_rate_of(path.base_rtt, max_rate);
        Self { params: Params { max_rate, ..params }, rate: max_rate, floor, actions: LawActions::default() }
    }

    /// Updates the rate after a round trip of credits: Algorithm 1.
    fn on_round(&mut self, sent: u64, returned: u64, elapsed: Span) {
        if sent == 0 || !self.params.feedback {
            return;
        }
        let Params { min_target_loss, max_target_loss, max_rate, cuts_once, .. } = self.params;
        // loss_rate = 1 - #_credit_in / #_emulation_out                                           (line 1)
        let kept = Frac::ratio(returned.min(sent), sent);
        let loss = kept.complement();
        let before = self.rate;
        if loss > max_target_loss {
            // cur_rate = cur_rate * (1 - loss_rate) * (1 + min_target_loss)                       (line 4) The rate of those
            // packets times (1 - loss_rate) is the rate at which credits arrived. In the round after a cut the losses are
            // still those of the rate before, and must not cut again.
            let arrival_rate = Rate::of(Bytes::new(u64::from(CREDIT_SIZE).saturating_mul(returned)), elapsed);
            let effective_rate = if cuts_once { arrival_rate } else { self.rate.scaled(kept) };
            self.rate = self.rate.min(effective_rate.scaled(Frac::ONE + min_target_loss));
        } else if loss < min_target_loss {
            // cur_rate = cur_rate * (1 + max_target_loss)                                         (line 6)
            self.rate = self.rate.scaled(Frac::ONE + max_target_loss);
        }
        self.rate = self.rate.min(max_rate).max(self.floor);
        self.actions.increases += u64::from(self.rate > before);
        self.actions.cuts += u64::from(self.rate < before);
    }
}

impl ControlLaw for FlashPass {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Credits { sent, returned, elapsed, .. } = *notification {
            self.on_round(sent, returned, elapsed);
        }
    }

    fn send_limits(&self) -> SendLimits {
        send_limits()
    }

    fn credits(&self) -> Option<Credits> {
        let params = &self.params;
        let wait = if !params.timed {
            Wait::Nothing
        } else if params.wait.is_zero() {
            Wait::Longest
        } else {
            Wait::For(params.wait)
        };
        let over_provisioning = params
            .over_provisioning
            .then_some(OverProvisioning { loss: params.max_target_loss, counts_spared: params.counts_spared });
        Some(Credits {
            driver: Driver::Sender { jitter: params.jitter, wait, over_provisioning, batches: params.batches },
            early_start: params.early_start,
            probe: params.probe,
            send_buffer: Credits::buffer(params.send_buffer),
        })
    }

    fn credit_rate(&self) -> Rate {
        self.rate
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("emulation_bps", self.rate.bps().cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::PATH;
    use proptest::prelude::*;

    /// 10 Gb/s, 40 ms, 1460 bytes of payload.
    const WAN: PathInfo = PathInfo {
        base_rtt: Span::from_ms(40),
        intra_rtt: Span::from_ms(40),
        line_rate: Rate::from_gbps(10),
        mss: Bytes::new(1_460),
    };

    /// Returns a round in which `sent` packets were sent at the law's rate.
    fn credits(law: &FlashPass, sent: u64, returned: u64) -> Notification<'static> {
        let elapsed = law.rate.tx_time(Bytes::new(84 * sent));
        Notification::Credits { sent, returned, elapsed, rtt: Span::from_ms(40) }
    }

    #[test]
    fn the_steps_of_algorithm_1() {
        let mut law = FlashPass::new(&WAN, Params::for_path(&WAN));
        // 10^10 * 84 / 1622.
        assert_eq!(law.credit_rate(), Rate::from_bps(517_879_161));
        let mut after = |sent, returned| {
            let round = credits(&law, sent, returned);
            law.on_notification(&round);
            law.credit_rate().bps()
        };
        // A loss of 1/2: * 0.5 * 1.01; fractions are rounded down.
        assert!(after(1_000, 500).abs_diff(261_528_976) <= 2);
        // Between 1% and 10%, both ends included, nothing changes.
        assert!(after(1_000, 990).abs_diff(261_528_976) <= 2);
        assert!(after(1_000, 901).abs_diff(261_528_976) <= 2);
        // Under 1%: * 1.1, up to the maximum.
        assert!(after(1_000, 991).abs_diff(287_681_873) <= 4);
        for _ in 0..7 {
            after(1_000, 1_000);
        }
        assert_eq!(after(0, 0), 517_879_161);
        // All is lost: one packet of 84 bytes in 40 ms remains, 16.8 kb/s.
        assert_eq!(after(1_000, 0), 16_800);
        assert_eq!(law.actions(), LawActions { increases: 8, cuts: 2, ..LawActions::default() });
    }

    /// Half of 1000 packets is lost, and half of the 1000 sent before that was known: one cut.
    #[test]
    fn a_loss_causes_one_cut() {
        let mut law = FlashPass::new(&WAN, Params::for_path(&WAN));
        let round = credits(&law, 1_000, 500);
        law.on_notification(&round);
        let cut = law.credit_rate();
        law.on_notification(&round);
        assert_eq!((law.credit_rate(), law.actions().cuts), (cut, 1));
    }

    /// The paper's algorithm taken literally: two cuts, to 1.01 / 2 of the rate each.
    #[test]
    fn algorithm_1_as_written_cuts_twice_for_a_loss() {
        let mut law = FlashPass::new(&WAN, Params { cuts_once: false, ..Params::for_path(&WAN) });
        let round = credits(&law, 1_000, 500);
        let mut rate = law.credit_rate().bps() as f64;
        for _ in 0..2 {
            law.on_notification(&round);
            rate *= 0.505;
            assert!((law.credit_rate().bps() as f64 / rate - 1.0).abs() < 1e-6, "{}", law.credit_rate());
        }
        assert_eq!(law.actions().cuts, 2);
    }

    #[test]
    fn features_can_be_disabled() {
        let all = Params::for_path(&WAN);
        let credits_of = |params| FlashPass::new(&WAN, params).credits().unwrap();
        let Driver::Sender { wait, over_provisioning, batches, .. } = credits_of(all).driver else { panic!() };
        let spared = |counts_spared| Some(OverProvisioning { loss: all.max_target_loss, counts_spared });
        assert_eq!((wait, over_provisioning, batches), (Wait::Longest, spared(true), true));
        let Driver::Sender { over_provisioning, .. } = credits_of(Params { counts_spared: false, ..all }).driver else {
            panic!()
        };
        assert_eq!(over_provisioning, spared(false));
        let Credits { early_start, probe, send_buffer, .. } = credits_of(all);
        assert_eq!((early_start, probe, send_buffer), (true, true, None));
        let none = Params {
            feedback: false,
            timed: false,
            over_provisioning: false,
            batches: false,
            jitter: Frac::ZERO,
            early_start: false,
            probe: false,
            send_buffer: Bytes::new(1 << 20),
            ..all
        };
        let driver =
            Driver::Sender { jitter: Frac::ZERO, wait: Wait::Nothing, over_provisioning: None, batches: false };
        assert_eq!(credits_of(none), Credits { driver, early_start: false, probe: false, send_buffer: Some(1 << 20) });
        let mut law = FlashPass::new(&WAN, none);
        law.on_notification(&credits(&law, 1_000, 0));
        assert_eq!(law.credit_rate(), none.max_rate);
        let timed = Params { wait: Span::from_ms(40), ..all };
        let Driver::Sender { wait, .. } = credits_of(timed).driver else { panic!() };
        assert_eq!(wait, Wait::For(Span::from_ms(40)));
    }

    proptest! {
        #[test]
        fn the_rate_stays_within_bounds(rounds in proptest::collection::vec((0..2_000u64, 0..2_000u64), 0..100)) {
            let mut law = FlashPass::new(&PATH, Params::for_path(&PATH));
            for (sent, returned) in rounds {
                let before = law.credit_rate();
                law.on_notification(&credits(&law, sent, returned));
                let rate = law.credit_rate();
                prop_assert!(rate <= law.params.max_rate && rate >= law.floor);
                // A round without losses never lowers the rate; a round of losses only never raises it.
                prop_assert!(returned < sent || rate >= before);
                prop_assert!(sent == 0 || returned > 0 || rate <= before);
            }
        }
    }
}
