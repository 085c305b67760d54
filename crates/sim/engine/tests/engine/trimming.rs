//! Packet trimming against arithmetic: the packets that are trimmed and requested again, and no wait for a timer.
#![allow(clippy::unwrap_used)]

use crate::common::{flow, run, setup};
use experiment::{Coding, Outcome, Setup};
use fabric::topology::{SingleSwitch, single_switch};
use fabric::{LinkId, PortConfig, Trim};
use flow::{FlowCoding, Recovery};
use laws::catalog::{LawKind, ParamValue};
use units::{Bytes, Rate, Span, Time};

const RATE: Rate = Rate::from_gbps(10);
/// A full packet on the wire.
const PACKET: u64 = 4_160;

fn window(packets: u64) -> [(&'static str, ParamValue); 1] {
    [("window", ParamValue::Bytes(Bytes::new(packets * 4_096)))]
}

/// Hosts 1 to `senders` send `packets` each to host 0. Its port has room for `room` packets and trims, or drops.
fn incast(senders: u32, packets: u64, room: u64, trim: Option<Trim>) -> Setup {
    let nic = PortConfig::new(RATE, Span::from_us(1));
    let port = PortConfig { buffer: Bytes::new(room * PACKET), control_priority: true, trim, ..nic };
    let network = single_switch(&SingleSwitch { hosts: vec![(nic, port); senders as usize + 1] }).unwrap();
    let flows = (1..=senders).map(|src| flow(src, 0, packets * 4_096)).collect();
    setup(network, flows, Time::from_ms(100))
}

/// Room for 1500 headers: timeouts, which allow for every full queue, are reckoned with it.
const TRIMS: Option<Trim> = Some(Trim { header: 64, control: Bytes::new(96_000) });

struct Sums {
    trims: u64,
    drops: u64,
    nacks: u64,
    retransmits: u64,
    timeouts: u64,
}

fn sums(outcome: &Outcome) -> Sums {
    let stats = || outcome.flows.iter().map(|flow| &flow.stats);
    Sums {
        trims: outcome.links.iter().map(|link| link.trims).sum(),
        drops: outcome.links.iter().map(|link| link.drops).sum(),
        nacks: stats().map(|it| u64::from(it.nacks)).sum(),
        retransmits: stats().map(|it| it.retransmits).sum(),
        timeouts: stats().map(|it| u64::from(it.timeouts)).sum(),
    }
}

fn last_end(outcome: &Outcome) -> Span {
    outcome.flows.iter().map(|flow| flow.completed).max().unwrap().since(Time::ZERO)
}

/// Eight packets come at once to a port with room for three: five are trimmed, and their headers leave right behind the
/// packet in service, 51.2 ns each. Before the run ends nothing is sent again.
#[test]
fn overflow_is_trimmed_and_headers_go_first() {
    let mut incast = incast(8, 1, 3, TRIMS);
    // A packet lasts 3.328 us at each of two ports and 1 us on each of two links.
    let first = Span::from_ps(2 * (3_328_000 + 1_000_000));
    incast.stop = Time::ZERO + first + Span::from_ps(5 * 51_200);
    let outcome = run(&incast, LawKind::Fixed, &window(1));
    let port = outcome.links.iter().find(|link| link.trims > 0).unwrap();
    assert_eq!((port.trims, port.drops), (5, 0));
    // The first packet arrived complete, and five headers; the last of these at the stop.
    assert_eq!(outcome.engine.data_received, 1);
    assert_eq!(port.max_queue, Bytes::new(3 * PACKET + 5 * 64));
    assert_eq!(outcome.engine.data_packets, 8);
}

/// The complete incast: every trimmed packet is requested and sent again once, no timer expires, and the receiver's
/// link is never idle from the first packet to the last. So it ends when the link has carried all packets and headers.
#[test]
fn an_incast_ends_when_the_link_has_carried_it() {
    let senders = 16;
    let packets = 50;
    let incast = incast(senders, packets, 16, TRIMS);
    let outcome = run(&incast, LawKind::Fixed, &window(4));
    let Sums { trims, drops, nacks, retransmits, timeouts } = sums(&outcome);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert!(trims > 100, "{trims} trims");
    assert_eq!((nacks, retransmits, drops, timeouts), (trims, trims, 0, 0));
    let wire = u64::from(senders) * packets * PACKET + trims * 64;
    // The first packet crosses its own link first; the last acknowledgement goes back over two ports.
    let least = RATE.tx_time(Bytes::new(wire)) + Span::from_ps(3_328_000 + 2_000_000) + Span::from_ps(2_102_400);
    let took = last_end(&outcome);
    println!("{trims} trims; {took} instead of {least}");
    assert!(took >= least - Span::from_ps(1) && took < least + Span::from_us(4), "{took} instead of {least}");
}

/// The same where ports drop takes timeouts, or at least longer.
#[test]
fn dropping_instead_takes_longer() {
    let trimming = run(&incast(16, 8, 4, TRIMS), LawKind::Fixed, &window(8));
    let dropping = run(&incast(16, 8, 4, None), LawKind::Fixed, &window(8));
    assert_eq!((sums(&trimming).timeouts, sums(&dropping).trims), (0, 0));
    assert!(sums(&dropping).timeouts > 0);
    let (fast, slow) = (last_end(&trimming), last_end(&dropping));
    println!("trimming {fast}, dropping {slow}");
    assert!(fast < slow);
}

/// Headers for which control has no room are lost as packets are: timers find them.
#[test]
fn headers_are_dropped_only_where_control_is_full() {
    let little = Some(Trim { header: 64, control: Bytes::new(128) });
    let incast = incast(16, 8, 4, little);
    let outcome = run(&incast, LawKind::Fixed, &window(8));
    let Sums { trims, drops, nacks, retransmits, .. } = sums(&outcome);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    assert!(drops > 0 && nacks > 0, "{drops} drops, {nacks} nacks");
    assert_eq!(trims, nacks + drops);
    assert!(retransmits >= trims);
    let others: u64 = outcome.links.iter().map(|link| link.lost.signals).sum();
    assert_eq!((others, outcome.links.iter().map(|link| link.lost.data).sum::<u64>()), (drops, 0));
}

/// Go-back-N and coded flows end over ports that trim, too. Each packet that was lost to its flow was sent again.
#[test]
fn go_back_n_and_coding_work_with_trimming() {
    for case in 0..3 {
        let mut incast = incast(8, 20, 8, TRIMS);
        if case == 0 {
            incast.host.recovery = Recovery::GoBackN { nack_interval: Span::from_us(20), acks: true };
        } else {
            incast.flows.iter_mut().for_each(|flow| flow.coded = true);
            incast.host.coding = Some(Coding {
                code: FlowCoding { data: 8, parity: 2, tail: None },
                block_timer: None,
                gaps: false,
                eager: true,
                history: case == 2,
            });
        }
        let outcome = run(&incast, LawKind::Fixed, &window(4));
        let sums = sums(&outcome);
        assert!(sums.trims > 0 && sums.nacks > 0, "case {case}: {} trims", sums.trims);
        for (spec, end) in incast.flows.iter().zip(&outcome.flows) {
            assert!(end.completed.is_set(), "case {case}");
            assert_eq!(end.delivered, spec.size);
        }
    }
}

/// Trimmed packets of one flow are counted as its losses, and links that do not trim count none.
#[test]
fn counts_are_of_the_flow_and_the_port() {
    let incast = incast(4, 10, 2, TRIMS);
    let outcome = run(&incast, LawKind::Fixed, &window(10));
    let lost: u64 = outcome.lost_of.iter().map(|&lost| u64::from(lost)).sum();
    assert_eq!(lost, sums(&outcome).trims);
    let of_flows: u64 = outcome.flows.iter().map(|flow| u64::from(flow.stats.nacks)).sum();
    assert_eq!(lost, of_flows);
    let towards = |link: usize| incast.network.link_name(LinkId(link as u32)).ends_with("host0");
    for (link, end) in outcome.links.iter().enumerate() {
        assert!(end.trims == 0 || towards(link), "{} trimmed", incast.network.link_name(LinkId(link as u32)));
    }
}
