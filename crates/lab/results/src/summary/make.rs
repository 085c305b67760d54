//! From a run to its summary.

use experiment::{Outcome, Setup};
use flow::credits::CreditStats;

use super::cells::{class_cell, collective_cell, job_cells, request_cell};
use super::{
    Actions, Correlation, Credits, Engine, FlowGroupStats, Flows, JobCell, LawTotals, Predicts, SCHEMA, Schedule,
    Summary, bin_cells, cell, fairness::fairness, fairness::too_long_a_window, identities, network, training::training,
    warnings,
};
use crate::input::{Class, EngineTimes, ImportedSchedule, RunInfo};
use crate::ordered::Ordered;
use crate::stats;
use crate::tables::{FlowTable, RateTable};

/// A run in numbers. Only [`Summary::engine`] depends on `times` and on how many threads there were.
pub fn summarise(
    info: &RunInfo,
    setup: &Setup,
    outcome: &Outcome,
    flows: &FlowTable,
    rates: &RateTable,
    times: EngineTimes,
) -> Summary {
    let ended = outcome.ended;
    let law = law_totals(flows, outcome);
    let actions: Vec<Actions> = law.by_law.0.iter().map(|&(_, actions)| actions).collect();
    let mut warnings = identities::broken(info, setup, outcome, flows);
    warnings.extend(info.emulator.iter().filter_map(|it| it.bottleneck.clone()));
    let caveats = info.emulator.iter().filter(|it| !it.caveats.is_empty());
    warnings.extend(caveats.map(|it| format!("questionable: {}", it.caveats.join("; "))));
    warnings.extend(warnings::warnings(info, setup, outcome, flows, &actions));
    warnings.extend(info.warnings.iter().cloned());
    let window_ns = info.fairness_window.unsigned_ps().div_ceil(1_000);
    let hops = outcome.engine.packet_hops;
    let fairness = fairness(rates, flows, setup.series.flows.len(), window_ns);
    let mut notes = info.notes.clone();
    notes.extend(warnings::notes(info, setup, outcome));
    if info.sets_fairness_window {
        notes.extend(too_long_a_window(&fairness, setup, outcome, flows, info.fairness_window));
    }
    Summary {
        schema: SCHEMA,
        scenario: info.scenario.clone(),
        run: info.run.clone(),
        label: info.label.clone(),
        point: Ordered(info.point.clone()),
        backend: info.backend(),
        seed: setup.seed,
        end_ns: stats::ns(ended.ps()),
        conditions: info.conditions.clone(),
        flows: Flows {
            all: cell(flows, ended, |_| true),
            intra: class_cell(flows, ended, Class::Intra),
            inter: class_cell(flows, ended, Class::Inter),
            sizes: bin_cells(flows, ended, &info.sizes),
        },
        requests: request_cell(flows, ended),
        collectives: collective_cell(flows, ended),
        jobs: jobs(info, setup, outcome, flows),
        schedules: Ordered(info.schedules.iter().map(|it| (it.name.clone(), schedule(it, outcome))).collect()),
        network: network::totals(setup, outcome),
        credits: credits(outcome),
        fairness,
        predicts: Predicts {
            owd: Correlation::of(&outcome.predictions.owd),
            rtt: Correlation::of(&outcome.predictions.rtt),
        },
        law,
        engine: Engine {
            events: outcome.engine.events,
            wall_s: times.wall_s,
            cpu_s: times.cpu_s,
            threads: outcome.engine.threads,
            packet_hops_per_s: if times.wall_s > 0.0 { (hops as f64 / times.wall_s).round() } else { 0.0 },
            peak_rss_bytes: times.peak_rss_bytes,
        },
        emulator: info.emulator.clone(),
        virtual_time: info.virtual_time.clone(),
        warnings,
        notes,
    }
}

/// Jobs by name; training jobs have the waits of their iterations.
fn jobs(info: &RunInfo, setup: &Setup, outcome: &Outcome, flows: &FlowTable) -> Ordered<JobCell> {
    let of = |(name, cell): (String, FlowGroupStats)| {
        let job = info.training.iter().find(|job| job.name == name);
        let training = job.map(|job| training(job, setup, outcome));
        (name, JobCell { cell, training })
    };
    Ordered(job_cells(flows, outcome.ended).0.into_iter().map(of).collect())
}

fn schedule(schedule: &ImportedSchedule, outcome: &Outcome) -> Schedule {
    let flows = &outcome.flows[schedule.flows.start as usize..schedule.flows.end as usize];
    let completed = flows.iter().filter(|flow| flow.completed.is_set()).count();
    let last = flows.iter().map(|flow| flow.completed).max().filter(|_| completed == flows.len());
    Schedule {
        flows: flows.len() as u64,
        completed: completed as u64,
        end_to_end_ns: last.map(|last| stats::ns(last.since(schedule.start).unsigned_ps())),
    }
}

fn credits(outcome: &Outcome) -> Credits {
    let mut all = CreditStats::default();
    outcome.flows.iter().for_each(|flow| all.add(&flow.credits));
    Credits {
        sent: all.sent,
        used: all.used,
        dropped: outcome.links.iter().map(|link| link.credit_drops).sum(),
        wasted: all.wasted,
        received: all.received,
        over_provisioned: all.over_provisioned,
        late: all.late,
        unscheduled: all.unscheduled,
        unscheduled_drops: outcome.links.iter().map(|link| link.unscheduled_drops).sum(),
    }
}

fn law_totals(flows: &FlowTable, outcome: &Outcome) -> LawTotals {
    let mut by_law = vec![Actions::default(); flows.laws.len()];
    let mut all = Actions::default();
    for row in &flows.rows {
        all.add(&row.actions);
        by_law[row.law as usize].add(&row.actions);
    }
    for row in &flows.rows {
        let flow = &outcome.flows[row.flow as usize];
        all.credits += flow.credits.used;
        by_law[row.law as usize].credits += flow.credits.used;
    }
    let by_law = flows.laws.iter().cloned().zip(by_law).collect();
    LawTotals { name: flows.laws.join("+"), actions: all, by_law: Ordered(by_law) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::keywords::{ClosedSet as _, CreditsKey};
    use crate::testbed;
    use serde_json::Value;
    use units::Time;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The contract: every key that scripts may rely on.
    #[test]
    fn summary_has_the_documented_shape() {
        let summary = testbed::results().summary;
        let json: Value = serde_json::from_str(&summary.to_json()).unwrap();
        let cell = ["count", "completed", "fct_ns", "slowdown", "goodput_bps"];
        let spread = ["mean", "p50", "p90", "p95", "p99", "max"];
        let top = [
            "schema",
            "scenario",
            "run",
            "label",
            "point",
            "backend",
            "seed",
            "end_ns",
            "conditions",
            "flows",
            "requests",
            "collectives",
            "jobs",
            "schedules",
            "network",
            "credits",
            "fairness",
            "predicts",
            "law",
            "engine",
            "emulator",
            "virtual",
            "warnings",
            "notes",
        ];
        assert_eq!(keys(&json), top);
        assert_eq!(keys(&json["flows"]), ["all", "intra", "inter", "sizes"]);
        assert_eq!(keys(&json["flows"]["sizes"]), ["small", "large"]);
        for part in ["/flows/all", "/flows/intra", "/flows/sizes/small", "/requests", "/collectives"] {
            let part = json.pointer(part).unwrap();
            assert_eq!(keys(part), cell);
            assert_eq!((keys(&part["fct_ns"]), keys(&part["slowdown"])), (spread.to_vec(), spread.to_vec()));
        }
        let network = [
            "data_packets",
            "packet_hops",
            "drops",
            "drops_by_tier",
            "drops_by_kind",
            "data_drops_by_tier",
            "ecn_marks",
            "or_acks",
            "or_ack_bytes",
            "retransmits",
            "timeouts",
            "pfc_pauses",
            "pfc_pause_ns",
            "pfc_pauses_by_tier",
            "pfc_pause_ns_by_tier",
            "host_pause_ns",
            "nacks",
            "cnps",
            "parity_packets",
            "recovered_blocks",
            "on_ramp_hold_ns",
            "max_queue_bytes",
            "max_buffer_bytes",
            "headroom_drops",
            "messages",
            "deadlock",
            "links",
            "switches",
        ];
        assert_eq!(keys(&json["network"]), network);
        let tiers = ["nic", "host", "edge", "core", "border", "inter", "other", "random"];
        assert_eq!(keys(&json["network"]["drops_by_tier"]), tiers);
        let link = [
            "name",
            "class",
            "utilisation",
            "packets",
            "bytes",
            "drops",
            "losses",
            "lost_data",
            "lost_acks",
            "lost_credits",
            "marks",
            "max_queue_bytes",
            "pauses",
            "pause_ns",
        ];
        assert_eq!(keys(&json["network"]["links"][0]), link);
        assert_eq!(keys(&json["credits"]), CreditsKey::ALL.iter().map(|key| key.name()).collect::<Vec<_>>());
        assert_eq!(
            keys(&json["fairness"]),
            ["jain_mean", "jain_final", "converged_at_ns", "reached_at_ns", "jain_since"]
        );
        assert_eq!(
            (keys(&json["predicts"]), keys(&json["predicts"]["owd"])),
            (vec!["owd", "rtt"], vec!["packets", "r"])
        );
        assert_eq!(keys(&json["law"]), ["name", "actions", "by_law"]);
        let engine = ["events", "wall_s", "cpu_s", "threads", "packet_hops_per_s", "peak_rss_bytes"];
        assert_eq!(keys(&json["engine"]), engine);
        assert_eq!(json["schema"], 1);
        assert_eq!((&json["backend"], &json["emulator"]), (&Value::from("simulator"), &Value::Null));
        let back: Summary = serde_json::from_str(&summary.to_json()).unwrap();
        assert_eq!(back, summary);
    }

    #[test]
    fn emulated_runs_show_their_caveats() {
        let (mut info, setup, mut outcome) = testbed::one_flow();
        // The kernel does not report how often a law acted, so a count of zero does not mean inaction.
        outcome.flows[0].actions = laws::LawActions::default();
        outcome.flows[0].delivered = units::Bytes::new(1 << 40);
        info.laws.fill("cubic".into());
        info.emulator = Some(crate::Emulator { bottleneck: Some("the router was late".into()), ..Default::default() });
        let results = testbed::results_of(&info, &setup, &outcome);
        assert_eq!(results.summary.warnings, ["the router was late"]);
        assert_eq!(
            (results.summary.backend, results.manifest.backend),
            (crate::BackendKind::Emulator, crate::BackendKind::Emulator)
        );
        let json: Value = serde_json::from_str(&results.summary.to_json()).unwrap();
        let emulator = [
            "lateness_p50_ns",
            "lateness_p99_ns",
            "lateness_max_ns",
            "cpu_share",
            "sched_realtime",
            "stack",
            "congestion",
            "command",
            "validity",
            "bottleneck",
            "caveats",
            "cpu_pressure",
            "cgroup_cpu_pressure",
            "thread_wait",
            "thread_wait_mean_ns",
            "router_wait",
            "cpu_steal",
            "stalled",
        ];
        assert_eq!(keys(&json["emulator"]), emulator);
        // Results from before there was a choice are read as simulated ones.
        let mut old: Value = serde_json::from_str(&testbed::results().summary.to_json()).unwrap();
        for key in ["backend", "emulator", "predicts", "notes"] {
            old.as_object_mut().unwrap().remove(key);
        }
        let old: Summary = serde_json::from_value(old).unwrap();
        assert_eq!((old.backend, old.emulator), (crate::BackendKind::Simulator, None));
    }

    /// From the schedule's start to its last completion; a flow that is open leaves it open.
    #[test]
    fn schedules_last_from_their_start_to_their_last_completion() {
        let (mut info, setup, mut outcome) = testbed::two_datacenters();
        let (name, start) = ("ring".to_owned(), Time::from_ps(7));
        info.schedules = vec![ImportedSchedule { name, start, flows: 1..3 }];
        let last = outcome.flows[1].completed.max(outcome.flows[2].completed);
        let of = |outcome: &Outcome| testbed::results_of(&info, &setup, outcome).summary.schedules.0[0].1;
        let expected = Some(stats::ns(last.since(start).unsigned_ps()));
        assert_eq!(of(&outcome), Schedule { flows: 2, completed: 2, end_to_end_ns: expected });
        outcome.flows[2].completed = Time::NEVER;
        assert_eq!(of(&outcome), Schedule { flows: 2, completed: 1, end_to_end_ns: None });
    }

    #[test]
    fn an_unloaded_flow_has_slowdown_one_to_the_picosecond() {
        let (info, setup, outcome) = testbed::one_flow();
        let results = testbed::results_of(&info, &setup, &outcome);
        let all = &results.summary.flows.all;
        assert_eq!(all.slowdown.max, Some(1.0));
        let ideal_ps = setup.ideal(&setup.flows[0]).ps();
        assert_eq!((all.fct_ns.p50.unwrap() * 1_000.0).round() as i64, ideal_ps);
        assert_eq!(results.summary.warnings, Vec::<String>::new());
    }

    #[test]
    fn only_the_engine_depends_on_threads_and_times() {
        let (info, setup, _) = testbed::two_datacenters();
        let run_with = |threads, wall_s| {
            let outcome = testbed::run(&setup, threads);
            let flows = FlowTable::new(&info, &setup, &outcome).unwrap();
            let times = EngineTimes { wall_s, cpu_s: wall_s, peak_rss_bytes: 1 };
            summarise(&info, &setup, &outcome, &flows, &RateTable::new(&outcome), times)
        };
        let (one, two) = (run_with(1, 1.0), run_with(2, 0.5));
        assert_eq!((one.engine.threads, two.engine.threads), (1, 2));
        assert!((two.engine.packet_hops_per_s - 2.0 * one.engine.packet_hops_per_s).abs() < 1.0);
        assert_eq!(one, Summary { engine: one.engine, ..two });
    }

    #[test]
    fn delivered_bytes_match_the_outcome() {
        let (_, setup, outcome) = testbed::two_datacenters();
        let summary = testbed::results().summary;
        assert_eq!(summary.flows.all.count, summary.flows.intra.count + summary.flows.inter.count);
        assert_eq!(summary.flows.all.completed, setup.flows.len() as u64);
        assert_eq!(summary.network.packet_hops, outcome.engine.packet_hops);
        assert!(summary.flows.all.slowdown.p50 >= Some(1.0));
        assert!(summary.network.links.iter().all(|link| link.utilisation <= 1.0 && link.packets > 0));
        assert_eq!(summary.law.name, "dctcp+gemini");
        let total: u64 = summary.law.by_law.iter().map(|(_, actions)| actions.increases).sum();
        assert_eq!(summary.law.actions.increases, total);
        assert!(total > 0);
    }

    #[test]
    fn idle_laws_and_unfinished_flows_are_warned_of() {
        let (info, mut setup, mut outcome) = testbed::two_datacenters();
        for flow in &mut outcome.flows {
            flow.actions = laws::LawActions::default();
        }
        outcome.flows[0].completed = Time::NEVER;
        outcome.flows[1].started = Time::NEVER;
        outcome.flows[1].completed = Time::NEVER;
        setup.seed = 7;
        let message = testbed::results_of(&info, &setup, &outcome).summary.warnings;
        assert!(message[0].starts_with("the law dctcp never acted"), "{message:?}");
        assert!(message[1].starts_with("the law gemini never acted"), "{message:?}");
        assert!(message[2].starts_with("the run reached its stop at"), "{message:?}");
        assert_eq!(
            message[3],
            format!("1 of {} flows did not end; completion times are of the others", setup.flows.len())
        );
        assert_eq!(message[4], format!("1 of {} flows never started", setup.flows.len()));
        assert_eq!(message.len(), 5);
    }

    /// More flows than can start, as a loop until the stop lists them: those that did not are nowhere. Others keep their numbers.
    #[test]
    fn unused_standby_flows_are_omitted() {
        let (mut info, setup, mut outcome) = testbed::two_datacenters();
        let all = testbed::results_of(&info, &setup, &outcome);
        for flow in [1, 4] {
            (outcome.flows[flow].started, outcome.flows[flow].completed) = (Time::NEVER, Time::NEVER);
            outcome.flows[flow].actions = laws::LawActions::default();
        }
        info.open_ended = std::iter::once(0..3).collect();
        let run = testbed::results_of(&info, &setup, &outcome);
        let numbers: Vec<u32> = run.flows.rows.iter().map(|row| row.flow).collect();
        assert_eq!(numbers, [0, 2, 3, 4]);
        assert_eq!(
            (0..6).map(|flow| run.flows.row(flow).map(|row| row.flow)).collect::<Vec<_>>(),
            [Some(0), None, Some(2), Some(3), Some(4), None]
        );
        assert_eq!(run.flows.row(3), all.flows.row(3));
        assert_eq!((run.summary.flows.all.count, run.summary.flows.all.completed), (4, 3));
        // Flow 4 was to start.
        let unstarted: Vec<&String> =
            run.summary.warnings.iter().filter(|message| message.contains("never started")).collect();
        assert_eq!(unstarted, ["1 of 4 flows never started"]);
    }

    #[test]
    fn a_description_that_does_not_fit_is_refused() {
        let (info, setup, outcome) = testbed::two_datacenters();
        let error_of = |info: &RunInfo| FlowTable::new(info, &setup, &outcome).unwrap_err().to_string();
        let few = RunInfo { classes: Vec::new(), ..info.clone() };
        assert!(error_of(&few).contains("0 classes"), "{}", error_of(&few));
        let lawless = RunInfo { laws: Vec::new(), ..info.clone() };
        assert!(error_of(&lawless).contains("kind 0 has no law"), "{}", error_of(&lawless));
        let far = RunInfo { requests: vec![vec![experiment::FlowId(999)]], ..info };
        assert!(error_of(&far).contains("flow 999"), "{}", error_of(&far));
    }
}
