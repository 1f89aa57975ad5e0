//! The distance kernel of Relief beside the peak rate of its arithmetic.
//!
//! `cargo bench --manifest-path benches/kernels/Cargo.toml --bench relief -- --quick`
//!
//! Elements are feature differences. The share of the peak is that of the throughputs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ferrank_neighbors::internals::{Pair, peak};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 10_000;

fn distances(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("distances");
    group.throughput(Throughput::Elements(peak(ROUNDS).0 as u64));
    group.bench_function("peak, in registers", |b| b.iter(|| peak(black_box(ROUNDS))));
    for width in [20, 100, 1_000, 10_000] {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let pair = Pair::new((0..32 * width).map(|_| random.random()).collect(), width);
        group.throughput(Throughput::Elements(256 * width as u64));
        group.bench_function(BenchmarkId::new("two panels", width), |b| b.iter(|| black_box(&pair).measure()));
    }
}

criterion_group!(relief, distances);
criterion_main!(relief);
