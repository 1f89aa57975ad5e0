//! Codes of features that a source keeps as a matrix of numbers: a few columns are read at a time, and no arrays are made.
//!
//! What looks for the codes of a column is made once for a chunk of rows.

use rayon::prelude::*;

use super::bands::BAND;
use super::code::Code;
use super::codebook::{Codebook, Slot};
use crate::intake::{Counts, Intake};
use crate::matrix_blocks::MatrixBlocks;
use crate::profile::{Cuts, MISSING_U16, Scale};
use crate::rest::RestIntake;
use crate::schema::{Attribute, Kind};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Bands whose columns are read together: a cache line of f32 in a matrix of rows.
const MOST_BANDS: usize = 2;

/// The features that are in the matrix of a source, and have codes in bands.
pub(super) struct MatrixCoder<'a> {
    monitor: &'a Monitor,
    blocks: MatrixBlocks<'a>,
    /// n_features; the position of each in the matrix, if it is there.
    places: &'a [Option<usize>],
}

/// The features of `intake` that are to be coded from a matrix, by their positions in it.
pub(super) fn places(intake: &Intake<'_>, book: &Codebook) -> Vec<Option<usize>> {
    let matrix = intake.source.matrix();
    let place = |(number, feature): (usize, &Attribute)| {
        let columns = matrix.as_ref()?;
        let place = feature.column.checked_sub(columns.first).filter(|&place| place < columns.width)?;
        let is_coded = book.ranked(number).is_none() && !matches!(book.slots[number], Slot::Sparse(_));
        (feature.kind == Kind::Numeric && is_coded).then_some(place)
    };
    intake.problem.features.iter().enumerate().map(place).collect()
}

/// A feature of some bands.
struct Lane<'a> {
    /// Position in the matrix.
    column: usize,
    band: usize,
    lane: usize,
    cuts: &'a Cuts,
}

impl<'a> MatrixCoder<'a> {
    /// For the features with [`places`]; `rest` are the rows of `intake` without them. `None` if there is no such feature.
    ///
    /// # Errors
    /// Errors of reading.
    pub(super) fn new(
        intake: &'a Intake<'a>,
        places: &'a [Option<usize>],
        rest: &RestIntake<'_>,
        counts: Counts,
    ) -> Result<Option<Self>> {
        let Some(columns) = intake.source.matrix().filter(|_| places.iter().any(Option::is_some)) else {
            return Ok(None);
        };
        Ok(Some(MatrixCoder {
            monitor: intake.monitor,
            blocks: MatrixBlocks::new(columns, &rest.intake(), counts)?,
            places,
        }))
    }

    /// Writes the codes of the features with a slot that is `wanted` into `bands`, whose first row is `first_row`.
    ///
    /// # Errors
    /// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted).
    pub(super) fn fill<C: Code>(
        &self,
        book: &Codebook,
        bands: &mut [&mut [[C; BAND]]],
        first_row: usize,
        wanted: fn(&Slot) -> bool,
    ) -> Result<()> {
        let features = book.features_at(wanted);
        let mut bands: Vec<_> = bands.iter_mut().zip(features.chunks(BAND)).collect();
        let abreast = bands.len().div_ceil(rayon::current_num_threads()).clamp(1, MOST_BANDS);
        bands.par_chunks_mut(abreast).try_for_each_init(Vec::new, |buffer, bands| {
            let lanes = bands.iter().enumerate().flat_map(|(band, (_, features))| {
                let lane =
                    move |(lane, &feature): (usize, &usize)| match (self.places[feature], &book.codings[feature].scale)
                    {
                        (Some(column), Scale::Numeric(cuts)) => Some(Lane { column, band, lane, cuts }),
                        _ => None,
                    };
                features.iter().enumerate().filter_map(lane)
            });
            let lanes: Vec<Lane<'_>> = lanes.collect();
            let n_rows = bands[0].0.len();
            for lanes in lanes.chunk_by(|a, b| a.column + 1 == b.column) {
                let lookups: Vec<_> = lanes.iter().map(|lane| lane.cuts.lookup(n_rows)).collect();
                let columns = lanes[0].column..lanes[0].column + lanes.len();
                self.blocks.read(columns, first_row..first_row + n_rows, buffer, |first, number, values| {
                    if number == 0 {
                        self.monitor.check()?;
                    }
                    let Lane { band, lane, .. } = lanes[number];
                    let cells = &mut bands[band].0[first - first_row..];
                    lookups[number].encode(values, MISSING_U16, |row, code| {
                        cells[row][lane] = if code == MISSING_U16 { C::MISSING } else { C::from_u16(code) };
                    });
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}
