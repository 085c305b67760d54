//! `narrows choose`: the first choice, and refused arguments.

use serde_json::Value;

use crate::support::Scratch;

const INCAST: &str = r#"
name = "incast"
stop = "20ms"
topology = { kind = "single-switch", hosts = 5, rate = "10Gbps" }
port = { buffer = "64KB", ecn = { min = "25%", max = "75%" } }
schemes.fit = { label = "Fit", law = "fixed", params.fixed = { window = "12KB" } }
schemes.narrow = { label = "Narrow", law = "fixed", params.fixed = { window = "3KB" } }
schemes.wide = { label = "Wide", law = "fixed", params.fixed = { window = "300KB" } }
traffic = [{ kind = "incast", intra = 4, size = "60KB" }]
"#;

#[test]
fn first_choice_meets_objectives_with_the_lowest_score() {
    let scratch = Scratch::new("choose");
    scratch.write("s.toml", INCAST);
    let command = "choose s.toml --slo network.drops==0 --seeds 2 --no-vary --minimize port.buffer=16KB..64KB --metric p50(all.slowdown)";
    let printed = scratch.narrows(command).ok();
    // Wide sends 240 KB at once into 64 KB at most; four windows of Fit are 48 KB.
    for part in
        ["none of 16KB..64KB", "first choice: ", "assumed", "network.drops==0", "initial window of Wide", "report: "]
    {
        assert!(printed.out.contains(part), "no {part}: {printed}");
    }
    assert!(!printed.out.contains("first choice: Wide"), "{printed}");
    let json: Value = scratch.narrows(&format!("{command} --json")).ok().json();
    let first = json["first_choice"]["scheme"].as_str().unwrap();
    let g = |scheme: &str| {
        let scores = json["scores_at_settings"].as_array().unwrap();
        scores.iter().find(|it| it["scheme"] == scheme).and_then(|it| it["g"].as_f64())
    };
    let (fit, narrow) = (g("fit").unwrap(), g("narrow").unwrap());
    assert_eq!((first, g("wide")), (if fit <= narrow { "fit" } else { "narrow" }, None));
    assert!(
        printed.out.contains(&format!("first choice: {}", if first == "fit" { "Fit" } else { "Narrow" })),
        "{printed}"
    );
    let csv = scratch.narrows(&format!("{command} --csv")).ok();
    assert!(
        csv.out.starts_with("scheme,port.buffer,other_settings,tightest_objective,tightest_objective_worst,"),
        "{csv}"
    );
}

/// A scheme that is as good is named, and so are those that a key of one scheme leaves out.
#[test]
fn ties_and_schemes_left_out_are_named() {
    let scratch = Scratch::new("choose-ties");
    let twin = INCAST.replace("schemes.narrow", "schemes.twin").replace("Narrow", "Twin").replace("3KB", "12KB");
    scratch.write("s.toml", &twin);
    let command = "choose s.toml --slo network.drops==0 --seeds 1 --no-vary --metric p50(all.slowdown)";
    let tied = scratch.narrows(&format!("{command} --minimize port.buffer=16KB..64KB")).ok();
    assert!(tied.out.contains("first choice: Fit") && tied.out.contains("Twin (1.000)"), "{tied}");
    let one = format!("{command} --minimize schemes.fit.params.fixed.window=3KB..12KB");
    let text = scratch.narrows(&one).ok();
    assert!(text.out.contains("is a key of one scheme: twin, wide"), "{text}");
    let json: Value = scratch.narrows(&format!("{one} --json")).ok().json();
    assert_eq!((&json["ties"], &json["not_searched"]), (&serde_json::json!([]), &serde_json::json!(["twin", "wide"])));
}

/// Without objectives each tail has to be near that of the best scheme with the file's settings.
#[test]
fn objectives_follow_from_the_best_scheme() {
    let scratch = Scratch::new("choose-best");
    scratch.write("s.toml", INCAST);
    let printed =
        scratch.narrows("choose s.toml --seeds 1 --no-vary --minimize port.buffer=16KB..64KB --within 50%").ok();
    assert!(
        printed.out.contains("near the best scheme") && printed.out.contains("p99(intra.slowdown) <= "),
        "{printed}"
    );
}

#[test]
fn invalid_arguments_fail_before_any_run() {
    let scratch = Scratch::new("choose-wrong");
    scratch.write("s.toml", INCAST);
    let fails = |rest: &str, expected: &[&str]| {
        scratch.narrows(&format!("choose s.toml {rest}")).fails(2, expected);
        assert!(scratch.files("out").is_empty());
    };
    fails("--metric p9(slowdown)", &["--metric `p9(slowdown)`"]);
    fails("--slo p99(slowdown)", &["--slo `p99(slowdown)`"]);
    fails("--metric p99(nope.fct)", &["--metric `p99(nope.fct)`", "`nope`"]);
    fails("--slo network.drops==0 --minimize port.bufer=1KB..2KB", &["unknown key `bufer`", "--> --minimize:1:"]);
    fails("--csv=mean", &["`mean`", "choices, answers, tried"]);
    fails("--scheme narow", &["no scheme `narow`", "`narrow`"]);
    let none =
        "choose s.toml --slo network.drops==0 --scheme wide --seeds 1 --no-vary --minimize port.buffer=16KB..64KB";
    let none = scratch.narrows(none).reports(&["port.buffer of 16KB..64KB"]);
    assert_eq!(none.code, 1, "{none}");
    assert!(none.out.contains("first choice: none"), "{none}");
}
