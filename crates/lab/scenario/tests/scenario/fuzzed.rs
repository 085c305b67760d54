//! Runs the bodies of the fuzz targets on their corpora.

use crate::{bodies, corpus};

#[test]
fn scenario_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "scenario", bodies::scenario);
}

#[test]
fn flows_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "flows", bodies::flows);
}

#[test]
fn distribution_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "distribution", bodies::distribution);
}

#[test]
fn htsim_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "htsim", bodies::htsim);
}

#[test]
fn hpcc_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "hpcc", bodies::hpcc);
}

#[test]
fn goal_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "goal", bodies::goal);
}

#[test]
fn graphml_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "graphml", bodies::graphml);
}

#[test]
fn links_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "links", bodies::links);
}

#[test]
fn containerlab_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "containerlab", bodies::containerlab);
}

#[test]
fn sndlib_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "sndlib", bodies::sndlib);
}

#[test]
fn plain_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "plain", bodies::plain);
}

#[test]
fn netflow_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "netflow", bodies::netflow);
}

#[test]
fn capture_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "capture", bodies::capture);
}

#[test]
fn msccl_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "msccl", bodies::msccl);
}

#[test]
fn chakra_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "chakra", bodies::chakra);
}

#[test]
fn simai_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "simai", bodies::simai);
}
