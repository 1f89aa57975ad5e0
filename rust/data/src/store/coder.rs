//! Values to codes: a batch of rows into the bands of a chunk and the entries of sparse features, columns in parallel on the
//! current pool.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::{ArrayRef, RecordBatch};
use rayon::prelude::*;

use super::bands::{BAND, Bands};
use super::entries::EntryList;
use super::{Chunk, Code, Codebook, Slot};
use crate::column::{MISSING, categories, for_pieces};
use crate::intake::Intake;
use crate::profile::{Coding, Scale};
use ferrank_runtime::error::Result;

/// Codes of a batch of rows.
pub(super) struct Coder<'a> {
    intake: &'a Intake<'a>,
    part: &'a RecordBatch,
    book: &'a Codebook,
    /// n_features; the column of each feature in the batch, if it is there.
    columns: &'a [Option<usize>],
    /// Values that have no code.
    unknown: AtomicU64,
}

impl<'a> Coder<'a> {
    /// For the rows of `part`, a batch of `intake`.
    pub(super) fn new(
        intake: &'a Intake<'a>,
        part: &'a RecordBatch,
        book: &'a Codebook,
        columns: &'a [Option<usize>],
    ) -> Self {
        Coder { intake, part, book, columns, unknown: AtomicU64::new(0) }
    }

    /// Writes the codes into `chunk` from row `offset` on, and those of sparse features, whose rows are counted from
    /// `first_row`, into `entries`.
    pub(super) fn fill(
        self,
        chunk: &mut Chunk,
        offset: usize,
        entries: &mut [EntryList],
        first_row: usize,
    ) -> Result<()> {
        self.fill_bands(&mut chunk.narrow, offset, |slot| matches!(slot, Slot::Narrow(_)))?;
        self.fill_bands(&mut chunk.wide, offset, |slot| matches!(slot, Slot::Wide(_)))?;
        self.fill_entries(entries, first_row)?;
        match self.unknown.into_inner() {
            0 => Ok(()),
            _ => Err(self.intake.changed()),
        }
    }

    /// Writes the codes of the features with a slot that is `wanted`, in the order of their slots, from row `offset` on.
    fn fill_bands<C: Code>(&self, bands: &mut Bands<C>, offset: usize, wanted: fn(&Slot) -> bool) -> Result<()> {
        let features = self.book.features_at(wanted);
        let bands: Vec<_> = bands.iter_mut().zip(features.chunks(BAND)).collect();
        bands.into_par_iter().try_for_each(|(cells, features)| {
            let cells = &mut cells[offset..];
            features.iter().enumerate().try_for_each(|(lane, &feature)| {
                let Some(column) = self.columns[feature] else { return Ok(()) };
                self.encode(column, &self.book.codings[feature], |row, code| cells[row][lane] = code)
                    .map_err(|error| self.intake.in_column(column, error))
            })
        })
    }

    fn fill_entries(&self, entries: &mut [EntryList], first_row: usize) -> Result<()> {
        let features = self.book.features_at(|slot| matches!(slot, Slot::Sparse(_)));
        entries.par_iter_mut().zip(&features).zip(&self.book.zeros).try_for_each(|((list, &feature), &zero)| {
            let Some(column) = self.columns[feature] else { return Ok(()) };
            let push = |row, code: u16| {
                if code != zero {
                    list.push((first_row + row) as u32, code);
                }
            };
            self.encode(column, &self.book.codings[feature], push).map_err(|error| self.intake.in_column(column, error))
        })
    }

    fn encode<C: Code>(&self, column: usize, coding: &Coding, emit: impl FnMut(usize, C)) -> Result<()> {
        let n_unknown = encode(coding, self.part.column(column), emit)?;
        self.unknown.fetch_add(n_unknown as u64, Relaxed);
        Ok(())
    }
}

/// Calls `emit` with each row of `array` and its code. Returns the number of categories that have none, whose rows are as
/// those with missing values.
///
/// # Errors
/// [`Error::Data`](ferrank_runtime::error::Error::Data) where a value is unreadable, without the column's name.
pub fn encode<C: Code>(coding: &Coding, array: &ArrayRef, mut emit: impl FnMut(usize, C)) -> Result<usize> {
    match &coding.scale {
        Scale::Numeric(cuts) => {
            let lookup = cuts.lookup(array.len());
            for_pieces(array, |first, values| {
                lookup.encode(values, u16::MAX, |row, code| {
                    emit(first + row, if code == u16::MAX { C::MISSING } else { C::from_u16(code) });
                });
                Ok(())
            })?;
            Ok(0)
        }
        Scale::Nominal(names) => {
            let read = categories(array)?;
            let codes: Vec<Option<u16>> = read.texts.iter().map(|text| names.code(text)).collect();
            for (row, &position) in read.index.iter().enumerate() {
                let code = if position == MISSING { None } else { codes[position as usize] };
                emit(row, code.map_or(C::MISSING, C::from_u16));
            }
            Ok(codes.iter().filter(|code| code.is_none()).count())
        }
    }
}
