//! Switches that share their buffer against the slow engine: reserves, thresholds, headroom, pauses and relays do the
//! same to the picosecond, over random networks.

use crate::common;
use crate::common::oracle::Oracle;
use crate::common::random::sharing_case;
use proptest::prelude::*;
use units::Time;

proptest! {
    #![proptest_config(common::cases(200))]

    #[test]
    fn shared_buffers_and_pauses_agree_with_two_events_a_hop(case in sharing_case(), stop_us in 100..3_000u64) {
        // Both end at the same time, so counters agree too.
        let setup = experiment::Setup { stop: Time::from_us(stop_us), ..case.setup };
        let factory = common::law(case.kind, &[]);
        let (flows, links, switches) = Oracle::new(&setup, &factory).run();
        let outcome = engine::run(&setup, 2, &factory, &mut |_| true);
        common::agree(&setup, &flows, &links, &outcome)?;
        if outcome.flows.iter().any(|flow| !flow.completed.is_set()) {
            prop_assert_eq!(switches, outcome.switches);
        }
    }
}
