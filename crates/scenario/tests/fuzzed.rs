//! The corpus of the fuzz targets, tried by what the targets try. Every input that ever broke something is in it.

#[path = "../fuzz/bodies.rs"]
mod bodies;

use std::path::Path;

/// Tries every file of a target's corpus, in order.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{}: only {} files", folder.display(), files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let tried = std::panic::catch_unwind(|| body(&bytes));
        assert!(tried.is_ok(), "{}", file.display());
    }
}

#[test]
fn scenario_corpus() {
    replay("scenario", bodies::scenario);
}

#[test]
fn flows_corpus() {
    replay("flows", bodies::flows);
}

#[test]
fn distribution_corpus() {
    replay("distribution", bodies::distribution);
}

#[test]
fn htsim_corpus() {
    replay("htsim", bodies::htsim);
}

#[test]
fn hpcc_corpus() {
    replay("hpcc", bodies::hpcc);
}
