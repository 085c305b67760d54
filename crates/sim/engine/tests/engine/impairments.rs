//! Impaired links: every flow ends with all its bytes, counts are consistent, and threads change nothing.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use crate::common;
use engine::{Recorded, Threads};
use experiment::{Coding, FlowId, Jitter, JitterShape, LinkSpan, Outcome, RecordConfig, Setup};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{
    AckAggregation, Ecn, HostId, ImpairmentId, Impairments, JitterDistribution, JitterOrder, LinkId, LinkJitter,
    Policer, PortConfig, RateSchedule, RateStep, Reordering,
};
use flow::{FlowCoding, LoadBalancing, Recovery};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time};

const PAIRS: u32 = 3;
const RATE: Rate = Rate::from_gbps(10);

fn schedule(steps: &[(i64, u64)], period: Span) -> Arc<RateSchedule> {
    let steps = steps.iter().map(|&(us, mbps)| RateStep { at: Span::from_us(us), rate: Rate::from_mbps(mbps) });
    Arc::new(RateSchedule::new(steps.collect(), Some(period)).unwrap())
}

/// All impairments at once.
fn everything() -> Impairments {
    Impairments {
        policer: Some(Policer { rate: Rate::from_mbps(9_000), burst: Bytes::new(100_000) }),
        mtu: Some(4_160),
        jitter: Some(LinkJitter {
            max: Span::from_us(20),
            distribution: JitterDistribution::Normal,
            order: JitterOrder::Free,
        }),
        reordering: Some(Reordering { probability: Frac::ratio(1, 50), delay: Span::from_us(40) }),
        duplication: Frac::ratio(1, 50),
        corruption: Frac::ratio(1, 100),
        ack_aggregation: Some(AckAggregation { period: Span::from_us(15), packets: 4, max_size: 128 }),
        rate_schedule: Some(schedule(&[(0, 10_000), (200, 0), (230, 4_000)], Span::from_us(400))),
    }
}

/// Flows in both directions over a link between two datacenters, with these impairments in both directions.
fn crossing(impairments: Impairments, packets: u64) -> Setup {
    let edge = PortConfig::new(RATE, Span::from_us(1));
    let at = Bytes::new(60_000);
    let bottleneck = PortConfig {
        buffer: Bytes::new(200_000),
        ecn: Some(Ecn { min: at, max: at, max_probability: Frac::ONE }),
        impairments: Some(ImpairmentId(0)),
        ..PortConfig::new(RATE, Span::from_us(20))
    };
    let side = vec![(edge, edge); PAIRS as usize];
    let network = dumbbell(&Dumbbell { left: side.clone(), right: side, bottleneck, two_datacenters: true }).unwrap();
    let network = network.with_impairments(vec![Arc::new(impairments)]).unwrap();
    let flow = |pair: u32| match pair {
        0 => common::flow(0, PAIRS, packets * 4_096),
        _ => common::flow(PAIRS + pair, pair, packets * 4_096),
    };
    common::setup(network, (0..PAIRS).map(flow).collect(), Time::from_ms(5_000))
}

/// Runs it in every way, and checks it.
fn sound(setup: &Setup, kind: LawKind) -> Outcome {
    let factory = common::law(kind, &[]);
    let checked = engine::run_checked(setup, 1, &factory, &mut |_| true).unwrap();
    let mut other = engine::run_on(setup, Threads::always(2), &factory, &mut |_| true);
    assert_eq!(other.engine.threads, 2);
    other.engine.threads = 1;
    assert!(checked == other, "two threads differ from one");
    let flows = (0..setup.flows.len() as u32).map(FlowId).collect();
    let span = |link| LinkSpan { link: LinkId(link), start: Time::ZERO, end: setup.stop, tag: link };
    let spans = (0..setup.network.links().len() as u32).map(span).collect();
    let record = RecordConfig { flows, spans };
    let Recorded { mut outcome, .. } = engine::run_recorded(setup, 2, &factory, &mut |_| true, &record);
    outcome.engine.threads = 1;
    assert!(checked == outcome, "the recorder changes the outcome");
    for (spec, flow) in setup.flows.iter().zip(&checked.flows) {
        assert!(flow.completed.is_set(), "{kind:?}: a flow of {} is at {}", spec.size, flow.delivered);
        assert_eq!(flow.delivered, spec.size);
    }
    checked
}

fn counters(outcome: &Outcome) -> fabric::ImpairmentCounters {
    let mut all = fabric::ImpairmentCounters::default();
    outcome.links.iter().for_each(|link| all.add(&link.impaired));
    all
}

#[test]
fn flows_end_under_all_impairments_together() {
    for kind in [LawKind::Dctcp, LawKind::Cubic, LawKind::Bbr, LawKind::UnoCc, LawKind::Dcqcn, LawKind::Vegas] {
        let outcome = sound(&crossing(everything(), 500), kind);
        let all = counters(&outcome);
        assert!(all.corrupted > 0 && all.duplicates > 0 && all.reordered > 0 && all.groups > 0, "{kind:?}: {all:?}");
        assert!(outcome.copies_of.iter().all(|&copies| copies > 0), "{:?}", outcome.copies_of);
    }
}

/// Ways in which hosts send, receive and recover.
#[test]
fn hosts_of_all_kinds_recover() {
    for case in 0..6 {
        let mut setup = crossing(everything(), 300);
        match case {
            0 => setup.host.ack_every = 3,
            1 => setup.host.recovery = Recovery::GoBackN { nack_interval: Span::from_us(100), acks: true },
            2 | 3 => {
                setup.flows.iter_mut().for_each(|flow| flow.coded = true);
                setup.host.coding = Some(Coding {
                    code: FlowCoding { data: 8, parity: 2, tail: None },
                    block_timer: None,
                    gaps: false,
                    eager: true,
                    history: case == 3,
                });
            }
            4 => setup.host.jitter = Some(Jitter { mean: Span::from_us(2), shape: JitterShape::Uniform }),
            _ => setup.host.path = LoadBalancing::PerPacket(16),
        }
        sound(&setup, LawKind::Dctcp);
    }
}

/// A packet over the MTU never passes, and its flow never ends; another flow is not affected.
#[test]
fn larger_packets_never_pass() {
    let mut setup = crossing(Impairments { mtu: Some(4_159), ..Impairments::default() }, 10);
    setup.stop = Time::from_ms(20);
    setup.flows.push(common::flow(0, 1, 40_960));
    setup.flows[0].size = Bytes::new(3_000);
    let outcome = engine::run_checked(&setup, 2, common::law(LawKind::Dctcp, &[]), &mut |_| true).unwrap();
    let ended: Vec<bool> = outcome.flows.iter().map(|flow| flow.completed.is_set()).collect();
    assert_eq!(ended, [true, false, false, true]);
    let (all, lost) = (counters(&outcome), outcome.links.iter().map(|link| link.drops).sum::<u64>());
    assert!(all.oversized > 2 && all.oversized == lost, "{all:?}, {lost} drops");
}

/// Copies are received twice: the receiver acknowledges each, and the sender sends nothing again.
#[test]
fn copies_alone_cost_no_retransmission() {
    let mut setup = crossing(Impairments { duplication: Frac::ratio(1, 10), ..Impairments::default() }, 2_000);
    // One flow in each direction: no queue overflows.
    setup.flows.truncate(2);
    let outcome = sound(&setup, LawKind::Dctcp);
    let copies: u64 = outcome.copies_of.iter().map(|&copies| u64::from(copies)).sum();
    let sent = outcome.engine.data_packets;
    let (mean, deviation) = (sent as f64 / 10.0, (sent as f64 * 0.09).sqrt());
    assert!((copies as f64 - mean).abs() < 4.0 * deviation, "{copies} copies of {sent}");
    assert_eq!(outcome.flows.iter().map(|flow| flow.stats.retransmits).sum::<u64>(), 0);
    // Copies of the last packets may be on their way when all flows have ended.
    assert_eq!(sent + copies, outcome.engine.data_received + outcome.engine.data_in_flight);
}

/// 10 Gb/s half of the time: a flow takes about twice its bytes' time, and never less than the schedule permits.
#[test]
fn a_flow_follows_the_schedule() {
    let rate_schedule = Some(schedule(&[(0, 10_000), (100, 0)], Span::from_us(200)));
    let mut setup = crossing(Impairments { rate_schedule, ..Impairments::default() }, 4_000);
    setup.flows.truncate(1);
    let outcome = sound(&setup, LawKind::Cubic);
    let (took, bytes) = (outcome.flows[0].completed.since(Time::ZERO), Bytes::new(4_000 * 4_160));
    let least = RATE.tx_time(bytes).times(2) - Span::from_us(100);
    assert!(took >= least && took < least + Span::from_us(2_000), "{took} instead of {least}");
}

/// The Poisson count of a sampled link's queue is read without changing the run.
#[test]
fn samples_change_nothing() {
    let setup = crossing(everything(), 200);
    let mut sampled = setup.clone();
    sampled.series.interval = Span::from_us(7);
    sampled.series.ports = (0..setup.network.links().len() as u32).map(LinkId).collect();
    let (plain, sampled) = (sound(&setup, LawKind::Dctcp), sound(&sampled, LawKind::Dctcp));
    assert!(plain.links == sampled.links && plain.flows == sampled.flows && !sampled.port_samples.is_empty());
}

/// A flow between hosts of one side passes no impaired link.
#[test]
fn other_links_are_not_affected() {
    let mut setup = crossing(everything(), 100);
    setup.flows.iter_mut().for_each(|flow| (flow.src, flow.dst) = (HostId(0), HostId(1)));
    let outcome = sound(&setup, LawKind::Dctcp);
    assert_eq!((counters(&outcome), outcome.copies_of.len()), (fabric::ImpairmentCounters::default(), 0));
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let hold = || 1..60i64;
    let parts = (0..30u64, 0..30u64, 0..30u64);
    (parts, (hold(), hold(), hold()), any::<[bool; 6]>(), 2..9u32).prop_map(
        |((duplicated, corrupted, late), (jitter, delay, period), on, packets)| Impairments {
            policer: on[0].then_some(Policer { rate: Rate::from_mbps(3_000), burst: Bytes::new(50_000) }),
            mtu: None,
            jitter: on[1].then_some(LinkJitter {
                max: Span::from_us(jitter),
                distribution: if on[2] { JitterDistribution::Normal } else { JitterDistribution::Uniform },
                order: if on[3] { JitterOrder::Kept } else { JitterOrder::Free },
            }),
            reordering: Some(Reordering { probability: Frac::ratio(late, 1_000), delay: Span::from_us(delay) }),
            duplication: Frac::ratio(duplicated, 1_000),
            corruption: Frac::ratio(corrupted, 1_000),
            ack_aggregation: on[4].then_some(AckAggregation { period: Span::from_us(period), packets, max_size: 200 }),
            rate_schedule: on[5].then(|| schedule(&[(0, 5_000), (period, 0), (90, 10_000)], Span::from_us(150))),
        },
    )
}

proptest! {
    #![proptest_config(common::cases(48))]

    #[test]
    fn random_impairments_pass_all_checks(impairments in impairments(), kind in 0..4usize, packets in 1..200u64) {
        let kind = [LawKind::Dctcp, LawKind::Cubic, LawKind::Bbr, LawKind::UnoCc][kind];
        sound(&crossing(impairments, packets), kind);
    }
}
