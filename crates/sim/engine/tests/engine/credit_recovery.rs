//! Credit-scheduled flows that lose packets, with each recovery: selective, go-back-N, and go-back-N with receivers that do
//! not acknowledge and only report missing packets.

use crate::common;
use experiment::{HostConfig, Outcome, Setup};
use fabric::topology::{Dumbbell, SingleSwitch, dumbbell, single_switch};
use fabric::{CreditQueue, LinkId, Outages, PortConfig};
use flow::Recovery;
use laws::catalog::{LawKind, ParamValue};
use units::{Bytes, Frac, Rate, Span, Time};

const SIZE: u64 = 1_000_000;

/// Packets of a flow of that size.
const PACKETS: u64 = SIZE.div_ceil(1_460);

/// At most one request in a round trip, which is 0.8 ms and its queues.
const NACK_INTERVAL: Span = Span::from_ms(1);

const WAYS: [Recovery; 3] = [
    Recovery::Selective,
    Recovery::GoBackN { nack_interval: NACK_INTERVAL, acks: true },
    Recovery::GoBackN { nack_interval: NACK_INTERVAL, acks: false },
];

/// The host settings that credits need.
fn host(recovery: Recovery) -> HostConfig {
    HostConfig { mss: 1_460, header: 78, ack_size: 84, ack_every: 8, recovery, ..HostConfig::default() }
}

/// Two datacenters, eight flows in both directions, and ports that lose this number of a million packets, of all kinds.
fn lossy(millionths: u64, recovery: Recovery) -> Setup {
    let edge = PortConfig {
        credits: Some(CreditQueue::flashpass()),
        buffer: Bytes::new(200_000),
        loss: Frac::millionths(millionths),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(2))
    };
    let bottleneck = PortConfig { delay: Span::from_us(400), ..edge };
    let network =
        Dumbbell { left: vec![(edge, edge); 4], right: vec![(edge, edge); 4], bottleneck, two_datacenters: true };
    let flows = (0..8).map(|src| common::flow(src, (src + 4) % 8, SIZE));
    let mut setup = common::setup(dumbbell(&network).unwrap(), flows.collect(), Time::from_ms(60_000));
    setup.host = host(recovery);
    setup
}

/// Every flow ended, and its packets were sent once each and once more for every time that one was lost or went back.
fn assert_delivered_once(setup: &Setup, outcome: &Outcome, what: &str) {
    for ((spec, flow), &lost) in setup.flows.iter().zip(&outcome.flows).zip(&outcome.lost_of) {
        assert!(flow.completed.is_set(), "{what}: {flow:?}");
        assert_eq!(flow.delivered, spec.size, "{what}");
        assert_eq!(flow.stats.packets_sent, PACKETS + flow.stats.retransmits, "{what}");
        assert!(flow.stats.retransmits >= u64::from(lost), "{what}: lost {lost}, {:?}", flow.stats);
    }
}

/// One packet in 300, and then one in 20, is lost: of data, credits, acknowledgements and requests alike. Every flow
/// ends, with the same bits at any number of threads. Only receivers of go-back-N ask for packets.
#[test]
fn flows_end_under_any_loss_with_each_recovery() {
    for millionths in [3_333, 50_000] {
        for (kind, early) in [(LawKind::FlashPass, false), (LawKind::FlashPass, true), (LawKind::ExpressPass, false)] {
            for recovery in WAYS {
                let what = format!("{kind:?}, {early}, {millionths}, {recovery:?}");
                let setup = lossy(millionths, recovery);
                let settings = [("early_start", ParamValue::Switch(early))];
                let factory = common::law(kind, &settings);
                let runs = [1, 2, 3]
                    .map(|threads| engine::run_on(&setup, engine::Threads::always(threads), &factory, &mut |_| true));
                assert_delivered_once(&setup, &runs[0], &what);
                for other in &runs[1..] {
                    assert!(runs[0].flows == other.flows && runs[0].links == other.links, "{what}");
                }
                let nacks: u32 = runs[0].flows.iter().map(|flow| flow.stats.nacks).sum();
                assert_eq!(nacks > 0, recovery != Recovery::Selective, "{what}: {nacks}");
                // Among 5 % of all packets there are last packets, requests and last words.
                let timeouts: u32 = runs[0].flows.iter().map(|flow| flow.stats.timeouts).sum();
                assert!(millionths < 50_000 || recovery == Recovery::Selective || timeouts > 0, "{what}");
            }
        }
    }
}

/// One flow over one switch; the link to its receiver is down for a while.
fn one_flow(recovery: Recovery, down: Option<(Time, Time)>) -> Setup {
    let nic = PortConfig {
        credits: Some(CreditQueue::flashpass()),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(200))
    };
    let network = single_switch(&SingleSwitch { hosts: vec![(nic, nic); 2] }).unwrap();
    let mut setup = common::setup(network, vec![common::flow(0, 1, SIZE)], Time::from_ms(2_000));
    if let Some(down) = down {
        let last = LinkId(setup.network.links_out(fabric::NodeId(0)).end - 1);
        setup.network = setup.network.with_outages(last, Outages::new([down]));
    }
    setup.host = host(recovery);
    setup
}

/// Without losses, a receiver that does not acknowledge sends its credits and one notice at the end. One that does
/// sends an acknowledgement for every eight packets.
#[test]
fn without_losses_a_silent_receiver_sends_one_report() {
    for (recovery, answers) in WAYS.into_iter().zip([PACKETS.div_ceil(8), PACKETS.div_ceil(8), 1]) {
        let setup = one_flow(recovery, None);
        let outcome = common::run(&setup, LawKind::ExpressPass, &[]);
        assert_delivered_once(&setup, &outcome, "no loss");
        let nic = &outcome.links[setup.network.uplink(fabric::HostId(1)).index()];
        let acks = nic.packets - (outcome.flows[0].credits.sent - nic.credit_drops);
        assert_eq!(acks, answers, "{recovery:?}");
        assert_eq!((outcome.flows[0].stats.timeouts, outcome.flows[0].stats.retransmits), (0, 0));
    }
}

/// The last packets are lost, and nothing comes after them that would show it: the sender's timer ends the flow.
#[test]
fn lost_last_packets_do_not_hang_a_flow() {
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        for recovery in WAYS {
            let run = |down| {
                let setup = one_flow(recovery, down);
                let outcome = common::run(&setup, kind, &[("early_start", ParamValue::Switch(false))]);
                assert_delivered_once(&setup, &outcome, "last packets");
                outcome.flows[0]
            };
            let whole = run(None);
            // The last packet came half a round trip, 400 us, before the end. So it left the switch 200 us before that.
            let left = whole.completed - Span::from_us(600);
            let broken = run(Some((left - Span::from_us(5), left + Span::from_us(5))));
            assert!(broken.stats.timeouts > 0, "{kind:?}, {recovery:?}: {:?}", broken.stats);
            assert!(broken.completed > whole.completed + Span::from_us(800), "{kind:?}, {recovery:?}");
        }
    }
}

/// A run that ends before its flow counts the received bytes, though its sender has received no report.
#[test]
fn received_bytes_count_without_acks() {
    let delivered = |recovery, stop| {
        let mut setup = one_flow(recovery, None);
        setup.stop = stop;
        common::run(&setup, LawKind::ExpressPass, &[]).flows[0]
    };
    let stop = delivered(WAYS[0], Time::from_ms(2_000)).completed - Span::from_us(800);
    let [acknowledged, silent] = [WAYS[1], WAYS[2]].map(|recovery| delivered(recovery, stop));
    assert!(!silent.completed.is_set());
    // Acknowledged packets arrived half a round trip, 400 us, before. So at most 309 packets, and those of one
    // acknowledgement, are between the two.
    let ahead = silent.delivered.get() - acknowledged.delivered.get();
    assert!(ahead > 0 && ahead <= (309 + 8) * 1_460, "{} and {}", silent.delivered, acknowledged.delivered);
}
