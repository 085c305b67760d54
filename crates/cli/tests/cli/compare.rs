//! From a run to its report and to a comparison.

use crate::support::{GRID, ONE, Scratch, keys};

#[test]
fn a_run_a_report_a_comparison() {
    let scratch = Scratch::new("round");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out a").ok();
    std::fs::remove_file(scratch.path("a/report.html")).unwrap();
    let ran = scratch.narrows("report a").ok();
    assert_eq!(ran.out, "wrote a/report.html\n");
    let page = scratch.read("a/report.html");
    for part in ["</html>", "uno,load=0.2", "MPRDMA + BBR"] {
        assert!(page.contains(part), "{part}");
    }
    scratch.narrows("report a --out pages.html").ok();
    assert_eq!(scratch.read("pages.html"), page);
    // One run of the grid is results, too.
    scratch.narrows("report a/runs/uno,load=0.2 --out one.html").ok();
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
    assert_eq!(keys(&same), ["tolerance", "pairs", "only_before", "only_after"]);
    let rows = same["pairs"][0]["rows"].as_array().unwrap();
    assert!(rows.len() > 10 && rows.iter().all(|row| row["change"] == "same"));

    let worse = scratch.narrows("compare a b");
    assert_eq!(worse.code, 3, "{worse}");
    let row = worse.out.lines().find(|line| line.contains("all.fct_ns.p99")).unwrap();
    assert!(row.contains("worse"), "{row}");
    let worse = worse.says(&["regression: ", "worse by more than 5 %"]);
    assert!(!worse.err.contains("error"), "{worse}");
    let json = scratch.narrows("compare a b --json");
    assert_eq!(json.code, 3);
    let regressed = json.json();
    let regressed = regressed["pairs"][0]["rows"].as_array().unwrap().iter().filter(|row| row["change"] == "regressed");
    assert!(regressed.count() > 3);
    // What is worse one way is better the other way; a difference within the tolerance is none.
    let better = scratch.narrows("compare b a").ok();
    assert!(better.out.contains("better") && !better.out.contains("worse"), "{better}");
    scratch.narrows("compare a b --tolerance 9").ok();
    scratch.narrows("compare a b --tolerance -1").fails(2, &["--tolerance"]);
    scratch.narrows("compare a b --tolerance NaN").fails(2, &["--tolerance", "such as 0.05"]);
}

#[test]
fn runs_that_are_gone_or_have_nothing_in_common() {
    let scratch = Scratch::new("gone");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out all").ok();
    scratch.narrows("run grid.toml --quiet --out some --scheme uno --scheme cubic").ok();
    scratch.narrows("run grid.toml --quiet --out others --scheme mixed").ok();
    let gone = scratch.narrows("compare all some").says(&["regression: ", "mixed,load=0.2; mixed,load=0.6", "missing"]);
    assert_eq!(gone.code, 3);
    assert!(gone.out.contains("only in the results before: mixed,load=0.2; mixed,load=0.6"), "{gone}");
    let more = scratch.narrows("compare some all").ok();
    assert!(more.out.contains("only in the results after: mixed,load=0.2; mixed,load=0.6"), "{more}");
    scratch.narrows("compare some others").fails(2, &["error: ", "`some`", "`others`", "no run in common"]);
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
        scratch.narrows(line).fails(2, &["a/flows.parquet", "not as it was written"]);
    }
    assert!(!scratch.path("x.html").exists());
    std::fs::write(scratch.path("a/manifest.json"), "{").unwrap();
    scratch.narrows("report a --out x.html").fails(2, &["a/manifest.json", "not JSON"]);
    std::fs::remove_file(scratch.path("a/manifest.json")).unwrap();
    scratch.narrows("report a").fails(2, &["`a` is not a directory of Narrows results", "no manifest.json"]);
}
