//! What a reader must know before believing the numbers.

use sim::{Outcome, Setup};
use units::Bytes;

use crate::input::{Host, RunInfo};
use crate::summary::Actions;
use crate::tables::{FlowRow, FlowTable};

/// Laws that act on nothing by design.
const PASSIVE: [&str; 2] = ["fixed", "line-rate"];

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
    if info.host() == Host::Simulator {
        said.extend(silent_mechanisms(setup, outcome));
    }
    if !outcome.deadlock.is_empty() {
        let names: Vec<String> = outcome.deadlock.iter().map(|&link| setup.network.link_name(link)).collect();
        said.push(format!(
            "deadlock: when the run ended, these ports waited for each other in a circle: {}",
            names.join(", ")
        ));
    }
    let lost: u64 = outcome.switches.iter().map(|switch| switch.headroom_drops).sum();
    if lost > 0 {
        said.push(format!("{lost} packets were dropped that pauses should have saved: some headroom is too small"));
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

/// What was switched on and did nothing.
fn silent_mechanisms(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let mut said = Vec::new();
    let held = setup.flows.iter().filter(|flow| flow.on_ramp).count();
    if setup.host.on_ramp.is_some() && held > 0 && outcome.flows.iter().all(|flow| flow.stats.held.is_zero()) {
        said.push(format!("On-Ramp never acted: none of the {held} flows under it was ever held"));
    }
    let pausing = setup.network.nodes().iter().filter(|node| node.switch.is_some_and(|it| it.pfc.is_some())).count();
    if pausing > 0 && outcome.links.iter().all(|link| link.pauses == 0) {
        said.push("priority flow control never acted: no port was ever paused".into());
    }
    if !setup.modules.is_empty() && outcome.switches.iter().all(|switch| switch.messages == 0) {
        said.push("LSCC's controllers never acted: none sent a message".into());
    }
    if setup.host.cnp.is_some() && outcome.flows.iter().all(|flow| flow.stats.cnps == 0) {
        said.push("notifications (CNP) are on, and no source ever got one".into());
    }
    said
}

/// What is in flight on the flow's path at line rate.
fn bdp(setup: &Setup, row: &FlowRow) -> Bytes {
    let spec = &setup.flows[row.flow as usize];
    setup.paths(spec.src, spec.dst, setup.host.mss).line_rate.bytes_in(row.base_rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use fabric::{LinkId, NodeId};
    use units::{Frac, Span};

    #[test]
    fn what_was_switched_on_and_did_nothing_is_named() {
        let (_, mut setup, mut outcome) = testbed::two_datacenters();
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        let params = laws::on_ramp::Params { threshold: Span::from_us(30), gain: Frac::ratio(1, 16), strawman: false };
        setup.host.on_ramp = Some(sim::OnRampConfig { params, ack_every: 1, ack_size: 78, memory: false });
        setup.host.cnp = Some(sim::Cnp { interval: Span::from_us(50), size: 64 });
        setup.flows[1].on_ramp = true;
        let pfc = Some(fabric::Pfc { frame: 64, relay: false });
        let switch =
            fabric::Switch { buffer: Bytes::new(1 << 20), reserve: Bytes::ZERO, egress_alpha: None, pfc, int: false };
        setup.network = setup.network.sharing(|_, _| Some(switch));
        let params = laws::lscc::LimitingParams {
            reference: Bytes::ZERO,
            interval: Span::from_us(1),
            long_flow: Bytes::ZERO,
            reset: Span::from_us(1),
            size: 64,
            telemetry: false,
        };
        setup.modules = vec![sim::ModuleSpec { link: LinkId(0), module: sim::Module::RateLimiting(params) }];
        let said = silent_mechanisms(&setup, &outcome);
        for (said, part) in said.iter().zip(["none of the 1 flows", "no port", "LSCC", "CNP"]) {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(said.len(), 4);
        outcome.flows[1].stats.held = Span::from_ns(1);
        outcome.flows[0].stats.cnps = 1;
        outcome.links[3].pauses = 1;
        let messages = sim::SwitchOutcome { node: NodeId(0), max_buffer: Bytes::ZERO, headroom_drops: 0, messages: 1 };
        outcome.switches = vec![messages];
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
    }

    #[test]
    fn a_deadlock_names_its_ports() {
        let (info, setup, mut outcome) = testbed::two_datacenters();
        outcome.deadlock = vec![LinkId(0)];
        let name = setup.network.link_name(LinkId(0));
        let said = testbed::results_of(&info, &setup, &outcome).summary.warnings.join("; ");
        assert!(said.contains("deadlock") && said.contains(&name), "{said}");
    }
}
