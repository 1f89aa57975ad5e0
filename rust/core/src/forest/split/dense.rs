//! Sums over dense components alone, few enough to stay in registers.

use pulp::Simd;

use super::scan::{Examples, Node, Search};
use super::{Best, Cut};
use crate::forest::moments::Shape;
use crate::store::Code;

/// Vectors that hold the sums, if components are all dense and few enough.
#[inline(always)]
pub(super) fn vectors_of<S: Simd>(shape: &Shape) -> Option<usize> {
    let vectors = shape.n_dense.div_ceil(S::F64_LANES).next_power_of_two();
    (shape.indicator_weight.is_empty() && !shape.partial && vectors <= 4).then_some(vectors)
}

#[derive(Clone, Copy)]
struct Registers<S: Simd, const VECTORS: usize> {
    means: [S::f64s; VECTORS],
    sums: [S::f64s; VECTORS],
    weight: f64,
    count: f64,
}

impl<S: Simd, const VECTORS: usize> Registers<S, VECTORS> {
    #[inline(always)]
    fn new(simd: S, node: &Node) -> Self {
        let sums = [simd.splat_f64s(0.0); VECTORS];
        Registers { means: load(simd, &node.means), sums, weight: 0.0, count: 0.0 }
    }

    #[inline(always)]
    fn add(&mut self, simd: S, examples: Examples<'_>, position: usize) {
        let (row, count) = (examples.rows[position] as usize, f64::from(examples.counts[position]));
        self.count += count;
        self.weight += count * examples.block.weight(row);
        let values: [S::f64s; VECTORS] = load(simd, examples.block.dense(row));
        let count = simd.splat_f64s(count);
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum = simd.add_f64s(*sum, simd.mul_f64s(count, value));
        }
    }

    /// Σ (S − m·W)².
    #[inline(always)]
    fn quality(&self, simd: S) -> f64 {
        let weight = simd.splat_f64s(self.weight);
        let mut squares = simd.splat_f64s(0.0);
        for (&sum, &mean) in self.sums.iter().zip(&self.means) {
            let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weight));
            squares = simd.add_f64s(squares, simd.mul_f64s(difference, difference));
        }
        simd.reduce_sum_f64s(squares)
    }
}

/// The best cut, examples walked in `order` of their codes.
#[inline(always)]
pub(super) fn best_cut<S: Simd, C: Code, const VECTORS: usize>(
    simd: S,
    search: Search<'_, C>,
    order: &[u32],
) -> Option<Cut> {
    let Search { examples, codes, node, room, .. } = search;
    let mut left = Registers::<S, VECTORS>::new(simd, node);
    let mut best = Best::new(node.weight(), node.examples(), room);
    for (i, &position) in order.iter().enumerate() {
        let position = position as usize;
        left.add(simd, examples, position);
        let next = order.get(i + 1).map(|&next| codes[next as usize]);
        if next != Some(codes[position]) {
            best.offer(codes[position].index(), left.quality(simd), left.weight, left.count);
        }
    }
    best.cut()
}

/// Weight, examples and gain of the side that `positions` make.
#[inline(always)]
pub(super) fn side_gain<S: Simd, C: Code, const VECTORS: usize>(
    simd: S,
    search: Search<'_, C>,
    positions: &[u32],
) -> (f64, f64, f64) {
    let mut side = Registers::<S, VECTORS>::new(simd, search.node);
    positions.iter().for_each(|&position| side.add(simd, search.examples, position as usize));
    let gain = side.quality(simd) / (side.weight * (search.node.weight() - side.weight));
    (side.weight, side.count, gain)
}

/// `values` in vectors, zeros behind them.
#[inline(always)]
fn load<S: Simd, const VECTORS: usize>(simd: S, values: &[f64]) -> [S::f64s; VECTORS] {
    std::array::from_fn(|v| {
        let rest = &values[(v * S::F64_LANES).min(values.len())..];
        match S::as_simd_f64s(rest).0.first() {
            Some(&full) => full,
            None => simd.partial_load_f64s(rest),
        }
    })
}
