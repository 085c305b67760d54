//! Functions for the fuzz targets alone.

use crate::Error;
use crate::error::Sources;
use crate::traffic::{FLOWS, read_list};

/// Reads a list of flows. Returns their number.
///
/// # Errors
/// When the text is not a list of flows.
pub fn flows(text: &str) -> Result<usize, Error> {
    let mut sources = Sources::default();
    let source = sources.add_file("flows.csv", text, FLOWS);
    read_list(text, source).map(|flows| flows.len()).map_err(|error| sources.explain(error))
}
