//! Component values of rows.

/// Component values of some rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    /// Number of values of a row.
    pub(crate) width: usize,
    /// n_rows x width: row weight times scaled value of each dense component, the whole ones first; then the weight of
    /// the row in each partial component, and in each group of indicators.
    pub(crate) dense: Vec<f64>,
    /// n_rows row weights; empty if all are 1.
    pub(crate) weights: Vec<f64>,
    /// n_rows + 1 offsets into `indicators`; empty if each row has one indicator, as with classes, or none.
    pub(crate) starts: Vec<usize>,
    /// Numbers of the indicators that are 1, row after row, ascending within a row.
    pub(crate) indicators: Vec<u32>,
}

impl Block {
    /// The weight of `row`.
    #[inline(always)]
    pub(crate) fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }

    /// The numbers of `row`: dense components, then weights.
    #[inline(always)]
    pub(crate) fn dense(&self, row: usize) -> &[f64] {
        &self.dense[row * self.width..(row + 1) * self.width]
    }

    /// The indicators of `row` that are 1.
    #[inline(always)]
    pub(crate) fn indicators(&self, row: usize) -> &[u32] {
        if self.starts.is_empty() {
            return self.indicators.get(row..row + 1).unwrap_or(&[]);
        }
        &self.indicators[self.starts[row]..self.starts[row + 1]]
    }

    /// The number of indicators that are 1 in `n` rows, on average.
    pub(crate) fn mean_indicators(&self, n: usize) -> usize {
        match self.starts.len() {
            0 => n.min(self.indicators.len()),
            ends => self.indicators.len() * n / (ends - 1),
        }
    }

    /// The only indicator of `row` that is 1, where they are the classes of a target: fewer look-ups than for any indicators.
    #[inline(always)]
    pub(crate) fn class(&self, row: usize) -> &u32 {
        &self.indicators[row]
    }

    /// Copies the values of `rows`, in that order, into `to`.
    pub(crate) fn gather(&self, rows: &[u32], to: &mut Block) {
        to.width = self.width;
        to.dense.clear();
        to.dense.reserve(rows.len() * self.width);
        to.weights.clear();
        to.starts.clear();
        to.indicators.clear();
        if self.width > 0 {
            rows.iter().for_each(|&row| to.dense.extend_from_slice(self.dense(row as usize)));
        }
        if !self.weights.is_empty() {
            to.weights.extend(rows.iter().map(|&row| self.weights[row as usize]));
        }
        if self.starts.is_empty() && !self.indicators.is_empty() {
            to.indicators.extend(rows.iter().map(|&row| self.class(row as usize)));
        } else if !self.starts.is_empty() {
            to.starts.push(0);
            for &row in rows {
                to.indicators.extend_from_slice(self.indicators(row as usize));
                to.starts.push(to.indicators.len());
            }
        }
    }
}
