//! Commands in the Python package: Python is started with the arguments, and a missing part of it is reported.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testing::Bounded;

use crate::support::{ProgramRun, Scratch};

/// A `python3` that runs this script.
fn with_python(scratch: &Scratch, script: &str) -> String {
    let folder = scratch.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("python3");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder.display().to_string()
}

/// Runs a line with programs of one folder alone.
fn narrows(scratch: &Scratch, path: &str, line: &str) -> ProgramRun {
    ProgramRun::new(line, &scratch.command(line.split(' ')).env("PATH", path).finish())
}

#[test]
fn missing_python_parts_are_errors() {
    let scratch = Scratch::new("python-missing");
    let empty = scratch.path("empty").display().to_string();
    narrows(&scratch, &empty, "plot out/x --y fct.p99 -o a.pdf")
        .fails(2, &["`narrows plot`", "`python3`", "pip install"]);
    // A shell in place of Python prints the text that Python would print: its third argument.
    let path = with_python(&scratch, "echo \"$3\" >&2; exit 2");
    narrows(&scratch, &path, "tune a.toml").fails(2, &["`narrows tune`", "`python3`"]);
}

/// Help, completions and wrong options need no Python: the options are defined here.
#[test]
fn options_are_known_without_python() {
    let scratch = Scratch::new("python-help");
    let empty = scratch.path("empty").display().to_string();
    let plot = narrows(&scratch, &empty, "plot --help").ok();
    for option in ["--y <METRIC>", "--only <KEY=VALUE>", "--front", "- screen: ", "--out <FILE>"] {
        assert!(plot.out.contains(option), "{option}: {}", plot.out);
    }
    let tune = narrows(&scratch, &empty, "tune -h").ok();
    for option in ["--minimize <METRIC>", "--where <KEY=SPACE>", "--parallel <N>", "--held-out <SCENARIO>"] {
        assert!(tune.out.contains(option), "{option}: {}", tune.out);
    }
    narrows(&scratch, &empty, "plot out/x --y fct.p99").fails(2, &["--out <FILE>"]);
    narrows(&scratch, &empty, "tune a.toml --minimise fct.max").fails(2, &["--minimise", "--minimize"]);
    narrows(&scratch, &empty, "tune a.toml --trials 0").fails(2, &["--trials"]);
    let fish = narrows(&scratch, &empty, "completions fish").ok();
    assert!(
        fish.out.lines().any(|line| line.contains("subcommand tune") && line.contains("-l subject-to")),
        "{}",
        fish.out
    );
    narrows(&scratch, &empty, "man pages").ok();
    let page = fs::read_to_string(scratch.path("pages/narrows-tune.1")).unwrap();
    assert!(page.contains("subject\\-to"), "{page}");
}

#[test]
fn arguments_and_exit_codes_pass_through() {
    let scratch = Scratch::new("python-words");
    let path = with_python(&scratch, "shift 3; for word in \"$@\"; do echo \"<$word>\"; done; echo wrong >&2; exit 3");
    let ran = narrows(&scratch, &path, "plot out/x --y p99(slowdown) --y=fct.max -o a.pdf");
    assert_eq!(ran.code, 3);
    assert_eq!(ran.out, "<plot>\n<out/x>\n<--y>\n<p99(slowdown)>\n<--y=fct.max>\n<-o>\n<a.pdf>\n");
    assert_eq!(ran.err, "wrong\n");
    let sweep = "sweep a.toml --ray local --vary port.buffer=1MB,2MB --seeds 3 --set topology.k=4 --out o --scheme uno --check-invariants";
    let ran = narrows(&scratch, &path, sweep);
    let words: Vec<&str> = ran.out.lines().map(|line| line.trim_matches(['<', '>'])).collect();
    assert_eq!(
        words.join(" "),
        "sweep a.toml --scheme uno --vary port.buffer=1MB,2MB --seeds 3 --ray local --set topology.k=4 --out o --check-invariants"
    );
    // The started process is Python itself: a signal to it reaches Python.
    let path = with_python(&scratch, "kill -TERM $$");
    assert_eq!(narrows(&scratch, &path, "tune a.toml").code, 128 + 15);
    scratch.narrows("sweep a.toml --ray local --shard 1/2").fails(2, &["cannot be used with"]);
}
