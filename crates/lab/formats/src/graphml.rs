//! GraphML, as written by the Internet Topology Zoo, networkx and yEd. Brandes et al., "GraphML Progress Report",
//! GD 2001.
//!
//! Attributes of a node: `label` (or `name`), `Latitude` and `Longitude`. Attributes of an edge: `LinkSpeedRaw` in bits
//! per second, else `LinkSpeed` with `LinkSpeedUnits`, else a `rate`, `bandwidth` or `capacity`; a `delay` or
//! `latency`. The last five contain their units, or are in units that the file does not state. A missing value is its
//! key's `<default>`. An edge is directed if it states so, or if it states nothing and the graph's `edgedefault` is
//! `directed`. Everything else is omitted. Nested graphs and edges with many ends are refused.

use std::collections::BTreeMap;

use roxmltree::{Document, Node as Element};

use crate::graph::{Capacity, Delay, Graph, GraphLink, GraphNode, LinkDirection, NodeNames, Position, Quoted};
use crate::lines::Lines;
use crate::{ByteRange, Error, counted};

/// Reads a graph.
///
/// # Errors
/// If the text is not GraphML, or an edge has an unknown end.
pub fn read(text: &str) -> Result<Graph, Error> {
    let document = Document::parse(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let pos = error.pos();
        let at = Lines::new(text).from(pos.row.saturating_sub(1) as usize, pos.col.saturating_sub(1) as usize);
        Error::text(at, format!("this is not XML: {error}"), "expected GraphML")
    })?;
    let shift = text.len() - text.trim_start_matches('\u{feff}').len();
    let byte_range = |element: Element<'_, '_>| {
        let range = element.range();
        ByteRange::new(range.start + shift..range.end + shift)
    };
    let root = document.root_element();
    let graphs = || root.children().filter(|child| child.tag_name().name() == "graph");
    let Some(found) = graphs().next().filter(|_| root.tag_name().name() == "graphml") else {
        return Err(Error::text(byte_range(root), "there is no graph", "expected <graphml> with a <graph>"));
    };
    if let Some(second) = graphs().nth(1) {
        return Err(Error::text(byte_range(second), "a second graph", "expected one"));
    }
    let refused = found
        .descendants()
        .find(|element| *element != found && matches!(element.tag_name().name(), "hyperedge" | "graph"));
    if let Some(element) = refused {
        let problem = format!("a <{}> inside of the graph cannot be read", element.tag_name().name());
        return Err(Error::text(byte_range(element), problem, "expected nodes, and edges between two of them"));
    }
    let keys = keys(root);
    let elements = |name: &'static str| found.children().filter(move |child| child.tag_name().name() == name);

    let all_directed = found.attribute("edgedefault") == Some("directed");
    let mut graph = Graph::default();
    let mut names = NodeNames::default();
    let labels = labels(elements("node"), &keys);
    let mut by_id: BTreeMap<&str, u32> = BTreeMap::new();
    for element in elements("node") {
        let at = byte_range(element);
        let id = element.attribute("id").ok_or_else(|| Error::text(at, "this node has no id", "expected an id"))?;
        let values = values(element, &keys);
        let degrees = |key: &str| number(values.get(key)?.0);
        let position = degrees("latitude").zip(degrees("longitude"));
        let position = position.and_then(|(latitude, longitude)| Position::of(latitude, longitude));
        let name = match label(&values) {
            // Nodes that share a label are distinguished by their ids after it.
            Some(label) if labels.get(label).is_some_and(|&count| count > 1) => format!("{label} {id}"),
            Some(label) => label.to_owned(),
            None => id.to_owned(),
        };
        let number = names.add(&mut graph, GraphNode { name, position, at })?;
        if by_id.insert(id, number).is_some() {
            return Err(Error::text(at, format!("two nodes have the id `{id}`"), "expected another id"));
        }
    }
    let mut unread = 0;
    for element in elements("edge") {
        let at = byte_range(element);
        let end = |attribute: &str| {
            let id = element.attribute(attribute);
            let id = id
                .ok_or_else(|| Error::text(at, format!("this edge has no {attribute}"), "expected the id of a node"))?;
            let node = by_id.get(id).copied();
            node.ok_or_else(|| Error::text(at, format!("there is no node `{id}`"), "expected the id of a node"))
        };
        let values = values(element, &keys);
        let first = |names: &[&str]| names.iter().find_map(|name| values.get(*name));
        let quoted =
            |(text, data): &(&str, Element<'_, '_>)| Quoted { text: (*text).to_owned(), at: byte_range(*data) };
        let speed = speed(&values);
        unread += usize::from(speed.is_none() && values.keys().any(|key| key.starts_with("linkspeed")));
        let rate = first(&["rate", "bandwidth", "capacity"]).map(|value| match number(value.0) {
            Some(units) => Capacity::Units(units),
            None => Capacity::Rate(quoted(value)),
        });
        let delay = first(&["delay", "latency"]).map(|value| match number(value.0) {
            Some(units) => Delay::Units(units),
            None => Delay::Time(quoted(value)),
        });
        let directed = match element.attribute("directed").map(str::trim) {
            None => all_directed,
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(other) => {
                return Err(Error::text(at, format!("directed=\"{other}\""), "expected true or false"));
            }
        };
        let direction = if directed { LinkDirection::Forward } else { LinkDirection::Both };
        graph.links.push(GraphLink {
            ends: [end("source")?, end("target")?],
            direction,
            rate: speed.or(rate),
            delay,
            at,
        });
    }
    if unread > 0 {
        graph.left_out.push(format!("the LinkSpeed of {}, which is no number with a unit", counted(unread, "edge")));
    }
    Ok(graph)
}

/// A `<key>`: describes the `<data>` with its id.
struct GraphmlKey<'a> {
    /// Its name, in lower case.
    name: String,
    /// Elements that it is for: `node`, `edge`, `all` or others.
    domain: &'a str,
    /// Value for elements without `<data>` of this key.
    default: Option<(&'a str, Element<'a, 'a>)>,
}

/// Returns the keys by their ids.
fn keys<'a>(root: Element<'a, 'a>) -> BTreeMap<&'a str, GraphmlKey<'a>> {
    let keys = root.children().filter(|child| child.tag_name().name() == "key");
    let named = |key: Element<'a, 'a>| {
        let name = key.attribute("attr.name")?.to_ascii_lowercase();
        let default = key.children().find(|child| child.tag_name().name() == "default");
        let default = default.map(|default| (default.text().unwrap_or_default().trim(), default));
        Some((key.attribute("id")?, GraphmlKey { name, domain: key.attribute("for").unwrap_or("all"), default }))
    };
    keys.filter_map(named).collect()
}

/// By the name of its key: the text of each value, and its element.
type DataValues<'a, 'k> = BTreeMap<&'k str, (&'a str, Element<'a, 'a>)>;

fn values<'a, 'k>(element: Element<'a, 'a>, keys: &'k BTreeMap<&'a str, GraphmlKey<'a>>) -> DataValues<'a, 'k> {
    let inherited = keys.values().filter(|key| key.domain == "all" || key.domain == element.tag_name().name());
    let mut values: DataValues<'a, 'k> = inherited.filter_map(|key| Some((key.name.as_str(), key.default?))).collect();
    let data = element.children().filter(|child| child.tag_name().name() == "data");
    values.extend(data.filter_map(|data| {
        let key = keys.get(data.attribute("key")?)?;
        Some((key.name.as_str(), (data.text().unwrap_or_default().trim(), data)))
    }));
    values.retain(|_, (text, _)| !text.is_empty());
    values
}

fn label<'a>(values: &DataValues<'a, '_>) -> Option<&'a str> {
    let label = ["label", "name"].iter().find_map(|key| values.get(*key))?.0;
    // The Topology Zoo's labels for nodes that its sources do not name.
    (!["None", "?"].contains(&label)).then_some(label)
}

/// Returns the number of nodes with each label.
fn labels<'a>(
    nodes: impl Iterator<Item = Element<'a, 'a>>,
    keys: &BTreeMap<&'a str, GraphmlKey<'a>>,
) -> BTreeMap<&'a str, usize> {
    let mut labels = BTreeMap::new();
    for node in nodes {
        if let Some(label) = label(&values(node, keys)) {
            *labels.entry(label).or_default() += 1;
        }
    }
    labels
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a link's speed from the Topology Zoo's attributes.
fn speed(values: &DataValues<'_, '_>) -> Option<Capacity> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is 1 to 10^15")]
    let bps = |bps: f64| (1.0..1e15).contains(&bps).then(|| Capacity::Bps(bps.round() as u64));
    if let Some(raw) = values.get("linkspeedraw").and_then(|(text, _)| number(text)) {
        return bps(raw);
    }
    let unit = match values.get("linkspeedunits")?.0 {
        "K" | "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    bps(number(values.get("linkspeed")?.0)? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d36" />
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d37" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d38" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">52.5</data><data key="d32">13.4</data><data key="d33">Berlin</data></node>
    <node id="1"><data key="d29">48.9</data><data key="d32">2.35</data><data key="d33">Paris</data></node>
    <node id="2"><data key="d33">Paris</data></node>
    <node id="3"><data key="d33">None</data></node>
    <edge source="0" target="1"><data key="d38">10000000000.0</data></edge>
    <edge source="1" target="2"><data key="d36">2.5</data><data key="d37">G</data></edge>
    <edge source="2" target="3"><data key="d36">&lt;10</data><data key="d37">G</data></edge>
  </graph>
</graphml>"#;

    #[test]
    fn topology_zoo_attributes_are_read() {
        let graph = read(ZOO).unwrap();
        let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["Berlin", "Paris 1", "Paris 2", "3"]);
        assert_eq!(graph.nodes[0].position, Some(Position { latitude: 52.5, longitude: 13.4 }));
        assert_eq!(graph.nodes[2].position, None);
        let rates: Vec<_> = graph.links.iter().map(|link| link.rate.clone()).collect();
        assert_eq!(rates, [Some(Capacity::Bps(10_000_000_000)), Some(Capacity::Bps(2_500_000_000)), None]);
        assert_eq!((graph.links[2].ends, graph.left_out.len()), ([2, 3], 1));
    }

    #[test]
    fn networkx_keys_are_read() {
        let text = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d1" for="edge" attr.name="rate" />
            <key id="d2" for="edge" attr.name="delay" /><graph edgedefault="undirected"><node id="a"/><node id="b" />
            <edge source="a" target="b"><data key="d1">40Gbps</data><data key="d2">3ms</data></edge>
            <edge source="a" target="b"><data key="d2">3</data></edge></graph></graphml>"#;
        let graph = read(text).unwrap();
        let link = &graph.links[0];
        assert!(matches!(&link.delay, Some(Delay::Time(delay)) if delay.text == "3ms"));
        assert!(matches!(&link.rate, Some(Capacity::Rate(rate)) if rate.text == "40Gbps"));
        assert_eq!((&graph.links[1].rate, &graph.links[1].delay), (&None, &Some(Delay::Units(3.0))));
    }

    /// A key's default counts where an element of its kind has no value; an empty value is none.
    #[test]
    fn graphml_key_defaults_apply() {
        let text = r#"<graphml><key id="r" for="edge" attr.name="Bandwidth"><default>10Gbps</default></key>
            <key id="d" for="all" attr.name="delay"><default> 2 </default></key>
            <key id="n" for="node" attr.name="rate"><default>1Gbps</default></key>
            <graph edgedefault="undirected"><node id="a"/><node id="b"/>
            <edge source="a" target="b"/>
            <edge source="a" target="b"><data key="r">40Gbps</data><data key="d">7e-1</data></edge>
            <edge source="a" target="b"><data key="r"/><data key="d">3ms</data></edge></graph></graphml>"#;
        let graph = read(text).unwrap();
        let rate = |link: &GraphLink| match &link.rate {
            Some(Capacity::Rate(rate)) => rate.text.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(graph.links.iter().map(rate).collect::<Vec<_>>(), ["10Gbps", "40Gbps", "None"]);
        let delays = [&graph.links[0].delay, &graph.links[1].delay];
        assert_eq!(delays, [&Some(Delay::Units(2.0)), &Some(Delay::Units(0.7))]);
        assert!(matches!(&graph.links[2].delay, Some(Delay::Time(delay)) if delay.text == "3ms"));
    }

    #[test]
    fn edge_direction_overrides_the_graph_default() {
        let of = |default: &str, own: &str| {
            let text = format!(
                "<graphml><graph{default}><node id=\"a\"/><node id=\"b\"/><edge{own} source=\"a\" target=\"b\"/></graph></graphml>"
            );
            read(&text).map(|graph| graph.links[0].direction)
        };
        for (default, own, direction) in [
            (" edgedefault=\"directed\"", "", LinkDirection::Forward),
            (" edgedefault=\"directed\"", " directed=\"false\"", LinkDirection::Both),
            (" edgedefault=\"undirected\"", " directed=\"true\"", LinkDirection::Forward),
            (" edgedefault=\"undirected\"", "", LinkDirection::Both),
            ("", "", LinkDirection::Both),
        ] {
            assert_eq!(of(default, own).unwrap(), direction, "{default}{own}");
        }
        // From the edge on.
        assert_eq!(of("", " directed=\"maybe\"").unwrap_err().at().range().start, 44);
    }

    #[test]
    fn invalid_graphs_are_errors() {
        for (from, to, location, name) in [
            ("</graphml>", "", "1:1", ""),
            ("target=\"3\"", "target=\"9\"", "15:5", "`9`"),
            ("target=\"3\"", "", "15:5", ""),
            ("<node id=\"3\">", "<node id=\"2\">", "12:5", ""),
            ("<node id=\"3\">", "<node>", "12:5", ""),
            ("<graph ", "<grape ", "16:3", ""),
            ("<edge source=\"0\" target=\"1\">", "<edge source=\"0\" target=\"1\"><graph />", "13:33", ""),
        ] {
            let text = ZOO.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(read("<a/>").unwrap_err().line_and_column("<a/>"), "1:1");
        let laughs = "<!DOCTYPE a [<!ENTITY x \"y\">]><graphml>&x;</graphml>";
        assert_eq!(read(laughs).unwrap_err().line_and_column(laughs), "1:1");
    }
}
