//! Metrics of runs, in the language of papers' claims.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use results::claims::{EvalError, Runs, check_of_a_run, expression_of_a_run, holds, value};
use results::panels::Drawing;
use results::score::{Reference, usual_cells};
use results::{RunResults, Summary, store};

/// Returns the drawing of a paper's figure, with all keys, as JSON: a list of panels, or the figure of the paper that is drawn
/// in this way. `json` is the content of `paper.plot` in the file `origin`.
#[pyfunction]
pub(crate) fn drawing(json: &str, origin: &str) -> PyResult<String> {
    let value_error = |error: String| PyValueError::new_err(format!("error: {origin}: {error}"));
    let json = serde_json::from_str(json).map_err(|error| value_error(error.to_string()))?;
    let serialised = match Drawing::from_json(&json).map_err(|error| value_error(error.to_string()))? {
        Drawing::Panels(panels) => serde_json::to_string(&panels),
        Drawing::As(name) => serde_json::to_string(&name),
    };
    serialised.map_err(|error| value_error(error.to_string()))
}

/// Loads the runs in a directory that have these names, in the order of the names.
fn named(directory: &Path, names: &[String]) -> PyResult<Vec<RunResults>> {
    let mut runs = store::load_set(directory).map_err(|error| PyValueError::new_err(error.to_string()))?.runs;
    let order: BTreeMap<&String, usize> = names.iter().zip(0..).collect();
    runs.retain(|run| order.contains_key(&run.manifest.run));
    runs.sort_by_key(|run| order[&run.manifest.run]);
    Ok(runs)
}

/// Slowdowns over all seeds of these runs in a directory together, as JSON.
#[pyfunction]
pub(crate) fn pooled(directory: PathBuf, names: Vec<String>) -> PyResult<String> {
    let runs = named(&directory, &names)?;
    serde_json::to_string(&results::pooled::pooled(&runs)).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The report of these runs in a directory, as a page.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, directory: PathBuf, names: Vec<String>) -> PyResult<String> {
    py.detach(|| Ok(study::page::of_results(&named(&directory, &names)?, Vec::new())))
}

fn read_reference(json: &str) -> PyResult<Reference> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("this is no reference: {error}")))
}

/// Refuses a reference in JSON that is damaged, or of another scenario than the one of this name.
#[pyfunction]
pub(crate) fn check_reference(json: &str, scenario: &str) -> PyResult<()> {
    read_reference(json)?.check(scenario).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The scores of the schemes of these runs in a directory, as JSON, against a reference in JSON; without one, against the
/// best of them except those of `not_in_baseline`, in these metrics or the usual ones. `without` lists what these leave out,
/// with reasons.
#[pyfunction]
#[pyo3(signature = (directory, names, metrics, reference = None, not_in_baseline = Vec::new()))]
pub(crate) fn score(
    directory: PathBuf,
    names: Vec<String>,
    mut metrics: Vec<String>,
    reference: Option<&str>,
    not_in_baseline: Vec<String>,
) -> PyResult<String> {
    let value_error = |error: String| PyValueError::new_err(error);
    let runs = named(&directory, &names)?;
    if reference.is_some() && !not_in_baseline.is_empty() {
        return Err(value_error("`not_in_baseline` leaves schemes out of results, not out of a file".to_owned()));
    }
    let mut without = Vec::new();
    if metrics.is_empty() && reference.is_none() {
        (metrics, without) = usual_cells(&runs);
    }
    let reference = match reference {
        Some(json) => read_reference(json)?,
        None => Reference::of(&metrics, &runs, &not_in_baseline).map_err(|error| value_error(error.to_string()))?,
    };
    let scores = reference.scores(&runs).map_err(|error| value_error(error.to_string()))?;
    serde_json::to_string(&serde_json::json!({ "reference": reference, "scores": scores, "without": without }))
        .map_err(|error| value_error(error.to_string()))
}

/// A metric's values, the reasons for those that are missing, and the unit.
type Measured = (Vec<Option<f64>>, Vec<Option<String>>, String);

/// Summaries of runs, for metrics such as `inter.slowdown.p99` or `p99(inter.slowdown)`, and the directories of their samples.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Metrics {
    summaries: Vec<Summary>,
    directories: Vec<PathBuf>,
}

#[pymethods]
impl Metrics {
    /// Makes metrics from the text of each run's summary and, for metrics of samples, the run's directory.
    #[new]
    #[pyo3(signature = (summaries, directories = Vec::new()))]
    fn new(summaries: Vec<String>, directories: Vec<PathBuf>) -> PyResult<Self> {
        let read = |text: &String| serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()));
        Ok(Self { summaries: summaries.iter().map(read).collect::<PyResult<_>>()?, directories })
    }

    /// Returns a metric's value in each run, or the reason for its lack; and the unit of all of them: `ns`, `bytes`, `bps`, or
    /// an empty text for plain numbers.
    fn values(&self, metric: &str) -> PyResult<Measured> {
        let expr = expression_of_a_run(metric)
            .map_err(|error| PyValueError::new_err(format!("metric `{metric}`: {error}")))?;
        let (mut values, mut reasons, mut unit_of_all) = (Vec::new(), Vec::new(), None);
        for found in known(self.each(expr.is_sampled(), |run| value(&expr, run))?)? {
            match found {
                Ok(value) => {
                    let (amount, unit) = value.as_in_tables();
                    unit_of_all.get_or_insert(unit);
                    values.push(Some(amount));
                    reasons.push(None);
                }
                Err(error @ EvalError::Units { .. }) => return Err(PyValueError::new_err(error.to_string())),
                Err(error) => {
                    values.push(None);
                    reasons.push(Some(error.to_string()));
                }
            }
        }
        Ok((values, reasons, unit_of_all.unwrap_or_default()))
    }

    /// Returns whether comparisons such as `p99(intra.slowdown) <= 5` hold in each run; none where a metric has no value.
    fn check(&self, check: &str) -> PyResult<Vec<Option<bool>>> {
        let check = check_of_a_run(check).map_err(|error| PyValueError::new_err(format!("`{check}`: {error}")))?;
        let sampled = check.all.iter().any(|it| it.left.is_sampled() || it.right.is_sampled());
        let of = |result: Result<bool, EvalError>| match result {
            Ok(holds) => Ok(Some(holds)),
            // That is so in every run.
            Err(error @ EvalError::Units { .. }) => Err(PyValueError::new_err(error.to_string())),
            Err(_) => Ok(None),
        };
        known(self.each(sampled, |run| holds(&check, run))?)?.into_iter().map(of).collect()
    }
}

/// Returns the results found. Refuses a class of flows that no run has: it is a mistake, and not a lack of values.
fn known<T>(found: Vec<Result<T, EvalError>>) -> PyResult<Vec<Result<T, EvalError>>> {
    match found.first() {
        Some(Err(error @ EvalError::NoClass { .. }))
            if found.iter().all(|it| matches!(it, Err(EvalError::NoClass { .. }))) =>
        {
            Err(PyValueError::new_err(error.to_string()))
        }
        _ => Ok(found),
    }
}

impl Metrics {
    /// Returns the result of `evaluate` for each run. One run's samples are in memory at a time.
    fn each<T>(&self, sampled: bool, evaluate: impl Fn(&Runs<'_>) -> T) -> PyResult<Vec<T>> {
        if !sampled || self.directories.is_empty() {
            return Ok(self.summaries.iter().map(|summary| evaluate(&Runs::of_summary(summary))).collect());
        }
        let of = |directory: &PathBuf| {
            let run = store::load(directory).map_err(|error| PyValueError::new_err(error.to_string()))?;
            Ok(evaluate(&Runs::named("", &run)))
        };
        self.directories.iter().map(of).collect()
    }
}
