//! Checks of a scenario without a simulation.

use crate::build::RunReport;
use crate::{Error, Scenario};

/// Result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckReport {
    /// By run.
    pub runs: Vec<CheckedRun>,
}

/// One run of a checked scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedRun {
    /// The run's identifier.
    pub id: String,
    /// Its scheme's name in the file.
    pub scheme: String,
    /// Its scheme's label.
    pub label: String,
    /// The run's point in the grid, as keys and values; empty without a grid.
    pub point: Vec<(String, String)>,
    /// Its size, its round trips, its load.
    pub report: RunReport,
    /// Warnings: odd settings that are not errors.
    pub warnings: Vec<String>,
    /// Notes that are no warnings.
    pub notes: Vec<String>,
}

/// Builds every run of a scenario, and simulates none.
///
/// # Errors
/// As [`crate::Run::build`].
pub fn check(scenario: &Scenario) -> Result<CheckReport, Error> {
    let checked = |run: crate::Run| {
        let built = run.build()?;
        let crate::Run { id, scheme, label, point, .. } = run;
        Ok(CheckedRun { id, scheme, label, point, report: built.report, warnings: built.warnings, notes: built.notes })
    };
    Ok(CheckReport { runs: scenario.runs().into_iter().map(checked).collect::<Result<_, _>>()? })
}
