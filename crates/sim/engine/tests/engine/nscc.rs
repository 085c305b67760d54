//! NSCC with REPS and trimming, the scheme of Ultra Ethernet, against arithmetic: a flow alone, incasts, the delay of the
//! queue, many paths, a dead one.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use crate::common::{flow, run, setup};
use experiment::{FlowId, Outcome, SeriesConfig, Setup};
use fabric::topology::{FatTrees, SingleSwitch, single_switch};
use fabric::{Ecn, LinkClass, LinkId, Network, Outages, PortConfig, Trim};
use flow::{LoadBalancing, Reps};
use laws::catalog::LawKind;
use units::{Bytes, Frac, Rate, Span, Time};

const RATE: Rate = Rate::from_gbps(100);
const DELAY: Span = Span::from_us(2);
/// Bytes on the wire for a byte of payload.
const WIRE: f64 = 4_160.0 / 4_096.0;

fn reps() -> LoadBalancing {
    LoadBalancing::Reps(Reps { entropies: 256, buffer: 8, freeze: Span::from_ms(10), explore: 16 })
}

/// A port with room for a BDP of data that trims, and marks from a fifth of it to four fifths, as the public simulator's do.
fn port(bdp: Bytes) -> PortConfig {
    PortConfig {
        buffer: bdp,
        control_priority: true,
        ecn: Some(Ecn { min: bdp.ratio(1, 5), max: bdp.ratio(4, 5), max_probability: Frac::ONE }),
        trim: Some(Trim { header: 64, control: bdp.times(2) }),
        ..PortConfig::new(RATE, DELAY)
    }
}

fn nic() -> PortConfig {
    PortConfig::new(RATE, DELAY)
}

/// Hosts of one switch: the base round trip is some 8.7 us, the BDP 109 kB.
fn switch(hosts: usize) -> Network {
    let bdp = RATE.bytes_in(Span::from_ns(8_700));
    single_switch(&SingleSwitch { hosts: vec![(nic(), port(bdp)); hosts] }).unwrap()
}

/// Flows of `bytes` from hosts 1 to `senders` to host 0.
fn incast(senders: u32, bytes: u64) -> Setup {
    let flows = (1..=senders).map(|src| flow(src, 0, bytes)).collect();
    let mut setup = setup(switch(senders as usize + 1), flows, Time::from_ms(200));
    setup.host.path = reps();
    setup
}

/// The port towards host 0.
fn towards_receiver(setup: &Setup) -> LinkId {
    let up = setup.network.uplink(fabric::HostId(0));
    setup.network.links()[up.index()].reverse
}

fn timeouts(outcome: &Outcome) -> u32 {
    outcome.flows.iter().map(|flow| flow.stats.timeouts).sum()
}

fn took(outcome: &Outcome) -> Span {
    outcome.flows.iter().map(|flow| flow.completed).max().unwrap().since(Time::ZERO)
}

/// A flow alone never waits: it takes its ideal time, except for rounding.
#[test]
fn a_flow_alone_has_the_link_to_itself() {
    for bytes in [4_096, 1 << 20, 50 << 20] {
        let setup = incast(1, bytes);
        let outcome = run(&setup, LawKind::Nscc, &[]);
        let (took, ideal) = (took(&outcome), setup.ideal(&setup.flows[0]));
        println!("{bytes} B: {took}, ideal {ideal}");
        assert!(took >= ideal && took.ps() - ideal.ps() <= ideal.ps() / 1_000, "{took} instead of {ideal}");
        assert_eq!(outcome.links.iter().map(|link| link.trims + link.marks).sum::<u64>(), 0);
    }
}

/// n to 1: no flow waits for a timer, nothing is dropped, and the last flow ends when the receiver's link has carried
/// all payload and headers, those of trimmed packets too. 1 %: the idle time left by timeouts and their repair.
#[test]
fn an_incast_ends_when_the_link_has_carried_it() {
    for (senders, bytes) in [(2, 8 << 20), (8, 4 << 20), (32, 1 << 20), (64, 1 << 20)] {
        let setup = incast(senders, bytes);
        let outcome = run(&setup, LawKind::Nscc, &[]);
        let port = outcome.links[towards_receiver(&setup).index()];
        let (took, base) = (took(&outcome), setup.paths(setup.flows[0].src, setup.flows[0].dst, 4_096).base_rtt);
        let wire = (f64::from(senders) * bytes as f64 * WIRE) as u64 + 64 * port.trims;
        let least = RATE.tx_time(Bytes::new(wire)) + base;
        println!(
            "{senders} x {bytes} B: {took}, link {least}, {:+.2} %; {} trims, {} marks, {} strikes",
            100.0 * (took.ps() as f64 / least.ps() as f64 - 1.0),
            port.trims,
            port.marks,
            outcome.flows.iter().map(|flow| flow.actions.quick_adapts).sum::<u64>(),
        );
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "{senders} senders");
        assert_eq!((timeouts(&outcome), outcome.links.iter().map(|link| link.drops).sum::<u64>()), (0, 0));
        let bounds = least.ps()..least.ps() + least.ps() / 100;
        assert!(bounds.contains(&took.ps()), "{senders} senders: {took} instead of {least}");
    }
}

/// Eight flows that go on: their queue stays near the target, three quarters of the base round trip, the link is full, and
/// they share it evenly.
#[test]
fn the_queue_stays_near_the_target() {
    let mut setup = incast(8, 1 << 40);
    let port = towards_receiver(&setup);
    setup.stop = Time::from_ms(20);
    setup.series = SeriesConfig {
        interval: Span::from_us(5),
        ports: vec![port],
        flows: (0..8).map(FlowId).collect(),
        ..SeriesConfig::default()
    };
    let outcome = run(&setup, LawKind::Nscc, &[]);
    let base = setup.paths(setup.flows[0].src, setup.flows[0].dst, 4_096).base_rtt;
    let target = RATE.bytes_in(base.times(3).over(4)).get() as f64;
    let from = Time::from_ms(5);
    let queues: Vec<f64> =
        outcome.port_samples.iter().filter(|it| it.time > from).map(|it| it.queue.get() as f64).collect();
    let mean = queues.iter().sum::<f64>() / queues.len() as f64;
    let delivered = |flow: u32, at: Time| {
        let mut samples = outcome.flow_samples.iter().filter(|it| it.flow == FlowId(flow) && it.time <= at);
        samples.next_back().unwrap().delivered.get() as f64
    };
    let shares: Vec<f64> = (0..8).map(|flow| delivered(flow, setup.stop) - delivered(flow, from)).collect();
    let sum: f64 = shares.iter().sum();
    let jain = sum * sum / (8.0 * shares.iter().map(|share| share * share).sum::<f64>());
    let used = sum * WIRE * 8.0 / 0.015 / 1e9;
    println!("queue {mean:.0} B, target {target:.0} B; {used:.2} Gb/s; Jain {jain:.4}");
    assert!((0.8..1.25).contains(&(mean / target)), "a queue of {mean} B, target {target} B");
    assert!(used > 99.0, "{used} Gb/s of 100");
    assert!(jain > 0.98, "{shares:?}");
    assert_eq!(timeouts(&outcome), 0);
}

/// A tree of 16 hosts, in which each sends to the one half round; the round trip is 25 us.
fn permutation(path: LoadBalancing, bytes: u64) -> Setup {
    let port = port(RATE.bytes_in(Span::from_us(25)));
    let trees =
        FatTrees { datacenters: 1, k: 4, hosts_per_edge: 2, nic: nic(), inter: vec![], ..FatTrees::uno(port, DELAY) };
    let flows = (0..16).map(|src| flow(src, (src + 8) % 16, bytes)).collect();
    let mut setup = setup(trees.build().unwrap(), flows, Time::from_ms(500));
    setup.host.path = path;
    setup
}

/// Every host sends and receives at its link's rate if no two flows meet. With one path a flow some do; with REPS packets
/// leave marked paths.
#[test]
fn entropies_that_are_recycled_avoid_collisions() {
    let (bytes, base) = (16 << 20, 25e-6);
    let least = bytes as f64 * WIRE * 8.0 / RATE.bps() as f64 + base;
    let slowest = |path| {
        let outcome = run(&permutation(path, bytes), LawKind::Nscc, &[]);
        assert_eq!(timeouts(&outcome), 0, "{path:?}");
        took(&outcome).ps() as f64 / 1e12 / least
    };
    let [recycled, sprayed, fixed] = [reps(), LoadBalancing::PerPacket(256), LoadBalancing::PerFlow].map(slowest);
    println!("REPS {recycled:.3}, spraying {sprayed:.3}, ECMP {fixed:.3} of the least time");
    assert!(recycled < 1.1 && fixed > 1.5 && recycled <= sprayed, "{recycled} {sprayed} {fixed}");
}

/// A link between aggregation and core goes down for good. Spraying loses packets on it to the end. REPS keeps to working
/// paths, and loses only packets of its first flight and of its exploration.
#[test]
fn a_dead_path_is_left() {
    let lost = |path| {
        let mut setup = permutation(path, 16 << 20);
        let is_core = |link: &usize| setup.network.links()[*link].class == LinkClass::Core;
        let dead = LinkId((0..setup.network.links().len()).find(is_core).unwrap() as u32);
        let down = Outages::new([(Time::from_us(100), Time::NEVER)]);
        setup.network = setup.network.with_outages(dead, down);
        let outcome = run(&setup, LawKind::Nscc, &[]);
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "{path:?}");
        let hit: BTreeSet<usize> = (0..16).filter(|&flow| outcome.flows[flow].stats.timeouts > 0).collect();
        println!(
            "{path:?}: {} lost, {} timeouts of {} flows, {}",
            outcome.links[dead.index()].losses,
            timeouts(&outcome),
            hit.len(),
            took(&outcome)
        );
        (outcome.links[dead.index()].losses, took(&outcome))
    };
    let [recycled, sprayed] = [reps(), LoadBalancing::PerPacket(256)].map(lost);
    assert!(recycled.0 * 2 < sprayed.0 && recycled.1 < sprayed.1, "{recycled:?} {sprayed:?}");
}
