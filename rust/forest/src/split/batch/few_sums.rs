//! Every cut of the candidates where dense components are so few that their sums stay in registers: two or three, or one
//! or two where rows have weights.
//!
//! Inner products take two passes over the examples for each candidate, and do not know row weights.
//! [`kernel`](crate::split::kernel) lists the gain in speed.

use pulp::{Arch, Simd};

use super::Batch;
use super::every_cut::{Measure, left_sums};
use crate::criterion::Criterion;
use crate::split::SplitConstraint;
use crate::split::examples::Examples;
use crate::split::gain::GainFormula;
use crate::split::node::Node;
use crate::split::single::Pair;

/// The most sums: counts, weights if there are some, and components.
const MOST_SUMS: usize = 4;

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SumKind {
    /// Dense components, this many.
    Dense(usize),
    /// Dense components of rows that have weights.
    Weighted(usize),
}

impl SumKind {
    /// What is added up for `criterion`, if its components are few enough.
    pub(crate) fn new(criterion: &Criterion) -> Option<Self> {
        match (criterion.n_whole, criterion.is_weighted) {
            _ if criterion.is_partial() || !criterion.indicator_weight.is_empty() => None,
            (n @ 2..MOST_SUMS, false) => Some(SumKind::Dense(n)),
            (n, true) if n + 2 <= MOST_SUMS && n > 0 => Some(SumKind::Weighted(n)),
            _ => None,
        }
    }
}

/// The addends of the examples of a small node.
#[derive(Debug, Default)]
pub(crate) struct FewSums {
    /// n x n_sums, example after example: the count, the weight if rows have some, and each component.
    addends: Vec<f64>,
}

impl FewSums {
    /// Takes the `examples` of a node.
    pub(crate) fn open(&mut self, criterion: &Criterion, examples: Examples<'_>) {
        self.addends.clear();
        for (&row, &count) in examples.rows.iter().zip(examples.counts) {
            let (row, count) = (row as usize, f64::from(count));
            self.addends.push(count);
            if criterion.is_weighted {
                self.addends.push(count * examples.block.weight(row));
            }
            self.addends.extend(examples.block.dense(row).iter().map(|value| count * value));
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
        node: &Node,
        constraint: SplitConstraint,
    ) {
        let gain = GainFormula::from_qualities(node.examples(), constraint);
        let (addends, means) = (&sums.addends, &node.means[..]);
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
