//! A port's instructions for 1,000 packets: plain, and served lazily.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;
use std::process::Command;

use gungraun::prelude::*;

#[library_benchmark]
#[bench::a_thousand(common::params(false), common::packets())]
fn plain(params: fabric::PortParams, packets: Vec<common::BenchPacket>) -> u64 {
    common::plain(black_box(&params), &packets)
}

#[library_benchmark]
#[bench::a_thousand(common::params(true), common::packets())]
fn lazy(params: fabric::PortParams, packets: Vec<common::BenchPacket>) -> u64 {
    common::lazy(black_box(&params), &packets)
}

library_benchmark_group!(name = instructions, benchmarks = [plain, lazy]);

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
