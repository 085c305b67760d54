//! Vegas: keep a few packets of the flow's own in the bottleneck's queue, as estimated from the RTT. Brakmo, O'Malley and
//! Peterson, "TCP Vegas", SIGCOMM 1994, §3.2 and §3.3, in the form of Linux's `tcp_vegas`, which the papers that compare with
//! Vegas run: one decision a round trip, from the smallest RTT of that round trip; slow start doubles every round trip and
//! not every other one; a round trip with two samples or fewer grows as `NewReno`. Loss and timeout are `NewReno`'s. Left
//! out: the paper's finer retransmission timer, which belongs to the host, and its bandwidth check in slow start, which Linux
//! leaves out too. State is over 104 bytes, so a kernel needs socket storage for it.

use units::{Bytes, Frac, Span, Time, mul_div};

use crate::info::LawInfo;
use crate::params::{parameters, range};
use crate::{
    Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, RecoveryPeriod, Round, SendLimits, SlowStart, Window,
};

/// Number of samples in a round trip up to which their minimum is unreliable: one delayed acknowledgement would
/// determine it.
const FEW: u32 = 2;

/// The largest setting of a threshold, in packets.
const MAX_PACKETS: u64 = 1_000_000;

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Packets of its own in the queue under which a flow adds one a round trip (alpha); at most `beta`.
    alpha: Count = 2, "2", 0, MAX_PACKETS;
    /// Packets of its own in the queue over which a flow takes one away a round trip (beta).
    beta: Count = 4, "4", 0, MAX_PACKETS;
    /// Packets of its own in the queue over which slow start ends (gamma).
    gamma: Count = 1, "1", 0, MAX_PACKETS;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "vegas",
    title: "Vegas",
    summary: "keeps a few packets of its own in the queue, by the smallest RTT of each round trip",
    source: "Brakmo et al. (SIGCOMM 1994), §3; the form of Linux's tcp_vegas",
    signals: "delay, loss",
    pairs: &[("alpha", "beta")],
    linux: Some("vegas"),
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Vegas {
    params: Params,
    window: Window,
    slow_start: SlowStart,
    episode: RecoveryPeriod,
    round: Round,
    base_rtt: Span,      // baseRTT: the smallest sample; Span::MAX before the first sample
    round_min_rtt: Span, // of packets sent after the last loss
    samples: u32,        // in this round
    last_loss: Time,
    actions: LawActions,
}

impl Vegas {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        Self {
            params,
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            slow_start: SlowStart::new(),
            episode: RecoveryPeriod::new(),
            round: Round::new(),
            base_rtt: Span::MAX,
            round_min_rtt: Span::MAX,
            samples: 0,
            last_loss: Time::ZERO,
            actions: LawActions::default(),
        }
    }

    fn observe_rtt(&mut self, ack: &Ack) {
        self.base_rtt = self.base_rtt.min(ack.rtt);
        if ack.sent_at >= self.last_loss {
            self.round_min_rtt = self.round_min_rtt.min(ack.rtt);
            self.samples += 1;
        }
    }

    /// Adjusts the window after a round trip, by its samples.
    fn adjust(&mut self, ack: &Ack) {
        let (cwnd, mss) = (self.window.bytes(), self.window.floor());
        let (rtt, base) = (self.round_min_rtt.unsigned_ps(), self.base_rtt.unsigned_ps());
        // diff = cwnd * (rtt - base) / base, in whole packets; rtt >= base, and cwnd under 2^40.
        let diff = mul_div(cwnd.get(), rtt - base, base.max(1)) / mss.get();
        if self.slow_start.is_on(&self.window) {
            if diff > self.params.gamma {
                // cwnd <- min(cwnd, cwnd * base / rtt + 1): the BDP of the path without a queue.
                self.window.set((cwnd.ratio(base, rtt.max(1)) + mss).min(cwnd));
                self.slow_start.leave(&self.window);
                self.actions.cuts += 1;
            } else if !ack.app_limited {
                self.grow(ack);
            }
        } else if diff > self.params.beta {
            self.actions.cuts += u64::from(self.window.shrink(mss));
            self.slow_start.leave(&self.window);
        } else if diff < self.params.alpha && !ack.app_limited {
            self.actions.increases += u64::from(self.window.open(mss));
        }
        // Vegas itself goes no lower than two packets; only a timeout does.
        self.window.set(self.window.bytes().max(mss.times(2)));
    }

    /// Slow start, then a packet a round trip.
    fn grow(&mut self, ack: &Ack) {
        let before = self.window.bytes();
        let rest = self.slow_start.grow(&mut self.window, ack.acked);
        self.window.increase(self.window.floor(), rest);
        self.actions.increases += u64::from(self.window.bytes() > before);
    }
}

impl ControlLaw for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        self.observe_rtt(ack);
        if self.round.is_over(ack) {
            if self.samples > FEW {
                self.adjust(ack);
            } else if !ack.app_limited {
                self.grow(ack);
            }
            self.round.restart(ack);
            self.round_min_rtt = Span::MAX;
            self.samples = 0;
        } else if self.slow_start.is_on(&self.window) && !ack.app_limited {
            self.grow(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        if response.apply(&mut self.window, &mut self.slow_start, Frac::HALF) {
            self.actions.loss_cuts += 1;
            // Packets sent before carry no information about the new window.
            self.last_loss = loss.now;
            self.round_min_rtt = Span::MAX;
            self.samples = 0;
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.slow_start.on_notification(notification, &mut self.window, self.params.initial_window);
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.slow_start.ended_at()
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.window.bytes())
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        let base_rtt = if self.base_rtt == Span::MAX { Span::ZERO } else { self.base_rtt };
        emit("base_rtt_ns", (base_rtt.unsigned_ps() / 1_000) as i64);
        emit("threshold_bytes", self.slow_start.threshold().min(Window::LIMIT).get() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testbed::{PATH, Testbed, TestbedLink, ack, jain, loss};
    use units::{Bytes, Rate};

    /// 100 Mb/s, 10 ms: a BDP of 83 packets.
    const WAN: PathInfo = PathInfo {
        base_rtt: Span::from_ms(10),
        intra_rtt: Span::from_us(200),
        line_rate: Rate::from_mbps(100),
        mss: Bytes::new(1_500),
    };

    fn law(change: impl Fn(&mut Params)) -> Vegas {
        let mut params = Params::for_path(&PATH);
        change(&mut params);
        Vegas::new(&PATH, params)
    }

    /// A round trip of `cwnd` packets which all met `queueing`; `round` counts from 0.
    fn round_trip(law: &mut Vegas, round: u64, queueing: Span) {
        let packets = law.send_limits().window.get() / PATH.mss.get();
        let (began, rest) = (Bytes::new(1 << 30).times(round), PATH.mss);
        for packet in 0..packets {
            let ack = ack(&PATH, 1_000 * round + packet);
            // All were sent in the previous round: only the first one's acknowledgement ends a round.
            law.on_ack(&Ack {
                rtt: PATH.base_rtt + queueing,
                delivered: began + rest.times(packet + 1),
                delivered_at_send: if packet == 0 { began } else { Bytes::ZERO },
                ..ack
            });
        }
    }

    /// A law of 20 packets out of slow start that knows the base RTT.
    fn settled(change: impl Fn(&mut Params)) -> Vegas {
        let mut law = law(|params| {
            params.initial_window = PATH.mss.times(40);
            change(params);
        });
        law.on_ack(&Ack { acked: Bytes::ZERO, ..ack(&PATH, 0) });
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(20));
        round_trip(&mut law, 1, Span::ZERO);
        law.window.set(PATH.mss.times(20));
        law
    }

    /// 20 packets over 14 us: 0.7 us of queueing is one packet of the flow's own (20 * 0.7 / 14).
    #[test]
    fn moves_by_a_packet_a_round_trip() {
        for (own_packets, change) in [(0, 1), (1, 1), (2, 0), (4, 0), (5, -1), (12, -1)] {
            let mut law = settled(|_| {});
            // The law reacts to a round trip when the next one begins.
            round_trip(&mut law, 2, Span::from_ns(700 * own_packets + 10));
            law.window.set(PATH.mss.times(20));
            round_trip(&mut law, 3, Span::from_ns(700 * own_packets + 10));
            let packets = law.send_limits().window.get() / PATH.mss.get();
            assert_eq!(packets as i64, 20 + change, "with {own_packets} packets in the queue");
        }
    }

    #[test]
    fn thresholds_scale() {
        for (own_packets, change) in [(19, 1), (20, 0), (40, 0), (41, -1)] {
            let mut law = settled(|params| (params.alpha, params.beta) = (20, 40));
            for round in 2..4 {
                law.window.set(PATH.mss.times(20));
                round_trip(&mut law, round, Span::from_ns(700 * own_packets + 10));
            }
            assert_eq!((law.send_limits().window.get() / PATH.mss.get()) as i64, 20 + change, "{own_packets}");
        }
    }

    #[test]
    fn slow_start_ends_at_the_path_bdp() {
        let mut law = law(|params| params.initial_window = PATH.mss.times(40));
        round_trip(&mut law, 0, Span::ZERO);
        let before = law.send_limits().window;
        round_trip(&mut law, 1, Span::from_us(14));
        // Twice the base RTT met by a whole round trip: the window was twice the BDP.
        round_trip(&mut law, 2, Span::from_us(14));
        assert!(!law.slow_start.is_on(&law.window));
        let after = law.send_limits().window.get();
        // It doubled to 80 and then to 160 packets on the way; 160 / 2 + 1.
        assert_eq!((before.get() / PATH.mss.get(), after / PATH.mss.get()), (80, 81));
    }

    #[test]
    fn a_loss_halves_and_a_timeout_starts_over() {
        let mut law = law(|_| {});
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(5));
        law.on_loss(&loss(30, 90, LossCause::Timeout));
        assert_eq!(law.send_limits().window, PATH.mss);
        assert!(law.slow_start.is_on(&law.window));
        assert_eq!(law.actions().loss_cuts, 2);
    }

    /// Before a round trip has three samples, `NewReno` decides: a packet a round trip.
    #[test]
    fn few_samples_fall_back_to_newreno() {
        let mut law = law(|params| params.initial_window = PATH.mss.times(4));
        law.on_loss(&loss(0, 20, LossCause::Reordered));
        assert_eq!(law.send_limits().window, PATH.mss.times(2));
        for round in 2..6u64 {
            let ack = ack(&PATH, 1_000 * round);
            law.on_ack(&Ack { rtt: PATH.base_rtt + Span::from_ms(1), delivered_at_send: ack.delivered, ..ack });
        }
        assert!(law.send_limits().window > PATH.mss.times(3), "{:?}", law.send_limits());
        assert_eq!(law.actions().cuts, 0);
    }

    /// Creates flows that all measure an empty path first: initial windows of 10 packets, 1.2 ms each, one after another.
    fn bed(flows: u64, scale: u64) -> Testbed<Vegas> {
        let link =
            TestbedLink { rate: WAN.line_rate, mark_over: Bytes::MAX, drop_over: Bytes::new(1 << 30), phantom: None };
        let mut bed = Testbed::new(link);
        for flow in 0..flows {
            let params = Params { alpha: 2 * scale, beta: 4 * scale, ..Params::for_path(&WAN) };
            bed.add(Vegas::new(&WAN, params), &WAN, Time::from_us(1_300 * flow));
        }
        bed
    }

    /// Brakmo §3.2: each flow keeps between alpha and beta packets in the queue, so the link is busy.
    #[test]
    fn flows_keep_alpha_to_beta_packets_queued() {
        for (flows, scale) in [(1, 1), (4, 1), (4, 10)] {
            let mut bed = bed(flows, scale);
            bed.run(Time::from_ms(30_000));
            bed.forget_backlog();
            let all = |bed: &Testbed<Vegas>| (0..flows as usize).map(|flow| bed.delivered(flow).get()).sum::<u64>();
            let before = all(&bed);
            bed.run(Time::from_ms(40_000));
            let used = (all(&bed) - before) as f64 * 8.0 / 10.0 / 100e6;
            let (max_queue, min_queue) = (bed.backlog.0.get() as f64 / 1_500.0, bed.backlog.1.get() as f64 / 1_500.0);
            let (alpha, beta) = ((2 * scale * flows) as f64, (4 * scale * flows) as f64);
            assert!(used > 0.99, "{flows} flows use {used}");
            // A flow's diff is its part of the queue times RTT / base; all diffs are q (1 + q / BDP). Each is between alpha
            // and, rounded down, beta; the queue of one instant is a packet a flow off that of the round trip.
            let [max_queue, min_queue] =
                [max_queue, min_queue].map(|q| q * (1.0 + q * 1_500.0 / WAN.bdp().get() as f64));
            let n = flows as f64;
            assert!(
                min_queue >= alpha - 2.0 * n && max_queue <= beta + 2.0 * n,
                "{min_queue} to {max_queue}, {alpha} to {beta}"
            );
        }
    }

    /// Rates are proportional to queued packets if all flows know the path's base RTT: within beta / alpha of each
    /// other.
    #[test]
    fn equal_flows_share_within_alpha_and_beta() {
        let mut bed = bed(4, 1);
        bed.run(Time::from_ms(60_000));
        let before: [Bytes; 4] = core::array::from_fn(|flow| bed.delivered(flow));
        bed.run(Time::from_ms(80_000));
        let shares: [f64; 4] = core::array::from_fn(|flow| (bed.delivered(flow) - before[flow]).get() as f64);
        // Jain's index of (5, 2, 2, 2), the worst that whole packets allow, is 0.82.
        assert!(jain(&shares) > 0.82, "{shares:?}");
    }
}
