//! Whatever the kernel's socket monitor answers is messages: `cargo +nightly fuzz run inet_diag` in `crates/emulator`.

#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::inet_diag(bytes));
