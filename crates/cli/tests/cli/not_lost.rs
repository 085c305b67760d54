//! What a command could take away without a word, and what it must say.

use crate::support::{GRID, ONE, Scratch};

#[test]
fn results_do_not_lie_in_results() {
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
    // Put there by hand it is somebody's.
    scratch.narrows("run one.toml --quiet --out kept").ok();
    std::fs::rename(scratch.path("kept"), scratch.path("g/runs/kept")).unwrap();
    let parts = ["did not write there", "runs/kept"];
    scratch.narrows("run grid.toml --quiet --out g --set seed=7").fails(2, &parts);
    assert!(scratch.path("g/runs/kept/summary.json").exists());
}

#[test]
fn schemes_that_were_run_do_not_go_without_a_word() {
    let scratch = Scratch::new("scheme");
    scratch.write("grid.toml", GRID);
    scratch.narrows("run grid.toml --quiet --out g").ok();
    let before = scratch.read("g/summary.json");
    let parts = ["this command leaves out", "mixed", "--anew"];
    scratch.narrows("run grid.toml --quiet --out g --scheme uno").fails(2, &parts);
    assert_eq!(scratch.read("g/summary.json"), before);
    scratch.narrows("run grid.toml --quiet --out g --scheme uno --anew").ok();
    scratch.narrows("run grid.toml --quiet --out g --scheme uno").ok();
}

#[test]
fn warnings_are_told_quietly_too() {
    let scratch = Scratch::new("quiet");
    scratch.write("one.toml", ONE);
    let ran = scratch.narrows("run one.toml --quiet --out a --set stop=1us").ok();
    assert_eq!(ran.out, "");
    ran.says(&["did not end"]);
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
fn variants_called_like_numbers_stay_apart() {
    let scratch = Scratch::new("variants");
    let more = "[variants.1]\nset = { seed = 2 }\n[variants.01]\nset = { seed = 3 }\n[[table]]\ntitle = \"T\"\nwithout = \
                [\"1\"]\ncolumns = [{ label = \"fct\", value = \"it.all.fct.mean\" }]\n";
    scratch.write("one.toml", &format!("{ONE}\n{more}"));
    let printed = scratch.narrows("run one.toml --out a").ok().out;
    assert!(printed.contains("variant = 01"), "{printed}");
    assert!(!printed.contains("variant = 1\n") && !printed.contains("1.0\n"), "{printed}");
}
