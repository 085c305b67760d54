//! Identities that the outcome of every simulated run satisfies. If one is broken the engine or a counter is wrong, and
//! every number may be.
//!
//! Coded flows are not held to the identity of losses, because parity makes up for some. Ports with whole ticks are not held
//! to their rate: times are rounded down, so packets leave faster. Ports of switches that share their buffer are not held to
//! a buffer of their own: pause frames wait in them, however full they are.

use fabric::LinkId;
use units::{Tick, Time};

use crate::outcome::Outcome;
use crate::setup::Setup;

/// The longest packet on the wire, in bytes.
const MAX: u64 = 65_535;

/// Returns the identities that a simulated run breaks, a line each.
pub fn broken_identities(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let all = [
        packets(outcome),
        senders(outcome),
        credits(outcome),
        losses(setup, outcome),
        losses_are_retransmitted(setup, outcome),
        counters(setup, outcome),
        queues(setup, outcome),
        utilisation(setup, outcome),
    ];
    all.into_iter().flatten().collect()
}

/// Checks that each data packet that was sent, or added by a link as a copy, arrived, was lost or trimmed, or is in flight.
fn packets(outcome: &Outcome) -> Option<String> {
    let engine = &outcome.engine;
    let lost: u64 = outcome.links.iter().map(|link| link.lost.data).sum();
    let (sent, received, in_flight) = (engine.data_packets, engine.data_received, engine.data_in_flight);
    let trimmed: u64 = outcome.links.iter().map(|link| link.trims).sum();
    let copies: u64 = outcome.copies_of.iter().map(|&copies| u64::from(copies)).sum();
    let all = [received, lost, trimmed, in_flight].into_iter().map(u128::from).sum::<u128>();
    (u128::from(sent) + u128::from(copies) != all).then(|| {
        let trimmed = if trimmed > 0 { format!(", {trimmed} were trimmed") } else { String::new() };
        let copied = if copies > 0 { format!(" and {copies} copies of them") } else { String::new() };
        format!(
            "of {sent} data packets sent{copied} {received} came, {lost} were lost{trimmed}, and {in_flight} were in flight at \
             the end"
        )
    })
}

/// Flows count the packets that hosts sent.
fn senders(outcome: &Outcome) -> Option<String> {
    let (flows, hosts) =
        (outcome.flows.iter().map(|flow| flow.stats.packets_sent).sum::<u64>(), outcome.engine.data_packets);
    (flows != hosts).then(|| format!("flows sent {flows} data packets, but their hosts sent {hosts}"))
}

/// Checks that a credit arrives once, or is dropped; one that arrived was used, was wasted, or is in hand.
fn credits(outcome: &Outcome) -> Option<String> {
    let flows = || outcome.flows.iter().map(|flow| &flow.credits);
    let (sent, received) = (flows().map(|it| it.sent).sum::<u64>(), flows().map(|it| it.received).sum::<u64>());
    let dropped: u64 = outcome.links.iter().map(|link| link.credit_drops + link.lost.credits).sum();
    if received + dropped > sent {
        return Some(format!(
            "of {sent} credits sent, {received} arrived and {dropped} were lost: the sum exceeds the number sent"
        ));
    }
    let (flow, it) = flows().enumerate().find(|(_, it)| it.used + it.wasted > it.received)?;
    let (received, used, wasted) = (it.received, it.used, it.wasted);
    Some(format!(
        "of {received} credits that flow {flow} received it used {used} and wasted {wasted}: the sum exceeds the number received"
    ))
}

/// Checks that losses add up: per link over the kinds of packets, and over all links per flow.
fn losses(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let mut links = (0..).map(LinkId).zip(&outcome.links);
    if let Some((link, it)) = links.find(|(_, it)| it.lost.total() != it.drops + it.losses) {
        let name = setup.network.link_name(link);
        return Some(format!("{name} lost {} packets by kind, {} by cause", it.lost.total(), it.drops + it.losses));
    }
    let on_links: u64 = outcome.links.iter().map(|link| link.lost.data + link.trims).sum();
    let of_flows: u64 = outcome.lost_of.iter().map(|&lost| u64::from(lost)).sum();
    (on_links != of_flows).then(|| format!("links lost or trimmed {on_links} data packets, but flows lost {of_flows}"))
}

/// Checks that each lost packet of a flow that ended was sent again, or was one of two copies. Not for coded flows.
fn losses_are_retransmitted(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let flows = setup.flows.iter().zip(&outcome.flows).zip(&outcome.lost_of).enumerate();
    let copies = |flow: usize| outcome.copies_of.get(flow).map_or(0, |&copies| u64::from(copies));
    let mut broken = flows.filter(|(flow, ((spec, end), lost))| {
        end.completed.is_set() && !spec.coded && u64::from(**lost) > end.stats.retransmits + copies(*flow)
    });
    let (flow, ((_, end), lost)) = broken.next()?;
    let more = others(broken.count());
    let again = end.stats.retransmits;
    Some(format!("flow {flow} lost {lost} data packets, sent {again} again and ended all the same{more}"))
}

/// Checks that a flow's counters agree with each other. It ends when its size is delivered, and no more ever is.
fn counters(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let flows = setup.flows.iter().zip(&outcome.flows).enumerate();
    let mut broken = flows.filter_map(|(flow, (spec, end))| {
        if end.delivered > spec.size || (end.completed.is_set() && end.delivered != spec.size) {
            return Some((flow, format!("{} of {} are delivered", end.delivered, spec.size)));
        }
        end.stats.check(end.delivered).err().map(|error| (flow, error))
    });
    let (flow, what) = broken.next()?;
    Some(format!("flow {flow}: {what}{}", others(broken.count())))
}

/// Checks that no queue outgrows its buffer.
fn queues(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let network = &setup.network;
    let mut broken = (0..).map(LinkId).zip(&outcome.links).filter_map(|(link, it)| {
        let from = network.links()[link.index()].from;
        let limit = network.port(link).config().room();
        let shares = network.nodes()[from.index()].switch.is_some();
        (!shares && it.max_queue > limit).then_some((link, it.max_queue, limit))
    });
    let (link, held, limit) = broken.next()?;
    let name = network.link_name(link);
    Some(format!("{name} held {held}, but its buffer has only {limit}{}", others(broken.count())))
}

/// Checks that no link carries more than its rate. Bytes count when they enter the port, so the longest queue and a
/// packet are added.
fn utilisation(setup: &Setup, outcome: &Outcome) -> Option<String> {
    if !outcome.until.is_set() {
        return None;
    }
    let duration = outcome.until.since(Time::ZERO);
    let mut broken = (0..).map(LinkId).zip(&outcome.links).filter_map(|(link, link_outcome)| {
        let port = setup.network.port(link).config();
        let max_bytes =
            port.rate.bytes_in(duration).get().saturating_add(link_outcome.max_queue.get()).saturating_add(MAX);
        (port.tick == Tick::NONE && link_outcome.bytes.get() > max_bytes).then_some((
            link,
            link_outcome.bytes,
            max_bytes,
        ))
    });
    let (link, bytes, max_bytes) = broken.next()?;
    let name = setup.network.link_name(link);
    Some(format!(
        "{name} carried {} bytes, but its rate allows only {max_bytes}{}",
        bytes.get(),
        others(broken.count())
    ))
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more such") }
}
