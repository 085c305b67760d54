//! The same scenario produces the same files, bit for bit, at any number of threads and twice in a row.

use std::collections::BTreeMap;

use crate::support::{GRID, Scratch};

#[track_caller]
fn always_the_same(scenario: &str, args: &str, files: usize) {
    let scratch = Scratch::new("same");
    scratch.write("s.toml", scenario);
    let mut first: Option<BTreeMap<String, Vec<u8>>> = None;
    for threads in [1, 2, 3, 8, 8] {
        scratch.narrows(&format!("run s.toml --quiet --out out --threads {threads} {args}")).ok();
        let found = scratch.comparable("out");
        assert_eq!(found.len(), files);
        let first = first.get_or_insert_with(|| found.clone());
        for ((name, bytes), (first_name, first_bytes)) in found.iter().zip(first.iter()) {
            assert_eq!(name, first_name);
            assert!(bytes == first_bytes, "{name} differs with {threads} threads");
        }
        // The table has rows: flows moved, ports and rates were sampled.
        for (name, bytes) in found.iter().filter(|(name, _)| name.ends_with(".parquet")) {
            assert!(bytes.len() > 1_000, "{name} is nearly empty");
        }
    }
    // Another seed is another run.
    scratch.narrows(&format!("run s.toml --quiet --out other --seed 99 {args}")).ok();
    assert!(scratch.comparable("other") != first.unwrap());
}

#[test]
fn a_grid() {
    always_the_same(GRID, "", 6 * 5 + 3);
}

/// Alone, so that its partitions are spread over the threads.
#[test]
fn a_run_in_parallel() {
    let flat = GRID.split("[grid]").next().unwrap().replace("inter_rtt", "datacenters = 4\ninter_rtt");
    always_the_same(&flat, "--scheme uno", 5);
    always_the_same(&flat, "--scheme mixed --set host.load_balancing=spray", 5);
}

/// The paths of the file and of the results are not in the results.
#[test]
fn results_do_not_depend_on_paths() {
    let (here, there) = (Scratch::new("here"), Scratch::new("there"));
    here.write("s.toml", GRID);
    there.write("deep/er/s.toml", GRID);
    here.narrows("run s.toml --quiet").ok();
    there.narrows("run deep/er/s.toml --quiet --out elsewhere").ok();
    assert!(here.comparable("out/grid") == there.comparable("elsewhere"));
}
