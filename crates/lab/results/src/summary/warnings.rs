//! Warnings to read before using the numbers of a run.

use std::collections::BTreeSet;

use experiment::{LinkOutcome, Outcome, Setup, SwitchOutcome};
use fabric::{ImpairmentCounters, Impairments, IngressLimit, Limit, LinkId};
use flow::FlowStats;
use flow::credits::CreditStats;
use units::Bytes;

use crate::input::{BackendKind, Class, RunInfo};
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
    let mut messages = Vec::new();
    // The kernel does not report how often its law acted.
    let by_law = if info.backend() == BackendKind::Emulator { &[] } else { by_law };
    for (law, (name, actions)) in flows.laws.iter().zip(by_law).enumerate() {
        if !actions.none() || PASSIVE.contains(&name.as_str()) {
            continue;
        }
        let long_flows =
            flows.rows.iter().filter(|row| row.law as usize == law && row.delivered > bdp(setup, row)).count();
        if long_flows > 0 {
            messages.push(format!(
                "the law {name} never acted (no increase, no cut, no hold), though {long_flows} of its flows moved more \
                 than a bandwidth-delay product"
            ));
        }
    }
    if info.backend() == BackendKind::Simulator {
        messages.extend(never_cut(info, setup, flows));
        messages.extend(silent_mechanisms(setup, outcome));
    }
    if !outcome.deadlock.is_empty() {
        let names: Vec<String> = outcome.deadlock.iter().map(|&link| setup.network.link_name(link)).collect();
        messages.push(format!(
            "deadlock: when the run ended, these ports paused each other in a cycle: {}",
            names.join(", ")
        ));
    }
    let lost: u64 = outcome.switches.iter().map(|switch| switch.headroom_drops).sum();
    if lost > 0 {
        messages.push(format!("{lost} packets were dropped that pauses should have saved: some headroom is too small"));
    }
    let unfinished = dropped_beside(setup, outcome);
    if unfinished > 0 {
        messages.push(format!(
            "{unfinished} packets were dropped at a limit of their egress port (`buffer` of [port], \
             `egress_alpha`), which pauses do not consider"
        ));
    }
    let count = flows.rows.len();
    let unstarted = flows.rows.iter().filter(|row| !row.started.is_set()).count();
    let open = flows.rows.iter().filter(|row| row.started.is_set() && !row.completed.is_set()).count();
    let how = if outcome.interrupted { "was interrupted" } else { "reached its stop" };
    if outcome.interrupted || open + unstarted > 0 {
        messages.push(format!("the run {how} at {} before all flows had ended", outcome.ended));
    }
    if open > 0 {
        messages.push(format!("{open} of {count} flows did not end; completion times are of the others"));
    }
    if unstarted > 0 {
        messages.push(format!("{unstarted} of {count} flows never started"));
    }
    messages
}

/// Part of a class's bytes from which flows of one law decide the class's numbers.
const DECISIVE: u64 = 10;
/// Part of a bandwidth-delay product below which an initial window takes more than a round trip to fill the path.
const SMALL: f64 = 0.5;
/// Times their ideal that such flows take, in per cent, from which something other than their links limited them.
const SLOWER: u128 = 110;

/// Laws that were never cut in flows that carry more than a tenth of a class's bytes, began with less than half a
/// bandwidth-delay product, and took longer than their links ask for: the initial window and its growth decide the numbers of
/// such a class.
fn never_cut(info: &RunInfo, setup: &Setup, flows: &FlowTable) -> Vec<String> {
    let mut messages = Vec::new();
    for class in [Class::Intra, Class::Inter] {
        let of_class = || flows.rows.iter().filter(|row| row.class == class && row.completed.is_set());
        let bytes = |law: Option<u32>| -> u64 {
            let rows = of_class().filter(|row| law.is_none_or(|law| row.law == law));
            rows.map(|row| row.delivered.get()).fold(0, u64::saturating_add)
        };
        let all = bytes(None);
        let Some(begins) = info.conditions.classes.get(class.name()).filter(|it| it.begins_below(SMALL)) else {
            continue;
        };
        for (number, name) in (0u32..).zip(&flows.laws) {
            let rows = || of_class().filter(|row| row.law == number);
            let grew = rows().any(|row| row.actions.increases > 0);
            let all_rows = || flows.rows.iter().filter(|row| row.class == class && row.law == number);
            let cut = |row: &FlowRow| {
                let laws::LawActions { cuts, loss_cuts, quick_adapts, probe_rtts, .. } = row.actions;
                cuts + loss_cuts + quick_adapts + probe_rtts > 0
            };
            let law_bytes = bytes(Some(number));
            if PASSIVE.contains(&name.as_str()) || !grew || all_rows().any(cut) || law_bytes <= all / DECISIVE {
                continue;
            }
            // Each flow counts by its bytes.
            let sum = |of: fn(&FlowRow) -> u64| -> u128 {
                rows().map(|row| u128::from(of(row)) * u128::from(row.delivered.get())).sum()
            };
            let took = sum(|row| row.completed.since(row.started).unsigned_ps());
            let ideal = sum(|row| row.ideal.unsigned_ps()).max(1);
            if took * 100 < ideal * SLOWER {
                continue;
            }
            let long_flows = rows().filter(|row| row.delivered > bdp(setup, row)).count();
            if long_flows == 0 {
                continue;
            }
            messages.push(format!(
                "the law {name} never cut in {class} flows, which carry {} % of that class's bytes and took {}.{:02} times \
                 their ideal: the initial window, {}, and its growth decide these numbers more than congestion",
                u128::from(law_bytes) * 100 / u128::from(all.max(1)),
                took / ideal,
                took % ideal * 100 / ideal,
                begins.initial_window(),
            ));
        }
    }
    messages
}

/// Returns warnings of mechanisms that were switched on and had no effect.
fn silent_mechanisms(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let mut messages = Vec::new();
    let on_ramp_flows = setup.flows.iter().filter(|flow| flow.on_ramp).count();
    if setup.host.on_ramp.is_some() && on_ramp_flows > 0 && outcome.flows.iter().all(|flow| flow.stats.held.is_zero()) {
        messages.push(format!("On-Ramp never acted: none of the {on_ramp_flows} flows under it was ever held"));
    }
    if never_paused(setup, outcome) && came_near(setup, outcome) {
        messages.push("priority flow control never acted: no port was ever paused".into());
    }
    let limits = setup.modules.iter().any(|spec| matches!(spec.module, experiment::SwitchController::RateLimiting(_)));
    if limits && outcome.switches.iter().all(|switch| switch.notifications == 0) {
        messages.push("LSCC's near end never acted: it asked no source to send less".into());
    }
    if setup.host.cnp.is_some() && outcome.flows.iter().all(|flow| flow.stats.cnps == 0) {
        messages.push("notifications (CNP) are on, and no source ever got one".into());
    }
    messages.extend(late_credits(outcome));
    messages.extend(unheard_losses(setup, outcome));
    messages.extend(silent_losses(setup, outcome));
    messages
}

/// Returns a warning if no law received a loss, because timeouts alone found them.
fn unheard_losses(setup: &Setup, outcome: &Outcome) -> Option<String> {
    let sum = |count: fn(&FlowStats) -> u64| outcome.flows.iter().map(|flow| count(&flow.stats)).sum::<u64>();
    let (retransmits, timeouts, loss_events) =
        (sum(|it| it.retransmits), sum(|it| it.timeouts.into()), sum(|it| it.loss_events.into()));
    let is_unnotified = !setup.host.law_sees_timeouts && retransmits > 0 && timeouts > 0 && loss_events == 0;
    is_unnotified.then(|| {
        format!(
            "no law was notified of a loss, though {retransmits} packets were retransmitted: only timeouts detected losses, and [host] \
             law_sees_timeouts = false hides timeouts from laws"
        )
    })
}

/// Returns a warning if most credits arrived after the time for which they were meant.
fn late_credits(outcome: &Outcome) -> Option<String> {
    let sum = |count: fn(&CreditStats) -> u64| outcome.flows.iter().map(|flow| count(&flow.credits)).sum::<u64>();
    let (late, received) = (sum(|it| it.late), sum(|it| it.received));
    let is_mostly_late = 2 * late > received;
    is_mostly_late.then(|| {
        format!("{late} of {received} credits came after the time for which they were meant: they were delayed by more than the wait (`T_wait`) allows")
    })
}

/// Returns warnings of loss models that lost no packet, and of loss recovery that recovered none.
fn silent_losses(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let mut messages = Vec::new();
    let coded = || setup.flows.iter().zip(&outcome.flows).filter(|(flow, _)| flow.coded).map(|(_, it)| it.stats);
    let (retransmits, recovered) =
        coded().fold((0, 0), |(retransmits, recovered), it| (retransmits + it.retransmits, recovered + it.recovered));
    if retransmits > 0 && recovered == 0 {
        messages.push(format!(
            "coding never acted: parity gave no block back, and {retransmits} packets of coded flows were sent again"
        ));
    }
    let lost = |links: &[LinkId]| links.iter().map(|link| outcome.links[link.index()].losses).sum::<u64>();
    let failing: Vec<LinkId> = setup.network.failing().map(|(link, _)| link).collect();
    if !failing.is_empty() && lost(&failing) == 0 {
        messages.push(format!("[[failure]] never acted: none of the {} links that fail lost a packet", failing.len()));
    }
    let all = (0..setup.network.links().len() as u32).map(LinkId);
    let bursty: Vec<LinkId> = all.filter(|&link| setup.network.port(link).config().bursts.is_some()).collect();
    if !bursty.is_empty() && lost(&bursty) == 0 {
        messages
            .push(format!("loss_bursts never acted: none of the {} links that have them lost a packet", bursty.len()));
    }
    messages.extend(idle_impairments(setup, outcome));
    messages
}

/// Returns a warning for each kind of impairment that affected no packet.
fn idle_impairments(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    type Kind = (&'static str, fn(&Impairments) -> bool, fn(&ImpairmentCounters) -> u64);
    // An MTU and a policer may be limits that are not met.
    const KINDS: [Kind; 4] = [
        ("corrupt", |it| !it.corruption.is_zero(), |counters| counters.corrupted),
        ("duplicate", |it| !it.duplication.is_zero(), |counters| counters.duplicates),
        ("reorder", |it| it.reordering.is_some(), |counters| counters.reordered),
        ("ack_aggregation", |it| it.ack_aggregation.is_some(), |counters| counters.groups),
    ];
    let mut messages = Vec::new();
    for (key, is_set, count) in KINDS {
        let links = (0u32..).map(LinkId).zip(&outcome.links);
        let having = |&(link, _): &(LinkId, &LinkOutcome)| setup.network.impairments(link).is_some_and(|it| is_set(it));
        let counts: Vec<u64> = links.filter(having).map(|(_, link)| count(&link.impaired)).collect();
        if !counts.is_empty() && counts.iter().all(|&count| count == 0) {
            messages.push(format!("impair.{key} never acted on the {} links that have it", counts.len()));
        }
    }
    messages
}

/// Returns facts worth noting that are no reason to doubt the numbers.
pub(crate) fn notes(info: &RunInfo, setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let quiet = info.backend() == BackendKind::Simulator && never_paused(setup, outcome) && !came_near(setup, outcome);
    let message = "priority flow control had nothing to do: no buffer came to half of what pauses a port";
    quiet.then(|| message.to_owned()).into_iter().collect()
}

/// Returns whether PFC is configured and no port was ever paused.
fn never_paused(setup: &Setup, outcome: &Outcome) -> bool {
    let pauses = setup.network.nodes().iter().any(|node| node.switch.is_some_and(|it| it.pfc.is_some()));
    pauses && outcome.links.iter().all(|link| link.pauses == 0)
}

/// Returns whether the buffer of a switch with PFC ever held half of its lowest pause threshold at that time.
fn came_near(setup: &Setup, outcome: &Outcome) -> bool {
    let classes = setup.flows.iter().map(|flow| flow.class).collect::<BTreeSet<u8>>().len() as u64;
    outcome.switches.iter().any(|switch_outcome| {
        let Some(switch) =
            setup.network.nodes()[switch_outcome.node.index()].switch.filter(|switch| switch.pfc.is_some())
        else {
            return false;
        };
        let links = setup.network.links_out(switch_outcome.node).map(LinkId);
        let limits: Vec<IngressLimit> = links.map(|link| setup.network.port(link).config().ingress_limit).collect();
        let shared = switch.buffer.saturating_sub(fabric::reserved_bytes(&switch, &limits, classes));
        let left = shared.saturating_sub(switch_outcome.max_buffer).get();
        let lowest = limits.iter().map(|limit| match limit.xoff {
            Limit::Bytes(bytes) => bytes.get(),
            Limit::Alpha(alpha) => alpha.of(left),
        });
        lowest.min().is_some_and(|lowest| switch_outcome.max_buffer.get() >= lowest / 2)
    })
}

/// Packets that switches which pause dropped for another limit than their shared buffer.
fn dropped_beside(setup: &Setup, outcome: &Outcome) -> u64 {
    let pausing =
        |it: &&SwitchOutcome| setup.network.nodes()[it.node.index()].switch.is_some_and(|it| it.pfc.is_some());
    let drops = |switch_outcome: &SwitchOutcome| -> u64 {
        let all: u64 =
            setup.network.links_out(switch_outcome.node).map(|link| outcome.links[link as usize].drops).sum();
        all.saturating_sub(switch_outcome.headroom_drops)
    };
    outcome.switches.iter().filter(pausing).map(drops).sum()
}

/// Returns the bytes in flight on the flow's path at line rate.
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
    fn features_without_effect_are_warned_of() {
        let (_, mut setup, mut outcome) = testbed::two_datacenters();
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        let params =
            laws::on_ramp::OnRampParams { threshold: Span::from_us(30), gain: Frac::ratio(1, 16), strawman: false };
        setup.host.on_ramp = Some(experiment::OnRampConfig {
            params,
            on_queueing_delay: false,
            ack_every: 1,
            ack_size: 78,
            memory: false,
        });
        setup.host.cnp = Some(experiment::Cnp { interval: Span::from_us(50), size: 64 });
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
        setup.modules = vec![experiment::SwitchControllerSpec {
            link: LinkId(0),
            module: experiment::SwitchController::RateLimiting(params),
        }];
        // The far end's messages notify no source.
        let switch = |messages, notifications| experiment::SwitchOutcome {
            node: NodeId(0),
            max_buffer: Bytes::ZERO,
            headroom_drops: 0,
            messages,
            notifications,
        };
        outcome.switches = vec![switch(5, 0)];
        let (info, ..) = testbed::two_datacenters();
        assert_eq!(silent_mechanisms(&setup, &outcome).len(), 3);
        assert!(notes(&info, &setup, &outcome)[0].contains("nothing to do"));
        // An eighth of the rest of a mebibyte less its reserves: 117 kB with an empty buffer.
        outcome.switches[0].max_buffer = Bytes::new(80_000);
        assert_eq!(notes(&info, &setup, &outcome), Vec::<String>::new());
        let message = silent_mechanisms(&setup, &outcome);
        for (message, part) in message.iter().zip(["none of the 1 flows", "no port", "LSCC", "CNP"]) {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(message.len(), 4);
        outcome.flows[1].stats.held = Span::from_ns(1);
        outcome.flows[0].stats.cnps = 1;
        outcome.links[3].pauses = 1;
        outcome.switches = vec![switch(6, 1)];
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
    }

    #[test]
    fn mostly_late_credits_are_warned_of() {
        let (_, setup, mut outcome) = testbed::two_datacenters();
        outcome.flows[0].credits = CreditStats { received: 10, late: 4, ..CreditStats::default() };
        outcome.flows[2].credits = CreditStats { received: 4, late: 3, ..CreditStats::default() };
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        outcome.flows[2].credits.late = 4;
        let message = silent_mechanisms(&setup, &outcome);
        assert!(message.len() == 1 && message[0].starts_with("8 of 14 credits came after"), "{message:?}");
    }

    #[test]
    fn losses_without_law_notification_are_warned_of() {
        let (_, mut setup, mut outcome) = testbed::two_datacenters();
        (outcome.flows[0].stats.retransmits, outcome.flows[0].stats.timeouts) = (9, 2);
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        setup.host.law_sees_timeouts = false;
        let message = silent_mechanisms(&setup, &outcome);
        assert!(message.len() == 1 && message[0].contains("9 packets were retransmitted"), "{message:?}");
        outcome.flows[2].stats.loss_events = 1;
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
    }

    #[test]
    fn unused_loss_models_and_coding_are_warned_of() {
        let (_, mut setup, mut outcome) = testbed::two_datacenters();
        setup.flows[1].coded = true;
        (outcome.flows[0].stats.retransmits, outcome.flows[1].stats.retransmits) = (9, 0);
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        outcome.flows[1].stats.retransmits = 3;
        let ever = fabric::Outages::new([(units::Time::ZERO, units::Time::NEVER)]);
        setup.network = setup.network.with_outages(LinkId(2), ever);
        let message = silent_mechanisms(&setup, &outcome);
        for (message, part) in message.iter().zip(["3 packets of coded flows", "none of the 1 links that fail"]) {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(message.len(), 2);
        (outcome.flows[1].stats.recovered, outcome.links[2].losses) = (1, 1);
        assert_eq!(silent_mechanisms(&setup, &outcome), Vec::<String>::new());
        let lossy = testbed::lossy();
        let mut outcome = testbed::run(&lossy, 1);
        let all = lossy.network.links().len();
        for link in &mut outcome.links {
            link.losses = 0;
        }
        let message = silent_mechanisms(&lossy, &outcome);
        assert_eq!(message, [format!("loss_bursts never acted: none of the {all} links that have them lost a packet")]);
        outcome.links[0].losses = 1;
        assert_eq!(silent_mechanisms(&lossy, &outcome), Vec::<String>::new());
    }

    /// Flows that carry a class, were never cut and took longer than their ideal: their beginning decided. Without any
    /// of the three there is no warning.
    #[test]
    fn uncut_laws_that_dominate_a_class_are_warned_of() {
        let (mut info, setup, mut outcome) = testbed::two_datacenters();
        let begin = |window| crate::conditions::Beginning {
            bdp: Bytes::new(250_000),
            window: Bytes::new(window),
            pacing: units::Rate::MAX,
        };
        let class = crate::conditions::ClassConditions::of(begin(15_000), begin(15_000));
        info.conditions.classes = crate::Ordered(vec![("inter".into(), class)]);
        for flow in &mut outcome.flows {
            flow.actions = laws::LawActions { increases: flow.actions.increases, ..Default::default() };
            flow.actions.increases = 5;
            flow.delivered = Bytes::new(10_000_000);
        }
        let message = |info: &RunInfo, outcome: &Outcome| {
            let flows = FlowTable::new(info, &setup, outcome).unwrap();
            never_cut(info, &setup, &flows)
        };
        let all = message(&info, &outcome);
        assert_eq!(all.len(), 1, "{all:?}");
        let parts =
            ["the law gemini never cut in inter flows, which carry 100 %", "the initial window, 15 KB (0.06 BDP),"];
        assert!(parts.iter().all(|part| all[0].contains(part)), "{all:?}");
        let changed = |change: &dyn Fn(&mut experiment::FlowOutcome)| {
            let mut other = outcome.clone();
            let inter = (0..other.flows.len()).filter(|&flow| info.classes[flow] == Class::Inter);
            inter.collect::<Vec<_>>().into_iter().for_each(|flow| change(&mut other.flows[flow]));
            message(&info, &other)
        };
        assert!(changed(&|flow| flow.actions.loss_cuts = 1).is_empty());
        // A flow that was cut and did not end was cut.
        let mut open = outcome.clone();
        let inter = (0..open.flows.len()).find(|&flow| info.classes[flow] == Class::Inter).unwrap();
        (open.flows[inter].actions.cuts, open.flows[inter].completed) = (1, units::Time::NEVER);
        assert!(message(&info, &open).is_empty());
        assert!(changed(&|flow| flow.actions.increases = 0).is_empty());
        assert!(changed(&|flow| flow.completed = flow.started + Span::from_ns(1)).is_empty());
        assert!(changed(&|flow| flow.delivered = Bytes::new(10_000)).is_empty(), "less than a BDP");
        info.conditions.classes = crate::Ordered::default();
        assert!(message(&info, &outcome).is_empty());
    }

    #[test]
    fn port_drops_and_buffer_drops_are_distinguished() {
        let (info, mut setup, mut outcome) = testbed::two_datacenters();
        let pfc = Some(fabric::Pfc { frame: 64, relay: false });
        let switch =
            fabric::Switch { buffer: Bytes::new(1 << 20), reserve: Bytes::ZERO, egress_alpha: None, pfc, int: false };
        setup.network = setup.network.sharing(|_, _| Some(switch));
        let node = setup.network.nodes().iter().position(|node| node.switch.is_some()).unwrap() as u32;
        let out = setup.network.links_out(NodeId(node)).start as usize;
        for (drops, headroom_drops, parts) in [(7, 7, 1), (7, 0, 1), (7, 4, 2)] {
            outcome.links[out].drops = drops;
            let max_buffer = Bytes::new(1 << 20);
            let node = NodeId(node);
            let switch = experiment::SwitchOutcome { node, max_buffer, headroom_drops, messages: 0, notifications: 0 };
            outcome.switches = vec![switch];
            let message = testbed::results_of(&info, &setup, &outcome).summary.warnings;
            let message: Vec<&String> =
                message.iter().filter(|message| message.contains("packets were dropped")).collect();
            assert_eq!(message.len(), parts, "{message:?}");
            let unfinished =
                message.iter().any(|message| message.starts_with(&format!("{} packets", drops - headroom_drops)));
            assert_eq!(unfinished && message.last().unwrap().contains("egress_alpha"), drops > headroom_drops);
        }
    }

    #[test]
    fn a_deadlock_names_its_ports() {
        let (info, setup, mut outcome) = testbed::two_datacenters();
        outcome.deadlock = vec![LinkId(0)];
        let name = setup.network.link_name(LinkId(0));
        let message = testbed::results_of(&info, &setup, &outcome).summary.warnings.join("; ");
        assert!(message.contains("deadlock") && message.contains(&name), "{message}");
    }
}
