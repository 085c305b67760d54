//! A network as a graph: hosts and switches, directed links, and the datacenter of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;
use units::Rate;

use crate::{ImpairmentError, ImpairmentId, Impairments, Outages, PortConfig, PortError, PortParams, Switch};

/// A host or switch, numbered from 0, the nodes of one datacenter together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// A directed link and the port that feeds it, numbered from 0, the links out of one node together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// A host, numbered from 0 in the order of their creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

impl NodeId {
    /// Returns the index of the node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Returns the index of the link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    /// Returns the index of the host.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Type of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeKind {
    /// An end host.
    Host(HostId),
    /// A switch.
    Switch,
}

/// Position of a link in the network: loads, drops and port settings are stated by class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkClass {
    /// A host's own NIC, towards its switch.
    Nic,
    /// A switch's port towards a host.
    Host,
    /// Between edge and aggregation.
    Edge,
    /// Between aggregation and core.
    Core,
    /// Between core and border.
    Border,
    /// Between datacenters.
    Inter,
    /// Any other link between switches.
    Other,
}

impl LinkClass {
    /// Every class, from the hosts outwards.
    pub const ALL: [Self; 7] = [Self::Nic, Self::Host, Self::Edge, Self::Core, Self::Border, Self::Inter, Self::Other];

    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nic => "nic",
            Self::Host => "host",
            Self::Edge => "edge",
            Self::Core => "core",
            Self::Border => "border",
            Self::Inter => "inter",
            Self::Other => "other",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A host or switch.
#[derive(Clone, Hash, Debug)]
pub struct Node {
    /// Its type.
    pub kind: NodeKind,
    /// Its datacenter, from 0.
    pub datacenter: u16,
    /// Its name in results, such as `dc0.pod1.edge2`.
    pub name: String,
    /// The buffer that its ports share, if they do; never of a host.
    pub switch: Option<Switch>,
    /// The node is at one end of a long haul ([`Builder::relays`]).
    pub relay: bool,
}

/// A directed link.
#[derive(Clone, Hash, Debug)]
pub struct Link {
    /// Node at which it begins.
    pub from: NodeId,
    /// Node at which it ends.
    pub to: NodeId,
    /// Its class.
    pub class: LinkClass,
    /// Its port's settings, an index into [`Network::params`].
    pub params: u16,
    /// The same cable in the other direction.
    pub reverse: LinkId,
}

/// Reasons to reject a network.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum NetworkError {
    #[error("{from} to {to}: {source}")]
    Port { from: String, to: String, source: PortError },
    #[error("host {host} has {links} links; a host has exactly one")]
    HostLinks { host: String, links: usize },
    #[error("a network needs at least two hosts, not {hosts}")]
    TooFewHosts { hosts: usize },
    #[error("no path leads from {from} to {to}")]
    Unreachable { from: String, to: String },
    #[error("over 65,535 different ports")]
    TooManyParams,
    #[error("{from} to {to}: {source}")]
    Impairment { from: String, to: String, source: ImpairmentError },
    #[error("{from} to {to}: impairments are of ports of switches that share no buffer and have no credit queue")]
    ImpairedPort { from: String, to: String },
    #[error("{from} to {to}: there are no impairments with number {}", id.0)]
    UnknownImpairments { from: String, to: String, id: ImpairmentId },
    #[error("{0}")]
    Shape(String),
}

/// A finished network.
#[derive(Clone, Hash, Debug)]
pub struct Network {
    nodes: Vec<Node>,
    links: Vec<Link>,
    params: Vec<PortParams>,
    /// The links out of node `n` are `out_start[n]..out_start[n + 1]`.
    out_start: Vec<u32>,
    hosts: Vec<NodeId>,
    datacenters: u16,
    /// Outages of the links that have any, which are few.
    outages: BTreeMap<LinkId, Outages>,
    /// By [`ImpairmentId`].
    impairments: Vec<Arc<Impairments>>,
}

impl Network {
    /// The nodes by [`NodeId`].
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The links by [`LinkId`].
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The distinct port settings.
    pub fn params(&self) -> &[PortParams] {
        &self.params
    }

    /// A link's port settings.
    pub fn port(&self, link: LinkId) -> &PortParams {
        &self.params[self.links[link.index()].params as usize]
    }

    /// The links out of a node.
    pub fn links_out(&self, node: NodeId) -> std::ops::Range<u32> {
        self.out_start[node.index()]..self.out_start[node.index() + 1]
    }

    /// The hosts' nodes by [`HostId`].
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// Returns the number of datacenters.
    pub fn datacenters(&self) -> u16 {
        self.datacenters
    }

    /// Returns the datacenter of a host.
    pub fn datacenter_of(&self, host: HostId) -> u16 {
        self.nodes[self.hosts[host.index()].index()].datacenter
    }

    /// Returns the link from a host to its switch.
    pub fn uplink(&self, host: HostId) -> LinkId {
        LinkId(self.out_start[self.hosts[host.index()].index()])
    }

    /// The hosts of one datacenter, in order.
    pub fn hosts_in(&self, datacenter: u16) -> impl Iterator<Item = HostId> + '_ {
        (0..self.hosts.len() as u32).map(HostId).filter(move |&host| self.datacenter_of(host) == datacenter)
    }

    /// The name of a link: `dc0.edge1>dc0.host3`, with `#n` where cables run in parallel.
    pub fn link_name(&self, link: LinkId) -> String {
        let ends = &self.links[link.index()];
        let name = format!("{}>{}", self.nodes[ends.from.index()].name, self.nodes[ends.to.index()].name);
        let parallel: Vec<u32> =
            self.links_out(ends.from).filter(|&other| self.links[other as usize].to == ends.to).collect();
        if parallel.len() == 1 {
            return name;
        }
        let index = parallel.iter().position(|&other| other == link.0).unwrap_or(0);
        format!("{name}#{index}")
    }

    /// Returns the network with the ports of each switch sharing a buffer, or not, as `of` returns; it is called in
    /// order of nodes.
    #[must_use]
    pub fn sharing(mut self, mut of: impl FnMut(&Self, NodeId) -> Option<Switch>) -> Self {
        for node in 0..self.nodes.len() {
            if self.nodes[node].kind == NodeKind::Switch {
                self.nodes[node].switch = of(&self, NodeId(node as u32));
            }
        }
        self
    }

    /// Returns whether a node honours PFC frames: hosts do, and switches with a shared buffer.
    pub fn honors_pfc(&self, node: NodeId) -> bool {
        let node = &self.nodes[node.index()];
        node.kind != NodeKind::Switch || node.switch.is_some()
    }

    /// Returns whether a node sends PFC frames.
    pub fn sends_pfc(&self, node: NodeId) -> bool {
        self.nodes[node.index()].switch.is_some_and(|switch| switch.pfc.is_some())
    }

    /// The same with a link that is down at times.
    #[must_use]
    pub fn with_outages(mut self, link: LinkId, outages: Outages) -> Self {
        self.outages.insert(link, outages);
        self
    }

    /// Returns the outages of a link; none if it is never down.
    pub fn outages(&self, link: LinkId) -> Option<&Outages> {
        self.outages.get(&link)
    }

    /// Returns the links that are down at times.
    pub fn failing(&self) -> impl Iterator<Item = (LinkId, &Outages)> + '_ {
        self.outages.iter().map(|(&link, outages)| (link, outages))
    }

    /// Returns the network with the impairments that its ports refer to, by [`ImpairmentId`].
    ///
    /// # Errors
    /// If a port refers to impairments that are not among them, has a rate that these do not fit, or is a port that
    /// cannot have any.
    pub fn with_impairments(mut self, impairments: Vec<Arc<Impairments>>) -> Result<Self, NetworkError> {
        for link in &self.links {
            let config = self.params[link.params as usize].config();
            let Some(id) = config.impairments else { continue };
            let name = |node: NodeId| self.nodes[node.index()].name.clone();
            let (from, to) = (name(link.from), name(link.to));
            let node = &self.nodes[link.from.index()];
            if node.kind != NodeKind::Switch || node.switch.is_some() || config.credits.is_some() {
                return Err(NetworkError::ImpairedPort { from, to });
            }
            let Some(of_port) = impairments.get(usize::from(id.0)) else {
                return Err(NetworkError::UnknownImpairments { from, to, id });
            };
            of_port.check(config.rate).map_err(|source| NetworkError::Impairment { from, to, source })?;
        }
        self.impairments = impairments;
        Ok(self)
    }

    /// Returns the impairments of a link; none if it has none.
    pub fn impairments(&self, link: LinkId) -> Option<&Arc<Impairments>> {
        let id = self.port(link).config().impairments?;
        self.impairments.get(usize::from(id.0))
    }

    /// Returns the same network without marking at the ports of switches that `of` selects; called in order of nodes.
    ///
    /// # Errors
    /// If there are too many different ports.
    pub fn without_marks(mut self, mut of: impl FnMut(&Self, NodeId) -> bool) -> Result<Self, NetworkError> {
        for node in 0..self.nodes.len() {
            let id = NodeId(node as u32);
            if self.nodes[node].kind != NodeKind::Switch || !of(&self, id) {
                continue;
            }
            for link in self.links_out(id) {
                let config = PortConfig { ecn: None, phantom: None, ..*self.port(LinkId(link)).config() };
                let to = self.links[link as usize].to;
                self.links[link as usize].params = kind_of(&mut self.params, &config, [id, to], &self.nodes)?;
            }
        }
        Ok(self)
    }

    /// The summed rate of all links of a class out of one datacenter.
    pub fn capacity(&self, class: LinkClass, datacenter: u16) -> Rate {
        let of_class = |link: &&Link| link.class == class && self.nodes[link.from.index()].datacenter == datacenter;
        let total =
            self.links.iter().filter(of_class).map(|link| self.params[link.params as usize].config().rate.bps());
        Rate::from_bps(total.sum())
    }
}

/// Returns the index of a port's settings among the distinct ones. New settings are added.
fn kind_of(
    params: &mut Vec<PortParams>,
    port: &PortConfig,
    ends: [NodeId; 2],
    nodes: &[Node],
) -> Result<u16, NetworkError> {
    let known = params.iter().position(|known| known.config() == port);
    let index = if let Some(index) = known {
        index
    } else {
        let name = |end: NodeId| nodes[end.index()].name.clone();
        let prepared = PortParams::new(port);
        params.push(prepared.map_err(|source| NetworkError::Port {
            from: name(ends[0]),
            to: name(ends[1]),
            source,
        })?);
        params.len() - 1
    };
    u16::try_from(index).map_err(|_| NetworkError::TooManyParams)
}

/// A relay at each end of every cable between datacenters ([`Builder::relays`]).
#[derive(Clone, Copy, Debug)]
pub struct Relay {
    /// The relay itself.
    pub switch: Switch,
    /// The border's port towards its relay, and the relay's towards the border: the short cable.
    pub short: [PortConfig; 2],
    /// The relay's port towards the other relay: the long haul.
    pub long: PortConfig,
}

/// Collects nodes and cables, then numbers them.
#[derive(Default, Debug)]
pub struct Builder {
    nodes: Vec<Node>,
    cables: Vec<Cable>,
    hosts: u32,
}

#[derive(Debug)]
struct Cable {
    ends: [u32; 2],
    classes: [LinkClass; 2],
    ports: [PortConfig; 2],
}

impl Builder {
    /// Adds a host; hosts are numbered in the order of these calls. Returns its handle for [`Builder::connect`].
    pub fn host(&mut self, datacenter: u16, name: impl Into<String>) -> u32 {
        let kind = NodeKind::Host(HostId(self.hosts));
        self.hosts += 1;
        self.node(kind, datacenter, name.into())
    }

    /// Adds a switch with a queue per port. Returns its handle for [`Builder::connect`].
    pub fn switch(&mut self, datacenter: u16, name: impl Into<String>) -> u32 {
        self.node(NodeKind::Switch, datacenter, name.into())
    }

    /// Lets the ports of a switch share one buffer.
    pub fn share(&mut self, switch: u32, config: Switch) {
        self.nodes[switch as usize].switch = Some(config);
    }

    fn node(&mut self, kind: NodeKind, datacenter: u16, name: String) -> u32 {
        self.nodes.push(Node { kind, datacenter, name, switch: None, relay: false });
        self.nodes.len() as u32 - 1
    }

    /// Lays a cable: `there` is the port of `a` towards `b`, `back` the one of `b` towards `a`.
    pub fn connect(&mut self, a: u32, b: u32, class: LinkClass, there: PortConfig, back: PortConfig) {
        let class_from = |node: u32| match self.nodes[node as usize].kind {
            NodeKind::Host(_) => LinkClass::Nic,
            NodeKind::Switch => class,
        };
        let classes = [class_from(a), class_from(b)];
        self.cables.push(Cable { ends: [a, b], classes, ports: [there, back] });
    }

    /// Puts a relay at each end of every cable of class [`LinkClass::Inter`]: a short cable of class
    /// [`LinkClass::Border`] to the switch that was there, the long haul between the relays. `of` returns the relay and
    /// its ports for the port that fed the cable.
    pub fn relays(&mut self, of: impl Fn(&PortConfig) -> Relay) {
        let long_hauls = |cable: &Cable| cable.classes == [LinkClass::Inter; 2];
        let (cut, kept): (Vec<Cable>, Vec<Cable>) = std::mem::take(&mut self.cables).into_iter().partition(long_hauls);
        self.cables = kept;
        let mut of_datacenter = std::collections::BTreeMap::new();
        for Cable { ends, ports, .. } in cut {
            let mut side = |end: usize| {
                let datacenter = self.nodes[ends[end] as usize].datacenter;
                let count: &mut u32 = of_datacenter.entry(datacenter).or_default();
                let node = self.switch(datacenter, format!("dc{datacenter}.relay{count}"));
                *count += 1;
                self.nodes[node as usize].relay = true;
                let relay = of(&ports[end]);
                self.share(node, relay.switch);
                self.connect(ends[end], node, LinkClass::Border, relay.short[0], relay.short[1]);
                (node, relay.long)
            };
            let (near, far) = (side(0), side(1));
            self.connect(near.0, far.0, LinkClass::Inter, near.1, far.1);
        }
    }

    /// Numbers everything: nodes by datacenter, links by the node that they leave, both else as they were added.
    ///
    /// # Errors
    /// When a port is invalid, a host has not exactly one link, or there are fewer than two hosts.
    pub fn finish(self) -> Result<Network, NetworkError> {
        if self.hosts < 2 {
            return Err(NetworkError::TooFewHosts { hosts: self.hosts as usize });
        }
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        order.sort_by_key(|&node| self.nodes[node as usize].datacenter);
        let mut number = vec![0u32; order.len()];
        for (new, &old) in order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let nodes: Vec<Node> = order.iter().map(|&old| self.nodes[old as usize].clone()).collect();

        // Each cable is two directed links: (from, cable, direction).
        let mut directed: Vec<(u32, usize, usize)> = Vec::with_capacity(self.cables.len() * 2);
        for (cable, plan) in self.cables.iter().enumerate() {
            directed.push((number[plan.ends[0] as usize], cable, 0));
            directed.push((number[plan.ends[1] as usize], cable, 1));
        }
        directed.sort_unstable();
        let mut ids = vec![[0u32; 2]; self.cables.len()];
        for (link, &(_, cable, direction)) in directed.iter().enumerate() {
            ids[cable][direction] = link as u32;
        }

        let mut params: Vec<PortParams> = Vec::new();
        let mut links = Vec::with_capacity(directed.len());
        let mut out_start = vec![0u32; nodes.len() + 1];
        for &(from, cable, direction) in &directed {
            let plan = &self.cables[cable];
            let to = number[plan.ends[1 - direction] as usize];
            let port = &plan.ports[direction];
            let kind = kind_of(&mut params, port, [NodeId(from), NodeId(to)], &nodes)?;
            out_start[from as usize + 1] += 1;
            links.push(Link {
                from: NodeId(from),
                to: NodeId(to),
                class: plan.classes[direction],
                params: kind,
                reverse: LinkId(ids[cable][1 - direction]),
            });
        }
        for node in 0..nodes.len() {
            out_start[node + 1] += out_start[node];
        }
        let mut hosts = vec![NodeId(0); self.hosts as usize];
        for (node, details) in nodes.iter().enumerate() {
            if let NodeKind::Host(host) = details.kind {
                hosts[host.index()] = NodeId(node as u32);
                let degree = (out_start[node + 1] - out_start[node]) as usize;
                if degree != 1 {
                    return Err(NetworkError::HostLinks { host: details.name.clone(), links: degree });
                }
            }
        }
        let datacenters = nodes.iter().map(|node| node.datacenter + 1).max().unwrap_or(1);
        Ok(Network {
            nodes,
            links,
            params,
            out_start,
            hosts,
            datacenters,
            outages: BTreeMap::new(),
            impairments: Vec::new(),
        })
    }
}
