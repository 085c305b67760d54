//! Claims of papers: a paper's statements on an experiment, as comparisons by which runs are judged. The language and
//! the verdicts are documented in `docs/src/reference/claims.md`.

pub mod ast;
mod eval;
pub mod keywords;
mod magnitude;
mod parse;
pub mod possible;
mod seeds;
pub mod suspects;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use ast::{Check, Comparison, Expr, Metric, class_text};
pub(crate) use eval::flows_behind_p99;
pub use eval::{EvalError, Runs, holds, is_of_few, value};
use magnitude::with_magnitude;
pub use parse::{MAX, ParseError, check, check_of_a_run, expression, expression_of_a_run};
use seeds::{SeedDecision, answer, mean};

use crate::mean::Mean;
use crate::ordered::Ordered;
pub use crate::quantity::{Dimension, DimensionedValue, Unit};
use crate::summary::is_deterministic;

/// One claim of a paper.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Its name in the paper's file.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// The paper's statement.
    pub paper: String,
    /// The condition for `reproduced`; none while the claim is pending.
    pub check: Option<Check>,
    /// The weaker condition for `direction only`.
    pub direction: Option<Check>,
    /// The reason why it is not evaluated.
    pub pending: Option<String>,
    /// The expression to print as measured, instead of both sides of the check.
    pub measure: Option<Expr>,
    /// The verdicts of earlier runs, by scale.
    pub recorded: Ordered<Verdict>,
}

/// The outcome of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// The check holds.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The check fails and the direction holds; of a range, the value is of its order of magnitude.
    #[serde(rename = "direction only")]
    DirectionOnly,
    /// The seeds do not decide: the confidence interval of the difference includes both outcomes.
    #[serde(rename = "undecided")]
    Undecided,
    /// Neither holds.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// A value that the check needs was not measured.
    #[serde(rename = "cannot judge")]
    CannotJudge,
    /// Not evaluated, for a reason that the file states.
    #[serde(rename = "pending")]
    Pending,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 6] =
        [Self::Reproduced, Self::DirectionOnly, Self::Undecided, Self::NotReproduced, Self::CannotJudge, Self::Pending];

    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::Undecided => "undecided",
            Self::NotReproduced => "not reproduced",
            Self::CannotJudge => "cannot judge",
            Self::Pending => "pending",
        }
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Reproduced => 4,
            Self::DirectionOnly => 3,
            Self::Undecided => 2,
            Self::NotReproduced => 1,
            Self::CannotJudge | Self::Pending => 0,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns whether a verdict is worse than the recorded one.
pub fn regressed(recorded: Verdict, now: Verdict) -> bool {
    now.rank() < recorded.rank()
}

/// A claim and its outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The claim's name.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// The paper's statement.
    pub paper: String,
    /// The measured value, with its unit: over several seeds the mean and half of its 95 % confidence interval. Empty
    /// if nothing was measured.
    pub measured: String,
    /// The outcome.
    pub verdict: Verdict,
    /// Number of seeds over which the claim was judged.
    pub seeds: usize,
    /// The reason for the outcome, where it needs one; else empty.
    pub note: String,
}

/// An error in a claim of a file.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ClaimError {
    /// The entry is not a valid claim.
    #[error("claim `{id}`: {reason}")]
    Form {
        /// The claim's name, or `?`.
        id: String,
        /// The error.
        reason: String,
    },
    /// One of its expressions is wrong.
    #[error("claim `{id}`, `{key}`: {error}")]
    Expression {
        /// The claim's name.
        id: String,
        /// The key of the expression.
        key: &'static str,
        /// The error and its location.
        error: ParseError,
    },
}

impl ClaimError {
    /// The same in a sentence, without the text of an expression.
    pub fn brief(&self) -> String {
        match self {
            Self::Form { .. } => self.to_string(),
            Self::Expression { id, key, error } => format!("claim `{id}`, `{key}`: {}", error.message),
        }
    }

    /// The wrong expression, if one is.
    pub fn expression(&self) -> Option<&ParseError> {
        match self {
            Self::Form { .. } => None,
            Self::Expression { error, .. } => Some(error),
        }
    }
}

/// A claim as in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    id: String,
    text: String,
    paper: serde_json::Value,
    check: Option<String>,
    direction: Option<String>,
    pending: Option<String>,
    measure: Option<String>,
    #[serde(default)]
    recorded: Ordered<String>,
}

impl Claim {
    /// A claim from a table of a file, as JSON.
    ///
    /// # Errors
    /// When a key is missing, unknown or of the wrong type, or an expression is wrong.
    pub fn from_json(value: &serde_json::Value) -> Result<Self, ClaimError> {
        let id = value.get("id").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
        let form = |reason: String| ClaimError::Form { id: id.clone(), reason };
        let raw: RawClaim = serde_path_to_error::deserialize(value).map_err(|error| form(error.to_string()))?;
        let paper = match &raw.paper {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            _ => return Err(form("`paper` is what the paper states: a number or a text".into())),
        };
        let wrong = |key: &'static str| {
            let id = id.clone();
            move |error| ClaimError::Expression { id, key, error }
        };
        if raw.check.is_none() && raw.pending.is_none() {
            return Err(form("needs a `check`, or the reason why it is `pending`".into()));
        }
        let verdict = |(scale, name): &(String, String)| {
            let known = || Verdict::ALL.map(Verdict::name).join(", ");
            let found = Verdict::from_name(name).map(|verdict| (scale.clone(), verdict));
            found.ok_or_else(|| form(format!("`recorded.{scale}`: no verdict `{name}`; there are: {}", known())))
        };
        Ok(Self {
            text: raw.text,
            paper,
            check: raw.check.as_deref().map(check).transpose().map_err(wrong("check"))?,
            direction: raw.direction.as_deref().map(check).transpose().map_err(wrong("direction"))?,
            measure: raw.measure.as_deref().map(expression).transpose().map_err(wrong("measure"))?,
            pending: raw.pending,
            recorded: Ordered(raw.recorded.0.iter().map(verdict).collect::<Result<_, _>>()?),
            id: raw.id,
        })
    }

    /// The ids of all runs that it speaks of.
    pub fn runs(&self) -> BTreeSet<&str> {
        let mut runs = BTreeSet::new();
        for metric in self.metrics() {
            runs.insert(metric.run.as_str());
        }
        runs
    }

    fn metrics(&self) -> Vec<&Metric> {
        let checks = self.check.iter().chain(&self.direction).flat_map(|check| &check.all);
        let sides = checks.flat_map(|comparison| [&comparison.left, &comparison.right]);
        let mut metrics = Vec::new();
        for expr in sides.chain(&self.measure) {
            expr.each_metric(&mut |metric| {
                if !metrics.contains(&metric) {
                    metrics.push(metric);
                }
            });
        }
        metrics
    }

    /// Judges the claim by `seeds`, the same runs once for each seed; at least one. A single seed has no interval, so
    /// its values decide.
    pub fn judge(&self, seeds: &[Runs<'_>]) -> Judgement {
        debug_assert!(!seeds.is_empty());
        let judgement = |verdict, measured, note| Judgement {
            id: self.id.clone(),
            text: self.text.clone(),
            paper: self.paper.clone(),
            measured,
            verdict,
            seeds: seeds.len(),
            note,
        };
        let check = match (&self.pending, &self.check) {
            (Some(reason), _) => return judgement(Verdict::Pending, String::new(), reason.clone()),
            (None, None) => return judgement(Verdict::Pending, String::new(), "it has no check".into()),
            (None, Some(check)) => check,
        };
        let measured = match &self.measure {
            Some(expr) => mean(expr, seeds).map(|mean| self.shown(mean)),
            None => sides(check, seeds),
        };
        let mut notes: Vec<String> = Vec::new();
        for note in self.metrics().iter().flat_map(|metric| seeds.iter().filter_map(|runs| eval::caveat(metric, runs)))
        {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if self.is_deterministic(seeds) {
            notes.push("deterministic: no seed changes these runs".to_owned());
        }
        match (self.verdict(check, seeds), measured) {
            (Ok(verdict), Ok(measured)) => judgement(verdict, measured, notes.join("; ")),
            (Ok(verdict), Err(error)) => {
                notes.push(error.to_string());
                judgement(verdict, String::new(), notes.join("; "))
            }
            (Err(error), measured) => judgement(Verdict::CannotJudge, measured.unwrap_or_default(), error.to_string()),
        }
    }

    /// Returns whether seeds change nothing of all runs that the claim is about.
    fn is_deterministic(&self, seeds: &[Runs<'_>]) -> bool {
        let runs = self.runs();
        let same = |run: &&str| is_deterministic(seeds.iter().filter_map(|runs| runs.summary(run)));
        !runs.is_empty() && runs.iter().all(same)
    }

    fn verdict(&self, check: &Check, seeds: &[Runs<'_>]) -> Result<Verdict, EvalError> {
        let direction = self.direction.as_ref().map(|direction| with_magnitude(direction, check));
        let direction = || direction.as_ref().map(|direction| answer(direction, seeds)).transpose();
        Ok(match answer(check, seeds)? {
            SeedDecision::Holds => Verdict::Reproduced,
            SeedDecision::Undecided => match direction()? {
                Some(SeedDecision::Fails) => Verdict::NotReproduced,
                Some(SeedDecision::Holds | SeedDecision::Undecided) | None => Verdict::Undecided,
            },
            SeedDecision::Fails => match direction()? {
                Some(SeedDecision::Holds) => Verdict::DirectionOnly,
                Some(SeedDecision::Undecided) => Verdict::Undecided,
                Some(SeedDecision::Fails) | None => Verdict::NotReproduced,
            },
        })
    }

    /// Formats a mean, in per cent if the paper's statement is in per cent.
    fn shown(&self, mean: Mean) -> String {
        let mean = without_zero_margin(mean);
        if self.paper.contains('%') { mean.in_percent() } else { mean.to_string() }
    }
}

/// The values of both sides of each comparison; of one side if the other is constant.
fn sides(check: &Check, seeds: &[Runs<'_>]) -> Result<String, EvalError> {
    let one = |comparison: &Comparison| {
        let (left, right) =
            (without_zero_margin(mean(&comparison.left, seeds)?), without_zero_margin(mean(&comparison.right, seeds)?));
        Ok(match (comparison.left.is_constant(), comparison.right.is_constant()) {
            (false, true) => left.to_string(),
            (true, false) => right.to_string(),
            _ => format!("{left} against {right}"),
        })
    };
    Ok(check.all.iter().map(one).collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Leaves out an interval of zero: all seeds have one value.
fn without_zero_margin(mean: Mean) -> Mean {
    Mean { margin: mean.margin.filter(|margin| *margin > 0.0), ..mean }
}

/// The key of a grid that means the seed.
pub const SEED: &str = "seed";

/// Returns the name of a run in claims: its ID without the part that names its seed.
pub fn name_in_claims(id: &str, seed: u64) -> String {
    id.split(',').filter(|part| *part != format!("{SEED}={seed}")).collect::<Vec<_>>().join(",")
}
