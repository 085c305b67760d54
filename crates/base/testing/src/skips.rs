//! Tests that cannot do their work on this machine.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// Names the file that collects skips. `make test` sets it, and prints their number last.
const FILE: &str = "NARROWS_SKIPPED";

/// Reports that a test is skipped, and why. The harness shows standard error only for failing tests, so the line also goes
/// to the file named by `NARROWS_SKIPPED`, if it is set.
///
/// # Panics
/// If that file cannot be written: an uncounted skip would go unnoticed.
pub fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    if let Some(file) = std::env::var_os(FILE) {
        append(file.as_ref(), test, why).unwrap_or_else(|error| panic!("{FILE}: {}: {error}", file.display()));
    }
}

/// Reports that a test is skipped because a program is not installed.
///
/// # Panics
/// With `CI=true` in the environment: CI installs every program that a test needs. And as [`skipped`] does.
pub fn skipped_without(test: &str, program: &str) {
    assert!(!is_ci(std::env::var_os("CI").as_deref()), "{test}: there is no {program}, and CI has every program");
    skipped(test, &format!("there is no {program}"));
}

fn is_ci(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| value == "true")
}

/// Reports that the running test is skipped. The harness names a test's thread after it, unless it runs tests one at a time.
pub fn skipped_here(why: &str) {
    skipped(thread::current().name().unwrap_or("a test"), why);
}

/// Appends one line with one write, so that lines of several processes do not mix.
fn append(file: &Path, test: &str, why: &str) -> io::Result<()> {
    let why: Vec<&str> = why.split_whitespace().collect();
    let line = format!("{test}: {}\n", why.join(" "));
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{append, is_ci};

    #[test]
    fn ci_variable_must_be_true() {
        assert!(is_ci(Some("true".as_ref())));
        assert!(!is_ci(Some("".as_ref())) && !is_ci(Some("1".as_ref())) && !is_ci(None));
    }

    #[test]
    fn each_skip_is_a_line() {
        let file = std::env::temp_dir().join(format!("narrows-skips-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        append(&file, "one", "no root").unwrap();
        append(&file, "two", "of\n  several lines").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(text, "one: no root\ntwo: of several lines\n");
    }
}
