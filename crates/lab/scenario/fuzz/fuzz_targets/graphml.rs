//! Any text is a network in GraphML or an error: `cargo +nightly fuzz run graphml` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::graphml(bytes));
