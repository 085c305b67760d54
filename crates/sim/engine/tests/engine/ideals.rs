//! No flow beats its ideal time, with any parallel links and any choice among them for its packets.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::random::{Case, case};
use experiment::Start;
use fabric::{Builder, LinkClass, LinkId, Network, Outages, PortConfig, Routes};
use flow::LoadBalancing;
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Rate, Span, Time};

type Cables = Vec<(u64, i64)>;

/// Rates in Mb/s and delays in ns of cables that lie side by side.
fn cables() -> impl Strategy<Value = Cables> {
    let rate = prop_oneof![Just(10_000u64), 200..40_000u64];
    let delay = prop_oneof![Just(1_000i64), 100..400_000i64];
    proptest::collection::vec((rate, delay), 1..4)
}

/// Four switches, so that two ways of two hops each lead from the first to the last, with unlike cables between. Hosts
/// of unlike rates at both ends.
fn network(hops: &[Cables; 4], hosts: &[(u64, i64)], buffer: units::Bytes) -> Network {
    let port =
        |(mbps, ns): (u64, i64)| PortConfig { buffer, ..PortConfig::new(Rate::from_mbps(mbps), Span::from_ns(ns)) };
    let mut builder = Builder::default();
    let names = ["a", "b", "c", "d"];
    let [first, upper, lower, last] = names.map(|name| builder.switch(0, name));
    for (between, [near, far]) in hops.iter().zip([[first, upper], [upper, last], [first, lower], [lower, last]]) {
        for (&there, &back) in between.iter().zip(between.iter().rev()) {
            builder.connect(near, far, LinkClass::Other, port(there), port(back));
        }
    }
    for (place, &host) in hosts.iter().enumerate() {
        let node = builder.host(0, format!("host{place}"));
        builder.connect(node, [first, last][place % 2], LinkClass::Host, port(host), port(host));
    }
    builder.finish().unwrap()
}

/// Any run of `common::random` over such a network, some with a link that is down for a while.
fn unlike() -> impl Strategy<Value = Case> {
    let hops = proptest::array::uniform4(cables());
    let hosts = proptest::collection::vec((1_000..100_000u64, 100..5_000i64), 2..5);
    (case(), hops, hosts, 20_000..200_000u64).prop_map(|(mut case, hops, hosts, buffer)| {
        let setup = &mut case.setup;
        setup.network = network(&hops, &hosts, units::Bytes::new(buffer));
        setup.routes = Routes::new(&setup.network).unwrap();
        let count = hosts.len() as u32;
        for (flow, spec) in (0u64..).zip(&mut setup.flows) {
            spec.src.0 %= count;
            spec.dst.0 = (spec.src.0 + 1 + spec.dst.0 % (count - 1)) % count;
            if !matches!(spec.start, Start::At(_)) {
                spec.start = Start::At(Time::from_us(37 * flow));
            }
        }
        if setup.seed.is_multiple_of(2) {
            let other = |link: &fabric::Link| link.class == LinkClass::Other;
            let links = setup.network.links();
            let down = (0..).map(LinkId).zip(links).filter(|(_, link)| other(link)).map(|(id, _)| id);
            let down: Vec<LinkId> = down.collect();
            let down = down[(setup.seed / 2) as usize % down.len()];
            let at = |us| Time::from_us(us + setup.seed % 300);
            if let Ok(avoiding) = Routes::without(&setup.network, &[down].into()) {
                let routes = setup.routes.clone();
                setup.routes = routes.clone().until(at(30), avoiding).until(at(700), routes);
            }
            setup.network = setup.network.clone().with_outages(down, Outages::new([(at(20), at(600))]));
        }
        case
    })
}

proptest! {
    #![proptest_config(common::cases(2_000))]

    #[test]
    fn no_flow_beats_its_ideal_time(case in unlike()) {
        let setup = &case.setup;
        let outcome = common::run(setup, case.kind, &[]);
        for (flow, (spec, end)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            if end.completed.is_set() {
                let (took, ideal) = (end.completed.since(end.started), setup.ideal(spec));
                prop_assert!(took >= ideal, "flow {} took {} and not {} under {:?}", flow, took, ideal, case.kind);
            }
        }
    }

    /// All paths together are no slower than the best of them.
    #[test]
    fn several_paths_are_no_slower_than_one(case in unlike()) {
        let mut one = case.setup.clone();
        one.routes = Routes::new(&one.network).unwrap();
        one.host.path = LoadBalancing::PerFlow;
        let mut all = one.clone();
        all.host.path = LoadBalancing::PerPacket(16);
        for spec in &one.flows {
            prop_assert!(all.ideal(spec) <= one.ideal(spec), "{:?}", spec);
        }
    }
}

/// One flow over unequal cables takes its ideal time to the picosecond if its hash selects the better cable, and longer
/// if not.
#[test]
fn the_best_cable_is_the_ideal() {
    let side = vec![(10_000, 3_000), (4_000, 90_000)];
    let straight = vec![(40_000, 1_000)];
    let hops = [side, straight.clone(), vec![(1_000, 500_000)], straight];
    let mut took = Vec::new();
    for seed in 0..40 {
        let network = network(&hops, &[(10_000, 1_000); 2], units::Bytes::MAX);
        let mut setup = common::setup(network, vec![common::flow(0, 1, 300_001)], Time::from_ms(500));
        setup.seed = seed;
        let window = ("window", laws::catalog::ParamValue::Bytes(units::Bytes::new(1 << 40)));
        let end = common::run(&setup, LawKind::Fixed, &[window]).flows[0];
        took.push((end.completed.since(end.started), setup.ideal(&setup.flows[0])));
    }
    assert!(took.iter().all(|(took, ideal)| took >= ideal));
    assert!(took.iter().any(|(took, ideal)| took == ideal) && took.iter().any(|(took, ideal)| *took > ideal.times(2)));
}
