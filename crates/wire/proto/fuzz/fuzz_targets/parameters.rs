//! Transport parameters, from a stranger: `cargo +nightly fuzz run parameters` in `crates/wire/proto`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::parameters(bytes));
