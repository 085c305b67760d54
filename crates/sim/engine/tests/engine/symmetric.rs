//! Networks where packets back take the reverse of the way there, with several equal paths.

use crate::common;
use experiment::{HostConfig, Outcome, Setup};
use fabric::topology::FatTrees;
use fabric::{CreditQueue, LinkClass, LinkId, Outages, PortConfig, Routes};
use flow::LoadBalancing;
use laws::catalog::LawKind;
use units::{Bytes, Rate, Span, Time};

/// Flows over two trees of 16 hosts with four long links between them; every port of a switch is `port`.
fn trees(port: &PortConfig, flows: &[(u32, u32, u64)]) -> Setup {
    let trees = FatTrees::uno(*port, Span::from_us(40));
    let inter = trees.inter.iter().cloned().map(|mut links| {
        (links.count, links.port) = (4, PortConfig { delay: Span::from_us(40), ..*port });
        links
    });
    let inter = inter.collect();
    let nic = PortConfig { credits: port.credits, ..PortConfig::new(port.rate, port.delay) };
    let network = FatTrees { k: 4, hosts_per_edge: 2, border_links_per_core: 2, nic, inter, ..trees }.build().unwrap();
    let flows = flows.iter().map(|&(src, dst, size)| common::flow(src, dst, size)).collect();
    Setup { symmetric: true, ..common::setup(network, flows, Time::from_ms(50)) }
}

/// The packets of each direction of cables between switches.
fn both_ways(setup: &Setup, outcome: &Outcome) -> Vec<(u64, u64)> {
    let cables = setup.network.links().iter().zip(&outcome.links);
    let inside = cables.filter(|(link, _)| !matches!(link.class, LinkClass::Nic | LinkClass::Host));
    inside.map(|(link, it)| (it.packets, outcome.links[link.reverse.index()].packets)).collect()
}

/// Each packet is answered over the cables over which it came, however its path is chosen: so as many packets pass a cable in
/// one direction as in the other.
#[test]
fn acks_take_the_reverse_path() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let flows: Vec<_> = (0..32).map(|src| (src, (src * 7 + 5) % 32, 100_000)).filter(|it| it.0 != it.1).collect();
    for path in [LoadBalancing::PerFlow, LoadBalancing::PerPacket(64)] {
        for control_priority in [false, true] {
            let mut setup = trees(&PortConfig { control_priority, ..port }, &flows);
            setup.host = HostConfig { path, ..setup.host };
            let outcome = common::run(&setup, LawKind::Dctcp, &[]);
            assert!(outcome.flows.iter().all(|flow| flow.stats.retransmits == 0 && flow.completed.is_set()));
            let passed = both_ways(&setup, &outcome);
            assert!(passed.iter().all(|(there, back)| there == back), "{path:?}: {passed:?}");
            // Not so if switches hash the reverse packets.
            setup.symmetric = false;
            let passed = both_ways(&setup, &common::run(&setup, LawKind::Dctcp, &[]));
            assert!(passed.iter().any(|(there, back)| there != back), "{path:?}");
        }
    }
}

/// Routes that avoid only one direction of a cable: packets that would return over it take another path, and arrive.
#[test]
fn where_there_is_no_reverse_packets_back_go_another_way() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let flows: Vec<_> = (0..16).map(|src| (src, 16 + src, 200_000)).collect();
    let mut setup = trees(&port, &flows);
    let long = |id: &LinkId| {
        let link = &setup.network.links()[id.index()];
        link.class == LinkClass::Inter && setup.network.nodes()[link.from.index()].datacenter == 1
    };
    let gone = (0..setup.network.links().len() as u32).map(LinkId).find(long).unwrap();
    setup.network = setup.network.with_outages(gone, Outages::new([(Time::ZERO, Time::from_ms(50))]));
    setup.routes = Routes::without(&setup.network, &[gone].into()).unwrap();
    let outcome = common::run(&setup, LawKind::Dctcp, &[]);
    assert!(outcome.flows.iter().all(|flow| flow.stats.retransmits == 0 && flow.completed.is_set()));
    let reverse = setup.network.links()[gone.index()].reverse;
    assert_eq!(outcome.links[gone.index()].packets, 0);
    assert!(outcome.links[reverse.index()].packets > 0);
}

/// `ExpressPass` on a tree: half of the hosts send to two each of the other half, two pods away, so flows share uplinks
/// by chance. Returns data drops and the longest queue of a switch.
fn expresspass(symmetric: bool) -> (u64, u64) {
    let flows: Vec<_> = (0..8).flat_map(|src| [1, 4].map(|on| (src, 8 + (src + on) % 8, 1_000_000))).collect();
    let port = PortConfig {
        credits: Some(CreditQueue::flashpass()),
        buffer: Bytes::new(BUFFER),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(1))
    };
    let mut setup = Setup { symmetric, ..trees(&port, &flows) };
    setup.host = HostConfig { mss: 1_460, header: 78, ack_size: 84, ack_every: 8, ..setup.host };
    let outcome = common::run(&setup, LawKind::ExpressPass, &[]);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    let ports = setup.network.links().iter().zip(&outcome.links);
    let longest = ports.filter(|(link, _)| link.class != LinkClass::Nic).map(|(_, it)| it.max_queue.get()).max();
    (outcome.links.iter().map(|link| link.drops).sum(), longest.unwrap())
}

const BUFFER: u64 = 100_000;

/// Past the cable of a port, a credit waits in at most three more queues of eight: this limits the packets of data that
/// may arrive at once. Over other cables than their data's, more credits pass than a cable of the data carries.
#[test]
fn credits_on_the_reverse_path_keep_queues_short() {
    let (drops, longest) = expresspass(true);
    assert!(drops == 0 && longest <= 3 * 8 * 1_538, "{drops} drops, {longest} bytes");
    let (drops, longest) = expresspass(false);
    assert!(drops > 0 && longest > BUFFER - 1_538, "{drops} drops, {longest} bytes");
}
