//! Rows as numbers of the distance space, row by row, held together or read anew for each pass.

use arrow_array::{ArrayRef, RecordBatch};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::space::Scale;
use ferrank_data::column::{MISSING, categories, numbers};
use ferrank_data::intake::Intake;
use ferrank_data::source::cut;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Phase;
use ferrank_runtime::pages::Large;

/// Rows turned over together when columns become rows.
pub(crate) const TURN: usize = 64;
/// Columns that become rows together: the numbers of a cache line.
const ABREAST: usize = 8;
/// Values in a tile that is read anew: small enough beside the queries, large enough to keep threads busy.
const TILE_VALUES: usize = 1 << 20;

/// Some rows, by ascending number.
#[derive(Debug, Default)]
pub struct Rows {
    /// n_rows; ascending.
    pub numbers: Vec<u32>,
    /// Number of features.
    pub width: usize,
    /// n_rows x width, and room for more.
    room: Large<f64>,
}

impl Rows {
    /// None, with room for `n_rows` of `width` features.
    pub fn with_room(n_rows: usize, width: usize) -> Self {
        Rows { numbers: Vec::with_capacity(n_rows), width, room: Large::zeros(n_rows * width) }
    }

    /// Rows from number 0 on, of `width` features, with these values.
    #[cfg(any(test, feature = "internals"))]
    pub fn of(width: usize, values: &[f64]) -> Self {
        let n_rows = values.len() / width;
        let mut rows = Rows::with_room(n_rows, width);
        rows.add(0..n_rows as u32).copy_from_slice(values);
        rows
    }

    /// The values, row after row.
    #[cfg(test)]
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.room
    }

    /// The row called `number`, which is one of them.
    pub fn row(&self, number: u32) -> &[f64] {
        &self.room[self.place(number) as usize * self.width..][..self.width]
    }

    /// How many rows are before the one called `number`, which is one of them.
    pub fn place(&self, number: u32) -> u32 {
        let after_first = number - self.numbers[0];
        match self.numbers.get(after_first as usize) {
            Some(&found) if found == number => after_first,
            _ => self.numbers.binary_search(&number).expect("one of the rows") as u32,
        }
    }

    /// n_rows x width
    pub fn values(&self) -> &[f64] {
        &self.room[..self.numbers.len() * self.width]
    }

    /// First number, and the one after the last.
    pub fn span(&self) -> (u32, u32) {
        (self.numbers.first().map_or(0, |&first| first), self.numbers.last().map_or(0, |&last| last + 1))
    }

    /// Adds rows called `numbers`, for which there is room; gives their values, to be set.
    pub fn add(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut [f64] {
        let start = self.numbers.len() * self.width;
        self.numbers.extend(numbers);
        &mut self.room[start..self.numbers.len() * self.width]
    }

    /// Adds those rows of `other` whose numbers are in `nearest_params`, which ascends.
    pub fn add_some(&mut self, other: &Rows, wanted: &[u32]) {
        let (first, end) = other.span();
        let inside = wanted.partition_point(|&number| number < first)..wanted.partition_point(|&number| number < end);
        for &number in &wanted[inside] {
            self.add([number]).copy_from_slice(other.row(number));
        }
    }

    /// Forgets all rows; their room stays.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }
}

/// A source whose rows are turned into numbers, pass after pass.
pub struct Reader<'a> {
    /// The rows that take part.
    pub intake: Intake<'a>,
    /// n_features
    pub scales: Vec<Scale>,
    /// Rows that take part.
    pub n_rows: u64,
    /// Whether numbers outside of their scale count as its nearest end, and are no sign of other rows.
    pub clip: bool,
}

impl Reader<'_> {
    /// Hands every row to `each`, in tiles, with the batch that it comes from.
    ///
    /// # Errors
    /// Besides what reading gives: [`Error::Data`] if the pass meets other rows than the first did.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&RecordBatch, &Rows) -> Result<()>) -> Result<()> {
        let mut tile = Rows::with_room(self.n_rows.min(self.rows_per_tile() as u64) as usize, self.scales.len());
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
    pub fn hold(&self, phase: Phase, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Rows> {
        let mut rows = Rows::with_room(self.n_rows as usize, self.scales.len());
        self.parts(phase, |part, columns| {
            self.append(part, rows.span().1, columns, &mut rows)?;
            each(part)
        })?;
        Ok(rows)
    }

    /// Hands batches of few rows to `each`, with room for their columns.
    fn parts(&self, phase: Phase, mut each: impl FnMut(&RecordBatch, &mut [Vec<f64>]) -> Result<()>) -> Result<()> {
        let most = self.rows_per_tile();
        let mut columns = vec![Vec::new(); self.scales.len()];
        let mut n_rows = 0;
        let counts = self.intake.pass(phase, |batch| {
            for part in cut(batch.clone(), most) {
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

    fn rows_per_tile(&self) -> usize {
        (TILE_VALUES / self.scales.len().max(1)).max(TURN)
    }

    fn changed(&self) -> Error {
        self.intake.changed()
    }

    /// Appends the rows of `part`, which number from `first`, with room for its columns.
    fn append(&self, part: &RecordBatch, first: u32, room: &mut [Vec<f64>], rows: &mut Rows) -> Result<()> {
        let columns: Option<Vec<&[f64]>> = (room.par_iter_mut().zip(&self.scales).zip(&self.intake.problem.features))
            .map(|((room, scale), feature)| {
                let array = part.column(feature.column);
                read(array, scale, room).map_err(|error| self.intake.in_column(feature.column, error))
            })
            .collect::<Result<_>>()?;
        let columns = columns.ok_or_else(|| self.changed())?;
        let values = rows.add(first..first + part.num_rows() as u32);
        let blocks = values.par_chunks_mut(TURN * columns.len().max(1)).enumerate();
        let beyond: usize = blocks.map(|(block, out)| self.turn(&columns, block * TURN, out)).sum();
        if beyond == 0 { Ok(()) } else { Err(self.changed()) }
    }

    /// Makes rows of columns, from row `first` on; gives how many of their numbers are beyond their scales.
    fn turn(&self, columns: &[&[f64]], first: usize, out: &mut [f64]) -> usize {
        let (arch, n_rows) = (Arch::new(), out.len() / columns.len());
        let mut beyond = 0;
        let mut lines = [[0.0; TURN]; ABREAST];
        for (start, columns) in (0..).step_by(ABREAST).zip(columns.chunks(ABREAST)) {
            for ((line, column), scale) in lines.iter_mut().zip(columns).zip(&self.scales[start..]) {
                let line = &mut line[..n_rows];
                match scale {
                    Scale::Constant => line.fill(0.0),
                    _ => line.copy_from_slice(&column[first..first + n_rows]),
                }
                if let Scale::Numeric { low, high } = *scale {
                    beyond += arch.dispatch(Place { values: line, low, high, clip: self.clip });
                }
            }
            for (row, out) in out.chunks_exact_mut(self.scales.len()).enumerate() {
                out[start..].iter_mut().zip(&lines[..columns.len()]).for_each(|(value, line)| *value = line[row]);
            }
        }
        beyond
    }
}

/// A column as numbers, its own or put in `room`; none for a constant one. `None` if a category has none.
fn read<'a>(array: &'a ArrayRef, scale: &Scale, room: &'a mut Vec<f64>) -> Result<Option<&'a [f64]>> {
    match scale {
        Scale::Constant => Ok(Some(&[])),
        Scale::Numeric { .. } => numbers(array, room).map(Some),
        Scale::Nominal(names) => {
            let read = categories(array)?;
            let codes: Option<Vec<u16>> = read.texts.iter().map(|text| names.code(text)).collect();
            Ok(codes.map(|codes| {
                let number = |&position: &u32| match position {
                    MISSING => f64::NAN,
                    _ => codes[position as usize].into(),
                };
                room.clear();
                room.extend(read.index.iter().map(number));
                &room[..]
            }))
        }
    }
}

/// Puts values in their places on a scale; gives how many have none. Beyond its ends there are places where values are
/// clipped.
struct Place<'a> {
    values: &'a mut [f64],
    low: f64,
    high: f64,
    clip: bool,
}

impl WithSimd for Place<'_> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let Place { values, low, high, clip } = self;
        for value in &mut *values {
            *value = Scale::place(*value, low, high);
        }
        if clip {
            values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
            return 0;
        }
        let mut beyond = 0;
        for value in values {
            beyond += usize::from(*value < 0.0 || *value > 1.0);
        }
        beyond
    }
}
