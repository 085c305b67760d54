//! Flows without coding.

use flow::{LoadBalancing, LossTimer, Recovery, UnoLb};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::Span;

use super::world::{Channel, FlowParams, any_kind, channel, flow, transfer};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Every flow ends over any channel (it loses up to two packets in five), under every law: all is delivered, nothing is
    /// in flight afterwards, nothing acknowledged is sent again, and the window is obeyed.
    #[test]
    fn every_flow_ends_over_any_channel(flow in flow(any_kind()), channel in channel(0..400u64)) {
        let tally = transfer(flow, channel)?;
        // A window that shrinks can leave the receiver waiting for a packet that may not be sent, unless it
        // acknowledges every one.
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(flow.ack_every > 1 || u64::from(tally.stats.timeouts) <= lost, "{tally:?}");
    }

    /// The same where each subflow has a law.
    #[test]
    fn every_flow_ends_with_a_law_per_subflow(
        flow in flow(any_kind()), channel in channel(0..400u64), laws in 2..=64u8, random in any::<bool>(),
    ) {
        let paths = LoadBalancing::UnoLb(UnoLb { subflows: laws, recent: None, random, own_laws: true });
        let tally = transfer(FlowParams { ack_every: 1, paths, ..flow }, channel)?;
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(u64::from(tally.stats.timeouts) <= lost, "{tally:?}");
    }

    /// The same where each packet has a timer. A timer expires only for packets that were lost, or that lost their
    /// acknowledgement.
    #[test]
    fn every_flow_ends_with_a_timer_per_packet(flow in flow(any_kind()), channel in channel(0..400u64)) {
        let tally = transfer(FlowParams { loss_timer: LossTimer::Packet, ..flow }, channel)?;
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(flow.ack_every > 1 || tally.stats.retransmits <= lost, "{tally:?}");
    }

    /// Under a constant window each timeout is caused by at least one loss: no storms. A packet that is sent again was lost,
    /// or its acknowledgement was lost or is still held back by the receiver (because a lost packet would have requested it).
    #[test]
    fn timeouts_and_retransmissions_need_losses(flow in flow(Just(LawKind::Fixed)), channel in channel(0..200u64)) {
        let tally = transfer(flow, channel)?;
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(u64::from(tally.stats.timeouts) <= lost, "{tally:?}");
        prop_assert!(tally.stats.retransmits <= lost * u64::from(flow.ack_every), "{tally:?}");
        prop_assert!(tally.stats.retransmits > 0 || tally.lost_data == 0, "{tally:?}");
    }

    /// Without a loss nothing is sent again and no timer expires, even with late packets and duplicates.
    #[test]
    fn reordering_and_duplicates_alone_cost_nothing(flow in flow(Just(LawKind::Fixed)), channel in channel(Just(0u64))) {
        let tally = transfer(flow, channel)?;
        prop_assert_eq!((tally.stats.retransmits, tally.stats.timeouts, tally.stats.spurious), (0, 0, 0));
    }

    /// Go-back-N over a channel that loses and duplicates but keeps the order, under every law: the flow ends, and each
    /// byte is acknowledged once, when the cumulative number passes it.
    #[test]
    fn every_flow_ends_under_go_back_n(flow in flow(any_kind()), channel in channel(0..400u64), nack_us in 0..5_000i64) {
        let recovery = Recovery::GoBackN { nack_interval: Span::from_us(nack_us), acks: true };
        transfer(FlowParams { recovery, ..flow }, Channel { jitter: Span::ZERO, ..channel })?;
    }

    /// The same where nothing is acknowledged before the end, under a law that needs no acknowledgement. A timer expires only
    /// after a loss: of the last packet, a request, or the completion report.
    #[test]
    fn every_flow_ends_without_acknowledgements(
        flow in flow(Just(LawKind::ExpressPass)), channel in channel(0..400u64),
    ) {
        let recovery = Recovery::GoBackN { nack_interval: channel.base_rtt, acks: false };
        let tally = transfer(FlowParams { recovery, ..flow }, Channel { jitter: Span::ZERO, ..channel })?;
        prop_assert!(u64::from(tally.stats.timeouts) <= tally.lost_data + tally.lost_acks, "{tally:?}");
        prop_assert!(tally.stats.retransmits > 0 || tally.lost_data == 0, "{tally:?}");
    }

    /// Without a loss nothing is requested again and no timer expires.
    #[test]
    fn nothing_is_requested_without_loss(flow in flow(Just(LawKind::Fixed)), channel in channel(Just(0u64))) {
        let recovery = Recovery::GoBackN { nack_interval: Span::ZERO, acks: true };
        let tally = transfer(FlowParams { recovery, ..flow }, Channel { jitter: Span::ZERO, ..channel })?;
        prop_assert_eq!((tally.stats.retransmits, tally.stats.timeouts, tally.stats.nacks), (0, 0, 0));
    }
}
