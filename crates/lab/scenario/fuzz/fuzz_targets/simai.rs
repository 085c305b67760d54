//! Any bytes are a workload of SimAI or an error: `cargo +nightly fuzz run simai` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::simai(bytes));
