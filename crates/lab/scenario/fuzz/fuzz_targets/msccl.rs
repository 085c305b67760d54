//! Any text is an algorithm of MSCCL or an error: `cargo +nightly fuzz run msccl` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::msccl(bytes));
