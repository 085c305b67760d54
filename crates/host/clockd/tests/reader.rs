//! The readers of the page: the C header and the Rust reader agree, and a read costs little more than reading the clock.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use clockd::{NoTime, PageContent, PageReader, PageStatus, PageWriter, raw_ns};
use clocks::{Reading, Skew};
use testing::Bounded as _;

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("narrows-clockd-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn content(now: i64) -> PageContent {
    PageContent {
        status: PageStatus::Synchronised,
        at: Reading(now),
        mesh: Reading(now - 123_456_789_012),
        skew: Skew::from_ppb(-31_234),
        error: 1_234,
        skew_error: Skew::from_ppb(77),
        valid_until: Reading(now + 600_000_000_000),
        disruptions: 4,
        reference: 5,
        session: 6,
    }
}

/// Compiles the C reader; none without a compiler.
fn compile(directory: &Path, test: &str) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        testing::skipped_without(test, "cc");
        return None;
    }
    let (crate_directory, program) = (Path::new(env!("CARGO_MANIFEST_DIR")), directory.join("c_reader"));
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(crate_directory.join("include"));
    command.arg(crate_directory.join("tests/c_reader.c")).arg("-o").arg(&program);
    let output = command.finish();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn expected(result: Result<clockd::MeshTime, NoTime>) -> String {
    match result {
        Ok(time) => format!("0 {} {} {}", time.ns, time.error_ns, time.disruptions),
        Err(NoTime::Unknown) => "1".into(),
        Err(NoTime::Disrupted) => "2".into(),
        Err(NoTime::Expired) => "3".into(),
        Err(NoTime::Busy) => "4".into(),
    }
}

#[test]
fn c_and_rust_readers_agree() {
    let directory = directory("readers");
    let Some(program) = compile(&directory, "c_and_rust_readers_agree") else { return };
    let path = directory.join("page");
    let mut writer = PageWriter::open(&path, 1).unwrap();
    let reader = PageReader::open(&path).unwrap();
    let now = raw_ns();
    for status in [PageStatus::Synchronised, PageStatus::Unknown, PageStatus::Disrupted] {
        for skew in [-31_234, 0, 500_000] {
            writer.write(&PageContent { status, skew: Skew::from_ppb(skew), ..content(now) });
            let offsets = [-5_000_000_000, -1, 0, 1, 999_999_999, 600_000_000_000, 600_000_000_001];
            let readings = offsets.map(|offset| now + offset);
            let mut command = Command::new(&program);
            command.arg(&path).args(readings.map(|reading| reading.to_string()));
            let output = command.finish();
            let printed = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = printed.lines().collect();
            let content = reader.content().unwrap();
            assert_eq!(lines, readings.map(|reading| expected(content.time(Reading(reading)))));
        }
    }
    writer.write(&content(now));
    let before = reader.now().unwrap();
    let output = Command::new(&program).arg(&path).arg("now").finish();
    let after = reader.now().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<i64> = printed.split_whitespace().map(|field| field.parse().unwrap()).collect();
    assert!(fields[0] == 0 && (before.ns..=after.ns).contains(&fields[1]), "{before:?} {printed} {after:?}");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Number of calls in a measurement: shorter than a time slice.
const CALLS: i64 = 1_000;

/// Number of measurements. The fastest one was not interrupted.
const MEASUREMENTS: usize = 300;

/// Returns the time of the fastest of many measurements, in nanoseconds.
fn fastest(mut call: impl FnMut() -> i64) -> f64 {
    let measure = |_| {
        let start = raw_ns();
        let sum: i64 = (0..CALLS).fold(0, |sum, _| sum ^ call());
        let end = raw_ns();
        std::hint::black_box(sum);
        end - start
    };
    (0..MEASUREMENTS).map(measure).min().unwrap() as f64 / CALLS as f64
}

/// A read costs at most twice reading the clock, which is part of it. The compiler optimises tests less than releases.
#[test]
fn reads_cost_little_more_than_the_clock() {
    let directory = directory("cost");
    let path = directory.join("page");
    let mut writer = PageWriter::open(&path, 1).unwrap();
    writer.write(&content(raw_ns()));
    let reader = PageReader::open(&path).unwrap();
    let (clock, read) = (fastest(raw_ns), fastest(|| reader.now().unwrap().ns));
    println!("a read in Rust takes {read:.1} ns, {:.2} times clock_gettime", read / clock);
    assert!(read <= 2.0 * clock, "{read} and {clock}");
    if let Some(program) = compile(&directory, "reads_cost_little_more_than_the_clock") {
        let output = Command::new(&program).arg(&path).arg("cost").finish();
        let printed = String::from_utf8(output.stdout).unwrap();
        let fields: Vec<f64> = printed.split_whitespace().map(|field| field.parse().unwrap()).collect();
        println!("a read in C takes {:.1} ns, {:.2} times clock_gettime", fields[1], fields[1] / fields[0]);
        assert!(fields[1] <= 2.0 * fields[0], "{fields:?}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
