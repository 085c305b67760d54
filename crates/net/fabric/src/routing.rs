//! Shortest-path routing with equal-cost choices, looked up by index.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use units::{Rate, Span, Time, below, mix64};

use crate::{HostId, Link, LinkId, Network, NetworkError, NodeId, NodeKind};

/// Returns the seed of a switch's choices, in addition to the packet: it depends on the run's seed and the switch.
#[inline]
pub fn switch_salt(seed: u64, switch: NodeId) -> u64 {
    mix64(seed ^ mix64(u64::from(switch.0)))
}

/// Returns the hash that selects among equal ports at a switch: of the flow, its entropy and the switch (see
/// [`switch_salt`]).
#[inline]
pub fn path_hash(switch_salt: u64, flow: u32, entropy: u16) -> u64 {
    mix64(switch_salt ^ (u64::from(flow) << 16 | u64::from(entropy)))
}

/// For each switch and each destination, the ports on a shortest path (fewest links).
///
/// Destinations are grouped by the switch that a host is attached to, so the table is small: switches squared.
#[derive(Clone, Hash, Debug)]
pub struct Routes {
    /// Row `row[node]`, column `host_slots[host].0`.
    table: Vec<PortGroup>,
    columns: usize,
    row: Vec<u32>,
    /// The column of its switch, and its index among that switch's hosts, for each host.
    host_slots: Vec<(u16, u16)>,
    ports: Vec<LinkId>,
    /// All equal paths between two hosts consist of the same kinds of ports, in the same order.
    is_uniform: bool,
    /// Routes that apply instead from a given time on, in order.
    later: Vec<(Time, Routes)>,
}

/// Equal ports: `len` of them from index `first` of the list of ports on. If `len` is 0, the destination is this switch
/// itself, and the ports to its hosts are there, by their slot in [`Routes::host_slots`].
///
/// In 32 bits, `len` in the lower ones: in a large tree, accesses to the table miss the cache most often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct PortGroup(u32);

const LEN_BITS: u32 = 12;

/// No path.
const NONE: PortGroup = PortGroup(u32::MAX);

impl PortGroup {
    /// `len` ports from index `first` on, at `switch`. Never [`NONE`].
    fn new(first: usize, len: usize, switch: &str) -> Result<Self, NetworkError> {
        if len >= (1 << LEN_BITS) - 1 {
            return Err(NetworkError::Shape(format!("over 4,094 equal ports lead from {switch} to one switch")));
        }
        if first >> (32 - LEN_BITS) != 0 {
            return Err(NetworkError::Shape("over 1,048,576 ports in all groups of equal ones".into()));
        }
        Ok(Self((first as u32) << LEN_BITS | len as u32))
    }

    #[inline(always)]
    const fn first(self) -> u32 {
        self.0 >> LEN_BITS
    }

    #[inline(always)]
    const fn len(self) -> u32 {
        self.0 & ((1 << LEN_BITS) - 1)
    }
}

const NO_COLUMN: u16 = u16::MAX;

impl Routes {
    /// Finds all shortest paths.
    ///
    /// # Errors
    /// When some host cannot reach another, or the network is too large for the table's 16-bit entries.
    pub fn new(network: &Network) -> Result<Self, NetworkError> {
        Self::without(network, &BTreeSet::new())
    }

    /// Finds all shortest paths that avoid some links.
    ///
    /// # Errors
    /// See [`Routes::new`].
    pub fn without(network: &Network, avoided: &BTreeSet<LinkId>) -> Result<Self, NetworkError> {
        let nodes = network.nodes();
        let mut row = vec![u32::MAX; nodes.len()];
        let mut rows = 0;
        for (node, details) in nodes.iter().enumerate() {
            if details.kind == NodeKind::Switch {
                row[node] = rows;
                rows += 1;
            }
        }
        let mut column_of = vec![NO_COLUMN; nodes.len()];
        let mut attached: Vec<NodeId> = Vec::new();
        let mut host_slots = Vec::new();
        let mut hosts_of: Vec<Vec<LinkId>> = Vec::new();
        for host in 0..network.hosts().len() {
            let up = network.uplink(HostId(host as u32));
            let switch = network.links()[up.index()].to;
            if nodes[switch.index()].kind != NodeKind::Switch {
                return Err(NetworkError::Shape(format!("{} is cabled to another host", nodes[switch.index()].name)));
            }
            if column_of[switch.index()] == NO_COLUMN {
                column_of[switch.index()] = entry(attached.len(), || "switches have hosts".into())?;
                attached.push(switch);
                hosts_of.push(Vec::new());
            }
            let column = column_of[switch.index()];
            let slot = entry(hosts_of[column as usize].len(), || {
                format!("hosts are attached to {}", nodes[switch.index()].name)
            })?;
            host_slots.push((column, slot));
            hosts_of[column as usize].push(network.links()[up.index()].reverse);
        }

        let columns = attached.len();
        let mut table = vec![NONE; rows as usize * columns];
        let mut ports = Vec::new();
        // Groups of one switch, so that equal ones are listed once.
        let mut group_of: Vec<BTreeMap<Vec<LinkId>, PortGroup>> = vec![BTreeMap::new(); rows as usize];
        for (column, &target) in attached.iter().enumerate() {
            let here = PortGroup::new(ports.len(), 0, &nodes[target.index()].name)?;
            table[row[target.index()] as usize * columns + column] = here;
            ports.extend_from_slice(&hosts_of[column]);
            let distance = distances(network, target, avoided);
            for (node, details) in nodes.iter().enumerate() {
                if details.kind != NodeKind::Switch || NodeId(node as u32) == target {
                    continue;
                }
                let next: Vec<LinkId> = network
                    .links_out(NodeId(node as u32))
                    .filter(|&link| {
                        let to = network.links()[link as usize].to;
                        nodes[to.index()].kind == NodeKind::Switch
                            && !avoided.contains(&LinkId(link))
                            && distance[to.index()] != u32::MAX
                            && distance[to.index()] + 1 == distance[node]
                    })
                    .map(LinkId)
                    .collect();
                if next.is_empty() {
                    continue;
                }
                let groups = &mut group_of[row[node] as usize];
                let group = if let Some(&known) = groups.get(&next) {
                    known
                } else {
                    let group = PortGroup::new(ports.len(), next.len(), &details.name)?;
                    ports.extend_from_slice(&next);
                    groups.insert(next, group);
                    group
                };
                table[row[node] as usize * columns + column] = group;
            }
        }
        let mut routes = Self { table, columns, row, host_slots, ports, is_uniform: true, later: Vec::new() };
        routes.check(network, &attached)?;
        routes.is_uniform = (0..columns).all(|column| routes.are_uniform(network, column));
        Ok(routes)
    }

    /// Returns whether all equal paths to one switch consist of the same kinds of ports.
    fn are_uniform(&self, network: &Network, column: usize) -> bool {
        const UNKNOWN: u32 = u32::MAX;
        const END: u32 = 0;
        // The name of a switch's route to the destination: the same if ports of one kind lead to routes of one name.
        let mut name_of = vec![UNKNOWN; network.nodes().len()];
        let mut names = BTreeMap::new();
        for start in 0..network.nodes().len() as u32 {
            let mut open = vec![NodeId(start)];
            while let Some(&at) = open.last() {
                let row = self.row[at.index()];
                let group = if row == u32::MAX { NONE } else { self.table[row as usize * self.columns + column] };
                if name_of[at.index()] != UNKNOWN || group == NONE || group.len() == 0 {
                    if name_of[at.index()] == UNKNOWN {
                        name_of[at.index()] = END;
                    }
                    open.pop();
                    continue;
                }
                let ports = &self.ports[group.first() as usize..][..group.len() as usize];
                let link = |port: LinkId| &network.links()[port.index()];
                let before = open.len();
                open.extend(ports.iter().map(|&port| link(port).to).filter(|to| name_of[to.index()] == UNKNOWN));
                if open.len() > before {
                    continue;
                }
                let buffer = network.nodes()[at.index()].switch.map(|switch| switch.buffer);
                let way = |&port: &LinkId| (link(port).params, buffer, name_of[link(port).to.index()]);
                let first = way(&ports[0]);
                if ports.iter().any(|port| way(port) != first) {
                    return false;
                }
                let next = names.len() as u32 + 1;
                name_of[at.index()] = *names.entry(first).or_insert(next);
            }
        }
        true
    }

    /// The same until a time, from which on others hold; later than any that was given before.
    #[must_use]
    pub fn until(mut self, time: Time, others: Self) -> Self {
        debug_assert!(self.later.last().is_none_or(|&(last, _)| last < time));
        self.later.push((time, others));
        self
    }

    /// These, and those that hold later.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.later.iter().map(|(_, routes)| routes))
    }

    /// The routes that hold at a time.
    #[inline]
    pub fn at(&self, time: Time) -> &Self {
        if self.later.is_empty() {
            return self;
        }
        let past = self.later.partition_point(|(from, _)| *from <= time);
        past.checked_sub(1).map_or(self, |last| &self.later[last].1)
    }

    /// The first change of routes after `from` and before `until`.
    #[inline]
    pub fn change_between(&self, from: Time, until: Time) -> Option<Time> {
        if self.later.is_empty() {
            return None;
        }
        let past = self.later.partition_point(|(change, _)| *change <= from);
        self.later.get(past).map(|(change, _)| *change).filter(|&change| change < until)
    }

    fn check(&self, network: &Network, attached: &[NodeId]) -> Result<(), NetworkError> {
        for &from in attached {
            for (column, &to) in attached.iter().enumerate() {
                if from != to && self.table[self.row[from.index()] as usize * self.columns + column] == NONE {
                    let name = |node: NodeId| network.nodes()[node.index()].name.clone();
                    return Err(NetworkError::Unreachable { from: name(from), to: name(to) });
                }
            }
        }
        Ok(())
    }

    /// The routes from one switch.
    #[inline]
    pub fn from(&self, switch: NodeId) -> RoutesFrom<'_> {
        let row = self.row[switch.index()] as usize * self.columns;
        RoutesFrom { row: &self.table[row..row + self.columns], host_slots: &self.host_slots, ports: &self.ports }
    }

    /// The port of a switch by which packets back to the host `from` take the reverse of the path of packets from it to
    /// `to`, where `hash(switch)` (see [`path_hash`]) chooses among equal ports. None if their path does not include the
    /// switch, or the reverse of the link on which they arrive is on no shortest path back: as routes change, or where they
    /// avoid a link in one direction.
    pub fn back(
        &self,
        network: &Network,
        from: HostId,
        to: HostId,
        switch: NodeId,
        hash: impl Fn(NodeId) -> u64,
    ) -> Option<LinkId> {
        let ports = self.from(switch).ports(from);
        if let &[only] = ports {
            return Some(only);
        }
        let mut link = network.uplink(from);
        loop {
            let Link { to: at, reverse, .. } = network.links()[link.index()];
            if at == switch {
                return ports.contains(&reverse).then_some(reverse);
            }
            if network.nodes()[at.index()].kind != NodeKind::Switch {
                return None;
            }
            link = self.from(at).port(to, hash(at));
        }
    }

    /// The links from one host to another, where `pick(switch, n)` chooses among equal ports.
    pub fn path(
        &self,
        network: &Network,
        from: HostId,
        to: HostId,
        mut pick: impl FnMut(NodeId, u32) -> u32,
    ) -> Vec<LinkId> {
        let mut path = vec![network.uplink(from)];
        loop {
            let at = network.links()[path[path.len() - 1].index()].to;
            if network.nodes()[at.index()].kind == NodeKind::Host(to) {
                return path;
            }
            let here = self.from(at);
            let ports = here.ports(to);
            path.push(ports[pick(at, ports.len() as u32) as usize]);
        }
    }
}

impl Routes {
    /// The maximum total `cost` of links over the paths that are equal to this one; none if the cost of a link is none. It
    /// must be the same for ports of one kind at switches of one kind.
    pub fn slowest_path(
        &self,
        network: &Network,
        path: &[LinkId],
        cost: impl Fn(LinkId) -> Option<Span>,
    ) -> Option<Span> {
        self.over_equal(network, path, cost, |so_far, more| so_far + more, Ord::max)
    }

    /// The rate of the narrowest link of all the paths that are equal to this one; none for no path.
    pub fn narrowest(&self, network: &Network, path: &[LinkId]) -> Option<Rate> {
        self.over_equal(network, path, |link| Some(network.port(link).config().rate), Ord::min, Ord::min)
    }

    /// Takes `of` each link, joins these values `along` each path, and the results `among` all paths that are equal to this one.
    fn over_equal<T: Copy>(
        &self,
        network: &Network,
        path: &[LinkId],
        of: impl Fn(LinkId) -> Option<T>,
        along: impl Fn(T, T) -> T,
        among: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let end_of = |link: LinkId| network.links()[link.index()].to;
        let (&uplink, &last) = path.first().zip(path.last())?;
        let NodeKind::Host(to) = network.nodes()[end_of(last).index()].kind else { return None };
        if self.is_uniform {
            return path[1..].iter().try_fold(of(uplink)?, |so_far, &link| Some(along(so_far, of(link)?)));
        }
        // Equal paths have equally many links, so the switches at the same distance are handled together.
        let mut reached = BTreeMap::from([(end_of(uplink), of(uplink)?)]);
        for _ in 1..path.len() {
            let mut next = BTreeMap::new();
            for (&at, &so_far) in &reached {
                for &port in self.from(at).ports(to) {
                    let there = along(so_far, of(port)?);
                    next.entry(end_of(port)).and_modify(|it| *it = among(*it, there)).or_insert(there);
                }
            }
            reached = next;
        }
        reached.into_values().reduce(among)
    }
}

/// The routes from one switch.
#[derive(Clone, Copy, Debug)]
pub struct RoutesFrom<'a> {
    row: &'a [PortGroup],
    host_slots: &'a [(u16, u16)],
    ports: &'a [LinkId],
}

impl<'a> RoutesFrom<'a> {
    /// The port on a shortest path to `host` that `hash` (see [`path_hash`]) chooses. Hashed even where there is
    /// one port: cheaper than a branch that nothing predicts.
    #[inline]
    pub fn port(&self, host: HostId, hash: u64) -> LinkId {
        let (column, slot) = self.host_slots[host.index()];
        let group = self.row[usize::from(column)];
        // One of the two is 0; a sum, because which one is not to be predicted either.
        let chosen = below(hash, group.len());
        let slot = u32::from(slot) * u32::from(group.len() == 0);
        self.ports[(group.first() + chosen + slot) as usize]
    }

    /// All ports on shortest paths to `host`; none where no path leads there.
    pub fn ports(&self, host: HostId) -> &'a [LinkId] {
        let (column, slot) = self.host_slots[host.index()];
        let group = self.row[usize::from(column)];
        if group == NONE {
            return &[];
        }
        let (first, len) = match group.len() {
            0 => (group.first() as usize + usize::from(slot), 1),
            len => (group.first() as usize, len as usize),
        };
        &self.ports[first..first + len]
    }
}

/// A 16-bit entry of the table, never [`NO_COLUMN`].
fn entry(count: usize, label: impl FnOnce() -> String) -> Result<u16, NetworkError> {
    let fits = u16::try_from(count).ok().filter(|&entry| entry != NO_COLUMN);
    fits.ok_or_else(|| NetworkError::Shape(format!("over 65,534 {}", label())))
}

/// The number of links from every node to `target`, through switches only, and not over those avoided.
fn distances(network: &Network, target: NodeId, avoided: &BTreeSet<LinkId>) -> Vec<u32> {
    let mut distance = vec![u32::MAX; network.nodes().len()];
    distance[target.index()] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(node) = queue.pop_front() {
        for link in network.links_out(node) {
            // Cables run both ways, so the links out of a node lead to those with links into it.
            let Link { to: other, reverse, .. } = network.links()[link as usize];
            if avoided.contains(&reverse) {
                continue;
            }
            if distance[other.index()] == u32::MAX {
                distance[other.index()] = distance[node.index()] + 1;
                if network.nodes()[other.index()].kind == NodeKind::Switch {
                    queue.push_back(other);
                }
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, LinkClass, PortConfig};
    use proptest::prelude::*;
    use units::Frac;

    /// Two switches with that many cables between them and a host each, and more hosts on the first.
    fn network(cables: u32, more_hosts: u32) -> Network {
        let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
        let mut builder = Builder::default();
        let switches = [builder.switch(0, "a"), builder.switch(0, "b")];
        for host in 0..2 + more_hosts {
            let node = builder.host(0, format!("host{host}"));
            builder.connect(node, switches[usize::from(host == 1)], LinkClass::Host, port, port);
        }
        for _ in 0..cables {
            builder.connect(switches[0], switches[1], LinkClass::Other, port, port);
        }
        builder.finish().unwrap()
    }

    /// One of two cables is avoided in one direction from 5 us on: only that direction changes, and only then.
    #[test]
    fn routes_change_and_avoid_one_direction() {
        let network = network(2, 0);
        let cables: Vec<LinkId> = (0..network.links().len() as u32)
            .map(LinkId)
            .filter(|link| network.links()[link.index()].class == LinkClass::Other)
            .collect();
        let avoided = cables[0];
        let avoiding = Routes::without(&network, &BTreeSet::from([avoided])).unwrap();
        let routes = Routes::new(&network).unwrap().until(Time::from_us(5), avoiding);
        let (from, to) = (network.links()[avoided.index()].from, network.links()[avoided.index()].to);
        let host_at = |switch: NodeId| {
            let hosts = (0..2).map(HostId);
            hosts.into_iter().find(|&host| network.links()[network.uplink(host).index()].to == switch).unwrap()
        };
        let at = |us: u64, at: NodeId, towards: NodeId| {
            routes.at(Time::from_us(us) - Span::from_ps(1)).from(at).ports(host_at(towards)).to_vec()
        };
        assert_eq!((at(5, from, to).len(), at(5, to, from).len()), (2, 2));
        assert!(at(6, from, to).len() == 1 && !at(6, from, to).contains(&avoided));
        assert_eq!(at(6, to, from).len(), 2);
        let change = Time::from_us(5);
        assert_eq!(routes.change_between(change - Span::from_ps(1), change.just_after()), Some(change));
        assert_eq!(routes.change_between(change, Time::NEVER), None);
        let both: BTreeSet<LinkId> =
            cables.iter().copied().filter(|link| network.links()[link.index()].from == from).collect();
        assert!(matches!(Routes::without(&network, &both), Err(NetworkError::Unreachable { .. })));
    }

    proptest! {
        /// Two tiers of switches between two hosts, with cables of these delays: the delay of every path is at most that of
        /// the slowest path, and equal for at least one. Paths are alike if delays agree tier by tier.
        #[test]
        fn slowest_and_narrowest_of_all_paths(
            delays in proptest::collection::vec(1i64..4, 8), even in proptest::bool::ANY, start in 0..2u32,
        ) {
            let delay = |at: usize| Span::from_us(if even { delays[at / 3] } else { delays[at] });
            // The longer a link's delay, the narrower it is.
            let rate = |delay: Span| Rate::from_gbps(100).scaled(Frac::ratio(1, delay.ns() as u64));
            let port = |delay: Span| PortConfig::new(rate(delay), delay);
            let mut builder = Builder::default();
            let [first, last] = ["first", "last"].map(|name| builder.switch(0, name));
            let tiers = [["a", "b"], ["c", "d"]].map(|tier| tier.map(|name| builder.switch(0, name)));
            for (host, switch) in [first, last].into_iter().enumerate() {
                let node = builder.host(0, format!("host{host}"));
                builder.connect(node, switch, LinkClass::Host, port(Span::from_us(1)), port(Span::from_us(1)));
            }
            let mut cables = vec![(first, tiers[0][0]), (first, tiers[0][1])];
            cables.extend(tiers[0].iter().flat_map(|&near| tiers[1].map(|far| (near, far))));
            cables.extend(tiers[1].map(|far| (far, last)));
            for (at, (near, far)) in cables.into_iter().enumerate() {
                // Places 0 and 1, 2 to 5, and 6 and 7 are tiers.
                let at = if even { [0, 0, 3, 3, 3, 3, 6, 6][at] } else { at };
                builder.connect(near, far, LinkClass::Other, port(delay(at)), port(delay(at)));
            }
            let network = builder.finish().unwrap();
            let routes = Routes::new(&network).unwrap();
            prop_assert!(!even || routes.is_uniform);
            let (from, to) = (HostId(start), HostId(1 - start));
            let cost = |link: LinkId| Some(network.port(link).delay);
            let all = (0..8u32).map(|choices| {
                let mut tier = 0;
                routes.path(&network, from, to, |_, ports| {
                    tier += 1;
                    (choices >> (tier - 1)) % ports
                })
            });
            let all: Vec<Vec<LinkId>> = all.collect();
            let costs: Vec<Span> = all.iter().map(|path| path.iter().filter_map(|&link| cost(link)).sum()).collect();
            let rates = all.iter().flatten().map(|&link| network.port(link).config().rate);
            let path = routes.path(&network, from, to, |_, _| 0);
            prop_assert_eq!(routes.slowest_path(&network, &path, cost), costs.iter().copied().max());
            prop_assert_eq!(routes.narrowest(&network, &path), rates.min());
            prop_assert!(!routes.is_uniform || costs.iter().all(|&cost| cost == costs[0]));
            prop_assert_eq!(routes.slowest_path(&network, &path, |_| None), None);
        }
    }

    /// Whichever of three cables a hash chooses there, it is the one back. Where that is avoided in the direction back there is
    /// none, and none for a switch that the way there does not pass.
    #[test]
    fn the_way_back_is_the_reverse_of_the_way_there() {
        let network = network(3, 0);
        let (from, to) = (HostId(0), HostId(1));
        let [near, far] = [from, to].map(|host| network.links()[network.uplink(host).index()].to);
        let routes = Routes::new(&network).unwrap();
        let mut back = BTreeSet::new();
        for hash in (0..16).map(mix64) {
            let there = routes.path(&network, from, to, |_, ports| below(hash, ports));
            let reversed = |link: LinkId| Some(network.links()[link.index()].reverse);
            assert_eq!(routes.back(&network, from, to, far, |_| hash), reversed(there[1]));
            assert_eq!(routes.back(&network, from, to, near, |_| hash), reversed(there[0]));
            assert_eq!(routes.back(&network, to, from, far, |_| hash), Some(there[2]));
            back.extend(reversed(there[1]));
        }
        assert_eq!(back.len(), 3);
        let avoided = back.pop_first().unwrap();
        let avoiding = Routes::without(&network, &BTreeSet::from([avoided])).unwrap();
        let found = (0..16).map(mix64).map(|hash| avoiding.back(&network, from, to, far, |_| hash));
        assert_eq!(found.flatten().collect::<BTreeSet<_>>(), back);
        assert!((0..16).map(mix64).any(|hash| avoiding.back(&network, from, to, far, |_| hash).is_none()));
        // From a host of the far switch to itself nothing passes the near one.
        assert_eq!(routes.back(&network, to, to, near, |_| 0), None);
    }

    #[test]
    fn networks_over_the_table_size_are_rejected() {
        assert!(Routes::new(&network(1_000, 1_000)).is_ok());
        let refusal = |network| Routes::new(&network).unwrap_err().to_string();
        assert_eq!(refusal(network(4_095, 0)), "over 4,094 equal ports lead from b to one switch");
        assert_eq!(refusal(network(1, 1 << 16)), "over 65,534 hosts are attached to a");
    }
}
