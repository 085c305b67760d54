//! `UnoCC`: one AIMD loop for flows inside and between datacenters, driven by marks, with delay to distinguish a
//! phantom queue from a real one and Quick Adapt for extreme congestion. Uno, SC 2025, §4.1 and Algorithm 1. Losses and
//! timeouts cut nothing: the paper has no rule for them, and Quick Adapt handles the congestion behind them. The
//! published simulator's increase on falling marks is left out. State and parameters are over 104 bytes, so a kernel
//! needs socket storage for them.

use units::{Bytes, Frac, Span, Time};

use crate::epoch::Epoch;
use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::quick_adapt::QuickAdapt;
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits, Window};

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Paces packets over the base RTT.
    paced: Switch = true, "true", false, true;
    /// Additive increase a round trip, as a share of the own BDP (alpha).
    alpha: Fraction = Frac::millionths(1_000), "0.001", Frac::ZERO, Frac::ONE;
    /// Least time between the ends of two epochs (epoch period).
    epoch_period: Span = path.intra_rtt, "the intra-datacenter RTT", range::SHORT, range::LONG;
    /// Weight of the newest epoch in the average marked fraction (gain of E).
    ewma_gain: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Strength of cuts for marks: 4K / (K + own BDP) at a marked fraction of 1 (K).
    k: Bytes = path.intra_bdp().ratio(1, 7), "1/7 of the intra-datacenter BDP", range::BYTE, range::WINDOW;
    /// Smallest RTT of an epoch over the base RTT that still means an empty real queue (delay == 0).
    delay_tolerance: Span = path.intra_rtt.times(55).over(1_000), "5.5 % of the intra-datacenter RTT", Span::ZERO, range::LONG;
    /// The same as a share of the flow's own base RTT; the larger of the two holds.
    delay_tolerance_share: Fraction = Frac::ZERO, "0", Frac::ZERO, Frac::from_bits(100 << 32);
    /// Uses the RTT of the packet that ends an epoch instead of the epoch's smallest.
    delay_of_last: Switch = false, "false", false, true;
    /// Factor of a cut when only the phantom queue is congested (0.3 in Algorithm 1, line 10).
    md_scale: Fraction = Frac::millionths(300_000), "0.3", Frac::ZERO, Frac::ONE;
    /// Multiplies by that factor again at each such epoch until the real queue is congested.
    md_scale_compounds: Switch = false, "false", false, true;
    /// Enables Quick Adapt.
    quick_adapt: Switch = true, "true", false, true;
    /// Share of the window under which the bytes acknowledged in a period mean extreme congestion (beta).
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Length of a period of Quick Adapt, in base RTTs.
    qa_period: Fraction = Frac::millionths(1_050_000), "1.05", Frac::millionths(100_000), Frac::from_bits(100 << 32);
    /// Share of the acknowledged bytes that becomes the window when Quick Adapt acts.
    qa_keep: Fraction = Frac::ONE, "1", Frac::ZERO, Frac::ONE;
    /// Ends the pause after Quick Adapt with the ACK of a packet sent after it; off: after one base RTT.
    qa_pause_by_packet: Switch = true, "true", false, true;
    /// Restarts epochs, too, when such an ACK ends the pause.
    qa_restarts_epochs: Switch = false, "false", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "unocc",
    title: "UnoCC",
    summary: "AIMD on marks at the granularity of the intra-datacenter RTT for all flows, with Quick Adapt",
    source: "Uno (SC 2025), §4.1, Algorithm 1",
    signals: "ECN, delay, acknowledged bytes",
    marks: EcnSupport::Used,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct UnoCc {
    params: Params,
    base_rtt: Span,
    /// Length of a Quick Adapt period: `qa_period` base RTTs.
    qa_period: Span,
    step: Bytes,     // alpha in bytes
    md_factor: Frac, // 4K / (K + own BDP), at most 1
    window: Window,
    ewma: Frac, // E, starts at 0
    scale: Frac,
    epoch: Epoch,  // ends at T_epoch
    min_rtt: Span, // the epoch's
    adapt: QuickAdapt,
    actions: LawActions,
}

impl UnoCc {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let bdp = path.bdp();
        let four_k = params.k.times(4).get();
        Self {
            params,
            base_rtt: path.base_rtt,
            qa_period: path.base_rtt.scaled(params.qa_period),
            step: bdp.scaled(params.alpha),
            md_factor: Frac::ratio(four_k, params.k.saturating_add(bdp).get()).min(Frac::ONE),
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            ewma: Frac::ZERO,
            scale: Frac::ONE,
            epoch: Epoch::begin(Time::NEVER),
            min_rtt: Span::MAX,
            adapt: QuickAdapt::begin(Time::NEVER),
            actions: LawActions::default(),
        }
    }

    /// Multiplicative decrease: Algorithm 1, `onEpoch`, in an epoch with marks.
    fn decrease(&mut self, delay: Span) {
        let share = self.base_rtt.scaled(self.params.delay_tolerance_share);
        let tolerance = self.params.delay_tolerance.max(share);
        self.scale = if delay > tolerance {
            Frac::ONE
        } else if self.params.md_scale_compounds {
            self.scale * self.params.md_scale
        } else {
            self.params.md_scale
        };
        // cwnd <- cwnd * (1 - MD_ECN * MD_scale), MD_ECN = E * 4K / (K + BDP)
        let cut = self.ewma * self.md_factor * self.scale;
        self.actions.cuts += u64::from(self.window.cut(cut));
    }

    fn begin_epoch(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.min_rtt = Span::MAX;
    }

    fn end_epoch(&mut self, ack: &Ack) {
        // E <- (1 - g) * E + g * F
        self.ewma = self.ewma.ewma(self.epoch.marked_fraction(), self.params.ewma_gain);
        if self.epoch.saw_marks() && !self.adapt.pauses(ack.now) {
            let rtt = if self.params.delay_of_last { ack.rtt } else { self.min_rtt };
            self.decrease(rtt - self.base_rtt);
        }
        self.begin_epoch(self.epoch.next(ack, self.params.epoch_period));
    }

    /// Ends the round trip that is skipped after Quick Adapt once a packet sent after it is acknowledged. Before that,
    /// acknowledgements reflect the flow before Quick Adapt, and then the silence that it caused.
    fn end_pause(&mut self, ack: &Ack) {
        if self.adapt.end_pause(ack) && self.params.qa_restarts_epochs {
            self.begin_epoch(Epoch::begin(ack.now));
        }
    }

    /// Quick Adapt: Algorithm 1, `onQA`.
    fn quick_adapt(&mut self, ack: &Ack) {
        let Some(ended) = self.adapt.count(ack, self.qa_period) else { return };
        if ended.acked >= self.window.bytes().scaled(self.params.beta) {
            return;
        }
        self.window.set(ended.acked.scaled(self.params.qa_keep));
        self.actions.quick_adapts += 1;
        self.adapt = if self.params.qa_pause_by_packet {
            QuickAdapt::pause(ack.now)
        } else {
            QuickAdapt::begin(ack.now + self.base_rtt)
        };
    }
}

impl ControlLaw for UnoCc {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.epoch.ends().is_set() {
            self.epoch.set_end(ack.now);
        }
        if !self.adapt.has_started() {
            self.adapt.start(ack.now);
        }
        self.end_pause(ack);
        if ack.marked.is_zero() {
            // cwnd <- cwnd + alpha * acked / cwnd
            self.actions.increases += u64::from(self.window.increase(self.step, ack.acked));
        }
        self.epoch.count(ack.acked, ack.marked);
        self.min_rtt = self.min_rtt.min(ack.rtt);
        if self.epoch.is_over(ack) {
            self.end_epoch(ack);
        }
        if self.params.quick_adapt {
            self.quick_adapt(ack);
        }
    }

    /// Does nothing: see the module's header.
    fn on_loss(&mut self, _: &Loss) {}

    /// Updates delay thresholds, pacing and the period of Quick Adapt for a new base RTT. Values that were set in BDPs
    /// keep their bytes.
    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::BaseRtt(base_rtt) => {
                self.base_rtt = base_rtt;
                self.qa_period = base_rtt.scaled(self.params.qa_period);
            }
            Notification::Mss(mss) => drop(self.window.follow(mss)),
            Notification::Resumed { .. } => {
                let epoch = self.epoch.resume(self.window.bytes());
                if epoch != self.epoch {
                    self.begin_epoch(epoch);
                }
                self.adapt = QuickAdapt::begin(Time::NEVER);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        if self.params.paced {
            SendLimits::paced_window(self.window.bytes(), self.base_rtt)
        } else {
            SendLimits::window(self.window.bytes())
        }
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("marked_ewma_ppm", self.ewma.ppm() as i64);
        emit("md_scale_ppm", self.scale.ppm() as i64);
        emit("quick_adapt_acked_bytes", self.adapt.acked().get() as i64);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::LossCause;
    use crate::testbed::{LONG_PATH, PATH, Testbed, TestbedLink, ack, cuts_across_a_pause, jain, loss, marked};
    use std::vec::Vec;
    use units::Rate;

    // By hand: own BDP inside 175,000 B, alpha 175 B, K 25,000 B, so 4K / (K + BDP) = 0.5.
    fn law(change: impl Fn(&mut Params)) -> UnoCc {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        UnoCc::new(&PATH, params)
    }

    /// A packet acknowledged with `queueing` over the base RTT; it was sent at the same time as that of `marked(&PATH, us)`.
    fn queued(us: u64, queueing: Span) -> Ack<'static> {
        let ack = marked(&PATH, us);
        Ack { now: ack.now + queueing, rtt: ack.rtt + queueing, ..ack }
    }

    /// Disables Quick Adapt, which would act on hand-made acknowledgements.
    fn aimd(params: &mut Params) {
        params.quick_adapt = false;
    }

    #[test]
    fn starts_at_its_bdp_paced_over_its_rtt() {
        let send_limits = law(|_| {}).send_limits();
        assert_eq!(send_limits.window, Bytes::new(175_000));
        assert_eq!(send_limits.pacing, Rate::from_gbps(100));
        assert_eq!(law(|params| params.paced = false).send_limits().pacing, Rate::MAX);
        let long = UnoCc::new(&LONG_PATH, Params::for_path(&LONG_PATH));
        assert_eq!(long.send_limits().window, Bytes::new(25_000_000));
        // 4K / (K + BDP) = 100,000 / 25,025,000
        assert_eq!(long.md_factor.ppm(), 3_996);
    }

    #[test]
    fn a_window_of_unmarked_packets_adds_alpha() {
        let mut law = law(|params| {
            aimd(params);
            params.max_bdp = Frac::from_bits(2 << 32);
        });
        for us in 0..43 {
            law.on_ack(&ack(&PATH, us));
        }
        // 43 packets are 1.0064 windows, less as the window grows: 175.96 B.
        let window = law.send_limits().window;
        assert!((175_175..=175_176).contains(&window.get()), "{window}");
        law.on_ack(&marked(&PATH, 43));
        assert_eq!(law.send_limits().window, window);
    }

    #[test]
    fn the_cap_is_one_bdp() {
        let mut law = law(aimd);
        law.on_ack(&ack(&PATH, 0));
        assert_eq!(law.send_limits().window, Bytes::new(175_000));
    }

    #[test]
    fn an_epoch_ends_with_a_packet_sent_after_it_began() {
        let mut law = law(aimd);
        for us in 0..14 {
            law.on_ack(&marked(&PATH, us));
        }
        assert_eq!(law.actions().cuts, 0);
        // E = 0.5, MD_ECN = 0.25, and only the phantom queue is congested: 0.3 of that.
        law.on_ack(&marked(&PATH, 14));
        assert_eq!(law.send_limits().window.get(), 175_000 - 13_124);
        assert_eq!(law.actions().cuts, 1);
    }

    #[test]
    fn an_epoch_spans_a_pause_with_half_a_window() {
        for (acked, cuts) in [(64, 0), (87_499, 0), (87_500, 1), (175_000, 1)] {
            assert_eq!(cuts_across_a_pause(law(aimd), Bytes::new(acked)), cuts, "{acked}");
        }
    }

    #[test]
    fn queueing_delay_causes_a_full_cut() {
        // 5.5 % of 14 us is 770 ns.
        for (queueing_ns, left) in [(770, 175_000 - 13_124), (771, 131_250)] {
            let mut law = law(aimd);
            law.on_ack(&queued(0, Span::from_us(9)));
            law.on_ack(&queued(23, Span::from_ns(queueing_ns)));
            assert_eq!(law.send_limits().window, Bytes::new(left), "{queueing_ns} ns");
        }
    }

    #[test]
    fn the_delay_tolerance_may_be_a_share_of_the_base_rtt() {
        // 5.5 % of 2 ms is 110 us, of 14 us the same 770 ns as the default.
        let scaled = |path: &PathInfo, share, queueing| {
            let delay_tolerance_share = Frac::millionths(share);
            let params = Params { quick_adapt: false, delay_tolerance_share, ..Params::for_path(path) };
            let mut law = UnoCc::new(path, params);
            let base_us = path.base_rtt.ns() as u64 / 1_000;
            for us in [0, 2 * base_us] {
                let ack = marked(path, us);
                law.on_ack(&Ack { now: ack.now + queueing, rtt: ack.rtt + queueing, ..ack });
            }
            law.scale < Frac::ONE
        };
        for (share, queueing_us, gently) in [(0, 1, false), (55_000, 109, true), (55_000, 111, false)] {
            assert_eq!(scaled(&LONG_PATH, share, Span::from_us(queueing_us)), gently, "{share} ppm, {queueing_us} us");
        }
        for (queueing_ns, gently) in [(770, true), (771, false)] {
            assert_eq!(scaled(&PATH, 55_000, Span::from_ns(queueing_ns)), gently, "{queueing_ns} ns");
        }
        // The larger of the two: 1 % of 14 us is under the default.
        assert!(scaled(&PATH, 10_000, Span::from_ns(770)));
    }

    #[test]
    fn the_last_rtt_may_replace_the_epoch_minimum() {
        for (of_last, queueing_ns, left) in [
            // The minimum is 1 us and the last delay zero, and the reverse.
            (false, [1_000, 0], 175_000 - 13_124),
            (true, [1_000, 0], 175_000 - 13_124),
            (false, [0, 1_000], 175_000 - 13_124),
            (true, [0, 1_000], 131_250),
        ] {
            let mut law = law(|params| {
                aimd(params);
                params.delay_of_last = of_last;
            });
            // Both belong to the epoch that the second one ends.
            let [first, last] = queueing_ns.map(Span::from_ns);
            law.on_ack(&queued(0, first));
            law.on_ack(&queued(23, last));
            assert_eq!(law.send_limits().window, Bytes::new(left), "{of_last}, {queueing_ns:?} ns");
        }
    }

    #[test]
    fn a_clean_epoch_cuts_nothing_and_fades_the_average() {
        let mut law = law(aimd);
        law.on_ack(&marked(&PATH, 0));
        law.on_ack(&marked(&PATH, 14));
        let before = law.send_limits().window;
        law.on_ack(&ack(&PATH, 28));
        assert!(law.send_limits().window >= before);
        assert_eq!(law.ewma, Frac::HALF.half());
    }

    #[test]
    fn md_scale_compounds_only_if_enabled() {
        for (compounds, scale) in [(false, 300_000), (true, 90_000)] {
            let mut law = law(|params| {
                aimd(params);
                params.md_scale_compounds = compounds;
            });
            for epoch in 0..3 {
                law.on_ack(&marked(&PATH, 14 * epoch));
            }
            assert!(law.scale.ppm().abs_diff(scale) <= 1, "{}", law.scale);
            // A congested real queue resets it.
            law.on_ack(&queued(42, Span::from_us(1)));
            assert_eq!(law.scale, Frac::ONE);
        }
    }

    #[test]
    fn long_flows_have_short_epochs() {
        let mut law = UnoCc::new(&LONG_PATH, Params { quick_adapt: false, ..Params::for_path(&LONG_PATH) });
        for us in 0..=2_000 {
            law.on_ack(&marked(&LONG_PATH, us));
        }
        assert_eq!(law.actions().cuts, 1);
        for us in 2_001..=2_140 {
            law.on_ack(&marked(&LONG_PATH, us));
        }
        // 14 us each, not 2 ms.
        assert_eq!(law.actions().cuts, 11);
    }

    #[test]
    fn silent_epochs_are_not_made_up_for() {
        let mut law = law(aimd);
        law.on_ack(&marked(&PATH, 0));
        law.on_ack(&marked(&PATH, 14));
        law.on_ack(&marked(&PATH, 1_000));
        let cuts = law.actions().cuts;
        for us in 1_001..1_014 {
            law.on_ack(&marked(&PATH, us));
        }
        assert_eq!(law.actions().cuts, cuts);
        law.on_ack(&marked(&PATH, 1_014));
        assert_eq!(law.actions().cuts, cuts + 1);
    }

    #[test]
    fn quick_adapt_falls_to_what_was_acknowledged() {
        for by_packet in [true, false] {
            let mut law = law(|params| params.qa_pause_by_packet = by_packet);
            for us in 0..5 {
                law.on_ack(&ack(&PATH, us));
            }
            // 1.05 x 14 us = 14.7 us after the first ACK, five packets of 43: under half a window.
            law.on_ack(&marked(&PATH, 14));
            assert_eq!(law.actions().quick_adapts, 0);
            let before_md = law.actions().cuts;
            law.on_ack(&marked(&PATH, 15));
            assert_eq!(law.send_limits().window, Bytes::new(6 * 4_096));
            assert_eq!(law.actions().quick_adapts, 1);
            // Neither QA nor MD until 29 us: a base RTT later, and the packet acknowledged then was sent at 15 us, when Quick
            // Adapt acted.
            for us in 16..29 {
                law.on_ack(&marked(&PATH, us));
            }
            assert_eq!(law.actions().cuts, before_md);
            assert_eq!(law.actions().quick_adapts, 1);
            law.on_ack(&marked(&PATH, 45));
            assert_eq!(law.actions().cuts, before_md + 1);
        }
    }

    /// Returns the acknowledgement at `us` of a packet sent at `sent_us`.
    fn late(sent_us: u64, us: u64) -> Ack<'static> {
        let ack = ack(&PATH, us);
        let sent_at = Time::from_us(1_000_000 + sent_us);
        Ack { sent_at, rtt: ack.now.since(sent_at), ..ack }
    }

    /// A flow in which Quick Adapt acted at 15 us, as above. Since then it received acknowledgements, with marks, of packets
    /// sent before that, the last one at 69 us. More was in flight than the window, so the flow was silent until 36 us.
    fn after_quick_adapt(change: impl Fn(&mut Params)) -> UnoCc {
        let mut law = law(change);
        for us in [0, 1, 2, 3, 4, 5, 15] {
            law.on_ack(&ack(&PATH, us));
        }
        assert_eq!((law.actions().quick_adapts, law.send_limits().window), (1, Bytes::new(6 * 4_096)));
        for (sent_us, us, is_marked) in [(3, 20, true), (8, 25, true), (14, 34, true), (14, 35, false), (14, 69, true)]
        {
            law.on_ack(&Ack { marked: if is_marked { PATH.mss } else { Bytes::ZERO }, ..late(sent_us, us) });
        }
        law
    }

    #[test]
    fn a_pause_by_packet_ignores_its_own_silence() {
        let mut law = after_quick_adapt(|_| {});
        // 54 us with five packets, and an epoch with marks that ended at 34 us.
        assert_eq!((law.actions().quick_adapts, law.actions().cuts), (1, 0));
        // The first packet sent after Quick Adapt is acknowledged at 70 us. From then on a full period of 14.7 us counts. At
        // 84 us it is not over; at 85 us it is, with four packets, more than half of a window of six.
        for us in [70, 75, 80, 84] {
            law.on_ack(&late(us - 34, us));
        }
        law.on_ack(&late(51, 85));
        assert_eq!(law.actions().quick_adapts, 1);
        let mut next = QuickAdapt::begin(Time::from_us(1_000_085));
        assert_eq!(next.count(&late(51, 85), law.qa_period), None);
        assert_eq!((law.adapt, next.acked()), (next, PATH.mss));
        // The next one has one packet: Quick Adapt acts again.
        law.on_ack(&late(66, 100));
        assert_eq!((law.actions().quick_adapts, law.send_limits().window), (2, Bytes::new(4_096)));
    }

    /// By the clock the pause is over at 29 us. The epoch that ends at 34 us cuts by a quarter (E = 0.5). The period of
    /// 14.7 us counts two packets of six: the effect of the silence that Quick Adapt caused.
    #[test]
    fn a_pause_by_time_counts_its_own_silence() {
        let law = after_quick_adapt(|params| params.qa_pause_by_packet = false);
        assert_eq!((law.actions().quick_adapts, law.actions().cuts), (2, 1));
        assert_eq!(law.send_limits().window, Bytes::new(2 * 4_096));
    }

    /// The packet that ends the pause closes the open epoch, with the marks from before, and cuts. Where epochs start
    /// over, that packet begins an epoch instead, as the first acknowledgement of a flow does.
    #[test]
    fn epochs_restart_after_quick_adapt_only_if_enabled() {
        // T_epoch went from 14 us to 28 us at 34 us; now a period more, or the present arrival.
        for (restarts, cuts, ends) in [(false, 1, 42), (true, 0, 70)] {
            let mut law = after_quick_adapt(|params| params.qa_restarts_epochs = restarts);
            law.on_ack(&late(36, 70));
            assert_eq!(law.actions().cuts, cuts);
            assert_eq!(law.epoch.ends(), Time::from_us(1_000_000 + ends));
        }
    }

    #[test]
    fn quick_adapt_keeps_its_share_and_at_least_a_packet() {
        for (keep, left) in [(960_000, 23_592), (0, 4_096)] {
            let mut law = law(|params| params.qa_keep = Frac::millionths(keep));
            for us in [0, 1, 2, 3, 4, 5, 15] {
                law.on_ack(&ack(&PATH, us));
            }
            assert_eq!(law.send_limits().window, Bytes::new(left));
        }
    }

    #[test]
    fn quick_adapt_spares_healthy_and_finished_flows() {
        let mut healthy = law(|_| {});
        for us in 0..1_000 {
            // 1.5 packets a microsecond, half the link: 22 packets a period, just over half a window.
            healthy.on_ack(&Ack { acked: Bytes::new(6_144), ..ack(&PATH, us) });
        }
        assert_eq!(healthy.actions().quick_adapts, 0);
        let mut finished = law(|_| {});
        for us in [0, 15, 30, 500] {
            finished.on_ack(&Ack { app_limited: us < 500, ..ack(&PATH, us) });
        }
        assert_eq!(finished.actions().quick_adapts, 0);
    }

    #[test]
    fn losses_change_nothing() {
        let mut law = law(|_| {});
        for cause in [LossCause::Reordered, LossCause::Nack, LossCause::Timeout] {
            law.on_loss(&loss(0, 20, cause));
        }
        assert_eq!(law.send_limits().window, Bytes::new(175_000));
    }

    /// A new base RTT also changes the period of Quick Adapt: with twice the base RTT the acknowledgements that made it
    /// act at 15 us do not yet.
    #[test]
    fn a_new_base_rtt_moves_the_pace() {
        let mut law = law(|_| {});
        law.on_notification(&Notification::BaseRtt(Span::from_us(28)));
        assert_eq!(law.send_limits().pacing, Rate::from_gbps(50));
        for us in [0, 1, 2, 3, 4, 5, 15] {
            law.on_ack(&ack(&PATH, us));
        }
        assert_eq!(law.actions().quick_adapts, 0);
        law.on_ack(&ack(&PATH, 30));
        assert_eq!(law.actions().quick_adapts, 1);
    }

    /// Flows that begin one after another end with equal shares of a phantom queue's rate, and the real queue stays short.
    #[test]
    fn converges_to_equal_shares() {
        let phantom = Some(Frac::millionths(900_000));
        let link = TestbedLink {
            rate: Rate::from_gbps(100),
            mark_over: Bytes::new(100_000),
            drop_over: Bytes::new(1 << 20),
            phantom,
        };
        let mut bed = Testbed::new(link);
        for flow in 0..4 {
            bed.add(UnoCc::new(&PATH, Params::for_path(&PATH)), &PATH, Time::from_ms(flow));
        }
        bed.run(Time::from_ms(20));
        let before: Vec<_> = (0..4).map(|flow| bed.delivered(flow)).collect();
        bed.forget_backlog();
        bed.run(Time::from_ms(40));
        let shares: Vec<f64> = (0..4).map(|flow| (bed.delivered(flow) - before[flow]).get() as f64).collect();
        let used = shares.iter().sum::<f64>() * 8.0 / 0.020 / 1e9;
        assert!(jain(&shares) > 0.98, "{shares:?}");
        assert!((80.0..=90.5).contains(&used), "{used} Gb/s of a phantom queue's 90");
        assert!(bed.backlog.0 < Bytes::new(150_000), "{:?}", bed.backlog);
    }

    /// Two flows inside and two across, the latter starting at a tenth and at four tenths of the link: the means of both
    /// kinds approach each other to within a quarter, and the two across approach each other all the time.
    #[test]
    fn long_and_short_flows_share() {
        let phantom = Some(Frac::millionths(900_000));
        let link = TestbedLink {
            rate: Rate::from_gbps(100),
            mark_over: Bytes::new(448_000),
            drop_over: Bytes::new(1 << 20),
            phantom,
        };
        let mut bed = Testbed::new(link);
        for (path, tenths) in [(PATH, 1), (PATH, 4), (LONG_PATH, 1), (LONG_PATH, 4)] {
            let params = Params { initial_bdp: Frac::ratio(tenths, 10), ..Params::for_path(&path) };
            bed.add(UnoCc::new(&path, params), &path, Time::ZERO);
        }
        let mut apart = f64::MAX;
        let mut shares = Vec::new();
        for step in 1..=5 {
            let before: Vec<_> = (0..4).map(|flow| bed.delivered(flow)).collect();
            bed.run(Time::from_ms(40 * step));
            shares = (0..4).map(|flow| (bed.delivered(flow) - before[flow]).get() as f64).collect();
            if step > 1 {
                assert!(shares[3] / shares[2] < apart, "{shares:?}, {apart} before");
                apart = shares[3] / shares[2];
            }
        }
        let kinds = (shares[2] + shares[3]) / (shares[0] + shares[1]);
        assert!((0.8..1.25).contains(&kinds), "{shares:?}");
        assert!(jain(&shares[..2]) > 0.99, "{shares:?}");
    }

    /// The effect of compounding: after a few epochs a cut is nothing, and the phantom queue has no effect.
    #[test]
    fn compounding_disables_the_phantom_queue() {
        let phantom = Some(Frac::millionths(900_000));
        let link = TestbedLink {
            rate: Rate::from_gbps(100),
            mark_over: Bytes::new(448_000),
            drop_over: Bytes::new(1 << 20),
            phantom,
        };
        let mut used = Vec::new();
        for md_scale_compounds in [false, true] {
            let mut bed = Testbed::new(link);
            for _ in 0..2 {
                let initial_bdp = Frac::ratio(47, 100);
                let params = Params { initial_bdp, md_scale_compounds, ..Params::for_path(&LONG_PATH) };
                bed.add(UnoCc::new(&LONG_PATH, params), &LONG_PATH, Time::ZERO);
            }
            bed.run(Time::from_ms(100));
            let before = bed.delivered(0) + bed.delivered(1);
            bed.run(Time::from_ms(140));
            used.push((bed.delivered(0) + bed.delivered(1) - before).get() as f64 * 8.0 / 0.040 / 1e9);
        }
        assert!(used[0] < 90.0 && used[1] > 93.0, "{used:?} Gb/s of a phantom queue's 90");
    }
}
