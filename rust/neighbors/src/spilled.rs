//! Rows in a temporary file, feature by feature, for ranks of rows that do not fit in memory.
//!
//! ```text
//! read the rows once, write their columns to the file
//! for each feature to be ranked: read its column, rank it, write it back
//! each pass: gather tiles of rows from the columns, which are mapped
//! ```
//!
//! Memory: while columns are ranked 24 bytes a row for each of them, else a tile of rows. On disk: 8 bytes a value.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use arrow_array::RecordBatch;
use arrow_buffer::ScalarBuffer;
use bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::ranks::{RANKING_BYTES, to_weighted_mid_ranks, without_ones};
use super::rows::{BLOCK_ROWS, Reader, Rows, rows_per_tile};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::scratch::Scratch;

/// Bytes of a row in a column that is ranked.
pub const COLUMN_BYTES: usize = size_of::<f64>() + RANKING_BYTES;

/// All rows, in a file without a name.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::{monitor::{Monitor, Phase}, scratch::Scratch};
/// # let column = |values: [f64; 4]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
/// # let columns = [("x", column([3.0, 1000.0, 1.0, 3.0])), ("y", column([0.0, 1.0, 2.0, 3.0]))];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&source, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// use ferrank_neighbors::rows::Reader;
/// use ferrank_neighbors::space::Scale;
/// use ferrank_neighbors::spilled::SpilledRows;
///
/// // The only feature has the values 3, 1000, 1 and 3.
/// let scales = vec![Scale::Ranked { low: 1.0, high: 1000.0 }];
/// let reader = Reader { intake, scales, n_rows: 4, clip: false };
/// let rows = SpilledRows::new(&reader, &[0], &Scratch::new(None), 1 << 20, |_| Ok(()))?;
/// // By ranks, 1000 is no farther from 3 than 1 is.
/// assert_eq!(rows.column(0), [0.5, 1.0, 0.0, 0.5]);
/// rows.pass(Phase::Searching, |tile| {
///     assert_eq!(tile.row(2), [0.0]);
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SpilledRows<'a> {
    /// n_features x n_rows
    values: ScalarBuffer<f64>,
    n_rows: usize,
    n_features: usize,
    monitor: &'a Monitor,
}

/// The columns of a file, while they are written.
struct Columns<'a> {
    file: File,
    scratch: &'a Scratch,
    n_rows: usize,
}

impl Columns<'_> {
    /// Moves to row `row` of the column of `feature`.
    fn seek(&mut self, feature: usize, row: usize) -> Result<()> {
        let at = SeekFrom::Start(((feature * self.n_rows + row) * size_of::<f64>()) as u64);
        self.file.seek(at).map(drop).map_err(|error| self.scratch.failed(error))
    }

    fn write(&mut self, feature: usize, row: usize, values: &[f64]) -> Result<()> {
        self.seek(feature, row)?;
        self.file.write_all(cast_slice(values)).map_err(|error| self.scratch.failed(error))
    }

    fn read(&mut self, feature: usize, values: &mut [f64]) -> Result<()> {
        self.seek(feature, 0)?;
        self.file.read_exact(cast_slice_mut(values)).map_err(|error| self.scratch.failed(error))
    }
}

impl<'a> SpilledRows<'a> {
    /// Writes all rows to a file in `scratch`, then replaces the values of the features `ranked` by their mid-ranks, in which
    /// rows count with their weights. Holds at most `memory` bytes, or those of one column. Calls `each` with every batch.
    ///
    /// # Errors
    /// Errors of reading, of `each`, and a full disk.
    pub fn new(
        reader: &Reader<'a>,
        ranked: &[usize],
        scratch: &Scratch,
        memory: usize,
        mut each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<Self> {
        let (n_rows, n_features, monitor) = (reader.n_rows as usize, reader.scales.len(), reader.intake.monitor);
        let bytes = size_of::<f64>() * n_rows * n_features;
        scratch.check(bytes as u64, &format!("the values of {n_rows} rows"))?;
        let mut columns = Columns { file: scratch.file()?, scratch, n_rows };
        let mut waiting: Vec<Vec<f64>> = vec![Vec::new(); n_features];
        let most = (memory / (size_of::<f64>() * n_features)).max(BLOCK_ROWS);
        let (mut written, mut weights) = (0, Vec::new());
        let mut flush = |waiting: &mut [Vec<f64>]| {
            for (feature, values) in waiting.iter_mut().enumerate() {
                columns.write(feature, written, values)?;
            }
            written += waiting[0].len();
            waiting.iter_mut().for_each(Vec::clear);
            Ok::<_, Error>(())
        };
        reader.pass(Phase::Coding, |batch, tile| {
            if !waiting[0].is_empty() && waiting[0].len() + tile.numbers.len() > most {
                flush(&mut waiting)?;
            }
            waiting.par_iter_mut().enumerate().for_each(|(feature, values)| {
                values.extend(tile.values().iter().skip(feature).step_by(n_features));
            });
            if let Some(column) = reader.intake.problem.weight {
                weights.extend(reader.intake.weights(batch, column)?);
            }
            each(batch)
        })?;
        let weights = without_ones(weights);
        flush(&mut waiting)?;
        drop(waiting);
        for features in ranked.chunks((memory / (COLUMN_BYTES * n_rows)).max(1)) {
            monitor.check()?;
            let mut held = vec![vec![0.0; n_rows]; features.len()];
            for (&feature, values) in features.iter().zip(&mut held) {
                columns.read(feature, values)?;
            }
            held.par_iter_mut().for_each(|values| {
                to_weighted_mid_ranks(values, &weights);
            });
            for (&feature, values) in features.iter().zip(&held) {
                columns.write(feature, 0, values)?;
            }
        }
        let values = ScalarBuffer::new(scratch.map(&columns.file)?, 0, n_rows * n_features);
        Ok(SpilledRows { values, n_rows, n_features, monitor })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// The column of `feature`.
    pub fn column(&self, feature: usize) -> &[f64] {
        &self.values[feature * self.n_rows..][..self.n_rows]
    }

    /// Calls `each` with all rows, tile by tile.
    ///
    /// # Errors
    /// Errors of `each`, and a requested stop.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&Rows) -> Result<()>) -> Result<()> {
        let width = self.n_features;
        self.monitor.enter(phase, self.n_rows as u64);
        let together = rows_per_tile(width).min(self.n_rows);
        let mut tile = Rows::with_capacity(together, width);
        for first in (0..self.n_rows).step_by(together) {
            self.monitor.check()?;
            let end = (first + together).min(self.n_rows);
            tile.clear();
            let values = tile.add(first as u32..end as u32);
            values.par_chunks_mut(width * BLOCK_ROWS).enumerate().for_each(|(block, rows)| {
                let start = first + block * BLOCK_ROWS;
                for feature in 0..width {
                    let column = &self.column(feature)[start..];
                    rows.iter_mut().skip(feature).step_by(width).zip(column).for_each(|(value, &known)| *value = known);
                }
            });
            each(&tile)?;
            self.monitor.advance((end - first) as u64);
        }
        Ok(())
    }
}
