//! Columns of a matrix in the rows that take part, a block of rows at a time.

use std::ops::Range;

use crate::intake::{Counts, Intake};
use crate::source::MatrixColumns;
use ferrank_runtime::error::Result;

/// Bytes of the values that are read together, which the cache of a core holds beside what is made of them.
const BLOCK_BYTES: usize = 256 << 10;

/// The matrix of a source, and which of its rows take part.
pub(crate) struct MatrixBlocks<'a> {
    pub(crate) columns: MatrixColumns<'a>,
    /// The rows that take part, ascending; `None`: all.
    rows: Option<Vec<usize>>,
}

impl<'a> MatrixBlocks<'a> {
    /// `rest` has the rows of the matrix with the targets and weights, which say which rows take part; `counts` are its row
    /// counts.
    ///
    /// # Errors
    /// Errors of reading.
    pub(crate) fn new(columns: MatrixColumns<'a>, rest: &Intake<'_>, counts: Counts) -> Result<Self> {
        Ok(MatrixBlocks { columns, rows: rest.rows_taking_part(counts)? })
    }

    /// Number of the rows that take part.
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.as_ref().map_or(self.columns.n_rows, Vec::len)
    }

    /// Moves the values of rows that take part to the front of `values`, and returns them. `values` are of consecutive rows of
    /// the matrix, from row number `start` on.
    pub(crate) fn taking_part<'b>(&self, start: usize, values: &'b mut [f64]) -> &'b mut [f64] {
        let Some(rows) = &self.rows else { return values };
        let (first, end) = (rows.partition_point(|&row| row < start), start + values.len());
        let mut n = 0;
        for &row in rows[first..].iter().take_while(|&&row| row < end) {
            values[n] = values[row - start];
            n += 1;
        }
        &mut values[..n]
    }

    /// Reads the matrix's `columns` in `rows`, which are numbered among those that take part, block by block. For each column
    /// of a block, `each` is called with the number of the block's first row, the column's position in `columns`, and its
    /// values. `buffer` holds the values of a block.
    ///
    /// # Errors
    /// The errors that `each` returns.
    pub(crate) fn read(
        &self,
        columns: Range<usize>,
        rows: Range<usize>,
        buffer: &mut Vec<f64>,
        mut each: impl FnMut(usize, usize, &[f64]) -> Result<()>,
    ) -> Result<()> {
        let in_matrix = match &self.rows {
            Some(known) if !rows.is_empty() => known[rows.start]..known[rows.end - 1] + 1,
            _ => rows.clone(),
        };
        let height = (BLOCK_BYTES / size_of::<f64>() / columns.len().max(1)).max(1);
        let mut first = rows.start;
        for start in in_matrix.clone().step_by(height) {
            let block = start..in_matrix.end.min(start + height);
            buffer.resize(columns.len() * block.len(), 0.0);
            self.columns.matrix.read(block.clone(), columns.clone(), buffer);
            let mut n_rows = 0;
            for (column, values) in buffer.chunks_exact_mut(block.len()).enumerate() {
                let values = self.taking_part(start, values);
                n_rows = values.len();
                each(first, column, values)?;
            }
            first += n_rows;
        }
        Ok(())
    }
}
