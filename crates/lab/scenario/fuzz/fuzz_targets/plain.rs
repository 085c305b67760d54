//! Any bytes are flows as plain CSV or an error: `cargo +nightly fuzz run plain` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::plain(bytes));
