//! Rows in f32, stored row by row, for the distances of single pairs.

use super::layout::{LANES, Layout, transpose};

/// Offsets of the parts of a row. Each part is padded with zeros to a multiple of [`LANES`]; zeros add nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Start of the nominal values; numeric ones are first.
    pub(super) nominal: usize,
    /// Start of the numeric features with missing values, and of the nominal ones.
    pub(super) with_missing: [usize; 2],
    /// Values from one row to the next.
    pub(super) stride: usize,
}

impl Parts {
    pub(super) fn new(layout: &Layout) -> Self {
        let after = |start: usize, n: usize| start + n.next_multiple_of(LANES);
        let nominal = after(0, layout.n_numeric);
        let numeric_missing = after(nominal, layout.halves.len());
        let nominal_missing = after(numeric_missing, layout.n_substitutes());
        let stride = after(nominal_missing, layout.with_missing.len() - layout.n_substitutes());
        Parts { nominal, with_missing: [numeric_missing, nominal_missing], stride }
    }

    /// Writes a row: `whole`, the values of features without missing values, and the others.
    pub(super) fn write(
        self,
        layout: &Layout,
        whole: &[f32],
        with_missing: impl Iterator<Item = f32>,
        row: &mut [f32],
    ) {
        let (numeric, nominal) = whole.split_at(layout.n_numeric);
        row[..numeric.len()].copy_from_slice(numeric);
        row[self.nominal..self.nominal + nominal.len()].copy_from_slice(nominal);
        let n_numeric = layout.n_substitutes();
        for (number, value) in with_missing.enumerate() {
            let place = match number.checked_sub(n_numeric) {
                None => self.with_missing[0] + number,
                Some(nominal) => self.with_missing[1] + nominal,
            };
            row[place] = value;
        }
    }

    /// Transposes the rows of a panel, as far as features have no missing values, into its lines.
    pub(super) fn transpose(self, layout: &Layout, rows: &[f32], panel: &mut [f32]) {
        let (numeric, nominal) = panel.split_at_mut(layout.n_numeric * LANES);
        transpose(rows, self.stride, numeric);
        if !nominal.is_empty() {
            transpose(&rows[self.nominal..], self.stride, nominal);
        }
    }
}
