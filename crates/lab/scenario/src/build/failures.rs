//! From `[[failure]]` to links that are down at times, and routes that avoid them.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{LinkId, Network, Outages, Routes};
use units::{Span, Time};

use super::series::{classes, ports_named};
use crate::config::Failure;
use crate::decode::Located;
use crate::error::SpannedError;
use crate::random::Draws;

/// One failure may take its links down so often.
const MAX_TIMES: i64 = 10_000;
/// Routes may change so often in a run.
const MAX_CHANGES: usize = 1_000;

/// Draws of failures are not those of traffic, which are numbered by its entries.
const DRAWS: u64 = 1 << 32;

/// The same network with links that fail, and routes that learn of it.
pub(crate) fn failing(
    failures: &[Located<Failure>],
    mut network: Network,
    mut routes: Routes,
    stop: Span,
    seed: u64,
) -> Result<(Network, Routes), SpannedError> {
    let mut down: BTreeMap<LinkId, Vec<(Time, Time)>> = BTreeMap::new();
    let mut known = Vec::new();
    for (index, failure) in failures.iter().enumerate() {
        let links = links(failure, index as u64, &network, seed)?;
        let times = times(failure, stop)?;
        for &link in &links {
            down.entry(link).or_default().extend(&times);
        }
        if let Some(after) = failure.reroute {
            let learned = |time: Time| time.saturating_add(*after);
            let times = times.iter().map(|&(from, until)| (learned(from), learned(until)));
            known.push((after, Outages::new(times), links));
        }
    }
    for (link, times) in down {
        network = network.with_outages(link, Outages::new(times));
    }
    for (time, after, avoided) in changes(&known, stop)? {
        let others = Routes::without(&network, &avoided).map_err(|error| {
            SpannedError::new(after.origin, format!("once routes avoid what is down: {error}"))
                .label("no way is left")
                .help("without `reroute` packets go on into the failed links")
        })?;
        routes = routes.until(time, others);
    }
    Ok((network, routes))
}

/// Returns a warning for each failure that begins at the stop or later.
pub(crate) fn too_late(failures: &[Located<Failure>], stop: Span) -> impl Iterator<Item = String> + '_ {
    (0..).zip(failures).filter(move |(_, failure)| failure.at >= stop).map(move |(index, failure)| {
        format!("failure.{index} begins at {}, and the run stops at {stop}: no link fails by it", failure.at)
    })
}

/// The links that fail, in order.
fn links(failure: &Located<Failure>, index: u64, network: &Network, seed: u64) -> Result<Vec<LinkId>, SpannedError> {
    if failure.ports.is_empty() {
        return Err(SpannedError::new(failure.ports.origin, "a failure of no link")
            .label("expected names of links or classes, such as \"class:inter\""));
    }
    let mut links = Vec::new();
    for name in failure.ports.iter() {
        let found = ports_named(name, network, None)?;
        if found.is_empty() {
            return Err(SpannedError::new(name.origin, format!("no link answers to \"{}\"", name.value))
                .label("this network has no link of that class")
                .help(format!("its classes are {}", classes(network))));
        }
        links.extend(found);
    }
    let reverse = |link: LinkId| network.links()[link.index()].reverse;
    if failure.both {
        // A cable counts once, whichever of its directions is named.
        for link in &mut links {
            *link = (*link).min(reverse(*link));
        }
    }
    links.sort_unstable();
    links.dedup();
    if let Some(count) = failure.count {
        let wanted = count.get() as usize;
        if wanted > links.len() {
            return Err(SpannedError::new(count.origin, format!("{wanted} links fail of {}", links.len()))
                .label(format!("expected at most {}", links.len())));
        }
        let draws = Draws::new(seed, DRAWS + index);
        for index in 0..wanted {
            let other = index + draws.below(index as u64, links.len() - index);
            links.swap(index, other);
        }
        links.truncate(wanted);
    }
    if failure.both {
        links.extend(links.clone().into_iter().map(reverse));
    }
    links.sort_unstable();
    Ok(links)
}

/// Returns the times at which the links are down: one span for each repetition up to the stop.
fn times(failure: &Located<Failure>, stop: Span) -> Result<Vec<(Time, Time)>, SpannedError> {
    let time = |ps: i64| Time::from_ps(ps.unsigned_abs());
    let (at, until) = (failure.at.ps(), failure.until.map_or(i64::MAX, |until| until.ps()));
    let Some(every) = failure.every else { return Ok(vec![(time(at), time(until))]) };
    let repeats = (stop.ps() - at).max(0) / every.ps() + 1;
    if repeats > MAX_TIMES {
        return Err(SpannedError::new(every.origin, format!("links would fail {repeats} times by the stop, {stop}"))
            .label(format!("at most {MAX_TIMES} times")));
    }
    Ok((0..repeats).map(|nth| nth * every.ps()).map(|later| (time(at + later), time(until + later))).collect())
}

type LinkStateChange = (Time, Located<Span>, BTreeSet<LinkId>);

/// Returns the route changes before the stop: the time, the `reroute` delay of the failure behind it, and the links
/// that routes avoid from then on.
fn changes(known: &[(Located<Span>, Outages, Vec<LinkId>)], stop: Span) -> Result<Vec<LinkStateChange>, SpannedError> {
    let mut at: BTreeMap<Time, Located<Span>> = BTreeMap::new();
    for (after, outages, _) in known {
        at.extend(outages.spans().flat_map(|(from, until)| [from, until]).map(|time| (time, *after)));
    }
    at.retain(|time, _| time.ps() < stop.unsigned_ps());
    if let (true, Some(after)) = (at.len() > MAX_CHANGES, at.values().next()) {
        return Err(SpannedError::new(after.origin, format!("routes would change {} times", at.len()))
            .label(format!("at most {MAX_CHANGES} times")));
    }
    let avoided = |time: Time| {
        let known = known.iter().filter(|(_, outages, _)| outages.cut(time, time));
        known.flat_map(|(_, _, links)| links.iter().copied()).collect()
    };
    Ok(at.into_iter().map(|(time, after)| (time, after, avoided(time))).collect())
}
