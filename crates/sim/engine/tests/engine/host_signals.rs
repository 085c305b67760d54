//! Responses of hosts to signals: pauses, requests to send again, notifications, reports, OR-ACKs; each over a NIC that
//! keeps its packets.

use crate::common;
use crate::host_support::{LawFeedback, RecordingNic, WitnessLaw, number};
use engine::host::{Context, PartitionHosts};
use engine::{Body, BodyKind, ForwardingHeader, Packet, TelemetrySlot};
use experiment::{Cnp, FlowSpec, HostConfig, Setup};
use fabric::{Ecn, HostId, MarkAt, PortConfig};
use flow::{AckHeader, Recovery};
use laws::{Hop, LossCause, PathInfo};
use units::{Bytes, Frac, Rate, Span, Time};

const RATE: Rate = Rate::from_gbps(100);

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// Two hosts on each side; hosts 0 and 1 send to 2 and 3.
fn setup(flows: Vec<FlowSpec>, control_priority: bool) -> Setup {
    let port = PortConfig { control_priority, ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
    let side = vec![(port, port); 2];
    let shape =
        fabric::topology::Dumbbell { left: side.clone(), right: side, bottleneck: port, two_datacenters: false };
    common::setup(fabric::topology::dumbbell(&shape).unwrap(), flows, Time::from_ms(1))
}

fn signal(body: Body, class: u8, time: Time) -> Packet {
    Packet::new(ForwardingHeader { time, class, ..ForwardingHeader::default() }, body)
}

/// A data packet of class 1, sent for the first time.
fn data(flow: u32, seq: u32, time: Time) -> Packet {
    let mut packet = signal(Body::Data { seq, attempt: 1, credit: None }, 1, time);
    packet.flow = flow;
    packet
}

/// One host, its NIC, and the feedback that its flows' law received.
struct Bench<'a, F> {
    hosts: PartitionHosts<WitnessLaw>,
    nic: RecordingNic,
    context: &'a Context<'a, F>,
}

impl<'a, F: Fn(&FlowSpec, &PathInfo) -> WitnessLaw> Bench<'a, F> {
    fn new(host: u32, context: &'a Context<'a, F>) -> Self {
        let hosts = PartitionHosts::new(&[HostId(host)], context.setup);
        Self { hosts, nic: RecordingNic::default(), context }
    }

    /// Lets the host act by itself until `end`.
    fn run(&mut self, end: Time) {
        let mut steps = 0;
        while self.hosts.next_at(0, self.nic.idle_at) < end {
            let next = self.hosts.next_at(0, self.nic.idle_at);
            self.hosts.on_local(0, next, self.context, &mut self.nic);
            steps += 1;
            assert!(steps < 10_000, "the host spins at {next}");
        }
    }

    fn arrive(&mut self, packet: Packet, report: TelemetrySlot) {
        self.run(packet.time);
        self.hosts.on_packet(0, &packet, report, self.context, &mut self.nic);
    }

    /// (flow, number) of the packets that left since the last call.
    fn sent(&mut self) -> Vec<(u32, u32)> {
        self.nic.reports.clear();
        self.nic.packets.drain(..).map(|packet| (packet.flow, number(&packet))).collect()
    }
}

/// Returns a receiver's answer to a packet.
fn answer(flow: u32, seq: u32, cumulative: u32, time: Time) -> Packet {
    // Made by a receiver, since its flags are its own.
    let spec = common::flow(0, 2, 1 << 20);
    let mut setup = setup(vec![spec; flow as usize + 1], false);
    if cumulative <= seq {
        setup.host.recovery = Recovery::GoBackN { nack_interval: Span::ZERO, acks: true };
    }
    let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(0);
    let context = Context::new(&setup, &law);
    let mut bench = Bench::new(2, &context);
    for seq in (0..cumulative.min(seq)).chain([seq]) {
        bench.hosts.on_packet(0, &data(flow, seq, time), TelemetrySlot::NONE, &context, &mut bench.nic);
    }
    *bench.nic.packets.last().unwrap()
}

#[test]
fn a_pause_stops_its_class_only() {
    let class = |class| FlowSpec { class, ..common::flow(0, 2, 40_960) };
    let setup = setup(vec![class(1), class(2), class(1)], false);
    let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(1 << 20);
    let context = Context::new(&setup, &law);
    let mut bench = Bench::new(0, &context);
    bench.run(Time::from_ns(250));
    assert_eq!(bench.sent(), [(0, 0), (1, 0), (2, 0)]);
    bench.arrive(signal(Body::Pause, 1, Time::from_ns(250)), TelemetrySlot::NONE);
    bench.run(us(1));
    assert_eq!(bench.sent(), (1..8).map(|seq| (1, seq)).collect::<Vec<_>>());
    bench.arrive(signal(Body::Pause, 2, us(1)), TelemetrySlot::NONE);
    bench.arrive(signal(Body::Pause, 2, us(1).just_after()), TelemetrySlot::NONE);
    // Timers are all that is left.
    bench.run(us(5));
    assert_eq!(bench.sent(), []);
    bench.arrive(signal(Body::Resume, 1, us(5)), TelemetrySlot::NONE);
    bench.run(us(5) + Span::from_ns(350));
    assert_eq!(bench.sent(), [(0, 1), (2, 1), (0, 2), (2, 2)]);
    assert_eq!(bench.hosts.pauses(0, us(6)), (2, Span::from_ps(5_750_000)));
    bench.arrive(signal(Body::Resume, 2, us(7)), TelemetrySlot::NONE);
    assert_eq!(bench.hosts.pauses(0, us(9)), (2, Span::from_ps(6_750_000)));
}

#[test]
fn acks_of_a_paused_class_wait_and_leave_first() {
    for control_first in [false, true] {
        let setup = setup(vec![common::flow(0, 2, 1 << 20), common::flow(2, 0, 1 << 20)], control_first);
        let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(1 << 20);
        let context = Context::new(&setup, &law);
        let mut bench = Bench::new(2, &context);
        bench.arrive(signal(Body::Pause, 1, Time::ZERO), TelemetrySlot::NONE);
        for seq in 0..3 {
            bench.arrive(data(0, seq, us(1)), TelemetrySlot::NONE);
        }
        bench.run(us(2));
        let acks = [(0, 0), (0, 1), (0, 2)];
        assert_eq!(bench.sent(), if control_first { &acks[..] } else { &[] });
        bench.arrive(signal(Body::Resume, 1, us(2)), TelemetrySlot::NONE);
        bench.run(us(2) + Span::from_ns(350));
        let first = if control_first { [(1, 0), (1, 1), (1, 2)] } else { acks };
        let packets = bench.nic.packets.clone();
        assert_eq!(bench.sent()[..3], first);
        assert!(packets.iter().all(|packet| packet.time >= us(2) && packet.class() == 1));
    }
}

#[test]
fn a_nack_goes_back_to_the_missing_packet() {
    let mut setup = setup(vec![common::flow(0, 2, 10 * 4_096)], false);
    setup.host.recovery = Recovery::GoBackN { nack_interval: Span::from_us(500), acks: true };
    setup.host.rto_min = Some(Span::from_us(20));
    let witness = WitnessLaw::new(6 * 4_096);
    let law = |_: &FlowSpec, _: &PathInfo| witness.clone();
    let context = Context::new(&setup, &law);
    let mut bench = Bench::new(0, &context);
    bench.run(us(1));
    assert_eq!(bench.sent().len(), 6);
    // Packets 0 and 1 came, 2 is missing, 4 came instead. The acknowledgement of 0 and 1 was lost.
    let nack = answer(0, 4, 2, us(2));
    assert!(matches!(nack.body(), Body::Nack(AckHeader { cumulative: 2, .. })), "{nack:?}");
    bench.arrive(nack, TelemetrySlot::NONE);
    bench.run(us(3));
    assert_eq!(bench.sent(), (2..8).map(|seq| (0, seq)).collect::<Vec<_>>());
    let now = us(2);
    let feedback = witness.feedback.borrow();
    assert!(matches!(feedback[0], LawFeedback::Ack { acked: 8_192, marked: 0, .. }), "{feedback:?}");
    assert_eq!(feedback[1], LawFeedback::Loss { now, lost: 4 * 4_096, cause: LossCause::Nack });
    drop(feedback);
    // A cumulative acknowledgement answers for those before it.
    bench.arrive(answer(0, 6, 7, us(4)), TelemetrySlot::NONE);
    bench.run(us(5));
    assert_eq!(bench.sent(), [(0, 8), (0, 9)]);
    assert!(matches!(witness.feedback.borrow()[2], LawFeedback::Ack { acked: 20_480, .. }));
    // Nothing more comes: the timer goes back, too.
    bench.run(us(100));
    assert_eq!(bench.sent()[..3], [(0, 7), (0, 8), (0, 9)]);
    bench.hosts.finish(us(100), &setup);
    let stats = bench.hosts.outcomes[0].1.stats;
    assert_eq!((stats.nacks, stats.timeouts > 0), (1, true), "{stats:?}");
}

#[test]
fn marks_are_notified_once_an_interval() {
    let mut setup = setup(vec![common::flow(0, 2, 1 << 20)], false);
    setup.host.cnp = Some(Cnp { interval: Span::from_us(50), size: 60 });
    let law = |_: &FlowSpec, _: &PathInfo| WitnessLaw::new(0);
    let context = Context::new(&setup, &law);
    let mut bench = Bench::new(2, &context);
    let marked = [(0, false), (1, true), (2, true), (49, true), (50, false), (51, true), (99, true), (101, true)];
    for (seq, (at, is_marked)) in (0..).zip(marked) {
        let mut packet = signal(Body::Data { seq, attempt: 1, credit: None }, 3, us(at));
        if is_marked {
            packet.mark();
        }
        bench.arrive(packet, TelemetrySlot::NONE);
    }
    let cnps: Vec<_> = bench.nic.packets.iter().filter(|packet| packet.kind() == BodyKind::Cnp).collect();
    assert_eq!(cnps.iter().map(|cnp| cnp.time).collect::<Vec<_>>(), [1, 51, 101].map(us));
    assert!(cnps.iter().all(|cnp| (cnp.size, cnp.dst, cnp.class()) == (60, 0, 3) && !cnp.arrival().ecn_capable));
    assert_eq!(bench.nic.packets.len(), 8 + 3);
}

/// A law that sets a timer when it receives marks is woken then, and not when the flow's old timer fires.
#[test]
fn a_law_timer_fires_on_time() {
    let setup = setup(vec![common::flow(0, 2, 1 << 20)], false);
    let witness = WitnessLaw { timer_after: Some(Span::from_ns(1_500)), ..WitnessLaw::new(4_096) };
    let law = |_: &FlowSpec, _: &PathInfo| witness.clone();
    let context = Context::new(&setup, &law);
    let mut bench = Bench::new(0, &context);
    bench.arrive(signal(Body::Cnp { seq: 0, attempt: 0 }, 1, us(1)), TelemetrySlot::NONE);
    bench.arrive(signal(Body::DirectCnp, 1, us(2)), TelemetrySlot::NONE);
    bench.run(us(100));
    let feedback = witness.feedback.borrow();
    let ns = Time::from_ns;
    assert_eq!(
        feedback[..3],
        [LawFeedback::Cnp(ns(1_000)), LawFeedback::DirectCnp(ns(2_000)), LawFeedback::Timer(ns(2_500))]
    );
    // Retransmission timeouts go on as ever.
    assert!(
        feedback[3..].iter().all(|feedback| matches!(feedback, LawFeedback::Loss { cause: LossCause::Timeout, .. })),
        "{feedback:?}"
    );
    assert!(feedback.len() > 3);
    bench.hosts.finish(us(100), &setup);
    assert_eq!(bench.hosts.outcomes[0].1.stats.cnps, 2);
}

#[test]
fn reports_are_returned_and_released() {
    // A receiver that acknowledges every second packet: the newer report goes back.
    let mut setup = setup(vec![common::flow(0, 2, 4 * 4_096)], false);
    setup.host = HostConfig { int: true, ack_every: 2, ..setup.host };
    let witness = WitnessLaw::new(1 << 20);
    let law = |_: &FlowSpec, _: &PathInfo| witness.clone();
    let context = Context::new(&setup, &law);
    let reports: Vec<_> = (1..6).map(TelemetrySlot::numbered).collect();
    let mut bench = Bench::new(2, &context);
    for (seq, &report) in (0..).zip(&reports[..5]) {
        bench.arrive(data(0, seq.min(3), us(1)), report);
    }
    assert_eq!(bench.nic.reports, [reports[1], reports[3], reports[4]]);
    assert_eq!(bench.nic.forgotten, [reports[0], reports[2]]);

    let mut bench = Bench::new(0, &context);
    bench.nic.hops = vec![Hop::default(); 2];
    bench.run(us(1));
    bench.arrive(answer(0, 0, 1, us(1)), reports[0]);
    let direct = |seq, attempt| signal(Body::DirectInt { seq, attempt }, 1, us(2));
    bench.arrive(direct(1, 1), reports[1]);
    // Settled, and sent again since: old news.
    bench.arrive(direct(0, 1), reports[2]);
    bench.arrive(direct(2, 7), reports[3]);
    assert_eq!(bench.nic.forgotten, reports[..4]);
    let feedback = witness.feedback.borrow();
    assert!(matches!(feedback[0], LawFeedback::Ack { hops: 2, .. }));
    let sent_at = Time::from_ns(100);
    assert_eq!(feedback[1..], [LawFeedback::DirectInt { now: us(2), sent_at, hops: 2 }]);
}

/// Rescheduling of waiting packets by a law: its next packet leaves as if the last one had left at the new rate; for others
/// the new rate applies from the next packet on.
#[test]
fn an_immediate_rate_change_reschedules_the_waiting_packet() {
    for (reschedules, next_ns) in [(false, 4_096), (true, 2_048)] {
        let setup = setup(vec![common::flow(0, 2, 1 << 20)], false);
        let rates = Some((Rate::from_gbps(8), Rate::from_gbps(16)));
        let witness = WitnessLaw { rates, reschedules, ..WitnessLaw::new(1 << 20) };
        let law = |_: &FlowSpec, _: &PathInfo| witness.clone();
        let context = Context::new(&setup, &law);
        let mut bench = Bench::new(0, &context);
        bench.arrive(answer(0, 0, 1, us(1)), TelemetrySlot::NONE);
        bench.run(us(10));
        let times: Vec<_> = bench.nic.packets.iter().map(|packet| packet.time.ns()).collect();
        assert_eq!(times[..3], [0, next_ns, next_ns + 2_048], "reschedules: {reschedules}");
    }
}

/// DCQCN lives on notifications and on timers that it starts at the first: two flows of line rate share a port that marks,
/// fill it, and keep its queue small.
#[test]
fn dcqcn_gets_cnps_and_timers() {
    let ecn = Ecn { min: Bytes::new(100_000), max: Bytes::new(400_000), max_probability: Frac::ratio(1, 5) };
    let port = PortConfig { ecn: Some(ecn), mark_at: MarkAt::Dequeue, ..PortConfig::new(RATE, Span::from_us(1)) };
    let nic = PortConfig::new(RATE, Span::from_us(1));
    let shape = fabric::topology::SingleSwitch { hosts: vec![(nic, port); 3] };
    let network = fabric::topology::single_switch(&shape).unwrap();
    let flows = vec![common::flow(1, 0, 4_000_000), common::flow(2, 0, 4_000_000)];
    let mut setup = common::setup(network, flows, Time::from_ms(20));
    setup.host = HostConfig { mss: 1_000, header: 48, rto_min: Some(Span::from_ms(4)), ..setup.host };
    let without_cnps = common::run(&setup, laws::catalog::LawKind::Dcqcn, &[]);
    setup.host.cnp = Some(Cnp { interval: Span::from_us(50), size: 60 });
    let with_cnps = common::run(&setup, laws::catalog::LawKind::Dcqcn, &[]);
    assert!(without_cnps.flows.iter().all(|flow| flow.stats.cnps == 0));
    for flow in &with_cnps.flows {
        let intervals = flow.completed.since(flow.started).unsigned_ps() / 50_000_000 + 1;
        assert!((2..=intervals).contains(&flow.stats.cnps), "{flow:?}");
        assert!(flow.actions.cuts > 0 && flow.actions.increases > 0, "{flow:?}");
    }
    let queue = |outcome: &experiment::Outcome| outcome.links.iter().map(|link| link.max_queue.get()).max().unwrap();
    assert!(queue(&with_cnps) < queue(&without_cnps) / 2);
}
