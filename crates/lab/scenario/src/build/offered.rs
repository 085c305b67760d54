//! Load that random arrivals offer to each link: expected payload over the link's rate, with traffic spread evenly over paths
//! of equal cost, at the time when it is greatest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, LinkClass, LinkId, Network, NodeId, NodeKind, Routes};

use crate::class::FlowClass;
use crate::index::index32;
use crate::traffic::Demand;
use units::Span;

/// Load above which queues grow for as long as arrivals last, in parts per million: headers and the variance of arrivals take
/// the rest.
const OVERLOAD_PPM: u64 = 950_000;
/// Fixed point of rates: bits per second in units of 2^-20.
const FRACTION: u32 = 20;

/// The most loaded link of a class of links; of links between datacenters, one for each direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkLoad {
    /// Class of the link.
    pub class: LinkClass,
    /// Name of the link: `from>to`.
    pub link: String,
    /// Offered payload over the link's rate, in parts per million.
    pub ppm: u64,
}

/// Links that are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinkGroup {
    class: LinkClass,
    /// The datacenters from and to which they lead, where that are two.
    between: Option<[u16; 2]>,
}

/// Offered load by link.
pub(super) struct Offered {
    /// By class and direction.
    pub(super) most_loaded: Vec<LinkLoad>,
    /// Names the most loaded link if arrivals overload any.
    pub(super) warning: Option<String>,
}

/// Spreads the demands over the links. Routes are those of the run's start.
pub(super) fn offered(network: &Network, routes: &Routes, demands: &[Demand]) -> Offered {
    let each: Vec<Vec<u128>> = demands.iter().map(|demand| spread(network, routes, demand)).collect();
    // The load rises only where a demand begins.
    let begins: BTreeSet<Span> = demands.iter().map(|demand| demand.from_time).collect();
    let mut bits = vec![0u128; network.links().len()];
    for &time in &begins {
        let active = |demand: &Demand| demand.from_time <= time && time < demand.to_time;
        let concurrent: Vec<&Vec<u128>> =
            demands.iter().zip(&each).filter(|(demand, _)| active(demand)).map(|(_, bits)| bits).collect();
        for (link, peak) in bits.iter_mut().enumerate() {
            *peak = (*peak).max(concurrent.iter().map(|bits| bits[link]).sum());
        }
    }
    let ppm = |link: usize| {
        let rate = u128::from(network.port(LinkId(index32(link))).config().rate.bps()).max(1);
        u64::try_from((bits[link] * 1_000_000 / rate) >> FRACTION).unwrap_or(u64::MAX)
    };
    let mut busiest: BTreeMap<LinkGroup, usize> = BTreeMap::new();
    for (number, link) in network.links().iter().enumerate().filter(|&(number, _)| bits[number] > 0) {
        let [from, to] = [link.from, link.to].map(|node| network.nodes()[node.index()].datacenter);
        let between = (from != to).then_some([from, to]);
        let known = busiest.entry(LinkGroup { class: link.class, between }).or_insert(number);
        if ppm(number) > ppm(*known) {
            *known = number;
        }
    }
    let line = |(direction, &link): (&LinkGroup, &usize)| LinkLoad {
        class: direction.class,
        link: network.link_name(LinkId(index32(link))),
        ppm: ppm(link),
    };
    let most_loaded: Vec<LinkLoad> = busiest.iter().map(line).collect();
    let over = (0..bits.len()).filter(|&link| bits[link] > 0 && ppm(link) > OVERLOAD_PPM).count();
    let worst = busiest.values().copied().zip(&most_loaded).max_by_key(|(_, load)| load.ppm).filter(|_| over > 0);
    let warning = worst.map(|(link, worst)| {
        let on_it = demands.iter().zip(&each).filter(|(_, bits)| bits[link] > 0);
        let entries: BTreeSet<String> = on_it.map(|(it, _)| format!("traffic.{}.load", it.traffic)).collect();
        let others = match over {
            1 => String::new(),
            more => format!(", and over 95 % to {} more", more - 1),
        };
        format!(
            "arrivals offer {} {} of its rate{others}: queues grow for as long as flows arrive ({})",
            worst.link,
            percent(worst.ppm),
            entries.into_iter().collect::<Vec<_>>().join(", ")
        )
    });
    Offered { most_loaded, warning }
}

/// Parts per million as per cent.
fn percent(ppm: u64) -> String {
    let tenths = (ppm + 500) / 1_000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Senders that are attached to one switch and draw from equally many receivers.
struct Senders {
    switch: NodeId,
    datacenter: u16,
    /// Payload from each of them to each receiver, in units of 2^-20 bit/s.
    share: u128,
    count: u128,
    /// Set if they are receivers, too: none of them sends to itself.
    receive: bool,
}

/// Offered bits per second of a demand by link, in units of 2^-20.
fn spread(network: &Network, routes: &Routes, demand: &Demand) -> Vec<u128> {
    let mut bits = vec![0u128; network.links().len()];
    let hosts = || (0..index32(network.hosts().len())).map(HostId);
    let switch_of = |host: HostId| network.links()[network.uplink(host).index()].to;
    let reaches = |from: u16, to: u16| match demand.class {
        None => true,
        Some(FlowClass::Intra) => from == to,
        Some(FlowClass::Inter) => from != to,
    };
    let mut receivers = vec![0u128; network.datacenters().into()];
    for host in hosts().filter(|host| demand.receivers[host.index()]) {
        receivers[usize::from(network.datacenter_of(host))] += 1;
    }
    let choices = |host: HostId| {
        let home = network.datacenter_of(host);
        let reached = (0u16..).zip(&receivers).filter(|&(datacenter, _)| reaches(home, datacenter));
        let all: u128 = reached.map(|(_, count)| count).sum();
        all - u128::from(demand.receivers[host.index()] && reaches(home, home))
    };
    let sources: Vec<HostId> = hosts().filter(|&host| demand.senders[host.index()] && choices(host) > 0).collect();
    let Some(each) = (u128::from(demand.offered.bps()) << FRACTION).checked_div(sources.len() as u128) else {
        return bits;
    };

    let mut senders: BTreeMap<(NodeId, bool), Senders> = BTreeMap::new();
    for &host in &sources {
        bits[network.uplink(host).index()] += each;
        let (switch, receive) = (switch_of(host), demand.receivers[host.index()]);
        let datacenter = network.datacenter_of(host);
        let new = || Senders { switch, datacenter, share: each / choices(host), count: 0, receive };
        senders.entry((switch, receive)).or_insert_with(new).count += 1;
    }
    let mut by_switch: BTreeMap<NodeId, Vec<HostId>> = BTreeMap::new();
    for host in hosts().filter(|host| demand.receivers[host.index()]) {
        by_switch.entry(switch_of(host)).or_default().push(host);
    }
    for (&target, receivers) in &by_switch {
        let home = network.datacenter_of(receivers[0]);
        let mut at: BTreeMap<(Reverse<usize>, NodeId), u128> = BTreeMap::new();
        for group in senders.values().filter(|group| reaches(group.datacenter, home)) {
            // A host does not send to itself.
            let to_each = |host: HostId| {
                let itself = group.receive && group.switch == target && demand.senders[host.index()];
                group.share * (group.count - u128::from(itself))
            };
            for &host in receivers {
                bits[network.links()[network.uplink(host).index()].reverse.index()] += to_each(host);
            }
            if group.switch != target {
                let all: u128 = receivers.iter().map(|&host| to_each(host)).sum();
                let distance = distance(network, routes, group.switch, receivers[0]);
                *at.entry((Reverse(distance), group.switch)).or_default() += all;
            }
        }
        // The farthest switches first: a switch receives no more traffic after it has passed its share on.
        while let Some(((Reverse(distance), switch), amount)) = at.pop_first() {
            let ports = routes.from(switch).ports(receivers[0]);
            for &port in ports {
                let part = amount / ports.len() as u128;
                bits[port.index()] += part;
                if distance > 1 {
                    *at.entry((Reverse(distance - 1), network.links()[port.index()].to)).or_default() += part;
                }
            }
        }
    }
    bits
}

/// Links between switches on a shortest path.
fn distance(network: &Network, routes: &Routes, from: NodeId, to: HostId) -> usize {
    let is_switch = |node: NodeId| network.nodes()[node.index()].kind == NodeKind::Switch;
    let next = |&at: &NodeId| {
        let port = routes.from(at).ports(to).first()?;
        Some(network.links()[port.index()].to).filter(|&next| is_switch(next))
    };
    std::iter::successors(Some(from), next).count() - 1
}
