//! Any text is a network of SNDlib or an error: `cargo +nightly fuzz run sndlib` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::sndlib(bytes));
