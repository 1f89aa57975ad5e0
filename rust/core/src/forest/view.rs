//! The codes that a part of a tree is grown over.
//!
//! The top of a tree reads the store's chunks. Once a node's codes fit the outer cache they are
//! copied together, and again once they fit the inner one, and the subtree is grown there ("gather
//! cascade"): rows of a small node lie far apart in the store, and each access would fetch a cache
//! line for one byte.

use super::space::Block;
use crate::intake::CHUNK_ROWS;
use crate::store::{Chunk, Code, CodeStore, Slot};

/// Nodes whose codes take up to so many bytes are copied together, from the largest to the smallest.
pub(crate) const CASCADE: [usize; 2] = [4 << 20, 256 << 10];

/// Codes and component values of the rows `0 .. rows`.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    chunks: &'a [Chunk],
    /// Rows in each chunk but the last.
    height: usize,
    pub(crate) block: &'a Block,
    /// The store's number of each row, where it is kept; empty in the store itself.
    origin: &'a [u32],
}

/// A type of codes that a chunk holds.
pub(crate) trait Stored: Code {
    /// The columns of this type.
    fn of(chunk: &Chunk) -> &[Self];
}

impl Stored for u8 {
    fn of(chunk: &Chunk) -> &[u8] {
        &chunk.narrow
    }
}

impl Stored for u16 {
    fn of(chunk: &Chunk) -> &[u16] {
        &chunk.wide
    }
}

impl<'a> View<'a> {
    /// The whole store.
    pub(crate) fn store(store: &'a CodeStore, block: &'a Block) -> Self {
        View { chunks: &store.chunks, height: CHUNK_ROWS, block, origin: &[] }
    }

    /// Rows that were copied together.
    pub(crate) fn local(chunk: &'a Chunk, block: &'a Block, origin: &'a [u32]) -> Self {
        View { chunks: std::slice::from_ref(chunk), height: chunk.rows.max(1), block, origin }
    }

    /// The number in the store of row `row`.
    pub(crate) fn origin(&self, row: u32) -> u32 {
        if self.origin.is_empty() { row } else { self.origin[row as usize] }
    }

    /// The codes of `rows`, which ascend, in the column at `slot`.
    pub(crate) fn codes<C: Stored>(&self, slot: usize, rows: &[u32], out: &mut [C]) {
        self.codes_as(slot, rows, out, |code| code);
    }

    /// The same, each code turned by `turn`.
    #[inline(always)]
    pub(crate) fn codes_as<C: Stored, T>(&self, slot: usize, rows: &[u32], out: &mut [T], turn: impl Fn(C) -> T) {
        if let [chunk] = self.chunks {
            return pick(column(chunk, slot), rows, 0, out, turn);
        }
        let mut done = 0;
        while done < rows.len() {
            let number = rows[done] as usize / self.height;
            let first = number * self.height;
            let end = done + rows[done..].partition_point(|&row| (row as usize) < first + self.height);
            pick(column(&self.chunks[number], slot), &rows[done..end], first, &mut out[done..end], &turn);
            done = end;
        }
    }

    /// Copies the codes of `rows`, which ascend, into `chunk`; columns keep their slots.
    pub(crate) fn gather(&self, rows: &[u32], chunk: &mut Chunk) {
        let first = &self.chunks[0];
        let (n_narrow, n_wide) = (first.narrow.len() / first.rows, first.wide.len() / first.rows);
        chunk.rows = rows.len();
        chunk.narrow.resize(n_narrow * rows.len(), 0);
        chunk.wide.resize(n_wide * rows.len(), 0);
        for (slot, out) in chunk.narrow.chunks_exact_mut(rows.len()).enumerate() {
            self.codes(slot, rows, out);
        }
        for (slot, out) in chunk.wide.chunks_exact_mut(rows.len()).enumerate() {
            self.codes(slot, rows, out);
        }
    }
}

/// Bytes that the codes of one row take.
pub(crate) fn row_bytes(slots: &[Slot]) -> usize {
    slots.iter().map(|slot| if matches!(slot, Slot::Narrow(_)) { 1 } else { 2 }).sum()
}

fn column<C: Stored>(chunk: &Chunk, slot: usize) -> &[C] {
    &C::of(chunk)[slot * chunk.rows..(slot + 1) * chunk.rows]
}

#[inline(always)]
fn pick<C: Code, T>(column: &[C], rows: &[u32], first: usize, out: &mut [T], turn: impl Fn(C) -> T) {
    for (out, &row) in out.iter_mut().zip(rows) {
        *out = turn(column[row as usize - first]);
    }
}
