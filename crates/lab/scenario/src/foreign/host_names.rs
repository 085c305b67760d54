//! Hosts of a network, and the placement of ranks on them.

use fabric::{HostId, Network};

use crate::config::{HostRef, Placement};
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;

/// The hosts of a network.
pub(crate) struct HostNames {
    /// By host: its name.
    pub(super) hosts: Vec<String>,
    /// By host: its datacenter.
    datacenter: Vec<u16>,
    /// Description of the network, for messages.
    pub(super) network_name: String,
}

impl HostNames {
    /// Returns the hosts of an unknown network: none.
    pub(crate) fn unknown(network_name: impl Into<String>) -> Self {
        Self { hosts: Vec::new(), datacenter: Vec::new(), network_name: network_name.into() }
    }

    /// The same, once the network is known.
    pub(crate) fn of(self, network: &Network) -> Self {
        let hosts: Vec<String> =
            network.hosts().iter().map(|node| network.nodes()[node.index()].name.clone()).collect();
        let datacenter = (0..index32(hosts.len())).map(|host| network.datacenter_of(HostId(host))).collect();
        Self { hosts, datacenter, network_name: self.network_name }
    }

    /// Returns hosts for `ranks` ranks, or for other participants that each need one; `peer` is their name in errors.
    pub(super) fn assign(&self, ranks: usize, peer: &str, placement: Placement) -> Result<Vec<HostRef>, SpannedError> {
        if ranks > self.hosts.len() {
            let message =
                format!("{ranks} {peer} do not fit {}, which has {} hosts", self.network_name, self.hosts.len());
            return Err(SpannedError::new(SourceSpan::NOWHERE, message)
                .help("each has a host of its own: give a larger network"));
        }
        let datacenters = usize::from(self.datacenter.iter().max().copied().unwrap_or(0)) + 1;
        let mut of: Vec<Vec<u32>> = vec![Vec::new(); datacenters];
        for (host, &datacenter) in (0u32..).zip(&self.datacenter) {
            of[usize::from(datacenter)].push(host);
        }
        of.retain(|hosts| !hosts.is_empty());
        let mut next_host = vec![0; of.len()];
        let mut hosts = Vec::with_capacity(ranks);
        for rank in 0..ranks {
            let datacenter = match placement {
                Placement::Packed => {
                    hosts.push(HostRef::Index(index32(rank)));
                    continue;
                }
                Placement::Block => rank * of.len() / ranks,
                Placement::Cyclic => rank % of.len(),
            };
            let Some(&host) = of[datacenter].get(next_host[datacenter]) else {
                let message = format!(
                    "datacenter {datacenter} of {} has {} hosts, too few for its part of {ranks} {peer}",
                    self.network_name,
                    of[datacenter].len()
                );
                return Err(SpannedError::new(SourceSpan::NOWHERE, message)
                    .help("the placement `packed` takes hosts as they are numbered"));
            };
            next_host[datacenter] += 1;
            hosts.push(HostRef::Index(host));
        }
        Ok(hosts)
    }
}
