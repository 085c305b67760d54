//! The fast engine against the slow one with hosts that do more than send and acknowledge: go-back-N, notifications,
//! holds on one-way delay, segments, small queues. Both share the hosts; they must agree on the times of calls to
//! hosts.

use crate::common;
use crate::common::oracle::Oracle;
use crate::common::random::{case, one_law, recover};
use experiment::{Clocks, Cnp, HostConfig, OnRampConfig};
use flow::Recovery;
use laws::on_ramp::OnRampParams;
use proptest::prelude::*;
use units::{Bytes, Frac, Span, Time};

fn on_ramp() -> impl Strategy<Value = OnRampConfig> {
    (1..200i64, any::<bool>(), any::<bool>(), 1..12u32, any::<bool>()).prop_map(
        |(threshold_us, strawman, on_queueing_delay, ack_every, memory)| {
            let params = OnRampParams { threshold: Span::from_us(threshold_us), gain: Frac::ratio(1, 16), strawman };
            OnRampConfig { params, on_queueing_delay, ack_every, ack_size: 78, memory }
        },
    )
}

/// Generates further features of hosts; applied to the host of a random case.
fn host() -> impl Strategy<Value = HostConfig> {
    let nack = proptest::option::of(0..600i64);
    let cnp = proptest::option::of(1..60i64);
    let clocks = (0..2_000i64, 0..50_000u32, proptest::option::of(1..1_000i64));
    let small_queue = proptest::option::of(1..200_000u64);
    (nack, cnp, proptest::option::of(on_ramp()), clocks, 0..65_536u32, small_queue).prop_map(
        |(nack, cnp, on_ramp, (sigma_ns, drift_ppb, resync_us), segment, small_queue)| HostConfig {
            recovery: nack
                .map_or(Recovery::Selective, |us| Recovery::GoBackN { nack_interval: Span::from_us(us), acks: true }),
            cnp: cnp.map(|us| Cnp { interval: Span::from_us(us), size: 60 }),
            on_ramp,
            clocks: Clocks { sigma: Span::from_ns(sigma_ns), drift_ppb, resync: resync_us.map(Span::from_us) },
            segment: if segment % 2 == 0 { 0 } else { segment },
            small_queue: small_queue.map(Bytes::new),
            ..HostConfig::default()
        },
    )
}

proptest! {
    #![proptest_config(common::cases(200))]

    #[test]
    fn the_engine_agrees_with_two_events_a_hop(case in case(), host in host(), stop_us in 100..5_000u64) {
        let mut setup = experiment::Setup { stop: Time::from_us(stop_us), ..case.setup };
        let HostConfig { recovery, cnp, on_ramp, clocks, segment, small_queue, .. } = host;
        setup.host = HostConfig { cnp, on_ramp, clocks, segment, small_queue, ..setup.host };
        recover(&mut setup, recovery);
        if segment > 0 {
            one_law(&mut setup);
        }
        for (index, flow) in setup.flows.iter_mut().enumerate() {
            flow.on_ramp = index % 3 > 0;
            flow.class = 1 + index as u8 % 7;
        }
        let factory = common::law(case.kind, &[]);
        let (flows, links, _) = Oracle::new(&setup, &factory).run();
        let outcome = engine::run(&setup, 2, &factory, &mut |_| true);
        common::agree(&setup, &flows, &links, &outcome)?;
    }

    /// Every flow ends with any further features of hosts.
    #[test]
    fn every_flow_ends(case in case(), host in host()) {
        let mut setup = case.setup;
        let HostConfig { recovery, cnp, on_ramp, clocks, segment, small_queue, .. } = host;
        setup.host = HostConfig { cnp, on_ramp, clocks, segment, small_queue, ..setup.host };
        recover(&mut setup, recovery);
        if segment > 0 {
            one_law(&mut setup);
        }
        for flow in &mut setup.flows {
            flow.on_ramp = true;
        }
        let outcome = engine::run(&setup, 1, common::law(case.kind, &[]), &mut |_| true);
        for (flow, end) in outcome.flows.iter().enumerate() {
            prop_assert!(end.completed.is_set() && end.delivered == setup.flows[flow].size, "flow {}: {:?}", flow, end);
        }
    }
}
