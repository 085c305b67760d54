//! Requests at random times, each answered by several hosts at once: incasts as a load.

use fabric::HostId;
use units::{Bytes, EXPONENTIAL_BITS, Rate, Span, exponential};

use super::{Demand, DraftFlow, DraftStart, TrafficContext, TrafficFlows, later};
use crate::config::Requests;
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

/// More flows than this are a mistake.
const MAX_FLOWS: u64 = 50_000_000;

/// Arrival rate of requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestArrivals {
    /// The traffic entry, from 0.
    pub traffic: usize,
    /// Number of requests.
    pub count: usize,
    /// Requests per 1000 seconds, in the whole network.
    pub per_1000_s: u64,
    /// Hosts that answer each.
    pub fanout: u32,
    /// Size of an answer.
    pub size: Bytes,
    /// Payload per second, in the whole network.
    pub offered: Rate,
}

pub(crate) fn make(
    entry: &Requests,
    traffic: usize,
    draws: Draws,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let size = context.size(entry.size)?;
    let members = context.members(&entry.among)?;
    let hosts: Vec<HostId> = (0..index32(members.len())).map(HostId).filter(|host| members[host.index()]).collect();
    let fanout = entry.fanout.get() as usize;
    if fanout >= hosts.len() {
        return Err(SpannedError::new(
            entry.fanout.origin,
            format!("{fanout} senders and a receiver, but {} hosts", hosts.len()),
        )
        .label(format!("expected at most {}", hosts.len() - 1)));
    }
    let gap = mean_gap(entry, size, &hosts, context)?;
    let (max_requests, end_ps) = end(entry, gap)?;

    let mut output = TrafficFlows::default();
    let mut at = 0u128; // in units of 2^-(20 + 40) ps: 2^68 ps fit
    // Draws of a request: its time, its receiver, its senders.
    let each = 2 + u64::from(entry.fanout.get());
    for request in 0..max_requests {
        at = at.saturating_add(gap.saturating_mul(u128::from(exponential(draws.at(request * each)))));
        let ps = at >> (20 + EXPONENTIAL_BITS);
        if ps >= end_ps {
            break;
        }
        let start = i64::try_from(ps + u128::from(entry.start.unsigned_ps())).unwrap_or(i64::MAX);
        let receiver = draws.below(request * each + 1, hosts.len());
        let first = index32(output.flows.len());
        for sender in senders(fanout, hosts.len() - 1, |n, index| draws.below(request * each + 2 + index, n)) {
            // The receiver is none of them: places from its own on are one further.
            let src = hosts[sender + usize::from(sender >= receiver)];
            let start = DraftStart::At(Span::from_ps(start));
            output.flows.push(DraftFlow { src, dst: hosts[receiver], size, start });
        }
        output.requests.push((first, index32(output.flows.len())));
    }
    // gap is in units of 2^-20 ps.
    let per_1000_s = u64::try_from((1_000_000_000_000_000u128 << 20) / gap.max(1)).unwrap_or(u64::MAX);
    let fanout = entry.fanout.get();
    let bits = u128::from(per_1000_s) * u128::from(size.get()) * u128::from(fanout) * 8 / 1_000;
    let offered = Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX));
    let of_requests = |count: u64| Span::from_ps(i64::try_from((gap * u128::from(count)) >> 20).unwrap_or(i64::MAX));
    let lasts =
        entry.duration.map_or_else(|| of_requests(entry.requests.map_or(0, |it| it.get().into())), |it| it.value);
    let (from_time, to_time) = (entry.start, later(entry.start, lasts));
    let senders = members.clone();
    output.demands = vec![Demand { traffic, senders, receivers: members, class: None, offered, from_time, to_time }];
    output.requested =
        Some(RequestArrivals { traffic, count: output.requests.len(), per_1000_s, fanout, size, offered });
    Ok(output)
}

/// Mean time between requests, in units of 2^-20 ps.
fn mean_gap(
    entry: &Requests,
    size: Bytes,
    hosts: &[HostId],
    context: &TrafficContext<'_>,
) -> Result<u128, SpannedError> {
    let rate = |&host: &HostId| context.network.port(context.network.uplink(host)).config().rate.bps();
    let capacity: u64 = hosts.iter().map(rate).sum();
    let load_ppm = u128::from(entry.load.of(1_000_000));
    if entry.load.exceeds_one() || load_ppm == 0 {
        let offered_bps = u64::try_from(u128::from(capacity) * load_ppm / 1_000_000).unwrap_or(u64::MAX);
        let message =
            format!("{} of the hosts' {} is {}", *entry.load, Rate::from_bps(capacity), Rate::from_bps(offered_bps));
        return Err(SpannedError::new(entry.load.origin, message).label("expected over 0, up to 1 (100 %)"));
    }
    // gap = bits / (load * capacity). A request is under 2^44 * 2^32 bytes: bits in 2^-20 ps saturate at worst.
    let bits = u128::from(size.get()) * u128::from(entry.fanout.get()) * 8;
    let bits_ps = bits.saturating_mul(1_000_000_000_000 << 20);
    Ok(bits_ps.saturating_mul(1_000_000) / (load_ppm * u128::from(capacity)))
}

/// Returns the maximum number of requests, and the time at which they end.
fn end(entry: &Requests, gap: u128) -> Result<(u64, u128), SpannedError> {
    let max_requests = MAX_FLOWS / u64::from(entry.fanout.get());
    match (entry.requests, entry.duration) {
        (Some(requests), None) if u64::from(requests.get()) > max_requests => Err(SpannedError::new(
            requests.origin,
            format!("{} requests of {} flows", requests.get(), entry.fanout.get()),
        )
        .label(format!("expected at most {MAX_FLOWS} flows"))),
        (Some(requests), None) => Ok((requests.get().into(), u128::MAX)),
        (None, Some(window)) => {
            let expected = (u128::from(window.unsigned_ps()) << 20) / gap.max(1);
            if expected > u128::from(max_requests) {
                return Err(SpannedError::new(
                    window.origin,
                    format!("about {expected} requests would arrive in this time"),
                )
                .label(format!("expected a shorter window: at most {MAX_FLOWS} flows")));
            }
            Ok((u64::MAX, u128::from(window.unsigned_ps())))
        }
        (Some(_), Some(window)) => {
            Err(SpannedError::new(window.origin, "`window` and `requests` both set when arrivals end: give one"))
        }
        (None, None) => Err(SpannedError::new(entry.load.origin, "this traffic never ends")
            .help("give window = \"20ms\" or requests = 500")),
    }
}

/// Returns `count` different places of `of`, in random order: the first steps of a shuffle that stores only the moved places.
fn senders(count: usize, of: usize, draw: impl Fn(usize, u64) -> usize) -> Vec<usize> {
    let mut moved = std::collections::BTreeMap::new();
    let mut chosen = Vec::with_capacity(count);
    for index in 0..count {
        let other = index + draw(of - index, index as u64);
        let current = moved.get(&index).copied().unwrap_or(index);
        chosen.push(moved.insert(other, current).unwrap_or(other));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn senders_differ(of in 1usize..200, part in 0usize..200, seed: u64) {
            let draws = Draws::new(seed, 0);
            let count = part.min(of);
            let mut chosen = senders(count, of, |n, index| draws.below(index, n));
            chosen.sort_unstable();
            chosen.dedup();
            prop_assert_eq!(chosen.len(), count);
            prop_assert!(chosen.iter().all(|&index| index < of));
        }
    }
}
