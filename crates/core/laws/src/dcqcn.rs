//! DCQCN's reaction point: cut the rate when a notification of marks arrives, then recover by timer and byte counter. Zhu et
//! al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015), §3.1 and §3.3.
//!
//! The defaults are the paper's: each notification cuts at once. With `decrease_interval` set, notifications only raise flags
//! that timers read, as NICs and HPCC's simulator do. A switch's direct notification (LSCC) is a notification like any other.
//! Losses change nothing: the network is taken to be lossless.
//!
//! Timers that could change nothing do not run: `alpha` decays when it is needed, cuts are timed only while one is pending,
//! and the increase timer is off at line rate.

use units::{Bytes, Frac, Rate, Span, Time};

use crate::info::{EcnSupport, LawInfo};
use crate::limits::{Limits, RateWindow};
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, Cookie, LawActions, Loss, Notification, PathInfo, SendLimits, Sent};

parameters! { path;
    /// Initial and maximum rate.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(10), "10 Mb/s", range::SLOW, range::FAST;
    /// Weight of the newest sample in the average of congestion (g).
    alpha_gain: Fraction = Frac::ratio(1, 256), "1/256", Frac::ZERO, Frac::ONE;
    /// Time without notification after which the average decays (K).
    alpha_timer: Span = Span::from_us(55), "55 us", range::SHORT, range::LONG;
    /// Interval at which notifications are checked for a cut; 0: each notification cuts at once.
    decrease_interval: Span = Span::ZERO, "0", Span::ZERO, range::LONG;
    /// Time between two increases (T).
    increase_timer: Span = Span::from_us(55), "55 us", range::SHORT, range::LONG;
    /// Payload sent between two increases (B); 0 for none.
    byte_counter: Bytes = Bytes::new(10_000_000), "10 MB", Bytes::ZERO, range::WINDOW;
    /// Increases after a cut that only return towards the rate before it (fast recovery, F).
    fast_recovery_stages: Count = 5, "5", 0, 1_000_000;
    /// Additive increase of the target (`R_AI`).
    additive: Rate = Rate::from_mbps(40), "40 Mb/s", range::ZERO_RATE, range::FAST;
    /// Hyper increase of the target (`R_HAI`).
    hyper: Rate = Rate::from_mbps(400), "400 Mb/s, ten times R_AI", range::ZERO_RATE, range::FAST;
    /// Sets the target to the rate before each cut; off: only if there was an increase since the last cut.
    clamp_target: Switch = true, "true", false, true;
    /// Share of the rate that is left after the first notification, before any cut.
    rate_on_first_cnp: Fraction = Frac::ONE, "1", Frac::ZERO, Frac::ONE;
    /// Treats marked ACKs as notifications, too.
    cnp_from_acks: Switch = false, "false", false, true;
    /// Limits the bytes in flight by a window.
    windowed: Switch = false, "false", false, true;
    /// Window at line rate, with `windowed`.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Scales the window in proportion to the rate; off: it stays at `window`.
    window_scales: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "dcqcn",
    title: "DCQCN",
    summary: "cuts the rate at each notification of marks, then recovers by timer and byte counter",
    source: "Zhu et al. (SIGCOMM 2015), §3; variants of HPCC's simulator",
    signals: "congestion notifications, direct ones too; ECN in acknowledgements if switched on",
    marks: EcnSupport::If("cnp_from_acks"),
    notified: true,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Dcqcn {
    params: Params,
    limits: Limits,
    rate: Rate,   // R_C
    target: Rate, // R_T
    alpha: Frac,
    alpha_due: Time, // next update of alpha; not set before the first notification
    cut_due: Time,   // next check of `cut_pending`
    grow_due: Time,  // expiry of the increase timer; not set while it could change nothing
    notified: bool,  // since the last update of alpha
    cut_pending: bool,
    timer_stage: u32, // increases by timer since the last cut (T)
    byte_stage: u32,  // by byte counter (BC)
    sent: u64,        // payload since the byte counter's last increase
    actions: LawActions,
}

/// Delay of the first check of the flag in HPCC's simulator, so that `alpha` is updated before the cut.
const AFTER_ALPHA: Span = Span::from_ns(1);

impl Dcqcn {
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
            target: limits.line(),
            alpha: Frac::ONE,
            alpha_due: Time::NEVER,
            cut_due: Time::NEVER,
            grow_due: Time::NEVER,
            notified: false,
            cut_pending: false,
            timer_stage: 0,
            byte_stage: 0,
            sent: 0,
            actions: LawActions::default(),
        }
    }

    fn on_cnp(&mut self, now: Time) {
        self.on_timer(now); // the time that was due, so that no check of the flag is skipped
        let first = !self.alpha_due.is_set();
        if first {
            self.rate = self.limits.clamp(self.rate.scaled(self.params.rate_on_first_cnp));
            self.target = self.rate;
        } else {
            self.decay_alpha(now);
        }
        if self.params.decrease_interval.is_zero() {
            self.cut(now);
            // alpha <- (1 - g) * alpha + g                          (eq. 1)
            self.alpha = self.alpha.ewma(Frac::ONE, self.params.alpha_gain);
            self.alpha_due = now.saturating_add(self.params.alpha_timer);
            return;
        }
        if first {
            self.alpha_due = now.saturating_add(self.params.alpha_timer);
            self.cut_due = now.saturating_add(self.params.decrease_interval).saturating_add(AFTER_ALPHA);
        } else {
            self.notified = true;
            self.cut_due = next_tick(self.cut_due, self.params.decrease_interval, now);
        }
        self.cut_pending = true;
    }

    /// Applies the updates of `alpha` that are due by `now`.
    fn decay_alpha(&mut self, now: Time) {
        while self.alpha_due <= now {
            // alpha <- (1 - g) * alpha, where no notification came for K    (eq. 2)
            let sample = if self.notified { Frac::ONE } else { Frac::ZERO };
            let next = self.alpha.ewma(sample, self.params.alpha_gain);
            if !self.notified && next == self.alpha {
                break; // unchanged, as after every later step
            }
            self.alpha = next;
            self.notified = false;
            self.alpha_due = self.alpha_due.saturating_add(self.params.alpha_timer);
        }
        self.alpha_due = next_tick(self.alpha_due, self.params.alpha_timer, now);
    }

    fn cut(&mut self, now: Time) {
        let before = self.rate;
        // R_T <- R_C; R_C <- R_C * (1 - alpha / 2)                  (eq. 1)
        if self.params.clamp_target || self.timer_stage != 0 || self.byte_stage != 0 {
            self.target = before;
        }
        self.rate = self.limits.clamp(before.scaled(self.alpha.half().complement()));
        self.timer_stage = 0;
        self.byte_stage = 0;
        self.sent = 0;
        self.grow_due = now.saturating_add(self.params.increase_timer);
        self.actions.cuts += u64::from(self.rate < before);
    }

    /// Figure 7: fast recovery, additive increase or hyper increase. Returns whether another one could change anything.
    fn grow(&mut self) -> bool {
        let (max_stage, min_stage) = if self.params.byte_counter.is_zero() {
            (self.timer_stage, self.timer_stage)
        } else {
            (self.timer_stage.max(self.byte_stage), self.timer_stage.min(self.byte_stage))
        };
        let (rate, target, recovery) = (self.rate, self.target, self.params.fast_recovery_stages);
        if u64::from(max_stage) >= recovery {
            // R_T <- R_T + R_AI                                     (eq. 4)
            let step = if u64::from(min_stage) > recovery { self.params.hyper } else { self.params.additive };
            self.target = self.limits.raised(target, step);
        }
        // R_C <- (R_T + R_C) / 2, each half in whole bits a second  (eq. 3)
        self.rate = self.limits.clamp(Rate::from_bps(rate.bps() / 2 + self.target.bps() / 2));
        self.actions.increases += u64::from(self.rate > rate);
        (self.rate, self.target) != (rate, target) || target != self.limits.line()
    }
}

/// The first of `due`, `due + period`, ... after `now`; `due` itself if that is later than now.
fn next_tick(due: Time, period: Span, now: Time) -> Time {
    if due > now {
        return due;
    }
    let period = period.unsigned_ps().max(1);
    let late = now.since(due).unsigned_ps();
    Time::from_ps(now.ps().saturating_add(period - late % period))
}

impl ControlLaw for Dcqcn {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        self.sent = self.sent.saturating_add(sent.bytes.get());
        Cookie::NONE
    }

    fn on_ack(&mut self, ack: &Ack) {
        let counter = self.params.byte_counter.get();
        if counter > 0 && self.sent >= counter {
            self.sent %= counter;
            if self.alpha_due.is_set() {
                self.grow();
                self.byte_stage = self.byte_stage.saturating_add(1);
            }
        }
        if self.params.cnp_from_acks && !ack.marked.is_zero() {
            self.on_cnp(ack.now);
        }
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::Cnp { now } | Notification::DirectCnp { now } => self.on_cnp(now),
            Notification::Mss(mss) => self.limits.follow(mss),
            _ => {}
        }
    }

    fn reads_direct_cnps(&self) -> bool {
        true
    }

    /// Applies an increase before a cut that is due at the same time: its timer was set earlier.
    fn on_timer(&mut self, now: Time) {
        while self.next_timer() <= now {
            if self.cut_pending && self.cut_due < self.grow_due {
                let at = self.cut_due;
                self.decay_alpha(at);
                self.cut(at);
                self.cut_pending = false;
                self.cut_due = at.saturating_add(self.params.decrease_interval);
            } else {
                let at = self.grow_due;
                self.grow_due = if self.grow() { at.saturating_add(self.params.increase_timer) } else { Time::NEVER };
                self.timer_stage = self.timer_stage.saturating_add(1);
            }
        }
    }

    fn next_timer(&self) -> Time {
        if self.cut_pending { self.grow_due.min(self.cut_due) } else { self.grow_due }
    }

    fn send_limits(&self) -> SendLimits {
        self.limits.send_limits(self.rate)
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
        emit("rate_bps", self.rate.bps() as i64);
        emit("target_bps", self.target.bps() as i64);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::Window;
    use crate::testbed::{PATH, ack, marked};
    use proptest::prelude::*;
    use std::vec::Vec;

    fn law(change: impl Fn(&mut Params)) -> Dcqcn {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        Dcqcn::new(&PATH, params)
    }

    /// HPCC's simulator at 100 Gb/s, `run.py --cc dcqcn`.
    fn simulated(params: &mut Params) {
        params.min_rate = Rate::from_gbps(1);
        params.alpha_timer = Span::from_us(1);
        params.decrease_interval = Span::from_us(4);
        params.increase_timer = Span::from_us(300);
        params.byte_counter = Bytes::ZERO;
        params.fast_recovery_stages = 1;
        params.additive = Rate::from_mbps(20);
        params.hyper = Rate::from_mbps(200);
        params.clamp_target = false;
        params.cnp_from_acks = true;
    }

    fn cnp(law: &mut Dcqcn, now: Time) {
        fire_timer(law, now);
        law.on_notification(&Notification::Cnp { now });
    }

    fn fire_timer(law: &mut Dcqcn, now: Time) {
        while law.next_timer() <= now {
            law.on_timer(law.next_timer());
        }
    }

    /// Rates in units of 10 kb/s at each firing of the timer until `end`.
    fn rates(law: &mut Dcqcn, end: u64) -> Vec<(u64, u64)> {
        let mut seen = Vec::new();
        while law.next_timer() <= Time::from_us(end) {
            let now = law.next_timer();
            law.on_timer(now);
            seen.push((now.ns() / 1_000, law.rate.bps() / 10_000));
        }
        seen
    }

    #[test]
    fn nothing_happens_without_notifications() {
        let mut law = law(|_| {});
        assert_eq!(law.send_limits(), SendLimits { window: Window::LIMIT, pacing: Rate::from_gbps(100) });
        assert_eq!(law.next_timer(), Time::NEVER);
        law.on_sent(&Sent { now: Time::ZERO, bytes: Bytes::new(1 << 30), in_flight: PATH.mss, retransmission: false });
        law.on_ack(&marked(&PATH, 0));
        assert_eq!((law.rate, law.actions), (Rate::from_gbps(100), LawActions::default()));
    }

    /// The paper's first rounds, by hand: two notifications 50 us apart halve twice, then recovery by timer only.
    #[test]
    fn the_first_rounds() {
        let mut law = law(|params| params.byte_counter = Bytes::ZERO);
        cnp(&mut law, Time::from_us(0));
        assert_eq!((law.rate, law.target), (Rate::from_gbps(50), Rate::from_gbps(100)));
        cnp(&mut law, Time::from_us(50));
        assert_eq!((law.rate, law.target, law.alpha), (Rate::from_gbps(25), Rate::from_gbps(50), Frac::ONE));
        // Five halvings of the way to 50 Gb/s, then 50.04 Gb/s, then twice 400 Mb/s more.
        let expected = [
            (105, 3_750_000),
            (160, 4_375_000),
            (215, 4_687_500),
            (270, 4_843_750),
            (325, 4_921_875),
            (380, 4_962_937),
            (435, 5_003_468),
            (490, 5_043_734),
        ];
        assert_eq!(rates(&mut law, 490), expected);
        assert_eq!(law.target, Rate::from_mbps(50_840));
        // alpha decayed at 105, 160, ... 985: 17 times by 1/256 until the notification at 1 ms, which then adds 1/256.
        cnp(&mut law, Time::from_ms(1));
        let decayed = (255.0_f64 / 256.0).powi(17);
        assert!((law.alpha.ppm() as f64 / 1e6 - (decayed * 255.0 / 256.0 + 1.0 / 256.0)).abs() < 2e-6);
        assert_eq!(law.actions.cuts, 3);
    }

    #[test]
    fn hyper_increase_needs_both_counters() {
        let mut law = law(|_| {});
        let send = |law: &mut Dcqcn| {
            let bytes = Bytes::new(10_000_000);
            law.on_sent(&Sent { now: Time::ZERO, bytes, in_flight: PATH.mss, retransmission: false });
            law.on_ack(&ack(&PATH, 0));
        };
        cnp(&mut law, Time::from_us(0));
        cnp(&mut law, Time::from_us(1));
        cnp(&mut law, Time::from_us(2));
        // Five increases by timer, and the sixth is additive; the counters are at 6 and 0.
        fire_timer(&mut law, Time::from_us(2 + 6 * 55));
        assert_eq!(law.target, Rate::from_mbps(25_040));
        // The byte counter's first to seventh are additive as well; only then are both over F.
        for n in 2..=7 {
            send(&mut law);
            assert_eq!(law.target, Rate::from_mbps(25_000 + n * 40));
        }
        send(&mut law);
        assert_eq!((law.byte_stage, law.target), (7, Rate::from_mbps(25_680)));
    }

    #[test]
    fn a_direct_cnp_counts_as_a_cnp() {
        let mut law = law(|_| {});
        law.on_notification(&Notification::DirectCnp { now: Time::ZERO });
        assert_eq!(law.rate, Rate::from_gbps(50));
        law.on_notification(&Notification::BaseRtt(Span::from_us(1)));
        assert_eq!(law.actions.cuts, 1);
    }

    #[test]
    fn the_timer_is_off_at_line_rate() {
        let mut law = law(simulated);
        cnp(&mut law, Time::ZERO);
        fire_timer(&mut law, Time::from_ms(100));
        assert_eq!(law.next_timer(), Time::NEVER);
        assert!(law.rate.bps() >= 99_999_999_998, "{}", law.rate);
        cnp(&mut law, Time::from_ms(101));
        assert!(law.next_timer() <= Time::from_ms(101) + Span::from_us(4));
    }

    /// The simulator by hand: the first cut follows 4.001 us after the first mark, after four updates of alpha.
    #[test]
    fn the_simulator_s_first_cut() {
        let mut law = law(simulated);
        law.on_ack(&Ack { now: Time::from_us(10), ..marked(&PATH, 0) });
        assert_eq!((law.next_timer(), law.rate), (Time::from_ns(14_001), Rate::from_gbps(100)));
        law.on_timer(Time::from_ns(14_001));
        let alpha = (255.0_f64 / 256.0).powi(4);
        assert!((law.rate.bps() as f64 / (100e9 * (1.0 - alpha / 2.0)) - 1.0).abs() < 1e-8);
        assert_eq!((law.target, law.next_timer()), (Rate::from_gbps(100), Time::from_ns(314_001)));
    }

    #[test]
    fn a_cnp_does_not_delay_a_cut_at_the_same_time() {
        let mut law = law(simulated);
        let marks = |law: &mut Dcqcn, ns| law.on_notification(&Notification::Cnp { now: Time::from_ns(ns) });
        marks(&mut law, 0);
        marks(&mut law, 4_001);
        assert_eq!((law.actions.cuts, law.next_timer()), (1, Time::from_ns(8_001)));
    }

    #[test]
    fn the_window_follows_the_rate() {
        let mut law = law(|params| params.windowed = true);
        assert_eq!(law.send_limits().window, PATH.bdp());
        cnp(&mut law, Time::ZERO);
        assert_eq!(law.send_limits().window, Bytes::new(87_500));
    }

    /// The simulator's reaction point as it is written: every timer runs, in floats.
    struct Reference {
        alpha: f64,
        rate: u64,
        target: u64,
        stage: u32,
        flags: (bool, bool),
        timers: [Option<u64>; 3], // increase, alpha, decrease, in ps
    }

    impl Reference {
        fn cnp(&mut self, now: u64) {
            self.flags = (true, true);
            if self.timers[1].is_none() {
                self.alpha = 1.0;
                self.flags.0 = false;
                self.timers[1] = Some(now + 1_000_000);
                self.timers[2] = Some(now + 4_001_000);
                self.target = self.rate;
            }
        }

        fn run(&mut self, until: u64) {
            loop {
                let due = (0..3).filter_map(|i| self.timers[i].map(|at| (at, i))).min();
                let Some((now, timer)) = due.filter(|due| due.0 <= until) else { return };
                match timer {
                    0 => {
                        if self.stage > 0 {
                            let step = if self.stage == 1 { 20_000_000 } else { 200_000_000 };
                            self.target = (self.target + step).min(100_000_000_000);
                        }
                        self.rate = self.rate / 2 + self.target / 2;
                        self.stage += 1;
                        self.timers[0] = Some(now + 300_000_000);
                    }
                    1 => {
                        self.alpha = self.alpha * 255.0 / 256.0 + if self.flags.0 { 1.0 / 256.0 } else { 0.0 };
                        self.flags.0 = false;
                        self.timers[1] = Some(now + 1_000_000);
                    }
                    _ => {
                        self.timers[2] = Some(now + 4_000_000);
                        if self.flags.1 {
                            if self.stage != 0 {
                                self.target = self.rate;
                            }
                            self.rate = ((self.rate as f64 * (1.0 - self.alpha / 2.0)) as u64).max(1_000_000_000);
                            self.stage = 0;
                            self.flags.1 = false;
                            self.timers[0] = Some(now + 300_000_000);
                        }
                    }
                }
            }
        }
    }

    proptest! {
        /// Timers that do not run make no difference, for bursts of marks and silences of up to 2 ms.
        #[test]
        fn follows_the_simulator(gaps in proptest::collection::vec((0..7u32, 1..2_000_000u64), 1..200)) {
            let mut law = law(simulated);
            let mut reference = Reference {
                alpha: 1.0,
                rate: 100_000_000_000,
                target: 100_000_000_000,
                stage: 0,
                flags: (false, false),
                timers: [None; 3],
            };
            let mut now = 7u64;
            for (scale, gap) in gaps {
                // Marks do not coincide with timers, which expire at whole nanoseconds.
                now += (gap >> (3 * scale)) * 1_000 + 1;
                reference.run(now);
                cnp(&mut law, Time::from_ps(now));
                reference.cnp(now);
                let error = law.rate.bps().abs_diff(reference.rate) as f64 / reference.rate as f64;
                prop_assert!(error < 1e-6, "{} against {}", law.rate.bps(), reference.rate);
                prop_assert!(law.rate >= Rate::from_gbps(1) && law.rate <= PATH.line_rate);
            }
        }

        #[test]
        fn ticks_stay_on_their_grid(due in 0..1u64 << 40, period in 1..1i64 << 30, now in 0..1u64 << 50) {
            let tick = next_tick(Time::from_ps(due), Span::from_ps(period), Time::from_ps(now)).ps();
            prop_assert!(tick > now && (tick == due || tick <= now + period as u64));
            prop_assert_eq!(tick.abs_diff(due) % period as u64, 0);
        }
    }
}
