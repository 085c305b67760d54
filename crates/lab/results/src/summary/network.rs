//! Totals of links.

use std::cmp::Reverse;

use experiment::{ByKind, LinkOutcome, Outcome, Setup, SwitchOutcome};
use fabric::{ImpairmentCounters, LinkClass, LinkId, Outages};
use units::Span;

use super::{
    FAILURES_LISTED, ImpairedPackets, LINKS_LISTED, LinkFailure, LinkTotals, NetworkTotals, SWITCHES_LISTED,
    SwitchTotals,
};
use crate::ordered::Ordered;

/// Totals of all links, and the links worth a line.
pub(crate) fn totals(setup: &Setup, outcome: &Outcome) -> NetworkTotals {
    let of = |class: LinkClass| {
        let links = setup.network.links().iter().zip(&outcome.links);
        links.filter(move |(link, _)| link.class == class).map(|(_, it)| it)
    };
    let of_class = |class: LinkClass| of(class).map(|it| it.drops).sum::<u64>();
    let by_class = |value: &dyn Fn(LinkClass) -> u64| {
        Ordered(LinkClass::ALL.map(|class| (class.name().to_owned(), value(class))).to_vec())
    };
    let losses = outcome.links.iter().map(|link| link.losses).sum::<u64>();
    let tiers = LinkClass::ALL.map(|class| (class.name(), of_class(class)));
    let tiers: Vec<(String, u64)> =
        tiers.into_iter().chain([("random", losses)]).map(|(name, drops)| (name.to_owned(), drops)).collect();
    NetworkTotals {
        data_packets: outcome.engine.data_packets,
        packet_hops: outcome.engine.packet_hops,
        drops: tiers.iter().map(|&(_, drops)| drops).sum(),
        drops_by_tier: Ordered(tiers),
        drops_by_kind: by_kind(outcome),
        data_drops_by_tier: by_class(&|class| of(class).map(|link| link.lost.data).sum()),
        trims: outcome.links.iter().map(|link| link.trims).sum(),
        impaired: impaired(setup, outcome),
        ecn_marks: outcome.links.iter().map(|link| link.marks).sum(),
        or_acks: outcome.engine.or_acks,
        or_ack_bytes: outcome.engine.or_acks * setup.host.on_ramp.map_or(0, |on_ramp| u64::from(on_ramp.ack_size)),
        retransmits: outcome.flows.iter().map(|flow| flow.stats.retransmits).sum(),
        timeouts: outcome.flows.iter().map(|flow| u64::from(flow.stats.timeouts)).sum(),
        pfc_pauses: outcome.links.iter().map(|link| link.pauses).sum(),
        pfc_pause_ns: paused_ns(outcome.links.iter()),
        pfc_pauses_by_tier: by_class(&|class| of(class).map(|link| link.pauses).sum()),
        pfc_pause_ns_by_tier: by_class(&|class| paused_ns(of(class))),
        host_pause_ns: paused_ns(of(LinkClass::Nic)) as f64 / setup.network.hosts().len().max(1) as f64,
        nacks: outcome.flows.iter().map(|flow| u64::from(flow.stats.nacks)).sum(),
        cnps: outcome.flows.iter().map(|flow| flow.stats.cnps).sum(),
        parity_packets: outcome.flows.iter().map(|flow| flow.stats.parity).sum(),
        recovered_blocks: outcome.flows.iter().map(|flow| flow.stats.recovered).sum(),
        on_ramp_hold_ns: ns(outcome.flows.iter().map(|flow| flow.stats.held)),
        max_queue_bytes: outcome.links.iter().map(|link| link.max_queue.get()).max().unwrap_or(0),
        max_buffer_bytes: outcome.switches.iter().map(|switch| switch.max_buffer.get()).max().unwrap_or(0),
        headroom_drops: outcome.switches.iter().map(|switch| switch.headroom_drops).sum(),
        messages: outcome.switches.iter().map(|switch| switch.messages).sum(),
        deadlock: outcome.deadlock.iter().map(|&link| setup.network.link_name(link)).collect(),
        failures: failures(setup, outcome),
        links: links(setup, outcome),
        switches: switches(setup, outcome),
    }
}

/// Packets that impairments affected; none if no link is impaired.
fn impaired(setup: &Setup, outcome: &Outcome) -> Option<Box<ImpairedPackets>> {
    let mut counters = ImpairmentCounters::default();
    outcome.links.iter().for_each(|link| counters.add(&link.impaired));
    let mut links = (0..outcome.links.len() as u32).map(LinkId);
    links.any(|link| setup.network.impairments(link).is_some()).then(|| Box::new(counters.into()))
}

/// Links that failed before the run ended, those with the same times together.
fn failures(setup: &Setup, outcome: &Outcome) -> Vec<LinkFailure> {
    let mut groups: Vec<(&Outages, Vec<LinkId>)> = Vec::new();
    for (link, outages) in setup.network.failing() {
        match groups.iter_mut().find(|(known, _)| *known == outages) {
            Some((_, links)) => links.push(link),
            None => groups.push((outages, vec![link])),
        }
    }
    let ended = outcome.ended;
    let one = |(outages, links): (&Outages, Vec<LinkId>)| {
        let down = outages.spans().take_while(|&(from, _)| from < ended).take(FAILURES_LISTED);
        LinkFailure {
            links: links.iter().take(LINKS_LISTED).map(|&link| setup.network.link_name(link)).collect(),
            count: links.len() as u64,
            down_ns: down.map(|(from, until)| (from.ns(), (until < ended).then(|| until.ns()))).collect(),
        }
    };
    let mut failures: Vec<LinkFailure> = groups.into_iter().map(one).filter(|it| !it.down_ns.is_empty()).collect();
    failures.sort_by_key(|it| it.down_ns[0].0);
    failures
}

/// Returns the lost packets, by kind.
fn by_kind(outcome: &Outcome) -> Ordered<u64> {
    let mut lost = ByKind::default();
    outcome.links.iter().for_each(|link| lost.add(&link.lost));
    let kinds = [("data", lost.data), ("acks", lost.acks), ("credits", lost.credits), ("other", lost.signals)];
    Ordered(kinds.map(|(name, count)| (name.to_owned(), count)).to_vec())
}

/// Times added as picoseconds and only then cut to nanoseconds.
fn ns(times: impl Iterator<Item = Span>) -> u64 {
    let ps: u128 = times.map(|time| u128::from(time.unsigned_ps())).sum();
    u64::try_from(ps / 1_000).unwrap_or(u64::MAX)
}

fn paused_ns<'a>(links: impl Iterator<Item = &'a LinkOutcome>) -> u64 {
    ns(links.map(|link| link.paused))
}

/// Up to [`SWITCHES_LISTED`] switches: first those with unexpected drops, then the fullest.
fn switches(setup: &Setup, outcome: &Outcome) -> Vec<SwitchTotals> {
    let mut order: Vec<&SwitchOutcome> = outcome.switches.iter().collect();
    order.sort_by_key(|it| (Reverse(it.headroom_drops), Reverse(it.max_buffer), it.node));
    let one = |switch: &SwitchOutcome| SwitchTotals {
        name: setup.network.nodes()[switch.node.index()].name.clone(),
        max_buffer_bytes: switch.max_buffer.get(),
        headroom_drops: switch.headroom_drops,
        messages: switch.messages,
    };
    order.into_iter().take(SWITCHES_LISTED).map(one).collect()
}

/// Returns [`LINKS_LISTED`] links at most: up to a quarter are those that lost most, up to a quarter those that were
/// paused longest, then the busiest that are not among them; the busiest first.
fn links(setup: &Setup, outcome: &Outcome) -> Vec<LinkTotals> {
    // The busier of two links has the larger ratio of bytes to capacity: an exact cross product.
    let rate = |link: u32| u128::from(setup.network.port(LinkId(link)).config().rate.bps());
    let bytes = |link: u32| u128::from(outcome.links[link as usize].bytes.get());
    let busier = |&a: &u32, &b: &u32| (bytes(b) * rate(a)).cmp(&(bytes(a) * rate(b))).then(a.cmp(&b));
    let lost = |link: u32| outcome.links[link as usize].drops + outcome.links[link as usize].losses;

    let used = |&link: &u32| outcome.links[link as usize].packets > 0 || lost(link) > 0;
    let mut busiest: Vec<u32> = (0..outcome.links.len() as u32).filter(used).collect();
    busiest.sort_unstable_by(busier);
    let paused = |link: u32| outcome.links[link as usize].paused.unsigned_ps();
    let mut listed = Vec::new();
    for by in [&lost as &dyn Fn(u32) -> u64, &paused] {
        let mut ranked: Vec<u32> = busiest.iter().copied().filter(|&link| by(link) > 0).collect();
        ranked.sort_by_key(|&link| Reverse(by(link)));
        ranked.truncate(LINKS_LISTED / 4);
        listed.extend(ranked.into_iter().filter(|link| !listed.contains(link)).collect::<Vec<_>>());
    }
    let rest = busiest.into_iter().filter(|link| !listed.contains(link)).take(LINKS_LISTED - listed.len());
    listed.extend(rest.collect::<Vec<_>>());
    listed.sort_unstable_by(busier);
    listed.into_iter().map(|link| line(setup, outcome, LinkId(link))).collect()
}

fn line(setup: &Setup, outcome: &Outcome, link: LinkId) -> LinkTotals {
    let link_outcome = &outcome.links[link.index()];
    let rate = setup.network.port(link).config().rate;
    let capacity = rate.bytes_in(outcome.ended.since(units::Time::ZERO)).get();
    LinkTotals {
        name: setup.network.link_name(link),
        class: setup.network.links()[link.index()].class.name().to_owned(),
        // Packets still queued for the wire at the end were already counted.
        utilisation: if capacity == 0 { 0.0 } else { (link_outcome.bytes.get() as f64 / capacity as f64).min(1.0) },
        packets: link_outcome.packets,
        bytes: link_outcome.bytes.get(),
        drops: link_outcome.drops,
        trims: link_outcome.trims,
        losses: link_outcome.losses,
        impaired: setup.network.impairments(link).map(|_| link_outcome.impaired.into()),
        lost_data: link_outcome.lost.data,
        lost_acks: link_outcome.lost.acks,
        lost_credits: link_outcome.lost.credits,
        marks: link_outcome.marks,
        max_queue_bytes: link_outcome.max_queue.get(),
        pauses: link_outcome.pauses,
        pause_ns: link_outcome.paused.unsigned_ps() / 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use fabric::NodeId;
    use units::{Bytes, Time};

    #[test]
    fn pauses_and_buffers_are_added_up() {
        let (setup, mut outcome) = testbed::fat_tree();
        let of_class = |class| setup.network.links().iter().position(|link| link.class == class).unwrap();
        let (nic, core) = (of_class(LinkClass::Nic), of_class(LinkClass::Core));
        (outcome.links[nic].pauses, outcome.links[nic].paused) = (2, Span::from_ps(3_700));
        (outcome.links[core].pauses, outcome.links[core].paused) = (5, Span::from_ps(2_800));
        let node = |index, held, headroom_drops| SwitchOutcome {
            node: NodeId(index),
            max_buffer: Bytes::new(held),
            headroom_drops,
            messages: 7,
            notifications: 0,
        };
        outcome.switches = vec![node(0, 100, 0), node(1, 300, 0), node(2, 1, 4)];
        outcome.deadlock = vec![LinkId(core as u32)];
        (outcome.flows[0].stats.nacks, outcome.flows[0].stats.cnps) = (3, 9);
        outcome.flows[0].stats.held = Span::from_us(2);
        (outcome.flows[0].stats.parity, outcome.flows[0].stats.recovered) = (42, 5);
        let totals = totals(&setup, &outcome);
        // 3.7 ns and 2.8 ns are 6.5 ns.
        assert_eq!((totals.pfc_pauses, totals.pfc_pause_ns), (7, 6));
        assert_eq!(totals.pfc_pauses_by_tier.get("core"), Some(&5));
        assert_eq!(totals.pfc_pause_ns_by_tier.get("nic"), Some(&3));
        assert!((totals.host_pause_ns * setup.network.hosts().len() as f64 - 3.0).abs() < 1e-9);
        assert_eq!((totals.nacks, totals.cnps, totals.on_ramp_hold_ns), (3, 9, 2_000));
        assert_eq!((totals.parity_packets, totals.recovered_blocks), (42, 5));
        assert_eq!((totals.max_buffer_bytes, totals.headroom_drops, totals.messages), (300, 4, 21));
        assert_eq!(totals.deadlock, [setup.network.link_name(LinkId(core as u32))]);
        let order: Vec<u64> = totals.switches.iter().map(|it| it.max_buffer_bytes).collect();
        assert_eq!(order, [1, 300, 100]);
    }

    #[test]
    fn links_that_failed_together_are_one_failure() {
        let (mut setup, outcome) = testbed::fat_tree();
        assert_eq!(totals(&setup, &outcome).failures, []);
        let down = |from, until| (Time::from_ns(from), Time::from_ns(until));
        let open_outage = (outcome.ended.saturating_add(Span::from_ns(1)), Time::NEVER);
        for (link, spans) in [
            (4, vec![down(5, 7), (Time::from_ns(9), Time::NEVER)]),
            (2, vec![down(5, 7), (Time::from_ns(9), Time::NEVER)]),
            (3, vec![down(1, 2)]),
            (1, vec![open_outage]),
        ] {
            setup.network = setup.network.with_outages(LinkId(link), Outages::new(spans));
        }
        let failures = totals(&setup, &outcome).failures;
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert_eq!((failures[0].count, &failures[0].down_ns), (1, &vec![(1, Some(2))]));
        assert_eq!(failures[1].links, [2, 4].map(|link| setup.network.link_name(LinkId(link))));
        assert_eq!(failures[1].down_ns, [(5, Some(7)), (9, None)]);
    }

    #[test]
    fn tiers_add_up_and_the_lossiest_links_are_listed() {
        let (setup, mut outcome) = testbed::fat_tree();
        assert!(outcome.links.len() > 2 * LINKS_LISTED);
        for (link, link_outcome) in outcome.links.iter_mut().enumerate() {
            link_outcome.packets = 1;
            link_outcome.bytes = units::Bytes::new(1_000 + link as u64);
            link_outcome.drops = 0;
            link_outcome.losses = 0;
        }
        // The least busy link is the only one that drops.
        outcome.links[0].drops = 3;
        outcome.links[0].lost = ByKind { data: 2, acks: 1, ..ByKind::default() };
        outcome.links[1].losses = 2;
        outcome.links[1].lost = ByKind { data: 2, ..ByKind::default() };
        // The next one is the only one that is paused.
        outcome.links[2].paused = Span::from_us(1);
        let totals = totals(&setup, &outcome);
        assert_eq!(totals.drops, 5);
        assert_eq!(totals.drops_by_tier.get("random"), Some(&2));
        assert_eq!(totals.drops_by_tier.0.iter().map(|tier| tier.1).sum::<u64>(), 5);
        assert_eq!(totals.data_drops_by_tier.0.iter().map(|tier| tier.1).sum::<u64>(), 4);
        let class = |link: usize| setup.network.links()[link].class;
        let data = totals.data_drops_by_tier.get(class(0).name()).unwrap();
        assert_eq!(*data, if class(0) == class(1) { 4 } else { 2 });
        assert_eq!(totals.links.len(), LINKS_LISTED);
        let names: Vec<&str> = totals.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names.last(), Some(&setup.network.link_name(LinkId(0)).as_str()));
        assert_eq!(names[62], setup.network.link_name(LinkId(1)));
        assert_eq!(names[61], setup.network.link_name(LinkId(2)));
        assert!(totals.links.is_sorted_by(|a, b| a.utilisation >= b.utilisation));
    }
}
