//! Any bytes from `inet_diag` are messages: `cargo +nightly fuzz run inet_diag` in `crates/host/inet-diag`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::inet_diag(bytes));
