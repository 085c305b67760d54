//! On-Ramp held against its equations: what the lag of the feedback allows, and what the correction for it takes away
//! (Liu et al., "Breaking the Transience-Equilibrium Nexus", NSDI 2021, §3.1, §3.2, Figure 5).
//!
//! One flow with a window that never binds sends at s, its host's rate, over a bottleneck of c < s. While it sends, the
//! one-way delay grows by r = s / c - 1 of the time; while it is held, it falls by the time. Without other traffic the
//! rest of the delay, and B, the way back, are constant.

use crate::analytic_support::QueueSamples;
use crate::common;
use experiment::{FlowId, FlowSpec, OnRampConfig, Outcome, SeriesConfig, Setup};
use fabric::{LinkId, PortConfig};
use laws::catalog::{LawKind, ParamValue};
use laws::on_ramp::OnRampParams;
use units::{Bytes, Frac, Rate, Span, Time};

const DATA: Bytes = Bytes::new(4_160);
const OR_ACK: Bytes = Bytes::new(78);
const SENDER: Rate = Rate::from_gbps(10);

struct Case {
    setup: Setup,
    down: LinkId,
    /// A packet's time at the sender's rate and at the bottleneck's.
    service: [Span; 2],
    /// One-way delay with an empty queue.
    base: Span,
    /// From a packet's arrival to that of its OR-ACK.
    back: Span,
}

/// `flows` senders, each `delay` from the switch as is the receiver, and a bottleneck to that.
fn case(flows: u32, bottleneck: Rate, delay: Span, threshold: Span, strawman: bool) -> Case {
    let port = |rate| PortConfig::new(rate, delay);
    let receiver = (port(SENDER), port(bottleneck));
    let hosts = [vec![receiver], vec![(port(SENDER), port(SENDER)); flows as usize]].concat();
    let network = fabric::topology::single_switch(&fabric::topology::SingleSwitch { hosts }).unwrap();
    let spec = |src| FlowSpec { on_ramp: true, ..common::flow(src, 0, 1 << 40) };
    let mut setup = common::setup(network, (1..=flows).map(spec).collect(), Time::from_ms(20));
    let params = OnRampParams { threshold, gain: OnRampParams::GAIN, strawman };
    setup.host.on_ramp =
        Some(OnRampConfig { params, on_queueing_delay: false, ack_every: 1, ack_size: 78, memory: false });
    setup.host.rto_min = Some(Span::from_s(1));
    let up = setup.network.uplink(fabric::HostId(0));
    let down = setup.network.links()[up.index()].reverse;
    let flows = (0..flows).map(FlowId).collect();
    setup.series = SeriesConfig { interval: Span::from_us(1), ports: vec![down], flows, ..SeriesConfig::default() };
    let service = [SENDER, bottleneck].map(|rate| rate.tx_time(DATA));
    let base = delay.times(2) + service[0] + service[1];
    let back = delay.times(2) + SENDER.tx_time(OR_ACK).times(2);
    Case { setup, down, service, base, back }
}

impl Case {
    fn run(&self) -> Outcome {
        common::run(&self.setup, LawKind::Fixed, &[("window", ParamValue::Bytes(Bytes::new(1 << 30)))])
    }
}

fn trace(outcome: &Outcome, name: &str) -> Vec<i64> {
    let of = |sample: &experiment::FlowSample| sample.trace.iter().find(|(known, _)| *known == name).map(|it| it.1);
    outcome.flow_samples.iter().filter_map(of).collect()
}

/// The last OR-ACK received is of a packet that left a delay and B ago, at most a packet's time more, as packets are
/// indivisible. By eq. 4, where beta is at most 1, it holds the flow until the delay that it reported, less the pauses
/// since, is T; by eq. 2 for longer. The excess over T is the data that the flow has sent meanwhile, r of that time, so
/// with M for the largest delay
///
/// ```text
/// M <= T + r (M + B + two packets) + E
/// ```
///
/// where E is the time that eq. 4 subtracts wrongly: pauses that were asserted while a packet was on the NIC hold
/// nothing back.
#[test]
fn delay_exceeds_the_threshold_by_at_most_the_feedback_lag() {
    for strawman in [false, true] {
        for (gbps, delay, threshold) in [(8, 1, 40), (8, 20, 100), (9, 5, 60), (6, 1, 30)] {
            let threshold = Span::from_us(threshold);
            let case = case(1, Rate::from_gbps(gbps), Span::from_us(delay), threshold, strawman);
            let outcome = case.run();
            let r = case.service[1].ps() as f64 / case.service[0].ps() as f64 - 1.0;
            let ns = |span: Span| span.ps() as f64 / 1e3;
            // An OR-ACK may wait for an acknowledgement on each of its two links, and clocks are cut to nanoseconds.
            let waits = 2.0 * ns(SENDER.tx_time(Bytes::new(64))) + 1.0;
            // A packet's time until the next one leaves, and one for the part of a packet that its last one is.
            let lag = ns(case.back + case.service[0].times(2)) + waits;
            let (delays, held) = (trace(&outcome, "owd_ns"), trace(&outcome, "on_ramp_hold_ns"));
            let largest = delays.iter().copied().max().unwrap() as f64;
            // Of the time of a delay and its way back, with a sample's interval at each end: what was sent, and paused.
            let span = ((largest + lag) / 1e3).ceil() as usize + 2;
            let idle = if strawman { 0.0 } else { in_vain(&outcome, &held, span, ns(case.service[0])) };
            let most = ns(threshold) + r * (largest + lag) + idle;
            assert!(
                largest > ns(threshold) && largest <= most,
                "{gbps} Gb/s, {delay} us: {largest} ns, at most {most}"
            );
            // Without the hold the queue would grow to the end.
            assert!(outcome.flows[0].stats.held > Span::from_ms(1));
        }
    }
}

/// Returns the maximum paused time, in any `span` samples of 1 us, while packets were on the NIC, each for `service`
/// ns.
fn in_vain(outcome: &Outcome, held: &[i64], span: usize, service: f64) -> f64 {
    let sent = |sample: &experiment::FlowSample| (sample.sent.get() / 4_096) as f64 * service;
    let pairs = outcome.flow_samples.iter().zip(held).zip(outcome.flow_samples.iter().zip(held).skip(span));
    let over = pairs.map(|((before, held), (after, held_then))| {
        sent(after) - sent(before) + (held_then - held) as f64 - span as f64 * 1e3
    });
    over.fold(0.0, f64::max)
}

/// Eq. 2 pauses again for what it has paused for already: the last packet before a hold is answered a delay and B after it
/// left, and holds the flow for what that is over T, while the queue runs dry after the delay. So the bottleneck rests, in
/// each cycle, for at least a round trip (§3.1), less its own packet's time. Eq. 4 takes pauses since departure off: as
/// long as beta is 1, what leaves after a hold meets a queue of T or what was sent before the hold is over it, and the
/// queue never runs dry. The beta that a flow learns is smaller, for a pause shorter than a packet's time takes nothing
/// off a delay that grows: it undershoots, too, but less.
#[test]
fn the_strawman_undershoots_by_a_round_trip_and_the_final_version_less() {
    for (delay, threshold) in [(1, 40), (5, 60), (20, 100)] {
        let (delay, threshold) = (Span::from_us(delay), Span::from_us(threshold));
        let rests = |strawman, gain| {
            let mut case = case(1, Rate::from_gbps(8), delay, threshold, strawman);
            if let Some(on_ramp) = &mut case.setup.host.on_ramp {
                on_ramp.params.gain = gain;
            }
            let queue = QueueSamples::of(&case.run(), case.down, Time::from_ms(1));
            (1.0 - queue.busy(), case)
        };
        let (strawman, case) = rests(true, OnRampParams::GAIN);
        let us = |span: Span| span.ps() as f64 / 1e6;
        let [sent, served] = case.service.map(us);
        let rest = us(case.base + case.back) - served;
        // What a cycle serves at most: what left until the first delay over T and until its OR-ACK came, and, for as long
        // again, what holds shorter than the distance of OR-ACKs let through.
        let longest = (us(threshold) + us(case.back)) * 2.0;
        let cycle = rest + (us(threshold) - us(case.base)) * served / (served - sent) + longest * served / sent;
        assert!(strawman >= rest / cycle, "{threshold}: the bottleneck rests for {strawman}, not {}", rest / cycle);
        let [exact, learnt] = [Frac::ZERO, OnRampParams::GAIN].map(|gain| rests(false, gain).0);
        assert!(exact <= 0.0 && learnt < strawman, "{threshold}: {exact}, {learnt} and {strawman}");
    }
}

/// Figure 5: two Cubic flows share a link, in segments of 64 KB, as the paper's do. Under the strawman the link rests for
/// over a tenth of the time; under the final version the queue is never empty, and in all but a twentieth of the time
/// over a fifth of what T makes of it.
#[test]
fn two_flows_run_the_queue_dry_under_the_strawman_alone() {
    let queue = |strawman| {
        let mut case = case(2, SENDER, Span::from_us(5), Span::from_us(50), strawman);
        case.setup.stop = Time::from_ms(100);
        (case.setup.host.segment, case.setup.host.small_queue) = (64_000, Some(Bytes::new(256_000)));
        let outcome = common::run(&case.setup, LawKind::Cubic, &[]);
        // In packets of 3.3 us.
        (
            QueueSamples::of(&outcome, case.down, Time::from_ms(20)),
            (Span::from_us(50) - case.base).ps() as f64 / 3.328e6,
        )
    };
    let ((strawman, _), (last, target)) = (queue(true), queue(false));
    assert!(strawman.busy() < 0.9, "{}", strawman.busy());
    assert!(last.busy() >= 1.0 && last.quantile(0.05) > target / 5.0, "{} {}", last.busy(), last.quantile(0.05));
}

/// A threshold over the base delay of the path is the same as that delay and the threshold.
#[test]
fn a_threshold_may_be_relative_to_the_base_delay() {
    let bottleneck = Rate::from_gbps(1);
    let over = Span::from_us(30);
    let absolute = |threshold| case(2, bottleneck, Span::from_us(20), threshold, false);
    let expected = absolute(absolute(over).base + over).run();
    let mut case = absolute(over);
    let on_ramp = case.setup.host.on_ramp.unwrap();
    let held = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.stats.held).sum::<Span>();
    assert_ne!(case.run().flow_samples, expected.flow_samples, "30 us are less than the base delay");
    case.setup.host.on_ramp = Some(OnRampConfig { on_queueing_delay: true, ..on_ramp });
    let found = case.run();
    assert_eq!((found.flow_samples, held(&case.run())), (expected.flow_samples.clone(), held(&expected)));
    assert!(held(&expected) > Span::ZERO);
}
