//! Columns that a source keeps as a matrix of numbers.

use std::ops::Range;

/// Consecutive columns of a source that are kept as a matrix in memory.
///
/// A few columns of it are read at a time, where a record batch would have an array for each of them.
#[derive(Clone, Copy)]
pub struct MatrixColumns<'a> {
    /// The position of the first of the columns in the schema of the source.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub n_rows: usize,
    /// The numbers.
    pub matrix: &'a dyn Matrix,
}

/// Numbers in memory, of which any columns can be read.
pub trait Matrix: Sync {
    /// Writes the numbers of `columns` to `out`, one column after the other, NaN where missing.
    fn read(&self, columns: Range<usize>, out: &mut [f64]);
}
