//! A network from nodes and links given one by one.

use std::collections::BTreeMap;

use fabric::{Builder, LinkClass};

use super::{NetworkInputs, over_zero};
use crate::config::{AttachedHosts, CustomTopology, NodeWord};
use crate::error::SpannedError;

impl NetworkInputs<'_> {
    pub(super) fn custom(&self, custom: &CustomTopology) -> Result<Builder, SpannedError> {
        let links: u64 = custom.links.iter().map(|cable| u64::from(cable.parallel.get())).sum();
        let mut attached_hosts: u64 = 0;
        for node in custom.nodes.iter() {
            attached_hosts += node.attached()?.map_or(0, |hosts| u64::from(hosts.count));
        }
        self.limit(custom.nodes.len() as u64 + attached_hosts, links + attached_hosts)?;
        if let Some(node) = custom.nodes.iter().find(|node| node.datacenter == u16::MAX) {
            return Err(SpannedError::new(node.name.origin, "a datacenter's number is at most 65534"));
        }
        let mut builder = Builder::default();
        let mut handles = BTreeMap::new();
        for node in custom.nodes.iter() {
            let handle = match node.kind {
                NodeWord::Host => builder.host(node.datacenter, node.name.as_str()),
                NodeWord::Switch => builder.switch(node.datacenter, node.name.as_str()),
            };
            if let Some(AttachedHosts { count: hosts, rate, delay }) = node.attached()? {
                let delay = over_zero(delay)?;
                for number in 0..hosts {
                    let host = builder.host(node.datacenter, node.host_name(number));
                    let port = self.port(LinkClass::Host, rate, delay)?;
                    builder.connect(host, handle, LinkClass::Host, self.nic(rate, delay), port);
                }
            }
            handles.insert(node.name.as_str(), (handle, node));
        }
        for cable in custom.links.iter() {
            let ends: Vec<_> = cable.between.iter().filter_map(|name| handles.get(name.as_str())).collect();
            let [(a, from), (b, to)] = ends[..] else {
                return Err(SpannedError::new(cable.between.origin, "`between` names two nodes"));
            };
            let default = if from.kind == NodeWord::Host || to.kind == NodeWord::Host {
                LinkClass::Host
            } else if from.datacenter != to.datacenter {
                LinkClass::Inter
            } else {
                LinkClass::Other
            };
            let class = cable.class.unwrap_or(default);
            let delay = over_zero(cable.delay)?;
            let port_of = |kind| match kind {
                NodeWord::Host => Ok(self.nic(cable.rate, delay)),
                NodeWord::Switch => self.port_with(class, cable.port.as_ref(), cable.rate, delay),
            };
            for _ in 0..cable.parallel.get() {
                builder.connect(*a, *b, class, port_of(from.kind)?, port_of(to.kind)?);
            }
        }
        Ok(builder)
    }
}
