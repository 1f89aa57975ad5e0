//! The rows of a data set: held, sparse, or read anew for each pass.

use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Phase;

use super::rows::{Reader, Rows, TURN};
use super::sparse::SparseRows;

/// All rows, wherever they are.
pub enum Table<'a> {
    /// In memory.
    Held(Rows),
    /// In memory, by what is unusual.
    Sparse(SparseRows),
    /// In their source.
    Streamed(Reader<'a>),
}

impl Table<'_> {
    /// Hands all rows to `each`, in order: at once, or tile by tile.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&Rows) -> Result<()>) -> Result<()> {
        match self {
            Table::Held(rows) => each(rows),
            Table::Sparse(rows) => rows.expand(TURN, each),
            Table::Streamed(reader) => reader.pass(phase, |_, rows| each(rows)),
        }
    }

    /// Columns number `features`, each over all rows.
    pub fn columns(&self, features: &[usize]) -> Result<Vec<Vec<f64>>> {
        if let Table::Sparse(rows) = self {
            return Ok(rows.columns(features));
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
