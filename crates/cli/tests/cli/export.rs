//! `narrows export`: SONiC tables that refer to each other, headroom that holds in simulation, and settings that cannot be
//! exported; timelines.

use serde_json::Value;

use crate::support::{GRID, Scratch, grid_of};

const LOSSLESS: &str = r#"
schema = 1
name = "short"
topology = { kind = "fat-trees", k = 4, rate = "100Gbps", inter_rate = "200Gbps", link_delay = "1us", inter_delay = "10us", inter_links = 1 }
switch = { buffer = "32MiB", pfc = true }
port = { alpha = 0.5, ecn = { min = "400KB", max = "1600KB", probability = 0.2 } }
host = { mss = 1024, recovery = "go-back-n" }
schemes.dcqcn = { law = "dcqcn", host = { cnp_interval = "50us" } }
traffic = [{ kind = "permutation", size = "64KiB" }]
"#;

fn tables(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn headroom_is_sonics_and_holds_in_simulation() {
    let scratch = Scratch::new("export");
    scratch.write("short.toml", LOSSLESS);
    let exported = scratch.narrows("export sonic short.toml").ok();
    let stderr = &exported.err;
    for part in [
        "switch dc0.border under dcqcn",
        "headroom of 200000 Mb/s over 1980 m: xoff",
        "In simulation nothing is dropped with it",
        "headroom of 100000 Mb/s over 198 m",
    ] {
        assert!(stderr.contains(part), "no `{part}` in {stderr}");
    }
    let tables = tables(&exported.out);
    let ports = tables["CABLE_LENGTH"]["AZURE"].as_object().unwrap();
    let long: Vec<&String> = ports.iter().filter(|(_, length)| **length == "1980m").map(|(port, _)| port).collect();
    assert_eq!(long.len(), 1);
    let profile = tables["BUFFER_PG"][format!("{}|3", long[0])]["profile"].as_str().unwrap();
    let row = &tables["BUFFER_PROFILE"][profile];
    // 1,980 m of 200 Gb/s are 500,000 bytes both ways, in cells of 144 bytes for 64.
    let xoff: u64 = row["xoff"].as_str().unwrap().parse().unwrap();
    assert!((3 * 500_000..3 * 500_000 + 200_000).contains(&xoff), "{xoff}");
    assert_eq!(row["dynamic_th"], "-1");
    let wred = tables["WRED_PROFILE"].as_object().unwrap().values().next().unwrap();
    assert_eq!(
        (wred["green_min_threshold"].as_str(), wred["green_drop_probability"].as_str()),
        (Some("400000"), Some("20"))
    );
    // A host's switch, another chip, and marks apart.
    let edge = scratch.narrows("export sonic short.toml --switch dc0.pod0.edge0 --asic spectrum --separate-wred").ok();
    assert!(edge.out.contains("ecn_green_mark_probability") && !edge.out.contains("green_drop_probability"));
}

#[test]
fn headroom_that_does_not_fit_is_an_error() {
    let scratch = Scratch::new("export-long");
    scratch.write("short.toml", LOSSLESS);
    let long = "export sonic short.toml --set topology.inter_delay=1ms --set port.inter.headroom=1MB";
    scratch.narrows(long).fails(2, &["198000 m", "33.6 MB"]);
    scratch.narrows("export sonic short.toml --switch dc0.bordr").fails(2, &["`dc0.border`"]);
    scratch.narrows("export sonic short.toml --asic tomahawk").fails(2, &["possible values", "spectrum-3"]);
    scratch.narrows("export sonic short.toml --set topology.rate=33Gbps").fails(2, &["33 Gbps"]);
}

#[test]
fn a_switch_that_does_not_pause_has_marks_alone() {
    let scratch = Scratch::new("export-lossy");
    scratch.write("short.toml", LOSSLESS);
    let exported = scratch.narrows("export sonic short.toml --set switch.pfc=false").ok();
    let tables = tables(&exported.out);
    let keys: Vec<&String> = tables.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["CABLE_LENGTH", "WRED_PROFILE", "QUEUE"]);
}

#[test]
fn a_run_becomes_a_timeline() {
    let scratch = Scratch::new("export-perfetto");
    scratch.write("s.toml", GRID);
    scratch.narrows("run s.toml --out r").ok();
    scratch.narrows("export perfetto r").fails(2, &["`r` has 6 runs", "--run"]);
    scratch
        .narrows("export perfetto r --run uno,traffic.0.load=0.3")
        .fails(2, &["no run `uno,traffic.0.load=0.3`", "`uno,traffic.0.load=0.2`"]);
    scratch.narrows("export perfetto r --run uno,traffic.0.load=0.2").ok();
    let trace = std::fs::read(scratch.path("trace.pftrace")).unwrap();
    let has = |text: &str| trace.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("flows, by the host that sends") && has("slowdown"));
    // An earlier trace is replaced, another file is not.
    scratch.narrows("export perfetto r --run uno,traffic.0.load=0.2").ok();
    assert_eq!(std::fs::read(scratch.path("trace.pftrace")).unwrap(), trace);
    scratch.write("mine", "mine");
    scratch.narrows("export perfetto r --run uno,traffic.0.load=0.2 -o mine").fails(2, &["`mine`"]);
    scratch.narrows("export perfetto r --run uno,traffic.0.load=0.2 -o r/t").fails(2, &["`r/t`"]);
    scratch.narrows("export perfetto r --run uno,traffic.0.load=0.2 -o -").fails(2, &["--out"]);
    scratch.narrows("export perfetto none").fails(2, &["none"]);
}

#[test]
fn a_sampled_flow_becomes_a_log() {
    let scratch = Scratch::new("export-qlog");
    let plain = grid_of("\"1MiB\"").replace("100000s", "100ms");
    scratch.write("plain.toml", &plain);
    scratch.narrows("run plain.toml --out plain").ok();
    scratch.narrows("export qlog plain").fails(2, &["`dctcp,traffic.0.size=1MiB`", "help: `monitor = "]);
    scratch.write("s.toml", &format!("{plain}[monitor]\ninterval = \"10us\"\nflows = 2\n"));
    scratch.narrows("run s.toml --out r").ok();
    scratch.narrows("export qlog r").fails(2, &["2 flows of `dctcp,traffic.0.size=1MiB` were sampled", "--flow"]);
    scratch.narrows("export qlog r --flow 9").fails(2, &["`dctcp,traffic.0.size=1MiB`", "there are "]);
    scratch.narrows("export qlog r --flow 1").ok();
    let log = scratch.read("flow.sqlog");
    let records: Vec<serde_json::Value> =
        log.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
    assert_eq!(records[0]["title"], "dctcp,traffic.0.size=1MiB, flow 1, simulated");
    let events = &records[1..];
    assert_eq!(events[0]["name"], "connectivity:connection_started");
    let last = events.last().unwrap();
    assert_eq!(last["name"], "connectivity:connection_closed");
    // The end is the flow's completion time in the table.
    let flows = results::store::load(&scratch.path("r")).unwrap().flows;
    let fct = flows.row(1).unwrap().fct().unwrap();
    assert!((last["time"].as_f64().unwrap() - fct.ps() as f64 / 1e9).abs() < 1e-9);
    let times: Vec<f64> = events.iter().map(|event| event["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times.len() > 10, "{log}");
    let delivered = |event: &&serde_json::Value| event["name"] == "narrows:flow_sampled";
    let delivered: Vec<u64> =
        events.iter().filter(delivered).map(|event| event["data"]["delivered_bytes"].as_u64().unwrap()).collect();
    assert!(delivered.is_sorted() && *delivered.last().unwrap() <= 1 << 20);
    assert!(log.contains("\"congestion_window\":") && log.contains("\"law\":\"dctcp\""), "{log}");
    // An earlier log is replaced, another file is not.
    scratch.narrows("export qlog r --flow 0").ok();
    assert_ne!(scratch.read("flow.sqlog"), log);
    scratch.write("mine", "mine");
    scratch.narrows("export qlog r --flow 0 -o mine").fails(2, &["`mine`"]);
}
