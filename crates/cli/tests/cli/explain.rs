//! `narrows explain`: what it says of the slowest flows, to people and to programs.

use serde_json::{Value, json};

use crate::support::{GRID, Scratch};

#[test]
fn the_slowest_flows_are_told_with_typical_ones() {
    let scratch = Scratch::new("explain");
    scratch.write("s.toml", GRID);
    scratch.narrows("run s.toml --out r").ok();
    let all = scratch.narrows("explain r").ok();
    for part in ["uno,load=0.2, inter: the slowest ", "beside typical ones of their size", "fewer than 100 flows"] {
        assert!(all.out.contains(part), "{part}: {all}");
    }
    let one = scratch.narrows("explain r --run uno,load=0.2 --share 50% --json").ok();
    let found: Value = serde_json::from_str(&one.out).unwrap();
    let [run] = &found.as_array().unwrap()[..] else { panic!("{one}") };
    assert_eq!((&run["name"], &run["runs"]), (&json!("uno,load=0.2"), &json!(["uno,load=0.2"])));
    let classes = run["classes"].as_array().unwrap();
    assert!(!classes.is_empty());
    for class in classes {
        let slowest = class["slowest"].as_array().unwrap().len() as f64;
        assert!((slowest - class["flows"].as_f64().unwrap() / 2.0).abs() <= 0.5, "{class}");
        let slowdown = &class["traits"]["slowdown"];
        assert!(slowdown["slowest"].as_f64().unwrap() >= 1.0, "{class}");
    }
    scratch.narrows("explain r --run uno,load=0.9").fails(2, &["no run `uno,load=0.9`", "did you mean"]);
    scratch.narrows("explain r --share 0").fails(2, &["0 is not a part of all"]);
    scratch.narrows("explain s.toml").fails(2, &["is a file and no directory of results"]);
    scratch.narrows("explain none").fails(2, &["none"]);
}

/// Of several seeds a scheme at a point is told once, its flows with their seeds; a run of them can be told alone.
#[test]
fn seeds_are_told_together() {
    let scratch = Scratch::new("explain-seeds");
    scratch.write("s.toml", GRID);
    scratch.narrows("sweep s.toml --seeds 2 --out r").ok();
    let all = scratch.narrows("explain r").ok();
    for part in ["uno,load=0.2, 2 seeds together, inter: the slowest ", "│ seed ┆ flow ┆"] {
        assert!(all.out.contains(part), "{part}: {all}");
    }
    let told = |words: &str| -> Value { serde_json::from_str(&scratch.narrows(words).ok().out).unwrap() };
    let all = told("explain r --json");
    let first = &all[0];
    assert_eq!(first["name"], "uno,load=0.2");
    let runs: Vec<&str> = first["runs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(runs.len(), 2);
    let flows = |told: &Value| told["classes"][0]["flows"].as_u64().unwrap();
    let alone = runs.iter().map(|run| flows(&told(&format!("explain r --run {run} --json"))[0]));
    assert_eq!(flows(first), alone.sum::<u64>());
    assert!(first["classes"][0]["slowest"][0]["seed"].is_u64());
}
