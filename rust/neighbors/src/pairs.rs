//! Distances of single pairs in f32, from rows stored row by row.

use pulp::Simd;

use super::layout::{LANES, Layout};
use super::panels::Panel;
use super::row_parts::Parts;
use super::vectors::{bits, line, word};

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

    /// The expected difference from a missing value of `class`, for feature number `with_missing` of the features with
    /// missing values.
    fn expected(self, layout: &Layout, with_missing: usize, class: usize) -> f64 {
        layout.slot(with_missing, class).map_or(0.0, |slot| f64::from(self.panel.expected[slot * LANES + self.lane]))
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
    let Parts { nominal, with_missing: [with_missing, nominal_missing], stride } = parts;
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
            common += common_nominal(&layout.halves, &a[nominal..with_missing], &b[nominal..with_missing]);
        }
        distances[n] = (one.panel.sums[one.lane] + other.panel.sums[other.lane]) - 2.0 * common;
        if !layout.with_missing.is_empty() {
            let pair = MissingFeature { simd, layout, one, other };
            let numeric = pair.sum::<false>(0, &a[with_missing..nominal_missing], &b[with_missing..nominal_missing]);
            let nominal = pair.sum::<true>(layout.n_substitutes(), &a[nominal_missing..], &b[nominal_missing..]);
            distances[n] = (f64::from(distances[n]) + numeric + nominal) as f32;
        }
    }
    distances
}

/// The features with missing values, of a pair.
struct MissingFeature<'p, 'a, S> {
    simd: S,
    layout: &'p Layout,
    one: Row<'p, 'a>,
    other: Row<'p, 'a>,
}

impl<S: Simd> MissingFeature<'_, '_, S> {
    /// The sum of differences over a part of the features, from number `first` on.
    #[inline(always)]
    fn sum<const NOMINAL: bool>(&self, first: usize, a: &[f32], b: &[f32]) -> f64 {
        let MissingFeature { simd, layout, one, other } = *self;
        let (zero, unit) = (simd.splat_f32s(0.0), simd.splat_f32s(1.0));
        let mut sum = 0.0;
        let vectors = S::as_simd_f32s(a).0.iter().zip(S::as_simd_f32s(b).0);
        for (number, (&a, &b)) in (first..).step_by(S::F32_LANES).zip(vectors) {
            let difference = match NOMINAL {
                true => simd.select_f32s(simd.equal_f32s(a, b), zero, unit),
                false => simd.abs_f32s(simd.sub_f32s(a, b)),
            };
            let known = simd.and_m32s(simd.equal_f32s(a, a), simd.equal_f32s(b, b));
            sum += f64::from(simd.reduce_sum_f32s(simd.select_f32s(known, difference, zero)));
            let of_one = word(simd, simd.equal_f32s(a, a));
            let missing = !word(simd, known) & (u32::MAX >> (u32::BITS as usize - S::F32_LANES));
            for lane in bits(missing.into()) {
                // Expected difference from the missing value of the other row.
                sum += match of_one >> lane & 1 {
                    0 => other.expected(layout, number + lane as usize, one.panel.class),
                    _ => one.expected(layout, number + lane as usize, other.panel.class),
                };
            }
        }
        sum
    }
}

/// The sum of half the weights of features with equal values.
fn common_nominal(halves: &[f32], a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    for ((a, b), halves) in a.chunks(SUMS).zip(b.chunks(SUMS)).zip(halves.chunks(SUMS)) {
        for (((sum, a), b), half) in sums.iter_mut().zip(a).zip(b).zip(halves) {
            *sum += if a == b { *half } else { 0.0 };
        }
    }
    sums.iter().sum()
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
