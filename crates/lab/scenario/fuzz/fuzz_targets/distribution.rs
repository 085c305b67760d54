//! Any text is a distribution of sizes or an error: `cargo +nightly fuzz run distribution` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::distribution(bytes));
