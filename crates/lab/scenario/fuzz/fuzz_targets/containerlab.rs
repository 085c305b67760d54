//! Any text is a lab of containerlab or an error: `cargo +nightly fuzz run containerlab` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::containerlab(bytes));
