//! `narrows clocks`.

use serde_json::Value;

use crate::support::Scratch;

#[test]
fn a_mesh_is_simulated() {
    let scratch = Scratch::new("clocks-simulate");
    let command = "clocks simulate --hosts 4 --load 0 --duration 3s --warm-up 15s";
    let text = scratch.narrows(command).ok().out;
    for part in ["4 members, 0 % load", "error", "bound", "none outside"] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let json: Value = serde_json::from_str(&scratch.narrows(&format!("{command} --json")).ok().out).unwrap();
    assert_eq!((&json["schema"], &json["hosts"], &json["bound_held"]), (&1.into(), &4.into(), &true.into()));
    assert!(json["error_ns"]["p99"].as_i64().unwrap() < 1_000, "{json}");
    assert_eq!(scratch.narrows(&format!("{command} --quiet")).ok().out, "");
}

#[test]
fn impossible_meshes_are_refused() {
    let scratch = Scratch::new("clocks-refused");
    for (options, parts) in [
        ("--hosts 1", ["--hosts", "2..=1000"]),
        ("--load 100", ["--load", "0..=95"]),
        ("--hosts 4 --liars 2", ["--liars 2", "fewer than half"]),
        ("--duration 3", ["--duration", "3"]),
        ("--warm-up 1s", ["--warm-up 1s", "15"]),
        ("--steps-every 0s", ["--steps-every 0s", "100"]),
    ] {
        scratch.narrows(&format!("clocks simulate {options}")).fails(2, &parts);
    }
}
