//! Many senders to one receiver.

use fabric::HostId;

use super::{DraftFlow, DraftStart, TrafficContext, TrafficFlows, later};
use crate::class::FlowClass;
use crate::config::Incast;
use crate::decode::Located;
use crate::error::SpannedError;
use crate::index::index32;

pub(crate) fn make(incast: &Incast, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let receiver = context.host_of(&incast.receiver)?;
    let size = context.size(incast.size)?;
    let home = context.network.datacenter_of(receiver);
    let mut senders = Vec::new();
    for (wanted, class) in [(incast.intra, FlowClass::Intra), (incast.inter, FlowClass::Inter)] {
        let candidates: Vec<&[HostId]> = context.survey.groups(home, class).collect();
        let own_switch = |host: HostId| context.network.links()[context.network.uplink(host).index()].to;
        // Groups at the receiver's own switch are last.
        let (own, others): (Vec<&[HostId]>, Vec<&[HostId]>) =
            candidates.into_iter().partition(|group| own_switch(group[0]) == own_switch(receiver));
        senders.extend(choose(wanted, &others, &own, receiver, class)?);
    }
    let mut start = incast.start;
    let mut flows = Vec::with_capacity(senders.len());
    for src in senders {
        flows.push(DraftFlow { src, dst: receiver, size, start: DraftStart::At(start) });
        start = later(start, incast.stagger);
    }
    // All together are one request: it is complete with the last.
    let requests = if flows.is_empty() { Vec::new() } else { vec![(0, index32(flows.len()))] };
    Ok(TrafficFlows { flows, receivers: vec![receiver], requests, ..TrafficFlows::default() })
}

/// Chooses senders: one a group while groups last, evenly over all of them (so over pods), then the second host of
/// each, and so on; those at the receiver's switch last.
fn choose(
    wanted: Located<u32>,
    others: &[&[HostId]],
    own: &[&[HostId]],
    receiver: HostId,
    class: FlowClass,
) -> Result<Vec<HostId>, SpannedError> {
    let count = *wanted as usize;
    if (1..=others.len()).contains(&count) {
        return Ok((0..count).map(|i| others[i * others.len() / count][0]).collect());
    }
    let mut chosen = Vec::new();
    for groups in [others, own] {
        let deepest = groups.iter().map(|group| group.len()).max().unwrap_or(0);
        for depth in 0..deepest {
            let hosts = groups.iter().filter_map(|group| group.get(depth)).copied();
            chosen.extend(hosts.filter(|&host| host != receiver));
        }
    }
    if chosen.len() < count {
        let scope = match class {
            FlowClass::Intra => "in the receiver's datacenter",
            FlowClass::Inter => "in other datacenters",
        };
        return Err(SpannedError::new(
            wanted.origin,
            format!("{count} senders, but only {} hosts {scope}", chosen.len()),
        )
        .label(format!("expected 0 to {}", chosen.len())));
    }
    chosen.truncate(count);
    Ok(chosen)
}
