//! Codes of one type, eight features of a row together.
//!
//! A node reads a few features of some rows, a copy of a node all features of some rows. Where the
//! rows of a node lie far apart each step fetches a cache line, and with eight features in it a copy
//! takes an eighth of the steps. With more, a pass over all rows of a feature would fetch too much of
//! the others.

use super::Code;

/// Features whose codes of a row lie together.
pub(crate) const BAND: usize = 8;

/// Codes of the features of one type, in some rows.
#[derive(Debug, Default)]
pub(crate) struct Bands<C> {
    rows: usize,
    /// n_features / [`BAND`], rounded up, x rows.
    cells: Vec<[C; BAND]>,
}

/// A feature's codes.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a, C> {
    cells: &'a [[C; BAND]],
    lane: usize,
}

impl<C: Code> Bands<C> {
    pub(crate) fn new(n_features: usize, rows: usize) -> Self {
        Bands { rows, cells: vec![[C::default(); BAND]; n_features.div_ceil(BAND) * rows] }
    }

    /// The codes of the feature at `slot`.
    #[inline(always)]
    pub(crate) fn column(&self, slot: usize) -> Column<'_, C> {
        let first = slot / BAND * self.rows;
        Column { cells: &self.cells[first..first + self.rows], lane: slot % BAND }
    }

    /// The rows of a band.
    pub(crate) fn band(&self, band: usize) -> &[[C; BAND]] {
        &self.cells[band * self.rows..(band + 1) * self.rows]
    }

    /// Bytes that the codes of a row take.
    pub(crate) fn row_bytes(&self) -> usize {
        self.cells.len() / self.rows.max(1) * size_of::<[C; BAND]>()
    }

    /// The rows of each band.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[[C; BAND]]> {
        self.cells.chunks_exact(self.rows.max(1))
    }

    /// The rows of each band, to be written.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [[C; BAND]]> {
        self.cells.chunks_exact_mut(self.rows.max(1))
    }

    /// Room for `rows` rows of as many bands as `of` has; the codes are left as they are.
    pub(crate) fn resize(&mut self, of: &Self, rows: usize) {
        self.rows = rows;
        self.cells.resize(of.cells.len() / of.rows.max(1) * rows, [C::default(); BAND]);
    }
}

impl<C: Code> Column<'_, C> {
    /// The code of a row.
    #[inline(always)]
    pub(crate) fn at(self, row: usize) -> C {
        self.cells[row][self.lane % BAND]
    }
}
