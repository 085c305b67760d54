//! Links, paths and queues against arithmetic: a link is filled to its headers, an unloaded flow takes its ideal
//! time to the picosecond, no queue outgrows its buffer.
#![allow(clippy::unwrap_used)]

use crate::analytic_support::{bottleneck, goodput, off, pipes, seconds};
use crate::common;
use crate::common::{flow, run, setup};
use experiment::{FlowSpec, HostConfig, SeriesConfig, Setup, Start};
use fabric::topology::{Dumbbell, FatTrees, SingleSwitch, dumbbell, single_switch};
use fabric::{HostId, InService, MarkAt, PortConfig};
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

const HUGE: (&str, ParamValue) = ("window", ParamValue::Bytes(Bytes::new(1 << 40)));

// goodput = min(C * p / (p + h), W / RTT): the link to within its headers, or a window a round trip (Little's
// law). The window that divides the two is C * RTT * p / (p + h); tested are just over it, half of it, and no limit.
// Tolerance 0.1 %: over whole round trips only a packet at either end can be off.
#[test]
fn a_flow_fills_its_link_to_its_headers_or_sends_a_window_a_round_trip() {
    let ten_packets = Span::from_us(14);
    for (gbps, rtt, mss, header) in [
        (10, ten_packets, 1_400, 100),
        (100, ten_packets, 4_096, 64),
        (400, ten_packets, 4_096, 64),
        // Long packets keep 5 GB in flight cheap; their header is as long in proportion.
        (10, Span::from_ms(100), 20_000, 1_000),
        (100, Span::from_ms(100), 60_000, 3_000),
        (400, Span::from_ms(100), 60_000, 3_000),
    ] {
        let rate = Rate::from_gbps(gbps);
        let share = f64::from(mss) / f64::from(mss + header);
        let wire = u64::from(mss + header);
        for fill in [0.5, 1.0, f64::INFINITY] {
            let network = pipes(&PortConfig::new(rate, Span::ZERO), rate, wire, &[rtt]);
            let mut setup = setup(network, vec![flow(0, 1, 1 << 40)], Time::NEVER);
            setup.host = HostConfig { mss, header, ..setup.host };
            let base = setup.paths(HostId(0), HostId(1), mss).base_rtt;
            assert!((base - rtt).ps().abs() <= 2, "{base}");
            // 200 round trips where they are cheap, 1 where they are long.
            let trips = if rtt == ten_packets { 200 } else { 1 };
            let (from, to) = (Time::ZERO + base.times(2), Time::ZERO + base.times(2 + trips));
            setup.stop = to + Span::from_us(1);
            setup.series = SeriesConfig {
                interval: base,
                ports: vec![],
                flows: vec![experiment::FlowId(0)],
                ..SeriesConfig::default()
            };
            let full = rate.bps() as f64 * seconds(base) / 8.0 * share;
            let packets = (full * fill / f64::from(mss)).ceil();
            let window = Bytes::new(if fill > 1.0 { 1 << 40 } else { packets as u64 * u64::from(mss) });
            let outcome = run(&setup, LawKind::Fixed, &[("window", ParamValue::Bytes(window))]);
            let measured = goodput(&outcome, 0, from, to);
            let theory = (rate.bps() as f64 * share).min(window.get() as f64 * 8.0 / seconds(base));
            let off = off(measured, theory);
            println!("{gbps} Gb/s, {rtt}, window {fill}: {measured:.4e} b/s, theory {theory:.4e}, off {off:.2e}");
            assert!(off < 1e-3, "{gbps} Gb/s, {rtt}, window {fill}: {measured} b/s instead of {theory}");
        }
    }
}

// How long the last acknowledgement of a lone flow waits for those before it. An ideal time leaves that out, because
// the others may be lost, or answer several packets. Packets arrive as far apart as the slowest link lets them leave,
// the last one by its own length. Acknowledgements queue on the way back where a link is slower than that.
fn acks_wait(setup: &Setup, spec: &FlowSpec) -> Span {
    let host = &setup.host;
    let path = |from, to| setup.routes.path(&setup.network, from, to, |_, _| 0);
    let packets = spec.size.get().div_ceil(host.mss.into());
    let last = (spec.size.get() - (packets - 1) * u64::from(host.mss)) as u32 + host.header;
    let time = |link: &fabric::LinkId, size| setup.network.port(*link).service(size);
    let delay = |link: &fabric::LinkId| setup.network.port(*link).delay();
    // When each packet, and then its acknowledgement, is at the next port.
    let mut at: Vec<Time> = vec![Time::ZERO; packets as usize];
    let mut over = |links: &[fabric::LinkId], size: &dyn Fn(usize) -> u32| {
        for link in links {
            let mut idle = Time::ZERO;
            for (packet, at) in at.iter_mut().enumerate() {
                idle = idle.max(*at) + time(link, size(packet));
                *at = idle + delay(link);
            }
        }
        at[at.len() - 1]
    };
    let full = host.mss + host.header;
    let arrives = over(&path(spec.src, spec.dst), &|packet| if packet + 1 == packets as usize { last } else { full });
    let back = path(spec.dst, spec.src);
    let answered = over(&back, &|_| host.ack_size);
    let alone: Span = back.iter().map(|link| time(link, host.ack_size) + delay(link)).sum();
    answered.since(arrives) - alone
}

// One flow after another, each alone, so far apart that the network is empty between them.
fn assert_ideal(network: fabric::Network, pairs: &[(u32, u32)], sizes: &[u64], apart: Span) {
    let mut flows = Vec::new();
    let mut start = Time::from_us(3);
    for &(src, dst) in pairs {
        for &size in sizes {
            flows.push(FlowSpec { start: Start::At(start), ..flow(src, dst, size) });
            start += apart;
        }
    }
    let setup = setup(network, flows, start);
    let outcome = run(&setup, LawKind::Fixed, &[HUGE]);
    for (spec, end) in setup.flows.iter().zip(&outcome.flows) {
        let ideal = setup.ideal(spec);
        assert_eq!(end.completed.since(end.started), ideal + acks_wait(&setup, spec), "{spec:?}");
        assert_eq!(end.stats.retransmits, 0, "{spec:?}");
        if spec.size.get() <= 4_096 {
            let measured = setup.paths(spec.src, spec.dst, spec.size.get() as u32).base_rtt;
            assert_eq!(ideal, measured, "a packet's completion time is its base round trip: {spec:?}");
        }
    }
}

// A byte, part of a packet, one, exact multiples, a short last packet, a megabyte.
const SIZES: [u64; 10] = [1, 63, 1_500, 4_095, 4_096, 4_097, 40_960, 41_000, 100_001, 1 << 20];

// FCT = the last packet's way through store-and-forward FIFO ports plus its acknowledgement's way back, which is what
// `Setup::ideal` adds up from rates and delays, plus the last acknowledgement's wait for the others. The base round
// trip is that of one packet. No tolerance.
#[test]
fn an_unloaded_flow_takes_its_ideal_time_in_every_class_of_unos_network() {
    let port = PortConfig { buffer: Bytes::new(1 << 20), ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
    let network = FatTrees::uno(port, Span::from_us(888)).build().unwrap();
    // Under one edge switch, in one pod, across pods, across datacenters (both ways).
    let pairs = [(0, 1), (0, 4), (0, 17), (0, 127), (3, 128), (255, 7)];
    assert_ideal(network, &pairs, &SIZES, Span::from_ms(3));
}

// As above where links differ: the slow one first, in the middle, last, and rates that no packet divides.
#[test]
fn an_unloaded_flow_takes_its_ideal_time_over_unequal_links() {
    for mbps in [[1_000, 10_000, 40_000], [40_000, 1_000, 10_000], [10_000, 40_000, 1_000], [7_777, 3_333, 9_999]] {
        let port = |index: usize| PortConfig::new(Rate::from_mbps(mbps[index]), Span::from_us(5));
        let network = dumbbell(&Dumbbell {
            left: vec![(port(0), port(0)); 2],
            right: vec![(port(2), port(2)); 2],
            bottleneck: PortConfig { delay: Span::from_us(200), ..port(1) },
            two_datacenters: true,
        });
        assert_ideal(network.unwrap(), &[(0, 2), (1, 3), (3, 0)], &SIZES, Span::from_ms(20));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    // As above for any rates, delays, packet sizes and flow sizes.
    #[test]
    fn an_unloaded_flow_takes_its_ideal_time(
        mbps in proptest::array::uniform3(100..400_000u64), delay_ns in proptest::array::uniform3(1_000..2_000_000i64),
        mss in 200..9_000u32, header in 20..200u32, ack_size in 20..200u32, size in 1..300_000u64,
    ) {
        let port = |index: usize| PortConfig::new(Rate::from_mbps(mbps[index]), Span::from_ns(delay_ns[index]));
        let network = dumbbell(&Dumbbell {
            left: vec![(port(0), port(0))],
            right: vec![(port(2), port(2))],
            bottleneck: port(1),
            two_datacenters: true,
        });
        let mut setup = setup(network.unwrap(), vec![flow(0, 1, size)], Time::from_ms(2_000));
        setup.host = HostConfig { mss, header, ack_size, ..setup.host };
        let outcome = run(&setup, LawKind::Fixed, &[HUGE]);
        let spec = &setup.flows[0];
        prop_assert_eq!(outcome.flows[0].completed.since(Time::ZERO), setup.ideal(spec) + acks_wait(&setup, spec));
    }
}

// Sixteen senders at line rate into one port, which is sixteen times too much.
fn overloaded_incast(port: &PortConfig) -> (Setup, experiment::Outcome) {
    let nic = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = single_switch(&SingleSwitch { hosts: vec![(nic, *port); 17] }).unwrap();
    let setup = setup(network, (1..17).map(|src| flow(src, 0, 2_000_000)).collect(), Time::from_us(400));
    let outcome = run(&setup, LawKind::Fixed, &[HUGE]);
    (setup, outcome)
}

// max Q <= B, and, where far more comes than leaves, Q > B - one packet: what is dropped is what does not fit.
// An overloaded link never rests: it carries C * t, 1 % for the first packets' way, and (where packets count when
// they are queued) what it still holds.
#[test]
fn an_overloaded_queue_fills_its_buffer_exactly() {
    let plain = PortConfig { buffer: Bytes::new(250_001), ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
    for port in [
        plain,
        PortConfig { control_priority: true, ..plain },
        PortConfig { mark_at: MarkAt::Dequeue, ..plain },
        PortConfig { in_service: InService::All, ..plain },
        PortConfig { in_service: InService::None, control_priority: true, mark_at: MarkAt::Dequeue, ..plain },
    ] {
        let (setup, outcome) = overloaded_incast(&port);
        // The port towards host 0 answers the link out of it.
        let uplink = setup.network.uplink(HostId(0));
        let link = &outcome.links[setup.network.links()[uplink.index()].reverse.index()];
        println!("{:?}: {} of {}, {} drops", port.in_service, link.max_queue, port.buffer, link.drops);
        assert!(link.max_queue <= port.buffer && link.max_queue > port.buffer - Bytes::new(4_160));
        assert!(link.drops > 1_000);
        let (carried, full) = (link.bytes.get() as f64, 400e-6 * 100e9 / 8.0);
        assert!(carried > 0.99 * full && carried <= full + port.buffer.get() as f64, "{carried} of {full}");
    }
}

// A flow through a tandem of links with the slowest one last queues only there: (n - 1) packets arrive in n * s1 and leave
// in n * s2, so Q = size * (1 - s1 / s2). Tolerance: two packets, for store and forward.
#[test]
fn a_burst_queues_the_rate_difference() {
    let edge = PortConfig::new(Rate::from_gbps(40), Span::from_us(1));
    let network = common::pipe(1, &PortConfig::new(Rate::from_gbps(10), Span::from_us(1)), edge.rate, edge.delay);
    let setup = setup(network, vec![flow(0, 1, 4_096 * 1_000)], Time::from_ms(20));
    let outcome = run(&setup, LawKind::Fixed, &[HUGE]);
    let link = &outcome.links[bottleneck(&setup.network).index()];
    let theory = 4_160.0 * 1_000.0 * (1.0 - 10.0 / 40.0);
    println!("longest queue {}, theory {theory}", link.max_queue);
    assert!((link.max_queue.get() as f64 - theory).abs() < 2.0 * 4_160.0);
}
