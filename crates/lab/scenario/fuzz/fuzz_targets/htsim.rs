//! Any two texts are files of htsim or an error: `cargo +nightly fuzz run htsim` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::htsim(bytes));
