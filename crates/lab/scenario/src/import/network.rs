//! Graphs of other programs as networks: GraphML, links as CSV, containerlab's labs, SNDlib.
//!
//! Nodes are switches. A node of a wide-area network represents a place with hosts, so each has some; in a lab or a
//! list of links a node with one link is a host. Long links separate datacenters.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use formats::counted;
use formats::graph::{Capacity, Delay, Graph, GraphLink, LinkDirection, Position, Quoted};
use units::{Rate, Span};

use super::Imported;
use super::stage::{ListedTraffic, Stage};
use crate::Error;
use crate::decode::Field;
use crate::error::{SourceSpan, Sources, SpannedError};
use crate::foreign::Foreign;
use crate::kind::FileKind;
use crate::quantity::{MAX_SPAN, write_rate, write_span};
use crate::tree::{Node, Value};

/// A GraphML file.
pub(crate) const GRAPHML: FileKind = FileKind {
    name: "a GraphML file",
    expected: "expected XML with <graphml>",
    matches: |file| file.lines().any(|line| line.contains("<graphml")),
};

/// Links as CSV.
pub(crate) const LINKS: FileKind = FileKind {
    name: "a list of links",
    expected: "expected the header from,to,rate,delay",
    matches: |file| {
        let first = file.first().to_ascii_lowercase();
        let has =
            |names: &[&str]| first.split([',', ';', '\t']).any(|cell| names.contains(&cell.trim().trim_matches('"')));
        has(&["from", "source", "src", "a"]) || has(&["to", "target", "dst", "b"])
    },
};

/// A topology of containerlab.
pub(crate) const LAB: FileKind = FileKind {
    name: "a topology of containerlab",
    expected: "expected YAML with `topology:`",
    matches: |file| file.lines().any(|line| line.starts_with("topology:")),
};

/// A network of SNDlib.
pub(crate) const SNDLIB: FileKind = FileKind {
    name: "a network in SNDlib's native format",
    expected: "expected sections NODES ( ... ) and LINKS ( ... )",
    matches: |file| file.lines().any(|line| line.starts_with("?SNDlib") || line.starts_with("NODES")),
};

/// Format of a graph.
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
    /// Returns whether the nodes are places far apart, each with hosts of its own.
    fn is_wide(self) -> bool {
        matches!(self, Self::GraphMl | Self::SndLib)
    }

    fn kind(self) -> FileKind {
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

/// Values that a graph's file does not contain. Quantities are texts with units, as in scenarios.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GraphOptions<'a> {
    /// The rate of links without a rate in the file.
    pub rate: Option<&'a str>,
    /// The delay of links without a delay in the file, between nodes without coordinates.
    pub delay: Option<&'a str>,
    /// One unit of a capacity, if the file has no unit for it (SNDlib, GraphML).
    pub unit: Option<&'a str>,
    /// One unit of a delay, if the file has no unit for it (GraphML).
    pub delay_unit: Option<&'a str>,
    /// The number of hosts of each switch.
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
    delay_unit: Option<Span>,
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
const MAX: usize = 5_000;
/// More hosts are a mistake, too.
const MAX_HOSTS: usize = 65_534;
/// Links as long as this separate datacenters.
const LONG_HAUL: Span = Span::from_us(50);
/// The rate of a link without any values.
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
/// switches, links that differ between their directions. When the file has rates or delays in a unit that neither it nor an
/// option names.
pub fn import_graph(
    text: &str,
    format: GraphFormat,
    options: &GraphOptions<'_>,
    names: &GraphNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let source = sources.add_file(names.graph, text, format.kind());
    let chosen = chosen(options, &mut sources).map_err(|error| sources.explain(error))?;
    let explain = |error| sources.explain(error);
    let read = match format {
        GraphFormat::GraphMl => formats::graphml::read(text),
        GraphFormat::Links => formats::links::read(text),
        GraphFormat::Containerlab => formats::containerlab::read(text),
        GraphFormat::SndLib => formats::sndlib::read(text),
    };
    let graph = read.map_err(|error| {
        explain(Foreign { name: names.graph, bytes: text.as_bytes(), source: Some(source) }.error(error))
    })?;
    let mut notes = Vec::new();
    let topology = network(&graph, format, &chosen, source, &mut notes).map_err(explain)?;
    notes.push("ports have this project's defaults; the scheme runs DCTCP; each host sends 1 MB to another: give it other traffic, as with `narrows import flows FILE --scenario`".into());
    let stage = Stage::with(topology, format!("the network of {}", names.graph))?;
    let traffic = Value::table([("kind", Value::string("permutation")), ("size", Value::string("1MB"))]);
    let title = format!("imported from {}: {}", format.name(), names.graph);
    stage
        .with_traffic(names.scenario, &title, ListedTraffic { traffic, flows: None }, Span::ZERO, notes)
        .map_err(explain)
}

fn chosen(options: &GraphOptions<'_>, sources: &mut Sources) -> Result<Chosen, SpannedError> {
    fn read<T: Field>(text: Option<&str>, option: &str, sources: &mut Sources) -> Result<Option<T>, SpannedError> {
        let Some(text) = text else { return Ok(None) };
        let origin = SourceSpan::new(sources.add(option, text), 0..text.len());
        T::decode(&Node { value: Value::string(text), origin }).map(Some)
    }
    let delay: Option<Span> = read(options.delay, "--delay", sources)?;
    if delay.is_some_and(Span::is_zero) {
        return Err(SpannedError::new(SourceSpan::NOWHERE, "--delay 0: a link has a delay over zero")
            .help("such as --delay 1ms"));
    }
    Ok(Chosen {
        rate: read(options.rate, "--rate", sources)?,
        delay,
        unit: read(options.unit, "--unit", sources)?,
        delay_unit: read(options.delay_unit, "--delay-unit", sources)?,
        hosts: options.hosts.map(NonZeroU16::get),
        host_rate: read(options.host_rate, "--host-rate", sources)?,
    })
}

/// A cable between two nodes, or several that are alike.
#[derive(Clone, Copy)]
struct CableGroup {
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
) -> Result<Value, SpannedError> {
    for item in &graph.left_out {
        notes.push(format!("left out: {item}"));
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
    if switches > MAX {
        let message = format!("{switches} switches");
        return Err(SpannedError::new(SourceSpan::new(source, 0..0), message).label(format!("expected at most {MAX}")));
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
    if hosts > MAX_HOSTS {
        let message = format!("{hosts} hosts");
        return Err(
            SpannedError::new(SourceSpan::new(source, 0..0), message).label(format!("expected at most {MAX_HOSTS}"))
        );
    }
    if hosts < 2 {
        let message = format!("this network has {hosts} hosts, and {count} nodes that are joined");
        return Err(SpannedError::new(SourceSpan::new(source, 0..0), message).label("expected two hosts or more"));
    }

    let has_hosts: Vec<bool> = is_host.iter().map(|&leaf| leaf || each > 0).collect();
    let datacenter = datacenters(&has_hosts, &cables, notes);
    let mut nodes = Vec::with_capacity(count);
    for node in 0..count {
        let hangs = each > 0 && !is_host[node];
        nodes.push(Node::generated(Value::table([
            ("name", Value::string(names[node])),
            ("kind", Value::string(if is_host[node] { "host" } else { "switch" })),
            ("datacenter", if datacenter[node] == 0 { Value::Absent } else { datacenter[node].encode() }),
            ("hosts", if hangs { each.encode() } else { Value::Absent }),
            ("host_rate", if hangs { host_rate.encode() } else { Value::Absent }),
            ("host_delay", if hangs { SHORT.encode() } else { Value::Absent }),
        ])));
    }
    let link = |cable: &CableGroup| {
        Node::generated(Value::table([
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

/// Links that are alike. Of ways there are two: to the node of the higher number, and back.
struct Bundle {
    /// The place of their cable.
    cable: usize,
    /// Links that carry both ways, by the way in which their ends are written.
    both: [u32; 2],
    /// Links that carry one way.
    forward: [u32; 2],
    /// Line of the first one.
    origin: SourceSpan,
}

impl Bundle {
    /// Cables that they are: two links of one way each are the two directions of one.
    fn parallel(&self) -> u32 {
        self.both[0] + self.both[1] + self.forward[0].max(self.forward[1])
    }
}

/// Rate and delay by a link's own values and the options.
struct LinkValues<'a> {
    graph: &'a Graph,
    chosen: &'a Chosen,
    source: u32,
    default_rate: Rate,
    default_delay: Span,
    without_rate: usize,
    without_delay: usize,
    measured: usize,
}

impl LinkValues<'_> {
    fn quantity(&self, quoted: &Quoted) -> Node {
        Node { value: Value::string(&quoted.text), origin: SourceSpan::new(self.source, quoted.at.range()) }
    }

    /// A value in a unit that the file does not name, and no option either.
    fn without_unit(&self, link: &GraphLink, quantity: &str, units: f64, help: &str) -> SpannedError {
        let message = format!("this link has a {quantity} of {units}, in a unit that the file does not name");
        SpannedError::new(SourceSpan::new(self.source, link.at.range()), message)
            .label("expected a unit, by an option")
            .help(help)
    }

    fn rate(&mut self, link: &GraphLink) -> Result<Rate, SpannedError> {
        let bps = |bps: u64| {
            let origin = SourceSpan::new(self.source, link.at.range());
            Rate::decode(&Node { value: Value::string(format!("{bps}bps")), origin })
        };
        let rate = match (&link.rate, self.chosen.unit) {
            (Some(Capacity::Rate(rate)), _) => Some(Rate::decode(&self.quantity(rate))?),
            (Some(Capacity::Bps(rate)), _) => Some(bps(*rate)?),
            (Some(Capacity::Units(units)), Some(unit)) => Some(bps(multiple(unit, *units))?),
            (Some(Capacity::Units(units)), None) if self.chosen.rate.is_none() => {
                let help = "give --unit 1Gbps, or whatever one unit is; or --rate, for all links of such a capacity";
                return Err(self.without_unit(link, "capacity", *units, help));
            }
            (Some(Capacity::Units(_)) | None, _) => None,
        };
        self.without_rate += usize::from(rate.is_none());
        Ok(rate.unwrap_or(self.default_rate))
    }

    fn delay(&mut self, link: &GraphLink) -> Result<Span, SpannedError> {
        let [a, b] = link.ends.map(|end| self.graph.nodes[end as usize].position);
        let delay = match (&link.delay, self.chosen.delay_unit) {
            (Some(Delay::Time(delay)), _) => Some(Span::decode(&self.quantity(delay))?),
            (Some(Delay::Units(units)), Some(unit)) => {
                let delay = times(unit, *units);
                if delay.is_none() {
                    let message = format!("this link has a delay of {units} times {}", write_span(unit));
                    let origin = SourceSpan::new(self.source, link.at.range());
                    return Err(
                        SpannedError::new(origin, message).label(format!("expected 0 to {}", write_span(MAX_SPAN)))
                    );
                }
                delay
            }
            (Some(Delay::Units(units)), None) if self.chosen.delay.is_none() => {
                let help = "give --delay-unit 1ms, or whatever one unit is; or --delay, for all links of such a delay";
                return Err(self.without_unit(link, "delay", *units, help));
            }
            (Some(Delay::Units(_)) | None, _) => None,
        };
        let delay = match (delay, &link.delay, a.zip(b)) {
            (Some(delay), ..) => delay,
            // Of a delay that the file states and that is left out, coordinates are no better source than the option.
            (None, None, Some((start, end))) => {
                self.measured += 1;
                fibre_delay(start, end)
            }
            (None, ..) => {
                self.without_delay += 1;
                self.default_delay
            }
        };
        if delay.is_zero() {
            let origin = SourceSpan::new(self.source, link.at.range());
            return Err(
                SpannedError::new(origin, "this link has no delay").label("expected a delay over zero, such as 1us")
            );
        }
        Ok(delay)
    }
}

/// The cables of a graph, identical ones together, in the order of first appearance.
fn cables(
    graph: &Graph,
    format: GraphFormat,
    chosen: &Chosen,
    source: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<CableGroup>, SpannedError> {
    let mut values = LinkValues {
        graph,
        chosen,
        source,
        default_rate: chosen.rate.unwrap_or(RATE),
        default_delay: chosen.delay.unwrap_or(if format.is_wide() { WIDE } else { SHORT }),
        without_rate: 0,
        without_delay: 0,
        measured: 0,
    };
    let mut loops = 0;
    let mut cables: Vec<CableGroup> = Vec::new();
    let mut known: BTreeMap<Likeness, Bundle> = BTreeMap::new();
    for link in &graph.links {
        let [a, b] = link.ends.map(|end| end as usize);
        if a == b {
            loops += 1;
            continue;
        }
        let origin = SourceSpan::new(source, link.at.range());
        let (rate, delay) = (values.rate(link)?, values.delay(link)?);
        let ends = [a.min(b), a.max(b)];
        let bundle = known.entry((ends, rate, delay)).or_insert_with(|| Bundle {
            cable: cables.len(),
            both: [0; 2],
            forward: [0; 2],
            origin,
        });
        let counts = match link.direction {
            LinkDirection::Both => &mut bundle.both,
            LinkDirection::Forward => &mut bundle.forward,
        };
        counts[usize::from(a > b)] += 1;
        let parallel = u16::try_from(bundle.parallel())
            .map_err(|_| SpannedError::new(origin, "over 65535 links join these nodes").label("expected fewer"))?;
        if bundle.cable == cables.len() {
            cables.push(CableGroup { ends, rate, delay, parallel });
        } else {
            cables[bundle.cable].parallel = parallel;
        }
    }
    let one_way = directions(&known, graph)?;
    if one_way > 0 {
        notes.push(format!("{}, which is a link of both directions here", counted(one_way, "link of one direction")));
    }
    let LinkValues { without_rate, without_delay, measured, default_rate, default_delay, .. } = values;
    // An edge list may have each link once, or once for each direction: these formats do not define it.
    let both = if matches!(format, GraphFormat::SndLib | GraphFormat::Links) { both_ways(&known) } else { 0 };
    if both > 0 {
        let pairs = counted(both, "pair of nodes with links in both directions");
        notes
            .push(format!("{pairs}, which are links of their own: the file does not state whether links are directed"));
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
            if units && chosen.unit.is_none() { "--rate; capacities without a unit are left out" } else { "--rate" };
        notes.push(format!("{}: {} ({how})", counted(without_rate, "link without a rate"), write_rate(default_rate)));
    }
    if without_delay > 0 {
        let units = graph.links.iter().any(|link| matches!(link.delay, Some(Delay::Units(_))));
        let how = if units && chosen.delay_unit.is_none() {
            "--delay; delays without a unit are left out"
        } else {
            "--delay"
        };
        let links = counted(without_delay, "link without a delay");
        notes.push(format!("{links}: {} ({how})", write_span(default_delay)));
    }
    Ok(cables)
}

/// Returns the number of node pairs with links in both directions.
fn both_ways(known: &BTreeMap<Likeness, Bundle>) -> usize {
    let mut pairs: BTreeMap<[usize; 2], [u32; 2]> = BTreeMap::new();
    for ((ends, ..), bundle) in known {
        let counts = pairs.entry(*ends).or_default();
        counts[0] += bundle.both[0];
        counts[1] += bundle.both[1];
    }
    pairs.values().filter(|counts| !counts.contains(&0)).count()
}

/// Refuses nodes if their links in one direction differ from those in the other: a link has the same rate and delay both
/// ways. Returns the number of links without a link back.
fn directions(known: &BTreeMap<Likeness, Bundle>, graph: &Graph) -> Result<usize, SpannedError> {
    let mut one_way = 0;
    // Bundles of the same nodes follow each other.
    let all: Vec<(&Likeness, &Bundle)> = known.iter().collect();
    for pair in all.chunk_by(|(one, _), (other, _)| one.0 == other.0) {
        let count = |direction: usize| pair.iter().map(|(_, bundle)| bundle.forward[direction]).sum::<u32>();
        let [forward, backward] = [count(0), count(1)];
        if forward == 0 || backward == 0 {
            one_way += (forward + backward) as usize;
        } else if let Some((_, bundle)) = pair.iter().find(|(_, bundle)| bundle.forward[0] != bundle.forward[1]) {
            let describe = |direction: usize| {
                let links = pair.iter().filter(|(_, bundle)| bundle.forward[direction] > 0).map(
                    |((_, rate, delay), bundle)| {
                        let times = if bundle.forward[direction] == 1 {
                            String::new()
                        } else {
                            format!("{} x ", bundle.forward[direction])
                        };
                        format!("{times}{} over {}", write_rate(*rate), write_span(*delay))
                    },
                );
                links.collect::<Vec<_>>().join(", ")
            };
            let [low, high] = pair[0].0.0.map(|end| graph.nodes[end].name.as_str());
            let message = format!("{low} has {} to {high}, and {} back", describe(0), describe(1));
            return Err(SpannedError::new(bundle.origin, message)
                .label("expected the same in both directions")
                .help("a link here has one rate and one delay, both ways: directions that differ are not supported"));
        }
    }
    Ok(one_way)
}

/// Returns a number of units of a rate, in bits a second; saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rounded to what 53 bits hold, and refused if it is no rate of a file"
)]
fn multiple(unit: Rate, units: f64) -> u64 {
    (unit.bps() as f64 * units).round() as u64
}

/// Returns a number of units of a time, if that is a time of a file.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "rounded to what 53 bits hold, and limited"
)]
fn times(unit: Span, units: f64) -> Option<Span> {
    let ps = (unit.ps() as f64 * units).round();
    (0.0..=MAX_SPAN.ps() as f64).contains(&ps).then(|| Span::from_ps(ps as i64))
}

/// The delay of light in glass along a great circle: whole microseconds, at least one.
fn fibre_delay(start: Position, end: Position) -> Span {
    let [from, to] = [start, end].map(|position| position.latitude.to_radians());
    let east = (end.longitude - start.longitude).to_radians();
    // The haversine formula, with the same trigonometry on every machine.
    let half = |angle: f64| libm::sin(angle / 2.0);
    let of = half(to - from).powi(2) + libm::cos(from) * libm::cos(to) * half(east).powi(2);
    let kilometres = 2.0 * EARTH * libm::asin(libm::sqrt(of.clamp(0.0, 1.0)));
    #[expect(clippy::cast_possible_truncation, reason = "at most half of the earth's circumference")]
    let us = (kilometres / IN_GLASS * 1e6).round() as i64;
    Span::from_us(us.max(1))
}

/// The largest part of a graph that is joined: its nodes, and its cables by their places among these.
fn largest(graph: &Graph, cables: Vec<CableGroup>, notes: &mut Vec<String>) -> (Vec<usize>, Vec<CableGroup>) {
    let mut parts = DisjointSets::new(graph.nodes.len());
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
    let mut new_index = vec![usize::MAX; graph.nodes.len()];
    nodes.iter().enumerate().for_each(|(new, &node)| new_index[node] = new);
    let inside = cables.into_iter().filter(|cable| new_index[cable.ends[0]] != usize::MAX);
    let cables = inside.map(|cable| CableGroup { ends: cable.ends.map(|end| new_index[end]), ..cable }).collect();
    (nodes, cables)
}

/// Sets of nodes that are joined.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    /// Returns the node that represents a node's part; halves the path to it.
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
fn datacenters(has_hosts: &[bool], cables: &[CableGroup], notes: &mut Vec<String>) -> Vec<u16> {
    let count = has_hosts.len();
    let mut parts = DisjointSets::new(count);
    for cable in cables.iter().filter(|cable| cable.delay < LONG_HAUL) {
        parts.join(cable.ends);
    }
    let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
    for node in (0..count).filter(|&node| has_hosts[node]) {
        let next = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
        numbers.entry(parts.root(node)).or_insert(next);
    }
    let mut datacenter: Vec<Option<u16>> = (0..count).map(|node| numbers.get(&parts.root(node)).copied()).collect();
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &CableGroup { ends: [a, b], .. } in cables {
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
        let imported = links(text, &GraphOptions { rate: Some("10Gbps"), ..GraphOptions::default() }).unwrap();
        for part in [
            "{ name = \"h1\", kind = \"host\" }",
            "{ name = \"s2\", kind = \"switch\", datacenter = 1 }",
            "{ between = [\"h1\", \"s1\"], rate = \"10Gbps\", delay = \"1us\" }",
            "{ between = [\"s1\", \"s2\"], rate = \"400Gbps\", delay = \"5ms\", parallel = 2 }",
        ] {
            assert!(imported.toml.contains(part), "{part}\n{}", imported.toml);
        }
        let notes = imported.notes.join("\n");
        for part in [
            "largest part: far, away",
            "separate 2 datacenters",
            "3 nodes with one link are hosts",
            "4 links without a rate: ",
        ] {
            assert!(notes.contains(part), "{part}\n{notes}");
        }
    }

    /// Rows of both directions are links of their own, whatever their rates; a note states that.
    #[test]
    fn bidirectional_rows_are_noted() {
        let text = "from,to,rate,delay\nh,a,10Gbps,1us\na,b,10Gbps,1us\nb,a,40Gbps,1us\nb,i,10Gbps,1us\nb,i,10Gbps,1us\nj,a,10Gbps,1us\n";
        let imported = links(text, &GraphOptions::default()).unwrap();
        assert!(
            imported.notes.join("\n").contains("1 pair of nodes with links in both directions"),
            "{:?}",
            imported.notes
        );
        assert_eq!(imported.toml.matches("\"a\", \"b\"").count(), 2, "{}", imported.toml);
        let once = links(&text.replace("b,a,40", "a,b,40"), &GraphOptions::default()).unwrap();
        assert!(!once.notes.join("\n").contains("both directions"), "{:?}", once.notes);
    }

    #[test]
    fn a_pair_of_nodes_gets_hosts() {
        let imported =
            links("from,to\na,b\n", &GraphOptions { hosts: NonZeroU16::new(3), ..GraphOptions::default() }).unwrap();
        assert!(imported.toml.contains("hosts = 3, host_rate = \"100Gbps\""), "{}", imported.toml);
    }

    #[test]
    fn propagation_delay_in_fibre() {
        let berlin = Position { latitude: 52.52, longitude: 13.405 };
        let paris = Position { latitude: 48.8566, longitude: 2.3522 };
        // 878 km at 199,862 km/s.
        let delay = fibre_delay(berlin, paris);
        assert!((delay.ps() - 4_392_000_000).abs() < 20_000_000, "{delay}");
        assert_eq!((fibre_delay(berlin, berlin), fibre_delay(paris, berlin)), (SHORT, delay));
    }

    #[test]
    fn both_directions_of_a_directed_graph_are_one_link() {
        let edge = |from: &str, to: &str| format!("<edge source=\"{from}\" target=\"{to}\"/>");
        let edges = [edge("a", "b"), edge("b", "a"), edge("b", "c"), edge("c", "c")].concat();
        let text = format!(
            "<graphml><graph edgedefault=\"directed\"><node id=\"a\"/><node id=\"b\"/><node id=\"c\"/>{edges}</graph></graphml>"
        );
        let imported = import_graph(&text, GraphFormat::GraphMl, &GraphOptions::default(), &NAMES).unwrap();
        assert!(
            !imported.toml.contains("parallel") && imported.toml.matches("between").count() == 2,
            "{}",
            imported.toml
        );
        assert!(imported.notes.join("\n").contains("1 link from a node to itself"));
        let both = text.replace("\"directed\"", "\"undirected\"");
        let imported = import_graph(&both, GraphFormat::GraphMl, &GraphOptions::default(), &NAMES).unwrap();
        assert!(imported.toml.contains("parallel = 2"));
    }

    fn graphml(body: &str, options: &GraphOptions<'_>) -> Result<Imported, String> {
        let text = format!(
            "<graphml><key id=\"r\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"d\" for=\"edge\" attr.name=\"delay\"/>\n\
             <graph edgedefault=\"directed\"><node id=\"a\"/><node id=\"b\"/><node id=\"c\"/>\n{body}</graph></graphml>"
        );
        let names = GraphNames { scenario: "net", graph: "net.graphml" };
        import_graph(&text, GraphFormat::GraphMl, options, &names).map_err(|error| error.to_string())
    }

    fn edge(from: &str, to: &str, rate: &str, delay: &str) -> String {
        let data = |key: &str, text: &str| {
            if text.is_empty() { String::new() } else { format!("<data key=\"{key}\">{text}</data>") }
        };
        format!("<edge source=\"{from}\" target=\"{to}\">{}{}</edge>\n", data("r", rate), data("d", delay))
    }

    /// Two directions that differ, in rate, delay or number, were two links of both directions each: twice the capacity.
    #[test]
    fn directions_that_differ_are_refused() {
        let none = GraphOptions::default();
        let same = [edge("a", "b", "10Gbps", "1ms"), edge("b", "a", "10000Mbps", "1000us")].concat();
        for (back, parts) in [
            (edge("b", "a", "40Gbps", "1ms"), ["a has 10Gbps over 1ms to b", "40Gbps over 1ms back"]),
            (edge("b", "a", "10Gbps", "2ms"), ["a has 10Gbps over 1ms to b", "10Gbps over 2ms back"]),
            (edge("b", "a", "10Gbps", ""), ["a has 10Gbps over 1ms to b", "10Gbps over 5ms back"]),
            (
                [edge("b", "a", "10Gbps", "1ms"), edge("b", "a", "10Gbps", "1ms")].concat(),
                ["a has 10Gbps over 1ms to b", "2 x 10Gbps over 1ms back"],
            ),
        ] {
            let options = GraphOptions { delay: Some("5ms"), ..none };
            let body = [edge("a", "b", "10Gbps", "1ms"), back, edge("b", "c", "", "1ms")].concat();
            let error = graphml(&body, &options).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}\n{error}");
            assert!(error.contains("net.graphml:"), "{error}");
        }
        let imported = graphml(&[same.clone(), edge("b", "c", "", "1ms")].concat(), &none).unwrap();
        assert_eq!((imported.toml.matches("between").count(), imported.toml.matches("parallel").count()), (2, 0));
        assert!(imported.notes.join("\n").contains("1 link of one direction, which is a link of both directions here"));
        // Two links of different rates, each with both directions.
        let other = [edge("b", "a", "40Gbps", "1ms"), edge("a", "b", "40Gbps", "1ms")].concat();
        let imported = graphml(&[same, other, edge("b", "c", "", "1ms")].concat(), &none).unwrap();
        assert_eq!(imported.toml.matches("between").count(), 3, "{}", imported.toml);
    }

    /// Numbers without a unit are not left out, and none is guessed.
    #[test]
    fn numbers_without_a_unit_need_an_option() {
        let none = GraphOptions::default();
        let body = [edge("a", "b", "2.5", "4"), edge("b", "c", "10Gbps", "1ms")].concat();
        let (unit, delay_unit) = (Some("10Gbps"), Some("500us"));
        let error = graphml(&body, &none).unwrap_err();
        assert!(
            error.contains("net.graphml:3:1") && error.contains("a capacity of 2.5") && error.contains("--unit"),
            "{error}"
        );
        let error = graphml(&body, &GraphOptions { unit, ..none }).unwrap_err();
        assert!(error.contains("a delay of 4") && error.contains("--delay-unit"), "{error}");
        let imported = graphml(&body, &GraphOptions { unit, delay_unit, ..none }).unwrap();
        assert!(imported.toml.contains("rate = \"25Gbps\", delay = \"2ms\""), "{}", imported.toml);
        let chosen = GraphOptions { rate: Some("40Gbps"), delay: Some("3ms"), ..none };
        let imported = graphml(&body, &chosen).unwrap();
        assert!(imported.toml.contains("rate = \"40Gbps\", delay = \"3ms\""), "{}", imported.toml);
        assert!(imported.notes.join("\n").contains("capacities without a unit are left out"), "{:?}", imported.notes);
        let sndlib = "NODES (\n a ( 7.10 50.74 )\n b ( 9.99 48.40 )\n)\nLINKS (\n L ( a b ) 40.0 0.0 0.0 0.0 ( )\n)\n";
        let import = |options| import_graph(sndlib, GraphFormat::SndLib, options, &NAMES).map_err(|it| it.to_string());
        assert!(import(&none).unwrap_err().contains("a capacity of 40"));
        assert!(import(&GraphOptions { unit: Some("1Gbps"), ..none }).is_ok());
    }

    #[test]
    fn errors_have_byte_ranges() {
        let none = GraphOptions::default();
        for (text, options, parts) in [
            ("from,to,delay\na,b,0s\n", none, ["net.csv:2:1", "over zero"]),
            ("from,to,rate\na,b,5 apples\n", none, ["net.csv:2:5", "unit `apples`"]),
            ("from,to,rate_MBps\na,b,5\n", none, ["net.csv:2:5", "eight times as many"]),
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
