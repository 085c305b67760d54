//! `narrows explain`: its report on the slowest flows, for people and for programs.

use serde_json::{Value, json};

use crate::support::{GRID, Scratch};

#[test]
fn traits_compare_slowest_with_typical_flows() {
    let scratch = Scratch::new("explain");
    scratch.write("s.toml", GRID);
    scratch.narrows("run s.toml --out r").ok();
    let all = scratch.narrows("explain r --traits").ok();
    for part in [
        "uno,traffic.0.load=0.2, inter: the slowest ",
        "compared with typical ones of their size",
        "fewer than 100 flows",
    ] {
        assert!(all.out.contains(part), "{part}: {all}");
    }
    let one = scratch.narrows("explain r --traits --run uno,load=0.2 --slowest 50% --json").ok();
    let found: Value = serde_json::from_str(&one.out).unwrap();
    let [run] = &found.as_array().unwrap()[..] else { panic!("{one}") };
    assert_eq!((&run["name"], &run["runs"]), (&json!("uno,traffic.0.load=0.2"), &json!(["uno,traffic.0.load=0.2"])));
    let classes = run["classes"].as_array().unwrap();
    assert!(!classes.is_empty());
    for class in classes {
        let slowest = class["slowest"].as_array().unwrap().len() as f64;
        assert!((slowest - class["flows"].as_f64().unwrap() / 2.0).abs() <= 0.5, "{class}");
        let slowdown = &class["traits"]["slowdown"];
        assert!(slowdown["slowest"].as_f64().unwrap() >= 1.0, "{class}");
    }
    scratch.narrows("explain r --run uno,traffic.0.load=0.9").fails(2, &["no run `uno,traffic.0.load=0.9`"]);
    scratch.narrows("explain r --slowest 0").fails(2, &["0 is not a fraction over 0"]);
    scratch.narrows("explain s.toml").fails(2, &["is a file, not a directory of results"]);
    scratch.narrows("explain none").fails(2, &["none"]);
}

/// With several seeds a scheme at a point is explained once, its flows with their seeds; a run of them can be explained
/// alone.
#[test]
fn seeds_are_explained_together() {
    let scratch = Scratch::new("explain-seeds");
    scratch.write("s.toml", GRID);
    scratch.narrows("sweep s.toml --seeds 2 --out r").ok();
    let all = scratch.narrows("explain r --traits").ok();
    for part in ["uno,traffic.0.load=0.2, 2 seeds together, inter: the slowest ", "│ seed ┆ flow ┆"] {
        assert!(all.out.contains(part), "{part}: {all}");
    }
    let explained = |words: &str| -> Value { serde_json::from_str(&scratch.narrows(words).ok().out).unwrap() };
    let all = explained("explain r --traits --json");
    let first = &all[0];
    assert_eq!(first["name"], "uno,traffic.0.load=0.2");
    let runs: Vec<&str> = first["runs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(runs.len(), 2);
    let flows = |explained: &Value| explained["classes"][0]["flows"].as_u64().unwrap();
    let alone = runs.iter().map(|run| flows(&explained(&format!("explain r --traits --run {run} --json"))[0]));
    assert_eq!(flows(first), alone.sum::<u64>());
    assert!(first["classes"][0]["slowest"][0]["seed"].is_u64());
}

/// The default output fits a screen for every directory; other groups are printed only on request.
#[test]
fn causes_fit_a_screen() {
    let scratch = Scratch::new("explain-causes");
    scratch.write("s.toml", GRID);
    scratch.narrows("sweep s.toml --seeds 2 --out r").ok();
    let all = scratch.narrows("explain r").ok().reports(&["2 runs to simulate again, twice each"]);
    assert!(all.out.lines().count() <= 24 && all.out.lines().all(|line| line.chars().count() <= 100), "{all}");
    for part in [" times ideal, ", " %  ", "groups not shown", "flow "] {
        assert!(all.out.contains(part), "{part}: {all}");
    }
    let of = |words: &str| -> Vec<Value> {
        serde_json::from_str(&scratch.narrows(&format!("explain r --quiet --json {words}")).ok().out).unwrap()
    };
    let groups = of("--only scheme=mixed --only load=20% --class inter");
    let [group] = &groups[..] else { panic!("{groups:?}") };
    assert!(group["name"].as_str().unwrap().starts_with("mixed,traffic.0.load=0.2"), "{group}");
    assert_eq!(group["part"], "inter");
    let number = |value: &Value| value.as_f64().unwrap();
    let sum: f64 = group["causes"].as_array().unwrap().iter().map(|cause| number(&cause["share"])).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{group}");
    let flow = &group["slowest"][0];
    let causes = flow["causes"].as_array().unwrap();
    let excess: f64 = causes.iter().map(|cause| number(&cause["time_ns"])).sum();
    assert!((excess - (number(&flow["fct_ns"]) - number(&flow["ideal_ns"]))).abs() < 1.0, "{flow}");
    // One flow alone is explained as among others.
    let run = flow["run"].as_str().unwrap();
    let alone = of(&format!("--run {run} --flow {}", flow["flow"]));
    assert_eq!(alone[0]["slowest"][0]["causes"], flow["causes"]);
    assert_eq!(of("--only scheme=uno --all --slowest 2%").len(), 4);
}

#[test]
fn invalid_selections_are_errors() {
    let scratch = Scratch::new("explain-wrong");
    let without_bins = GRID.replace("[sizes]\nsmall = \"0..10KB\"\nlarge = \"10KB..\"\n", "");
    scratch.write("s.toml", &without_bins);
    scratch.narrows("run s.toml --out r").ok();
    scratch.narrows("explain none").fails(2, &["none"]);
    scratch.narrows("explain s.toml").fails(2, &["is a file, not a directory of results"]);
    scratch.narrows("explain r --only schema=uno").fails(2, &["`schema`", "traffic.0.load"]);
    scratch.narrows("explain r --only scheme=dctcp").fails(2, &["no run has scheme=dctcp; there are uno"]);
    scratch.narrows("explain r --only uno").fails(2, &["`uno` is not KEY=VALUE"]);
    scratch.narrows("explain r --class far").fails(2, &["intra, inter"]);
    scratch.narrows("explain r --flow 3").fails(2, &["--flow", "--run"]);
    let unknown = "explain r --run uno,traffic.0.load=0.2 --flow 9999999";
    scratch.narrows(unknown).fails(2, &["`uno,traffic.0.load=0.2`", "9999999"]);
    scratch.narrows("explain r --bins").fails(2, &["the scenario has no size bins"]);
    scratch.narrows("explain r --run uno,traffic.0.load=0.2 --only load=20%").fails(2, &["cannot be used with"]);
}

/// Long names are printed on a line of their own.
#[test]
fn a_long_name_has_a_line_of_its_own() {
    let scratch = Scratch::new("explain-long");
    scratch.write("s.toml", GRID);
    let over = "--vary port.buffer=1MB --vary topology.inter_rtt=2ms";
    scratch.narrows(&format!("run s.toml --scheme uno {over} --out r --quiet")).ok();
    let printed = scratch.narrows("explain r --only load=0.2 --quiet").ok();
    let lines: Vec<&str> = printed.out.lines().collect();
    let name = "uno,traffic.0.load=0.2,port.buffer=1MB,topology.inter_rtt=2ms";
    let index = lines.iter().position(|line| *line == name);
    let numbers = index.map(|index| lines[index + 1]);
    assert!(numbers.is_some_and(|it| it.starts_with("  int") && it.ends_with(" beyond it")), "{printed}");
    assert!(lines.len() <= 24, "{printed}");
}

#[test]
fn inputs_are_needed_again() {
    let scratch = Scratch::new("explain-inputs");
    let text = "name = \"list\"\nstop = \"10ms\"\nschemes.dctcp = { law = \"dctcp\" }\n\
                topology = { kind = \"single-switch\", hosts = 3, rate = \"10Gbps\" }\n\
                traffic = [{ kind = \"list\", file = \"flows.csv\" }]\nsizes = { small = \"..100KB\", rest = \"100KB..\" }\n";
    let flows = "start,src,dst,bytes\n0s,0,2,1MB\n0s,1,2,1MB\n10us,1,2,5KB\n";
    scratch.write("s.toml", text);
    scratch.write("flows.csv", flows);
    scratch.narrows("run s.toml --out r").ok();
    let causes = scratch.narrows("explain r").ok();
    assert!(causes.out.contains("intra: the slowest of 3 flows: "), "{causes}");
    let bins = scratch.narrows("explain r --bins --quiet").ok();
    assert!(bins.out.contains("small") && bins.out.contains("rest"), "{bins}");
    scratch.write("flows.csv", &flows.replace("5KB", "6KB"));
    scratch.narrows("explain r").fails(2, &["flows.csv", "--inputs"]);
    std::fs::remove_file(scratch.path("flows.csv")).unwrap();
    scratch.narrows("explain r").fails(2, &["flows.csv", "--inputs"]);
    scratch.narrows("explain r --traits").ok();
    std::fs::create_dir(scratch.path("kept")).unwrap();
    scratch.write("kept/flows.csv", flows);
    scratch.narrows("explain r --inputs kept").ok();
}
