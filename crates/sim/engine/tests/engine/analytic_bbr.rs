//! BBR against its own model: a full pipe with a near-empty queue alone, one BDP of queue in company, a probe of the
//! round trip every ten seconds. Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
#![allow(clippy::unwrap_used)]

use crate::analytic_support::{PACKET, PAYLOAD, QueueSamples, bottleneck, goodput, jain, off, pipe_packets, pipes};
use crate::common::{flow, run, setup};
use experiment::{FlowId, FlowSpec, Outcome, SeriesConfig};
use fabric::PortConfig;
use flow::LossTimer;
use laws::catalog::{LawKind, ParamValue, build};
use units::{Bytes, Frac, Rate, Span, Time};

// Results of `n` BBR flows over the last 70 % of a run.
struct SharedLink {
    outcome: Outcome,
    utilisation: f64,
    jain: f64,
    queue: QueueSamples,
    pipe: f64,
}

type Setting = (&'static str, ParamValue);

fn share(rate: Rate, rtt: Span, n: u16, run_time: Span, changed: &[Setting]) -> SharedLink {
    share_over(Bytes::new(4 * rate.bytes_in(rtt).get()), rate, rtt, n, run_time, changed)
}

fn share_over(buffer: Bytes, rate: Rate, rtt: Span, n: u16, run_time: Span, changed: &[Setting]) -> SharedLink {
    let port = PortConfig { buffer, ..PortConfig::new(rate, Span::ZERO) };
    let network = pipes(&port, Rate::from_bps(rate.bps() * 2), 4_160, &vec![rtt; n.into()]);
    let flows = (0..n).map(|i| FlowSpec { kind: i, ..flow(i.into(), u32::from(n + i), 1 << 40) }).collect();
    let mut setup = setup(network, flows, Time::ZERO + run_time);
    let link = bottleneck(&setup.network);
    let interval = run_time.over(10_000);
    setup.series = SeriesConfig {
        interval,
        ports: vec![link],
        flows: (0..n.into()).map(FlowId).collect(),
        ..SeriesConfig::default()
    };
    // Flows that probe in step would see each other's probes as their own.
    let settings = |spec: &FlowSpec| [changed, &[("cycle_seed", ParamValue::Count(spec.kind.into()))]].concat();
    let outcome =
        engine::run(&setup, 1, |spec, path| build(LawKind::Bbr, path, &settings(spec)).unwrap(), &mut |_| true);
    let (from, to) = (Time::ZERO + interval.times(3_000), Time::ZERO + interval.times(9_999));
    let rates: Vec<f64> = (0..n.into()).map(|f| goodput(&outcome, f, from, to)).collect();
    let utilisation = rates.iter().sum::<f64>() / rate.bps() as f64 * PACKET / PAYLOAD;
    let (queue, pipe) = (QueueSamples::of(&outcome, link, from), pipe_packets(&setup, 0));
    println!(
        "{n} flows, {rate}, {rtt}: utilisation {utilisation:.4}, Jain {:.4}, queue median {:.2} mean {:.2} max {:.2} \
         packets, BDP {pipe:.1}",
        jain(&rates),
        queue.quantile(0.5),
        queue.mean(),
        queue.quantile(1.0)
    );
    SharedLink { jain: jain(&rates), outcome, utilisation, queue, pipe }
}

// Paced at 99 % of the measured bandwidth a flow leaves 1 % of the pipe in the six round trips of a cycle at gain 1. Its
// probe at 5/4 for a round trip queues a quarter of a BDP, which the next phase drains. With n packets in a BDP the
// estimate is too high by up to a packet in n, because a sample counts whole packets, and the margin is then less.
//
// The probe takes the flight from 0.99 to 1.25 BDPs: 0.2475 in the first round trip, then 0.2375 a round trip, so 1.053
// round trips. The drain takes it to 1 BDP at 0.2575 a round trip: 0.971. So a cycle is 8.024 round trips, and the
// utilisation 1 - 0.06 / 8.024 = 0.9925, to 0.1 %, up to 1 with few packets. The queue: a median of at most two packets
// or 1 % of the BDP, a mean of at most 0.25 / 8 x 2 of the BDP and two packets, a maximum of a quarter BDP and three packets.
#[test]
fn bbr_alone_fills_the_pipe_but_for_its_margin_and_leaves_the_queue_empty() {
    for (rate, rtt, run_time, most) in [
        (Rate::from_gbps(100), Span::from_us(14), Span::from_ms(20), 1.0),
        (Rate::from_mbps(400), Span::from_ms(100), Span::from_ms(9_000), 0.9935),
    ] {
        let shared = share(rate, rtt, 1, run_time, &[]);
        assert!((0.9915..most).contains(&shared.utilisation));
        let full = share(rate, rtt, 1, run_time, &[MARGIN_OFF]);
        assert!(off(full.utilisation, 1.0) < 1e-3);
        for shared in [&shared, &full] {
            assert!(shared.queue.quantile(0.5) <= f64::max(2.0, shared.pipe / 100.0));
            assert!(shared.queue.mean() <= shared.pipe / 16.0 + 2.0);
            assert!(shared.queue.quantile(1.0) <= shared.pipe / 4.0 + 3.0);
            assert_eq!(shared.outcome.flows[0].stats.retransmits, 0);
        }
    }
}

const MARGIN_OFF: Setting = ("pacing_margin", ParamValue::Fraction(Frac::ZERO));

// min_rtt ages in 10 s; then at most four packets are in flight for 200 ms and a round trip. Without the margin a queue of
// a fraction of a packet stays, so the smallest round trip is not met between probes. Over 45 s the probe comes
// at 10, 20, 30 and 40 s, and costs about 0.3 s of each 10: the rest of the pipe for 200 ms, a round trip to
// drain and one to fill again. Tolerance 1.5 % on the utilisation. With the margin the queue is empty once a cycle, and
// no probe is ever due.
#[test]
fn bbr_probes_the_round_trip_every_ten_seconds_where_the_queue_is_never_empty() {
    let (rate, rtt, run_time) = (Rate::from_mbps(10), Span::from_ms(100), Span::from_s(45));
    let drained = share(rate, rtt, 1, run_time, &[]);
    assert_eq!(drained.outcome.flows[0].actions.probe_rtts, 0);
    let shared = share(rate, rtt, 1, run_time, &[MARGIN_OFF]);
    assert_eq!(shared.outcome.flows[0].actions.probe_rtts, 4);
    assert!(off(shared.utilisation, 0.97) < 0.015);
    // The probe as the link sees it: it rests for most of 200 ms, a little later each time than ten seconds after the
    // last. Sampled are the second to the fourth.
    for probe in 2..=4 {
        let in_probe = |s: &&(f64, f64)| s.1 == 0.0 && (0.0..3.0).contains(&(s.0 - 10.0 * f64::from(probe)));
        let rests = shared.queue.samples.iter().filter(in_probe).count();
        println!("probe {probe}: the link rests in {rests} samples of 4.5 ms");
        assert!((20..100).contains(&rests));
    }
}

// Several flows overestimate the bandwidth until each is limited by its window of two BDPs (cwnd_gain): together they
// keep one BDP queued, and share it evenly enough (Hock et al., ICNP 2017, §III). Tolerance 15 % of a BDP; Jain 0.95.
// The window for bunches adds to that what came beyond the estimate: a packet a flow at the least, and at the most what a
// probe at 5/4 takes from the other flow in a round trip, a quarter of half a BDP a flow, and that packet.
#[test]
fn two_bbr_flows_share_and_queue_a_bdp() {
    for (rate, rtt, run_time) in [
        (Rate::from_gbps(10), Span::from_us(100), Span::from_ms(50)),
        (Rate::from_mbps(100), Span::from_ms(20), Span::from_s(30)),
    ] {
        let shared = share(rate, rtt, 2, run_time, &[("ack_aggregation", ParamValue::Switch(false))]);
        assert!(shared.jain > 0.95);
        assert!(shared.utilisation > 0.97);
        assert!(off(shared.queue.mean(), shared.pipe) < 0.15);
        let opened = share(rate, rtt, 2, run_time, &[]);
        assert!(opened.jain > 0.95);
        assert!(opened.utilisation > 0.97);
        let extra = opened.queue.mean() - shared.queue.mean();
        println!("{extra:.2} packets more with the window for bunches");
        assert!((2.0..=shared.pipe / 4.0 + 2.0).contains(&extra));
    }
}

// With almost no buffer, packets that a probe sends beyond the pipe are lost. It lasts 1.053 round trips, as with a buffer,
// and loses 0.2375 x 1.053 = 0.25 of a BDP. The drain ends when no more than a BDP is in flight as the sender knows it. It
// leaves 0.7425 of the rate. All of the rate is acknowledged, and the first loss is found 5/4 round trips after the probe
// began, because the tolerance of reordering is a quarter. So the flight shrinks by 0.2575 a round trip, and from 0.2 round
// trips on by 0.495: the drain lasts 0.6. A cycle is then 7.653 round trips, in which 1.303 + 0.446 + 5.94 = 7.689 BDPs are
// sent: losses are 3.25 % of what is sent, the utilisation is 7.439 / 7.653 = 97.2 %. Tolerance 0.3 %. Losses are counted
// between 3.25 and 9.5 s, in which are eight probes and 8.17 cycles: 3.18 %, to 0.05 %. Startup doubles until three flat
// round trips have passed, and is over after twenty.
#[test]
fn bbr_without_a_buffer_loses_what_it_probes() {
    let (rate, rtt) = (Rate::from_gbps(10), Span::from_ms(100));
    let shared = share_over(Bytes::new(200_000), rate, rtt, 1, Span::from_ms(9_500), &[]);
    // From 30 % of the run on: 2.85 s.
    let samples: Vec<_> = shared.outcome.flow_samples.iter().filter(|s| s.time.ps() >= 2_850_000_000_000).collect();
    let trace = |s: &experiment::FlowSample, name| s.trace.iter().find(|t| t.0 == name).unwrap().1 as f64;
    let payload_rate = rate.bps() as f64 * PAYLOAD / PACKET;
    let estimates: Vec<f64> = samples.iter().map(|s| trace(s, "bandwidth_bps") / payload_rate).collect();
    let (least, most) =
        (estimates.iter().copied().fold(f64::MAX, f64::min), estimates.iter().copied().fold(0.0, f64::max));
    println!("bandwidth estimate {least:.4} to {most:.4} of the payload's rate");
    assert!(least > 0.99 && most < 1.01);
    // The window is two BDPs. Recovery limits it to the bytes in flight when the first loss was found, over a BDP, less the
    // bytes found lost after that, and increases it again after a round trip: the pacing rate limits the flow.
    let bdp = rate.bytes_in(rtt).get() as f64 * PAYLOAD / PACKET;
    let windows: Vec<f64> = samples.iter().map(|s| s.window.get() as f64 / bdp).collect();
    let (least, most) = (windows.iter().copied().fold(f64::MAX, f64::min), windows.iter().copied().fold(0.0, f64::max));
    println!("window {least:.3} to {most:.3} BDPs");
    assert!(least > 0.9 && off(most, 2.0) < 0.02);
    assert!((0.969..=0.975).contains(&shared.utilisation), "{}", shared.utilisation);
    // The losses of startup cancel out between two runs.
    let sooner = share_over(Bytes::new(200_000), rate, rtt, 1, Span::from_ms(3_250), &[]);
    let [long, short] = [&shared, &sooner].map(|run| run.outcome.flows[0].stats);
    let lost = (long.retransmits - short.retransmits) as f64 / (long.packets_sent - short.packets_sent) as f64;
    println!("{:.2} % lost, {} packets in startup and soon after", 100.0 * lost, short.retransmits);
    assert!((0.031_3..0.032_3).contains(&lost), "{lost}");
    // Losses are found by later arrivals: none takes a timeout.
    assert_eq!(long.timeouts, 0);
}

// A packet's timer expires a base round trip and a full queue after its departure, and a packet that was dropped at a
// full queue is not declared lost by later ones before that: their tolerance is a quarter of the base round trip more.
// So timers find most losses of startup, while others are acknowledged, and must not begin it again: after twenty round
// trips all flows have left startup, with either timer.
#[test]
fn timers_of_packets_do_not_prolong_startup() {
    let (rate, rtt) = (Rate::from_gbps(1), Span::from_ms(20));
    for loss_timer in [LossTimer::Flow, LossTimer::Packet] {
        let port = PortConfig { buffer: Bytes::new(1_000_000), ..PortConfig::new(rate, Span::ZERO) };
        let network = pipes(&port, Rate::from_gbps(2), 4_160, &[rtt; 4]);
        let flows = (0..4).map(|i| flow(i, 4 + i, 1 << 40)).collect();
        let mut setup = setup(network, flows, Time::from_ms(1_000));
        setup.host.loss_timer = loss_timer;
        setup.series = SeriesConfig { interval: rtt, flows: (0..4).map(FlowId).collect(), ..SeriesConfig::default() };
        let outcome = run(&setup, LawKind::Bbr, &[]);
        let stats = outcome.flows.iter().map(|flow| (flow.stats.timeouts, flow.stats.retransmits));
        let (timeouts, resent) = stats.fold((0, 0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1));
        println!("{loss_timer:?}: {timeouts} timeouts, {resent} packets sent again");
        assert!(loss_timer == LossTimer::Flow || timeouts > 100, "few timers strike: {timeouts}");
        let in_startup = outcome.flow_samples.iter().filter(|sample| {
            let gain = sample.trace.iter().find(|trace| trace.0 == "pacing_gain_ppm").unwrap().1;
            sample.time > Time::ZERO + rtt.times(20) && gain > 1_250_000
        });
        assert_eq!(in_startup.count(), 0, "{loss_timer:?}");
    }
}
