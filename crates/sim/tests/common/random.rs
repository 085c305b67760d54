//! Random networks, hosts, laws and flows.

use fabric::topology::{Dumbbell, FatTrees, SingleSwitch, dumbbell, single_switch};
use fabric::{CreditQueue, Ecn, Gate, InService, Limit, MarkAt, Network, Pfc, Phantom, PortConfig, Routes, Switch};
use laws::catalog::Kind;
use proptest::prelude::*;
use sim::{FlowId, FlowSpec, HostConfig, SeriesConfig, Setup, Spray, Start};
use units::{Bytes, Frac, Rate, Span, Time};

/// A random run and the law that all its flows use.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) setup: Setup,
    pub(crate) kind: Kind,
}

fn port(
    buffer: BoxedStrategy<u64>,
    gate: BoxedStrategy<Gate>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = PortConfig> {
    let phantom = proptest::option::of((20_000..400_000u64, 500_000..1_000_000u64));
    let ecn = proptest::option::of((5_000..60_000u64, 0..60_000u64, 1..=100u64));
    let lazy = (any::<bool>(), any::<bool>(), 0..3u8, credits);
    (buffer, ecn, phantom, lazy, prop_oneof![3 => Just(0), 1 => 1..30_000u64], gate).prop_map(
        |(buffer, ecn, phantom, (control_priority, dequeue, in_service, credits), loss_ppm, gate)| PortConfig {
            buffer: Bytes::new(buffer),
            ecn: ecn.map(|(min, span, percent)| Ecn {
                min: Bytes::new(min),
                max: Bytes::new(min + span),
                max_probability: Frac::ratio(percent, 100),
            }),
            phantom: phantom.map(|(size, drain)| Phantom {
                size: Bytes::new(size),
                drain: Frac::millionths(drain),
                ecn: Ecn { min: Bytes::new(size / 4), max: Bytes::new(size / 2), max_probability: Frac::ONE },
            }),
            control_priority,
            mark_at: if dequeue { MarkAt::Dequeue } else { MarkAt::Enqueue },
            in_service: [InService::Remainder, InService::Whole, InService::Excluded][in_service as usize],
            loss: Frac::millionths(loss_ppm),
            gate,
            credits,
            ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
        },
    )
}

/// No credit queue, the usual one, or any.
fn credits() -> impl Strategy<Value = Option<CreditQueue>> {
    let any = (1..12u32, 0..12u32, 64..200u32, 84..2_000u64, proptest::option::of(0..20_000u64));
    let any = any.prop_map(|(limit, threshold, credit, burst, unscheduled)| CreditQueue {
        limit,
        threshold,
        credit,
        burst: Bytes::new(burst.max(credit.into())),
        unscheduled: unscheduled.map(Bytes::new),
        ..CreditQueue::usual()
    });
    prop_oneof![2 => Just(None), 1 => Just(Some(CreditQueue::usual())), 1 => any.prop_map(Some)]
}

fn network(
    buffer: BoxedStrategy<u64>,
    gate: BoxedStrategy<Gate>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = Network> {
    let delay = || prop_oneof![Just(1_000_000i64), 1..3_000_000i64, 20_000_000..200_000_000i64];
    let delays = (delay(), delay(), delay());
    (port(buffer.clone(), gate.clone(), credits.clone()), port(buffer, gate, credits), 0..4u8, delays, 1..5usize)
        .prop_map(|(port, bottleneck, which, (nic, inside, haul), hosts)| {
            let nic = PortConfig { credits: port.credits, ..PortConfig::new(Rate::from_gbps(10), Span::from_ps(nic)) };
            let port = PortConfig { delay: Span::from_ps(inside), ..port };
            let haul = Span::from_ps(haul);
            match which {
                0 => single_switch(&SingleSwitch { hosts: vec![(nic, port); hosts + 1] }).unwrap(),
                1 | 2 => dumbbell(&Dumbbell {
                    left: vec![(nic, port); hosts],
                    right: vec![(nic, PortConfig { rate: Rate::from_gbps(7), ..port }); hosts],
                    bottleneck: PortConfig { delay: haul, ..bottleneck },
                    two_datacenters: which == 1,
                })
                .unwrap(),
                _ => {
                    let trees = FatTrees::uno(port, haul);
                    let inter = trees.inter.iter().cloned().map(|mut links| {
                        links.port = PortConfig { delay: haul, ..bottleneck };
                        links.count = 2;
                        links
                    });
                    let inter = inter.collect();
                    FatTrees { k: 2, hosts_per_edge: 2, nic, border_links_per_core: 2, inter, ..trees }.build().unwrap()
                }
            }
        })
}

/// Anything that can be simulated in a moment. All flows can end before the stop.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    case_with((10_000..150_000u64).boxed(), Just(Gate::default()).boxed(), credits().boxed())
}

/// The same, with buffers, gates and credit queues of ports from here.
pub(crate) fn case_with(
    buffer: BoxedStrategy<u64>,
    gate: BoxedStrategy<Gate>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = Case> {
    let flows = proptest::collection::vec((any::<u32>(), any::<u32>(), 1..400_000u64, 0..300u64, 0..5u8), 1..12);
    let host = (prop_oneof![Just(1000u32), Just(4096)], 1..4u8, any::<bool>(), any::<bool>());
    (network(buffer, gate, credits), flows, host, 0..Kind::ALL.len(), any::<u64>()).prop_map(
        |(network, flows, (mss, ack_every, spray, timeouts_cut), kind, seed)| {
            let hosts = network.hosts().len() as u32;
            let specs: Vec<FlowSpec> = (0u32..)
                .zip(flows)
                .map(|(index, (src, other, size, start_us, after))| {
                    let src = src % hosts;
                    let dst = (src + 1 + other % (hosts - 1)) % hosts;
                    let start = match index.checked_sub(1) {
                        Some(previous) if after == 0 => Start::After(FlowId(previous)),
                        _ => Start::At(Time::from_us(start_us)),
                    };
                    FlowSpec { start, ..super::flow(src, dst, size) }
                })
                .collect();
            let routes = Routes::new(&network).unwrap();
            let host = HostConfig {
                mss,
                ack_every,
                timeouts_cut,
                spray: match (spray, seed % 3) {
                    (true, _) => Spray::PerPacket(16),
                    (false, 0) => Spray::AfterTimeout,
                    (false, _) => Spray::PerFlow,
                },
                rto_max: Span::from_ms(50),
                ..HostConfig::default()
            };
            let series = SeriesConfig::default();
            let stop = Time::from_ms(20_000);
            let setup = Setup {
                network,
                routes,
                flows: specs,
                host,
                series,
                seed,
                stop,
                intra_rtt: Span::from_us(14),
                modules: Vec::new(),
            };
            Case { setup, kind: Kind::ALL[kind] }
        },
    )
}

/// A gate: of no use to ports with queues of their own.
fn gate() -> impl Strategy<Value = Gate> {
    let headroom = prop_oneof![Just(0), 0..20_000u64, 20_000..100_000u64];
    (limit(), prop_oneof![Just(0), 0..10_000u64], headroom).prop_map(|(off, hysteresis, headroom)| Gate {
        off,
        hysteresis: Bytes::new(hysteresis),
        headroom: Bytes::new(headroom),
    })
}

/// A limit of a gate, from a packet to more than the buffer.
fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1_000..80_000u64).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        (1..400u64).prop_map(|percent| Limit::Alpha(Frac::ratio(percent, 100))),
    ]
}

/// How a switch shares its buffer: small, and now and then smaller than what it keeps.
fn switch() -> impl Strategy<Value = Switch> {
    let pfc = proptest::option::weighted(0.85, (prop_oneof![Just(64u32), 64..600u32], any::<bool>()));
    let egress_alpha = proptest::option::weighted(0.3, 5..400u64);
    (10_000..400_000u64, prop_oneof![Just(0), 0..9_000u64], egress_alpha, pfc).prop_map(
        |(buffer, reserve, egress_alpha, pfc)| Switch {
            buffer: Bytes::new(buffer),
            reserve: Bytes::new(reserve),
            egress_alpha: egress_alpha.map(|percent| Frac::ratio(percent, 100)),
            pfc: pfc.map(|(frame, relay)| Pfc { frame, relay }),
            int: false,
        },
    )
}

/// Runs over switches that share small buffers, of two kinds and some with queues of their own, with flows of several
/// classes and ports that let in by several gates.
pub(crate) fn sharing_case() -> impl Strategy<Value = Case> {
    let buffer = prop_oneof![3 => Just(u64::MAX), 1 => 20_000..150_000u64].boxed();
    let kinds = (switch(), switch(), prop_oneof![3 => Just(0u64), 1 => any::<u64>()]);
    (case_with(buffer, gate().boxed(), Just(None).boxed()), kinds, 1..4u8).prop_map(
        |(case, (switch, second, mix), classes)| {
            let mut setup = case.setup;
            let mut place = 0;
            let kind = |_: &fabric::Network, _| {
                place += 1;
                match mix >> (2 * place) & 3 {
                    0 | 1 => Some(switch),
                    2 => Some(second),
                    _ => None,
                }
            };
            setup.network = setup.network.sharing(kind);
            for (index, flow) in (0u8..).zip(&mut setup.flows) {
                flow.class = 1 + index % classes;
            }
            Case { setup, ..case }
        },
    )
}
