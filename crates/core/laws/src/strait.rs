//! Strait, the project's own law: increase and decrease on marks of short real queues, at the same pace and with the same
//! share for flows of all round trips, in favour of flows that have sent little or are known to have little left. Its page,
//! `docs/src/laws/strait.md`, derives each part. A loss is the strongest mark. State and parameters are over 104 bytes, so a
//! kernel needs socket storage for them.

use units::{Bytes, Frac, Span, Time};

use crate::epoch::Epoch;
use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::quick_adapt::QuickAdapt;
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits, Window};

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = if path.is_long() { Frac::millionths(400_000) } else { Frac::ONE }, "1; 0.4 where the base RTT is over twice the intra-datacenter RTT", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Additive increase a round trip without marks, as a share of the own BDP (a).
    alpha: Fraction = Frac::millionths(10_000), "0.01", Frac::ZERO, Frac::ONE;
    /// Share of the window that a base RTT cuts in which everything was marked (g).
    gain: Fraction = Frac::HALF.half(), "0.25", Frac::ZERO, Frac::ONE;
    /// Minimum time between two cuts (T); each is T / base RTT of what a base RTT cuts.
    period: Span = path.intra_rtt, "the intra-datacenter RTT", range::SHORT, range::LONG;
    /// Weight of the newest period in the average marked fraction.
    ewma_gain: Fraction = Frac::HALF.half(), "0.25", Frac::ZERO, Frac::ONE;
    /// Multiplicative increase a round trip once nothing was marked or lost for a base RTT and for `fast_periods` (f).
    fast: Fraction = Frac::HALF.half(), "0.25", Frac::ZERO, Frac::ONE;
    /// Minimum length of that time, in periods: longer than a few flows in balance take from one mark to the next.
    fast_periods: Count = 32, "32", 0, 1 << 10;
    /// Share of the window in flight below which it does not grow: unused capacity is unproven (RFC 7661, §4.2).
    validated: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Largest weight of a flow: increases are multiplied by the weight, cuts divided by it (Y).
    young_weight: Fraction = Frac::from_bits(16 << 32), "16", Frac::ONE, Frac::from_bits(1024 << 32);
    /// Own BDPs delivered, from which on a flow weighs 1; before, it weighs this over the BDPs delivered (S).
    young_bdp: Fraction = Frac::from_bits(if path.is_long() { 4 } else { 64 } << 32), "64; 4 where the base RTT is over twice the intra-datacenter RTT", Frac::ZERO, range::UNLIMITED;
    /// Own BDPs left, where hosts know flow sizes, from which up a flow weighs 1; with fewer, this over those left.
    left_bdp: Fraction = Frac::from_bits(if path.is_long() { 8 } else { 64 } << 32), "64; 8 where the base RTT is over twice the intra-datacenter RTT", Frac::ZERO, range::UNLIMITED;
    /// Enables Quick Adapt.
    quick_adapt: Switch = true, "true", false, true;
    /// Share of the window under which the bytes acknowledged in a period with a mark or a loss mean extreme congestion (beta).
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Length of a period of Quick Adapt, in base RTTs.
    qa_period: Fraction = Frac::millionths(1_050_000), "1.05", Frac::millionths(100_000), Frac::from_bits(100 << 32);
    /// Smallest window that Quick Adapt sets, in own BDPs.
    qa_floor_bdp: Fraction = Frac::millionths(100_000), "0.1", Frac::ZERO, Frac::ONE;
}

/// Maximum stretch of a round trip, in base RTTs, up to which the increase per second is the same as without a queue.
const MAX_STRETCH: Frac = Frac::from_bits(2 << 32);

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "strait",
    title: "Strait",
    summary: "AIMD on marks of short real queues, one pace and one share for all round trips, in favour of flows that are young or known to end",
    source: "Narrows, docs/src/laws/strait.md",
    signals: "ECN, loss, acknowledged bytes; bytes left, where hosts know",
    marks: EcnSupport::Used,
    reads_bytes_remaining: true,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Strait {
    params: Params,
    base_rtt: Span,
    bdp: Bytes,
    window: Window,
    weight: Frac, // 1 to young_weight, as of the newest epoch's end
    ewma: Frac,
    clean_since: Time, // the newest mark or loss, at first the first acknowledgement
    epoch: Epoch,
    adapt: QuickAdapt,
    actions: LawActions,
}

impl Strait {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let bdp = path.bdp();
        Self {
            params,
            base_rtt: path.base_rtt,
            bdp,
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            weight: params.young_weight,
            ewma: Frac::ZERO,
            clean_since: Time::NEVER,
            epoch: Epoch::begin(Time::NEVER),
            adapt: QuickAdapt::begin(Time::NEVER),
            actions: LawActions::default(),
        }
    }

    /// Returns the weight of a flow: S BDPs over its remaining bytes, if its host knows them, else over the bytes
    /// delivered; from 1 to Y.
    fn weight(&self, ack: &Ack) -> Frac {
        let (bdps, bytes) = match ack.known_bytes_remaining() {
            Some(left) => (self.params.left_bdp, left),
            None => (self.params.young_bdp, ack.delivered),
        };
        Frac::ratio(self.bdp.scaled(bdps).get(), bytes.get().max(1)).min(self.params.young_weight).max(Frac::ONE)
    }

    /// Returns whether enough of the window was in flight for the window to grow.
    fn is_validated(&self, ack: &Ack) -> bool {
        ack.in_flight.saturating_add(ack.acked) >= self.window.bytes().scaled(self.params.validated)
    }

    fn increase(&mut self, ack: &Ack) {
        // cwnd <- cwnd + weight * a * BDP * acked / cwnd * RTT / base RTT
        let stretch = Frac::ratio(ack.rtt.unsigned_ps(), self.base_rtt.unsigned_ps()).max(Frac::ONE).min(MAX_STRETCH);
        let step = self.bdp.scaled(self.params.alpha).scaled(self.weight).scaled(stretch);
        let mut grew = self.window.increase(step, ack.acked);
        let clean = self.params.period.times(self.params.fast_periods as u32).max(self.base_rtt);
        if ack.now > self.clean_since + clean {
            grew |= self.window.open(ack.acked.scaled(self.params.fast));
        }
        self.actions.increases += u64::from(grew);
    }

    fn end_epoch(&mut self, ack: &Ack) {
        self.ewma = self.ewma.ewma(self.epoch.marked_fraction(), self.params.ewma_gain);
        self.weight = self.weight(ack);
        if self.epoch.saw_marks() && !self.adapt.pauses(ack.now) {
            // cwnd <- cwnd * (1 - g * E * T / base RTT / weight)
            let base_rtt = self.base_rtt.unsigned_ps();
            let share = Frac::ratio(self.params.period.unsigned_ps().min(base_rtt), base_rtt);
            let cut_share = Frac::ratio(Frac::ONE.bits(), self.weight.bits());
            self.actions.cuts += u64::from(self.window.cut(self.ewma * self.params.gain * share * cut_share));
        }
        self.epoch = self.epoch.next(ack, self.params.period);
    }

    fn quick_adapt(&mut self, ack: &Ack) {
        let period = self.base_rtt.scaled(self.params.qa_period);
        let Some(ended) = self.adapt.count(ack, period) else { return };
        if ended.congested && ended.acked < self.window.bytes().scaled(self.params.beta) {
            let left = ended.acked.max(self.bdp.scaled(self.params.qa_floor_bdp));
            self.window.set(left.min(self.window.bytes()));
            self.actions.quick_adapts += 1;
            self.adapt = QuickAdapt::pause(ack.now);
        }
    }
}

impl ControlLaw for Strait {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.epoch.ends().is_set() {
            self.epoch.set_end(ack.now);
        }
        if !self.adapt.has_started() {
            self.adapt.start(ack.now);
            self.clean_since = ack.now;
        }
        self.adapt.end_pause(ack);
        if !ack.marked.is_zero() {
            self.clean_since = ack.now;
        } else if !ack.app_limited && self.is_validated(ack) {
            self.increase(ack);
        }
        self.epoch.count(ack.acked, ack.marked);
        if self.epoch.is_over(ack) {
            self.end_epoch(ack);
        }
        if self.params.quick_adapt {
            self.quick_adapt(ack);
        }
    }

    /// Counts lost bytes as marked, for any cause of the loss.
    fn on_loss(&mut self, loss: &Loss) {
        self.epoch.count(loss.lost, loss.lost);
        self.adapt.lost();
        self.clean_since = loss.now;
    }

    /// Updates the pace, the stretch of the increase, the share that a period cuts, and the period of Quick Adapt for a new
    /// base RTT. T and values that were set in BDPs stay.
    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::BaseRtt(base_rtt) => self.base_rtt = base_rtt,
            Notification::Mss(mss) => drop(self.window.follow(mss)),
            Notification::Resumed { .. } => {
                self.epoch = self.epoch.resume(self.window.bytes());
                self.adapt = QuickAdapt::begin(Time::NEVER);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        SendLimits::paced_window(self.window.bytes(), self.base_rtt)
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("marked_ewma_ppm", self.ewma.ppm() as i64);
        emit("weight_ppm", self.weight.ppm() as i64);
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

    // By hand: own BDP inside 175,000 B and across 25,000,000 B; a 1,750 B; S 11,200,000 B and 100,000,000 B, of the
    // remaining bytes 11,200,000 B and 200,000,000 B; Y 16.
    fn law_on(path: &PathInfo, change: impl Fn(&mut Params)) -> Strait {
        let mut params = Params::for_path(path);
        change(&mut params);
        Strait::new(path, params)
    }

    fn law(change: impl Fn(&mut Params)) -> Strait {
        law_on(&PATH, change)
    }

    /// Disables Quick Adapt and the minimum in flight: hand-made acknowledgements arrive one at a time.
    fn aimd(params: &mut Params) {
        params.quick_adapt = false;
        params.validated = Frac::ZERO;
    }

    /// Configures a flow of weight 1 without fast growth.
    fn plain(params: &mut Params) {
        params.young_weight = Frac::ONE;
        params.fast = Frac::ZERO;
    }

    #[test]
    fn initial_window_is_a_bdp_intra_dc_and_a_share_inter_dc() {
        let send_limits = law(|_| {}).send_limits();
        assert_eq!((send_limits.window, send_limits.pacing), (Bytes::new(175_000), Rate::from_gbps(100)));
        let send_limits = law_on(&LONG_PATH, |_| {}).send_limits();
        assert_eq!((send_limits.window, send_limits.pacing), (Bytes::new(9_999_999), Rate::from_bps(39_999_996_000)));
        // Twice the round trip inside is not yet across.
        let far = PathInfo { base_rtt: PATH.intra_rtt.times(2), ..PATH };
        assert_eq!(law_on(&far, |_| {}).send_limits().window, Bytes::new(350_000));
    }

    #[test]
    fn a_window_of_unmarked_packets_adds_alpha_times_the_weight() {
        // 43 packets are 1.0064 windows, less as the window grows: 1,754 B, and of a young flow's 28,000 B a window 25,826 B
        // or so (sum of 28,000 * 4,096 / cwnd).
        for (weight, grown) in [(1, 1_750..=1_762), (16, 25_000..=26_400)] {
            let mut law = law(|params| {
                aimd(params);
                plain(params);
                params.max_bdp = Frac::from_bits(2 << 32);
                params.young_weight = Frac::from_bits(weight << 32);
            });
            for us in 0..43 {
                law.on_ack(&Ack { delivered: Bytes::ZERO, ..ack(&PATH, us) });
            }
            let window = law.send_limits().window;
            assert!(grown.contains(&(window.get() - 175_000)), "{window}");
            law.on_ack(&marked(&PATH, 43));
            assert!(law.send_limits().window <= window);
        }
    }

    #[test]
    fn a_period_spans_a_pause_with_half_a_window() {
        for (acked, cuts) in [(64, 0), (87_499, 0), (87_500, 1), (175_000, 1)] {
            assert_eq!(cuts_across_a_pause(law(aimd), Bytes::new(acked)), cuts, "{acked}");
        }
    }

    /// With twice the base RTT the pace is halved, a period's cut is halved, and Quick Adapt acts after 29.4 us instead
    /// of 14.7.
    #[test]
    fn a_new_base_rtt_moves_the_pace_the_cut_and_quick_adapt() {
        let after_base_rtt_change = |change: fn(&mut Params)| {
            let mut law = law(change);
            law.on_notification(&Notification::BaseRtt(PATH.base_rtt.times(2)));
            law
        };
        let [before, after] = [law(aimd), after_base_rtt_change(aimd)].map(|mut law| {
            (0..=15).for_each(|us| law.on_ack(&marked(&PATH, us)));
            assert_eq!(law.actions().cuts, 1);
            175_000 - law.send_limits().window.get()
        });
        assert!(before > 100 && before.abs_diff(2 * after) <= 2, "{before} B and {after} B");
        let mut law = after_base_rtt_change(|params| params.gain = Frac::ZERO);
        assert_eq!(law.send_limits().pacing, Rate::from_gbps(50));
        for (us, quick_adapts) in [(0, 0), (5, 0), (15, 0), (29, 0), (30, 1)] {
            law.on_ack(&marked(&PATH, us));
            assert_eq!(law.actions().quick_adapts, quick_adapts, "at {us} us");
        }
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut law = law(|params| {
            aimd(params);
            params.validated = Frac::HALF;
            params.max_bdp = Frac::from_bits(2 << 32);
        });
        for us in 0..43 {
            law.on_ack(&Ack { app_limited: true, ..ack(&PATH, us) });
        }
        assert_eq!(law.send_limits().window, Bytes::new(175_000));
        // A packet less than half of it was out, and then half of it.
        for (in_flight, grown) in [(83_403, 0), (83_404, 654)] {
            law.on_ack(&Ack { in_flight: Bytes::new(in_flight), ..ack(&PATH, 43) });
            assert_eq!(law.send_limits().window.get() - 175_000, grown, "{in_flight} B");
        }
    }

    /// After `fast_periods` periods, and a base RTT at least, without marks or losses, a quarter of the acknowledged
    /// bytes is added, too.
    #[test]
    fn fast_increase_after_a_time_without_marks() {
        for (path, fast_periods, clean) in
            [(PATH, 32, 448), (PATH, 0, 14), (LONG_PATH, 32, 2_000), (LONG_PATH, 200, 2_800)]
        {
            let mut law = law_on(&path, |params| {
                aimd(params);
                params.alpha = Frac::ZERO;
                params.gain = Frac::ZERO;
                params.fast_periods = fast_periods;
                params.max_bdp = Frac::from_bits(2 << 32);
            });
            let first = law.send_limits().window;
            law.on_ack(&ack(&path, 0));
            law.on_ack(&ack(&path, clean));
            assert_eq!(law.send_limits().window, first);
            law.on_ack(&ack(&path, clean + 1));
            assert_eq!(law.send_limits().window - first, Bytes::new(1_024));
            law.on_loss(&loss(1, clean + 2, LossCause::Reordered));
            law.on_ack(&ack(&path, 2 * clean + 2));
            assert_eq!(law.send_limits().window - first, Bytes::new(1_024));
            law.on_ack(&ack(&path, 2 * clean + 3));
            assert_eq!(law.send_limits().window - first, Bytes::new(2_048));
        }
    }

    /// Queueing delay does not slow the increase down: at twice the RTT, a round trip earns twice as much. No more than
    /// that, or late acknowledgements would earn without a limit.
    #[test]
    fn the_increase_is_per_time_not_per_round_trip() {
        let grown = |rtt: Span| {
            let mut law = law(|params| {
                aimd(params);
                plain(params);
                params.max_bdp = Frac::from_bits(2 << 32);
            });
            for us in 0..43 {
                law.on_ack(&Ack { rtt, ..ack(&PATH, us) });
            }
            law.send_limits().window.get() - 175_000
        };
        let alone = grown(PATH.base_rtt);
        for (times, earns) in [(2, 2), (3, 2)] {
            let queued = grown(PATH.base_rtt.times(times));
            assert!(queued.abs_diff(earns * alone) <= earns * alone / 50, "{queued} and {alone} B");
        }
    }

    #[test]
    fn a_flow_weighs_less_as_it_delivers() {
        let weight =
            |path, delivered| law_on(path, |_| {}).weight(&Ack { delivered: Bytes::new(delivered), ..ack(path, 0) });
        for (delivered, weighs) in [(0, 16), (700_000, 16), (1_400_000, 8), (11_200_000, 1), (1 << 40, 1)] {
            assert_eq!(weight(&PATH, delivered), Frac::from_bits(weighs << 32), "{delivered} B");
        }
        assert_eq!(weight(&LONG_PATH, 12_500_000), Frac::from_bits(8 << 32));
        assert_eq!(weight(&LONG_PATH, 100_000_000), Frac::ONE);
    }

    /// The reported remaining length counts, not the bytes delivered.
    #[test]
    fn a_flow_of_known_length_weighs_more_as_it_ends() {
        let weight = |path, left| {
            let ack_near_end =
                Ack { bytes_remaining: Bytes::new(left), delivered: Bytes::new(1 << 40), ..ack(path, 0) };
            law_on(path, |_| {}).weight(&ack_near_end)
        };
        for (left, weighs) in [(1 << 40, 1), (11_200_000, 1), (1_400_000, 8), (700_000, 16), (0, 16)] {
            assert_eq!(weight(&PATH, left), Frac::from_bits(weighs << 32), "{left} B");
        }
        assert_eq!(weight(&LONG_PATH, 200_000_000), Frac::ONE);
        assert_eq!(weight(&LONG_PATH, 25_000_000), Frac::from_bits(8 << 32));
    }

    #[test]
    fn a_marked_round_trip_cuts_by_the_gain_over_the_weight() {
        // E becomes 0.25 at the first epoch, which ends with a packet sent when the first acknowledgement arrived: a 16th,
        // over 16 a 256th.
        for (weight, cut) in [(1, 10_937), (16, 683)] {
            let mut law = law(|params| {
                aimd(params);
                params.young_weight = Frac::from_bits(weight << 32);
            });
            for us in 0..=14 {
                law.on_ack(&Ack { delivered: Bytes::ZERO, ..marked(&PATH, us) });
            }
            let window = law.send_limits().window.get();
            assert!((175_000 - window).abs_diff(cut) <= 1, "{window}");
            assert_eq!(law.actions().cuts, 1);
        }
    }

    /// Checks that between datacenters a period's cut is proportional to its share of the base RTT: 14 us of 2 ms.
    #[test]
    fn long_flows_are_cut_as_often_and_by_less() {
        let mut law = law_on(&LONG_PATH, |params| {
            aimd(params);
            plain(params);
            params.initial_bdp = Frac::ONE;
        });
        for us in 2_000..=4_000 {
            law.on_ack(&marked(&LONG_PATH, us));
        }
        // The first epoch ends with a packet sent when the first acknowledgement arrived. E = 0.25: 25 MB * 0.0625 * 0.007.
        assert_eq!(law.actions().cuts, 1);
        assert!((25_000_000 - law.send_limits().window.get()).abs_diff(10_937) <= 2, "{:?}", law.send_limits());
        for us in 4_001..=4_014 {
            law.on_ack(&marked(&LONG_PATH, us));
        }
        assert_eq!(law.actions().cuts, 2);
    }

    #[test]
    fn a_loss_counts_as_marked() {
        let mut law = law(|params| {
            aimd(params);
            plain(params);
        });
        law.on_ack(&ack(&PATH, 0));
        law.on_loss(&loss(0, 13, LossCause::Nack));
        assert_eq!(law.send_limits().window.get(), 175_000);
        // Of three packets one was lost: E = 1/12, and g E = 1/48.
        law.on_ack(&ack(&PATH, 14));
        assert!((175_000 - law.send_limits().window.get()).abs_diff(175_000 / 48) <= 2, "{:?}", law.send_limits());
    }

    /// Six packets in a period are under half of a window of 43. Without a mark or a loss the cause is a slow host or NIC.
    #[test]
    fn quick_adapt_needs_a_mark_or_a_loss() {
        for (is_marked, is_lost, left) in [(false, false, 175_000), (true, false, 24_576), (false, true, 24_576)] {
            let mut law = law(|params| params.gain = Frac::ZERO);
            for us in [0, 1, 2, 3, 4, 5] {
                law.on_ack(&if is_marked { marked(&PATH, us) } else { ack(&PATH, us) });
            }
            if is_lost {
                law.on_loss(&loss(3, 10, LossCause::Nack));
            }
            law.on_ack(&ack(&PATH, 15));
            assert_eq!(law.send_limits().window, Bytes::new(left), "{is_marked} {is_lost}");
            let quick_adapts = u64::from(is_marked || is_lost);
            assert_eq!(law.actions().quick_adapts, quick_adapts);
            // In the following pause Quick Adapt does not act: the acknowledged packets were sent before it. Without a pause
            // these are a second and third period of starvation, with marks as evidence.
            law.on_ack(&marked(&PATH, 28));
            law.on_ack(&Ack { sent_at: ack(&PATH, 28).sent_at, ..marked(&PATH, 60) });
            assert_eq!(law.actions().quick_adapts, 1, "{is_marked} {is_lost}");
        }
    }

    #[test]
    fn quick_adapt_leaves_a_tenth_of_a_bdp() {
        let mut law = law(|params| params.gain = Frac::ZERO);
        law.on_ack(&marked(&PATH, 0));
        law.on_ack(&marked(&PATH, 15));
        assert!(law.send_limits().window.get().abs_diff(17_500) <= 1, "{:?}", law.send_limits());
        assert_eq!(law.actions().quick_adapts, 1);
    }

    /// A bottleneck of 100 Gb/s that marks over a quarter of the BDP inside, and has 1 MiB of buffer.
    fn link() -> TestbedLink {
        let (rate, phantom) = (Rate::from_gbps(100), None);
        TestbedLink { rate, mark_over: Bytes::new(43_750), drop_over: Bytes::new(1 << 20), phantom }
    }

    /// Payload per second of each flow from `from` to `until`, in Gb/s.
    fn rates(bed: &mut Testbed<Strait>, flows: usize, from: Time, until: Time) -> Vec<f64> {
        bed.run(from);
        let before: Vec<_> = (0..flows).map(|flow| bed.delivered(flow)).collect();
        bed.forget_backlog();
        bed.run(until);
        let seconds = until.since(from).unsigned_ps() as f64 / 1e12;
        (0..flows).map(|flow| (bed.delivered(flow) - before[flow]).get() as f64 * 8.0 / seconds / 1e9).collect()
    }

    /// Flows of one round trip that begin one after another end with equal shares of a full link and a short queue.
    #[test]
    fn converges_to_equal_shares_of_a_full_link() {
        for flows in [2, 8, 16] {
            let mut bed = Testbed::new(link());
            for flow in 0..flows {
                bed.add(law(|_| {}), &PATH, Time::from_us(100 * flow as u64));
            }
            let rates = rates(&mut bed, flows, Time::from_ms(20), Time::from_ms(40));
            let used: f64 = rates.iter().sum();
            assert!(jain(&rates) > 0.98, "{flows} flows: {rates:?}");
            assert!(used > 97.0, "{flows} flows: {used} Gb/s");
            assert!(bed.backlog.0 < Bytes::new(350_000), "{flows} flows: {:?}", bed.backlog);
        }
    }

    /// The page's derivation: in balance a flow adds a BDP per base RTT without a mark, and cuts g E of its window per
    /// base RTT, so that all have one rate for any round trip: `a BDP = g E cwnd`. Half of the flows are inside and
    /// half across, and they start at a tenth of their BDP, at half of it or at all of it. Within 50 long round trips
    /// their index exceeds 0.95, and stays there.
    #[test]
    fn round_trips_of_14_us_and_2_ms_share_alike_within_50_of_the_longer() {
        for kinds in [1, 2, 4] {
            let mut bed = Testbed::new(link());
            for flow in 0..kinds {
                for (path, tenths) in [(PATH, 10), (LONG_PATH, 5)] {
                    let tenths = if flow % 2 == 0 { tenths } else { 1 };
                    let law = law_on(&path, |params| params.initial_bdp = Frac::ratio(tenths, 10));
                    bed.add(law, &path, Time::ZERO);
                }
            }
            for step in 0..5 {
                let rates = rates(&mut bed, 2 * kinds, Time::from_ms(80 + 20 * step), Time::from_ms(100 + 20 * step));
                assert!(jain(&rates) > 0.95, "{kinds} from {} ms: {rates:?}", 80 + 20 * step);
                assert!(rates.iter().sum::<f64>() > 98.0, "{rates:?}");
            }
        }
    }
}
