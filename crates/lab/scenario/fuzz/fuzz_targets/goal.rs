//! Any bytes are a GOAL schedule or an error: `cargo +nightly fuzz run goal` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::goal(bytes));
