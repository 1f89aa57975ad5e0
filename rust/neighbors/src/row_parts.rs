//! Rows that lie together, in parts of whole vectors.

use super::layout::{LANES, Layout, turn};

/// Where the parts of a row stand: each is followed by zeros up to a multiple of [`LANES`], which add nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Where nominal values start; numeric ones are first.
    pub(super) nominal: usize,
    /// Where those of numeric features start that miss some, and those of nominal ones.
    pub(super) with_missing: [usize; 2],
    /// From one row to the next.
    pub(super) stride: usize,
}

impl Parts {
    pub(super) fn of(layout: &Layout) -> Self {
        let after = |start: usize, n: usize| start + n.next_multiple_of(LANES);
        let nominal = after(0, layout.n_numeric);
        let numeric_missing = after(nominal, layout.halves.len());
        let nominal_missing = after(numeric_missing, layout.n_substitutes());
        let stride = after(nominal_missing, layout.with_missing.len() - layout.n_substitutes());
        Parts { nominal, with_missing: [numeric_missing, nominal_missing], stride }
    }

    /// Writes a row of whole values and of those that may be missing.
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

    /// Turns the whole values of a panel's rows into its lines.
    pub(super) fn turn(self, layout: &Layout, rows: &[f32], panel: &mut [f32]) {
        let (numeric, nominal) = panel.split_at_mut(layout.n_numeric * LANES);
        turn(rows, self.stride, numeric);
        if !nominal.is_empty() {
            turn(&rows[self.nominal..], self.stride, nominal);
        }
    }
}
