//! Networks read from files of other programs: nodes and links, with their known properties.

use std::collections::BTreeMap;

use crate::index::index32;
use crate::{ByteRange, Error};

/// A graph.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Graph {
    /// Nodes in the order of the file. Their names are unique.
    pub nodes: Vec<GraphNode>,
    /// Links in the order of the file.
    pub links: Vec<GraphLink>,
    /// Descriptions of omitted contents.
    pub left_out: Vec<String>,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Geographic position.
    pub position: Option<Position>,
    /// Position in the file.
    pub at: ByteRange,
}

/// A geographic position, in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Latitude, -90 to 90, positive north.
    pub latitude: f64,
    /// Longitude, -180 to 180, positive east.
    pub longitude: f64,
}

impl Position {
    /// Returns a position, if the numbers are valid degrees.
    pub(crate) fn of(latitude: f64, longitude: f64) -> Option<Self> {
        (latitude.abs() <= 90.0 && longitude.abs() <= 180.0).then_some(Self { latitude, longitude })
    }
}

/// A link.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphLink {
    /// Its nodes, as indices into [`Graph::nodes`].
    pub ends: [u32; 2],
    /// Direction in which it transmits.
    pub direction: LinkDirection,
    /// Its rate, if the file has it.
    pub rate: Option<Capacity>,
    /// Its delay, if the file has it.
    pub delay: Option<Delay>,
    /// Position in the file.
    pub at: ByteRange,
}

/// Direction in which a link transmits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDirection {
    /// Both directions, each at its rate.
    Both,
    /// From its first end to its second.
    Forward,
}

/// Delay of a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Delay {
    /// A time with its unit, such as `10ms`.
    Time(Quoted),
    /// A delay in units that the file does not state.
    Units(f64),
}

/// Capacity of a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Capacity {
    /// A rate with its unit, such as `10Gbps`.
    Rate(Quoted),
    /// A rate in bits per second.
    Bps(u64),
    /// A rate in units that the file does not state.
    Units(f64),
}

/// A value as written in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// The value.
    pub text: String,
    /// Position in the file.
    pub at: ByteRange,
}

/// Nodes by name, while a graph is read.
#[derive(Default)]
pub(crate) struct NodeNames(BTreeMap<String, u32>);

impl NodeNames {
    /// Adds a node; refuses a second node with the same name.
    pub(crate) fn add(&mut self, graph: &mut Graph, node: GraphNode) -> Result<u32, Error> {
        let number = index32(graph.nodes.len());
        if self.0.insert(node.name.clone(), number).is_some() {
            let problem = format!("two nodes are called `{}`", node.name);
            return Err(Error::text(node.at, problem, "expected another name"));
        }
        graph.nodes.push(node);
        Ok(number)
    }

    /// Returns the node with this name, added if it is new.
    pub(crate) fn of(&mut self, graph: &mut Graph, name: &str, at: ByteRange) -> u32 {
        let known = self.0.get(name).copied();
        known.unwrap_or_else(|| {
            let number = index32(graph.nodes.len());
            self.0.insert(name.to_owned(), number);
            graph.nodes.push(GraphNode { name: name.to_owned(), position: None, at });
            number
        })
    }

    /// Returns the node with this name, which must exist.
    pub(crate) fn known(&self, name: &str, at: ByteRange) -> Result<u32, Error> {
        let found = self.0.get(name).copied();
        found.ok_or_else(|| Error::text(at, format!("there is no node `{name}`"), "expected the name of a node"))
    }
}
