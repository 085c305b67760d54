//! Any bytes are a summary, a manifest, a plan, or an error: `cargo +nightly fuzz run json` in `crates/lab/results`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::json(bytes));
