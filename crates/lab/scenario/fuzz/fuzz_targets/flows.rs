//! Any text is a list of flows or an error: `cargo +nightly fuzz run flows` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::flows(bytes));
