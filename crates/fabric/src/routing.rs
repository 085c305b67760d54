//! Shortest-path routing with equal-cost choices, looked up by index.

use std::collections::VecDeque;

use units::{below, mix64};

use crate::{HostId, LinkId, Network, NetworkError, NodeId, NodeKind};

/// Which of `n` equal ports a packet takes at a switch: a hash of the flow, of its entropy and of the switch.
#[inline]
pub fn choose(switch_salt: u64, flow: u32, entropy: u16, n: u32) -> u32 {
    below(mix64(switch_salt ^ (u64::from(flow) << 16 | u64::from(entropy))), n)
}

/// For each switch and each destination, the ports that lie on a shortest path (fewest links).
///
/// Destinations are grouped by the switch that a host hangs from, so the table is small: switches squared.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Row `row[node]`, column `attach[host]`: a group of ports.
    table: Vec<u16>,
    columns: usize,
    row: Vec<u32>,
    attach: Vec<u16>,
    last: Vec<LinkId>,
    groups: Vec<(u32, u16)>,
    ports: Vec<LinkId>,
}

/// No path, or the destination hangs from this very switch.
const NONE: u16 = u16::MAX;

impl Routes {
    /// Finds all shortest paths.
    ///
    /// # Errors
    /// When some host cannot reach another, or the network is too large for the table's 16-bit entries.
    pub fn new(network: &Network) -> Result<Self, NetworkError> {
        let nodes = network.nodes();
        let mut row = vec![u32::MAX; nodes.len()];
        let mut rows = 0;
        for (node, it) in nodes.iter().enumerate() {
            if it.kind == NodeKind::Switch {
                row[node] = rows;
                rows += 1;
            }
        }
        let mut column_of = vec![NONE; nodes.len()];
        let mut attached: Vec<NodeId> = Vec::new();
        let (mut attach, mut last) = (Vec::new(), Vec::new());
        for host in 0..network.hosts().len() {
            let up = network.uplink(HostId(host as u32));
            let switch = network.links()[up.index()].to;
            if nodes[switch.index()].kind != NodeKind::Switch {
                return Err(NetworkError::Shape(format!("{} is cabled to another host", nodes[switch.index()].name)));
            }
            if column_of[switch.index()] == NONE {
                column_of[switch.index()] = u16::try_from(attached.len())
                    .ok()
                    .filter(|&column| column != NONE)
                    .ok_or_else(|| NetworkError::Shape("over 65,534 switches have hosts".into()))?;
                attached.push(switch);
            }
            attach.push(column_of[switch.index()]);
            last.push(network.links()[up.index()].reverse);
        }

        let columns = attached.len();
        let mut table = vec![NONE; rows as usize * columns];
        let (mut groups, mut ports) = (Vec::new(), Vec::new());
        // Groups of one switch are contiguous, and compared only with each other.
        let mut group_of: Vec<std::collections::BTreeMap<Vec<LinkId>, u16>> = vec![Default::default(); rows as usize];
        for (column, &target) in attached.iter().enumerate() {
            let distance = distances(network, target);
            for (node, it) in nodes.iter().enumerate() {
                if it.kind != NodeKind::Switch || NodeId(node as u32) == target {
                    continue;
                }
                let next: Vec<LinkId> = network
                    .links_out(NodeId(node as u32))
                    .filter(|&link| {
                        let to = network.links()[link as usize].to;
                        nodes[to.index()].kind == NodeKind::Switch
                            && distance[to.index()] != u32::MAX
                            && distance[to.index()] + 1 == distance[node]
                    })
                    .map(LinkId)
                    .collect();
                if next.is_empty() {
                    continue;
                }
                let known = &mut group_of[row[node] as usize];
                let group = match known.get(&next) {
                    Some(&group) => group,
                    None => {
                        let group = u16::try_from(groups.len())
                            .ok()
                            .filter(|&group| group != NONE)
                            .ok_or_else(|| NetworkError::Shape("over 65,534 groups of equal paths".into()))?;
                        groups.push((ports.len() as u32, next.len() as u16));
                        ports.extend_from_slice(&next);
                        known.insert(next, group);
                        group
                    }
                };
                table[row[node] as usize * columns + column] = group;
            }
        }
        let routes = Self { table, columns, row, attach, last, groups, ports };
        routes.check(network, &attached)?;
        Ok(routes)
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

    /// The ports at `switch` on shortest paths to `host`: one, or several of equal cost.
    #[inline]
    pub fn ports(&self, switch: NodeId, host: HostId) -> &[LinkId] {
        let column = self.attach[host.index()] as usize;
        let group = self.table[self.row[switch.index()] as usize * self.columns + column];
        if group == NONE {
            return std::slice::from_ref(&self.last[host.index()]);
        }
        let (start, len) = self.groups[group as usize];
        &self.ports[start as usize..start as usize + len as usize]
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
            let ports = self.ports(at, to);
            path.push(ports[pick(at, ports.len() as u32) as usize]);
        }
    }
}

/// The number of links from every node to `target`, through switches only.
fn distances(network: &Network, target: NodeId) -> Vec<u32> {
    let mut distance = vec![u32::MAX; network.nodes().len()];
    distance[target.index()] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(node) = queue.pop_front() {
        for link in network.links_out(node) {
            // Cables run both ways, so the links out of a node lead to those with links into it.
            let other = network.links()[link as usize].to;
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
