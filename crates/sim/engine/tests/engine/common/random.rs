//! Random networks, hosts, laws and flows.

use std::collections::{BTreeMap, BTreeSet};

use experiment::{
    Coding, Dependencies, Dependency, FlowId, FlowSpec, HostConfig, InitialQuantum, SeriesConfig, Setup, Start,
};
use fabric::topology::{Dumbbell, FatTrees, SingleSwitch, dumbbell, single_switch};
use fabric::{
    Bursts, CreditQueue, Ecn, InService, IngressLimit, Limit, LinkId, MarkAt, Network, NodeId, NodeKind, Outages, Pfc,
    Phantom, PortConfig, Routes, Switch, Trim,
};
use flow::{FlowCoding, LoadBalancing, Plb, Recovery, Reps, UnoLb};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Tick, Time};

/// A random run and the law that all its flows use.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) setup: Setup,
    pub(crate) kind: LawKind,
}

fn port(
    buffer: BoxedStrategy<u64>,
    ingress_limit: BoxedStrategy<IngressLimit>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = PortConfig> {
    let phantom = proptest::option::of((20_000..400_000u64, 500_000..1_000_000u64));
    let ecn = proptest::option::of((5_000..60_000u64, 0..60_000u64, 1..=100u64));
    // Room for control is never so small that no acknowledgement passes.
    let trim = proptest::option::weighted(0.25, (1..200u16, 500..6_000u64));
    let trim = trim.prop_map(|trim| trim.map(|(header, control)| Trim { header, control: Bytes::new(control) }));
    let lazy = (any::<bool>(), any::<bool>(), 0..3u8, credits, trim);
    let bursts = proptest::option::weighted(0.15, (1..20u32, 0..40_000u64));
    let chances = (prop_oneof![3 => Just(0), 1 => 1..30_000u64], bursts);
    (buffer, ecn, phantom, lazy, chances, ingress_limit).prop_map(
        |(
            buffer,
            ecn,
            phantom,
            (control_priority, dequeue, in_service, credits, trim),
            (loss_ppm, bursts),
            ingress_limit,
        )| {
            PortConfig {
                bursts: bursts.map(|(group, ppm)| {
                    let mut losses = [Frac::ZERO; fabric::MAX_IN_GROUP];
                    losses[(group as usize - 1).min(2)] = Frac::millionths(ppm);
                    Bursts { group, losses }
                }),
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
                control_priority: control_priority || trim.is_some(),
                trim,
                mark_at: if dequeue { MarkAt::Dequeue } else { MarkAt::Enqueue },
                in_service: [InService::Remaining, InService::All, InService::None][in_service as usize],
                loss: Frac::millionths(loss_ppm),
                ingress_limit,
                credits,
                ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
            }
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
        ..CreditQueue::flashpass()
    });
    prop_oneof![2 => Just(None), 1 => Just(Some(CreditQueue::flashpass())), 1 => any.prop_map(Some)]
}

fn network(
    buffer: BoxedStrategy<u64>,
    ingress_limit: BoxedStrategy<IngressLimit>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = Network> {
    let delay = || prop_oneof![Just(1_000_000i64), 1..3_000_000i64, 20_000_000..200_000_000i64];
    let delays = (delay(), delay(), delay());
    // Exact; whole nanoseconds; and steps longer than an acknowledgement lasts.
    let (down, short) = (|ns| Just(Tick::new(Span::from_ns(ns))), |ns| Just(Tick::short(Span::from_ns(ns))));
    let ticks = prop_oneof![3 => Just(Tick::NONE), 1 => down(1), 1 => short(1), 1 => short(100)];
    let ports = (port(buffer.clone(), ingress_limit.clone(), credits.clone()), port(buffer, ingress_limit, credits));
    (ports, 0..5u8, delays, 1..5usize, ticks).prop_map(
        |((port, bottleneck), which, (nic, inside, haul), hosts, tick)| {
            let nic = PortConfig::new(Rate::from_gbps(10), Span::from_ps(nic));
            let nic = PortConfig { credits: port.credits, tick, ..nic };
            let port = PortConfig { delay: Span::from_ps(inside), tick, ..port };
            let bottleneck = PortConfig { tick, ..bottleneck };
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
                    let (k, hosts_per_edge) = if which == 3 { (2, 2) } else { (4, 1) };
                    FatTrees { k, hosts_per_edge, nic, border_links_per_core: 2, inter, ..trees }.build().unwrap()
                }
            }
        },
    )
}

fn path() -> impl Strategy<Value = LoadBalancing> {
    let unolb = (1..=16u8, proptest::option::of(1..3_000i64), any::<bool>(), any::<bool>());
    let plb = (0..=100u64, 1..4u32, 1..13u32);
    prop_oneof![
        Just(LoadBalancing::PerFlow),
        Just(LoadBalancing::AfterTimeout),
        Just(LoadBalancing::PerPacket(16)),
        (1..300u16, 1..=20u8, 1..3_000i64, 0..40u16).prop_map(|(entropies, buffer, freeze_us, explore)| {
            LoadBalancing::Reps(Reps { entropies, buffer, freeze: Span::from_us(freeze_us), explore })
        }),
        unolb.prop_map(|(subflows, recent_us, random, own_laws)| {
            LoadBalancing::UnoLb(UnoLb { subflows, recent: recent_us.map(Span::from_us), random, own_laws })
        }),
        plb.prop_map(|(percent, idle_rounds, rounds)| {
            LoadBalancing::Plb(Plb { threshold: Frac::ratio(percent, 100), idle_rounds, rounds })
        }),
    ]
}

fn coding() -> impl Strategy<Value = Option<Coding>> {
    let code = (1..=12u8, 1..=4u8, proptest::option::weighted(0.3, 1..200_000u64));
    let coding = (code, proptest::option::of(1..3_000i64), any::<bool>(), any::<bool>(), any::<bool>());
    proptest::option::weighted(0.4, coding).prop_map(|coding| {
        coding.map(|((data, parity, tail), timer_us, gaps, eager, history)| Coding {
            code: FlowCoding { data, parity, tail: tail.map(Bytes::new) },
            block_timer: timer_us.map(Span::from_us),
            gaps,
            eager,
            history,
        })
    })
}

/// Makes all hosts recover in this way. Flows are coded under selective recovery alone.
pub(crate) fn recover(setup: &mut Setup, recovery: Recovery) {
    setup.host.recovery = recovery;
    if recovery != Recovery::Selective {
        uncoded(setup);
        one_law(setup);
    }
}

/// Removes the laws of subflows.
pub(crate) fn one_law(setup: &mut Setup) {
    if let LoadBalancing::UnoLb(unolb) = &mut setup.host.path {
        unolb.own_laws = false;
    }
}

/// Codes no flow.
pub(crate) fn uncoded(setup: &mut Setup) {
    setup.host.coding = None;
    setup.flows.iter_mut().for_each(|flow| flow.coded = false);
}

/// Anything that can be simulated in a moment. All flows can end before the stop.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    case_with((10_000..150_000u64).boxed(), Just(IngressLimit::default()).boxed(), credits().boxed())
}

/// The same, with buffers, ingress limits and credit queues of ports from here.
pub(crate) fn case_with(
    buffer: BoxedStrategy<u64>,
    ingress_limit: BoxedStrategy<IngressLimit>,
    credits: BoxedStrategy<Option<CreditQueue>>,
) -> impl Strategy<Value = Case> {
    let flows = proptest::collection::vec((any::<u32>(), any::<u32>(), 1..400_000u64, 0..300u64, 0..5u8), 1..12);
    let host = (prop_oneof![Just(1000u32), Just(4096)], 1..4u8, (path(), any::<bool>()), any::<bool>(), coding());
    (network(buffer, ingress_limit, credits), flows, host, 0..LawKind::ALL.len(), any::<u64>()).prop_map(
        |(network, flows, (mss, ack_every, (path, symmetric), law_sees_timeouts, coding), kind, seed)| {
            let hosts = network.hosts().len() as u32;
            let mut last_dst = 0;
            let mut last_of = BTreeMap::new();
            let mut dependencies = Dependencies::default();
            let specs: Vec<FlowSpec> = (0u32..)
                .zip(flows)
                .map(|(index, (src, other, size, start_us, after))| {
                    // Every tenth is the answer to the one before.
                    let is_response = index > 0 && start_us % 10 == 0;
                    let src = if is_response { last_dst } else { src % hosts };
                    let dst = (src + 1 + other % (hosts - 1)) % hosts;
                    last_dst = dst;
                    let start = match index.checked_sub(1) {
                        // Two in three wait for an earlier flow of their own, too, if there is one; one in five for any other's end.
                        Some(previous) if is_response => {
                            let own = last_of.get(&src).copied().filter(|_| after > 1).map(Dependency::Begun);
                            let other = (after == 4).then(|| Dependency::Complete(FlowId(other % index)));
                            let all = [Dependency::Received(FlowId(previous))].into_iter().chain(own).chain(other);
                            dependencies.start(all, Span::from_us(start_us as i64 % 3))
                        }
                        // Every third of these waits until another has come anywhere, too, and computes.
                        Some(previous) if after == 0 => {
                            let received = (start_us % 3 == 0).then(|| Dependency::Received(FlowId(other % index)));
                            let all = [Dependency::Complete(FlowId(previous))].into_iter().chain(received);
                            dependencies.start(all, Span::from_us(received.map_or(0, |_| start_us as i64 % 20)))
                        }
                        _ => Start::At(Time::from_us(start_us)),
                    };
                    last_of.insert(src, FlowId(index));
                    // Where flows are coded, three in four are.
                    let coded = coding.is_some() && index % 4 > 0;
                    // Half of them keep their connections, where that is possible.
                    let kept = index % 4 < 2 && !LawKind::ALL[kind].info().credits;
                    FlowSpec { start, coded, kept, ..super::flow(src, dst, size) }
                })
                .collect();
            let (network, routes) = failing(network, seed);
            let own_laws = path.laws() > 1;
            let coding = coding.map(|it| Coding { gaps: it.gaps && !own_laws, history: it.history && !own_laws, ..it });
            let host = HostConfig {
                mss,
                ack_every: if own_laws || coding.is_some_and(|it| it.history) { 1 } else { ack_every },
                law_sees_timeouts,
                path,
                coding,
                tick: network.params()[0].config().tick,
                rto_max: Span::from_ms(50),
                // In two of five new flows go first.
                initial_quantum: match seed % 5 {
                    0 => InitialQuantum::Bytes(Bytes::new(20_000)),
                    1 => InitialQuantum::Window,
                    _ => InitialQuantum::NONE,
                },
                // In a third of them hosts know how long flows are.
                size_aware: seed / 5 % 3 == 0,
                ..HostConfig::default()
            };
            let series = SeriesConfig::default();
            let stop = Time::from_ms(20_000);
            let mut setup = Setup {
                network,
                routes,
                symmetric,
                flows: specs,
                host,
                series,
                seed,
                stop,
                intra_rtt: Span::from_us(14),
                dependencies,
                modules: Vec::new(),
                ties: experiment::TieBreak::default(),
            };
            let kind = LawKind::ALL[kind];
            // In a seventh of the cases receivers' hosts send credits.
            let has_receiver_credits = seed.is_multiple_of(7) && !kind.info().credits;
            if has_receiver_credits {
                setup.host.receiver_credits = true;
                setup.flows.iter_mut().for_each(|flow| flow.kept = false);
            }
            if has_receiver_credits || kind.info().credits {
                uncoded(&mut setup);
                one_law(&mut setup);
            }
            Case { setup, kind }
        },
    )
}

/// The same network, every third time with a link between switches that is down for a while, or now and then, and
/// routes that avoid it somewhat later, where there are others.
fn failing(network: Network, seed: u64) -> (Network, Routes) {
    let between = |&link: &LinkId| {
        let link = &network.links()[link.index()];
        [link.from, link.to].iter().all(|node| network.nodes()[node.index()].kind == NodeKind::Switch)
    };
    let links: Vec<LinkId> = (0..network.links().len() as u32).map(LinkId).filter(between).collect();
    let routes = Routes::new(&network).unwrap();
    if links.is_empty() || !seed.is_multiple_of(3) {
        return (network, routes);
    }
    let link = links[(seed / 3) as usize % links.len()];
    let (first, long) = (1 + seed / 7 % 400, 1 + seed / 11 % 3_000);
    let times = 1 + seed / 13 % 3;
    let at = |nth: u64| Time::from_ns(1_000 * first + nth * 2 * 1_000 * long);
    let outages = Outages::new((0..times).map(|nth| (at(nth), at(nth) + Span::from_us(long as i64))));
    let learned = at(0) + Span::from_ns((seed / 17 % 100_000) as i64);
    let avoiding = Routes::without(&network, &BTreeSet::from([link]));
    let routes = match avoiding {
        Ok(avoiding) => {
            let back = learned + Span::from_us(1 + (times * 2 * long) as i64);
            routes.clone().until(learned, avoiding).until(back, routes)
        }
        Err(_) => routes,
    };
    (network.with_outages(link, outages), routes)
}

/// Ingress limit: ports with queues of their own ignore it.
fn ingress_limit() -> impl Strategy<Value = IngressLimit> {
    let headroom = prop_oneof![Just(0), 0..20_000u64, 20_000..100_000u64];
    (threshold(), prop_oneof![Just(0), 0..10_000u64], headroom).prop_map(|(xoff, xon_offset, headroom)| IngressLimit {
        xoff,
        xon_offset: Bytes::new(xon_offset),
        headroom: Bytes::new(headroom),
    })
}

/// A pause threshold, from a packet to more than the buffer.
fn threshold() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1_000..80_000u64).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        (1..400u64).prop_map(|percent| Limit::Alpha(Frac::ratio(percent, 100))),
    ]
}

/// Generates the buffer settings of a switch: small, and now and then smaller than its reserve.
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

/// Returns whether a switch may be a relay: in a loop of relays a pause and its resume circulate for ever. The networks
/// above are trees, or have hosts only at edge switches, and no two edge switches are neighbours.
fn may_relay(network: &Network, node: NodeId) -> bool {
    let is_tree = network.links().len() == 2 * (network.nodes().len() - 1);
    let is_host = |node: NodeId| matches!(network.nodes()[node.index()].kind, NodeKind::Host(_));
    is_tree || network.links().iter().any(|link| link.from == node && is_host(link.to))
}

fn without_relay(switch: Switch) -> Switch {
    Switch { pfc: switch.pfc.map(|pfc| Pfc { relay: false, ..pfc }), ..switch }
}

/// Runs over switches that share small buffers, of two kinds and some with queues of their own, with flows of several
/// classes and ports with different ingress limits.
pub(crate) fn sharing_case() -> impl Strategy<Value = Case> {
    let buffer = prop_oneof![3 => Just(u64::MAX), 1 => 20_000..150_000u64].boxed();
    let kinds = (switch(), switch(), prop_oneof![3 => Just(0u64), 1 => any::<u64>()]);
    (case_with(buffer, ingress_limit().boxed(), Just(None).boxed()), kinds, 1..4u8).prop_map(
        |(case, (switch, second, mix), classes)| {
            let mut setup = case.setup;
            let mut place = 0;
            let kind = |network: &Network, node| {
                place += 1;
                let switch = match mix >> (2 * place % 64) & 3 {
                    0 | 1 => Some(switch),
                    2 => Some(second),
                    _ => None,
                };
                if may_relay(network, node) { switch } else { switch.map(without_relay) }
            };
            setup.network = setup.network.sharing(kind);
            for (index, flow) in (0u8..).zip(&mut setup.flows) {
                flow.class = 1 + index % classes;
            }
            Case { setup, ..case }
        },
    )
}
