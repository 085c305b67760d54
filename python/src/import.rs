//! Other programs' files as scenarios: `narrows import` for Python.

use std::ffi::OsString;

use command::{ImportError, ImportTo};
use pyo3::prelude::*;
use scenario::import::Base;

use crate::error;

/// Runs `narrows import` with the words of its command line. `base` is the text of the scenario that provides the network, and
/// its name in errors. With `written`, the scenario goes into the file of the option `-o`. Returns the scenario's text, the
/// name of the file with its flows, if it needs one, and notes on what differs from the original.
#[pyfunction]
#[pyo3(signature = (words, *, base, written))]
pub(crate) fn import_files(
    py: Python<'_>,
    words: Vec<OsString>,
    base: Option<(String, String)>,
    written: bool,
) -> PyResult<(String, Option<String>, Vec<String>)> {
    let to = if written { ImportTo::File } else { ImportTo::Memory };
    let imported = py.detach(|| {
        let base = base.as_ref().map(|(text, name)| Base { text, name });
        command::import(words, base.as_ref(), to)
    });
    match imported {
        Ok(imported) => Ok((imported.toml, imported.flows.map(|(name, _)| name), imported.notes)),
        Err(ImportError::Scenario(found)) => Err(error::of_scenario(py, &found)),
        // Without the hints of the command line at its end.
        Err(ImportError::Other(text)) => Err(error::invalid_request(py, text.split("\n\n").next().unwrap_or_default())),
    }
}
