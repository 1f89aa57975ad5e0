//! Sums over components in vectors, and the qualities of splits that follow from them.

use pulp::Simd;

use super::node::{Examples, Node};
use crate::criterion::{Criterion, EXAMPLES, FIRST, WEIGHT};

/// Vectors added up side by side: a sum waits for each of its additions.
const ABREAST: usize = 4;

/// Adds an example to `sums`: [`Criterion::add`], side by side.
#[inline(always)]
pub(super) fn add_row<S: Simd>(
    simd: S,
    criterion: &Criterion,
    examples: Examples<'_>,
    position: usize,
    sums: &mut [f64],
) {
    let (block, row, count) = (examples.block, examples.rows[position] as usize, f64::from(examples.counts[position]));
    let weight = count * block.weight(row);
    sums[EXAMPLES] += count;
    sums[WEIGHT] += weight;
    let (dense, indicators) = sums[FIRST..].split_at_mut(criterion.width());
    add_times(simd, dense, block.dense(row), count);
    for &indicator in block.indicators(row) {
        indicators[indicator as usize] += weight;
    }
}

/// Adds `factor` times `from` to `to`, which is as long.
#[inline(always)]
pub(super) fn add_times<S: Simd>(simd: S, to: &mut [f64], from: &[f64], factor: f64) {
    let times = simd.splat_f64s(factor);
    let (to_vectors, to_rest) = S::as_mut_simd_f64s(to);
    let (from_vectors, from_rest) = S::as_simd_f64s(from);
    for (to, &from) in to_vectors.iter_mut().zip(from_vectors) {
        *to = simd.add_f64s(*to, simd.mul_f64s(times, from));
    }
    to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to += factor * from);
}

/// Adds `factor` times `from` to `sums`, of dense components known for all rows. Returns Σ (S − m·W)².
#[inline(always)]
pub(super) fn add_measured<S: Simd>(
    simd: S,
    sums: &mut [f64],
    from: &[f64],
    factor: f64,
    node: &Node,
    weight: f64,
) -> f64 {
    let (times, weights) = (simd.splat_f64s(factor), simd.splat_f64s(weight));
    let (means, means_rest) = S::as_simd_f64s(&node.means[..sums.len()]);
    let ((sums, sums_rest), (from, from_rest)) = (S::as_mut_simd_f64s(sums), S::as_simd_f64s(from));
    let mut squares = [simd.splat_f64s(0.0); ABREAST];
    let step = |square: &mut S::f64s, sum: &mut S::f64s, from: S::f64s, mean: S::f64s| {
        *sum = simd.add_f64s(*sum, simd.mul_f64s(times, from));
        let difference = simd.sub_f64s(*sum, simd.mul_f64s(mean, weights));
        *square = simd.add_f64s(*square, simd.mul_f64s(difference, difference));
    };
    let (four_sums, sums) = sums.as_chunks_mut::<ABREAST>();
    let ((four_from, from), (four_means, means)) = (from.as_chunks::<ABREAST>(), means.as_chunks::<ABREAST>());
    for ((sums, from), means) in four_sums.iter_mut().zip(four_from).zip(four_means) {
        for n in 0..ABREAST {
            step(&mut squares[n], &mut sums[n], from[n], means[n]);
        }
    }
    for (((square, sum), &from), &mean) in squares.iter_mut().zip(sums).zip(from).zip(means) {
        step(square, sum, from, mean);
    }
    let mut rest = 0.0;
    for ((sum, from), mean) in sums_rest.iter_mut().zip(from_rest).zip(means_rest) {
        *sum += factor * from;
        rest += (*sum - mean * weight).powi(2);
    }
    total(simd, squares) + rest
}

#[inline(always)]
pub(super) fn total<S: Simd>(simd: S, [a, b, c, d]: [S::f64s; ABREAST]) -> f64 {
    simd.reduce_sum_f64s(simd.add_f64s(simd.add_f64s(a, b), simd.add_f64s(c, d)))
}

#[inline(always)]
pub(super) fn dense_quality<S: Simd>(simd: S, sums: &[f64], weight: f64, node: &Node) -> f64 {
    let weights = simd.splat_f64s(weight);
    let (means, means_rest) = S::as_simd_f64s(&node.means[..sums.len()]);
    let (sums, sums_rest) = S::as_simd_f64s(sums);
    let mut squares = [simd.splat_f64s(0.0); ABREAST];
    for (sums, means) in sums.chunks(ABREAST).zip(means.chunks(ABREAST)) {
        for ((square, &sum), &mean) in squares.iter_mut().zip(sums).zip(means) {
            let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weights));
            *square = simd.add_f64s(*square, simd.mul_f64s(difference, difference));
        }
    }
    let rest = sums_rest.iter().zip(means_rest).map(|(sum, mean)| (sum - mean * weight).powi(2)).sum::<f64>();
    total(simd, squares) + rest
}

/// Σ (S_L − m·W_L)² / (W_L·W_R) over dense components with weights of their own; `weights` are those of
/// the left side, `totals` those of the node.
#[inline(always)]
pub(super) fn dense_gain<S: Simd>(simd: S, sums: &[f64], weights: &[f64], totals: &[f64], means: &[f64]) -> f64 {
    let zero = simd.splat_f64s(0.0);
    let ((sums, sums_rest), (weights, weights_rest)) = (S::as_simd_f64s(sums), S::as_simd_f64s(weights));
    let ((totals, totals_rest), (means, means_rest)) = (S::as_simd_f64s(totals), S::as_simd_f64s(means));
    let mut gain = zero;
    for (((&sum, &weight), &total), &mean) in sums.iter().zip(weights).zip(totals).zip(means) {
        let difference = simd.sub_f64s(sum, simd.mul_f64s(mean, weight));
        let both = simd.mul_f64s(weight, simd.sub_f64s(total, weight));
        let part = simd.div_f64s(simd.mul_f64s(difference, difference), both);
        gain = simd.add_f64s(gain, simd.select_f64s(simd.less_than_f64s(zero, both), part, zero));
    }
    let rest = sums_rest.iter().zip(weights_rest).zip(totals_rest).zip(means_rest);
    let rest = rest.map(|(((sum, weight), total), mean)| {
        let both = weight * (total - weight);
        if both > 0.0 { (sum - mean * weight).powi(2) / both } else { 0.0 }
    });
    simd.reduce_sum_f64s(gain) + rest.sum::<f64>()
}

#[inline(always)]
pub(super) fn indicator_quality(criterion: &Criterion, left: &[f64], node: &Node) -> f64 {
    let (weight, all) = (left[WEIGHT], node.weight());
    let counts = criterion.indicators(left).iter().zip(criterion.indicators(&node.total));
    let squares =
        counts.zip(&criterion.indicator_weight).map(|((c, in_all), omega)| omega * (c * all - in_all * weight).powi(2));
    squares.sum::<f64>() / (all * all)
}
