//! `--json` prints JSON and nothing else, with the keys that the book names, in its order.

use serde_json::Value;

use crate::support::{GRID, ONE, Scratch, keys};

const CELL: [&str; 5] = ["count", "completed", "fct_ns", "slowdown", "goodput_bps"];
const STATS: [&str; 6] = ["mean", "p50", "p90", "p95", "p99", "max"];
const ACTIONS: [&str; 7] = ["increases", "cuts", "loss_cuts", "quick_adapts", "probe_rtts", "holds", "credits"];

#[track_caller]
fn is_cell(value: &Value) {
    assert_eq!(keys(value), CELL);
    assert_eq!(keys(&value["fct_ns"]), STATS);
    assert_eq!(keys(&value["slowdown"]), STATS);
}

#[track_caller]
pub(crate) fn is_summary(summary: &Value) {
    let all = "schema scenario run label point backend seed end_ns conditions flows requests collectives jobs schedules network credits fairness predicts \
               law engine emulator virtual warnings notes";
    assert_eq!(keys(summary).join(" "), all);
    assert_eq!(summary["schema"], 1);
    assert_eq!(keys(&summary["conditions"]), ["classes", "most_loaded"]);
    for class in summary["conditions"]["classes"].as_object().unwrap().values() {
        assert_eq!(keys(class), ["bdp_bytes", "initial_window_bytes", "initial_rate_bps"]);
    }
    assert_eq!(keys(&summary["flows"]), ["all", "intra", "inter", "sizes"]);
    for class in ["all", "intra", "inter"] {
        is_cell(&summary["flows"][class]);
    }
    summary["flows"]["sizes"].as_object().unwrap().values().for_each(is_cell);
    is_cell(&summary["requests"]);
    is_cell(&summary["collectives"]);
    summary["jobs"].as_object().unwrap().values().for_each(is_cell);
    let network = "data_packets packet_hops drops drops_by_tier drops_by_kind data_drops_by_tier ecn_marks \
                   or_acks or_ack_bytes retransmits timeouts pfc_pauses pfc_pause_ns pfc_pauses_by_tier pfc_pause_ns_by_tier host_pause_ns nacks \
                   cnps parity_packets recovered_blocks on_ramp_hold_ns max_queue_bytes max_buffer_bytes \
                   headroom_drops messages deadlock links switches";
    assert_eq!(keys(&summary["network"]).join(" "), network);
    assert!(summary["network"]["links"].as_array().is_some_and(|links| !links.is_empty()));
    let credits = "sent used dropped wasted received over_provisioned late unscheduled unscheduled_drops";
    assert_eq!(keys(&summary["credits"]).join(" "), credits);
    assert_eq!(
        (keys(&summary["predicts"]), keys(&summary["predicts"]["owd"])),
        (vec!["owd", "rtt"], vec!["packets", "r"])
    );
    assert_eq!(
        keys(&summary["fairness"]),
        ["jain_mean", "jain_final", "converged_at_ns", "reached_at_ns", "jain_since"]
    );
    assert_eq!(keys(&summary["law"]), ["name", "actions", "by_law"]);
    assert_eq!(keys(&summary["law"]["actions"]), ACTIONS);
    let engine = ["events", "wall_s", "cpu_s", "threads", "packet_hops_per_s", "peak_rss_bytes"];
    assert_eq!(keys(&summary["engine"]), engine);
    assert!(summary["engine"]["events"].as_u64().is_some_and(|events| events > 0));
}

#[test]
fn of_one_run() {
    let scratch = Scratch::new("json");
    scratch.write("one.toml", ONE);
    let ran = scratch.narrows("run one.toml --json --out out --seed 7").ok();
    let summary = ran.json();
    is_summary(&summary);
    assert_eq!((&summary["scenario"], &summary["seed"]), (&"one".into(), &7.into()));
    assert_eq!(summary["flows"]["all"]["completed"], 4);
    assert!(summary["fairness"]["jain_final"].is_f64());
    assert_eq!(ran.err, "");
    // The output equals the file on disk.
    assert_eq!(ran.out, scratch.read("out/summary.json"));
}

#[test]
fn of_a_grid() {
    let scratch = Scratch::new("json");
    scratch.write("grid.toml", GRID);
    let ran = scratch.narrows("run grid.toml --json --out out").ok();
    let grid = ran.json();
    assert_eq!(keys(&grid), ["schema", "runs"]);
    assert_eq!(grid["schema"], 1);
    let runs = grid["runs"].as_array().unwrap();
    runs.iter().for_each(is_summary);
    let ids: Vec<_> = runs.iter().map(|run| run["run"].as_str().unwrap()).collect();
    let schemes = ["uno", "mixed", "cubic"];
    let expected: Vec<_> = ["0.2", "0.6"]
        .iter()
        .flat_map(|load| schemes.map(|scheme| format!("{scheme},traffic.0.load={load}")))
        .collect();
    assert_eq!(ids, expected);
    assert_eq!(keys(&runs[0]["flows"]["sizes"]), ["small", "large"]);
    assert_eq!((&runs[1]["label"], &runs[1]["law"]["name"]), (&"MPRDMA + BBR".into(), &"mprdma+bbr".into()));
    assert_eq!(ran.err, "");
    assert_eq!(ran.out, scratch.read("out/summary.json"));
    // One of a grid's schemes at several points is a grid, too; one run of a grid is a run.
    let line = "run grid.toml --json --out cubic --scheme cubic";
    assert_eq!(scratch.narrows(line).ok().json()["runs"].as_array().unwrap().len(), 2);
    scratch.write("flat.toml", GRID.split("[grid]").next().unwrap());
    is_summary(&scratch.narrows("run flat.toml --json --out flat --scheme cubic").ok().json());
}

#[test]
fn of_the_engine_benchmark() {
    let scratch = Scratch::new("json");
    let ran = scratch.narrows("bench engine --json --only scaling-k4 --scaling --runs 1").ok();
    let bench = ran.json();
    assert_eq!(keys(&bench), ["schema", "workloads"]);
    let rows = bench["workloads"].as_array().unwrap();
    let expected_keys = "name threads packet_hops events cpu_s wall_s packet_hops_per_s_per_core peak_rss_bytes";
    for (row, threads) in rows.iter().zip([1, 2]) {
        assert_eq!(keys(row)[..8].join(" "), expected_keys);
        assert_eq!((&row["name"], &row["threads"]), (&"scaling-k4".into(), &threads.into()));
        for key in &keys(row)[2..] {
            assert!(row[*key].as_f64().is_some_and(|value| value > 0.0), "{key}: {row}");
        }
    }
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["packet_hops"], &rows[0]["events"]), (&rows[1]["packet_hops"], &rows[1]["events"]));
    assert_eq!(ran.err, "");
    assert!(scratch.tree().is_empty());
}

#[test]
fn of_the_benchmark_of_codes() {
    let scratch = Scratch::new("json");
    let ran = scratch.narrows("bench codes --json --engine portable --only 4096-portable-hot --runs 1").ok();
    let bench = ran.json();
    assert_eq!(keys(&bench), ["schema", "workloads"]);
    let rows = bench["workloads"].as_array().unwrap();
    let codes: Vec<_> = rows.iter().map(|row| (row["data"].as_u64(), row["parity"].as_u64())).collect();
    let expected = [(8, 2), (8, 1), (16, 4), (32, 8)].map(|(data, parity)| (Some(data), Some(parity)));
    assert_eq!(codes, expected);
    let expected_keys = "name engine cache data parity packet_bytes encode_bytes_per_s stream_bytes_per_s \
                 repair_one_bytes_per_s repair_two_bytes_per_s";
    for row in rows {
        assert_eq!(keys(row).join(" "), expected_keys);
        assert_eq!((&row["engine"], &row["cache"]), (&"portable".into(), &"hot".into()));
        for key in &keys(row)[3..9] {
            assert!(row[*key].as_f64().is_some_and(|value| value > 0.0), "{key}: {row}");
        }
        // A code with one parity packet repairs one loss.
        assert_eq!(row["repair_two_bytes_per_s"].is_null(), row["parity"] == 1, "{row}");
    }
    assert_eq!(rows[0]["name"], "8+2-4096-portable-hot");
    assert_eq!(ran.err, "");
    assert!(scratch.tree().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn of_the_benchmark_of_the_transport() {
    let scratch = Scratch::new("json");
    let ran = scratch.narrows("bench transport --json --bytes 1MiB --rounds 2").ok();
    let bench = ran.json();
    assert_eq!(keys(&bench), ["schema", "workloads"]);
    assert_eq!(bench["schema"], 1);
    let rows = bench["workloads"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["1400", "1400-coded", "4096", "4096-coded", "tcp"]);
    let expected_keys = "name bytes cpu_s wall_s gbit_per_core_s gbit_per_s ratio_to_tcp packet_bytes packets lost";
    let (bytes, tcp) = (f64::from(1 << 20), rows[4]["gbit_per_core_s"].as_f64().unwrap());
    for (row, name) in rows.iter().zip(names) {
        assert_eq!(keys(row).join(" "), expected_keys);
        let number = |key: &str| row[key].as_f64().unwrap();
        assert_eq!(row["bytes"], 1 << 20);
        for (rate, time) in [("gbit_per_core_s", "cpu_s"), ("gbit_per_s", "wall_s")] {
            assert!((number(rate) * number(time) / (bytes * 8e-9) - 1.0).abs() < 1e-9, "{row}");
        }
        assert!((number("ratio_to_tcp") * tcp / number("gbit_per_core_s") - 1.0).abs() < 1e-9, "{row}");
        let Ok(packet) = name.split('-').next().unwrap().parse::<u16>() else {
            assert!(["packet_bytes", "packets", "lost"].iter().all(|key| row[*key].is_null()), "{row}");
            continue;
        };
        assert_eq!(row["packet_bytes"], packet);
        // Two parity packets for eight of data are a quarter more.
        let min_bytes = if name.ends_with("-coded") { 1.25 * bytes } else { bytes };
        assert!(number("packets") * f64::from(packet) > min_bytes, "{row}");
        assert!(number("lost") < number("packets"), "{row}");
    }
    assert_eq!(ran.err, "");
    // Alone, a workload has nothing to be compared with.
    let ran = scratch.narrows("bench transport --json --bytes 64KiB --rounds 1 --only 4096-").ok();
    let alone = ran.json()["workloads"].clone();
    assert_eq!(alone.as_array().unwrap().len(), 1);
    assert_eq!((&alone[0]["name"], &alone[0]["ratio_to_tcp"]), (&"4096-coded".into(), &Value::Null));
    let table = scratch.narrows("bench transport --bytes 64KiB --rounds 1").ok().out;
    for part in ["workload", "Gbit/core-s", "of TCP", "Gbit/s", "1400-coded", "4096", "tcp", "1.00"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(scratch.tree().is_empty());
}

#[test]
fn of_the_laws() {
    let scratch = Scratch::new("json");
    let laws = scratch.narrows("laws --json").ok().json();
    assert_eq!(keys(&laws), ["schema", "laws"]);
    let names: Vec<_> = laws["laws"].as_array().unwrap().iter().map(|law| law["name"].as_str().unwrap()).collect();
    for law in ["unocc", "gemini", "dctcp", "mprdma", "bbr", "cubic", "newreno"] {
        assert!(names.contains(&law), "{law} is not in {names:?}");
    }
    let one = scratch.narrows("laws gemini --json").ok().json();
    assert_eq!(one["laws"].as_array().unwrap().len(), 1);
    let params = one["laws"][0]["params"].as_array().unwrap();
    assert!(!params.is_empty());
    for param in params {
        assert_eq!(keys(param), ["name", "quantity", "default", "lowest", "highest", "doc"]);
    }
}
