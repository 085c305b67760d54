//! A packet's payload, from a stranger: `cargo +nightly fuzz run frames` in `crates/wire/proto`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::frames(bytes));
