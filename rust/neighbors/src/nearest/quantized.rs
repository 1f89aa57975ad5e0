//! Lower bounds of distances in *levels*, a byte for each pair.
//!
//! Levels divide a range of distances, chosen from a sample: from about the smallest distance of any two rows to well
//! beyond the k-th nearest. Bounds below the range have level 0, those above it the last level. Levels lose nothing as
//! long as a level is narrower than the quantization error of the byte codes.

use std::ops::Range;

use pulp::Arch;

use crate::byte_codes::{ByteCodesPanel, STEP, are_supported};
use crate::bytes::{Bytes, WithBytes, byte_distances, dispatch};
use crate::layout::{LANES, Layout};
use crate::panels::{Panel, Panels};
use crate::vectors::line;

/// The level of rows beyond the range, and of padding.
pub(super) const BEYOND: u8 = u8::MAX;
/// Width of the range, in distances of the k-th nearest row of the sample from the smallest.
const RANGE: f32 = 2.0;
/// Panels of queries and panels of rows in the sample; at least one panel of rows of each class.
const SAMPLE: [usize; 2] = [4, 16];
/// Time to measure a single pair, in units of the kernel's time for a pair.
const SINGLE_COST: usize = 12;

/// The levels of the rows of a panel, a line for each row of another panel.
pub(super) type QuantizedDistances = [[u8; LANES]; LANES];

/// The range of distances that levels divide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The distance where level 0 starts; smaller distances have level 0, too.
    base: f32,
    /// Levels in a distance of 1.
    per_unit: f32,
}

impl Scale {
    /// Chooses the range for the `k` nearest `rows` of each class from `queries`. `None` where values have no byte codes.
    pub(super) fn new(layout: &Layout, arch: Arch, queries: &Panels, rows: &Panels, k: usize) -> Option<Self> {
        if !are_supported(layout) {
            return None;
        }
        let query_panels: Vec<Panel<'_>> =
            spread(0..queries.len(), SAMPLE[0]).map(|number| queries.panel(layout, number)).collect();
        let (mut smallest, mut largest) = (f32::INFINITY, f32::NEG_INFINITY);
        // The nearest rows of small classes are far away; they would widen the range, and are found by the kernel anyway.
        let all = !any_is_large(rows, k);
        let of_class = SAMPLE[1] / rows.classes.chunk_by(|a, b| a == b).count().max(1);
        let mut start = 0;
        for class in rows.classes.chunk_by(|a, b| a == b) {
            let panels = start..start + class.len();
            start = panels.end;
            if !(all || is_large(class.len(), k)) {
                continue;
            }
            let row_panels: Vec<Panel<'_>> =
                spread(panels, of_class.max(1)).map(|number| rows.panel(layout, number)).collect();
            let rank = (2 * (k * row_panels.len()).div_ceil(class.len()) + 1).min(LANES * row_panels.len() - 1);
            for &queries in &query_panels {
                let mut distances = Vec::with_capacity(LANES * row_panels.len());
                dispatch(arch, Sample { queries, rows: &row_panels, distances: &mut distances })?;
                for line in 0..LANES {
                    let mut of_line: Vec<f32> = distances.iter().map(|lanes| lanes[line]).collect();
                    let (_, &mut far, _) = of_line.select_nth_unstable_by(rank, f32::total_cmp);
                    if far.is_finite() {
                        smallest = of_line[..=rank].iter().copied().fold(smallest, f32::min);
                        largest = largest.max(far);
                    }
                }
            }
        }
        if largest < smallest {
            return None;
        }
        let base = smallest.max(0.0);
        // Levels finer than the steps of a byte gain nothing.
        let width = (RANGE * (largest - base)).max(1.0);
        Some(Scale { base, per_unit: f32::from(BEYOND) / width })
    }

    /// The level of a bound of `distance`.
    pub(super) fn level(self, distance: f32) -> u8 {
        ((f64::from(distance) - f64::from(self.base)) * f64::from(self.per_unit)) as u8
    }

    /// The distance where `level` ends.
    pub(super) fn end(self, level: u8) -> f32 {
        self.base + (f32::from(level) + 1.0) / self.per_unit
    }
}

/// The levels between `Q` rows of the first panel, from `first` on, and the rows of the second: distances of byte
/// codes less the quantization errors of both rows.
#[inline(always)]
pub(super) fn levels<S: Bytes, const V: usize, const W: usize, const Q: usize>(
    simd: S,
    scale: Scale,
    [queries, rows]: [ByteCodesPanel<'_>; 2],
    first: usize,
) -> [[u8; LANES]; Q] {
    let steps = byte_distances::<S, V, W, Q>(simd, queries, rows, first);
    let quantization_errors = line::<S, W>(simd, rows.quantization_error);
    let (per_step, minus_per_unit) = (simd.splat_f32s(STEP * scale.per_unit), simd.splat_f32s(-scale.per_unit));
    let mut levels = [[0; LANES]; Q];
    for q in 0..Q {
        let less = simd.splat_f32s((queries.quantization_error[first + q] + scale.base) * -scale.per_unit);
        let mut numbers = [simd.splat_f32s(0.0); W];
        for w in 0..W {
            let less = simd.mul_add_f32s(quantization_errors[w], minus_per_unit, less);
            numbers[w] = simd.mul_add_f32s(steps[q][w], per_step, less);
        }
        levels[q] = simd.bytes(&numbers);
    }
    levels
}

/// Pairs of a panel of queries and `n` panels of rows that are measured one by one at most; the kernel is faster for
/// more.
pub(super) fn budget(n: usize) -> usize {
    LANES * LANES * n / SINGLE_COST
}

/// Returns true if a search without a threshold for the `k` nearest rows in `n` panels stays within the budget.
fn is_large(n: usize, k: usize) -> bool {
    LANES * (k + 1) <= budget(n)
}

/// Returns true if some class of `rows` is large enough for a search by byte codes.
pub(super) fn any_is_large(rows: &Panels, k: usize) -> bool {
    rows.classes.chunk_by(|a, b| a == b).any(|class| is_large(class.len(), k))
}

/// At most `most` of `panels`, evenly spread.
fn spread(panels: Range<usize>, most: usize) -> impl Iterator<Item = usize> {
    let step = panels.len().div_ceil(most).max(1);
    panels.step_by(step)
}

/// Appends a line of lower bounds for each row, to all queries of a panel; infinite for padding and for a row and
/// itself.
struct Sample<'a> {
    queries: Panel<'a>,
    rows: &'a [Panel<'a>],
    distances: &'a mut Vec<[f32; LANES]>,
}

impl WithBytes for Sample<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) {
        let Sample { queries, rows, distances } = self;
        for rows in rows {
            for first in (0..LANES).step_by(Q) {
                let steps = byte_distances::<S, V, W, Q>(simd, rows.byte_codes, queries.byte_codes, first);
                for (number, steps) in (first..).zip(steps) {
                    let mut line = [0.0; LANES];
                    S::as_mut_simd_f32s(&mut line).0.copy_from_slice(&steps);
                    for ((distance, quantization_error), query) in
                        line.iter_mut().zip(queries.byte_codes.quantization_error).zip(queries.numbers)
                    {
                        let bound =
                            *distance * STEP - (rows.byte_codes.quantization_error[number] + quantization_error);
                        *distance = if *query == rows.numbers[number] { f32::INFINITY } else { bound };
                    }
                    distances.push(line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_ends_beyond_its_distances() {
        let scale = Scale { base: 0.75, per_unit: 13.0 };
        for step in 0..2_000 {
            let distance = 0.75 + step as f32 * 0.0091;
            let level = scale.level(distance);
            assert_eq!(level == BEYOND, distance >= 0.75 + 255.0 / 13.0, "{distance}");
            if level < BEYOND {
                assert!(distance < scale.end(level), "{distance} is not in level {level}");
                assert!(distance >= scale.end(level) - 1.0001 / 13.0, "{distance} is not in level {level}");
            }
        }
        assert_eq!(scale.level(0.0), 0);
    }
}
