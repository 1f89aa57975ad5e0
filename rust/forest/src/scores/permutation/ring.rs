//! The out-of-bag rows of a tree in a ring, with their own codes and the permuted ones.

use std::ops::Range;

use rand::RngExt;

use crate::oob::{OobView, OutOfBagRows, TreeColumns};
use crate::view::View;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Code, Stored};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, Stream, stream};
use ferrank_runtime::scratch::{Scratch, ScratchFile};

/// Number of rows whose codes are copied together.
pub(super) const BLOCK_ROWS: usize = 128;

/// Codes of a feature: the own codes of rows, and their codes when the feature is permuted.
type BlockCodes<C> = [[C; BLOCK_ROWS]; 2];

/// Bytes of the codes of all features that are read from a file together, unless these are fewer than [`WINDOW_ROWS`].
const WINDOW_BYTES: usize = if cfg!(test) { 0 } else { 4 << 20 };
const WINDOW_ROWS: usize = 4 * BLOCK_ROWS;

/// Positions whose codes are put in order together, where these are in a file: all of them, or a share of one in so many.
const TOGETHER: usize = if cfg!(test) { 16 } else { 4 << 20 };
const SHARES: f64 = 4.0;

/// The rows in random order, in which the first follows the last, and the codes of some features. When a feature is
/// permuted, each row takes the value of the row `turn` positions ahead.
pub(super) struct Ring {
    /// The row at each position.
    rows: Vec<u32>,
    codes: Columns,
    /// The turn of each column; below the number of rows.
    turns: Vec<usize>,
}

/// Codes by feature and position: those of one byte, then those of two.
enum Columns {
    Held { narrow: Vec<Vec<u8>>, wide: Vec<Vec<u16>> },
    File(ColumnFile),
}

/// Codes in a temporary file.
struct ColumnFile {
    file: ScratchFile,
    n_rows: usize,
    n_narrow: usize,
    n_columns: usize,
}

impl Ring {
    /// The out-of-bag `rows` of a tree, with the codes of `columns`. These are in a temporary file if memory does not hold
    /// them.
    pub(super) fn new(view: &OobView<'_>, rows: &OutOfBagRows, columns: &TreeColumns) -> Result<Self> {
        let n_rows = rows.len();
        let random = |place| stream(view.context.params.seed, Purpose::Permutation, view.number, place);
        let turn = |&feature: &u32| random_turn(n_rows, &mut random(1 + u64::from(feature)));
        let turns = columns.features.iter().map(turn).collect();
        let scattered = Scattered { view, rows, positions: in_random_order(n_rows, &mut random(0)) };
        let Some(scratch) = view.place.outside() else {
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            scattered.columns(&columns.narrow, n_rows, |_, cells, lane| {
                narrow.push(lane_of(cells, lane));
                Ok(())
            })?;
            scattered.columns(&columns.wide, n_rows, |_, cells, lane| {
                wide.push(lane_of(cells, lane));
                Ok(())
            })?;
            wide.extend(scattered.sparse_columns(&columns.sparse));
            let mut by_position = vec![0; n_rows];
            scattered.rows_between(0..n_rows, &mut by_position);
            return Ok(Ring { rows: by_position, codes: Columns::Held { narrow, wide }, turns });
        };
        let file = ColumnFile::write(scratch, &scattered, columns)?;
        drop(scattered);
        let rows = file.rows()?;
        Ok(Ring { rows, codes: Columns::File(file), turns })
    }

    /// Bytes that a ring of so many rows takes while it is made and walked, in a temporary file besides.
    pub(super) fn bytes(n_rows: f64, n_features: usize, is_narrow: bool) -> f64 {
        let code_bytes = if is_narrow { 1 } else { 2 };
        // Positions, and the codes of a band.
        let together = (n_rows / SHARES).max(n_rows.min(TOGETHER as f64));
        let rows = 4.0 * n_rows + together * (BAND * code_bytes) as f64;
        let of_columns = n_features * code_bytes * 2;
        rows + (of_columns * (BLOCK_ROWS + window_rows(of_columns, n_rows as usize))) as f64
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

/// Number of rows in a window, of `n_rows` whose codes take `row_bytes` each.
fn window_rows(row_bytes: usize, n_rows: usize) -> usize {
    (WINDOW_BYTES / row_bytes.max(1)).max(WINDOW_ROWS).min(n_rows).next_multiple_of(BLOCK_ROWS)
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

/// Rows, each with its position in a random order.
struct Scattered<'a> {
    view: &'a OobView<'a>,
    rows: &'a OutOfBagRows,
    /// By row.
    positions: Vec<u32>,
}

impl Scattered<'_> {
    /// Calls `each` for each of `slots` with the codes of rows in its band, by position, and its place in the band;
    /// `together` positions at a time. The first argument is the number of the slot and the first position.
    fn columns<C: Stored>(
        &self,
        slots: &[usize],
        together: usize,
        mut each: impl FnMut((usize, usize), &[[C; BAND]], usize) -> Result<()>,
    ) -> Result<()> {
        let n_rows = self.positions.len();
        let mut cells = vec![[C::default(); BAND]; if slots.is_empty() { 0 } else { together.min(n_rows) }];
        let mut before = 0;
        // Codes are read from the first row to the last, a band at a time.
        for slots in slots.chunk_by(|one, next| one / BAND == next / BAND) {
            for first in (0..n_rows).step_by(together) {
                let cells = &mut cells[..together.min(n_rows - first)];
                let mut positions = self.positions.iter();
                self.rows.by_block(|base, block| {
                    self.view.context.monitor.check()?;
                    self.view.band((base, block), slots[0] / BAND, |_, codes: &[C; BAND]| {
                        let place = positions.next().map(|&position| (position as usize).wrapping_sub(first));
                        if let Some(cell) = place.and_then(|place| cells.get_mut(place)) {
                            *cell = *codes;
                        }
                    })
                })?;
                let mut slots = (before..).zip(slots);
                slots.try_for_each(|(number, slot)| each((number, first), cells, slot % BAND))?;
            }
            before += slots.len();
        }
        Ok(())
    }

    /// The codes of each of the sparse features `numbers`, by position.
    fn sparse_columns(&self, numbers: &[usize]) -> Vec<Vec<u16>> {
        if numbers.is_empty() {
            return Vec::new();
        }
        let rows: Vec<u32> = self.rows.iter().map(|row| row as u32).collect();
        let (view, mut codes) = (View::from_codes(self.view.context.store, 0), Vec::new());
        let column = |&number: &usize| {
            let mut column = vec![0; self.positions.len()];
            for (&position, &code) in self.positions.iter().zip(&*view.take_sparse(number, &rows, &mut codes)) {
                column[position as usize] = code;
            }
            column
        };
        numbers.iter().map(column).collect()
    }

    /// Writes the rows whose positions are in `range` to `found`, by position.
    fn rows_between(&self, range: Range<usize>, found: &mut [u32]) {
        for (row, &position) in self.rows.iter().zip(&self.positions) {
            if range.contains(&(position as usize)) {
                found[position as usize - range.start] = row as u32;
            }
        }
    }
}

impl ColumnFile {
    /// Writes the codes of `columns` and then the rows by position.
    fn write(scratch: &Scratch, scattered: &Scattered<'_>, columns: &TreeColumns) -> Result<Self> {
        let (n_rows, n_narrow, n_columns) = (scattered.positions.len(), columns.narrow.len(), columns.len());
        let together = ((n_rows as f64 / SHARES).ceil() as usize).max(TOGETHER);
        let column_file = ColumnFile { file: scratch.random_access()?, n_rows, n_narrow, n_columns };
        column_file.write_columns::<u8>(scattered, &columns.narrow, (0, together))?;
        column_file.write_columns::<u16>(scattered, &columns.wide, (n_narrow, together))?;
        let mut rows = vec![0u32; together.min(n_rows)];
        for first in (0..n_rows).step_by(together) {
            let range = first..n_rows.min(first + together);
            let rows = &mut rows[..range.len()];
            scattered.rows_between(range, rows);
            column_file.file.write(column_file.place::<u32>(n_columns, first), bytemuck::cast_slice(rows))?;
        }
        Ok(column_file)
    }

    fn write_columns<C: Stored>(
        &self,
        scattered: &Scattered<'_>,
        slots: &[usize],
        (first_column, together): (usize, usize),
    ) -> Result<()> {
        scattered.columns(slots, together, |(number, first), cells, lane| {
            let codes: Vec<C> = lane_of(cells, lane);
            self.file.write(self.place::<C>(first_column + number, first), bytemuck::cast_slice(&codes))
        })
    }

    /// The byte where the value of type `T` at `position` in column number `column` is; the rows come after all columns.
    fn place<T>(&self, column: usize, position: usize) -> u64 {
        let start = (column + column.saturating_sub(self.n_narrow)) * self.n_rows;
        (start + size_of::<T>() * position) as u64
    }

    /// The rows by position.
    fn rows(&self) -> Result<Vec<u32>> {
        let mut rows = vec![0; self.n_rows];
        self.file.read(self.place::<u32>(self.n_columns, 0), bytemuck::cast_slice_mut(&mut rows))?;
        Ok(rows)
    }

    /// Reads the codes of column number `column` from position `start` on, in the order of the ring.
    fn read<C: Code>(&self, column: usize, start: usize, codes: &mut [C]) -> Result<()> {
        match column < self.n_narrow {
            true => self.read_as::<u8, C>(column, start, codes),
            false => self.read_as::<u16, C>(column, start, codes),
        }
    }

    fn read_as<F: Code, C: Code>(&self, column: usize, start: usize, codes: &mut [C]) -> Result<()> {
        let (mut start, mut rest, mut found) = (start, codes, Vec::<F>::new());
        while !rest.is_empty() {
            let (now, after) = rest.split_at_mut(rest.len().min(self.n_rows - start));
            found.resize(now.len(), F::default());
            self.file.read(self.place::<F>(column, start), bytemuck::cast_slice_mut(&mut found))?;
            now.iter_mut().zip(&found).for_each(|(to, &code)| *to = converted(code));
            (start, rest) = (0, after);
        }
        Ok(())
    }
}

fn lane_of<C: Copy>(cells: &[[C; BAND]], lane: usize) -> Vec<C> {
    cells.iter().map(|codes| codes[lane]).collect()
}

/// Codes of a block of rows, of the same type for all features.
pub(super) struct Codes<C> {
    by_column: Vec<BlockCodes<C>>,
    window: Window<C>,
}

/// Codes of more rows, where they come from a file.
#[derive(Default)]
struct Window<C> {
    /// n_columns x 2 x n_rows; own codes and permuted ones.
    codes: Vec<C>,
    /// The position of the first row.
    first: usize,
    n_rows: usize,
}

impl<C: Code> Codes<C> {
    /// No codes, of `n_columns` features.
    pub(super) fn new(n_columns: usize) -> Self {
        Codes { by_column: vec![[[C::default(); BLOCK_ROWS]; 2]; n_columns], window: Window::default() }
    }

    /// Takes the codes of the rows from position `first` on, in the order of the ring. `C` can represent the codes of
    /// all features.
    #[inline(always)]
    pub(super) fn take(&mut self, ring: &Ring, first: usize) -> Result<()> {
        let mut columns = self.by_column.iter_mut().zip(&ring.turns);
        match &ring.codes {
            Columns::Held { narrow, wide } => {
                for (column, (codes, turn)) in narrow.iter().zip(&mut columns) {
                    take_both(codes, column, first, *turn);
                }
                for (column, (codes, turn)) in wide.iter().zip(&mut columns) {
                    take_both(codes, column, first, *turn);
                }
            }
            Columns::File(file) => {
                self.window.move_to(file, &ring.turns, first)?;
                let Window { codes, n_rows, .. } = &self.window;
                let at = first - self.window.first;
                let from = codes.chunks_exact(2 * n_rows).map(|both| both.split_at(*n_rows));
                for ([own, taken], (own_from, taken_from)) in self.by_column.iter_mut().zip(from) {
                    own.copy_from_slice(&own_from[at..at + BLOCK_ROWS]);
                    taken.copy_from_slice(&taken_from[at..at + BLOCK_ROWS]);
                }
            }
        }
        Ok(())
    }

    /// The codes of the feature at `column`.
    #[inline(always)]
    pub(super) fn at(&self, column: usize) -> &BlockCodes<C> {
        &self.by_column[column]
    }

    /// The own codes of number `row` of the block, and the permuted ones, by column.
    pub(super) fn of_row(&self, row: usize) -> impl Iterator<Item = [C; 2]> {
        self.by_column.iter().map(move |[own, taken]| [own[row], taken[row]])
    }

    /// Sets the own codes of number `row` of the block, and the permuted ones, by column.
    pub(super) fn set_row(&mut self, row: usize, codes: impl Iterator<Item = [C; 2]>) {
        for ([own, taken], codes) in self.by_column.iter_mut().zip(codes) {
            [own[row], taken[row]] = codes;
        }
    }
}

impl<C: Code> Window<C> {
    /// Reads the codes of the rows from position `first` on, unless they are there. Positions ascend by blocks.
    fn move_to(&mut self, file: &ColumnFile, turns: &[usize], first: usize) -> Result<()> {
        if self.n_rows > 0 && first < self.first + self.n_rows {
            return Ok(());
        }
        self.n_rows = window_rows(2 * size_of::<C>() * turns.len(), file.n_rows);
        self.first = first;
        self.codes.resize(turns.len() * 2 * self.n_rows, C::default());
        for (column, (both, turn)) in self.codes.chunks_exact_mut(2 * self.n_rows).zip(turns).enumerate() {
            let (own, taken) = both.split_at_mut(self.n_rows);
            file.read(column, first, own)?;
            file.read(column, (first + turn) % file.n_rows, taken)?;
        }
        Ok(())
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
