//! Hosts in an order, as a job names them.

use fabric::HostId;

use super::TrafficContext;
use crate::config::{HostRef, Placed, PlacementOrder};
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;

/// The hosts, each once.
pub(super) fn hosts(
    places: &Located<PlacementOrder>,
    ground: &TrafficContext<'_>,
) -> Result<Vec<HostId>, SpannedError> {
    let mut hosts: Vec<HostId> = Vec::new();
    let mut taken = vec![false; ground.network.hosts().len()];
    for place in &places.value.0 {
        for host in part(place, ground)? {
            if std::mem::replace(&mut taken[host.index()], true) {
                let name = &ground.network.nodes()[ground.network.hosts()[host.index()].index()].name;
                let fault = SpannedError::new(place.origin, format!("host `{name}` stands twice in `placement`"));
                return Err(fault.label("expected different hosts"));
            }
            hosts.push(host);
        }
    }
    Ok(hosts)
}

fn part(place: &Located<Placed>, ground: &TrafficContext<'_>) -> Result<Vec<HostId>, SpannedError> {
    let all = || (0..index32(ground.network.hosts().len())).map(HostId);
    Ok(match &place.value {
        Placed::All => all().collect(),
        Placed::Even => all().step_by(2).collect(),
        Placed::Odd => all().skip(1).step_by(2).collect(),
        &Placed::Range { datacenter: None, low, high } => {
            range(place, "the network", &all().collect::<Vec<HostId>>(), low, high)?
        }
        &Placed::Range { datacenter: Some(datacenter), low, high } => {
            let count = ground.network.datacenters();
            if datacenter >= count {
                let message = format!("there is no datacenter {datacenter}: the network has {count}");
                return Err(SpannedError::new(place.origin, message).label(format!("expected dc0 to dc{}", count - 1)));
            }
            let inside = all().filter(|&host| ground.network.datacenter_of(host) == datacenter);
            range(place, &format!("datacenter {datacenter}"), &inside.collect::<Vec<HostId>>(), low, high)?
        }
        Placed::Host(host) => {
            let host: &HostRef = host;
            vec![ground.host_of(&Located { value: host.clone(), origin: place.origin })?]
        }
    })
}

/// The hosts from one place among some up to, but without, another.
fn range(
    place: &Located<Placed>,
    of: &str,
    hosts: &[HostId],
    low: u32,
    high: u32,
) -> Result<Vec<HostId>, SpannedError> {
    hosts.get(low as usize..high as usize).map(<[HostId]>::to_vec).ok_or_else(|| {
        SpannedError::new(place.origin, format!("{low}..{high}, and {of} has {} hosts", hosts.len()))
            .label(format!("expected a range in 0..{}", hosts.len()))
    })
}
