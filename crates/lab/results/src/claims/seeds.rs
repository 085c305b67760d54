//! Judging over seeds. A claim's comparison is a difference between its two sides, measured once a seed. The 95 %
//! confidence interval of that difference (Student's t) decides.

use super::ast::{Check, Comparison, Order};
use super::eval::{EvalError, Runs, check_same_dimension, holds, value};
use crate::claims::DimensionedValue;
use crate::mean::Mean;

/// The decision of the seeds on a comparison or a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SeedDecision {
    /// The interval is on the side that is claimed.
    Holds,
    /// The interval reaches over both sides.
    Undecided,
    /// The interval is on the other side.
    Fails,
}

/// Returns whether a check holds: it does if each of its comparisons does.
///
/// # Errors
/// As [`value`], of any seed; also where an earlier comparison has already failed.
pub(super) fn answer(check: &Check, seeds: &[Runs<'_>]) -> Result<SeedDecision, EvalError> {
    let mut all = SeedDecision::Holds;
    for comparison in &check.all {
        let one = compared(comparison, seeds)?;
        all = match (all, one) {
            (SeedDecision::Fails, _) | (_, SeedDecision::Fails) => SeedDecision::Fails,
            (SeedDecision::Undecided, _) | (_, SeedDecision::Undecided) => SeedDecision::Undecided,
            (SeedDecision::Holds, SeedDecision::Holds) => SeedDecision::Holds,
        };
    }
    Ok(all)
}

/// Returns the margin by which a comparison holds in each seed, below zero where it does not. `==` and `!=` have no
/// such measure.
fn margins(comparison: &Comparison, seeds: &[Runs<'_>]) -> Result<Vec<Option<f64>>, EvalError> {
    let Comparison { left, order, right } = comparison;
    let mut by = Vec::with_capacity(seeds.len());
    for runs in seeds {
        let (a, b) = (value(left, runs)?, value(right, runs)?);
        check_same_dimension(left, a, "compared", right, b)?;
        by.push(match order {
            Order::AtMost | Order::Below => Some(b.amount - a.amount),
            Order::AtLeast | Order::Above => Some(a.amount - b.amount),
            Order::Equal | Order::Unequal => None,
        });
    }
    Ok(by)
}

/// Returns the shortfall of a comparison in each seed, relative to its constant side, else to its right side; below zero where it
/// holds. None where the comparison has no measure, a side is `never`, or a right side that is no constant is zero.
///
/// # Errors
/// As [`value`], of any seed.
pub(super) fn shortfall(comparison: &Comparison, seeds: &[Runs<'_>]) -> Result<Option<Vec<f64>>, EvalError> {
    let Comparison { left, right, .. } = comparison;
    let with = if left.is_constant() && !right.is_constant() { left } else { right };
    let mut shortfalls = Vec::with_capacity(seeds.len());
    for (by, runs) in margins(comparison, seeds)?.into_iter().zip(seeds) {
        let size = value(with, runs)?.amount.abs();
        // With a constant zero there is no share, and all seeds have the same unit anyway.
        let size = if size == 0.0 && with.is_constant() { 1.0 } else { size };
        shortfalls.push(by.map(|by| -by / size).filter(|shortfall| shortfall.is_finite()));
    }
    Ok(shortfalls.into_iter().collect())
}

fn compared(comparison: &Comparison, seeds: &[Runs<'_>]) -> Result<SeedDecision, EvalError> {
    let Comparison { order, .. } = comparison;
    let by = margins(comparison, seeds)?;
    // Counts that must be equal, and times that are `never`, have no mean difference: all seeds must agree.
    if by.iter().any(|by| by.is_none_or(|by| !by.is_finite())) {
        let check = Check { all: vec![comparison.clone()] };
        let outcomes = seeds.iter().map(|runs| holds(&check, runs)).collect::<Result<Vec<_>, _>>()?;
        return Ok(match outcomes.iter().filter(|holds| **holds).count() {
            count if count == outcomes.len() => SeedDecision::Holds,
            0 => SeedDecision::Fails,
            _ => SeedDecision::Undecided,
        });
    }
    let Some(mean) = Mean::of(&by.into_iter().map(|by| by.map(DimensionedValue::number)).collect::<Vec<_>>()) else {
        return Ok(SeedDecision::Undecided);
    };
    let margin = mean.margin.unwrap_or(0.0);
    let (low, high) = (mean.mean.amount - margin, mean.mean.amount + margin);
    let strict = matches!(order, Order::Below | Order::Above);
    let right_side = |bound: f64| if strict { bound > 0.0 } else { bound >= 0.0 };
    Ok(match (right_side(low), right_side(high)) {
        (true, _) => SeedDecision::Holds,
        (false, true) => SeedDecision::Undecided,
        (false, false) => SeedDecision::Fails,
    })
}

/// The mean of an expression over the seeds, with its interval.
///
/// # Errors
/// As [`value`], of any seed.
pub(super) fn mean(expr: &super::Expr, seeds: &[Runs<'_>]) -> Result<Mean, EvalError> {
    let values = seeds.iter().map(|runs| value(expr, runs).map(Some)).collect::<Result<Vec<_>, _>>()?;
    Mean::of(&values).ok_or_else(|| EvalError::NotANumber { expr: expr.to_string() })
}
