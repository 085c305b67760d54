//! The engine's instructions, on a small permutation.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;
use std::process::Command;

use experiment::{Outcome, Setup};
use gungraun::prelude::*;

#[library_benchmark]
#[bench::permutation(common::permutation(false))]
#[bench::permutation_priority(common::permutation(true))]
fn engine(setup: Setup) -> (Setup, Outcome) {
    let outcome = common::run(black_box(&setup));
    (setup, outcome)
}

library_benchmark_group!(name = instructions, benchmarks = engine);

/// Returns whether a tool can be started.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn main() {
    gungraun::main!(library_benchmark_groups = instructions);
    let runner = std::env::var("GUNGRAUN_RUNNER").unwrap_or_else(|_| "gungraun-runner".to_owned());
    let counts = std::env::args().nth(1).is_some_and(|first| first == "--gungraun-run");
    if counts || is_there("valgrind") && is_there(&runner) {
        main();
    } else {
        println!(
            "skipped: counting instructions needs valgrind and gungraun-runner 0.20.0 (cargo install gungraun-runner)"
        );
    }
}
