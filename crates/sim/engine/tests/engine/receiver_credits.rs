//! Credits of receivers' hosts for their own links (RCCC), against arithmetic: an incast under a law that never yields,
//! shares, losses, and laws that hold back as well.
#![allow(clippy::unwrap_used)]

use crate::common::{flow, run, setup};
use experiment::{Outcome, Setup};
use fabric::topology::{SingleSwitch, single_switch};
use fabric::{HostId, LinkId, PortConfig, Trim};
use laws::catalog::{LawKind, ParamValue};
use units::{Bytes, Rate, Span, Time};

const RATE: Rate = Rate::from_gbps(100);
const DELAY: Span = Span::from_us(2);
const WIRE: u64 = 4_160;
/// A window that holds nothing back.
const OPEN: (&str, ParamValue) = ("window", ParamValue::Bytes(Bytes::new(1 << 30)));

fn port(buffer: Bytes) -> PortConfig {
    PortConfig { buffer, control_priority: true, ..PortConfig::new(RATE, DELAY) }
}

/// Flows of (source, destination, packets), with credits from receivers.
fn flows(hosts: usize, buffer: Bytes, flows: &[(u32, u32, u64)]) -> Setup {
    let nic = PortConfig::new(RATE, DELAY);
    let network = single_switch(&SingleSwitch { hosts: vec![(nic, port(buffer)); hosts] }).unwrap();
    let flows = flows.iter().map(|&(src, dst, packets)| flow(src, dst, packets * 4_096)).collect();
    let mut setup = setup(network, flows, Time::from_ms(200));
    setup.host.receiver_credits = true;
    setup
}

fn incast(senders: u32, packets: u64, buffer: Bytes) -> Setup {
    flows(senders as usize + 1, buffer, &(1..=senders).map(|src| (src, 0, packets)).collect::<Vec<_>>())
}

fn towards(setup: &Setup, host: u32) -> LinkId {
    setup.network.links()[setup.network.uplink(HostId(host)).index()].reverse
}

fn last(outcome: &Outcome) -> Span {
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()), "{:?}", outcome.flows);
    outcome.flows.iter().map(|flow| flow.completed.since(Time::ZERO)).max().unwrap()
}

/// Packets of a BDP.
fn unscheduled(setup: &Setup) -> u64 {
    let paths = setup.paths(HostId(1), HostId(0), 4_096);
    RATE.bytes_in(paths.base_rtt).get().div_ceil(WIRE)
}

/// With any law, no more waits at the receiver's port than the first BDP of each flow. Without credits it is all that
/// the windows allow.
#[test]
fn an_incast_waits_with_its_first_bdps_alone_and_fills_the_link() {
    let (senders, packets) = (16, 400);
    let mut setup = incast(senders, packets, Bytes::MAX);
    // Packets that wait among the first BDPs are not lost.
    setup.host.rto_min = Some(Span::from_ms(1));
    let outcome = run(&setup, LawKind::Fixed, &[OPEN]);
    let most = u64::from(senders) * unscheduled(&setup) * WIRE;
    let queue = outcome.links[towards(&setup, 0).index()].max_queue.get();
    assert!(most / 2 < queue && queue <= most + WIRE, "{queue} of {most}");
    let ideal = RATE.tx_time(Bytes::new(u64::from(senders) * packets * WIRE)) + DELAY.times(4);
    let took = last(&outcome);
    assert!(ideal <= took && took < ideal + ideal.over(50), "{took:?} and not {ideal:?}");
    // In turn: all end within three turns of each other, and each got a credit for each packet that needed one.
    let first = outcome.flows.iter().map(|flow| flow.completed).min().unwrap();
    let turn = RATE.tx_time(Bytes::new(u64::from(senders) * WIRE));
    assert!(took - first.since(Time::ZERO) <= turn.times(3), "{first:?} and {took:?}");
    for flow in &outcome.flows {
        let credits = flow.credits;
        assert_eq!((credits.unscheduled, credits.used), (unscheduled(&setup), packets - unscheduled(&setup)));
        assert_eq!((credits.sent, credits.wasted), (credits.used, 0));
    }
    let mut without = setup.clone();
    without.host.receiver_credits = false;
    let outcome = run(&without, LawKind::Fixed, &[OPEN]);
    assert!(outcome.links[towards(&without, 0).index()].max_queue.get() > 10 * most);
}

/// A flow alone does not notice: credits come for the second BDP before the first is out.
#[test]
fn a_flow_alone_is_as_fast_as_without() {
    let mut setup = incast(1, 2_000, Bytes::MAX);
    let with = last(&run(&setup, LawKind::Fixed, &[OPEN]));
    setup.host.receiver_credits = false;
    let without = last(&run(&setup, LawKind::Fixed, &[OPEN]));
    assert!(without <= with && with < without + without.over(100), "{with:?} and {without:?}");
}

/// Lost packets get credits like the rest, also if everything of the first BDPs that is over the buffer is lost, and if
/// ports trim.
#[test]
fn lost_packets_get_new_credits() {
    for trims in [false, true] {
        let (senders, packets) = (8, 200);
        let mut setup = incast(senders, packets, Bytes::new(20 * WIRE));
        if trims {
            let trim = Some(Trim { header: 64, control: Bytes::new(1 << 20) });
            let nic = PortConfig::new(RATE, DELAY);
            let port = PortConfig { trim, ..port(Bytes::new(20 * WIRE)) };
            setup.network = single_switch(&SingleSwitch { hosts: vec![(nic, port); senders as usize + 1] }).unwrap();
        }
        let outcome = run(&setup, LawKind::Fixed, &[OPEN]);
        let dropped = outcome.links[towards(&setup, 0).index()];
        let lost = if trims { dropped.trims } else { dropped.drops };
        assert!(lost > 20, "{lost}");
        let ideal = RATE.tx_time(Bytes::new(u64::from(senders) * packets * WIRE)) + DELAY.times(4);
        let took = last(&outcome);
        // A round trip and the packets lost in it; without trimming the loss of a tail is found by a timeout.
        let more = RATE.tx_time(Bytes::new(lost * WIRE)) + Span::from_us(if trims { 20 } else { 200 });
        assert!(took < ideal + more, "{took:?} and not {:?}", ideal + more);
        for flow in &outcome.flows {
            let credits = flow.credits;
            assert_eq!(credits.used + credits.unscheduled, flow.stats.packets_sent);
            assert!(
                credits.received <= credits.sent && credits.used + credits.wasted <= credits.received,
                "{credits:?}"
            );
        }
    }
}

/// A packet needs a credit and room in the window: half a BDP takes twice the time, with any number of credits.
#[test]
fn the_law_limits_too() {
    let setup = incast(1, 2_000, Bytes::MAX);
    let half = Bytes::new(unscheduled(&setup) * 4_096 / 2);
    let took = last(&run(&setup, LawKind::Fixed, &[("window", ParamValue::Bytes(half))]));
    let line = RATE.tx_time(Bytes::new(2_000 * WIRE));
    assert!(took > line + line.over(2) && took < line.times(3), "{took:?} and {line:?}");
}

/// A sender with a flow to each of two receivers, while one receiver also receives from another sender: each receiver
/// shares its own link, so two flows meet at one receiver with a half each, and the third takes the sender's other half.
#[test]
fn each_receiver_shares_its_own_link() {
    let setup = flows(4, Bytes::MAX, &[(2, 0, 3_000), (3, 0, 3_000), (3, 1, 3_000)]);
    let outcome = run(&setup, LawKind::Fixed, &[OPEN]);
    let alone = RATE.tx_time(Bytes::new(3_000 * WIRE));
    for flow in &outcome.flows {
        let took = flow.completed.since(Time::ZERO);
        assert!(
            took > alone.times(2) - alone.over(10) && took < alone.times(2) + alone.over(10),
            "{took:?}, {alone:?}"
        );
    }
}
