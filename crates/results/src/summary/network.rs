//! Totals of links.

use fabric::{LinkClass, LinkId};
use sim::{Outcome, Setup};

use super::{LINKS_LISTED, LinkTotals, NetworkTotals};
use crate::ordered::Ordered;

/// Totals of all links, and the links worth a line.
pub(crate) fn totals(setup: &Setup, outcome: &Outcome) -> NetworkTotals {
    let of_class = |class: LinkClass| {
        let links = setup.network.links().iter().zip(&outcome.links);
        links.filter(|(link, _)| link.class == class).map(|(_, it)| it.drops).sum::<u64>()
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
        ecn_marks: outcome.links.iter().map(|link| link.marks).sum(),
        retransmits: outcome.flows.iter().map(|flow| flow.stats.retransmits).sum(),
        timeouts: outcome.flows.iter().map(|flow| u64::from(flow.stats.timeouts)).sum(),
        pfc_pauses: 0,
        pfc_pause_ns: 0,
        max_queue_bytes: outcome.links.iter().map(|link| link.max_queue.get()).max().unwrap_or(0),
        links: links(setup, outcome),
    }
}

/// Up to half of [`LINKS_LISTED`] links that lost most, then the busiest that are not among them; the busiest first.
fn links(setup: &Setup, outcome: &Outcome) -> Vec<LinkTotals> {
    // The busier of two links has the larger share of bytes in what it could have carried: a cross product, exact.
    let rate = |link: u32| u128::from(setup.network.port(LinkId(link)).config().rate.bps());
    let bytes = |link: u32| u128::from(outcome.links[link as usize].bytes.get());
    let busier = |&a: &u32, &b: &u32| (bytes(b) * rate(a)).cmp(&(bytes(a) * rate(b))).then(a.cmp(&b));
    let lost = |link: u32| outcome.links[link as usize].drops + outcome.links[link as usize].losses;

    let used = |&link: &u32| outcome.links[link as usize].packets > 0 || lost(link) > 0;
    let mut busiest: Vec<u32> = (0..outcome.links.len() as u32).filter(used).collect();
    busiest.sort_unstable_by(busier);
    let mut lossy: Vec<u32> = busiest.iter().copied().filter(|&link| lost(link) > 0).collect();
    lossy.sort_by_key(|&link| std::cmp::Reverse(lost(link)));
    lossy.truncate(LINKS_LISTED / 2);
    let mut listed = lossy.clone();
    listed.extend(busiest.into_iter().filter(|link| !lossy.contains(link)).take(LINKS_LISTED - lossy.len()));
    listed.sort_unstable_by(busier);
    listed.into_iter().map(|link| line(setup, outcome, LinkId(link))).collect()
}

fn line(setup: &Setup, outcome: &Outcome, link: LinkId) -> LinkTotals {
    let it = &outcome.links[link.index()];
    let rate = setup.network.port(link).config().rate;
    let capacity = rate.bytes_in(outcome.ended.since(units::Time::ZERO)).get();
    LinkTotals {
        name: setup.network.link_name(link),
        class: setup.network.links()[link.index()].class.name().to_owned(),
        // What was still on its way to the wire at the end was already counted.
        utilisation: if capacity == 0 { 0.0 } else { (it.bytes.get() as f64 / capacity as f64).min(1.0) },
        packets: it.packets,
        bytes: it.bytes.get(),
        drops: it.drops,
        losses: it.losses,
        marks: it.marks,
        max_queue_bytes: it.max_queue.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    #[test]
    fn tiers_add_up_and_the_lossiest_links_are_listed() {
        let (setup, mut outcome) = testbed::fat_tree();
        assert!(outcome.links.len() > 2 * LINKS_LISTED);
        for (link, it) in outcome.links.iter_mut().enumerate() {
            it.packets = 1;
            it.bytes = units::Bytes::new(1_000 + link as u64);
            it.drops = 0;
            it.losses = 0;
        }
        // The least busy link is the only one that drops.
        outcome.links[0].drops = 3;
        outcome.links[1].losses = 2;
        let totals = totals(&setup, &outcome);
        assert_eq!(totals.drops, 5);
        assert_eq!(totals.drops_by_tier.get("random"), Some(&2));
        assert_eq!(totals.drops_by_tier.0.iter().map(|tier| tier.1).sum::<u64>(), 5);
        assert_eq!(totals.links.len(), LINKS_LISTED);
        let names: Vec<&str> = totals.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names.last(), Some(&setup.network.link_name(LinkId(0)).as_str()));
        assert_eq!(names[62], setup.network.link_name(LinkId(1)));
        assert!(totals.links.is_sorted_by(|a, b| a.utilisation >= b.utilisation));
    }
}
