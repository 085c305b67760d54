//! Scenarios: from text, checked.

use std::borrow::Cow;
use std::path::Path;

use pyo3::prelude::*;
use scenario::Overrides;
use study::vary::SweepOptions;

use crate::error;

/// The JSON Schema of scenario files.
#[pyfunction]
pub(crate) fn schema() -> String {
    scenario::json_schema().to_string()
}

/// A scenario file's keys and values as JSON, without defaults. `origin` is the file that errors name.
#[pyfunction]
pub(crate) fn as_written(py: Python<'_>, text: &str, origin: &str) -> PyResult<String> {
    match scenario::as_written(text, origin) {
        Ok(root) => Ok(root.to_string()),
        Err(error) => Err(error::of_scenario(py, &error)),
    }
}

/// The text of a scenario file.
#[pyfunction]
pub(crate) fn text_of(py: Python<'_>, path: &str) -> PyResult<String> {
    scenario::text_of(Path::new(path)).map_err(|error| error::of_scenario(py, &error))
}

/// A number of a scenario in its base unit, and the word for that unit: `2ms` is 2e6 `ns`, `80%` is 0.8 without a unit. None
/// for other text.
#[pyfunction]
pub(crate) fn amount(text: &str) -> Option<(f64, &'static str)> {
    scenario::amount(text)
}

/// The name that was perhaps meant, if one is near.
#[pyfunction]
pub(crate) fn nearest(name: &str, names: Vec<String>) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    scenario::nearest(name, &names).map(str::to_owned)
}

/// The name among `names` that replaced a scenario file's former key.
#[pyfunction]
pub(crate) fn replacement(key: &str, names: Vec<String>) -> Option<&'static str> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    scenario::replacement(key, &names)
}

/// The scenario file, as text, that a JSON object represents.
#[pyfunction]
pub(crate) fn toml_of(json: &str) -> PyResult<String> {
    let root =
        serde_json::from_str(json).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    Ok(scenario::toml_of(&root))
}

/// A range of a scenario's values, such as `100KB..2MB`. Numbers are in base units: ps, bytes, bits a second.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Ends {
    range: scenario::NumberRange,
}

#[pymethods]
impl Ends {
    /// Reads a range.
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let read = scenario::argument::range("range", text);
        read.map(|range| Self { range }).map_err(|error| error::of_scenario(py, &error))
    }

    /// The lower end.
    #[getter]
    fn low(&self) -> f64 {
        self.range.low()
    }

    /// The upper end.
    #[getter]
    fn high(&self) -> f64 {
        self.range.high()
    }

    /// Returns whether only whole numbers lie between the ends.
    #[getter]
    fn is_whole(&self) -> bool {
        self.range.is_whole()
    }

    /// The value of a scenario nearest to a number, as JSON.
    fn value(&self, number: f64) -> String {
        self.range.value(number).to_string()
    }
}

/// A scenario, read and resolved, with all that is varied.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Scenario {
    pub(crate) scenario: scenario::Scenario,
}

#[pymethods]
impl Scenario {
    /// Reads a text. `origin` is the file that it came from: errors name it, and files that the scenario names are found
    /// next to it. `set` and `vary` hold keys and values as in TOML.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "all of them by name, from one caller")]
    #[pyo3(signature = (text, origin, *, set, seed, scale, vary, seeds))]
    fn new(
        py: Python<'_>,
        text: &str,
        origin: &str,
        set: Vec<(String, String)>,
        seed: Option<u64>,
        scale: Option<String>,
        vary: Vec<(String, String)>,
        seeds: Option<u64>,
    ) -> PyResult<Self> {
        let overrides = Overrides { set, seed, scale, ..Overrides::default() };
        let load = |overrides: &Overrides| Ok::<_, study::Error>(scenario::parse(text, origin, overrides)?);
        let scenario = py.detach(|| SweepOptions { over: vary, seeds }.scenario(origin, overrides, load));
        scenario.map(|scenario| Self { scenario }).map_err(|error| error::of_study(py, &error))
    }

    /// The scenario's name.
    #[getter]
    fn name(&self) -> String {
        self.scenario.config.name.to_string()
    }

    /// The scenario as a file, every constant default filled in; with a grid, its first point.
    fn resolved(&self) -> String {
        self.scenario.resolved_toml()
    }

    /// The names of its runs.
    fn runs(&self) -> Vec<String> {
        self.scenario.runs().into_iter().map(|run| run.id).collect()
    }

    /// The paths and contents of the files that it named and that were read so far: all of them after `check`.
    fn inputs(&self) -> Vec<(String, Cow<'static, [u8]>)> {
        let inputs = self.scenario.inputs().into_iter();
        inputs.map(|input| (input.path.display().to_string(), Cow::Owned(input.content.bytes().to_vec()))).collect()
    }

    /// Builds every run without running it, and returns the warnings of each.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<String>)>> {
        let report = py.detach(|| scenario::check(&self.scenario)).map_err(|error| error::of_scenario(py, &error))?;
        Ok(report.runs.into_iter().map(|run| (run.id, run.warnings)).collect())
    }
}
