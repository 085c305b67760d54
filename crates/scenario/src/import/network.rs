//! Graphs of other programs as networks: GraphML, links as CSV, containerlab's labs, SNDlib.
//!
//! Nodes are switches. A node of a wide-area network stands for a place with hosts, so each has some; in a lab or a list of links
//! a node with one link is a host. Long links separate datacenters.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use formats::counted;
use formats::graph::{Capacity, Graph, Position, Quoted};
use units::{Rate, Span};

use super::Imported;
use super::stage::Stage;
use crate::Error;
use crate::decode::Field;
use crate::error::{Fault, Origin, Sources};
use crate::foreign::Foreign;
use crate::kind::Kind;
use crate::quantity::{write_rate, write_span};
use crate::tree::{Node, Value};

/// A GraphML file.
pub(crate) const GRAPHML: Kind = Kind {
    name: "a GraphML file",
    expected: "expected XML with <graphml>",
    fits: |file| file.lines().any(|line| line.contains("<graphml")),
};

/// Links as CSV.
pub(crate) const LINKS: Kind = Kind {
    name: "a list of links",
    expected: "expected the header from,to,rate,delay",
    fits: |file| {
        let first = file.first().to_ascii_lowercase();
        let has =
            |words: &[&str]| first.split([',', ';', '\t']).any(|cell| words.contains(&cell.trim().trim_matches('"')));
        has(&["from", "source", "src", "a"]) || has(&["to", "target", "dst", "b"])
    },
};

/// A topology of containerlab.
pub(crate) const LAB: Kind = Kind {
    name: "a topology of containerlab",
    expected: "expected YAML with `topology:`",
    fits: |file| file.lines().any(|line| line.starts_with("topology:")),
};

/// A network of SNDlib.
pub(crate) const SNDLIB: Kind = Kind {
    name: "a network in SNDlib's native format",
    expected: "expected sections NODES ( ... ) and LINKS ( ... )",
    fits: |file| file.lines().any(|line| line.starts_with("?SNDlib") || line.starts_with("NODES")),
};

/// What format a graph is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphFormat {
    /// GraphML, the Internet Topology Zoo's and networkx's.
    GraphMl,
    /// CSV: `from,to,rate,delay`.
    Links,
    /// containerlab's YAML.
    Containerlab,
    /// SNDlib's native format.
    SndLib,
}

impl GraphFormat {
    /// Whether the nodes are places far apart, each with hosts of its own.
    fn is_wide(self) -> bool {
        matches!(self, Self::GraphMl | Self::SndLib)
    }

    fn kind(self) -> Kind {
        match self {
            Self::GraphMl => GRAPHML,
            Self::Links => LINKS,
            Self::Containerlab => LAB,
            Self::SndLib => SNDLIB,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::GraphMl => "GraphML",
            Self::Links => "a list of links",
            Self::Containerlab => "containerlab",
            Self::SndLib => "SNDlib",
        }
    }
}

/// What a graph's file does not say. Quantities are texts with units, as in scenarios.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GraphOptions<'a> {
    /// The rate of links of which the file says none.
    pub rate: Option<&'a str>,
    /// The delay of links of which the file says none, and which lie between nodes without coordinates.
    pub delay: Option<&'a str>,
    /// What one unit of a capacity is, where the format gives it none (SNDlib).
    pub unit: Option<&'a str>,
    /// How many hosts each switch gets.
    pub hosts: Option<NonZeroU16>,
    /// The rate of their links.
    pub host_rate: Option<&'a str>,
}

/// The options as read.
#[derive(Clone, Copy, Default)]
struct Chosen {
    rate: Option<Rate>,
    delay: Option<Span>,
    unit: Option<Rate>,
    hosts: Option<u16>,
    host_rate: Option<Rate>,
}

/// Names that an import of a graph needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The graph's file, for messages.
    pub graph: &'a str,
}

/// More switches are a mistake: routes are a table of switches by switches.
const MOST: usize = 5_000;
/// More hosts are a mistake, too.
const MOST_HOSTS: usize = 65_534;
/// Links as long as this separate datacenters.
const LONG_HAUL: Span = Span::from_us(50);
/// A link of which nothing is known.
const RATE: Rate = Rate::from_gbps(100);
/// The delay of such a link, in a lab and between hosts and their switches.
const SHORT: Span = Span::from_us(1);
/// Its delay in a wide-area network.
const WIDE: Span = Span::from_ms(1);
/// The speed of light in glass, two thirds of that in vacuum, in kilometres a second.
const IN_GLASS: f64 = 299_792.458 * 2.0 / 3.0;
/// The earth's mean radius, in kilometres.
const EARTH: f64 = 6_371.0;

/// Makes a scenario from a graph: its network, and a permutation as traffic.
///
/// # Errors
/// When the file is malformed, or its network cannot be simulated: links without delay, fewer than two hosts, over 5,000
/// switches.
pub fn import_graph(
    text: &str,
    format: GraphFormat,
    options: &GraphOptions<'_>,
    names: &GraphNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let source = sources.add_file(names.graph, text, format.kind());
    let chosen = chosen(options, &mut sources).map_err(|fault| sources.explain(fault))?;
    let explain = |fault| sources.explain(fault);
    let read = match format {
        GraphFormat::GraphMl => formats::graphml::read(text),
        GraphFormat::Links => formats::links::read(text),
        GraphFormat::Containerlab => formats::containerlab::read(text),
        GraphFormat::SndLib => formats::sndlib::read(text),
    };
    let graph =
        read.map_err(|error| explain(Foreign { name: names.graph, bytes: text.as_bytes(), source }.fault(error)))?;
    let mut notes = Vec::new();
    let topology = network(&graph, format, &chosen, source, &mut notes).map_err(explain)?;
    notes.push("ports have this project's defaults; the scheme runs DCTCP; each host sends 1 MB to another: give it other traffic, as with `narrows import flows FILE --scenario`".into());
    let stage = Stage::with(topology, format!("the network of {}", names.graph))?;
    let traffic = Value::table([("kind", Value::string("permutation")), ("size", Value::string("1MB"))]);
    let title = format!("imported from {}: {}", format.name(), names.graph);
    stage.with_traffic((names.scenario, &title), (traffic, None), Span::ZERO, notes).map_err(explain)
}

fn chosen(options: &GraphOptions<'_>, sources: &mut Sources) -> Result<Chosen, Fault> {
    fn read<T: Field>(text: Option<&str>, option: &str, sources: &mut Sources) -> Result<Option<T>, Fault> {
        let Some(text) = text else { return Ok(None) };
        let origin = Origin::new(sources.add(option, text), 0..text.len());
        T::decode(&Node { value: Value::string(text), origin }).map(Some)
    }
    let delay: Option<Span> = read(options.delay, "--delay", sources)?;
    if delay.is_some_and(Span::is_zero) {
        return Err(Fault::new(Origin::NOWHERE, "--delay 0: a link has a delay over zero").help("such as --delay 1ms"));
    }
    Ok(Chosen {
        rate: read(options.rate, "--rate", sources)?,
        delay,
        unit: read(options.unit, "--unit", sources)?,
        hosts: options.hosts.map(NonZeroU16::get),
        host_rate: read(options.host_rate, "--host-rate", sources)?,
    })
}

/// A cable between two nodes, or several that are alike.
#[derive(Clone, Copy)]
struct Cable {
    ends: [usize; 2],
    rate: Rate,
    delay: Span,
    parallel: u16,
}

/// `[topology]`.
fn network(
    graph: &Graph,
    format: GraphFormat,
    chosen: &Chosen,
    source: u32,
    notes: &mut Vec<String>,
) -> Result<Value, Fault> {
    for what in &graph.left_out {
        notes.push(format!("left out: {what}"));
    }
    let cables = cables(graph, format, chosen, source, notes)?;
    let (kept, cables) = largest(graph, cables, notes);
    let names: Vec<&str> = kept.iter().map(|&node| graph.nodes[node].name.as_str()).collect();
    let count = names.len();

    let mut degree = vec![0u32; count];
    for cable in &cables {
        cable.ends.iter().for_each(|&end| degree[end] += u32::from(cable.parallel));
    }
    let mut is_host = vec![false; count];
    if !format.is_wide() {
        for cable in cables.iter().filter(|cable| cable.parallel == 1) {
            let [a, b] = cable.ends;
            // A link between two leaves is no link of a host: a host's leads to a switch.
            match (degree[a], degree[b]) {
                (1, 2..) => is_host[a] = true,
                (2.., 1) => is_host[b] = true,
                _ => {}
            }
        }
    }
    let leaves = is_host.iter().filter(|is_host| **is_host).count();
    let switches = count - leaves;
    if switches > MOST {
        let message = format!("{switches} switches");
        return Err(Fault::new(Origin::new(source, 0..0), message).label(format!("expected at most {MOST}")));
    }
    let each = chosen.hosts.unwrap_or(u16::from(leaves < 2));
    if leaves > 0 {
        notes.push(format!("{leaves} nodes with one link are hosts, {switches} are switches"));
    }
    let fastest = cables.iter().map(|cable| cable.rate).max().unwrap_or(RATE);
    let host_rate = chosen.host_rate.unwrap_or(fastest);
    if each > 0 {
        let of = if each == 1 { "a host".to_owned() } else { format!("{each} hosts") };
        notes.push(format!(
            "each of {switches} switches has {of}, at {} and {} (--hosts, --host-rate)",
            write_rate(host_rate),
            write_span(SHORT)
        ));
    }
    let hosts = leaves + switches * usize::from(each);
    if hosts > MOST_HOSTS {
        let message = format!("{hosts} hosts");
        return Err(Fault::new(Origin::new(source, 0..0), message).label(format!("expected at most {MOST_HOSTS}")));
    }
    if hosts < 2 {
        let message = format!("this network has {hosts} hosts, and {count} nodes that are joined");
        return Err(Fault::new(Origin::new(source, 0..0), message).label("expected two hosts or more"));
    }

    let has_hosts: Vec<bool> = is_host.iter().map(|&leaf| leaf || each > 0).collect();
    let datacenter = datacenters(&has_hosts, &cables, notes);
    let mut nodes = Vec::with_capacity(count);
    for node in 0..count {
        let hangs = each > 0 && !is_host[node];
        nodes.push(Node::made(Value::table([
            ("name", Value::string(names[node])),
            ("kind", Value::string(if is_host[node] { "host" } else { "switch" })),
            ("datacenter", if datacenter[node] == 0 { Value::Absent } else { datacenter[node].encode() }),
            ("hosts", if hangs { each.encode() } else { Value::Absent }),
            ("host_rate", if hangs { host_rate.encode() } else { Value::Absent }),
            ("host_delay", if hangs { SHORT.encode() } else { Value::Absent }),
        ])));
    }
    let link = |cable: &Cable| {
        Node::made(Value::table([
            ("between", cable.ends.map(|end| names[end].to_owned()).to_vec().encode()),
            ("rate", cable.rate.encode()),
            ("delay", cable.delay.encode()),
            ("parallel", if cable.parallel == 1 { Value::Absent } else { cable.parallel.encode() }),
        ]))
    };
    Ok(Value::table([
        ("kind", Value::string("custom")),
        ("nodes", Value::Array(nodes)),
        ("links", Value::Array(cables.iter().map(link).collect())),
    ]))
}

/// The ends, rate and delay of links that are alike.
type Likeness = ([usize; 2], Rate, Span);

/// The place of their cable, and how many links go either way.
type Bundle = (usize, [u32; 2]);

/// The cables of a graph, those alike together, in the order in which they first come.
fn cables(
    graph: &Graph,
    format: GraphFormat,
    chosen: &Chosen,
    source: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<Cable>, Fault> {
    let quantity =
        |quoted: &Quoted| Node { value: Value::string(&quoted.text), origin: Origin::new(source, quoted.at.range()) };
    let (default_rate, default_delay) =
        (chosen.rate.unwrap_or(RATE), chosen.delay.unwrap_or(if format.is_wide() { WIDE } else { SHORT }));
    let (mut loops, mut without_rate, mut without_delay, mut measured) = (0, 0, 0, 0);
    let mut cables: Vec<Cable> = Vec::new();
    let mut known: BTreeMap<Likeness, Bundle> = BTreeMap::new();
    for link in &graph.links {
        let [a, b] = link.ends.map(|end| end as usize);
        if a == b {
            loops += 1;
            continue;
        }
        let origin = Origin::new(source, link.at.range());
        let bps = |bps: u64| Rate::decode(&Node { value: Value::string(format!("{bps}bps")), origin });
        let rate = match &link.rate {
            Some(Capacity::Rate(rate)) => Some(Rate::decode(&quantity(rate))?),
            Some(Capacity::Bps(rate)) => Some(bps(*rate)?),
            Some(Capacity::Units(units)) => match chosen.unit {
                Some(unit) => Some(bps((unit.bps() as f64 * units).round() as u64)?),
                None => None,
            },
            None => None,
        };
        without_rate += usize::from(rate.is_none());
        let positions = graph.nodes[a].position.zip(graph.nodes[b].position);
        let delay = match (&link.delay, positions) {
            (Some(delay), _) => Span::decode(&quantity(delay))?,
            (None, Some((here, there))) => {
                measured += 1;
                in_glass(here, there)
            }
            (None, None) => {
                without_delay += 1;
                default_delay
            }
        };
        if delay.is_zero() {
            return Err(Fault::new(origin, "this link has no delay").label("expected a delay over zero, such as 1us"));
        }
        let (rate, ends) = (rate.unwrap_or(default_rate), [a.min(b), a.max(b)]);
        let (place, ways) = known.entry((ends, rate, delay)).or_insert((cables.len(), [0; 2]));
        ways[usize::from(a > b)] += 1;
        let parallel = if graph.directed { ways[0].max(ways[1]) } else { ways[0] + ways[1] };
        let parallel = u16::try_from(parallel)
            .map_err(|_| Fault::new(origin, "over 65535 links join these nodes").label("expected fewer"))?;
        if *place == cables.len() {
            cables.push(Cable { ends, rate, delay, parallel });
        } else {
            cables[*place].parallel = parallel;
        }
    }
    let both = known.values().filter(|(_, ways)| !graph.directed && ways[0] > 0 && ways[1] > 0).count();
    if format == GraphFormat::SndLib && both > 0 {
        let pairs = counted(both, "pair of nodes with links in both directions");
        notes.push(format!("{pairs}, which are links of their own: the file does not say whether links are directed"));
    }
    if loops > 0 {
        notes.push(format!("left out: {}", counted(loops, "link from a node to itself")));
    }
    if measured > 0 {
        notes.push(counted(
            measured,
            "link with the delay of light in glass (2/3 c) along the great circle, in whole microseconds, at least 1",
        ));
    }
    if without_rate > 0 {
        let units = graph.links.iter().any(|link| matches!(link.rate, Some(Capacity::Units(_))));
        let how =
            if units && chosen.unit.is_none() { "capacities have no unit: give --unit or --rate" } else { "--rate" };
        notes.push(format!("{}: {} ({how})", counted(without_rate, "link without a rate"), write_rate(default_rate)));
    }
    if without_delay > 0 {
        notes.push(format!(
            "{}: {} (--delay)",
            counted(without_delay, "link without a delay"),
            write_span(default_delay)
        ));
    }
    Ok(cables)
}

/// The delay of light in glass along a great circle: whole microseconds, at least one.
fn in_glass(here: Position, there: Position) -> Span {
    let [from, to] = [here, there].map(|place| place.latitude.to_radians());
    let east = (there.longitude - here.longitude).to_radians();
    // The haversine formula, with the same trigonometry on every machine.
    let half = |angle: f64| libm::sin(angle / 2.0);
    let of = half(to - from).powi(2) + libm::cos(from) * libm::cos(to) * half(east).powi(2);
    let kilometres = 2.0 * EARTH * libm::asin(libm::sqrt(of.clamp(0.0, 1.0)));
    Span::from_us(((kilometres / IN_GLASS * 1e6).round() as i64).max(1))
}

/// The largest part of a graph that is joined: its nodes, and its cables by their places among these.
fn largest(graph: &Graph, cables: Vec<Cable>, notes: &mut Vec<String>) -> (Vec<usize>, Vec<Cable>) {
    let mut parts = Parts::new(graph.nodes.len());
    for cable in &cables {
        parts.join(cable.ends);
    }
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for node in 0..graph.nodes.len() {
        *sizes.entry(parts.root(node)).or_default() += 1;
    }
    // Of two alike the first.
    let Some((&kept, _)) = sizes.iter().rev().max_by_key(|(_, size)| **size) else { return (Vec::new(), Vec::new()) };
    let (nodes, others): (Vec<usize>, Vec<usize>) = (0..graph.nodes.len()).partition(|&node| parts.root(node) == kept);
    if !others.is_empty() {
        let named: Vec<&str> = others.iter().take(8).map(|&node| graph.nodes[node].name.as_str()).collect();
        let more = if others.len() > 8 { format!(" and {} more", others.len() - 8) } else { String::new() };
        notes.push(format!("left out, not joined to the largest part: {}{more}", named.join(", ")));
    }
    let mut place = vec![usize::MAX; graph.nodes.len()];
    nodes.iter().enumerate().for_each(|(new, &node)| place[node] = new);
    let inside = cables.into_iter().filter(|cable| place[cable.ends[0]] != usize::MAX);
    let cables = inside.map(|cable| Cable { ends: cable.ends.map(|end| place[end]), ..cable }).collect();
    (nodes, cables)
}

/// Sets of nodes that are joined.
struct Parts(Vec<usize>);

impl Parts {
    fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    /// The node that stands for a node's part; the way to it is halved.
    fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, ends: [usize; 2]) {
        let [a, b] = ends.map(|end| self.root(end));
        self.0[a.max(b)] = a.min(b);
    }
}

/// By node: its datacenter. Long links separate them; a part without hosts belongs to the next one that has some.
fn datacenters(has_hosts: &[bool], cables: &[Cable], notes: &mut Vec<String>) -> Vec<u16> {
    let count = has_hosts.len();
    let mut parts = Parts::new(count);
    for cable in cables.iter().filter(|cable| cable.delay < LONG_HAUL) {
        parts.join(cable.ends);
    }
    let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
    for node in (0..count).filter(|&node| has_hosts[node]) {
        let next = numbers.len().min(usize::from(u16::MAX)) as u16;
        numbers.entry(parts.root(node)).or_insert(next);
    }
    let mut datacenter: Vec<Option<u16>> = (0..count).map(|node| numbers.get(&parts.root(node)).copied()).collect();
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &Cable { ends: [a, b], .. } in cables {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let mut todo: VecDeque<usize> = (0..count).filter(|&node| datacenter[node].is_some()).collect();
    while let Some(node) = todo.pop_front() {
        for &next in &neighbours[node] {
            if datacenter[next].is_none() {
                datacenter[next] = datacenter[node];
                todo.push_back(next);
            }
        }
    }
    if numbers.len() > 1 {
        notes.push(format!("links of {} and more separate {} datacenters", write_span(LONG_HAUL), numbers.len()));
    }
    datacenter.into_iter().map(|number| number.unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: GraphNames<'_> = GraphNames { scenario: "net", graph: "net.csv" };

    fn links(text: &str, options: &GraphOptions<'_>) -> Result<Imported, String> {
        import_graph(text, GraphFormat::Links, options, &NAMES).map_err(|error| error.to_string())
    }

    #[test]
    fn leaves_are_hosts_and_long_links_separate_datacenters() {
        let text = "from,to,rate,delay\nh1,s1,,\nh2,s2,,\nh3,s2,,\ns1,s2,400Gbps,5ms\ns1,s2,400Gbps,5ms\nfar,away,,\n";
        let made = links(text, &GraphOptions { rate: Some("10Gbps"), ..GraphOptions::default() }).unwrap();
        for part in [
            "{ name = \"h1\", kind = \"host\" }",
            "{ name = \"s2\", kind = \"switch\", datacenter = 1 }",
            "{ between = [\"h1\", \"s1\"], rate = \"10Gbps\", delay = \"1us\" }",
            "{ between = [\"s1\", \"s2\"], rate = \"400Gbps\", delay = \"5ms\", parallel = 2 }",
        ] {
            assert!(made.toml.contains(part), "{part}\n{}", made.toml);
        }
        let notes = made.notes.join("\n");
        for part in [
            "largest part: far, away",
            "separate 2 datacenters",
            "3 nodes with one link are hosts",
            "4 links without a rate: ",
        ] {
            assert!(notes.contains(part), "{part}\n{notes}");
        }
    }

    #[test]
    fn a_pair_of_nodes_gets_hosts() {
        let made =
            links("from,to\na,b\n", &GraphOptions { hosts: NonZeroU16::new(3), ..GraphOptions::default() }).unwrap();
        assert!(made.toml.contains("hosts = 3, host_rate = \"100Gbps\""), "{}", made.toml);
    }

    #[test]
    fn light_takes_its_time() {
        let berlin = Position { latitude: 52.52, longitude: 13.405 };
        let paris = Position { latitude: 48.8566, longitude: 2.3522 };
        // 878 km at 199,862 km/s.
        let delay = in_glass(berlin, paris);
        assert!((delay.ps() - 4_392_000_000).abs() < 20_000_000, "{delay}");
        assert_eq!((in_glass(berlin, berlin), in_glass(paris, berlin)), (SHORT, delay));
    }

    #[test]
    fn both_directions_of_a_directed_graph_are_one_link() {
        let edge = |from: &str, to: &str| format!("<edge source=\"{from}\" target=\"{to}\"/>");
        let edges = [edge("a", "b"), edge("b", "a"), edge("b", "c"), edge("c", "c")].concat();
        let text = format!(
            "<graphml><graph edgedefault=\"directed\"><node id=\"a\"/><node id=\"b\"/><node id=\"c\"/>{edges}</graph></graphml>"
        );
        let made = import_graph(&text, GraphFormat::GraphMl, &GraphOptions::default(), &NAMES).unwrap();
        assert!(!made.toml.contains("parallel") && made.toml.matches("between").count() == 2, "{}", made.toml);
        assert!(made.notes.join("\n").contains("1 link from a node to itself"));
        let both = text.replace("\"directed\"", "\"undirected\"");
        let made = import_graph(&both, GraphFormat::GraphMl, &GraphOptions::default(), &NAMES).unwrap();
        assert!(made.toml.contains("parallel = 2"));
    }

    #[test]
    fn mistakes_have_their_place() {
        let none = GraphOptions::default();
        for (text, options, parts) in [
            ("from,to,delay\na,b,0s\n", none, ["net.csv:2:1", "over zero"]),
            ("from,to,rate\na,b,5 apples\n", none, ["net.csv:2:1", "unit `apples`"]),
            ("from,to\na,a\n", none, ["net.csv", "1 hosts"]),
            ("from,to\na,b\n", GraphOptions { rate: Some("fast"), ..none }, ["--rate:1:1", "fast"]),
            ("from,to\na,b\n", GraphOptions { delay: Some("0s"), ..none }, ["--delay", "over zero"]),
            ("root:x:0:0\n", none, ["is not a list of links", "from,to,rate,delay"]),
        ] {
            let error = links(text, &options).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}\n{error}");
        }
    }
}
