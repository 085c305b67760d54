//! `narrows emulate --virtual`: the transport's own code in virtual time.

use serde_json::Value;

use crate::emulate::PAIR;
use crate::json::is_summary;
use crate::support::Scratch;

/// Writes `pair.toml`: [`PAIR`] with the packet sizes of the transport and a stop after 1 s.
fn pair(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let sizes = PAIR
        .replace(
            "mss = 1448\nheader = 52\nack_size = 52\nack_every = 2",
            "mss = 1438\nheader = 62\nack_size = 76\nack_every = 1",
        )
        .replace("stop = \"4s\"", "stop = \"1s\"")
        .replace("[schemes.rare]", "[schemes.fixed]\nlaw = \"fixed\"\n[schemes.rare]");
    scratch.write("pair.toml", &sizes);
    scratch
}

fn summary(text: &str) -> Value {
    let summary: Value = serde_json::from_str(text).unwrap();
    is_summary(&summary);
    summary
}

fn fct(summary: &Value) -> f64 {
    summary["flows"]["all"]["fct_ns"]["mean"].as_f64().unwrap()
}

#[test]
fn one_flag_leads_from_simulated_to_virtual() {
    let scratch = pair("virtual");
    // A window of one BDP: nothing is lost, and no difference grows.
    let simulated = scratch.narrows("run pair.toml --scheme fixed --out simulated --json").ok();
    let emulated = scratch.narrows("emulate pair.toml --virtual --scheme fixed --out virtual --json").ok();
    let (simulated, emulated) = (summary(&simulated.out), summary(&emulated.out));
    assert_eq!((&simulated["backend"], &emulated["backend"]), (&Value::from("simulator"), &Value::from("virtual")));
    assert_eq!(emulated["virtual"]["crypto"], "AES-128-GCM");
    assert!(emulated["virtual"]["datagrams"].as_u64().unwrap() > 7_000, "{}", emulated["virtual"]);
    assert_eq!(emulated["flows"]["all"]["completed"], 2);
    let (one, other) = (fct(&simulated), fct(&emulated));
    assert!((other / one - 1.0).abs() < 0.01, "simulated {one} ns, virtual {other} ns");
    let shown = scratch.narrows("compare simulated virtual --flows").ok();
    assert!(shown.out.contains("simulator") && shown.out.contains("virtual"), "{}", shown.out);
}

#[test]
fn virtual_runs_are_the_same_at_any_number_of_threads() {
    let scratch = pair("virtual-threads");
    let run = |out: &str, threads: u8| {
        let line = format!("emulate pair.toml --virtual --scheme cubic --scheme reno --threads {threads} --out {out}");
        scratch.narrows(&line).ok();
        let mut files = scratch.comparable(out);
        // The manifest has the command line.
        files.retain(|name, _| !name.ends_with("manifest.json"));
        files
    };
    let one = run("one", 1);
    assert!(one.len() > 6, "{:?}", one.keys());
    assert!(one == run("two", 2), "files differ between one and two threads");
    scratch.narrows("emulate pair.toml --virtual --scheme cubic --seed 7 --out other").ok();
}

/// Each part of the scenario language that the transport supports runs, and all flows complete with all of their bytes.
#[test]
fn everything_that_the_transport_supports_runs() {
    let scratch = pair("virtual-parts");
    for (name, options) in [
        ("coding", "--set host.coding={data=8,parity=2} --set port.inter.loss_probability=0.1%"),
        ("subflows", "--set host.load_balancing={kind=\"unolb\",subflows=4}"),
        ("own-laws", "--set host.load_balancing={kind=\"unolb\",subflows=4,law_per=\"subflow\"}"),
        ("on-ramp", "--set host.on_ramp={threshold=\"auto\"} --set host.clock_sigma=\"10us\""),
        ("failure", "--set failure=[{ports=[\"left>right\"],at=\"50ms\",until=\"80ms\"}]"),
        ("bursts", "--set port.loss_bursts={group=10,rates=[0.001,0.001]}"),
        ("jitter", "--set port.impair={jitter={max=\"2ms\",keep_order=false}}"),
        ("jitter-in-order", "--set port.impair={jitter={max=\"2ms\",distribution=\"normal\"}}"),
        ("reorder", "--set port.impair={reorder={probability=0.01,delay=\"3ms\"}}"),
        ("duplicate", "--set port.impair={duplicate=0.02}"),
        ("corrupt", "--set port.impair={corrupt=0.0005}"),
        ("mtu", "--set port.impair={mtu=1500}"),
        ("police", "--set port.impair={police={rate=\"150Mbps\",burst=\"60KB\"}}"),
        ("acks", "--set port.impair={ack_aggregation={period=\"2ms\",packets=16}}"),
        (
            "steps",
            "--set port.impair={rate_steps=[{at=\"0s\",rate=\"90Mbps\"},{at=\"3ms\",rate=\"off\"}],rate_period=\"4ms\"}",
        ),
        (
            "all",
            "--set port.impair={jitter={max=\"1ms\",keep_order=false},reorder={probability=0.01,delay=\"3ms\"},duplicate=0.01,\
             corrupt=0.0005,mtu=1600,police={rate=\"200Mbps\",burst=\"100KB\"},ack_aggregation={period=\"1ms\",packets=8},\
             rate_steps=[{at=\"0s\",rate=\"90Mbps\"},{at=\"20ms\",rate=\"60Mbps\"}],rate_period=\"30ms\"}",
        ),
        ("shared", "--set switch.buffer=1MB"),
        ("codel", "--set port.codel=true"),
        ("fq-codel", "--set port.fq_codel=true"),
        ("phantom", "--set port.phantom={size=\"500kB\"}"),
        ("kept", "--set traffic.0.connections=\"persistent\""),
        ("ipv6", "--ipv6"),
        ("small", "--set host.mss=450"),
        ("jumbo", "--set host.mss=8938"),
    ] {
        let line = format!("emulate pair.toml --virtual --scheme cubic --set stop=4s --json --out {name} {options}");
        let run = scratch.narrows(&line).ok();
        let summary = run.json();
        assert_eq!(summary["flows"]["all"]["completed"], 2, "{name}: {}", summary["flows"]);
    }
}

#[test]
fn host_costs_delay_flows() {
    let scratch = pair("virtual-costs");
    let run = |options: &str| {
        let line =
            format!("emulate pair.toml --virtual --scheme cubic --set stop=4s --json --force --out out {options}");
        summary(&scratch.narrows(&line).ok().out)
    };
    let (ideal, slow) = (run(""), run("--host-costs packet=100us,wake_up=1ms"));
    // 10 MB are 7,000 packets: the sender alone takes 0.7 s for them, and the link 0.4 s.
    assert!(fct(&slow) > 1.4 * fct(&ideal), "{} and {} ns", fct(&ideal), fct(&slow));
    assert_eq!(
        (&ideal["virtual"]["costs"], &slow["virtual"]["costs"]),
        (&Value::Null, &"packet=100us,wake_up=1ms".into())
    );
}

/// The connection of the first flow breaks after its idle timeout, 600 s after its link failed at 100 ms: by then 200 Mb/s
/// carried 2.5 MB. The log of it names virtual time.
#[test]
fn a_broken_connection_keeps_its_counters() {
    let scratch = pair("virtual-broken");
    let failure = "\n[[failure]]\nports = [\"left>right\"]\nat = \"100ms\"\n";
    scratch.write("broken.toml", &format!("{}{failure}", scratch.read("pair.toml")));
    let line =
        "emulate broken.toml --virtual --scheme fixed --set stop=700s --set monitor.interval=1s --json --out out";
    // With a failure the summary has one key more than `summary` knows.
    let outcome = scratch.narrows(line).ok().json();
    let note = outcome["warnings"].to_string() + &outcome["notes"].to_string();
    assert!(note.contains("flow 0: its connection broke"), "{note}");
    let sent = outcome["network"]["data_packets"].as_u64().unwrap();
    assert!(sent > 2_500_000 / 1_500 / 2, "{sent} packets");
    // Goodput is over all 700 s, and the second flow may have sent 20 kB.
    let delivered = outcome["flows"]["all"]["goodput_bps"].as_f64().unwrap() * 700.0 / 8.0;
    assert!(delivered > 1e6, "{delivered} bytes");
    scratch.narrows("export qlog out --flow 0 -o flow.sqlog").ok();
    assert!(scratch.read("flow.sqlog").contains(", in virtual time\""));
    // It may be written again, as a log of this kind.
    scratch.narrows("export qlog out --flow 0 -o flow.sqlog").ok();
}

/// Handshakes are before time zero, so that a run without time for a packet has no traffic. In 1 ns none leaves a NIC.
#[test]
fn handshakes_do_not_count_as_traffic() {
    let scratch = pair("virtual-handshakes");
    let outcome = summary(
        &scratch.narrows("emulate pair.toml --virtual --scheme fixed --set stop=1ns --json --out out").ok().out,
    );
    let packets = |link: &Value| link["packets"].as_u64().unwrap();
    let links = outcome["network"]["links"].as_array().unwrap();
    assert!(links.iter().all(|link| packets(link) <= 1), "{links:?}");
}

#[test]
fn connections_that_fail_name_their_hosts_and_a_remedy() {
    let scratch = pair("virtual-failed");
    let line = "emulate pair.toml --virtual --scheme fixed --set port.buffer=1000B --out out";
    scratch.narrows(line).fails(1, &["flow 0 from `left.host0` to `right.host0`", "`port.buffer`"]);
}

/// Values of the model that are the transport's own behaviour are accepted, others are not.
#[test]
fn keys_of_the_model_that_describe_the_transport_are_accepted() {
    let scratch = pair("virtual-model");
    let model = "--set host.pace=transport --set host.rto_per=probe \
                 --set host.tcp={hystart=false,prr=false,validation=\"rfc7661\"}";
    scratch.narrows(&format!("emulate pair.toml --virtual --scheme cubic {model} --out out")).ok();
    for (set, key) in
        [("host.pace=wire", "host.pace"), ("host.rto_per=packet", "host.rto_per"), ("host.tcp=linux", "host.tcp")]
    {
        scratch.narrows(&format!("emulate pair.toml --virtual --scheme cubic --set {set}")).fails(2, &[key]);
    }
}

#[test]
fn virtual_hosts_refuse_what_they_lack() {
    let scratch = pair("virtual-refused");
    let before = scratch.tree();
    for (line, parts) in [
        ("--set host.jitter={mean=\"1us\"}", &["the transport in virtual time does not support `host.jitter`"][..]),
        ("--set host.recovery=go-back-n", &["does not support `host.recovery`"]),
        ("--host-costs packets=1us", &["there is no key `packets`", "did you mean `packet`?"]),
        ("--host-costs packet=1h", &["--host-costs"]),
        ("-- true", &["--virtual", "COMMAND"]),
        ("--no-real-time", &["--virtual", "--no-real-time"]),
        ("--set host.mss=449", &["511 B together, and 512 to 65535"]),
        ("--set host.mss=450 --ipv6", &["512 B together, and 532 to 65535"]),
        ("--set port.impair={mtu=1499}", &["`impair.mtu`", "1499 B", "1500 B"]),
        ("--stack kernel", &["--stack kernel", "only narrows is accepted"]),
        ("--pcap left>right=x.pcapng", &["--virtual", "--pcap"]),
    ] {
        scratch.narrows(&format!("emulate pair.toml --virtual --scheme cubic {line}")).fails(2, parts);
        assert_eq!(scratch.tree(), before, "{line}: something was left");
    }
    scratch
        .narrows("emulate pair.toml --scheme cubic --host-costs packet=1us")
        .fails(2, &["--host-costs", "--virtual"]);
}

/// The program has sockets, so nothing in it can send packets in the clear.
#[test]
fn no_build_with_sockets_has_null_crypto() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_narrows")).unwrap();
    let has = |symbol: &str| program.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes());
    assert!(has("virtual_endpoint") && has("SeededX25519"), "the program has no symbols, so this test cannot fail");
    assert!(!has("null_crypto") && !has("NullPacketKey"), "packets can be sent in the clear");
}
