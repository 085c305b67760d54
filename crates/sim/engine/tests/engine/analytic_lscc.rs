//! LSCC's far queue under DCQCN, which takes time to follow, held against eq. 9 (Long et al., "LSCC: Link-Segmented
//! Congestion Control for RDMA in Cross-Datacenter Networks", §III-B).
//!
//! Eq. 9 assumes that sources adopt a notified rate at once. Its derivation (eqs. 3 to 8), with their actual rates,
//! yields
//!
//! ```text
//! Q = Q_ref + (passed in the 2D + T that ended 2D + T ago) - (passed in the last 2D + T) + E
//! E = (sent over the near end in 2D + T, until D ago) - (what the rates in effect there allowed)
//! ```
//!
//! for as long as the last of these rates met no limit. By eq. 10, E is at most what the pseudo queue grew by meanwhile, so
//! at most the pseudo queue.

use crate::common;
use experiment::{FlowId, FlowSpec, SeriesConfig, Setup, Start, SwitchController, SwitchControllerSpec};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{LinkClass, LinkId, PortConfig, Switch};
use laws::PathInfo;
use laws::catalog::{LawKind, ParamValue, build};
use laws::lscc::{CalculationParams, LimitingParams};
use units::{Bytes, Rate, Span, Time};

/// Time between samples. T and D are multiples.
const STEP: Span = Span::from_us(5);
const T: Span = Span::from_us(50);
const D: Span = Span::from_us(100);
const LINE: Rate = Rate::from_gbps(40);
const REFERENCE: u64 = 2_000_000;
const SOURCES: u32 = 4;
const SAMPLES: usize = 8_000;

/// Four sources of 40 Gb/s send over a long haul of 40 Gb/s to one receiver of 20 Gb/s. Local flows with a window of 256 KB
/// each join its port 6 ms apart. The links to the switches are 1 us.
fn varying_bottleneck() -> (Setup, [LinkId; 2]) {
    let edge = PortConfig::new(LINE, Span::from_us(1));
    let narrow = PortConfig { rate: Rate::from_gbps(20), ..edge };
    let plan = Dumbbell {
        left: vec![(edge, edge); SOURCES as usize],
        right: vec![(edge, narrow), (edge, edge)],
        bottleneck: PortConfig { delay: D, ..edge },
        two_datacenters: true,
    };
    let switch = Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };
    let network = dumbbell(&plan).unwrap().sharing(|_, _| Some(switch));
    let inter = |(_, link): &(u32, &fabric::Link)| link.class == LinkClass::Inter;
    let near = LinkId((0u32..).zip(network.links()).find(inter).unwrap().0);
    let far = network.links()[near.index()].reverse;
    let mut flows: Vec<FlowSpec> = (0..SOURCES).map(|src| common::flow(src, SOURCES, 1 << 40)).collect();
    flows.extend((0..5u64).map(|local| FlowSpec {
        kind: 1,
        start: Start::At(Time::from_ms(10 + 6 * local)),
        ..common::flow(SOURCES + 1, SOURCES, 4_000_000)
    }));
    let mut setup = common::setup(network, flows, Time::ZERO + STEP.times(SAMPLES as u32));
    let calculation = CalculationParams {
        period: T,
        reference: Bytes::new(REFERENCE),
        step: LINE,
        lowest: Rate::from_mbps(100),
        highest: LINE,
        lag: D.times(2),
    };
    let limiting = LimitingParams {
        reference: Bytes::new(200_000),
        interval: Span::from_us(10),
        // All flows are notified.
        long_flow: Bytes::MAX,
        reset: T,
        size: 64,
        telemetry: false,
    };
    setup.modules = vec![
        SwitchControllerSpec { link: near, module: SwitchController::RateLimiting(limiting) },
        SwitchControllerSpec { link: far, module: SwitchController::RateCalculation(calculation) },
    ];
    let flows = (0..SOURCES).map(FlowId).collect();
    setup.series = SeriesConfig { interval: STEP, ports: vec![near, far], flows, ..SeriesConfig::default() };
    (setup, [near, far])
}

/// By sample: bytes on the wire that the sources have sent and that were acknowledged, the two queues, and the rate.
#[derive(Default)]
struct Series {
    sent: Vec<f64>,
    delivered: Vec<f64>,
    queue: Vec<f64>,
    pseudo: Vec<f64>,
    rate: Vec<f64>,
}

fn series() -> Series {
    let (setup, [near, far]) = varying_bottleneck();
    let make = |spec: &FlowSpec, path: &PathInfo| {
        let window = ParamValue::Bytes(Bytes::new(64 * 4_096));
        let (kind, settings) = match spec.kind {
            1 => (LawKind::Fixed, [("window", window)]),
            // For four flows to find 20 Gb/s again within the run.
            _ => (LawKind::Dcqcn, [("additive", ParamValue::Rate(Rate::from_mbps(400)))]),
        };
        build(kind, path, &settings).unwrap()
    };
    let outcome = engine::run(&setup, 1, make, &mut |_| true);
    let zeros = || vec![0.0; SAMPLES + 1];
    let mut series = Series { sent: zeros(), delivered: zeros(), queue: zeros(), pseudo: zeros(), rate: zeros() };
    let place = |time: Time| (time.ps() / STEP.unsigned_ps()) as usize;
    let wire = |payload: Bytes| payload.get() as f64 * 4_160.0 / 4_096.0;
    for sample in &outcome.flow_samples {
        series.sent[place(sample.time)] += wire(sample.sent);
        series.delivered[place(sample.time)] += wire(sample.delivered);
    }
    for sample in &outcome.port_samples {
        if sample.link == far {
            series.queue[place(sample.time)] = sample.ingress.get() as f64;
        } else if sample.link == near {
            series.pseudo[place(sample.time)] = sample.pseudo.get() as f64;
            series.rate[place(sample.time)] = sample.feedback.bps() as f64;
        }
    }
    series
}

#[test]
fn the_far_queue_follows_eq_9_plus_the_excess_of_the_sources() {
    let series = series();
    // In samples: 2D + T; and D with the adjacent links, to the near end and, for acknowledgements, back to the
    // sources.
    let (window, away) = (50, 21);
    // Three sums begin and end at samples; each is off by the bytes that a link passes in one interval; 1/27 of Q_ref.
    let slack = 3.0 * LINE.bytes_in(STEP).get() as f64;
    let allowed = |from: usize, to: usize| series.rate[from..to].iter().map(|bps| bps * 5e-6 / 8.0).sum::<f64>();
    let (mut judged, mut off, mut queues) = (0, 0.0, Vec::new());
    for now in (1_000..SAMPLES - 200).step_by(10) {
        let near = now - away;
        // A rate at one of its limits does not follow eq. 3.
        if series.rate[near] <= 100e6 || series.rate[near] >= LINE.bps() as f64 {
            continue;
        }
        let passed = |to: usize| series.delivered[to + away] - series.delivered[to + away - window];
        let eq9 = REFERENCE as f64 + passed(now - window) - passed(now);
        let beyond = series.sent[near] - series.sent[near - window] - allowed(near - window, near);
        let error = series.queue[now] - eq9;
        assert!((error - beyond).abs() <= slack, "sample {now}: {error} B off eq. 9, of which {beyond} were sent");
        let grown = series.pseudo[near] - series.pseudo[near - window];
        assert!(beyond <= grown + slack / 3.0, "sample {now}: {beyond} B beyond, but Q* grew by {grown}");
        assert!(error <= series.pseudo[near] + slack, "sample {now}: {error} over eq. 9, Q* {}", series.pseudo[near]);
        judged += 1;
        off += error.abs();
        queues.push(series.queue[now]);
    }
    // Enough of them, where the queue moves and the sources are far from ideal.
    queues.sort_by(f64::total_cmp);
    assert!(judged > 200 && queues[judged / 10] < 0.7 * queues[judged * 9 / 10], "{judged}");
    assert!(off / judged as f64 > 3.0 * slack, "{}", off / judged as f64);
}
