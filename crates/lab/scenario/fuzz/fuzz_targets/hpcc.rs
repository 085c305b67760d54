//! Any three texts are files of HPCC's simulator or an error: `cargo +nightly fuzz run hpcc` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::hpcc(bytes));
