//! Instructions of each law for 1,000 acknowledgements and a loss.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;
use std::process::Command;

use gungraun::prelude::*;
use laws::catalog::LawKind;
use laws::{Ack, Law, SendLimits};

#[library_benchmark]
#[bench::unocc(common::law(LawKind::UnoCc), common::acks())]
#[bench::gemini(common::law(LawKind::Gemini), common::acks())]
#[bench::dctcp(common::law(LawKind::Dctcp), common::acks())]
#[bench::mprdma(common::law(LawKind::MpRdma), common::acks())]
#[bench::bbr(common::law(LawKind::Bbr), common::acks())]
#[bench::cubic(common::law(LawKind::Cubic), common::acks())]
#[bench::newreno(common::law(LawKind::NewReno), common::acks())]
#[bench::dcqcn(common::law(LawKind::Dcqcn), common::acks())]
#[bench::timely(common::law(LawKind::Timely), common::acks())]
#[bench::hpcc(common::law(LawKind::Hpcc), common::acks())]
#[bench::dctcp_rate(common::law(LawKind::DctcpRate), common::acks())]
#[bench::line_rate(common::law(LawKind::LineRate), common::acks())]
#[bench::fixed(common::law(LawKind::Fixed), common::acks())]
fn steps(law: Law, acks: Vec<Ack>) -> SendLimits {
    common::steps(law, black_box(&acks))
}

library_benchmark_group!(name = instructions, benchmarks = steps);

/// Returns whether `program` can be started.
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
