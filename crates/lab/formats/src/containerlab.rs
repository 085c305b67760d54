//! containerlab's topologies: YAML with `topology.nodes` and `topology.links`.
//!
//! Only the names of nodes are read. A link is `endpoints: ["a:eth1", "b:eth2"]`, or the longer form with `type: veth`
//! and endpoints with `node`. Links to the host, to bridges by name and to dummies are omitted. YAML aliases are not
//! resolved in names of nodes or links; so a file cannot grow when it is read.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, Span};

use crate::graph::{Graph, GraphLink, GraphNode, LinkDirection, NodeNames};
use crate::lines::Lines;
use crate::{ByteRange, Error, counted};

/// Maximum nesting depth of values.
const DEPTH: usize = 64;

/// A value of a file.
enum TopologyValue<'a> {
    Scalar(Cow<'a, str>, ByteRange),
    List(Vec<TopologyValue<'a>>, ByteRange),
    Table(Vec<(TopologyValue<'a>, TopologyValue<'a>)>, ByteRange),
    Alias(ByteRange),
}

impl<'a> TopologyValue<'a> {
    fn at(&self) -> ByteRange {
        match self {
            Self::Scalar(_, at) | Self::List(_, at) | Self::Table(_, at) | Self::Alias(at) => *at,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<&TopologyValue<'a>> {
        match self {
            Self::Table(entries, _) => {
                entries.iter().find(|(known, _)| known.text() == Some(key)).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// A list or table that is being read.
struct OpenContainer<'a> {
    table: bool,
    values: Vec<TopologyValue<'a>>,
    at: ByteRange,
}

impl<'a> OpenContainer<'a> {
    fn closed(self) -> TopologyValue<'a> {
        if !self.table {
            return TopologyValue::List(self.values, self.at);
        }
        let mut values = self.values.into_iter();
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            entries.push((key, value));
        }
        TopologyValue::Table(entries, self.at)
    }
}

fn tree<'a>(text: &'a str) -> Result<Option<TopologyValue<'a>>, Error> {
    let lines = Lines::new(text);
    let byte_range = |span: Span| {
        let start = lines.byte(span.start.line().saturating_sub(1), span.start.col());
        let end = lines.byte(span.end.line().saturating_sub(1), span.end.col());
        ByteRange::new(start..end.max(start))
    };
    let mut open: Vec<OpenContainer<'a>> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = lines.from(error.marker().line().saturating_sub(1), error.marker().col());
            Error::text(at, format!("this is not YAML: {}", error.info()), "expected a containerlab topology")
        })?;
        let value = match event {
            Event::Scalar(text, ..) => TopologyValue::Scalar(text, byte_range(span)),
            Event::Alias(_) => TopologyValue::Alias(byte_range(span)),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= DEPTH {
                    let problem = format!("values are nested over {DEPTH} deep");
                    return Err(Error::text(byte_range(span), problem, "expected a containerlab topology"));
                }
                let table = matches!(event, Event::MappingStart(..));
                open.push(OpenContainer { table, values: Vec::new(), at: byte_range(span) });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => done.closed(),
                None => continue,
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                continue;
            }
        };
        match open.last_mut() {
            Some(outer) => outer.values.push(value),
            // The first document is the topology.
            None => return Ok(Some(value)),
        }
    }
    Ok(None)
}

/// Reads a topology.
///
/// # Errors
/// If the text is not YAML or has no `topology.nodes`, or a link has an unknown end.
pub fn read(text: &str) -> Result<Graph, Error> {
    let Some(root) = tree(text)? else {
        return Err(Error::text(ByteRange::new(0..0), "the file is empty", "expected a containerlab topology"));
    };
    let topology = root.get("topology");
    let Some(TopologyValue::Table(nodes, _)) = topology.and_then(|topology| topology.get("nodes")) else {
        return Err(Error::text(
            ByteRange::new(0..0),
            "there is no `topology.nodes`",
            "expected a containerlab topology",
        ));
    };
    let mut graph = Graph::default();
    let mut names = NodeNames::default();
    for (key, value) in nodes {
        let Some(name) = key.text() else {
            return Err(Error::text(key.at(), "this is no name of a node", "expected a text"));
        };
        if name == "<<" {
            return Err(Error::text(
                value.at(),
                "YAML merge keys are not supported for nodes",
                "expected the nodes themselves",
            ));
        }
        names.add(&mut graph, GraphNode { name: name.to_owned(), position: None, at: key.at() })?;
    }
    let mut outside = 0;
    match topology.and_then(|topology| topology.get("links")) {
        None => {}
        Some(TopologyValue::List(links, _)) => {
            for link in links {
                match ends(link, &names)? {
                    Some(ends) => {
                        let direction = LinkDirection::Both;
                        graph.links.push(GraphLink { ends, direction, rate: None, delay: None, at: link.at() });
                    }
                    None => outside += 1,
                }
            }
        }
        Some(other) => return Err(Error::text(other.at(), "`links` is no list", "expected a list of links")),
    }
    if outside > 0 {
        graph.left_out.push(counted(
            outside,
            "link out of the lab (to the host, to a network of it, to a bridge that is no node)",
        ));
    }
    Ok(graph)
}

/// Returns the ends of a link; none if it leads out of the lab.
fn ends(link: &TopologyValue<'_>, names: &NodeNames) -> Result<Option<[u32; 2]>, Error> {
    const EXPECTED: &str = "expected endpoints: [\"a:eth1\", \"b:eth1\"]";
    if link.get("type").and_then(TopologyValue::text).is_some_and(|kind| kind != "veth") {
        return Ok(None);
    }
    let Some(TopologyValue::List(endpoints, at)) = link.get("endpoints") else {
        return Err(Error::text(link.at(), "this link has no list of endpoints", EXPECTED));
    };
    let [a, b] = endpoints.as_slice() else {
        return Err(Error::text(*at, format!("{} endpoints", endpoints.len()), EXPECTED));
    };
    let end = |endpoint: &TopologyValue<'_>| {
        let name = match endpoint {
            TopologyValue::Scalar(text, _) => Some(text.split_once(':').map_or(text.as_ref(), |(node, _)| node)),
            other => other.get("node").and_then(TopologyValue::text),
        };
        let name = name.ok_or_else(|| Error::text(endpoint.at(), "this endpoint names no node", EXPECTED))?;
        if matches!(name, "host" | "mgmt-net" | "macvlan" | "dummy") {
            return Ok(None);
        }
        names.known(name, endpoint.at()).map(Some)
    };
    Ok(end(a)?.zip(end(b)?).map(|(a, b)| [a, b]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = "name: lab\ntopology:\n  defaults: &d\n    kind: linux\n  nodes:\n    spine:\n      kind: nokia_srlinux\n    leaf1: *d\n    client1:\n      <<: *d\n  links:\n    - endpoints: [\"spine:e1-1\", \"leaf1:e1-1\"]\n    - type: veth\n      endpoints:\n        - node: leaf1\n          interface: e1-2\n        - node: client1\n          interface: eth1\n    - endpoints: [client1:eth2, host:tap0]\n    - type: mgmt-net\n      endpoint:\n        node: leaf1\n";

    #[test]
    fn a_lab_is_read() {
        let graph = read(LAB).unwrap();
        let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["spine", "leaf1", "client1"]);
        let ends: Vec<_> = graph.links.iter().map(|link| link.ends).collect();
        assert_eq!(ends, [[0, 1], [1, 2]]);
        assert_eq!(
            graph.left_out,
            ["2 links out of the lab (to the host, to a network of it, to a bridge that is no node)"]
        );
        assert_eq!(&LAB[graph.nodes[2].at.range()], "client1");
    }

    #[test]
    fn errors_have_byte_ranges() {
        for (from, to, location, name) in [
            ("leaf1:e1-1\"", "leaf9:e1-1\"", "12:33", "`leaf9`"),
            (", \"leaf1:e1-1\"", "", "12:18", ""),
            ("    client1:\n", "    leaf1:\n", "9:5", ""),
            ("topology:", "topologie:", "1:1", "`topology.nodes`"),
            ("[\"spine", "[\"spine\n", "12:19", ""),
            ("    leaf1: *d", "    <<: *d", "8:9", ""),
            ("  links:\n", "  links: 3\n  lonks:\n", "11:10", ""),
        ] {
            let text = LAB.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(read("").is_err() && read(&"[".repeat(500)).is_err() && read(&"- ".repeat(90_000)).is_err());
    }
}
