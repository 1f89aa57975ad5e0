//! Distances of single pairs in f32, from rows stored row by row.

use pulp::Simd;

use super::layout::{LANES, Layout};
use super::panels::Panel;
use super::row_parts::Parts;
use super::vectors::line;

/// Partial sums of a pair; many short sums make small rounding errors.
const SUMS: usize = 64;

/// A row of a panel whose byte codes hold the rows in f32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'p, 'a> {
    pub(super) panel: &'p Panel<'a>,
    pub(super) lane: usize,
}

impl<'a> Row<'_, 'a> {
    #[inline(always)]
    fn values(self, stride: usize) -> &'a [f32] {
        &self.panel.byte_codes.rows[self.lane * stride..(self.lane + 1) * stride]
    }
}

/// Distances in f32 of a row from each of `others`; with the error of the kernel's distances at most.
#[inline(always)]
pub(super) fn distances<S: Simd, const N: usize>(
    simd: S,
    layout: &Layout,
    parts: Parts,
    one: Row<'_, '_>,
    others: [Row<'_, '_>; N],
) -> [f32; N] {
    let Parts { nominal, with_missing, expected, stride } = parts;
    let (a, all) = (one.values(stride), others.map(|other| other.values(stride)));
    let numeric = all.map(|b| &b[..nominal]);
    let common = match S::F32_LANES {
        16 => minima::<S, { SUMS / 16 }, { LANES / 16 }, N>(simd, &a[..nominal], numeric),
        8 => minima::<S, { SUMS / 8 }, { LANES / 8 }, N>(simd, &a[..nominal], numeric),
        _ => minima::<S, { SUMS / 4 }, { LANES / 4 }, N>(simd, &a[..nominal], numeric),
    };
    let mut distances = [0.0; N];
    for n in 0..N {
        let (other, b) = (others[n], all[n]);
        let mut common = common[n];
        if !layout.halves.is_empty() {
            common += 0.5 * equal(simd, &a[nominal..with_missing], &b[nominal..with_missing]);
            // Padding is equal, too.
            common -= 0.5 * (with_missing - nominal - layout.halves.len()) as f32;
        }
        distances[n] = (one.panel.sums[one.lane] + other.panel.sums[other.lane]) - 2.0 * common;
        if expected > with_missing {
            let values = [a, b].map(|row| &row[with_missing..expected]);
            let lines = [&a[parts.line(layout.line(other.panel.class))], &b[parts.line(layout.line(one.panel.class))]];
            distances[n] += differences(simd, values, lines);
        }
    }
    distances
}

/// All bits but the sign.
const MAGNITUDE: f32 = f32::from_bits(u32::MAX >> 1);

/// The sum of the differences of two rows in features with missing values, given their expected differences from missing
/// values of the other one's class.
#[inline(always)]
fn differences<S: Simd>(simd: S, [a, b]: [&[f32]; 2], [of_a, of_b]: [&[f32]; 2]) -> f32 {
    let [a, b, of_a, of_b] = [a, b, of_a, of_b].map(|values| S::as_simd_f32s(values).0);
    let (magnitude, one) = (simd.splat_f32s(MAGNITUDE), simd.splat_f32s(1.0));
    let mut sum = simd.splat_f32s(0.0);
    for (((a, b), of_a), of_b) in a.iter().zip(b).zip(of_a).zip(of_b) {
        // The numbers of categories are whole; `abs_f32s` is not inlined.
        let apart = simd.min_f32s(simd.and_f32s(magnitude, simd.sub_f32s(*a, *b)), one);
        let known = simd.select_f32s(simd.equal_f32s(*b, *b), apart, *of_a);
        sum = simd.add_f32s(sum, simd.select_f32s(simd.equal_f32s(*a, *a), known, *of_b));
    }
    simd.reduce_sum_f32s(sum)
}

/// Number of equal values.
#[inline(always)]
fn equal<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let (zero, one) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
    let mut sum = zero;
    for (a, b) in S::as_simd_f32s(a).0.iter().zip(S::as_simd_f32s(b).0) {
        sum = simd.add_f32s(sum, simd.select_f32s(simd.equal_f32s(*a, *b), one, zero));
    }
    simd.reduce_sum_f32s(sum)
}

/// Sums of the minima of the values of `a` and each of `others`: [`SUMS`] values at a time in `V` vectors, the rest
/// [`LANES`] at a time in `W`.
#[inline(always)]
fn minima<S: Simd, const V: usize, const W: usize, const N: usize>(
    simd: S,
    a: &[f32],
    others: [&[f32]; N],
) -> [f32; N] {
    let mut sums = [[simd.splat_f32s(0.0); V]; N];
    let (a, a_rest) = a.as_chunks::<SUMS>();
    let chunks = others.map(|b| &b.as_chunks::<SUMS>().0[..a.len()]);
    let rests = others.map(|b| &b.as_chunks::<SUMS>().1[..a_rest.len()]);
    for (place, a) in a.iter().enumerate() {
        for n in 0..N {
            sums[n] = add_minima::<S, V, V>(simd, sums[n], a, &chunks[n][place]);
        }
    }
    for (place, a) in a_rest.as_chunks::<LANES>().0.iter().enumerate() {
        for n in 0..N {
            sums[n] = add_minima::<S, V, W>(simd, sums[n], a, &rests[n][place * LANES..(place + 1) * LANES]);
        }
    }
    let mut totals = [0.0; N];
    for n in 0..N {
        let mut total = sums[n][0];
        for sum in &sums[n][1..] {
            total = simd.add_f32s(total, *sum);
        }
        totals[n] = simd.reduce_sum_f32s(total);
    }
    totals
}

/// Adds the minima of `a` and `b`, `N` vectors each, to the first `N` sums.
#[inline(always)]
fn add_minima<S: Simd, const V: usize, const N: usize>(
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
