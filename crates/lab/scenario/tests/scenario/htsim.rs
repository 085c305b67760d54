//! Imports of htsim's files become scenarios that build.

use std::collections::BTreeMap;
use std::fmt::Write;

use scenario::import::{ImportNames, Imported, StartUnit};
use scenario::{Overrides, parse};
use units::{Bytes, Rate, Span, Time};

use crate::location::points_at;

const NAMES: ImportNames<'_> = ImportNames { scenario: "imported", matrix: "a.cm", topology: "a.topo" };

const CM: &str = "\
Nodes 16
Connections 3
Triggers 1
0->1 id 1 start 0 size 1000000 send_done_trigger 1
2->3 id 2 start 1500000.5 size 2000 prio 3
# the third waits
4->5 id 3 trigger 1 size 4096
trigger id 1 oneshot
";

const TOPO: &str = "\
# a 3-tier tree
Nodes 16
Tiers 3
Podsize 4

Tier 0
Oversubscribed 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Bundle 1

Tier 2
Downlink_speed_Gbps 400
Radix_Down 4
Downlink_Latency_ns 1000
";

/// Makes a scenario of a matrix with starts in picoseconds.
fn import_htsim(matrix: &str, topology: Option<&str>, names: &ImportNames<'_>) -> Result<Imported, scenario::Error> {
    scenario::import::import_htsim(matrix, topology, Some(StartUnit::Picoseconds), names)
}

fn built(imported: &Imported) -> scenario::BuiltRun {
    let scenario = parse(&imported.toml, "x.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}\n{}", imported.toml))
}

#[track_caller]
fn refused(matrix: &str, topology: Option<&str>, location: &str, names: &[&str]) {
    points_at(&import_htsim(matrix, topology, &NAMES).unwrap_err(), location, names);
}

#[test]
fn a_matrix_with_triggers() {
    let imported = import_htsim(CM, None, &NAMES).unwrap();
    let run = built(&imported);
    assert_eq!(run.setup.flows.len(), 3);
    assert_eq!(run.setup.network.hosts().len(), 16);
    assert_eq!(
        run.setup.dependencies_of(&run.setup.flows[2]),
        [experiment::Dependency::Complete(experiment::FlowId(0))]
    );
    assert_eq!(run.setup.flows[1].start, experiment::Start::At(units::Time::from_ps(1_500_000)));
    let notes = imported.notes.join("\n");
    for part in ["one-way delay", "`prio`", "fractions of picoseconds", "k = 4", "DCTCP"] {
        assert!(notes.contains(part), "{notes}");
    }
}

#[test]
fn textbook_fat_tree() {
    let imported = import_htsim(CM, Some(TOPO), &NAMES).unwrap();
    assert!(imported.toml.contains("kind = \"fat-trees\""), "{}", imported.toml);
    let run = built(&imported);
    assert_eq!((run.report.hosts, run.report.switches), (16, 4 + 16));
}

#[test]
fn irregular_trees_become_custom_topologies() {
    let spine = "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
                 Downlink_Latency_ns 1000\nSwitch_Latency_ns 500\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                 Downlink_Latency_ns 1000\nSwitch_Latency_ns 500\n";
    let imported = import_htsim(&CM.replace("Nodes 16", "Nodes 32"), Some(spine), &NAMES).unwrap();
    let run = built(&imported);
    assert_eq!((run.report.hosts, run.report.switches, run.report.links), (32, 6, 2 * (32 + 8)));
    // Four links of 1 us and three switches of 0.5 us each way; packets over four links.
    let rtt = run.report.intra_rtt.unwrap().max.ps();
    assert_eq!(rtt, 2 * (4_000_000 + 1_500_000) + 4 * (332_800 + 5_120));

    let oversubscribed = "Nodes 16\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 1\nDownlink_Latency_ns 1000\n\
                          Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 1\nDownlink_Latency_ns 1000\n\
                          Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1000\n";
    let run = built(&import_htsim(CM, Some(oversubscribed), &NAMES).unwrap());
    assert_eq!((run.report.hosts, run.report.switches), (16, 4 + 2 + 1));
}

#[test]
fn long_matrices_are_written_to_a_separate_file() {
    let mut matrix = String::from("Nodes 16\nConnections 1500\n");
    for i in 0..1_500 {
        writeln!(matrix, "{}->{} start {} size 1000", i % 16, (i + 1) % 16, i * 1_000).unwrap();
    }
    let imported = import_htsim(&matrix, None, &NAMES).unwrap();
    let (name, text) = imported.flows.as_ref().unwrap();
    let directory = std::env::temp_dir().join(format!("narrows-htsim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
    let scenario =
        parse(&imported.toml, &directory.join("x.toml").display().to_string(), &Overrides::default()).unwrap();
    assert_eq!(scenario.runs()[0].build().unwrap().setup.flows.len(), 1_500);
    assert_eq!(scenario.inputs().len(), 1);
}

#[test]
fn cycles_and_oversized_flows_are_errors_at_their_lines() {
    let cycle = "Nodes 4\n0->1 trigger 2 size 5 send_done_trigger 1\n1->2 trigger 1 size 5 send_done_trigger 2\n\
                  trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    refused(cycle, None, "a.cm:2:1", &[]);
    let itself = "Nodes 4\n0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n";
    refused(itself, None, "a.cm:2:1", &[]);
    // The first flow waits for the circle of the others and is not in it.
    let before = "Nodes 4\n0->1 trigger 1 size 5\n1->2 trigger 2 size 5 send_done_trigger 1 send_done_trigger 3\n\
                  2->3 trigger 3 size 5 send_done_trigger 2\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n\
                  trigger id 3 oneshot\n";
    refused(before, None, "a.cm:3:1", &[]);
    // A chain is no circle, whichever way it is written down.
    let chain = "Nodes 4\n0->1 trigger 2 size 5\n1->2 trigger 1 size 5 send_done_trigger 2\n2->3 start 0 size 5 \
                 send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n";
    assert_eq!(built(&import_htsim(chain, None, &NAMES).unwrap()).setup.flows.len(), 3);
    // 2^32 packets of 4 KiB are one too many.
    let sized = |size: u64| format!("Nodes 4\n0->1 start 0 size {size}\n");
    let max = 4096 * u64::from(u32::MAX);
    refused(&sized(max + 1), None, "a.cm:2:19", &["17592186040321 B"]);
    assert_eq!(built(&import_htsim(&sized(max), None, &NAMES).unwrap()).setup.flows[0].size.get(), max);
}

/// Programs take a matrix's starts as picoseconds or as microseconds, a million times as long.
#[test]
fn starts_need_a_unit() {
    let import = |matrix: &str, unit| {
        let imported = scenario::import::import_htsim(matrix, None, unit, &NAMES)?;
        let starts = built(&imported).setup.flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
        Ok::<_, scenario::Error>((starts, imported.notes.join("\n")))
    };
    let late = "Nodes 4\n0->1 start 0 size 5\n1->2 start 1500.25 size 5\n";
    points_at(
        &import(late, None).unwrap_err(),
        "a.cm:3:12",
        &["`start 1500.25`", "--start-unit ps", "--start-unit us"],
    );
    let at = |ps| experiment::Start::At(Time::from_ps(ps));
    let (starts, notes) = import(late, Some(StartUnit::Picoseconds)).unwrap();
    assert_eq!(starts, [at(0), at(1_500)]);
    assert!(notes.contains("read as picoseconds") && notes.contains("fractions of picoseconds"), "{notes}");
    let (starts, notes) = import(late, Some(StartUnit::Microseconds)).unwrap();
    assert_eq!(starts, [at(0), at(1_500_250_000)]);
    assert!(notes.contains("read as microseconds") && !notes.contains("fractions"), "{notes}");
    // Zero is zero in any unit.
    let (starts, notes) = import("Nodes 4\n0->1 start 0 size 5\n1->2 start 0.0 size 5\n", None).unwrap();
    assert_eq!(starts, [at(0), at(0)]);
    assert!(!notes.contains("start times"), "{notes}");
    let too_late = late.replace("1500.25", "2e12");
    points_at(&import(&too_late, Some(StartUnit::Microseconds)).unwrap_err(), "a.cm:3:12", &[]);
}

/// A connection of size 0 lasts to the end, as in htsim; its examples have many of these.
#[test]
fn connections_of_size_zero_have_no_end() {
    let matrix = "Nodes 16\nConnections 3\nTriggers 1\n0->1 start 0 size 0\n2->1 id 1 start 2000000 size 2000000 send_done_trigger 1\n\
                  3->1 id 2 trigger 1 size 0\ntrigger id 1 oneshot\n";
    let imported = import_htsim(matrix, None, &NAMES).unwrap();
    for part in ["{ start = \"0s\", src = 0, dst = 1 }", "{ src = 3, dst = 1, after = 1 }", "stop = \"1.002ms\""] {
        assert!(imported.toml.contains(part), "{part}\n{}", imported.toml);
    }
    assert!(imported.notes.join("\n").contains("2 connections without an end"), "{:?}", imported.notes);
    let built = built(&imported);
    // 100 Gb/s for as long as the run lasts.
    let link_bytes = Rate::from_gbps(100).bytes_in(Span::from_us(1_002)).get();
    for (flow, endless) in built.setup.flows.iter().zip([true, false, true]) {
        assert_eq!(flow.size.get() >= link_bytes, endless, "{}", flow.size);
    }
    let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
    let completed: Vec<bool> = outcome.flows.iter().map(|flow| flow.completed.is_set()).collect();
    assert_eq!(completed, [false, true, false]);
    // Flows that wait for such a connection would never start.
    let waits = matrix.replace("size 0\n2->1", "size 0 recv_done_trigger 1\n2->1").replace(" send_done_trigger 1", "");
    refused(&waits, None, "a.cm:6:11", &[]);
}

#[test]
fn more_hosts_than_are_simulated_are_refused() {
    refused("Nodes 70000\n0->1 start 0 size 1\n", None, "nowhere", &["65535", "imported.toml"]);
}

#[test]
fn unsupported_htsim_features_are_errors() {
    refused("Nodes 4\n0->9 start 0 size 1\n", None, "a.cm:2:1", &[]);
    refused("Nodes 4\n0->1 start 0\n", None, "a.cm:2:1", &[]);
    refused("Nodes 99999999999\n0->1 start 0 size 1\n", None, "a.cm:1:7", &["`99999999999`", "4294967295"]);
    refused("Nodes 4x\n0->1 start 0 size 1\n", None, "a.cm:1:7", &["`Nodes`", "`4x`"]);
    refused("Nodes 4\n0->1 size 5\n", None, "a.cm:2:1", &[]);
    refused("Nodes 4\nConnections 2\n0->1 start 0 size 5\n", None, "a.cm:2:1", &["`Connections 2`"]);
    refused("Nodes 4\n0->1 start 0 siez 5\n", None, "a.cm:2:14", &["`size`"]);
    refused("Nodes 4\nFailures 1\nfailure switch_type TOR switch_id 0 link_id 1\n", None, "a.cm:2:1", &[]);
    refused("Nodes 4\n0->1 trigger 1 size 5\ntrigger id 1 oneshot\n", None, "a.cm:2:6", &[]);
    let barrier = "Nodes 4\n0->1 start 0 size 5 send_done_trigger 1\n1->2 start 0 size 5 send_done_trigger 1\n\
                   2->3 trigger 1 size 5\ntrigger id 1 barrier count 2\n";
    // A barrier that all of its flows fire is a flow that waits for several, in a file of its own, too.
    let imported = import_htsim(barrier, None, &NAMES).unwrap();
    assert!(imported.toml.contains("after = [0, 1]"), "{}", imported.toml);
    let waits = built(&imported).setup;
    assert_eq!(
        waits.dependencies_of(&waits.flows[2]),
        [0, 1].map(|flow| experiment::Dependency::Complete(experiment::FlowId(flow)))
    );
    refused(&barrier.replace("count 2", "count 3"), None, "a.cm:5:1", &[]);
    refused(&barrier.replace("barrier count 2", "multishot"), None, "a.cm:5:1", &[]);
    refused(CM, Some(&TOPO.replace("Nodes 16", "Nodes 8")), "a.topo:2:1", &["16"]);
    refused(CM, Some(&TOPO.replace("Radix_Down 4", "Radix_Down 5")), "a.topo:21:1", &[]);
    refused(CM, Some(&TOPO.replace("Bundle", "Bndle")), "a.topo:19:1", &["`Bundle`"]);
}

proptest::proptest! {
    #[test]
    fn no_file_panics(at in 0..CM.len(), insert in "\\PC{0,6}", topo_at in 0..TOPO.len()) {
        let mut matrix = CM.to_owned();
        matrix.insert_str(at, &insert);
        let mut topology = TOPO.to_owned();
        topology.insert_str(topo_at, &insert);
        let _ = import_htsim(&matrix, Some(TOPO), &NAMES);
        if let Ok(imported) = import_htsim(CM, Some(&topology), &NAMES) {
            let _ = parse(&imported.toml, "x", &Overrides::default());
        }
    }
}

/// Matrices of htsim's and of Ultra Ethernet's simulator (Broadcom/csg-htsim, `connection_matrices`; Dipsingh/uet-htsim2,
/// `results/deep_dive`), unchanged: two permutations, an incast, and a mix of senders with many flows and with one.
const MATRICES: [(&str, &str, f64); 4] = [
    ("perm_16n_16c_2MB", include_str!("../files/htsim/perm_16n_16c_2MB.cm"), 0.1),
    ("perm_16f", include_str!("../files/htsim/perm_16f.cm"), 0.03),
    ("incast_8to1", include_str!("../files/htsim/incast_8to1.cm"), 0.03),
    ("outcast_incast", include_str!("../files/htsim/outcast_incast.cm"), 0.01),
];

/// Under NSCC with REPS and trimming, on trees of 16 and 128 hosts without oversubscription, the last flow ends when the
/// busiest host's link has carried payload and headers, within this tolerance. The excess is largest if flows share links
/// inside the tree by chance.
#[test]
fn public_matrices_run_under_nscc() {
    const SCHEME: &str = "{ nscc = { law = \"nscc\", host.load_balancing = \"reps\", \
                          port = { trim = true, buffer = \"bdp\", ecn = { min = \"20%\", max = \"80%\" } } } }";
    let of_16 = TOPO.replace("Downlink_speed_Gbps 400", "Downlink_speed_Gbps 100");
    let of_128 = of_16
        .replace("Nodes 16", "Nodes 128")
        .replace("Podsize 4", "Podsize 16")
        .replace("Radix_Down 4", "Radix_Down 8")
        .replace("Radix_Down 2", "Radix_Down 4")
        .replace("Radix_Up 2", "Radix_Up 4");
    for (name, matrix, idle) in MATRICES {
        let topology = if matrix.starts_with("Nodes 16\n") { &of_16 } else { &of_128 };
        let imported = import_htsim(matrix, Some(topology), &NAMES).unwrap_or_else(|error| panic!("{error}"));
        let overrides = Overrides { set: vec![("schemes".into(), SCHEME.into())], ..Overrides::default() };
        let scenario = parse(&imported.toml, "x.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
        let built = scenario.runs()[0].build().unwrap_or_else(|error| panic!("{error}"));
        let setup = &built.setup;
        assert_eq!(setup.flows.len(), matrix.matches("->").count());
        let outcome = engine::run(setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
        assert!(outcome.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.timeouts == 0), "{name}");
        assert_eq!(outcome.links.iter().map(|link| link.drops).sum::<u64>(), 0, "{name}");
        // The bytes on the busiest link of a host, and the shortest path of its flows.
        let mut ends: BTreeMap<(bool, u32), (Bytes, Span)> = BTreeMap::new();
        for flow in &setup.flows {
            // 64 bytes of header for each 4096 of payload.
            let wire = flow.size + Bytes::new(64 * flow.size.get().div_ceil(4_096));
            let base = setup.paths(flow.src, flow.dst, setup.host.mss).base_rtt;
            for end in [(true, flow.src.0), (false, flow.dst.0)] {
                let (bytes, shortest) = ends.entry(end).or_insert((Bytes::ZERO, base));
                *bytes += wire;
                *shortest = base.min(*shortest);
            }
        }
        let least = ends.values().map(|&(bytes, base)| base + Rate::from_gbps(100).tx_time(bytes)).max().unwrap();
        let last = outcome.flows.iter().map(|flow| flow.completed).max().unwrap().since(Time::ZERO);
        let over = last.ps() as f64 / least.ps() as f64 - 1.0;
        println!("{name}: {last}, {:.2} % over {least}", 100.0 * over);
        assert!((-0.01..idle).contains(&over), "{name}: {last} instead of {least}");
    }
}
