//! Training jobs: iterations of allreduce among groups of hosts.
//!
//! In a ring of n ranks each has n chunks. In step s (of 2(n - 1)) every rank sends the next one the chunk that it got in
//! the step before: in the first n - 1 steps chunks are summed up on their way (reduce-scatter), in the others the sums go
//! round (allgather). A rank takes its steps in turn: one begins when the step before has come from its neighbour and has
//! begun here. So a rank whose data is late holds back the next iteration of all, for it has nothing to add to their sums
//! yet. In pairs two ranks that stand for each other do the same between them, half the data a step.

use fabric::HostId;
use units::{Bytes, Span};

use super::{Draft, DraftStart, Ground, Made};
use crate::config::{Allreduce, Pattern};
use crate::error::{Fault, Origin};
use crate::random::Draws;

/// More flows than this are a mistake.
const MOST_FLOWS: u64 = 10_000_000;

pub(crate) fn make(allreduce: &Allreduce, draws: Draws, ground: &Ground<'_>) -> Result<Made, Fault> {
    let groups = groups(allreduce, ground)?;
    let sizes = (ground.size(allreduce.size)?, allreduce.size_to.map(|most| ground.size(most)).transpose()?);
    if let (low, Some(high)) = sizes
        && low > high
    {
        let origin = allreduce.size_to.map_or(allreduce.size.origin, |most| most.origin);
        return Err(Fault::new(origin, format!("sizes from {low} to {high}")).label("expected at least `size`"));
    }
    let rings: Vec<Vec<Vec<HostId>>> = groups.into_iter().map(|ranks| rings(ranks, allreduce.pattern)).collect();
    let flows_of =
        |rings: &[Vec<HostId>]| rings.iter().map(|ring| 2 * (ring.len() as u64 - 1) * ring.len() as u64).sum::<u64>();
    let each: u64 = rings.iter().map(|rings| flows_of(rings)).sum();
    let all = each.saturating_mul(allreduce.iterations.get().into());
    if all > MOST_FLOWS {
        let message = format!("{} iterations of {each} flows", allreduce.iterations.get());
        return Err(
            Fault::new(allreduce.iterations.origin, message).label(format!("expected at most {MOST_FLOWS} flows"))
        );
    }
    let mut made = Made::default();
    for rings in &rings {
        // Of each ring, where the flows of the step before are.
        let mut before: Vec<Option<u32>> = vec![None; rings.len()];
        for iteration in 0..allreduce.iterations.get() {
            let first = made.flows.len() as u32;
            // All groups of a job have the same in an iteration.
            let size = size(sizes, draws.at(iteration.into()));
            for (ring, before) in rings.iter().zip(&mut before) {
                add_ring(ring, size, allreduce, before, &mut made.flows);
            }
            made.collectives.push((first, made.flows.len() as u32));
        }
    }
    Ok(made)
}

/// An iteration of one ring. `before` is where the flows of the step before it are.
fn add_ring(ring: &[HostId], size: Bytes, allreduce: &Allreduce, before: &mut Option<u32>, flows: &mut Vec<Draft>) {
    let ranks = ring.len() as u32;
    let chunk = Bytes::new(size.get().div_ceil(ranks.into()));
    for step in 0..2 * (ranks - 1) {
        let here = flows.len() as u32;
        for rank in 0..ranks {
            let start = match *before {
                None => DraftStart::At(allreduce.start),
                Some(before) => {
                    let after = if step == 0 { allreduce.compute } else { Span::ZERO };
                    DraftStart::InTurn { received: before + (rank + ranks - 1) % ranks, begun: before + rank, after }
                }
            };
            let (src, dst) = (ring[rank as usize], ring[((rank + 1) % ranks) as usize]);
            flows.push(Draft { src, dst, size: chunk, start });
        }
        *before = Some(here);
    }
}

/// What each rank has in an iteration.
fn size((low, high): (Bytes, Option<Bytes>), drawn: u64) -> Bytes {
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

/// The ranks of each group.
fn groups(allreduce: &Allreduce, ground: &Ground<'_>) -> Result<Vec<Vec<HostId>>, Fault> {
    let (groups, origin) = match (&allreduce.groups, allreduce.count) {
        (Some(groups), None) => {
            let hosts = |group: &crate::decode::At<Vec<_>>| group.iter().map(|host| ground.host_of(host)).collect();
            (groups.iter().map(hosts).collect::<Result<Vec<Vec<HostId>>, Fault>>()?, groups.origin)
        }
        (None, Some(count)) => (spread(count.get(), allreduce.ranks.get(), count.origin, ground)?, count.origin),
        (Some(_), Some(count)) => {
            return Err(Fault::new(count.origin, "`groups` and `count` both say who takes part: give one"));
        }
        (None, None) => {
            return Err(Fault::new(Origin::NOWHERE, "this allreduce has neither `groups` nor `count`")
                .help("give count = 8, or groups = [[\"dc0.host0\", \"dc1.host0\"]]"));
        }
    };
    for (index, ranks) in groups.iter().enumerate() {
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < ranks.len() {
            return Err(Fault::new(origin, format!("group {index} has a host twice")).label("expected different hosts"));
        }
        let (least, even) = (ranks.len() >= 2, ranks.len().is_multiple_of(2));
        if !least || allreduce.pattern == Pattern::Pairs && !even {
            let expected = if least { "an even number, for pairs" } else { "at least two" };
            let message = format!("group {index} has {} ranks", ranks.len());
            return Err(Fault::new(origin, message).label(format!("expected {expected}")));
        }
    }
    Ok(groups)
}

/// So many groups, each with so many ranks from the first and from the second datacenter, in this order.
fn spread(count: u32, ranks: u32, origin: Origin, ground: &Ground<'_>) -> Result<Vec<Vec<HostId>>, Fault> {
    let network = ground.network;
    if network.datacenters() < 2 {
        return Err(Fault::new(origin, "groups over two datacenters, and there is one")
            .help("name the ranks: groups = [[\"host0\", \"host1\"]]"));
    }
    let wanted = count as usize * ranks as usize;
    let of = |datacenter: u16| {
        let hosts = (0..network.hosts().len() as u32).map(HostId);
        let hosts: Vec<HostId> = hosts.filter(|&host| network.datacenter_of(host) == datacenter).collect();
        if hosts.len() < wanted {
            let message =
                format!("{count} groups of {ranks} ranks, but {} hosts in datacenter {datacenter}", hosts.len());
            return Err(Fault::new(origin, message).label(format!("expected at most {}", hosts.len() / ranks as usize)));
        }
        Ok((0..wanted).map(|nth| hosts[nth * hosts.len() / wanted]).collect::<Vec<HostId>>())
    };
    let (near, far) = (of(0)?, of(1)?);
    let chunks = near.chunks(ranks as usize).zip(far.chunks(ranks as usize));
    Ok(chunks.map(|(near, far)| [near, far].concat()).collect())
}
