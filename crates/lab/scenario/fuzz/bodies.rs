//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

use scenario::import::{
    GoalOptions, GraphFormat, GraphNames, GraphOptions, HpccNames, ImportNames, Placement, SimaiOptions, StartUnit,
    TrafficFormat, TrafficNames, import_chakra, import_goal, import_graph, import_hpcc, import_htsim, import_msccl,
    import_simai, import_traffic,
};
use scenario::{Distribution, Error, Overrides, parse};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Texts with this between them.
fn parts(bytes: &[u8]) -> Vec<String> {
    bytes.split(|&byte| byte == 0).map(text).collect()
}

/// An error can be shown, with and without colour.
fn shown(error: &Error) {
    assert!(!error.render(scenario::Colour::Plain).is_empty() && !error.render(scenario::Colour::Ansi).is_empty());
}

/// A scenario that parses can be written, and the written file reads back as the same scenario.
pub(crate) fn scenario(bytes: &[u8]) {
    match parse(&text(bytes), "fuzz.toml", &Overrides::default()) {
        Ok(read) => {
            let written = read.resolved_toml();
            match parse(&written, "again.toml", &Overrides::default()) {
                Ok(again) => assert_eq!(again.resolved_toml(), written),
                Err(error) => panic!("what was written cannot be read:\n{error}\n{written}"),
            }
        }
        Err(error) => shown(&error),
    }
}

/// A list of flows.
pub(crate) fn flows(bytes: &[u8]) {
    if let Err(error) = scenario::fuzzing::flows(&text(bytes)) {
        shown(&error);
    }
}

/// A distribution of flow sizes.
pub(crate) fn distribution(bytes: &[u8]) {
    if let Err(error) = Distribution::parse(&text(bytes), "fuzz.cdf") {
        shown(&error);
    }
}

/// An imported scenario can be read.
pub(crate) fn htsim(bytes: &[u8]) {
    let parts = parts(bytes);
    let names = ImportNames { scenario: "fuzz", matrix: "fuzz.cm", topology: "fuzz.topo" };
    match import_htsim(&parts[0], parts.get(1).map(String::as_str), Some(StartUnit::Microseconds), &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// An imported scenario can be read.
pub(crate) fn hpcc(bytes: &[u8]) {
    let parts = parts(bytes);
    let part = |at: usize| parts.get(at).map_or("", String::as_str);
    let names = HpccNames { scenario: "fuzz", topology: "topology.txt", flows: "flow.txt", config: "config.txt" };
    match import_hpcc(part(0), part(1), parts.get(2).map(String::as_str), &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// A schedule as text or as bytes; the imported scenario can be read.
pub(crate) fn goal(bytes: &[u8]) {
    let names = TrafficNames { scenario: "fuzz", traffic: "fuzz.goal" };
    match import_goal(bytes, &GoalOptions { placement: Placement::Block, eager: "100B" }, None, &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// The same trace for two ranks; the imported scenario can be read.
pub(crate) fn chakra(bytes: &[u8]) {
    let files = [("fuzz.0.et", bytes.to_vec()), ("fuzz.1.et", bytes.to_vec())];
    match import_chakra(&files, Some(("{\"g\": [1, 0]}", "fuzz.json")), None, Placement::Block, "fuzz") {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// An algorithm of MSCCL; the imported scenario can be read.
pub(crate) fn msccl(bytes: &[u8]) {
    let names = TrafficNames { scenario: "fuzz", traffic: "fuzz.xml" };
    match import_msccl(&text(bytes), "1MB", None, Placement::Packed, &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// A workload of SimAI; the imported scenario can be read.
pub(crate) fn simai(bytes: &[u8]) {
    let names = TrafficNames { scenario: "fuzz", traffic: "fuzz.txt" };
    let options = SimaiOptions { placement: Placement::Block, passes: 2, ranks: None };
    match import_simai(&text(bytes), &options, None, &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// A network in GraphML.
pub(crate) fn graphml(bytes: &[u8]) {
    graph(bytes, GraphFormat::GraphMl);
}

/// A network as CSV.
pub(crate) fn links(bytes: &[u8]) {
    graph(bytes, GraphFormat::Links);
}

/// A lab of containerlab.
pub(crate) fn containerlab(bytes: &[u8]) {
    graph(bytes, GraphFormat::Containerlab);
}

/// A network of SNDlib.
pub(crate) fn sndlib(bytes: &[u8]) {
    graph(bytes, GraphFormat::SndLib);
}

fn graph(bytes: &[u8], format: GraphFormat) {
    let options = GraphOptions { unit: Some("1Gbps"), delay_unit: Some("1ms"), ..GraphOptions::default() };
    match import_graph(&text(bytes), format, &options, &GraphNames { scenario: "fuzz", graph: "fuzz.txt" }) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

/// Flows as plain CSV.
pub(crate) fn plain(bytes: &[u8]) {
    traffic(bytes, TrafficFormat::Flows);
}

/// Flow records.
pub(crate) fn netflow(bytes: &[u8]) {
    traffic(bytes, TrafficFormat::Netflow);
}

/// A capture.
pub(crate) fn capture(bytes: &[u8]) {
    traffic(bytes, TrafficFormat::Capture);
}

fn traffic(bytes: &[u8], format: TrafficFormat) {
    let names = TrafficNames { scenario: "fuzz", traffic: "fuzz.csv" };
    match import_traffic(bytes, format, None, Placement::Cyclic, &names) {
        Ok(imported) => reads(&imported.toml),
        Err(error) => shown(&error),
    }
}

fn reads(toml: &str) {
    if let Err(error) = parse(toml, "imported.toml", &Overrides::default()) {
        panic!("what was imported cannot be read:\n{error}\n{toml}");
    }
}
