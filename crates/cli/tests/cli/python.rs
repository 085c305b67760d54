//! Commands that are in the Python package: Python is started with what was given, and what it lacks is said.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testing::Bounded;

use crate::support::{Ran, Scratch};

/// A `python3` that does what the script says.
fn with_python(scratch: &Scratch, script: &str) -> String {
    let folder = scratch.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("python3");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder.display().to_string()
}

/// Runs a line with programs of one folder alone.
fn narrows(scratch: &Scratch, path: &str, line: &str) -> Ran {
    Ran::new(line, &scratch.command(line.split(' ')).env("PATH", path).finish())
}

#[test]
fn what_is_missing_is_said() {
    let scratch = Scratch::new("python-missing");
    let empty = scratch.path("empty").display().to_string();
    narrows(&scratch, &empty, "plot out/x --y fct.p99 -o a.pdf")
        .fails(2, &["`narrows plot` is in the Python package", "`python3` cannot be started", "pip install"]);
    // A shell in place of Python says what Python would: its third word.
    let path = with_python(&scratch, "echo \"$3\" >&2; exit 2");
    narrows(&scratch, &path, "tune a.toml").fails(2, &["`narrows tune`", "`python3` does not have it"]);
}

#[test]
fn words_and_exit_codes_go_through() {
    let scratch = Scratch::new("python-words");
    let path = with_python(&scratch, "shift 3; for word in \"$@\"; do echo \"<$word>\"; done; echo wrong >&2; exit 3");
    let done = narrows(&scratch, &path, "plot out/x --y p99(slowdown) --help -o a.pdf");
    assert_eq!(done.code, 3);
    assert_eq!(done.out, "<plot>\n<out/x>\n<--y>\n<p99(slowdown)>\n<--help>\n<-o>\n<a.pdf>\n");
    assert_eq!(done.err, "wrong\n");
    let sweep = "sweep a.toml --ray local --over port.buffer=1MB,2MB --seeds 3 --set topology.k=4 --out o --scheme uno --checked";
    let done = narrows(&scratch, &path, sweep);
    let words: Vec<&str> = done.out.lines().map(|line| line.trim_matches(['<', '>'])).collect();
    assert_eq!(
        words.join(" "),
        "sweep a.toml --scheme uno --over port.buffer=1MB,2MB --seeds 3 --ray local --set topology.k=4 --out o --checked"
    );
    // What was started is the process itself: whoever signals it signals Python.
    let path = with_python(&scratch, "kill -TERM $$");
    assert_eq!(narrows(&scratch, &path, "tune a.toml").code, 128 + 15);
    scratch.narrows("sweep a.toml --ray local --shard 1/2").fails(2, &["cannot be used with"]);
}
