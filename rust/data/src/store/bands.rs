//! Codes of one type, eight features of a row together.
//!
//! A node reads a few features of some rows, a copy of a node all features of some rows. Where the
//! rows of a node lie far apart each step fetches a cache line, and with eight features in it a copy
//! takes an eighth of the steps. With more, a pass over all rows of a feature would fetch too much of
//! the others.

use std::ops::Range;

use arrow_buffer::ScalarBuffer;

use super::code::Code;
use ferrank_runtime::pages::prefetch;

/// Features whose codes of a row lie together.
pub const BAND: usize = 8;

/// Codes of the features of one type, in some rows.
///
/// ```
/// use ferrank_data::store::bands::{BAND, Bands};
///
/// // Three rows of ten features, which take two bands.
/// let mut bands = Bands::<u8>::new(10, 3);
/// assert_eq!((bands.len(), bands.row_bytes()), (2, 16));
/// let second = bands.iter_mut().nth(1).expect("there are two");
/// second[2][9 % BAND] = 7;
/// assert_eq!(bands.column(9).at(2), 7);
/// ```
#[derive(Debug)]
pub struct Bands<C: Code> {
    rows: usize,
    cells: Cells<C>,
}

#[derive(Debug)]
enum Cells<C: Code> {
    /// n_features / [`BAND`], rounded up, x rows.
    Held(Vec<[C; BAND]>),
    /// One buffer of rows x [`BAND`] for each band.
    Mapped(Vec<ScalarBuffer<C>>),
}

/// A feature's codes.
///
/// ```
/// use ferrank_data::store::bands::{Bands, Column};
///
/// // One feature with the codes 5, 6, 7 and 8.
/// let mut bands = Bands::<u8>::new(1, 4);
/// bands.iter_mut().flatten().zip(5..).for_each(|(row, code)| row[0] = code);
/// let column: Column<'_, u8> = bands.column(0);
/// assert_eq!(column.codes(&[3, 1, 1]).collect::<Vec<_>>(), [8, 6, 6]);
/// ```
#[derive(Clone, Copy)]
pub struct Column<'a, C> {
    cells: &'a [[C; BAND]],
    lane: usize,
}

impl<C: Code> Default for Bands<C> {
    fn default() -> Self {
        Bands { rows: 0, cells: Cells::Held(Vec::new()) }
    }
}

impl<C: Code> Bands<C> {
    /// Room for the codes of `n_features` features in `rows` rows.
    pub fn new(n_features: usize, rows: usize) -> Self {
        Bands { rows, cells: Cells::Held(vec![[C::default(); BAND]; n_features.div_ceil(BAND) * rows]) }
    }

    /// Bands of `rows` rows that lie elsewhere, one after the other in each buffer.
    pub fn mapped(rows: usize, bands: Vec<ScalarBuffer<C>>) -> Self {
        debug_assert!(bands.iter().all(|band| band.len() == rows * BAND));
        Bands { rows, cells: Cells::Mapped(bands) }
    }

    /// The codes of the feature at `slot`.
    #[inline(always)]
    pub fn column(&self, slot: usize) -> Column<'_, C> {
        Column { cells: self.band(slot / BAND), lane: slot % BAND }
    }

    /// The rows of a band.
    #[inline(always)]
    pub fn band(&self, band: usize) -> &[[C; BAND]] {
        match &self.cells {
            Cells::Held(cells) => &cells[band * self.rows..(band + 1) * self.rows],
            Cells::Mapped(bands) => bands[band].as_chunks().0,
        }
    }

    /// Number of bands.
    pub fn len(&self) -> usize {
        match &self.cells {
            Cells::Held(cells) => cells.len() / self.rows.max(1),
            Cells::Mapped(bands) => bands.len(),
        }
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the codes of a row take.
    pub fn row_bytes(&self) -> usize {
        self.len() * size_of::<[C; BAND]>()
    }

    /// The rows of each band.
    pub fn iter(&self) -> impl Iterator<Item = &[[C; BAND]]> {
        (0..self.len()).map(|band| self.band(band))
    }

    /// The rows of each band, to be written; none of those that lie elsewhere.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [[C; BAND]]> {
        let cells = match &mut self.cells {
            Cells::Held(cells) => &mut cells[..],
            Cells::Mapped(_) => &mut [],
        };
        cells.chunks_exact_mut(self.rows.max(1))
    }

    /// The cells of `rows` in each band, to be written; none of those that lie elsewhere.
    pub(super) fn rows_mut(&mut self, rows: Range<usize>) -> impl Iterator<Item = &mut [[C; BAND]]> {
        self.iter_mut().map(move |cells| &mut cells[rows.clone()])
    }

    /// The same bands, whose clones share the codes.
    pub(super) fn into_shared(self) -> Self {
        match self.cells {
            Cells::Held(cells) => {
                let (rows, n_bands) = (self.rows, cells.len() / self.rows.max(1));
                let codes = ScalarBuffer::from(cells.into_flattened());
                Bands::mapped(rows, (0..n_bands).map(|band| codes.slice(band * rows * BAND, rows * BAND)).collect())
            }
            Cells::Mapped(_) => self,
        }
    }

    /// The bands followed by `others`; those shared are not copied.
    pub(super) fn followed_by(&self, others: Vec<ScalarBuffer<C>>) -> Self {
        let mut bands = self.buffers();
        bands.extend(others);
        Bands::mapped(self.rows, bands)
    }

    /// One buffer of rows x [`BAND`] for each band; those shared are not copied.
    pub(super) fn buffers(&self) -> Vec<ScalarBuffer<C>> {
        match &self.cells {
            Cells::Held(_) => self.iter().map(|cells| ScalarBuffer::from(cells.as_flattened().to_vec())).collect(),
            Cells::Mapped(bands) => bands.clone(),
        }
    }

    /// Room for `rows` rows of `n_bands` bands; the codes are left as they are.
    pub fn resize(&mut self, n_bands: usize, rows: usize) {
        self.rows = rows;
        match &mut self.cells {
            Cells::Held(cells) => cells.resize(n_bands * rows, [C::default(); BAND]),
            Cells::Mapped(_) => *self = Bands::new(n_bands * BAND, rows),
        }
    }
}

impl<'a, C: Code> Column<'a, C> {
    /// The codes of `rows`.
    #[inline(always)]
    pub fn codes(self, rows: &'a [u32]) -> impl Iterator<Item = C> + Clone + 'a {
        rows.iter().map(move |&row| self.at(row as usize))
    }

    /// Asks the memory for the codes of `rows`, without waiting for them.
    #[inline(always)]
    pub fn prefetch(self, rows: &[u32]) {
        rows.iter().for_each(|&row| prefetch(&self.cells[row as usize][..1]));
    }

    /// The code of a row.
    #[inline(always)]
    pub fn at(self, row: usize) -> C {
        self.cells[row][self.lane % BAND]
    }
}
