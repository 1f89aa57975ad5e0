//! How far rows are at least, in levels: a byte a pair.
//!
//! A level is a step of a scale from about the least distance that any two rows have to well beyond the k-th
//! nearest, as far as a sample tells. Rows below the scale have the level 0, those above it the last.
//! QuantizedDistances say no less than distances do as long as a step is less than a row's slack, which is what bytes
//! leave open anyway.

use std::ops::Range;

use pulp::Arch;

use super::byte_codes::{ByteCodesPanel, STEPS, serves};
use super::bytes::{Bytes, WithBytes, apart, dispatch};
use super::layout::{LANES, Layout};
use super::panels::{Panel, Panels};
use super::vectors::line;

/// A distance in steps of a byte, less what sums in f32, and levels made of them, may be off.
const STEP: f32 = (1.0 - 1e-6) / STEPS;
/// The level of rows that are beyond the scale, or nobody.
pub(super) const BEYOND: u8 = u8::MAX;
/// The scale reaches so many times as far from its base as the k-th nearest seems to be.
const REACH: f32 = 2.0;
/// Panels of queries, and of rows, from whose distances the scale is chosen; one of each class at least.
const SAMPLE: [usize; 2] = [4, 16];

/// Measuring a pair by itself takes so many times what the kernel takes for one.
const SINGLE_COST: usize = 12;

/// The levels of the rows of a panel, a line for each of another's.
pub(super) type QuantizedDistances = [[u8; LANES]; LANES];

/// What levels stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Where level 0 starts; nearer rows have it, too.
    base: f32,
    /// QuantizedDistances in a distance of 1.
    share: f32,
}

impl Scale {
    /// One that fits the distances of the `k` nearest of each class in `rows` from `queries`; `None` where these have
    /// no bytes.
    pub(super) fn of(layout: &Layout, arch: Arch, queries: &Panels, rows: &Panels, k: usize) -> Option<Self> {
        if !serves(layout) {
            return None;
        }
        let ones: Vec<Panel<'_>> =
            spread(0..queries.len(), SAMPLE[0]).map(|number| queries.panel(layout, number)).collect();
        let (mut least, mut farthest) = (f32::INFINITY, f32::NEG_INFINITY);
        // The nearest of small classes are far, and bytes do not serve to find them where none of them is known yet.
        let all = !any_is_large(rows, k);
        let of_class = SAMPLE[1] / rows.classes.chunk_by(|a, b| a == b).count().max(1);
        let mut start = 0;
        for class in rows.classes.chunk_by(|a, b| a == b) {
            let panels = start..start + class.len();
            start = panels.end;
            if !(all || is_large(class.len(), k)) {
                continue;
            }
            let others: Vec<Panel<'_>> =
                spread(panels, of_class.max(1)).map(|number| rows.panel(layout, number)).collect();
            let rank = (2 * (k * others.len()).div_ceil(class.len()) + 1).min(LANES * others.len() - 1);
            for &one in &ones {
                let mut distances = Vec::with_capacity(LANES * others.len());
                dispatch(arch, Sample { one, others: &others, distances: &mut distances })?;
                for line in 0..LANES {
                    let mut of_line: Vec<f32> = distances.iter().map(|lanes| lanes[line]).collect();
                    let (_, &mut far, _) = of_line.select_nth_unstable_by(rank, f32::total_cmp);
                    if far.is_finite() {
                        least = of_line[..=rank].iter().copied().fold(least, f32::min);
                        farthest = farthest.max(far);
                    }
                }
            }
        }
        if farthest < least {
            return None;
        }
        let base = least.max(0.0);
        // Steps finer than those of a byte would tell nothing.
        let width = (REACH * (farthest - base)).max(1.0);
        Some(Scale { base, share: f32::from(BEYOND) / width })
    }

    /// That of rows which seem to be `distance` away.
    pub(super) fn level(self, distance: f32) -> u8 {
        ((f64::from(distance) - f64::from(self.base)) * f64::from(self.share)) as u8
    }

    /// What rows of `level` do not reach.
    pub(super) fn end(self, level: u8) -> f32 {
        self.base + (f32::from(level) + 1.0) / self.share
    }
}

/// The levels of the rows of one panel for `Q` rows of another, from `first` on: those of how far they are by their
/// bytes, less the slack of both.
#[inline(always)]
pub(super) fn levels<S: Bytes, const V: usize, const W: usize, const Q: usize>(
    simd: S,
    scale: Scale,
    [one, other]: [ByteCodesPanel<'_>; 2],
    first: usize,
) -> [[u8; LANES]; Q] {
    let steps = apart::<S, V, W, Q>(simd, one.octets, other.octets, first);
    let quantization_errors = line::<S, W>(simd, other.quantization_error);
    let (per_step, minus_share) = (simd.splat_f32s(STEP * scale.share), simd.splat_f32s(-scale.share));
    let mut levels = [[0; LANES]; Q];
    for q in 0..Q {
        let less = simd.splat_f32s((one.quantization_error[first + q] + scale.base) * -scale.share);
        let mut numbers = [simd.splat_f32s(0.0); W];
        for w in 0..W {
            let less = simd.mul_add_f32s(quantization_errors[w], minus_share, less);
            numbers[w] = simd.mul_add_f32s(steps[q][w], per_step, less);
        }
        levels[q] = simd.bytes(&numbers);
    }
    levels
}

/// Pairs of the rows of one panel and of those of `n` others that may be measured one by one.
pub(super) fn budget(n: usize) -> usize {
    LANES * LANES * n / SINGLE_COST
}

/// Whether bytes serve to find the `k` nearest of `n` panels, of which none is known yet.
fn is_large(n: usize, k: usize) -> bool {
    LANES * (k + 1) <= budget(n)
}

/// Whether they do for some class of `rows`.
pub(super) fn any_is_large(rows: &Panels, k: usize) -> bool {
    rows.classes.chunk_by(|a, b| a == b).any(|class| is_large(class.len(), k))
}

/// At most `most` of `panels`, not all in one place.
fn spread(panels: Range<usize>, most: usize) -> impl Iterator<Item = usize> {
    let step = panels.len().div_ceil(most).max(1);
    panels.step_by(step)
}

/// Writes down how far the rows of a panel are at least from those of others, for each of the latter a line;
/// infinite for nobody, and for a row and itself.
struct Sample<'a> {
    one: Panel<'a>,
    others: &'a [Panel<'a>],
    distances: &'a mut Vec<[f32; LANES]>,
}

impl WithBytes for Sample<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) {
        let Sample { one, others, distances } = self;
        for other in others {
            for first in (0..LANES).step_by(Q) {
                let apart = apart::<S, V, W, Q>(simd, other.byte_codes.octets, one.byte_codes.octets, first);
                for (number, apart) in (first..).zip(apart) {
                    let mut line = [0.0; LANES];
                    S::as_mut_simd_f32s(&mut line).0.copy_from_slice(&apart);
                    for ((distance, quantization_error), query) in
                        line.iter_mut().zip(one.byte_codes.quantization_error).zip(one.numbers)
                    {
                        let seems =
                            *distance * STEP - (other.byte_codes.quantization_error[number] + quantization_error);
                        *distance = if *query == other.numbers[number] { f32::INFINITY } else { seems };
                    }
                    distances.push(line);
                }
            }
        }
    }
}
