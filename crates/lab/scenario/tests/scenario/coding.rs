//! `load_balancing` and `coding` of `[host]`: keywords, tables, the affected flows, and refused settings.

use flow::{FlowCoding, LoadBalancing, Plb, UnoLb};
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Frac, Span};

use crate::location::points_at;

const FILE: &str = r#"
name = "t"
stop = "10ms"
[topology]
kind = "dumbbell"
left = 2
right = 2
two_datacenters = true
rate = "100Gbps"
[port]
buffer = "1MiB"
[schemes.uno]
law = "unocc"
[[traffic]]
kind = "list"
flows = [{ src = 0, dst = 1, size = "1MB" }, { src = 0, dst = 2, size = "1MB" }]
"#;

fn built(set: &[(&str, &str)]) -> Result<BuiltRun, Error> {
    let set = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    parse(FILE, "file.toml", &overrides).and_then(|scenario| scenario.runs()[0].build())
}

fn path(value: &str) -> LoadBalancing {
    built(&[("host.load_balancing", value)]).unwrap().setup.host.path
}

#[test]
fn paths_are_words_or_tables() {
    assert_eq!(path("ecmp"), LoadBalancing::PerFlow);
    assert_eq!(path("repath"), LoadBalancing::AfterTimeout);
    assert_eq!(path("spray"), LoadBalancing::PerPacket(256));
    let unolb = UnoLb { subflows: 10, recent: None, random: false, own_laws: false };
    assert_eq!(path("unolb"), LoadBalancing::UnoLb(unolb));
    let recent = Some(Span::from_us(30));
    let table = r#"{ kind = "unolb", subflows = 4, recent = "30us", reroute = "random", law_per = "subflow" }"#;
    assert_eq!(path(table), LoadBalancing::UnoLb(UnoLb { subflows: 4, recent, random: true, own_laws: true }));
    assert_eq!(path("plb"), LoadBalancing::Plb(Plb { threshold: Frac::HALF, idle_rounds: 3, rounds: 12 }));
    let plb = Plb { threshold: Frac::ratio(1, 4), idle_rounds: 1, rounds: 12 };
    assert_eq!(path(r#"{ kind = "plb", threshold = 0.25, idle_rounds = 1 }"#), LoadBalancing::Plb(plb));
}

#[test]
fn flows_between_datacenters_are_coded() {
    let coded = |set: &[(&str, &str)]| built(set).unwrap().setup.flows.iter().map(|it| it.coded).collect::<Vec<_>>();
    assert_eq!(coded(&[]), [false, false]);
    assert_eq!(coded(&[("host.coding", "true")]), [false, true]);
    assert_eq!(coded(&[("host.coding", "{ scope = \"any\" }")]), [true, true]);
    let run = built(&[("host.coding", "true")]).unwrap();
    let line = run.report.coding.unwrap();
    assert_eq!(line.coding.code, FlowCoding { data: 8, parity: 2, tail: None });
    // 245 packets are 31 blocks. Of the three ports there the host's own holds nothing back: two waits of 1 MiB, and ten
    // packets on the link.
    assert_eq!((line.flows, line.parity), (1, 62));
    let of = |bytes| units::Rate::from_gbps(100).tx_time(Bytes::new(bytes));
    let slack = line.block_timer - of(2 << 20) - of(10 * 4_160);
    assert!(slack.ps().abs() < 1_000, "{}", line.block_timer);
    assert!(built(&[("host.coding", "{ scope = \"intra\" }")]).unwrap().warnings.is_empty());
    let no_flows =
        [("host.coding", "{ scope = \"intra\" }"), ("traffic.0.flows", "[{ src = 0, dst = 2, size = \"1MB\" }]")];
    assert!(built(&no_flows).unwrap().warnings[0].contains("coding is for intra flows, and there are none"));
}

#[test]
fn comparison_windows() {
    let table = r#"{ data = 4, parity = 1, tail = "100KB", block_timer = "640us", nack = "gaps", retransmit = "on-loss", ack_history = true }"#;
    let coding = built(&[("host.coding", table)]).unwrap().setup.host.coding.unwrap();
    assert_eq!(coding.code, FlowCoding { data: 4, parity: 1, tail: Some(Bytes::new(100_000)) });
    assert_eq!((coding.block_timer, coding.gaps, coding.eager), (Some(Span::from_us(640)), true, true));
    assert!(coding.history);
}

#[track_caller]
fn refused(set: &[(&str, &str)], location: &str, names: &[&str]) {
    points_at(&built(set).expect_err("settings that do not fit"), location, names);
}

#[test]
fn contradictory_settings_are_errors() {
    refused(&[("host.load_balancing", "flowlet")], "--set:1:21", &["\"unolb\""]);
    refused(&[("host.load_balancing", "{ kind = \"unolb\", subflows = 65 }")], "--set:1:50", &["65", "64"]);
    refused(&[("host.load_balancing", "{ kind = \"unolb\", subflow = 8 }")], "--set:1:39", &["`subflow`"]);
    refused(&[("host.coding", "{ data = 40, parity = 9 }")], "--set:1:22", &["49", "48"]);
    refused(&[("host.coding", "{ data = 0 }")], "--set:1:22", &["255"]);
    refused(&[("host.coding", "{ tail = \"0B\" }")], "--set:1:13", &[]);
    refused(
        &[("host.coding", "true"), ("host.recovery", "go-back-n")],
        "--set:1:13",
        &["go-back-n", "recovery = \"selective\""],
    );
    let timer = [("host.rto_per", "packet"), ("host.recovery", "go-back-n")];
    refused(&timer, "--set:1:14", &["recovery = \"selective\""]);
    let gaps = [("host.coding", "{ nack = \"gaps\" }"), ("host.load_balancing", "spray")];
    refused(&gaps, "--set:1:22", &["\"timer\""]);
    let history = [("host.coding", "{ ack_history = true }"), ("host.ack_every", "2")];
    refused(&history, "--set:1:29", &["ack_every = 1"]);
    let own = r#"{ kind = "unolb", law_per = "subflow" }"#;
    for (key, value, why) in [
        ("host.ack_every", "2", "ack_every = 1"),
        ("host.recovery", "go-back-n", "recovery = \"selective\""),
        ("host.gso_size", "64KB", "gso_size = \"0B\""),
    ] {
        refused(&[("host.load_balancing", own), (key, value)], "--set:1:49", &[why]);
    }
    for (coding, location, why) in [
        ("{ ack_history = true }", "--set:1:29", "ack_history = false"),
        ("{ nack = \"gaps\" }", "--set:1:22", "nack = \"timer\""),
    ] {
        refused(&[("host.load_balancing", own), ("host.coding", coding)], location, &[why]);
    }
    let huge = [
        ("host.coding", "{ data = 1, parity = 47 }"),
        ("host.mss", "1"),
        ("traffic.0.flows", "[{ src = 0, dst = 2, size = \"1GB\" }]"),
    ];
    refused(&huge, "--set:1:13", &["4294967295"]);
}
