//! CoDel and FQ-CoDel at a bottleneck, end to end: the standing queue, and the wait of a sparse flow.
#![allow(clippy::unwrap_used)]

use experiment::{FlowSpec, Outcome, SeriesConfig, Setup, Start};
use fabric::{CoDel, Discipline, EcnResponse, FqCoDel, PortConfig};
use laws::catalog::LawKind;
use units::{Bytes, Rate, Span, Time};

use crate::analytic_support::{QueueSamples, bottleneck, goodput, off, pipes};
use crate::common::{flow, run, setup};

const RATE: Rate = Rate::from_gbps(1);
const RTT: Span = Span::from_ms(20);
const CODEL: CoDel = CoDel { target: Span::from_ms(1), interval: Span::from_ms(20), response: EcnResponse::Drop };

/// Bulk flows, and flows of one packet every 10 ms behind them, over one port; its buffer holds 16 BDP.
fn bulk_and_sparse(discipline: Discipline, kind: LawKind, bulk: u32) -> (Setup, Outcome) {
    let bdp = RATE.bytes_in(RTT).get();
    let port = PortConfig { discipline, buffer: Bytes::new(16 * bdp), ..PortConfig::new(RATE, Span::from_us(1)) };
    let network = pipes(&port, Rate::from_gbps(10), 4_160, &vec![RTT; bulk as usize + 1]);
    let stop = Time::from_ms(10_000);
    let mut flows: Vec<FlowSpec> = (0..bulk).map(|n| flow(n, bulk + 1 + n, 1 << 40)).collect();
    let sparse = (0..500)
        .map(|n| FlowSpec { start: Start::At(Time::from_ms(4_900 + 10 * n)), ..flow(bulk, 2 * bulk + 1, 1_000) });
    flows.extend(sparse);
    let mut setup = setup(network, flows, stop);
    let link = bottleneck(&setup.network);
    let flows = (0..bulk).map(experiment::FlowId).collect();
    setup.series = SeriesConfig { interval: Span::from_us(500), ports: vec![link], flows, ..SeriesConfig::default() };
    let outcome = run(&setup, kind, &[]);
    (setup, outcome)
}

/// Mean completion time of the sparse flows beyond one RTT, in milliseconds.
fn sparse_wait(outcome: &Outcome, bulk: usize) -> f64 {
    let done: Vec<f64> = outcome.flows[bulk..]
        .iter()
        .filter(|flow| flow.completed.is_set())
        .map(|flow| (flow.completed.since(flow.started) - RTT).ps() as f64 / 1e9)
        .collect();
    assert!(done.len() > 400, "{} sparse flows completed", done.len());
    done.iter().sum::<f64>() / done.len() as f64
}

/// RFC 8289, §3: CoDel drops only while the minimum of an interval is above the target, so the standing queue, the minimum
/// over an interval, stays near the target. A FIFO of 16 BDP keeps one of several BDP.
#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let standing = |discipline| {
        let (setup, outcome) = bulk_and_sparse(discipline, LawKind::NewReno, 4);
        let queue = QueueSamples::of(&outcome, bottleneck(&setup.network), Time::from_ms(5_000));
        let minima: Vec<f64> = queue
            .samples
            .chunks(40)
            .map(|interval| interval.iter().map(|&(_, packets)| packets).fold(f64::MAX, f64::min))
            .collect();
        let used: f64 = (0..4).map(|n| goodput(&outcome, n, Time::from_ms(5_000), Time::from_ms(9_900))).sum();
        (minima.iter().sum::<f64>() / minima.len() as f64 * 4_160.0 * 8.0 / 1e6, used / 1e9)
    };
    let (fifo_ms, _) = standing(Discipline::Fifo);
    let (codel_ms, used) = standing(Discipline::CoDel(CODEL));
    // Payload of 4,096 B in packets of 4,160 B; Reno's saw leaves the link idle at times, which the RFC accepts.
    assert!(used > 0.85 * 4_096.0 / 4_160.0, "{used} of the link");
    assert!(codel_ms < 2.0, "a standing queue of {codel_ms} ms");
    assert!(fifo_ms > 10.0 * codel_ms, "{fifo_ms} ms in a FIFO, {codel_ms} ms under CoDel");
}

/// RFC 8290, §3.3 and §4.2: a sparse flow is served after the packet in service and at most a quantum of each new flow, so it
/// waits less than a packet per bulk flow. Under a FIFO it waits for the queue.
#[test]
fn a_sparse_flow_does_not_wait_for_bulk_flows() {
    let fq_codel = FqCoDel { codel: CODEL, quantum: 4_160, ..FqCoDel::RFC };
    let wait = |discipline| sparse_wait(&bulk_and_sparse(discipline, LawKind::Cubic, 4).1, 4);
    let (fifo, fair) = (wait(Discipline::Fifo), wait(Discipline::FqCoDel(fq_codel)));
    // 4,160 B last 33 us; its own packet and acknowledgement are within the RTT of full packets.
    assert!(fair < 5.0 * 0.033_28, "{fair} ms");
    assert!(fifo > 20.0 * fair, "{fifo} ms behind a FIFO, {fair} ms with flow queueing");
}

/// RFC 8290, §4.2: queues share the link by bytes, whatever the flows' windows.
#[test]
fn flows_share_a_port_equally() {
    let fq_codel = FqCoDel { codel: CODEL, quantum: 4_160, ..FqCoDel::RFC };
    let (_, outcome) = bulk_and_sparse(Discipline::FqCoDel(fq_codel), LawKind::Cubic, 4);
    let rates: Vec<f64> = (0..4).map(|n| goodput(&outcome, n, Time::from_ms(5_000), Time::from_ms(9_900))).collect();
    let mean = rates.iter().sum::<f64>() / 4.0;
    assert!(rates.iter().all(|&rate| off(rate, mean) < 0.05), "{rates:?}");
}
