//! Columns that a source keeps as compressed sparse rows.

use arrow_buffer::ScalarBuffer;

use super::ChunkSource;

/// Consecutive columns of a source as compressed sparse rows (SciPy's CSR), and the columns beside them.
///
/// What is read this way costs time and memory for its entries, not for its cells: a record batch has an array for each
/// column, in all of which most values are 0.
pub struct SparseColumns<'a> {
    /// The position of the first of the columns in the schema of the source.
    pub first: usize,
    /// Number of columns.
    pub width: usize,
    /// n_rows + 1; where the entries of each row start.
    pub starts: &'a [i64],
    /// n_entries; the column of each entry, counted from the first, ascending within a row.
    pub columns: &'a [i32],
    /// n_entries; 0 and NaN are allowed.
    pub values: ScalarBuffer<f64>,
    /// The other columns, in the order of the schema, with the same rows.
    pub rest: Box<dyn ChunkSource + 'a>,
}
