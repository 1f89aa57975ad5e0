//! The kernel's distance of a single pair, from rows that lie together.

use pulp::Simd;

use super::kernel::line;
use super::panels::{LANES, Layout, Panel};

/// Sums that a pair's are kept in: many short ones make small errors.
const SUMS: usize = 64;

/// From one row to the next, and where its nominal values start.
pub(super) fn stride(layout: &Layout) -> (usize, usize) {
    let numeric = layout.n_numeric.next_multiple_of(LANES);
    (numeric + layout.halves.len(), numeric)
}

/// The kernel's distance of two rows.
#[inline(always)]
pub(super) fn distance<S: Simd>(simd: S, layout: &Layout, one: (Panel<'_>, usize), other: (Panel<'_>, usize)) -> f32 {
    let (stride, first_nominal) = stride(layout);
    let ((one, line), (other, lane)) = (one, other);
    let a = &one.coarse.rows[line * stride..(line + 1) * stride];
    let b = &other.coarse.rows[lane * stride..(lane + 1) * stride];
    let ((a, nominal_a), (b, nominal_b)) = (a.split_at(first_nominal), b.split_at(first_nominal));
    let mut common = match S::F32_LANES {
        16 => least::<S, { SUMS / 16 }, { LANES / 16 }>(simd, a, b),
        8 => least::<S, { SUMS / 8 }, { LANES / 8 }>(simd, a, b),
        _ => least::<S, { SUMS / 4 }, { LANES / 4 }>(simd, a, b),
    };
    if !layout.halves.is_empty() {
        common += alike(&layout.halves, nominal_a, nominal_b);
    }
    (one.sums[line] + other.sums[lane]) - 2.0 * common
}

/// Half the weights of the values that are equal.
fn alike(halves: &[f32], a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    for ((a, b), halves) in a.chunks(SUMS).zip(b.chunks(SUMS)).zip(halves.chunks(SUMS)) {
        for (((sum, a), b), half) in sums.iter_mut().zip(a).zip(b).zip(halves) {
            *sum += if a == b { *half } else { 0.0 };
        }
    }
    sums.iter().sum()
}

/// The sum of the smaller ones of numbers: of [`SUMS`] in `V` vectors side by side, then of [`LANES`] in `W`.
#[inline(always)]
fn least<S: Simd, const V: usize, const W: usize>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [simd.splat_f32s(0.0); V];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    for (a, b) in a.iter().zip(b) {
        sums = add_least::<S, V, V>(simd, sums, a, b);
    }
    for (a, b) in a_rest.as_chunks::<LANES>().0.iter().zip(b_rest.as_chunks::<LANES>().0) {
        sums = add_least::<S, V, W>(simd, sums, a, b);
    }
    let mut total = sums[0];
    for sum in &sums[1..] {
        total = simd.add_f32s(total, *sum);
    }
    simd.reduce_sum_f32s(total)
}

/// Adds the smaller ones of `a` and `b`, which are `N` vectors, to the first `N` sums.
#[inline(always)]
fn add_least<S: Simd, const V: usize, const N: usize>(
    simd: S,
    sums: [S::f32s; V],
    a: &[f32],
    b: &[f32],
) -> [S::f32s; V] {
    let (a, b) = (line::<S, N>(simd, a), line::<S, N>(simd, b));
    let mut next = sums;
    for n in 0..N {
        next[n] = simd.add_f32s(sums[n], simd.min_f32s(a[n], b[n]));
    }
    next
}
