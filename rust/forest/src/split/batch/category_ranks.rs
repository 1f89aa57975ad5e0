//! Ranks of categories in the place of their codes: a prefix of the categories in the order of their means is then a cut.
//!
//! With the histograms of larger nodes, trees for two classes take 0.43 of the time that a search of each feature by itself
//! takes with 10 categories, 0.55 with 100 (100k x 20).

use bytemuck::cast_slice;
use pulp::{Simd, WithSimd};

use super::row::{OnVectors, Row, by_width};
use crate::pairs::Pair;
use crate::split::nominal::noise;

/// Replaces the codes of the nominal rows of a [`Batch`](super::Batch) by ranks, from the pairs of the examples. The rank of
/// an example is the number of examples in the categories before its own, in the order of
/// [`in_order`](crate::split::nominal::in_order).
pub(super) struct CategoryRanks<'a> {
    pub(super) width: usize,
    pub(super) rows: &'a [Row],
    pub(super) keys: &'a mut [f64],
    pub(super) pairs: &'a [Pair],
}

impl WithSimd for CategoryRanks<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_width(simd, self.width, self);
    }
}

impl OnVectors for CategoryRanks<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let lines = self.rows.iter().zip(self.keys.chunks_exact_mut(self.width));
        for (_, keys) in lines.filter(|(row, _)| row.is_nominal) {
            rank::<S, VECTORS>(simd, keys, self.pairs);
        }
    }
}

#[inline(always)]
fn rank<S: Simd, const VECTORS: usize>(simd: S, keys: &mut [f64], pairs: &[Pair]) {
    let [zero, one] = [0.0, 1.0].map(|x| simd.splat_f64s(x));
    let mut codes = [zero; VECTORS];
    codes.copy_from_slice(&S::as_simd_f64s(keys).0[..VECTORS]);
    let (mut counts, mut sums) = ([zero; VECTORS], [zero; VECTORS]);
    for (&code, &pair) in cast_slice(&codes).iter().zip(pairs) {
        let (code, [count, sum]) = (simd.splat_f64s(code), pair.map(|number| simd.splat_f64s(number)));
        for v in 0..VECTORS {
            let is_same = simd.equal_f64s(code, codes[v]);
            counts[v] = simd.add_f64s(counts[v], simd.select_f64s(is_same, count, zero));
            sums[v] = simd.add_f64s(sums[v], simd.select_f64s(is_same, sum, zero));
        }
    }
    // Lanes beyond the examples have no count.
    let (mut means, mut most) = ([zero; VECTORS], zero);
    for v in 0..VECTORS {
        let is_example = simd.less_than_f64s(zero, counts[v]);
        means[v] = simd.select_f64s(is_example, simd.div_f64s(sums[v], counts[v]), zero);
        most = simd.max_f64s(most, simd.max_f64s(means[v], simd.sub_f64s(zero, means[v])));
    }
    let noise = noise(simd.reduce_max_f64s(most));
    let (apart, below) = (simd.splat_f64s(noise), simd.splat_f64s(-noise));
    let mut ranks = [zero; VECTORS];
    let examples = cast_slice::<_, f64>(&codes).iter().zip(cast_slice::<_, f64>(&means));
    for (&code, &mean) in examples.take(pairs.len()) {
        let [code, mean] = [code, mean].map(|number| simd.splat_f64s(number));
        for v in 0..VECTORS {
            let difference = simd.sub_f64s(means[v], mean);
            let is_tied = simd.less_than_or_equal_f64s(below, difference);
            let is_first = simd.and_m64s(is_tied, simd.less_than_f64s(code, codes[v]));
            let is_before = simd.or_m64s(simd.less_than_f64s(apart, difference), is_first);
            ranks[v] = simd.add_f64s(ranks[v], simd.select_f64s(is_before, one, zero));
        }
    }
    for (v, keys) in S::as_mut_simd_f64s(keys).0.iter_mut().enumerate().take(VECTORS) {
        let is_example = simd.less_than_f64s(zero, counts[v]);
        *keys = simd.select_f64s(is_example, ranks[v], codes[v]);
    }
}
