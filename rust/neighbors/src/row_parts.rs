//! Rows in f32, stored row by row, for the distances of single pairs.

use super::layout::{LANES, Layout, transpose};
use ferrank_runtime::pages::Large;

/// The values of a row of a panel, to be written.
///
/// ```
/// use ferrank_neighbors::layout::{Layout, MissingFeature};
/// use ferrank_neighbors::panels::{Cells, Panels};
///
/// // The only feature is numeric and has missing values. Such features have no part in A.
/// let with_missing = vec![MissingFeature { feature: 0, nominal: false, weight: 1.0 }];
/// let layout = Layout { with_missing, coordinates: 2, n_lines: 1, n_classes: 1, ..Layout::default() };
/// let panels = Panels::new(&layout, vec![vec![0, 1]], |number, cells: &mut Cells<'_>| {
///     cells.with_missing[0] = [f32::NAN, 0.25][number as usize];
///     cells.expected[0] = [0.0, 0.75][number as usize];
///     cells.points.copy_from_slice(&[[0.0, 1.0], [0.125, 0.125]][number as usize]);
///     0.0
/// });
/// assert_eq!(panels.panel(&layout, 0).values.get().expected[..2], [0.0, 0.75]);
/// ```
#[derive(Debug)]
pub struct Cells<'a> {
    /// n_whole
    pub values: &'a mut [f32],
    /// n_with_missing; NaN where missing.
    pub with_missing: &'a mut [f32],
    /// n_lines x n_with_missing
    pub expected: &'a mut [f32],
    /// n_substituted x coordinates; (v/2, v/2) for a known value v, or v alone.
    pub points: &'a mut [f32],
}

/// The values of all panels, feature by feature.
#[derive(Debug)]
pub(super) struct Transposed {
    /// Panel after panel: n_whole x LANES
    pub(super) values: Large<f32>,
    /// Panel after panel: n_with_missing x LANES; NaN where missing.
    pub(super) with_missing: Large<f32>,
    /// Panel after panel: n_expected x LANES
    pub(super) expected: Large<f32>,
}

/// Offsets of the parts of a row. Each part is padded with zeros to a multiple of [`LANES`]; zeros add nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Start of the nominal values; numeric ones are first.
    pub(super) nominal: usize,
    /// Start of the features with missing values.
    pub(super) with_missing: usize,
    /// Start of the lines of expected differences, each as long as the features with missing values.
    pub(super) expected: usize,
    /// Values from one row to the next.
    pub(super) stride: usize,
}

impl Parts {
    pub(super) fn new(layout: &Layout) -> Self {
        let after = |start: usize, n: usize| start + n.next_multiple_of(LANES);
        let nominal = after(0, layout.n_numeric);
        let with_missing = after(nominal, layout.halves.len());
        let expected = after(with_missing, layout.with_missing.len());
        let stride = expected + layout.n_lines * (expected - with_missing);
        Parts { nominal, with_missing, expected, stride }
    }

    /// Where the line of expected differences number `line` is.
    #[inline(always)]
    pub(super) fn line(self, line: usize) -> std::ops::Range<usize> {
        let length = self.expected - self.with_missing;
        self.expected + line * length..self.expected + (line + 1) * length
    }

    /// Writes a row.
    pub(super) fn write(self, layout: &Layout, cells: &Cells<'_>, row: &mut [f32]) {
        let (numeric, nominal) = cells.values.split_at(layout.n_numeric);
        row[..numeric.len()].copy_from_slice(numeric);
        row[self.nominal..][..nominal.len()].copy_from_slice(nominal);
        row[self.with_missing..][..cells.with_missing.len()].copy_from_slice(cells.with_missing);
        for (line, values) in cells.expected.chunks(layout.with_missing.len().max(1)).enumerate() {
            row[self.line(line)][..values.len()].copy_from_slice(values);
        }
    }

    /// Transposes the rows of a panel into its lines of values, of features with missing values, and of expected
    /// differences.
    pub(super) fn transpose(self, layout: &Layout, rows: &[f32], [values, with_missing, expected]: [&mut [f32]; 3]) {
        let (numeric, nominal) = values.split_at_mut(layout.n_numeric * LANES);
        let copy = |start: usize, lines: &mut [f32]| {
            if !lines.is_empty() {
                transpose(&rows[start..], self.stride, lines);
            }
        };
        copy(0, numeric);
        copy(self.nominal, nominal);
        copy(self.with_missing, with_missing);
        for (line, expected) in expected.chunks_mut((layout.with_missing.len() * LANES).max(1)).enumerate() {
            copy(self.line(line).start, expected);
        }
    }
}
