//! Errors as Python's exceptions.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{create_exception, intern};

create_exception!(
    narrows,
    ScenarioError,
    PyValueError,
    "Something in a scenario, or in what was asked for, is wrong. `file`, `line` and `column` are the location, counted from 1, or \
     None; `help` states what would be accepted."
);
create_exception!(
    narrows,
    StudyError,
    PyRuntimeError,
    "Runs failed, or their results could not be written or read. `missing` has the names of runs that a merge lacks."
);

/// Exception for a scenario that is wrong.
pub(crate) fn of_scenario(py: Python<'_>, error: &scenario::Error) -> PyErr {
    let raised = ScenarioError::new_err(error.render(scenario::Colour::Plain));
    let value = raised.value(py);
    let (location, help) = match error {
        scenario::Error::Invalid(diagnostic) => (diagnostic.location.as_ref(), diagnostic.help.as_slice()),
        scenario::Error::Unreadable(_) => (None, &[][..]),
    };
    let set = [
        value.setattr(intern!(py, "file"), location.map(|location| location.file.clone())),
        value.setattr(intern!(py, "line"), location.map(scenario::SourceLocation::line)),
        value.setattr(intern!(py, "column"), location.map(scenario::SourceLocation::column)),
        value.setattr(intern!(py, "help"), help.join("\n")),
    ];
    set.into_iter().find_map(Result::err).unwrap_or(raised)
}

/// Exception for the error that ended a study.
pub(crate) fn of_study(py: Python<'_>, error: &study::Error) -> PyErr {
    match error {
        study::Error::Scenario(error) => of_scenario(py, error),
        study::Error::InvalidRequest { .. } => invalid_request(py, &error.to_string()),
        study::Error::Stopped { cause, .. } if matches!(**cause, study::Error::InvalidRequest { .. }) => {
            invalid_request(py, &error.to_string())
        }
        error => {
            let missing: &[String] = if let study::Error::Missing { runs } = error { runs } else { &[] };
            let raised = StudyError::new_err(error.to_string());
            let set = raised.value(py).setattr(intern!(py, "missing"), missing);
            set.err().unwrap_or(raised)
        }
    }
}

/// Exception for an invalid request, without a location in a file.
pub(crate) fn invalid_request(py: Python<'_>, text: &str) -> PyErr {
    let raised = ScenarioError::new_err(text.to_owned());
    match text.split_once("\nhelp: ") {
        None => raised,
        Some((_, help)) => raised.value(py).setattr(intern!(py, "help"), help).err().unwrap_or(raised),
    }
}
