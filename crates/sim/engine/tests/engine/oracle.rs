//! The fast engine against the slow one: the same flows, to the picosecond, over random networks with every kind
//! of port.

use crate::common;
use crate::common::oracle::Oracle;
use crate::common::random::case;
use experiment::{FlowSpec, Start};
use fabric::PortConfig;
use fabric::topology::{SingleSwitch, single_switch};
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

proptest! {
    #![proptest_config(common::cases(200))]

    #[test]
    fn the_engine_agrees_with_two_events_a_hop(case in case(), stop_us in 100..5_000u64) {
        // Both end at the same time, so counters agree too.
        let setup = experiment::Setup { stop: Time::from_us(stop_us), ..case.setup };
        let factory = common::law(case.kind, &[]);
        let (flows, links, _) = Oracle::new(&setup, &factory).run();
        let outcome = engine::run(&setup, 2, &factory, &mut |_| true);
        common::agree(&setup, &flows, &links, &outcome)?;
    }
}

/// Two flows of one host that start together at the same pace are due at the NIC at the same times. Their order depends
/// on the flows, not on the slots that flows of other hosts left free: those are left in the order in which nodes run.
#[test]
fn flows_of_one_pace_take_turns_by_their_numbers() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 4] }).unwrap();
    let flow = |src, dst, size, start_ns| FlowSpec {
        start: Start::At(Time::from_ns(start_ns)),
        ..common::flow(src, dst, size)
    };
    // Host 1 is done before host 0, in the same window.
    let early = [flow(0, 2, 4_096, 100), flow(1, 3, 4_096, 0)];
    let late = [flow(0, 2, 100_000, 10_000), flow(0, 3, 100_000, 10_000)];
    let setup = common::setup(network, [early, late].concat(), Time::from_ms(1));
    let settings = [("window", ParamValue::Bytes(Bytes::new(40_960))), ("paced", ParamValue::Switch(true))];
    let factory = common::law(LawKind::Fixed, &settings);
    let (flows, ..) = Oracle::new(&setup, &factory).run();
    let outcome = engine::run(&setup, 1, &factory, &mut |_| true);
    assert_eq!(flows.into_iter().flatten().collect::<Vec<_>>(), outcome.flows);
    assert!(outcome.flows[2].completed < outcome.flows[3].completed);
}

/// A window is as long as the shortest link only as far as a merge's keys hold: 2^44 ps are 17.6 s.
#[test]
fn links_of_twenty_seconds_keep_the_order() {
    let port = PortConfig::new(Rate::from_mbps(1), Span::from_s(20));
    let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 4] }).unwrap();
    let starts = [0, 6, 18].map(Span::from_s);
    let flows = (1u32..)
        .zip(starts)
        .map(|(src, start)| experiment::FlowSpec {
            start: experiment::Start::At(Time::ZERO + start),
            ..common::flow(src, 0, 2_000_000)
        })
        .collect();
    let setup = common::setup(network, flows, Time::from_ms(3_000_000));
    let factory = common::law(laws::catalog::LawKind::Dctcp, &[]);
    let (flows, ..) = Oracle::new(&setup, &factory).run();
    let outcome = engine::run(&setup, 1, &factory, &mut |_| true);
    assert_eq!(flows.into_iter().flatten().collect::<Vec<_>>(), outcome.flows);
}
