//! Credit-scheduled flows: bounds from first principles on FlashPass's and ExpressPass's queues, credits that are
//! wasted, and each part switched off.

use crate::common;
use experiment::{FlowOutcome, FlowSpec, HostConfig, Outcome, Setup, Start};
use fabric::topology::{Dumbbell, SingleSwitch, dumbbell, single_switch};
use fabric::{CreditQueue, LinkId, Outages, PortConfig};
use laws::catalog::{LawKind, ParamValue};
use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time};

/// A full packet on the wire.
const PACKET: u64 = 1_538;

/// Bytes of a link that data and its credit take.
const BOTH: u64 = 1_622;

/// Hosts on one switch of this rate with cables of these delays, and ports that hold `buffer` bytes.
fn network(rate: Rate, delays: &[Span], buffer: Bytes) -> fabric::Network {
    let ports = |&delay: &Span| {
        let nic = PortConfig { credits: Some(CreditQueue::flashpass()), ..PortConfig::new(rate, delay) };
        (nic, PortConfig { buffer, ..nic })
    };
    single_switch(&SingleSwitch { hosts: delays.iter().map(ports).collect() }).unwrap()
}

/// Flows to the last host over 10 Gb/s: (start, payload), one from each of the others.
fn many_to_one(delays: &[Span], buffer: Bytes, flows: &[(Span, u64)]) -> Setup {
    many_to_one_at(Rate::from_gbps(10), delays, buffer, flows)
}

/// The same over links of any rate.
fn many_to_one_at(rate: Rate, delays: &[Span], buffer: Bytes, flows: &[(Span, u64)]) -> Setup {
    let receiver = delays.len() as u32 - 1;
    let flow = |(src, &(start, size)): (u32, &(Span, u64))| FlowSpec {
        start: Start::At(Time::ZERO + start),
        ..common::flow(src, receiver, size)
    };
    let flows: Vec<_> = (0u32..).zip(flows).map(flow).collect();
    let mut setup = common::setup(network(rate, delays, buffer), flows, Time::from_ms(20_000));
    let longest = setup.flows.iter().map(|it| setup.paths(it.src, it.dst, 1_460).base_rtt).max().unwrap();
    setup.host = HostConfig {
        mss: 1_460,
        header: 78,
        ack_size: 84,
        ack_every: 8,
        // Two credit queues on the way, of eight credits each.
        max_emulation_rtt: Some(longest + rate.tx_time(Bytes::new(16 * BOTH)) + Span::from_us(3)),
        ..HostConfig::default()
    };
    setup
}

/// Returns the maximum queue of the receiver's port.
fn longest_queue(outcome: &Outcome, setup: &Setup) -> u64 {
    let receiver = setup.network.links_out(fabric::NodeId(0)).end - 1;
    outcome.links[receiver as usize].max_queue.get()
}

fn data_drops(outcome: &Outcome) -> u64 {
    outcome.links.iter().map(|link| link.drops + link.losses).sum()
}

fn switch(name: &'static str, on: bool) -> (&'static str, ParamValue) {
    (name, ParamValue::Switch(on))
}

fn assert_done(outcome: &Outcome) {
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "{:?}", outcome.flows);
}

/// Two flows to one receiver. Their credits leave it one after the other at the full rate, and their data may meet.
#[derive(Clone, Copy, Debug)]
struct Crash {
    rate: Rate,
    rtts: [Span; 2],
    packets: [u32; 2],
    /// Start of flow 2; flow 1 starts at zero.
    second: Span,
}

/// The first action of a flow.
#[derive(Clone, Copy, Debug)]
enum Begins {
    /// Its sender asks for credits: half a round trip passes before they leave.
    Asking,
    /// Its receiver sends the first credit.
    Crediting,
}

impl Crash {
    /// The longest queue, as `docs/src/papers/flashpass-causes.md` derives it.
    fn queue(&self, begins: Begins) -> u64 {
        let credit = self.rate.tx_time(Bytes::new(BOTH));
        let data = |flow: usize| {
            let starts = [Span::ZERO, self.second][flow];
            let credits = match begins {
                Begins::Asking => starts + self.rtts[flow].over(2),
                Begins::Crediting => starts,
            };
            let first = credits + self.rtts[flow];
            (first, first + credit.times(self.packets[flow]))
        };
        let [one, two] = [0, 1].map(data);
        let overlap = (one.1.min(two.1) - one.0.max(two.0)).max(Span::ZERO);
        overlap.unsigned_ps() * (2 * PACKET - BOTH) / credit.unsigned_ps()
    }

    /// The longest queue that the simulator has under ExpressPass.
    fn simulated(&self, begins: Begins) -> u64 {
        let starts = [Span::ZERO, self.second];
        let longest = self.rtts[0].max(self.rtts[1]).over(2);
        let flow = |flow: usize| {
            let asks = match begins {
                Begins::Asking => starts[flow],
                // All of it later, so that no sender asks before time zero.
                Begins::Crediting => starts[flow] + longest - self.rtts[flow].over(2),
            };
            (asks, u64::from(self.packets[flow]) * 1_460)
        };
        let receiver = Span::from_us(1);
        let delays = [self.rtts[0].over(2) - receiver, self.rtts[1].over(2) - receiver, receiver];
        let setup = many_to_one_at(self.rate, &delays, Bytes::MAX, &[flow(0), flow(1)]);
        let settings = [("initial", ParamValue::Fraction(Frac::ONE)), switch("stops_at_demand", true)];
        let outcome = common::run(&setup, LawKind::ExpressPass, &settings);
        assert_done(&outcome);
        // Credits of two flows that meet are lost, and requested again. A few are, where the second flow's begin as the
        // first's end.
        let (sent, demand) = (sum(&outcome, |flow| flow.credits.sent), self.packets.map(u64::from).iter().sum::<u64>());
        assert!(sent - demand <= demand / 500, "{self:?}: {sent} credits for {demand} packets");
        longest_queue(&outcome, &setup)
    }
}

/// Two flows crash as derived, in both readings of when a flow starts. In the first case, the paper's, the readings
/// differ by a factor of two.
#[test]
fn two_flows_collide_as_derived() {
    let ms = Span::from_ms;
    let crash = |gbps, rtts: [i64; 2], packets, second| Crash {
        rate: Rate::from_gbps(gbps),
        rtts: rtts.map(ms),
        packets,
        second: ms(second),
    };
    for (crash, packets) in [
        (crash(10, [40, 20], [15_413, 15_413], 30), [14_571, 7_285]),
        (crash(10, [4, 2], [1_541, 1_541], 3), [1_457, 728]),
        // The data of the two flows meets in one reading alone.
        (crash(10, [40, 20], [3_853, 3_853], 22), [0, 2_185]),
        (crash(1, [60, 40], [1_000, 1_000], 27), [726, 435]),
        // Unequal demands.
        (crash(40, [10, 4], [12_000, 6_000], 9), [5_672, 2_602]),
    ] {
        for (begins, packets) in [Begins::Asking, Begins::Crediting].into_iter().zip(packets) {
            let (derived, queue) = (crash.queue(begins), crash.simulated(begins));
            assert!((derived / PACKET).abs_diff(packets) <= 2, "{crash:?}, {begins:?}: {derived}");
            println!("{crash:?}, {begins:?}: {queue} B, derived {derived}");
            // Two packets that come at once.
            let few = 2 * PACKET;
            let tolerated = if derived == 0 { few } else { derived / 50 };
            assert!(queue.abs_diff(derived) <= tolerated, "{crash:?}, {begins:?}: {queue}, not {derived}");
        }
    }
}

/// FlashPass interleaves data that would crash with the timing of its credits (the second case of
/// [`two_flows_collide_as_derived`]). Without FlashPass's exact time, the sender's emulation does not help.
#[test]
fn exact_timing_interleaves_colliding_data() {
    let us = Span::from_us;
    let flows = [(Span::ZERO, 1_541 * 1_460), (us(3_000), 1_541 * 1_460)];
    let setup = many_to_one(&[us(1_999), us(999), us(1)], Bytes::MAX, &flows);
    let queue = |timed| {
        let settings = [switch("early_start", false), switch("timed", timed)];
        let outcome = common::run(&setup, LawKind::FlashPass, &settings);
        assert_done(&outcome);
        longest_queue(&outcome, &setup)
    };
    let [timed, untimed] = [true, false].map(queue);
    assert!(timed <= waits(2) * PACKET, "{timed}");
    assert!(untimed >= 500 * PACKET, "{untimed}");
}

/// Maximum packets that wait at FlashPass's bottleneck: one for each credit that its queue and its bucket let through at
/// once, one in service, and one for each sender, because its NIC may delay an emulation packet by a packet's time.
fn waits(senders: u64) -> u64 {
    8 + 2 + 1 + senders
}

/// With equal round trips credits that passed the bottleneck become data in the same order: at most 6 packets wait. Of
/// FlashPass more may: its emulation packets leave the bottleneck's credit queue evenly, but data comes as they came there.
#[test]
fn with_equal_round_trips_few_packets_wait() {
    let us = Span::from_us;
    for start in [0, 1_000, 2_000, 3_000].map(us) {
        for (kind, settings) in [
            (LawKind::ExpressPass, vec![("initial", ParamValue::Fraction(Frac::ONE)), switch("stops_at_demand", true)]),
            (LawKind::FlashPass, vec![switch("early_start", false)]),
        ] {
            let flows = [(Span::ZERO, 1_541 * 1_460), (start, 1_541 * 1_460)];
            let setup = many_to_one(&[us(1_999), us(1_999), us(1)], Bytes::MAX, &flows);
            let outcome = common::run(&setup, kind, &settings);
            assert_done(&outcome);
            let queue = longest_queue(&outcome, &setup);
            let most = if kind == LawKind::ExpressPass { 6 } else { waits(2) };
            assert!(queue <= most * PACKET, "{kind:?}, flow 2 at {start}: {queue}");
        }
    }
}

/// Returns the outcome of a run of three flows with different round trips, and the queue at their receiver.
fn three(kind: LawKind, settings: &[(&str, ParamValue)]) -> (Outcome, u64) {
    let us = Span::from_us;
    let flows = [(Span::ZERO, 3_000_000), (us(500), 2_000_000), (us(900), 1_000_000)];
    let setup = many_to_one(&[us(1_000), us(300), us(40), us(1)], Bytes::new(200_000), &flows);
    let outcome = common::run(&setup, kind, settings);
    assert_done(&outcome);
    let credits = |pick: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(pick).sum::<u64>();
    let counted = credits(|it| it.credits.used) + credits(|it| it.credits.wasted);
    assert_eq!(counted, credits(|it| it.credits.received));
    assert!(credits(|it| it.credits.received) <= credits(|it| it.credits.sent));
    // Every data packet is counted as scheduled or not.
    let sent = credits(|it| it.credits.used) + credits(|it| it.credits.unscheduled);
    assert_eq!(sent, outcome.engine.data_packets);
    let queue = longest_queue(&outcome, &setup);
    (outcome, queue)
}

fn sum(outcome: &Outcome, pick: fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(pick).sum()
}

/// Each part of FlashPass has its intended effect, and none if it is off.
#[test]
fn flashpass_features_can_be_disabled() {
    let plain = [switch("early_start", false)];
    let (with, queue) = three(LawKind::FlashPass, &plain);
    assert_eq!((data_drops(&with), sum(&with, |it| it.credits.late)), (0, 0));
    assert!(queue <= waits(3) * PACKET, "{queue}");
    assert!(sum(&with, |it| it.credits.over_provisioned) > 0 && sum(&with, |it| it.actions.cuts) > 0);
    assert_eq!(sum(&with, |it| it.credits.unscheduled), 0);

    // All emulation packets are ordinary.
    let (ordinary, _) = three(LawKind::FlashPass, &[plain[0], switch("over_provisioning", false)]);
    assert_eq!(sum(&ordinary, |it| it.credits.over_provisioned), 0);

    let (uncontrolled, _) = three(LawKind::FlashPass, &[plain[0], switch("feedback", false)]);
    assert_eq!(sum(&uncontrolled, |it| it.actions.cuts + it.actions.increases), 0);
    assert!(sum(&uncontrolled, |it| it.credits.sent) > sum(&with, |it| it.credits.sent));

    // One echo per credit: more packets back from the receiver, which has the last host's NIC.
    let (single, _) = three(LawKind::FlashPass, &[plain[0], switch("batches", false)]);
    let back = [&with, &single].map(|outcome| outcome.links.last().unwrap().packets);
    assert!(back[1] > 2 * back[0], "{back:?}");
    assert_eq!(sum(&single, |it| it.credits.late), 0);
}

/// A flow alone starts at line rate: it is done a round trip, or `T_wait`, earlier, and the probe finds no loss.
#[test]
fn an_early_start_saves_the_wait_for_the_first_credit() {
    let us = Span::from_us;
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        let run = |early| {
            let setup = many_to_one(&[us(500), us(1)], Bytes::MAX, &[(Span::ZERO, 300_000)]);
            common::run(&setup, kind, &[switch("early_start", early)])
        };
        let [late, early] = [false, true].map(run);
        assert_done(&early);
        let saved = late.flows[0].completed.since(early.flows[0].completed);
        assert!(saved >= us(990), "{kind:?} saved {saved}");
        assert_eq!(early.flows[0].stats.retransmits, 0);
        assert_eq!(early.flows[0].credits.unscheduled, 206);
    }
}

/// Unscheduled data meets scheduled data and is dropped; scheduled data is not, and the probe finds the losses in a round
/// trip, long before a timeout.
#[test]
fn unscheduled_data_is_dropped_first() {
    let us = Span::from_us;
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        let flows = [(Span::ZERO, 6_000_000), (us(3_000), 400_000), (us(3_000), 400_000)];
        let setup = many_to_one(&[us(500), us(500), us(500), us(1)], Bytes::new(200_000), &flows);
        let outcome = common::run(&setup, kind, &[switch("early_start", true)]);
        assert_done(&outcome);
        let unscheduled: u64 = outcome.links.iter().map(|link| link.unscheduled_drops).sum();
        assert!(unscheduled > 50, "{kind:?}: {unscheduled}");
        assert_eq!(data_drops(&outcome), unscheduled, "{kind:?}");
        assert_eq!(sum(&outcome, |it| u64::from(it.stats.timeouts)), 0, "{kind:?}");
    }
}

/// Without a known size the demand is the content of the send buffer: a buffer over the BDP does not slow a flow, one
/// of a quarter limits it to a quarter of the rate.
#[test]
fn a_send_buffer_determines_the_demand() {
    let us = Span::from_us;
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        let took = |buffer: u64| {
            let setup = many_to_one(&[us(500), us(1)], Bytes::MAX, &[(Span::ZERO, 20_000_000)]);
            let settings = [switch("early_start", false), ("send_buffer", ParamValue::Bytes(Bytes::new(buffer)))];
            let outcome = common::run(&setup, kind, &settings);
            assert_done(&outcome);
            outcome.flows[0].completed.since(outcome.flows[0].started)
        };
        let [known, large, small] = [0, 1 << 24, 300_000].map(took);
        assert!(large <= known + us(2_500), "{kind:?}: {large} after {known}");
        assert!(small > known.times(2), "{kind:?}: {small} after {known}");
    }
}

/// The receiver's link is down for 300 ms of a flow of `ExpressPass`: its credits reach no sender, so fewer leave than
/// in 10 ms at the rate before. The flow continues afterwards and ends.
#[test]
fn credits_cease_while_the_path_is_down() {
    let us = Span::from_us;
    let run = |down: bool| {
        let mut setup = many_to_one(&[us(500), us(1)], Bytes::MAX, &[(Span::ZERO, 20_000_000)]);
        if down {
            let (from, until) = (Time::from_ms(5), Time::from_ms(305));
            for link in 0..setup.network.links().len() as u32 {
                setup.network = setup.network.with_outages(LinkId(link), Outages::new([(from, until)]));
            }
        }
        let outcome = common::run(&setup, LawKind::ExpressPass, &[]);
        assert_done(&outcome);
        outcome
    };
    let [up, down] = [false, true].map(run);
    assert!(down.flows[0].completed > Time::from_ms(305));
    let more = sum(&down, |it| it.credits.sent).saturating_sub(sum(&up, |it| it.credits.sent));
    // One lasts 1.3 us at the full rate.
    assert!(more < 10_000_000 / 1_298, "{more}");
}

/// Two datacenters, flows both ways, all parts on: the same at any number of threads.
#[test]
fn credits_give_the_same_bits_at_any_number_of_threads() {
    let credits = Some(CreditQueue::flashpass());
    let edge = PortConfig {
        credits,
        buffer: Bytes::new(60_000),
        loss: Frac::millionths(300),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(2))
    };
    let bottleneck = PortConfig { delay: Span::from_us(400), ..edge };
    let plan =
        Dumbbell { left: vec![(edge, edge); 4], right: vec![(edge, edge); 4], bottleneck, two_datacenters: true };
    let flows = (0..8).map(|src| common::flow(src, (src + 4) % 8, 1_000_000));
    let mut setup = common::setup(dumbbell(&plan).unwrap(), flows.collect(), Time::from_ms(2_000));
    setup.host = HostConfig { mss: 1_460, header: 78, ack_every: 4, ..setup.host };
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        let factory = common::law(kind, &[("early_start", ParamValue::Switch(true))]);
        let runs =
            [1, 2, 3].map(|threads| engine::run_on(&setup, engine::Threads::always(threads), &factory, &mut |_| true));
        assert_done(&runs[0]);
        for other in &runs[1..] {
            assert!(runs[0].flows == other.flows && runs[0].links == other.links, "{kind:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// FlashPass with perfect timing never drops data, with any round trips, sizes and starts: the queue holds the
    /// packets that a credit queue and its bucket let through at once, and no more.
    #[test]
    fn flashpass_never_drops_data_at_one_bottleneck(
        senders in proptest::collection::vec((1..3_000i64, 0..4_000i64, 1..2_000_000u64), 1..9),
        receiver in 1..200i64,
        over_provisioning: bool,
        batches: bool,
        seed: u64,
    ) {
        let mut delays: Vec<Span> = senders.iter().map(|&(delay, ..)| Span::from_us(delay)).collect();
        delays.push(Span::from_us(receiver));
        let flows: Vec<_> = senders.iter().map(|&(_, start, size)| (Span::from_us(start), size)).collect();
        let mut setup = many_to_one(&delays, Bytes::new(waits(flows.len() as u64) * PACKET), &flows);
        setup.seed = seed;
        let settings =
            [switch("early_start", false), switch("over_provisioning", over_provisioning), switch("batches", batches)];
        let outcome = common::run(&setup, LawKind::FlashPass, &settings);
        prop_assert_eq!(sum(&outcome, |it| it.credits.late), 0, "late");
        prop_assert_eq!(data_drops(&outcome), 0, "dropped");
        prop_assert_eq!(sum(&outcome, |it| it.stats.retransmits), 0);
        prop_assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    }
}
