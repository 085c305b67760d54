//! htsim's topologies: trees of two or three tiers.

use units::{Rate, Span};

use super::{lines, number};
use crate::decode::Field;
use crate::error::{SourceSpan, SpannedError};
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// One tier of switches, from the hosts up.
#[derive(Clone, Default)]
struct Tier {
    rate: Option<Rate>,
    /// Delay of its links downwards, and of passing its switches.
    link: Span,
    switch: Span,
    down: u32,
    up: u32,
    /// Parallel links to each switch below.
    bundle: u32,
    origin: Option<SourceSpan>,
}

/// The counts that follow from the tiers.
struct TreeCounts {
    nodes: u32,
    tiers: Vec<Tier>,
    pods: u32,
    edges: u32,
    aggregations: u32,
    cores: u32,
}

pub(crate) const KEYS: [&str; 13] = [
    "Nodes",
    "Tiers",
    "Podsize",
    "Tier",
    "Downlink_speed_Gbps",
    "Radix_Down",
    "Radix_Up",
    "Downlink_Latency_ns",
    "Switch_Latency_ns",
    "Bundle",
    "Oversubscribed",
    "Queue_Down",
    "Queue_Up",
];

/// More switches than this are a mistake.
const MAX: u32 = 20_000;

/// A topology as the value of `[topology]`.
pub(super) fn read(text: &str, source: u32, hosts: u32, notes: &mut Vec<String>) -> Result<Value, SpannedError> {
    let tree = tree(text, source, hosts, notes)?;
    if tree.tiers.iter().any(|tier| !tier.switch.is_zero()) {
        notes.push("a switch's latency is half on each of its links, so that every path has the same delay".into());
    }
    Ok(tree.textbook().unwrap_or_else(|| tree.custom()))
}

/// A network where htsim would take one from its command line.
pub(super) fn guessed(nodes: u32, notes: &mut Vec<String>) -> Value {
    let k = (2..=128).step_by(2).find(|k: &u32| k.pow(3) / 4 == nodes);
    if let Some(k) = k {
        notes.push(format!(
            "no topology was given: {nodes} nodes are a fat tree with k = {k}, 100 Gbps and 1 us a link"
        ));
        return Value::table([
            ("kind", Value::string("fat-trees")),
            ("datacenters", Value::Integer(1)),
            ("k", k.encode()),
        ]);
    }
    notes.push(format!("no topology was given: {nodes} nodes are on one switch, 100 Gbps and 1 us a link"));
    Value::table([("kind", Value::string("single-switch")), ("hosts", nodes.encode())])
}

fn tree(text: &str, source: u32, hosts: u32, notes: &mut Vec<String>) -> Result<TreeCounts, SpannedError> {
    let (mut nodes, mut tier_count, mut pod_size) = (None, None, None);
    let mut tiers: Vec<Tier> = Vec::new();
    let mut queues = false;
    for tokens in lines(text, source) {
        let (token, origin) = tokens[0];
        let known = KEYS.into_iter().find(|key| key.eq_ignore_ascii_case(token));
        match (known, tiers.last_mut()) {
            (Some("Nodes"), _) => nodes = Some((number::<u32>(&tokens, 0)?, origin)),
            (Some("Tiers"), _) => tier_count = Some((number::<usize>(&tokens, 0)?, origin)),
            (Some("Podsize"), _) => pod_size = Some((number::<u32>(&tokens, 0)?, origin)),
            (Some("Tier"), _) => {
                if number::<usize>(&tokens, 0)? != tiers.len() || tiers.len() == 3 {
                    return Err(SpannedError::new(origin, "tiers come in order: 0, 1 and perhaps 2")
                        .label(format!("expected Tier {}", tiers.len())));
                }
                tiers.push(Tier { bundle: 1, origin: Some(origin), ..Tier::default() });
            }
            (Some("Downlink_speed_Gbps"), Some(tier)) => tier.rate = Some(gbps(&tokens)?),
            (Some("Downlink_Latency_ns"), Some(tier)) => tier.link = nanoseconds(&tokens)?,
            (Some("Switch_Latency_ns"), Some(tier)) => tier.switch = nanoseconds(&tokens)?,
            (Some("Radix_Down"), Some(tier)) => tier.down = number(&tokens, 0)?,
            (Some("Radix_Up"), Some(tier)) => tier.up = number(&tokens, 0)?,
            (Some("Bundle"), Some(tier)) => tier.bundle = number::<u32>(&tokens, 0)?.max(1),
            // Redundant: the radices and rates determine it.
            (Some("Oversubscribed"), Some(_)) => drop(number::<Decimal>(&tokens, 0)?),
            (Some("Queue_Down" | "Queue_Up"), Some(_)) => queues = true,
            (Some(key), _) => {
                return Err(
                    SpannedError::new(origin, format!("`{key}` belongs to a tier")).label("before the first `Tier`")
                );
            }
            (None, _) => {
                return Err(SpannedError::new(origin, format!("unknown word `{token}`"))
                    .label("unknown word")
                    .suggest(token, KEYS));
            }
        }
    }
    if queues {
        notes.push("queue sizes (Queue_Up, Queue_Down) are left out: set [port] buffer".into());
    }
    let top = SourceSpan::new(source, 0..0);
    let missing = |key: &str| SpannedError::new(top, format!("the topology has no line `{key}`"));
    let (nodes, nodes_at) = nodes.ok_or_else(|| missing("Nodes"))?;
    if nodes != hosts {
        return Err(SpannedError::new(nodes_at, format!("{nodes} nodes here, {hosts} in the connection matrix"))
            .label("expected the same"));
    }
    let (stated, tiers_at) = tier_count.ok_or_else(|| missing("Tiers"))?;
    if stated != tiers.len() || !(2..=3).contains(&stated) {
        return Err(SpannedError::new(tiers_at, format!("`Tiers {stated}`, but there are {}", tiers.len()))
            .label("expected 2 or 3 tiers"));
    }
    let (pod_size, pod_at) =
        if stated == 2 { (nodes, nodes_at) } else { pod_size.ok_or_else(|| missing("Podsize"))? };
    counted(nodes, pod_size, pod_at, tiers)
}

/// Counts switches, and refuses tiers that do not fit each other.
fn counted(nodes: u32, pod_size: u32, pod_at: SourceSpan, tiers: Vec<Tier>) -> Result<TreeCounts, SpannedError> {
    for tier in &tiers {
        let at = tier.origin.unwrap_or(pod_at);
        if tier.rate.is_none() || tier.link.is_zero() || tier.down == 0 {
            return Err(SpannedError::new(
                at,
                "a tier has Downlink_speed_Gbps, Downlink_Latency_ns and Radix_Down, all over 0",
            )
            .label("incomplete tier"));
        }
    }
    let check_tier = |ok: bool, at: Option<SourceSpan>, message: String| {
        if ok {
            Ok(())
        } else {
            Err(SpannedError::new(at.unwrap_or(pod_at), message).label("does not fit the tier below"))
        }
    };
    let at = |tier: usize| tiers[tier].origin;
    check_tier(
        pod_size > 0 && nodes.is_multiple_of(pod_size),
        Some(pod_at),
        format!("{nodes} nodes are no whole number of pods of {pod_size}"),
    )?;
    let pods = nodes / pod_size;
    check_tier(
        pod_size.is_multiple_of(tiers[0].down),
        at(0),
        format!("{} hosts a switch do not fill a pod of {pod_size}", tiers[0].down),
    )?;
    let edges = pod_size / tiers[0].down;
    check_tier(
        tiers[0].up > 0 && tiers[0].up.is_multiple_of(tiers[1].bundle),
        at(1),
        format!("{} uplinks in bundles of {}", tiers[0].up, tiers[1].bundle),
    )?;
    let aggregations = tiers[0].up / tiers[1].bundle;
    let down = edges.saturating_mul(tiers[1].bundle);
    check_tier(
        tiers[1].down == down,
        at(1),
        format!("Radix_Down {} where {down} links come from below", tiers[1].down),
    )?;
    let mut cores = 0;
    if let Some(core) = tiers.get(2) {
        check_tier(
            tiers[1].up > 0 && tiers[1].up.is_multiple_of(core.bundle),
            at(2),
            format!("{} uplinks in bundles of {}", tiers[1].up, core.bundle),
        )?;
        cores = aggregations.saturating_mul(tiers[1].up / core.bundle);
        let down = pods.saturating_mul(core.bundle);
        check_tier(core.down == down, at(2), format!("Radix_Down {} where {down} links come from below", core.down))?;
    }
    let switches = pods.saturating_mul(edges.saturating_add(aggregations)).saturating_add(cores);
    check_tier(
        switches <= MAX && nodes <= 200_000,
        Some(pod_at),
        format!("{switches} switches and {nodes} nodes are too many"),
    )?;
    Ok(TreeCounts { nodes, tiers, pods, edges, aggregations, cores })
}

impl TreeCounts {
    fn rate(&self, tier: usize) -> Rate {
        self.tiers[tier].rate.unwrap_or_default()
    }

    /// Delay of the links below a tier, with half the latency of the switches at both ends.
    fn delay(&self, tier: usize) -> Span {
        let below = if tier == 0 { Span::ZERO } else { self.tiers[tier - 1].switch };
        self.tiers[tier].link + (self.tiers[tier].switch + below).over(2)
    }

    /// The same as a fat tree, if it is one.
    fn textbook(&self) -> Option<Value> {
        let [edge, aggregation, core] = &self.tiers[..] else { return None };
        let half = self.edges;
        let shape = self.pods == 2 * half
            && self.aggregations == half
            && aggregation.up == half
            && [edge, aggregation, core].iter().all(|tier| tier.bundle == 1)
            && self.delay(0) == self.delay(1)
            && self.delay(1) == self.delay(2);
        shape.then(|| {
            Value::table([
                ("kind", Value::string("fat-trees")),
                ("datacenters", Value::Integer(1)),
                ("k", self.pods.encode()),
                ("hosts_per_edge", edge.down.encode()),
                ("host_rate", self.rate(0).encode()),
                ("edge_rate", self.rate(1).encode()),
                ("core_rate", self.rate(2).encode()),
                ("link_delay", self.delay(0).encode()),
            ])
        })
    }

    /// Node by node and link by link.
    fn custom(&self) -> Value {
        let mut nodes = Vec::new();
        let mut links = Vec::new();
        let mut node = |name: &str, kind: &str| {
            nodes.push(Node::generated(Value::table([("name", Value::string(name)), ("kind", Value::string(kind))])));
        };
        let mut link = |low: &str, high: &str, tier: usize| {
            let class = ["host", "edge", "core"][tier];
            let bundle = self.tiers[tier].bundle;
            links.push(Node::generated(Value::table([
                ("between", vec![low.to_owned(), high.to_owned()].encode()),
                ("rate", self.rate(tier).encode()),
                ("delay", self.delay(tier).encode()),
                ("class", Value::string(class)),
                ("parallel", if tier == 0 || bundle == 1 { Value::Absent } else { bundle.encode() }),
            ])));
        };
        for core in 0..self.cores {
            node(&format!("core{core}"), "switch");
        }
        for pod in 0..self.pods {
            for aggregation in 0..self.aggregations {
                let name = format!("pod{pod}.agg{aggregation}");
                node(&name, "switch");
                let each = self.cores / self.aggregations;
                for core in aggregation * each..(aggregation + 1) * each {
                    link(&name, &format!("core{core}"), 2);
                }
            }
            for edge in 0..self.edges {
                let name = format!("pod{pod}.edge{edge}");
                node(&name, "switch");
                for aggregation in 0..self.aggregations {
                    link(&name, &format!("pod{pod}.agg{aggregation}"), 1);
                }
                let first = (pod * self.edges + edge) * self.tiers[0].down;
                for host in (first..first + self.tiers[0].down).filter(|&host| host < self.nodes) {
                    let host = format!("host{host}");
                    node(&host, "host");
                    link(&host, &name, 0);
                }
            }
        }
        Value::table([
            ("kind", Value::string("custom")),
            ("nodes", Value::Array(nodes)),
            ("links", Value::Array(links)),
        ])
    }
}

fn gbps(tokens: &[(&str, SourceSpan)]) -> Result<Rate, SpannedError> {
    let rate = Rate::from_bps(number::<Decimal>(tokens, 0)?.of(1_000_000_000));
    if rate < Rate::from_mbps(1) || rate.bps() > 1 << 43 {
        return Err(SpannedError::new(tokens[0].1, format!("a rate of {rate} is out of range"))
            .label("expected 0.001 to 8796 Gbps"));
    }
    Ok(rate)
}

fn nanoseconds(tokens: &[(&str, SourceSpan)]) -> Result<Span, SpannedError> {
    let ps = number::<Decimal>(tokens, 0)?.of(1_000);
    match i64::try_from(ps) {
        Ok(ps) if ps <= 1_000_000_000_000_000 => Ok(Span::from_ps(ps)),
        _ => Err(SpannedError::new(tokens[0].1, "a latency over 1000 s").label("expected nanoseconds")),
    }
}
