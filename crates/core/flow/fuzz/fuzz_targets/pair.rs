//! Any events between two ends, with one that may send anything: `cargo +nightly fuzz run pair` in `crates/core/flow`.

#![no_main]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../stream.rs"]
mod stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::pair(bytes));
