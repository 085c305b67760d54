//! The native part of the Python package `narrows`: scenarios, studies and tables, and the command itself.
//!
//! This crate is thin. The other crates define the meaning of a scenario, the way runs are done and kept, and the messages on
//! errors. The interface that people see in Python is written in Python.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are extracted into values")]

mod error;
mod import;
mod job;
mod law;
mod metrics;
mod numbers;
mod scenario;
mod tables;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _narrows {
    use super::{Bound, PyAnyMethods, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use super::import::import_files;
    #[pymodule_export]
    use super::job::run_study;
    #[pymodule_export]
    use super::law::{Ack, Loss, PathInfo, Timeout};
    #[pymodule_export]
    use super::metrics::{Metrics, check_reference, drawing, pooled, report, score};
    #[pymodule_export]
    use super::numbers::{jobs, summaries};
    #[pymodule_export]
    use super::scenario::{Ends, Scenario, amount, as_written, nearest, replacement, schema, text_of, toml_of};
    #[pymodule_export]
    use super::tables::Tables;
    #[pymodule_export]
    use super::{mean, new_law, python_command, run_command};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let program = ::study::program();
        module.add("__version__", program.version)?;
        module.add("__engine__", program.engine)?;
        let py = module.py();
        // An attribute that an error lacks is None, and not an error of its own.
        let scenario = py.get_type::<super::error::ScenarioError>();
        for name in ["file", "line", "column"] {
            scenario.setattr(name, py.None())?;
        }
        scenario.setattr("help", "")?;
        let study = py.get_type::<super::error::StudyError>();
        study.setattr("missing", Vec::<String>::new())?;
        let law = py.get_type::<super::law::LawError>();
        for name in ["law", "method", "flow", "time_ps"] {
            law.setattr(name, py.None())?;
        }
        module.add("LawError", law)?;
        module.add("ScenarioError", scenario)?;
        module.add("StudyError", study)
    }
}

/// Runs the command with the words of a command line, and returns the exit code. `again` are the words that start it again.
#[pyfunction]
fn run_command(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| command::run(words, again))
}

/// Returns the name and the options, as JSON, of a command line that this package runs; None for another command, for a request
/// for help, and for a wrong command line.
#[pyfunction]
fn python_command(words: Vec<OsString>) -> Option<(&'static str, String)> {
    command::python_command(words).map(|it| (it.name, it.options))
}

/// Begins a law in Rust that exists in Python, in a checkout of Narrows, and returns the files that are new. `draft` is the law
/// as JSON.
#[pyfunction]
fn new_law(py: Python<'_>, name: &str, checkout: PathBuf, draft: &str) -> PyResult<Vec<String>> {
    py.detach(|| command::new_law(name, &checkout, draft)).map_err(|message| error::invalid_request(py, &message))
}

/// The mean of some values and the margin of its confidence interval of 95 % (Student's t), none for fewer than two.
#[pyfunction]
fn mean(values: Vec<f64>) -> Option<(f64, Option<f64>)> {
    results::Mean::of_numbers(&values).map(|mean| (mean.mean.amount, mean.margin))
}
