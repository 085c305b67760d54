//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

use results::claims::{check, expression};
use results::fuzzing;

/// A summary, a manifest of either kind, a plan.
pub(crate) fn json(bytes: &[u8]) {
    fuzzing::json(bytes);
}

/// Each of the tables.
pub(crate) fn table(bytes: &[u8]) {
    fuzzing::table(bytes);
}

/// What is read can be written, and reads back as itself.
pub(crate) fn claim(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match check(&text) {
        Ok(read) => assert_eq!(check(&read.to_string()).as_ref(), Ok(&read), "{read}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match expression(&text) {
        Ok(read) => assert_eq!(expression(&read.to_string()).as_ref(), Ok(&read), "{read}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
