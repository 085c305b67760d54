//! Metrics that no run of a scenario can have, found before anything runs: unknown classes of flows, jobs and schedules, and units
//! that do not fit.

use std::collections::BTreeSet;

use experiment::FlowId;

use super::ast::{Check, Expr, Metric, Operator, Subject};
use super::eval::{EvalError, check_same_dimension, flows_of, no_choice_of_flows};
use super::keywords::{FairnessKey, FlowsKey, NetworkKey, Sampled, SpreadKey, TierKey, TotalKey};
use crate::input::RunInfo;
use crate::quantity::{Dimension, DimensionedValue};

/// Names that metrics of a scenario's runs may have.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MetricNames {
    bins: BTreeSet<String>,
    jobs: BTreeSet<String>,
    training: NameSet,
    schedules: NameSet,
    /// Kinds of steps on critical paths.
    steps: BTreeSet<String>,
}

/// Names of training jobs, or of imported schedules.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct NameSet {
    names: BTreeSet<String>,
    /// Set if a run has only one, which `all` then means.
    lone: bool,
}

impl NameSet {
    fn of<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        let names: BTreeSet<String> = names.cloned().collect();
        Self { lone: names.len() == 1, names }
    }

    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.lone |= other.lone;
    }

    /// Refuses a name that no run has.
    fn check(&self, metric: &Metric, kind: &str, name: &str) -> Result<(), EvalError> {
        if self.names.contains(name) || (name == "all" && self.lone) {
            return Ok(());
        }
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let reason = match &known[..] {
            [] => format!("the run has no {kind}"),
            known => format!("no {kind} is called `{name}`; there are {}", known.join(", ")),
        };
        Err(EvalError::NotMeasured { metric: metric.to_string(), reason })
    }
}

/// Classes of flows that every run has.
const CLASSES: [&str; 5] = ["all", "intra", "inter", "requests", "collectives"];

/// Step of a critical path that is no flow.
const COMPUTE: &str = "compute";

impl MetricNames {
    /// Names of one run.
    pub fn of(info: &RunInfo) -> Self {
        let traffic_of = |flow: &FlowId| info.traffic.get(flow.0 as usize).copied();
        let of_jobs: BTreeSet<u16> = info.collectives.iter().flatten().filter_map(traffic_of).collect();
        let job = |traffic: u16| info.traffic_names.get(usize::from(traffic)).cloned();
        Self {
            bins: info.sizes.iter().map(|bin| bin.name.clone()).collect(),
            jobs: of_jobs.into_iter().filter_map(job).collect(),
            training: NameSet::of(info.training.iter().map(|job| &job.name)),
            schedules: NameSet::of(info.schedules.iter().map(|schedule| &schedule.name)),
            steps: info.training.iter().flat_map(|job| job.kinds.iter().cloned()).collect(),
        }
    }

    /// Adds those of other runs.
    pub fn add(&mut self, other: Self) {
        self.bins.extend(other.bins);
        self.jobs.extend(other.jobs);
        self.training.add(other.training);
        self.schedules.add(other.schedules);
        self.steps.extend(other.steps);
    }

    /// Refuses a class of flows that no run has.
    fn class(&self, metric: &Metric, class: &str) -> Result<(), EvalError> {
        if CLASSES.contains(&class) || self.bins.contains(class) || self.jobs.contains(class) {
            return Ok(());
        }
        let known = CLASSES.into_iter().chain(self.bins.iter().chain(&self.jobs).map(String::as_str));
        let known = known.collect::<Vec<_>>().join(", ");
        Err(EvalError::NoClass { metric: metric.to_string(), class: class.to_owned(), known })
    }

    /// Refuses a metric if no run has its class of flows, job, step or schedule.
    fn metric(&self, metric: &Metric) -> Result<(), EvalError> {
        let training = |job: &str| self.training.check(metric, "training job", job);
        let wrong = |reason: String| Err(EvalError::NotMeasured { metric: metric.to_string(), reason });
        match &metric.subject {
            Subject::Spread { class, key: SpreadKey::Fct | SpreadKey::Slowdown, .. }
            | Subject::Class { class, key: TotalKey::Goodput | TotalKey::Count | TotalKey::Completed } => {
                self.class(metric, class)
            }
            Subject::Spread { class, key: SpreadKey::Iteration, .. }
            | Subject::Class { class, key: TotalKey::Compute | TotalKey::Exposed | TotalKey::InterShare } => {
                training(class)
            }
            Subject::Critical { job, step } => {
                training(job)?;
                if step == COMPUTE || self.steps.contains(step) {
                    return Ok(());
                }
                let known: Vec<&str> = [COMPUTE].into_iter().chain(self.steps.iter().map(String::as_str)).collect();
                wrong(format!("no step `{step}` is on its critical path; there are {}", known.join(", ")))
            }
            Subject::Class { class, key: TotalKey::EndToEnd } => {
                self.schedules.check(metric, "imported schedule", class)
            }
            Subject::Samples { of: Sampled::Rate, chosen, .. } if flows_of(chosen).is_none() => {
                wrong(no_choice_of_flows(chosen))
            }
            Subject::Fairness(_)
            | Subject::Predicts(_)
            | Subject::Credits(_)
            | Subject::Network(_)
            | Subject::Tier { .. }
            | Subject::Law(_)
            | Subject::Samples { .. }
            | Subject::Flows { .. } => Ok(()),
        }
    }
}

/// Returns the dimension of an expression about one run.
///
/// # Errors
/// When no run has a class of flows, a job or a schedule in it, or its units do not fit.
pub fn dimension(expr: &Expr, names: &MetricNames) -> Result<Dimension, EvalError> {
    let of = |dimension: Dimension| DimensionedValue { amount: f64::NAN, dimension };
    Ok(match expr {
        Expr::Literal(_, unit) => unit.map_or(Dimension::NUMBER, |unit| unit.of(1.0).dimension),
        Expr::Metric(metric) => {
            names.metric(metric)?;
            measures(&metric.subject)
        }
        Expr::Negative(inner) => dimension(inner, names)?,
        Expr::Binary(left, operator, right) => {
            let (a, b) = (dimension(left, names)?, dimension(right, names)?);
            match operator {
                Operator::Times => a.plus(b),
                Operator::Over => a.minus(b),
                Operator::Plus => check_same_dimension(left, of(a), "added", right, of(b)).map(|()| a)?,
                Operator::Minus => check_same_dimension(left, of(a), "subtracted", right, of(b)).map(|()| a)?,
            }
        }
        Expr::Call(_, args) => {
            let mut first: Option<(&Expr, Dimension)> = None;
            for arg in args {
                let next = dimension(arg, names)?;
                match first {
                    Some((known, dimension)) => check_same_dimension(known, of(dimension), "compared", arg, of(next))?,
                    None => first = Some((arg, next)),
                }
            }
            first.map_or(Dimension::NUMBER, |(_, dimension)| dimension)
        }
    })
}

/// Refuses a check of one run that no run can pass or fail.
///
/// # Errors
/// As [`dimension`]; also when the two sides of a comparison measure different things.
pub fn comparable(check: &Check, names: &MetricNames) -> Result<(), EvalError> {
    for comparison in &check.all {
        let of =
            |expr: &Expr| Ok::<_, EvalError>(DimensionedValue { amount: f64::NAN, dimension: dimension(expr, names)? });
        check_same_dimension(
            &comparison.left,
            of(&comparison.left)?,
            "compared",
            &comparison.right,
            of(&comparison.right)?,
        )?;
    }
    Ok(())
}

/// Returns the dimension of a metric.
const fn measures(subject: &Subject) -> Dimension {
    match subject {
        Subject::Spread { key: SpreadKey::Fct | SpreadKey::Iteration, .. }
        | Subject::Class { key: TotalKey::EndToEnd | TotalKey::Compute | TotalKey::Exposed, .. }
        | Subject::Fairness(FairnessKey::ReachedAt | FairnessKey::ConvergedAt)
        | Subject::Network(NetworkKey::PfcPause | NetworkKey::HostPause | NetworkKey::Held)
        | Subject::Tier { key: TierKey::PfcPause, .. } => Dimension::TIME,
        Subject::Class { key: TotalKey::Goodput, .. }
        | Subject::Samples { of: Sampled::Feedback | Sampled::Rate, .. }
        | Subject::Flows { key: FlowsKey::Rate, .. } => Dimension::RATE,
        Subject::Samples {
            of: Sampled::Queue | Sampled::Phantom | Sampled::Ingress | Sampled::Pseudo | Sampled::Buffer,
            ..
        }
        | Subject::Network(NetworkKey::OrAckBytes | NetworkKey::MaxBuffer | NetworkKey::MaxQueue) => Dimension::DATA,
        Subject::Spread { key: SpreadKey::Slowdown, .. }
        | Subject::Critical { .. }
        | Subject::Class { key: TotalKey::Count | TotalKey::Completed | TotalKey::InterShare, .. }
        | Subject::Fairness(_)
        | Subject::Predicts(_)
        | Subject::Credits(_)
        | Subject::Network(_)
        | Subject::Tier { .. }
        | Subject::Law(_)
        | Subject::Flows { key: FlowsKey::Jain, .. } => Dimension::NUMBER,
    }
}
