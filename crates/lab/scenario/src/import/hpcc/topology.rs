//! The simulator's topology: how many nodes, switches and links, which nodes are switches, then a link a line.

use std::collections::BTreeMap;

use units::{Rate, Span};

use super::HpccTokens;
use crate::decode::Field;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// More nodes or links are a mistake.
const MAX: u32 = 200_000;

/// A network as the file has it.
pub(super) struct Topology {
    /// By node: whether it is a switch.
    pub(super) switch: Vec<bool>,
    pub(super) links: Vec<HpccLink>,
    /// By node: which datacenter, from 0.
    pub(super) datacenter: Vec<u16>,
}

/// A cable.
#[derive(Clone, Copy)]
pub(super) struct HpccLink {
    pub(super) ends: [u32; 2],
    pub(super) rate: Rate,
    pub(super) delay: Span,
    /// The share of packets that it loses.
    pub(super) loss: Decimal,
}

/// Links as long as this separate datacenters, if they separate anything.
const LONG_HAUL: Span = Span::from_us(50);

pub(super) fn read(text: &str, source: u32, notes: &mut Vec<String>) -> Result<Topology, SpannedError> {
    let mut tokens = HpccTokens::new(text, source);
    let nodes: u32 = tokens.at_most(MAX, "the number of nodes")?;
    let switches: u32 = tokens.at_most(nodes, "the number of switches")?;
    let count: u32 = tokens.at_most(MAX, "the number of links")?;
    let mut switch = vec![false; nodes as usize];
    for _ in 0..switches {
        let node = tokens.node(nodes)?;
        if switch[node.0 as usize] {
            return Err(SpannedError::new(node.1, format!("switch {} is named twice", node.0)).label("named before"));
        }
        switch[node.0 as usize] = true;
    }
    let mut links: Vec<HpccLink> = Vec::new();
    let mut known: BTreeMap<[u32; 2], usize> = BTreeMap::new();
    let mut parallel = 0;
    let mut cables = vec![None::<SourceSpan>; nodes as usize];
    for _ in 0..count {
        let (a, b) = (tokens.node(nodes)?, tokens.node(nodes)?);
        let value = |(token, origin): (&str, SourceSpan)| Node { value: Value::string(token), origin };
        let rate = Rate::decode(&value(tokens.needed("a rate such as 100Gbps")?))?;
        let delay = tokens.needed("a delay such as 1000ns")?;
        let link = HpccLink {
            ends: [a.0, b.0],
            rate,
            delay: Span::decode(&value(delay))?,
            loss: tokens.number::<Decimal>("the share of packets that are lost")?,
        };
        if link.delay.is_zero() {
            return Err(
                SpannedError::new(delay.1, "a link has a delay over zero").label("expected a time such as 1000ns")
            );
        }
        if a.0 == b.0 {
            return Err(SpannedError::new(b.1, "a link joins two different nodes").label("the same node"));
        }
        if !switch[a.0 as usize] && !switch[b.0 as usize] {
            return Err(SpannedError::new(b.1, format!("nodes {} and {} are both hosts", a.0, b.0))
                .label("a host's link leads to a switch"));
        }
        let key = [a.0.min(b.0), a.0.max(b.0)];
        if let Some(&index) = known.get(&key) {
            // The simulator keeps one link to a neighbour: the last.
            links[index] = link;
            parallel += 1;
            continue;
        }
        for end in [a, b] {
            if !switch[end.0 as usize] && cables[end.0 as usize].replace(end.1).is_some() {
                return Err(SpannedError::new(end.1, format!("host {} has a second link", end.0))
                    .label("a host has one link here"));
            }
        }
        known.insert(key, links.len());
        links.push(link);
    }
    if parallel > 0 {
        notes.push(format!(
            "{parallel} links join nodes that were joined before; as in the simulator, the last one is used"
        ));
    }
    let unattached = (0..nodes).find(|&node| !switch[node as usize] && cables[node as usize].is_none());
    if let Some(node) = unattached {
        return Err(SpannedError::new(SourceSpan::new(source, 0..0), format!("host {node} has no link")));
    }
    let datacenter = datacenters(&switch, &links, notes);
    Ok(Topology { switch, links, datacenter })
}

/// Returns the node that represents a node's part; halves the path to it.
fn root(part: &mut [usize], mut node: usize) -> usize {
    while part[node] != node {
        part[node] = part[part[node]];
        node = part[node];
    }
    node
}

/// Returns the datacenter of each node: the parts that long links separate, if each part has a host.
fn datacenters(switch: &[bool], links: &[HpccLink], notes: &mut Vec<String>) -> Vec<u16> {
    let mut part: Vec<usize> = (0..switch.len()).collect();
    for link in links.iter().filter(|link| link.delay < LONG_HAUL) {
        let [a, b] = link.ends.map(|end| root(&mut part, end as usize));
        part[a.max(b)] = a.min(b);
    }
    let roots: Vec<usize> = (0..switch.len()).map(|node| root(&mut part, node)).collect();
    let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
    for (node, &root) in roots.iter().enumerate() {
        if !switch[node] {
            let next = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
            numbers.entry(root).or_insert(next);
        }
    }
    let complete = roots.iter().all(|root| numbers.contains_key(root));
    if !complete || numbers.len() < 2 || numbers.len() > 1_000 {
        return vec![0; switch.len()];
    }
    notes.push(format!("links of {LONG_HAUL} and more separate {} datacenters", numbers.len()));
    roots.iter().map(|root| numbers[root]).collect()
}

/// The largest base round trip and bandwidth-delay product of all pairs of hosts, as the simulator has them: twice the
/// delay and, one way, the time that a payload takes on each link, in whole nanoseconds.
pub(super) struct Largest {
    pub(super) rtt: Span,
    pub(super) bdp: u64,
}

impl Topology {
    pub(super) fn name(&self, node: u32) -> String {
        if self.switch[node as usize] { format!("switch{node}") } else { format!("host{node}") }
    }

    /// Returns the rate of the first host's NIC.
    pub(super) fn nic_rate(&self) -> Rate {
        let first = index32(self.switch.iter().position(|&switch| !switch).unwrap_or(0));
        self.links.iter().find(|link| link.ends.contains(&first)).map_or(Rate::ZERO, |link| link.rate)
    }

    pub(super) fn largest(&self, payload: u32) -> Largest {
        let mut neighbours: Vec<Vec<(u32, HpccLink)>> = vec![Vec::new(); self.switch.len()];
        for link in &self.links {
            let [a, b] = link.ends;
            neighbours[a as usize].push((b, *link));
            neighbours[b as usize].push((a, *link));
        }
        for list in &mut neighbours {
            list.sort_by_key(|entry| entry.0);
        }
        let (mut rtt, mut bdp) = (0u128, 0u128);
        for host in (0..index32(self.switch.len())).filter(|&node| !self.switch[node as usize]) {
            // Delay and sending time in nanoseconds, and the narrowest link, along the first shortest path found.
            let mut reached: Vec<Option<(u128, u128, u64)>> = vec![None; self.switch.len()];
            reached[host as usize] = Some((0, 0, u64::MAX));
            let mut order = vec![host];
            let mut at = 0;
            while let Some(&node) = order.get(at) {
                at += 1;
                let Some((delay, sending, narrowest)) = reached[node as usize] else { continue };
                for &(next, link) in &neighbours[node as usize] {
                    if reached[next as usize].is_some() {
                        continue;
                    }
                    let bps = link.rate.bps();
                    let one = u128::from(payload) * 8_000_000_000 / u128::from(bps.max(1));
                    let delay = delay + u128::from(link.delay.unsigned_ps() / 1_000);
                    reached[next as usize] = Some((delay, sending + one, narrowest.min(bps)));
                    if self.switch[next as usize] {
                        order.push(next);
                    }
                }
            }
            for (node, path) in reached.iter().enumerate() {
                let (false, Some((delay, sending, narrowest))) = (self.switch[node], path) else { continue };
                let round = delay * 2 + sending;
                rtt = rtt.max(round);
                if index32(node) != host {
                    bdp = bdp.max(round * u128::from(*narrowest) / 8_000_000_000);
                }
            }
        }
        let ns = i64::try_from(rtt).unwrap_or(i64::MAX / 1_000);
        Largest { rtt: Span::from_ns(ns), bdp: u64::try_from(bdp).unwrap_or(u64::MAX) }
    }
}
