//! Any input from a device is a packet or an error: `cargo +nightly fuzz run packet` in `crates/host/router`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::packet(bytes));
