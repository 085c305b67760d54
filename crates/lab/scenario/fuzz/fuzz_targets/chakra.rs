//! Any bytes are traces of Chakra or an error: `cargo +nightly fuzz run chakra` in `crates/lab/scenario`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::chakra(bytes));
