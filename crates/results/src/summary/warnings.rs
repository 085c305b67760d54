//! What a reader must know before believing the numbers.

use sim::{Outcome, Setup};
use units::Bytes;

use crate::input::{Host, RunInfo};
use crate::summary::Actions;
use crate::tables::{FlowRow, FlowTable};

/// Laws that act on nothing by design.
const PASSIVE: [&str; 1] = ["fixed"];

/// Silent laws, flows that did not end, runs that were cut short. `by_law` is by [`FlowTable::laws`].
pub(crate) fn warnings(
    info: &RunInfo,
    setup: &Setup,
    outcome: &Outcome,
    flows: &FlowTable,
    by_law: &[Actions],
) -> Vec<String> {
    let mut said = Vec::new();
    // A kernel does not tell how often its law acted.
    let by_law = if info.host() == Host::Emulator { &[] } else { by_law };
    for (law, (name, acted)) in flows.laws.iter().zip(by_law).enumerate() {
        if !acted.none() || PASSIVE.contains(&name.as_str()) {
            continue;
        }
        let tried = flows.rows.iter().filter(|row| row.law as usize == law && row.delivered > bdp(setup, row)).count();
        if tried > 0 {
            said.push(format!(
                "the law {name} never acted (no increase, no cut, no hold), though {tried} of its flows moved more \
                 than a bandwidth-delay product"
            ));
        }
    }
    let count = flows.rows.len();
    let never = flows.rows.iter().filter(|row| !row.started.is_set()).count();
    let open = flows.rows.iter().filter(|row| row.started.is_set() && !row.completed.is_set()).count();
    let how = if outcome.interrupted { "was interrupted" } else { "reached its stop" };
    if outcome.interrupted || open + never > 0 {
        said.push(format!("the run {how} at {} before all flows had ended", outcome.ended));
    }
    if open > 0 {
        said.push(format!("{open} of {count} flows did not end; completion times are of the others"));
    }
    if never > 0 {
        said.push(format!("{never} of {count} flows never started"));
    }
    said
}

/// What is in flight on the flow's path at line rate.
fn bdp(setup: &Setup, row: &FlowRow) -> Bytes {
    let spec = &setup.flows[row.flow as usize];
    setup.paths(spec.src, spec.dst, setup.host.mss).line_rate.bytes_in(row.base_rtt)
}
