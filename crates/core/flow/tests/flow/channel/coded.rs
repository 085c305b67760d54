//! Flows with blocks that recover lost packets.

use flow::{FlowCoding, LoadBalancing, LossTimer, Recovery, UnoLb};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Bytes, Span};

use super::world::{Channel, FlowParams, TestCoding, any_kind, channel, flow, transfer};

/// All of a flow that the channel tests have, in flight at once.
const WIDE: u64 = 1 << 30;

fn code() -> impl Strategy<Value = FlowCoding> {
    let tail = proptest::option::weighted(0.3, 1..500_000u64);
    (1..=16u8, 1..=8u8, tail).prop_map(|(data, parity, tail)| FlowCoding { data, parity, tail: tail.map(Bytes::new) })
}

fn coding(timer: impl Strategy<Value = Span>) -> impl Strategy<Value = TestCoding> {
    (code(), any::<bool>(), timer).prop_map(|(code, eager, timer)| TestCoding {
        code,
        eager,
        timer,
        subflows: 0,
        history: 0,
    })
}

fn paths() -> impl Strategy<Value = LoadBalancing> {
    prop_oneof![
        Just(LoadBalancing::PerFlow),
        (1..=64u8, any::<bool>()).prop_map(|(subflows, random)| LoadBalancing::UnoLb(UnoLb {
            subflows,
            recent: None,
            random,
            own_laws: false,
        })),
    ]
}

/// Longer than any flow here: no request is triggered by a timer.
const NEVER: Span = Span::from_s(1_000_000);

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Every block is recovered, over any channel, with any requests and under every law, and at any time each packet sent is
    /// acknowledged, lost or in flight.
    #[test]
    fn every_flow_ends_over_any_channel(
        flow in flow(any_kind()), channel in channel(0..400u64),
        coding in coding((1..5_000i64).prop_map(Span::from_us)), subflows in 0..12u8, history in 0..12u8, paths in paths(),
    ) {
        let ack_every = if history > 0 { 1 } else { flow.ack_every };
        let coding = Some(TestCoding { subflows, history, ..coding });
        let tally = transfer(FlowParams { ack_every, coding, paths, ..flow }, channel)?;
        prop_assert!(tally.stats.packets_sent > 0);
    }

    /// The same where each subflow has a law.
    #[test]
    fn every_flow_ends_with_a_law_per_subflow(
        flow in flow(any_kind()), channel in channel(0..400u64),
        coding in coding((1..5_000i64).prop_map(Span::from_us)), laws in 2..=64u8, random in any::<bool>(),
    ) {
        let paths = LoadBalancing::UnoLb(UnoLb { subflows: laws, recent: None, random, own_laws: true });
        let tally = transfer(FlowParams { ack_every: 1, coding: Some(coding), paths, ..flow }, channel)?;
        prop_assert!(tally.stats.packets_sent > 0);
    }

    /// The same where each packet has a timer.
    #[test]
    fn every_flow_ends_with_a_timer_per_packet(
        flow in flow(any_kind()), channel in channel(0..400u64),
        coding in coding((1..5_000i64).prop_map(Span::from_us)), paths in paths(),
    ) {
        transfer(FlowParams { loss_timer: LossTimer::Packet, coding: Some(coding), paths, ..flow }, channel)?;
    }

    /// A block that loses no more packets than it has parity is never sent again, even if packets are late: neither if the
    /// whole flow is sent at once and timers wait for the latest packet, nor at any window if no timer expires.
    #[test]
    fn losses_within_parity_are_not_retransmitted(
        flow in flow(Just(LawKind::Fixed)), channel in channel(Just(0u64)), coding in coding(Just(NEVER)), paths in paths(),
        wide in any::<bool>(), ack_every in 1..3u8,
    ) {
        let channel = Channel { block_loss: coding.code.parity.into(), ..channel };
        let timer = if wide { channel.jitter + Span::from_us(1) } else { NEVER };
        let window = if wide { WIDE } else { flow.window };
        let coding = Some(TestCoding { timer, code: FlowCoding { tail: None, ..coding.code }, ..coding });
        let ack_every = if channel.jitter.is_zero() { ack_every } else { 1 };
        let paced = flow.paced && !wide;
        let tally = transfer(FlowParams { ack_every, window, paced, coding, paths, ..flow }, channel)?;
        prop_assert_eq!(tally.stats.retransmits, 0, "{:?}", tally);
        prop_assert!(!wide || channel.block_loss == 1 || tally.lost_data > 0);
    }

    /// Without a loss only parity is sent in addition to the data, m packets per block, and nothing is requested.
    #[test]
    fn parity_is_the_only_overhead_without_loss(
        packets in 1..300u32, base in channel(Just(0u64)), code in code(), paths in paths(), eager in any::<bool>(),
    ) {
        let code = FlowCoding { tail: None, ..code };
        let coding = Some(TestCoding { code, eager, timer: base.jitter + Span::from_us(1), subflows: 0, history: 0 });
        let flow = FlowParams {
            packets, last: 1_000, ack_every: 1, window: WIDE, paced: false, kind: LawKind::Fixed,
            recovery: Recovery::Selective, loss_timer: LossTimer::Flow, coding, paths,
        };
        let stats = transfer(flow, base)?.stats;
        let blocks = u64::from(packets.div_ceil(code.data.into()));
        prop_assert_eq!((stats.retransmits, stats.nacks, stats.timeouts), (0, 0, 0));
        prop_assert_eq!(stats.parity, blocks * u64::from(code.parity));
        prop_assert_eq!(stats.packets_sent, u64::from(packets) + stats.parity);
        // Of full blocks exactly m/k.
        if packets % u32::from(code.data) == 0 {
            prop_assert_eq!(stats.parity * u64::from(code.data), u64::from(packets) * u64::from(code.parity));
        }
    }

    /// Only the packets over the parity are sent again, once, where every block loses more than its parity.
    #[test]
    fn only_the_excess_over_parity_is_retransmitted(
        blocks in 1..40u32, base in channel(Just(0u64)), over in 1..4u64, eager in any::<bool>(), seed in any::<u64>(),
    ) {
        let code = FlowCoding { data: 8, parity: 2, tail: None };
        let channel = Channel { jitter: Span::ZERO, duplication: 0, seed, block_loss: 2 + over, ..base };
        let flow = FlowParams {
            packets: 8 * blocks, last: 1_000, ack_every: 1, window: WIDE, paced: false, kind: LawKind::Fixed,
            recovery: Recovery::Selective, coding: Some(TestCoding { code, eager, timer: Span::from_us(1), subflows: 0, history: 0 }),
            loss_timer: LossTimer::Flow, paths: LoadBalancing::PerFlow,
        };
        let tally = transfer(flow, channel)?;
        prop_assert_eq!(tally.stats.retransmits, tally.lost_data - 2 * u64::from(blocks));
    }
}

/// Full packets round-robin over ten subflows, paced.
fn spread(packets: u32, window: u64, coding: Option<TestCoding>) -> FlowParams {
    FlowParams {
        packets,
        last: 1_000,
        ack_every: 1,
        window,
        paced: true,
        kind: LawKind::Fixed,
        recovery: Recovery::Selective,
        loss_timer: LossTimer::Flow,
        coding,
        paths: LoadBalancing::UnoLb(UnoLb { subflows: 10, recent: None, random: false, own_laws: false }),
    }
}

/// Gaps reveal every lost block that others follow, long before a timer or a timeout.
#[test]
fn gaps_request_blocks_within_a_round_trip() {
    let rtt = Span::from_ms(2);
    let channel = Channel {
        base_rtt: rtt,
        jitter: Span::ZERO,
        loss: 0,
        acks_only: false,
        block_loss: 4,
        duplication: 0,
        marks: 0,
        seed: 4,
    };
    let ends = |subflows| {
        let code = FlowCoding { data: 8, parity: 2, tail: None };
        let coding = Some(TestCoding { code, eager: false, timer: NEVER, subflows, history: 0 });
        let flow = spread(80, 50_000, coding);
        transfer(flow, channel).expect("the flow ends")
    };
    let (requested, without_requests) = (ends(10), ends(0));
    // Three or four of each block are lost. The last block is not requested: nothing follows it.
    assert!((9..=18).contains(&requested.stats.nacks), "{requested:?}");
    assert_eq!(without_requests.stats.nacks, 0);
    assert_eq!(requested.stats.retransmits, requested.lost_data - 2 * 10);
    assert!(requested.ended < without_requests.ended, "{requested:?} {without_requests:?}");
}

/// A flow that takes longer to send a block than the receiver's timer receives requests for packets that are still in flight:
/// no loss is reported to its law, and nothing is sent again.
#[test]
fn early_block_requests_cause_no_losses() {
    let channel = Channel {
        base_rtt: Span::from_ms(2),
        jitter: Span::from_us(100),
        loss: 0,
        acks_only: false,
        block_loss: 0,
        duplication: 0,
        marks: 0,
        seed: 5,
    };
    let code = FlowCoding { data: 8, parity: 2, tail: None };
    let coding = Some(TestCoding { code, eager: false, timer: Span::from_us(50), subflows: 0, history: 0 });
    let tally = transfer(spread(800, 3_000, coding), channel).expect("the flow ends");
    assert!(tally.stats.nacks > 200, "{tally:?}");
    assert_eq!((tally.reported_losses, tally.stats.retransmits), (0, 0), "{tally:?}");
}

/// With a history no loss is reported to the law if only acknowledgements are lost; without one, each is reported.
#[test]
fn ack_history_covers_lost_acks() {
    let channel = Channel {
        base_rtt: Span::from_ms(2),
        jitter: Span::ZERO,
        loss: 100,
        acks_only: true,
        block_loss: 0,
        duplication: 0,
        marks: 0,
        seed: 9,
    };
    let reported_losses = |history| {
        let code = FlowCoding { data: 8, parity: 2, tail: None };
        let coding = Some(TestCoding { code, eager: false, timer: NEVER, subflows: 0, history });
        let flow = spread(4_000, 500_000, coding);
        let tally = transfer(flow, channel).expect("the flow ends");
        assert!(tally.lost_data == 0 && tally.lost_acks > 400, "{tally:?}");
        tally.reported_losses / 1_000
    };
    let (without, with) = (reported_losses(0), reported_losses(10));
    assert!(without > 350 && with == 0, "{without} and {with} packets");
}
