//! Every byte is delivered once, with any fate of packets in the network; no flow hangs, no queue outgrows its buffer.

use crate::common;
use crate::common::random::case;
use fabric::NodeKind;
use flow::LoadBalancing;
use proptest::prelude::*;
use units::Bytes;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_flow_ends_with_every_byte_delivered_once(case in case()) {
        let setup = &case.setup;
        let mut hops = 0;
        let outcome = engine::run(setup, 1, common::law(case.kind, &[]), &mut |now| {
            hops = now.packet_hops;
            true
        });
        // Progress counts packets that left a link: not more than entered links.
        prop_assert!(hops <= outcome.engine.packet_hops, "{} of {}", hops, outcome.engine.packet_hops);
        prop_assert_eq!(experiment::broken_identities(setup, &outcome), Vec::<String>::new());
        let mut sent = 0;
        for (flow, (spec, end)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            prop_assert!(end.completed.is_set(), "flow {} hangs under {:?}", flow, case.kind);
            prop_assert_eq!(end.delivered, spec.size);
            // The rest of the last blocks' parity need not be sent when a flow ends.
            let (packets, spare) = (u64::from(setup.packets(spec)), setup.blocks(spec).map_or(0, |blocks| blocks.parity()));
            let first_sent = end.stats.packets_sent - end.stats.retransmits;
            prop_assert!((packets - u64::from(spare)..=packets).contains(&first_sent), "{} of {}", first_sent, packets);
            prop_assert!(spec.coded || (end.stats.parity, end.stats.recovered) == (0, 0));
            // No flow beats an empty network.
            prop_assert!(end.completed.since(end.started) >= setup.ideal(spec), "flow {} under {:?}", flow, case.kind);
            sent += end.stats.packets_sent;
        }
        let engine = &outcome.engine;
        prop_assert_eq!(engine.data_packets, sent);
        // All sent packets arrived, were lost, or are on their way.
        let lost: u64 = outcome.links.iter().map(|link| link.lost.data + link.trims).sum();
        prop_assert_eq!(sent, engine.data_received + lost + engine.data_in_flight);
        for ((spec, end), &lost) in setup.flows.iter().zip(&outcome.flows).zip(&outcome.lost_of) {
            prop_assert!(spec.coded || u64::from(lost) <= end.stats.retransmits, "{} lost", lost);
        }
        prop_assert_eq!(lost, outcome.lost_of.iter().map(|&lost| u64::from(lost)).sum::<u64>());
        prop_assert!(outcome.links.iter().all(|link| link.lost.total() == link.drops + link.losses));
        let credits = |of: fn(&flow::credits::CreditStats) -> u64| outcome.flows.iter().map(|it| of(&it.credits)).sum::<u64>();
        let dropped: u64 = outcome.links.iter().map(|link| link.credit_drops + link.lost.credits).sum();
        prop_assert!(credits(|it| it.received) + dropped <= credits(|it| it.sent), "credits under {:?}", case.kind);
        // Every packet that left a switch, or was dropped there, had come to it: nothing is made on the way.
        let mut balance = vec![0i64; setup.network.nodes().len()];
        for (ends, end) in setup.network.links().iter().zip(&outcome.links) {
            balance[ends.to.index()] += (end.packets - end.losses) as i64;
            balance[ends.from.index()] -= (end.packets + end.drops) as i64;
        }
        for (node, rest) in setup.network.nodes().iter().zip(balance) {
            prop_assert!(rest >= 0 || node.kind != NodeKind::Switch, "{} made {} packets", node.name, -rest);
        }
        for (link, (ends, end)) in setup.network.links().iter().zip(&outcome.links).enumerate() {
            let config = setup.network.params()[ends.params as usize].config();
            let name = setup.network.link_name(fabric::LinkId(link as u32));
            prop_assert!(end.max_queue <= config.room(), "{} held {}", name, end.max_queue);
            let longest = config.rate.bytes_in(outcome.ended.since(units::Time::ZERO)) + Bytes::new(1 << 20);
            prop_assert!(end.bytes <= longest, "{} carried more than its rate", name);
        }
        // Without losses there are no retransmissions. (A late packet counts as lost if its path was left with packets on
        // it, or if a receiver has waited for a block for the maximum time.)
        let may_be_late = matches!(setup.host.path, LoadBalancing::Plb(_)) || setup.host.coding.is_some();
        let lost: u64 = outcome.links.iter().map(|link| link.drops + link.losses + link.trims).sum();
        let again: u64 = outcome.flows.iter().map(|flow| flow.stats.retransmits).sum();
        prop_assert!(may_be_late || lost > 0 || again == 0, "{} retransmissions without a loss under {:?}", again, case.kind);
    }
}

/// Links of ten seconds and of a picosecond: windows have a longest length, and no shortest.
#[test]
fn extreme_delays_are_exact_too() {
    use fabric::topology::{Dumbbell, dumbbell};
    use fabric::{PortConfig, Routes};
    use units::{Rate, Span, Time};
    for (edge, middle) in [(Span::from_s(10), Span::from_s(20)), (Span::from_ps(1), Span::from_ns(3))] {
        let port = PortConfig::new(Rate::from_gbps(100), edge);
        let sides = vec![(port, port); 2];
        let bottleneck = PortConfig::new(Rate::from_gbps(100), middle);
        for two_datacenters in [false, true] {
            let plan = Dumbbell { left: sides.clone(), right: sides.clone(), bottleneck, two_datacenters };
            let network = dumbbell(&plan).unwrap();
            assert!(Routes::new(&network).is_ok());
            let flows = vec![common::flow(0, 2, 5_000), common::flow(3, 1, 9_000)];
            let setup = common::setup(network, flows, Time::from_ms(1_000_000));
            let outcome = common::run(&setup, laws::catalog::LawKind::Fixed, &[]);
            for (spec, end) in setup.flows.iter().zip(&outcome.flows) {
                assert_eq!(end.completed.since(end.started), setup.ideal(spec));
            }
        }
    }
}
