//! Rows of one class that are compared with the queries of a panel at once.

use super::layout::{LANES, Layout};
use super::panels::{Panel, Panels};

/// Most panels of a piece: what is written down for a panel of queries stays in the cache.
const MOST_PANELS: usize = 512;
/// Most differences that are looked at without asking whether to stop.
const MOST_WORK: usize = 1 << 30;
/// Groups of a piece have so many rows, the least of each lane, for each that is asked for.
pub(super) const SPREAD: usize = 2;

/// Rows of one class that go past at once.
pub(crate) struct Piece<'a> {
    /// Number of the first panel.
    pub(super) first: usize,
    pub(super) panels: Vec<Panel<'a>>,
    /// The most of all of them.
    pub(super) quantization_error: f32,
}

impl<'a> Piece<'a> {
    /// All of `rows`.
    pub(super) fn of(layout: &'a Layout, rows: &'a Panels) -> Vec<Self> {
        let most = MOST_WORK / (LANES * LANES) / (layout.whole.len() + layout.with_missing.len()).max(1);
        let most = most.clamp(1, MOST_PANELS);
        let panels: Vec<Panel<'a>> = (0..rows.len()).map(|number| rows.panel(layout, number)).collect();
        let pieces = panels.chunk_by(|a, b| a.class == b.class).flat_map(|class| class.chunks(most));
        let mut first = 0;
        let piece = |panels: &[Panel<'a>]| {
            let quantization_error =
                panels.iter().flat_map(|panel| panel.byte_codes.quantization_error).copied().fold(0.0, f32::max);
            let piece = Piece { first, panels: panels.to_vec(), quantization_error };
            first += panels.len();
            piece
        };
        pieces.map(piece).collect()
    }
}

/// A panel of queries, and the rows that go past.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a, G> {
    pub(super) layout: &'a Layout,
    pub(super) context: G,
    pub(super) number: usize,
    pub(super) one: Panel<'a>,
    /// Number of the first of the others.
    pub(super) first: usize,
    pub(super) others: &'a [Panel<'a>],
    /// The most slack that one of them has.
    pub(super) quantization_error: f32,
}
