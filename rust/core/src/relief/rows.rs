//! Rows as numbers of the distance space, row by row, held together or read anew for each pass.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use rayon::prelude::*;

use super::space::Scale;
use super::sparse::SparseRows;
use crate::column::{MISSING, categories, numeric_values};
use crate::error::{Error, Result};
use crate::intake::Intake;
use crate::monitor::Phase;
use crate::pages::in_large_pages;

/// Rows turned over together when columns become rows.
const TURN: usize = 64;
/// Values in a tile that is read anew: small enough beside the queries, large enough to keep threads busy.
const TILE_VALUES: usize = 1 << 20;

/// Some rows, by ascending number.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// n_rows; ascending.
    pub(crate) numbers: Vec<u32>,
    /// Number of features.
    pub(crate) width: usize,
    /// n_rows x width
    pub(crate) values: Vec<f64>,
}

impl Rows {
    /// The row called `number`, which is one of them.
    pub(crate) fn row(&self, number: u32) -> &[f64] {
        let after_first = (number - self.numbers[0]) as usize;
        let place = match self.numbers.get(after_first) {
            Some(&found) if found == number => after_first,
            _ => self.numbers.binary_search(&number).expect("one of the rows"),
        };
        &self.values[place * self.width..(place + 1) * self.width]
    }

    /// First number, and the one after the last.
    pub(crate) fn span(&self) -> (u32, u32) {
        (self.numbers.first().map_or(0, |&first| first), self.numbers.last().map_or(0, |&last| last + 1))
    }

    /// No rows, with room for `n_rows` of `width` features.
    pub(crate) fn with_room(n_rows: usize, width: usize) -> Self {
        Rows { numbers: Vec::with_capacity(n_rows), width, values: in_large_pages(Vec::with_capacity(n_rows * width)) }
    }

    /// Appends those rows of `other` whose numbers are in `wanted`, which ascends.
    pub(crate) fn append_some(&mut self, other: &Rows, wanted: &[u32]) {
        let (first, end) = other.span();
        let inside = wanted.partition_point(|&number| number < first)..wanted.partition_point(|&number| number < end);
        self.width = other.width;
        for &number in &wanted[inside] {
            self.numbers.push(number);
            self.values.extend_from_slice(other.row(number));
        }
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.values.clear();
    }
}

/// All rows, wherever they are.
pub(crate) enum Table<'a> {
    /// In memory.
    Held(Rows),
    /// In memory, by what is unusual.
    Sparse(SparseRows),
    /// In their source.
    Streamed(Reader<'a>),
}

impl Table<'_> {
    /// Hands all rows to `each`, in order: at once, or tile by tile.
    pub(crate) fn pass(&self, phase: Phase, mut each: impl FnMut(&Rows) -> Result<()>) -> Result<()> {
        match self {
            Table::Held(rows) => each(rows),
            Table::Sparse(rows) => rows.expand(TURN, each),
            Table::Streamed(reader) => reader.pass(phase, |_, rows| each(rows)),
        }
    }

    /// Columns number `features`, each over all rows.
    pub(crate) fn columns(&self, features: &[usize]) -> Result<Vec<Vec<f64>>> {
        if let Table::Sparse(rows) = self {
            return Ok(rows.columns(features));
        }
        let mut columns = vec![Vec::new(); features.len()];
        self.pass(Phase::Coding, |rows| {
            for (column, &feature) in columns.iter_mut().zip(features) {
                column.extend(rows.values.iter().skip(feature).step_by(rows.width));
            }
            Ok(())
        })?;
        Ok(columns)
    }
}

/// A source whose rows are turned into numbers, pass after pass.
pub(crate) struct Reader<'a> {
    pub(crate) intake: Intake<'a>,
    /// n_features
    pub(crate) scales: Vec<Scale>,
    /// Rows that take part.
    pub(crate) n_rows: u64,
    /// Whether numbers outside of their scale count as its nearest end, and are no sign of other rows.
    pub(crate) clip: bool,
}

impl Reader<'_> {
    /// Hands every row to `each`, in tiles, with the batch that it comes from.
    ///
    /// # Errors
    /// Besides what reading gives: [`Error::Data`] if the pass meets other rows than the first did.
    pub(crate) fn pass(&self, phase: Phase, mut each: impl FnMut(&RecordBatch, &Rows) -> Result<()>) -> Result<()> {
        let mut tile = Rows::default();
        self.parts(phase, |part, columns| {
            let first = tile.span().1;
            tile.clear();
            self.append(part, first, columns, &mut tile)?;
            each(part, &tile)
        })
    }

    /// All rows together; the batches that they come from go to `each`.
    ///
    /// # Errors
    /// Those of [`Reader::pass`].
    pub(crate) fn hold(&self, phase: Phase, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Rows> {
        let mut rows = Rows::with_room(self.n_rows as usize, self.scales.len());
        self.parts(phase, |part, columns| {
            self.append(part, rows.span().1, columns, &mut rows)?;
            each(part)
        })?;
        Ok(rows)
    }

    /// Hands batches of few rows to `each`, with room for their columns.
    fn parts(&self, phase: Phase, mut each: impl FnMut(&RecordBatch, &mut [Vec<f64>]) -> Result<()>) -> Result<()> {
        let most = (TILE_VALUES / self.scales.len().max(1)).max(TURN);
        let mut columns = vec![Vec::new(); self.scales.len()];
        let mut n_rows = 0;
        let counts = self.intake.pass(phase, |batch| {
            for start in (0..batch.num_rows()).step_by(most) {
                let part = batch.slice(start, most.min(batch.num_rows() - start));
                n_rows += part.num_rows() as u64;
                if n_rows > self.n_rows {
                    return Err(self.changed());
                }
                each(&part, &mut columns)?;
            }
            Ok(())
        })?;
        if counts.kept == self.n_rows { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> Error {
        self.intake.changed()
    }

    /// Appends the rows of `part`, which number from `first`.
    fn append(&self, part: &RecordBatch, first: u32, columns: &mut [Vec<f64>], rows: &mut Rows) -> Result<()> {
        let features = &self.intake.problem.features;
        let unknown = AtomicU64::new(0);
        (columns.par_iter_mut().zip(&self.scales).zip(features)).try_for_each(|((column, scale), feature)| {
            let lost = read(part, feature.column, scale, self.clip, column)
                .map_err(|error| self.intake.in_column(feature.column, error))?;
            unknown.fetch_add(lost, Relaxed);
            Ok(())
        })?;
        if unknown.into_inner() > 0 {
            return Err(self.changed());
        }
        let (n_rows, width, end) = (part.num_rows(), columns.len(), rows.values.len());
        rows.width = width;
        rows.numbers.extend(first..first + n_rows as u32);
        rows.values.resize(end + n_rows * width, 0.0);
        rows.values[end..].par_chunks_mut(TURN * width.max(1)).enumerate().for_each(|(block, out)| {
            let start = block * TURN;
            for (i, column) in columns.iter().enumerate() {
                for (row, value) in out.chunks_exact_mut(width).zip(&column[start..]) {
                    row[i] = *value;
                }
            }
        });
        Ok(())
    }
}

/// Sets `values` to a column as numbers; gives how many of them have no place on the scale.
fn read(part: &RecordBatch, column: usize, scale: &Scale, clip: bool, values: &mut Vec<f64>) -> Result<u64> {
    let array = part.column(column);
    values.clear();
    match scale {
        Scale::Constant => values.resize(part.num_rows(), 0.0),
        Scale::Numeric { low, high } => {
            numeric_values(array, values)?;
            values.iter_mut().for_each(|value| *value = Scale::place(*value, *low, *high));
            if clip {
                values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
            }
            return Ok(values.iter().filter(|value| **value < 0.0 || **value > 1.0).count() as u64);
        }
        Scale::Nominal(names) => {
            let read = categories(array)?;
            let codes: Vec<Option<u16>> = read.texts.iter().map(|text| names.code(text)).collect();
            let number = |&position: &u32| match position {
                MISSING => f64::NAN,
                _ => codes[position as usize].map_or(f64::NAN, f64::from),
            };
            values.extend(read.index.iter().map(number));
            return Ok(codes.iter().filter(|code| code.is_none()).count() as u64);
        }
    }
    Ok(0)
}
