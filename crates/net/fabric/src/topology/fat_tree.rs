//! One or more k-ary fat trees, each with a border switch, their borders joined in a full mesh of long-haul links.
//! With two datacenters and k = 8 this is Uno's network (SC 2025, §5.1).

use units::{Bytes, Rate, Span};

use super::clos::{Clos, InterLinks, RackHosts};
use crate::{Builder, Network, NetworkError, PortConfig};

/// Fat trees joined at their borders.
#[derive(Clone, Debug)]
pub struct FatTrees {
    /// Number of datacenters, at least 1.
    pub datacenters: u16,
    /// Ports of a switch: even, at least 2. A tree has k pods of k/2 edge and k/2 aggregation switches and
    /// (k/2)^2 core switches.
    pub k: u16,
    /// Hosts of one edge switch; k/2 in the textbook tree.
    pub hosts_per_edge: u16,
    /// A host's own port, usually without limit or marking.
    pub nic: PortConfig,
    /// The port of an edge switch towards a host.
    pub host: PortConfig,
    /// Ports between edge and aggregation switches.
    pub edge: PortConfig,
    /// Ports between aggregation and core switches.
    pub core: PortConfig,
    /// Ports between core and border switches.
    pub border: PortConfig,
    /// Parallel cables from each core switch to the border.
    pub border_links_per_core: u16,
    /// The long-haul cables; every two datacenters need an entry, or several if their cables differ.
    pub inter: Vec<InterLinks>,
}

impl FatTrees {
    /// Builds the network. Hosts are numbered by datacenter, pod, edge switch.
    ///
    /// # Errors
    /// When k is odd or zero, a count is zero, a pair of datacenters has no link, or a port is invalid.
    pub fn build(&self) -> Result<Network, NetworkError> {
        self.lay()?.finish()
    }

    /// The nodes and cables, not yet numbered.
    ///
    /// # Errors
    /// As [`FatTrees::build`], but for ports.
    pub fn lay(&self) -> Result<Builder, NetworkError> {
        let shape = |message: String| Err(NetworkError::Shape(message));
        if self.k < 2 || !self.k.is_multiple_of(2) {
            return shape(format!("a fat tree's k is even and at least 2, not {}", self.k));
        }
        if self.hosts_per_edge == 0 || self.datacenters == 0 {
            return shape("a fat tree has at least one datacenter and one host an edge switch".into());
        }
        let half = self.k / 2;
        Clos {
            datacenters: self.datacenters,
            pods: self.k,
            edges: half,
            aggregations: half,
            cores: half * half,
            racks: vec![vec![RackHosts { count: self.hosts_per_edge, nic: self.nic, port: self.host }]],
            edge: self.edge,
            edge_links: 1,
            core: self.core,
            border: self.border,
            border_links: self.border_links_per_core,
            inter: self.inter.clone(),
        }
        .lay()
    }

    /// Returns Uno's network: two 8-ary trees, 100 Gb/s everywhere, 1 us per link, eight cables between the borders and
    /// eight from each core switch, with the given port on every switch and long-haul delay. For tests and benchmarks;
    /// scenario files specify all this themselves.
    pub fn uno(port: PortConfig, long_haul: Span) -> Self {
        Self {
            datacenters: 2,
            k: 8,
            hosts_per_edge: 4,
            nic: PortConfig { buffer: Bytes::MAX, ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) },
            host: port,
            edge: port,
            core: port,
            border: port,
            border_links_per_core: 8,
            inter: vec![InterLinks { between: (0, 1), count: 8, port: PortConfig { delay: long_haul, ..port } }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, LinkClass, Routes, base_rtt};

    #[test]
    fn unos_network_has_its_sizes_and_round_trips() {
        let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
        let network = FatTrees::uno(port, Span::from_us(888)).build().unwrap();
        assert_eq!(network.hosts().len(), 256);
        assert_eq!(network.nodes().len(), 2 * (128 + 80 + 1));
        assert_eq!(network.capacity(LinkClass::Inter, 0), Rate::from_gbps(800));
        let routes = Routes::new(&network).unwrap();
        let path = |a, b| routes.path(&network, HostId(a), HostId(b), |_, _| 0);
        let rtt = |a, b| base_rtt(&network, &path(a, b), &path(b, a), 4160, 64);
        assert_eq!(path(0, 127).len(), 6);
        assert_eq!(rtt(0, 127), Span::from_ps(12_000_000 + 6 * (332_800 + 5_120)));
        assert_eq!(path(0, 255).len(), 9);
        assert_eq!(rtt(0, 255), Span::from_ps(16_000_000 + 2 * 888_000_000 + 9 * (332_800 + 5_120)));
    }

    #[test]
    fn an_odd_k_is_rejected() {
        let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
        let odd = FatTrees { k: 7, ..FatTrees::uno(port, Span::from_ms(1)) };
        assert!(odd.build().unwrap_err().to_string().contains("not 7"));
    }
}
