//! Tests of the claim language and of verdicts.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::ast::{ClaimWindow, Function, Operator, Order, Subject};
use super::keywords::{ClosedSet, TierKey};
use super::possible::{MetricNames, comparable};
use super::suspects::TrialOutcome;
use super::*;
use crate::Summary;
use crate::store::RunResults;
use crate::testbed;

fn runs() -> Vec<RunResults> {
    let one = testbed::results();
    let mut two = testbed::results();
    two.summary.run = "b,load=0.4".into();
    let all = &mut two.summary.flows.all;
    all.fct_ns.p99 = all.fct_ns.p99.map(|ns| ns * 2.0);
    two.summary.fairness = crate::summary::Fairness {
        jain_mean: Some(0.9),
        jain_final: Some(0.97),
        converged_at_ns: Some(12_000_000),
        reached_at_ns: Some(4_000_000),
        jain_since: Some(0.96),
    };
    vec![one, two]
}

/// Returns true if a check holds. Asserts that the static check accepts it: it must accept every check that has a value.
fn holds_for(text: &str) -> bool {
    let results = runs();
    let check = check(text).unwrap();
    let (info, ..) = testbed::two_datacenters();
    comparable(&check, &MetricNames::of(&info)).unwrap_or_else(|error| panic!("{text}: {error}"));
    holds(&check, &Runs::of_results(&results)).unwrap()
}

#[test]
fn impossible_metrics_are_refused_before_the_runs() {
    let (mut info, ..) = testbed::two_datacenters();
    info.training.clear();
    info.schedules.clear();
    for (text, message) in [
        ("p99(nope.fct) < 1ms", "has no class of flows `nope`; it has: all, intra, inter, requests, collectives"),
        ("p99(all.fct) < 5", "`all.fct.p99` is a time and `5` is a number: they cannot be compared"),
        ("all.goodput + network.max_queue > 1bps", "is an amount of data: they cannot be added"),
        ("max(all.slowdown.p50, 3ms) > 1", "they cannot be compared"),
        ("gpt.iteration.mean < 1s", "the run has no training job"),
        ("gpt.end_to_end < 1s", "the run has no imported schedule"),
        ("queue('all').p99 / 1MB < 1us", "is a number and `1us` is a time"),
        ("rate('nope').mean > 1bps", "`nope` is no choice of flows"),
    ] {
        let report =
            comparable(&check_of_a_run(text).unwrap(), &MetricNames::of(&info)).map_err(|error| error.to_string());
        assert!(report.as_ref().is_err_and(|report| report.contains(message)), "{text}: {report:?}");
    }
    for text in ["p99(all.fct) < 5us", "flows(0s, 1ms).rate >= 1bps", "fairness.converged_at <= 1s / 2"] {
        assert_eq!(comparable(&check_of_a_run(text).unwrap(), &MetricNames::of(&info)), Ok(()), "{text}");
    }
}

/// A run is named by ends of its keys where they are of one run.
#[test]
fn runs_may_be_abbreviated() {
    let mut results = runs();
    for (run, id) in results.iter_mut().zip(["a,traffic.0.size=1KB", "a,traffic.1.size=1KB"]) {
        run.summary.run = id.into();
    }
    let holds =
        |text: &str| holds(&check(text).unwrap(), &Runs::of_results(&results)).map_err(|error| error.to_string());
    assert_eq!(holds("a[traffic.0.size=1KB].all.count == a[1.size=1KB].all.count"), Ok(true));
    let report = holds("a[size=1KB].all.count == 1").unwrap_err();
    assert!(
        report.contains("`a,size=1KB`") && report.contains("traffic.0.size") && report.contains("traffic.1.size"),
        "{report}"
    );
}

fn refused(text: &str) -> String {
    let results = runs();
    holds(&check(text).unwrap(), &Runs::of_results(&results)).unwrap_err().to_string()
}

/// A job is a class of its own. Where it is the only one, tables and comparisons leave it out: it is `collectives` again.
#[test]
fn jobs_can_be_asked_for_by_name() {
    let mut run = testbed::results();
    let cell = |p99: f64| {
        let mut cell = run.summary.flows.all.clone();
        cell.fct_ns.p99 = Some(p99);
        crate::summary::JobCell { cell, training: None }
    };
    let jobs = [("llama", 3e6), ("mixtral", 5e6)].map(|(name, p99)| (name.to_owned(), cell(p99)));
    let listed =
        |run: &RunResults| run.summary.classes().filter(|(name, _)| ["llama", "mixtral"].contains(name)).count();
    for count in [1, 2] {
        run.summary.jobs = crate::ordered::Ordered(jobs[..count].to_vec());
        assert_eq!(listed(&run), if count == 1 { 0 } else { 2 });
        let evaluate = |text: &str| {
            let expr = expression(&format!("'{}'.{text}", run.summary.run)).unwrap();
            value(&expr, &Runs::of_summaries([&run.summary])).map(|value| value.amount)
        };
        assert!((evaluate("llama.fct.p99").unwrap() - 3e6).abs() < 1.0);
        assert_eq!(evaluate("mixtral.fct.p99").is_ok(), count == 2);
    }
}

#[test]
fn correlations_can_be_asked_for_where_something_varied() {
    let mut run = testbed::results();
    let evaluate = |run: &RunResults, text: &str| {
        let expr = expression(&format!("'{}'.predicts.{text}", run.summary.run)).unwrap();
        value(&expr, &Runs::of_summaries([&run.summary])).map(|value| value.amount).map_err(|error| error.to_string())
    };
    assert!(evaluate(&run, "owd").unwrap_err().contains("[monitor] predictors"));
    run.summary.predicts.owd = crate::summary::Correlation { packets: 9, r: Some(-0.5) };
    run.summary.predicts.rtt.packets = 9;
    assert_eq!(evaluate(&run, "owd"), Ok(-0.5));
    assert!(evaluate(&run, "rtt").unwrap_err().contains("nothing varied"));
}

#[test]
fn shared_buffers_and_feedback_can_be_asked_for() {
    let mut run = testbed::results();
    for (row, value) in run.ports.rows.iter_mut().zip(1u64..) {
        (row.ingress_bytes, row.pseudo_bytes, row.feedback_bps) = (Some(value), Some(2 * value), Some(1_000 * value));
    }
    let count = run.ports.rows.len() as u64;
    run.switches.names = vec!["dc0.border".into(), "dc1.core0".into()];
    let row = |switch, buffer_bytes| crate::tables::SwitchRow { time_ns: 0, switch, buffer_bytes };
    run.switches.rows = vec![row(0, 100), row(0, 300), row(1, 900)];
    run.summary.network.pfc_pause_ns_by_tier = crate::Ordered(vec![("inter".into(), 5_000)]);
    let every = run.ports.ports.iter().map(|port| port.class.name()).collect::<std::collections::BTreeSet<_>>();
    let max_of = |key: &str| {
        let parts: Vec<String> = every.iter().map(|class| format!("a.{key}(\"class:{class}\").max")).collect();
        format!("max({})", parts.join(", "))
    };
    for text in [
        format!("{} == {count}B", max_of("ingress")),
        format!("{} == {}B", max_of("pseudo"), 2 * count),
        format!("{} == {}bps", max_of("feedback"), 1_000 * count),
        "a.buffer(\"all\").max == 900B and a.buffer(\"*.border\").mean == 200B".to_owned(),
        "a.buffer(\"dc1.core0\").p50 == 900B and a.network.pfc_pause_by_tier.inter == 5us".to_owned(),
    ] {
        assert!(holds(&check(&text).unwrap(), &Runs::of_results([&run])).unwrap(), "{text}");
    }
}

#[test]
fn run_name_is_optional_for_one_run() {
    let written = |text: &str| expression_of_a_run(text).map(|expr| expr.to_string());
    for (text, meaning) in [
        ("inter.slowdown.p99", "inter.slowdown.p99"),
        ("p99(inter.slowdown)", "inter.slowdown.p99"),
        ("slowdown.p99", "all.slowdown.p99"),
        ("max(fct) / 2", "all.fct.max / 2"),
        ("goodput", "all.goodput"),
        ("max(inter.fct.p50, intra.fct.p50)", "max(inter.fct.p50, intra.fct.p50)"),
        ("network.drops", "network.drops"),
        ("flows(0ms, 2ms).jain", "flows(0s, 2ms).jain"),
        ("it.inter.slowdown.p99", "inter.slowdown.p99"),
        ("p99(it.slowdown) / it.network.drops", "all.slowdown.p99 / network.drops"),
        ("it.queue('receiver').max", "queue(\"receiver\").max"),
        ("p99(gpt.iteration) - gpt.compute", "gpt.iteration.p99 - gpt.compute"),
        ("gpt.critical.pipeline", "gpt.critical.pipeline"),
        ("ring.end_to_end", "ring.end_to_end"),
    ] {
        assert_eq!(written(text).unwrap(), meaning, "{text}");
    }
    assert!(written("p98(inter.fct)").unwrap_err().to_string().contains("no such function"));
    assert!(written("uno.inter.fct.p99").is_err());
    let results = runs();
    let of = |text: &str, run: usize| {
        value(&expression_of_a_run(text).unwrap(), &Runs::of_summary(&results[run].summary)).unwrap()
    };
    assert!((of("p99(fct)", 1).amount - 2.0 * of("fct.p99", 0).amount).abs() < 1e-6);
    assert_eq!(of("fct.p99", 0).as_in_tables().1, "ns");
    let holds_in = |text: &str| holds(&check_of_a_run(text).unwrap(), &Runs::of_summary(&results[1].summary)).unwrap();
    assert!(holds_in("fairness.jain_final >= 0.95 and p99(fct) > 0s"));
    assert!(!holds_in("fairness.jain_final < 0.95"));
}

/// Claims name runs, and take statistics as everything else does.
#[test]
fn statistics_may_precede_run_names() {
    for (text, meaning) in [
        ("p99(uno.inter.slowdown)", "uno.inter.slowdown.p99"),
        ("max(a[load=0.4].fct)", "a[load=0.4].all.fct.max"),
        ("max(a.all.fct.p50, 1ms)", "max(a.all.fct.p50, 1ms)"),
    ] {
        assert_eq!(expression(text).map(|expr| expr.to_string()).as_deref(), Ok(meaning), "{text}");
    }
}

#[test]
fn iterations_and_schedules_can_be_asked_for() {
    use crate::summary::{JobCell, Schedule, Training};
    let mut summary = runs().remove(0).summary;
    let of = |summary: &Summary, text: &str| {
        value(&expression_of_a_run(text).unwrap(), &Runs::of_summary(summary)).map_err(|error| error.to_string())
    };
    assert!(of(&summary, "gpt.iteration.mean").unwrap_err().contains("the run has no training job"));
    assert!(of(&summary, "ring.end_to_end").unwrap_err().contains("the run has no imported schedule"));
    let training = Training {
        iteration_ns: vec![2e6, 4e6, 9e6],
        iteration_mean_ns: Some(5e6),
        compute_ns: Some(1e6),
        exposed_ns: Some(4e6),
        critical: crate::Ordered(vec![("compute".into(), 0.2), ("pipeline".into(), 0.8)]),
        inter: 0.75,
        ..Training::default()
    };
    let job = JobCell { training: Some(training), ..JobCell::default() };
    summary.jobs = crate::Ordered(vec![("gpt".into(), job.clone())]);
    let schedule = |end_to_end_ns| Schedule { flows: 7, completed: 6, end_to_end_ns };
    summary.schedules = crate::Ordered(vec![("ring".into(), schedule(Some(3e6))), ("tree".into(), schedule(None))]);
    for (text, expected) in [
        ("gpt.iteration.mean", DimensionedValue::ns(5e6)),
        ("p99(gpt.iteration)", DimensionedValue::ns(9e6)),
        ("p50(iteration)", DimensionedValue::ns(4e6)),
        ("gpt.exposed", DimensionedValue::ns(4e6)),
        ("gpt.compute", DimensionedValue::ns(1e6)),
        ("gpt.critical.pipeline", DimensionedValue::number(0.8)),
        ("gpt.inter_share", DimensionedValue::number(0.75)),
        ("ring.end_to_end", DimensionedValue::ns(3e6)),
    ] {
        assert_eq!(of(&summary, text), Ok(expected), "{text}");
    }
    assert!(of(&summary, "gpt.critical.tensor").unwrap_err().contains("there are compute, pipeline"));
    assert!(of(&summary, "llama.iteration.mean").unwrap_err().contains("there are gpt"));
    assert!(of(&summary, "tree.end_to_end").unwrap_err().contains("6 of its 7 flows ended"));
    assert!(of(&summary, "end_to_end").unwrap_err().contains("there are ring, tree"));
    // Unfinished iterations have no values.
    let mut open = summary.clone();
    open.jobs.0[0].1.training = Some(Training {
        critical: crate::Ordered(vec![("compute".into(), 0.0), ("pipeline".into(), 0.0)]),
        ..Training::default()
    });
    for text in ["gpt.critical.pipeline", "gpt.inter_share", "p99(gpt.iteration)", "gpt.exposed"] {
        assert!(of(&open, text).unwrap_err().contains("ended"), "{text}");
    }
    // Of two jobs neither is meant by none.
    summary.jobs.0.push(("llama".into(), job));
    assert!(of(&summary, "iteration.mean").unwrap_err().contains("there are gpt, llama"));
}

#[test]
fn check_expressions() {
    for text in [
        "a.all.fct.p99 <= 0.5 * b[load=0.4].all.fct.p99",
        "2 * a.all.fct.p99 == 'b,load=0.4'.all.fct.p99",
        "a.all.fct.p99 < b[ load = 0.4 ].all.fct.p99 and a.all.count == 5",
        "a.small.fct.max < 20us and a.small.fct.max > 18000 ns",
        "b[load=0.4].fairness.jain_final >= 97%",
        "a.credits.used + a.credits.wasted <= a.credits.received",
        "b[load=0.4].fairness.converged_at <= 20ms",
        "a.network.drops == 0 and a.network.drops_by_tier.inter + a.network.drops_by_tier.\"random\" == 0",
        "a.queue(\"receiver\").max >= 300KB and a.queue(\"receiver\").mean < a.queue(\"receiver\").p99",
        "a.phantom(\"class:inter\").max > 0B",
        "a.queue(\"receiver\").min <= a.queue(\"receiver\").p5 and a.queue(\"receiver\").p10 <= a.queue(\"receiver\").p50",
        "a.queue(\"receiver\", 0ns, 1s).max == a.queue(\"receiver\").max",
        "a.queue(\"left>right\").max < 100KiB",
        "abs(1 - 3) == 2 and min(3, 1, 2) == 1 and max(1ms, 2ms) == 2ms",
        "1 - 2 - 3 == -4 and 8 / 4 / 2 == 1 and 1 + 2 * 3 == 7 and (1 + 2) * 3 == 9 and --1 == 1",
        "a.requests.completed == 1 and a.law.cuts > 0",
        "a.inter.goodput > 1Gbps and a.inter.goodput < 10 Gbps",
        "a.inter.goodput * a.inter.fct.max > 1MB",
        "4MB / a.inter.fct.max > 1Gbps",
        "a.network.max_queue <= 1MiB",
        "a.network.pfc_pause == 0s and a.network.pfc_pause_by_tier.inter == 0s and a.network.pfc_pauses_by_tier.host == 0",
        "a.network.host_pause == 0s and a.network.nacks + a.network.cnps + a.network.messages == 0",
        "a.network.held == 0s and a.network.max_buffer == 0B and a.network.headroom_drops == 0",
    ] {
        assert!(holds_for(text), "{text}");
    }
    for text in ["a.all.count != 5", "a.all.count == 5 and a.all.count < 5", "1 > 1", "1 >= 2", "2 <= 1"] {
        assert!(!holds_for(text), "{text}");
    }
}

/// Samples of two flows each ms: one of 8 Mb/s, the other twice that from 3 ms on; and of a port, 1, 2, 3... bytes.
#[test]
fn samples_are_filtered_by_time() {
    let mut results = runs();
    let run = &mut results[0];
    let rate = |time_ns, flow, delivered_bytes| crate::tables::RateRow {
        time_ns,
        flow,
        sent_bytes: 0,
        delivered_bytes,
        cwnd_bytes: None,
        srtt_ns: 0,
    };
    let rows = (0..6).flat_map(|ms| {
        [rate(ms * 1_000_000, 0, ms * 1_000), rate(ms * 1_000_000, 3, ms * 1_000 + ms.saturating_sub(3) * 1_000)]
    });
    run.rates = crate::tables::RateTable { rows: rows.collect(), traces: Vec::new() };
    let first = run.ports.rows[0];
    run.ports.rows =
        (0..10u64).map(|ms| crate::tables::PortRow { time_ns: ms * 1_000_000, queue_bytes: ms + 1, ..first }).collect();
    let name = run.ports.ports[first.port as usize].name.clone();
    let runs = Runs::of_results(&results);
    for text in [
        "a.rate('all').min == 8Mbps and a.rate('all').max == 16Mbps and a.rate('0').max == 8Mbps",
        "a.rate('3', 0s, 3ms).max == 8Mbps and a.rate('3', 3ms, 5ms).min == 16Mbps and a.rate('3', 0s, 5ms).mean < 12Mbps",
        "a.rate('0..3').max == 8Mbps and a.rate('1..4').max == 16Mbps",
        "a.queue('PORT', 2ms, 4ms).min == 3B and a.queue('PORT', 2ms, 4ms).max == 5B and a.queue('PORT', 2ms, 2ms).mean == 3B",
        "a.queue('PORT').p10 == 1B and a.queue('PORT').p90 == 9B and a.queue('PORT', 2500us, 1s).min == 4B",
    ] {
        let text = text.replace("PORT", &name);
        assert!(holds(&check(&text).unwrap(), &runs).unwrap(), "{text}");
    }
    for (text, message) in [
        ("a.rate('x').max > 1bps", "`x` is no choice of flows"),
        ("a.rate('7').max > 1bps", "no samples of the flows `7`"),
        ("a.rate('0', 10ms, 20ms).max > 1bps", "no samples of the flows `0`"),
        ("a.buffer('all', 0s, 1s).max > 1B", "no samples of the switches `all`"),
    ] {
        let report = holds(&check(text).unwrap(), &runs).unwrap_err().to_string();
        assert!(report.contains(message), "{text}: {report}");
    }
    for (text, message) in [
        ("a.rate('0', 5, 7ms).max > 1bps", "expected a time such as 20ms"),
        ("a.rate('0', 5ms).max > 1bps", "expected `,`"),
        ("a.rate('0', 7ms, 5ms).max > 1bps", "this ends before it begins"),
        ("a.rate('0', x, 5ms).max > 1bps", "expected a time such as 20ms"),
    ] {
        let report = check(text).unwrap_err().to_string();
        assert!(report.contains(message), "{text}: {report}");
    }
}

#[test]
fn windows_cut_samples() {
    let results = runs();
    let (rates, end) = (&results[0].rates.rows, results[0].rates.rows.last().unwrap().time_ns);
    // A flow that was sampled at 0 only is not in the window.
    let later = rates.iter().filter(|row| row.time_ns > 0);
    let flows: std::collections::BTreeSet<u32> = later.map(|row| row.flow).collect();
    let last = |flow| rates.iter().rev().find(|row| row.flow == flow).unwrap().delivered_bytes as f64;
    let delivered: Vec<f64> = flows.into_iter().map(last).collect();
    let sum: f64 = delivered.iter().sum();
    let jain = sum * sum / (delivered.len() as f64 * delivered.iter().map(|bytes| bytes * bytes).sum::<f64>());
    let of = |text: &str| value(&expression(text).unwrap(), &Runs::of_results(&results)).unwrap().amount;
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
    near(of(&format!("a.flows(0ns, {end}ns).rate * {end}ns")), sum * 8.0);
    near(of(&format!("a.flows(0ns, {end}ns).jain")), jain);
    let half = end / 100_000 * 50_000;
    let parts = format!("a.flows(0ns, {half}ns).rate * {half}ns + a.flows({half}ns, {end}ns).rate * {}ns", end - half);
    assert!(of(&parts) <= sum * 8.0 * (1.0 + 1e-9));
    let largest = format!("max(a.queue(receiver, 0ns, {half}ns).max, a.queue(receiver, {half}ns, {end}ns).max)");
    near(of(&largest), of(&format!("a.queue(receiver, 0ns, {end}ns).max")));
    assert!(refused("a.queue(receiver, 1000s, 1001s).max < 1B").contains("no samples of the ports"));
    assert!(refused("a.flows(1000s, 1001s).rate < 1bps").contains("no flow was sampled then"));
}

#[test]
fn never_is_later_than_any_time() {
    let mut results = runs();
    results[1].summary.fairness.converged_at_ns = None;
    let runs = Runs::of_results(&results);
    let claim = Claim::from_json(&json!({
        "id": "x", "text": "t", "paper": "20 ms", "check": "b[load=0.4].fairness.converged_at <= 20ms",
    }));
    let judged = claim.unwrap().judge(std::slice::from_ref(&runs));
    assert_eq!((judged.verdict, judged.measured.as_str()), (Verdict::NotReproduced, "never"));
    let endless = check("b[load=0.4].fairness.converged_at - b[load=0.4].fairness.converged_at == 0ns").unwrap();
    assert!(holds(&endless, &runs).unwrap_err().to_string().ends_with("is not a number"));
}

#[test]
fn missing_values_have_reasons() {
    let cases = [
        ("c.all.fct.p99 < 1ms", "there is no run `c`; there are: a; b,load=0.4"),
        ("a.medium.fct.p99 < 1ms", "no class of flows `medium`; it has: all, intra, inter, small, large"),
        ("a.collectives.fct.p99 < 1ms", "none of its 0 flows of class collectives ended"),
        ("a.collectives.goodput < 1Gbps", "it has no flows of class collectives"),
        ("a.fairness.converged_at < 1ms", "no interval of `fairness_window` in which all"),
        ("a.all.fct.p99 < 1", "`a.all.fct.p99` is a time and `1` is a number: they cannot be compared"),
        ("1ms + 1KB < 1ms", "`1ms` is a time and `1KB` is an amount of data: they cannot be added"),
        ("min(1ms, 1Gbps) < 1ms", "`1Gbps` is a rate: they cannot be compared"),
        ("1 / (1 - 1) < 1", "`1 / (1 - 1)` divides by zero"),
        ("a.queue(\"nowhere\").max < 1B", "no samples of the ports `nowhere`"),
        ("a.ingress(\"receiver\").max < 1B", "no samples of the ports `receiver`"),
        ("a.pseudo(\"receiver\").max < 1B", "no samples of the ports `receiver`"),
        ("a.feedback(\"receiver\").mean < 1Gbps", "no samples of the ports `receiver`"),
        ("a.buffer(\"all\").p95 < 10MB", "no samples of the switches `all`"),
        ("1 > 2 and c.all.count == 1", "there is no run `c`"),
    ];
    for (text, message) in cases {
        let report = refused(text);
        assert!(report.contains(message), "{text}: {report}");
    }
    let results = runs();
    let summaries = Runs::of_summaries(results.iter().map(|run| &run.summary));
    let report = holds(&check("a.queue(\"receiver\").max < 1B").unwrap(), &summaries).unwrap_err().to_string();
    assert!(report.contains("samples of ports are not loaded"), "{report}");
}

#[test]
fn errors_point_at_the_column() {
    let cases = [
        ("", 1, "expected a number, a run's name, a function or `(`, but it ends here"),
        ("a.all.fct.p99", 14, "expected a comparison: <, <=, >, >=, == or !=, but it ends here"),
        ("a.all.fct.p42 < 1ms", 11, "expected a statistic: mean, p50, p90, p95, p99, max"),
        (
            "a.all.rct.p99 < 1ms",
            7,
            "expected a metric of flows: fct, slowdown, iteration, goodput, count, completed, end_to_end",
        ),
        ("a.all.fct.p99 < 1parsec", 18, "no such unit; known are %, ps, ns"),
        ("a.all.fct.p99 < 1 parsec", 19, "expected `and`, an operator or the end"),
        ("a.credits.lost < 1", 11, "expected a count of credits: sent, used, dropped, wasted"),
        (
            "a.fairness.jain < 1",
            12,
            "expected a measure of fairness: jain_mean, jain_final, converged_at, reached_at, jain_since",
        ),
        ("é.all.fct.p99 < 1", 1, "expected a number"),
        ("'é'.all.fct.p99 < $", 19, "expected a number"),
        ("median(1) < 2", 1, "no such function; known are min, max and abs"),
        ("abs(1, 2) < 2", 1, "abs takes one value, not 2"),
        ("\"a.all < 1", 1, "this has no closing \""),
        ("''.all.count < 1", 1, "expected a run's name, but this is empty"),
        ("a[load=0.4.all.count < 1", 2, "this has no closing ]"),
        ("a[ ].all.count < 1", 2, "expected the point of a grid"),
        ("(1 < 2", 4, "expected `)`"),
        ("1e999 < 2", 1, "this number is too large"),
        ("a.queue(receiver.max < 1", 17, "expected `)`"),
        ("a.queue(receiver, 3).max < 1", 19, "expected a time such as 20ms"),
        ("a.queue(receiver, 3ms).max < 1", 22, "expected `,`"),
        ("a.flows(3ms, 2ms).rate < 1", 9, "this ends before it begins"),
        ("a.flows(0ms, 2ms).rte < 1", 19, "expected a measure of sampled flows: rate, jain"),
        ("1 < 2 < 3", 7, "expected `and`, an operator or the end"),
        (
            "a.network.pfc_pause_by_tier.sky < 1s",
            29,
            "`pfc_pause_by_tier` counts: nic, host, edge, core, border, inter, other",
        ),
        (
            "a.network.drops_by_tier.'spine' < 1",
            25,
            "`drops_by_tier` counts: nic, host, edge, core, border, inter, other, random",
        ),
        (
            "a.network.data_drops_by_tier.random < 1",
            30,
            "`data_drops_by_tier` counts: nic, host, edge, core, border, inter, other",
        ),
    ];
    for (text, column, message) in cases {
        let error = check(text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {}", error.message);
        assert_eq!(error.column(), column, "{text}: {}", error.message);
    }
    let shown = check("a.all.fct.p42 < 1ms").unwrap_err().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[1..], ["  a.all.fct.p42 < 1ms", "            ^^^"]);
    assert!(lines[0].starts_with("column 11: expected a statistic"), "{shown}");
    assert!(check(&"(".repeat(MAX)).unwrap_err().message.contains("levels"));
    assert!(check(&"1+".repeat(MAX)).unwrap_err().message.contains("characters"));
    assert!(check(&format!("{}1 < 2", "1+".repeat(490))).is_ok());
}

fn claim(more: &Json) -> Json {
    let mut claim = json!({ "id": "a-faster", "text": "A is faster", "paper": 0.4 });
    for (key, value) in more.as_object().unwrap() {
        claim[key] = value.clone();
    }
    claim
}

fn judged(more: &Json) -> Judgement {
    let results = runs();
    Claim::from_json(&claim(more)).unwrap().judge(&[Runs::of_results(&results)])
}

#[test]
fn verdicts() {
    let better = "a.all.fct.p99 < b[load=0.4].all.fct.p99";
    let strict = "a.all.fct.p99 < 0.1 * b[load=0.4].all.fct.p99";
    let judgement = judged(&json!({ "check": better }));
    assert_eq!(
        (judgement.verdict, judgement.paper.as_str(), judgement.note.as_str()),
        (Verdict::Reproduced, "0.4", "")
    );
    assert_eq!(judgement.measured, "20.28 ms against 40.56 ms");
    let judgement =
        judged(&json!({ "check": strict, "direction": better, "measure": "a.all.fct.p99 / b[load=0.4].all.fct.p99" }));
    assert_eq!((judgement.verdict, judgement.measured.as_str()), (Verdict::DirectionOnly, "0.5"));
    assert_eq!(judged(&json!({ "check": strict, "direction": strict })).verdict, Verdict::NotReproduced);
    assert_eq!(judged(&json!({ "check": strict })).verdict, Verdict::NotReproduced);
    let judgement = judged(&json!({ "pending": "needs erasure codes", "check": better }));
    assert_eq!(
        (judgement.verdict, judgement.note.as_str(), judgement.measured.as_str()),
        (Verdict::Pending, "needs erasure codes", "")
    );
    let judgement = judged(&json!({ "check": "c.all.count > 1" }));
    assert_eq!((judgement.verdict, judgement.note.contains("no run `c`")), (Verdict::CannotJudge, true));
    let judgement = judged(&json!({ "check": strict, "direction": "c.all.count > 1" }));
    assert_eq!(judgement.verdict, Verdict::CannotJudge);
    let judgement = judged(&json!({ "check": better, "measure": "c.all.count" }));
    assert_eq!((judgement.verdict, judgement.measured.as_str()), (Verdict::Reproduced, ""));
    assert!(judgement.note.contains("no run `c`"), "{}", judgement.note);
    let share = |paper| {
        judged(
            &json!({ "paper": paper, "check": "b[load=0.4].fairness.jain_final > 1", "measure": "b[load=0.4].fairness.jain_final" }),
        )
    };
    assert_eq!((share("99 %").measured.as_str(), share("all").measured.as_str()), ("97 %", "0.97"));
    assert_eq!(judged(&json!({ "check": "0.95 <= b[load=0.4].fairness.jain_final" })).measured, "0.97");
}

/// The runs of each seed. `a` takes this long in each, `b` always 10 ms.
fn of_seeds(a_ms: &[f64]) -> Vec<Vec<RunResults>> {
    let seed = |a_ms: &f64| {
        let mut results = runs();
        for (run, ms) in results.iter_mut().zip([*a_ms, 10.0]) {
            run.summary.flows.all.fct_ns.mean = Some(ms * 1e6);
        }
        results
    };
    a_ms.iter().map(seed).collect()
}

/// A claim that `a` is faster than `b`, or at least less than twice as slow.
fn faster() -> Claim {
    let claim = json!({
        "check": "a.all.fct.mean < b[load=0.4].all.fct.mean",
        "direction": "a.all.fct.mean < 2 * b[load=0.4].all.fct.mean",
        "measure": "a.all.fct.mean",
    });
    Claim::from_json(&self::claim(&claim)).unwrap()
}

/// The verdict on [`faster`], where `a` takes this long in each seed.
fn over_seeds(a_ms: &[f64]) -> Judgement {
    let seeds = of_seeds(a_ms);
    let runs: Vec<Runs<'_>> = seeds.iter().map(Runs::of_results).collect();
    faster().judge(&runs)
}

/// A cause is shown if the claim holds without it, and shown in part if a fifth of the shortfall is gone for all seeds.
#[test]
fn cause_is_shown_if_the_change_removes_the_shortfall() {
    let outcome_of = |before: &[f64], after: &[f64]| {
        let (before, after) = (of_seeds(before), of_seeds(after));
        let before: Vec<Runs<'_>> = before.iter().map(Runs::of_results).collect();
        let after: Vec<Runs<'_>> = after.iter().map(Runs::of_results).collect();
        let trial = suspects::tried("it", &faster(), &before, &after);
        (trial.outcome, trial.removed.map(|share| (share * 1e3).round() / 1e3))
    };
    let slow = [30.0, 31.0, 32.0];
    assert_eq!(outcome_of(&slow, &[6.0, 7.0, 8.0]), (TrialOutcome::Shown, Some(1.0)));
    assert_eq!(outcome_of(&slow, &[7.0, 8.0, 9.0]).0, TrialOutcome::Undecided);
    // The direction is right with the change.
    assert_eq!(outcome_of(&slow, &[14.0, 15.0, 16.0]), (TrialOutcome::InPart, Some(0.762)));
    // 21 ms too slow before: five less is a fifth and more, four is not.
    assert_eq!(outcome_of(&slow, &[25.0, 26.0, 27.0]), (TrialOutcome::InPart, Some(0.238)));
    assert_eq!(outcome_of(&slow, &[26.0, 27.0, 28.0]), (TrialOutcome::Refuted, Some(0.19)));
    // A change in one seed alone may be chance. A change for the worse is none of the cause.
    assert_eq!(outcome_of(&slow, &[30.0, 31.0, 12.0]).0, TrialOutcome::Undecided);
    let (five, one_outlier) = ([200.0, 201.0, 202.0, 203.0, 204.0], [200.0, 201.0, 202.0, 203.0, 10.0]);
    assert_eq!(outcome_of(&five, &one_outlier), (TrialOutcome::Refuted, Some(0.202)));
    assert_eq!(outcome_of(&slow, &[40.0, 41.0, 42.0]), (TrialOutcome::Refuted, Some(0.0)));
    // Nothing is to explain where the claim holds, and an undecided claim lacks nothing certain.
    assert_eq!(outcome_of(&[6.0, 7.0, 8.0], &[30.0, 31.0, 32.0]), (TrialOutcome::Needless, None));
    assert_eq!(outcome_of(&[7.0, 8.0, 9.0], &[6.0, 7.0, 8.0]), (TrialOutcome::Shown, None));
    assert_eq!(outcome_of(&[7.0, 8.0, 9.0], &[30.0, 31.0, 32.0]), (TrialOutcome::Refuted, None));
    for outcome in TrialOutcome::ALL {
        assert_eq!(TrialOutcome::from_name(outcome.name()), Some(outcome));
    }
}

/// The removed effect is a share of the values that the claim compares: where both sides shrink alike, none is removed.
#[test]
fn reduced_scale_is_not_a_suspected_cause() {
    let (before, mut after) = (of_seeds(&[30.0, 31.0, 32.0]), of_seeds(&[15.0, 15.5, 16.0]));
    for run in after.iter_mut().flatten() {
        let mean = &mut run.summary.flows.all.fct_ns.mean;
        // `b`, 10 ms, becomes 5 ms, as `a` has halved.
        *mean = mean.map(|ns| if (ns - 10e6).abs() < 1.0 { 5e6 } else { ns });
    }
    let before: Vec<Runs<'_>> = before.iter().map(Runs::of_results).collect();
    let after: Vec<Runs<'_>> = after.iter().map(Runs::of_results).collect();
    let trial = suspects::tried("it", &faster(), &before, &after);
    assert_eq!((trial.outcome, trial.removed), (TrialOutcome::Refuted, Some(0.0)));
}

#[test]
fn verdict_needs_the_complete_interval() {
    // By hand: the mean of 7, 8, 9 is 8, its margin 4.303 * 1 / sqrt(3) = 2.48, so 5.52 to 10.48 reaches over 10.
    let judgement = over_seeds(&[7.0, 8.0, 9.0]);
    assert_eq!(
        (judgement.verdict, judgement.measured.as_str(), judgement.seeds),
        (Verdict::Undecided, "8.0 ± 2.5 ms", 3)
    );
    // 6, 7, 8: 4.52 to 9.48.
    assert_eq!(over_seeds(&[6.0, 7.0, 8.0]).verdict, Verdict::Reproduced);
    // 14, 15, 16: 12.52 to 17.48 is above 10 and below 20. 17, 18, 19 reaches over 20; 25, 26, 27 is above it.
    assert_eq!(over_seeds(&[14.0, 15.0, 16.0]).verdict, Verdict::DirectionOnly);
    assert_eq!(over_seeds(&[17.0, 18.0, 19.0]).verdict, Verdict::Undecided);
    assert_eq!(over_seeds(&[25.0, 26.0, 27.0]).verdict, Verdict::NotReproduced);
    // Seeds with equal values decide, and so does one seed.
    assert_eq!(over_seeds(&[9.9; 3]).verdict, Verdict::Reproduced);
    assert_eq!(over_seeds(&[9.9]).verdict, Verdict::Reproduced);
    assert_eq!(over_seeds(&[10.0; 5]).verdict, Verdict::DirectionOnly);
}

/// A range states a magnitude: the direction alone is not right where the value is of another one.
#[test]
fn wide_ranges_need_a_log_scale() {
    let judged = |check: &str, loss: f64| {
        let mut results = runs();
        for (run, ms) in results.iter_mut().zip([1.0 - loss, 1.0]) {
            run.summary.flows.all.fct_ns.mean = Some(ms * 1e9);
        }
        let ratio = "1 - a.all.fct.mean / b[load=0.4].all.fct.mean";
        let (less, more) = ("a.all.fct.mean < b[load=0.4].all.fct.mean", "a.all.fct.mean > b[load=0.4].all.fct.mean");
        let direction = if check.starts_with('-') { more } else { less };
        let claim = json!({ "check": check.replace('X', &format!("({ratio})")), "direction": direction });
        Claim::from_json(&self::claim(&claim)).unwrap().judge(&[Runs::of_results(&results)]).verdict
    };
    for check in ["X >= 18% and X <= 37%", "18% <= X and X < 37%", "X <= 37% and X >= 18% and 1 < 2"] {
        for (loss, verdict) in [
            (0.2, Verdict::Reproduced),
            (0.02, Verdict::DirectionOnly),
            (0.5, Verdict::DirectionOnly),
            (0.000_37, Verdict::NotReproduced),
            (-0.2, Verdict::NotReproduced),
        ] {
            assert_eq!(judged(check, loss), verdict, "{check}: {loss}");
        }
    }
    // Below zero, and far above the range.
    assert_eq!(judged("-37% <= X and X <= -18%", -0.02), Verdict::DirectionOnly);
    assert_eq!(judged("-37% <= X and X <= -18%", -0.000_37), Verdict::NotReproduced);
    assert_eq!(judged("X >= 1% and X <= 2%", 0.19), Verdict::DirectionOnly);
    assert_eq!(judged("X >= 1% and X <= 2%", 0.21), Verdict::NotReproduced);
    // A bound on one side states none, and neither do two on different values.
    assert_eq!(judged("X >= 18%", 0.000_37), Verdict::DirectionOnly);
    assert_eq!(judged("X >= 18% and a.all.count <= 1000", 0.000_37), Verdict::DirectionOnly);
}

#[test]
fn runs_that_no_seed_changes_are_deterministic() {
    let judged = |cuts: [u64; 3]| {
        let seeds: Vec<_> = (0..3)
            .map(|seed: usize| {
                let mut results = runs();
                for run in &mut results {
                    (run.summary.seed, run.summary.law.actions.cuts) = (seed as u64, cuts[seed]);
                    run.summary.engine.wall_s = seed as f64;
                }
                results
            })
            .collect();
        let claim = json!({ "check": "a.all.fct.mean < 1s" });
        let runs: Vec<Runs<'_>> = seeds.iter().map(Runs::of_results).collect();
        Claim::from_json(&self::claim(&claim)).unwrap().judge(&runs).note
    };
    assert_eq!(judged([5; 3]), "deterministic: no seed changes these runs");
    // The value is the same, and the runs are not.
    assert_eq!(judged([5, 5, 6]), "");
}

#[test]
fn claims_without_difference_need_agreeing_seeds() {
    let judged = |converged: [Option<u64>; 3]| {
        let seeds: Vec<_> = converged
            .map(|at| {
                let mut results = runs();
                results[1].summary.fairness.converged_at_ns = at;
                results
            })
            .into();
        let claim = json!({ "check": "b[load=0.4].fairness.converged_at <= 20ms" });
        let runs: Vec<Runs<'_>> = seeds.iter().map(Runs::of_results).collect();
        Claim::from_json(&self::claim(&claim)).unwrap().judge(&runs).verdict
    };
    assert_eq!(judged([None; 3]), Verdict::NotReproduced);
    assert_eq!(judged([None, Some(1_000_000), Some(1_000_000)]), Verdict::Undecided);
}

#[test]
fn runs_of_one_seed_are_judged_together() {
    assert_eq!(name_in_claims("uno,load=0.4,seed=12", 12), "uno,load=0.4");
    assert_eq!(name_in_claims("uno,seed=12", 1), "uno,seed=12");
    let mut results = runs();
    results.extend(runs());
    for (seed, run) in [1, 1, 2, 2].into_iter().zip(&mut results) {
        run.summary.seed = seed;
    }
    let names: Vec<String> = ["a", "b", "a", "b"].map(str::to_owned).into();
    let seeds = Runs::by_seed(&results, &names);
    assert_eq!(seeds.iter().map(|runs| runs.ids().collect::<Vec<_>>()).collect::<Vec<_>>(), [["a", "b"]; 2]);
}

#[test]
fn flows_that_did_not_end_are_noted() {
    let mut results = runs();
    results[0].summary.flows.all.completed = 3;
    let claim = Claim::from_json(&claim(&json!({ "check": "a.all.fct.p99 < 1s and a.all.fct.p50 < 1s" }))).unwrap();
    let judgement = claim.judge(&[Runs::of_results(&results)]);
    assert_eq!(judgement.note, "a: 2 of 5 all flows did not end and are left out");
    assert_eq!(claim.runs().into_iter().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_regression_is_a_worse_verdict() {
    use Verdict::{CannotJudge, DirectionOnly, NotReproduced, Pending, Reproduced};
    let worse = [
        (Reproduced, DirectionOnly),
        (Reproduced, CannotJudge),
        (DirectionOnly, NotReproduced),
        (NotReproduced, CannotJudge),
        (NotReproduced, Pending),
    ];
    for recorded in Verdict::ALL {
        assert!(!regressed(recorded, recorded) && !regressed(Pending, recorded));
        assert!(!regressed(recorded, Reproduced));
        assert_eq!(Verdict::from_name(recorded.name()), Some(recorded));
        assert_eq!(serde_json::to_value(recorded).unwrap(), recorded.name());
    }
    for (recorded, now) in worse {
        assert!(regressed(recorded, now) && !regressed(now, recorded), "{recorded} {now}");
    }
}

#[test]
fn claims_come_from_files() {
    let recorded = json!({ "check": "1 < 2", "recorded": { "paper": "direction only", "quick": "reproduced" } });
    let read = Claim::from_json(&claim(&recorded)).unwrap();
    assert_eq!(read.recorded.get("paper"), Some(&Verdict::DirectionOnly));
    assert_eq!(read.recorded.get("quick"), Some(&Verdict::Reproduced));
    let cases = [
        (json!({}), "claim `a-faster`: needs a `check`, or the reason why it is `pending`"),
        (json!({ "check": "1 <" }), "claim `a-faster`, `check`: column 4: expected a number"),
        (json!({ "check": "1 < 2", "direction": "<" }), "`direction`: column 1"),
        (json!({ "check": "1 < 2", "measure": "1 < 2" }), "`measure`: column 3"),
        (json!({ "check": "1 < 2", "chek": "1 < 2" }), "unknown field `chek`"),
        (json!({ "check": 3 }), "check: invalid type: integer `3`, expected a string"),
        (json!({ "check": "1 < 2", "paper": true }), "`paper` is what the paper states"),
        (json!({ "check": "1 < 2", "recorded": { "quick": "fine" } }), "`recorded.quick`: no verdict `fine`"),
    ];
    for (more, message) in cases {
        let report = Claim::from_json(&claim(&more)).unwrap_err().to_string();
        assert!(report.contains(message), "{report}");
    }
    let report = Claim::from_json(&json!(3)).unwrap_err().to_string();
    assert!(report.starts_with("claim `?`"), "{report}");
}

fn any_keyword<W: ClosedSet + std::fmt::Debug>() -> impl Strategy<Value = W> {
    prop::sample::select(W::ALL)
}

fn by_tier() -> impl Strategy<Value = (TierKey, &'static str)> {
    any_keyword::<TierKey>().prop_flat_map(|key| (Just(key), prop::sample::select(key.tiers().collect::<Vec<_>>())))
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zA-Z_][a-zA-Z0-9_]{0,6}", 1 => "[ -~é]{1,8}", 1 => prop::sample::select(keywords::parts().collect::<Vec<_>>()).prop_map(String::from)]
}

fn window() -> impl Strategy<Value = ClaimWindow> {
    let time = || prop_oneof![0..1u64 << 50, (0..1_000u64).prop_map(|ms| ms * 1_000_000)];
    (time(), time()).prop_map(|(a, b)| ClaimWindow { from_ns: a.min(b), to_ns: a.max(b) })
}

fn metric() -> impl Strategy<Value = Expr> {
    let run = prop_oneof![3 => any_name(), 1 => "[a-z+]{1,4},[a-z]{1,3}=[0-9]\\.[0-9](,x=[a-z ]{1,3})?"];
    let class = any_name;
    let subject = prop_oneof![
        4 => (class(), any_keyword(), any_keyword()).prop_map(|(class, key, stat)| Subject::Spread { class, key, stat }),
        1 => (class(), any_keyword()).prop_map(|(class, key)| Subject::Class { class, key }),
        1 => (class(), any_name()).prop_map(|(job, step)| Subject::Critical { job, step }),
        1 => any_keyword().prop_map(Subject::Fairness),
        1 => any_keyword().prop_map(Subject::Predicts),
        1 => any_keyword().prop_map(Subject::Credits),
        1 => any_keyword().prop_map(Subject::Network),
        2 => by_tier().prop_map(|(key, tier)| Subject::Tier { key, tier }),
        1 => any_keyword().prop_map(Subject::Law),
        1 => (window(), any_keyword()).prop_map(|(window, key)| Subject::Flows { window, key }),
        1 => (any_keyword(), any_name(), prop::option::of(window()), any_keyword())
            .prop_map(|(of, chosen, window, stat)| Subject::Samples { of, chosen, window, stat }),
    ];
    (run, subject).prop_map(|(run, subject)| Expr::Metric(Metric { run, subject }))
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let unit = prop::option::of(prop::sample::select(&Unit::ALL[..]));
    let amount = prop_oneof![0.0..1e9f64, (0u32..100).prop_map(f64::from)];
    let leaf = prop_oneof![(amount, unit).prop_map(|(amount, unit)| Expr::Literal(amount, unit)), metric()];
    let operator = prop::sample::select(&[Operator::Plus, Operator::Minus, Operator::Times, Operator::Over][..]);
    leaf.prop_recursive(4, 12, 3, move |inner| {
        let pair = (inner.clone(), operator.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|inner| Expr::Negative(Box::new(inner))),
            pair.prop_map(|(left, operator, right)| Expr::Binary(Box::new(left), operator, Box::new(right))),
            inner.clone().prop_map(|inner| Expr::Call(Function::Abs, vec![inner])),
            prop::collection::vec(inner, 1..3).prop_map(|args| Expr::Call(Function::Max, args)),
        ]
    })
}

fn any_check() -> impl Strategy<Value = Check> {
    let comparison = (any_expr(), prop::sample::select(&Order::ALL[..]), any_expr())
        .prop_map(|(left, order, right)| Comparison { left, order, right });
    prop::collection::vec(comparison, 1..3).prop_map(|all| Check { all })
}

proptest! {
    #[test]
    fn printed_expressions_parse_back(made in any_check()) {
        let text = made.to_string();
        if text.chars().count() <= MAX {
            let read = check(&text);
            prop_assert_eq!(read.as_ref(), Ok(&made), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_column_of_it(text in "\\PC{0,60}") {
        if let Err(error) = check(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column()));
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// Texts near the language, cut and with a character changed.
    #[test]
    fn broken_checks_do_not_panic(made in any_check(), cut in 0usize..200, other in any::<char>()) {
        let mut text: String = made.to_string();
        if let Some((at, _)) = text.char_indices().nth(cut) {
            let rest = text.split_off(at);
            text.push(other);
            text.extend(rest.chars().skip(1));
        }
        if let Ok(read) = check(&text) {
            let results = Runs::default();
            let _ = holds(&read, &results);
        }
        let cut: String = text.chars().take(cut).collect();
        let _ = check(&cut);
    }
}
