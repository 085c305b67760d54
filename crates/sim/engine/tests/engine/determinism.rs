//! The same bits at any number of threads, and twice in a row.

use crate::common;
use crate::common::random::{case, sharing_case};
use engine::Threads;
use experiment::{
    Dependencies, Dependency, FlowId, FlowSpec, HostConfig, SeriesConfig, Setup, SwitchController, SwitchControllerSpec,
};
use fabric::topology::{Dumbbell, FatTrees, dumbbell};
use fabric::{Ecn, IngressLimit, Limit, LinkId, NodeKind, Pfc, Phantom, PortConfig, Switch};
use flow::LoadBalancing;
use laws::catalog::LawKind;
use laws::lscc::{CalculationParams, LimitingParams};
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time};

fn assert_same(setup: &Setup, kind: LawKind) {
    let factory = common::law(kind, &[]);
    let one = engine::run(setup, 1, &factory, &mut |_| true);
    for threads in [1, 2, 3, 4, 8] {
        // However little work an epoch has, all threads run it.
        let mut other = engine::run_on(setup, Threads::always(threads), &factory, &mut |_| true);
        other.engine.threads = one.engine.threads;
        assert!(one == other, "{threads} threads differ from one");
    }
}

/// Four datacenters, all features on, triggers between them: all state that threads could disturb.
#[test]
fn four_datacenters_give_the_same_bits_at_any_number_of_threads() {
    let ecn = |min, max| Ecn { min: Bytes::new(min), max: Bytes::new(max), max_probability: Frac::HALF };
    let port = PortConfig {
        buffer: Bytes::new(100_000),
        ecn: Some(ecn(20_000, 60_000)),
        phantom: Some(Phantom {
            size: Bytes::new(1_000_000),
            drain: Frac::millionths(900_000),
            ecn: ecn(100_000, 500_000),
        }),
        control_priority: true,
        loss: Frac::millionths(500),
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    let trees = FatTrees::uno(port, Span::from_us(40));
    let between = (0..4).flat_map(|low| (low + 1..4).map(move |high| (low, high)));
    let inter = between.map(|between| fabric::topology::InterLinks { between, ..trees.inter[0].clone() }).collect();
    let network = FatTrees { datacenters: 4, k: 4, hosts_per_edge: 2, inter, ..trees }.build().unwrap();
    let hosts = network.hosts().len() as u32;
    let mut flows: Vec<_> = (0..hosts).map(|src| common::flow(src, (src * 7 + 3) % hosts, 300_000)).collect();
    flows.retain(|flow| flow.src != flow.dst);
    let count = flows.len() as u32;
    let mut dependencies = Dependencies::default();
    for index in 0..count {
        let spec = flows[index as usize];
        // Every fourth waits for the end of another far away, too, and for one to come there; then it computes.
        let more = [
            Dependency::Complete(FlowId((index * 5 + 1) % count)),
            Dependency::Received(FlowId((index * 3 + 2) % count)),
        ];
        let more = more.into_iter().filter(|_| index % 4 == 0);
        let after = Span::from_us(i64::from(index % 4 / 3) * 7);
        let start = dependencies.start([Dependency::Complete(FlowId(index))].into_iter().chain(more), after);
        flows.push(experiment::FlowSpec { start, src: spec.dst, dst: spec.src, ..spec });
    }
    let mut setup = Setup { dependencies, ..common::setup(network, flows, Time::from_ms(200)) };
    setup.host = HostConfig { path: LoadBalancing::PerPacket(64), ..setup.host };
    let ports = (0..setup.network.links().len() as u32).map(fabric::LinkId).collect();
    let flows = (0..20).map(FlowId).collect();
    setup.series = SeriesConfig { interval: Span::from_us(10), ports, flows, ..SeriesConfig::default() };
    for kind in [LawKind::UnoCc, LawKind::Bbr] {
        assert_same(&setup, kind);
    }
    setup.symmetric = true;
    assert_same(&setup, LawKind::UnoCc);
    // The senders' knowledge travels with packets from one partition to another.
    setup.series.predictors = (0..count).map(FlowId).collect();
    assert_same(&setup, LawKind::UnoCc);
}

/// LSCC's two controllers at every link between datacenters.
fn controllers(setup: &Setup, telemetry: bool) -> Vec<SwitchControllerSpec> {
    let mut modules = Vec::new();
    let datacenter = |node: fabric::NodeId| setup.network.nodes()[node.index()].datacenter;
    for (index, link) in (0u32..).zip(setup.network.links()) {
        if datacenter(link.from) == datacenter(link.to) {
            continue;
        }
        let port = setup.network.port(LinkId(index)).config();
        let calculation = CalculationParams {
            period: Span::from_us(20),
            reference: Bytes::new(30_000),
            step: Rate::from_gbps(1),
            lowest: Rate::from_mbps(500),
            highest: port.rate,
            lag: port.delay.times(2),
        };
        let limiting = LimitingParams {
            reference: Bytes::new(20_000),
            interval: Span::from_us(30),
            long_flow: Bytes::new(100_000),
            reset: Span::from_us(200),
            size: 64,
            telemetry,
        };
        for module in [SwitchController::RateCalculation(calculation), SwitchController::RateLimiting(limiting)] {
            modules.push(SwitchControllerSpec { link: LinkId(index), module });
        }
    }
    modules
}

/// A long haul between two datacenters with switches that share buffers, pause, report and have controllers: all of these
/// take effect.
#[test]
fn controllers_at_a_long_haul_give_the_same_bits_at_any_number_of_threads() {
    let ingress_limit = IngressLimit {
        xoff: Limit::Bytes(Bytes::new(40_000)),
        headroom: Bytes::new(200_000),
        ..IngressLimit::default()
    };
    let ecn = Ecn { min: Bytes::new(10_000), max: Bytes::new(40_000), max_probability: Frac::HALF };
    let edge = PortConfig { ingress_limit, ecn: Some(ecn), ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1)) };
    let narrow = PortConfig { rate: Rate::from_gbps(4), ..edge };
    let bottleneck = PortConfig { delay: Span::from_us(100), rate: Rate::from_gbps(20), ..edge };
    let plan =
        Dumbbell { left: vec![(edge, edge); 4], right: vec![(edge, narrow); 4], bottleneck, two_datacenters: true };
    for int in [false, true] {
        let pfc = Some(Pfc { frame: 64, relay: false });
        let switch = Switch { buffer: Bytes::new(6 << 20), reserve: Bytes::new(4_000), egress_alpha: None, pfc, int };
        let network = dumbbell(&plan).unwrap().sharing(|_, _| Some(switch));
        let flows = (0..8).map(|src| FlowSpec {
            class: 1 + (src % 3) as u8,
            ..common::flow(src % 4, 4 + (src / 2 + 1) % 4, 3_000_000)
        });
        let mut setup = common::setup(network, flows.collect(), Time::from_ms(20));
        setup.host.int = int;
        setup.modules = controllers(&setup, int);
        let kind = if int { LawKind::Hpcc } else { LawKind::Fixed };
        assert_same(&setup, kind);
        let outcome = engine::run(&setup, 2, common::law(kind, &[]), &mut |_| true);
        assert!(outcome.switches.iter().all(|it| it.messages > 0), "{:?}", outcome.switches);
        assert!(int || outcome.links.iter().any(|it| it.pauses > 0));
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    }
}

/// A law that fails fails the run, at any number of threads, and leaves no thread waiting for the one that died.
#[test]
fn a_law_that_panics_ends_the_run() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = FatTrees { k: 2, hosts_per_edge: 2, ..FatTrees::uno(port, Span::from_us(40)) }.build().unwrap();
    let setup =
        common::setup(network, vec![common::flow(0, 5, 100_000), common::flow(5, 0, 100_000)], Time::from_ms(9));
    for (threads, failing_source) in [(1, 0), (2, 0), (2, 5)] {
        let law = |flow: &experiment::FlowSpec, path: &laws::PathInfo| {
            assert!(flow.src.0 != failing_source, "no law for this flow");
            common::law(LawKind::Dctcp, &[])(flow, path)
        };
        let run = std::panic::AssertUnwindSafe(|| {
            engine::run_on(&setup, engine::Threads::always(threads), law, &mut |_| true)
        });
        assert!(std::panic::catch_unwind(run).is_err(), "{threads} threads");
    }
}

proptest! {
    #![proptest_config(common::cases(60))]

    /// Looking changes nothing: with every port and flow sampled, flows and links do the same.
    #[test]
    fn sampling_changes_no_result(case in case(), interval_ns in 1_000..100_000i64) {
        let factory = common::law(case.kind, &[]);
        let unseen = engine::run(&case.setup, 1, &factory, &mut |_| true);
        let ports = (0..case.setup.network.links().len() as u32).map(fabric::LinkId).collect();
        let flows = (0..case.setup.flows.len() as u32).map(FlowId).collect();
        let interval = Span::from_ns(interval_ns);
        let setup = Setup { series: SeriesConfig { interval, ports, flows, ..SeriesConfig::default() }, ..case.setup };
        let seen = engine::run(&setup, 1, &factory, &mut |_| true);
        prop_assert!((&seen.flows, &seen.links) == (&unseen.flows, &unseen.links));
        // A flow that lasts two intervals meets a sampling time.
        let long = |flow: &experiment::FlowOutcome| flow.completed.since(flow.started) > interval.times(2);
        let met = !seen.port_samples.is_empty() && !seen.flow_samples.is_empty();
        prop_assert!(met || !seen.flows.iter().any(long));
        for sample in &seen.port_samples {
            prop_assert!(sample.queue <= unseen.links[sample.link.index()].max_queue, "{:?}", sample);
        }
    }

    /// Shared buffers, pauses, reports and controllers.
    #[test]
    fn any_run_over_shared_buffers_gives_the_same_bits(
        case in sharing_case(),
        int in any::<bool>(),
        controlled in any::<bool>(),
        scheduled in any::<bool>(),
        stop_us in 100..5_000u64,
    ) {
        let mut setup = Setup { stop: Time::from_us(stop_us), ..case.setup };
        setup.host.int = int;
        setup.ties = if scheduled { experiment::TieBreak::Scheduled } else { experiment::TieBreak::Input };
        setup.network = setup.network.clone().sharing(|network, node| network.nodes()[node.index()].switch.map(|it| Switch { int, ..it }));
        if controlled {
            setup.modules = controllers(&setup, int);
        }
        let links = (0..setup.network.links().len() as u32).map(LinkId).collect();
        let switches = (0..setup.network.nodes().len() as u32).map(fabric::NodeId).collect();
        setup.series = SeriesConfig { interval: Span::from_us(7), ports: links, flows: Vec::new(), switches, ..SeriesConfig::default() };
        assert_same(&setup, case.kind);
    }

    /// Reports are carried outside of packets: flows that do not read them behave the same.
    #[test]
    fn reports_change_no_result(case in sharing_case(), stop_us in 100..5_000u64) {
        let all_share = case.setup.network.nodes().iter().all(|node| node.kind != NodeKind::Switch || node.switch.is_some());
        prop_assume!(all_share && case.kind != LawKind::Hpcc);
        let stop = Time::from_us(stop_us);
        let [unseen, seen] = [false, true].map(|int| {
            let network = case.setup.network.clone().sharing(|network, node| network.nodes()[node.index()].switch.map(|it| Switch { int, ..it }));
            let mut setup = Setup { stop, network, ..case.setup.clone() };
            setup.host.int = int;
            engine::run(&setup, 2, common::law(case.kind, &[]), &mut |_| true)
        });
        prop_assert_eq!(unseen, seen);
    }

    #[test]
    fn any_run_gives_the_same_bits_at_any_number_of_threads(case in case()) {
        assert_same(&case.setup, case.kind);
    }
}
