//! Every host sends to one other and receives from one other.

use fabric::HostId;

use super::{DraftFlow, DraftStart, TrafficContext, TrafficFlows};
use crate::config::{Permutation, Scope};
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

pub(crate) fn make(
    permutation: &Permutation,
    draws: Draws,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let size = context.size(permutation.size)?;
    let network = context.network;
    let all: Vec<HostId> = (0..index32(network.hosts().len())).map(HostId).collect();
    let parts: Vec<Vec<HostId>> = match *permutation.scope {
        Scope::Intra => (0..network.datacenters()).map(|dc| network.hosts_in(dc).collect()).collect(),
        Scope::Inter | Scope::Any => vec![all],
    };
    let is_allowed = |from: HostId, to: HostId| match *permutation.scope {
        Scope::Inter => network.datacenter_of(from) != network.datacenter_of(to),
        Scope::Intra | Scope::Any => from != to,
    };
    let mut flows = Vec::new();
    let mut first_draw = 0;
    for hosts in parts.iter().filter(|hosts| !hosts.is_empty()) {
        let receivers = shuffled(hosts, draws, &mut first_draw, is_allowed).ok_or_else(|| {
            SpannedError::new(
                permutation.scope.origin,
                format!("no permutation with scope \"{}\" exists here", permutation.scope.name()),
            )
            .label("some host has no partner of its own")
        })?;
        for (&src, &dst) in hosts.iter().zip(&receivers) {
            flows.push(DraftFlow { src, dst, size, start: DraftStart::At(permutation.start) });
        }
    }
    Ok(TrafficFlows { flows, ..TrafficFlows::default() })
}

/// Returns the hosts in random order such that `is_allowed` accepts each pair of `hosts[i]` and `order[i]`; none if there is no such order.
fn shuffled(
    hosts: &[HostId],
    draws: Draws,
    first_draw: &mut u64,
    is_allowed: impl Fn(HostId, HostId) -> bool,
) -> Option<Vec<HostId>> {
    let mut draw = |n: usize| {
        *first_draw += 1;
        draws.below(*first_draw, n)
    };
    let mut order = hosts.to_vec();
    for last in (1..order.len()).rev() {
        let other = draw(last + 1);
        order.swap(last, other);
    }
    for position in 0..order.len() {
        if is_allowed(hosts[position], order[position]) {
            continue;
        }
        // Swap with a position, from a random one on, where both are apart afterwards. One exists if a datacenter has
        // at most half of the n hosts: with d hosts, d places send from it and d receive in it, this one among
        // both, so at least n - (2d - 1) >= 1 places do neither.
        let from = draw(order.len());
        let other = (0..order.len())
            .map(|step| (from + step) % order.len())
            .find(|&other| is_allowed(hosts[position], order[other]) && is_allowed(hosts[other], order[position]))?;
        order.swap(position, other);
    }
    Some(order)
}
