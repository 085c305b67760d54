//! From a run to its report and to a comparison.

use serde_json::Value;

use crate::support::{GRID, ONE, Scratch, keys};

const BOOK: &str = include_str!("../../../../docs/src/reference/results.md");

/// Checks that the book names every key of a comparison or of scores.
#[track_caller]
pub(crate) fn documented(value: &Value) {
    let (_, section) = BOOK.split_once("\n## JSON of `compare` and `score`\n").unwrap();
    let (shapes, _) = section.split_once("\n| key |").unwrap();
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            assert!(shapes.contains(&format!("\"{key}\"")), "the book does not name `{key}`");
            documented(value);
        }),
        Value::Array(values) => values.iter().for_each(documented),
        _ => {}
    }
}

#[test]
fn a_run_a_report_a_comparison() {
    let scratch = Scratch::new("round");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out a").ok();
    std::fs::remove_file(scratch.path("a/report.html")).unwrap();
    let ran = scratch.narrows("report a").ok();
    assert_eq!(ran.out, "wrote a/report.html\n");
    let page = scratch.read("a/report.html");
    for part in ["</html>", "uno,traffic.0.load=0.2", "MPRDMA + BBR"] {
        assert!(page.contains(part), "{part}");
    }
    scratch.narrows("report a --out pages.html").ok();
    assert_eq!(scratch.read("pages.html"), page);
    // One run of the grid is results, too.
    scratch.narrows("report a/runs/uno,traffic.0.load=0.2 --out one.html").ok();
    scratch.narrows("compare a a").ok();
}

#[test]
fn a_run_against_itself_and_against_a_worse_one() {
    let scratch = Scratch::new("compare");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out a").ok();
    scratch.narrows("run one.toml --quiet --out b --set topology.rate=50Gbps").ok();
    let same = scratch.narrows("compare a a").ok();
    assert!(same.out.contains("dctcp against dctcp: "), "{same}");
    let same = scratch.narrows("compare a a --json").ok().json();
    assert_eq!(keys(&same), ["schema", "tolerance", "pairs", "only_before", "only_after"]);
    assert_eq!(same["schema"], 1);
    documented(&same);
    let rows = same["pairs"][0]["rows"].as_array().unwrap();
    assert!(rows.len() > 10 && rows.iter().all(|row| row["change"] == "same"));

    let worse = scratch.narrows("compare a b");
    assert_eq!(worse.code, 3, "{worse}");
    let row = worse.out.lines().find(|line| line.contains("all.fct_ns.p99")).unwrap();
    assert!(row.contains("worse"), "{row}");
    let worse = worse.reports(&["regression: ", "5 %"]);
    assert!(!worse.err.contains("error"), "{worse}");
    let json = scratch.narrows("compare a b --json");
    assert_eq!(json.code, 3);
    let regressed = json.json();
    let regressed = regressed["pairs"][0]["rows"].as_array().unwrap().iter().filter(|row| row["change"] == "regressed");
    assert!(regressed.count() > 3);
    // A regression in one direction is an improvement in the other; a difference within the tolerance is none.
    let better = scratch.narrows("compare b a").ok();
    assert!(better.out.contains("better") && !better.out.contains("worse"), "{better}");
    scratch.narrows("compare a b --tolerance 9").ok();
    scratch.narrows("compare a b --tolerance -1").fails(2, &["--tolerance"]);
    scratch.narrows("compare a b --tolerance NaN").fails(2, &["--tolerance", "such as 0.05"]);
}

#[test]
fn missing_and_disjoint_runs_are_reported() {
    let scratch = Scratch::new("gone");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out all").ok();
    scratch.narrows("run grid.toml --quiet --out some --scheme uno --scheme cubic").ok();
    scratch.narrows("run grid.toml --quiet --out others --scheme mixed").ok();
    let gone = scratch.narrows("compare all some").reports(&[
        "regression: ",
        "mixed,traffic.0.load=0.2; mixed,traffic.0.load=0.6",
        "missing",
    ]);
    assert_eq!(gone.code, 3);
    assert!(gone.out.contains("mixed,traffic.0.load=0.2; mixed,traffic.0.load=0.6"), "{gone}");
    let more = scratch.narrows("compare some all").ok();
    assert!(more.out.contains("mixed,traffic.0.load=0.2; mixed,traffic.0.load=0.6"), "{more}");
    scratch.narrows("compare some others").fails(2, &["error: ", "`some`", "`others`"]);
}

#[test]
fn damaged_results() {
    let scratch = Scratch::new("damaged");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out a").ok();
    let flows = scratch.path("a/flows.parquet");
    let mut bytes = std::fs::read(&flows).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&flows, bytes).unwrap();
    for line in ["report a --out x.html", "compare a a"] {
        scratch.narrows(line).fails(2, &["a/flows.parquet"]);
    }
    assert!(!scratch.path("x.html").exists());
    std::fs::write(scratch.path("a/manifest.json"), "{").unwrap();
    scratch.narrows("report a --out x.html").fails(2, &["a/manifest.json", "not JSON"]);
    std::fs::remove_file(scratch.path("a/manifest.json")).unwrap();
    let expected = [
        "`a/manifest.json` is missing, so Narrows cannot determine whether 5 files",
        "`flows.parquet`",
        "out of `a` and",
    ];
    scratch.narrows("report a").fails(2, &expected);
    std::fs::remove_dir_all(scratch.path("a")).unwrap();
    std::fs::create_dir(scratch.path("a")).unwrap();
    scratch.narrows("report a").fails(2, &["`a`", "no manifest.json"]);
}

#[test]
fn two_results_flow_by_flow() {
    let scratch = Scratch::new("flows");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out a").ok();
    scratch.narrows("run one.toml --quiet --out b --set topology.rate=50Gbps").ok();

    let same = scratch.narrows("compare a a --flows --from 0ms --to 20us").ok();
    for part in [
        "dctcp: DCTCP, 0 ns to 20.00 us",
        "A (simulator)",
        "flow 0",
        "mean of flows 0 to 3",
        "queueing delay",
        "Jain's index",
        "Target: rates within 10 %, completion times within 10 %, mean queueing delays within 15 % or 500.0 us.",
    ] {
        assert!(same.out.contains(part), "no `{part}` in {same}");
    }
    assert!(same.out.contains("holds") && !same.out.contains(" no "), "{same}");

    // Half the rate is beyond the target, and no failure. The defaults' window is when flows are active.
    let other = scratch.narrows("compare a b --flows --markdown fragment.md --delay-floor 1us").ok();
    let rate = other.out.lines().find(|line| line.contains("mean of flows 0 to 3")).unwrap();
    assert!(rate.contains(" no "), "{rate}");
    let page = scratch.read("fragment.md");
    assert!(page.starts_with("| DCTCP, ") && page.contains("| mean of flows 0 to 3 | "), "{page}");
    // Tables, and the line by which the page is known again.
    let (tables, last) = page.trim_end().rsplit_once('\n').unwrap();
    assert!(tables.lines().all(|line| line.is_empty() || line.starts_with('|') && line.ends_with('|')), "{page}");
    assert!(last.starts_with("<!-- narrows compare, "), "{page}");

    let json = scratch.narrows("compare a b --flows --json").ok().json();
    assert_eq!(keys(&json), ["schema", "target", "runs", "only_a", "only_b"]);
    assert_eq!(json["schema"], 1);
    documented(&json);
    let run = &json["runs"][0];
    assert_eq!((&run["a_backend"], run["flows"].as_array().unwrap().len()), (&"simulator".into(), 4));
    let group = &run["groups"][0];
    assert_eq!(
        (&group["flows"], &group["rate_holds"]),
        (&serde_json::json!([0, 1, 2, 3]), &serde_json::json!(false)),
        "{group:#}"
    );
    let halved = group["rate_bps"]["relative"].as_f64().unwrap();
    assert!((-0.6..-0.2).contains(&halved), "{halved}");
    let lenient = scratch.narrows("compare a b --flows --json --rate-tolerance 2").ok().json();
    assert_eq!(lenient["runs"][0]["groups"][0]["rate_holds"], true);
}

#[test]
fn flow_comparison_rejects_invalid_arguments() {
    let scratch = Scratch::new("refused-flows");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out a").ok();
    for (line, parts) in [
        ("--flows --from 1s", &["the window of time from 1.000 s", "is empty"][..]),
        ("--flows --from soon", &["--from"]),
        ("--flows --rate-tolerance -1", &["-1 is not a relative difference from 0 to 10, such as 0.05 or 5%"]),
        ("--flows --fct-tolerance 20", &["20 is not a relative difference from 0 to 10"]),
        ("--flows --delay-floor 3", &["--delay-floor"]),
        ("--flows --tolerance 1", &["--tolerance", "--flows"]),
        ("--markdown x.md", &["--flows"]),
        ("--flows --markdown no/where.md", &["cannot write `no/where.md`"]),
    ] {
        scratch.narrows(&format!("compare a a {line}")).fails(2, parts);
    }
    scratch.narrows("run one.toml --quiet --out bare --set monitor.flows=0 --set monitor.ports=[]").ok();
    scratch.narrows("compare bare bare --flows").fails(2, &["[monitor]"]);
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out some --scheme uno").ok();
    scratch.narrows("run grid.toml --quiet --out others --scheme mixed").ok();
    scratch.narrows("compare some others --flows").fails(2, &["`some`", "`others`"]);
}
