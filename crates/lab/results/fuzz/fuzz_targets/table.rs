//! Any bytes are a table or an error: `cargo +nightly fuzz run table` in `crates/lab/results`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::table(bytes));
