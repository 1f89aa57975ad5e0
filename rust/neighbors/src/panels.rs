//! Rows as the kernel reads them: panels of 16 rows, feature by feature, in f32.
//!
//! The rows of a panel are of one class, so that they share thresholds and expected differences. The last panel of a
//! class is padded with rows at an infinite distance. The order of features is numeric, nominal, with missing values.
//!
//! The distance of two rows is A + A' − 2 M. A depends on one row and A' on the other; M is a sum over features of what
//! the values have in common. Equal nominal values contribute half the weight of the feature, numeric ones their
//! minimum or product (see [`Common`](super::layout::Common)). A value then takes one or two operations, while |a − b|
//! or (a − b)² would take three or two.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::byte_codes::{ByteCodes, ByteCodesPanel};
use super::gaps::{Gaps, PanelGaps};
use super::layout::{LANES, Layout, NO_ROW, cut, transpose};
pub use super::row_parts::Cells;
use super::row_parts::Transposed;
use ferrank_runtime::pages::Large;

/// Rows, in panels.
///
/// ```
/// use ferrank_neighbors::layout::{Layout, NO_ROW};
/// use ferrank_neighbors::panels::Panels;
///
/// // Rows 0 and 2 are of class 0, row 1 is of class 1; each class starts a panel of its own.
/// let layout = Layout { whole: vec![0], n_numeric: 1, n_classes: 2, ..Layout::default() };
/// let panels = Panels::new(&layout, vec![vec![0, 2], vec![1]], |number, cells| {
///     cells.values[0] = number as f32 / 4.0;
///     cells.values[0]
/// });
/// assert_eq!((panels.len(), &panels.classes[..]), (2, &[0, 1][..]));
/// assert_eq!(panels.numbers[..3], [0, 2, NO_ROW]);
/// assert_eq!(panels.sums().take(3).collect::<Vec<_>>(), [0.0, 0.5, f32::INFINITY]);
/// ```
#[derive(Debug)]
pub struct Panels {
    /// Made on first use where byte codes hold the rows.
    transposed: OnceLock<Transposed>,
    /// Panel after panel: LANES; A of each row, infinite for padding.
    sums: Vec<f32>,
    byte_codes: ByteCodes,
    /// `None` where no row has any.
    pub(super) gaps: Option<Gaps>,
    /// Panel after panel: LANES
    pub numbers: Vec<u32>,
    /// n_panels
    pub classes: Vec<u16>,
}

/// One panel.
///
/// ```
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{layout_of, panels_of};
/// use ferrank_neighbors::panels::Panel;
///
/// let mut rows = Rows::with_capacity(3, 2);
/// rows.add(0..3).copy_from_slice(&[0.25, 0.5, 1.0, 1.0, 0.0, 0.5]);
/// let space = Space::new(vec![Shape::Numeric; 2], vec![None, None], vec![1, 0, 1], 2);
/// let layout = layout_of(&space);
/// let panels = panels_of(&layout, &space, &rows);
/// // The panel of class 1. A is the sum of a row's values, as both features are numeric.
/// let panel: Panel<'_> = panels.panel(&layout, 1);
/// assert_eq!((panel.class, &panel.numbers[..2]), (1, &[0, 2][..]));
/// assert_eq!(panel.sums[..3], [0.75, 0.5, f32::INFINITY]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    /// Values by feature.
    pub values: Values<'a>,
    /// A of each row, infinite for padding.
    pub sums: &'a [f32; LANES],
    /// Byte codes of the values.
    pub byte_codes: ByteCodesPanel<'a>,
    gaps: Option<PanelGaps<'a>>,
    /// Numbers of the rows.
    pub numbers: &'a [u32; LANES],
    /// The class of all rows of the panel.
    pub class: usize,
}

/// The values of a panel.
///
/// ```
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{layout_of, panels_of};
/// use ferrank_neighbors::layout::LANES;
/// use ferrank_neighbors::panels::Values;
///
/// let mut rows = Rows::with_capacity(2, 2);
/// rows.add(0..2).copy_from_slice(&[0.25, 0.5, 0.75, 1.0]);
/// let space = Space::new(vec![Shape::Numeric; 2], vec![None, None], Vec::new(), 1);
/// let layout = layout_of(&space);
/// let panels = panels_of(&layout, &space, &rows);
/// let values: Values<'_> = panels.panel(&layout, 0).values;
/// // A line of each feature, in which each row has its place.
/// let lines: Vec<&[f32]> = values.get().values.chunks(LANES).map(|line| &line[..2]).collect();
/// assert_eq!(lines, [[0.25, 0.75], [0.5, 1.0]]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    all: &'a OnceLock<Transposed>,
    byte_codes: &'a ByteCodes,
    layout: &'a Layout,
    number: usize,
}

/// The values of a panel, feature by feature.
///
/// ```
/// # use ferrank_neighbors::missing::MissingModel;
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{layout_of, panels_of};
/// use ferrank_neighbors::panels::ByFeature;
///
/// // Feature 1 has a missing value, in row 1, which differs from all known ones by 1.
/// let mut rows = Rows::with_capacity(3, 2);
/// rows.add(0..3).copy_from_slice(&[0.5, 0.0, 0.25, f64::NAN, 1.0, 0.75]);
/// let models = vec![None, Some(MissingModel::Informative)];
/// let space = Space::new(vec![Shape::Numeric; 2], models, Vec::new(), 1);
/// let layout = layout_of(&space);
/// let panels = panels_of(&layout, &space, &rows);
/// let ByFeature { values, with_missing, expected } = panels.panel(&layout, 0).values.get();
/// assert_eq!(values[..3], [0.5, 0.25, 1.0]);
/// assert!(with_missing[1].is_nan());
/// assert_eq!(expected[..3], [1.0, 0.0, 1.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ByFeature<'a> {
    /// n_whole x LANES; features without missing values.
    pub values: &'a [f32],
    /// n_with_missing x LANES; features with missing values, NaN where missing.
    pub with_missing: &'a [f32],
    /// n_expected x LANES
    pub expected: &'a [f32],
}

impl<'a> Panel<'a> {
    /// Features in which a mean is in the place of the missing value of the row in `lane`.
    #[inline]
    pub(super) fn gaps(&self, lane: usize) -> &'a [u32] {
        self.gaps.map_or(&[], |gaps| gaps.features(lane))
    }

    /// How much farther each row may be, at most, than by such means.
    #[inline]
    pub(super) fn excess(&self) -> &'a [f32; LANES] {
        self.gaps.map_or(&[0.0; LANES], |gaps| gaps.excess)
    }
}

impl<'a> Values<'a> {
    /// The values by feature.
    pub fn get(self) -> ByFeature<'a> {
        let Values { layout, number, .. } = self;
        let all = self.all.get_or_init(|| self.byte_codes.transposed(layout));
        ByFeature {
            values: cut(&all.values, number, layout.whole.len()),
            with_missing: cut(&all.with_missing, number, layout.with_missing.len()),
            expected: cut(&all.expected, number, layout.n_expected()),
        }
    }
}

/// `values` in `n` equal parts, which may be empty.
fn chunks(values: &mut [f32], n: usize) -> impl IndexedParallelIterator<Item = &mut [f32]> {
    let mut parts: Vec<&mut [f32]> = values.chunks_mut((values.len() / n.max(1)).max(1)).collect();
    parts.resize_with(n, Default::default);
    parts.into_par_iter()
}

impl Panels {
    /// Bytes of a row in a panel.
    pub fn row_bytes(layout: &Layout) -> usize {
        layout.kernel_bytes() + ByteCodes::row_bytes(layout)
    }

    /// Creates the panels of the rows numbered `members`, by class. `fill` writes one row and returns its A. Panels are
    /// written in parallel on the current thread pool.
    pub fn new(layout: &Layout, members: Vec<Vec<u32>>, fill: impl Fn(u32, &mut Cells<'_>) -> f32 + Sync) -> Self {
        let (mut numbers, mut classes) = (Vec::new(), Vec::new());
        for (class, mut members) in members.into_iter().enumerate() {
            members.resize(members.len().next_multiple_of(LANES), NO_ROW);
            classes.resize(classes.len() + members.len() / LANES, class as u16);
            numbers.append(&mut members);
        }
        let n = numbers.len();
        let mut byte_codes = ByteCodes::new(layout, n);
        let widths = [layout.whole.len(), layout.with_missing.len(), layout.n_expected()];
        let is_transposed = !byte_codes.has_rows();
        let mut lines = widths.map(|width| Large::zeros(if is_transposed { n * width } else { 0 }));
        let mut sums = vec![f32::INFINITY; n];
        let stride = (widths.iter().sum::<usize>() + layout.coordinates * layout.n_substituted()).max(1);
        let [values, with_missing, expected] = &mut lines;
        let panels = (chunks(values, n / LANES).zip(chunks(with_missing, n / LANES)).zip(chunks(expected, n / LANES)))
            .zip(sums.par_chunks_mut(LANES))
            .zip(byte_codes.panels_mut(layout, n / LANES))
            .zip(numbers.par_chunks(LANES));
        panels.for_each_init(
            || vec![0.0; LANES * stride],
            |rows, (((((values, with_missing), expected), sums), mut byte_codes), numbers)| {
                let numbers = &numbers[..numbers.iter().take_while(|number| **number != NO_ROW).count()];
                for ((lane, &number), row) in numbers.iter().enumerate().zip(rows.chunks_exact_mut(stride)) {
                    let (values, row) = row.split_at_mut(widths[0]);
                    let (with_missing, row) = row.split_at_mut(widths[1]);
                    let (expected, points) = row.split_at_mut(widths[2]);
                    let points = &mut points[..layout.coordinates * layout.n_substituted()];
                    let mut cells = Cells { values, with_missing, expected, points };
                    sums[lane] = fill(number, &mut cells);
                    byte_codes.fill(layout, lane, &cells);
                }
                if is_transposed {
                    let rows = &rows[..numbers.len() * stride];
                    let mut start = 0;
                    for (lines, width) in [values, with_missing, expected].into_iter().zip(widths) {
                        if width > 0 {
                            transpose(&rows[start..], stride, lines);
                        }
                        start += width;
                    }
                }
            },
        );
        let [values, with_missing, expected] = lines;
        let all = Transposed { values, with_missing, expected };
        let transposed = if is_transposed { OnceLock::from(all) } else { OnceLock::new() };
        Panels { transposed, sums, byte_codes, gaps: None, numbers, classes }
    }

    /// A of every row, infinite for padding.
    pub fn sums(&self) -> impl Iterator<Item = f32> {
        self.sums.iter().copied()
    }

    /// Number of panels.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns true if there is no panel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Panel number `number`.
    pub fn panel<'a>(&'a self, layout: &'a Layout, number: usize) -> Panel<'a> {
        Panel {
            values: Values { all: &self.transposed, byte_codes: &self.byte_codes, layout, number },
            sums: cut(&self.sums, number, 1).try_into().expect("LANES of them"),
            byte_codes: self.byte_codes.panel(layout, number),
            gaps: self.gaps.as_ref().map(|gaps| gaps.panel(number)),
            numbers: cut(&self.numbers, number, 1).try_into().expect("LANES of them"),
            class: usize::from(self.classes[number]),
        }
    }
}
