//! Identities that must hold of every run. Where one breaks, the engine or a counter is wrong, and every number may be.
//!
//! A run on real packets is held to the last identity only:
//!
//! - The kernel counts packets at its sockets and retransmits below them, so sent and received do not add up.
//! - A flow's counters are read when it ends, the router's later, so retransmissions and losses do not match.
//! - The kernel chooses the sizes of its packets and acknowledgements, so ideal times are not bounds.
//! - The router's clock runs before and after the flows, so links' shares are not of the run.
//!
//! Coded flows are not held to the identity of losses, because parity makes up for some. Ports with whole ticks are not
//! held to their rate: times are rounded down, so packets leave faster.

use std::collections::BTreeMap;

use fabric::LinkId;
use sim::{FlowId, Outcome, Setup, Start};
use units::{Tick, Time};

use crate::input::{Host, RunInfo};
use crate::tables::FlowTable;

/// How the warning of a broken identity begins.
const MARK: &str = "broken identity: ";

/// The longest packet on the wire, in bytes.
const LONGEST: u64 = 65_535;

/// Whether a warning tells of a broken identity.
pub(super) fn is_broken(warning: &str) -> bool {
    warning.starts_with(MARK)
}

/// The identities that a run breaks, a line each.
pub(super) fn broken(info: &RunInfo, setup: &Setup, outcome: &Outcome, flows: &FlowTable) -> Vec<String> {
    let mut said: Vec<String> = iterations(setup, flows).into_iter().collect();
    if info.host() == Host::Simulator {
        said.extend(packets(outcome));
        said.extend(credits(outcome));
        said.extend(mended(setup, outcome));
        said.extend(slowdowns(flows));
        said.extend(utilisation(setup, outcome));
    }
    said.into_iter().map(|what| format!("{MARK}{what}; do not use this run's numbers, and report this")).collect()
}

/// Each data packet that was sent came, was lost, or is on the way.
fn packets(outcome: &Outcome) -> Option<String> {
    let engine = &outcome.engine;
    let lost: u64 = outcome.links.iter().map(|link| link.lost.data).sum();
    let (sent, came, on_the_way) = (engine.data_packets, engine.data_received, engine.data_in_flight);
    let broken = u128::from(sent) != u128::from(came) + u128::from(lost) + u128::from(on_the_way);
    broken.then(|| {
        format!("of {sent} data packets sent {came} came, {lost} were lost and {on_the_way} were on the way at the end")
    })
}

/// A credit comes once, or is dropped.
fn credits(outcome: &Outcome) -> Option<String> {
    let flows = || outcome.flows.iter().map(|flow| &flow.credits);
    let (sent, received) = (flows().map(|it| it.sent).sum::<u64>(), flows().map(|it| it.received).sum::<u64>());
    let dropped: u64 = outcome.links.iter().map(|link| link.credit_drops + link.lost.credits).sum();
    (received + dropped > sent)
        .then(|| format!("of {sent} credits sent {received} came and {dropped} were lost, which is more"))
}

/// Each lost packet of a flow that ended was sent again. Not of coded flows.
fn mended(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let flows = setup.flows.iter().zip(&outcome.flows).zip(&outcome.lost_of).enumerate();
    let mut broken = flows.filter(|(_, ((spec, end), lost))| {
        end.completed.is_set() && !spec.coded && u64::from(**lost) > end.stats.retransmits
    });
    let (flow, ((_, end), lost)) = broken.next()?;
    let more = broken.count();
    Some(format!(
        "flow {flow} lost {lost} data packets, sent {} again and ended all the same{}",
        end.stats.retransmits,
        others(more)
    ))
}

/// No flow is faster than its links.
fn slowdowns(flows: &FlowTable) -> Option<String> {
    let mut broken = flows.rows.iter().filter_map(|row| Some((row, row.fct()?))).filter(|(row, fct)| *fct < row.ideal);
    let (row, fct) = broken.next()?;
    let more = broken.count();
    let (flow, ideal) = (row.flow, row.ideal);
    Some(format!("flow {flow} took {} ps, and its ideal time is {} ps{}", fct.ps(), ideal.ps(), others(more)))
}

/// No link carries more than its rate. Bytes count when they enter the port, so the longest queue and a packet come on
/// top.
fn utilisation(setup: &Setup, outcome: &Outcome) -> Option<String> {
    if !outcome.until.is_set() {
        return None;
    }
    let lasted = outcome.until.since(Time::ZERO);
    let mut broken = (0..).map(LinkId).zip(&outcome.links).filter_map(|(link, link_outcome)| {
        let port = setup.network.port(link).config();
        let most =
            port.rate.bytes_in(lasted).get().saturating_add(link_outcome.max_queue.get()).saturating_add(LONGEST);
        (port.tick == Tick::NONE && link_outcome.bytes.get() > most).then_some((link, link_outcome.bytes, most))
    });
    let (link, bytes, most) = broken.next()?;
    let name = setup.network.link_name(link);
    Some(format!("{name} carried {} bytes, and its rate allows {most}{}", bytes.get(), others(broken.count())))
}

/// The iterations of a job add up: each flow belongs to one job, each iteration is counted once, and each flow begins
/// after what it waits for.
fn iterations(setup: &Setup, flows: &FlowTable) -> Option<String> {
    let mut job_of: BTreeMap<u32, u32> = BTreeMap::new();
    for (row, spec) in flows.rows.iter().zip(&setup.flows) {
        let Some(iteration) = row.collective else { continue };
        if *job_of.entry(iteration).or_insert(row.traffic) != row.traffic {
            return Some(format!("flow {} is part of iteration {iteration}, which is another job's", row.flow));
        }
        let Start::OnReceipt { received, begun, .. } = spec.start else { continue };
        let began = |of: FlowId| flows.rows[of.0 as usize].started;
        // A flow that has come began earlier. A flow that only has to begin may do so at the same time.
        let too_early = began(received) >= row.started || begun.is_some_and(|begun| began(begun) > row.started);
        if row.started.is_set() && too_early {
            return Some(format!("flow {} of iteration {iteration} began before what it waits for", row.flow));
        }
    }
    let counted = super::collectives(flows).count();
    let by_job: usize = super::jobs(flows).map(|(_, iterations)| iterations.count()).sum();
    let all = job_of.len();
    ((counted, by_job) != (all, all))
        .then(|| format!("{all} iterations ran, {counted} are counted, and {by_job} by job"))
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more such") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use units::{Bytes, Span};

    fn said(doctor: impl Fn(&mut Outcome)) -> Vec<String> {
        let (info, setup, mut outcome) = testbed::two_datacenters();
        doctor(&mut outcome);
        let flows = FlowTable::new(&info, &setup, &outcome).unwrap();
        broken(&info, &setup, &outcome, &flows)
    }

    fn one(doctor: impl Fn(&mut Outcome), part: &str) {
        let said = said(doctor);
        assert!(said.len() == 1 && is_broken(&said[0]) && said[0].contains(part), "{said:?}");
    }

    #[test]
    fn each_identity_can_break() {
        assert_eq!(said(|_| {}), Vec::<String>::new());
        one(|it| it.engine.data_received -= 1, "data packets sent");
        one(|it| it.engine.data_in_flight += 1, "data packets sent");
        one(|it| it.links[2].lost.data += 1, "1 were lost");
        one(|it| it.flows[0].credits.received = 1, "of 0 credits sent 1 came and 0 were lost");
        one(|it| it.links[0].credit_drops = 1, "of 0 credits sent 0 came and 1 were lost");
        let lost = |it: &mut Outcome| it.lost_of[1] = it.flows[1].stats.retransmits as u32 + 1;
        one(lost, "flow 1 lost");
        // A flow that has not ended may still send its lost packets again.
        let open = |outcome: &mut Outcome| {
            lost(outcome);
            outcome.flows[1].completed = Time::NEVER;
        };
        assert_eq!(said(open), Vec::<String>::new());
        one(|it| it.flows[0].completed = it.flows[0].started + Span::from_ps(1), "flow 0 took 1 ps");
        one(|it| it.links[0].bytes = Bytes::new(1 << 50), "and its rate allows");
    }

    #[test]
    fn iterations_that_do_not_add_up_break_one() {
        let (mut info, mut setup, mut outcome) = testbed::two_datacenters();
        info.collectives = vec![vec![FlowId(1), FlowId(2)], vec![FlowId(3)]];
        info.traffic = vec![0, 1, 1, 1, 0];
        let table = |info: &RunInfo, outcome: &Outcome| FlowTable::new(info, &setup, outcome).unwrap();
        assert_eq!(iterations(&setup, &table(&info, &outcome)), None);
        info.traffic[2] = 0;
        let found = iterations(&setup, &table(&info, &outcome)).unwrap();
        assert!(found.contains("flow 2 is part of iteration 0"), "{found}");
        info.traffic[2] = 1;
        setup.flows[3].start = Start::OnReceipt { received: FlowId(1), begun: Some(FlowId(2)), after: Span::ZERO };
        let mut at = |flow: usize, us| {
            outcome.flows[flow].started = Time::from_us(us);
            iterations(&setup, &FlowTable::new(&info, &setup, &outcome).unwrap())
        };
        assert!(at(3, 0).unwrap().contains("flow 3 of iteration 1 began before"));
        assert_eq!(at(3, 5), None);
        assert_eq!(at(2, 5), None);
        assert!(at(2, 6).is_some());
    }

    /// It is the first of all warnings, before what an emulator says of itself.
    #[test]
    fn a_broken_identity_is_said_first() {
        let (mut info, setup, mut outcome) = testbed::two_datacenters();
        info.warnings = vec!["something else".into()];
        outcome.engine.data_received += 1;
        let summary = testbed::results_of(&info, &setup, &outcome).summary;
        assert!(is_broken(&summary.warnings[0]) && summary.warnings.len() == 2, "{:?}", summary.warnings);
        assert_eq!(summary.broken_identities().collect::<Vec<_>>(), [&summary.warnings[0]]);
        info.warnings.clear();
        outcome.engine.data_received -= 1;
        let sound = testbed::results_of(&info, &setup, &outcome).summary;
        assert_eq!(sound.broken_identities().count(), 0);
    }
}
