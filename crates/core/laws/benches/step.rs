//! Time of each law per acknowledgement.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use laws::catalog::LawKind;

fn step(criterion: &mut Criterion) {
    let acks = common::acks();
    let mut group = criterion.benchmark_group("law");
    group.throughput(Throughput::Elements(acks.len() as u64));
    for kind in LawKind::ALL {
        group.bench_function(kind.info().name, |bencher| {
            bencher.iter_batched(
                || common::law(kind),
                |law| common::steps(law, black_box(&acks)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, step);
criterion_main!(benches);
