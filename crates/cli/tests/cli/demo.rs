//! The first thing that a person runs.

use crate::json::is_summary;
use crate::support::{Scratch, keys};

/// Three schemes, a row each. At its own size it must end within 20 s; a build without optimisation is not held to
/// that, and runs a small one.
#[test]
fn shows_three_schemes() {
    let scratch = Scratch::new("demo");
    let size = if cfg!(debug_assertions) { " --set traffic.0.size=256KiB" } else { "" };
    let ran = scratch.narrows(&format!("demo --json{size}")).ok();
    let json = ran.json();
    assert_eq!(keys(&json), ["schema", "runs"]);
    let runs = json["runs"].as_array().unwrap();
    runs.iter().for_each(is_summary);
    let labels: Vec<_> = runs.iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Uno", "GEMINI", "MPRDMA+BBR"]);
    for run in runs {
        assert_eq!((&run["flows"]["intra"]["completed"], &run["flows"]["inter"]["completed"]), (&4.into(), &4.into()));
        assert!(cfg!(debug_assertions) || run["engine"]["wall_s"].as_f64().unwrap() < 20.0, "{}", run["engine"]);
    }
    assert!(scratch.read("out/demo/report.html").contains("</html>"));
}

#[test]
fn prints_a_table_and_the_report_path() {
    let scratch = Scratch::new("demo");
    let ran = scratch.narrows("demo --set traffic.0.size=64KiB").ok();
    let rows = ran.out.lines().filter(|line| line.contains("8/8")).count();
    assert_eq!(rows, 3, "{ran}");
    assert!(ran.out.contains("report: out/demo/report.html"), "{ran}");
}
