//! What a SOCKS client says, and how a stream begins: `cargo +nightly fuzz run socks` in `crates/wire/proxy`.

#![no_main]

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::socks(bytes));
