//! `[topology]` with `kind = "custom"`: nodes and links one by one, and hosts that are attached to a switch, given by
//! their number.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use fabric::LinkClass;
use units::{Rate, Span};

use crate::config::PortClassOverrides;
use crate::decode::{Located, table, words};
use crate::error::SpannedError;

table! {
    /// `kind = "custom"`: any graph. A host has one link, to a switch.
    CustomTopology {
        /// Hosts and switches.
        nodes: Located<Vec<NodeSpec>>;
        /// Links.
        links: Located<Vec<Cable>>;
    }
}

words! {
    /// Kind of a node.
    NodeWord, "\"host\" or \"switch\"" {
        /// An end host.
        Host = "host",
        /// A switch.
        Switch = "switch",
    }
}

table! {
    /// A host or switch.
    NodeSpec {
        /// Its name, different from all others.
        name: Located<String>;
        /// `host` or `switch`. Hosts are numbered in this order.
        kind: NodeWord;
        /// Its datacenter, from 0.
        datacenter: u16 = 0;
        /// Number of hosts attached to a switch, in its datacenter, each with one link to it. Those of `s` are named
        /// `s.h0`, `s.h1` and so on.
        hosts: Option<Located<NonZeroU16>> = None;
        /// Rate of their links; needed with `hosts`.
        host_rate: Option<Located<Rate>> = None;
        /// Propagation delay of their links, over zero; needed with `hosts`.
        host_delay: Option<Located<Span>> = None;
    }
}

table! {
    /// Links between two nodes, in both directions.
    Cable {
        /// The two nodes' names.
        between: Located<Vec<Located<String>>>;
        /// Rate.
        rate: Rate;
        /// Propagation delay, over zero.
        delay: Located<Span>;
        /// Link class; by default `inter` between datacenters, `host` at a host, else `other`.
        class: Option<LinkClass> = None;
        /// Number of parallel links.
        parallel: NonZeroU16 = NonZeroU16::MIN;
        /// Other settings for its ports, laid over all others.
        port: Option<PortClassOverrides> = None;
    }
}

/// Hosts attached to a switch, with the rate and delay of their links.
pub(crate) struct AttachedHosts {
    pub(crate) count: u16,
    pub(crate) rate: Rate,
    pub(crate) delay: Located<Span>,
}

impl NodeSpec {
    /// Returns the hosts attached to the node; none without hosts.
    /// Refuses keys that mean nothing without the others.
    pub(crate) fn attached(&self) -> Result<Option<AttachedHosts>, SpannedError> {
        let Some(hosts) = self.hosts else {
            let stray = [
                self.host_rate.map(|rate| ("host_rate", rate.origin)),
                self.host_delay.map(|delay| ("host_delay", delay.origin)),
            ];
            return stray.into_iter().flatten().next().map_or(Ok(None), |(key, origin)| {
                Err(SpannedError::new(
                    origin,
                    format!("`{key}` is of a switch's `hosts`, and `{}` has none", *self.name),
                )
                .label("expected together with `hosts`"))
            });
        };
        if self.kind == NodeWord::Host {
            return Err(SpannedError::new(
                hosts.origin,
                format!("`{}` is a host, and no host is attached to another", *self.name),
            )
            .label("expected at a switch"));
        }
        let (Some(rate), Some(delay)) = (self.host_rate, self.host_delay) else {
            return Err(SpannedError::new(
                hosts.origin,
                format!("the hosts of `{}` have links of what rate and delay?", *self.name),
            )
            .label("needs `host_rate` and `host_delay`")
            .help("such as host_rate = \"10Gbps\", host_delay = \"1us\""));
        };
        Ok(Some(AttachedHosts { count: hosts.get(), rate: *rate, delay }))
    }

    /// Returns the name of one of the attached hosts.
    pub(crate) fn host_name(&self, number: u16) -> String {
        format!("{}.h{number}", *self.name)
    }
}

impl CustomTopology {
    /// The nodes by name. Refuses a second of one name.
    fn names(&self) -> Result<BTreeMap<&str, &NodeSpec>, SpannedError> {
        let mut names = BTreeMap::new();
        for node in self.nodes.iter() {
            if names.insert(node.name.as_str(), node).is_some() {
                let message = format!("two nodes are named `{}`", *node.name);
                return Err(SpannedError::new(node.name.origin, message).label("used before"));
            }
            node.attached()?;
        }
        for node in self.nodes.iter() {
            if let Some(switch) = switch_of(&names, &node.name) {
                let message = format!("two nodes are named `{}`: one is a host of `{switch}`", *node.name);
                return Err(SpannedError::new(node.name.origin, message).label("expected another name"));
            }
        }
        Ok(names)
    }

    pub(super) fn check(&self) -> Result<(), SpannedError> {
        let names = self.names()?;
        for cable in self.links.iter() {
            let [a, b] = cable.between.as_slice() else {
                return Err(SpannedError::new(cable.between.origin, "`between` names two nodes")
                    .label("expected [\"a\", \"b\"]"));
            };
            for end in [a, b] {
                if let Some(switch) = switch_of(&names, end) {
                    let message = format!("`{}` is a host of `{switch}` and has its link", end.value);
                    return Err(SpannedError::new(end.origin, message).label("expected one of `nodes`"));
                }
                if !names.contains_key(end.as_str()) {
                    return Err(SpannedError::new(end.origin, format!("unknown node `{}`", end.value))
                        .label("unknown node")
                        .suggest(end, names.keys().copied()));
                }
            }
            if a == b {
                return Err(SpannedError::new(b.origin, "a link joins two different nodes").label("the same node"));
            }
            if let Some(patch) = &cable.port {
                patch.check()?;
            }
        }
        Ok(())
    }
}

/// Returns the switch with an attached host of this name.
fn switch_of<'a>(names: &BTreeMap<&'a str, &'a NodeSpec>, name: &str) -> Option<&'a str> {
    let (switch, number) = name.rsplit_once(".h")?;
    let node = *names.get(switch)?;
    let number: u16 = number.parse().ok()?;
    let is_one = number < node.hosts?.get() && node.host_name(number) == name;
    is_one.then_some(node.name.as_str())
}
