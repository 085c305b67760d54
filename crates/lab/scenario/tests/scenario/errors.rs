//! Errors of wrong scenarios: the file, the line, the caret, and accepted values.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use scenario::{Error, Overrides, Scenario, load, parse};

use crate::location::{points_at, quoted_text};

const VALID: &str = "\
name = \"t\"
stop = \"10ms\"
[topology]
kind = \"fat-trees\"
k = 4
rate = \"100Gbps\"
[port]
buffer = \"1MiB\"
[schemes.uno]
law = \"unocc\"
[schemes.uno.params.unocc]
alpha = 0.001
[[traffic]]
kind = \"incast\"
receiver = 3
intra = 2
size = \"1MiB\"
";

/// The error of the good file with one line replaced, read and built.
fn message(line: &str, replacement: &str) -> Error {
    assert!(VALID.contains(line), "{line}");
    let text = VALID.replace(line, replacement);
    let result = parse(&text, "dir/file.toml", &Overrides::default());
    let built = result.and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(replacement)
}

fn argument(key: &str, value: &str) -> Error {
    let overrides = Overrides { set: vec![(key.into(), value.into())], ..Overrides::default() };
    let built = parse(VALID, "file.toml", &overrides).and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(value)
}

#[test]
fn valid_file_builds() {
    parse(VALID, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
}

#[test]
fn clocks() {
    let stop = "stop = \"10ms\"\n";
    let with = |clock: &str| message(stop, &format!("{stop}[clock]\n{clock}\n"));
    points_at(&with("tick = \"0s\""), "file.toml:4:8", &["\"1ns\""]);
    points_at(&with("tick = \"1us\""), "file.toml:4:8", &["4160 B", "332.800 ns", "100 Gbps", "1.000 us"]);
    points_at(&with("exact_ticks = \"round-down-one\""), "file.toml:4:15", &["[clock]"]);
    points_at(&with("tie_break = \"scheduled\""), "file.toml:4:13", &["[switch]"]);
    points_at(&with("tie_break = \"first\""), "file.toml:4:13", &["\"input\"", "\"scheduled\""]);
}

/// Each message states the error in the user's words, and suggests nothing that would be refused, too.
#[test]
fn values_out_of_range() {
    let seed = "seed = 99999999999999999999\nstop = \"10ms\"";
    let too_large = "99999999999999999999";
    points_at(&message("stop = \"10ms\"", seed), "file.toml:2:8", &[too_large, "9223372036854775807"]);
    points_at(&argument("seed", too_large), "--set:1:6", &[too_large]);
    let large = message("k = 4", "k = 1000");
    points_at(&large, "file.toml:5:5", &["128", "1000"]);
    assert!(!quoted_text(&large).contains("did you mean"), "{large}");
    points_at(&message("k = 4", "k = 70000"), "file.toml:5:5", &["128", "70000"]);
    points_at(&message("k = 4", "k = 0"), "file.toml:5:5", &["128"]);
    points_at(&argument("topology.k", "127"), "--set:1:12", &["128"]);
    points_at(&message("stop = \"10ms\"", "stop = \"2000000s\""), "file.toml:2:8", &["1000000s"]);
    for (key, location) in
        [("host.mss", "--set:1:10"), ("host.int_header", "--set:1:17"), ("host.header", "--set:1:13")]
    {
        points_at(&argument(key, "-1"), location, &["-1", "65535"]);
    }
    points_at(&argument("host.mss", "0"), "--set:1:10", &["65535"]);
    points_at(&argument("host.mss", "65535"), "--set:1:10", &["65599 B", "65535 B"]);
    points_at(&argument("port.ecn", "{ step = \"200%\" }"), "--set:1:19", &["\"200%\"", "100%"]);
    points_at(&argument("port.loss_probability", "1e-300"), "--set:1:23", &["1e-300", "18"]);
    points_at(&message("\"100Gbps\"", "\"1bps\""), "file.toml:6:8", &["\"1bps\"", "1Mbps"]);
    let bits = message("size = \"1MiB\"", "size = \"10Mb\"");
    points_at(&bits, "file.toml:17:8", &["`Mb`", "`MB`", "KB"]);
    let losses = "{ law = \"flashpass\", params.flashpass = { min_target_loss = 0.2 } }";
    points_at(&argument("schemes.uno", losses), "--set:1:73", &["`min_target_loss`", "0.2", "`max_target_loss`"]);
    let k = "{ law = \"gemini\", params.gemini = { k = 0 } }";
    points_at(&argument("schemes.uno", k), "--set:1:53", &["GEMINI", "`k`", "0 B", "1 B"]);
    let strait = |param: &str| argument("schemes.uno", &format!("{{law = \"strait\", params.strait = {{{param}}}}}"));
    points_at(&strait("fast_periods = -1"), "--set:1:62", &["`fast_periods`", "1024"]);
    points_at(&strait("alpha = -0.1"), "--set:1:55", &["-0.1", "`alpha`"]);
}

/// Marks in per cent need a buffer with a size, whether the file has both, one or neither.
#[test]
fn marks_in_per_cent_of_an_unlimited_buffer() {
    let defaults = argument("port.buffer", "unlimited");
    points_at(&defaults, "--set:1:13", &["25 %", "ecn = \"off\", or limit the buffer"]);
    let port = "{ buffer = \"unlimited\", ecn = { min = \"1%\", max = \"2%\" } }";
    let explicit = argument("port", port);
    points_at(&explicit, "--set:1:44", &[]);
    assert!(
        !quoted_text(&defaults).contains("[switch]") && !quoted_text(&explicit).contains("[switch]"),
        "{defaults}\n{explicit}"
    );
    let shared = "[switch]\nbuffer = \"9MB\"\n[port]\necn = { min = \"1%\", max = \"2%\" }";
    let shared = message("[port]\nbuffer = \"1MiB\"", shared);
    points_at(&shared, "file.toml:10:15", &["[switch]"]);
}

#[test]
fn delays_in_hosts() {
    let with = |host: &str, more: &str| message("[port]", &format!("[host]\njitter = {host}\n{more}[port]"));
    points_at(&with("{ mean = \"0s\" }", ""), "file.toml:8:19", &[]);
    points_at(&with("{ mean = \"2s\" }", ""), "file.toml:8:19", &["1s"]);
    points_at(
        &with("{ mean = \"1us\", distribution = \"gauss\" }", ""),
        "file.toml:8:41",
        &["\"exponential\"", "\"uniform\""],
    );
    points_at(&with("\"1us\"", ""), "file.toml:8:10", &["\"off\"", "mean = \"1us\""]);
    let clock = "[clock]\ntick = \"1ns\"\ntie_break = \"scheduled\"\n[switch]\nbuffer = \"1MiB\"\n";
    points_at(&with("{ mean = \"1us\" }", clock), "file.toml:8:10", &["tie_break = \"scheduled\""]);
    let text = VALID.replacen("[port]", "[host]\njitter = { mean = \"2us\", distribution = \"uniform\" }\n[port]", 1);
    let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
    let jitter = built.setup.host.jitter.unwrap();
    assert_eq!((jitter.mean, jitter.shape), (units::Span::from_us(2), experiment::JitterShape::Uniform));
}

#[test]
fn linux_host_defaults() {
    let with = |host: &str| message("[port]", &format!("[host]\n{host}\n[port]"));
    points_at(&with("tcp = \"bsd\""), "file.toml:8:7", &["\"off\"", "\"linux\"", "hystart = false"]);
    points_at(&with("tcp = { hystrat = true }"), "file.toml:8:9", &["`hystart`"]);
    points_at(&with("tcp = \"linux\"\nrecovery = \"go-back-n\""), "file.toml:8:7", &["recovery = \"selective\""]);
    points_at(&with("fq = true"), "file.toml:8:6", &["tsq_limit"]);
    let path = "load_balancing = { kind = \"unolb\", law_per = \"subflow\" }";
    points_at(&with(&format!("tcp = \"linux\"\n{path}")), "file.toml:8:7", &["law_per = \"flow\""]);
}

/// Connections are kept if the traffic asks for it, but not by laws that send by credits.
#[test]
fn connections_persist_if_configured() {
    let kept = |connections: &str, law: &str| {
        let text = VALID.replacen("[[traffic]]\n", &format!("[[traffic]]\n{connections}\n"), 1);
        let text = text.replace("law = \"unocc\"", law).replace("alpha = 0.001", "");
        let text = text.replace("[schemes.uno.params.unocc]", "");
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
        built.setup.flows.iter().all(|flow| flow.kept)
    };
    assert!(kept("connections = \"persistent\"", "law = \"dctcp\""));
    assert!(!kept("connections = \"new\"", "law = \"dctcp\"") && !kept("", "law = \"dctcp\""));
    assert!(!kept("connections = \"persistent\"", "law = \"expresspass\""));
}

/// `tcp = "linux"` switches Cubic's detectors on, unless the scheme sets them. Laws without detectors get the other settings.
#[test]
fn linux_host_defaults_yield_to_the_scheme() {
    let built = |host: &str, law: &str| {
        let text = VALID.replacen("[port]", &format!("[host]\ntcp = {host}\n[port]"), 1);
        let text =
            text.replace("law = \"unocc\"", law).replace("alpha = 0.001", "").replace("[schemes.uno.params.unocc]", "");
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
        let on = |name: &str| {
            let settings = built.laws.law(scenario::FlowClass::Intra).unwrap().1;
            settings
                .iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| *value == laws::catalog::ParamValue::Switch(true))
        };
        let tcp = built.setup.host.tcp;
        (on("hystart_train"), on("hystart_delay"), tcp.prr, tcp.usage.restart)
    };
    let on = Some(true);
    assert_eq!(built("\"linux\"", "law = \"cubic\""), (on, on, true, true));
    assert_eq!(built("{ prr = false }", "law = \"cubic\""), (on, on, false, true));
    assert_eq!(built("{ hystart = false, idle_restart = false }", "law = \"cubic\""), (None, None, true, false));
    assert_eq!(built("\"off\"", "law = \"cubic\""), (None, None, false, false));
    let own = "law = \"cubic\"\nparams.cubic.hystart_train = false";
    assert_eq!(built("\"linux\"", own), (Some(false), on, true, true));
    assert_eq!(built("\"linux\"", "law = \"dctcp\""), (None, None, true, true));
}

#[test]
fn an_unknown_key() {
    let text = message("rate = \"100Gbps\"", "raet = \"100Gbps\"");
    points_at(&text, "file.toml:6:1", &["`raet`", "`rate`"]);
    points_at(&message("stop = \"10ms\"", "topolgy = 1"), "file.toml:2:1", &["`topology`"]);
    points_at(&message("receiver = 3", "recevier = 3"), "file.toml:15:1", &["`receiver`"]);
}

#[test]
fn external_laws() {
    let laws = |name: &str, hash: &str, params: &str| {
        format!(
            "[external_laws.{name}]\nlanguage = \"Python\"\nsha256 = \"{hash}\"\nparams = {params}\n[schemes.uno]\nlaw = \"Halve\"\n"
        )
    };
    let hash = "1f".repeat(32);
    let uno = "[schemes.uno]\nlaw = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001\n";
    let with = |text: String| message(uno, &text);
    points_at(&with("[schemes.uno]\nlaw = \"Halve\"\n".into()), "file.toml:10:7", &["`Halve`", "laws=[Halve]"]);
    points_at(&with("[schemes.uno]\nlaw = \"Gemini\"\n".into()), "file.toml:10:7", &["`Gemini`", "`gemini`"]);
    points_at(&with(laws("halve", &hash, "{}")), "file.toml:9:16", &[]);
    points_at(&with(laws("Halve", "12", "{}")), "file.toml:11:10", &["`12`", "SHA-256", "64"]);
    points_at(&with(laws("Halve", &hash, "{ a = \"x\" }")), "file.toml:12:16", &["\"x\""]);
    for number in ["inf", "-inf", "nan", "1e999"] {
        points_at(&with(laws("Halve", &hash, &format!("{{ a = {number} }}"))), "file.toml:12:16", &[]);
    }
    let written_in = |language: &str| {
        // As JSON has it, TOML has it, too.
        let quoted = serde_json::Value::from(language).to_string();
        with(laws("Halve", &hash, "{}").replace("\"Python\"", &quoted))
    };
    let long = "P".repeat(33);
    for language in ["", "Pythön", &long] {
        points_at(&written_in(language), "file.toml:10:12", &["32"]);
    }
    points_at(&written_in("Py\u{1b}[31mthon"), "file.toml:10:12", &["U+001B"]);
    let set = |param: &str| with(laws("Halve", &hash, "{ gain = 4, on = true, share = 0.5 }") + param);
    let set = |param: &str| set(&format!("[schemes.uno.params.Halve]\n{param}\n"));
    points_at(&set("gian = 4"), "file.toml:16:1", &["`gian`", "`gain`"]);
    points_at(&set("gain = 0.5"), "file.toml:16:8", &["`gain`"]);
    points_at(&set("on = 1"), "file.toml:16:6", &["`on`"]);
    points_at(&set("share = true"), "file.toml:16:9", &["`share`"]);
    for number in ["inf", "nan", "1e999"] {
        points_at(&set(&format!("share = {number}")), "file.toml:16:9", &[]);
    }

    let text =
        laws("Halve", &hash, "{ gain = 4, on = true, share = 0.5 }") + "[schemes.uno.params.Halve]\nshare = 2_0.5\n";
    let scenario = parse(&VALID.replace(uno, &text), "x", &Overrides::default()).unwrap();
    let built = scenario.runs()[0].build().unwrap();
    assert_eq!(scenario.runs()[0].label, "Halve");
    let external: Vec<_> = built.laws.external_laws().collect();
    let [law] = &external[..] else { panic!("{external:?}") };
    assert_eq!((&*law.name, &*law.language, &*law.sha256), ("Halve", "Python", &*hash));
    assert_eq!(law.params, serde_json::json!({ "gain": 4, "on": true, "share": 20.5 }));
    assert_eq!(built.laws.law(scenario::FlowClass::Intra), None);
    assert_eq!(built.laws.name(scenario::FlowClass::Inter), "Halve");
    assert!(
        built
            .warnings
            .iter()
            .any(|note| note == "Halve is an external law in Python (SHA-256 1f1f1f1f1f1f...), not part of Narrows"),
        "{:?}",
        built.warnings
    );
    // It is written as it was read.
    let reparsed = parse(&scenario.resolved_toml(), "x", &Overrides::default()).unwrap();
    assert_eq!(reparsed.config, scenario.config);
}

#[test]
fn unknown_names() {
    points_at(&message("\"incast\"", "\"incats\""), "file.toml:14:8", &["`incats`", "`incast`"]);
    points_at(&message("law = \"unocc\"", "law = \"unoc\""), "file.toml:10:7", &["`unocc`"]);
    points_at(&message("alpha = 0.001", "alhpa = 0.001"), "file.toml:12:1", &["`alpha`"]);
    points_at(&message("params.unocc]", "params.gemini]"), "file.toml:11:21", &["`gemini`", "`unocc`"]);
    points_at(&message("receiver = 3", "receiver = \"dc0.hots3\""), "file.toml:15:12", &["`dc0.host3`"]);
}

#[test]
fn a_wrong_unit() {
    let text = message("rate = \"100Gbps\"", "rate = \"100ms\"");
    points_at(&text, "file.toml:6:8", &["`ms`", "\"100Gbps\""]);
    points_at(&message("stop = \"10ms\"", "stop = 10"), "file.toml:2:8", &["\"2ms\"", "10"]);
    points_at(&message("size = \"1MiB\"", "size = \"1Gb\""), "file.toml:17:8", &["`Gb`"]);
}

#[test]
fn a_negative_rate() {
    points_at(&message("\"100Gbps\"", "\"-100Gbps\""), "file.toml:6:8", &["\"-100Gbps\"", "\"100Gbps\""]);
    points_at(&message("\"100Gbps\"", "-5"), "file.toml:6:8", &[]);
    points_at(&message("\"100Gbps\"", "\"0Gbps\""), "file.toml:6:8", &["1Mbps"]);
}

#[test]
fn an_odd_k() {
    points_at(&message("k = 4", "k = 7"), "file.toml:5:5", &["128"]);
}

#[test]
fn a_host_out_of_range() {
    points_at(&message("receiver = 3", "receiver = 32"), "file.toml:15:12", &["32", "31"]);
    points_at(&message("receiver = 3", "receiver = -1"), "file.toml:15:12", &[]);
    points_at(&message("intra = 2", "intra = 16"), "file.toml:16:9", &["16", "15"]);
}

#[test]
fn a_law_parameter_out_of_range() {
    points_at(&message("alpha = 0.001", "alpha = 1.5"), "file.toml:12:9", &["`alpha`", "1.5"]);
    points_at(&message("alpha = 0.001", "alpha = \"1ms\""), "file.toml:12:9", &["0.5"]);
}

#[test]
fn zero_flows() {
    points_at(&message("intra = 2", "intra = 0"), "file.toml:13:1", &[]);
    let text = VALID.split("[[traffic]]").next().unwrap().replace("stop", "traffic = []\nstop");
    points_at(&parse(&text, "f.toml", &Overrides::default()).unwrap_err(), "f.toml:2:11", &["[[traffic]]"]);
}

/// A directory with distributions that are no good. Written once: tests run side by side.
fn distributions() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("errors-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("short.txt"), "0 0\n1000 50\n2000 99\n").unwrap();
        std::fs::write(directory.join("binary.txt"), [0xffu8, 0xfe, 0x00]).unwrap();
        directory
    })
}

fn poisson(rest: &str) -> Error {
    let start = VALID.find("[[traffic]]").unwrap();
    let text = format!("{}[[traffic]]\nkind = \"poisson\"\n{rest}\n", &VALID[..start]);
    let origin = distributions().join("file.toml").display().to_string();
    let built = parse(&text, &origin, &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(rest)
}

#[test]
fn a_load_over_all() {
    let text = poisson("inter = \"alibaba-wan\"\nload = 1.2\nduration = \"1ms\"");
    points_at(&text, "file.toml:16:8", &["100 %", "1.2", "`inter`", "1600 Gbps", "1920 Gbps"]);
    let text = poisson("intra = \"websearch\"\nload = 0.5\nduration = \"1ms\"");
    points_at(&text, "file.toml:13:1", &["`inter`", "load_of = \"host\""]);
    points_at(
        &poisson("intra = \"websearch\"\ninter = \"websearch\"\nload = 0.5\nduration = \"1ms\""),
        "file.toml:17:8",
        &["`ratio`"],
    );
    points_at(&poisson("inter = \"websearch\"\nload = 0.5"), "file.toml:16:8", &[]);
}

#[test]
fn a_distribution_that_is_broken_or_missing() {
    let text = poisson("inter = \"short.txt\"\nload = 0.5\nduration = \"1ms\"");
    points_at(&text, "short.txt:3:1", &["100 %", "99 %"]);
    let text = poisson("inter = \"websaerch\"\nload = 0.5\nduration = \"1ms\"");
    points_at(&text, "file.toml:15:9", &["`websearch`", "`google-rpc`"]);
    let text = poisson("inter = \"zzz\"\nload = 0.5\nduration = \"1ms\"");
    points_at(&text, "file.toml:15:9", &["`websearch`", "`facebook-hadoop`"]);
    let text = poisson("inter = \"missing.txt\"\nload = 0.5\nduration = \"1ms\"");
    points_at(&text, "file.toml:15:9", &[]);
    points_at(&poisson("inter = \"binary.txt\"\nload = 0.5\nduration = \"1ms\""), "file.toml:15:9", &["UTF-8"]);
}

#[test]
fn a_missing_and_an_unreadable_file() {
    let text = load("no/such/file.toml", &Overrides::default()).unwrap_err();
    points_at(&text, "nowhere", &["`no/such/file.toml`"]);
    // A directory is a file that no user can read.
    let directory = std::env::temp_dir();
    let text = load(&directory, &Overrides::default()).unwrap_err();
    points_at(&text, "nowhere", &[&directory.display().to_string()]);
}

#[test]
fn broken_toml() {
    points_at(&message("k = 4", "k = "), "file.toml:5:5", &["TOML"]);
    points_at(&message("k = 4", "k = 4\nk = 4"), "file.toml:6:1", &[]);
}

#[test]
fn missing_keys_and_wrong_types() {
    points_at(&message("size = \"1MiB\"", ""), "file.toml:13:1", &["`size`"]);
    points_at(&message("kind = \"incast\"", ""), "file.toml:13:1", &["`kind`", "`permutation`"]);
    points_at(&message("name = \"t\"", "name = 4"), "file.toml:1:8", &[]);
    points_at(&message("name = \"t\"", "name = \"a/b\""), "file.toml:1:8", &[]);
    points_at(&message("name = \"t\"", "name = \"t\"\nschema = 2"), "file.toml:2:10", &[]);
    points_at(&message("k = 4", "link_delay = \"1us\"\nintra_rtt = \"9us\""), "file.toml:6:13", &[]);
    points_at(&message("k = 4", "intra_rtt = \"1us\""), "file.toml:5:13", &["2.028 us"]);
    points_at(&message("k = 4", "link_delay = \"0us\""), "file.toml:5:14", &[]);
    points_at(&message("buffer = \"1MiB\"", "ecn = { min = \"80%\" }"), "file.toml:8:15", &["786432 B"]);
    points_at(&message("buffer = \"1MiB\"", "buffer = \"unlimited\""), "file.toml:8:10", &["25 %"]);
}

#[test]
fn buffers_of_no_bandwidth_delay_product() {
    for wrong in ["0bdp", "-1bdp", "xbdp"] {
        points_at(
            &message("buffer = \"1MiB\"", &format!("buffer = \"{wrong}\"")),
            "file.toml:8:10",
            &["\"bdp\"", "\"0.5bdp\""],
        );
    }
    // Which queue a share of the buffer is depends on the port's rate.
    let follows = "k = \"port\"\n[schemes.uno.port]\nbuffer = \"bdp\"";
    points_at(&message("alpha = 0.001", follows), "file.toml:12:5", &[]);
}

#[test]
fn schemes_without_a_law_or_with_two() {
    points_at(&message("law = \"unocc\"", ""), "file.toml:9:10", &[]);
    points_at(&message("law = \"unocc\"", "law = \"unocc\"\nintra = \"bbr\""), "file.toml:11:9", &["`law`"]);
    points_at(&message("law = \"unocc\"", "intra = \"unocc\""), "file.toml:10:9", &[]);
    points_at(&message("alpha = 0.001", "k = \"port\"\n[schemes.uno.port]\necn = \"off\""), "file.toml:12:5", &[]);
    points_at(&message("[port]", "[host]\nheader = 65000\n[port]"), "file.toml:8:10", &["69096 B"]);
}

#[test]
fn arguments_are_pointed_at() {
    points_at(&argument("topology.k", "5"), "--set:1:12", &["128"]);
    points_at(&argument("topolgy.k", "4"), "--set:1:1", &["`topolgy`", "`topology`"]);
    points_at(&argument("traffic.0.sise", "4"), "--set:1:1", &["`sise`", "`size`"]);
    points_at(&argument("traffic.3.size", "4"), "--set:1:1", &["`3`"]);
    points_at(&argument("topology.rate", "100"), "--set:1:15", &[]);
    points_at(&argument("name.x", "1"), "--set:1:1", &["\"t\""]);
    points_at(&argument("a..b", "1"), "--set:1:1", &[]);
    let overrides = Overrides { scale: Some("quick".into()), ..Overrides::default() };
    points_at(&parse(VALID, "f", &overrides).unwrap_err(), "--scale:1:1", &["`quick`"]);
}

#[test]
fn dependency_cycles_are_errors() {
    let list = |flows: &str| {
        message(
            "kind = \"incast\"\nreceiver = 3\nintra = 2\nsize = \"1MiB\"",
            &format!("kind = \"list\"\nflows = [{flows}]"),
        )
    };
    points_at(&list("{ src = 0, dst = 1, size = 1, after = 0 }"), "file.toml:15:48", &[]);
    points_at(
        &list("{ src = 0, dst = 1, size = 1, after = 1 }, { src = 0, dst = 1, size = 1, after = 0 }"),
        "file.toml:15:48",
        &[],
    );
    let waiting = |afters: &[&str]| {
        let flows = afters.iter().map(|after| format!("{{ src = 0, dst = 1, size = 1{after} }}"));
        list(&flows.collect::<Vec<_>>().join(", "))
    };
    let round = waiting(&["", ", after = [0, 3]", ", after = [0, 1]", ", after = [2]"]);
    points_at(&round, "file.toml:15:80", &[]);
    points_at(&waiting(&[", after = 7"]), "file.toml:15:48", &[]);
    points_at(&waiting(&["", ", after = [0, 2]"]), "file.toml:15:84", &[]);
    points_at(&waiting(&["", ", after = [0, 0]"]), "file.toml:15:84", &[]);
    points_at(&waiting(&["", ", after = []"]), "file.toml:15:80", &[]);
    for event in ["x", "recieved:0", "received:", "received:-1", "0:received"] {
        points_at(&waiting(&["", &format!(", after = \"{event}\"")]), "file.toml:15:80", &[]);
    }
    points_at(&waiting(&["", ", after = \"received:0+7\""]), "file.toml:15:80", &[]);
    points_at(&waiting(&["", ", after = [\"received:0\", 0, \"received:0+1us\"]"]), "file.toml:15:98", &[]);
    // A flow without a size has no end.
    for event in ["0", "\"received:0\""] {
        let waits = format!("{{ src = 0, dst = 1 }}, {{ src = 1, dst = 2, size = 1, after = {event} }}");
        points_at(&list(&waits), "file.toml:15:70", &[]);
    }
    points_at(
        &list("{ src = 0, dst = 1, size = 1 }, { src = 1, dst = 2, size = 1, after = \"begun:0\" }"),
        "file.toml:15:80",
        &[],
    );
    points_at(&waiting(&["", ", after = 0, compute = 3"]), "file.toml:15:93", &[]);
    points_at(&list("{ src = 0, dst = 0, size = 1 }"), "file.toml:15:27", &[]);
    points_at(&list("{ src = 0, dst = 1, size = 0 }"), "file.toml:15:37", &[]);
    points_at(&list(""), "file.toml:15:9", &[]);
}

#[test]
fn grids_and_scales_are_checked_when_read() {
    let add = |text: &str| message("[[traffic]]", &format!("{text}\n[[traffic]]"));
    points_at(&add("[grid]\n\"traffic.0.sise\" = [1, 2]"), "file.toml:14:1", &["`sise`", "`size`"]);
    points_at(&add("[grid]\n\"traffic.0.size\" = [1, \"2ms\"]"), "file.toml:14:24", &["`ms`"]);
    points_at(&add("[grid]\n\"traffic.0.size\" = 4"), "file.toml:14:20", &[]);
    points_at(&add("[scale.quick]\nset = { \"traffic.0.size\" = \"64Kb\" }"), "file.toml:14:28", &["`Kb`"]);
    let variant = |text: &str| add(&format!("[grid]\nseed = [1, 2]\n[variants.far]\n{text}"));
    points_at(&variant("set = { \"topology.kk\" = 4 }"), "file.toml:16:9", &["`kk`"]);
    points_at(&variant("set = { seed = 4 }"), "file.toml:16:9", &["[grid]", "`seed`", "`grid`"]);
    points_at(&variant("grid = { sed = [4] }"), "file.toml:16:10", &["`sed`", "[grid]", "`seed`"]);
    points_at(&variant("grid = { seed = 4 }"), "file.toml:16:17", &[]);
    points_at(&add("[grid]\nseed = []"), "file.toml:14:1", &[]);
    points_at(&variant("schemes = [\"un\"]"), "file.toml:16:12", &["`un`", "`uno`"]);
    points_at(&add("[sizes]\nfar = \"outer 1MB..\""), "file.toml:14:7", &[]);
    points_at(&add("[sizes]\nfar = \"incats: ..1MB\""), "file.toml:14:1", &["`incats`", "`incast`"]);
    let many = format!("[grid]\nseed = {:?}\nstop = {:?}", vec![1; 200], vec!["1ms"; 200]);
    points_at(&add(&many), "file.toml:14:1", &["10000"]);
}

#[test]
fn pages_larger_than_memory_are_errors() {
    let text = poisson("inter = \"alibaba-wan\"\nload = 0.5\nflows = 4000000000");
    points_at(&text, "file.toml:17:9", &[]);
    points_at(&message("stop", "monitor = { interval = \"1ps\", flows = \"all\" }\nstop"), "file.toml:2:39", &[]);
}

#[test]
fn parameters_that_do_not_fit_together() {
    let vegas = |params: &str| {
        let text = VALID.replace("law = \"unocc\"", "law = \"vegas\"");
        let text = text.replace("params.unocc]\nalpha = 0.001\n", &format!("params.vegas]\n{params}\n"));
        parse(&text, "file.toml", &Overrides::default())
    };
    points_at(&vegas("alpha = 5").unwrap_err(), "file.toml:12:9", &["`beta`", "`alpha`"]);
    points_at(&vegas("beta = 1").unwrap_err(), "file.toml:12:8", &["`alpha`"]);
    assert!(vegas("alpha = 5\nbeta = 5").is_ok());
}

#[test]
fn predictors_need_int_capable_switches() {
    let chosen = |with: &str| message("[port]", &format!("[monitor]\npredictors = \"all\"\n{with}[port]"));
    points_at(&chosen(""), "file.toml:8:14", &["[switch]"]);
    let both =
        VALID.replace("law = \"unocc\"", "law = \"hpcc\"").replace("[schemes.uno.params.unocc]\nalpha = 0.001\n", "");
    let both = both.replace("[port]", "[switch]\nbuffer = \"32MiB\"\n[monitor]\npredictors = 1\n[port]");
    let error = parse(&both, "x", &Overrides::default()).and_then(|it| it.runs()[0].build()).unwrap_err();
    points_at(&error, "x:10:14", &["INT"]);
}

#[test]
fn hosts_of_a_switch() {
    let nodes = |first: &str, second: &str, ends: &str| {
        let topology = format!(
            "[topology]\nkind = \"custom\"\nnodes = [\n{{ name = \"s\", kind = \"switch\", hosts = 3, host_rate = \"1Gbps\", \
             host_delay = \"1us\" }},\n{{ name = \"t\", {first} }},\n{{ name = {second} }}]\n\
             links = [{{ between = {ends}, rate = \"1Gbps\", delay = \"1us\" }},\n\
             {{ between = [\"s\", \"x\"], rate = \"1Gbps\", delay = \"1us\" }}]"
        );
        let text = VALID
            .replace("[topology]\nkind = \"fat-trees\"\nk = 4\nrate = \"100Gbps\"", &topology)
            .replace("receiver = 3", "receiver = \"s.h2\"");
        parse(&text, "file.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
    };
    let (switch, x, ends) = ("kind = \"switch\"", "\"x\", kind = \"switch\"", "[\"s\", \"t\"]");
    assert!(nodes(switch, x, ends).is_ok());
    // `s` has no fourth host, and no host `00`.
    for name in ["s.h3", "s.h00", "s.h"] {
        assert!(nodes(switch, &x.replacen('x', name, 1), ends).is_err_and(|it| quoted_text(&it).contains("`x`")));
    }
    let links = "host_rate = \"1Gbps\", host_delay = \"1us\"";
    let cases = [
        (format!("kind = \"host\", hosts = 2, {links}"), x, ends, "7:38", ""),
        ("kind = \"switch\", hosts = 0".into(), x, ends, "7:40", "65535"),
        ("kind = \"switch\", hosts = 2, host_rate = \"1Gbps\"".into(), x, ends, "7:40", "`host_delay`"),
        ("kind = \"switch\", hosts = 2, host_delay = \"1us\"".into(), x, ends, "7:40", "`host_delay`"),
        ("kind = \"switch\", host_delay = \"1us\"".into(), x, ends, "7:45", "`host_delay`"),
        ("kind = \"switch\", host_rate = \"1Gbps\"".into(), x, ends, "7:44", "`host_rate`"),
        (format!("kind = \"switch\", hosts = 1, {}", links.replace("1us", "0us")), x, ends, "7:77", ""),
        (switch.into(), "\"s.h1\", kind = \"host\"", ends, "8:10", "`s.h1`"),
        (switch.into(), "\"s\", kind = \"switch\"", ends, "8:10", "`s`"),
        (switch.into(), x, "[\"s.h1\", \"t\"]", "9:23", "`s.h1`"),
        (switch.into(), x, "[\"s.h4\", \"t\"]", "9:23", "`s.h4`"),
    ];
    for (first, second, ends, location, what) in cases {
        points_at(&nodes(&first, second, ends).map(drop).unwrap_err(), &format!("file.toml:{location}"), &[what]);
    }
}

#[test]
fn lists_and_samples_are_checked_when_read() {
    let add = |line: &str| message("[topology]\n", &format!("{line}\n[topology]\n"));
    points_at(
        &add("points = [{ seed = 1, stop = \"1ms\" }, { seed = 2, stp = \"2ms\" }]"),
        "file.toml:3:51",
        &["`stp`", "`stop`"],
    );
    points_at(&add("points = [{ seed = 1, stop = \"1ms\" }, { seed = 2 }]"), "file.toml:3:39", &["`stop`"]);
    points_at(&add("points = [{}]"), "file.toml:3:11", &[]);
    points_at(&add("points = [{ seed = 1 }, { seed = 1 }]"), "file.toml:3:34", &["`1`"]);
    points_at(&add("grid.seed = [1, 2]\npoints = [{ seed = 3 }]"), "file.toml:4:11", &["`seed`"]);
    points_at(
        &add("grid.seed = [1]\nrandom_points = { points = 2, keys = { seed = [3] } }"),
        "file.toml:4:17",
        &["`seed`"],
    );
    points_at(&add("random_points = { points = 2, keys = {} }"), "file.toml:3:17", &[]);
    points_at(&add("random_points = { points = 20000, keys = { seed = [1] } }"), "file.toml:3:17", &["10000"]);
    points_at(&add("random_points = { points = 2, keys = { seed = { from = 2, to = 1 } } }"), "file.toml:3:64", &[]);
    points_at(
        &add("random_points = { points = 2, keys = { \"port.buffer\" = { from = \"1ms\", to = \"2ms\" } } }"),
        "file.toml:8:1",
        &["`ms`"],
    );
    points_at(
        &add("random_points = { points = 2, method = \"sobel\", keys = { seed = [1] } }"),
        "file.toml:3:40",
        &["`sobol`"],
    );
}

#[test]
fn duplicate_grid_values_are_errors() {
    let grid = |line: &str| message("[topology]\n", &format!("[grid]\n{line}\n[topology]\n"));
    points_at(&grid("\"port.loss_probability\" = [0, 0.1, 0.0]"), "file.toml:4:36", &["`0`", "`0.0`", "`seed`"]);
    points_at(&grid("stop = [\"1ms\", \"1000us\"]"), "file.toml:4:16", &["`1ms`", "`1000us`"]);
    points_at(&grid("seed = [1, 2]\nstop = [\"2ms\", \"1ms\", \"2ms\"]"), "file.toml:5:23", &["`2ms`"]);
    let twice = grid("\"traffic.0.start\" = [\"1us\"]\n\"traffic[0].start\" = [\"2us\"]");
    points_at(&twice, "file.toml:5:1", &["`traffic.0.start`"]);
    // Each value of either key stands once.
    let fine = VALID.replace("[topology]\n", "[grid]\nseed = [1, 2]\nstop = [\"2ms\", \"1ms\"]\n[topology]\n");
    assert_eq!(parse(&fine, "x", &Overrides::default()).unwrap().runs().len(), 4);
}

#[test]
fn keyword_or_value() {
    let quantum = |value: &str| argument("host.initial_quantum", value);
    points_at(&quantum("windw"), "--set:1:22", &["\"window\"", "\"64KB\"", "`window`"]);
    points_at(&quantum("64ms"), "--set:1:22", &["`ms`", "\"window\""]);
}

#[test]
fn keys_of_arguments() {
    points_at(&argument("scheme.uno.law", "bbr"), "--set:1:1", &["`scheme`", "`schemes`"]);
    points_at(&argument("traffic[0].sise", "1MB"), "--set:1:1", &["`size`"]);
    points_at(&argument("size", "1MB"), "--set:1:1", &["`size`", "`traffic.0.size`"]);
    let over = Overrides { over: vec![("size".into(), "[1, 2]".into())], ..Overrides::default() };
    let error = parse(VALID, "x", &over).map(drop).unwrap_err();
    points_at(&error, "--vary:1:1", &["`traffic.0.size`"]);
    points_at(&argument("traffic[0", "1MB"), "--set:1:1", &["`traffic[0`", "traffic.0.size"]);
    points_at(&argument("traffic[0]5.size", "1MB"), "--set:1:1", &["`traffic[0]5.size`"]);
    points_at(&argument("traffic[0]]", "1MB"), "--set:1:1", &[]);
    points_at(&argument("traffic.00.size", "1MB"), "--set:1:1", &["`00`"]);
    points_at(&argument("traffic[7].size", "1MB"), "--set:1:1", &["`7`"]);
    let set = |key: &str| {
        let overrides = Overrides { set: vec![(key.into(), "2MB".into())], ..Overrides::default() };
        parse(VALID, "x", &overrides).unwrap().resolved_toml()
    };
    assert_eq!(set("traffic[0].size"), set("traffic.0.size"));
}

/// Trimming needs ports that decide by themselves. A scheme may switch it on, and a class of links off.
#[test]
fn trimming() {
    let with = |port: &str, more: &str| message("buffer = \"1MiB\"", &format!("buffer = \"1MiB\"\n{port}\n{more}"));
    points_at(&with("trim = 1", ""), "file.toml:9:8", &["header = 64"]);
    points_at(&with("trim = { header = 0 }", ""), "file.toml:9:19", &[]);
    points_at(&with("trim = { control_buffer = \"2TB\" }", ""), "file.toml:9:8", &["100.000 s"]);
    let alone = ["switch = \"off\""];
    points_at(&with("trim = true", "[switch]\nbuffer = \"32MiB\""), "file.toml:9:8", &alone);
    points_at(&with("trim = true", "[monitor]\npredictors = \"all\""), "file.toml:9:8", &alone);
    let scheme = |scheme: &str| {
        let text = VALID.replace("law = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001", scheme);
        parse(&text, "dir/file.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
    };
    let sharing = "law = \"dctcp\"\nport.trim = true\nswitch = { buffer = \"1MiB\" }";
    points_at(&scheme(sharing).unwrap_err(), "file.toml:11:13", &[]);
    let built = scheme(
        "law = \"dctcp\"\nport = { trim = true, host = { trim = false }, core = { trim = { control_buffer = 3000 } } }",
    );
    let network = built.unwrap().setup.network;
    let port = |class| {
        let link = network.links().iter().position(|link| link.class == class).unwrap();
        *network.port(fabric::LinkId(link as u32)).config()
    };
    let trim = |control| Some(fabric::Trim { header: 64, control: units::Bytes::new(control) });
    let classes = [fabric::LinkClass::Nic, fabric::LinkClass::Host, fabric::LinkClass::Edge, fabric::LinkClass::Core];
    assert_eq!(classes.map(|class| port(class).trim), [None, None, trim(2 << 20), trim(3_000)]);
    assert_eq!(classes.map(|class| port(class).control_priority), [false, false, true, true]);
}

/// NSCC's target: three quarters of a base round trip if ports trim, else one, unless the scheme sets it.
#[test]
fn the_target_of_nscc_follows_the_ports() {
    let target = |scheme: &str| {
        let text = VALID.replace("law = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001", scheme);
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
        let (_, settings) = built.laws.law(scenario::FlowClass::Intra).unwrap();
        settings.iter().find(|(name, _)| *name == "target").map(|(_, value)| value.to_string())
    };
    assert_eq!(target("law = \"nscc\""), Some("1".to_owned()));
    assert_eq!(target("law = \"nscc\"\nport.trim = true"), None);
    assert_eq!(target("law = \"nscc\"\nparams.nscc.target = 0.5"), Some("0.5".to_owned()));
    assert_eq!(target("law = \"nscc\"\nport.trim = true\nparams.nscc.target = 2"), Some("2".to_owned()));
}

#[test]
fn recycled_entropies() {
    let path = |path: &str| {
        let text = VALID.replacen("[port]", &format!("[host]\nentropies = 99\nload_balancing = {path}\n[port]"), 1);
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
        built.map(|built| built.setup.host.path)
    };
    let reps = |buffer, freeze, explore| {
        flow::LoadBalancing::Reps(flow::Reps { entropies: 99, buffer, freeze: units::Span::from_ms(freeze), explore })
    };
    assert_eq!(path("\"reps\""), Ok(reps(8, 10, 16)));
    assert_eq!(path("{ kind = \"reps\", buffer = 4, freeze = \"1ms\", explore = 0 }"), Ok(reps(4, 1, 0)));
    points_at(&path("{ kind = \"reps\", buffer = 0 }").unwrap_err(), "x:9:44", &[]);
    points_at(&path("\"rep\"").unwrap_err(), "x:9:18", &["\"reps\""]);
}

fn with_cause(text: &str, cause: Option<&str>) -> Result<Scenario, Error> {
    let overrides = Overrides { cause: cause.map(str::to_owned), ..Overrides::default() };
    parse(text, "dir/file.toml", &overrides)
}

#[track_caller]
fn wrong(text: &str, location: &str, names: &[&str]) {
    points_at(&with_cause(text, None).expect_err(text), location, names);
}

/// Suspected causes are read with the file: one that cannot be run is found before anything runs.
#[test]
fn causes_are_checked_with_the_file() {
    const CLAIM: &str = "[[claim]]\nid = \"fast\"\ntext = \"It is fast\"\npaper = 1\ncheck = \"1 < 2\"\n";
    let cause = |set: &str| {
        format!("{VALID}{CLAIM}[[cause]]\nid = \"jitter\"\nclaims = [\"fast\"]\ntext = \"Hosts jitter\"\n{set}\n")
    };
    let valid = cause("set = { \"host.rto_min\" = \"1ms\", stop = \"5ms\" }");
    let (without, with) = (with_cause(&valid, None).unwrap(), with_cause(&valid, Some("jitter")).unwrap());
    assert_eq!(without.config.cause[0].change(), "host.rto_min = 1ms; stop = 5ms");
    assert!(!without.resolved_toml().contains("stop = \"5.000 ms\"") && with.config.stop != without.config.stop);
    points_at(&with_cause(&valid, Some("jiter")).unwrap_err(), "file.toml:1:1", &["`jiter`", "`jitter`"]);
    wrong(&cause("set = { \"host.jiter\" = \"1us\" }"), "file.toml:27:9", &[]);
    wrong(&cause("set = { stop = \"5\" }"), "file.toml:27:16", &[]);
    wrong(&cause("set = {}"), "file.toml:27:7", &[]);
    wrong(&cause(""), "file.toml:23:1", &["`set`"]);
    wrong(&valid.replace("[\"fast\"]", "[\"fsat\"]"), "file.toml:25:11", &["`fsat`", "`fast`"]);
    wrong(&valid.replace("[\"fast\"]", "[]"), "file.toml:25:10", &[]);
    for id in ["", "..", "../../away", "a/b", "/etc", "a b", "a\\\\b"] {
        wrong(&valid.replace("id = \"jitter\"", &format!("id = \"{id}\"")), "file.toml:23:1", &[]);
    }
    let twice = format!("{valid}[[cause]]\nid = \"jitter\"\nclaims = [\"fast\"]\ntext = \"\"\nset = {{ seed = 2 }}\n");
    wrong(&twice, "file.toml:28:1", &["`jitter`"]);
    let grid = cause("set = { stop = \"5ms\" }\n[grid]\nstop = [\"1ms\", \"2ms\"]");
    wrong(&grid, "file.toml:27:9", &["`stop`", "[grid]"]);
}
