//! Runs that the benchmarks share.

use experiment::{FlowSpec, HostConfig, Outcome, SeriesConfig, Setup, Start};
use fabric::topology::FatTrees;
use fabric::{Ecn, HostId, Phantom, PortConfig, Routes};
use flow::LoadBalancing;
use laws::catalog::{LawKind, build};
use laws::{Law, PathInfo};
use units::{Bytes, Frac, Rate, Span, Time};

/// Every host of one 16-host tree sends 1 MiB to another, sprayed, with RED and phantom queues on every port: 4,096
/// data packets.
pub(crate) fn permutation(control_priority: bool) -> Setup {
    let ecn = |min, max| Ecn { min: Bytes::new(min), max: Bytes::new(max), max_probability: Frac::ONE };
    let phantom = Phantom { size: Bytes::new(22_400_000), drain: Frac::ratio(9, 10), ecn: ecn(448_000, 13_440_000) };
    let port = PortConfig {
        buffer: Bytes::new(1 << 20),
        ecn: Some(ecn(262_144, 786_432)),
        phantom: Some(phantom),
        control_priority,
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    let trees = FatTrees::uno(port, Span::from_us(888));
    let network = FatTrees { datacenters: 1, k: 4, hosts_per_edge: 2, inter: Vec::new(), ..trees }.build();
    let network = network.expect("the tree is whole");
    let flow = |src| FlowSpec {
        src: HostId(src),
        dst: HostId((src + 5) % 16),
        size: Bytes::new(1 << 20),
        start: Start::At(Time::ZERO),
        kind: 0,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    };
    Setup {
        routes: Routes::new(&network).expect("the tree is connected"),
        network,
        symmetric: false,
        flows: (0..16).map(flow).collect(),
        host: HostConfig { path: LoadBalancing::PerPacket(256), ..HostConfig::default() },
        series: SeriesConfig::default(),
        seed: 1,
        stop: Time::from_ms(100),
        intra_rtt: Span::from_us(14),
        dependencies: experiment::Dependencies::default(),
        modules: Vec::new(),
        ties: experiment::TieBreak::default(),
    }
}

/// Runs it on one thread under `UnoCC`.
pub(crate) fn run(setup: &Setup) -> Outcome {
    let law = |_: &FlowSpec, path: &PathInfo| -> Law { build(LawKind::UnoCc, path, &[]).expect("the defaults hold") };
    engine::run(setup, 1, law, &mut |_| true)
}
