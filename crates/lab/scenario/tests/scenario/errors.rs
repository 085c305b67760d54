//! Errors of wrong scenarios: the file, the line, the caret, and accepted values.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use scenario::{Overrides, load, parse};

const GOOD: &str = "\
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

/// The message for the good file with one line replaced, read and built.
fn message(line: &str, replacement: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    let text = GOOD.replace(line, replacement);
    let result = parse(&text, "dir/file.toml", &Overrides::default());
    let built = result.and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(replacement).to_string()
}

fn argument(key: &str, value: &str) -> String {
    let overrides = Overrides { set: vec![(key.into(), value.into())], ..Overrides::default() };
    let built = parse(GOOD, "file.toml", &overrides).and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(value).to_string()
}

/// Asserts that a message has all of these parts.
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in\n{message}");
    }
    assert!(!message.contains('\u{1b}'));
}

#[test]
fn the_good_file_is_good() {
    parse(GOOD, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
}

#[test]
fn clocks() {
    let stop = "stop = \"10ms\"\n";
    let with = |clock: &str| message(stop, &format!("{stop}[clock]\n{clock}\n"));
    says(&with("tick = \"0s\""), &["dir/file.toml:4", "no time at all", "\"1ns\""]);
    says(
        &with("tick = \"1us\""),
        &["dir/file.toml:4", "4160 B lasts 332.800 ns at 100 Gbps", "a tick of 1.000 us", "expected under 332.800 ns"],
    );
    says(&with("whole = \"short\""), &["dir/file.toml:4", "without ticks", "needs tick in [clock]"]);
    says(&with("ties = \"scheduled\""), &["dir/file.toml:4", "share their buffer", "needs [switch]"]);
    says(&with("ties = \"first\""), &["\"input\" or \"scheduled\""]);
}

/// Each message states the error in the user's words, and suggests nothing that would be refused, too.
#[test]
fn values_out_of_range() {
    let seed = "seed = 99999999999999999999\nstop = \"10ms\"";
    let beyond = "99999999999999999999 is beyond a file's whole numbers";
    says(&message("stop = \"10ms\"", seed), &[beyond, "file.toml:2:8", "to 9223372036854775807"]);
    says(&argument("seed", "99999999999999999999"), &[beyond, "--set:1:6"]);
    let large = message("k = 4", "k = 1000");
    says(&large, &["k is even, 2 to 128, not 1000"]);
    assert!(!large.contains("did you mean"), "{large}");
    says(&message("k = 4", "k = 70000"), &["k is even, 2 to 128, not 70000"]);
    says(&message("k = 4", "k = 0"), &["k is even, 2 to 128, not 0"]);
    says(&argument("topology.k", "127"), &["did you mean 128?"]);
    says(&message("stop = \"10ms\"", "stop = \"2000000s\""), &["over the largest value, 1000000s"]);
    for key in ["host.payload", "host.int_header", "host.header"] {
        says(&argument(key, "-1"), &["-1 is out of range", "to 65535"]);
    }
    says(&argument("host.payload", "0"), &["0 is out of range: it must be 1 to 65535"]);
    says(&argument("host.payload", "65535"), &["65599 B on the wire is over 65535 B"]);
    says(&argument("port.ecn", "{ step = \"200%\" }"), &["\"200%\" is over 100%", "^^^^^^"]);
    says(&argument("port.loss", "1e-300"), &["1e-300 has over 18 digits after the point", "^^^^^^"]);
    says(&message("\"100Gbps\"", "\"1bps\""), &["\"1bps\" is under the lowest rate, 1Mbps"]);
    let bits = message("size = \"1MiB\"", "size = \"10Mb\"");
    says(&bits, &["`Mb` is bits, and a size is in bytes: did you mean `MB`?", "units: B, KB"]);
    let losses = "{ law = \"flashpass\", params.flashpass = { min_target_loss = 0.2 } }";
    says(&argument("schemes.uno", losses), &["`min_target_loss` is 0.2; it must not be over `max_target_loss`"]);
    let k = "{ law = \"gemini\", params.gemini = { k = 0 } }";
    says(&argument("schemes.uno", k), &["GEMINI's `k` is 0 B; it must be 1 B to"]);
    let strait = |param: &str| argument("schemes.uno", &format!("{{law = \"strait\", params.strait = {{{param}}}}}"));
    says(&strait("fast_periods = -1"), &["`fast_periods` is -1; it must be 0 to 1024", "expected 0 to 1024"]);
    says(&strait("alpha = -0.1"), &["the number -0.1 is negative", "Strait's `alpha`, 0 to 1: "]);
}

/// Marks in per cent need a buffer with a size, whether the file has both, one or neither.
#[test]
fn marks_in_per_cent_of_an_unlimited_buffer() {
    let defaults = argument("port.buffer", "unlimited");
    says(&defaults, &["25 % of the buffer by default", "--set:1:13", "ecn = \"off\", or limit the buffer"]);
    let port = "{ buffer = \"unlimited\", ecn = { min = \"1%\", max = \"2%\" } }";
    let said = argument("port", port);
    says(&said, &["per cent of an unlimited buffer", "expected a size, or a time", "--set:1:44"]);
    assert!(!defaults.contains("[switch]") && !said.contains("[switch]"), "{defaults}\n{said}");
    let shared = "[switch]\nbuffer = \"9MB\"\n[port]\necn = { min = \"1%\", max = \"2%\" }";
    let shared = message("[port]\nbuffer = \"1MiB\"", shared);
    says(&shared, &["with [switch] ports have no buffer of their own by default", "file.toml:10"]);
}

#[test]
fn delays_in_hosts() {
    let with = |host: &str, more: &str| message("[port]", &format!("[host]\njitter = {host}\n{more}[port]"));
    says(&with("{ mean = \"0s\" }", ""), &["file.toml:8", "a mean of nothing", "over zero"]);
    says(&with("{ mean = \"2s\" }", ""), &["file.toml:8", "take longer", "at most 1s"]);
    says(&with("{ mean = \"1us\", distribution = \"gauss\" }", ""), &["\"exponential\" or \"uniform\""]);
    says(&with("\"1us\"", ""), &["\"off\" or a table such as { mean = \"1us\" }"]);
    let clock = "[clock]\ntick = \"1ns\"\nties = \"scheduled\"\n[switch]\nbuffer = \"1MiB\"\n";
    says(&with("{ mean = \"1us\" }", clock), &["file.toml:8", "knows no delays in hosts", "ties = \"scheduled\""]);
    let text = GOOD.replacen("[port]", "[host]\njitter = { mean = \"2us\", distribution = \"uniform\" }\n[port]", 1);
    let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
    let jitter = built.setup.host.jitter.unwrap();
    assert_eq!((jitter.mean, jitter.shape), (units::Span::from_us(2), experiment::JitterShape::Uniform));
}

#[test]
fn what_linux_does() {
    let with = |host: &str| message("[port]", &format!("[host]\n{host}\n[port]"));
    says(&with("tcp = \"bsd\""), &["file.toml:8", "\"off\", \"linux\" or a table such as { hystart = false }"]);
    says(&with("tcp = { hystrat = true }"), &["file.toml:8", "did you mean `hystart`?"]);
    says(&with("tcp = \"linux\"\nrecovery = \"go-back-n\""), &["file.toml:8", "needs recovery = \"selective\""]);
    says(&with("fq = true"), &["file.toml:8", "there is none", "needs small_queue"]);
    let path = "path = { kind = \"unolb\", laws = \"subflow\" }";
    says(&with(&format!("tcp = \"linux\"\n{path}")), &["file.toml:8", "needs laws = \"flow\" in path"]);
}

/// Connections are kept if the traffic asks for it, but not by laws that send by credits.
#[test]
fn connections_are_kept_where_that_is_asked_for() {
    let kept = |connections: &str, law: &str| {
        let text = GOOD.replacen("[[traffic]]\n", &format!("[[traffic]]\n{connections}\n"), 1);
        let text = text.replace("law = \"unocc\"", law).replace("alpha = 0.001", "");
        let text = text.replace("[schemes.uno.params.unocc]", "");
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
        built.setup.flows.iter().all(|flow| flow.kept)
    };
    assert!(kept("connections = \"kept\"", "law = \"dctcp\""));
    assert!(!kept("connections = \"new\"", "law = \"dctcp\"") && !kept("", "law = \"dctcp\""));
    assert!(!kept("connections = \"kept\"", "law = \"expresspass\""));
}

/// `tcp = "linux"` switches Cubic's detectors on, unless the scheme says otherwise. Laws without detectors get the
/// rest.
#[test]
fn linux_hosts_switch_on_what_the_scheme_does_not_set() {
    let built = |host: &str, law: &str| {
        let text = GOOD.replacen("[port]", &format!("[host]\ntcp = {host}\n[port]"), 1);
        let text =
            text.replace("law = \"unocc\"", law).replace("alpha = 0.001", "").replace("[schemes.uno.params.unocc]", "");
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build()).unwrap();
        let on = |name: &str| {
            let settings = built.laws.law(scenario::FlowClass::Intra).unwrap().1;
            settings.iter().find(|(set, _)| *set == name).map(|(_, value)| *value == laws::catalog::Value::Switch(true))
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
    says(
        &text,
        &["error: unknown key `raet`", "dir/file.toml:6:1", "raet = \"100Gbps\"", "^^^^", "did you mean `rate`?"],
    );
    says(&message("stop = \"10ms\"", "topolgy = 1"), &["file.toml:2:1", "did you mean `topology`?"]);
    says(&message("receiver = 3", "recevier = 3"), &["file.toml:15:1", "did you mean `receiver`?"]);
}

#[test]
fn external_laws() {
    let laws = |name: &str, hash: &str, params: &str| {
        format!(
            "[laws.{name}]\nlanguage = \"Python\"\nsha256 = \"{hash}\"\nparams = {params}\n[schemes.uno]\nlaw = \"Halve\"\n"
        )
    };
    let hash = "1f".repeat(32);
    let uno = "[schemes.uno]\nlaw = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001\n";
    let with = |text: String| message(uno, &text);
    says(&with("[schemes.uno]\nlaw = \"Halve\"\n".into()), &["file.toml:10:7", "unknown law `Halve`", "laws=[Halve]"]);
    says(&with("[schemes.uno]\nlaw = \"Gemini\"\n".into()), &["unknown law `Gemini`", "did you mean `gemini`?"]);
    says(
        &with(laws("halve", &hash, "{}")),
        &["file.toml:9:7", "cannot be the name of an external law", "a capital letter"],
    );
    says(&with(laws("Halve", "12", "{}")), &["file.toml:11:10", "`12` is no SHA-256", "64 hexadecimal digits"]);
    says(
        &with(laws("Halve", &hash, "{ a = \"x\" }")),
        &["file.toml:12", "expected a whole number, a finite number, or true or false; found the string \"x\""],
    );
    for number in ["inf", "-inf", "nan", "1e999"] {
        says(
            &with(laws("Halve", &hash, &format!("{{ a = {number} }}"))),
            &["file.toml:12:16", "expected a finite number, found the number"],
        );
    }
    let written_in = |language: &str| {
        // As JSON has it, TOML has it, too.
        let quoted = serde_json::Value::from(language).to_string();
        with(laws("Halve", &hash, "{}").replace("\"Python\"", &quoted))
    };
    let long = "P".repeat(33);
    for language in ["", "Pythön", &long] {
        says(
            &written_in(language),
            &["file.toml:10:12", "cannot be the name of a language", "expected 1 to 32 letters, digits, spaces"],
        );
    }
    says(&written_in("Py\u{1b}[31mthon"), &["file.toml:10:12", "control character U+001B"]);
    let set = |param: &str| with(laws("Halve", &hash, "{ gain = 4, on = true, share = 0.5 }") + param);
    let set = |param: &str| set(&format!("[schemes.uno.params.Halve]\n{param}\n"));
    says(&set("gian = 4"), &["file.toml:16:1", "Halve has no parameter `gian`", "did you mean `gain`?"]);
    says(&set("gain = 0.5"), &["file.toml:16:8", "`gain` is a whole number, but was given", "expected a whole number"]);
    says(&set("on = 1"), &["file.toml:16:6", "`on` is true or false"]);
    says(&set("share = true"), &["file.toml:16:9", "`share` is a finite number, but was given true"]);
    for number in ["inf", "nan", "1e999"] {
        says(&set(&format!("share = {number}")), &["file.toml:16:9", "expected a finite number, found the number"]);
    }

    let text =
        laws("Halve", &hash, "{ gain = 4, on = true, share = 0.5 }") + "[schemes.uno.params.Halve]\nshare = 2_0.5\n";
    let scenario = parse(&GOOD.replace(uno, &text), "x", &Overrides::default()).unwrap();
    let built = scenario.runs()[0].build().unwrap();
    assert_eq!(scenario.runs()[0].label, "Halve");
    let brought: Vec<_> = built.laws.brought().collect();
    let [law] = &brought[..] else { panic!("{brought:?}") };
    assert_eq!((&*law.name, &*law.language, &*law.sha256), ("Halve", "Python", &*hash));
    assert_eq!(law.params, serde_json::json!({ "gain": 4, "on": true, "share": 20.5 }));
    assert_eq!(built.laws.law(scenario::FlowClass::Intra), None);
    assert_eq!(built.laws.name(scenario::FlowClass::Inter), "Halve");
    assert!(
        built
            .warnings
            .iter()
            .any(|said| said == "Halve is an external law in Python (SHA-256 1f1f1f1f1f1f...), not part of Narrows"),
        "{:?}",
        built.warnings
    );
    // It is written as it was read.
    let again = parse(&scenario.resolved_toml(), "x", &Overrides::default()).unwrap();
    assert_eq!(again.config, scenario.config);
}

#[test]
fn unknown_names() {
    says(&message("\"incast\"", "\"incats\""), &["file.toml:14:8", "unknown kind `incats`", "did you mean `incast`?"]);
    says(&message("law = \"unocc\"", "law = \"unoc\""), &["file.toml:10:7", "unknown law", "did you mean `unocc`?"]);
    says(
        &message("alpha = 0.001", "alhpa = 0.001"),
        &["file.toml:12:1", "UnoCC has no parameter", "did you mean `alpha`?"],
    );
    says(
        &message("params.unocc]", "params.gemini]"),
        &["file.toml:11", "does not run a law `gemini`", "known: `unocc`"],
    );
    says(&message("receiver = 3", "receiver = \"dc0.hots3\""), &["unknown host", "did you mean `dc0.host3`?"]);
}

#[test]
fn a_wrong_unit() {
    let text = message("rate = \"100Gbps\"", "rate = \"100ms\"");
    says(
        &text,
        &[
            "file.toml:6:8",
            "with unit `ms`",
            "a rate such as \"100Gbps\"",
            "^^^^^^^",
            "units: bps, kbps, Mbps, Gbps, Tbps",
        ],
    );
    says(
        &message("stop = \"10ms\"", "stop = 10"),
        &["file.toml:2:8", "a time such as \"2ms\"", "the number 10", "write the unit"],
    );
    says(&message("size = \"1MiB\"", "size = \"1Gb\""), &["file.toml:17:8", "unit `Gb`", "MiB"]);
}

#[test]
fn a_negative_rate() {
    says(
        &message("\"100Gbps\"", "\"-100Gbps\""),
        &["file.toml:6:8", "\"-100Gbps\" is negative", "a rate such as \"100Gbps\""],
    );
    says(&message("\"100Gbps\"", "-5"), &["file.toml:6:8", "-5 is negative"]);
    says(&message("\"100Gbps\"", "\"0Gbps\""), &["file.toml:6:8", "under the lowest rate, 1Mbps", "at least"]);
}

#[test]
fn an_odd_k() {
    says(
        &message("k = 4", "k = 7"),
        &["file.toml:5:5", "a fat tree's k is even, 2 to 128, not 7", "^ expected an even number", "did you mean 8?"],
    );
}

#[test]
fn a_host_out_of_range() {
    says(
        &message("receiver = 3", "receiver = 32"),
        &["file.toml:15:12", "no host 32: the network has 32", "^^ expected 0 to 31"],
    );
    says(&message("receiver = 3", "receiver = -1"), &["file.toml:15:12", "-1 is out of range"]);
    says(
        &message("intra = 2", "intra = 16"),
        &["file.toml:16:9", "16 senders, but only 15 hosts in the receiver's datacenter"],
    );
}

#[test]
fn a_law_parameter_out_of_range() {
    says(
        &message("alpha = 0.001", "alpha = 1.5"),
        &["file.toml:12:9", "`alpha` is 1.5", "expected 0 to 1", "Additive increase"],
    );
    says(&message("alpha = 0.001", "alpha = \"1ms\""), &["file.toml:12:9", "expected a number such as 0.5"]);
}

#[test]
fn zero_flows() {
    says(&message("intra = 2", "intra = 0"), &["file.toml:13", "zero flows"]);
    let text = GOOD.split("[[traffic]]").next().unwrap().replace("stop", "traffic = []\nstop");
    says(
        &parse(&text, "f.toml", &Overrides::default()).unwrap_err().to_string(),
        &["f.toml:2:11", "zero flows", "[[traffic]]"],
    );
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

fn poisson(rest: &str) -> String {
    let start = GOOD.find("[[traffic]]").unwrap();
    let text = format!("{}[[traffic]]\nkind = \"poisson\"\n{rest}\n", &GOOD[..start]);
    let origin = distributions().join("file.toml").display().to_string();
    let built = parse(&text, &origin, &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
    built.expect_err(rest).to_string()
}

#[test]
fn a_load_over_all() {
    let text = poisson("inter = \"alibaba-wan\"\nload = 1.2\nwindow = \"1ms\"");
    says(
        &text,
        &[
            "file.toml:16:8",
            "a load over 100 %: 1.2 of the `inter` links' 1600 Gbps is 1920 Gbps",
            "^^^ expected at most 1",
        ],
    );
    let text = poisson("intra = \"websearch\"\nload = 0.5\nwindow = \"1ms\"");
    says(&text, &["file.toml:13:1", "no flow of this traffic crosses a link of class `inter`", "load_of = \"host\""]);
    says(
        &poisson("intra = \"websearch\"\ninter = \"websearch\"\nload = 0.5\nwindow = \"1ms\""),
        &["no `ratio`", "4:1"],
    );
    says(&poisson("inter = \"websearch\"\nload = 0.5"), &["never ends", "window"]);
}

#[test]
fn a_distribution_that_is_broken_or_missing() {
    let text = poisson("inter = \"short.txt\"\nload = 0.5\nwindow = \"1ms\"");
    says(&text, &["short.txt:3:1", "does not reach 100 %: it ends at 99 %", "2000 99", "^^^^^^^"]);
    let text = poisson("inter = \"websaerch\"\nload = 0.5\nwindow = \"1ms\"");
    says(&text, &["file.toml:15:9", "neither a distribution", "did you mean `websearch`?", "`google-rpc`, `alibaba-"]);
    let text = poisson("inter = \"zzz\"\nload = 0.5\nwindow = \"1ms\"");
    says(&text, &["file.toml:15:9", "neither a distribution", "`websearch`, `facebook-hadoop`, "]);
    let text = poisson("inter = \"missing.txt\"\nload = 0.5\nwindow = \"1ms\"");
    says(&text, &["file.toml:15:9", "cannot read", "missing.txt", "relative to the scenario's file"]);
    says(&poisson("inter = \"binary.txt\"\nload = 0.5\nwindow = \"1ms\""), &["cannot read", "UTF-8", "line 1, byte 1"]);
}

#[test]
fn a_missing_and_an_unreadable_file() {
    let text = load("no/such/file.toml", &Overrides::default()).unwrap_err().to_string();
    says(&text, &["error: cannot read `no/such/file.toml`", "No such file"]);
    // A directory is a file that cannot be read, whoever asks.
    let directory = std::env::temp_dir();
    let text = load(&directory, &Overrides::default()).unwrap_err().to_string();
    says(&text, &["cannot read", &directory.display().to_string(), "directory"]);
}

#[test]
fn broken_toml() {
    says(&message("k = 4", "k = "), &["file.toml:5", "this is not TOML"]);
    says(&message("k = 4", "k = 4\nk = 4"), &["file.toml:6:1", "duplicate key"]);
}

#[test]
fn missing_keys_and_wrong_types() {
    says(&message("size = \"1MiB\"", ""), &["file.toml:13", "missing key `size`", "`size` is a size such as"]);
    says(&message("kind = \"incast\"", ""), &["missing key `kind`", "`permutation`"]);
    says(&message("name = \"t\"", "name = 4"), &["file.toml:1:8", "expected a string, found the number 4"]);
    says(&message("name = \"t\"", "name = \"a/b\""), &["file.toml:1:8", "letters, digits"]);
    says(&message("name = \"t\"", "name = \"t\"\nschema = 2"), &["file.toml:2:10", "reads schema 1, not 2"]);
    says(&message("k = 4", "link_delay = \"1us\"\nintra_rtt = \"9us\""), &["file.toml:6:13", "say the same"]);
    says(
        &message("k = 4", "intra_rtt = \"1us\""),
        &["file.toml:5:13", "leaves no time for the links: the rest takes 2.028 us"],
    );
    says(&message("k = 4", "link_delay = \"0us\""), &["file.toml:5:14", "over zero"]);
    says(&message("buffer = \"1MiB\"", "ecn = { min = \"80%\" }"), &["file.toml:8:15", "expected at most 786432 B"]);
    says(&message("buffer = \"1MiB\"", "buffer = \"unlimited\""), &["file.toml:8:10", "25 % of the buffer by default"]);
}

#[test]
fn buffers_of_no_bandwidth_delay_product() {
    for wrong in ["0bdp", "-1bdp", "xbdp"] {
        says(
            &message("buffer = \"1MiB\"", &format!("buffer = \"{wrong}\"")),
            &["file.toml:8:10", "\"bdp\" or \"0.5bdp\""],
        );
    }
    // Which queue a share of the buffer is depends on the port's rate.
    let follows = "k = \"port\"\n[schemes.uno.port]\nbuffer = \"bdp\"";
    says(&message("alpha = 0.001", follows), &["file.toml:12:5", "no threshold to follow"]);
}

#[test]
fn schemes_without_a_law_or_with_two() {
    says(&message("law = \"unocc\"", ""), &["file.toml:9:10", "a scheme has no law", "give it law"]);
    says(&message("law = \"unocc\"", "law = \"unocc\"\nintra = \"bbr\""), &["file.toml:11:9", "either `law` or"]);
    says(&message("law = \"unocc\"", "intra = \"unocc\""), &["file.toml:10:9", "come together"]);
    says(
        &message("alpha = 0.001", "k = \"port\"\n[schemes.uno.port]\necn = \"off\""),
        &["file.toml:12:5", "do not mark"],
    );
    says(&message("[port]", "[host]\nheader = 65000\n[port]"), &["file.toml:8:10", "69096 B"]);
}

#[test]
fn arguments_are_pointed_at() {
    says(&argument("topology.k", "5"), &["--set:1:12", "topology.k=5", "not 5"]);
    says(&argument("topolgy.k", "4"), &["--set:1:1", "unknown key `topolgy`", "did you mean `topology`?"]);
    says(&argument("traffic.0.sise", "4"), &["--set:1:1", "unknown key `sise`", "did you mean `size`?"]);
    says(&argument("traffic.3.size", "4"), &["--set:1:1", "no entry `3` in an array of 1", "expected 0 to 0"]);
    says(&argument("topology.rate", "100"), &["--set:1:15", "a rate such as"]);
    says(&argument("name.x", "1"), &["--set:1:1", "inside the string \"t\""]);
    says(&argument("a..b", "1"), &["--set:1:1", "is no key"]);
    let overrides = Overrides { scale: Some("quick".into()), ..Overrides::default() };
    says(&parse(GOOD, "f", &overrides).unwrap_err().to_string(), &["--scale:1:1", "no scale `quick`"]);
}

#[test]
fn chains_of_flows_that_wait_for_themselves() {
    let list = |flows: &str| {
        message(
            "kind = \"incast\"\nreceiver = 3\nintra = 2\nsize = \"1MiB\"",
            &format!("kind = \"list\"\nflows = [{flows}]"),
        )
    };
    says(&list("{ src = 0, dst = 1, size = 1, after = 0 }"), &["file.toml:15", "flow 0 waits for itself"]);
    says(
        &list("{ src = 0, dst = 1, size = 1, after = 1 }, { src = 0, dst = 1, size = 1, after = 0 }"),
        &["flow 0 waits for itself, through 1"],
    );
    let waiting = |afters: &[&str]| {
        let flows = afters.iter().map(|after| format!("{{ src = 0, dst = 1, size = 1{after} }}"));
        list(&flows.collect::<Vec<_>>().join(", "))
    };
    let round = waiting(&["", ", after = [0, 3]", ", after = [0, 1]", ", after = [2]"]);
    says(&round, &["file.toml:15", "flow 1 waits for itself, through 3, 2", "a circle"]);
    says(&waiting(&[", after = 7"]), &["no flow 7 in a list of 1"]);
    says(&waiting(&["", ", after = [0, 2]"]), &["no flow 2 in a list of 2", "expected 0 to 1"]);
    says(&waiting(&["", ", after = [0, 0]"]), &["flow 0 stands twice"]);
    says(&waiting(&["", ", after = []"]), &["expected a flow's number such as 3", "[1, 3]"]);
    for event in ["x", "recieved:0", "received:", "received:-1", "0:received"] {
        says(&waiting(&["", &format!(", after = \"{event}\"")]), &["expected a flow's number such as 3", "received:3"]);
    }
    says(&waiting(&["", ", after = \"received:0+7\""]), &["no unit"]);
    says(&waiting(&["", ", after = [\"received:0\", 0, \"received:0+1us\"]"]), &["flow 0 stands twice"]);
    // A flow without a size has no end.
    for event in ["0", "\"received:0\""] {
        let waits = format!("{{ src = 0, dst = 1 }}, {{ src = 1, dst = 2, size = 1, after = {event} }}");
        says(&list(&waits), &["flow 0 has no size", "file.toml:15", "expected a flow with a size"]);
    }
    says(
        &list("{ src = 0, dst = 1, size = 1 }, { src = 1, dst = 2, size = 1, after = \"begun:0\" }"),
        &["flow 0 has another sender", "file.toml:15"],
    );
    says(&waiting(&["", ", after = 0, compute = 3"]), &["a time such as"]);
    says(&list("{ src = 0, dst = 0, size = 1 }"), &["the sender itself"]);
    says(&list("{ src = 0, dst = 1, size = 0 }"), &["at least 1 byte"]);
    says(&list(""), &["zero flows"]);
}

#[test]
fn grids_and_scales_are_checked_when_read() {
    let add = |text: &str| message("[[traffic]]", &format!("{text}\n[[traffic]]"));
    says(
        &add("[grid]\n\"traffic.0.sise\" = [1, 2]"),
        &["file.toml:14:1", "unknown key `sise`", "did you mean `size`?"],
    );
    says(&add("[grid]\n\"traffic.0.size\" = [1, \"2ms\"]"), &["file.toml:14:24", "unit `ms`"]);
    says(&add("[grid]\n\"traffic.0.size\" = 4"), &["file.toml:14:20", "an array of values"]);
    says(&add("[scale.quick]\nset = { \"traffic.0.size\" = \"64Kb\" }"), &["file.toml:14:28", "unit `Kb`"]);
    let variant = |text: &str| add(&format!("[grid]\nseed = [1, 2]\n[variants.far]\n{text}"));
    says(&variant("set = { \"topology.kk\" = 4 }"), &["unknown key `kk`"]);
    says(&variant("set = { seed = 4 }"), &["file.toml:16:9", "[grid] sets `seed`, too", "own `grid`"]);
    says(
        &variant("grid = { sed = [4] }"),
        &[
            "file.toml:16:10",
            "`sed` is no key of [grid]",
            "not in [grid]",
            "did you mean `seed`?",
            "add this key to [grid]",
        ],
    );
    says(&variant("grid = { seed = 4 }"), &["file.toml:16:17", "an array of values"]);
    says(&add("[grid]\nseed = []"), &["file.toml:14:1", "takes some values"]);
    says(&variant("schemes = [\"un\"]"), &["file.toml:16:12", "no scheme `un`", "did you mean `uno`?"]);
    says(&add("[sizes]\nfar = \"outer 1MB..\""), &["file.toml:14:7"]);
    says(&add("[sizes]\nfar = \"incats: ..1MB\""), &["file.toml:14:1", "no traffic is called `incats`", "`incast`?"]);
    let many = format!("[grid]\nseed = {:?}\nstop = {:?}", vec![1; 200], vec!["1ms"; 200]);
    says(&add(&many), &["over 10000 combinations"]);
}

#[test]
fn more_than_memory_holds() {
    let text = poisson("inter = \"alibaba-wan\"\nload = 0.5\nflows = 4000000000");
    says(&text, &["flows"]);
    says(&message("stop", "series = { interval = \"1ps\", flows = \"all\" }\nstop"), &["samples", "interval", "stop"]);
}

#[test]
fn parameters_that_do_not_fit_together() {
    let vegas = |params: &str| {
        let text = GOOD.replace("law = \"unocc\"", "law = \"vegas\"");
        let text = text.replace("params.unocc]\nalpha = 0.001\n", &format!("params.vegas]\n{params}\n"));
        parse(&text, "file.toml", &Overrides::default()).map_err(|error| error.to_string())
    };
    says(
        &vegas("alpha = 5").unwrap_err(),
        &["file.toml:12:9", "must not be over `beta`, which is 4", "`alpha` is over `beta`"],
    );
    says(&vegas("beta = 1").unwrap_err(), &["file.toml:12:8", "Vegas's `alpha` is 2"]);
    assert!(vegas("alpha = 5\nbeta = 5").is_ok());
}

#[test]
fn predictors_need_switches_that_pass_notes_on() {
    let chosen = |with: &str| message("[port]", &format!("[series]\npredictors = \"all\"\n{with}[port]"));
    says(&chosen(""), &["file.toml:8:14", "needs [switch]"]);
    let both =
        GOOD.replace("law = \"unocc\"", "law = \"hpcc\"").replace("[schemes.uno.params.unocc]\nalpha = 0.001\n", "");
    let both = both.replace("[port]", "[switch]\nbuffer = \"32MiB\"\n[series]\npredictors = 1\n[port]");
    let error = parse(&both, "x", &Overrides::default()).and_then(|it| it.runs()[0].build()).unwrap_err().to_string();
    says(&error, &["predictors = 1", "INT"]);
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
        let text = GOOD
            .replace("[topology]\nkind = \"fat-trees\"\nk = 4\nrate = \"100Gbps\"", &topology)
            .replace("receiver = 3", "receiver = \"s.h2\"");
        parse(&text, "file.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
    };
    let (switch, x, ends) = ("kind = \"switch\"", "\"x\", kind = \"switch\"", "[\"s\", \"t\"]");
    assert!(nodes(switch, x, ends).is_ok());
    // `s` has no fourth host, and no host `00`.
    for name in ["s.h3", "s.h00", "s.h"] {
        assert!(
            nodes(switch, &x.replacen('x', name, 1), ends).is_err_and(|it| it.to_string().contains("unknown node `x`"))
        );
    }
    let links = "host_rate = \"1Gbps\", host_delay = \"1us\"";
    let cases = [
        (format!("kind = \"host\", hosts = 2, {links}"), x, ends, "7:", "no host hangs from another"),
        ("kind = \"switch\", hosts = 0".into(), x, ends, "7:", "it must be 1 to 65535"),
        (
            "kind = \"switch\", hosts = 2, host_rate = \"1Gbps\"".into(),
            x,
            ends,
            "7:40",
            "needs `host_rate` and `host_delay`",
        ),
        (
            "kind = \"switch\", hosts = 2, host_delay = \"1us\"".into(),
            x,
            ends,
            "7:40",
            "needs `host_rate` and `host_delay`",
        ),
        ("kind = \"switch\", host_delay = \"1us\"".into(), x, ends, "7:", "`host_delay` is of a switch's `hosts`"),
        ("kind = \"switch\", host_rate = \"1Gbps\"".into(), x, ends, "7:", "`host_rate` is of a switch's `hosts`"),
        (format!("kind = \"switch\", hosts = 1, {}", links.replace("1us", "0us")), x, ends, "7:", "a delay over zero"),
        (switch.into(), "\"s.h1\", kind = \"host\"", ends, "8:10", "two nodes are named `s.h1`: one is a host of `s`"),
        (switch.into(), "\"s\", kind = \"switch\"", ends, "8:10", "two nodes are named `s`"),
        (switch.into(), x, "[\"s.h1\", \"t\"]", "9:23", "`s.h1` is a host of `s` and has its link"),
        (switch.into(), x, "[\"s.h4\", \"t\"]", "9:23", "unknown node `s.h4`"),
    ];
    for (first, second, ends, place, what) in cases {
        let said = nodes(&first, second, ends).err().map(|error| error.to_string()).unwrap_or_default();
        says(&said, &[&format!("file.toml:{place}"), what]);
    }
}

#[test]
fn lists_and_samples_are_checked_when_read() {
    let add = |line: &str| message("[topology]\n", &format!("{line}\n[topology]\n"));
    says(
        &add("points = [{ seed = 1, stop = \"1ms\" }, { seed = 2, stp = \"2ms\" }]"),
        &["the first point has no `stp`", "the same keys in every point", "did you mean `stop`?"],
    );
    says(&add("points = [{ seed = 1, stop = \"1ms\" }, { seed = 2 }]"), &["a point without `stop`"]);
    says(&add("points = [{}]"), &["a point without keys"]);
    says(&add("points = [{ seed = 1 }, { seed = 1 }]"), &["`1` and `1` give the same run"]);
    says(&add("grid.seed = [1, 2]\npoints = [{ seed = 3 }]"), &["`seed` is given twice"]);
    says(&add("grid.seed = [1]\nsample = { points = 2, keys = { seed = [3] } }"), &["`seed` is given twice"]);
    says(&add("sample = { points = 2, keys = {} }"), &["a sample without keys"]);
    says(&add("sample = { points = 20000, keys = { seed = [1] } }"), &["a sample of over 10000 points"]);
    says(&add("sample = { points = 2, keys = { seed = { from = 2, to = 1 } } }"), &["1 is not above 2", "file.toml:3"]);
    says(
        &add("sample = { points = 2, keys = { \"port.buffer\" = { from = \"1ms\", to = \"2ms\" } } }"),
        &["unit `ms`", "expected a size"],
    );
    says(&add("sample = { points = 2, method = \"sobel\", keys = { seed = [1] } }"), &["did you mean `sobol`?"]);
}

#[test]
fn grids_that_say_a_value_twice() {
    let grid = |line: &str| message("[topology]\n", &format!("[grid]\n{line}\n[topology]\n"));
    says(&grid("\"port.loss\" = [0, 0.1, 0.0]"), &["file.toml:4", "`0` and `0.0` give the same run", "give `seed`"]);
    says(&grid("stop = [\"1ms\", \"1000us\"]"), &["`1ms` and `1000us` give the same run"]);
    says(&grid("seed = [1, 2]\nstop = [\"2ms\", \"1ms\", \"2ms\"]"), &["dir/file.toml:5", "`2ms` and `2ms` give"]);
    let twice = grid("\"traffic.0.start\" = [\"1us\"]\n\"traffic[0].start\" = [\"2us\"]");
    says(&twice, &["file.toml:5", "`traffic.0.start` is given twice"]);
    // Each value of either key stands once.
    let fine = GOOD.replace("[topology]\n", "[grid]\nseed = [1, 2]\nstop = [\"2ms\", \"1ms\"]\n[topology]\n");
    assert_eq!(parse(&fine, "x", &Overrides::default()).unwrap().runs().len(), 4);
}

#[test]
fn a_word_or_a_value() {
    let quantum = |value: &str| argument("host.initial_quantum", value);
    says(&quantum("windw"), &["\"window\" or a size such as \"64KB\", found the string", "did you mean `window`?"]);
    says(&quantum("64ms"), &["unit `ms`", "expected \"window\" or a size"]);
}

#[test]
fn keys_of_arguments() {
    says(&argument("scheme.uno.law", "bbr"), &["unknown key `scheme`", "did you mean `schemes`?"]);
    says(&argument("traffic[0].sise", "1MB"), &["--set:1:1", "did you mean `size`?"]);
    says(&argument("size", "1MB"), &["--set:1:1", "unknown key `size`", "did you mean `traffic.0.size`?"]);
    let over = Overrides { over: vec![("size".into(), "[1, 2]".into())], ..Overrides::default() };
    let error = parse(GOOD, "x", &over).map(drop).unwrap_err().to_string();
    says(&error, &["--over:1:1", "size=[1, 2]", "did you mean `traffic.0.size`?"]);
    says(&argument("traffic[0", "1MB"), &["`traffic[0` is no key", "expected a key such as traffic.0.size"]);
    says(&argument("traffic[0]5.size", "1MB"), &["`traffic[0]5.size` is no key"]);
    says(&argument("traffic[0]]", "1MB"), &["is no key"]);
    says(&argument("traffic.00.size", "1MB"), &["there is no entry `00` in an array of 1"]);
    says(&argument("traffic[7].size", "1MB"), &["there is no entry `7` in an array of 1"]);
    let set = |key: &str| {
        let overrides = Overrides { set: vec![(key.into(), "2MB".into())], ..Overrides::default() };
        parse(GOOD, "x", &overrides).unwrap().resolved_toml()
    };
    assert_eq!(set("traffic[0].size"), set("traffic.0.size"));
}

/// Trimming needs ports that decide by themselves. A scheme may switch it on, and a class of links off.
#[test]
fn trimming() {
    let with = |port: &str, more: &str| message("buffer = \"1MiB\"", &format!("buffer = \"1MiB\"\n{port}\n{more}"));
    says(&with("trim = 1", ""), &["file.toml:9", "true, false or { header = 64"]);
    says(&with("trim = { header = 0 }", ""), &["file.toml:9"]);
    says(&with("trim = { control = \"2TB\" }", ""), &["file.toml:9", "lasts over 100.000 s"]);
    let alone = ["file.toml:9", "decide together", "switch = \"off\""];
    says(&with("trim = true", "[switch]\nbuffer = \"32MiB\""), &alone);
    says(&with("trim = true", "[series]\npredictors = \"all\""), &alone);
    let scheme = |scheme: &str| {
        let text = GOOD.replace("law = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001", scheme);
        let built =
            parse(&text, "dir/file.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
        built.map_err(|error| error.to_string())
    };
    let sharing = "law = \"dctcp\"\nport.trim = true\nswitch = { buffer = \"1MiB\" }";
    says(&scheme(sharing).unwrap_err(), &["file.toml:11", "decide together"]);
    let built = scheme(
        "law = \"dctcp\"\nport = { trim = true, host = { trim = false }, core = { trim = { control = 3000 } } }",
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

/// NSCC's target is three quarters of a base round trip where ports trim, one else, and whatever the scheme says.
#[test]
fn the_target_of_nscc_follows_the_ports() {
    let target = |scheme: &str| {
        let text = GOOD.replace("law = \"unocc\"\n[schemes.uno.params.unocc]\nalpha = 0.001", scheme);
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
        let text = GOOD.replacen("[port]", &format!("[host]\nentropies = 99\npath = {path}\n[port]"), 1);
        let built = parse(&text, "x", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build());
        built.map(|built| built.setup.host.path).map_err(|error| error.to_string())
    };
    let reps = |buffer, freeze, explore| {
        flow::PathChoice::Reps(flow::Reps { entropies: 99, buffer, freeze: units::Span::from_ms(freeze), explore })
    };
    assert_eq!(path("\"reps\""), Ok(reps(8, 10, 16)));
    assert_eq!(path("{ kind = \"reps\", buffer = 4, freeze = \"1ms\", explore = 0 }"), Ok(reps(4, 1, 0)));
    says(&path("{ kind = \"reps\", buffer = 0 }").unwrap_err(), &["buffer"]);
    says(&path("\"rep\"").unwrap_err(), &["\"reps\""]);
}

/// Suspected causes are read with the file: one that cannot be run is found before anything runs.
#[test]
fn causes_are_checked_with_the_file() {
    const CLAIM: &str = "[[claim]]\nid = \"fast\"\ntext = \"It is fast\"\npaper = 1\ncheck = \"1 < 2\"\n";
    let cause = |set: &str| {
        format!("{GOOD}{CLAIM}[[cause]]\nid = \"jitter\"\nclaims = [\"fast\"]\ntext = \"Hosts jitter\"\n{set}\n")
    };
    let read = |text: &str, cause: Option<&str>| {
        let overrides = Overrides { cause: cause.map(str::to_owned), ..Overrides::default() };
        parse(text, "dir/file.toml", &overrides)
    };
    let good = cause("set = { \"host.rto_min\" = \"1ms\", stop = \"5ms\" }");
    let (without, with) = (read(&good, None).unwrap(), read(&good, Some("jitter")).unwrap());
    assert_eq!(without.config.cause[0].change(), "host.rto_min = 1ms; stop = 5ms");
    assert!(!without.resolved_toml().contains("stop = \"5.000 ms\"") && with.config.stop != without.config.stop);
    says(&read(&good, Some("jiter")).unwrap_err().to_string(), &["no cause `jiter`", "did you mean `jitter`?"]);
    let wrong = |text: &str, parts: &[&str]| says(&read(text, None).expect_err(text).to_string(), parts);
    wrong(&cause("set = { \"host.jiter\" = \"1us\" }"), &["dir/file.toml:", "jiter"]);
    wrong(&cause("set = { stop = \"5\" }"), &["dir/file.toml:", "^^^"]);
    wrong(&cause("set = {}"), &["changes nothing", "expected keys"]);
    wrong(&cause(""), &["`set`"]);
    wrong(&good.replace("[\"fast\"]", "[\"fsat\"]"), &["no claim `fsat`", "did you mean `fast`?"]);
    wrong(&good.replace("[\"fast\"]", "[]"), &["a cause of no claim"]);
    for id in ["", "..", "../../away", "a/b", "/etc", "a b", "a\\\\b"] {
        wrong(&good.replace("id = \"jitter\"", &format!("id = \"{id}\"")), &["is no id of a cause", "letters, digits"]);
    }
    let twice = format!("{good}[[cause]]\nid = \"jitter\"\nclaims = [\"fast\"]\ntext = \"\"\nset = {{ seed = 2 }}\n");
    wrong(&twice, &["two causes are called `jitter`"]);
    let grid = cause("set = { stop = \"5ms\" }\n[grid]\nstop = [\"1ms\", \"2ms\"]");
    wrong(&grid, &["`stop` takes the values of [grid]", "would change nothing"]);
}
