//! A directory that is moved under a run, a dead process's lock, and a file system without locks.

use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testing::{Bounded, Process};

use testing::skipped_without;

use crate::support::{ProgramRun, Scratch, grid_of, wait_for};

/// Three runs; the second is long enough to be stopped in.
const SIZES: &str = "\"4KiB\", \"256MiB\", \"8KiB\"";

const LINE: &str = "run grid.toml --out out --threads 1";

/// Starts the grid, and stops it in its second run.
fn stopped_in_the_second(scratch: &Scratch) -> Process {
    scratch.write("grid.toml", &grid_of(SIZES));
    let mut child = scratch.command(LINE.split(' ')).piped();
    wait_for_the_first_run(scratch, &mut child);
    signal(&child, Signal::SIGSTOP);
    assert!(!scratch.path("out/manifest.json").exists(), "the set became whole too early");
    child
}

/// Waits until the grid's first run is whole.
fn wait_for_the_first_run(scratch: &Scratch, child: &mut Process) {
    let manifest = scratch.path("out/.next/runs/dctcp,traffic.0.size=4KiB/manifest.json");
    wait_for(child, "the first run is whole", || manifest.exists());
}

fn signal(child: &Process, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn end(mut child: Process) -> ProgramRun {
    signal(&child, Signal::SIGCONT);
    ProgramRun::new(LINE, &child.output())
}

#[test]
fn nothing_is_written_to_a_moved_directory() {
    for replaced in [false, true] {
        let scratch = Scratch::new("moved");
        let child = stopped_in_the_second(&scratch);
        fs::rename(scratch.path("out"), scratch.path("moved")).unwrap();
        if replaced {
            scratch.write("out/theirs.txt", "mine");
            fs::create_dir(scratch.path("out/.next")).unwrap();
        }
        let ran =
            end(child).fails(2, &["error: `out` was moved or replaced", "nothing more is written there", "help: "]);
        assert!(!ran.err.contains("goes on from there"), "{ran}");
        assert_eq!(scratch.files("out"), if replaced { vec!["theirs.txt"] } else { vec![] }, "{ran}");
        assert_eq!(scratch.path("out").exists(), replaced);
        // Finished runs are where they were written, and are continued from there.
        scratch.narrows("report moved --out page.html").ok().reports(&["`moved` is unfinished: 1 of 3 runs"]);
        scratch.narrows("run grid.toml --out moved").ok().reports(&["1 of 3 runs finished before: kept"]);
    }
}

#[test]
fn removed_lock_is_an_error() {
    let scratch = Scratch::new("removed");
    let child = stopped_in_the_second(&scratch);
    fs::remove_file(scratch.path("out/.narrows.lock")).unwrap();
    end(child).fails(2, &["`out` was moved or replaced, or its lock was removed"]);
    scratch.narrows(LINE).ok().reports(&["1 of 3 runs finished before: kept"]);
}

#[test]
fn report_names_the_stale_lock_it_takes_over() {
    let scratch = Scratch::new("stale");
    scratch.write("one.toml", grid_of(SIZES).split("[grid]").next().unwrap());
    scratch.narrows("run one.toml --quiet --out out").ok();
    let lock = scratch.write("out/.narrows.lock", "process 4194305 on here: narrows run x.toml\n");
    // Elsewhere it writes without a lock.
    assert_eq!(scratch.narrows("report out --out page.html").ok().err, "");
    assert!(lock.exists());
    let dead = "`out` was held by process 4194305 on here: narrows run x.toml, which has ended: taken over";
    scratch.narrows("report out").ok().reports(&[dead]);
    assert!(!lock.exists());
    assert_eq!(scratch.narrows("report out").ok().err, "");
    // It does not take a directory that has no results.
    fs::create_dir(scratch.path("none")).unwrap();
    scratch.narrows("report none").fails(2, &["`none` is not a directory of Narrows results"]);
    assert_eq!(scratch.files("none"), [""; 0]);
}

/// While a run holds the directory, a report of the whole set there is refused, and one elsewhere is written.
#[test]
fn report_of_a_locked_directory_is_refused() {
    let scratch = Scratch::new("held");
    scratch.write("one.toml", grid_of(SIZES).split("[grid]").next().unwrap());
    scratch.narrows("run one.toml --quiet --out out").ok();
    let mut child = stopped_next_to_a_complete_set(&scratch);
    let before = scratch.read("out/report.html");
    scratch.narrows("report out").fails(2, &["`out` is in use by process ", "help: wait until it ends"]);
    assert_eq!(scratch.read("out/report.html"), before);
    scratch.narrows("report out --out page.html").ok().reports(&["these are the last complete results"]);
    child.kill();
}

/// Starts the grid where a whole set lies, and stops it in its second run.
fn stopped_next_to_a_complete_set(scratch: &Scratch) -> Process {
    scratch.write("grid.toml", &grid_of(SIZES));
    let mut command = scratch.command(LINE.split(' ').chain(["--force"]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).start();
    wait_for_the_first_run(scratch, &mut child);
    signal(&child, Signal::SIGSTOP);
    child
}

/// `flock` as on a file system without locks.
const NO_LOCKS: &str = "#include <errno.h>\nint flock(int f, int o) { (void)f; (void)o; errno = ENOLCK; return -1; }\n";

#[test]
fn a_file_system_without_locks() {
    let scratch = Scratch::new("no-locks");
    scratch.write("one.toml", grid_of(SIZES).split("[grid]").next().unwrap());
    let source = scratch.write("no_locks.c", NO_LOCKS);
    let library = scratch.path("no_locks.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).try_finish();
    if !compiled.is_ok_and(|compiled| compiled.status.success()) {
        return skipped_without("a_file_system_without_locks", "C compiler");
    }
    let without = |line: &str| {
        let output = scratch.command(line.split(' ')).env("LD_PRELOAD", &library).finish();
        ProgramRun::new(line, &output)
    };
    let line = "run one.toml --quiet --out out";
    let note = "`out` is on a file system without locks: the file `out/.narrows.lock` keeps other writers out";
    let ran = without(line).ok().reports(&[note, "remove it then"]);
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
    assert!(!scratch.path("out/.narrows.lock").exists());
    // Killed, it leaves the file, and no process takes it over.
    let mut child = {
        scratch.write("grid.toml", &grid_of(SIZES));
        let mut command = scratch.command(LINE.split(' ').chain(["--force"]));
        command.env("LD_PRELOAD", &library).stdout(Stdio::null()).stderr(Stdio::null()).start()
    };
    wait_for_the_first_run(&scratch, &mut child);
    let holder = format!("process {} on ", child.id());
    without(line).fails(2, &["`out` is in use by ", &holder]);
    child.kill();
    for ran in [without(line), scratch.narrows(line), scratch.narrows("report out")] {
        ran.fails(2, &["`out/.narrows.lock` names ", &holder, "remove that file if it has ended"]);
    }
    fs::remove_file(scratch.path("out/.narrows.lock")).unwrap();
    without(&format!("{line} --force")).ok().reports(&[note]);
}
