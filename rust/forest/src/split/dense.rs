//! Cuts for dense components that are known for all rows and so few that their sums stay in registers.
//!
//! The best cut of a small node is found by adding up the examples in the order of their codes. The gain of a given cut
//! is computed from the smaller side.

use pulp::{Arch, Simd, WithSimd};

use super::examples::Examples;
use super::gain::GainFormula;
use super::node::Node;
use super::prefix::Prefixes;
use super::search::Search;
use super::values::vectors_of;
use super::{Best, Cut};
use crate::criterion::Criterion;
use crate::pairs::Pair;
use ferrank_data::store::Code;

/// A task on the examples of a node with sums in registers.
pub(super) trait OnRegisters {
    fn run<S: Simd, const VECTORS: usize>(self, simd: S);
}

/// Runs `task` with as many vectors as the components of `criterion` take, which must be dense and few.
pub(super) fn in_registers<T: OnRegisters>(arch: Arch, criterion: &Criterion, task: T) {
    struct Task<'a, T>(&'a Criterion, T);
    impl<T: OnRegisters> WithSimd for Task<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            match vectors_of::<S>(self.0) {
                Some(1) => self.1.run::<S, 1>(simd),
                Some(2) => self.1.run::<S, 2>(simd),
                _ => self.1.run::<S, 4>(simd),
            }
        }
    }
    arch.dispatch(Task(criterion, task));
}

/// Sums of groups of examples.
#[derive(Debug, Default)]
pub(super) struct GroupSums {
    /// n_groups; weight and number of the examples of each group.
    sizes: Vec<[f64; 2]>,
    /// n_groups x width; the sums of each component.
    sums: Vec<f64>,
}

impl GroupSums {
    /// Sets the sums of `n` groups to 0 and returns them.
    #[inline(always)]
    pub(super) fn cleared<S: Simd, const VECTORS: usize>(
        &mut self,
        n: usize,
    ) -> (&mut [[f64; 2]], &mut [[S::f64s; VECTORS]]) {
        self.sizes.clear();
        self.sizes.resize(n, [0.0; 2]);
        self.sums.clear();
        self.sums.resize(n * VECTORS * S::F64_LANES, 0.0);
        (&mut self.sizes, S::as_mut_simd_f64s(&mut self.sums).0.as_chunks_mut().0)
    }
}

/// Weight and count of the example at `position`.
#[inline(always)]
pub(super) fn size_of(examples: Examples<'_>, position: usize) -> [f64; 2] {
    let (row, count) = (examples.rows[position] as usize, f64::from(examples.counts[position]));
    [count * examples.block.weight(row), count]
}

/// The component values of the example at `position`, times its count.
#[inline(always)]
pub(super) fn values_of<S: Simd, const VECTORS: usize>(
    simd: S,
    examples: Examples<'_>,
    position: usize,
) -> [S::f64s; VECTORS] {
    let count = simd.splat_f64s(f64::from(examples.counts[position]));
    let mut values = load(simd, examples.block.dense(examples.rows[position] as usize));
    for value in &mut values {
        *value = simd.mul_f64s(count, *value);
    }
    values
}

/// Sums of the left sides of the cuts of some features.
#[derive(Debug, Default)]
pub(crate) struct LeftSides {
    features: Vec<u32>,
    /// n_features x n_sums
    sums: Vec<f64>,
}

impl LeftSides {
    pub(crate) fn clear(&mut self) {
        self.features.clear();
        self.sums.clear();
    }

    /// The sums of the cut of `feature`, if they are known.
    pub(crate) fn get(&self, feature: u32) -> Option<&[f64]> {
        let number = self.features.iter().position(|&noted| noted == feature)?;
        self.sums.chunks_exact(self.sums.len() / self.features.len()).nth(number)
    }
}

/// Sums of one side.
#[derive(Clone, Copy)]
pub(super) struct RegisterSums<S: Simd, const VECTORS: usize> {
    means: [S::f64s; VECTORS],
    sums: [S::f64s; VECTORS],
    pub(super) weight: f64,
    pub(super) count: f64,
}

impl<S: Simd, const VECTORS: usize> RegisterSums<S, VECTORS> {
    #[inline(always)]
    pub(super) fn new(simd: S, node: &Node) -> Self {
        let sums = [simd.splat_f64s(0.0); VECTORS];
        RegisterSums { means: load(simd, &node.means), sums, weight: 0.0, count: 0.0 }
    }

    #[inline(always)]
    fn add(&mut self, simd: S, examples: Examples<'_>, position: usize) {
        self.add_sums(simd, size_of(examples, position), values_of(simd, examples, position));
    }

    #[inline(always)]
    pub(super) fn add_values(&mut self, simd: S, values: [S::f64s; VECTORS]) {
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum = simd.add_f64s(*sum, value);
        }
    }

    /// Adds the sums of some examples, with their weight and number.
    #[inline(always)]
    pub(super) fn add_sums(&mut self, simd: S, [weight, count]: [f64; 2], sums: [S::f64s; VECTORS]) {
        self.weight += weight;
        self.count += count;
        self.add_values(simd, sums);
    }

    /// Records the sums in `lefts` as those of the left side of the cut of `feature`.
    #[inline(always)]
    pub(super) fn note(&self, simd: S, criterion: &Criterion, feature: u32, lefts: &mut LeftSides) {
        lefts.features.push(feature);
        lefts.sums.extend([self.count, self.weight]);
        let start = lefts.sums.len();
        lefts.sums.resize(start + criterion.n_whole, 0.0);
        for (values, &vector) in lefts.sums[start..].chunks_mut(S::F64_LANES).zip(&self.sums) {
            simd.partial_store_f64s(values, vector);
        }
    }

    /// Replaces the sums by those of the other side, which has this `weight`, in a node with the sums `total`.
    #[inline(always)]
    pub(super) fn turn(&mut self, simd: S, total: [S::f64s; VECTORS], weight: f64) {
        self.weight = weight;
        for (sum, total) in self.sums.iter_mut().zip(total) {
            *sum = simd.sub_f64s(total, *sum);
        }
    }

    /// Σ (S − m·W)².
    #[inline(always)]
    pub(super) fn quality(&self, simd: S) -> f64 {
        let weight = simd.splat_f64s(self.weight);
        let mut squares = simd.splat_f64s(0.0);
        for (&sum, &mean) in self.sums.iter().zip(&self.means) {
            let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weight));
            squares = simd.add_f64s(squares, simd.mul_f64s(difference, difference));
        }
        simd.reduce_sum_f64s(squares)
    }
}

/// The best cut, from the examples in the `order` of their codes. The first `n_missing` of them are on the left of all
/// cuts.
#[inline(always)]
pub(super) fn best_cut<S: Simd, C: Code, const VECTORS: usize>(
    simd: S,
    search: Search<'_, C>,
    order: &[u32],
    n_missing: usize,
    walk: &mut Prefixes,
) -> Option<Cut> {
    let Search { examples, codes, node, constraint, .. } = search;
    let mut left = RegisterSums::<S, VECTORS>::new(simd, node);
    if examples.block.weights.is_empty() {
        for (step, &position) in walk.steps(order.len()).zip(order) {
            left.add(simd, examples, position as usize);
            *step.key = codes[position as usize].index() as f64;
            (*step.count, *step.quality) = (left.count, left.quality(simd));
        }
        walk.join_first(n_missing);
        return walk.best_cut(simd, GainFormula::from_qualities(node.examples(), constraint));
    }
    let mut best = Best::new(node.weight(), node.examples(), constraint);
    for (i, &position) in order.iter().enumerate() {
        let position = position as usize;
        left.add(simd, examples, position);
        let next = order.get(i + 1).map(|&next| codes[next as usize]);
        if next != Some(codes[position]) && i >= n_missing {
            best.offer(codes[position].index(), left.quality(simd), left.weight, left.count);
        }
    }
    best.cut()
}

/// The number of examples with `keys` up to `at`, and the gain of splitting them off, times the weights of both sides.
/// Row weights must be 1, and the values of the node set.
#[inline(always)]
pub(super) fn side_up_to<S: Simd, const VECTORS: usize>(
    simd: S,
    node: &Node,
    counts: &[u32],
    keys: &[f64],
    at: f64,
) -> Pair {
    let mut side = RegisterSums::<S, VECTORS>::new(simd, node);
    let (zero, limit) = (simd.splat_f64s(0.0), simd.splat_f64s(at));
    for (position, (&key, &count)) in keys.iter().zip(counts).enumerate() {
        let within = simd.less_than_or_equal_f64s(simd.splat_f64s(key), limit);
        let mut values = node.values.at::<S, VECTORS>(position);
        for value in &mut values {
            *value = simd.select_f64s(within, *value, zero);
        }
        side.add_values(simd, values);
        side.weight += if key <= at { f64::from(count) } else { 0.0 };
    }
    [side.weight, side.quality(simd)]
}

/// The weight, the examples and the gain of the left side of `cut`, or of its right side.
#[inline(always)]
pub(super) fn side_gain<S: Simd, C: Code, const VECTORS: usize>(
    simd: S,
    search: Search<'_, C>,
    cut: C,
    is_left: bool,
) -> (f64, f64, f64) {
    let Search { examples, codes, node, .. } = search;
    let mut side = RegisterSums::<S, VECTORS>::new(simd, node);
    let (words, rest) = codes.as_chunks::<WORD>();
    let mut last = [C::default(); WORD];
    last[..rest.len()].copy_from_slice(rest);
    let known = !(u64::MAX << rest.len());
    for (number, codes) in words.iter().chain([&last]).enumerate() {
        let left = up_to(codes, cut);
        let mut marks = if is_left { left } else { !left };
        if number == words.len() {
            marks &= known;
        }
        while marks != 0 {
            side.add(simd, examples, number * WORD + marks.trailing_zeros() as usize);
            marks &= marks - 1;
        }
    }
    let gain = side.quality(simd) / (side.weight * (node.weight() - side.weight));
    (side.weight, side.count, gain)
}

/// Number of codes with a bit in a word.
const WORD: usize = u64::BITS as usize;

/// A word with the bits of the codes that are at most `cut`.
#[inline(always)]
fn up_to<C: Code>(codes: &[C; WORD], cut: C) -> u64 {
    let mut marks = 0;
    for (place, &code) in codes.iter().enumerate() {
        marks |= u64::from(code <= cut) << place;
    }
    marks
}

/// `values` in vectors, padded with zeros.
#[inline(always)]
pub(super) fn load<S: Simd, const VECTORS: usize>(simd: S, values: &[f64]) -> [S::f64s; VECTORS] {
    std::array::from_fn(|v| {
        let rest = &values[(v * S::F64_LANES).min(values.len())..];
        match S::as_simd_f64s(rest).0.first() {
            Some(&full) => full,
            None => simd.partial_load_f64s(rest),
        }
    })
}
