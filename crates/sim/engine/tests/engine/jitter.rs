//! Processing delays of hosts.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::random::case;
use experiment::{Jitter, JitterShape, Setup};
use fabric::PortConfig;
use fabric::topology::{SingleSwitch, single_switch};
use flow::LossTimer;
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

fn jitter(mean: Span) -> Jitter {
    Jitter { mean, shape: JitterShape::Exponential }
}

/// One packet at a time over an idle network: a round trip is the base one and two delays of 1 us on average. The mean
/// of 2,000 delays has a standard error of 0.022 us.
#[test]
fn a_round_trip_has_two_delays() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 2] }).unwrap();
    let packets = 2_000u32;
    let mut setup = common::setup(network, vec![common::flow(0, 1, u64::from(packets) * 4_096)], Time::from_ms(1_000));
    let window = [("window", ParamValue::Bytes(Bytes::new(4_096)))];
    let took = |setup: &Setup| {
        let outcome = common::run(setup, LawKind::Fixed, &window);
        assert_eq!(outcome.flows[0].stats.retransmits, 0);
        outcome.flows[0].completed.since(Time::ZERO)
    };
    let without = took(&setup);
    for shape in [JitterShape::Exponential, JitterShape::Uniform] {
        setup.host.jitter = Some(Jitter { mean: Span::from_us(1), shape });
        let each = (took(&setup) - without).over(packets);
        assert!((each - Span::from_us(2)).ps().abs() < 100_000, "{each} under {shape:?}");
    }
}

/// Delays of 20 us where packets are 0.3 us apart: packets still come to the transport in order.
#[test]
fn delays_of_one_flow_do_not_reorder_it() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = single_switch(&SingleSwitch { hosts: vec![(port, port); 3] }).unwrap();
    let flows = vec![common::flow(0, 2, 1 << 20), common::flow(1, 2, 1 << 20)];
    let mut setup = common::setup(network, flows, Time::from_ms(1_000));
    setup.host.jitter = Some(jitter(Span::from_us(20)));
    // No tolerance at all: a packet out of order would be declared lost.
    setup.host.reordering = Some(Span::ZERO);
    let outcome = common::run(&setup, LawKind::Fixed, &[("window", ParamValue::Bytes(Bytes::new(1 << 18)))]);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.retransmits == 0));
}

/// A packet's own timer includes the hosts' processing delay, also if acknowledgements are sent first: no packet is lost or
/// retransmitted.
#[test]
fn the_packet_timer_waits_for_hosts() {
    let last = PortConfig {
        buffer: Bytes::new(20_000),
        control_priority: true,
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    let network = single_switch(&SingleSwitch { hosts: vec![(last, last); 2] }).unwrap();
    let mut setup = common::setup(network, vec![common::flow(0, 1, 1 << 20)], Time::from_ms(1_000));
    setup.host.jitter = Some(jitter(Span::from_us(10)));
    setup.host.loss_timer = LossTimer::Packet;
    let outcome = common::run(&setup, LawKind::Fixed, &[("window", ParamValue::Bytes(Bytes::new(8_192)))]);
    assert_eq!((outcome.flows[0].stats.timeouts, outcome.flows[0].stats.retransmits), (0, 0));
    assert!(outcome.flows[0].completed.is_set());
}

proptest! {
    #![proptest_config(common::cases(200))]

    /// All flows still end, no packet is lost, no flow beats its ideal, and threads change nothing.
    #[test]
    fn any_run_with_delays_ends(case in case(), mean_ns in 1..50_000i64) {
        let mut setup = case.setup;
        setup.host.jitter = Some(jitter(Span::from_ns(mean_ns)));
        let factory = common::law(case.kind, &[]);
        let [one, two] = [1, 2].map(|threads| engine::run_on(&setup, engine::Threads::always(threads), &factory, &mut |_| true));
        prop_assert_eq!(&one.flows, &two.flows);
        for (spec, end) in setup.flows.iter().zip(&one.flows) {
            prop_assert!(end.completed.is_set() && end.delivered == spec.size, "under {:?}", case.kind);
            prop_assert!(end.completed.since(end.started) >= setup.ideal(spec));
        }
        let lost: u64 = one.links.iter().map(|link| link.lost.data + link.trims).sum();
        prop_assert_eq!(one.engine.data_packets, one.engine.data_received + lost + one.engine.data_in_flight);
    }
}
