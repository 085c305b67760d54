//! Target of imported traffic: an existing scenario, with its traffic replaced, or a network made for the import.

use units::Span;

use super::Imported;
use crate::Error;
use crate::decode::Field;
use crate::error::{SourceSpan, Sources, SpannedError};
use crate::foreign::HostNames;
use crate::load::{parse, tree_of};
use crate::overrides::Overrides;
use crate::quantity::MAX_SPAN;
use crate::tree::{Entry, Node, Value};
use crate::write::to_toml;

/// A scenario that lends its network, ports, hosts and schemes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its file, for messages.
    pub name: &'a str,
}

/// A scenario without traffic.
pub(super) struct Stage {
    /// Its keys but for its name, title, description and traffic, in order.
    kept: Vec<Entry>,
    stop: Span,
    pub(super) host_names: HostNames,
}

/// Keys that remain in a scenario when its traffic is replaced.
const KEPT: [&str; 9] = ["seed", "clock", "topology", "port", "switch", "host", "schemes", "failure", "monitor"];

/// The time at which runs end at the earliest.
const STOP: Span = Span::from_s(10);

/// An entry of `[[traffic]]`, and the file next to the scenario that it names: name and text.
pub(super) struct ListedTraffic {
    pub(super) traffic: Value,
    pub(super) flows: Option<(String, String)>,
}

impl Stage {
    /// Returns the stage of a scenario, if one is given; otherwise that of two datacenters with at least `hosts` hosts.
    pub(super) fn new(base: Option<&Base<'_>>, hosts: usize, notes: &mut Vec<String>) -> Result<Self, Error> {
        if let Some(base) = base {
            return Self::on(base, notes);
        }
        let (topology, network_name) = two_datacenters(hosts).map_err(|error| Sources::default().explain(error))?;
        notes.push(format!(
            "no scenario was given: the network is {network_name}, with this project's defaults, under DCTCP"
        ));
        Self::with(topology, network_name)
    }

    /// Returns the stage of an existing scenario.
    fn on(base: &Base<'_>, notes: &mut Vec<String>) -> Result<Self, Error> {
        let scenario = parse(base.text, base.name, &Overrides::default())?;
        let mut sources = Sources::default();
        let root = tree_of(base.text, base.name, &mut sources).map_err(|error| sources.explain(error))?;
        let entries = root.entries().unwrap_or_default();
        let left_out: Vec<String> = entries
            .iter()
            .map(|entry| entry.key.as_str())
            .filter(|key| {
                !KEPT.contains(key) && !["schema", "name", "title", "description", "traffic", "stop"].contains(key)
            })
            .map(|key| format!("`{key}`"))
            .collect();
        if !left_out.is_empty() {
            notes.push(format!("left out of {}: {}", base.name, left_out.join(", ")));
        }
        let kept = entries.iter().filter(|entry| KEPT.contains(&entry.key.as_str())).cloned().collect();
        Self::of(kept, *scenario.config.stop, format!("the network of {}", base.name))
    }

    /// On a network, `[topology]`, with this project's defaults.
    pub(super) fn with(topology: Value, network_name: String) -> Result<Self, Error> {
        let scheme = Value::table([("dctcp", Value::table([("law", Value::string("dctcp"))]))]);
        let Value::Table(kept) = Value::table([("topology", topology), ("schemes", scheme)]) else {
            return Ok(Self { kept: Vec::new(), stop: STOP, host_names: HostNames::unknown(network_name) });
        };
        Self::of(kept, STOP, network_name)
    }

    /// Builds the network once, to know its hosts.
    fn of(kept: Vec<Entry>, stop: Span, network_name: String) -> Result<Self, Error> {
        let mut stage = Self { kept, stop, host_names: HostNames::unknown(network_name) };
        let flow = Value::table([("src", Value::Integer(0)), ("dst", Value::Integer(1)), ("size", Value::Integer(1))]);
        let flows = Value::Array(vec![Node::generated(flow)]);
        let traffic = Value::table([("kind", Value::string("list")), ("flows", flows)]);
        let toml = stage.toml("network", "", "", traffic, Span::ZERO);
        let scenario = parse(&toml, "the network", &Overrides::default())?;
        let Some(run) = scenario.runs().into_iter().next() else { return Ok(stage) };
        stage.host_names = stage.host_names.of(&run.build()?.setup.network);
        Ok(stage)
    }

    /// The scenario's text. Its runs may last `until`, at least.
    fn toml(&self, name: &str, title: &str, description: &str, traffic: Value, until: Span) -> String {
        let text = |text: &str| if text.is_empty() { Value::Absent } else { Value::string(text) };
        let stop = self.stop.max(until);
        let mut entries = vec![
            ("schema", Value::Integer(1)),
            ("name", Value::string(name)),
            ("title", text(title)),
            ("description", text(description)),
            ("stop", if stop == STOP { Value::Absent } else { stop.encode() }),
        ];
        entries.extend(self.kept.iter().map(|entry| (entry.key.as_str(), entry.node.value.clone())));
        entries.push(("traffic", Value::Array(vec![Node::generated(traffic)])));
        to_toml(&Value::table(entries))
    }

    /// Returns the scenario with its traffic. All events there begin at `last` at the latest, as far as is known.
    pub(super) fn with_traffic(
        &self,
        scenario: &str,
        title: &str,
        traffic: ListedTraffic,
        last: Span,
        notes: Vec<String>,
    ) -> Result<Imported, SpannedError> {
        // Whole seconds, ten more than the last start.
        let seconds = (last.unsigned_ps() / 1_000_000_000_000).saturating_add(11);
        let until = if last.is_zero() {
            Span::ZERO
        } else {
            Span::from_s(i64::try_from(seconds).unwrap_or(i64::MAX)).min(MAX_SPAN)
        };
        let toml = self.toml(scenario, title, &notes.join(". "), traffic.traffic, until);
        Imported { toml, flows: traffic.flows, notes }.checked(scenario)
    }
}

/// Returns a network for `hosts` hosts: two fat trees.
fn two_datacenters(hosts: usize) -> Result<(Value, String), SpannedError> {
    let each = hosts.div_ceil(2).max(1);
    let Some(k) = (2..=128u32).step_by(2).find(|k| k.pow(3) as usize / 4 >= each) else {
        let message = format!("{hosts} hosts are more than two fat trees have");
        return Err(SpannedError::new(SourceSpan::NOWHERE, message).help("give a network with `--scenario`"));
    };
    let topology = Value::table([("kind", Value::string("fat-trees")), ("k", Value::Integer(k.into()))]);
    Ok((topology, format!("two datacenters, each a fat tree with k = {k}")))
}
