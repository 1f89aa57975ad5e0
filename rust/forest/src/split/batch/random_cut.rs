//! A random cut of each candidate: the sums of its left side.

use pulp::{Simd, WithSimd};

use super::row::Row;
use crate::criterion::Criterion;
use crate::pairs::Pair;
use crate::split::gain::GainFormula;
use crate::split::gram::{self, Gram};
use crate::split::random_test::threshold;
use crate::split::{STEP, dense, node, values};

/// The sums of the left side of a random cut, and the gain that follows from them.
trait LeftSide {
    /// The sums of the examples whose `keys` are at most `at`: of counts, and of what [`gains`](Self::gains) takes.
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair;
    /// The gains of left sides with these sums; −1 where the constraint forbids the split.
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s;
}

/// A single component.
struct PairSums<'a> {
    /// The counts of the examples, then their sums.
    columns: &'a [f64],
    gain: GainFormula,
}

impl LeftSide for PairSums<'_> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        sums_up_to(simd, self.columns, keys, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.gains_of_sums(simd, counts, sums)
    }
}

/// Any components, from the inner products of the examples.
struct ProductSums<'a> {
    gram: &'a Gram,
    n: usize,
    gain: GainFormula,
}

impl LeftSide for ProductSums<'_> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        products_up_to(simd, self.gram, keys, self.n, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.gains_of_qualities(simd, counts, sums)
    }
}

/// Few dense components, from the values of a node.
struct ValueSums<'a, const VECTORS: usize> {
    node: &'a node::Node,
    counts: &'a [u32],
    gain: GainFormula,
}

impl<const VECTORS: usize> LeftSide for ValueSums<'_, VECTORS> {
    #[inline(always)]
    fn sums<S: Simd>(&self, simd: S, keys: &[f64], at: f64) -> Pair {
        dense::side_up_to::<S, VECTORS>(simd, self.node, self.counts, keys, at)
    }

    #[inline(always)]
    fn gains<S: Simd>(&self, simd: S, counts: S::f64s, sums: S::f64s) -> S::f64s {
        self.gain.gains_of_qualities(simd, counts, sums)
    }
}

/// Judges a random cut of each candidate in `rows`; see [`Batch`](super::Batch) for the fields.
pub(super) struct RandomCut<'a> {
    pub(super) n: usize,
    pub(super) width: usize,
    pub(super) rows: &'a mut [Row],
    pub(super) keys: &'a [f64],
    pub(super) sums: SumSource<'a>,
    pub(super) gain: GainFormula,
}

/// What the sums of a left side are computed from.
pub(super) enum SumSource<'a> {
    /// The counts of the examples, then their sums, of a single component.
    Columns(&'a [f64]),
    Products(&'a Gram),
    Values {
        criterion: &'a Criterion,
        node: &'a node::Node,
        counts: &'a [u32],
    },
}

impl WithSimd for RandomCut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (n, gain) = (self.n, self.gain);
        match self.sums {
            SumSource::Columns(columns) => self.run(simd, PairSums { columns, gain }),
            SumSource::Products(gram) => self.run(simd, ProductSums { gram, n, gain }),
            SumSource::Values { criterion, node, counts } => match values::vectors_of::<S>(criterion) {
                Some(1) => self.run(simd, ValueSums::<1> { node, counts, gain }),
                Some(2) => self.run(simd, ValueSums::<2> { node, counts, gain }),
                _ => self.run(simd, ValueSums::<4> { node, counts, gain }),
            },
        }
    }
}

impl RandomCut<'_> {
    #[inline(always)]
    fn run<S: Simd, L: LeftSide>(self, simd: S, side: L) {
        // Gains are computed in vectors without a branch, because whether the constraint allows a cut is unpredictable.
        for (rows, keys) in self.rows.chunks_mut(STEP).zip(self.keys.chunks(STEP * self.width)) {
            let (mut counts, mut sums) = ([0.0; STEP], [0.0; STEP]);
            for (i, (row, keys)) in rows.iter_mut().zip(keys.chunks_exact(self.width)).enumerate() {
                let (low, high) = extremes_below(simd, keys, f64::INFINITY);
                row.threshold = threshold(low, high, row.share);
                [counts[i], sums[i]] = side.sums(simd, keys, row.threshold);
            }
            let mut gains = [0.0; STEP];
            let sides = S::as_simd_f64s(&counts).0.iter().zip(S::as_simd_f64s(&sums).0);
            for (gain, (&count, &sum)) in S::as_mut_simd_f64s(&mut gains).0.iter_mut().zip(sides) {
                *gain = side.gains(simd, count, sum);
            }
            for (row, gain) in rows.iter_mut().zip(gains) {
                row.gain = gain;
            }
        }
    }
}

/// The least and the greatest of the `keys` below `end`.
#[inline(always)]
pub(super) fn extremes_below<S: Simd>(simd: S, keys: &[f64], end: f64) -> (f64, f64) {
    let end = simd.splat_f64s(end);
    let lowest = simd.splat_f64s(f64::NEG_INFINITY);
    let (mut low, mut high) = (simd.splat_f64s(f64::INFINITY), lowest);
    for &keys in S::as_simd_f64s(keys).0 {
        low = simd.min_f64s(low, keys);
        high = simd.max_f64s(high, simd.select_f64s(simd.less_than_f64s(keys, end), keys, lowest));
    }
    (simd.reduce_min_f64s(low), simd.reduce_max_f64s(high))
}

/// The count and the sum of the examples whose keys are at most `at`. `columns` has all counts, then all sums.
#[inline(always)]
fn sums_up_to<S: Simd>(simd: S, columns: &[f64], keys: &[f64], at: f64) -> Pair {
    let (counts, sums) = columns.split_at(keys.len());
    let (counts, sums) = (S::as_simd_f64s(counts).0, S::as_simd_f64s(sums).0);
    let (zero, at) = (simd.splat_f64s(0.0), simd.splat_f64s(at));
    let (mut count, mut sum) = (zero, zero);
    for ((&keys, &counts), &sums) in S::as_simd_f64s(keys).0.iter().zip(counts).zip(sums) {
        let left = simd.less_than_or_equal_f64s(keys, at);
        count = simd.add_f64s(count, simd.select_f64s(left, counts, zero));
        sum = simd.add_f64s(sum, simd.select_f64s(left, sums, zero));
    }
    [simd.reduce_sum_f64s(count), simd.reduce_sum_f64s(sum)]
}

/// The count of the examples whose keys are at most `at`, and the sum of the inner products among them.
#[inline(always)]
fn products_up_to<S: Simd>(simd: S, gram: &Gram, keys: &[f64], n: usize, at: f64) -> Pair {
    let zero = simd.splat_f64s(0.0);
    let limit = simd.splat_f64s(at);
    let (vectors, _) = S::as_simd_f64s(keys);
    let (counts, _) = S::as_simd_f64s(gram.counts());
    let (mut count, mut quality) = (zero, zero);
    // Which examples go left is unpredictable, so it is computed once for all vectors, without a branch.
    let (mut places, mut n_left) = ([0u8; gram::MOST], 0);
    for (j, &key) in keys[..n].iter().enumerate() {
        places[n_left] = j as u8;
        n_left += usize::from(key <= at);
    }
    for (v, (&vector, &counts)) in vectors.iter().zip(counts).enumerate() {
        let mut sums = zero;
        for &j in &places[..n_left] {
            sums = simd.add_f64s(sums, S::as_simd_f64s(gram.row(usize::from(j))).0[v]);
        }
        let left = simd.less_than_or_equal_f64s(vector, limit);
        count = simd.add_f64s(count, simd.select_f64s(left, counts, zero));
        quality = simd.add_f64s(quality, simd.select_f64s(left, sums, zero));
    }
    [simd.reduce_sum_f64s(count), simd.reduce_sum_f64s(quality).max(0.0)]
}
