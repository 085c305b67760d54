//! Results that were edited or truncated. Commands that read them notice it, and a run that goes on does them again.

use std::fs;

use crate::support::{ProgramRun, Scratch, grid_of};

/// Two runs with a title and a description.
fn grid(title: &str, description: &str) -> String {
    format!("title = {title:?}\ndescription = {description:?}\n{}", grid_of("\"4KiB\", \"16KiB\"").trim_start())
}

const LINE: &str = "run grid.toml --out out";
const RUN: &str = "out/runs/dctcp,traffic.0.size=4KiB";

/// A change to a text.
type Edit = fn(&str) -> String;

fn prepared(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("grid.toml", &grid("Then", "As it was"));
    scratch.narrows(LINE).ok();
    scratch
}

fn kept_runs_line(ran: &ProgramRun) -> Option<&str> {
    ran.err.lines().find(|line| line.contains("finished before: kept"))
}

#[test]
fn edited_run_files_are_reported_and_rerun() {
    let scratch = prepared("edited");
    let edits: [(&str, Edit); 4] = [
        ("summary.json", |text| text.replacen("\"completed\": 3", "\"completed\": 2", 1)),
        ("summary.json", |text| text[..text.len() / 2].to_owned()),
        ("manifest.json", |text| text.replacen("\"title\": \"Then\"", "\"title\": \"Mine\"", 1)),
        ("manifest.json", |text| text.replacen("\"name\": \"summary.json\"", "\"name\": \"other\"", 1)),
    ];
    for (name, edit) in edits {
        let file = format!("{RUN}/{name}");
        let before = scratch.read(&file);
        let edited = edit(&before);
        assert_ne!(edited, before, "{name}");
        scratch.write(&file, &edited);
        for reads in ["report out", "compare out out", "compare out out --flows", &format!("report {RUN} --out x.html")]
        {
            scratch.narrows(reads).fails(2, &[&file]);
        }
        assert_eq!(scratch.read(&file), edited);
        let again = scratch.narrows(LINE).ok().reports(&[&file, ": the run `dctcp,traffic.0.size=4KiB` is done again"]);
        assert_eq!(
            kept_runs_line(&again),
            Some("1 of 2 runs finished before: kept; --force runs them again"),
            "{again}"
        );
        scratch.narrows("compare out out").ok();
        assert_eq!(
            kept_runs_line(&scratch.narrows(LINE).ok()),
            Some("2 of 2 runs finished before: kept; --force runs them again")
        );
    }
    let table = format!("{RUN}/flows.parquet");
    scratch.write(&table, "half");
    let again = "help: give the command that made these results again";
    scratch.narrows("report out").fails(2, &[&table, "is not as it was written", again]);
    // A missing file is reported as missing.
    fs::remove_file(scratch.path(&table)).unwrap();
    scratch.narrows("compare out out").fails(2, &[&format!("error: `{table}` is missing\n{again}")]);
    scratch
        .narrows(LINE)
        .ok()
        .reports(&[&format!("`{table}` is missing: the run `dctcp,traffic.0.size=4KiB` is done again")]);
    fs::remove_dir_all(scratch.path(RUN)).unwrap();
    scratch.narrows("report out").fails(2, &[&format!("error: `{RUN}` is missing\n{again}")]);
    scratch.narrows(LINE).ok().reports(&["1 of 2 runs finished before: kept"]);
}

#[test]
fn swapped_run_folders_are_reported() {
    let scratch = prepared("swapped");
    for file in fs::read_dir(scratch.path(RUN)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), scratch.path("out/runs/dctcp,traffic.0.size=16KiB").join(file.file_name())).unwrap();
    }
    let expected = "error: `out/runs/dctcp,traffic.0.size=16KiB/manifest.json` is of the run `dctcp,traffic.0.size=4KiB`, and the run \
                `dctcp,traffic.0.size=16KiB` belongs there\nhelp: give the command that made these results again";
    for reads in ["report out", "report out --out page.html", "compare out out"] {
        scratch.narrows(reads).fails(2, &[expected]);
    }
    scratch.narrows(LINE).ok().reports(&["1 of 2 runs finished before: kept"]);
    scratch.narrows("compare out out").ok();
}

/// Runs by versions without hashes are read and not kept.
#[test]
fn runs_that_cannot_be_checked_are_read_and_not_kept() {
    let scratch = prepared("unchecked");
    let manifest = format!("{RUN}/manifest.json");
    let mut value: serde_json::Value = serde_json::from_str(&scratch.read(&manifest)).unwrap();
    value["files"] = serde_json::json!([]);
    value.as_object_mut().unwrap().remove("sha256");
    scratch.write(&manifest, &value.to_string());
    let mut grid: serde_json::Value = serde_json::from_str(&scratch.read("out/manifest.json")).unwrap();
    grid.as_object_mut().unwrap().remove("sha256");
    grid["runs"].as_array_mut().unwrap().iter_mut().for_each(|run| drop(run.as_object_mut().unwrap().remove("sha256")));
    scratch.write("out/manifest.json", &grid.to_string());
    let expected = "`out`: no hash vouches for 2 of 2 runs, because their manifests or the grid's are of an earlier version: \
                changes to their files cannot be seen\n";
    assert_eq!(scratch.narrows("report out").ok().err, expected);
    assert_eq!(scratch.narrows("compare out out").ok().err, expected.repeat(2));
    let again = format!(
        "`{manifest}` lacks hashes, so the run's files cannot be checked: the run `dctcp,traffic.0.size=4KiB` is done"
    );
    scratch.narrows(LINE).ok().reports(&[&again, "1 of 2 runs finished before: kept"]);
    assert_eq!(scratch.narrows("report out").ok().err, "");
}

#[test]
fn empty_manifests_are_reported() {
    let scratch = prepared("empty");
    let before = scratch.read("out/manifest.json");
    scratch.write("out/manifest.json", "");
    let expected = "error: `out/manifest.json` is empty, so Narrows cannot determine whether 4 files or folders there are its own: \
                `manifest.json`, `report.html`, `summary.json`, `summary.parquet`; move ";
    for line in ["report out", "compare out out", LINE, &format!("{LINE} --force")] {
        scratch
            .narrows(line)
            .fails(2, &[expected, "the results again: finished runs that have their own manifests are kept (--force "]);
    }
    // Does as the message advises.
    for name in ["manifest.json", "report.html", "summary.json", "summary.parquet"] {
        fs::rename(scratch.path("out").join(name), scratch.path(name)).unwrap();
    }
    let again = scratch.narrows(LINE).ok();
    assert_eq!(kept_runs_line(&again), Some("2 of 2 runs finished before: kept; --force runs them again"));
    assert_eq!(scratch.read("out/manifest.json"), before);
    let mut grid: serde_json::Value = serde_json::from_str(&before).unwrap();
    grid["runs"] = serde_json::json!([]);
    grid.as_object_mut().unwrap().remove("sha256");
    scratch.write("out/manifest.json", &grid.to_string());
    for reads in ["report out", "compare out out"] {
        let expected = ["`out/manifest.json` lists no runs", "help: give the command that made these results again"];
        scratch.narrows(reads).fails(2, &expected);
    }
    scratch.narrows(LINE).ok().reports(&["2 of 2 runs finished before: kept"]);
    assert_eq!(scratch.read("out/manifest.json"), before);
}

/// The page is the user's once it was edited.
#[test]
fn an_edited_report_is_not_replaced() {
    let scratch = prepared("edited-report");
    let before = scratch.read("out/report.html");
    for (edited, reason) in [
        (before.replacen("Then", "Mine", 1), "it was edited after Narrows wrote it"),
        ("mine\n".to_owned(), "it is not a report that `narrows report` wrote"),
    ] {
        scratch.write("out/report.html", &edited);
        for line in ["report out", LINE, &format!("{LINE} --force")] {
            let refused = [&format!("error: will not replace `out/report.html`: {reason}"), "help: move that file out"];
            scratch.narrows(line).fails(2, &refused);
            assert_eq!(scratch.read("out/report.html"), edited);
            assert!(!scratch.path("out/.next").exists());
        }
        scratch.narrows("report out --out page.html").ok();
        fs::rename(scratch.path("out/report.html"), scratch.path("mine.html")).unwrap();
        scratch.narrows(LINE).ok();
        assert_eq!(scratch.read("out/report.html"), before);
    }
    // So is that of a set that is not whole yet.
    let run = |manifest: &str| {
        let manifest: serde_json::Value = serde_json::from_str(&scratch.read(manifest)).unwrap();
        serde_json::json!({ "run": manifest["run"], "key": manifest["key"] })
    };
    let runs = [RUN, "out/runs/dctcp,traffic.0.size=16KiB"].map(|folder| run(&format!("{folder}/manifest.json")));
    let plan = serde_json::json!({ "schema": 1, "program": "narrows", "scenario": "x", "command": "x", "runs": runs });
    scratch.write("out/.next/plan.json", &plan.to_string());
    fs::rename(scratch.path("out/runs"), scratch.path("out/.next/runs")).unwrap();
    for name in ["manifest.json", "summary.json", "summary.parquet", "report.html"] {
        fs::remove_file(scratch.path("out").join(name)).unwrap();
    }
    scratch.narrows("report out").ok();
    scratch
        .write("out/.next/report.html", &scratch.read("out/.next/report.html").replacen("</html>", "mine</html>", 1));
    for line in ["report out", LINE] {
        scratch.narrows(line).fails(2, &["`out/.next/report.html`"]);
    }
    assert!(scratch.read("out/.next/report.html").contains("mine</html>"));
}

/// A stopped command's half-written files are named, and stay.
#[test]
fn leftover_partial_files_are_reported() {
    let scratch = prepared("leftovers");
    scratch.write("out/report.html.partial-7", "half");
    scratch.write("page.html.partial-7", "half");
    let left =
        |file: &str| format!("`{file}` was left by a command that was stopped, or that could not put it in place");
    for line in [LINE, "report out"] {
        scratch.narrows(line).ok().reports(&[&left("out/report.html.partial-7"), "you may delete it"]);
    }
    for writer in ["report out --out page.html", "compare out out --flows --markdown page.html"] {
        let _ = fs::remove_file(scratch.path("page.html"));
        scratch.narrows(writer).reports(&[&left("page.html.partial-7")]);
    }
    // Also if other files stop the run.
    scratch.write("out/page.html.partial-7", "half");
    let theirs = "holds a file that Narrows did not write there, and replacing results would lose: `page.html.partial-7` (left by a \
                  stopped command; you may delete it)";
    scratch.narrows(LINE).fails(2, &[theirs]);
    assert_eq!(scratch.read("out/page.html.partial-7"), "half");
    assert_eq!(scratch.read("out/report.html.partial-7"), "half");
}

#[test]
fn edited_grid_summary_is_reported_and_rebuilt() {
    let scratch = prepared("grid-summary");
    let before = scratch.read("out/summary.json");
    for edited in [before.replacen("\"completed\": 3", "\"completed\": 2", 1), "half".to_owned()] {
        assert_ne!(edited, before);
        scratch.write("out/summary.json", &edited);
        for reads in ["report out", "compare out out"] {
            let ran = scratch.narrows(reads).ok();
            ran.reports(&["`out/summary.json`"]);
        }
        assert!(scratch.narrows("report out --out page.html").ok().err.contains("out/summary.json"));
        let again = scratch.narrows(LINE).ok();
        let again = again.reports(&["`out/summary.json`"]);
        assert_eq!(kept_runs_line(&again), Some("2 of 2 runs finished before: kept; --force runs them again"));
        assert_eq!(scratch.narrows("report out").ok().err, "");
    }
    fs::remove_file(scratch.path("out/summary.json")).unwrap();
    let missing = "`out/summary.json` is missing";
    scratch.narrows("report out").ok().reports(&[&format!("{missing}; only the runs' own files are read")]);
    scratch.narrows(LINE).ok().reports(&[&format!("{missing}: it is written again")]);
    assert_eq!(scratch.read("out/summary.json"), before);
}

/// Prose moves no number, so runs are kept when only prose changes. They then have the scenario's prose of now.
#[test]
fn kept_runs_take_the_current_description() {
    let scratch = prepared("prose");
    let is = |title: &str, description: &str| {
        for manifest in [format!("{RUN}/manifest.json"), "out/runs/dctcp,traffic.0.size=16KiB/manifest.json".to_owned()]
        {
            let manifest: serde_json::Value = serde_json::from_str(&scratch.read(&manifest)).unwrap();
            let resolved = &manifest["resolved"];
            assert_eq!((&resolved["title"], &resolved["description"]), (&title.into(), &description.into()));
        }
        // The page that the run wrote, and then the page that `report` makes.
        for _ in 0..2 {
            let page = scratch.read("out/report.html");
            assert!(page.contains(title) && page.contains(description), "{title}");
            assert!(title == "Then" || !page.contains("As it was"));
            scratch.narrows("report out").ok();
        }
    };
    is("Then", "As it was");
    let flows = fs::read(scratch.path(&format!("{RUN}/flows.parquet"))).unwrap();
    scratch.write("grid.toml", &grid("Now", "As it is"));
    let again = scratch.narrows(LINE).ok();
    assert_eq!(kept_runs_line(&again), Some("2 of 2 runs finished before: kept; --force runs them again"));
    is("Now", "As it is");
    assert_eq!(fs::read(scratch.path(&format!("{RUN}/flows.parquet"))).unwrap(), flows);
    assert_eq!(scratch.narrows("compare out out").ok().err, "");
}

/// A run that was copied into a grid by hand stays, even if the grid's manifest is lost.
#[test]
fn foreign_runs_in_a_grid_are_kept() {
    let scratch = prepared("mine");
    fs::create_dir(scratch.path("out/runs/mine")).unwrap();
    for entry in fs::read_dir(scratch.path(RUN)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path("out/runs/mine").join(entry.file_name())).unwrap();
    }
    let before = scratch.read("out/manifest.json");
    let grid = || serde_json::from_str::<serde_json::Value>(&before).unwrap();
    let mut without_hash = grid();
    without_hash.as_object_mut().unwrap().remove("sha256");
    let mut edited = grid();
    edited["version"] = "0".into();
    let mut without_runs = without_hash.clone();
    without_runs["runs"] = serde_json::json!([]);
    for manifest in [&before, &without_hash.to_string(), &edited.to_string(), &without_runs.to_string()] {
        scratch.write("out/manifest.json", manifest);
        for line in [LINE.to_owned(), format!("{LINE} --force")] {
            scratch.narrows(&line).fails(2, &["`runs/mine`"]);
        }
        assert!(scratch.path("out/runs/mine/flows.parquet").exists());
    }
}
