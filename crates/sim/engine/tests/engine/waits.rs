//! Flows that wait for others: any directed graph of sends and computations.

use crate::common;
use std::collections::BTreeMap;

use crate::common::{flow, law};
use experiment::{
    Dependencies, Dependency, FlowId, FlowSpec, HostConfig, Outcome, Pending, SeriesConfig, Setup, Start, Waits,
};
use fabric::topology::{Dumbbell, FatTrees, SingleSwitch, dumbbell, single_switch};
use fabric::{Network, PortConfig};
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

const WIDE: &[(&str, ParamValue)] = &[("window", ParamValue::Bytes(Bytes::new(1 << 30)))];

fn run(setup: &Setup, threads: usize) -> Outcome {
    engine::run_on(setup, engine::Threads::always(threads), law(LawKind::Fixed, WIDE), &mut |_| true)
}

fn switch(hosts: usize) -> Network {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    single_switch(&SingleSwitch { hosts: vec![(port, port); hosts] }).unwrap()
}

#[test]
fn followers_are_sorted_and_distinguished_by_kind() {
    let [complete, received, begun] =
        [Dependency::Complete, Dependency::Received, Dependency::Begun].map(|of| of(FlowId(0)));
    let mut setup = common::setup(switch(3), vec![flow(0, 1, 1_000); 5], Time::from_ms(1));
    let sets = [vec![complete], vec![begun, received], vec![received, Dependency::Complete(FlowId(1))], vec![complete]];
    for (flow, set) in setup.flows[1..].iter_mut().rev().zip(sets) {
        flow.start = setup.dependencies.start(set, Span::ZERO);
    }
    let waits = Waits::new(&setup);
    let followers = |dependency| waits.followers(dependency).map(|flow| flow.0).collect::<Vec<u32>>();
    assert_eq!([complete, received, begun].map(followers), [vec![1, 4], vec![2, 3], vec![3]]);
    assert_eq!(followers(Dependency::Complete(FlowId(1))), [2]);
    for other in [Dependency::Received(FlowId(1)), Dependency::Begun(FlowId(4))] {
        assert_eq!(followers(other), [0; 0]);
    }
    assert_eq!(setup.dependencies_of(&setup.flows[3]), [begun, received]);
    assert_eq!(setup.dependencies_of(&setup.flows[0]), []);
}

#[test]
fn a_flow_starts_after_the_last_dependency_in_any_order() {
    let mut setup = common::setup(switch(3), vec![flow(0, 1, 1_000); 4], Time::from_ms(1));
    let all = [Dependency::Complete(FlowId(0)), Dependency::Received(FlowId(1)), Dependency::Begun(FlowId(2))];
    setup.flows[3].start = setup.dependencies.start(all, Span::from_us(5));
    for times_us in [[1, 7, 3], [7, 3, 1], [3, 1, 7]] {
        let mut pending = Pending::default();
        let starts = times_us.map(|us| pending.mark_met(FlowId(3), Time::from_us(us), &setup));
        assert_eq!(starts, [None, None, Some(Time::from_us(12))]);
    }
}

/// One host sends to a second, and a third waits: for the receipt one way from the second, for the end one way from the
/// first, and for both the later of them.
#[test]
fn a_notice_takes_one_one_way_delay() {
    let mut setup = common::setup(switch(3), vec![flow(0, 1, 100_000)], Time::from_ms(5));
    let (received, complete) = (Dependency::Received(FlowId(0)), Dependency::Complete(FlowId(0)));
    for dependencies in [vec![received], vec![complete], vec![received, complete]] {
        let start = setup.dependencies.start(dependencies, Span::from_us(50));
        setup.flows.push(FlowSpec { start, ..flow(2, 1, 1_000) });
    }
    let start = setup.dependencies.start([received], Span::ZERO);
    setup.flows.push(FlowSpec { start, ..flow(1, 2, 1_000) });
    let outcome = run(&setup, 1);
    let way = setup.one_way(setup.flows[0].src, setup.flows[0].dst);
    let started = |flow: usize| outcome.flows[flow].started;
    let complete = outcome.flows[0].completed;
    let received = complete - way;
    assert_eq!(started(1), received + way + Span::from_us(50));
    assert_eq!((started(2), started(3)), (complete + way + Span::from_us(50), complete + way + Span::from_us(50)));
    assert_eq!(started(4), received);
}

/// A graph of sends: each of them waits for some of those before it.
#[derive(Clone, Debug)]
struct SendGraph {
    setup: Setup,
    two: bool,
}

fn networks(which: u8) -> Network {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let haul = PortConfig { delay: Span::from_us(60), ..port };
    match which {
        0 => switch(6),
        1 => {
            let side = vec![(port, port); 3];
            dumbbell(&Dumbbell { left: side.clone(), right: side, bottleneck: haul, two_datacenters: true }).unwrap()
        }
        _ => FatTrees { k: 2, hosts_per_edge: 2, ..FatTrees::uno(port, Span::from_us(60)) }.build().unwrap(),
    }
}

fn graph() -> impl Strategy<Value = SendGraph> {
    let dependency = (any::<u32>(), 0..3u8, prop_oneof![3 => Just(0i64), 1 => 0..30i64]);
    let node = (any::<u32>(), any::<u32>(), 1..200_000u64, proptest::collection::vec(dependency, 0..5));
    let nodes = proptest::collection::vec((node, 0..40i64), 1..40);
    (0..3u8, nodes, 1..3u8).prop_map(|(which, nodes, ack_every)| {
        let network = networks(which);
        let hosts = network.hosts().len() as u32;
        let mut dependencies = Dependencies::default();
        let mut flows: Vec<FlowSpec> = Vec::new();
        for ((src, other, size, before), compute_us) in nodes {
            let mut set = BTreeMap::new();
            let mut src = src % hosts;
            for (nth, kind, lag_us) in before {
                let Some(nth) = nth.checked_rem(flows.len() as u32) else { continue };
                // A flow that waits until another has begun has the same sender.
                if kind == 2 && set.is_empty() {
                    src = flows[nth as usize].src.0;
                }
                let dependency = match kind {
                    0 => Dependency::Complete(FlowId(nth)),
                    2 if flows[nth as usize].src.0 == src => Dependency::Begun(FlowId(nth)),
                    _ => Dependency::Received(FlowId(nth)),
                };
                set.insert(dependency, Span::from_us(lag_us));
            }
            let dst = (src + 1 + other % (hosts - 1)) % hosts;
            let start = if set.is_empty() {
                Start::At(Time::from_us(compute_us as u64))
            } else {
                let set = dependencies.add_each(set);
                // Some have a time before which they do not start.
                dependencies.not_before(set, Time::from_us(u64::from(size % 4 == 0) * 400));
                Start::Waits { dependencies: set, after: Span::from_us(compute_us) }
            };
            flows.push(FlowSpec { start, ..flow(src, dst, size) });
        }
        let setup = common::setup(network, flows, Time::from_ms(2_000));
        let host = HostConfig { ack_every, ..setup.host };
        SendGraph { setup: Setup { dependencies, host, series: SeriesConfig::default(), ..setup }, two: which > 0 }
    })
}

proptest! {
    #![proptest_config(common::cases(400))]

    /// Every flow starts, once, and not before all its dependencies; and not later either, if the run shows the times of
    /// its dependencies to the picosecond. At any number of threads.
    #[test]
    fn any_graph_runs_to_its_end(graph in graph()) {
        let setup = &graph.setup;
        let outcome = run(setup, 1);
        for (number, (spec, end)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            prop_assert!(end.started.is_set() && end.completed.is_set(), "flow {}", number);
            prop_assert_eq!(end.delivered, spec.size);
            let Start::Waits { dependencies: set, after } = spec.start else { continue };
            let not_before = setup.dependencies.earliest(set);
            let known = |dependency: &Dependency| {
                let before = &outcome.flows[dependency.flow().0 as usize];
                let delay = setup.notice_delay(*dependency, spec);
                match dependency {
                    Dependency::Complete(_) => (before.completed + delay, true),
                    Dependency::Begun(_) => (before.started + delay, true),
                    // It came after the least time on the way, and before the last acknowledgement.
                    Dependency::Received(FlowId(of)) => {
                        let flow = &setup.flows[*of as usize];
                        (before.started + setup.one_way(flow.src, flow.dst) + delay, false)
                    }
                }
            };
            let dependencies = setup.dependencies_of(spec);
            let earliest = dependencies.iter().map(|dependency| known(dependency).0).max().unwrap() + after;
            let earliest = earliest.max(not_before);
            prop_assert!(end.started >= earliest, "flow {} at {} and not from {} on", number, end.started, earliest);
            if dependencies.iter().all(|dependency| known(dependency).1) {
                prop_assert_eq!(end.started, earliest, "flow {}", number);
            }
            // Each receipt was before its flow's end.
            let latest = dependencies.iter().map(|dependency| {
                let before = &outcome.flows[dependency.flow().0 as usize];
                before.completed.max(before.started) + setup.notice_delay(*dependency, spec)
            });
            prop_assert!(end.started <= (latest.max().unwrap() + after).max(not_before), "flow {} is late", number);
        }
        let sent: u64 = outcome.flows.iter().map(|flow| flow.stats.packets_sent).sum();
        prop_assert_eq!(sent, outcome.engine.data_packets, "no flow started twice");
        if graph.two {
            for threads in [2, 4] {
                let mut other = run(setup, threads);
                other.engine.threads = outcome.engine.threads;
                prop_assert!(other == outcome, "{} threads differ from one", threads);
            }
        }
    }
}
