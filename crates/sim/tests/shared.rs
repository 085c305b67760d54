//! Switches that share their buffer.

mod common;

use common::random::case_with;
use fabric::Switch;
use proptest::prelude::*;
use sim::Setup;
use units::{Bytes, Time};

/// No limit, no pauses.
const OPEN: Switch = Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A switch that shares what has no limit is a switch with queues of its own, to the picosecond.
    #[test]
    fn without_a_limit_sharing_changes_nothing(case in case_with(Just(u64::MAX).boxed()), stop_us in 100..5_000u64) {
        let plain = Setup { stop: Time::from_us(stop_us), ..case.setup };
        let shared = Setup { network: plain.network.clone().sharing(|_| Some(OPEN)), ..plain.clone() };
        let factory = common::law(case.kind, &[]);
        let [plain, shared] = [plain, shared].map(|setup| sim::run(&setup, 2, &factory, &mut |_| true));
        prop_assert_eq!(plain.flows, shared.flows);
    }
}
