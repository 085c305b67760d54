//! A flow's instructions for 1,000 packets, both ends together.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;
use std::process::Command;

use common::Steady;
use gungraun::prelude::*;

fn warm(reorders: bool) -> Steady {
    let mut steady = Steady::new(reorders);
    (0..1_000).for_each(|_| steady.step());
    steady
}

#[library_benchmark]
#[bench::in_order(warm(false))]
#[bench::reordered(warm(true))]
fn a_thousand(mut steady: Steady) -> Steady {
    (0..1_000).for_each(|_| black_box(&mut steady).step());
    steady
}

library_benchmark_group!(name = instructions, benchmarks = a_thousand);

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
