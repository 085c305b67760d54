//! Suspected causes: a claim that is not reproduced, judged again with one thing of the set-up changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::seeds::{SeedDecision, answer, shortfall};
use super::{Claim, EvalError, Judgement, Runs, Verdict};
use crate::mean::Mean;

/// Minimum share of a shortfall that a change must remove to count as part of its cause.
const MIN_SHARE: f64 = 0.2;

/// The outcome of a claim's trial: its judgement with the change, against that without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TrialOutcome {
    /// With the change the claim is reproduced.
    #[serde(rename = "shown")]
    Shown,
    /// With the change the claim is not reproduced, but its direction now is, or each failed comparison lost at least a
    /// fifth of its shortfall, by the 95 % confidence interval over the seeds.
    #[serde(rename = "in part")]
    InPart,
    /// With the change the seeds do not decide the claim.
    #[serde(rename = "undecided")]
    Undecided,
    /// None of these: the suspected cause does not explain the claim.
    #[serde(rename = "refuted")]
    Refuted,
    /// The claim is reproduced without the change.
    #[serde(rename = "nothing to explain")]
    Needless,
    /// One of the two judgements has no value.
    #[serde(rename = "cannot judge")]
    CannotJudge,
}

impl TrialOutcome {
    /// All of them, the strongest first.
    pub const ALL: [Self; 6] =
        [Self::Shown, Self::InPart, Self::Undecided, Self::Refuted, Self::Needless, Self::CannotJudge];

    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::InPart => "in part",
            Self::Undecided => "undecided",
            Self::Refuted => "refuted",
            Self::Needless => "nothing to explain",
            Self::CannotJudge => "cannot judge",
        }
    }

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

impl fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A claim, judged with and without the change of a suspected cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SuspectTrial {
    /// The name of the suspected cause.
    pub cause: String,
    /// The judgement of the runs as they are.
    pub before: Judgement,
    /// The judgement of the runs with the change.
    pub after: Judgement,
    /// The outcome.
    pub outcome: TrialOutcome,
    /// Share of the shortfall that the change removes, 0 to 1: the least over the comparisons that failed. None where no comparison
    /// failed, or one has no measure.
    pub removed: Option<f64>,
}

/// Tries a suspected cause: judges the claim by the runs as they are and by those with the change. Both have the same seeds, in
/// the same order.
pub fn tried(cause: &str, claim: &Claim, before: &[Runs<'_>], after: &[Runs<'_>]) -> SuspectTrial {
    let (judged, rejudged) = (claim.judge(before), claim.judge(after));
    let removed = removed(claim, before, after).ok().flatten();
    let is_partial = removed.is_some_and(|part| part.is_significant && part.share >= MIN_SHARE);
    let outcome = match (judged.verdict, rejudged.verdict) {
        (Verdict::CannotJudge | Verdict::Pending, _) | (_, Verdict::CannotJudge | Verdict::Pending) => {
            TrialOutcome::CannotJudge
        }
        (Verdict::Reproduced, _) => TrialOutcome::Needless,
        (_, Verdict::Reproduced) => TrialOutcome::Shown,
        (_, Verdict::Undecided) => TrialOutcome::Undecided,
        (Verdict::NotReproduced, Verdict::DirectionOnly) => TrialOutcome::InPart,
        _ if is_partial => TrialOutcome::InPart,
        _ => TrialOutcome::Refuted,
    };
    let removed = removed.map(|part| part.share.clamp(0.0, 1.0));
    SuspectTrial { cause: cause.to_owned(), before: judged, after: rejudged, outcome, removed }
}

/// A part of a claim's shortfall.
#[derive(Clone, Copy, Debug)]
struct Removed {
    /// Share of the shortfall, the least over the comparisons that failed.
    share: f64,
    /// In each comparison that failed, the confidence interval of the change is entirely on the side of the claim.
    is_significant: bool,
}

/// Returns the removed part of a claim's shortfall; none where no comparison failed, or one has no measure.
fn removed(claim: &Claim, before: &[Runs<'_>], after: &[Runs<'_>]) -> Result<Option<Removed>, EvalError> {
    let Some(check) = &claim.check else { return Ok(None) };
    let mut smallest: Option<Removed> = None;
    for comparison in &check.all {
        let single = super::Check { all: vec![comparison.clone()] };
        if answer(&single, before)? != SeedDecision::Fails {
            continue;
        }
        let (Some(shortfall_before), Some(shortfall_after)) =
            (shortfall(comparison, before)?, shortfall(comparison, after)?)
        else {
            return Ok(None);
        };
        let removed: Vec<f64> =
            shortfall_before.iter().zip(&shortfall_after).map(|(before, after)| before - after).collect();
        let (Some(shortfall_before), Some(removed)) = (Mean::of_numbers(&shortfall_before), Mean::of_numbers(&removed))
        else {
            return Ok(None);
        };
        let share = removed.mean.amount / shortfall_before.mean.amount;
        let is_significant = removed.mean.amount - removed.margin.unwrap_or(0.0) > 0.0;
        smallest = Some(smallest.map_or(Removed { share, is_significant }, |smallest| Removed {
            share: share.min(smallest.share),
            is_significant: is_significant && smallest.is_significant,
        }));
    }
    Ok(smallest)
}
