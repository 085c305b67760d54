//! `narrows bench engine`: how fast the engine is, on fixed workloads.
//!
//! Each workload runs in a process of its own, so that its peak memory is its own.

use comfy_table::{Cell, CellAlignment, Table, presets};
use scenario::{Overrides, parse};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::BenchEngineArgs;
use crate::exit::{CommandFailure, print};
use crate::sheet::{check_csv, print_records};
use study::Stopwatch;

/// One measured workload; the shape of `bench engine --json`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct EngineMeasurement {
    name: String,
    threads: usize,
    packet_hops: u64,
    events: u64,
    cpu_s: f64,
    wall_s: f64,
    packet_hops_per_s_per_core: f64,
    peak_rss_bytes: u64,
    packet_hops_per_s: f64,
    hosts: usize,
    simulated_ns: u64,
}

struct Workload {
    name: String,
    text: &'static str,
    set: Vec<(String, String)>,
}

const PERMUTATION: &str = include_str!("../../../scenarios/bench-permutation.toml");
const MIXED: &str = include_str!("../../../scenarios/bench-mixed.toml");
const POISSON: &str = include_str!("../../../scenarios/bench-poisson.toml");
const LOSSLESS: &str = include_str!("../../../scenarios/bench-lossless.toml");

fn workloads() -> Vec<Workload> {
    let plain = [("permutation", PERMUTATION), ("mixed", MIXED), ("poisson", POISSON)];
    let mut all: Vec<Workload> =
        plain.iter().map(|&(name, text)| Workload { name: name.into(), text, set: Vec::new() }).collect();
    let priority = ("port.control_priority".to_owned(), "true".to_owned());
    for (name, text) in plain {
        all.push(Workload { name: format!("{name}-priority"), text, set: vec![priority.clone()] });
    }
    all.push(Workload { name: "lossless".into(), text: LOSSLESS, set: Vec::new() });
    all
}

/// Returns workloads with the same load a host: every host sends 4 MiB, in trees of 32, 256 and 2048 hosts.
fn scaling_workloads() -> Vec<Workload> {
    let of_tree = |k: u32| {
        let set = [("topology.k", k.to_string()), ("topology.datacenters", "2".into())];
        let size = ("traffic.0.size", "4MiB".to_owned());
        let rtt = ("topology.inter_rtt", "2ms".to_owned());
        let set = set.into_iter().chain([size, rtt]).map(|(key, value)| (key.to_owned(), value)).collect();
        Workload { name: format!("scaling-k{k}"), text: PERMUTATION, set }
    };
    [4, 8, 16].map(of_tree).into()
}

/// Name of the table for `--csv`.
const TABLE: &str = "workloads";
/// Its columns.
const KEYS: [&str; 11] = [
    "name",
    "threads",
    "hosts",
    "simulated_ns",
    "packet_hops",
    "events",
    "cpu_s",
    "wall_s",
    "packet_hops_per_s",
    "packet_hops_per_s_per_core",
    "peak_rss_bytes",
];

pub(crate) fn engine(args: &BenchEngineArgs) -> Result<(), CommandFailure> {
    if let Some(name) = &args.measure {
        return measure_in_process(name, args.threads);
    }
    check_csv(&args.csv, &[TABLE])?;
    let scaling = if args.scaling { scaling_workloads() } else { Vec::new() };
    let names: Vec<String> = workloads().into_iter().chain(scaling).map(|workload| workload.name).collect();
    let chosen: Vec<&String> = names.iter().filter(|name| name.contains(&args.only)).collect();
    if chosen.is_empty() {
        let names = names.join(", ");
        let more = if args.scaling { "" } else { "; --scaling adds more" };
        return Err(CommandFailure::Input(format!(
            "error: no workload's name contains `{}`; there are {names}{more}",
            args.only
        )));
    }
    let mut rows = Vec::new();
    for threads in [1, 2] {
        for name in &chosen {
            rows.push(best(name, threads, args.runs)?);
        }
    }
    if args.json {
        return print(&format!("{:#}", json!({ "schema": 1, "workloads": rows })));
    }
    if args.csv.is_requested() {
        return print_records(&args.csv, TABLE, &KEYS, &rows);
    }
    print(&table(&rows))
}

/// The best of several runs: disturbances only ever make a run slower.
fn best(name: &str, threads: usize, runs: u16) -> Result<EngineMeasurement, CommandFailure> {
    crate::interrupt::listen();
    let mut best: Option<EngineMeasurement> = None;
    for _ in 0..runs {
        if crate::interrupt::interrupted() {
            return Err(CommandFailure::Interrupted("nothing is reported".to_owned()));
        }
        let run = measure_in_subprocess(name, threads)?;
        if best.as_ref().is_none_or(|best| run.wall_s < best.wall_s) {
            best = Some(run);
        }
    }
    best.ok_or_else(|| CommandFailure::Run(anyhow::anyhow!("no run of {name}")))
}

fn measure_in_subprocess(name: &str, threads: usize) -> Result<EngineMeasurement, CommandFailure> {
    let threads = threads.to_string();
    let output = crate::self_command()
        .args(["bench", "engine", "--measure", name, "--threads", &threads])
        .output()
        .map_err(anyhow::Error::from)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(CommandFailure::Run(anyhow::anyhow!("workload {name} failed: {text}")));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| CommandFailure::Run(error.into()))
}

fn measure_in_process(name: &str, threads: usize) -> Result<(), CommandFailure> {
    let Some(workload) = workloads().into_iter().chain(scaling_workloads()).find(|workload| workload.name == name)
    else {
        return Err(CommandFailure::Input(format!("error: no workload `{name}`")));
    };
    let overrides = Overrides { set: workload.set, ..Overrides::default() };
    let scenario = parse(workload.text, name, &overrides)?;
    let Some(run) = scenario.runs().into_iter().next() else {
        return Err(CommandFailure::Input(format!("error: workload `{name}` has no run")));
    };
    let built = run.build()?;
    let clock = Stopwatch::start();
    let outcome = engine::run(&built.setup, threads, |flow, path| built.laws.make(flow, path), &mut |_| true);
    let times = clock.times();
    let measured = EngineMeasurement {
        name: name.to_owned(),
        threads,
        packet_hops: outcome.engine.packet_hops,
        events: outcome.engine.events,
        cpu_s: times.cpu_s,
        wall_s: times.wall_s,
        packet_hops_per_s_per_core: outcome.engine.packet_hops as f64 / times.cpu_s,
        packet_hops_per_s: outcome.engine.packet_hops as f64 / times.wall_s,
        peak_rss_bytes: times.peak_rss_bytes,
        hosts: built.setup.network.hosts().len(),
        simulated_ns: outcome.ended.ns(),
    };
    print(&json!(measured).to_string())
}

fn table(rows: &[EngineMeasurement]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "workload",
        "threads",
        "hosts",
        "packet-hops",
        "events",
        "CPU s",
        "wall s",
        "Mhop/s/core",
        "Mhop/s",
        "speed-up",
        "peak MiB",
    ]);
    for row in rows {
        let single_threaded = rows.iter().find(|other| other.name == row.name && other.threads == 1);
        let speed_up = single_threaded
            .map_or(String::new(), |single_threaded| format!("{:.2}", single_threaded.wall_s / row.wall_s));
        let cells = [
            row.threads.to_string(),
            row.hosts.to_string(),
            row.packet_hops.to_string(),
            row.events.to_string(),
            format!("{:.3}", row.cpu_s),
            format!("{:.3}", row.wall_s),
            format!("{:.1}", row.packet_hops_per_s_per_core / 1e6),
            format!("{:.1}", row.packet_hops_per_s / 1e6),
            speed_up,
            format!("{:.0}", row.peak_rss_bytes as f64 / f64::from(1 << 20)),
        ];
        let cells = cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(&row.name)].into_iter().chain(cells));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_workload_builds() {
        for workload in workloads().into_iter().chain(scaling_workloads()) {
            let overrides = Overrides { set: workload.set, ..Overrides::default() };
            let scenario = parse(workload.text, &workload.name, &overrides).unwrap();
            let built = scenario.runs()[0].build().unwrap();
            assert!(!built.setup.flows.is_empty(), "{}", workload.name);
        }
    }

    #[test]
    fn columns_are_the_keys_of_a_record() {
        let record = json!(EngineMeasurement::default());
        let known: BTreeSet<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, BTreeSet::from(KEYS));
    }
}
