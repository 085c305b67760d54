//! Training jobs: iterations of allreduce among groups of hosts.
//!
//! In a ring of n ranks each has n chunks. In step s (of 2(n - 1)) every rank sends the next one the chunk that it received
//! in the previous step: in the first n - 1 steps chunks are summed up on the way (reduce-scatter), in the others the sums
//! circulate (allgather). A rank executes its steps in order: a step begins when the neighbour's data of the previous step
//! has arrived and the previous step has begun here. A rank with late data therefore delays the next iteration of all
//! ranks, because it cannot add its data to their sums yet. With pairs, two ranks at the same place of the two halves
//! exchange data in the same way, half the data per step.

use fabric::HostId;
use units::Bytes;

use super::collective::ring;
use super::groups::{check_count, groups, invalid_group_size};
use super::steps::RankGroup;
use super::{TrafficContext, TrafficFlows};
use crate::config::{Allreduce, Pattern};
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

pub(crate) fn make(
    allreduce: &Allreduce,
    draws: Draws,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let Allreduce { count, ranks, pattern, iterations, .. } = *allreduce;
    let (groups, origin) = groups("allreduce", allreduce.groups.as_ref(), count, ranks, context)?;
    let odd_group =
        groups.iter().enumerate().find(|(_, ranks)| pattern == Pattern::Pairs && !ranks.len().is_multiple_of(2));
    if let Some((index, ranks)) = odd_group {
        return Err(invalid_group_size(index, ranks, "an even number, for pairs", origin));
    }
    let low = context.size(allreduce.size)?;
    let high = allreduce.size_to.map(|size_to| context.size(size_to)).transpose()?;
    if let Some(high) = high
        && low > high
    {
        let origin = allreduce.size_to.map_or(allreduce.size.origin, |size_to| size_to.origin);
        return Err(SpannedError::new(origin, format!("sizes from {low} to {high}")).label("expected at least `size`"));
    }
    let rings: Vec<Vec<Vec<HostId>>> = groups.into_iter().map(|ranks| rings(ranks, pattern)).collect();
    let flows_of = |ring: &Vec<HostId>| 2 * (ring.len() as u64 - 1) * ring.len() as u64;
    check_count(iterations, rings.iter().flatten().map(flows_of).sum())?;
    let mut output = TrafficFlows::default();
    for rings in &rings {
        let rings = rings.iter().map(|ranks| RankGroup::new(ranks, allreduce.start, allreduce.compute));
        let mut rings: Vec<RankGroup<'_>> = rings.collect();
        for iteration in 0..iterations.get() {
            let first = index32(output.flows.len());
            // All groups of a job have the same in an iteration.
            let size = size(low, high, draws.at(iteration.into()));
            for group in &mut rings {
                group.begin(&output);
                let chunk = Bytes::new(size.get().div_ceil(group.len().into()));
                ring(group, chunk, 2 * (group.len() - 1), &mut output);
            }
            output.collectives.push((first, index32(output.flows.len())));
        }
    }
    Ok(output)
}

/// Returns the bytes of each rank in an iteration.
fn size(low: Bytes, high: Option<Bytes>, drawn: u64) -> Bytes {
    let span = high.map_or(0, |high| high.get() - low.get());
    Bytes::new(low.get() + ((u128::from(drawn) * (u128::from(span) + 1)) >> 64) as u64)
}

/// A group as rings: one, or one of two for each pair.
fn rings(ranks: Vec<HostId>, pattern: Pattern) -> Vec<Vec<HostId>> {
    match pattern {
        Pattern::Ring => vec![ranks],
        Pattern::Pairs => {
            let (near, far) = ranks.split_at(ranks.len() / 2);
            near.iter().zip(far).map(|(&near, &far)| vec![near, far]).collect()
        }
    }
}
