//! A flow's time a packet, both ends together: sent, received, acknowledged.
#![allow(missing_docs)]

mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flow");
    group.throughput(Throughput::Elements(1));
    for (name, reorders) in [("in-order", false), ("reordered", true)] {
        let mut steady = common::Steady::new(reorders);
        group.bench_function(name, |bencher| bencher.iter(|| steady.step()));
    }
    group.finish();
}

criterion_group!(benches, step);
criterion_main!(benches);
