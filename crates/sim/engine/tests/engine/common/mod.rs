//! Networks and flows for tests, and a slow engine to hold the fast one against.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod slow_switch;

use experiment::{
    Dependencies, Dependency, FlowId, FlowOutcome, FlowSpec, HostConfig, LinkOutcome, Outcome, SeriesConfig, Setup,
    Start,
};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{HostId, Network, PortConfig, Routes};
use flow::credits::CreditStats;
use laws::catalog::{LawKind, ParamValue, build};
use laws::{Law, PathInfo};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use units::{Bytes, Rate, Span, Time};

/// Returns the number of random cases: `all` if `NARROWS_ALL_CASES` is set, as `make test` does, and a quarter of them
/// otherwise.
pub(crate) fn cases(all: u32) -> ProptestConfig {
    let cases = if std::env::var_os("NARROWS_ALL_CASES").is_some() { all } else { all / 4 };
    ProptestConfig { cases, ..ProptestConfig::default() }
}

/// Returns the start at `after` a flow was received.
pub(crate) fn response_start(dependencies: &mut Dependencies, received: u32, after: Span) -> Start {
    dependencies.start([Dependency::Received(FlowId(received))], after)
}

/// A flow that starts at 0.
pub(crate) fn flow(src: u32, dst: u32, size: u64) -> FlowSpec {
    FlowSpec {
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::new(size),
        start: Start::At(Time::ZERO),
        kind: 0,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    }
}

/// A setup with the default host.
pub(crate) fn setup(network: Network, flows: Vec<FlowSpec>, stop: Time) -> Setup {
    let routes = Routes::new(&network).unwrap();
    let mut setup = Setup {
        network,
        routes,
        symmetric: false,
        flows,
        host: HostConfig::default(),
        series: SeriesConfig::default(),
        seed: 1,
        stop,
        intra_rtt: Span::from_us(14),
        dependencies: Dependencies::default(),
        modules: Vec::new(),
        ties: experiment::TieBreak::default(),
    };
    setup.intra_rtt = setup.flows.iter().map(|f| setup.paths(f.src, f.dst, setup.host.mss).base_rtt).min().unwrap();
    setup
}

/// `pairs` hosts on each side of one link, everything else unlimited.
pub(crate) fn pipe(pairs: usize, bottleneck: &PortConfig, edge_rate: Rate, edge_delay: Span) -> Network {
    let edge = PortConfig::new(edge_rate, edge_delay);
    let side = vec![(edge, edge); pairs];
    dumbbell(&Dumbbell { left: side.clone(), right: side, bottleneck: *bottleneck, two_datacenters: false }).unwrap()
}

/// A factory for one law with settings.
pub(crate) fn law<'a>(
    kind: LawKind,
    settings: &'a [(&'a str, ParamValue)],
) -> impl Fn(&FlowSpec, &PathInfo) -> Law + Sync + 'a {
    move |_, path| build(kind, path, settings).unwrap()
}

/// Runs on one thread.
pub(crate) fn run(setup: &Setup, kind: LawKind, settings: &[(&str, ParamValue)]) -> Outcome {
    engine::run(setup, 1, law(kind, settings), &mut |_| true)
}

/// The engine's flows and links are the oracle's.
pub(crate) fn agree(
    setup: &Setup,
    flows: &[Option<FlowOutcome>],
    links: &[LinkOutcome],
    fast: &Outcome,
) -> Result<(), TestCaseError> {
    // Once all flows are done the engine may end before the stop, with strays on the way: credits, too.
    let all_done = fast.flows.iter().all(|flow| flow.completed.is_set());
    let without_strays = |flow: &FlowOutcome| {
        let CreditStats { sent, received, wasted, .. } = flow.credits;
        let credits = CreditStats { sent: 0, received: received - wasted, wasted: 0, ..flow.credits };
        FlowOutcome { credits: if all_done { credits } else { CreditStats { sent, ..flow.credits } }, ..*flow }
    };
    for (flow, (slow, fast)) in flows.iter().zip(&fast.flows).enumerate() {
        match slow {
            Some(slow) => prop_assert_eq!(without_strays(slow), without_strays(fast), "flow {}", flow),
            None => prop_assert!(!fast.started.is_set(), "flow {} should not have started", flow),
        }
    }
    // Once all flows are done the engine may end before the stop, with strays on the way.
    if fast.flows.iter().any(|flow| !flow.completed.is_set()) {
        for (link, (slow, fast)) in links.iter().zip(&fast.links).enumerate() {
            prop_assert_eq!(slow, fast, "link {}", setup.network.link_name(fabric::LinkId(link as u32)));
        }
    }
    Ok(())
}
