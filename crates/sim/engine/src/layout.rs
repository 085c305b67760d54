//! The partitions of a network: one for each datacenter, its nodes and their inputs numbered from 0.

use fabric::{Network, NodeId};
use units::Span;

/// The location of every link and node: its partition, and its number there.
pub(crate) struct Layout {
    /// First node of each partition, and the end.
    pub(crate) node_start: Vec<u32>,
    /// First link (by the node that it leaves) of each partition, and the end.
    pub(crate) link_start: Vec<u32>,
    /// By link: its FIFO's number in the destination partition.
    pub(crate) fifo_of: Vec<u32>,
    /// By node: the range of its FIFOs, numbered in its partition.
    pub(crate) inputs: Vec<(u32, u32)>,
}

impl Layout {
    pub(crate) fn new(network: &Network) -> Self {
        let partitions = network.datacenters();
        let nodes = network.nodes();
        let first = |dc: u16| nodes.partition_point(|node| node.datacenter < dc) as u32;
        let node_start: Vec<u32> = (0..=partitions).map(first).collect();
        let link_start = node_start
            .iter()
            .map(|&node| {
                if node as usize == nodes.len() {
                    network.links().len() as u32
                } else {
                    network.links_out(NodeId(node)).start
                }
            })
            .collect();
        // The FIFOs of a node are together, in the order of link numbers: that order breaks ties.
        let mut counts = vec![0u32; nodes.len()];
        for link in network.links() {
            counts[link.to.index()] += 1;
        }
        let mut inputs = vec![(0, 0); nodes.len()];
        for window in node_start.windows(2) {
            let mut next = 0;
            for node in window[0]..window[1] {
                inputs[node as usize] = (next, next + counts[node as usize]);
                next += counts[node as usize];
            }
        }
        let mut filled = vec![0u32; nodes.len()];
        let mut fifo_of = Vec::with_capacity(network.links().len());
        for link in network.links() {
            let to = link.to.index();
            fifo_of.push(inputs[to].0 + filled[to]);
            filled[to] += 1;
        }
        Self { node_start, link_start, fifo_of, inputs }
    }

    pub(crate) fn partitions(&self) -> usize {
        self.node_start.len() - 1
    }

    pub(crate) fn partition_of(&self, node: NodeId) -> usize {
        self.node_start.partition_point(|&start| start <= node.0) - 1
    }
}

/// No window is longer: a time inside it fits the merge's keys (44 bits).
const MAX_WINDOW: Span = Span::from_ps(1 << 40);

/// Returns the maximum length of a window, which is the shortest link delay, and the shortest link delay between
/// partitions, if there is any.
pub(crate) fn lookaheads(network: &Network) -> (Span, Option<Span>) {
    let (mut window, mut between) = (MAX_WINDOW, None::<Span>);
    for link in network.links() {
        let delay = network.params()[link.params as usize].delay();
        let dc = |node: NodeId| network.nodes()[node.index()].datacenter;
        window = window.min(delay);
        if dc(link.from) != dc(link.to) {
            between = Some(between.map_or(delay, |shortest| shortest.min(delay)));
        }
    }
    (window, between)
}
