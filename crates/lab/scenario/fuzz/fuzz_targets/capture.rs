//! Any bytes are a capture or an error: `cargo +nightly fuzz run capture` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::capture(bytes));
