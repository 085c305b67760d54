//! Reports a test that this machine cannot run. Included by the tests of crates below `cli`, which has its own.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Reports a skip: a line on standard error, and one in the file that `NARROWS_SKIPPED` names, from which `make test`
/// counts them. `test` is the test's own name.
pub(crate) fn skipped(test: &str, reason: &str) {
    let reason = reason.replace('\n', " ");
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("NARROWS_SKIPPED") {
        // One write, so that lines of parallel tests do not mix.
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("NARROWS_SKIPPED={}: {error}", path.display()));
    }
}
