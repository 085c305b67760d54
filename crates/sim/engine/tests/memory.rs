//! Memory cost of packets and flows. One test, so that nothing else uses the measured heap.

#[path = "engine/common/mod.rs"]
mod common;

use common::{flow, setup};
use engine::Packet;
use experiment::{FlowSpec, Outcome, Setup, Start};
use fabric::topology::{Dumbbell, FatTrees, dumbbell};
use fabric::{HostId, PortConfig};
use laws::catalog::{LawKind, ParamValue};
use peak_alloc::PeakAlloc;
use units::{Bytes, Rate, Span, Time};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes of a packet in flight: 32 bytes in the sender's record (`flow` tests that) and 32 on the link.
const A_PACKET: usize = 64;

/// Returns the growth of the heap once `window` packets are on a long link and none has arrived.
fn held_by_a_run(window: u64) -> usize {
    let edge = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let side = vec![(edge, edge)];
    let bottleneck = PortConfig { delay: Span::from_ms(50), ..edge };
    let network = dumbbell(&Dumbbell { left: side.clone(), right: side, bottleneck, two_datacenters: true });
    let network = network.expect("the dumbbell is whole");
    let setup = setup(network, vec![flow(0, 1, 1 << 40)], Time::from_ms(49));
    let settings = [("window", ParamValue::Bytes(Bytes::new(window * 4_096)))];
    let (before, mut held) = (HEAP.current_usage(), 0);
    let outcome = engine::run(&setup, 1, common::law(LawKind::Fixed, &settings), &mut |_| {
        held = HEAP.current_usage() - before;
        true
    });
    assert_eq!(outcome.flows[0].stats.packets_sent, window);
    held
}

fn packets_in_flight_are_small() {
    assert_eq!(size_of::<Packet>() + 32, A_PACKET);
    let packets = 1 << 17;
    let grown = held_by_a_run(packets) - held_by_a_run(1);
    println!("{} bytes a packet in flight", grown as f64 / packets as f64);
    assert!(grown <= 72 * packets as usize, "{grown}");
}

/// One way over the long haul; a flow of one packet lasts twice that and a little.
const LONG_HAUL: Span = Span::from_ms(10);

/// Flows of one packet between two datacenters of 128 hosts, evenly spaced so that `active` of them are under way.
fn crowd(flows: u32, active: u32) -> Setup {
    let port = PortConfig { buffer: Bytes::new(1 << 20), ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
    let network = FatTrees::uno(port, LONG_HAUL).build().expect("the trees are whole");
    let apart = LONG_HAUL.times(2).over(active);
    let flow = |index: u32| FlowSpec {
        src: HostId(index % 128),
        dst: HostId(128 + index * 37 % 128),
        size: Bytes::new(1_000),
        start: Start::At(Time::ZERO + apart.times(index)),
        kind: 0,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    };
    setup(network, (0..flows).map(flow).collect(), Time::from_ms(100_000))
}

/// Runs it on one thread under `UnoCC`, to the last flow's end. Also returns the average number of concurrent flows.
fn run_crowd(setup: &Setup) -> (Outcome, u64) {
    let outcome = common::run(setup, LawKind::UnoCc, &[]);
    let lasted: u64 = outcome.flows.iter().map(|flow| flow.completed.since(flow.started).unsigned_ps() >> 10).sum();
    let active = lasted / (outcome.ended.ps() >> 10);
    (outcome, active)
}

fn listed_flows_are_small() {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let setup = crowd(1_000_000, 10_000);
    let (outcome, active) = run_crowd(&setup);
    let peak = HEAP.peak_usage() - before;
    println!("a million flows, {active} active: {} MiB, {} bytes a flow", peak >> 20, peak / 1_000_000);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert!((9_500..10_500).contains(&active), "{active} active");
    assert!(peak < 1 << 30, "{peak}");
}

#[test]
fn packets_and_flows_are_small() {
    packets_in_flight_are_small();
    listed_flows_are_small();
}
