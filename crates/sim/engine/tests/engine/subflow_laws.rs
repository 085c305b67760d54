//! One law over all subflows, and a law for each.
#![allow(clippy::unwrap_used)]

use crate::common::{flow, run, setup};
use experiment::{Coding, Outcome, Setup};
use fabric::{Builder, Ecn, HostId, LinkClass, PortConfig};
use flow::{LoadBalancing, UnoLb};
use laws::catalog::LawKind;
use units::{Bytes, Frac, Rate, Span, Time};

const SIZE: u64 = 40 << 20;

/// Two switches, and between them a cable of 10 and one of 1 Gb/s that mark over 50 KB; a flow with eight subflows.
fn uneven(own_laws: bool) -> Setup {
    let marks = Ecn { min: Bytes::new(50_000), max: Bytes::new(50_000), max_probability: Frac::ONE };
    let host = PortConfig { buffer: Bytes::new(500_000), ..PortConfig::new(Rate::from_gbps(40), Span::from_us(1)) };
    let cable = |gbps| PortConfig {
        ecn: Some(marks),
        buffer: Bytes::new(500_000),
        ..PortConfig::new(Rate::from_gbps(gbps), Span::from_us(10))
    };
    let mut builder = Builder::default();
    let switches = [builder.switch(0, "a"), builder.switch(0, "b")];
    for (number, switch) in switches.into_iter().enumerate() {
        let node = builder.host(0, format!("host{number}"));
        builder.connect(node, switch, LinkClass::Host, host, host);
    }
    for gbps in [10, 1] {
        builder.connect(switches[0], switches[1], LinkClass::Other, cable(gbps), cable(gbps));
    }
    let mut setup = setup(builder.finish().unwrap(), vec![flow(0, 1, SIZE)], Time::from_ms(1_000));
    setup.host.path = LoadBalancing::UnoLb(UnoLb { subflows: 8, recent: None, random: false, own_laws });
    setup
}

/// The rate of the flow, and the bytes that the two cables carried in its direction.
fn outcome(setup: &Setup, kind: LawKind) -> (Rate, [u64; 2]) {
    let Outcome { flows, links, .. } = run(setup, kind, &[]);
    assert!(flows[0].completed.is_set() && flows[0].delivered == Bytes::new(SIZE));
    let sender = setup.network.links()[setup.network.uplink(HostId(0)).index()].to;
    let cables = setup.network.links().iter().zip(&links);
    let cables: Vec<u64> = cables
        .filter(|(link, _)| link.class == LinkClass::Other && link.from == sender)
        .map(|(_, outcome)| outcome.bytes.get())
        .collect();
    (Rate::of(Bytes::new(SIZE), flows[0].completed.since(Time::ZERO)), cables.try_into().unwrap())
}

/// A receiver waits for a block as long as it takes over the slow cable, which is not the first.
#[test]
fn a_block_is_waited_for_over_the_slow_cable() {
    let mut setup = uneven(false);
    let code = flow::FlowCoding { data: 8, parity: 2, tail: None };
    setup.host.coding = Some(Coding { code, block_timer: None, gaps: false, eager: false, history: false });
    setup.flows[0].coded = true;
    let timer = setup.block_timer(&setup.flows[0]).unwrap();
    let wait = setup.paths(HostId(0), HostId(1), setup.host.mss).longest_wait_there.unwrap();
    let block = Bytes::new(10 * u64::from(setup.host.mss + setup.host.header));
    assert_eq!(timer, wait + Rate::from_gbps(1).tx_time(block));
}

/// Packets that take subflows in turn are limited by the slow cable: it carries the packets of its share of the eight
/// subflows, and so that share of all bytes. Laws of their own fill both, with windows and with a pace: a subflow that
/// may send again does not wait for the time of another.
#[test]
fn a_law_a_subflow_fills_what_a_slow_path_leaves() {
    let share = |rate: Rate, gbps: f64| rate.bps() as f64 / (gbps * 1e9 * 4_096.0 / 4_160.0);
    for kind in [LawKind::Dctcp, LawKind::Bbr] {
        let (one, [fast, slow]) = outcome(&uneven(false), kind);
        let on_slow = (8 * slow).div_ceil(fast + slow);
        assert_eq!(on_slow, 3, "of 8 subflows on the slow cable");
        // Where packets leave in turn a path has its share but for one packet.
        assert!((0.97..1.001).contains(&share(one, 8.0 / 3.0)), "{one}");
        let (own, [fast, slow]) = outcome(&uneven(true), kind);
        assert!((0.97..1.0).contains(&share(own, 11.0)), "{own} under {kind:?}");
        assert!((9..=11).contains(&(fast / slow)), "{fast} and {slow}");
    }
}
