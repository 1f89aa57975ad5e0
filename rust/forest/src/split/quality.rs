//! The quality of a split: its gain times the weights of both sides, from the sums of one side.

use pulp::Simd;

use super::node::Node;
use super::vectors::{ABREAST, total};
use crate::criterion::{Criterion, WEIGHT};

/// Adds `factor` times `from` to the `sums` of dense components known for all rows. Returns Σ (S − m·W)².
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

/// Σ (S − m·W)² over dense components known for all rows.
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

/// Σ ω·(C_L − c·W_L / W)² over indicators known for all rows.
#[inline(always)]
pub(super) fn indicator_quality(criterion: &Criterion, left: &[f64], node: &Node) -> f64 {
    let (weight, all) = (left[WEIGHT], node.weight());
    let counts = criterion.indicators(left).iter().zip(criterion.indicators(&node.total));
    let squares =
        counts.zip(&criterion.indicator_weight).map(|((c, in_all), omega)| omega * (c * all - in_all * weight).powi(2));
    squares.sum::<f64>() / (all * all)
}
