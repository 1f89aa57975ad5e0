//! The out-of-bag rows of a tree in a ring, and the codes that they have and take there.

use arrow_buffer::ScalarBuffer;
use rand::RngExt;

use super::OutOfBag;
use super::routes::Places;
use crate::grow::GrowContext;
use crate::view::View;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Code, Stored};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, Stream, stream};
use ferrank_runtime::scratch::Scratch;

/// Rows whose codes are laid out together.
pub(super) const BLOCK_ROWS: usize = 128;

/// Bytes that they take for each feature.
pub(crate) const BLOCK_BYTES: usize = size_of::<BlockCodes<u16>>();

/// Codes of a feature: the rows' own, and those that they take.
type BlockCodes<C> = [[C; BLOCK_ROWS]; 2];

/// The rows in random order, the last before the first, and the codes of the features that a tree tests. With the
/// values of one feature shuffled, each row takes that of the row so many positions on as the feature turns the ring.
pub(super) struct Ring {
    /// The row at each position.
    rows: Vec<u32>,
    /// Codes by feature and position.
    narrow: Vec<ScalarBuffer<u8>>,
    wide: Vec<ScalarBuffer<u16>>,
    /// By place of the feature; below the number of rows.
    turns: Vec<usize>,
}

impl Ring {
    /// The rows `out_of_bag` of tree number `tree`; their codes are in files, if there is a `scratch` folder.
    pub(super) fn new(
        places: &Places,
        context: GrowContext<'_>,
        out_of_bag: &OutOfBag,
        tree: u64,
        scratch: Option<&Scratch>,
    ) -> Result<Self> {
        let random = |place| stream(context.params.seed, Purpose::Permutation, tree, place);
        let positions = in_random_order(out_of_bag.len(), &mut random(0));
        let turn = |&feature: &u32| random_turn(out_of_bag.len(), &mut random(1 + u64::from(feature)));
        let turns = places.features.iter().map(turn).collect();
        let narrow = columns(&places.narrow, context, out_of_bag, &positions, scratch)?;
        let wide = columns(&places.wide, context, out_of_bag, &positions, scratch)?;
        let mut rows = vec![0; out_of_bag.len()];
        for (row, &position) in out_of_bag.iter().zip(&positions) {
            rows[position as usize] = row as u32;
        }
        Ok(Ring { rows, narrow, wide, turns })
    }

    /// Whether all codes fit in a byte.
    pub(super) fn is_narrow(&self) -> bool {
        self.wide.is_empty()
    }

    /// The rows by position, as many at a time as are laid out together, with the position of the first.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..).step_by(BLOCK_ROWS).zip(self.rows.chunks(BLOCK_ROWS))
    }
}

/// The numbers below `n`, every order being as likely (Fisher and Yates).
fn in_random_order(n: usize, random: &mut Stream) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..n as u32).collect();
    for last in (1..n).rev() {
        numbers.swap(last, random.random_range(0..=last as u32) as usize);
    }
    numbers
}

/// How far a feature turns a ring of `n` rows: not around to where they were, if there is a choice.
fn random_turn(n: usize, random: &mut Stream) -> usize {
    if n > 1 { random.random_range(1..n as u32) as usize } else { 0 }
}

/// The codes in each of `slots` of the rows `out_of_bag`, each row at its position.
fn columns<C: Stored>(
    slots: &[usize],
    context: GrowContext<'_>,
    out_of_bag: &OutOfBag,
    positions: &[u32],
    scratch: Option<&Scratch>,
) -> Result<Vec<ScalarBuffer<C>>> {
    let n_rows = positions.len();
    let mut cells = vec![[C::default(); BAND]; n_rows];
    let mut columns = Vec::with_capacity(slots.len());
    // The store is read from its first row to its last, a band at a time.
    for slots in slots.chunk_by(|one, next| one / BAND == next / BAND) {
        let mut positions = positions.iter();
        out_of_bag.by_block(|base, block| {
            context.monitor.check()?;
            View::codes_of(context.store, base).band(slots[0] / BAND, block, |_, codes: &[C; BAND]| {
                positions.next().into_iter().for_each(|&position| cells[position as usize] = *codes);
            });
            Ok(())
        })?;
        let column = |slot: &usize| -> Vec<C> { cells.iter().map(|codes| codes[slot % BAND]).collect() };
        match scratch {
            None => columns.extend(slots.iter().map(column).map(ScalarBuffer::from)),
            Some(scratch) => {
                let codes = scratch.values(slots.iter().map(column))?;
                columns.extend((0..slots.len()).map(|number| codes.slice(number * n_rows, n_rows)));
            }
        }
    }
    Ok(columns)
}

/// Codes of a block of rows, of the same type for all features.
#[derive(Default)]
pub(super) struct Codes<C> {
    by_place: Vec<BlockCodes<C>>,
}

impl<C: Code> Codes<C> {
    /// Takes the codes of the rows from position `first` on; after the last row come the first ones. `C` holds the
    /// codes of all features.
    #[inline(always)]
    pub(super) fn take(&mut self, ring: &Ring, first: usize) {
        self.by_place.resize(ring.turns.len(), [[C::default(); BLOCK_ROWS]; 2]);
        let mut places = self.by_place.iter_mut().zip(&ring.turns);
        for (column, (codes, turn)) in ring.narrow.iter().zip(&mut places) {
            take_both(codes, column, first, *turn);
        }
        for (column, (codes, turn)) in ring.wide.iter().zip(&mut places) {
            take_both(codes, column, first, *turn);
        }
    }

    /// The codes of the feature at `place`.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &BlockCodes<C> {
        &self.by_place[place as usize]
    }
}

/// Takes the rows' own codes, from position `first` on, and those so many positions on as `turn` says.
#[inline(always)]
fn take_both<C: Code, F: Code>([own, taken]: &mut BlockCodes<C>, column: &[F], first: usize, turn: usize) {
    take(own, column, first);
    take(taken, column, (first + turn) % column.len());
}

/// Takes the codes from position `start` on.
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
