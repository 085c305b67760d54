//! The ranks of groups that do something together: named, or spread over two datacenters.

use std::num::NonZeroU32;

use fabric::HostId;

use super::TrafficContext;
use crate::config::HostRef;
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;

/// More flows than this are a mistake.
const MAX_FLOWS: u64 = 10_000_000;

/// Groups as a table names them: hosts by group, either this or a number of groups and of ranks from each datacenter.
type GroupTable = Located<Vec<Located<Vec<Located<HostRef>>>>>;

/// Returns the ranks of each group of `operation`, and their place in the file: at least two different hosts each.
pub(super) fn groups(
    operation: &str,
    groups: Option<&GroupTable>,
    count: Option<Located<NonZeroU32>>,
    ranks: Located<NonZeroU32>,
    context: &TrafficContext<'_>,
) -> Result<(Vec<Vec<HostId>>, SourceSpan), SpannedError> {
    let (groups, origin) = match (groups, count) {
        (Some(groups), None) => {
            let hosts = |group: &Located<Vec<_>>| group.iter().map(|host| context.host_of(host)).collect();
            (groups.iter().map(hosts).collect::<Result<Vec<Vec<HostId>>, SpannedError>>()?, groups.origin)
        }
        (None, Some(count)) => (spread(count.get(), ranks.get(), count.origin, context)?, count.origin),
        (Some(_), Some(count)) => {
            return Err(SpannedError::new(count.origin, "`groups` and `count` both set the participants: give one"));
        }
        (None, None) => {
            return Err(SpannedError::new(
                SourceSpan::NOWHERE,
                format!("this {operation} has neither `groups` nor `count`"),
            )
            .help("give count = 8, or groups = [[\"dc0.host0\", \"dc1.host0\"]]"));
        }
    };
    for (index, ranks) in groups.iter().enumerate() {
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < ranks.len() {
            return Err(
                SpannedError::new(origin, format!("group {index} has a host twice")).label("expected different hosts")
            );
        }
        if ranks.len() < 2 {
            return Err(invalid_group_size(index, ranks, "at least two", origin));
        }
    }
    Ok((groups, origin))
}

/// The error of a group with a wrong number of ranks.
pub(super) fn invalid_group_size(index: usize, ranks: &[HostId], expected: &str, origin: SourceSpan) -> SpannedError {
    SpannedError::new(origin, format!("group {index} has {} ranks", ranks.len())).label(format!("expected {expected}"))
}

/// Refuses more flows than anybody means.
pub(super) fn check_count(iterations: Located<NonZeroU32>, each: u64) -> Result<(), SpannedError> {
    if each.saturating_mul(iterations.get().into()) <= MAX_FLOWS {
        return Ok(());
    }
    let message = format!("{} iterations of {each} flows", iterations.get());
    Err(SpannedError::new(iterations.origin, message).label(format!("expected at most {MAX_FLOWS} flows")))
}

/// Returns `count` groups, each with `ranks` ranks from the first and from the second datacenter, in this order.
fn spread(
    count: u32,
    ranks: u32,
    origin: SourceSpan,
    context: &TrafficContext<'_>,
) -> Result<Vec<Vec<HostId>>, SpannedError> {
    let network = context.network;
    if network.datacenters() < 2 {
        return Err(SpannedError::new(origin, "groups over two datacenters, and there is one")
            .help("name the ranks: groups = [[\"host0\", \"host1\"]]"));
    }
    let wanted = count as usize * ranks as usize;
    let of = |datacenter: u16| {
        let hosts = (0..index32(network.hosts().len())).map(HostId);
        let hosts: Vec<HostId> = hosts.filter(|&host| network.datacenter_of(host) == datacenter).collect();
        if hosts.len() < wanted {
            let message =
                format!("{count} groups of {ranks} ranks, but {} hosts in datacenter {datacenter}", hosts.len());
            return Err(
                SpannedError::new(origin, message).label(format!("expected at most {}", hosts.len() / ranks as usize))
            );
        }
        Ok((0..wanted).map(|nth| hosts[nth * hosts.len() / wanted]).collect::<Vec<HostId>>())
    };
    let (near, far) = (of(0)?, of(1)?);
    let chunks = near.chunks(ranks as usize).zip(far.chunks(ranks as usize));
    Ok(chunks.map(|(near, far)| [near, far].concat()).collect())
}
