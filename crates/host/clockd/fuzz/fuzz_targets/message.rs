//! Any datagram is refused or handled: `cargo +nightly fuzz run message` in `crates/host/clockd`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::message(bytes));
