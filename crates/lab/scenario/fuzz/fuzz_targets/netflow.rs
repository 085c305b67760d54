//! Any bytes are flow records or an error: `cargo +nightly fuzz run netflow` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::netflow(bytes));
