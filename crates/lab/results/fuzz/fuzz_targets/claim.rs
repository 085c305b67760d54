//! Any text is a check or an error: `cargo +nightly fuzz run claim` in `crates/lab/results`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::claim(bytes));
