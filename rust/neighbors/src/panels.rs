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
use super::layout::{LANES, Layout, NO_ROW, cut, transpose};

/// Rows, in panels.
#[derive(Debug)]
pub struct Panels {
    /// Panel after panel: n_whole x LANES; made on first use where byte codes hold the rows.
    values: OnceLock<Vec<f32>>,
    /// Panel after panel: n_with_missing x LANES; NaN where missing.
    with_missing: Vec<f32>,
    /// Panel after panel: n_slots x LANES
    expected: Vec<f32>,
    /// Panel after panel: LANES; A of each row, infinite for padding.
    sums: Vec<f32>,
    byte_codes: ByteCodes,
    /// Panel after panel: LANES
    pub numbers: Vec<u32>,
    /// n_panels
    pub classes: Vec<u16>,
}

/// One panel.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    /// Values of the features without missing values.
    pub values: Values<'a>,
    /// n_with_missing x LANES; values of the features with missing values, NaN where missing.
    pub with_missing: &'a [f32],
    /// n_slots x LANES; expected differences.
    pub expected: &'a [f32],
    /// A of each row, infinite for padding.
    pub sums: &'a [f32; LANES],
    /// Byte codes of the values.
    pub byte_codes: ByteCodesPanel<'a>,
    /// Numbers of the rows.
    pub numbers: &'a [u32; LANES],
    /// The class of all rows of the panel.
    pub class: usize,
}

/// The values of a panel in features without missing values.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    all: &'a OnceLock<Vec<f32>>,
    byte_codes: &'a ByteCodes,
    layout: &'a Layout,
    number: usize,
}

impl<'a> Values<'a> {
    /// n_whole x LANES
    pub fn get(self) -> &'a [f32] {
        cut(self.all.get_or_init(|| self.byte_codes.transposed(self.layout)), self.number, self.layout.whole.len())
    }
}

/// The memory of a row of a panel, to be written. Features with missing values are written to the row's lane of each
/// line.
#[derive(Debug)]
pub struct Cells<'a> {
    /// Position of the row in its panel.
    pub lane: usize,
    /// n_whole
    pub values: &'a mut [f32],
    /// n_with_missing x LANES
    pub with_missing: &'a mut [f32],
    /// n_slots x LANES
    pub expected: &'a mut [f32],
    /// n_substitutes
    pub substitutes: &'a mut [f32],
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
        let n_whole = layout.whole.len();
        let is_transposed = !byte_codes.has_rows();
        let transposed_width = if is_transposed { n_whole } else { 0 };
        let mut values = vec![0.0; n * transposed_width];
        let mut with_missing = vec![0.0; n * layout.with_missing.len()];
        let mut expected = vec![0.0; n * layout.n_slots];
        let mut sums = vec![f32::INFINITY; n];
        // Chunks of width 0 are not allowed.
        let width = |n: usize| (n * LANES).max(1);
        let pad = |part: &mut Vec<f32>| part.resize(part.len().max(n / LANES), 0.0);
        [&mut values, &mut with_missing, &mut expected].into_iter().for_each(pad);
        let stride = (n_whole + layout.n_substitutes()).max(1);
        values
            .par_chunks_mut(width(transposed_width))
            .zip(with_missing.par_chunks_mut(width(layout.with_missing.len())))
            .zip(expected.par_chunks_mut(width(layout.n_slots)))
            .zip(sums.par_chunks_mut(LANES))
            .zip(byte_codes.panels_mut(layout, n / LANES))
            .zip(numbers.par_chunks(LANES))
            .for_each_init(
                || vec![0.0; LANES * stride],
                |rows, (((((values, with_missing), expected), sums), mut byte_codes), numbers)| {
                    let numbers = &numbers[..numbers.iter().take_while(|number| **number != NO_ROW).count()];
                    for ((lane, &number), row) in numbers.iter().enumerate().zip(rows.chunks_exact_mut(stride)) {
                        let (values, substitutes) = row.split_at_mut(n_whole);
                        sums[lane] = fill(number, &mut Cells { lane, values, with_missing, expected, substitutes });
                    }
                    let rows = &rows[..numbers.len() * stride];
                    transpose(rows, stride, &mut values[..transposed_width * LANES]);
                    byte_codes.fill(layout, rows, stride, with_missing);
                },
            );
        let values = if is_transposed { OnceLock::from(values) } else { OnceLock::new() };
        Panels { values, with_missing, expected, sums, byte_codes, numbers, classes }
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
            values: Values { all: &self.values, byte_codes: &self.byte_codes, layout, number },
            with_missing: cut(&self.with_missing, number, layout.with_missing.len()),
            expected: cut(&self.expected, number, layout.n_slots),
            sums: cut(&self.sums, number, 1).try_into().expect("LANES of them"),
            byte_codes: self.byte_codes.panel(layout, number),
            numbers: cut(&self.numbers, number, 1).try_into().expect("LANES of them"),
            class: usize::from(self.classes[number]),
        }
    }
}
