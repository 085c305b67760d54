//! Connections that outlive their flows, and thresholds that hosts remember.
#![allow(clippy::unwrap_used)]

use crate::common::{flow, pipe, run, setup};
use experiment::{FlowSpec, Outcome, Setup, Start};
use fabric::{Builder, HostId, LinkClass, PortConfig};
use flow::{CwndValidationConfig, LoadBalancing, TcpConfig, UnoLb};
use laws::catalog::LawKind;
use units::{Bytes, Rate, Span, Time};

const MSS: u64 = 4_096;
const RTT: Span = Span::from_ms(10);

/// Two hosts 5 ms apart at 100 Gb/s, and flows of (start in milliseconds, packets).
fn far(flows: &[(u64, u64)], kept: bool) -> Setup {
    let rate = Rate::from_gbps(100);
    let link = PortConfig::new(rate, Span::from_ms(5) - Span::from_us(2));
    let spec = |&(ms, packets): &(u64, u64)| FlowSpec {
        start: Start::At(Time::from_us(1_000 * ms)),
        kept,
        ..flow(0, 1, packets * MSS)
    };
    setup(pipe(1, &link, rate, Span::from_us(1)), flows.iter().map(spec).collect(), Time::from_ms(10_000))
}

/// Returns the completion time of each flow in round trips.
fn round_trips(outcome: &Outcome) -> Vec<f64> {
    let of = |flow: &experiment::FlowOutcome| flow.completed.since(flow.started).ps() as f64 / RTT.ps() as f64;
    outcome.flows.iter().map(of).collect()
}

/// From 10 packets on, 200 take five round trips: 10, 20, 40, 80 and 50. After 1,000 in slow start the window holds them.
/// A connection that was idle for a second begins with 10 again, where hosts restart.
#[test]
fn a_kept_connection_keeps_its_window() {
    let flows = [(0, 1_000), (1_000, 200)];
    let second = |kept: bool, idle_restart: bool| {
        let mut setup = far(&flows, kept);
        setup.host.tcp = TcpConfig {
            usage: CwndValidationConfig { restart: idle_restart, ..CwndValidationConfig::default() },
            ..TcpConfig::NONE
        };
        let outcome = run(&setup, LawKind::NewReno, &[]);
        assert_eq!(outcome.flows.iter().map(|flow| flow.stats.packets_sent).collect::<Vec<_>>(), [1_000, 200]);
        assert!(outcome.flows.iter().all(|flow| flow.delivered.get() == MSS * flow.stats.packets_sent));
        round_trips(&outcome)[1]
    };
    for (kept, idle_restart, expected) in
        [(false, false, 5.0), (false, true, 5.0), (true, false, 1.0), (true, true, 5.0)]
    {
        let took = second(kept, idle_restart);
        assert!((expected..expected + 0.02).contains(&took), "{took} with {kept} and {idle_restart}");
    }
}

/// The actions of a law are counted for the flow for which it acted.
#[test]
fn law_actions_are_counted_per_flow() {
    let outcome = run(&far(&[(0, 1_000), (1_000, 200)], true), LawKind::NewReno, &[]);
    let increases: Vec<u64> = outcome.flows.iter().map(|flow| flow.actions.increases).collect();
    // All acknowledged bytes of the first flow, except those that arrived while it had no data left to send; at most all of
    // the other.
    assert!((400..=1_000).contains(&increases[0]) && increases[1] <= 200, "{increases:?}");
}

/// Three connections at once, then four flows at once: three find a connection. Other classes find none.
#[test]
fn connections_are_pooled_by_peak_concurrency() {
    let mut setup = far(&[(0, 500), (0, 500), (0, 500), (500, 200), (500, 200), (500, 200), (500, 200)], true);
    let outcome = run(&setup, LawKind::NewReno, &[]);
    let fast = round_trips(&outcome)[3..].iter().filter(|&&took| took < 2.0).count();
    assert_eq!(fast, 3, "{:?}", round_trips(&outcome));
    for flow in &mut setup.flows[3..] {
        flow.class = 2;
    }
    assert!(round_trips(&run(&setup, LawKind::NewReno, &[]))[3..].iter().all(|&took| took > 4.0));
}

/// Two switches, two equal cables, and 32 flows one after the other.
fn one_by_one(kept: bool, path: LoadBalancing) -> [u64; 2] {
    let port = PortConfig { buffer: Bytes::new(1_000_000), ..PortConfig::new(Rate::from_gbps(10), Span::from_us(5)) };
    let mut builder = Builder::default();
    let switches = [builder.switch(0, "a"), builder.switch(0, "b")];
    for (number, switch) in switches.into_iter().enumerate() {
        let node = builder.host(0, format!("host{number}"));
        builder.connect(node, switch, LinkClass::Host, port, port);
    }
    for _ in 0..2 {
        builder.connect(switches[0], switches[1], LinkClass::Other, port, port);
    }
    let spec = |index: u64| FlowSpec { start: Start::At(Time::from_us(200 * index)), kept, ..flow(0, 1, 20 * MSS) };
    let mut setup = setup(builder.finish().unwrap(), (0..32).map(spec).collect(), Time::from_ms(1_000));
    setup.host.path = path;
    let outcome = run(&setup, LawKind::Dctcp, &[]);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    let sender = setup.network.links()[setup.network.uplink(HostId(0)).index()].to;
    let cables = setup.network.links().iter().zip(&outcome.links);
    let there = cables.filter(|(link, _)| link.class == LinkClass::Other && link.from == sender);
    there.map(|(_, link)| link.packets).collect::<Vec<_>>().try_into().unwrap()
}

/// A kept connection stays on its path; each new one draws another, and so does each packet that is sprayed.
#[test]
fn a_kept_connection_keeps_its_path() {
    let mut cables = one_by_one(true, LoadBalancing::PerFlow);
    cables.sort_unstable();
    assert_eq!(cables, [0, 640]);
    let spread = |packets: u64| (220..=420).contains(&packets);
    for (kept, path) in [(false, LoadBalancing::PerFlow), (true, LoadBalancing::PerPacket(256))] {
        let cables = one_by_one(kept, path);
        assert!(cables.into_iter().all(spread) && cables[0] + cables[1] == 640, "{cables:?} with {path:?}");
    }
    let unolb = UnoLb { subflows: 8, recent: None, random: false, own_laws: true };
    let cables = one_by_one(true, LoadBalancing::UnoLb(unolb));
    assert_eq!(cables[0] + cables[1], 640);
}

/// A first slow start overflows a buffer of an eighth of a BDP. Later flows do not, on a kept connection that restarts or
/// with a remembered threshold.
#[test]
fn a_remembered_threshold_spares_the_overflow() {
    let losses = |kept: bool, idle_restart: bool, remembers: bool| {
        let rate = Rate::from_gbps(1);
        let link = PortConfig {
            buffer: rate.bytes_in(RTT).scaled(units::Frac::ratio(1, 8)),
            ..PortConfig::new(rate, Span::from_ms(5) - Span::from_us(2))
        };
        let spec = |index: u64| FlowSpec {
            start: Start::At(Time::from_us(2_000_000 * index)),
            kept,
            ..flow(0, 1, 5_000 * MSS)
        };
        let network = pipe(1, &link, Rate::from_gbps(100), Span::from_us(1));
        let mut setup = setup(network, (0..2).map(spec).collect(), Time::from_ms(10_000));
        setup.host.tcp = TcpConfig {
            usage: CwndValidationConfig { restart: idle_restart, ..CwndValidationConfig::default() },
            remembers,
            ..TcpConfig::NONE
        };
        let outcome = run(&setup, LawKind::NewReno, &[]);
        outcome.flows.iter().map(|flow| flow.stats.retransmits).collect::<Vec<_>>()
    };
    let new = losses(false, false, false);
    assert!(new[0] > 40 && new[0] == new[1], "{new:?}");
    for (kept, remembers) in [(true, false), (false, true)] {
        let better = losses(kept, true, remembers);
        assert!(better[0] == new[0] && better[1] < new[1] / 10, "{better:?} with {kept} and {remembers}");
    }
    // Without a restart the full window leaves at once.
    assert!(losses(true, false, false)[1] > new[1]);
}

/// Reads of 200 KB over 200 Mb/s and 50 ms, with pauses between them, on a kept connection under BBR. No read fills the pipe, so all
/// that a read measures is limited by its data and lowers no estimate: none takes longer than the one before it. Ten round trips
/// would otherwise forget what the first reads found.
#[test]
fn pauses_between_messages_do_not_slow_bbr_down() {
    let rate = Rate::from_mbps(200);
    let link = PortConfig::new(rate, Span::from_ms(25) - Span::from_us(2));
    let spec =
        |read: u64| FlowSpec { start: Start::At(Time::from_us(400_000 * read)), kept: true, ..flow(0, 1, 200_000) };
    let flows = (0..60).map(spec).collect();
    let setup = setup(pipe(1, &link, Rate::from_gbps(10), Span::from_us(1)), flows, Time::from_ms(60_000));
    let outcome = run(&setup, LawKind::Bbr, &[]);
    let took: Vec<Span> = outcome.flows.iter().map(|flow| flow.completed.since(flow.started)).collect();
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert!(took.iter().skip(1).is_sorted_by(|before, after| after <= before), "{took:?}");
}
