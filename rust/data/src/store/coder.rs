//! Values to codes: a batch of rows into the bands of a chunk, columns in parallel on the current pool.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::RecordBatch;
use rayon::prelude::*;

use super::bands::{BAND, Bands};
use super::{Chunk, Code, Slot};
use crate::column::{MISSING, categories, numbers};
use crate::intake::Intake;
use crate::profile::{Coding, Scale};
use ferrank_runtime::error::Result;

impl Chunk {
    /// Writes the codes of `part` from row `offset` on.
    pub(super) fn fill(
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
        let bands: Vec<_> = bands.iter_mut().zip(features.chunks(BAND)).collect();
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
                let mut buffer = Vec::new();
                cuts.encode(numbers(column, &mut buffer)?, u16::MAX, |row, code| {
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
