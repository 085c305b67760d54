//! Copa: aim at a rate of 1 / (delta * queueing delay), and step towards it ever faster while the direction holds.
//! Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, §2.
//!
//! A single loss changes nothing in the default mode (§2: the target knows delay only); the competitive mode (§2.2), off by
//! default, halves 1/delta. After a timeout, which the paper does not cover, the window is one packet, in slow start. The
//! paper bounds no velocity; here the window at most doubles or halves a round trip. State is over 104 bytes, so a kernel
//! needs socket storage for it.

use units::{Bytes, Frac, Rate, Span, Time, mul_div, mul_saturating};

use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::recent::Recent;
use crate::window::share;
use crate::{
    Ack, ControlLaw, LawActions, Loss, LossResponse, Notification, PathInfo, RecoveryPeriod, Round, SendLimits, Window,
};

/// Rounds in one direction before the velocity doubles (§2.1, step 4).
const STEADY_ROUNDS: u32 = 3;
/// Fraction of the delay's range below which a queue is nearly empty (§2.2).
const NEARLY_EMPTY: Frac = Frac::ratio(1, 10);
/// Round trips over which the largest RTT is taken, and within which a queue should have been nearly empty (§2.2).
const SWING_ROUNDS: u32 = 4;
const PATIENCE_ROUNDS: u32 = 5;
/// Maximum of 1/delta in the competitive mode, in packets of the flow's own in the queue.
const MAX_INVERSE: Frac = Frac::from_bits(1 << 52);

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Weight of delay against rate (delta): a flow aims at 1/delta packets of its own in the queue.
    delta: Fraction = Frac::HALF, "0.5", Frac::millionths(1_000), Frac::from_bits(4 << 32);
    /// Length of the min RTT filter: time after which the smallest RTT expires (`RTTmin`).
    min_rtt_window: Span = Span::from_s(10), "10 s", range::SHORT, range::LONG;
    /// Competes by AIMD on 1/delta where the queue never empties (competitive mode, §2.2).
    competitive: Switch = false, "false", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "copa",
    title: "Copa",
    summary: "aims at a rate of one over delta times the queueing delay",
    source: "Arun and Balakrishnan (NSDI 2018), §2",
    signals: "delay, timeout; loss where it competes",
    ..LawInfo::of(Params::TABLE)
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum CopaDirection {
    Up,
    Down,
}

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Copa {
    params: Params,
    window: Window,
    slow_start: bool,
    competing: bool,
    direction: CopaDirection,
    steady_rounds: u32,      // in this direction
    velocity: u64,           // v, a power of two up to 2^32
    inverse: Frac,           // 1/delta
    carry: u64,              // of decreases
    smoothed: Span,          // srtt; zero before the first sample
    standing: Recent<false>, // RTTstanding, over srtt / 2
    min_rtt: Recent<false>,  // RTTmin, over 10 s
    max_rtt: Recent<true>,   // over four round trips
    nearly_empty: Time,      // when the queue last was
    round: Round,
    round_window: Bytes, // when this round began
    episode: RecoveryPeriod,
    actions: LawActions,
}

impl Copa {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let window = Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp));
        Self {
            round_window: window.bytes(),
            window,
            slow_start: true,
            competing: false,
            direction: CopaDirection::Up,
            steady_rounds: 0,
            velocity: 1,
            inverse: inverse(params.delta),
            carry: 0,
            smoothed: Span::ZERO,
            standing: Recent::new(),
            min_rtt: Recent::new(),
            max_rtt: Recent::new(),
            nearly_empty: Time::ZERO,
            round: Round::new(),
            episode: RecoveryPeriod::new(),
            actions: LawActions::default(),
            params,
        }
    }

    fn observe_rtt(&mut self, ack: &Ack) {
        if self.smoothed.is_zero() {
            self.smoothed = ack.rtt;
            self.nearly_empty = ack.now;
        } else {
            // srtt <- 7/8 srtt + 1/8 rtt (RFC 6298)
            self.smoothed = self.smoothed - self.smoothed.over(8) + ack.rtt.over(8);
        }
        self.standing.observe(ack.now, ack.rtt, self.smoothed.over(2));
        self.min_rtt.observe(ack.now, ack.rtt, self.params.min_rtt_window);
        if self.params.competitive {
            self.max_rtt.observe(ack.now, ack.rtt, self.smoothed.times(SWING_ROUNDS));
            self.detect_competitors(ack.now);
        }
    }

    /// The queueing delay: `d_q = RTTstanding - RTTmin`.
    fn queueing(&self) -> Span {
        (self.standing.get() - self.min_rtt.get()).max(Span::ZERO)
    }

    /// Competes once the queue has not been nearly empty for five round trips (§2.2).
    fn detect_competitors(&mut self, now: Time) {
        let swing = (self.max_rtt.get() - self.min_rtt.get()).max(Span::ZERO).unsigned_ps();
        if self.queueing().unsigned_ps() <= NEARLY_EMPTY.of(swing) {
            self.nearly_empty = now;
        }
        let competing = now.since(self.nearly_empty) > self.smoothed.times(PATIENCE_ROUNDS);
        if self.competing && !competing {
            self.inverse = inverse(self.params.delta);
        }
        self.competing = competing;
    }

    /// Returns whether the rate is below the target: `cwnd / RTTstanding <= 1 / (delta * d_q)`, in packets; in other
    /// words, at most 1/delta packets of the flow wait in the queue.
    fn is_below_target(&self) -> bool {
        let standing = self.standing.get().unsigned_ps().max(1);
        // The queue is no longer than RTTstanding, so this is under the window.
        let own = mul_div(self.window.bytes().get(), self.queueing().unsigned_ps(), standing);
        own <= self.window.floor().scaled(self.inverse).get()
    }

    /// v / delta packets a round trip, at most a window.
    fn step(&self) -> Bytes {
        let packets = self.window.floor().scaled(self.inverse).get();
        Bytes::new(mul_saturating(packets, self.velocity)).min(self.window.bytes())
    }

    /// Once a window: the velocity doubles while the direction holds, after three rounds of it (§2.1, step 4).
    fn end_round(&mut self, ack: &Ack) {
        let direction = if self.window.bytes() > self.round_window { CopaDirection::Up } else { CopaDirection::Down };
        if direction == self.direction {
            self.steady_rounds += 1;
            if self.steady_rounds >= STEADY_ROUNDS {
                self.velocity = (self.velocity * 2).min(1 << 32);
            }
        } else {
            self.direction = direction;
            self.steady_rounds = 0;
            self.velocity = 1;
        }
        if self.competing {
            self.inverse = (self.inverse + Frac::ONE).min(MAX_INVERSE);
        }
        self.round_window = self.window.bytes();
        self.round.restart(ack);
    }
}

/// 1/delta, at most 1000.
const fn inverse(delta: Frac) -> Frac {
    Frac::ratio(Frac::ONE.bits(), delta.bits())
}

impl ControlLaw for Copa {
    fn on_ack(&mut self, ack: &Ack) {
        self.observe_rtt(ack);
        if self.round.is_over(ack) && !self.slow_start {
            self.end_round(ack);
        }
        let before = self.window.bytes();
        if self.is_below_target() {
            if ack.app_limited {
                return;
            }
            if self.slow_start {
                self.window.open(ack.acked);
            } else {
                // cwnd <- cwnd + v / (delta * cwnd)
                self.window.increase(self.step(), ack.acked);
            }
            self.actions.increases += u64::from(self.window.bytes() > before);
        } else {
            if self.slow_start {
                self.slow_start = false;
                self.round_window = before;
                self.round.restart(ack);
            }
            // cwnd <- cwnd - v / (delta * cwnd)
            let step = self.step();
            let less = share(&mut self.carry, step, ack.acked, before);
            self.actions.cuts += u64::from(self.window.shrink(less.min(before.ratio(1, 2))));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if self.competing && response != LossResponse::Ignore {
            self.inverse = self.inverse.half().max(inverse(self.params.delta));
            self.actions.loss_cuts += 1;
        }
        if matches!(response, LossResponse::Collapse | LossResponse::CollapseAgain) {
            self.window.collapse();
            self.slow_start = true;
            self.steady_rounds = 0;
            self.velocity = 1;
            self.actions.loss_cuts += u64::from(!self.competing);
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            self.window.follow(mss);
        }
    }

    fn send_limits(&self) -> SendLimits {
        let window = self.window.bytes();
        if self.smoothed.is_zero() {
            return SendLimits::window(window);
        }
        // Twice the rate, so that the window is the limit and bursts are short (§2.1).
        let pacing = Rate::of(window.times(2), self.standing.get());
        SendLimits { window, pacing: pacing.max(Rate::of(self.window.floor(), Span::from_s(1))) }
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        let known = |span: Span| if span == Span::MAX { 0 } else { (span.unsigned_ps() / 1_000) as i64 };
        emit("min_rtt_ns", known(self.min_rtt.get()));
        emit("standing_rtt_ns", known(self.standing.get()));
        emit("velocity", self.velocity as i64);
        emit("inverse_delta_ppm", self.inverse.ppm() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, Testbed, TestbedLink, ack, jain, loss};

    /// 100 Mb/s, 20 ms: a BDP of 167 packets.
    const WAN: PathInfo = PathInfo {
        base_rtt: Span::from_ms(20),
        intra_rtt: Span::from_us(200),
        line_rate: Rate::from_mbps(100),
        mss: Bytes::new(1_500),
    };

    fn law(change: impl Fn(&mut Params)) -> Copa {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        Copa::new(&PATH, params)
    }

    fn late(ack: Ack, queueing: Span) -> Ack {
        Ack { now: ack.now + queueing, rtt: ack.rtt + queueing, ..ack }
    }

    /// Returns a law after slow start with a window of `packets` and a latest queueing delay of `queueing`.
    fn settled(packets: u64, queueing: Span) -> Copa {
        let mut law = law(|_| {});
        law.on_ack(&ack(&PATH, 0));
        law.slow_start = false;
        law.window.set(PATH.mss.times(packets));
        law.round_window = law.window.bytes();
        // More than srtt / 2 later, so that RTTstanding is current.
        law.on_ack(&Ack { acked: Bytes::ZERO, delivered_at_send: Bytes::ZERO, ..late(ack(&PATH, 20), queueing) });
        law.window.set(PATH.mss.times(packets));
        law
    }

    /// §2.1: with delta 1/2 a flow aims at two packets of its own in the queue.
    #[test]
    fn steps_towards_two_packets_in_the_queue() {
        // 20 packets over 14 us + d: own packets are 20 d / (14 + d), two at d = 1.556 us.
        for (queueing, up) in [(1_500, true), (1_600, false)] {
            let law = settled(20, Span::from_ns(queueing));
            assert_eq!(law.is_below_target(), up, "{queueing} ns");
        }
    }

    /// v / delta = two packets a round trip at v = 1: 20 packets acknowledged one by one.
    #[test]
    fn a_round_trip_moves_two_packets() {
        for (queueing, change) in [(Span::from_ns(100), 2.0), (Span::from_us(10), -2.0)] {
            let mut law = settled(20, queueing);
            for packet in 0..20 {
                let ack = late(ack(&PATH, 21 + packet), queueing);
                law.on_ack(&Ack { delivered_at_send: Bytes::ZERO, ..ack });
            }
            let moved = (law.send_limits().window.get() as f64 - 20.0 * 4_096.0) / 4_096.0;
            // The denominator moves with the window: 2 by the logarithm, within a tenth.
            assert!((moved - change).abs() < 0.21, "{moved} for {change}");
        }
    }

    #[test]
    fn the_velocity_doubles_after_three_rounds_in_one_direction() {
        let mut law = settled(100, Span::ZERO);
        let mut seen = [0; 7];
        for (round, velocity) in seen.iter_mut().enumerate() {
            law.window.open(PATH.mss);
            law.round = Round::new();
            law.end_round(&ack(&PATH, 100 + round as u64));
            *velocity = law.velocity;
        }
        // The first round changes the direction to up, and three more keep it.
        assert_eq!(seen, [1, 1, 1, 2, 4, 8, 16]);
        law.window.shrink(PATH.mss);
        law.end_round(&ack(&PATH, 200));
        assert_eq!((law.velocity, law.direction), (1, CopaDirection::Down));
    }

    #[test]
    fn slow_start_doubles_until_the_target() {
        let mut law = law(|_| {});
        for us in 0..10 {
            law.on_ack(&ack(&PATH, us));
        }
        assert_eq!(law.send_limits().window, PATH.mss.times(20));
        for us in 30..40 {
            law.on_ack(&late(ack(&PATH, us), Span::from_us(20)));
        }
        assert!(!law.slow_start && law.send_limits().window < PATH.mss.times(20));
    }

    #[test]
    fn a_loss_is_ignored_and_a_timeout_starts_over() {
        let mut law = law(|_| {});
        law.on_ack(&ack(&PATH, 0));
        let before = law.send_limits();
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits(), before);
        law.on_loss(&loss(30, 60, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        assert_eq!(law.actions().loss_cuts, 1);
    }

    #[test]
    fn paces_at_twice_the_rate() {
        let mut law = law(|_| {});
        law.on_ack(&ack(&PATH, 0));
        assert_eq!(law.send_limits().pacing, Rate::of(PATH.mss.times(22), PATH.base_rtt));
    }

    #[test]
    fn the_min_rtt_expires() {
        let mut law = law(|params| params.min_rtt_window = Span::from_us(100));
        law.on_ack(&ack(&PATH, 0));
        for us in 1..200 {
            law.on_ack(&late(ack(&PATH, us), Span::from_us(7)));
        }
        assert_eq!(law.min_rtt.get(), Span::from_us(21));
    }

    /// §2.2: a queue that was nearly empty within five round trips has no buffer-filling competitor; otherwise AIMD on
    /// 1/delta.
    #[test]
    fn competes_where_the_queue_never_empties() {
        let mut law = law(|params| params.competitive = true);
        law.on_ack(&ack(&PATH, 0));
        for us in (10..2_000).step_by(10) {
            // Between 10 and 12 us of queue, never empty.
            law.on_ack(&late(ack(&PATH, us), Span::from_us(10 + us as i64 / 10 % 3)));
        }
        assert!(law.competing && law.inverse > Frac::from_bits(3 << 32), "{law:?}");
        let before = law.inverse;
        law.on_loss(&loss(1_990, 2_030, LossCause::Reordered));
        assert_eq!(law.inverse, before.half());
        for us in (2_030..2_200).step_by(10) {
            law.on_ack(&ack(&PATH, us));
        }
        assert!(!law.competing);
        assert_eq!(law.inverse, Frac::from_bits(2 << 32));
    }

    /// §2.3: a flow's queue swings between nearly nothing and about 2.5 / delta packets, alone or with others, so the
    /// link is used and shared evenly.
    #[test]
    fn flows_keep_a_short_queue_and_share() {
        for flows in [1, 2, 4usize] {
            let link = TestbedLink {
                rate: WAN.line_rate,
                mark_over: Bytes::MAX,
                drop_over: Bytes::new(1 << 30),
                phantom: None,
            };
            let mut bed = Testbed::new(link);
            for flow in 0..flows {
                bed.add(Copa::new(&WAN, Params::for_path(&WAN)), &WAN, Time::from_ms(500 * flow as u64));
            }
            bed.run(Time::from_ms(30_000));
            bed.forget_backlog();
            let before: [Bytes; 4] =
                core::array::from_fn(|flow| if flow < flows { bed.delivered(flow) } else { Bytes::ZERO });
            bed.run(Time::from_ms(60_000));
            let rates: [f64; 4] = core::array::from_fn(|flow| {
                if flow < flows { (bed.delivered(flow) - before[flow]).get() as f64 * 8.0 / 30.0 } else { 0.0 }
            });
            let used = rates.iter().sum::<f64>() / 100e6;
            let max_queue = bed.backlog.0.get() as f64 / 1_500.0;
            assert!(used > 0.95, "{flows} flows use {used}");
            assert!(jain(&rates[..flows]) > 0.95, "{rates:?}");
            // 2.5 / delta is 5 packets a flow; twice that with bursts at twice the rate.
            assert!(max_queue < 12.0 * flows as f64, "{max_queue} packets with {flows} flows");
        }
    }
}
