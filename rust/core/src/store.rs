//! The code store: features as small integers, in bands of features within chunks of rows, and the
//! raw values of the targets.
//!
//! Memory: one byte for each value of a feature with at most 255 codes, two for the others, eight for
//! each value of a target.

pub(crate) mod bands;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use rayon::prelude::*;

use bands::Bands;

use crate::column::{MISSING, categories, numeric_values};
use crate::error::Result;
use crate::intake::{CHUNK_ROWS, Counts, Intake};
use crate::monitor::Phase;
use crate::profile::{Categories, Coding, ColumnProfile, MISSING_U8, MISSING_U16, Profile, Scale};

/// An unsigned integer that codes are kept in.
pub(crate) trait Code: Copy + Ord + Send + Sync + Default + 'static {
    /// The code of a missing value.
    const MISSING: Self;
    /// `code`, which fits.
    fn from_u16(code: u16) -> Self;
    /// The code as an index.
    fn index(self) -> usize;
}

impl Code for u8 {
    const MISSING: u8 = MISSING_U8;
    fn from_u16(code: u16) -> u8 {
        code as u8
    }
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl Code for u16 {
    const MISSING: u16 = MISSING_U16;
    fn from_u16(code: u16) -> u16 {
        code
    }
    fn index(self) -> usize {
        usize::from(self)
    }
}

/// A type of codes that a chunk holds.
pub(crate) trait Stored: Code {
    /// The codes of this type.
    fn of(chunk: &Chunk) -> &Bands<Self>;
}

impl Stored for u8 {
    fn of(chunk: &Chunk) -> &Bands<u8> {
        &chunk.narrow
    }
}

impl Stored for u16 {
    fn of(chunk: &Chunk) -> &Bands<u16> {
        &chunk.wide
    }
}

/// Where the codes of a feature lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Position among the features of one byte.
    Narrow(usize),
    /// Position among the features of two bytes.
    Wide(usize),
}

/// Codes of consecutive rows.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) rows: usize,
    pub(crate) narrow: Bands<u8>,
    pub(crate) wide: Bands<u16>,
}

/// The values of one target.
#[derive(Debug)]
pub(crate) enum TargetColumn {
    /// n_rows; NaN where missing.
    Numeric(Vec<f64>),
    /// n_rows codes, [`MISSING_U16`] where missing.
    Nominal {
        /// The categories.
        categories: Categories,
        /// n_rows.
        codes: Vec<u16>,
    },
}

/// Every row that takes part, as codes.
#[derive(Debug)]
pub(crate) struct CodeStore {
    /// Rows in all chunks.
    pub(crate) rows: usize,
    /// [`CHUNK_ROWS`] rows each but the last.
    pub(crate) chunks: Vec<Chunk>,
    /// n_features.
    pub(crate) codings: Vec<Coding>,
    /// n_features.
    pub(crate) slots: Vec<Slot>,
    /// n_targets.
    pub(crate) targets: Vec<TargetColumn>,
    /// n_rows; empty without weights.
    pub(crate) weights: Vec<f64>,
}

impl CodeStore {
    /// Codes what `intake` gives, of which the first pass met `expected`, in a second pass, columns in parallel on the current pool.
    ///
    /// # Errors
    /// Besides what reading gives: [`Error::Data`](crate::Error::Data) if the pass meets other rows than
    /// the profile did.
    pub(crate) fn of(intake: &Intake<'_>, profile: &Profile, expected: Counts) -> Result<Self> {
        let mut store = CodeStore::empty(profile, expected.kept() as usize);
        let mut first_row = 0;
        let counts = intake.pass(Phase::Coding, |batch| {
            if first_row + batch.num_rows() > store.rows {
                return Err(intake.changed());
            }
            store.add(intake, batch, first_row)?;
            first_row += batch.num_rows();
            Ok(())
        })?;
        if counts != expected {
            return Err(intake.changed());
        }
        Ok(store)
    }

    fn empty(profile: &Profile, rows: usize) -> Self {
        let codings = profile.codings();
        let (mut narrow, mut wide) = (0, 0);
        let slots = codings
            .iter()
            .map(|coding| {
                let next = if coding.is_narrow() { &mut narrow } else { &mut wide };
                *next += 1;
                if coding.is_narrow() { Slot::Narrow(*next - 1) } else { Slot::Wide(*next - 1) }
            })
            .collect();
        let chunk = |first: usize| {
            let rows = CHUNK_ROWS.min(rows - first);
            Chunk { rows, narrow: Bands::new(narrow, rows), wide: Bands::new(wide, rows) }
        };
        CodeStore {
            rows,
            chunks: (0..rows).step_by(CHUNK_ROWS).map(chunk).collect(),
            codings,
            slots,
            targets: profile.targets.iter().map(|column| TargetColumn::empty(column, rows)).collect(),
            weights: Vec::new(),
        }
    }

    /// Bytes that the codes of a row take.
    pub(crate) fn row_bytes(&self) -> usize {
        self.chunks.first().map_or(0, |chunk| chunk.narrow.row_bytes() + chunk.wide.row_bytes())
    }

    fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch, first_row: usize) -> Result<()> {
        let problem = intake.problem;
        add_targets(&mut self.targets, intake, batch)?;
        if let Some(column) = problem.weight {
            self.weights.extend(intake.weights(batch, column)?);
        }
        let mut done = 0;
        while done < batch.num_rows() {
            let row = first_row + done;
            let chunk = &mut self.chunks[row / CHUNK_ROWS];
            let offset = row % CHUNK_ROWS;
            let part = batch.slice(done, (batch.num_rows() - done).min(chunk.rows - offset));
            chunk.fill(intake, &part, offset, &self.codings, &self.slots)?;
            done += part.num_rows();
        }
        Ok(())
    }
}

impl Chunk {
    fn fill(
        &mut self,
        intake: &Intake<'_>,
        part: &RecordBatch,
        offset: usize,
        codings: &[Coding],
        slots: &[Slot],
    ) -> Result<()> {
        let features = |wanted: fn(&Slot) -> bool| -> Vec<usize> {
            slots.iter().enumerate().filter(|(_, slot)| wanted(slot)).map(|(feature, _)| feature).collect()
        };
        let coder = Coder { intake, part, codings, unknown: AtomicU64::new(0) };
        coder.fill(&mut self.narrow, offset, &features(|slot| matches!(slot, Slot::Narrow(_))))?;
        coder.fill(&mut self.wide, offset, &features(|slot| matches!(slot, Slot::Wide(_))))?;
        match coder.unknown.into_inner() {
            0 => Ok(()),
            _ => Err(intake.changed()),
        }
    }
}

/// Codes of a batch of rows.
struct Coder<'a> {
    intake: &'a Intake<'a>,
    part: &'a RecordBatch,
    codings: &'a [Coding],
    /// Values that have no code.
    unknown: AtomicU64,
}

impl Coder<'_> {
    /// Writes the codes of `features`, in the order of their slots, from row `offset` on.
    fn fill<C: Code>(&self, bands: &mut Bands<C>, offset: usize, features: &[usize]) -> Result<()> {
        let bands: Vec<_> = bands.iter_mut().zip(features.chunks(bands::BAND)).collect();
        bands.into_par_iter().try_for_each(|(cells, features)| {
            let cells = &mut cells[offset..];
            features.iter().enumerate().try_for_each(|(lane, &feature)| {
                let column = self.intake.problem.features[feature].column;
                self.encode(column, &self.codings[feature], |row, code| cells[row][lane] = code)
                    .map_err(|error| self.intake.in_column(column, error))
            })
        })
    }

    fn encode<C: Code>(&self, column: usize, coding: &Coding, mut emit: impl FnMut(usize, C)) -> Result<()> {
        let column = self.part.column(column);
        match &coding.scale {
            Scale::Numeric(cuts) => {
                let mut values = Vec::with_capacity(self.part.num_rows());
                numeric_values(column, &mut values)?;
                cuts.encode(&values, u16::MAX, |row, code| {
                    emit(row, if code == u16::MAX { C::MISSING } else { C::from_u16(code) });
                });
            }
            Scale::Nominal(names) => {
                let read = categories(column)?;
                let codes: Vec<Option<u16>> = read.texts.iter().map(|text| names.code(text)).collect();
                self.unknown.fetch_add(codes.iter().filter(|code| code.is_none()).count() as u64, Relaxed);
                for (row, &position) in read.index.iter().enumerate() {
                    let code = if position == MISSING { None } else { codes[position as usize] };
                    emit(row, code.map_or(C::MISSING, C::from_u16));
                }
            }
        }
        Ok(())
    }
}

/// Appends the targets in `batch`.
pub(crate) fn add_targets(targets: &mut [TargetColumn], intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
    targets.iter_mut().zip(&intake.problem.targets).try_for_each(|(target, attribute)| {
        target.add(batch, attribute.column).map_err(|error| intake.in_column(attribute.column, error))
    })
}

impl TargetColumn {
    /// The column that `profile` describes, with room for `rows` rows.
    pub(crate) fn empty(profile: &ColumnProfile, rows: usize) -> Self {
        match profile {
            ColumnProfile::Numeric(_) => TargetColumn::Numeric(Vec::with_capacity(rows)),
            ColumnProfile::Nominal(nominal) => TargetColumn::Nominal {
                categories: Categories::new(nominal.counts.keys().cloned()),
                codes: Vec::with_capacity(rows),
            },
        }
    }

    fn add(&mut self, batch: &RecordBatch, column: usize) -> Result<()> {
        match self {
            TargetColumn::Numeric(values) => numeric_values(batch.column(column), values),
            TargetColumn::Nominal { categories: names, codes } => {
                let read = categories(batch.column(column))?;
                let code: Vec<u16> = read.texts.iter().map(|text| names.code(text).unwrap_or(MISSING_U16)).collect();
                codes.extend(read.index.iter().map(|&position| match position {
                    MISSING => MISSING_U16,
                    _ => code[position as usize],
                }));
                Ok(())
            }
        }
    }
}
