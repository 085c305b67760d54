//! Datagrams from strangers to an endpoint: `cargo +nightly fuzz run strangers` in `crates/wire/proto`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::strangers(bytes));
