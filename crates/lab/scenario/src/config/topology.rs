//! `[topology]`: hosts, switches, links.

mod custom;

use std::num::NonZeroU16;

use fabric::LinkClass;
use serde_json::{Value as Json, json};
use units::{Rate, Span};

use crate::decode::{Field, Located, kinds, table, unexpected};
use crate::error::SpannedError;
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

pub(crate) use custom::AttachedHosts;
pub use custom::{Cable, CustomTopology, NodeSpec, NodeWord};

const fn count(n: u16) -> NonZeroU16 {
    match NonZeroU16::new(n) {
        Some(count) => count,
        None => NonZeroU16::MIN,
    }
}

kinds! {
    /// Hosts, switches and links.
    Topology {
        /// Fat trees with border switches.
        FatTrees(FatTrees) = "fat-trees",
        /// Trees of any shape, and leaf-spine networks.
        Clos(Clos) = "clos",
        /// Two switches.
        Dumbbell(Dumbbell) = "dumbbell",
        /// One switch.
        SingleSwitch(SingleSwitch) = "single-switch",
        /// Any graph.
        Custom(CustomTopology) = "custom",
    }
}

table! {
    /// `kind = "fat-trees"`: k-ary fat trees, each with a border switch, the borders joined in a full mesh.
    FatTrees {
        /// Number of trees.
        datacenters: NonZeroU16 = count(2);
        /// Ports of a switch, even: a tree has k pods of k/2 edge and k/2 aggregation switches and (k/2)^2 core switches.
        k: Located<Arity> = Located::default_of(Arity(8));
        /// Hosts of one edge switch; by default k/2.
        hosts_per_edge: Option<NonZeroU16> = None;
        /// Rate of every link that has no rate of its own.
        rate: Located<Rate> = Located::default_of(Rate::from_gbps(100));
        /// Rate of hosts' links; by default `rate`.
        host_rate: Option<Rate> = None;
        /// Rate of links between edge and aggregation; by default `rate`. Either this or `oversubscription`.
        edge_rate: Option<Located<Rate>> = None;
        /// Rate of links between aggregation and core; by default `rate`.
        core_rate: Option<Rate> = None;
        /// Rate of links between core and border; by default `rate`.
        border_rate: Option<Rate> = None;
        /// Rate of each link between datacenters; by default `rate`.
        inter_rate: Option<Rate> = None;
        /// Capacity of an edge switch's hosts over that of its uplinks: sets `edge_rate`.
        oversubscription: Option<Located<Decimal>> = None;
        /// Propagation delay of every link inside a datacenter, over zero; 1us if `intra_rtt` is not given.
        link_delay: Option<Located<Span>> = None;
        /// Base RTT between pods, of a full packet and its acknowledgement: solves `link_delay`, to 12 ps.
        intra_rtt: Option<Located<Span>> = None;
        /// Propagation delay of links between datacenters; either this or `inter_rtt`.
        inter_delay: Option<Located<Span>> = None;
        /// Base RTT between datacenters: solves `inter_delay`, to 2 ps; 2ms if neither is given.
        inter_rtt: Option<Located<Span>> = None;
        /// Parallel links from each core switch to its border switch.
        border_links_per_core: NonZeroU16 = count(8);
        /// Parallel links between every two borders.
        inter_links: NonZeroU16 = count(8);
        /// Pairs of datacenters whose links differ.
        inter: Vec<InterPair> = Vec::new();
    }
}

table! {
    /// The links between two datacenters, where they differ from the others.
    InterPair {
        /// The two datacenters, from 0.
        between: Located<Vec<u16>>;
        /// Number of links; by default `inter_links`.
        links: Option<NonZeroU16> = None;
        /// Rate of each; by default `inter_rate`.
        rate: Option<Rate> = None;
        /// Propagation delay; either this or `rtt`, by default as all.
        delay: Option<Located<Span>> = None;
        /// Base RTT between the two: solves `delay`.
        rtt: Option<Located<Span>> = None;
    }
}

table! {
    /// `kind = "clos"`: trees of three tiers or two. Each edge switch (top of rack) is joined to every aggregation switch of its pod; the first aggregation switch of every pod to the first of equal parts of the core switches, the second to the second, and so on. Without core switches and with one pod it is a leaf-spine network, whose spines are its aggregation switches. Several trees have a border switch each, joined to every core switch (without core: every spine, and without these every edge switch), the borders in a full mesh.
    Clos {
        /// Number of trees, all alike.
        datacenters: NonZeroU16 = count(1);
        /// Pods of a tree.
        pods: NonZeroU16 = count(1);
        /// Racks, each with an edge switch, of a pod.
        tors: NonZeroU16;
        /// Aggregation switches of a pod; 0, where several trees have one pod and no core, joins edge switches to the border.
        aggs: Located<u16>;
        /// Core switches of a tree, a multiple of `aggs`; needed where there are several pods.
        cores: Located<u16> = Located::default_of(0);
        /// Hosts of a rack, one number or a list with one for each rack of a tree.
        hosts_per_tor: Located<EachHost<NonZeroU16>>;
        /// Rate of every link that has no rate of its own.
        rate: Rate = Rate::from_gbps(100);
        /// Rate of each host's link, one or a list with one for each host of a tree; by default `rate`.
        host_rate: Option<Located<EachHost<Rate>>> = None;
        /// Rate of links between edge and aggregation; by default `rate`.
        edge_rate: Option<Rate> = None;
        /// Parallel links from an edge to an aggregation switch.
        edge_links: NonZeroU16 = NonZeroU16::MIN;
        /// Rate of links between aggregation and core; by default `rate`.
        core_rate: Option<Rate> = None;
        /// Rate of links between core and border; by default `rate`.
        border_rate: Option<Rate> = None;
        /// Parallel links from each core switch (without core: each spine) to the border switch.
        border_links: NonZeroU16 = NonZeroU16::MIN;
        /// Propagation delay of every link inside a datacenter, over zero.
        link_delay: Located<Span> = Located::default_of(Span::from_us(1));
        /// Rate of each link between datacenters; by default `rate`.
        inter_rate: Option<Rate> = None;
        /// Parallel links between every two borders.
        inter_links: NonZeroU16 = NonZeroU16::MIN;
        /// Propagation delay of links between datacenters, over zero.
        inter_delay: Located<Span> = Located::default_of(Span::from_ms(1));
    }
}

/// One value for all hosts, or one for each.
#[derive(Clone, PartialEq, Debug)]
pub enum EachHost<T> {
    /// The same for all.
    Same(T),
    /// By host.
    Each(Vec<T>),
}

impl<T: Copy> EachHost<T> {
    /// The value of a host; none beyond the list's end.
    pub fn of(&self, host: usize) -> Option<T> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Each(values) => values.get(host).copied(),
        }
    }

    /// Refuses a list of another length.
    pub(crate) fn check(at: &Located<Self>, hosts: usize) -> Result<(), SpannedError> {
        match &at.value {
            Self::Each(values) if values.len() != hosts => {
                Err(SpannedError::new(at.origin, format!("{} values for {hosts} hosts", values.len()))
                    .label(format!("expected one value, or {hosts}")))
            }
            _ => Ok(()),
        }
    }
}

impl<T: Field> Field for EachHost<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        match node.value {
            Value::Array(_) => Vec::decode(node).map(Self::Each),
            _ => T::decode(node).map(Self::Same),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Same(value) => value.encode(),
            Self::Each(values) => values.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [T::schema(), Vec::<T>::schema()] })
    }
}

table! {
    /// `kind = "dumbbell"`: hosts on two switches with one link between them.
    Dumbbell {
        /// Hosts on the left, numbered from 0.
        left: NonZeroU16;
        /// Hosts on the right, numbered after those on the left.
        right: NonZeroU16;
        /// Rate of the link between the switches.
        rate: Located<Rate> = Located::default_of(Rate::from_gbps(100));
        /// Its propagation delay.
        delay: Located<Span> = Located::default_of(Span::from_us(1));
        /// Rate of each host's link, one or a list; by default `rate`.
        host_rate: Option<Located<EachHost<Rate>>> = None;
        /// Propagation delay of each host's link, one or a list.
        host_delay: Located<EachHost<Span>> = Located::default_of(EachHost::Same(Span::from_us(1)));
        /// Puts the sides into two datacenters, with the link between them as the long haul.
        two_datacenters: bool = false;
    }
}

table! {
    /// `kind = "single-switch"`: hosts on one switch.
    SingleSwitch {
        /// Number of hosts, at least 2.
        hosts: Located<NonZeroU16>;
        /// Rate of each host's link, one or a list.
        rate: Located<EachHost<Rate>> = Located::default_of(EachHost::Same(Rate::from_gbps(100)));
        /// Propagation delay of each host's link, one or a list.
        delay: Located<EachHost<Span>> = Located::default_of(EachHost::Same(Span::from_us(1)));
    }
}

impl Field for LinkClass {
    const EXPECTS: &'static str = "a link class such as \"inter\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let Some(name) = node.as_str() else { return Err(unexpected::<Self>(node)) };
        Self::from_name(name).ok_or_else(|| {
            SpannedError::new(node.origin, format!("unknown link class `{name}`"))
                .label("unknown link class")
                .suggest(name, Self::ALL.map(Self::name))
        })
    }
    fn encode(&self) -> Value {
        Value::string(self.name())
    }
    fn schema() -> Json {
        json!({ "enum": Self::ALL.map(Self::name) })
    }
}

/// Refuses two keys for one setting.
pub(super) fn either<T, U>(
    one: Option<&Located<T>>,
    name: &str,
    other: Option<&Located<U>>,
    other_name: &str,
) -> Result<(), SpannedError> {
    match (one, other) {
        (Some(_), Some(other)) => {
            Err(SpannedError::new(other.origin, format!("`{name}` and `{other_name}` have the same meaning: give one"))
                .label(format!("and also `{name}`")))
        }
        _ => Ok(()),
    }
}

impl Topology {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        match self {
            Self::FatTrees(trees) => trees.check(),
            Self::Clos(clos) => clos.check(),
            Self::Dumbbell(dumbbell) => {
                let hosts = usize::from(dumbbell.left.get()) + usize::from(dumbbell.right.get());
                if let Some(rate) = &dumbbell.host_rate {
                    EachHost::check(rate, hosts)?;
                }
                EachHost::check(&dumbbell.host_delay, hosts)
            }
            Self::SingleSwitch(single) => {
                let hosts = usize::from(single.hosts.get());
                if hosts < 2 {
                    return Err(SpannedError::new(single.hosts.origin, "one host has no other host to send to")
                        .label("expected at least 2"));
                }
                EachHost::check(&single.rate, hosts)?;
                EachHost::check(&single.delay, hosts)
            }
            Self::Custom(custom) => custom.check(),
        }
    }
}

/// Number of ports of each switch of a fat tree: even, 2 to 128.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arity(u16);

impl Arity {
    /// The number of ports.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Field for Arity {
    const EXPECTS: &'static str = "an even number, 2 to 128";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let Value::Integer(k) = node.value else { return Err(unexpected::<Self>(node)) };
        match u16::try_from(k) {
            Ok(even @ 2..=128) if even % 2 == 0 => Ok(Self(even)),
            _ => {
                let error = SpannedError::new(node.origin, format!("a fat tree's k is even, 2 to 128, not {k}"))
                    .label(format!("expected {}", Self::EXPECTS));
                Err(if (1..128).contains(&k) { error.help(format!("did you mean {}?", k + 1)) } else { error })
            }
        }
    }
    fn encode(&self) -> Value {
        Value::Integer(self.0.into())
    }
    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 2, "maximum": 128, "multipleOf": 2 })
    }
}

impl FatTrees {
    fn check(&self) -> Result<(), SpannedError> {
        either(self.edge_rate.as_ref(), "edge_rate", self.oversubscription.as_ref(), "oversubscription")?;
        either(self.link_delay.as_ref(), "link_delay", self.intra_rtt.as_ref(), "intra_rtt")?;
        either(self.inter_delay.as_ref(), "inter_delay", self.inter_rtt.as_ref(), "inter_rtt")?;
        if let Some(at) = self.oversubscription.filter(|at| at.is_zero()) {
            return Err(
                SpannedError::new(at.origin, "an oversubscription of 0 needs endless uplinks").label("expected over 0")
            );
        }
        for pair in &self.inter {
            either(pair.delay.as_ref(), "delay", pair.rtt.as_ref(), "rtt")?;
            let last = self.datacenters.get();
            match pair.between.as_slice() {
                &[a, b] if a != b && a < last && b < last => {}
                _ => {
                    return Err(SpannedError::new(pair.between.origin, "`between` names two datacenters")
                        .label(format!("expected two different numbers from 0 to {}", last - 1)));
                }
            }
        }
        Ok(())
    }
}

impl Clos {
    /// Racks of a tree.
    fn racks(&self) -> usize {
        usize::from(self.pods.get()) * usize::from(self.tors.get())
    }

    /// The number of hosts of each rack of a tree.
    pub(crate) fn hosts(&self) -> Vec<u16> {
        (0..self.racks()).filter_map(|rack| self.hosts_per_tor.of(rack).map(NonZeroU16::get)).collect()
    }

    fn check(&self) -> Result<(), SpannedError> {
        let racks = self.racks();
        if let EachHost::Each(values) = &self.hosts_per_tor.value
            && values.len() != racks
        {
            let message = format!("{} numbers for {racks} racks of a tree", values.len());
            return Err(
                SpannedError::new(self.hosts_per_tor.origin, message).label(format!("expected one number, or {racks}"))
            );
        }
        if let Some(rates) = &self.host_rate {
            EachHost::check(rates, self.hosts().into_iter().map(usize::from).sum())?;
        }
        let (cores, aggs, pods) = (*self.cores, *self.aggs, self.pods.get());
        if aggs == 0 && (self.datacenters.get() == 1 || pods > 1 || cores > 0) {
            return Err(SpannedError::new(self.aggs.origin, "no aggregation switch joins the edge switches of a pod")
                .label("expected 1 or more")
                .help(
                    "0 is for several datacenters of one pod without core switches, joined by their border switches",
                ));
        }
        if cores == 0 && pods > 1 {
            return Err(SpannedError::new(
                self.cores.origin,
                format!("{pods} pods have no core switches that join them"),
            )
            .label("expected a multiple of `aggs`")
            .help(format!("give cores = {aggs}, or any multiple of it")));
        }
        if aggs > 0 && !cores.is_multiple_of(aggs) {
            let message = format!("{cores} core switches are no multiple of the {aggs} aggregation switches of a pod");
            return Err(SpannedError::new(self.cores.origin, message).label("expected a multiple of `aggs`"));
        }
        Ok(())
    }
}
