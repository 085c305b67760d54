//! Hosts in an order, as a job names them.

use fabric::HostId;

use super::TrafficContext;
use crate::config::{HostRef, Placed, PlacementOrder};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;

/// The hosts, each once.
pub(super) fn hosts(
    placement: &Located<PlacementOrder>,
    context: &TrafficContext<'_>,
) -> Result<Vec<HostId>, SpannedError> {
    let mut hosts: Vec<HostId> = Vec::new();
    let mut used = vec![false; context.network.hosts().len()];
    for entry in &placement.value.0 {
        for host in part(entry, context)? {
            if std::mem::replace(&mut used[host.index()], true) {
                let name = &context.network.nodes()[context.network.hosts()[host.index()].index()].name;
                let error = SpannedError::new(entry.origin, format!("host `{name}` is listed twice in `placement`"));
                return Err(error.label("expected different hosts"));
            }
            hosts.push(host);
        }
    }
    Ok(hosts)
}

fn part(entry: &Located<Placed>, context: &TrafficContext<'_>) -> Result<Vec<HostId>, SpannedError> {
    let all = || (0..index32(context.network.hosts().len())).map(HostId);
    Ok(match &entry.value {
        Placed::All => all().collect(),
        Placed::Even => all().step_by(2).collect(),
        Placed::Odd => all().skip(1).step_by(2).collect(),
        &Placed::Range { datacenter: None, low, high } => {
            range(entry, "the network", &all().collect::<Vec<HostId>>(), low, high)?
        }
        &Placed::Range { datacenter: Some(datacenter), low, high } => {
            let count = context.network.datacenters();
            if datacenter >= count {
                let message = format!("there is no datacenter {datacenter}: the network has {count}");
                return Err(SpannedError::new(entry.origin, message).label(format!("expected dc0 to dc{}", count - 1)));
            }
            let inside = all().filter(|&host| context.network.datacenter_of(host) == datacenter);
            range(entry, &format!("datacenter {datacenter}"), &inside.collect::<Vec<HostId>>(), low, high)?
        }
        Placed::Host(host) => {
            let host: &HostRef = host;
            vec![context.host_of(&Located { value: host.clone(), origin: entry.origin })?]
        }
    })
}

/// The hosts from one place among some up to, but without, another.
fn range(
    entry: &Located<Placed>,
    of: &str,
    hosts: &[HostId],
    low: u32,
    high: u32,
) -> Result<Vec<HostId>, SpannedError> {
    hosts.get(low as usize..high as usize).map(<[HostId]>::to_vec).ok_or_else(|| {
        SpannedError::new(entry.origin, format!("{low}..{high}, and {of} has {} hosts", hosts.len()))
            .label(format!("expected a range in 0..{}", hosts.len()))
    })
}
