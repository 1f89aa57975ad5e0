//! Rows as numbers of the distance space, stored row by row, in memory or read anew for each pass.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::ranks::to_weighted_mid_ranks;
use super::space::Scale;
use ferrank_data::column::{FewCategories, MISSING, NO_ENTRY, categories, few_categories, numbers};
use ferrank_data::intake::Intake;
use ferrank_data::matrix_features::{MatrixFeatures, Tile};
use ferrank_data::source::cut;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Phase;
use ferrank_runtime::pages::Large;

/// Rows of a block when columns are transposed to rows.
pub(crate) const BLOCK_ROWS: usize = 64;
/// Columns that are transposed together: the numbers of a cache line.
pub(crate) const TOGETHER: usize = 8;
/// Columns that are converted before they are transposed: of 500 rows they fit a cache. The buffers of all columns
/// of a wide table would be as large as its rows.
const CONVERTED: usize = 256;
/// Values in a tile of rows read anew: few beside the queries, enough to keep threads busy.
const TILE_VALUES: usize = 1 << 20;
/// Columns of a matrix whose rows are read together: of a block of rows they fit the first-level cache where columns are
/// stored one after the other.
const TILE_COLUMNS: usize = 64;
/// Rows that are converted together where all rows are held in memory, if a batch has that many.
const HELD_ROWS: usize = 1 << 10;

/// Rows of `width` features in a tile.
pub fn rows_per_tile(width: usize) -> usize {
    (TILE_VALUES / width.max(1)).max(BLOCK_ROWS)
}

/// Some rows, by ascending number.
///
/// ```
/// use ferrank_neighbors::rows::Rows;
///
/// let mut rows = Rows::with_capacity(3, 2);
/// rows.add([4, 7, 9]).copy_from_slice(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
/// // Rows keep their numbers, wherever they are.
/// assert_eq!((rows.row(7), rows.position(7), rows.span()), (&[0.2, 0.3][..], 1, (4, 10)));
/// let mut some = Rows::with_capacity(2, 2);
/// some.add_some(&rows, &[4, 9]);
/// assert_eq!(some.values(), [0.0, 0.1, 0.4, 0.5]);
/// ```
#[derive(Debug, Default)]
pub struct Rows {
    /// n_rows; ascending.
    pub numbers: Vec<u32>,
    /// Number of features.
    pub width: usize,
    /// n_rows x width, and spare capacity.
    buffer: Large<f64>,
}

impl Rows {
    /// Creates an empty set with capacity for `n_rows` rows of `width` features.
    pub fn with_capacity(n_rows: usize, width: usize) -> Self {
        Rows { numbers: Vec::with_capacity(n_rows), width, buffer: Large::zeros(n_rows * width) }
    }

    /// Creates rows numbered from 0, of `width` features, with these values.
    #[cfg(any(test, feature = "internals"))]
    pub fn from_values(width: usize, values: &[f64]) -> Self {
        let n_rows = values.len() / width;
        let mut rows = Rows::with_capacity(n_rows, width);
        rows.add(0..n_rows as u32).copy_from_slice(values);
        rows
    }

    /// The values, row after row.
    #[cfg(test)]
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.buffer
    }

    /// The values of the row numbered `number`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, number: u32) -> &[f64] {
        &self.buffer[self.position(number) as usize * self.width..][..self.width]
    }

    /// The position of the row numbered `number`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn position(&self, number: u32) -> u32 {
        let after_first = number - self.numbers[0];
        match self.numbers.get(after_first as usize) {
            Some(&found) if found == number => after_first,
            _ => self.numbers.binary_search(&number).expect("one of the rows") as u32,
        }
    }

    /// n_rows x width
    pub fn values(&self) -> &[f64] {
        &self.buffer[..self.numbers.len() * self.width]
    }

    /// The first row number, and the last plus 1; (0, 0) without rows.
    pub fn span(&self) -> (u32, u32) {
        (self.numbers.first().map_or(0, |&first| first), self.numbers.last().map_or(0, |&last| last + 1))
    }

    /// Adds rows numbered `numbers`, within the capacity; returns their values, to be set.
    pub fn add(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut [f64] {
        let start = self.numbers.len() * self.width;
        self.numbers.extend(numbers);
        &mut self.buffer[start..self.numbers.len() * self.width]
    }

    /// Adds the rows of `other` whose numbers are in `wanted`, which is ascending.
    pub fn add_some(&mut self, other: &Rows, wanted: &[u32]) {
        let (first, end) = other.span();
        let inside = wanted.partition_point(|&number| number < first)..wanted.partition_point(|&number| number < end);
        for &number in &wanted[inside] {
            self.add([number]).copy_from_slice(other.row(number));
        }
    }

    /// Replaces the values of `features` by their mid-ranks, the columns of `together` features at a time. Rows count with
    /// these `weights`, or 1 each without weights.
    pub fn rank(&mut self, features: &[usize], weights: &[f64], together: usize) {
        let width = self.width;
        let n = self.numbers.len();
        let mut columns = vec![Vec::new(); together.min(features.len())];
        for features in features.chunks(together.max(1)) {
            let (columns, values) = (&mut columns[..features.len()], &mut self.buffer[..n * width]);
            (columns.par_iter_mut().zip(features)).for_each(|(column, &feature)| {
                column.clear();
                column.extend(values.iter().skip(feature).step_by(width));
                to_weighted_mid_ranks(column, weights);
            });
            values.par_chunks_mut(width * BLOCK_ROWS).enumerate().for_each(|(block, rows)| {
                for (number, row) in (block * BLOCK_ROWS..).zip(rows.chunks_exact_mut(width)) {
                    features.iter().zip(&*columns).for_each(|(&feature, column)| row[feature] = column[number]);
                }
            });
        }
    }

    /// Removes all rows; the capacity stays.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }
}

/// Reads the rows of a source as numbers, pass after pass.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::{Monitor, Phase};
/// # let column = || Arc::new((0..5).map(f64::from).collect::<Float64Array>()) as ArrayRef;
/// # let batch = RecordBatch::try_from_iter([("x", column()), ("y", column())])?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&source, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// use ferrank_neighbors::rows::Reader;
/// use ferrank_neighbors::space::Scale;
///
/// // A feature with the values 0, 1, 2, 3 and 4.
/// let reader = Reader { intake, scales: vec![Scale::Numeric { low: 0.0, high: 4.0 }], n_rows: 5, clip: false };
/// assert_eq!(reader.hold(Phase::Coding, |_, _| Ok(()))?.values(), [0.0, 0.25, 0.5, 0.75, 1.0]);
///
/// // Numbers beyond their scale are an error, or clipped.
/// let reader = Reader { scales: vec![Scale::Numeric { low: 0.0, high: 2.0 }], ..reader };
/// assert!(reader.hold(Phase::Coding, |_, _| Ok(())).is_err());
/// let reader = Reader { clip: true, ..reader };
/// assert_eq!(reader.hold(Phase::Coding, |_, _| Ok(()))?.values(), [0.0, 0.5, 1.0, 1.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<'a> {
    /// The source, and which of its rows are used.
    pub intake: Intake<'a>,
    /// n_features
    pub scales: Vec<Scale>,
    /// Number of rows used.
    pub n_rows: u64,
    /// True to clip numbers beyond their scale; if false, such a number is an error: the source changed between passes.
    pub clip: bool,
}

impl Reader<'_> {
    /// Calls `each` with all rows, tile by tile, each with the batch it was read from.
    ///
    /// # Errors
    /// Errors of reading, and [`Error::Data`] if the rows differ from those of the first pass.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&RecordBatch, &Rows) -> Result<()>) -> Result<()> {
        let together = rows_per_tile(self.scales.len()) as u64;
        let mut tile = Rows::with_capacity(self.n_rows.min(together) as usize, self.scales.len());
        self.parts(phase, rows_per_tile(self.scales.len()), |part, columns| {
            let first = tile.span().1;
            tile.clear();
            self.append(part, first, columns, &mut tile)?;
            each(part, &tile)
        })
    }

    /// Reads all rows into memory; calls `each` with every batch, and the intake that it is of: this one, or the same
    /// without features.
    ///
    /// # Errors
    /// As for [`Reader::pass`].
    pub fn hold(&self, phase: Phase, mut each: impl FnMut(&Intake<'_>, &RecordBatch) -> Result<()>) -> Result<Rows> {
        if let Some(features) = MatrixFeatures::new(&self.intake)
            && let Some(ranges) = Ranges::new(&self.scales)
        {
            return self.hold_matrix(&features, &ranges, phase, each);
        }
        let mut rows = Rows::with_capacity(self.n_rows as usize, self.scales.len());
        // A slice costs as much as a hundred values, in each column.
        let together = rows_per_tile(self.scales.len()).max(HELD_ROWS);
        self.parts(phase, together, |part, columns| {
            self.append(part, rows.span().1, columns, &mut rows)?;
            each(&self.intake, part)
        })?;
        Ok(rows)
    }

    /// As [`hold`](Reader::hold), where all features are numbers of a matrix.
    fn hold_matrix(
        &self,
        features: &MatrixFeatures<'_>,
        ranges: &Ranges,
        phase: Phase,
        mut each: impl FnMut(&Intake<'_>, &RecordBatch) -> Result<()>,
    ) -> Result<Rows> {
        let rest = features.rest();
        let counts = rest.pass(phase, |batch| each(&rest, batch))?;
        let (numbers, width) = (features.rows(counts)?, self.scales.len());
        if numbers.len() as u64 != self.n_rows {
            return Err(self.changed());
        }
        let mut rows = Rows::with_capacity(numbers.len(), width);
        let tiles: Vec<Tile<'_>> = features.tiles(TILE_COLUMNS).collect();
        let blocks = rows.add(0..numbers.len() as u32).par_chunks_mut(BLOCK_ROWS * width.max(1));
        let beyond = blocks.zip(numbers.par_chunks(BLOCK_ROWS)).map(|(out, numbers)| {
            self.intake.monitor.check()?;
            let arch = Arch::new();
            let mut beyond = 0;
            for tile in &tiles {
                for (out, &number) in out.chunks_exact_mut(width).zip(numbers) {
                    let values = &mut out[tile.features.clone()];
                    tile.read(number, values);
                    beyond += arch.dispatch(ranges.normalize(tile.features.clone(), values, self.clip));
                }
            }
            for out in out.chunks_exact_mut(width) {
                ranges.constant.iter().for_each(|&feature| out[feature] = 0.0);
            }
            Ok(beyond)
        });
        let beyond = beyond.collect::<Result<Vec<usize>>>()?.into_iter().sum::<usize>();
        if beyond == 0 { Ok(rows) } else { Err(self.changed()) }
    }

    /// Calls `each` with batches of at most `most` rows, and buffers for their columns.
    fn parts(
        &self,
        phase: Phase,
        most: usize,
        mut each: impl FnMut(&RecordBatch, &mut [Vec<f64>]) -> Result<()>,
    ) -> Result<()> {
        let mut columns = vec![Vec::new(); self.scales.len().min(CONVERTED)];
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

    fn changed(&self) -> Error {
        self.intake.changed()
    }

    /// Appends the rows of `part`, numbered from `first`; `buffers` holds columns that are converted.
    fn append(&self, part: &RecordBatch, first: u32, buffers: &mut [Vec<f64>], rows: &mut Rows) -> Result<()> {
        let (width, features) = (self.scales.len(), &self.intake.problem.features);
        let values = rows.add(first..first + part.num_rows() as u32);
        for start in (0..width).step_by(CONVERTED) {
            let columns: Option<Vec<&[f64]>> =
                (buffers.par_iter_mut().zip(&self.scales[start..]).zip(&features[start..]))
                    .map(|((buffer, scale), feature)| {
                        let array = part.column(feature.column);
                        read(array, scale, buffer).map_err(|error| self.intake.in_column(feature.column, error))
                    })
                    .collect::<Result<_>>()?;
            let columns = columns.ok_or_else(|| self.changed())?;
            let blocks = values.par_chunks_mut(BLOCK_ROWS * width).enumerate();
            let beyond: usize =
                blocks.map(|(block, out)| self.transpose(&columns, start, block * BLOCK_ROWS, out)).sum();
            if beyond > 0 {
                return Err(self.changed());
            }
        }
        Ok(())
    }

    /// Transposes columns, from feature `first_feature` on, to rows, from row `first` on; returns how many numbers are beyond
    /// their scales.
    fn transpose(&self, columns: &[&[f64]], first_feature: usize, first: usize, out: &mut [f64]) -> usize {
        let (arch, n_rows) = (Arch::new(), out.len() / self.scales.len());
        let mut beyond = 0;
        let mut lines = [[0.0; BLOCK_ROWS]; TOGETHER];
        for (start, columns) in (first_feature..).step_by(TOGETHER).zip(columns.chunks(TOGETHER)) {
            for ((line, column), scale) in lines.iter_mut().zip(columns).zip(&self.scales[start..]) {
                let line = &mut line[..n_rows];
                match scale {
                    Scale::Constant => line.fill(0.0),
                    _ => line.copy_from_slice(&column[first..first + n_rows]),
                }
                match *scale {
                    Scale::Numeric { low, high } => {
                        beyond += arch.dispatch(Normalize { values: line, low, high, clip: self.clip });
                    }
                    Scale::Ranked { low, high } => {
                        beyond += line.iter().filter(|value| **value < low || **value > high).count();
                    }
                    Scale::Constant | Scale::Nominal(_) => {}
                }
            }
            for (row, out) in out.chunks_exact_mut(self.scales.len()).enumerate() {
                out[start..].iter_mut().zip(&lines[..columns.len()]).for_each(|(value, line)| *value = line[row]);
            }
        }
        beyond
    }
}

/// The scales of numeric features.
struct Ranges {
    /// n_features; 0 for constant ones.
    low: Vec<f64>,
    /// n_features; infinite for constant ones, which are 0 or missing on this scale.
    length: Vec<f64>,
    /// Numbers of the constant features.
    constant: Vec<usize>,
}

impl Ranges {
    /// `None` if there are other scales, or the length of a range overflows.
    fn new(scales: &[Scale]) -> Option<Self> {
        let mut ranges = Ranges { low: Vec::new(), length: Vec::new(), constant: Vec::new() };
        for (feature, scale) in scales.iter().enumerate() {
            let (low, length) = match *scale {
                Scale::Numeric { low, high } if (high - low).is_finite() => (low, high - low),
                Scale::Constant => {
                    ranges.constant.push(feature);
                    (0.0, f64::INFINITY)
                }
                _ => return None,
            };
            ranges.low.push(low);
            ranges.length.push(length);
        }
        Some(ranges)
    }

    fn normalize<'a>(&'a self, features: Range<usize>, values: &'a mut [f64], clip: bool) -> NormalizeRow<'a> {
        NormalizeRow { values, low: &self.low[features.clone()], length: &self.length[features], clip }
    }
}

/// Scales values of a row to [0, 1], each by its range; returns how many are beyond, or clips them.
struct NormalizeRow<'a> {
    values: &'a mut [f64],
    low: &'a [f64],
    length: &'a [f64],
    clip: bool,
}

impl WithSimd for NormalizeRow<'_> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let NormalizeRow { values, low, length, clip } = self;
        for ((value, low), length) in values.iter_mut().zip(low).zip(length) {
            *value = (*value - low) / length;
        }
        count_beyond(values, clip)
    }
}

/// Number of `values` outside [0, 1], or clips them.
#[inline(always)]
fn count_beyond(values: &mut [f64], clip: bool) -> usize {
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

/// A column as numbers, from the array itself or converted into `buffer`; empty for a constant column. `None` if a
/// category is not in the scale.
fn read<'a>(array: &'a ArrayRef, scale: &Scale, buffer: &'a mut Vec<f64>) -> Result<Option<&'a [f64]>> {
    match scale {
        Scale::Constant => Ok(Some(&[])),
        Scale::Numeric { .. } | Scale::Ranked { .. } => numbers(array, buffer).map(Some),
        Scale::Nominal(names) => {
            if let Some(FewCategories { texts, entries }) = few_categories(array) {
                const UNKNOWN: f64 = -1.0;
                let mut codes = [f64::NAN; 1 + NO_ENTRY as usize];
                for (code, text) in codes.iter_mut().zip(texts) {
                    *code = text.map_or(f64::NAN, |text| names.code(text).map_or(UNKNOWN, f64::from));
                }
                buffer.clear();
                buffer.extend(entries.iter().map(|&entry| codes[usize::from(entry)]));
                let is_known = !codes.contains(&UNKNOWN) || !buffer.contains(&UNKNOWN);
                return Ok(is_known.then_some(&buffer[..]));
            }
            let read = categories(array)?;
            let codes: Option<Vec<u16>> = read.texts.iter().map(|text| names.code(text)).collect();
            Ok(codes.map(|codes| {
                let number = |&position: &u32| match position {
                    MISSING => f64::NAN,
                    _ => codes[position as usize].into(),
                };
                buffer.clear();
                buffer.extend(read.index.iter().map(number));
                &buffer[..]
            }))
        }
    }
}

/// Scales values to [0, 1]; returns how many are beyond, or clips them.
struct Normalize<'a> {
    values: &'a mut [f64],
    low: f64,
    high: f64,
    clip: bool,
}

impl WithSimd for Normalize<'_> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let Normalize { values, low, high, clip } = self;
        for value in &mut *values {
            *value = Scale::normalize(*value, low, high);
        }
        count_beyond(values, clip)
    }
}
