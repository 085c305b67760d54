//! Results that somebody edited, or that were cut off. Commands that read them notice it, and a run that goes on does
//! them again.

use std::fs;

use crate::support::{Ran, Scratch, grid_of};

/// Two runs, and what they are called.
fn grid(title: &str, description: &str) -> String {
    format!("title = {title:?}\ndescription = {description:?}\n{}", grid_of("\"4KiB\", \"16KiB\"").trim_start())
}

const LINE: &str = "run grid.toml --out out";
const RUN: &str = "out/runs/dctcp,size=4KiB";

/// A change that somebody makes to a text.
type Edit = fn(&str) -> String;

fn prepared(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("grid.toml", &grid("Then", "As it was"));
    scratch.narrows(LINE).ok();
    scratch
}

fn kept(ran: &Ran) -> Option<&str> {
    ran.err.lines().find(|line| line.contains("finished before: kept"))
}

#[test]
fn a_file_of_a_run_is_named_and_the_run_is_done_again() {
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
        let again = scratch.narrows(LINE).ok().says(&[&file, ": the run `dctcp,size=4KiB` is done again"]);
        assert_eq!(kept(&again), Some("1 of 2 runs finished before: kept; --anew runs them again"), "{again}");
        scratch.narrows("compare out out").ok();
        assert_eq!(
            kept(&scratch.narrows(LINE).ok()),
            Some("2 of 2 runs finished before: kept; --anew runs them again")
        );
    }
    let table = format!("{RUN}/flows.parquet");
    scratch.write(&table, "half");
    let said = [&table, "is not as it was written", "help: give the command that made these results again"];
    scratch.narrows("report out").fails(2, &said);
}

#[test]
fn a_grid_s_own_summary_is_named_and_not_needed() {
    let scratch = prepared("grid-summary");
    let before = scratch.read("out/summary.json");
    for edited in [before.replacen("\"completed\": 3", "\"completed\": 2", 1), "half".to_owned()] {
        assert_ne!(edited, before);
        scratch.write("out/summary.json", &edited);
        for reads in ["report out", "compare out out"] {
            let ran = scratch.narrows(reads).ok();
            ran.says(&["`out/summary.json` is not as it was written; the runs' own files are, and only they are read"]);
        }
        assert!(scratch.narrows("report out --out page.html").ok().err.contains("out/summary.json"));
        let again = scratch.narrows(LINE).ok();
        let again = again.says(&["`out/summary.json` is not as it was written: it is written again"]);
        assert_eq!(kept(&again), Some("2 of 2 runs finished before: kept; --anew runs them again"));
        assert_eq!(scratch.narrows("report out").ok().err, "");
    }
}

/// Prose moves no number, so runs are kept when only prose changes. They then have the scenario's prose of now.
#[test]
fn kept_runs_say_what_the_scenario_says_now() {
    let scratch = prepared("prose");
    let is = |title: &str, description: &str| {
        for manifest in [format!("{RUN}/manifest.json"), "out/runs/dctcp,size=16KiB/manifest.json".to_owned()] {
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
    assert_eq!(kept(&again), Some("2 of 2 runs finished before: kept; --anew runs them again"));
    is("Now", "As it is");
    assert_eq!(fs::read(scratch.path(&format!("{RUN}/flows.parquet"))).unwrap(), flows);
    assert_eq!(scratch.narrows("compare out out").ok().err, "");
}
