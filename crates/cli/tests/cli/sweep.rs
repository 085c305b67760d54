//! `narrows sweep`: points from the file and the command line, shards, and the ledger.

use serde_json::Value;

use crate::support::{GRID, Scratch};

const SWEEP: &str = r#"
name = "sweep"
stop = "5ms"
topology = { kind = "single-switch", hosts = 4 }
schemes.dctcp = { law = "dctcp" }
schemes.cubic = { law = "cubic" }
traffic = [{ kind = "incast", intra = 3, size = "16KiB" }]
[random_points]
points = 3
keys."port.buffer" = { from = "100kB", to = "1MB", spread = "log" }
"#;

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("s.toml", SWEEP);
    scratch
}

#[test]
fn points_come_from_the_file_and_the_command_line() {
    let scratch = scratch("sweep-points");
    let listed = scratch.narrows("sweep s.toml --vary traffic.0.size=4KiB,16KiB --seeds 2 --list").ok();
    let runs: Vec<&str> = listed.out.lines().collect();
    assert_eq!(runs.len(), 2 * 2 * 2 * 3, "{listed}");
    assert!(runs[0].starts_with("dctcp,traffic.0.size=4KiB,seed=1,port.buffer=") && runs[0].ends_with('B'), "{listed}");
    assert!(scratch.files("out").is_empty());
    scratch.narrows("sweep s.toml --vary seed=4,5 --seeds 2").fails(2, &["varies `seed` by itself"]);
    scratch.narrows("sweep s.toml --vary traffic.0.sise=1").fails(2, &["unknown key `sise`", "`size`"]);
    scratch.narrows("sweep s.toml --vary seed=1,,2").fails(2, &["empty value"]);
    scratch.narrows("sweep s.toml --vary seed=1 --vary seed=2").fails(2, &["`seed`"]);
    scratch.narrows("sweep s.toml --vary random_points.seed=1,2").fails(2, &["`random_points`"]);
    let shard = scratch.narrows("sweep s.toml --shard 2/4 --list").ok();
    assert_eq!(shard.out.lines().count(), 2, "{shard}");
    scratch.narrows("sweep s.toml --shard 0/4").fails(2, &["`0/4`", "as in 3/8"]);
    scratch.narrows("sweep s.toml --shard 9/9").fails(2, &["shard 9/9 has none of 6 runs", "choose fewer shards"]);
    scratch.narrows("sweep s.toml --scheme dctpc").fails(2, &["no scheme `dctpc`", "`dctcp`"]);
    scratch.narrows("sweep").fails(2, &["<SCENARIO>"]);
}

#[test]
fn sweep_equals_run_and_resumes() {
    let scratch = scratch("sweep-same");
    scratch.narrows("run s.toml --out run --quiet").ok();
    scratch.narrows("sweep s.toml --out sweep --quiet").ok();
    assert!(scratch.comparable("run") == scratch.comparable("sweep"));
    // Finished runs that the command leaves out do not go.
    let lost = ["`sweep` has finished runs that this command leaves out", "--force"];
    scratch.narrows("sweep s.toml --out sweep --seeds 2").fails(2, &lost);
    scratch.narrows("sweep s.toml --out seeds --seeds 2").ok();
    scratch.narrows("sweep s.toml --out seeds --seeds 4").ok().reports(&["12 of 24 runs"]);
    scratch.narrows("sweep s.toml --out seeds --seeds 2").fails(2, &["that this command leaves out"]);
    scratch.narrows("sweep s.toml --out seeds --seeds 4 --shard 1/2").fails(2, &["that this command leaves out"]);
}

#[test]
fn merged_shards_equal_the_whole_sweep() {
    let scratch = scratch("sweep-shards");
    scratch.narrows("sweep s.toml --seeds 2 --out whole --quiet").ok();
    for shard in 1..=5 {
        scratch.narrows(&format!("sweep s.toml --seeds 2 --shard {shard}/5 --quiet")).ok();
    }
    assert!(scratch.read("out/sweep-3-of-5/report.html").contains("This is shard 3/5"));
    let merge = "sweep merge s.toml --seeds 2 --out merged --quiet";
    let some = "out/sweep-1-of-5 out/sweep-2-of-5";
    scratch.narrows(&format!("{merge} {some}")).fails(1, &["6 runs missing", "s.toml", "--seeds"]);
    assert!(!scratch.path("merged/manifest.json").exists());
    // The merged runs are kept, so the others are enough.
    scratch.narrows(&format!("{merge} out/sweep-3-of-5 out/sweep-4-of-5 out/sweep-5-of-5")).ok();
    assert!(scratch.comparable("merged") == scratch.comparable("whole"));
    // Runs of other settings are named and not taken.
    let other = scratch.narrows("sweep merge s.toml --seeds 2 --set stop=6ms --out other out/sweep-1-of-5");
    other.fails(1, &["12 runs missing", "not taken"]);
    scratch.narrows("sweep merge s.toml --out none s.toml").fails(2, &["`s.toml`"]);
    scratch.narrows("sweep merge s.toml --force out/sweep-1-of-5").fails(2, &["--force"]);
}

#[test]
fn ledger_records_runs_and_is_rebuilt_when_damaged() {
    let scratch = scratch("sweep-ledger");
    scratch.narrows("sweep status out/sweep").fails(2, &["has no ledger"]);
    scratch.narrows("sweep s.toml --quiet").ok();
    let status = scratch.narrows("sweep status out/sweep").ok();
    assert!(status.out.starts_with("6 runs: 6 finished\na run took"), "{status}");
    let json: Value = serde_json::from_str(&scratch.narrows("sweep status out/sweep --json").ok().out).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert!(runs.len() == 6 && runs.iter().all(|run| run["state"] == "finished" && run["tries"] == 1), "{json}");
    // A damaged ledger is reported and created again: only the results count.
    let before = scratch.comparable("out/sweep");
    let mut bytes = std::fs::read(scratch.path("out/sweep/ledger.sqlite")).unwrap();
    bytes[100..].fill(0xff);
    std::fs::write(scratch.path("out/sweep/ledger.sqlite"), bytes).unwrap();
    scratch.narrows("sweep status out/sweep").fails(2, &["cannot read", "ledger.sqlite"]);
    scratch.narrows("sweep s.toml").ok().reports(&["ledger.sqlite", "6 of 6 runs"]);
    assert!(scratch.narrows("sweep status out/sweep").ok().out.starts_with("6 runs: 6 finished"));
    assert!(scratch.comparable("out/sweep") == before);
    // The same holds for one that a power failure filled with zeros, and a journal without a ledger does no harm.
    std::fs::write(scratch.path("out/sweep/ledger.sqlite"), [0; 8192]).unwrap();
    scratch.narrows("sweep s.toml").ok().reports(&["6 of 6 runs"]);
    std::fs::remove_file(scratch.path("out/sweep/ledger.sqlite")).unwrap();
    std::fs::write(scratch.path("out/sweep/ledger.sqlite-journal"), "x").unwrap();
    scratch.narrows("sweep s.toml").ok().reports(&["6 of 6 runs"]);
    assert!(scratch.narrows("sweep status out/sweep").ok().out.starts_with("6 runs: 6 finished"));
    // A file of that name that is not a ledger stops a sweep and stays.
    scratch.write("mine/ledger.sqlite", "mine");
    scratch.narrows("sweep s.toml --out mine").fails(2, &["ledger.sqlite"]);
    assert_eq!(scratch.read("mine/ledger.sqlite"), "mine");
}

/// The tables of all runs begin with the same columns. Where a sweep gets another key, runs that are kept get it, too.
#[test]
fn all_tables_have_the_keys_of_the_points() {
    let scratch = scratch("sweep-columns");
    let names = |folder: &str| {
        let manifest: Value =
            serde_json::from_str(&scratch.read(&format!("out/sweep/{folder}/manifest.json"))).unwrap();
        let columns = manifest["columns"].as_array().unwrap().iter();
        let files = manifest["files"].clone();
        (columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), files)
    };
    scratch.narrows("sweep s.toml --quiet").ok();
    let folder = scratch.files("out/sweep").into_iter().find(|file| file.ends_with("flows.parquet")).unwrap();
    let folder = folder.trim_end_matches("/flows.parquet");
    let (first, files) = names(folder);
    assert_eq!(first, ["scheme", "port.buffer_bytes", "seed"]);
    let variant = format!("{SWEEP}\n[variants.far]\nset = {{ stop = \"6ms\" }}\n");
    scratch.write("s.toml", &variant);
    scratch.narrows("sweep s.toml").ok().reports(&["6 of 8 runs finished before: kept"]);
    let (second, changed) = names(folder);
    assert_eq!(second, ["scheme", "port.buffer_bytes", "variant", "seed"]);
    assert_ne!(files, changed);
    let summary: Value = serde_json::from_str(&scratch.read("out/sweep/summary.json")).unwrap();
    let last = &summary["runs"][7]["point"];
    assert_eq!((&last["variant"], &last["scheme"]), (&"far".into(), &"cubic".into()));
    // All is as a directory of its own would have it.
    scratch.narrows("sweep s.toml --quiet --out again").ok();
    assert!(scratch.comparable("out/sweep") == scratch.comparable("again"));
    // `report` reads all of it.
    scratch.narrows("report out/sweep").ok();
}

/// A run is identified by the contents of its file and of the files that it extends.
#[test]
fn changed_base_files_invalidate_runs() {
    let scratch = Scratch::new("extends");
    scratch.write("base.toml", GRID);
    let own = "extends = \"base.toml\"\nwithout = [\"grid\", \"schemes.cubic\"]\nname = \"own\"\n";
    scratch.write("own.toml", own);
    let swept = |force: &str| {
        scratch.narrows(&format!("sweep own.toml {force}")).ok();
        scratch.read("out/own/runs/uno/summary.json")
    };
    let first = swept("");
    // Nothing changed, and nothing is run: times would be others.
    assert_eq!(swept(""), first);
    scratch.write("base.toml", &GRID.replace("inter_rtt = \"100us\"", "inter_rtt = \"200us\""));
    scratch.narrows("sweep own.toml").fails(2, &["topology.inter_rtt: 100us -> 200us"]);
    assert_ne!(swept("--force"), first);
}
