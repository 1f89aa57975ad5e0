//! The out-of-bag rows of a tree in a ring, with their own codes and the permuted ones.

use arrow_buffer::ScalarBuffer;
use rand::RngExt;

use crate::oob::{OobView, OutOfBagRows};
use crate::view::View;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Code, Stored};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, Stream, stream};

/// Number of rows whose codes are copied together.
pub(super) const BLOCK_ROWS: usize = 128;

/// Bytes of the codes of a block of rows, for each feature.
pub(crate) const BLOCK_BYTES: usize = size_of::<BlockCodes<u16>>();

/// Codes of a feature: the own codes of rows, and their codes when the feature is permuted.
type BlockCodes<C> = [[C; BLOCK_ROWS]; 2];

/// The rows in random order, in which the first follows the last, and the codes of the features that a tree tests. When
/// a feature is permuted, each row takes the value of the row `turn` positions ahead.
pub(super) struct Ring {
    /// The row at each position.
    rows: Vec<u32>,
    /// Codes by feature and position.
    narrow: Vec<ScalarBuffer<u8>>,
    wide: Vec<ScalarBuffer<u16>>,
    /// The turn of each column; below the number of rows.
    turns: Vec<usize>,
}

impl Ring {
    /// The out-of-bag `rows` of a tree. Their codes are in temporary files if the view has a folder for them.
    pub(super) fn new(view: &OobView<'_>, rows: &OutOfBagRows) -> Result<Self> {
        let (columns, n_rows) = (&view.tree.columns, rows.len());
        let random = |place| stream(view.context.params.seed, Purpose::Permutation, view.number, place);
        let positions = in_random_order(n_rows, &mut random(0));
        let turn = |&feature: &u32| random_turn(n_rows, &mut random(1 + u64::from(feature)));
        let turns = columns.features.iter().map(turn).collect();
        let narrow = gather(&columns.narrow, view, rows, &positions)?;
        let mut wide = gather(&columns.wide, view, rows, &positions)?;
        wide.extend(gather_sparse(&columns.sparse, view, rows, &positions));
        let mut by_position = vec![0; n_rows];
        for (row, &position) in rows.iter().zip(&positions) {
            by_position[position as usize] = row as u32;
        }
        Ok(Ring { rows: by_position, narrow, wide, turns })
    }

    /// Returns true if all codes fit in a byte.
    pub(super) fn is_narrow(&self) -> bool {
        self.wide.is_empty()
    }

    /// The rows by position.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rows by position, in blocks, with the position of the first row of each block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..).step_by(BLOCK_ROWS).zip(self.rows.chunks(BLOCK_ROWS))
    }
}

/// The numbers below `n` in random order, all orders with the same probability (Fisher and Yates).
fn in_random_order(n: usize, random: &mut Stream) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..n as u32).collect();
    for last in (1..n).rev() {
        numbers.swap(last, random.random_range(0..=last as u32) as usize);
    }
    numbers
}

/// The turn of a feature in a ring of `n` rows; 0 only for a single row.
fn random_turn(n: usize, random: &mut Stream) -> usize {
    if n > 1 { random.random_range(1..n as u32) as usize } else { 0 }
}

/// The codes of `rows` in each of `slots`, by position.
fn gather<C: Stored>(
    slots: &[usize],
    view: &OobView<'_>,
    rows: &OutOfBagRows,
    positions: &[u32],
) -> Result<Vec<ScalarBuffer<C>>> {
    let n_rows = positions.len();
    let mut cells = vec![[C::default(); BAND]; n_rows];
    let mut columns = Vec::with_capacity(slots.len());
    // Codes are read from the first row to the last, a band at a time.
    for slots in slots.chunk_by(|one, next| one / BAND == next / BAND) {
        let mut positions = positions.iter();
        rows.by_block(|base, block| {
            view.context.monitor.check()?;
            let (codes, rows) = view.codes(base, block);
            codes.band(slots[0] / BAND, &rows, |_, codes: &[C; BAND]| {
                positions.next().into_iter().for_each(|&position| cells[position as usize] = *codes);
            });
            Ok(())
        })?;
        let column = |slot: &usize| -> Vec<C> { cells.iter().map(|codes| codes[slot % BAND]).collect() };
        match view.scratch {
            None => columns.extend(slots.iter().map(column).map(ScalarBuffer::from)),
            Some(scratch) => {
                let codes = scratch.values(slots.iter().map(column))?;
                columns.extend((0..slots.len()).map(|number| codes.slice(number * n_rows, n_rows)));
            }
        }
    }
    Ok(columns)
}

/// The codes of `rows` of each of the sparse features `numbers`, by position.
fn gather_sparse(
    numbers: &[usize],
    view: &OobView<'_>,
    rows: &OutOfBagRows,
    positions: &[u32],
) -> Vec<ScalarBuffer<u16>> {
    let rows: Vec<u32> = rows.iter().map(|row| row as u32).collect();
    let (view, mut codes) = (View::from_codes(view.context.store, 0), Vec::new());
    let column = |&number: &usize| {
        let mut column = vec![0; positions.len()];
        for (&position, &code) in positions.iter().zip(&*view.take_sparse(number, &rows, &mut codes)) {
            column[position as usize] = code;
        }
        ScalarBuffer::from(column)
    };
    numbers.iter().map(column).collect()
}

/// Codes of a block of rows, of the same type for all features.
#[derive(Default)]
pub(super) struct Codes<C> {
    by_column: Vec<BlockCodes<C>>,
}

impl<C: Code> Codes<C> {
    /// Takes the codes of the rows from position `first` on, in the order of the ring. `C` can represent the codes of
    /// all features.
    #[inline(always)]
    pub(super) fn take(&mut self, ring: &Ring, first: usize) {
        self.by_column.resize(ring.turns.len(), [[C::default(); BLOCK_ROWS]; 2]);
        let mut columns = self.by_column.iter_mut().zip(&ring.turns);
        for (column, (codes, turn)) in ring.narrow.iter().zip(&mut columns) {
            take_both(codes, column, first, *turn);
        }
        for (column, (codes, turn)) in ring.wide.iter().zip(&mut columns) {
            take_both(codes, column, first, *turn);
        }
    }

    /// The codes of the feature at `column`.
    #[inline(always)]
    pub(super) fn at(&self, column: u32) -> &BlockCodes<C> {
        &self.by_column[column as usize]
    }
}

/// Takes the own codes of the rows from position `first` on, and the codes `turn` positions ahead.
#[inline(always)]
fn take_both<C: Code, F: Code>([own, taken]: &mut BlockCodes<C>, column: &[F], first: usize, turn: usize) {
    take(own, column, first);
    take(taken, column, (first + turn) % column.len());
}

/// Takes the codes from position `start` on, in the order of the ring.
#[inline(always)]
fn take<C: Code, F: Code>(codes: &mut [C; BLOCK_ROWS], column: &[F], start: usize) {
    let from = &column[start..];
    match from.first_chunk::<BLOCK_ROWS>() {
        Some(from) => codes.iter_mut().zip(from).for_each(|(to, &code)| *to = converted(code)),
        None => {
            let around = from.iter().chain(column.iter().cycle());
            codes.iter_mut().zip(around).for_each(|(to, &code)| *to = converted(code));
        }
    }
}

#[inline(always)]
fn converted<C: Code, F: Code>(code: F) -> C {
    if code == F::MISSING { C::MISSING } else { C::from_u16(code.index() as u16) }
}
