//! Every byte is delivered once, whatever the network does to packets; nothing hangs, no queue outgrows its buffer.

mod common;

use common::random::case;
use proptest::prelude::*;
use sim::Spray;
use units::Bytes;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_flow_ends_with_every_byte_delivered_once(case in case()) {
        let setup = &case.setup;
        let outcome = common::run(setup, case.kind, &[]);
        let mut sent = 0;
        for (flow, (spec, end)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            prop_assert!(end.completed.is_set(), "flow {} hangs under {:?}", flow, case.kind);
            prop_assert_eq!(end.delivered, spec.size);
            let packets = spec.size.get().div_ceil(setup.host.mss.into());
            prop_assert_eq!(end.stats.packets_sent, packets + end.stats.retransmits);
            // No flow beats an empty network, whose equal paths are equally long here. (Sprayed, a short last packet
            // need not wait behind the one before it; with fewer acknowledgements, nor its acknowledgement.)
            if setup.host.spray == Spray::PerFlow && setup.host.ack_every == 1 {
                prop_assert!(end.completed.since(end.started) >= setup.ideal(spec));
            }
            sent += end.stats.packets_sent;
        }
        prop_assert_eq!(outcome.engine.data_packets, sent);
        // Every packet that came to a switch left it, was dropped, or was still there at the end.
        for (link, (it, end)) in setup.network.links().iter().zip(&outcome.links).enumerate() {
            let config = setup.network.params()[it.params as usize].config();
            let name = setup.network.link_name(fabric::LinkId(link as u32));
            prop_assert!(end.max_queue <= config.buffer, "{} held {}", name, end.max_queue);
            let longest = config.rate.bytes_in(outcome.ended.since(units::Time::ZERO)) + Bytes::new(1 << 20);
            prop_assert!(end.bytes <= longest, "{} carried more than its rate", name);
        }
        // Where nothing was lost on the way, nothing was sent again.
        let lost: u64 = outcome.links.iter().map(|link| link.drops + link.losses).sum();
        let again: u64 = outcome.flows.iter().map(|flow| flow.stats.retransmits).sum();
        prop_assert!(lost > 0 || again == 0, "{} retransmissions without a loss under {:?}", again, case.kind);
    }
}
