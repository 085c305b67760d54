//! `narrows score`: its output, the files that it keeps, the inputs that it refuses.

use serde_json::Value;

use crate::compare::documented;
use crate::support::{GRID, Scratch, keys};

#[test]
fn schemes_are_scored_against_the_best_of_each_cell() {
    let scratch = Scratch::new("score");
    scratch.write("s.toml", GRID);
    scratch.narrows("run s.toml --seeds 2 --out r").ok();
    let shown = scratch.narrows("score r --wide").ok();
    assert!(
        ["95 % interval", "Over the best, traffic.0.load = 0.2"].iter().all(|part| shown.out.contains(part)),
        "{shown}"
    );
    let scored = scratch.narrows("score r --metric p50(all.slowdown) --save-baseline ref.toml --json").ok();
    let found: Value = serde_json::from_str(&scored.out).unwrap();
    assert_eq!((keys(&found), &found["schema"]), (vec!["schema", "reference", "scores"], &1.into()));
    documented(&found);
    let scores = found["scores"].as_array().unwrap();
    assert!(
        scores.iter().all(|score| score["g"].as_f64().unwrap() >= 1.0 && score["w"].as_f64() >= score["g"].as_f64())
    );
    assert_eq!(found["reference"]["points"][0]["seeds"], serde_json::json!([1, 2]));
    // The file has the same values, and describes itself.
    let again = scratch.narrows("score r --baseline ref.toml --json").ok();
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap(), found);
    scratch.narrows("score r --baseline r --metric p50(all.slowdown) --json").ok();
    scratch.narrows("score r --save-baseline ref.toml").ok();
    let text = scratch.read("ref.toml");
    scratch.write("ref.toml", &text.replacen("slowdown", "fct", 1));
    let edited = scratch.narrows("score r --baseline ref.toml").ok().err;
    assert!(edited.contains("`ref.toml`"), "{edited}");
    assert!(again.err.is_empty() && shown.err.contains("warning: `p99(small.slowdown)` is of "), "{shown}");
    scratch.narrows("score r --save-baseline ref.toml").fails(2, &["`ref.toml`", "edited"]);
    scratch.narrows("score r --baseline s.toml").fails(2, &["`s.toml`", "--save-baseline FILE"]);
    scratch.narrows("score r --metric p9(all.slowdown)").fails(2, &["metric `p9(all.slowdown)`"]);
    scratch.narrows("score r --metric network.drops/0").fails(2, &["has no `network.drops/0` over zero"]);
    // Some of the runs, and a scheme that is not part of the reference.
    let some = scratch.narrows("score r --filter load=20% --metric p50(all.slowdown) --json").ok();
    let some: Value = serde_json::from_str(&some.out).unwrap();
    assert_eq!(some["reference"]["points"].as_array().map(Vec::len), Some(1));
    assert_eq!(some["reference"]["points"][0], found["reference"]["points"][0]);
    scratch.narrows("score r --filter load=21%").fails(2, &["traffic.0.load=21%", "0.2, "]);
    let scored = scratch.narrows("score r --not-in-baseline uno --metric p50(all.slowdown) --json").ok();
    let others: Value = serde_json::from_str(&scored.out).unwrap();
    let best = |of: &Value| of["reference"]["points"][0]["cells"][0]["scheme"].as_str().map(str::to_owned);
    assert!(best(&others).is_some_and(|scheme| scheme != "uno"), "{others}");
    assert_eq!(others["scores"].as_array().map(Vec::len), Some(scores.len()));
    scratch.narrows("score r --not-in-baseline mine").fails(2, &["`mine`"]);
    let all: Vec<&str> = scores.iter().map(|it| it["scheme"].as_str().unwrap()).collect();
    scratch
        .narrows(&format!("score r --not-in-baseline {}", all.join(" --not-in-baseline ")))
        .fails(2, &["all schemes are newcomers (", "leave one out"]);
    scratch.narrows("run s.toml --seeds 2 --out busy --set traffic.0.ratio=1:1").ok();
    let other = "warning: `busy` and `r` differ in networks or flows: traffic.0.ratio";
    assert!(scratch.narrows("score busy --baseline r").ok().err.contains(other));
    // Also for one seed of these, with points that do not name it, and for other schemes.
    scratch.narrows("run s.toml --seed 1 --scheme uno --out one --set stop=19ms").ok();
    let other = "warning: `one` and `r` differ in networks or flows: stop";
    assert!(scratch.narrows("score one --baseline r").ok().err.contains(other));
    scratch.narrows("run s.toml --seeds 2 --scheme uno --out some").ok();
    assert!(!scratch.narrows("score some --baseline r").ok().err.contains("differ"));
    scratch.narrows("run s.toml --seed 7 --out other").ok();
    scratch.narrows("score other --baseline ref.toml").fails(2, &["have the seeds 7, and the reference has 1, 2"]);
    scratch.narrows("score s.toml").fails(2, &["is a file, not a directory of results"]);
}

/// A size bin without flows has no cells, and the command reports that; where no bin has any, it names the option to
/// use.
#[test]
fn unscored_bins_are_reported() {
    let scratch = Scratch::new("score-bins");
    let with = |bins: &str| scratch.write("s.toml", &GRID.replace("small = \"0..10KB\"\nlarge = \"10KB..\"\n", bins));
    with("most = \"..1TB\"\nhuge = \"1TB..\"\n");
    scratch.narrows("run s.toml --out r").ok();
    let scored = scratch.narrows("score r --json").ok();
    assert!(scored.err.contains("`huge`") && scored.err.contains("uno,traffic.0.load=0.2"), "{scored}");
    let found: Value = serde_json::from_str(&scored.out).unwrap();
    assert_eq!(found["reference"]["cells"], serde_json::json!(["p50(most.slowdown)", "p99(most.slowdown)"]));
    with("huge = \"1TB..\"\n");
    scratch.narrows("run s.toml --out none").ok();
    scratch.narrows("score none").fails(2, &["`huge`", "--metric 'p50(all.slowdown)'", "--filter variant=none"]);
}
