//! One or more trees of three tiers, or of two: racks of hosts, aggregation switches by pod, core switches over all pods;
//! and, where there are several trees, a border switch each, the borders joined in a full mesh of long-haul links. A k-ary
//! fat tree is one kind ([`crate::topology::FatTrees`]), the network of HPCC's and On-Ramp's simulations another (Li et
//! al., SIGCOMM 2019, §5.1: 5 pods of 4 racks and 4 aggregation switches, 16 cores, 16 hosts a rack). With one pod and no
//! core it is a leaf-spine network with the aggregation switches as spines; without these, racks are attached directly to
//! the border (GEMINI's testbed: Zeng et al., Fig. 3).

use crate::{Builder, LinkClass, Network, NetworkError, PortConfig};

/// The cables between the borders of two datacenters.
#[derive(Clone, Debug)]
pub struct InterLinks {
    /// The two datacenters, the lower number first.
    pub between: (u16, u16),
    /// Number of cables in parallel.
    pub count: u16,
    /// The port at each end, propagation delay included.
    pub port: PortConfig,
}

/// Equal hosts of one rack.
#[derive(Clone, Copy, Debug)]
pub struct RackHosts {
    /// Number of hosts.
    pub count: u16,
    /// A host's own port, usually without limit or marking.
    pub nic: PortConfig,
    /// The port of the edge switch towards a host.
    pub port: PortConfig,
}

/// Trees joined at their borders.
#[derive(Clone, Debug)]
pub struct Clos {
    /// Number of datacenters, at least 1, all alike.
    pub datacenters: u16,
    /// Pods of one tree, at least 1.
    pub pods: u16,
    /// Racks, each with its edge switch, of one pod, at least 1.
    pub edges: u16,
    /// Aggregation switches of one pod, each joined to every edge switch of its pod. None: the edge switches of several
    /// datacenters of one pod are joined to their border.
    pub aggregations: u16,
    /// Core switches of one tree: a multiple of `aggregations`. They are divided into `aggregations` equal parts: the
    /// first aggregation switch of every pod is joined to the first part, the second to the second. With no core
    /// switch: one pod only.
    pub cores: u16,
    /// The hosts of each rack of a tree, in order; a shorter list repeats from its beginning.
    pub racks: Vec<Vec<RackHosts>>,
    /// Ports between edge and aggregation switches.
    pub edge: PortConfig,
    /// Parallel cables between an edge and an aggregation switch.
    pub edge_links: u16,
    /// Ports between aggregation and core switches.
    pub core: PortConfig,
    /// Ports between core switches (where there are none aggregation switches, or else edge switches) and the border.
    pub border: PortConfig,
    /// Parallel cables from each of these to the border.
    pub border_links: u16,
    /// The long-haul cables; every two datacenters need an entry, or several if their cables differ.
    pub inter: Vec<InterLinks>,
}

impl Clos {
    /// Builds the network. Hosts are numbered by datacenter, pod, rack.
    ///
    /// # Errors
    /// When a count is zero or the tiers do not fit each other, a pair of datacenters has no link, or a port is invalid.
    pub fn build(&self) -> Result<Network, NetworkError> {
        self.lay()?.finish()
    }

    /// The nodes and cables, not yet numbered.
    ///
    /// # Errors
    /// As [`Clos::build`], but for ports.
    pub fn lay(&self) -> Result<Builder, NetworkError> {
        let shape = |message: String| Err(NetworkError::Shape(message));
        if self.datacenters == 0 || self.pods == 0 || self.edges == 0 {
            return shape("a tree has at least one datacenter, pod and edge switch".into());
        }
        if self.aggregations == 0 && (self.datacenters == 1 || self.pods > 1 || self.cores > 0) {
            return shape("racks without aggregation switches are joined by the borders of several datacenters".into());
        }
        if self.racks.is_empty() || self.edge_links == 0 {
            return shape("a tree has at least one rack, and a cable up from it".into());
        }
        if self.cores == 0 && self.pods > 1 {
            return shape(format!("{} pods have no core switches that join them", self.pods));
        }
        if self.aggregations > 0 && !self.cores.is_multiple_of(self.aggregations) {
            return shape(format!(
                "{} core switches are no multiple of a pod's {} aggregation switches",
                self.cores, self.aggregations
            ));
        }
        let mut builder = Builder::default();
        let borders: Vec<u32> = (0..self.datacenters).filter_map(|dc| self.tree(&mut builder, dc)).collect();
        for low in 0..self.datacenters {
            for high in low + 1..self.datacenters {
                let pair: Vec<_> = self.inter.iter().filter(|links| links.between == (low, high)).collect();
                if pair.is_empty() {
                    return shape(format!("datacenters {low} and {high} have no long-haul link"));
                }
                for links in pair {
                    for _ in 0..links.count {
                        let (a, b) = (borders[low as usize], borders[high as usize]);
                        builder.connect(a, b, LinkClass::Inter, links.port, links.port);
                    }
                }
            }
        }
        Ok(builder)
    }

    /// One tree; returns its border switch, which a lone tree lacks.
    fn tree(&self, builder: &mut Builder, dc: u16) -> Option<u32> {
        let cores: Vec<u32> = (0..self.cores).map(|core| builder.switch(dc, format!("dc{dc}.core{core}"))).collect();
        let part = usize::from(self.cores.checked_div(self.aggregations).unwrap_or(0));
        let mut racks = self.racks.iter().cycle();
        let mut host = 0;
        let mut tops = cores.clone();
        for pod in 0..self.pods {
            let aggregations: Vec<u32> =
                (0..self.aggregations).map(|agg| builder.switch(dc, format!("dc{dc}.pod{pod}.agg{agg}"))).collect();
            for edge in 0..self.edges {
                let switch = builder.switch(dc, format!("dc{dc}.pod{pod}.edge{edge}"));
                for hosts in racks.next().into_iter().flatten() {
                    for _ in 0..hosts.count {
                        let node = builder.host(dc, format!("dc{dc}.host{host}"));
                        builder.connect(node, switch, LinkClass::Host, hosts.nic, hosts.port);
                        host += 1;
                    }
                }
                for &aggregation in &aggregations {
                    for _ in 0..self.edge_links {
                        builder.connect(switch, aggregation, LinkClass::Edge, self.edge, self.edge);
                    }
                }
                if aggregations.is_empty() {
                    tops.push(switch);
                }
            }
            for (index, &aggregation) in aggregations.iter().enumerate() {
                for &core in &cores[index * part..(index + 1) * part] {
                    builder.connect(aggregation, core, LinkClass::Core, self.core, self.core);
                }
            }
            if cores.is_empty() && !aggregations.is_empty() {
                tops = aggregations;
            }
        }
        (self.datacenters > 1).then(|| {
            let border = builder.switch(dc, format!("dc{dc}.border"));
            for &top in &tops {
                for _ in 0..self.border_links {
                    builder.connect(top, border, LinkClass::Border, self.border, self.border);
                }
            }
            border
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, NodeKind, Relay, Routes, Switch};
    use units::{Rate, Span};

    fn hpcc(datacenters: u16) -> Clos {
        let port = |gbps| PortConfig::new(Rate::from_gbps(gbps), Span::from_us(1));
        Clos {
            datacenters,
            pods: 5,
            edges: 4,
            aggregations: 4,
            cores: 16,
            racks: vec![vec![RackHosts { count: 16, nic: port(100), port: port(100) }]],
            edge: port(400),
            edge_links: 1,
            core: port(400),
            border: port(400),
            border_links: 1,
            inter: (1..datacenters).map(|dc| InterLinks { between: (0, dc), count: 1, port: port(400) }).collect(),
        }
    }

    #[test]
    fn the_network_of_hpcc_has_its_counts_and_paths() {
        let network = hpcc(1).build().unwrap();
        assert_eq!(network.hosts().len(), 320);
        let switches = |part: &str| network.nodes().iter().filter(|node| node.name.contains(part)).count();
        assert_eq!((switches("edge"), switches("agg"), switches("core")), (20, 20, 16));
        assert_eq!(switches("border"), 0, "a lone tree needs none");
        // 320 hosts, 20 racks to 4 aggregations each, 20 aggregations to 4 cores each; two directions.
        assert_eq!(network.links().len(), 2 * (320 + 80 + 80));
        let routes = Routes::new(&network).unwrap();
        let hops = |a, b| routes.path(&network, HostId(a), HostId(b), |_, _| 0).len();
        assert_eq!((hops(0, 15), hops(0, 16), hops(0, 64)), (2, 4, 6));
        // Every core has a cable from one aggregation switch of each pod.
        for (node, details) in network.nodes().iter().enumerate() {
            if details.name.contains("core") {
                assert_eq!(network.links_out(crate::NodeId(node as u32)).len(), 5, "{}", details.name);
            }
        }
    }

    #[test]
    fn racks_may_differ_and_a_spine_needs_no_core() {
        let port = |gbps| PortConfig::new(Rate::from_gbps(gbps), Span::from_us(1));
        let rack = |count| RackHosts { count, nic: port(10), port: port(10) };
        let fast = RackHosts { count: 6, nic: port(100), port: port(100) };
        let clos = Clos {
            pods: 1,
            edges: 2,
            aggregations: 3,
            cores: 0,
            racks: vec![vec![rack(27)], vec![rack(30), fast]],
            edge_links: 4,
            ..hpcc(1)
        };
        let network = clos.build().unwrap();
        assert_eq!(network.hosts().len(), 63);
        assert_eq!(network.port(network.uplink(HostId(62))).config().rate, Rate::from_gbps(100));
        assert_eq!(network.links().iter().filter(|link| link.class == LinkClass::Edge).count(), 2 * 3 * 4 * 2);
        let two = Clos { cores: 0, pods: 1, ..hpcc(2) }.build().unwrap();
        assert_eq!(two.links().iter().filter(|link| link.class == LinkClass::Border).count(), 2 * 2 * 4);
        assert_eq!(two.nodes().iter().filter(|node| node.kind == NodeKind::Switch).count(), 2 * (4 + 4 + 1));
    }

    /// GEMINI's testbed: two racks a datacenter, both joined to the border.
    #[test]
    fn racks_may_attach_to_the_border() {
        let network = Clos { pods: 1, edges: 2, aggregations: 0, cores: 0, ..hpcc(2) }.build().unwrap();
        assert_eq!((network.hosts().len(), network.nodes().len()), (64, 64 + 2 * 3));
        let routes = Routes::new(&network).unwrap();
        let hops = |a, b| routes.path(&network, HostId(a), HostId(b), |_, _| 0).len();
        assert_eq!((hops(0, 15), hops(0, 16), hops(0, 32)), (2, 4, 5));
        let border = network.links().iter().filter(|link| link.class == LinkClass::Border).count();
        assert_eq!(border, 2 * 2 * 2);
    }

    #[test]
    fn mismatched_tiers_are_rejected() {
        let refusal = |it: Clos| it.build().unwrap_err().to_string();
        assert!(refusal(Clos { cores: 6, ..hpcc(1) }).contains("no multiple"));
        assert!(refusal(Clos { cores: 0, ..hpcc(1) }).contains("5 pods"));
        assert!(refusal(Clos { edges: 0, ..hpcc(1) }).contains("at least one"));
        assert!(refusal(hpcc(3)).contains("datacenters 1 and 2"));
        assert!(refusal(Clos { aggregations: 0, ..hpcc(2) }).contains("without aggregation"));
        assert!(refusal(Clos { aggregations: 0, pods: 1, cores: 0, ..hpcc(1) }).contains("without aggregation"));
    }

    #[test]
    fn every_long_haul_gets_relays() {
        let mut builder = hpcc(2).lay().unwrap();
        let plain = PortConfig::new(Rate::from_gbps(400), Span::from_us(1));
        let switch = Switch {
            buffer: units::Bytes::new(1 << 30),
            reserve: units::Bytes::ZERO,
            egress_alpha: None,
            pfc: None,
            int: false,
        };
        builder.relays(|port| Relay {
            switch,
            short: [plain, plain],
            long: PortConfig { buffer: plain.buffer, ..*port },
        });
        let network = builder.finish().unwrap();
        let relays: Vec<_> = network.nodes().iter().filter(|node| node.switch.is_some()).collect();
        assert_eq!(relays.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["dc0.relay0", "dc1.relay0"]);
        let routes = Routes::new(&network).unwrap();
        let path = routes.path(&network, HostId(0), HostId(320), |_, _| 0);
        let classes: Vec<_> = path.iter().map(|&link| network.links()[link.index()].class).collect();
        let inter = classes.iter().filter(|&&class| class == LinkClass::Inter).count();
        let border = classes.iter().filter(|&&class| class == LinkClass::Border).count();
        assert_eq!((path.len(), inter, border), (11, 1, 4));
    }
}
