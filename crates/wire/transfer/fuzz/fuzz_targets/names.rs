//! Names, links' targets and messages of a peer: `cargo +nightly fuzz run names` in `crates/wire/transfer`.

#![no_main]

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::names(bytes));
