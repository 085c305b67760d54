//! A port's time a packet: plain, and served lazily.
#![allow(missing_docs)]

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn port(criterion: &mut Criterion) {
    let packets = common::packets();
    let mut group = criterion.benchmark_group("port");
    group.throughput(Throughput::Elements(packets.len() as u64));
    let params = common::params(false);
    group.bench_function("plain", |bencher| bencher.iter(|| common::plain(black_box(&params), &packets)));
    let params = common::params(true);
    group.bench_function("lazy", |bencher| bencher.iter(|| common::lazy(black_box(&params), &packets)));
    group.finish();
}

criterion_group!(benches, port);
criterion_main!(benches);
