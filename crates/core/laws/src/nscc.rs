//! NSCC, the network-signalled congestion control of Ultra Ethernet: a window controlled by marks and queueing delay
//! together, towards a target delay. Ultra Ethernet Specification 1.0; Le et al., arXiv 2508.08906; numbers as in the public
//! simulator (uet-htsim, August 2025). Without pacing. An increase is computed with the window at the time of an
//! acknowledgement, and granted later; the simulator divides by the window at that later time. Designed for round trips
//! inside a datacenter: see the page in the book.

use units::{Bytes, Frac, Rate, Span, Time};

use crate::info::{EcnSupport, LawInfo};
use crate::params::{parameters, range};
use crate::window::share;
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits, Window};

const MAX: Frac = Frac::from_bits(1_000 << 32);

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs (maxwnd).
    max_bdp: Fraction = Frac::millionths(1_500_000), "1.5", range::TINY, range::UNLIMITED;
    /// Target of the queueing delay, in base RTTs. In scenarios 1 where no port trims.
    target: Fraction = Frac::millionths(750_000), "0.75", range::TINY, MAX;
    /// BDP at which the network's scale is 1 (a = BDP / this).
    reference_bdp: Bytes = Bytes::new(150_000), "150000", range::BYTE, range::WINDOW;
    /// Target at which the delay's scale is 1 (b = target / this).
    reference_delay: Span = Span::from_us(12), "12 us", range::SHORT, range::LONG;
    /// Proportional increase a window at no delay, in packets times a times b.
    alpha: Fraction = Frac::from_bits(4 << 32), "4", Frac::ZERO, MAX;
    /// Fair increase a window, in packets times a (fi).
    fi: Fraction = Frac::from_bits(5 << 32), "5", Frac::ZERO, MAX;
    /// Unconditional increase per round trip, in packets times a.
    eta: Fraction = Frac::millionths(150_000), "0.15", Frac::ZERO, MAX;
    /// Fast increase, in acknowledged bytes times a.
    fast_gain: Fraction = Frac::millionths(250_000), "0.25", Frac::ZERO, MAX;
    /// Queueing delay under which a window of unmarked acknowledgements begins the fast increase.
    fast_delay: Span = Span::from_us(1), "1 us", Span::ZERO, range::LONG;
    /// Gain of the cut for an average delay over the target (gamma).
    gamma: Fraction = Frac::millionths(800_000), "0.8", Frac::ZERO, Frac::ONE;
    /// Largest share of the window that a cut takes.
    most_cut: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Weight of the newest sample in the average delay.
    delay_gain: Fraction = Frac::millionths(12_500), "0.0125", Frac::ZERO, Frac::ONE;
    /// Value of an unmarked sample over the target in the average delay, in base RTTs.
    unmarked_delay: Fraction = Frac::millionths(250_000), "0.25", Frac::ZERO, MAX;
    /// Packets acknowledged after which increases are granted; at the latest after a base RTT.
    adjust_packets: Count = 8, "8", 0, 1 << 20;
    /// Enables Quick Adapt.
    quick_adapt: Switch = true, "true", false, true;
    /// Share of the largest window under which the bytes acknowledged in a period mean extreme congestion.
    qa_gate: Fraction = Frac::millionths(125_000), "0.125", Frac::ZERO, Frac::ONE;
    /// Queueing delay above which Quick Adapt is triggered without a loss, in targets.
    qa_delay: Fraction = Frac::from_bits(4 << 32), "4", Frac::ZERO, MAX;
    /// Ignores unmarked ACKs, too, of the bytes in flight when Quick Adapt acted; off: marked ones only.
    qa_ignores_unmarked: Switch = true, "true", false, true;
    /// Takes lost bytes off the window, unless Quick Adapt acts on the loss or ignores it.
    loss_cut: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "nscc",
    title: "NSCC",
    summary: "a window towards a target delay, by marks and delay together, with Quick Adapt",
    source: "Ultra Ethernet Specification 1.0; arXiv 2508.08906; uet-htsim",
    signals: "ECN, delay, loss, acknowledged bytes",
    marks: EcnSupport::Used,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Nscc {
    params: Params,
    line_rate: Rate,
    base_rtt: Span,
    target: Span,
    /// The network's scale: a.
    scale: Frac,
    window: Window,
    average_delay: Span,
    /// Increase that is computed and not granted yet, and the remainder of its divisions.
    pending: Bytes,
    carry: u64,
    /// Bytes acknowledged since increases were last granted.
    received: Bytes,
    granted_at: Time,
    eta_at: Time,
    cut_at: Time,
    /// Consecutive bytes without a mark and with almost no delay.
    undelayed: Bytes,
    adapt: QuickAdapt,
    actions: LawActions,
}

/// Queueing delay of a packet as Quick Adapt classifies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DelayLevel {
    Normal,
    /// Over `qa_delay` targets.
    Extreme,
}

/// State of the current Quick Adapt period.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
struct QuickAdapt {
    /// End of the period; never before the first feedback.
    ends: Time,
    achieved: Bytes,
    /// After a Quick Adapt: the bytes in flight at that time that are not yet acknowledged or lost.
    ignores: Bytes,
    /// True if a packet was lost.
    triggered: bool,
    /// True once the fast increase has begun.
    fast: bool,
}

impl Nscc {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let bdp = path.bdp();
        let mut law = Self {
            params,
            line_rate: path.line_rate,
            base_rtt: Span::ZERO,
            target: Span::ZERO,
            scale: Frac::ZERO,
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            average_delay: Span::ZERO,
            pending: Bytes::ZERO,
            carry: 0,
            received: Bytes::ZERO,
            granted_at: Time::NEVER,
            eta_at: Time::NEVER,
            cut_at: Time::NEVER,
            undelayed: Bytes::ZERO,
            adapt: QuickAdapt {
                ends: Time::NEVER,
                achieved: Bytes::ZERO,
                ignores: Bytes::ZERO,
                triggered: false,
                fast: false,
            },
            actions: LawActions::default(),
        };
        law.measure(path.base_rtt);
        law
    }

    /// Updates values derived from the base round trip.
    fn measure(&mut self, base_rtt: Span) {
        self.base_rtt = base_rtt;
        self.target = base_rtt.scaled(self.params.target);
        self.scale = Frac::ratio(self.line_rate.bytes_in(base_rtt).get(), self.params.reference_bdp.get());
    }

    /// Returns `gain` packets, scaled by a.
    fn packets(&self, gain: Frac) -> Bytes {
        self.window.floor().scaled(gain).scaled(self.scale)
    }

    /// Grants increases: cwnd <- cwnd + inc / cwnd, every `adjust_packets` packets or a round trip; cwnd <- cwnd + eta,
    /// a round trip.
    fn grant(&mut self, now: Time) {
        if !self.granted_at.is_set() {
            (self.granted_at, self.eta_at) = (now, now);
        }
        let enough = self.window.floor().get().saturating_mul(self.params.adjust_packets);
        if self.received.get() >= enough || now.since(self.granted_at) >= self.base_rtt {
            self.actions.increases += u64::from(self.window.open(self.pending));
            (self.pending, self.received, self.granted_at) = (Bytes::ZERO, Bytes::ZERO, now);
        }
        if now.since(self.eta_at) >= self.base_rtt {
            let eta = self.packets(self.params.eta);
            self.actions.increases += u64::from(self.window.open(eta));
            self.eta_at = now;
        }
    }

    /// Computes an increase: inc <- inc + step * acked, divided by cwnd at once.
    fn accumulate_increase(&mut self, step: Bytes, acked: Bytes) {
        let grown = share(&mut self.carry, step, acked, self.window.bytes());
        self.pending = self.pending.saturating_add(grown);
    }

    /// Computes the increase for an unmarked acknowledgement with a delay below the target: alpha * acked * (target - delay),
    /// or the fast increase.
    fn increase_in_proportion(&mut self, delay: Span, acked: Bytes) {
        if self.adapt.fast {
            let grown = acked.scaled(self.params.fast_gain).scaled(self.scale);
            self.actions.increases += u64::from(self.window.open(grown));
            return;
        }
        // alpha = 4 * mss * a * b / target
        let b = Frac::ratio(self.target.unsigned_ps(), self.params.reference_delay.unsigned_ps());
        let left = Frac::ratio((self.target - delay).unsigned_ps(), self.target.unsigned_ps());
        self.accumulate_increase(self.packets(self.params.alpha).scaled(b).scaled(left), acked);
    }

    /// cwnd <- cwnd * max(1 - gamma * (avg - target) / avg, 0.5), at most once in a base round trip.
    fn decrease(&mut self, now: Time) {
        let over = self.average_delay - self.target;
        if over <= Span::ZERO || self.cut_at.is_set() && now.since(self.cut_at) < self.base_rtt {
            return;
        }
        let cut = self.params.gamma * Frac::ratio(over.unsigned_ps(), self.average_delay.unsigned_ps());
        self.actions.cuts += u64::from(self.window.cut(cut.min(self.params.most_cut)));
        self.cut_at = now;
    }

    fn average(&mut self, delay: Span, ack: &Ack) {
        let is_unmarked_delay = ack.marked.is_zero() && delay > self.target;
        let sample = if is_unmarked_delay { self.base_rtt.scaled(self.params.unmarked_delay) } else { delay };
        let gain = self.params.delay_gain;
        self.average_delay = self.average_delay.scaled(gain.complement()) + sample.scaled(gain);
    }

    /// Returns whether `bytes`, acknowledged or lost now, were sent before the last Quick Adapt.
    fn predates_quick_adapt(&mut self, bytes: Bytes) -> bool {
        let predates = !self.adapt.ignores.is_zero();
        self.adapt.ignores = self.adapt.ignores.saturating_sub(bytes);
        predates
    }

    /// Ends a period after a loss or at extreme delay: the window becomes the bytes acknowledged in the period, if
    /// these are few. Returns whether Quick Adapt acted.
    fn quick_adapt(&mut self, now: Time, delay: DelayLevel, in_flight: Bytes) -> bool {
        if self.adapt.ends.is_set() && now <= self.adapt.ends {
            return false;
        }
        let is_below_gate = self.adapt.achieved < self.window.cap().scaled(self.params.qa_gate);
        let is_due = self.adapt.ends.is_set() && (self.adapt.triggered || delay == DelayLevel::Extreme);
        let acts = self.params.quick_adapt && is_due && is_below_gate;
        if acts {
            // Never more than before: a window below an eighth of the largest may be full.
            self.window.set(self.adapt.achieved.min(self.window.bytes()));
            self.adapt.ignores = in_flight;
            (self.pending, self.carry, self.received) = (Bytes::ZERO, 0, Bytes::ZERO);
            (self.adapt.fast, self.undelayed) = (false, Bytes::ZERO);
            self.actions.quick_adapts += 1;
        }
        self.adapt.ends = now + self.base_rtt + self.target;
        (self.adapt.achieved, self.adapt.triggered) = (Bytes::ZERO, false);
        acts
    }
}

impl ControlLaw for Nscc {
    fn on_ack(&mut self, ack: &Ack) {
        let (now, acked, marked) = (ack.now, ack.acked, !ack.marked.is_zero());
        let delay = (ack.rtt - self.base_rtt).max(Span::ZERO);
        self.average(delay, ack);
        self.adapt.achieved = self.adapt.achieved.saturating_add(acked);
        if self.predates_quick_adapt(acked) && (marked || self.params.qa_ignores_unmarked) {
            return;
        }
        let extreme = delay > self.target.scaled(self.params.qa_delay);
        let level = if extreme { DelayLevel::Extreme } else { DelayLevel::Normal };
        if self.quick_adapt(now, level, ack.in_flight) {
            return;
        }
        self.grant(now);
        self.received = self.received.saturating_add(acked);
        let hardly_delayed = !marked && delay < self.params.fast_delay;
        self.undelayed = if hardly_delayed { self.undelayed.saturating_add(acked) } else { Bytes::ZERO };
        self.adapt.fast = hardly_delayed && (self.adapt.fast || self.undelayed > self.window.bytes());
        match (marked, delay >= self.target) {
            (false, true) => self.accumulate_increase(self.packets(self.params.fi), acked),
            (false, false) => self.increase_in_proportion(delay, acked),
            (true, true) => self.decrease(now),
            // The flow changes its path, and no other response is needed.
            (true, false) => {}
        }
    }

    /// Handles every loss alike: trimmed packets, packets overtaken by later ones and retransmission timeouts.
    fn on_loss(&mut self, loss: &Loss) {
        self.adapt.triggered = true;
        if self.predates_quick_adapt(loss.lost)
            || self.quick_adapt(loss.now, DelayLevel::Normal, loss.in_flight)
            || !self.params.loss_cut
        {
            return;
        }
        self.actions.loss_cuts += u64::from(self.window.shrink(loss.lost));
    }

    /// Updates the target and the scale for a new base RTT. Values that were set in BDPs keep their bytes.
    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::BaseRtt(base_rtt) => self.measure(base_rtt),
            Notification::Mss(mss) => drop(self.window.follow(mss)),
            // A period that spans a pause does not show the path's rate.
            Notification::Resumed { .. } => {
                (self.adapt.ends, self.adapt.achieved) = (Time::NEVER, Bytes::ZERO);
                (self.adapt.triggered, self.adapt.ignores) = (false, Bytes::ZERO);
            }
            _ => {}
        }
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.window.bytes())
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("average_delay_ns", self.average_delay.unsigned_ps() as i64 / 1_000);
        emit("quick_adapt_acked_bytes", self.adapt.achieved.get() as i64);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::LossCause;
    use crate::testbed::{LONG_PATH, PATH, Testbed, TestbedLink, ack, jain, loss, marked};
    use proptest::prelude::*;
    use std::vec::Vec;

    // By hand: BDP 175,000 B, a = 7/6, target 10.5 us, b = 7/8. Proportional increase at no delay 4 * 4096 * a * b = 16,725 B
    // a window, fair increase 5 * 4096 * a = 23,893 B, eta 716 B, fast increase 0.29167 B an acknowledged byte.
    fn law(change: impl Fn(&mut Params)) -> Nscc {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        Nscc::new(&PATH, params)
    }

    /// A loss at the end of a burst does not make Quick Adapt act on the first packet after a pause.
    #[test]
    fn quick_adapt_does_not_span_a_pause() {
        for (resumes, quick_adapts) in [(true, 0), (false, 1)] {
            let mut law = law(|_| {});
            law.on_ack(&ack(&PATH, 0));
            law.on_loss(&loss(0, 5, LossCause::Reordered));
            if resumes {
                law.on_notification(&Notification::Resumed { now: Time::from_us(1_001_000) });
            }
            law.on_ack(&ack(&PATH, 1_014));
            assert_eq!(law.actions().quick_adapts, quick_adapts, "resumes: {resumes}");
        }
    }

    /// Turns off growth without feedback and Quick Adapt, and grants increases at once.
    fn bare(params: &mut Params) {
        params.eta = Frac::ZERO;
        params.quick_adapt = false;
        params.adjust_packets = 0;
    }

    fn queued(us: u64, queueing: Span, is_marked: bool) -> Ack<'static> {
        let ack = if is_marked { marked(&PATH, us) } else { ack(&PATH, us) };
        Ack { rtt: ack.rtt + queueing, ..ack }
    }

    fn window(law: &Nscc) -> u64 {
        law.send_limits().window.get()
    }

    #[test]
    fn scales_are_of_the_path() {
        let law = law(|_| {});
        assert_eq!((window(&law), law.window.cap().get()), (175_000, 262_500));
        assert_eq!((law.target, law.scale.ppm()), (Span::from_ns(10_500), 1_166_666));
        let steps = [law.params.alpha, law.params.fi, law.params.eta].map(|gain| law.packets(gain).get());
        assert_eq!(steps, [19_114, 23_893, 716]);
        // 2 ms: a = 25 MB / 150 kB, and a target of 1.5 ms.
        let long = Nscc::new(&LONG_PATH, Params::for_path(&LONG_PATH));
        assert_eq!((long.target, long.scale.ppm() / 1_000_000), (Span::from_us(1_500), 166));
        assert_eq!(law.send_limits().pacing, Rate::MAX);
    }

    /// Checks that an acknowledged window adds the step of its delay, and nothing at the target.
    #[test]
    fn the_increase_is_proportional_to_the_distance_from_the_target() {
        for (delay_ns, step) in [(5_250, 8_362), (9_450, 1_672), (10_499, 1)] {
            let mut law = law(bare);
            for us in 0..43 {
                law.on_ack(&queued(us, Span::from_ns(delay_ns), false));
            }
            law.grant(Time::from_us(1_000_100));
            // 43 packets are 1.0064 windows, less as the window grows.
            let grown = window(&law) - 175_000;
            assert!((step * 97 / 100..=step * 101 / 100 + 1).contains(&grown), "{delay_ns} ns: {grown} of {step}");
        }
    }

    #[test]
    fn from_the_target_on_the_increase_is_fair() {
        let mut law = law(bare);
        for us in 0..43 {
            law.on_ack(&queued(us, Span::from_us(50), false));
        }
        law.grant(Time::from_us(1_000_100));
        let grown = window(&law) - 175_000;
        // 23,893 B for a window, times 1.0064; the denominator grows by the same amount: 22.5 kB.
        assert!((22_000..23_000).contains(&grown), "{grown}");
        // Such a sample counts as a quarter of the base round trip.
        assert!(law.average_delay < Span::from_ns(3_500));
    }

    #[test]
    fn increases_are_granted_every_eight_packets_and_eta_every_round_trip() {
        let mut law = law(|params| params.quick_adapt = false);
        let mut seen = Vec::new();
        for us in 0..17 {
            law.on_ack(&queued(us, Span::from_us(5), false));
            seen.push(window(&law));
        }
        // The first eight count before the ninth acknowledgement, the next eight with it before the seventeenth; in between
        // a base round trip is over at 14 us.
        let moved: Vec<usize> = (1..17).filter(|&us| seen[us] > seen[us - 1]).collect();
        assert_eq!(moved, [8, 14, 16]);
        assert_eq!(seen[14] - seen[13], 716);
    }

    /// Checks that the increase is fast after more than a window without delay: 0.25 * a of the acknowledged bytes, at once.
    #[test]
    fn a_window_without_delay_starts_fast_increase() {
        let mut law = law(bare);
        for us in 0..42 {
            law.on_ack(&ack(&PATH, us));
        }
        let slow = window(&law);
        assert!(slow < 192_000 && !law.adapt.fast, "{slow}");
        while !law.adapt.fast {
            law.on_ack(&ack(&PATH, 50));
        }
        let before = window(&law);
        law.on_ack(&ack(&PATH, 51));
        // 4096 * 0.25 * 7/6
        assert_eq!(window(&law) - before, 1_194);
        // A delay, or a mark, ends it.
        law.on_ack(&queued(52, Span::from_us(1), false));
        assert!(!law.adapt.fast && law.undelayed.is_zero());
    }

    /// A cut needs a mark, a delay over the target, and an average over it; and a base round trip since the last one.
    #[test]
    fn cuts_follow_the_average() {
        let mut law = law(|params| {
            bare(params);
            params.delay_gain = Frac::ONE;
        });
        law.on_ack(&queued(0, Span::from_us(21), true));
        // 0.8 * (21 - 10.5) / 21 = 0.4
        let first = window(&law);
        assert!(first.abs_diff(105_000) <= 1, "{first}");
        law.on_ack(&queued(13, Span::from_us(21), true));
        assert_eq!(window(&law), first);
        law.on_ack(&queued(14, Span::from_us(21), true));
        assert!(window(&law).abs_diff(63_000) <= 1);
        // An eighth of the average is over the target: 0.1.
        law.on_ack(&queued(28, Span::from_us(12), true));
        assert!(window(&law).abs_diff(56_700) <= 1, "{}", window(&law));
        // Never more than a half: 0.8 * 189.5 / 200.
        law.on_ack(&queued(42, Span::from_us(200), true));
        assert!(window(&law).abs_diff(28_350) <= 1);
        assert_eq!(law.actions().cuts, 4);
        // Below the target a mark only triggers a change of path.
        law.on_ack(&queued(60, Span::from_us(10), true));
        assert_eq!(law.actions().cuts, 4);
    }

    /// The average needs time: one sample in 80.
    #[test]
    fn one_late_packet_cuts_nothing() {
        let mut law = law(bare);
        law.on_ack(&queued(0, Span::from_us(100), true));
        assert_eq!((law.actions().cuts, law.average_delay), (0, Span::from_ps(1_249_999)));
    }

    /// The period lasts 14 + 10.5 us. Seven packets, 28,672 B, are under an eighth of 262,500 B; nine are not.
    #[test]
    fn quick_adapt_sets_the_achieved_bytes() {
        for (packets, acts) in [(7, 1), (9, 0)] {
            let mut law = law(|params| (params.loss_cut, params.eta) = (false, Frac::ZERO));
            for us in 0..packets {
                law.on_ack(&marked(&PATH, us));
            }
            law.on_loss(&loss(10, 24, LossCause::Nack));
            assert_eq!(law.actions().quick_adapts, 0);
            // The period is over, with a loss in it. This acknowledgement counts, too; the first one, which began the period,
            // does not.
            law.on_ack(&Ack { in_flight: Bytes::new(100_000), ..marked(&PATH, 25) });
            assert_eq!(law.actions().quick_adapts, acts);
            let expected = if acts == 1 { packets * 4_096 } else { 175_000 };
            assert_eq!(window(&law), expected);
            assert_eq!(law.adapt.ignores.get(), acts * 100_000);
        }
    }

    /// A delay over four targets triggers Quick Adapt as a loss does; without either it does not act.
    #[test]
    fn an_extreme_delay_triggers_quick_adapt() {
        for (delay_us, acts) in [(42, 0), (43, 1)] {
            let mut law = law(|_| {});
            law.on_ack(&marked(&PATH, 0));
            law.on_ack(&queued(25, Span::from_us(delay_us), true));
            assert_eq!(law.actions().quick_adapts, acts, "{delay_us} us");
        }
    }

    /// After Quick Adapt, feedback on the packets then in flight is ignored: neither marks nor losses cut, and nothing
    /// grows.
    #[test]
    fn feedback_on_the_old_flight_is_ignored() {
        for unmarked_too in [true, false] {
            let mut law = law(|params| params.qa_ignores_unmarked = unmarked_too);
            law.on_ack(&marked(&PATH, 0));
            law.on_loss(&Loss { in_flight: Bytes::new(10 * 4_096), ..loss(10, 25, LossCause::Nack) });
            assert_eq!((law.actions().quick_adapts, window(&law)), (1, 4_096));
            for us in 26..35 {
                law.on_ack(&ack(&PATH, us));
                law.on_ack(&Ack { acked: Bytes::ZERO, ..marked(&PATH, us) });
            }
            assert_eq!(window(&law) == 4_096, unmarked_too);
            let before = window(&law);
            law.on_loss(&loss(10, 36, LossCause::Nack));
            assert_eq!(window(&law), before);
            // All feedback has arrived: the next packet counts again.
            for us in 40..60 {
                law.on_ack(&ack(&PATH, us));
            }
            assert!(window(&law) > before);
        }
    }

    #[test]
    fn losses_are_subtracted_from_the_window() {
        for cause in [LossCause::Reordered, LossCause::Nack, LossCause::Timeout] {
            let mut law = law(|_| {});
            law.on_loss(&loss(0, 20, cause));
            assert_eq!((window(&law), law.actions().loss_cuts), (175_000 - 4_096, 1));
        }
    }

    #[test]
    fn a_new_base_rtt_moves_target_and_scale() {
        let mut law = law(|_| {});
        law.on_notification(&Notification::BaseRtt(Span::from_us(28)));
        assert_eq!((law.target, law.scale.ppm()), (Span::from_us(21), 2_333_333));
        assert_eq!(window(&law), 175_000);
    }

    /// Flows that begin one after another share a link that marks from the target on, and their queue stays about there: the
    /// backlog of the target is 131 kB.
    #[test]
    fn the_queue_stays_near_the_target_and_shares_are_equal() {
        let target = Bytes::new(131_250);
        let link = TestbedLink {
            rate: Rate::from_gbps(100),
            mark_over: target,
            drop_over: Bytes::new(1 << 22),
            phantom: None,
        };
        let mut bed = Testbed::new(link);
        for flow in 0..4 {
            bed.add(Nscc::new(&PATH, Params::for_path(&PATH)), &PATH, Time::from_us(200 * flow));
        }
        bed.run(Time::from_ms(10));
        let before: Vec<_> = (0..4).map(|flow| bed.delivered(flow)).collect();
        bed.forget_backlog();
        bed.run(Time::from_ms(20));
        let shares: Vec<f64> = (0..4).map(|flow| (bed.delivered(flow) - before[flow]).get() as f64).collect();
        let used = shares.iter().sum::<f64>() * 8.0 / 0.010 / 1e9;
        std::println!("{shares:?} B, {used} Gb/s, backlog {:?}", bed.backlog);
        assert!(jain(&shares) > 0.99, "{shares:?}");
        assert!(used > 99.9, "{used} Gb/s of 100");
        assert!(bed.backlog.0 < target.ratio(5, 4) && bed.backlog.1 > target.ratio(3, 4), "{:?}", bed.backlog);
    }

    proptest! {
        /// A longer delay never means a larger window, marked or not, where none is over the target.
        #[test]
        fn a_longer_delay_never_helps(delays in proptest::collection::vec((0..10_500i64, any::<bool>()), 1..80), more in 0..10_500i64) {
            let run = |more: i64| {
                let mut law = law(|params| params.quick_adapt = false);
                for (us, &(ns, is_marked)) in (0..).zip(&delays) {
                    law.on_ack(&queued(us, Span::from_ns((ns + more).min(10_499)), is_marked));
                }
                window(&law)
            };
            prop_assert!(run(more) <= run(0));
        }
    }
}
