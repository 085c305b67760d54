//! Priority flow control by hand: the times at which a pause is sent and received, the packets that it holds back, drops
//! with too little headroom, cycles of pauses, and no drops with enough headroom.

use crate::common;
use crate::common::flow;
use experiment::{FlowSpec, Outcome, SeriesConfig, Setup, Start};
use fabric::{Builder, IngressLimit, Limit, LinkClass, LinkId, Network, NodeKind, Pfc, PortConfig, Switch, headroom};
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time};

const FRAME: u32 = 64;

fn pausing(buffer: u64) -> Switch {
    let pfc = Some(Pfc { frame: FRAME, relay: false });
    Switch { buffer: Bytes::new(buffer), reserve: Bytes::ZERO, egress_alpha: None, pfc, int: false }
}

fn ingress_limit(off: u64, hysteresis: u64, headroom: u64) -> IngressLimit {
    let [off, hysteresis, headroom] = [off, hysteresis, headroom].map(Bytes::new);
    IngressLimit { xoff: Limit::Bytes(off), xon_offset: hysteresis, headroom }
}

/// Never pauses.
fn wide() -> IngressLimit {
    ingress_limit(1 << 40, 0, 0)
}

/// A port of 8 Gb/s, a byte a nanosecond, with a microsecond behind it.
fn port(ingress_limit: IngressLimit) -> PortConfig {
    PortConfig { ingress_limit, ..PortConfig::new(Rate::from_gbps(8), Span::from_us(1)) }
}

fn link(network: &Network, name: &str) -> LinkId {
    (0..network.links().len() as u32).map(LinkId).find(|&link| network.link_name(link) == name).unwrap()
}

/// Hosts send packets of 1,000 bytes whenever they may.
fn greedy(setup: &mut Setup) {
    setup.host.mss = 936;
    setup.host.rto_min = Some(Span::from_ms(1));
}

fn run(setup: &Setup, threads: usize) -> Outcome {
    let settings = [("window", ParamValue::Bytes(Bytes::new(1 << 30)))];
    engine::run_on(setup, engine::Threads::always(threads), common::law(LawKind::Fixed, &settings), &mut |_| true)
}

/// Host 0, switch a, switch b, host 1 behind a link of a tenth of the rate, and host 2 at b. Packets from a enter b through
/// an ingress limit of 3,000 bytes with 1,000 of hysteresis.
fn line(headroom: u64) -> Setup {
    lossy_line(headroom, Frac::ZERO)
}

/// The same where the link from b to a loses a share of its packets by chance.
fn lossy_line(headroom: u64, loss: Frac) -> Setup {
    let mut builder = Builder::default();
    let [a, b] = ["a", "b"].map(|name| builder.switch(0, name));
    let hosts = ["h0", "h1", "h2"].map(|name| builder.host(0, name));
    let slow = PortConfig { rate: Rate::from_mbps(800), ..port(wide()) };
    builder.connect(hosts[0], a, LinkClass::Host, port(wide()), port(wide()));
    builder.connect(
        a,
        b,
        LinkClass::Other,
        port(wide()),
        PortConfig { loss, ..port(ingress_limit(3_000, 1_000, headroom)) },
    );
    builder.connect(b, hosts[1], LinkClass::Host, slow, port(wide()));
    builder.connect(b, hosts[2], LinkClass::Host, port(wide()), port(wide()));
    builder.share(a, pausing(1 << 20));
    builder.share(b, pausing(1 << 20));
    let back = FlowSpec { class: 2, start: Start::At(Time::from_ns(4_500)), ..flow(2, 0, 936) };
    let mut setup = common::setup(builder.finish().unwrap(), vec![flow(0, 1, 8 * 936), back], Time::from_us(200));
    greedy(&mut setup);
    setup
}

/// All times in microseconds; a packet lasts 1, on the slow link 10, a frame or acknowledgement 0.064; links take 1.
///
/// Packet k (from 0) leaves host 0 at k, comes to a at k + 2 and to b at k + 4. Packet 0 leaves b at once and lasts until
/// 14. Packets 1, 2 and 3 wait: at 7 there are 3,000 bytes, and b decides to pause a. The packet of flow 1 left host 2 at
/// 4.5, came to b at 6.5 and takes the link to a until 7.5: the pause leaves then, and comes to a at 7.564 + 1 = 8.564.
/// There packet 6 is in service since 8; it is the last. Packets 4, 5 and 6 come to b at 8, 9 and 10, all over 3,000:
/// 3,000 bytes of headroom, 6,000 in all.
///
/// From 14 on a packet leaves b every 10. At 14, 24 and 34 that frees headroom, at 44 (packet 4) the shared part: 2,000
/// are left, 1,000 under the threshold. The resume comes to a at 44 + 0.064 + 1 = 45.064: paused for 36.5. Packet 7, in a
/// since 9, leaves at once and is in b at 47.064: 3,000 again, the second pause is at a at 48.128. At 54 packet 5 leaves,
/// and a resumes at 55.064: 6.936 more.
///
/// Packet 7 leaves b at 74, is at host 1 at 85, its acknowledgement at b at 86.064, a at 87.128, host 0 at 88.192. Flow 1's
/// packet is at a at 8.5 and at host 0 at 10.5; its acknowledgement, of a class that is not paused, is at a at 11.564, at
/// b at 12.628 and at host 2 at 13.692. It needs no more than a moment in the buffers, but room: 64 bytes next to
/// packet 7 in a, next to packets 1 to 6 in b.
#[test]
fn a_pause_and_a_resume_take_their_time() {
    let mut setup = line(100_000);
    let [ab, ba, slow] = ["a>b", "b>a", "b>h1"].map(|name| link(&setup.network, name));
    let interval = Span::from_ns(500);
    let switches = vec![setup.network.links()[ba.index()].from];
    setup.series =
        SeriesConfig { interval, ports: vec![ab, ba, slow], flows: Vec::new(), switches, ..SeriesConfig::default() };
    let outcome = run(&setup, 1);

    let paused = outcome.links[ab.index()];
    assert_eq!((paused.pauses, paused.paused), (2, Span::from_ns(36_500 + 6_936)));
    assert_eq!(outcome.links.iter().map(|it| it.pauses).sum::<u64>(), 2);
    let spans: Vec<_> = outcome.pauses.iter().map(|it| (it.link, it.from.ns(), it.until.ns())).collect();
    assert_eq!(spans, [(ab, 8_564, 45_064), (ab, 48_128, 55_064)]);
    let ended = outcome.flows.iter().map(|flow| flow.completed).collect::<Vec<_>>();
    assert_eq!(ended, [Time::from_ns(88_192), Time::from_ns(13_692)]);
    // Packets: 1 of flow 1, 8 acknowledgements, 4 frames.
    let frames = u64::from(FRAME);
    assert_eq!((outcome.links[ba.index()].packets, outcome.links[ba.index()].bytes.get()), (13, 1_000 + 12 * frames));
    let max = outcome.switches.iter().map(|it| it.max_buffer.get()).collect::<Vec<_>>();
    assert_eq!((max, outcome.links[slow.index()].max_queue.get()), (vec![1_064, 6_064], 6_000));

    // Bytes that arrived over the cable from a and wait in b; bytes that wait in a for b.
    let sample = |link: LinkId, ns: u64| {
        *outcome.port_samples.iter().find(|it| (it.link, it.time) == (link, Time::from_ns(ns))).unwrap()
    };
    let held = |ns| sample(ba, ns).ingress.get();
    let expected = [
        (4_500, 0),
        (5_500, 1_000),
        (7_500, 3_000),
        (10_500, 6_000),
        (14_500, 5_000),
        (43_500, 3_000),
        (44_500, 2_000),
        (47_500, 3_000),
        (54_500, 2_000),
        (74_500, 0),
    ];
    for (ns, bytes) in expected {
        assert_eq!((held(ns), sample(slow, ns).queue.get()), (bytes, bytes), "at {ns} ns");
        let buffer = outcome.switch_samples.iter().find(|it| it.time == Time::from_ns(ns)).unwrap();
        assert_eq!(buffer.buffer.get(), bytes, "at {ns} ns");
    }
    for (ns, bytes) in [(8_500, 0), (9_500, 1_000), (45_000, 1_000), (45_500, 0)] {
        assert_eq!(sample(ab, ns).queue.get(), bytes, "at {ns} ns");
    }
}

/// Switch a has queues of its own and supports neither message: pauses and rates for it end with the link. If they were
/// forwarded they would reach host 0, and pause its NIC.
#[test]
fn a_plain_switch_does_not_forward_frames() {
    let mut setup = line(100_000);
    setup.network = setup.network.sharing(|network, node| {
        let node = &network.nodes()[node.index()];
        (node.name == "b").then_some(node.switch).flatten()
    });
    let [nic, ab, ba, last] = ["h0>a", "a>b", "b>a", "a>h0"].map(|name| link(&setup.network, name));
    let params = laws::lscc::CalculationParams {
        period: Span::from_us(10),
        reference: Bytes::new(1_000),
        step: Rate::from_gbps(1),
        lowest: Rate::from_mbps(1),
        highest: Rate::from_gbps(8),
        lag: Span::from_us(2),
    };
    setup.modules = vec![experiment::SwitchControllerSpec {
        link: ba,
        module: experiment::SwitchController::RateCalculation(params),
    }];
    let outcome = run(&setup, 1);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.retransmits == 0));
    let rates = outcome.switches.iter().map(|it| it.messages).sum::<u64>();
    assert!(rates > 5, "{rates}");
    // A packet of flow 1 and 8 acknowledgements; over b's link also a pause, at 7 us, and a resume, when 2,000 bytes are
    // left of packets 1 to 7, at 54.
    let packets = [ba, last].map(|link| outcome.links[link.index()].packets);
    assert_eq!(packets, [9 + 2 + rates, 9]);
    assert_eq!([nic, ab].map(|link| outcome.links[link.index()].pauses), [0, 0]);
}

/// A link that loses packets by chance loses no resume: a pause without an end would hang all flows behind it.
#[test]
fn chance_loses_no_frames() {
    for seed in 0..20 {
        let mut setup = lossy_line(100_000, Frac::ratio(1, 2));
        (setup.seed, setup.stop) = (seed, Time::from_ms(1_000));
        let outcome = run(&setup, 1);
        let [ab, ba] = ["a>b", "b>a"].map(|name| outcome.links[link(&setup.network, name).index()]);
        assert!(ab.pauses > 0 && ba.losses > 0, "seed {seed}");
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "seed {seed}");
    }
}

/// The same with 2,500 bytes of headroom: packets 4 and 5 fit in, packet 6 does not.
#[test]
fn too_little_headroom_is_counted() {
    let mut setup = line(2_500);
    setup.stop = Time::from_us(20);
    let outcome = run(&setup, 1);
    let slow = link(&setup.network, "b>h1");
    let drops = outcome.switches.iter().map(|it| it.headroom_drops).collect::<Vec<_>>();
    assert_eq!((drops, outcome.links[slow.index()].drops), (vec![0, 1], 1));
    assert_eq!(outcome.switches[1].max_buffer.get(), 5_000 + 64);
    // Without pauses all that finds no room is dropped, and is no fault of headroom.
    let open = Switch { pfc: None, ..pausing(1 << 20) };
    setup.network = setup.network.sharing(|_, _| Some(open));
    let outcome = run(&setup, 1);
    let drops = outcome.switches.iter().map(|it| it.headroom_drops).collect::<Vec<_>>();
    // Packets 4 to 7 find 3,000 bytes before them.
    assert_eq!((drops, outcome.links[slow.index()].drops), (vec![0, 0], 4));
}

/// A ring of five switches, each with a host that sends to the one two hops on: shortest paths turn around the ring.
/// Between switches there may be relays.
fn ring(turning: bool, relays: bool) -> Setup {
    let mut builder = Builder::default();
    let switches: Vec<u32> = (0..5).map(|index| builder.switch(0, format!("s{index}"))).collect();
    let hosts: Vec<u32> = (0..5).map(|index| builder.host(0, format!("h{index}"))).collect();
    for index in 0..5 {
        let there = port(ingress_limit(2_000, 0, 10_000));
        builder.connect(hosts[index], switches[index], LinkClass::Host, there, there);
        if relays {
            let relay = builder.switch(0, format!("r{index}"));
            let bare = port(ingress_limit(100_000, 0, 10_000));
            builder.connect(relay, switches[(index + 1) % 5], LinkClass::Other, bare, there);
            let pfc = Some(Pfc { frame: FRAME, relay: true });
            builder.share(relay, Switch { pfc, ..pausing(200_000) });
            builder.connect(switches[index], relay, LinkClass::Other, there, bare);
        } else {
            builder.connect(switches[index], switches[(index + 1) % 5], LinkClass::Other, there, there);
        }
        builder.share(switches[index], pausing(200_000));
    }
    // Without the fifth flow no packet passes from the link out of s4 to the one out of s0: no circle.
    let flows = (0..if turning { 5 } else { 4 }).map(|index| flow(index, (index + 2) % 5, 936 * 400)).collect();
    let mut setup = common::setup(builder.finish().unwrap(), flows, Time::from_ms(100));
    greedy(&mut setup);
    setup.host.rto_max = Span::from_ms(40);
    setup
}

#[test]
fn a_pause_deadlock_is_reported_and_ends_the_run() {
    let setup = ring(true, false);
    let outcome = run(&setup, 1);
    let mut names: Vec<String> = outcome.deadlock.iter().map(|&link| setup.network.link_name(link)).collect();
    names.sort();
    assert_eq!(names, ["s0>s1", "s1>s2", "s2>s3", "s3>s4", "s4>s0"]);
    assert_eq!(outcome.ended, setup.stop);
    assert!(outcome.flows.iter().all(|flow| !flow.completed.is_set()), "{:?}", outcome.flows);
    // Nothing moves any more, at any stop; senders look at their timers once in a round trip (14 us), and that is all.
    let short = run(&Setup { stop: Time::from_ms(2), ..setup.clone() }, 1);
    assert_eq!(short.engine.packet_hops, outcome.engine.packet_hops);
    assert!(outcome.engine.events < 500 + 5 * 100_000 / 12, "{}", outcome.engine.events);
    for threads in [2, 3] {
        assert_eq!(run(&setup, threads).deadlock, outcome.deadlock);
    }
}

/// Relays pass pauses on, whether they hold packets or not: a circle goes through them.
#[test]
fn a_deadlock_through_relays_is_found() {
    let setup = ring(true, true);
    let outcome = run(&setup, 1);
    let mut names: Vec<String> = outcome.deadlock.iter().map(|&link| setup.network.link_name(link)).collect();
    names.sort();
    let expected = ["r0>s1", "r1>s2", "r2>s3", "r3>s4", "r4>s0", "s0>r0", "s1>r1", "s2>r2", "s3>r3", "s4>r4"];
    assert_eq!(names, expected);
    assert!(outcome.flows.iter().all(|flow| !flow.completed.is_set()), "{:?}", outcome.flows);
    let outcome = run(&ring(false, true), 1);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert_eq!(outcome.deadlock, []);
}

#[test]
fn pauses_without_a_cycle_are_no_deadlock() {
    let setup = ring(false, false);
    let outcome = run(&setup, 1);
    assert!(outcome.links.iter().any(|it| it.pauses > 0));
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert_eq!(outcome.deadlock, []);
    // Nor while they last.
    for us in [50, 100, 200, 300] {
        let outcome = run(&Setup { stop: Time::from_us(us), ..setup.clone() }, 1);
        assert_eq!(outcome.deadlock, [], "at {us} us");
    }
}

/// A chain of switches with hosts, cables of several rates and lengths, every ingress limit with the headroom that its cable
/// needs, and little in addition to it.
fn lossless() -> impl Strategy<Value = Setup> {
    let rate = || prop_oneof![Just(1u64), Just(10), Just(40)];
    let cable = || (rate(), rate(), prop_oneof![1..5_000i64, 5_000..60_000i64]);
    let switches = proptest::collection::vec((cable(), proptest::collection::vec(cable(), 1..4)), 1..5);
    let off = prop_oneof![
        (1..30_000u64).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        (1..300u64).prop_map(|percent| Limit::Alpha(Frac::ratio(percent, 100))),
    ];
    let rest = (off, 0..6_000u64, 0..3_000u64, 1_000..50_000u64, any::<bool>(), 1..4u8);
    let flows = proptest::collection::vec((any::<u32>(), any::<u32>(), 1..300_000u64, 0..100u64), 2..12);
    (switches, rest, flows, prop_oneof![Just(936u32), Just(4_096)]).prop_map(
        |(switches, (off, hysteresis, reserve, shared, control_priority, classes), flows, mss)| {
            let packet = mss + 64;
            let end = |(gbps, back_gbps, delay_ns): (u64, u64, i64)| {
                let (rate, delay) = (Rate::from_gbps(gbps), Span::from_ns(delay_ns));
                let back = Rate::from_gbps(back_gbps);
                let headroom = headroom(back, rate, delay, packet, FRAME, classes.into());
                let ingress_limit = IngressLimit { xoff: off, xon_offset: Bytes::new(hysteresis), headroom };
                PortConfig { ingress_limit, control_priority, ..PortConfig::new(rate, delay) }
            };
            let ends = |(gbps, back, delay): (u64, u64, i64)| (end((gbps, back, delay)), end((back, gbps, delay)));
            let mut builder = Builder::default();
            let mut hosts = 0;
            let mut previous = None;
            let mut nodes = Vec::new();
            for (index, (cable, of_hosts)) in switches.into_iter().enumerate() {
                let switch = builder.switch(0, format!("s{index}"));
                nodes.push(switch);
                if let Some(previous) = previous {
                    let (there, back) = ends(cable);
                    builder.connect(previous, switch, LinkClass::Other, there, back);
                }
                previous = Some(switch);
                for (gbps, _, delay) in of_hosts {
                    // The acknowledgements of a host accumulate in its NIC if the NIC is slower than its arrivals.
                    let cable = (gbps, gbps, delay);
                    let host = builder.host(0, format!("h{hosts}"));
                    hosts += 1;
                    // A host's NIC sends its packets in order.
                    let (port, nic) = ends(cable);
                    let nic = PortConfig { control_priority: false, ..nic };
                    builder.connect(switch, host, LinkClass::Host, port, nic);
                }
            }
            if hosts < 2 {
                let host = builder.host(0, "h1");
                builder.connect(nodes[0], host, LinkClass::Host, end((10, 10, 1_000)), end((10, 10, 1_000)));
                hosts = 2;
            }
            let network = builder.finish().unwrap();
            let flows = (0u8..).zip(flows).map(|(index, (src, other, size, start_us))| {
                let src = src % hosts;
                let dst = (src + 1 + other % (hosts - 1)) % hosts;
                let start = Start::At(Time::from_us(start_us));
                FlowSpec { class: 1 + index % classes, start, ..flow(src, dst, size) }
            });
            let mut setup = common::setup(network, flows.collect(), Time::from_ms(2_000));
            let kept = |network: &Network, node| {
                let of = network.links_out(node);
                let limits: Vec<IngressLimit> =
                    of.map(|link| network.port(LinkId(link)).config().ingress_limit).collect();
                let config = Switch { reserve: Bytes::new(reserve), ..pausing(0) };
                let kept = fabric::reserved_bytes(&config, &limits, classes.into());
                Switch { buffer: kept + Bytes::new(shared), ..config }
            };
            setup.network = setup.network.sharing(|network, node| Some(kept(network, node)));
            setup.host.mss = mss;
            setup.host.rto_min = Some(Span::from_ms(20));
            setup
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// With the headroom that a cable needs nothing is dropped, for any traffic, and all of it arrives.
    #[test]
    fn enough_headroom_drops_nothing(setup in lossless()) {
        let outcome = run(&setup, 1);
        for (index, link) in outcome.links.iter().enumerate() {
            prop_assert_eq!(link.drops, 0, "{}", setup.network.link_name(LinkId(index as u32)));
        }
        for switch in &outcome.switches {
            let node = &setup.network.nodes()[switch.node.index()];
            prop_assert!(switch.headroom_drops == 0 && switch.max_buffer <= node.switch.unwrap().buffer);
        }
        prop_assert!(setup.network.nodes().iter().any(|node| node.kind == NodeKind::Switch));
        for flow in &outcome.flows {
            prop_assert!(flow.completed.is_set());
        }
    }
}
