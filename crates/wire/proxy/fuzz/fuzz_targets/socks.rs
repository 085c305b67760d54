//! Messages of a SOCKS client, and the beginning of a stream: `cargo +nightly fuzz run socks` in `crates/wire/proxy`.

#![no_main]

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::socks(bytes));
