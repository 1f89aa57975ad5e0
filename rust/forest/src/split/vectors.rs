//! Sums over components in vectors.

use pulp::Simd;

/// Number of vectors that are added up independently, because each addition to a sum waits for the one before it.
pub(super) const ABREAST: usize = 4;

/// Adds `factor` times `from` to `to`, which has the same length.
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

/// The sum of all lanes.
#[inline(always)]
pub(super) fn total<S: Simd>(simd: S, [a, b, c, d]: [S::f64s; ABREAST]) -> f64 {
    simd.reduce_sum_f64s(simd.add_f64s(simd.add_f64s(a, b), simd.add_f64s(c, d)))
}

/// Σ (S_L − m·W_L)² / (W_L·W_R) over partial dense components. `weights` are those of the left side, `totals` those of
/// the node.
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
