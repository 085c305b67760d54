//! Paths between all pairs of hosts: base round trips, and links of each class. Hosts that are attached to one switch
//! by equal links are one group, so the work is switches squared, not hosts squared.

use experiment::HostConfig;
use fabric::{HostId, LinkClass, Network, Routes, base_one_way};
use units::{Bytes, Rate, Span};

use crate::class::FlowClass;
use crate::index::index32;

/// Number of link classes.
const CLASSES: usize = LinkClass::ALL.len();

/// The paths of a network by groups of hosts.
pub(crate) struct Survey {
    groups: Vec<HostGroup>,
    group_of: Vec<u32>,
    /// From group `a` to group `b`: at `a * groups + b`; none inside a group of one host.
    pairs: Vec<Option<PairPath>>,
}

struct HostGroup {
    hosts: Vec<HostId>,
    datacenter: u16,
}

#[derive(Clone, Copy)]
struct PairPath {
    data: Span,
    ack: Span,
    /// Rate of the narrowest link there.
    rate: Rate,
    /// Links there by class.
    links: [u16; CLASSES],
}

/// The smallest and the largest base round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttRange {
    /// The smallest.
    pub min: Span,
    /// The largest.
    pub max: Span,
}

/// Base round trip and line rate of a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    /// Base round-trip time.
    pub(crate) base_rtt: Span,
    /// Rate of the narrowest link.
    pub(crate) line_rate: Rate,
}

impl Reach {
    /// Bandwidth-delay product.
    pub(crate) const fn bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.base_rtt)
    }
}

impl Survey {
    pub(crate) fn new(network: &Network, routes: &Routes, host: &HostConfig) -> Self {
        let mut keys = std::collections::BTreeMap::new();
        let mut groups: Vec<HostGroup> = Vec::new();
        let mut group_of = Vec::with_capacity(network.hosts().len());
        for index in 0..index32(network.hosts().len()) {
            let id = HostId(index);
            let up = &network.links()[network.uplink(id).index()];
            let down = &network.links()[up.reverse.index()];
            let group = *keys.entry((up.to, up.params, down.params)).or_insert_with(|| {
                groups.push(HostGroup { hosts: Vec::new(), datacenter: network.datacenter_of(id) });
                groups.len() - 1
            });
            groups[group].hosts.push(id);
            group_of.push(index32(group));
        }
        let mut pairs = Vec::with_capacity(groups.len() * groups.len());
        for (a, from) in groups.iter().enumerate() {
            for (b, to) in groups.iter().enumerate() {
                let ends = if a == b { from.hosts.get(1) } else { to.hosts.first() };
                pairs.push(ends.map(|&to| {
                    let path = routes.path(network, from.hosts[0], to, |_, _| 0);
                    let mut links = [0u16; CLASSES];
                    for link in &path {
                        links[network.links()[link.index()].class as usize] += 1;
                    }
                    PairPath {
                        data: base_one_way(network, &path, host.mss + host.header),
                        ack: base_one_way(network, &path, host.ack_size),
                        rate: path.iter().map(|&link| network.port(link).config().rate).fold(Rate::MAX, Rate::min),
                        links,
                    }
                }));
            }
        }
        Self { groups, group_of, pairs }
    }

    /// The links of a class that a packet crosses from one host to another.
    pub(crate) fn links(&self, from: HostId, to: HostId, class: LinkClass) -> u16 {
        self.pair(from, to).map_or(0, |pair| pair.links[class as usize])
    }

    /// Returns the time that a full packet takes from one host to another with empty queues; none on one host.
    pub(crate) fn one_way(&self, from: HostId, to: HostId) -> Option<Span> {
        self.pair(from, to).map(|pair| pair.data)
    }

    /// Returns the time that an acknowledgement takes from one host to another with empty queues; none on one host.
    pub(crate) fn ack_delay(&self, from: HostId, to: HostId) -> Option<Span> {
        self.pair(from, to).map(|pair| pair.ack)
    }

    /// The base round trip from one host to another; none on one host.
    pub(crate) fn round_trip(&self, from: HostId, to: HostId) -> Option<Span> {
        Some(self.pair(from, to)?.data + self.pair(to, from)?.ack)
    }

    fn pair(&self, from: HostId, to: HostId) -> Option<PairPath> {
        self.pairs[self.group_of[from.index()] as usize * self.groups.len() + self.group_of[to.index()] as usize]
    }

    /// Returns the maximum number of links that a packet crosses from one host to another.
    pub(crate) fn most_links(&self) -> u16 {
        self.pairs.iter().flatten().map(|pair| pair.links.iter().sum()).max().unwrap_or(0)
    }

    /// Base round trips between hosts of one datacenter, or of two.
    pub(crate) fn base_rtt(&self, class: FlowClass) -> Option<RttRange> {
        let rtts = || self.reaches(class).map(|reach| reach.base_rtt);
        rtts().min().zip(rtts().max()).map(|(min, max)| RttRange { min, max })
    }

    /// The pairs of hosts of one datacenter, or of two, with the smallest and the largest bandwidth-delay product.
    pub(crate) fn extremes(&self, class: FlowClass) -> Option<[Reach; 2]> {
        let smallest = self.reaches(class).min_by_key(Reach::bdp)?;
        Some([smallest, self.reaches(class).max_by_key(Reach::bdp)?])
    }

    /// All pairs of groups of one datacenter, or of two.
    fn reaches(&self, class: FlowClass) -> impl Iterator<Item = Reach> {
        let groups = self.groups.len();
        let pairs = (0..groups).flat_map(move |a| (0..groups).map(move |b| (a, b)));
        let wanted = move |&(a, b): &(usize, usize)| {
            (self.groups[a].datacenter == self.groups[b].datacenter) == (class == FlowClass::Intra)
        };
        pairs.filter(wanted).filter_map(move |(a, b)| {
            let (forward, reverse) = (self.pairs[a * groups + b]?, self.pairs[b * groups + a]?);
            Some(Reach { base_rtt: forward.data + reverse.ack, line_rate: forward.rate })
        })
    }

    /// The links of a class that a random flow crosses on average, in units of 2^-32: its source any host of `from`
    /// that has a destination, its destination any of `to` in the same datacenter (or any in another).
    pub(crate) fn mean_links(&self, flows: FlowClass, class: LinkClass, from: &[bool], to: &[bool]) -> u64 {
        let count = |group: &HostGroup, in_from: bool, in_to: bool| {
            let is = |host: &&HostId| (!in_from || from[host.index()]) && (!in_to || to[host.index()]);
            group.hosts.iter().filter(is).count() as u128
        };
        let receivers: Vec<u128> = self.groups.iter().map(|group| count(group, false, true)).collect();
        let mut sources = 0u128;
        let mut sum = 0u128;
        for (a, group) in self.groups.iter().enumerate() {
            let both = count(group, true, true);
            // A sender that may also receive is not its own destination.
            for (own, itself) in [(both, 1), (count(group, true, false) - both, 0)] {
                let (mut destinations, mut links) = (0u128, 0u128);
                for (b, other) in self.groups.iter().enumerate() {
                    if own == 0 || (group.datacenter == other.datacenter) != (flows == FlowClass::Intra) {
                        continue;
                    }
                    let count = receivers[b] - if a == b { itself } else { 0 };
                    destinations += count;
                    if let Some(pair) = self.pairs[a * self.groups.len() + b] {
                        links += count * u128::from(pair.links[class as usize]);
                    }
                }
                if let Some(mean) = ((own * links) << 32).checked_div(destinations) {
                    sources += own;
                    sum += mean;
                }
            }
        }
        u64::try_from(sum / sources.max(1)).unwrap_or(u64::MAX)
    }

    /// The groups of hosts that have flows of a class with those of a datacenter, in order: an incast's senders.
    pub(crate) fn groups(&self, datacenter: u16, class: FlowClass) -> impl Iterator<Item = &[HostId]> {
        let wanted = move |group: &&HostGroup| (group.datacenter == datacenter) == (class == FlowClass::Intra);
        self.groups.iter().filter(wanted).map(|group| group.hosts.as_slice())
    }
}
