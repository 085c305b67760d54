//! Any text is a scenario or an error: `cargo +nightly fuzz run scenario` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::scenario(bytes));
