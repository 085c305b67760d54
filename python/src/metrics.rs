//! Metrics of runs, in the language of papers' claims.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use results::Summary;
use results::claims::{EvalError, Runs, check_of_a_run, expression_of_a_run, holds, value};

/// A metric's values, why there is none, and the unit.
type Measured = (Vec<Option<f64>>, Vec<Option<String>>, String);

/// Summaries of runs, for metrics such as `inter.slowdown.p99` or `p99(inter.slowdown)`.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Metrics {
    summaries: Vec<Summary>,
}

#[pymethods]
impl Metrics {
    /// From the text of each run's summary.
    #[new]
    fn new(summaries: Vec<String>) -> PyResult<Self> {
        let read = |text: &String| serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()));
        Ok(Self { summaries: summaries.iter().map(read).collect::<PyResult<_>>()? })
    }

    /// A metric's value in each run, or why there is none; and the unit of all of them: `ns`, `bytes`, `bps`, or nothing for
    /// plain numbers.
    fn values(&self, metric: &str) -> PyResult<Measured> {
        let expr = expression_of_a_run(metric)
            .map_err(|error| PyValueError::new_err(format!("metric `{metric}`: {error}")))?;
        let (mut values, mut reasons, mut of_all) = (Vec::new(), Vec::new(), None);
        for summary in &self.summaries {
            match value(&expr, &Runs::alone(summary)) {
                Ok(value) => {
                    let (amount, unit) = value.as_in_tables();
                    of_all.get_or_insert(unit);
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
        Ok((values, reasons, of_all.unwrap_or_default()))
    }

    /// Whether comparisons such as `p99(intra.slowdown) <= 5` hold in each run; none where a metric has no value.
    fn hold(&self, check: &str) -> PyResult<Vec<Option<bool>>> {
        let check = check_of_a_run(check).map_err(|error| PyValueError::new_err(format!("`{check}`: {error}")))?;
        let of = |summary| match holds(&check, &Runs::alone(summary)) {
            Ok(holds) => Ok(Some(holds)),
            // That is so in every run.
            Err(error @ EvalError::Units { .. }) => Err(PyValueError::new_err(error.to_string())),
            Err(_) => Ok(None),
        };
        self.summaries.iter().map(of).collect()
    }
}
