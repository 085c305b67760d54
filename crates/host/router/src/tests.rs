//! The router against `fabric`'s ports fed directly, in virtual time: no root, no clock.

use std::sync::{Arc, OnceLock};

use experiment::SeriesConfig;
use fabric::{
    AckAggregation, Arrival, Builder, CoDel, CreditQueue, Discipline, DropCause, Ecn, EcnResponse, Exit, FqCoDel,
    HostId, ImpairmentId, Impairments, InService, IngressLimit, JitterDistribution, JitterOrder, Limit, LinkClass,
    LinkId, LinkJitter, Losses, MarkAt, Network, Pfc, Phantom, PlainPort, Policer, Port, PortConfig, PortExtras,
    PortMode, PortOutlet, PortTransit, QueueItem, QueuedPort, RateSchedule, RateStep, Reordering, Routes, Switch,
};
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time, mix64};

use crate::addresses::{Addresses, plan};
use crate::delivery::Delivery;
use crate::packet::sample::PacketSample;
use crate::packet::{
    CREDIT_DSCP, Headers, OVER_PROVISIONED_CREDIT_DSCP, UNSCHEDULED_DSCP, VNET_LEN, flip_bit, render, render_corrupted,
    wire_segment,
};
use crate::router::{NIC_BACKLOG, Observer, PortDeparture, Router, RouterInputs, RouterTime, RunStart};

const SEED: u64 = 11;
const MTU: u16 = 1520;
const SENDERS: u8 = 3;

/// Three hosts on one switch, a fourth behind another: every packet passes its NIC, `middle` and the last port.
fn network(middle: &PortConfig) -> Network {
    let edge = PortConfig::new(Rate::from_gbps(4), Span::from_us(1));
    let mut builder = Builder::default();
    let (left, right) = (builder.switch(0, "left"), builder.switch(1, "right"));
    for (name, switch, datacenter) in [("a", left, 0), ("b", left, 0), ("c", left, 0), ("d", right, 1)] {
        let host = builder.host(datacenter, name);
        builder.connect(host, switch, LinkClass::Host, edge, edge);
    }
    builder.connect(left, right, LinkClass::Inter, *middle, *middle);
    builder.finish().unwrap()
}

fn link(network: &Network, from: &str, to: &str) -> LinkId {
    let name = format!("{from}>{to}");
    (0..network.links().len() as u32).map(LinkId).find(|&it| network.link_name(it) == name).unwrap()
}

/// The kinds of port that a packet may meet.
fn middles() -> impl Strategy<Value = PortConfig> {
    let plain = PortConfig { buffer: Bytes::new(60_000), ..PortConfig::new(Rate::from_gbps(1), Span::from_us(50)) };
    let red = Ecn { min: Bytes::new(3_000), max: Bytes::new(30_000), max_probability: Frac::HALF };
    let step = Ecn { min: Bytes::new(15_000), max: Bytes::new(15_000), max_probability: Frac::ONE };
    let codel = CoDel { target: Span::from_us(20), interval: Span::from_us(100), response: EcnResponse::Mark };
    let phantom = Phantom { size: Bytes::new(50_000), drain: Frac::ratio(9, 10), ecn: red };
    prop::sample::select(vec![
        plain,
        PortConfig { ecn: Some(red), ..plain },
        PortConfig { ecn: Some(step), loss: Frac::ratio(1, 20), ..plain },
        PortConfig { phantom: Some(phantom), ..plain },
        PortConfig { control_priority: true, ecn: Some(red), ..plain },
        PortConfig { mark_at: MarkAt::Dequeue, ecn: Some(step), loss: Frac::ratio(1, 10), ..plain },
        PortConfig { mark_at: MarkAt::Dequeue, phantom: Some(phantom), control_priority: true, ..plain },
        PortConfig { in_service: InService::All, ecn: Some(step), ..plain },
        PortConfig { credits: Some(CreditQueue { limit: 3, ..CreditQueue::flashpass() }), ..plain },
        PortConfig { discipline: Discipline::CoDel(codel), loss: Frac::ratio(1, 20), ..plain },
        PortConfig { discipline: Discipline::FqCoDel(FqCoDel { codel, ..FqCoDel::RFC }), ..plain },
    ])
}

/// Spans shorter than `max`.
fn wait(max: Span) -> impl Strategy<Value = Span> {
    (0..max.ps()).prop_map(Span::from_ps)
}

/// Load: packets of all senders for the fourth host, in order of time.
fn loads() -> impl Strategy<Value = Vec<(Time, u8, PacketSample)>> {
    let one = (
        wait(Span::from_us(60)),
        0..SENDERS,
        any::<bool>(),
        any::<bool>(),
        0u8..3,
        0u16..3,
        0usize..40_000,
        any::<u32>(),
        prop::sample::select(vec![0, CREDIT_DSCP, OVER_PROVISIONED_CREDIT_DSCP, UNSCHEDULED_DSCP]),
    );
    prop::collection::vec(one, 1..25).prop_map(|packets| {
        let mut now = Time::ZERO;
        let sample = |(wait, sender, v6, tcp, ecn, port, length, sequence, dscp)| {
            now += wait;
            let payload = (0..length).map(|at| (at * 7 + usize::from(sender)) as u8).collect();
            let ports = (1000 + port, 5201);
            (
                now,
                sender,
                PacketSample {
                    v6,
                    tcp,
                    ecn,
                    dscp,
                    source: sender + 1,
                    sequence,
                    ports,
                    payload,
                    ..PacketSample::default()
                },
            )
        };
        packets.into_iter().map(sample).collect()
    })
}

/// Times at which the router is polled.
fn poll_times() -> impl Strategy<Value = Vec<Time>> {
    prop::collection::vec((0..2_000_000_000u64).prop_map(Time::from_ps), 0..20)
}

/// Events seen by an observer.
#[derive(Default)]
struct RouterEvents {
    /// By segment delivered: its time, and a digest of the packet on the wire.
    delivered: Vec<(Time, u64)>,
    /// By delivery: its due time, the number of segments, and the flow.
    deliveries: Vec<(Time, u16, u64)>,
    departed: Vec<(Time, u64)>,
    /// Corrupted segments delivered.
    corrupted: u64,
    now: Time,
    /// Maximum lateness of a delivery.
    late: Span,
}

/// A run with time zero at this time of the router.
fn begun_at(start: Time) -> RunStart {
    Arc::new(OnceLock::from(start))
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |hash, &byte| mix64(hash ^ u64::from(byte)))
}

impl Observer for RouterEvents {
    fn deliver(&mut self, delivery: Delivery) {
        assert_eq!(delivery.host, HostId(3));
        self.late = self.late.max(self.now.saturating_since(delivery.due));
        self.deliveries.push((delivery.due, delivery.segments.len() as u16, delivery.headers.flow));
        let mut out = Vec::new();
        render(delivery.frame, delivery.headers, delivery.segments.clone(), delivery.mark, &mut out);
        if let Some(bits) = delivery.corrupted {
            assert_eq!(delivery.segments.len(), 1);
            render_corrupted(delivery.frame, delivery.headers, delivery.segments.start, delivery.mark, bits, &mut out);
            assert!(out[..VNET_LEN].iter().all(|&byte| byte == 0), "no offload is left to the receiver");
            self.corrupted += 1;
            return self.delivered.push((delivery.due, digest(&out[VNET_LEN..])));
        }
        for segment in delivery.segments {
            let mut bytes = Vec::new();
            wire_segment(delivery.frame, delivery.headers, segment, delivery.mark, &mut bytes);
            self.delivered.push((delivery.due, digest(&bytes)));
        }
    }

    fn depart(&mut self, departure: PortDeparture) {
        let mut bytes = Vec::new();
        wire_segment(departure.frame, departure.headers, departure.segment, departure.mark, &mut bytes);
        self.departed.push((departure.time, digest(&bytes)));
    }
}

struct RouterRun {
    events: RouterEvents,
    links: Vec<experiment::LinkOutcome>,
    held: usize,
}

/// Runs a load through the router, which receives the time when it requests it, and at `poll_times`.
fn run(network: &Network, load: &[(Time, u8, PacketSample)], coalesce: Span, poll_times: &[Time]) -> RouterRun {
    let routes = Routes::new(network).unwrap();
    let mut router = Router::new(&RouterInputs {
        network,
        routes: &routes,
        addresses: &Addresses::new(&plan(network).unwrap()),
        seed: SEED,
        coalesce,
        join: true,
        series: &SeriesConfig::default(),
        watched: &[link(network, "left", "right")],
        mtu: MTU,
        run_start: &begun_at(Time::ZERO),
        time: RouterTime::Real,
    });
    let mut events = RouterEvents::default();
    let mut poll_times = poll_times.to_vec();
    poll_times.sort_unstable();
    let mut poll_times = poll_times.into_iter().peekable();
    for (now, sender, sample) in load {
        loop {
            let at = poll_times.peek().copied().unwrap_or(Time::NEVER).min(router.next_at().unwrap_or(Time::NEVER));
            if at >= *now {
                break;
            }
            poll_times.next_if_eq(&at);
            poll(&mut router, at, &mut events);
        }
        poll(&mut router, *now, &mut events);
        let mut frame = sample.frame();
        let length = frame.len();
        router.accept(HostId((*sender).into()), *now, &mut frame, length, &mut events);
    }
    while let Some(next) = router.next_at() {
        poll(&mut router, next, &mut events);
    }
    let held = router.frames_held();
    assert_eq!(*router.refused(), super::RefusedPackets::default());
    RouterRun { events, links: router.finish().links, held }
}

fn poll(router: &mut Router, now: Time, events: &mut RouterEvents) {
    events.now = now;
    router.advance(now, events);
}

#[derive(Clone, Copy)]
struct TestPacket {
    now: Time,
    identity: u64,
    size: u32,
    control: bool,
    ecn_capable: bool,
    marked: bool,
    dscp: u8,
    flow: u32,
    corrupted: Option<u32>,
    /// Index of the packet in the load, and of the segment.
    origin: (usize, usize),
}

impl QueueItem for TestPacket {
    fn arrival(&self) -> Arrival {
        let Self { now, identity, size, control, ecn_capable, dscp, .. } = *self;
        let credit = [CREDIT_DSCP, OVER_PROVISIONED_CREDIT_DSCP].contains(&dscp);
        let expendable = [OVER_PROVISIONED_CREDIT_DSCP, UNSCHEDULED_DSCP].contains(&dscp);
        Arrival { now, size, ecn_capable, control, credit, expendable, identity }
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn is_corrupted(&self) -> bool {
        self.corrupted.is_some()
    }

    fn corrupted(self, bits: u64) -> Self {
        Self { corrupted: Some((bits >> 32) as u32), ..self }
    }
}

/// Packets that an impaired port sends and drops.
#[derive(Default)]
struct ImpairedLog {
    sent: Vec<(TestPacket, PortTransit)>,
    drops: u64,
    lost: u64,
}

impl PortOutlet<TestPacket> for ImpairedLog {
    fn send(&mut self, packet: TestPacket, passage: PortTransit) {
        self.sent.push((packet, passage));
    }

    fn discard(&mut self, _: TestPacket, _: DropCause) {
        self.drops += 1;
    }

    fn lose(&mut self, _: TestPacket, _: PortTransit) {
        self.lost += 1;
    }

    fn corrupt(&mut self, _: &TestPacket) {
        self.lost += 1;
    }
}

/// Works as [`feed`], for an impaired port of a switch. The schedule of rates begins at time zero.
fn feed_impaired(network: &Network, link: LinkId, arriving: Vec<TestPacket>) -> (Vec<TestPacket>, u64, u64) {
    let params = network.port(link);
    let salt = mix64(SEED) ^ u64::from(link.0) << 20;
    let mut port = Port::new(0, PortMode::Extended);
    let mut extras = PortExtras::of_switch(params.config(), network.impairments(link));
    extras.begin_schedule(Time::ZERO);
    let mut log = ImpairedLog::default();
    for packet in arriving {
        extras.enqueue(&mut port, params, salt, packet, &mut log);
    }
    extras.advance(&mut port, params, salt, Time::NEVER, &mut log);
    let of = |(packet, passage): (TestPacket, PortTransit)| TestPacket {
        now: passage.arrives,
        marked: packet.marked | passage.marked,
        ..packet
    };
    (log.sent.into_iter().map(of).collect(), log.drops, log.lost)
}

/// Feeds a port all its arrivals, in order. Returns the packets that arrive at the link's far end, and the numbers of
/// dropped and lost packets.
fn feed(network: &Network, link: LinkId, arriving: Vec<TestPacket>, is_nic: bool) -> (Vec<TestPacket>, u64, u64) {
    let params = network.port(link);
    if network.impairments(link).is_some() {
        return feed_impaired(network, link, arriving);
    }
    let salt = mix64(SEED) ^ u64::from(link.0) << 20;
    let (mut out, mut drops) = (Vec::new(), 0);
    let mut leave = |packet: TestPacket, passage: PortTransit| out.push((packet, passage));
    if is_nic || params.config().is_plain() {
        let mut port = PlainPort::default();
        for packet in arriving {
            match port.enqueue(params, salt, &packet.arrival()) {
                Some(passage) => leave(packet, passage),
                None => drops += 1,
            }
        }
    } else {
        let mut port = QueuedPort::new(params.config());
        let mut exit = |packet: TestPacket, exit| match exit {
            Exit::Served(passage) => leave(packet, passage),
            Exit::Dropped | Exit::Evicted => drops += 1,
        };
        let mut refused = 0;
        for packet in arriving {
            let refusal = port.enqueue(params, salt, &packet.arrival(), packet, &mut exit);
            refused += u64::from(refusal.is_some());
        }
        port.advance(params, salt, Time::NEVER, &mut exit);
        drops += refused;
    }
    let sent = out.len();
    let mut losses = Losses::default();
    let kept: Vec<TestPacket> = out
        .into_iter()
        .filter(|(packet, _)| !losses.loses(params, salt, &packet.arrival()))
        .map(|(packet, passage)| TestPacket { now: passage.arrives, marked: packet.marked | passage.marked, ..packet })
        .collect();
    let lost = (sent - kept.len()) as u64;
    (kept, drops, lost)
}

/// The same by feeding the ports one after another, each with all that ever arrives at it.
fn reference(network: &Network, load: &[(Time, u8, PacketSample)]) -> (Vec<(Time, u64)>, u64, u64) {
    let mut sent = vec![Vec::new(); usize::from(SENDERS)];
    let mut count = 0;
    for (origin, (now, sender, sample)) in load.iter().enumerate() {
        let headers = Headers::parse(&sample.frame()).unwrap();
        for (index, bytes) in sample.wire_packets(|_| false).iter().enumerate() {
            count += 1;
            sent[usize::from(*sender)].push(TestPacket {
                now: *now,
                identity: mix64(headers.flow ^ mix64(count)),
                size: bytes.len() as u32,
                control: sample.tcp && sample.payload.is_empty(),
                ecn_capable: sample.ecn != 0,
                dscp: sample.dscp,
                marked: false,
                flow: headers.flow as u32,
                corrupted: None,
                origin: (origin, index),
            });
        }
    }
    let mut at_switch = Vec::new();
    for (name, packets) in ["a", "b", "c"].iter().zip(sent) {
        let nic = link(network, name, "left");
        at_switch.extend(feed(network, nic, packets, true).0.into_iter().map(|packet| (packet.now, nic.0, packet)));
    }
    at_switch.sort_by_key(|it| (it.0, it.1));
    let at_switch = at_switch.into_iter().map(|it| it.2).collect();
    let (at_far_switch, drops, lost) = feed(network, link(network, "left", "right"), at_switch, false);
    let (delivered, ..) = feed(network, link(network, "right", "d"), at_far_switch, false);
    let bytes = |packet: TestPacket| {
        let (origin, index) = packet.origin;
        let mut bytes = load[origin].2.wire_packets(|_| packet.marked)[index].clone();
        if let Some(bits) = packet.corrupted {
            let headers = Headers::parse(&load[origin].2.frame()).unwrap();
            let (payload_at, transport_at) = (usize::from(headers.payload_at), usize::from(headers.transport_at));
            let checksum_at = transport_at + if load[origin].2.tcp { 16 } else { 6 };
            let has_payload = bytes.len() > payload_at;
            let part = if has_payload { payload_at..bytes.len() } else { checksum_at..checksum_at + 2 };
            flip_bit(&mut bytes[part], bits);
        }
        (packet.now, digest(&bytes))
    };
    (delivered.into_iter().map(bytes).collect(), drops, lost)
}

proptest! {
    /// Marks, drops, losses and times are those of the ports, for every segment and any polling times.
    #[test]
    fn router_equals_its_ports(
        middle in middles(),
        load in loads(),
        poll_times in poll_times(),
    ) {
        let network = network(&middle);
        let (expected, drops, lost) = reference(&network, &load);
        let ran = run(&network, &load, Span::ZERO, &poll_times);
        let link = ran.links[link(&network, "left", "right").index()];
        prop_assert_eq!((link.drops + link.credit_drops, link.losses), (drops, lost));
        prop_assert_eq!(ran.held, 0, "buffers are given back");
        // Packets that depart from the watched port and are not lost arrive a link's delay later; the last port adds its
        // own service and delay.
        prop_assert_eq!(ran.events.departed.len() as u64, link.packets);
        prop_assert!(ran.events.departed.is_sorted_by_key(|it| it.0));
        prop_assert_eq!(ran.events.delivered, expected);
    }

    /// The same of packets that continue each other, with gaps, in any order of time.
    #[test]
    fn joining_segments_only_delays(
        middle in middles(),
        flows in prop::collection::vec((any::<bool>(), 0u8..3, 1usize..40_000, any::<u32>(), any::<u16>()), 1..4),
        waits in prop::collection::vec((wait(Span::from_us(30)), 0usize..4, 0u8..20), 1..80),
        poll_times in poll_times(),
    ) {
        let network = network(&middle);
        let mut trains: Vec<_> = flows.into_iter().zip(0..).map(|((v6, ecn, length, sequence, id), number)| {
            let payload = (0..length).map(|at| (at * 7) as u8).collect();
            let original = PacketSample { v6, ecn, sequence, id, payload, source: 1, flags: 0x18, ports: (1000 + number, 5201), ..PacketSample::default() };
            train(&original).into_iter()
        }).collect();
        let mut now = Time::ZERO;
        let mut load = Vec::new();
        for (wait, flow, skips) in waits {
            now += wait;
            let count = trains.len();
            // Now and then a packet is left out.
            let packet = trains[flow % count].nth(usize::from(skips == 0));
            load.extend(packet.map(|packet| (now, 0, packet)));
        }
        let (alone, together) = (run(&network, &load, Span::ZERO, &poll_times), run(&network, &load, Span::from_us(100), &poll_times));
        prop_assert_eq!(&together.links, &alone.links);
        prop_assert_eq!(&together.events.departed, &alone.events.departed);
        prop_assert_eq!(together.held, 0);
        prop_assert!(together.events.late < Span::from_ns(20), "{} late", together.events.late);
        let sorted = |events: &RouterEvents| {
            let mut digests: Vec<u64> = events.delivered.iter().map(|segment| segment.1).collect();
            digests.sort_unstable();
            digests
        };
        prop_assert_eq!(sorted(&together.events), sorted(&alone.events));
    }

    /// Coalescing changes when segments are handed over, by no more than it may, and nothing else.
    #[test]
    fn coalescing_only_delays(middle in middles(), load in loads(), poll_times in poll_times()) {
        let network = network(&middle);
        let coalesce = Span::from_us(100);
        let alone = run(&network, &load, Span::ZERO, &poll_times);
        let together = run(&network, &load, coalesce, &poll_times);
        prop_assert_eq!(&together.links, &alone.links);
        prop_assert_eq!(&together.events.departed, &alone.events.departed);
        prop_assert_eq!(together.held, 0);
        // If it is awake whenever it asks to be, it is never late, except for the rounding of its estimate.
        prop_assert!(together.events.late.max(alone.events.late) < Span::from_ns(20));
        let mut arrived = alone.events.delivered.clone();
        for (due, bytes) in &together.events.delivered {
            let Some(at) = arrived.iter().position(|it| it.1 == *bytes) else { panic!("a segment from nowhere") };
            let (arrived, _) = arrived.remove(at);
            prop_assert!(arrived <= *due && *due <= arrived + coalesce);
        }
        prop_assert!(arrived.is_empty());
        // Each flow's segments arrive in the same order as without the other flow.
        let order = |events: &RouterEvents| {
            let flows = events.deliveries.iter().flat_map(|it| std::iter::repeat_n(it.2, it.1.into()));
            let mut order: Vec<_> = flows.zip(events.delivered.iter().map(|it| it.1)).collect();
            order.sort_by_key(|it| it.0);
            order
        };
        prop_assert_eq!(order(&together.events), order(&alone.events));
    }
}

/// Impairments of a link of 1 Gb/s: some of all kinds.
fn impairments() -> impl Strategy<Value = Impairments> {
    let hold = || 1..300i64;
    ((0..400u64, 0..400u64, 0..400u64), (hold(), hold(), hold()), any::<[bool; 6]>(), 2..5u32).prop_map(
        |((duplicated, corrupted, late), (jitter, delay, period), on, packets)| Impairments {
            policer: on[0].then_some(Policer { rate: Rate::from_mbps(500), burst: Bytes::new(30_000) }),
            mtu: on[1].then_some(1_400),
            jitter: on[2].then_some(LinkJitter {
                max: Span::from_us(jitter),
                distribution: JitterDistribution::Uniform,
                order: if on[3] { JitterOrder::Kept } else { JitterOrder::Free },
            }),
            reordering: Some(Reordering { probability: Frac::ratio(late, 1_000), delay: Span::from_us(delay) }),
            duplication: Frac::ratio(duplicated, 1_000),
            corruption: Frac::ratio(corrupted, 1_000),
            ack_aggregation: on[4].then_some(AckAggregation { period: Span::from_us(period), packets, max_size: 200 }),
            rate_schedule: on[5].then(|| {
                let step = |at, mbps| RateStep { at: Span::from_us(at), rate: Rate::from_mbps(mbps) };
                let steps = vec![step(0, 1_000), step(60, 0), step(60 + delay, 200)];
                Arc::new(RateSchedule::new(steps, Some(Span::from_us(500))).unwrap())
            }),
        },
    )
}

proptest! {
    /// The property `router_equals_its_ports` with impairments on the link between the switches.
    #[test]
    fn impaired_links_equal_their_ports(
        middle in middles().prop_filter("no credit queue", |middle| middle.credits.is_none()),
        impairments in impairments(),
        load in loads(),
        poll_times in poll_times(),
    ) {
        let network = network(&PortConfig { impairments: Some(ImpairmentId(0)), ..middle });
        let network = network.with_impairments(vec![Arc::new(impairments)]).unwrap();
        let (expected, drops, lost) = reference(&network, &load);
        for coalesce in [Span::ZERO, Span::from_us(100)] {
            let ran = run(&network, &load, coalesce, &poll_times);
            let link = ran.links[link(&network, "left", "right").index()];
            prop_assert_eq!((link.drops, link.losses, link.lost.total()), (drops, lost, drops + lost));
            prop_assert_eq!(ran.held, 0, "buffers are given back");
            prop_assert_eq!(ran.events.corrupted, link.impaired.corrupted);
            prop_assert!(ran.events.late < Span::from_ns(20), "{} late", ran.events.late);
            let sorted = |events: &[(Time, u64)]| {
                let mut digests: Vec<u64> = events.iter().map(|it| it.1).collect();
                digests.sort_unstable();
                digests
            };
            prop_assert_eq!(sorted(&ran.events.delivered), sorted(&expected));
            if coalesce.is_zero() {
                prop_assert_eq!(&ran.events.delivered, &expected);
            }
        }
    }
}

/// Switches that share a buffer of this size.
fn sharing(network: &Network, buffer: Bytes, pfc: Option<Pfc>) -> Network {
    let switch = Switch { buffer, reserve: Bytes::ZERO, egress_alpha: None, pfc, int: false };
    network.clone().sharing(|_, _| Some(switch))
}

proptest! {
    /// A shared buffer without limit is as good as a queue per port.
    #[test]
    fn unlimited_shared_buffer_equals_its_ports(
        middle in middles().prop_filter("a FIFO", |middle| middle.discipline == Discipline::Fifo && middle.credits.is_none()),
        load in loads(),
        poll_times in poll_times(),
    ) {
        let plain = network(&PortConfig { buffer: Bytes::MAX, ..middle });
        let (alone, shared) =
            (run(&plain, &load, Span::ZERO, &poll_times), run(&sharing(&plain, Bytes::MAX, None), &load, Span::ZERO, &poll_times));
        prop_assert_eq!(&shared.events.delivered, &alone.events.delivered);
        prop_assert_eq!(&shared.events.departed, &alone.events.departed);
        prop_assert_eq!(shared.held, 0);
        prop_assert!(shared.events.late < Span::from_ns(20), "{} late", shared.events.late);
        for (shared, alone) in shared.links.iter().zip(&alone.links) {
            prop_assert_eq!((shared.packets, shared.bytes, shared.marks), (alone.packets, alone.bytes, alone.marks));
            prop_assert_eq!((shared.drops, shared.losses, shared.lost), (alone.drops, alone.losses, alone.lost));
        }
    }

    /// With PFC and enough headroom nothing is dropped, whatever hosts send; without PFC the same buffer drops packets of
    /// a burst.
    #[test]
    fn pauses_prevent_drops(load in loads(), poll_times in poll_times()) {
        let limit = IngressLimit {
            xoff: Limit::Bytes(Bytes::new(10_000)),
            xon_offset: Bytes::new(3_000),
            headroom: Bytes::new(60_000),
        };
        let plain = network(&PortConfig { ingress_limit: limit, ..PortConfig::new(Rate::from_mbps(500), Span::from_us(10)) });
        let pfc = Some(Pfc { frame: 64, relay: false });
        let lossless = run(&limited(&plain, limit, pfc), &load, Span::ZERO, &poll_times);
        let sent = load.iter().map(|(_, _, sample)| sample.wire_packets(|_| false).len()).sum::<usize>();
        prop_assert_eq!(lossless.events.delivered.len(), sent);
        prop_assert_eq!(lossless.held, 0);
        prop_assert_eq!(lossless.links.iter().map(|link| link.drops).sum::<u64>(), 0);
        let lossy = run(&limited(&plain, limit, None), &load, Span::ZERO, &poll_times);
        let drops = lossy.links.iter().map(|link| link.drops).sum::<u64>();
        prop_assert_eq!(lossy.events.delivered.len() as u64 + drops, sent as u64);
        let pauses = lossless.links.iter().map(|link| link.pauses).sum::<u64>();
        prop_assert!(drops == 0 || pauses > 0, "{drops} drops without PFC, {pauses} pauses with it");
    }
}

/// The same with this ingress limit at all ports.
fn limited(plain: &Network, limit: IngressLimit, pfc: Option<Pfc>) -> Network {
    let [edge, middle] = [link(plain, "left", "a"), link(plain, "left", "right")].map(|it| *plain.port(it).config());
    let [edge, middle] = [edge, middle].map(|port| PortConfig { ingress_limit: limit, ..port });
    let mut builder = Builder::default();
    let (left, right) = (builder.switch(0, "left"), builder.switch(1, "right"));
    for (name, switch, datacenter) in [("a", left, 0), ("b", left, 0), ("c", left, 0), ("d", right, 1)] {
        let host = builder.host(datacenter, name);
        builder.connect(host, switch, LinkClass::Host, edge, edge);
    }
    builder.connect(left, right, LinkClass::Inter, middle, middle);
    sharing(&builder.finish().unwrap(), Bytes::new(1 << 20), pfc)
}

/// Records the departures from the watched port, and delivers to any host.
#[derive(Default)]
struct DepartureTimes(Vec<Time>);

impl Observer for DepartureTimes {
    fn deliver(&mut self, _: Delivery) {}

    fn depart(&mut self, departure: PortDeparture) {
        self.0.push(departure.time);
    }
}

/// The line of the engine's test of pauses, by the same account: times in microseconds; a packet of 1,000 bytes lasts 1,
/// on the slow link 10, a PFC frame 0.064; links take 1. Packet k leaves host 0 at k and comes to b at k + 4. At 7 there
/// are 3,000 bytes in b, which pauses a; the frame waits for a packet of host 2 until 7.5 and comes to a at 8.564, where
/// packet 6 is the last in service. The slow link takes packets 1 to 4 at 14, 24, 34 and 44; then b holds 2,000 bytes
/// and resumes a at 45.064. Packet 7 comes to b at 47.064: again 3,000 bytes, a pause from 48.128, and a resume at 55.064,
/// as packet 5 is taken at 54.
#[test]
fn a_pause_takes_effect_when_its_frame_arrives() {
    let ingress_limit = |off: u64, hysteresis: u64, headroom: u64| {
        let [off, hysteresis, headroom] = [off, hysteresis, headroom].map(Bytes::new);
        IngressLimit { xoff: Limit::Bytes(off), xon_offset: hysteresis, headroom }
    };
    let port = |ingress_limit| PortConfig { ingress_limit, ..PortConfig::new(Rate::from_gbps(8), Span::from_us(1)) };
    let wide = port(ingress_limit(1 << 40, 0, 0));
    let mut builder = Builder::default();
    let [a, b] = ["a", "b"].map(|name| builder.switch(0, name));
    let hosts = ["h0", "h1", "h2"].map(|name| builder.host(0, name));
    builder.connect(hosts[0], a, LinkClass::Host, wide, wide);
    builder.connect(a, b, LinkClass::Other, wide, port(ingress_limit(3_000, 1_000, 3_000)));
    builder.connect(b, hosts[1], LinkClass::Host, PortConfig { rate: Rate::from_mbps(800), ..wide }, wide);
    builder.connect(b, hosts[2], LinkClass::Host, wide, wide);
    let pfc = Some(Pfc { frame: 64, relay: false });
    let network = sharing(&builder.finish().unwrap(), Bytes::new(1 << 20), pfc);
    let watched = link(&network, "a", "b");
    let mut router = Router::new(&RouterInputs {
        network: &network,
        routes: &Routes::new(&network).unwrap(),
        addresses: &Addresses::new(&plan(&network).unwrap()),
        seed: SEED,
        coalesce: Span::ZERO,
        join: false,
        series: &SeriesConfig::default(),
        watched: &[watched],
        mtu: MTU,
        run_start: &begun_at(Time::ZERO),
        time: RouterTime::Real,
    });
    let mut events = DepartureTimes::default();
    let send = |router: &mut Router, events: &mut DepartureTimes, from: u8, to: u8, now: Time| {
        let sample = PacketSample {
            source: from + 1,
            destination: (0, to + 1),
            payload: vec![0; 948],
            ..PacketSample::default()
        };
        let mut frame = sample.frame();
        let length = frame.len();
        router.advance(now, events);
        router.accept(HostId(from.into()), now, &mut frame, length, events);
    };
    for _ in 0..8 {
        send(&mut router, &mut events, 0, 1, Time::ZERO);
    }
    send(&mut router, &mut events, 2, 0, Time::from_ns(4_500));
    while let Some(next) = router.next_at() {
        router.advance(next, &mut events);
    }
    let ns: Vec<i64> = events.0.iter().map(|time| time.since(Time::ZERO).ps() / 1_000).collect();
    assert_eq!(ns, [3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 46_064]);
    let outcome = router.finish();
    let paused = outcome.links[watched.index()];
    assert_eq!((paused.pauses, paused.paused), (2, Span::from_ns(45_064 - 8_564 + 55_064 - 48_128)));
    let buffers: Vec<u64> = outcome.switches.iter().map(|switch| switch.max_buffer.get()).collect();
    assert_eq!(buffers[1], 6_000, "three packets of the limit and three of the headroom");
    assert!(outcome.switches.iter().all(|switch| switch.headroom_drops == 0));
}

/// A paused NIC accepts packets up to its slack, and again when it is resumed: the host's socket waits meanwhile.
#[test]
fn a_paused_nic_accepts_no_more_than_its_slack() {
    let limit = IngressLimit {
        xoff: Limit::Bytes(Bytes::new(10_000)),
        xon_offset: Bytes::new(3_000),
        headroom: Bytes::new(60_000),
    };
    let plain = network(&PortConfig::new(Rate::from_mbps(10), Span::from_us(10)));
    let network = limited(&plain, limit, Some(Pfc { frame: 64, relay: false }));
    let mut router = Router::new(&RouterInputs {
        network: &network,
        routes: &Routes::new(&network).unwrap(),
        addresses: &Addresses::new(&plan(&network).unwrap()),
        seed: SEED,
        coalesce: Span::ZERO,
        join: false,
        series: &SeriesConfig::default(),
        watched: &[],
        mtu: MTU,
        run_start: &begun_at(Time::ZERO),
        time: RouterTime::Real,
    });
    let mut events = DepartureTimes::default();
    let (mut now, mut accepted, mut longest_wait) = (Time::ZERO, 0, Span::ZERO);
    while accepted < 200 {
        let at = router.nic_accepts_at(HostId(0), NIC_BACKLOG);
        if at <= now {
            let mut frame = PacketSample { payload: vec![0; 1_448], ..PacketSample::default() }.frame();
            let length = frame.len();
            router.accept(HostId(0), now, &mut frame, length, &mut events);
            accepted += 1;
        } else {
            let next = at.min(router.next_at().expect("a paused NIC is resumed"));
            longest_wait = longest_wait.max(next.since(now));
            now = next.max(now);
            router.advance(now, &mut events);
        }
    }
    // 200 packets of 1,500 bytes at 10 Mb/s take 240 ms, and little more than the limit and the slack waits in the network.
    assert!(now > Time::from_ms(150), "{now}");
    assert!(longest_wait < Span::from_ms(20), "{longest_wait}");
}

#[test]
fn packets_with_equal_segment_outcomes_are_delivered_as_one() {
    let network = network(&PortConfig::new(Rate::from_gbps(4), Span::from_ms(1)));
    let sample = PacketSample { payload: vec![5; 14_480], ..PacketSample::default() };
    let ran = run(&network, &[(Time::ZERO, 0, sample)], Span::from_us(100), &[]);
    assert_eq!(ran.events.deliveries.iter().map(|it| it.1).collect::<Vec<_>>(), [10]);
}

/// Returns a flow's packets one by one: the segments that a NIC would cut the sample into, each left to a NIC of its own.
fn train(original: &PacketSample) -> Vec<PacketSample> {
    let chunks: Vec<&[u8]> = original.payload.chunks(original.gso_size.into()).collect();
    let last = chunks.len() - 1;
    let one = |(index, chunk): (usize, &&[u8])| PacketSample {
        id: original.id.wrapping_add(index as u16),
        sequence: original.sequence.wrapping_add((index * usize::from(original.gso_size)) as u32),
        flags: if index == last { original.flags } else { original.flags & !0x09 },
        payload: chunk.to_vec(),
        ..original.clone()
    };
    chunks.iter().enumerate().map(one).collect()
}

#[test]
fn packets_that_continue_each_other_are_delivered_together() {
    let network = network(&PortConfig::new(Rate::from_gbps(1), Span::from_ms(1)));
    for (v6, flags, sequence) in [(false, 0x18, 7), (true, 0x18, u32::MAX - 9_000), (false, 0x11, 0), (true, 0x10, 5)] {
        let original = PacketSample { v6, flags, sequence, payload: vec![5; 100_000], ..PacketSample::default() };
        let load: Vec<(Time, u8, PacketSample)> =
            (0..).step_by(12).zip(train(&original)).map(|(us, it)| (Time::from_us(us), 0, it)).collect();
        let (alone, together) = (run(&network, &load, Span::ZERO, &[]), run(&network, &load, Span::from_us(100), &[]));
        assert_eq!(alone.events.deliveries.len(), 70);
        // 100 us are eight packets of 12 us; 64 KB begin a new one.
        let sizes: Vec<u16> = together.events.deliveries.iter().map(|delivery| delivery.1).collect();
        assert!(sizes.len() <= 10 && sizes.iter().max() == Some(&9), "{sizes:?}");
        let bytes = |ran: &RouterRun| ran.events.delivered.iter().map(|segment| segment.1).collect::<Vec<_>>();
        assert_eq!(bytes(&together), bytes(&alone), "the segments are what they were");
        assert_eq!((together.held, together.links, together.events.departed), (0, alone.links, alone.events.departed));
    }
}

type SampleEdit = fn(&mut PacketSample);

/// A packet that differs in anything that a NIC could not restore stays apart.
#[test]
fn packets_that_do_not_continue_each_other_stay_apart() {
    let network = network(&PortConfig::new(Rate::from_gbps(1), Span::from_ms(1)));
    let original = PacketSample { payload: vec![5; 2 * 1448], ..PacketSample::default() };
    let changes: [(&str, SampleEdit); 9] = [
        ("a gap", |next| next.sequence += 1),
        ("an identification", |next| next.id += 1),
        ("other options", |next| next.tcp_options = 4),
        ("a mark", |next| next.ecn = 3),
        ("CWR", |next| next.flags |= 0x80),
        ("SYN", |next| next.flags |= 2),
        ("another port", |next| next.ports.0 += 1),
        ("no payload", |next| next.payload.clear()),
        ("a longer one", |next| (next.gso_size, next.payload) = (1_449, vec![5; 1_449])),
    ];
    for (label, change) in changes {
        let mut pair = train(&original);
        change(&mut pair[1]);
        let load: Vec<_> = pair.into_iter().map(|sample| (Time::ZERO, 0, sample)).collect();
        let ran = run(&network, &load, Span::from_us(100), &[]);
        assert_eq!(ran.events.deliveries.iter().map(|delivery| delivery.1).collect::<Vec<_>>(), [1, 1], "{label}");
    }
    for flags in [0x18, 0x11, 0x14, 0x30] {
        let mut pair = train(&original);
        pair[0].flags = flags;
        let load: Vec<_> = pair.into_iter().map(|sample| (Time::ZERO, 0, sample)).collect();
        assert_eq!(run(&network, &load, Span::from_us(100), &[]).events.deliveries.len(), 2, "{flags:#x}");
    }
}

#[test]
fn packets_that_cannot_be_forwarded_are_counted() {
    let network = network(&PortConfig::new(Rate::from_gbps(1), Span::from_ms(1)));
    let routes = Routes::new(&network).unwrap();
    let mut router = Router::new(&RouterInputs {
        network: &network,
        routes: &routes,
        addresses: &Addresses::new(&plan(&network).unwrap()),
        seed: SEED,
        coalesce: Span::ZERO,
        join: true,
        series: &SeriesConfig::default(),
        watched: &[],
        mtu: MTU,
        run_start: &begun_at(Time::ZERO),
        time: RouterTime::Real,
    });
    let mut events = RouterEvents::default();
    let mut send = |mut frame: Vec<u8>| {
        let length = frame.len();
        router.accept(HostId(0), Time::ZERO, &mut frame, length, &mut events);
        *router.refused()
    };
    assert_eq!(send(vec![0; 200]).malformed, 1);
    assert_eq!(send(Vec::new()).truncated, 1);
    assert_eq!(
        send(PacketSample { payload: vec![0; 9000], gso_size: 8000, ..PacketSample::default() }.frame()).too_long,
        1
    );
    assert_eq!(
        send(PacketSample { destination: (0, 1), ..PacketSample::default() }.frame()).unroutable,
        1,
        "to itself"
    );
    assert_eq!(send(PacketSample { destination: (7, 1), v6: true, ..PacketSample::default() }.frame()).unroutable, 2);
    assert_eq!(router.next_at(), None);
}

/// Times of failures and of samples count from the start of the run, not from that of the router, which passes handshakes
/// before.
#[test]
fn failures_and_samples_have_the_times_of_the_run() {
    let middle = PortConfig::new(Rate::from_gbps(1), Span::from_us(50));
    let network = network(&middle);
    let port = link(&network, "left", "right");
    let (from, until) = (Time::from_ms(1), Time::from_ms(2));
    let network = network.with_outages(port, fabric::Outages::new([(Time::ZERO, Time::from_us(100)), (from, until)]));
    let routes = Routes::new(&network).unwrap();
    let zero = RunStart::default();
    let series = SeriesConfig { interval: Span::from_us(500), ports: vec![port], ..SeriesConfig::default() };
    let mut router = Router::new(&RouterInputs {
        network: &network,
        routes: &routes,
        addresses: &Addresses::new(&plan(&network).unwrap()),
        seed: SEED,
        coalesce: Span::ZERO,
        join: true,
        series: &series,
        watched: &[],
        mtu: MTU,
        run_start: &zero,
        time: RouterTime::Real,
    });
    let mut events = RouterEvents::default();
    let mut arrives = |router: &mut Router, now: Time| {
        let before = events.deliveries.len();
        poll(router, now, &mut events);
        let mut frame = PacketSample { payload: vec![0; 100], ..PacketSample::default() }.frame();
        let length = frame.len();
        router.accept(HostId(0), now, &mut frame, length, &mut events);
        poll(router, now + Span::from_us(400), &mut events);
        events.deliveries.len() > before
    };
    // Before the run there are no failures.
    assert!(arrives(&mut router, Time::ZERO) && arrives(&mut router, Time::from_us(1_500)));
    let start = Time::from_ms(10);
    zero.set(start).unwrap();
    let of_run = |us: i64| start + Span::from_us(us);
    assert!(!arrives(&mut router, of_run(0)), "the link is down from the start");
    assert!(arrives(&mut router, of_run(500)));
    assert!(!arrives(&mut router, of_run(1_200)) && !arrives(&mut router, of_run(1_940)));
    assert!(arrives(&mut router, of_run(2_500)));
    let outcome = router.finish();
    // Two packets crossed the port before the run, five in it; three of these were lost.
    let counts = &outcome.links[port.0 as usize];
    assert_eq!((counts.packets, counts.losses, counts.lost.data), (5, 3, 3));
    let times: Vec<Time> = outcome.port_samples.iter().map(|sample| sample.time).collect();
    assert_eq!(times, (0..6).map(|step| Time::from_us(500 * step)).collect::<Vec<_>>());
}

#[test]
fn queues_are_sampled_at_their_times() {
    let middle = PortConfig::new(Rate::from_gbps(1), Span::from_us(50));
    let network = network(&middle);
    let routes = Routes::new(&network).unwrap();
    let port = link(&network, "left", "right");
    let mut router = Router::new(&RouterInputs {
        network: &network,
        routes: &routes,
        addresses: &Addresses::new(&plan(&network).unwrap()),
        seed: SEED,
        coalesce: Span::ZERO,
        join: true,
        series: &SeriesConfig {
            interval: Span::from_us(10),
            ports: vec![port],
            flows: Vec::new(),
            ..SeriesConfig::default()
        },
        watched: &[],
        mtu: MTU,
        run_start: &begun_at(Time::ZERO),
        time: RouterTime::Real,
    });
    let mut frame = PacketSample { payload: vec![0; 14_480], ..PacketSample::default() }.frame();
    let length = frame.len();
    router.accept(HostId(0), Time::ZERO, &mut frame, length, &mut RouterEvents::default());
    router.advance(Time::from_us(105), &mut RouterEvents::default());
    let samples = router.finish().port_samples;
    assert_eq!(samples.len(), 11);
    assert!(samples.iter().enumerate().all(|(at, it)| it.time == Time::from_us(at as u64 * 10) && it.link == port));
    // Ten segments arrive at 4 Gb/s from 4 us on, one each 3 us, and leave at 1 Gb/s: at 30 us nine are in, and 26 us have
    // been served.
    let in_queue = samples[3].queue.get();
    assert!((9 * 1500 - 26 * 125..=9 * 1500 - 25 * 125).contains(&in_queue), "{in_queue}");
    assert_eq!(samples[0].queue, Bytes::ZERO);
}
