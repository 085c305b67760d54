//! Every byte is delivered once, whatever the network does to packets; nothing hangs, no queue outgrows its buffer.

mod common;

use common::random::case;
use fabric::NodeKind;
use flow::PathChoice;
use proptest::prelude::*;
use units::Bytes;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_flow_ends_with_every_byte_delivered_once(case in case()) {
        let setup = &case.setup;
        let mut hops = 0;
        let outcome = sim::run(setup, 1, common::law(case.kind, &[]), &mut |now| {
            hops = now.packet_hops;
            true
        });
        // What progress counts is what came off a link: not more than went onto links.
        prop_assert!(hops <= outcome.engine.packet_hops, "{} of {}", hops, outcome.engine.packet_hops);
        let mut sent = 0;
        for (flow, (spec, end)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            prop_assert!(end.completed.is_set(), "flow {} hangs under {:?}", flow, case.kind);
            prop_assert_eq!(end.delivered, spec.size);
            // What is left of the last blocks' parity when a flow ends need not leave.
            let (packets, spare) = (u64::from(setup.packets(spec)), setup.blocks(spec).map_or(0, |blocks| blocks.parity()));
            let first_sent = end.stats.packets_sent - end.stats.retransmits;
            prop_assert!((packets - u64::from(spare)..=packets).contains(&first_sent), "{} of {}", first_sent, packets);
            prop_assert!(spec.coded || (end.stats.parity, end.stats.recovered) == (0, 0));
            // No flow beats an empty network, whose equal paths are equally long here. (Sprayed, a short last packet
            // need not wait behind the one before it; with fewer acknowledgements, nor its acknowledgement.)
            if setup.host.path == PathChoice::PerFlow && setup.host.ack_every == 1 {
                prop_assert!(end.completed.since(end.started) >= setup.ideal(spec));
            }
            sent += end.stats.packets_sent;
        }
        prop_assert_eq!(outcome.engine.data_packets, sent);
        // Every packet that left a switch, or was dropped there, had come to it: nothing is made on the way.
        let mut balance = vec![0i64; setup.network.nodes().len()];
        for (it, end) in setup.network.links().iter().zip(&outcome.links) {
            balance[it.to.index()] += (end.packets - end.losses) as i64;
            balance[it.from.index()] -= (end.packets + end.drops) as i64;
        }
        for (node, rest) in setup.network.nodes().iter().zip(balance) {
            prop_assert!(rest >= 0 || node.kind != NodeKind::Switch, "{} made {} packets", node.name, -rest);
        }
        for (link, (it, end)) in setup.network.links().iter().zip(&outcome.links).enumerate() {
            let config = setup.network.params()[it.params as usize].config();
            let name = setup.network.link_name(fabric::LinkId(link as u32));
            prop_assert!(end.max_queue <= config.buffer, "{} held {}", name, end.max_queue);
            let longest = config.rate.bytes_in(outcome.ended.since(units::Time::ZERO)) + Bytes::new(1 << 20);
            prop_assert!(end.bytes <= longest, "{} carried more than its rate", name);
        }
        // Where nothing was lost on the way, nothing was sent again. (What comes too late counts as lost where a path is
        // left with packets on it, and where a receiver has waited for a block as long as it may.)
        let may_be_late = matches!(setup.host.path, PathChoice::Plb(_)) || setup.host.coding.is_some();
        let lost: u64 = outcome.links.iter().map(|link| link.drops + link.losses).sum();
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
            let it = Dumbbell { left: sides.clone(), right: sides.clone(), bottleneck, two_datacenters };
            let network = dumbbell(&it).unwrap();
            assert!(Routes::new(&network).is_ok());
            let flows = vec![common::flow(0, 2, 5_000), common::flow(3, 1, 9_000)];
            let setup = common::setup(network, flows, Time::from_ms(1_000_000));
            let outcome = common::run(&setup, laws::catalog::Kind::Fixed, &[]);
            for (spec, end) in setup.flows.iter().zip(&outcome.flows) {
                assert_eq!(end.completed.since(end.started), setup.ideal(spec));
            }
        }
    }
}
