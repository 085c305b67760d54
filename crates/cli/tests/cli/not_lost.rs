//! Data that commands could remove silently, and the messages that they must print.

use crate::support::{GRID, ONE, Scratch};

#[test]
fn results_inside_results_are_refused() {
    let scratch = Scratch::new("inside");
    scratch.write("grid.toml", GRID);
    scratch.write("one.toml", ONE);
    scratch.narrows("run grid.toml --quiet --out g").ok();
    let before = scratch.tree();
    let parts = ["will not write `g/runs/mine`", "lies in the results directory", "--out"];
    scratch.narrows("run one.toml --quiet --out g/runs/mine").fails(2, &parts);
    assert_eq!(scratch.tree(), before);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(scratch.path("g/runs"), scratch.path("link")).unwrap();
        scratch.narrows("run one.toml --quiet --out link/mine").fails(2, &["lies in the results directory"]);
    }
    // A run that was put there by hand is not Narrows' own.
    scratch.narrows("run one.toml --quiet --out kept").ok();
    std::fs::rename(scratch.path("kept"), scratch.path("g/runs/kept")).unwrap();
    let parts = ["did not write there", "runs/kept"];
    scratch.narrows("run grid.toml --quiet --out g --set seed=7").fails(2, &parts);
    assert!(scratch.path("g/runs/kept/summary.json").exists());
}

#[test]
fn finished_schemes_are_not_dropped_without_force() {
    let scratch = Scratch::new("scheme");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out g").ok();
    let before = scratch.read("g/summary.json");
    let parts = ["this command leaves out", "mixed", "--force"];
    scratch.narrows("run grid.toml --quiet --out g --scheme uno").fails(2, &parts);
    assert_eq!(scratch.read("g/summary.json"), before);
    scratch.narrows("run grid.toml --quiet --out g --scheme uno --force").ok();
    scratch.narrows("run grid.toml --quiet --out g --scheme uno").ok();
}

/// Finished runs of other settings, inputs or scenarios are not overwritten by any command, and the message names
/// the differences.
#[test]
fn runs_of_other_settings_need_force() {
    let scratch = Scratch::new("others");
    scratch.write("grid.toml", GRID);
    scratch.write("one.toml", ONE);
    scratch.write("papers/tiny/fig1.toml", &format!("{}[scale.quick]\n", ONE.trim_start()));
    for line in ["sweep grid.toml", "run grid.toml", "run one.toml", "demo", "reproduce tiny --seeds 1"] {
        let out = line.replace([' ', '.'], "-");
        let line = format!("{line} --quiet --out {out}");
        scratch.narrows(&line).ok();
        let before = scratch.comparable(&out);
        let expected =
            ["` has finished runs of other settings", "stop: ", " -> 7us", "another directory with --out", "--force"];
        for _ in 0..2 {
            // A refused command leaves nothing that a later one could take for the user's word.
            scratch.narrows(&format!("{line} --set stop=7us")).fails(2, &expected);
            assert!(scratch.comparable(&out) == before, "{line}");
        }
        // Another scenario's runs are not kept either.
        let other = scratch.narrows(&format!("{line} --set name=other"));
        other.fails(2, &["--out", "--force"]);
        assert!(scratch.comparable(&out) == before, "{line}");
        scratch.narrows(&format!("{line} --set stop=7us --force")).ok();
        assert!(scratch.comparable(&out) != before, "{line}");
        scratch.narrows(&format!("{line} --set stop=7us")).ok();
    }
}

/// An input file is part of a run, and so is a law's or a scheme's label.
#[test]
fn runs_of_other_inputs_need_force() {
    let scratch = Scratch::new("inputs");
    let list = |bytes: u32| scratch.write("a.csv", &format!("start,src,dst,bytes\n0s,0,2,{bytes}\n"));
    list(1_000);
    let text = "name = \"list\"\nstop = \"5ms\"\ntopology = { kind = \"single-switch\", hosts = 4 }\n\
                schemes.dctcp = { law = \"dctcp\" }\ntraffic = [{ kind = \"list\", file = \"a.csv\" }]\n";
    scratch.write("list.toml", text);
    scratch.narrows("run list.toml --quiet --out out").ok();
    list(2_000);
    scratch.narrows("run list.toml --quiet --out out").fails(2, &["dctcp (input a.csv)", "--force"]);
    list(1_000);
    scratch.narrows("run list.toml --quiet --out out").ok();
    scratch.write("list.toml", &text.replace("law = \"dctcp\"", "law = \"dctcp\", label = \"D\""));
    scratch.narrows("run list.toml --quiet --out out").fails(2, &["label: ", " -> D", "--force"]);
}

/// A merge into results of other settings is refused, and the message does not suggest an impossible merge.
#[test]
fn merge_refuses_runs_of_other_settings() {
    let scratch = Scratch::new("merge");
    scratch.write("grid.toml", GRID);
    scratch.narrows("sweep grid.toml --quiet --out out").ok();
    scratch.narrows("sweep grid.toml --quiet --out part --set stop=7us --shard 1/2").ok();
    let before = scratch.comparable("out");
    let merged = scratch.narrows("sweep merge grid.toml part --set stop=7us --out out");
    let merged = merged.fails(2, &["--out"]);
    assert!(!merged.err.contains("--force"), "{merged}");
    assert!(scratch.comparable("out") == before);
}

#[test]
fn quiet_prints_warnings() {
    let scratch = Scratch::new("quiet");
    scratch.write("one.toml", ONE);
    let ran = scratch.narrows("run one.toml --quiet --out a --set stop=1us").ok();
    assert_eq!(ran.out, "");
    ran.reports(&["did not end"]);
}

#[test]
fn other_settings_are_named_where_results_are_compared() {
    let scratch = Scratch::new("settings");
    scratch.write("one.toml", ONE);
    scratch.narrows("run one.toml --quiet --out a").ok();
    scratch.narrows("run one.toml --quiet --out b --set seed=5 --set description=other").ok();
    let ran = scratch.narrows("compare a b --tolerance 1000%").ok();
    assert_eq!(ran.err, "the results are of different settings: seed: 1 -> 5\n");
    assert_eq!(scratch.narrows("compare a a").ok().err, "");
}

/// Names are names, also where they look like numbers: runs of two variants are not one variant's two seeds.
#[test]
fn numeric_variant_names_stay_distinct() {
    let scratch = Scratch::new("variants");
    let more = "[variants.1]\nset = { seed = 2 }\n[variants.01]\nset = { seed = 3 }\n[[table]]\ntitle = \"T\"\nwithout = \
                [\"1\"]\ncolumns = [{ label = \"fct\", value = \"it.all.fct.mean\" }]\n";
    scratch.write("one.toml", &format!("{ONE}\n{more}"));
    let printed = scratch.narrows("run one.toml --out a").ok().out;
    assert!(printed.contains("variant = 01"), "{printed}");
    assert!(!printed.contains("variant = 1\n") && !printed.contains("1.0\n"), "{printed}");
}
