//! Every cut of the candidates where components are so few that their sums stay in registers: two or three dense ones,
//! one or two with row weights, or the classes of a target.
//!
//! Inner products take two passes over the examples for each candidate, and do not know row weights.
//! [`kernel`](crate::split::kernel) lists the gain in speed.

use pulp::{Arch, Simd};

use super::every_cut::{Measure, left_sums};
use super::{Batch, gram};
use crate::criterion::Criterion;
use crate::pairs::Pair;
use crate::split::SplitConstraint;
use crate::split::examples::Examples;
use crate::split::gain::GainFormula;
use crate::split::node::Node;

/// The most sums: counts, weights if there are some, and components.
const MOST_SUMS: usize = 4;

/// The most examples, counted with multiplicity, of a node with classes: up to this, their sums are exact integers.
const MOST_EXAMPLES: f64 = 4096.0;

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumKind {
    /// Dense components, this many.
    Dense(usize),
    /// Dense components of rows that have weights.
    Weighted(usize),
    /// The classes of a target.
    Classes,
}

impl SumKind {
    /// What is added up for `criterion`, if its components are few enough.
    pub(crate) fn new(criterion: &Criterion) -> Option<Self> {
        let has_indicators = !criterion.indicator_weight.is_empty();
        match (criterion.n_whole, criterion.is_weighted) {
            _ if criterion.is_partial() => None,
            (0, false) => criterion.is_classes.then_some(SumKind::Classes),
            _ if has_indicators => None,
            (n @ 2..MOST_SUMS, false) => Some(SumKind::Dense(n)),
            (n, true) if n + 2 <= MOST_SUMS && n > 0 => Some(SumKind::Weighted(n)),
            _ => None,
        }
    }
}

/// The addends of the examples of a small node.
#[derive(Debug, Default)]
pub(crate) struct FewSums {
    /// n x n_sums, example after example: the count, the weight if rows have some, and each component; for classes the
    /// count alone, class after class.
    addends: Vec<f64>,
    /// The examples, class after class, each below its class; empty without classes.
    order: Vec<u32>,
    /// For each class with examples, where they end, and their number counted with multiplicity.
    classes: Vec<(usize, f64)>,
}

impl FewSums {
    /// Takes the `examples` of `node`. Returns false if they are too many for exact sums.
    pub(crate) fn open(&mut self, kind: SumKind, criterion: &Criterion, examples: Examples<'_>, node: &Node) -> bool {
        self.addends.clear();
        if kind == SumKind::Classes {
            self.take_classes(examples);
            return node.examples() <= MOST_EXAMPLES;
        }
        for (&row, &count) in examples.rows.iter().zip(examples.counts) {
            let (row, count) = (row as usize, f64::from(count));
            self.addends.push(count);
            if criterion.is_weighted {
                self.addends.push(count * examples.block.weight(row));
            }
            self.addends.extend(examples.block.dense(row).iter().map(|value| count * value));
        }
        true
    }

    fn take_classes(&mut self, examples: Examples<'_>) {
        let FewSums { addends, order, classes } = self;
        order.clear();
        let class_of = |row: u32| *examples.block.class(row as usize);
        order.extend((0..).zip(examples.rows).map(|(position, &row)| class_of(row) * gram::MOST as u32 + position));
        order.sort_unstable();
        classes.clear();
        for class in order.chunk_by(|a, b| a / gram::MOST as u32 == b / gram::MOST as u32) {
            let count = |&place: &u32| f64::from(examples.counts[place as usize % gram::MOST]);
            addends.extend(class.iter().map(count));
            classes.push((addends.len(), class.iter().map(count).sum()));
        }
    }
}

impl Batch {
    /// Judges all cuts of the candidates from the addends of the examples of `node`.
    pub(crate) fn judge_sums(
        &mut self,
        arch: Arch,
        kind: SumKind,
        sums: &FewSums,
        (criterion, node): (&Criterion, &Node),
        constraint: SplitConstraint,
    ) {
        let gain = GainFormula::from_qualities(node.examples(), constraint);
        let FewSums { addends, order, classes } = sums;
        let means = &node.means[..];
        let weighted = WeightedGain { weight: node.weight(), examples: node.examples(), constraint };
        match kind {
            SumKind::Dense(2) => self.every_cut(arch, Dense::<3> { addends: addends.as_chunks().0, means, gain }),
            SumKind::Dense(_) => self.every_cut(arch, Dense::<4> { addends: addends.as_chunks().0, means, gain }),
            SumKind::Weighted(1) => {
                self.every_cut(arch, Weighted::<3> { addends: addends.as_chunks().0, means, gain: weighted });
            }
            SumKind::Weighted(_) => {
                self.every_cut(arch, Weighted::<4> { addends: addends.as_chunks().0, means, gain: weighted });
            }
            SumKind::Classes => {
                let (n, squares) = (node.examples(), classes.iter().map(|(_, count)| count * count).sum());
                let omega = criterion.indicator_weight[0] / (n * n);
                self.every_cut(arch, Classes { counts: addends, order, classes, n, squares, omega, gain });
            }
        }
    }
}

/// Σ_c (S_c − m_c·W)² of left sides.
#[inline(always)]
fn quality<S: Simd, const VECTORS: usize>(
    simd: S,
    weight: S::f64s,
    sums: &[[S::f64s; VECTORS]],
    vector: usize,
    means: &[f64],
) -> S::f64s {
    let mut quality = simd.splat_f64s(0.0);
    for (sums, &mean) in sums.iter().zip(means) {
        let difference = simd.sub_f64s(sums[vector], simd.mul_f64s(simd.splat_f64s(mean), weight));
        quality = simd.add_f64s(quality, simd.mul_f64s(difference, difference));
    }
    quality
}

/// Dense components.
#[derive(Clone, Copy)]
struct Dense<'a, const SUMS: usize> {
    addends: &'a [[f64; SUMS]],
    means: &'a [f64],
    gain: GainFormula,
}

impl<const SUMS: usize> Measure for Dense<'_, SUMS> {
    #[inline(always)]
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], _: &mut [Pair]) -> [S::f64s; VECTORS] {
        let examples = keys.iter().copied().zip(self.addends.iter().copied());
        let sums = left_sums::<S, VECTORS, SUMS>(simd, keys, examples);
        let mut gains = sums[0];
        for v in 0..VECTORS {
            let quality = quality(simd, sums[0][v], &sums[1..], v, self.means);
            gains[v] = self.gain.gains_of_qualities(simd, sums[0][v], quality);
        }
        gains
    }
}

/// Computes gains where rows have weights, and the constraint counts rows.
#[derive(Clone, Copy)]
struct WeightedGain {
    weight: f64,
    examples: f64,
    constraint: SplitConstraint,
}

impl WeightedGain {
    /// The gains of left sides with these counts and weights; −1 where the constraint forbids the split.
    #[inline(always)]
    fn gains<S: Simd>(self, simd: S, counts: S::f64s, weights: S::f64s, quality: S::f64s) -> S::f64s {
        let others = simd.sub_f64s(simd.splat_f64s(self.weight), weights);
        let gain = simd.div_f64s(quality, simd.mul_f64s(weights, others));
        let least = simd.splat_f64s(self.constraint.min_leaf);
        let right = simd.sub_f64s(simd.splat_f64s(self.examples), counts);
        let fits = simd
            .and_m64s(simd.greater_than_or_equal_f64s(counts, least), simd.greater_than_or_equal_f64s(right, least));
        simd.select_f64s(fits, gain, simd.splat_f64s(-1.0))
    }
}

/// Dense components of rows that have weights.
#[derive(Clone, Copy)]
struct Weighted<'a, const SUMS: usize> {
    addends: &'a [[f64; SUMS]],
    means: &'a [f64],
    gain: WeightedGain,
}

impl<const SUMS: usize> Measure for Weighted<'_, SUMS> {
    #[inline(always)]
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], _: &mut [Pair]) -> [S::f64s; VECTORS] {
        let examples = keys.iter().copied().zip(self.addends.iter().copied());
        let sums = left_sums::<S, VECTORS, SUMS>(simd, keys, examples);
        let mut gains = sums[0];
        for v in 0..VECTORS {
            let quality = quality(simd, sums[1][v], &sums[2..], v, self.means);
            gains[v] = self.gain.gains(simd, sums[0][v], sums[1][v], quality);
        }
        gains
    }
}

/// Classes of the same weight ω. With n examples, of which class k has C_k, and c_k of W on the left,
/// n²·Σ (c_k − C_k·W/n)² = n²·Σ c_k² − 2·W·n·Σ C_k·c_k + W²·Σ C_k², in integers.
#[derive(Clone, Copy)]
struct Classes<'a> {
    /// The counts of the examples, class after class.
    counts: &'a [f64],
    order: &'a [u32],
    classes: &'a [(usize, f64)],
    n: f64,
    /// Σ C_k².
    squares: f64,
    /// ω / n².
    omega: f64,
    gain: GainFormula,
}

impl Measure for Classes<'_> {
    #[inline(always)]
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], _: &mut [Pair]) -> [S::f64s; VECTORS] {
        let zero = simd.splat_f64s(0.0);
        let (mut weights, mut squares, mut cross) = ([zero; VECTORS], [zero; VECTORS], [zero; VECTORS]);
        let mut start = 0;
        for &(end, total) in self.classes {
            let key = |&place: &u32| keys[place as usize % gram::MOST];
            let examples = self.order[start..end].iter().map(key).zip(self.counts[start..end].iter().map(|&n| [n]));
            let [held] = left_sums::<S, VECTORS, 1>(simd, keys, examples);
            let total = simd.splat_f64s(total);
            for v in 0..VECTORS {
                weights[v] = simd.add_f64s(weights[v], held[v]);
                squares[v] = simd.add_f64s(squares[v], simd.mul_f64s(held[v], held[v]));
                cross[v] = simd.add_f64s(cross[v], simd.mul_f64s(total, held[v]));
            }
            start = end;
        }
        let splat = |x: f64| simd.splat_f64s(x);
        for v in 0..VECTORS {
            let weight = weights[v];
            let own = simd.mul_f64s(splat(self.n * self.n), squares[v]);
            let both = simd.mul_f64s(splat(2.0 * self.n), simd.mul_f64s(weight, cross[v]));
            let all = simd.mul_f64s(splat(self.squares), simd.mul_f64s(weight, weight));
            let quality = simd.mul_f64s(splat(self.omega), simd.add_f64s(simd.sub_f64s(own, both), all));
            weights[v] = self.gain.gains_of_qualities(simd, weight, quality);
        }
        weights
    }
}
