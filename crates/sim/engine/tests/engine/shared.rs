//! Switches that share their buffer.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::random::{Case, case_with};
use experiment::{Dependencies, Dependency, FlowId, Setup};
use fabric::topology::{SingleSwitch, single_switch};
use fabric::{IngressLimit, PortConfig, Switch};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

/// No limit but the ports', no pauses.
const OPEN: Switch = Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };

proptest! {
    #![proptest_config(common::cases(120))]

    /// A shared-buffer switch with an unlimited buffer equals a switch with a queue per port, to the picosecond.
    #[test]
    fn without_a_limit_sharing_changes_nothing(case in case(Just(u64::MAX).boxed()), stop_us in 100..5_000u64) {
        let none_trims = case.setup.network.params().iter().all(|port| port.config().trim.is_none());
        prop_assume!(none_trims, "control has no limit where a buffer is shared");
        assert_same(Setup { stop: Time::from_us(stop_us), ..case.setup }, case.kind)?;
    }

    /// The same with a limit for each port.
    #[test]
    fn ports_that_share_keep_their_own_limits(case in case((10_000..150_000u64).boxed()), stop_us in 100..5_000u64) {
        let all_alike = case.setup.network.params().iter().all(|port| !port.config().control_priority);
        prop_assume!(all_alike, "control has no limit where a buffer is shared");
        assert_same(Setup { stop: Time::from_us(stop_us), ..case.setup }, case.kind)?;
    }
}

/// Ports with such buffers, and without credit queues: a switch that shares its buffer has none.
fn case(buffer: BoxedStrategy<u64>) -> impl Strategy<Value = Case> {
    case_with(buffer, Just(IngressLimit::default()).boxed(), Just(None).boxed())
}

fn assert_same(plain: Setup, kind: LawKind) -> Result<(), TestCaseError> {
    let shared = Setup { network: plain.network.clone().sharing(|_, _| Some(OPEN)), ..plain.clone() };
    let factory = common::law(kind, &[]);
    let [plain, shared] = [plain, shared].map(|setup| engine::run(&setup, 2, &factory, &mut |_| true));
    prop_assert_eq!(plain.flows, shared.flows);
    Ok(())
}

/// Two flows that wait for each other: nothing is ever scheduled. The run sees that at the end of its first epoch,
/// whether or not switches share their buffers.
#[test]
fn a_shared_switch_that_has_nothing_to_do_does_not_keep_a_run_going() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let plain = single_switch(&SingleSwitch { hosts: vec![(port, port); 2] }).unwrap();
    let shared = plain.clone().sharing(|_, _| Some(OPEN));
    let stop = Time::from_ms(60_000);
    let ended = [plain, shared].map(|network| {
        let mut flows = vec![common::flow(0, 1, 1_000), common::flow(1, 0, 1_000)];
        let mut dependencies = Dependencies::default();
        for (flow, other) in [(0, 1), (1, 0)] {
            flows[flow].start = dependencies.start([Dependency::Complete(FlowId(other))], Span::ZERO);
        }
        common::run(&Setup { dependencies, ..common::setup(network, flows, stop) }, LawKind::Fixed, &[]).ended
    });
    assert!(ended[1] == ended[0] && ended[1] < stop, "{ended:?}");
}
