//! The stages between a flow's law and its NIC: holds on one-way delay, segments, small queues; over plain networks.

use crate::common;
use crate::host_support::{LawFeedback, RecordingNic, WitnessLaw, number};
use engine::host::{Context, PartitionHosts};
use experiment::{Clocks, FlowId, FlowSpec, HostConfig, InitialQuantum, OnRampConfig, Outcome, Setup, Start};
use fabric::{HostId, PortConfig};
use laws::PathInfo;
use laws::catalog::{LawKind, ParamValue};
use laws::on_ramp::OnRampParams;
use units::{Bytes, Rate, Span, Time};

const MSS: u64 = 4_096;

fn on_ramp(threshold: Span) -> OnRampConfig {
    let params = OnRampParams { threshold, gain: OnRampParams::GAIN, strawman: false };
    OnRampConfig { params, on_queueing_delay: false, ack_every: 1, ack_size: 78, memory: false }
}

/// `senders` hosts that send to one over a switch at 10 Gb/s.
fn incast(senders: u32, size: u64) -> Setup {
    let port = PortConfig::new(Rate::from_gbps(10), Span::from_us(1));
    let shape = fabric::topology::SingleSwitch { hosts: vec![(port, port); senders as usize + 1] };
    let flow = |src| FlowSpec { on_ramp: true, ..common::flow(src, 0, size) };
    let network = fabric::topology::single_switch(&shape).unwrap();
    let mut setup = common::setup(network, (1..=senders).map(flow).collect(), Time::from_ms(100));
    // Queues have no limit here, so nothing is lost, however late it is.
    setup.host.rto_min = Some(Span::from_ms(20));
    setup
}

fn fixed(setup: &Setup, packets: u64, paced: bool) -> Outcome {
    let settings = [("window", ParamValue::Bytes(Bytes::new(packets * MSS))), ("paced", ParamValue::Switch(paced))];
    common::run(setup, LawKind::Fixed, &settings)
}

fn trace(outcome: &Outcome, name: &str) -> Vec<i64> {
    let of = |sample: &experiment::FlowSample| sample.trace.iter().find(|(it, _)| *it == name).map(|(_, value)| *value);
    outcome.flow_samples.iter().filter_map(of).collect()
}

/// One packet at a time meets no queue: the delay is that of the path, and of the two clocks.
#[test]
fn a_one_way_delay_is_path_delay_plus_clock_offset() {
    for sigma in [Span::ZERO, Span::from_us(100)] {
        let mut setup = incast(1, 100 * MSS);
        setup.host.on_ramp = Some(on_ramp(Span::from_ms(1)));
        setup.host.clocks = Clocks { sigma, ..Clocks::default() };
        setup.series.interval = Span::from_us(20);
        setup.series.flows = vec![FlowId(0)];
        let outcome = fixed(&setup, 1, false);
        // Two links of 1 us, and a packet of 4,160 bytes put on each: 3.328 us.
        let path = Span::from_us(2) + Span::from_ns(2 * 3_328);
        let offset = |host| setup.clock_offset(HostId(host), Time::ZERO);
        let expected = path + offset(0) - offset(1);
        assert_eq!(sigma.is_zero(), expected == path);
        let delays = trace(&outcome, "owd_ns");
        // The first sample may be from before the first OR-ACK; both clocks are cut to nanoseconds.
        assert!(delays[1..].iter().all(|delay| (delay - expected.ns()).abs() <= 1), "{expected}: {delays:?}");
        assert_eq!(outcome.flows[0].stats.held, Span::ZERO);
    }
}

/// Clocks only drift between synchronisations, and get a new random offset at each.
#[test]
fn clocks_drift_and_are_synchronised_again() {
    let mut setup = incast(20, 1);
    setup.host.clocks = Clocks { sigma: Span::from_ns(200), drift_ppb: 10_000, resync: Some(Span::from_ms(2_000)) };
    let at = |host, ms| setup.clock_offset(HostId(host), Time::from_ms(ms)).ps();
    for host in 0..20 {
        let drift = at(host, 1_001) - at(host, 1_000);
        // 10 us a second is 10 ns in 1 ms; within 6 standard deviations.
        assert!(drift != 0 && drift.abs() < 60_000);
        assert!((at(host, 1_000) - at(host, 0) - 1_000 * drift).abs() <= 2_000, "host {host}");
        let after = at(host, 2_000);
        assert!(after.abs() < 1_200_000 && after != at(host, 0));
    }
    setup.seed += 1;
    assert_ne!(setup.clock_offset(HostId(1), Time::ZERO).ps(), 0);
}

/// Two windows larger than the path: without a hold the queue contains the excess of the windows, with one it stays near
/// the threshold, and the bottleneck stays busy.
#[test]
fn a_hold_keeps_the_queue_near_its_threshold() {
    let queue = |outcome: &Outcome, setup: &Setup| {
        let down = setup.network.links_out(setup.network.links()[setup.network.uplink(HostId(0)).index()].to);
        down.map(|link| outcome.links[link as usize].max_queue.get()).max().unwrap_or_default()
    };
    for paced in [false, true] {
        let free = incast(2, 2_000 * MSS);
        let mut held = free.clone();
        held.host.on_ramp = Some(on_ramp(Span::from_us(40)));
        let (free_run, held_run) = (fixed(&free, 256, paced), fixed(&held, 256, paced));
        let queues = (queue(&free_run, &free) / 4_160, queue(&held_run, &held) / 4_160);
        // Two packets arrive for each that leaves, so a delay of 40 us, 12 packets, is known when it has doubled.
        assert!(queues.0 > 500 && (24..100).contains(&queues.1), "{queues:?}");
        if let Some(on_ramp) = &mut held.host.on_ramp {
            on_ramp.params.strawman = true;
        }
        let ends = [free_run.ended, held_run.ended, fixed(&held, 256, paced).ended].map(|end| end.since(Time::ZERO));
        // Pauses that are not corrected for the lag of the news leave the bottleneck idle for longer (the paper's Fig. 5).
        assert!(ends[1] < ends[0] + ends[0].over(4) && ends[1] < ends[2], "{ends:?}");
        assert!(free_run.flows.iter().all(|flow| flow.stats.held.is_zero()));
        assert!(held_run.flows.iter().all(|flow| flow.stats.held > Span::from_us(100)), "{:?}", held_run.flows);
        assert!(held_run.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.retransmits == 0));
    }
}

/// A flow that may not be held is not, and costs no OR-ACKs.
#[test]
fn only_the_flows_chosen_are_held() {
    let mut setup = incast(10, 100 * MSS);
    setup.host.on_ramp = Some(on_ramp(Span::from_us(40)));
    let all = fixed(&setup, 64, false);
    for flow in &mut setup.flows[5..] {
        flow.on_ramp = false;
    }
    let half = fixed(&setup, 64, false);
    assert!(half.flows[..5].iter().all(|flow| flow.stats.held > Span::ZERO));
    assert!(half.flows[5..].iter().all(|flow| flow.stats.held.is_zero()));
    let answers = |outcome: &Outcome| outcome.links[setup.network.uplink(HostId(0)).index()].packets;
    assert_eq!((answers(&all), answers(&half)), (10 * 200, 5 * 200 + 5 * 100));
}

/// A flow to a host that another one has just found busy waits like that one.
#[test]
fn a_new_flow_starts_with_the_last_owd() {
    for memory in [false, true] {
        let mut setup = incast(10, 200 * MSS);
        let late = FlowSpec { start: Start::At(Time::from_us(600)), size: Bytes::new(MSS), ..setup.flows[0] };
        setup.flows.push(late);
        setup.host.on_ramp = Some(OnRampConfig { memory, ..on_ramp(Span::from_us(20)) });
        let outcome = fixed(&setup, 64, false);
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
        // Its own OR-ACK comes just before its acknowledgement.
        assert_eq!(outcome.flows[10].stats.held > Span::from_us(1), memory, "{:?}", outcome.flows[10]);
    }
}

/// Lets a host with two flows send until `end`; returns (flow, number, time in ns) of the departures.
fn sent(host: &HostConfig, window: u64, end: Time) -> Vec<(u32, u32, u64)> {
    let mut setup = incast(1, 20 * MSS);
    setup.flows = vec![setup.flows[0], FlowSpec { size: Bytes::new(5 * MSS), ..setup.flows[0] }];
    setup.host = *host;
    let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(window * MSS);
    let context = Context::new(&setup, &law);
    let mut hosts = PartitionHosts::new(&[HostId(1)], &setup);
    let mut nic = RecordingNic::default();
    while hosts.next_at(0, nic.idle_at) < end {
        hosts.on_local(0, hosts.next_at(0, nic.idle_at), &context, &mut nic);
    }
    nic.packets.iter().map(|packet| (packet.flow, number(packet), packet.time.ns())).collect()
}

#[test]
fn segments_leave_whole_and_in_turn() {
    let host = |segment| HostConfig { segment, ..HostConfig::default() };
    let order = |segment, window| -> Vec<_> {
        sent(&host(segment), window, Time::from_ns(1_500)).iter().map(|&(flow, seq, _)| (flow, seq)).collect()
    };
    assert_eq!(order(0, 3), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    // Three packets and a bit are three packets; a flow that has no more ends its segment.
    assert_eq!(order(13_000, 7)[..8], [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (0, 4)]);
    assert_eq!(order(13_000, 7)[8..], [(0, 5), (1, 3), (1, 4), (0, 6)]);
    // A window under a segment ends it, too.
    assert_eq!(order(13_000, 2), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let times: Vec<_> = sent(&host(13_000), 7, Time::from_ns(1_500)).iter().map(|&(_, _, ns)| ns).collect();
    assert_eq!(times, (0..12).map(|packet| packet * 100).collect::<Vec<_>>(), "back to back");
}

/// Packets that wait under the law count in its round trip, up to the limit of the queue.
#[test]
fn round_trips_count_the_wait_in_a_small_queue() {
    let rtts = |small_queue: Option<u64>| {
        let mut setup = incast(1, 40 * MSS);
        setup.flows.push(setup.flows[0]);
        setup.host.small_queue = small_queue.map(|packets| Bytes::new(packets * MSS));
        let witnesses = [WitnessLaw::new(8 * MSS), WitnessLaw::new(8 * MSS)];
        let law = |spec: &FlowSpec, _: &PathInfo| witnesses[usize::from(spec.kind)].clone();
        setup.flows[1].kind = 1;
        let context = Context::new(&setup, &law);
        let mut hosts = PartitionHosts::new(&[HostId(1)], &setup);
        let mut nic = RecordingNic::default();
        // A network that answers each packet 1 us after it was handed over.
        let mut answers = std::collections::VecDeque::new();
        while hosts.open > 0 {
            let next = hosts.next_at(0, nic.idle_at);
            match answers.front() {
                Some(&(at, flow, seq)) if at <= next => {
                    answers.pop_front();
                    let ack = acknowledge(&setup, flow, seq, at);
                    hosts.on_packet(0, &ack, engine::TelemetrySlot::NONE, &context, &mut nic);
                }
                _ => hosts.on_local(0, next, &context, &mut nic),
            }
            for packet in nic.packets.drain(..) {
                answers.push_back((packet.time + Span::from_us(1), packet.flow, number(&packet)));
            }
        }
        let feedback = witnesses[0].feedback.borrow();
        let rtts =
            feedback.iter().map(|feedback| if let LawFeedback::Ack { rtt, .. } = feedback { rtt.ns() } else { 0 });
        rtts.collect::<Vec<_>>()
    };
    // A packet lasts 100 ns, and the NIC takes turns: ten others of 1 us leave before an answer.
    assert!(rtts(None).iter().all(|&rtt| rtt == 1_000));
    let one = rtts(Some(1));
    // The first finds the NIC idle; then each waits behind the other flow's and its own, at most.
    assert!(one[0] == 1_000 && one.iter().all(|&rtt| (1_000..=1_200).contains(&rtt)), "{one:?}");
    let four = rtts(Some(4));
    // The four that the window lets go at once wait for three rounds of turns.
    assert_eq!(four[..4], [1_000, 1_200, 1_400, 1_600]);
    assert!(four.iter().all(|&rtt| (1_000..=1_800).contains(&rtt)), "{four:?}");
}

/// A pace of a packet a microsecond, a window of four packets, and answers after a microsecond. With the pacer in the
/// queue packets leave at the same times, but the law releases four at once. So round trips count up to three
/// microseconds of waiting.
#[test]
fn a_pacer_in_the_queue_is_part_of_round_trips() {
    let run = |fq: bool| {
        let mut setup = incast(1, 8 * MSS);
        setup.host.small_queue = Some(Bytes::new(8 * MSS));
        setup.host.fq = fq;
        let pace = Rate::of(Bytes::new(MSS), Span::from_us(1));
        let witness = WitnessLaw { rates: Some((pace, pace)), ..WitnessLaw::new(4 * MSS) };
        let law = |_: &FlowSpec, _: &PathInfo| witness.clone();
        let context = Context::new(&setup, &law);
        let mut hosts = PartitionHosts::new(&[HostId(1)], &setup);
        let mut nic = RecordingNic::default();
        let mut answers = std::collections::VecDeque::new();
        let mut left = Vec::new();
        while hosts.open > 0 {
            let next = hosts.next_at(0, nic.idle_at);
            match answers.front() {
                Some(&(at, flow, seq)) if at <= next => {
                    answers.pop_front();
                    let ack = acknowledge(&setup, flow, seq, at);
                    hosts.on_packet(0, &ack, engine::TelemetrySlot::NONE, &context, &mut nic);
                }
                _ => hosts.on_local(0, next, &context, &mut nic),
            }
            for packet in nic.packets.drain(..) {
                left.push(packet.time.ns());
                answers.push_back((packet.time + Span::from_us(1), packet.flow, number(&packet)));
            }
        }
        let feedback = witness.feedback.borrow();
        let rtts =
            feedback.iter().map(|feedback| if let LawFeedback::Ack { rtt, .. } = feedback { rtt.ns() } else { 0 });
        (left, rtts.collect::<Vec<_>>())
    };
    let times: Vec<u64> = (0..8).map(|packet| packet * 1_000).collect();
    assert_eq!(run(false), (times.clone(), vec![1_000; 8]));
    assert_eq!(run(true), (times, vec![1_000, 2_000, 3_000, 4_000, 4_000, 4_000, 4_000, 4_000]));
}

/// A law that paces sees On-Ramp's hold in its round trips only where the pacer is in the queue.
#[test]
fn a_pacer_in_the_queue_sees_the_hold() {
    let mut setup = incast(10, 200 * MSS);
    setup.host.on_ramp = Some(on_ramp(Span::from_us(40)));
    setup.host.small_queue = Some(Bytes::new(8 * MSS));
    setup.series.interval = Span::from_us(10);
    setup.series.flows = vec![FlowId(0)];
    let highest = |setup: &Setup| {
        let outcome = fixed(setup, 16, true);
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.held > Span::ZERO));
        outcome.flow_samples.iter().map(|sample| sample.rtt).max().unwrap()
    };
    let without = highest(&setup);
    setup.host.fq = true;
    let with = highest(&setup);
    assert!(with > without + Span::from_us(40), "{with} against {without}");
}

/// The acknowledgement of one packet, as the receiver makes it.
fn acknowledge(setup: &Setup, flow: u32, seq: u32, time: Time) -> engine::Packet {
    let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(0);
    let context = Context::new(setup, &law);
    let mut hosts = PartitionHosts::<WitnessLaw>::new(&[HostId(0)], setup);
    let mut nic = RecordingNic::default();
    for seq in 0..=seq {
        let header = engine::ForwardingHeader { time, flow, ..engine::ForwardingHeader::default() };
        let packet = engine::Packet::new(header, engine::Body::Data { seq, attempt: 1, credit: None });
        hosts.on_packet(0, &packet, engine::TelemetrySlot::NONE, &context, &mut nic);
    }
    *nic.packets.last().unwrap()
}

/// A hold over a small queue: the hold delays packets that the law's window has released, and the law sees that delay in
/// its round trips.
#[test]
fn held_packets_wait_in_the_small_queue() {
    let mut setup = incast(10, 200 * MSS);
    setup.host.on_ramp = Some(on_ramp(Span::from_us(40)));
    let without = fixed(&setup, 16, false);
    setup.host.small_queue = Some(Bytes::new(8 * MSS));
    setup.series.interval = Span::from_us(10);
    setup.series.flows = vec![FlowId(0)];
    let with = fixed(&setup, 16, false);
    let highest = with.flow_samples.iter().map(|sample| sample.rtt).max().unwrap();
    assert!(with.flows.iter().chain(&without.flows).all(|flow| flow.completed.is_set()));
    assert!(with.flows.iter().all(|flow| flow.stats.held > Span::ZERO));
    assert!(highest > Span::from_us(100), "{highest}");
    assert_eq!(trace(&with, "hold_until_ns").len(), with.flow_samples.len());
    assert!(trace(&with, "on_ramp_hold_ns").is_sorted());
}

/// Two long flows fill a NIC when a flow of eight packets begins. In turn each of its packets waits for one of both. If
/// flows that have sent little go first, it waits for the packet that the NIC has begun, and for no more.
#[test]
fn new_flows_go_first_within_their_quantum() {
    let port = PortConfig::new(Rate::from_gbps(10), Span::from_us(1));
    let shape = fabric::topology::SingleSwitch { hosts: vec![(port, port); 4] };
    let flows = vec![
        common::flow(0, 1, 1_000 * MSS),
        common::flow(0, 2, 1_000 * MSS),
        FlowSpec { start: Start::At(Time::from_us(500)), ..common::flow(0, 3, 8 * MSS) },
    ];
    let mut setup = common::setup(fabric::topology::single_switch(&shape).unwrap(), flows, Time::from_ms(100));
    let packet = Span::from_ns(3_328); // 4,160 bytes at 10 Gb/s
    // Two of 3.328 us for the packet and its acknowledgement's 64 bytes, four links of 1 us; seven packets behind the first.
    let alone = packet.times(2 + 7) + Span::from_ps(2 * 51_200) + Span::from_us(4);
    let mut ran = |quantum, packets| {
        setup.host.initial_quantum = quantum;
        let outcome = fixed(&setup, packets, false);
        (0..3).map(|flow| outcome.flows[flow].completed.since(outcome.flows[flow].started)).collect::<Vec<_>>()
    };
    let mut took = |quantum| ran(InitialQuantum::Bytes(Bytes::new(quantum)), 64);
    let (in_turn, first, half, all) = (took(0), took(8 * MSS), took(4 * MSS), took(1_000_000_000));
    assert!(first[2] >= alone && first[2] <= alone + packet, "{first:?}, {alone} alone");
    // After four packets of its own the others have their turns, too: before each of the other four, and one before the first.
    assert!(half[2] > alone + packet.times(7) && half[2] <= alone + packet.times(9), "{half:?}");
    assert!(in_turn[2] > alone + packet.times(14) && in_turn[2] <= alone + packet.times(17), "{in_turn:?}");
    // Where all are new all have turns alike.
    assert_eq!(all, in_turn);
    // The NIC is never idle for it.
    assert_eq!(first[..2].iter().max(), in_turn[..2].iter().max());
    // A window of 64 packets is over the flows' BDP, 13,448 bytes in 10.7584 us; one of two is not.
    let bdp = took(13_448);
    assert!(bdp != in_turn && bdp != first, "{bdp:?}");
    assert_eq!(ran(InitialQuantum::Window, 64), bdp);
    let two = ran(InitialQuantum::Bytes(Bytes::new(2 * MSS)), 2);
    assert_eq!(ran(InitialQuantum::Window, 2), two);
    assert_ne!(ran(InitialQuantum::NONE, 2), two);
}

/// The same NIC with two long flows and one of twelve packets. A host that knows its length schedules it in turn with
/// the others while it has four packets or more to send, and then first; one of three packets never waits for both
/// others.
#[test]
fn flows_known_to_end_soon_go_first() {
    let port = PortConfig::new(Rate::from_gbps(10), Span::from_us(1));
    let shape = fabric::topology::SingleSwitch { hosts: vec![(port, port); 4] };
    let late = |size| FlowSpec { start: Start::At(Time::from_us(500)), ..common::flow(0, 3, size) };
    let took = |packets: u64, quantum: u64, size_aware, small_queue| {
        let flows = vec![common::flow(0, 1, 1_000 * MSS), common::flow(0, 2, 1_000 * MSS), late(packets * MSS)];
        let mut setup = common::setup(fabric::topology::single_switch(&shape).unwrap(), flows, Time::from_ms(100));
        let host = &mut setup.host;
        host.initial_quantum = InitialQuantum::Bytes(Bytes::new(quantum * MSS));
        (host.size_aware, host.small_queue) = (size_aware, small_queue);
        let outcome = fixed(&setup, 64, false);
        assert!(small_queue.is_some() || outcome.flows[..2].iter().all(|flow| flow.stats.packets_sent == 1_000));
        outcome.flows[2].completed.since(outcome.flows[2].started)
    };
    let packet = Span::from_ns(3_328); // 4,160 bytes at 10 Gb/s
    let alone = |packets: u32| packet.times(1 + packets) + Span::from_ps(2 * 51_200) + Span::from_us(4);
    // Two of the others' for each of its packets that has its turn among theirs, and the rest of the one that the NIC
    // has begun.
    let check = |took: Span, packets: u32, in_turn: u32| {
        let least = alone(packets) + packet.times(2 * in_turn);
        assert!(took >= least && took <= least + packet, "{took}, {least} at least");
    };
    check(took(3, 4, true, None), 3, 0);
    check(took(12, 4, true, None), 12, 9);
    // Without that it is the first four that go first, and without a quantum none.
    check(took(12, 4, false, None), 12, 8);
    assert_eq!(took(12, 0, true, None), took(12, 0, false, None));
    // Packets that wait in a small queue have not left the host.
    let queue = Some(Bytes::new(8 * MSS));
    assert!(took(12, 4, true, queue) >= alone(12) + packet.times(2 * 8), "{}", took(12, 4, true, queue));
}
