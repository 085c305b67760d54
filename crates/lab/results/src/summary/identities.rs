//! Identities that must hold of every run. Where one breaks, the engine or a counter is wrong, and every number may be.
//!
//! A run on real packets is held to two identities only, that of iterations and that of causes:
//!
//! - The kernel counts packets at its sockets and retransmits below them, so sent and received do not add up.
//! - A flow's counters are read when it ends, the router's later, so retransmissions and losses do not match.
//! - The kernel chooses the sizes of its packets and acknowledgements, so ideal times are not bounds.
//! - The router's clock runs before and after the flows, so links' shares are not of the run.
//!
//! Identities of an outcome alone are the simulator's ([`experiment::broken_identities`]); those here need the table of flows.

use std::collections::BTreeMap;

use experiment::{Dependency, Outcome, Setup, Start};
use units::Span;

use crate::input::{BackendKind, RunInfo};
use crate::tables::FlowTable;

/// The beginning of the warning of a broken identity.
const MARK: &str = "broken identity: ";

/// Returns whether a warning reports a broken identity.
pub(super) fn is_broken(warning: &str) -> bool {
    warning.starts_with(MARK)
}

/// The identities that a run breaks, a line each.
pub(super) fn broken(info: &RunInfo, setup: &Setup, outcome: &Outcome, flows: &FlowTable) -> Vec<String> {
    let mut messages: Vec<String> = iterations(flows).into_iter().chain(causes(setup, flows)).collect();
    if info.backend() == BackendKind::Simulator {
        messages.extend(experiment::broken_identities(setup, outcome));
        messages.extend(slowdowns(flows));
    }
    messages
        .into_iter()
        .map(|message| format!("{MARK}{message}; do not use this run's numbers, and report this"))
        .collect()
}

/// No flow is faster than its links.
fn slowdowns(flows: &FlowTable) -> Option<String> {
    let mut broken = flows.rows.iter().filter_map(|row| Some((row, row.fct()?))).filter(|(row, fct)| *fct < row.ideal);
    let (row, fct) = broken.next()?;
    let more = broken.count();
    let (flow, ideal) = (row.flow, row.ideal);
    Some(format!("flow {flow} took {} ps, and its ideal time is {} ps{}", fct.ps(), ideal.ps(), others(more)))
}

/// The iterations of a job add up: each flow belongs to one job, and each iteration is counted once.
fn iterations(flows: &FlowTable) -> Option<String> {
    let mut job_of: BTreeMap<u32, u32> = BTreeMap::new();
    for row in &flows.rows {
        let Some(iteration) = row.collective else { continue };
        if *job_of.entry(iteration).or_insert(row.traffic) != row.traffic {
            return Some(format!("flow {} is part of iteration {iteration}, which is another job's", row.flow));
        }
    }
    let counted = super::collectives(flows).count();
    let by_job: usize = super::jobs(flows).map(|(_, iterations)| iterations.count()).sum();
    let all = job_of.len();
    ((counted, by_job) != (all, all))
        .then(|| format!("{all} iterations ran, {counted} are counted, and {by_job} by job"))
}

/// Each flow begins after all that it waits for, and after its sender has computed.
fn causes(setup: &Setup, flows: &FlowTable) -> Option<String> {
    let mut broken = flows.rows.iter().filter_map(|row| {
        let spec = &setup.flows[row.flow as usize];
        let Start::Waits { dependencies: causes, after } = spec.start else { return None };
        let too_early = |cause: &&Dependency| {
            let Some(before) = flows.row(cause.flow().0) else { return true };
            let (since, min_delay) = match cause {
                Dependency::Complete(_) => (before.completed, setup.notice_delay(**cause, spec) + after),
                // A flow that was received began earlier.
                Dependency::Received(_) => {
                    (before.started, setup.dependencies.lag(causes, **cause) + after + Span::from_ps(1))
                }
                Dependency::Begun(_) => (before.started, setup.dependencies.lag(causes, **cause) + after),
            };
            !since.is_set() || row.started < since + min_delay
        };
        let cause = setup.dependencies_of(spec).iter().find(too_early).filter(|_| row.started.is_set())?;
        Some((row.flow, cause.flow().0))
    });
    let (flow, before) = broken.next()?;
    let more = broken.count();
    Some(format!("flow {flow} began before what it waits for of flow {before}{}", others(more)))
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more such") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use experiment::FlowId;
    use units::Time;

    fn messages(doctor: impl Fn(&mut Outcome)) -> Vec<String> {
        let (info, setup, mut outcome) = testbed::two_datacenters();
        doctor(&mut outcome);
        let flows = FlowTable::new(&info, &setup, &outcome).unwrap();
        broken(&info, &setup, &outcome, &flows)
    }

    fn one(doctor: impl Fn(&mut Outcome), part: &str) {
        let messages = messages(doctor);
        assert!(messages.len() == 1 && is_broken(&messages[0]) && messages[0].contains(part), "{messages:?}");
    }

    #[test]
    fn each_identity_can_break() {
        assert_eq!(messages(|_| {}), Vec::<String>::new());
        one(|it| it.engine.data_received -= 1, "data packets sent");
        one(|it| it.flows[0].completed = it.flows[0].started + Span::from_ps(1), "flow 0 took 1 ps");
    }

    #[test]
    fn inconsistent_iterations_break_an_identity() {
        let (mut info, setup, outcome) = testbed::two_datacenters();
        info.collectives = vec![vec![FlowId(1), FlowId(2)], vec![FlowId(3)]];
        info.traffic = vec![0, 1, 1, 1, 0];
        let table = |info: &RunInfo, outcome: &Outcome| FlowTable::new(info, &setup, outcome).unwrap();
        assert_eq!(iterations(&table(&info, &outcome)), None);
        info.traffic[2] = 0;
        let found = iterations(&table(&info, &outcome)).unwrap();
        assert!(found.contains("flow 2 is part of iteration 0"), "{found}");
    }

    #[test]
    fn flow_before_its_dependencies_breaks_an_identity() {
        let (info, mut setup, mut outcome) = testbed::two_datacenters();
        let all = [Dependency::Received(FlowId(1)), Dependency::Begun(FlowId(2)), Dependency::Complete(FlowId(4))];
        setup.flows[3].start = setup.dependencies.start(all, Span::from_us(2));
        let notice_delay = setup.notice_delay(all[2], &setup.flows[3]);
        outcome.flows[4].completed = Time::from_us(10);
        let mut at = |flow: usize, time: Time| {
            outcome.flows[flow].started = time;
            causes(&setup, &FlowTable::new(&info, &setup, &outcome).unwrap())
        };
        let notified_at = Time::from_us(12) + notice_delay;
        assert!(at(3, Time::ZERO).unwrap().contains("flow 3 began before what it waits for of flow 1"));
        assert!(at(3, notified_at - Span::from_ps(1)).unwrap().contains("of flow 4"));
        assert_eq!(at(3, notified_at), None);
        let begun = notified_at - Span::from_us(2);
        assert_eq!(at(2, begun), None);
        assert!(at(2, begun + Span::from_ps(1)).unwrap().contains("of flow 2"));
        assert_eq!(at(2, begun), None);
        assert!(at(1, begun).unwrap().contains("of flow 1"));
        assert!(at(1, Time::NEVER).is_some());
    }

    /// A broken identity is the first of all warnings, before those of an emulator.
    #[test]
    fn broken_identities_are_listed_first() {
        let (mut info, setup, mut outcome) = testbed::two_datacenters();
        info.warnings = vec!["something else".into()];
        outcome.engine.data_received += 1;
        let summary = testbed::results_of(&info, &setup, &outcome).summary;
        assert!(is_broken(&summary.warnings[0]) && summary.warnings.len() == 2, "{:?}", summary.warnings);
        assert_eq!(summary.broken_identities().collect::<Vec<_>>(), [&summary.warnings[0]]);
        info.warnings.clear();
        outcome.engine.data_received -= 1;
        let valid = testbed::results_of(&info, &setup, &outcome).summary;
        assert_eq!(valid.broken_identities().count(), 0);
    }
}
