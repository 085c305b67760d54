//! Evaluates the expressions of claims in the given runs.

use std::collections::BTreeMap;

use thiserror::Error;

use super::ast::{Check, ClaimWindow, Comparison, Expr, Function, Metric, Operator, Order, Subject};
use super::keywords::{
    CreditsKey, FairnessKey, FlowsKey, LawKey, NetworkKey, Predictor, SampleStat, Sampled, SpreadKey, Stat, TierKey,
    TotalKey,
};
use crate::point_keys::{Lookup, find_run};
use crate::quantity::{Dimension, DimensionedValue};
use crate::stats::{self, Jain};
use crate::store::RunResults;
use crate::summary::{Actions, Credits, DistributionStats, Fairness, FlowGroupStats, NetworkTotals, Summary, Training};
use crate::tables::{PortRow, PortTable, RateTable, SwitchTable};

/// Runs by id, with their summaries and, if loaded, their samples of ports, switches and flows.
#[derive(Clone, Default, Debug)]
pub struct Runs<'a>(BTreeMap<&'a str, EvaluatedRun<'a>>);

/// A loaded run.
#[derive(Clone, Copy, Debug)]
struct EvaluatedRun<'a> {
    summary: &'a Summary,
    samples: Option<SampleTables<'a>>,
}

impl<'a> EvaluatedRun<'a> {
    const fn of_summary(summary: &'a Summary) -> Self {
        Self { summary, samples: None }
    }

    const fn of_run(run: &'a RunResults) -> Self {
        Self { summary: &run.summary, samples: Some((&run.ports, &run.switches, &run.rates)) }
    }
}

type SampleTables<'a> = (&'a PortTable, &'a SwitchTable, &'a RateTable);

impl<'a> Runs<'a> {
    /// Runs with summaries alone.
    pub fn of_summaries(summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        Self(summaries.into_iter().map(|summary| (summary.run.as_str(), EvaluatedRun::of_summary(summary))).collect())
    }

    /// Whole runs.
    pub fn of_results(runs: impl IntoIterator<Item = &'a RunResults>) -> Self {
        Self(runs.into_iter().map(|run| (run.summary.run.as_str(), EvaluatedRun::of_run(run))).collect())
    }

    /// Whole runs, grouped by seed. A grid's runs that differ in nothing but `seed` have one name in claims, so `names`
    /// has the name of each of `runs`.
    pub fn by_seed(runs: &'a [RunResults], names: &'a [String]) -> Vec<Self> {
        let mut seeds: BTreeMap<u64, Self> = BTreeMap::new();
        for (run, name) in runs.iter().zip(names) {
            seeds.entry(run.summary.seed).or_default().0.insert(name, EvaluatedRun::of_run(run));
        }
        seeds.into_values().collect()
    }

    /// One whole run, under another name.
    pub fn named(name: &'a str, run: &'a RunResults) -> Self {
        Self([(name, EvaluatedRun::of_run(run))].into())
    }

    /// One run's summary, for expressions that name no run.
    pub fn of_summary(summary: &'a Summary) -> Self {
        Self([("", EvaluatedRun::of_summary(summary))].into())
    }

    /// The summary of a run; none if it is not there.
    pub(super) fn summary(&self, run: &str) -> Option<&'a Summary> {
        self.find(run).ok().map(|entry| entry.summary)
    }

    /// Returns the run with the id `name`, else the only run with `name` as an abbreviation of its id.
    ///
    /// # Errors
    /// No run matches, or several do.
    fn find(&self, name: &str) -> Result<EvaluatedRun<'a>, EvalError> {
        if let Some(entry) = self.0.get(name) {
            return Ok(*entry);
        }
        let run = name.to_owned();
        match find_run(self.ids(), name) {
            Lookup::One(id) => Ok(self.0[id]),
            Lookup::None => Err(EvalError::NoRun { run, known: self.ids().collect::<Vec<_>>().join("; ") }),
            Lookup::Several(ids) => Err(EvalError::SeveralRuns { run, known: ids.join("; ") }),
        }
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().copied()
    }
}

/// Reason why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum EvalError {
    #[error("there is no run `{run}`; there are: {known}")]
    NoRun { run: String, known: String },
    #[error("`{run}` is the name of several runs: {known}; write the keys in full")]
    SeveralRuns { run: String, known: String },
    #[error("`{metric}`: the run has no class of flows `{class}`; it has: {known}")]
    NoClass { metric: String, class: String, known: String },
    #[error("`{metric}`: {reason}")]
    NotMeasured { metric: String, reason: String },
    #[error("`{left}` is {is} and `{right}` is {other}: they cannot be {done}")]
    Units { left: String, is: Dimension, done: &'static str, right: String, other: Dimension },
    #[error("`{expr}` divides by zero")]
    DivisionByZero { expr: String },
    #[error("`{expr}` is not a number")]
    NotANumber { expr: String },
}

/// The value of an expression.
///
/// # Errors
/// When a run, a class or a measurement is missing, or units do not fit.
pub fn value(expr: &Expr, runs: &Runs<'_>) -> Result<DimensionedValue, EvalError> {
    let result = match expr {
        Expr::Literal(amount, unit) => unit.map_or(DimensionedValue::number(*amount), |unit| unit.of(*amount)),
        Expr::Metric(metric) => measured(metric, runs)?,
        Expr::Negative(inner) => {
            let inner = value(inner, runs)?;
            DimensionedValue { amount: -inner.amount, ..inner }
        }
        Expr::Binary(left, operator, right) => {
            let (a, b) = (value(left, runs)?, value(right, runs)?);
            match operator {
                Operator::Plus => check_same_dimension(left, a, "added", right, b).map(|()| a.amount + b.amount),
                Operator::Minus => check_same_dimension(left, a, "subtracted", right, b).map(|()| a.amount - b.amount),
                Operator::Times => Ok(a.amount * b.amount),
                Operator::Over if b.amount == 0.0 => Err(EvalError::DivisionByZero { expr: expr.to_string() }),
                Operator::Over => Ok(a.amount / b.amount),
            }
            .map(|amount| {
                let dimension = match operator {
                    Operator::Times => a.dimension.plus(b.dimension),
                    Operator::Over => a.dimension.minus(b.dimension),
                    Operator::Plus | Operator::Minus => a.dimension,
                };
                DimensionedValue { amount, dimension }
            })?
        }
        Expr::Call(function, args) => call(*function, args, runs)?,
    };
    if result.amount.is_nan() { Err(EvalError::NotANumber { expr: expr.to_string() }) } else { Ok(result) }
}

fn call(function: Function, args: &[Expr], runs: &Runs<'_>) -> Result<DimensionedValue, EvalError> {
    let mut chosen: Option<(&Expr, DimensionedValue)> = None;
    for arg in args {
        let next = value(arg, runs)?;
        chosen = Some(match (chosen, function) {
            (None, Function::Abs) => (arg, DimensionedValue { amount: next.amount.abs(), ..next }),
            (None, _) => (arg, next),
            (Some((first, best)), _) => {
                check_same_dimension(first, best, "compared", arg, next)?;
                let better =
                    if function == Function::Min { next.amount < best.amount } else { next.amount > best.amount };
                if better { (arg, next) } else { (first, best) }
            }
        });
    }
    chosen.map(|(_, value)| value).ok_or_else(|| EvalError::NotANumber { expr: format!("{}()", function.name()) })
}

/// Refuses values of different kinds.
pub(super) fn check_same_dimension(
    left: &Expr,
    a: DimensionedValue,
    done: &'static str,
    right: &Expr,
    b: DimensionedValue,
) -> Result<(), EvalError> {
    if a.dimension == b.dimension {
        return Ok(());
    }
    let (left, right) = (left.to_string(), right.to_string());
    Err(EvalError::Units { left, is: a.dimension, done, right, other: b.dimension })
}

/// Returns whether a check holds.
///
/// # Errors
/// As [`value`]; also where an earlier comparison has already failed.
pub fn holds(check: &Check, runs: &Runs<'_>) -> Result<bool, EvalError> {
    let mut all = true;
    for comparison in &check.all {
        all &= compares(comparison, runs)?;
    }
    Ok(all)
}

#[allow(clippy::float_cmp)] // `==` is exact, as documented: it is for counts.
fn compares(comparison: &Comparison, runs: &Runs<'_>) -> Result<bool, EvalError> {
    let Comparison { left, order, right } = comparison;
    let (a, b) = (value(left, runs)?, value(right, runs)?);
    check_same_dimension(left, a, "compared", right, b)?;
    Ok(match order {
        Order::AtMost => a.amount <= b.amount,
        Order::Below => a.amount < b.amount,
        Order::AtLeast => a.amount >= b.amount,
        Order::Above => a.amount > b.amount,
        Order::Equal => a.amount == b.amount,
        Order::Unequal => a.amount != b.amount,
    })
}

fn measured(metric: &Metric, runs: &Runs<'_>) -> Result<DimensionedValue, EvalError> {
    let EvaluatedRun { summary, samples } = runs.find(&metric.run)?;
    let missing = |reason: String| EvalError::NotMeasured { metric: metric.to_string(), reason };
    let sample_tables =
        |table: &str| samples.ok_or_else(|| missing(format!("the run's samples of {table} are not loaded")));
    match &metric.subject {
        Subject::Spread { class, key: SpreadKey::Iteration, stat } => {
            let (job, training) = training_of(summary, class).map_err(missing)?;
            let found = percentile(&training.iteration_ns, *stat);
            found.map(DimensionedValue::ns).ok_or_else(|| missing(format!("no iteration of {job} ended")))
        }
        Subject::Critical { job, step } => {
            let (job, training) = training_of(summary, job).map_err(missing)?;
            if training.iteration_ns.is_empty() {
                return Err(missing(format!("no iteration of {job} ended")));
            }
            let known = || training.critical.iter().map(|(step, _)| step).collect::<Vec<_>>().join(", ");
            let found = training.critical.get(step).copied().map(DimensionedValue::number);
            found.ok_or_else(|| missing(format!("no step `{step}` on its critical path; there are {}", known())))
        }
        Subject::Spread { class, key, stat } => {
            let cell = cell_of(metric, summary, class)?;
            let none = || missing(format!("none of its {} flows of class {class} ended", cell.count));
            let (spread, to_value): (&DistributionStats, fn(f64) -> DimensionedValue) = match key {
                SpreadKey::Slowdown => (&cell.slowdown, DimensionedValue::number),
                SpreadKey::Fct | SpreadKey::Iteration => (&cell.fct_ns, DimensionedValue::ns),
            };
            stat_of(spread, *stat).map(to_value).ok_or_else(none)
        }
        Subject::Class { class, key } => {
            let cell = || cell_of(metric, summary, class);
            let training = || training_of(summary, class).map_err(missing);
            let ended = |found: Option<f64>| {
                found.map(DimensionedValue::ns).ok_or_else(|| missing("no iteration ended".into()))
            };
            match key {
                TotalKey::Count => Ok(DimensionedValue::count(cell()?.count)),
                TotalKey::Completed => Ok(DimensionedValue::count(cell()?.completed)),
                TotalKey::Goodput if cell()?.count == 0 => Err(missing(format!("it has no flows of class {class}"))),
                TotalKey::Goodput => Ok(DimensionedValue::bps(cell()?.goodput_bps as f64)),
                TotalKey::EndToEnd => end_to_end(summary, class).map(DimensionedValue::ns).map_err(missing),
                TotalKey::Compute => ended(training()?.1.compute_ns),
                TotalKey::Exposed => ended(training()?.1.exposed_ns),
                TotalKey::InterShare => {
                    let (job, training) = training()?;
                    let ended = (!training.iteration_ns.is_empty()).then_some(training.inter);
                    ended.map(DimensionedValue::number).ok_or_else(|| missing(format!("no iteration of {job} ended")))
                }
            }
        }
        Subject::Fairness(key) => fairness(&summary.fairness, *key).ok_or_else(|| {
            missing("no interval of `fairness_window` in which all of two or more sampled flows were active".into())
        }),
        Subject::Predicts(key) => {
            let found = match key {
                Predictor::Owd => summary.predicts.owd,
                Predictor::Rtt => summary.predicts.rtt,
            };
            let none = || match found.packets {
                0 => "no packet was compared; `[monitor] predictors` chooses flows, and `owd` needs `host.on_ramp`",
                1.. => "nothing varied",
            };
            found.r.map(DimensionedValue::number).ok_or_else(|| missing(none().into()))
        }
        Subject::Network(key) => {
            let old = || missing("the results are from a version that did not distinguish losses".into());
            total(&summary.network, *key).ok_or_else(old)
        }
        Subject::Tier { key, tier } => {
            let found = by_tier(&summary.network, *key, tier);
            found.ok_or_else(|| {
                let known: Vec<&str> = key.tiers().collect();
                missing(format!("no class of links `{tier}`; there are {}", known.join(", ")))
            })
        }
        Subject::Credits(key) => Ok(DimensionedValue::count(credits(&summary.credits, *key))),
        Subject::Law(key) => Ok(DimensionedValue::count(actions(&summary.law.actions, *key))),
        Subject::Flows { window, key } => {
            let (_, _, rates) = sample_tables("flows")?;
            let delivered: Vec<u64> = delivered_in(rates, *window).into_values().collect();
            if delivered.is_empty() || window.from_ns == window.to_ns {
                return Err(missing("no flow was sampled then".into()));
            }
            match key {
                FlowsKey::Rate => {
                    let bytes = delivered.iter().map(|&bytes| bytes as f64).sum::<f64>();
                    Ok(DimensionedValue::bps(bytes * 8e9 / (window.to_ns - window.from_ns) as f64))
                }
                FlowsKey::Jain => {
                    let index = Jain::of(&delivered).map(|jain| DimensionedValue::number(jain.index()));
                    index.ok_or_else(|| missing("the flows got nothing then".into()))
                }
            }
        }
        Subject::Samples { of, chosen, window, stat } => {
            let (ports, switches, rates) = sample_tables("ports")?;
            let counts = |time_ns: u64| window.is_none_or(|window| window.has(time_ns));
            let of_ports = |of: fn(&PortRow) -> Option<u64>| {
                let rows = ports.chosen(chosen).into_iter().filter(|row| counts(row.time_ns));
                rows.filter_map(|row| of(&row)).map(|value| value as f64).collect::<Vec<f64>>()
            };
            let in_bytes = |found: f64| DimensionedValue::bytes(found);
            let in_bps = |found: f64| DimensionedValue::bps(found);
            let (values, source, to_value): (Vec<f64>, &str, fn(f64) -> DimensionedValue) = match of {
                Sampled::Queue => (of_ports(|row| Some(row.queue_bytes)), "ports", in_bytes),
                Sampled::Phantom => (of_ports(|row| row.phantom_bytes), "ports", in_bytes),
                Sampled::Ingress => (of_ports(|row| row.ingress_bytes), "ports", in_bytes),
                Sampled::Pseudo => (of_ports(|row| row.pseudo_bytes), "ports", in_bytes),
                Sampled::Feedback => (of_ports(|row| row.feedback_bps), "ports", in_bps),
                Sampled::Rate => {
                    let wanted = flows_of(chosen).ok_or_else(|| missing(no_choice_of_flows(chosen)))?;
                    (rates_of(rates, wanted, *window), "flows", in_bps)
                }
                Sampled::Buffer => {
                    let rows = switches.chosen(chosen).into_iter().filter(|row| counts(row.time_ns));
                    (rows.map(|row| row.buffer_bytes as f64).collect(), "switches", in_bytes)
                }
            };
            let found = sampled(values, *stat).map(to_value);
            found.ok_or_else(|| missing(format!("no samples of the {source} `{chosen}`")))
        }
    }
}

/// The training job of that name; `all` is the only one. Else the reason why there is none.
fn training_of<'a>(summary: &'a Summary, name: &str) -> Result<(&'a str, &'a Training), String> {
    let jobs: Vec<(&str, &Training)> = summary.training().collect();
    let found = match (&jobs[..], name) {
        (&[alone], "all") => Some(alone),
        _ => jobs.iter().copied().find(|(job, _)| *job == name),
    };
    found.ok_or_else(|| none_called("training job", name, jobs.iter().map(|(job, _)| *job)))
}

/// The time of an imported schedule from its start to its last completion; `all` is the only one. Else the reason why there is
/// none.
fn end_to_end(summary: &Summary, name: &str) -> Result<f64, String> {
    let found = match (&summary.schedules.0[..], name) {
        ([(_, alone)], "all") => Some(alone),
        _ => summary.schedules.get(name),
    };
    let schedules = summary.schedules.iter().map(|(schedule, _)| schedule);
    let schedule = found.ok_or_else(|| none_called("imported schedule", name, schedules))?;
    schedule.end_to_end_ns.ok_or_else(|| format!("{} of its {} flows ended", schedule.completed, schedule.flows))
}

fn none_called<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match &known[..] {
        [] => format!("the run has no {kind}"),
        known => format!("no {kind} is called `{name}`; there are {}", known.join(", ")),
    }
}

/// A statistic of a list, percentiles by nearest rank.
fn percentile(values: &[f64], stat: Stat) -> Option<f64> {
    let stat = match stat {
        Stat::Mean => SampleStat::Mean,
        Stat::P50 => SampleStat::P50,
        Stat::P90 => SampleStat::P90,
        Stat::P95 => SampleStat::P95,
        Stat::P99 => SampleStat::P99,
        Stat::Max => SampleStat::Max,
    };
    sampled(values.to_vec(), stat)
}

fn stat_of(spread: &DistributionStats, stat: Stat) -> Option<f64> {
    match stat {
        Stat::Mean => spread.mean,
        Stat::P50 => spread.p50,
        Stat::P90 => spread.p90,
        Stat::P95 => spread.p95,
        Stat::P99 => spread.p99,
        Stat::Max => spread.max,
    }
}

/// A measure of fairness; none where flows were never together.
fn fairness(fair: &Fairness, key: FairnessKey) -> Option<DimensionedValue> {
    // Flows that were together and did not become fair: later than any time.
    let time = |at: Option<u64>| DimensionedValue::ns(at.map_or(f64::INFINITY, |ns| ns as f64));
    match key {
        FairnessKey::JainMean => fair.jain_mean.map(DimensionedValue::number),
        FairnessKey::JainFinal => fair.jain_final.map(DimensionedValue::number),
        // 0 of flows that never became fair.
        FairnessKey::JainSince => fair.jain_final.map(|_| DimensionedValue::number(fair.jain_since.unwrap_or(0.0))),
        FairnessKey::ReachedAt => fair.jain_final.map(|_| time(fair.reached_at_ns)),
        FairnessKey::ConvergedAt => fair.jain_final.map(|_| time(fair.converged_at_ns)),
    }
}

/// A total of the network; none where results of an earlier version do not have it.
fn total(network: &NetworkTotals, key: NetworkKey) -> Option<DimensionedValue> {
    let impaired = network.impaired_packets();
    let of_kind = |kind: &str| network.drops_by_kind.get(kind).map(|&drops| DimensionedValue::count(drops));
    Some(match key {
        NetworkKey::DataPackets => DimensionedValue::count(network.data_packets),
        NetworkKey::PacketHops => DimensionedValue::count(network.packet_hops),
        NetworkKey::Drops => DimensionedValue::count(network.drops),
        NetworkKey::DataDrops => return of_kind("data"),
        NetworkKey::AckDrops => return of_kind("acks"),
        NetworkKey::CreditDrops => return of_kind("credits"),
        NetworkKey::Trims => DimensionedValue::count(network.trims),
        NetworkKey::Policed => DimensionedValue::count(impaired.policed),
        NetworkKey::Oversized => DimensionedValue::count(impaired.oversized),
        NetworkKey::Corrupted => DimensionedValue::count(impaired.corrupted),
        NetworkKey::Duplicates => DimensionedValue::count(impaired.duplicates),
        NetworkKey::Reordered => DimensionedValue::count(impaired.reordered),
        NetworkKey::EcnMarks => DimensionedValue::count(network.ecn_marks),
        NetworkKey::OrAcks => DimensionedValue::count(network.or_acks),
        NetworkKey::OrAckBytes => DimensionedValue::bytes(network.or_ack_bytes as f64),
        NetworkKey::Retransmits => DimensionedValue::count(network.retransmits),
        NetworkKey::Timeouts => DimensionedValue::count(network.timeouts),
        NetworkKey::PfcPauses => DimensionedValue::count(network.pfc_pauses),
        NetworkKey::PfcPause => DimensionedValue::ns(network.pfc_pause_ns as f64),
        NetworkKey::HostPause => DimensionedValue::ns(network.host_pause_ns),
        NetworkKey::Nacks => DimensionedValue::count(network.nacks),
        NetworkKey::Cnps => DimensionedValue::count(network.cnps),
        NetworkKey::ParityPackets => DimensionedValue::count(network.parity_packets),
        NetworkKey::RecoveredBlocks => DimensionedValue::count(network.recovered_blocks),
        NetworkKey::Held => DimensionedValue::ns(network.on_ramp_hold_ns as f64),
        NetworkKey::HeadroomDrops => DimensionedValue::count(network.headroom_drops),
        NetworkKey::Messages => DimensionedValue::count(network.messages),
        NetworkKey::MaxBuffer => DimensionedValue::bytes(network.max_buffer_bytes as f64),
        NetworkKey::MaxQueue => DimensionedValue::bytes(network.max_queue_bytes as f64),
    })
}

fn by_tier(network: &NetworkTotals, key: TierKey, tier: &str) -> Option<DimensionedValue> {
    match key {
        TierKey::Drops => network.drops_by_tier.get(tier).map(|&drops| DimensionedValue::count(drops)),
        TierKey::DataDrops => network.data_drops_by_tier.get(tier).map(|&drops| DimensionedValue::count(drops)),
        TierKey::PfcPauses => network.pfc_pauses_by_tier.get(tier).map(|&pauses| DimensionedValue::count(pauses)),
        TierKey::PfcPause => network.pfc_pause_ns_by_tier.get(tier).map(|&ns| DimensionedValue::ns(ns as f64)),
    }
}

fn credits(credits: &Credits, key: CreditsKey) -> u64 {
    match key {
        CreditsKey::Sent => credits.sent,
        CreditsKey::Used => credits.used,
        CreditsKey::Dropped => credits.dropped,
        CreditsKey::Wasted => credits.wasted,
        CreditsKey::Received => credits.received,
        CreditsKey::OverProvisioned => credits.over_provisioned,
        CreditsKey::Late => credits.late,
        CreditsKey::Unscheduled => credits.unscheduled,
        CreditsKey::UnscheduledDrops => credits.unscheduled_drops,
    }
}

fn actions(actions: &Actions, key: LawKey) -> u64 {
    match key {
        LawKey::Increases => actions.increases,
        LawKey::Cuts => actions.cuts,
        LawKey::LossCuts => actions.loss_cuts,
        LawKey::QuickAdapts => actions.quick_adapts,
        LawKey::ProbeRtts => actions.probe_rtts,
        LawKey::Holds => actions.holds,
        LawKey::Credits => actions.credits,
    }
}

/// A statistic of samples, percentiles by nearest rank; none of none.
fn sampled(mut values: Vec<f64>, stat: SampleStat) -> Option<f64> {
    let percent = match stat {
        SampleStat::Mean => return stats::mean_real(&values),
        SampleStat::Min => 0,
        SampleStat::P1 => 1,
        SampleStat::P5 => 5,
        SampleStat::P10 => 10,
        SampleStat::P50 => 50,
        SampleStat::P90 => 90,
        SampleStat::P95 => 95,
        SampleStat::P99 => 99,
        SampleStat::Max => 100,
    };
    values.sort_unstable_by(f64::total_cmp);
    stats::nearest_rank(&values, percent)
}

/// The reason why a choice of flows has none.
pub(super) fn no_choice_of_flows(choice: &str) -> String {
    format!("`{choice}` is no choice of flows; it is all, a number or a range such as 0..4")
}

/// The flows that `all`, `3` or `0..4` names.
pub(super) fn flows_of(choice: &str) -> Option<std::ops::Range<u32>> {
    if choice == "all" {
        return Some(0..u32::MAX);
    }
    match choice.split_once("..") {
        Some((from, to)) => Some(from.parse().ok()?..to.parse().ok()?),
        None => choice.parse().ok().map(|flow: u32| flow..flow.saturating_add(1)),
    }
}

/// Rates of a flow in bits per second: the payload acknowledged between consecutive samples in the window.
fn rates_of(rates: &RateTable, wanted: std::ops::Range<u32>, window: Option<ClaimWindow>) -> Vec<f64> {
    let mut last: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut values = Vec::new();
    let counts = |time_ns: u64| window.is_none_or(|window| window.has(time_ns));
    for row in rates.rows.iter().filter(|row| wanted.contains(&row.flow) && counts(row.time_ns)) {
        let now = (row.time_ns, row.delivered_bytes);
        if let Some((then, before)) = last.insert(row.flow, now)
            && row.time_ns > then
        {
            values.push(row.delivered_bytes.saturating_sub(before) as f64 * 8e9 / (row.time_ns - then) as f64);
        }
    }
    values
}

/// Returns the bytes acknowledged to each flow that was sampled in the window: from its last sample up to the beginning
/// of the window, to its last sample in the window.
fn delivered_in(rates: &RateTable, window: ClaimWindow) -> BTreeMap<u32, u64> {
    let (mut before, mut delivered) = (BTreeMap::new(), BTreeMap::new());
    for row in rates.rows.iter().take_while(|row| row.time_ns <= window.to_ns) {
        if row.time_ns <= window.from_ns {
            before.insert(row.flow, row.delivered_bytes);
        } else {
            delivered.insert(row.flow, row.delivered_bytes.saturating_sub(before.get(&row.flow).copied().unwrap_or(0)));
        }
    }
    delivered
}

fn cell_of<'a>(metric: &Metric, summary: &'a Summary, class: &str) -> Result<&'a FlowGroupStats, EvalError> {
    summary.class(class).ok_or_else(|| {
        let known: Vec<&str> = summary.classes().map(|(name, _)| name).collect();
        EvalError::NoClass { metric: metric.to_string(), class: class.to_owned(), known: known.join(", ") }
    })
}

/// Returns true if an expression about this run is a 99th percentile of so few flows that one of the slowest decides it.
pub fn is_of_few(expr: &Expr, summary: &Summary) -> bool {
    flows_behind_p99(expr, summary).is_some_and(|flows| flows < stats::FEW as u64)
}

/// The least number of flows, or of iterations, behind a 99th percentile in an expression about this run; none without one.
pub(crate) fn flows_behind_p99(expr: &Expr, summary: &Summary) -> Option<u64> {
    let mut min_count: Option<u64> = None;
    expr.each_metric(&mut |metric| {
        let Subject::Spread { class, key, stat: Stat::P99 } = &metric.subject else { return };
        let count = match key {
            SpreadKey::Iteration => training_of(summary, class).ok().map(|(_, it)| it.iteration_ns.len() as u64),
            SpreadKey::Fct | SpreadKey::Slowdown => summary.class(class).map(|cell| cell.completed),
        };
        min_count = min_count.into_iter().chain(count).min();
    });
    min_count
}

/// Returns a note about a metric's value: some flows of its class did not end.
pub(super) fn caveat(metric: &Metric, runs: &Runs<'_>) -> Option<String> {
    let Subject::Spread { class, key: SpreadKey::Fct | SpreadKey::Slowdown, .. } = &metric.subject else { return None };
    let summary = runs.summary(&metric.run)?;
    let cell = summary.class(class)?;
    let open = cell.count - cell.completed.min(cell.count);
    (open > 0).then(|| format!("{}: {open} of {} {class} flows did not end and are left out", metric.run, cell.count))
}
