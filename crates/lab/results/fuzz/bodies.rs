//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

use std::fmt::{Debug, Display};

use results::claims::{MAX, ParseError, check, expression};
use results::fuzzing;

/// A summary, a manifest of either kind, a plan.
pub(crate) fn json(bytes: &[u8]) {
    fuzzing::json(bytes);
}

/// Each of the tables.
pub(crate) fn table(bytes: &[u8]) {
    fuzzing::table(bytes);
}

/// Checks that a parsed claim can be written and reads back as itself.
pub(crate) fn claim(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    reads_back(&text, check);
    reads_back(&text, expression);
}

fn reads_back<T: PartialEq + Debug + Display>(text: &str, read: fn(&str) -> Result<T, ParseError>) {
    match read(text) {
        Ok(claim) => {
            let written = claim.to_string();
            // The printed form has more spaces, and may exceed the maximum input length.
            if written.chars().count() <= MAX {
                assert_eq!(read(&written).as_ref(), Ok(&claim), "{written}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
