//! The rows of a data set: in memory, sparse in memory, in a temporary file, or read anew for each pass.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
//! # use ferrank_runtime::{monitor::{Monitor, Phase}, scratch::Scratch};
//! # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
//! # let columns = [("x", column(|i| f64::from(i / 39))), ("z", column(f64::from)), ("y", column(f64::from))];
//! # let batch = RecordBatch::try_from_iter(columns)?;
//! # let source = TableSource::new("table", batch.schema(), vec![batch])?;
//! # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
//! # let view = View::new(&source, &roles, Unlabelled::Error);
//! # let problem = view.problem()?;
//! # let intake = || view.intake(&problem, &monitor);
//! use ferrank_neighbors::rows::Reader;
//! use ferrank_neighbors::space::{Scale, Shape, Space};
//! use ferrank_neighbors::sparse::{Index, SparseRows, Usual};
//! use ferrank_neighbors::spilled::SpilledRows;
//! use ferrank_neighbors::table::Table;
//!
//! // Of 40 rows one has 1 in feature 0, the others 0; feature 1 counts them.
//! let profile = Profile::new(&intake(), 255)?;
//! let scales = || profile.features.iter().map(Scale::from_profile).collect::<Vec<_>>();
//! let reader = || Reader { intake: intake(), scales: scales(), n_rows: 40, clip: false };
//! let held = reader().hold(Phase::Coding, |_, _| Ok(()))?;
//! let mut sparse = SparseRows::new(Usual::new(&profile.features, &scales(), 40));
//! sparse.append(&held);
//! let spilled = SpilledRows::new(&reader(), &[], &Scratch::new(None), 1 << 20, |_| Ok(()))?;
//!
//! // Sparse rows that are near to others are found by the values that are unusual.
//! let space = Space::new(vec![Shape::Numeric; 2], vec![None, None], Vec::new(), 1);
//! let found = Index::new(&sparse, &space).neighbors(&[1, 39], 1, &monitor)?;
//! assert_eq!([1, 39].map(|query| found.of(query).collect::<Vec<_>>()), [[[0]], [[38]]]);
//!
//! // Wherever rows are, passes over them are the same.
//! let tables = [Table::Held(held), Table::Sparse(sparse), Table::Spilled(spilled), Table::Streamed(reader())];
//! for table in tables {
//!     let columns = table.columns(&[0])?;
//!     assert_eq!((columns[0][38], columns[0][39]), (0.0, 1.0));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rayon::prelude::*;

use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Phase;

use super::columns::append_columns;
use super::rows::{BLOCK_ROWS, Reader, Rows, TOGETHER};
use super::sparse::SparseRows;
use super::spilled::SpilledRows;

/// All rows of a data set.
///
/// ```
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::table::Table;
/// use ferrank_runtime::monitor::Phase;
///
/// let mut rows = Rows::with_capacity(3, 2);
/// rows.add(0..3).copy_from_slice(&[0.0, 1.0, 0.5, 1.0, 1.0, 0.0]);
/// let table = Table::Held(rows);
/// assert_eq!(table.columns(&[1])?, [[1.0, 1.0, 0.0]]);
/// let mut n_rows = 0;
/// table.pass(Phase::Coding, |rows| {
///     n_rows += rows.numbers.len();
///     Ok(())
/// })?;
/// assert_eq!(n_rows, 3);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
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
            // The features of a line of the cache, which follow each other, are read together.
            let together = columns.par_chunks_mut(TOGETHER).zip(features.par_chunks(TOGETHER));
            together.for_each(|(columns, features)| {
                columns.iter_mut().for_each(|column| column.reserve(rows.numbers.len()));
                append_columns((rows.values(), rows.width), features, columns);
            });
            Ok(())
        })?;
        Ok(columns)
    }
}
