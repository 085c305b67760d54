//! Sampled ports and flows.

use std::collections::BTreeSet;

use experiment::{FlowId, HostConfig, SeriesConfig};
use fabric::{HostId, LinkClass, LinkId, Network, NodeId, NodeKind};
use units::Span;

use crate::config::{FlowChoice, Monitor, Tier};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;

/// Resolves the names of `[monitor]`.
pub(crate) fn series(
    series: &Monitor,
    network: &Network,
    receivers: &[HostId],
    host: &HostConfig,
    flows: usize,
    stop: Span,
    warnings: &mut Vec<String>,
) -> Result<SeriesConfig, SpannedError> {
    let mut ports = Vec::new();
    for name in &series.ports {
        let found = ports_named(name, network, Some(receivers))?;
        if found.is_empty() {
            let reason = match name.value.as_str() {
                "receiver" => {
                    "no traffic of this scenario has one receiver; \"class:host\" names the ports to hosts".into()
                }
                _ => format!("this network's classes are {}", classes(network)),
            };
            warnings.push(format!("series: no port answers to \"{}\": {reason}", name.value));
        }
        ports.extend(found);
    }
    ports.sort_unstable();
    ports.dedup();
    let mut switches = Vec::new();
    for name in &series.switches {
        let found = switches_named(name, network)?;
        // Relays are one scheme's: the others lack them by design.
        if found.is_empty() && name.value != "tier:relay" {
            warnings.push(format!("series: no switch that shares its buffer answers to \"{}\"", name.value));
        }
        switches.extend(found);
    }
    switches.sort_unstable();
    switches.dedup();
    let chosen = flows_chosen(&series.flows, flows)?;
    let predictors = flows_chosen(&series.predictors, flows)?;
    if !predictors.is_empty() && host.int {
        return Err(SpannedError::new(series.predictors.origin, "packets carry the reports of ports already (INT)")
            .label("predictors cannot be compared under this scheme's laws"));
    }
    if !predictors.is_empty()
        && network.nodes().iter().any(|series| series.kind == NodeKind::Switch && series.switch.is_none())
    {
        return Err(SpannedError::new(
            series.predictors.origin,
            "only switches with a shared buffer forward predictor data",
        )
        .label("needs [switch]"));
    }
    if series.interval.is_zero() && !(ports.is_empty() && switches.is_empty() && chosen.is_empty()) {
        warnings
            .push("series: ports, switches or flows are chosen, but `interval` is zero, so nothing is sampled".into());
    }
    let samples = (ports.len() + switches.len() + chosen.len()) as u64;
    let samples = samples.saturating_mul(stop.unsigned_ps().checked_div(series.interval.unsigned_ps()).unwrap_or(0));
    if samples > MAX_SAMPLES {
        return Err(SpannedError::new(
            series.flows.origin,
            format!("[monitor] would take up to {samples} samples by the stop"),
        )
        .label(format!("at most {MAX_SAMPLES}: choose fewer flows or ports"))
        .help(format!("or lengthen `interval`, now {}, or shorten `stop`, now {stop}", series.interval)));
    }
    Ok(SeriesConfig { interval: series.interval, ports, flows: chosen, switches, predictors })
}

/// The classes of a network's links, in words.
pub(crate) fn classes(network: &Network) -> String {
    let classes: BTreeSet<&str> = network.links().iter().map(|link| link.class.name()).collect();
    classes.into_iter().collect::<Vec<_>>().join(", ")
}

/// More would not fit the memory of an ordinary machine.
const MAX_SAMPLES: u64 = 200_000_000;

fn flows_chosen(choice: &Located<FlowChoice>, flows: usize) -> Result<Vec<FlowId>, SpannedError> {
    Ok(match &choice.value {
        FlowChoice::All => (0..index32(flows)).map(FlowId).collect(),
        FlowChoice::None => Vec::new(),
        FlowChoice::First(count) => (0..(*count).min(index32(flows))).map(FlowId).collect(),
        FlowChoice::Listed(ids) => {
            if let Some(id) = ids.iter().find(|&&id| id as usize >= flows) {
                return Err(SpannedError::new(choice.origin, format!("there is no flow {id}: the run has {flows}"))
                    .label(format!("expected 0 to {}", flows - 1)));
            }
            ids.iter().map(|&id| FlowId(id)).collect()
        }
    })
}

/// Returns the ports with a name; none if no link is of the class. `receiver` is accepted as a name if `receivers` are
/// given.
pub(crate) fn ports_named(
    name: &Located<String>,
    network: &Network,
    receivers: Option<&[HostId]>,
) -> Result<Vec<LinkId>, SpannedError> {
    if let (Some(receivers), "receiver") = (receivers, name.as_str()) {
        return Ok(receivers.iter().map(|&host| network.links()[network.uplink(host).index()].reverse).collect());
    }
    let all = (0..index32(network.links().len())).map(LinkId);
    if let Some(class) = name.strip_prefix("class:") {
        let class = LinkClass::from_name(class).ok_or_else(|| {
            SpannedError::new(name.origin, format!("unknown link class `{class}`"))
                .label("unknown link class")
                .suggest(class, LinkClass::ALL.map(LinkClass::name))
        })?;
        return Ok(all.filter(|link| network.links()[link.index()].class == class).collect());
    }
    let found = links_named(name, network);
    if found.is_empty() {
        // A name costs as much as its switch has ports: in a large network none is suggested.
        let few = all.take(if network.links().len() <= MAX_SUGGESTED { MAX_SUGGESTED } else { 0 });
        let names: Vec<String> = few.map(|link| network.link_name(link)).collect();
        return Err(SpannedError::new(name.origin, format!("unknown port `{}`", name.value))
            .label("unknown port")
            .suggest(name, names.iter().map(String::as_str))
            .help(match receivers {
                Some(_) => "a port is named `from>to`, `class:inter` or `receiver`",
                None => "links are named by the ports before them, `from>to` or `class:inter`",
            }));
    }
    Ok(found)
}

/// Switches by name, by tier, or all, as far as they share their buffers.
fn switches_named(name: &Located<String>, network: &Network) -> Result<Vec<NodeId>, SpannedError> {
    let nodes = network.nodes();
    let sharing = || (0..index32(nodes.len())).map(NodeId).filter(|node| nodes[node.index()].switch.is_some());
    if name.value == "all" {
        return Ok(sharing().collect());
    }
    if let Some(tier_name) = name.strip_prefix("tier:") {
        let tier = Tier::ALL.into_iter().find(|tier| tier.name() == tier_name).ok_or_else(|| {
            SpannedError::new(name.origin, format!("unknown tier `{tier_name}`"))
                .label("unknown tier")
                .suggest(tier_name, Tier::ALL.map(Tier::name))
        })?;
        return Ok(sharing().filter(|&node| super::switches::tier(network, node) == tier).collect());
    }
    let switches = || nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch);
    match switches().find(|(_, node)| node.name == name.value) {
        Some((index, node)) => Ok(node.switch.iter().map(|_| NodeId(index32(index))).collect()),
        None => Err(SpannedError::new(name.origin, format!("unknown switch `{}`", name.value))
            .label("unknown switch")
            .suggest(name, switches().map(|(_, node)| node.name.as_str()).take(MAX_SUGGESTED))
            .help("a switch is named as in results, or `tier:border`, or `all`")),
    }
}

/// Networks of more links suggest no names.
const MAX_SUGGESTED: usize = 4_000;

/// The links named `from>to`, or the one of them named `from>to#index`, as [`Network::link_name`] names them.
fn links_named(name: &str, network: &Network) -> Vec<LinkId> {
    let (ends, index) = match name.split_once('#') {
        Some((ends, index)) => (ends, Some(index)),
        None => (name, None),
    };
    let node = |name: &str| network.nodes().iter().position(|node| node.name == name).map(|at| NodeId(index32(at)));
    let Some((from, to)) = ends.split_once('>').and_then(|(from, to)| Some((node(from)?, node(to)?))) else {
        return Vec::new();
    };
    let parallel = network.links_out(from).map(LinkId).filter(|link| network.links()[link.index()].to == to);
    match index {
        None => parallel.collect(),
        Some(index) => index.parse().ok().and_then(|index| parallel.clone().nth(index)).into_iter().collect(),
    }
}
