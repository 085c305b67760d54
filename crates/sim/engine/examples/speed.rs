//! Engine speed on Uno's network: `cargo run --release -p narrows-engine --example speed [WORKLOAD] [THREADS] [priority|plain] [MIB]`.

use experiment::{FlowSpec, HostConfig, SeriesConfig, Setup, Start};
use fabric::topology::FatTrees;
use fabric::{Ecn, HostId, LinkClass, Phantom, PortConfig, Routes};
use flow::LoadBalancing;
use laws::catalog::{LawKind, build};
use units::{Bytes, Frac, Rate, Span, Time, mix64};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let which = args.get(1).map_or("permutation", String::as_str);
    let threads = args.get(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    let priority = args.get(3).is_some_and(|word| word == "priority");
    let mib: u64 = args.get(4).and_then(|n| n.parse().ok()).unwrap_or(64);
    let ecn = |min: u64, max: u64| Ecn { min: Bytes::new(min), max: Bytes::new(max), max_probability: Frac::ONE };
    let port = PortConfig {
        buffer: Bytes::new(1 << 20),
        ecn: Some(ecn(1 << 18, 3 << 18)),
        phantom: Some(Phantom {
            size: Bytes::new(22_400_000),
            drain: Frac::millionths(900_000),
            ecn: ecn(448_000, 13_440_000),
        }),
        control_priority: priority,
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    let trees = FatTrees::uno(port, Span::from_us(990));
    let trees = if which == "permutation" { FatTrees { datacenters: 1, ..trees } } else { trees };
    let network = trees.build().unwrap();
    let shared = args.get(5).is_some_and(|word| word == "shared");
    let pfc = fabric::Pfc { frame: 64, relay: false };
    let switch = fabric::Switch {
        buffer: Bytes::new(32 << 20),
        reserve: Bytes::new(4_096),
        egress_alpha: None,
        pfc: Some(pfc),
        int: true,
    };
    let network = if shared { network.sharing(|_, _| Some(switch)) } else { network };
    let hosts = network.hosts().len() as u32;
    let size = Bytes::new(if which == "permutation" { mib << 20 } else { mib << 19 });
    let flows = (0..hosts)
        .map(|src| {
            let other = match which {
                "permutation" => (src + 37) % hosts,
                _ if mix64(src.into()).is_multiple_of(5) => (src + 128) % hosts,
                _ => src / 128 * 128 + (src + 37) % 128,
            };
            FlowSpec {
                src: HostId(src),
                dst: HostId(other),
                size,
                start: Start::At(Time::ZERO),
                kind: 0,
                class: 1,
                on_ramp: false,
                coded: false,
                kept: false,
            }
        })
        .collect();
    let routes = Routes::new(&network).unwrap();
    let int = args.get(6).is_some_and(|word| word == "int");
    let host = HostConfig { path: LoadBalancing::PerPacket(256), int, ..HostConfig::default() };
    let setup = Setup {
        network,
        routes,
        symmetric: false,
        flows,
        host,
        series: SeriesConfig::default(),
        seed: 1,
        stop: Time::from_ms(100),
        intra_rtt: Span::from_us(14),
        dependencies: experiment::Dependencies::default(),
        modules: Vec::new(),
        ties: experiment::TieBreak::default(),
    };
    #[allow(clippy::disallowed_methods)] // An example may take the time.
    let began = std::time::Instant::now();
    let outcome = engine::run(&setup, threads, |_, path| build(LawKind::UnoCc, path, &[]).unwrap(), &mut |_| true);
    let wall = began.elapsed().as_secs_f64();
    let done = outcome.flows.iter().filter(|flow| flow.completed.is_set()).count();
    let drops: u64 = outcome.links.iter().map(|link| link.drops).sum();
    let marks: u64 = outcome.links.iter().map(|link| link.marks).sum();
    let inter = outcome.links.iter().zip(setup.network.links()).filter(|(_, l)| l.class == LinkClass::Inter);
    println!(
        "{which}: {:.1} Mhop/s ({} hops, {} events, {wall:.3} s), ended {}, {done}/{hosts} done, {drops} drops, {marks} marks, {} inter, {} retransmits",
        outcome.engine.packet_hops as f64 / wall / 1e6,
        outcome.engine.packet_hops,
        outcome.engine.events,
        outcome.ended,
        inter.map(|(o, _)| o.packets).sum::<u64>(),
        outcome.flows.iter().map(|flow| flow.stats.retransmits).sum::<u64>(),
    );
}
