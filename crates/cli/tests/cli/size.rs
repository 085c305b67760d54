//! `narrows size`: its results, its output and the files that it keeps.

use serde_json::Value;

use crate::support::Scratch;

const INCAST: &str = r#"
name = "incast"
stop = "20ms"
topology = { kind = "single-switch", hosts = 5, rate = "10Gbps" }
port = { buffer = "64KB", ecn = { min = "25%", max = "75%" } }
schemes.dctcp = { law = "dctcp" }
schemes.fixed = { label = "Fixed", law = "fixed", params.fixed = { window = "12KB" } }
traffic = [{ kind = "incast", intra = 4, size = "60KB" }]
"#;

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("s.toml", INCAST);
    scratch
}

#[test]
fn smallest_buffer_is_found_and_runs_are_kept() {
    let scratch = scratch("size-found");
    let command = "size s.toml --slo network.drops==0 --no-vary --seeds 1 --minimize port.buffer=4KB..256KB";
    let found = scratch.narrows(command).ok();
    for part in
        ["Fixed", "network.drops==0", "next value below", "2 settings; 12 runs in all", "report: out/incast-size/"]
    {
        assert!(found.out.contains(part), "no {part}: {found}");
    }
    let run_json = |command: &str| -> Value { serde_json::from_str(&scratch.narrows(command).ok().out).unwrap() };
    let json = run_json(&format!("{command} --json"));
    let fixed = &json["schemes"][1];
    assert_eq!((&json["key"], &fixed["scheme"]), (&"port.buffer".into(), &"fixed".into()));
    assert_eq!((&fixed["least"]["holds"], &fixed["fails"]["holds"]), (&true.into(), &false.into()));
    assert_eq!(fixed["binds"], serde_json::json!(["network.drops==0"]));
    // Quantities are in base units in CSV.
    let csv = scratch.narrows(&format!("{command} --csv")).ok().out;
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().starts_with("scheme,port.buffer_bytes,"), "{csv}");
    assert!(lines.all(|line| line.split(',').nth(1).unwrap().parse::<f64>().is_ok()), "{csv}");
    // Other objectives take the runs that are there.
    let marked = std::fs::metadata(scratch.path("out/incast-size/tried")).unwrap();
    let more = scratch.narrows(&command.replace("network.drops==0", "network.drops<=0")).ok();
    assert!(marked.is_dir() && more.err.is_empty(), "{more}");
}

#[test]
fn settings_are_searched_with_the_buffer() {
    let scratch = scratch("size-settings");
    let command = "size s.toml --slo p99(slowdown)<=4 --scheme fixed --seeds 2 --steps-per-doubling 2 \
                 --vary schemes.fixed.params.fixed.window=12KB,3KB --json";
    let json: Value = serde_json::from_str(&scratch.narrows(command).ok().out).unwrap();
    // An array in TOML is the same.
    let array = "--vary schemes.fixed.params.fixed.window=[\"12KB\",\"3KB\"]";
    let again = command.replace("--vary schemes.fixed.params.fixed.window=12KB,3KB", array);
    assert_eq!(json["schemes"], scratch.narrows(&again).ok().json()["schemes"]);
    let least = &json["schemes"][0]["least"];
    assert!(least["setting"]["schemes.fixed.params.fixed.window"].is_string(), "{json:#}");
    assert_eq!(least["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn invalid_arguments_are_errors() {
    let scratch = scratch("size-wrong");
    let fails = |rest: &str, expected: &[&str]| {
        scratch.narrows(&format!("size s.toml {rest}")).fails(2, expected);
        assert!(scratch.files("out").is_empty());
    };
    fails("", &["--slo"]);
    fails("--slo p99(slowdown)", &["--slo `p99(slowdown)`", "as in 'p99(intra.slowdown) <= 5'"]);
    fails("--slo drops==0", &["--slo `drops==0`"]);
    let unknown = ["unknown key `bufer`", "did you mean `buffer`?", "--> --minimize:1:"];
    fails("--slo network.drops==0 --minimize port.bufer=1KB..2KB", &unknown);
    fails("--slo network.drops==0 --vary port.bufer=1KB", &["unknown key `bufer`", "--> --vary:1:"]);
    fails("--slo network.drops==0 --minimize port.buffer=1us..2us", &["wrong unit", "--> --minimize:1:"]);
    fails("--slo p99(nope.fct)<=1ms", &["--slo `p99(nope.fct)<=1ms`", "`nope`"]);
    fails("--slo 5<6", &["--slo", "`5<6`"]);
    fails("--slo p99(fct)<=5", &["`5`"]);
    fails("--slo network.drops==0 --minimize port.buffer=2KB..1KB", &["is not above"]);
    fails("--slo network.drops==0 --minimize port.buffer=0B..1KB", &["begins above 0"]);
    fails("--slo network.drops==0 --vary port.ecn.min=", &["has an empty value"]);
    fails("--slo network.drops==0 --vary port.ecn.min=90% --vary port.ecn.max=10%", &["min", "max"]);
    fails("--slo network.drops==0 --scheme dctpc", &["no scheme `dctpc`", "`dctcp`"]);
    let drops = "--slo network.drops==0";
    fails(&format!("{drops} --vary port.buffer=8KB"), &["`port.buffer`", "one --vary"]);
    fails(&format!("{drops} --vary port.ecn.min=10% --vary port.ecn.min=20%"), &["`port.ecn.min`"]);
    fails(&format!("{drops} --vary port.ecn.min=10%,10%"), &["--vary", "`port.ecn.min=10%,10%`"]);
    fails(&format!("{drops} --vary schemes.nope.port.buffer=1KB"), &["`nope`"]);
    fails(&format!("{drops} --minimize seed=1..4"), &["--minimize `seed`", "--seeds"]);
    fails(&format!("{drops} --scheme dctcp --vary schemes.fixed.port.buffer=1KB"), &["no scheme `fixed` is sized"]);
    // Quotes around a part of a key are TOML's; a key of a scheme sizes that scheme alone.
    let one = "size s.toml --slo network.drops==0 --no-vary --seeds 1 --json \
               --minimize schemes.\"fixed\".params.fixed.window=1KB..64KB";
    let json: Value = serde_json::from_str(&scratch.narrows(one).ok().out).unwrap();
    assert_eq!(json["schemes"].as_array().map(Vec::len), Some(1), "{json:#}");
    scratch.narrows("show s.toml").fails(2, &["`s.toml`"]);
    let never = "size s.toml --slo p99(slowdown)<=1.001 --no-vary --seeds 1 --scheme dctcp";
    let never = scratch.narrows(never).reports(&["port.buffer of 2KB..256KB"]);
    assert!(never.code == 1 && never.out.contains("none of 2KB..256KB") && never.out.contains("% over"), "{never}");
}
