//! The narrowest cut between two switches: the links that bound the total rate of all paths.
//!
//! Ford and Fulkerson's maximum flow over shortest paths (Edmonds and Karp), and the resulting minimum cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use units::Span;

use super::Ways;
use crate::{HostId, LinkId, NodeId};

/// Between which switches, for packets of how many bytes, and to carry how many bits a second.
pub(super) type CutKey = (NodeId, NodeId, u32, u64);

/// A link of the cut as a full packet passes it: how long the link serves it, and the least time of the rest of the way
/// from the first switch to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crossing {
    pub(super) service: Span,
    pub(super) way: Span,
}

/// Returns the minimum time in which `packets` packets get from the first switch to the last through a cut. Each link
/// passes as many packets as fit into the time that the rest of its way leaves.
pub(super) fn time(cut: &[Crossing], packets: u32) -> Span {
    let passed = |ps: i64| -> u64 {
        let left = |link: &Crossing| (Span::from_ps(ps) - link.way).unsigned_ps();
        cut.iter().map(|link| left(link) / link.service.unsigned_ps().max(1)).sum()
    };
    let alone = cut.iter().map(|link| link.way + link.service.times(packets)).min().unwrap_or_default();
    let (mut too_short, mut enough) = (0, alone.ps());
    while too_short + 1 < enough {
        let middle = too_short + (enough - too_short) / 2;
        if passed(middle) < u64::from(packets) {
            too_short = middle;
        } else {
            enough = middle;
        }
    }
    Span::from_ps(enough)
}

/// A link on some way, and how many bits a second of it are left in either direction.
struct CutEdge {
    link: LinkId,
    ends: [NodeId; 2],
    left: [u64; 2],
}

/// Direction in which links are followed from a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PathDirection {
    /// From the switch, as packets travel.
    Forward,
    /// Towards the switch, against packets.
    Backward,
}

impl Ways<'_> {
    /// The narrowest cut between the hosts' switches for packets of `size` bytes, or none if the cut is as wide as the
    /// narrower of the hosts' links.
    pub(super) fn cut(&mut self, from: HostId, to: HostId, size: u32) -> Option<&[Crossing]> {
        let (up, down) = self.ends(from, to);
        let needed = up.config().rate.min(down.config().rate).bps();
        let (begin, end) = (self.switch_of(from), self.switch_of(to));
        let key = (begin, end, size, needed);
        if !self.cuts.contains_key(&key) {
            let cut = if self.is_first_path_wide(from, to, needed) { None } else { self.find(to, key) };
            self.cuts.insert(key, cut);
        }
        self.cuts[&key].as_deref()
    }

    /// Returns whether the first path is wide enough. In most networks it is, and no search is needed.
    fn is_first_path_wide(&self, from: HostId, to: HostId, needed: u64) -> bool {
        let path = self.tables[0].path(self.network, from, to, |_, _| 0);
        path.iter().all(|&link| self.network.port(link).config().rate.bps() >= needed)
    }

    fn find(&self, to: HostId, (begin, end, size, needed): CutKey) -> Option<Vec<Crossing>> {
        let mut edges = self.edges(begin, end, to);
        let mut carried = 0;
        // Each shortest way with something left is filled, until there is none or it is enough.
        let reached = loop {
            let (reached, way) = search(&edges, begin, end);
            if way.is_empty() {
                break reached;
            }
            let more = way.iter().map(|&(edge, side)| edges[edge].left[side]).min().unwrap_or(0);
            for (edge, side) in way {
                edges[edge].left[side] -= more;
                edges[edge].left[1 - side] += more;
            }
            carried += more;
            if carried >= needed {
                return None;
            }
        };
        let before = self.distances(&edges, begin, size, PathDirection::Forward);
        let behind = self.distances(&edges, end, size, PathDirection::Backward);
        let crosses = |edge: &&CutEdge| reached.contains_key(&edge.ends[0]) && !reached.contains_key(&edge.ends[1]);
        let crossing = |edge: &CutEdge| {
            let port = self.network.port(edge.link);
            let way = *before.get(&edge.ends[0])? + port.delay + *behind.get(&edge.ends[1])?;
            Some(Crossing { service: port.service(size), way })
        };
        Some(edges.iter().filter(crosses).filter_map(crossing).collect())
    }

    /// The links on all ways from one switch to another.
    fn edges(&self, begin: NodeId, end: NodeId, to: HostId) -> Vec<CutEdge> {
        let mut edges = Vec::new();
        let mut met = BTreeSet::from([begin, end]);
        let mut open = vec![begin];
        while let Some(at) = open.pop() {
            for link in self.ports(at, to) {
                let next = self.network.links()[link.index()].to;
                edges.push(CutEdge { link, ends: [at, next], left: [self.network.port(link).config().rate.bps(), 0] });
                if met.insert(next) {
                    open.push(next);
                }
            }
        }
        edges
    }

    /// The least time of one packet from a switch to all others, or from all others to it.
    fn distances(
        &self,
        edges: &[CutEdge],
        from: NodeId,
        size: u32,
        direction: PathDirection,
    ) -> BTreeMap<NodeId, Span> {
        let mut known = BTreeMap::from([(from, Span::ZERO)]);
        loop {
            let mut changed = false;
            for edge in edges {
                let [near, far] = match direction {
                    PathDirection::Forward => edge.ends,
                    PathDirection::Backward => [edge.ends[1], edge.ends[0]],
                };
                let port = self.network.port(edge.link);
                let Some(there) = known.get(&near).map(|&way| way + port.service(size) + port.delay) else {
                    continue;
                };
                if known.get(&far).is_none_or(|&way| there < way) {
                    known.insert(far, there);
                    changed = true;
                }
            }
            if !changed {
                return known;
            }
        }
    }
}

/// A link in one direction: its place among the edges, and the end at which it begins.
type CutStep = (usize, usize);

/// The switches that can be reached over links with something left, each with the link that led there; and the way to
/// `end`, empty if `end` cannot be reached.
fn search(edges: &[CutEdge], begin: NodeId, end: NodeId) -> (BTreeMap<NodeId, CutStep>, Vec<CutStep>) {
    let mut leaving: BTreeMap<NodeId, Vec<CutStep>> = BTreeMap::new();
    for (place, edge) in edges.iter().enumerate() {
        for side in 0..2 {
            leaving.entry(edge.ends[side]).or_default().push((place, side));
        }
    }
    let mut reached = BTreeMap::from([(begin, (usize::MAX, 0))]);
    let mut open = VecDeque::from([begin]);
    while let Some(at) = open.pop_front() {
        for &(place, side) in leaving.get(&at).into_iter().flatten() {
            let next = edges[place].ends[1 - side];
            if edges[place].left[side] > 0 && !reached.contains_key(&next) {
                reached.insert(next, (place, side));
                open.push_back(next);
            }
        }
    }
    let mut way = Vec::new();
    let mut at = end;
    while at != begin && reached.contains_key(&at) {
        let (place, side) = reached[&at];
        way.push((place, side));
        at = edges[place].ends[side];
    }
    (reached, way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Burst, LinkClass, Network, PortConfig, Routes};
    use units::Rate;

    /// Two switches with a host each, host links of 100 Gb/s, and cables of these rates (Gb/s) and delays (us) between.
    fn network(cables: &[(u64, i64)]) -> Network {
        let port = |gbps, us| PortConfig::new(Rate::from_gbps(gbps), Span::from_us(us));
        let mut builder = Builder::default();
        let switches = [builder.switch(0, "a"), builder.switch(0, "b")];
        for switch in switches {
            let host = builder.host(0, "host");
            builder.connect(host, switch, LinkClass::Host, port(100, 1), port(100, 1));
        }
        for &(gbps, us) in cables {
            builder.connect(switches[0], switches[1], LinkClass::Other, port(gbps, us), port(gbps, us));
        }
        builder.finish().unwrap()
    }

    fn times(cables: &[(u64, i64)], burst: &Burst) -> [Span; 2] {
        let network = network(cables);
        let routes = Routes::new(&network).unwrap();
        let mut ways = Ways::new(&network, &routes);
        let (from, to) = (HostId(0), HostId(1));
        [ways.arrival(from, to, burst), ways.arrival_over_all(from, to, burst)]
    }

    /// By hand, with packets of 1,250 bytes: 100 ns at 100 Gb/s, 1 us at 10, 2 us at 5.
    #[test]
    fn cables_are_taken_alone_or_together() {
        let burst = Burst { packets: 9, full: 1_250, last: 1_250 };
        // The host's 100 ns and 1 us; 9 us and 3 us of delay on the cable of 10 Gb/s; 100 ns and 1 us.
        let one = Span::from_ns(100 + 1_000 + 9_000 + 3_000 + 100 + 1_000);
        assert_eq!(times(&[(10, 3)], &burst), [one; 2]);
        // The best path is the fast cable; with both, 6 packets take it and 3 the slow one: 6 us instead of 9.
        assert_eq!(times(&[(10, 3), (5, 3)], &burst), [one, one - Span::from_us(3)]);
        // Over a slow cable that is 5 us longer, one packet arrives as early as the eighth over the other. Over one that is
        // 7 us longer, none does.
        assert_eq!(times(&[(10, 3), (5, 8)], &burst), [one, one - Span::from_us(1)]);
        assert_eq!(times(&[(10, 3), (5, 10)], &burst), [one; 2]);
        // A packet alone takes the cable of 10 Gb/s (1 us and 1 us) unless the other's delay is under 1.9 us.
        let alone = Burst { packets: 1, full: 1_250, last: 1_250 };
        let ends = Span::from_ns(100 + 1_000 + 100 + 1_000);
        assert_eq!(times(&[(100, 3), (10, 1)], &alone), [ends + Span::from_us(2); 2]);
        assert_eq!(times(&[(100, 1), (10, 1)], &alone), [ends + Span::from_ns(1_100); 2]);
        // As wide as the hosts together: nothing is lost to the cut.
        let wide = times(&[(50, 3), (50, 3)], &burst)[1];
        assert_eq!(wide, Span::from_ns(100 + 1_000 + 200 + 3_000 + 900 + 1_000));
    }
}
