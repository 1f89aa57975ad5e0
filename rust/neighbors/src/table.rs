//! The rows of a data set: in memory, sparse in memory, in a temporary file, or read anew for each pass.

use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Phase;

use super::rows::{BLOCK_ROWS, Reader, Rows};
use super::sparse::SparseRows;
use super::spilled::SpilledRows;

/// All rows of a data set.
pub enum Table<'a> {
    /// In memory.
    Held(Rows),
    /// In memory, without usual values.
    Sparse(SparseRows),
    /// In a temporary file.
    Spilled(SpilledRows<'a>),
    /// Read from the source in each pass.
    Streamed(Reader<'a>),
}

impl Table<'_> {
    /// Calls `each` with all rows in order, at once or tile by tile.
    ///
    /// # Errors
    /// Errors of reading, and of `each`.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&Rows) -> Result<()>) -> Result<()> {
        match self {
            Table::Held(rows) => each(rows),
            Table::Sparse(rows) => rows.expand(BLOCK_ROWS, each),
            Table::Spilled(rows) => rows.pass(phase, each),
            Table::Streamed(reader) => reader.pass(phase, |_, rows| each(rows)),
        }
    }

    /// The columns of `features`, each over all rows.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn columns(&self, features: &[usize]) -> Result<Vec<Vec<f64>>> {
        match self {
            Table::Sparse(rows) => return Ok(rows.columns(features)),
            Table::Spilled(rows) => return Ok(features.iter().map(|&feature| rows.column(feature).to_vec()).collect()),
            Table::Held(_) | Table::Streamed(_) => {}
        }
        let mut columns = vec![Vec::new(); features.len()];
        self.pass(Phase::Coding, |rows| {
            for (column, &feature) in columns.iter_mut().zip(features) {
                column.extend(rows.values().iter().skip(feature).step_by(rows.width));
            }
            Ok(())
        })?;
        Ok(columns)
    }
}
