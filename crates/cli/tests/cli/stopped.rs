//! Runs that are interrupted or killed, and the runs that replace them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use testing::{Bounded, Process};

use crate::support::{ProgramRun, Scratch, code, grid_of, wait_for};

/// The first run of the grid ends at once; the second one runs longer than a test can wait.
const ENDLESS: &str = "\"4KiB\", \"9TiB\"";

/// The first run's directory before the set is complete.
const FIRST: &str = "out/.next/runs/dctcp,traffic.0.size=4KiB";

fn start(scratch: &Scratch, line: &str) -> Process {
    scratch.command(line.split(' ')).piped()
}

/// Waits until the first run is whole.
fn first_is_finished(scratch: &Scratch, child: &mut Process) {
    let manifest = scratch.path(FIRST).join("manifest.json");
    wait_for(child, "the first run is whole", || manifest.exists());
}

fn signal(child: &Process, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn end(mut child: Process, line: &str) -> ProgramRun {
    ProgramRun::new(line, &child.output())
}

fn partials(scratch: &Scratch) -> Vec<String> {
    scratch.tree().into_iter().filter(|path| path.contains(".partial")).collect()
}

#[test]
fn interrupt_keeps_finished_runs() {
    let scratch = Scratch::new("interrupt");
    scratch.write("endless.toml", &grid_of(ENDLESS));
    // Two threads are two runs at a time: then the endless one may come first.
    for threads in [1, 2] {
        if threads == 2 {
            scratch.write("endless.toml", &grid_of("\"9TiB\", \"4KiB\""));
        }
        let line = format!("run endless.toml --out out --threads {threads}");
        let _ = fs::remove_dir_all(scratch.path("out"));
        let mut child = start(&scratch, &line);
        first_is_finished(&scratch, &mut child);
        signal(&child, Signal::SIGINT);
        let kept = "interrupted: 1 of 2 runs were finished and are kept; the same command goes on from there";
        let printed = end(child, &line).fails(130, &[kept]);
        assert_eq!(printed.err.lines().count(), 1, "{printed}");
        assert_eq!(partials(&scratch), [""; 0]);
        assert!(!scratch.path("out/manifest.json").exists() && !scratch.path("out/.narrows.lock").exists());
        let lacks = "`out` is unfinished: 1 of 2 runs; missing: dctcp,traffic.0.size=9TiB; `narrows run endless.toml --out out` goes on with it";
        let report = scratch.narrows("report out").ok().reports(&[lacks]);
        assert!(report.out.contains("wrote out/.next/report.html"), "{report}");
        assert!(scratch.read("out/.next/report.html").contains("is unfinished: 1 of 2 runs"));
        scratch.narrows("report out --out page.html").ok().reports(&[lacks]);
        scratch.narrows("explain out").ok().reports(&[lacks]);
        scratch.narrows("score out --metric p50(all.slowdown)").ok().reports(&[lacks]);
        for line in ["score out", "score out --baseline out"] {
            let line = format!("{line} --metric p50(all.slowdown) --save-baseline ref.toml");
            scratch.narrows(&line).fails(2, &["not whole", "1 of 2 runs"]);
        }
        assert!(!scratch.path("ref.toml").exists());
        let compared = scratch.narrows("compare out out");
        assert_eq!(compared.code, 3, "{compared}");
        compared.reports(&["regression: `out` has 1 of 2 runs; missing: dctcp,traffic.0.size=9TiB"]);
        scratch.narrows(&format!("compare {FIRST} {FIRST}")).ok();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interrupted_reproduction_resumes() {
    let scratch = Scratch::new("interrupt");
    scratch.write("papers/tiny/fig1.toml", &format!("{}[scale.quick]\n", grid_of(ENDLESS)));
    let line = "reproduce tiny --seeds 1 --threads 1 --out out";
    for kept in [false, true] {
        let mut child = start(&scratch, line);
        let first = scratch.path("out/tiny/fig1").join(FIRST.trim_start_matches("out/")).join("manifest.json");
        let id = child.id();
        wait_for(&mut child, "it catches SIGINT and the first run is whole", || catches_sigint(id) && first.exists());
        signal(&child, Signal::SIGINT);
        let printed =
            end(child, line).fails(130, &["1 of 2 runs were finished and are kept; the same command goes on"]);
        // The second command may be stopped before it reports the finished runs that it found.
        assert!(kept || !printed.err.contains("finished before: kept"), "{printed}");
        assert_eq!(partials(&scratch), [""; 0]);
    }
}

/// Returns whether the program catches SIGINT by now.
#[cfg(target_os = "linux")]
fn catches_sigint(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return false };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (Signal::SIGINT as i32 - 1) & 1 == 1
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_of_the_only_run_leaves_nothing() {
    let scratch = Scratch::new("interrupt");
    scratch.write("alone.toml", &grid_of("\"9TiB\""));
    scratch.write("grid.toml", &grid_of("\"8TiB\", \"9TiB\""));
    let before = scratch.tree();
    for line in ["run alone.toml --out out", "run alone.toml --out out --json", "run grid.toml --out out --threads 1"] {
        let mut child = start(&scratch, line);
        let id = child.id();
        wait_for(&mut child, "it catches SIGINT", || catches_sigint(id));
        signal(&child, Signal::SIGINT);
        end(child, line).fails(130, &["interrupted: no run was finished"]);
        assert_eq!(scratch.tree(), before);
    }
}

#[test]
fn killed_grid_resumes_from_finished_runs() {
    let scratch = Scratch::new("kill");
    scratch.write("endless.toml", &grid_of(ENDLESS));
    for again in ["run tiny.toml --out out", "run alone.toml --out out"] {
        scratch.write("tiny.toml", &grid_of("\"4KiB\", \"8KiB\""));
        scratch.write("alone.toml", &grid_of("\"4KiB\""));
        let mut child = start(&scratch, "run endless.toml --out out --threads 1");
        first_is_finished(&scratch, &mut child);
        let holder = child.id();
        signal(&child, Signal::SIGKILL);
        assert_eq!(code(child.status()), 128 + Signal::SIGKILL as i32);
        scratch.narrows(&format!("compare {FIRST} {FIRST}")).ok();
        scratch.narrows("report out").ok().reports(&["is unfinished: 1 of 2 runs"]);
        // Leftovers of a writer that is killed while it writes.
        scratch.write("out/.next/runs/.partial-1-dctcp,traffic.0.size=9TiB/flows.parquet", "half");
        scratch.write("out/.next/plan.json.partial-1", "half");

        let ran = scratch.narrows(again).ok();
        let dead = format!("`out` was held by process {holder} on ");
        let ran = ran.reports(&[&dead, ": narrows run endless.toml --out out, which has ended: taken over"]);
        // The run of 4 KiB is the same in all three.
        ran.reports(&["1 of ", "--force"]);
        assert_eq!(partials(&scratch), [""; 0]);
        assert!(!scratch.path("out/.next").exists());
        scratch.narrows("report out").ok();
        fs::remove_dir_all(scratch.path("out")).unwrap();
    }
}

#[test]
fn a_directory_has_one_writer() {
    let scratch = Scratch::new("two");
    scratch.write("endless.toml", &grid_of(ENDLESS));
    scratch.write("papers/tiny/fig1.toml", &format!("{}[scale.quick]\n", grid_of(ENDLESS)));
    for line in ["run endless.toml --out out --threads 1", "reproduce tiny --threads 1 --out out"] {
        let mut child = start(&scratch, line);
        wait_for(&mut child, "the directory is locked", || {
            scratch.path("out/.narrows.lock").metadata().is_ok_and(|lock| lock.len() > 0)
        });
        // The ledger's journal is created and removed during a run.
        let is_permanent = |name: &String| !name.contains(".partial") && !name.ends_with("-journal");
        let before: Vec<String> = scratch.files("out").into_iter().filter(is_permanent).collect();
        let holder = format!("out` is in use by process {} on ", child.id());
        let refused =
            scratch.narrows(line).fails(2, &[&holder, ": narrows r", "help: wait until it ends, or name another"]);
        assert!(refused.err.starts_with("error: `"), "{refused}");
        assert!(before.iter().all(|name| scratch.files("out").contains(name)));
        child.kill();
        fs::remove_dir_all(scratch.path("out")).unwrap();
    }
}

#[test]
fn changed_files_rerun_only_changed_runs() {
    let scratch = Scratch::new("changed");
    let grid = grid_of("\"4KiB\", \"8KiB\"");
    scratch.write("grid.toml", &grid);
    let kept = |line: &str| {
        let ran = scratch.narrows(&format!("run grid.toml --out out {line}")).ok();
        let printed = ran.err.lines().find(|line| line.contains("finished before"));
        printed.map(|printed| printed.split(" finished").next().unwrap().to_owned())
    };
    assert_eq!(kept(""), None);
    assert_eq!(kept("").as_deref(), Some("2 of 2 runs"));
    assert_eq!(kept("--force"), None);
    scratch.write("grid.toml", &format!("title = \"Prose moves no number\"\n{grid}"));
    assert_eq!(kept("").as_deref(), Some("2 of 2 runs"));
    scratch.write("grid.toml", &grid.replace("\"8KiB\"", "\"8KiB\", \"12KiB\""));
    assert_eq!(kept("").as_deref(), Some("2 of 3 runs"));
    // A new key is part of the runs' names, and changes no run that is there.
    scratch.write("grid.toml", &format!("{grid}seed = [1, 2]\n"));
    scratch.narrows("run grid.toml --out out").fails(2, &["that this command leaves out"]);
}

#[test]
fn user_files_in_results_are_refused_and_kept() {
    let scratch = Scratch::new("thesis");
    let grid = grid_of("\"4KiB\", \"8KiB\"");
    scratch.write("grid.toml", &grid);
    scratch.narrows("run grid.toml --quiet --out out").ok();
    scratch.write("out/thesis/chapter.txt", "mine");
    scratch.write("out/runs/dctcp,traffic.0.size=4KiB/notes.txt", "mine");
    let before = scratch.tree();
    for line in
        ["run grid.toml --out out", "run grid.toml --out out --force", "demo --out out", "run grid.toml --out ."]
    {
        let printed = scratch.narrows(line).fails(2, &["--out"]);
        assert!(
            !line.ends_with(" out") || printed.err.contains("`runs/dctcp,traffic.0.size=4KiB/notes.txt`, `thesis`"),
            "{printed}"
        );
        assert_eq!(scratch.tree(), before);
    }
}

#[test]
fn results_are_replaced_as_a_whole() {
    let scratch = Scratch::new("replace");
    let grid = grid_of("\"4KiB\", \"8KiB\"");
    scratch.write("grid.toml", &grid);
    scratch.write("other.toml", &grid.replace("4KiB", "12KiB"));
    scratch.write("alone.toml", grid.split("[grid]").next().unwrap());
    let run = |name: &str| {
        scratch.narrows(&format!("run {name}.toml --quiet --out out --force")).ok();
        assert_eq!(scratch.tree().iter().filter(|path| !path.contains('/')).count(), 4, "{:?}", scratch.tree());
        scratch.files("out")
    };
    let alone = [
        "flow_samples.parquet",
        "flows.parquet",
        "manifest.json",
        "port_samples.parquet",
        "report.html",
        "summary.json",
    ];
    let first = run("grid");
    // The ledger and the table of summaries are of several runs.
    assert_eq!(first.len(), 5 + 2 * 5);
    // Finished runs do not go unasked.
    let lost = ["`out` has finished runs that this command leaves out", "dctcp,traffic.0.size=4KiB", "--force"];
    scratch.narrows("run alone.toml --quiet --out out").fails(2, &lost);
    assert_eq!(scratch.files("out"), first);
    assert_eq!(run("alone"), alone);
    // Nor does a single one.
    scratch.narrows("run grid.toml --quiet --out out").fails(2, &[": dctcp\n"]);
    scratch.narrows("run grid.toml --quiet --out out --force").ok();
    assert_eq!(scratch.files("out"), first);
    let other = run("other");
    assert!(other.iter().any(|name| name.contains("size=12KiB")) && !other.iter().any(|name| name.contains("=4KiB")));
    // A refused run changes nothing.
    scratch.narrows("run grid.toml --out out --set topology.hosts=1").fails(2, &["topology.hosts=1"]);
    assert_eq!(scratch.files("out"), other);
}

/// A link to a directory stays a link under every command.
#[test]
fn a_link_to_results_is_followed() {
    let scratch = Scratch::new("link");
    let grid = grid_of("\"4KiB\", \"8KiB\"");
    scratch.write("grid.toml", &grid);
    scratch.write("alone.toml", grid.split("[grid]").next().unwrap());
    fs::create_dir(scratch.path("real")).unwrap();
    std::os::unix::fs::symlink("real", scratch.path("out")).unwrap();
    for name in ["grid", "alone", "grid"] {
        scratch.narrows(&format!("run {name}.toml --quiet --out out --force")).ok();
        assert!(scratch.path("out").is_symlink() && scratch.path("real/manifest.json").exists(), "{name}");
        scratch.narrows("report out").ok();
    }
}
