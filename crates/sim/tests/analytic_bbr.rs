//! BBR against its own model: a full pipe with a near-empty queue alone, one BDP of queue in company, a probe of the
//! round trip every ten seconds. Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
#![allow(clippy::unwrap_used)]

mod analytic_support;
mod common;

use analytic_support::{PACKET, PAYLOAD, Queue, bottleneck, goodput, jain, off, pipe_packets, pipes};
use common::{flow, setup};
use fabric::PortConfig;
use laws::catalog::{Kind, Value, build};
use sim::{FlowId, FlowSpec, Outcome, SeriesConfig};
use units::{Bytes, Rate, Span, Time};

// What `n` BBR flows did in the last 70 % of a run.
struct Shared {
    outcome: Outcome,
    utilisation: f64,
    jain: f64,
    queue: Queue,
    pipe: f64,
}

fn share(rate: Rate, rtt: Span, n: u16, run_time: Span) -> Shared {
    share_over(Bytes::new(4 * rate.bytes_in(rtt).get()), rate, rtt, n, run_time)
}

fn share_over(buffer: Bytes, rate: Rate, rtt: Span, n: u16, run_time: Span) -> Shared {
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
    let seed = |spec: &FlowSpec| [("cycle_seed", Value::Count(spec.kind.into()))];
    let outcome = sim::run(&setup, 1, |spec, path| build(Kind::Bbr, path, &seed(spec)).unwrap(), &mut |_| true);
    let (from, to) = (Time::ZERO + interval.times(3_000), Time::ZERO + interval.times(9_999));
    let rates: Vec<f64> = (0..n.into()).map(|f| goodput(&outcome, f, from, to)).collect();
    let utilisation = rates.iter().sum::<f64>() / rate.bps() as f64 * PACKET / PAYLOAD;
    let (queue, pipe) = (Queue::of(&outcome, link, from), pipe_packets(&setup, 0));
    println!(
        "{n} flows, {rate}, {rtt}: utilisation {utilisation:.4}, Jain {:.4}, queue median {:.2} mean {:.2} max {:.2} \
         packets, BDP {pipe:.1}",
        jain(&rates),
        queue.quantile(0.5),
        queue.mean(),
        queue.quantile(1.0)
    );
    Shared { jain: jain(&rates), outcome, utilisation, queue, pipe }
}

// Paced at the measured bandwidth a flow fills the pipe; its probe at 5/4 of it for a round trip queues a quarter of a
// BDP, which the next phase drains, one round trip in eight. So: utilisation 1 (to 0.1 %), a median of at most two
// packets or 1 % of the BDP, a mean of at most 0.25 / 8 x 2 of the BDP and two packets, a maximum of a quarter BDP and
// three packets.
#[test]
fn bbr_alone_fills_the_pipe_and_leaves_the_queue_empty() {
    for (rate, rtt, run_time) in [
        (Rate::from_gbps(100), Span::from_us(14), Span::from_ms(20)),
        (Rate::from_mbps(400), Span::from_ms(100), Span::from_ms(9_000)),
    ] {
        let shared = share(rate, rtt, 1, run_time);
        assert!(off(shared.utilisation, 1.0) < 1e-3);
        assert!(shared.queue.quantile(0.5) <= f64::max(2.0, shared.pipe / 100.0));
        assert!(shared.queue.mean() <= shared.pipe / 16.0 + 2.0);
        assert!(shared.queue.quantile(1.0) <= shared.pipe / 4.0 + 3.0);
        assert_eq!(shared.outcome.flows[0].stats.retransmits, 0);
    }
}

// min_rtt ages in 10 s; then at most four packets are in flight for 200 ms and a round trip. Over 45 s the probe comes
// at 10, 20, 30 and 40 s, and costs about 0.3 s of each 10: the rest of the pipe for 200 ms, a round trip to
// drain and one to fill again. Tolerance 1.5 % on the utilisation.
#[test]
fn bbr_probes_the_round_trip_every_ten_seconds() {
    let shared = share(Rate::from_mbps(10), Span::from_ms(100), 1, Span::from_s(45));
    assert_eq!(shared.outcome.flows[0].acted.emergencies, 4);
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
#[test]
fn two_bbr_flows_share_and_queue_a_bdp() {
    for (rate, rtt, run_time) in [
        (Rate::from_gbps(10), Span::from_us(100), Span::from_ms(50)),
        (Rate::from_mbps(100), Span::from_ms(20), Span::from_s(30)),
    ] {
        let shared = share(rate, rtt, 2, run_time);
        assert!(shared.jain > 0.95);
        assert!(shared.utilisation > 0.97);
        assert!(off(shared.queue.mean(), shared.pipe) < 0.15);
    }
}

// With next to no buffer what a probe sends beyond the pipe is lost: a quarter of a BDP in a cycle. The drain after it
// ends when no more than a BDP is in flight as the sender knows it. It leaves 3/4 of the rate, while all of it is
// acknowledged and a quarter is found lost, so it lasts half a round trip and costs an eighth of a BDP. A cycle is then
// 7.5 round trips, in which 7.625 BDPs are sent: losses are 0.25 / 7.625 = 3.3 % of what is sent, the utilisation is
// 7.375 / 7.5 = 98.3 %. Tolerance: a drain as long as a whole round trip (3.2 %, 96.9 %) or none at all (3.4 %, 100 %).
// Startup doubles until three flat round trips have passed, and is over after twenty.
#[test]
fn bbr_without_a_buffer_loses_what_it_probes() {
    let (rate, rtt) = (Rate::from_gbps(10), Span::from_ms(100));
    let shared = share_over(Bytes::new(200_000), rate, rtt, 1, Span::from_ms(9_000));
    // From 30 % of the run on: 2.7 s.
    let samples: Vec<_> = shared.outcome.flow_samples.iter().filter(|s| s.time.ps() >= 2_700_000_000_000).collect();
    let trace = |s: &sim::FlowSample, name| s.trace.iter().find(|t| t.0 == name).unwrap().1 as f64;
    let payload_rate = rate.bps() as f64 * PAYLOAD / PACKET;
    let estimates: Vec<f64> = samples.iter().map(|s| trace(s, "bandwidth_bps") / payload_rate).collect();
    let (least, most) =
        (estimates.iter().copied().fold(f64::MAX, f64::min), estimates.iter().copied().fold(0.0, f64::max));
    println!("bandwidth estimate {least:.4} to {most:.4} of the payload's rate");
    assert!(least > 0.99 && most < 1.01);
    // The window is two BDPs, and never what holds the flow back.
    let bdp = rate.bytes_in(rtt).get() as f64 * PAYLOAD / PACKET;
    for sample in &samples {
        assert!(off(sample.window.get() as f64, 2.0 * bdp) < 0.02, "{}", sample.window);
    }
    assert!((0.969..=1.0).contains(&shared.utilisation), "{}", shared.utilisation);
    // What startup loses cancels out between two runs.
    let sooner = share_over(Bytes::new(200_000), rate, rtt, 1, Span::from_ms(4_500));
    let [long, short] = [&shared, &sooner].map(|run| run.outcome.flows[0].stats);
    let lost = (long.retransmits - short.retransmits) as f64 / (long.packets_sent - short.packets_sent) as f64;
    println!("{:.2} % lost, {} packets in startup and soon after", 100.0 * lost, short.retransmits);
    assert!((0.031..0.035).contains(&lost), "{lost}");
    // Losses are found by later arrivals: none takes a timeout.
    assert_eq!(long.timeouts, 0);
}
