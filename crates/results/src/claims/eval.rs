//! What a claim's expressions come to in the runs at hand.

use std::collections::BTreeMap;

use thiserror::Error;

use super::ast::{Check, Comparison, Expr, Function, Metric, Operator, Order, Subject, Window};
use super::quantity::{Dimension, Value};
use crate::stats;
use crate::store::RunResults;
use crate::summary::{Cell, NetworkTotals, Summary};
use crate::tables::{PortRow, PortTable, RateTable, SwitchTable};

/// Runs by id, with their summaries and, where they are at hand, their samples of ports, switches and flows.
#[derive(Clone, Default, Debug)]
pub struct Runs<'a>(BTreeMap<&'a str, (&'a Summary, Option<Samples<'a>>)>);

type Samples<'a> = (&'a PortTable, &'a SwitchTable, &'a RateTable);

impl<'a> Runs<'a> {
    /// Runs of which only summaries are at hand.
    pub fn of_summaries(summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        Self(summaries.into_iter().map(|summary| (summary.run.as_str(), (summary, None))).collect())
    }

    /// Whole runs.
    pub fn of_results(runs: impl IntoIterator<Item = &'a RunResults>) -> Self {
        let samples = |run: &'a RunResults| (&run.ports, &run.switches, &run.rates);
        let entry = |run: &'a RunResults| (run.summary.run.as_str(), (&run.summary, Some(samples(run))));
        Self(runs.into_iter().map(entry).collect())
    }

    /// Whole runs, grouped by seed. A grid's runs that differ in nothing but `seed` have one name in claims, so `names`
    /// has the name of each of `runs`.
    pub fn by_seed(runs: &'a [RunResults], names: &'a [String]) -> Vec<Self> {
        let mut seeds: BTreeMap<u64, Self> = BTreeMap::new();
        for (run, name) in runs.iter().zip(names) {
            let samples = (&run.ports, &run.switches, &run.rates);
            seeds.entry(run.summary.seed).or_default().0.insert(name, (&run.summary, Some(samples)));
        }
        seeds.into_values().collect()
    }

    /// One whole run, under another name.
    pub fn named(name: &'a str, run: &'a RunResults) -> Self {
        Self([(name, (&run.summary, Some((&run.ports, &run.switches, &run.rates))))].into())
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().copied()
    }
}

/// Why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum EvalError {
    #[error("there is no run `{run}`; there are: {known}")]
    NoRun { run: String, known: String },
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
pub fn value(expr: &Expr, runs: &Runs<'_>) -> Result<Value, EvalError> {
    let made = match expr {
        Expr::Literal(amount, unit) => unit.map_or(Value::number(*amount), |unit| unit.of(*amount)),
        Expr::Metric(metric) => measured(metric, runs)?,
        Expr::Negative(inner) => {
            let inner = value(inner, runs)?;
            Value { amount: -inner.amount, ..inner }
        }
        Expr::Binary(left, operator, right) => {
            let (a, b) = (value(left, runs)?, value(right, runs)?);
            match operator {
                Operator::Plus => alike(left, a, "added", right, b).map(|()| a.amount + b.amount),
                Operator::Minus => alike(left, a, "subtracted", right, b).map(|()| a.amount - b.amount),
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
                Value { amount, dimension }
            })?
        }
        Expr::Call(function, args) => call(*function, args, runs)?,
    };
    if made.amount.is_nan() { Err(EvalError::NotANumber { expr: expr.to_string() }) } else { Ok(made) }
}

fn call(function: Function, args: &[Expr], runs: &Runs<'_>) -> Result<Value, EvalError> {
    let mut chosen: Option<(&Expr, Value)> = None;
    for arg in args {
        let next = value(arg, runs)?;
        chosen = Some(match (chosen, function) {
            (None, Function::Abs) => (arg, Value { amount: next.amount.abs(), ..next }),
            (None, _) => (arg, next),
            (Some((first, best)), _) => {
                alike(first, best, "compared", arg, next)?;
                let better =
                    if function == Function::Min { next.amount < best.amount } else { next.amount > best.amount };
                if better { (arg, next) } else { (first, best) }
            }
        });
    }
    chosen.map(|(_, value)| value).ok_or_else(|| EvalError::NotANumber { expr: format!("{}()", function.name()) })
}

/// Refuses values of different kinds.
pub(super) fn alike(left: &Expr, a: Value, done: &'static str, right: &Expr, b: Value) -> Result<(), EvalError> {
    if a.dimension == b.dimension {
        return Ok(());
    }
    let (left, right) = (left.to_string(), right.to_string());
    Err(EvalError::Units { left, is: a.dimension, done, right, other: b.dimension })
}

/// Whether a check holds.
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
    alike(left, a, "compared", right, b)?;
    Ok(match order {
        Order::AtMost => a.amount <= b.amount,
        Order::Below => a.amount < b.amount,
        Order::AtLeast => a.amount >= b.amount,
        Order::Above => a.amount > b.amount,
        Order::Equal => a.amount == b.amount,
        Order::Unequal => a.amount != b.amount,
    })
}

fn measured(metric: &Metric, runs: &Runs<'_>) -> Result<Value, EvalError> {
    let Some(&(summary, samples)) = runs.0.get(metric.run.as_str()) else {
        let known: Vec<&str> = runs.ids().collect();
        return Err(EvalError::NoRun { run: metric.run.clone(), known: known.join("; ") });
    };
    let missing = |reason: String| EvalError::NotMeasured { metric: metric.to_string(), reason };
    let count = |count: u64| Ok(Value::number(count as f64));
    match &metric.subject {
        Subject::Spread { class, metric: kind, stat } => {
            let cell = cell_of(metric, summary, class)?;
            let of = if *kind == "fct" { &cell.fct_ns } else { &cell.slowdown };
            let found = of.get(stat).flatten();
            let amount =
                found.ok_or_else(|| missing(format!("none of its {} flows of class {class} ended", cell.count)))?;
            Ok(if *kind == "fct" { Value::ns(amount) } else { Value::number(amount) })
        }
        Subject::Class { class, metric: kind } => {
            let cell = cell_of(metric, summary, class)?;
            match *kind {
                "count" => count(cell.count),
                "completed" => count(cell.completed),
                _ if cell.count == 0 => Err(missing(format!("it has no flows of class {class}"))),
                _ => Ok(Value::bps(cell.goodput_bps as f64)),
            }
        }
        Subject::Fairness(key) => {
            let fair = &summary.fairness;
            let none = || {
                missing("no interval of `fairness_window` in which all of two or more sampled flows were active".into())
            };
            match *key {
                "jain_mean" => fair.jain_mean.map(Value::number).ok_or_else(none),
                "jain_final" => fair.jain_final.map(Value::number).ok_or_else(none),
                _ if fair.jain_final.is_none() => Err(none()),
                // 0 of flows that never became fair.
                "jain_since" => Ok(Value::number(fair.jain_since.unwrap_or(0.0))),
                // Flows that were together and did not become fair: later than any time.
                _ => {
                    let at = if *key == "reached_at" { fair.reached_at_ns } else { fair.converged_at_ns };
                    Ok(Value::ns(at.map_or(f64::INFINITY, |ns| ns as f64)))
                }
            }
        }
        Subject::Predicts(key) => {
            let predicts = if *key == "owd" { summary.predicts.owd } else { summary.predicts.rtt };
            let none = || match predicts.packets {
                0 => "no packet was compared; `[series] predictors` chooses flows, and `owd` needs `host.on_ramp`",
                _ => "nothing varied",
            };
            predicts.r.map(Value::number).ok_or_else(|| missing(none().into()))
        }
        Subject::Network(key) => {
            let network = &summary.network;
            let by_kind = |network: &NetworkTotals, kind: &str| {
                let found = network.drops_by_kind.get(kind).map(|&drops| Value::number(drops as f64));
                found.ok_or_else(|| missing("the results are from before losses were told apart".into()))
            };
            match *key {
                "data_packets" => count(network.data_packets),
                "packet_hops" => count(network.packet_hops),
                "drops" => count(network.drops),
                "data_drops" => by_kind(network, "data"),
                "ack_drops" => by_kind(network, "acks"),
                "credit_drops" => by_kind(network, "credits"),
                "ecn_marks" => count(network.ecn_marks),
                "or_acks" => count(network.or_acks),
                "or_ack_bytes" => Ok(Value::bytes(network.or_ack_bytes as f64)),
                "retransmits" => count(network.retransmits),
                "timeouts" => count(network.timeouts),
                "pfc_pauses" => count(network.pfc_pauses),
                "pfc_pause" => Ok(Value::ns(network.pfc_pause_ns as f64)),
                "host_pause" => Ok(Value::ns(network.host_pause_ns)),
                "nacks" => count(network.nacks),
                "cnps" => count(network.cnps),
                "parity_packets" => count(network.parity_packets),
                "recovered_blocks" => count(network.recovered_blocks),
                "held" => Ok(Value::ns(network.held_ns as f64)),
                "headroom_drops" => count(network.headroom_drops),
                "messages" => count(network.messages),
                "max_buffer" => Ok(Value::bytes(network.max_buffer_bytes as f64)),
                _ => Ok(Value::bytes(network.max_queue_bytes as f64)),
            }
        }
        Subject::Drops { key, tier } => {
            let network = &summary.network;
            let tiers = if *key == "drops_by_tier" { &network.drops_by_tier } else { &network.data_drops_by_tier };
            let known = || tiers.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
            let found = tiers.get(tier).map(|&drops| Value::number(drops as f64));
            found.ok_or_else(|| missing(format!("no class of links `{tier}`; there are {}", known())))
        }
        Subject::Pauses { key, tier } => {
            let pauses = &summary.network.pfc_pauses_by_tier;
            let lengths = &summary.network.pfc_pause_ns_by_tier;
            let found = if *key == "pfc_pauses_by_tier" {
                pauses.get(tier).map(|&count| Value::number(count as f64))
            } else {
                lengths.get(tier).map(|&ns| Value::ns(ns as f64))
            };
            let known = || pauses.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| missing(format!("no class of links `{tier}`; there are {}", known())))
        }
        Subject::Credits(key) => {
            let found = summary.credits.entries().into_iter().find(|(name, _)| name == key);
            found.map(|(_, value)| Value::number(value as f64)).ok_or_else(|| missing("is not counted".into()))
        }
        Subject::Law(key) => {
            let entries = summary.law.acted.entries();
            let found = entries.iter().find(|(name, _)| name == key);
            found.map(|&(_, times)| Value::number(times as f64)).ok_or_else(|| missing("is not counted".into()))
        }
        Subject::Flows { window, key } => {
            let (_, _, rates) = samples.ok_or_else(|| missing("the run's samples of flows are not at hand".into()))?;
            let got = got_in(rates, *window);
            let (sum, squares) = got.values().fold((0.0, 0.0), |(sum, squares), &bytes| {
                let bytes = bytes as f64;
                (sum + bytes, squares + bytes * bytes)
            });
            match *key {
                _ if got.is_empty() || window.from_ns == window.to_ns => {
                    Err(missing("no flow was sampled then".into()))
                }
                "rate" => Ok(Value::bps(sum * 8e9 / (window.to_ns - window.from_ns) as f64)),
                _ if squares > 0.0 => Ok(Value::number(sum * sum / (got.len() as f64 * squares))),
                _ => Err(missing("the flows got nothing then".into())),
            }
        }
        Subject::Queue { which, ports: choice, window, stat } => {
            let (ports, switches, rates) =
                samples.ok_or_else(|| missing("the run's port samples are not at hand".into()))?;
            let counts = |time_ns: u64| window.is_none_or(|window| window.has(time_ns));
            let of_ports = |of: fn(&PortRow) -> Option<u64>| {
                let rows = ports.chosen(choice).into_iter().filter(|row| counts(row.time_ns));
                rows.filter_map(|row| of(&row)).map(|value| value as f64).collect::<Vec<f64>>()
            };
            let values = match *which {
                "queue" => of_ports(|row| Some(row.queue_bytes)),
                "phantom" => of_ports(|row| row.phantom_bytes),
                "ingress" => of_ports(|row| row.ingress_bytes),
                "pseudo" => of_ports(|row| row.pseudo_bytes),
                "feedback" => of_ports(|row| row.feedback_bps),
                "rate" => {
                    let wanted = flows_of(choice).ok_or_else(|| {
                        missing(format!(
                            "`{choice}` is no choice of flows; it is all, a number or a range such as 0..4"
                        ))
                    })?;
                    rates_of(rates, wanted, *window)
                }
                _ => {
                    let rows = switches.chosen(choice).into_iter().filter(|row| counts(row.time_ns));
                    rows.map(|row| row.buffer_bytes as f64).collect()
                }
            };
            let of = match *which {
                "buffer" => "switches",
                "rate" => "flows",
                _ => "ports",
            };
            let found = sampled(values, stat);
            let is_rate = matches!(*which, "feedback" | "rate");
            let value = |found| if is_rate { Value::bps(found) } else { Value::bytes(found) };
            found.map(value).ok_or_else(|| missing(format!("no samples of the {of} `{choice}`")))
        }
    }
}

/// A statistic of samples, percentiles by nearest rank; none of none.
fn sampled(mut values: Vec<f64>, stat: &str) -> Option<f64> {
    let percent = match stat {
        "mean" => return stats::mean_real(&values),
        "min" => 0,
        "max" => 100,
        other => other.strip_prefix('p')?.parse().ok()?,
    };
    values.sort_unstable_by(f64::total_cmp);
    stats::nearest_rank(&values, percent)
}

/// The flows that `all`, `3` or `0..4` names.
fn flows_of(choice: &str) -> Option<std::ops::Range<u32>> {
    if choice == "all" {
        return Some(0..u32::MAX);
    }
    match choice.split_once("..") {
        Some((from, to)) => Some(from.parse().ok()?..to.parse().ok()?),
        None => choice.parse().ok().map(|flow: u32| flow..flow.saturating_add(1)),
    }
}

/// Payload acknowledged between every two samples in turn of a flow that lie in the window, in bits a second.
fn rates_of(rates: &RateTable, wanted: std::ops::Range<u32>, window: Option<Window>) -> Vec<f64> {
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

/// What was acknowledged to each flow that was sampled in the window: up to its last sample there, since its last one
/// up to the beginning.
fn got_in(rates: &RateTable, window: Window) -> BTreeMap<u32, u64> {
    let (mut before, mut got) = (BTreeMap::new(), BTreeMap::new());
    for row in rates.rows.iter().take_while(|row| row.time_ns <= window.to_ns) {
        if row.time_ns <= window.from_ns {
            before.insert(row.flow, row.delivered_bytes);
        } else {
            got.insert(row.flow, row.delivered_bytes.saturating_sub(before.get(&row.flow).copied().unwrap_or(0)));
        }
    }
    got
}

fn cell_of<'a>(metric: &Metric, summary: &'a Summary, class: &str) -> Result<&'a Cell, EvalError> {
    summary.class(class).ok_or_else(|| {
        let known: Vec<&str> = summary.classes().map(|(name, _)| name).collect();
        EvalError::NoClass { metric: metric.to_string(), class: class.to_owned(), known: known.join(", ") }
    })
}

/// What to know about a metric's value: that some flows of its class did not end.
pub(super) fn caveat(metric: &Metric, runs: &Runs<'_>) -> Option<String> {
    let Subject::Spread { class, .. } = &metric.subject else { return None };
    let (summary, _) = runs.0.get(metric.run.as_str())?;
    let cell = summary.class(class)?;
    let open = cell.count - cell.completed.min(cell.count);
    (open > 0).then(|| format!("{}: {open} of {} {class} flows did not end and are left out", metric.run, cell.count))
}
