//! Frames of a peer that has keys: `cargo +nightly fuzz run sealed` in `crates/wire/proto`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::sealed(bytes));
