//! The engine's time a packet-hop, on a small permutation; `narrows bench engine` measures the large ones.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    for (name, control_priority) in [("permutation", false), ("permutation-priority", true)] {
        let setup = common::permutation(control_priority);
        group.throughput(Throughput::Elements(common::run(&setup).engine.packet_hops));
        group.bench_function(name, |bencher| bencher.iter(|| common::run(black_box(&setup))));
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
