//! The kernels that forests spend their time in, on made-up nodes.
//!
//! `cargo bench --manifest-path benches/kernels/Cargo.toml --bench forest -- --quick`

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_forest::internals::{Any, Single, code};
use ferrank_forest::{ForestParams, grow_tree};
use ferrank_runtime::monitor::Monitor;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SIZES: [usize; 5] = [8, 32, 200, 5_000, 100_000];

fn random() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(1)
}

fn codes(n: usize, random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    (0..n).map(|_| random.random_range(0..255)).collect()
}

fn values(n: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    // On a grid, as targets are.
    (0..n).map(|_| f64::from(random.random_range(-1_000_000..1_000_000)) / f64::from(1 << 20)).collect()
}

/// A cut that leaves examples on both sides of every node.
const MIDDLE: u8 = 127;

fn one_component(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one component");
    for n in SIZES {
        let mut random = random();
        let mut node = Single::new(codes(n, &mut random), &values(n, &mut random));
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("best cut", n), |b| b.iter(|| black_box(&mut node).best_cut()));
        group.bench_function(BenchmarkId::new("given cut", n), |b| b.iter(|| black_box(&node).given_cut(MIDDLE)));
    }
}

fn any_components(criterion: &mut Criterion) {
    for (name, width, n_labels) in [("16 components", 16, 0), ("100 labels", 0, 100)] {
        let mut group = criterion.benchmark_group(name);
        for n in SIZES {
            let mut random = random();
            // Three labels each.
            let labels = |random: &mut Xoshiro256PlusPlus| {
                let first = random.random_range(0..n_labels as u32 - 20);
                vec![first, first + 4, first + 19]
            };
            let labels: Vec<Vec<u32>> =
                if n_labels > 0 { (0..n).map(|_| labels(&mut random)).collect() } else { Vec::new() };
            let codes = codes(n, &mut random);
            let mut node = Any::new(codes, width, values(n * width, &mut random), &labels, n_labels);
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new("best cut", n), |b| b.iter(|| black_box(&mut node).best_cut()));
            group.bench_function(BenchmarkId::new("given cut", n), |b| {
                b.iter(|| black_box(&mut node).given_cut(MIDDLE))
            });
        }
    }
}

/// `rows` x `features` random numbers, and a target that depends on two of them.
fn table(rows: usize, features: usize) -> (TableSource, Roles) {
    let mut random = random();
    let mut columns: Vec<Vec<f32>> = (0..features).map(|_| (0..rows).map(|_| random.random()).collect()).collect();
    columns.push((0..rows).map(|row| columns[0][row] + (columns[1][row] - 0.5).abs()).collect());
    let names = (0..features).map(|i| format!("x{i}")).chain(["y".to_string()]);
    let columns = names.zip(columns).map(|(name, values)| (name, Arc::new(Float32Array::from(values)) as ArrayRef));
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let source = TableSource::new("table", batch.schema(), vec![batch]).expect("the batch's own schema");
    (source, Roles::new(Targets::Last(1)))
}

fn whole_steps(criterion: &mut Criterion) {
    const ROWS: usize = 100_000;
    const FEATURES: usize = 20;
    let (source, roles) = table(ROWS, FEATURES);
    let mut group = criterion.benchmark_group("100,000 rows, 20 features");
    group.sample_size(10);
    group.throughput(Throughput::Elements((ROWS * FEATURES) as u64));
    for max_bins in [255, 65_535] {
        group.bench_function(BenchmarkId::new("code", max_bins), |b| b.iter(|| code(&source, &roles, max_bins)));
        let params = ForestParams::default().with_max_bins(max_bins);
        group.bench_function(BenchmarkId::new("code and grow a tree", max_bins), |b| {
            b.iter(|| grow_tree(&source, &roles, &params, 0, &Monitor::default()));
        });
    }
}

criterion_group!(kernels, one_component, any_components, whole_steps);
criterion_main!(kernels);
