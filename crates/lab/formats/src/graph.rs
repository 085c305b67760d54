//! A network as other programs' files say it: nodes and links, with what the file knows of them.

use std::collections::BTreeMap;

use crate::{Error, Place};

/// A graph.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Graph {
    /// In the order of the file. Names differ.
    pub nodes: Vec<Node>,
    /// In the order of the file.
    pub links: Vec<Link>,
    /// What the file says and this does not, in words.
    pub left_out: Vec<String>,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Where it is on the earth.
    pub position: Option<Position>,
    /// Where it stands in the file.
    pub at: Place,
}

/// A place on the earth, in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// -90 to 90, north over zero.
    pub latitude: f64,
    /// -180 to 180, east over zero.
    pub longitude: f64,
}

impl Position {
    /// A position, if the numbers are degrees.
    pub(crate) fn of(latitude: f64, longitude: f64) -> Option<Self> {
        (latitude.abs() <= 90.0 && longitude.abs() <= 180.0).then_some(Self { latitude, longitude })
    }
}

/// A link.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its nodes, by their places among [`Graph::nodes`].
    pub ends: [u32; 2],
    /// Direction in which it carries.
    pub direction: Direction,
    /// Its rate, if the file has it.
    pub rate: Option<Capacity>,
    /// Its delay, if the file has it.
    pub delay: Option<Delay>,
    /// Where it stands in the file.
    pub at: Place,
}

/// Direction in which a link carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Both ways, each at its rate.
    Both,
    /// From its first end to its second.
    Forward,
}

/// Delay of a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Delay {
    /// With its unit, such as `10ms`.
    Time(Quoted),
    /// In units that the file does not name.
    Units(f64),
}

/// How much a link carries.
#[derive(Clone, PartialEq, Debug)]
pub enum Capacity {
    /// With its unit, such as `10Gbps`.
    Rate(Quoted),
    /// In bits per second.
    Bps(u64),
    /// In units that the file does not name.
    Units(f64),
}

/// A value as the file writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// The value.
    pub text: String,
    /// Where it stands.
    pub at: Place,
}

/// Nodes by name, while a graph is read.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, u32>);

impl Names {
    /// Adds a node; a second one of a name is refused.
    pub(crate) fn add(&mut self, graph: &mut Graph, node: Node) -> Result<u32, Error> {
        let number = graph.nodes.len() as u32;
        if self.0.insert(node.name.clone(), number).is_some() {
            let what = format!("two nodes are called `{}`", node.name);
            return Err(Error::text(node.at, what, "expected another name"));
        }
        graph.nodes.push(node);
        Ok(number)
    }

    /// The node of a name, added if it is new.
    pub(crate) fn of(&mut self, graph: &mut Graph, name: &str, at: Place) -> u32 {
        let known = self.0.get(name).copied();
        known.unwrap_or_else(|| {
            let number = graph.nodes.len() as u32;
            self.0.insert(name.to_owned(), number);
            graph.nodes.push(Node { name: name.to_owned(), position: None, at });
            number
        })
    }

    /// The node of a name that must be there.
    pub(crate) fn known(&self, name: &str, at: Place) -> Result<u32, Error> {
        let found = self.0.get(name).copied();
        found.ok_or_else(|| Error::text(at, format!("there is no node `{name}`"), "expected the name of a node"))
    }
}
