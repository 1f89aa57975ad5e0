//! A number for each pair of rows, of which each pair is computed once.

use rayon::prelude::*;

use crate::layout::LANES;
use ferrank_runtime::pages::Large;

/// Pairs of two panels.
pub(super) const TILE: usize = LANES * LANES;

/// For each panel the tiles with itself and the panels after it: rows of the panel x rows of the other.
#[derive(Debug)]
pub(super) struct PanelPairs<T> {
    pub(super) n_panels: usize,
    tiles: Large<T>,
}

/// Number of tiles of `n_panels`.
pub(super) fn n_tiles(n_panels: usize) -> usize {
    n_panels * (n_panels + 1) / 2
}

impl<T: bytemuck::Pod + Send> PanelPairs<T> {
    /// `fill` writes the tiles of a panel with itself and each panel after it.
    ///
    /// # Errors
    /// An error that `fill` returns.
    pub(super) fn new<E: Send>(
        n_panels: usize,
        fill: impl Fn(usize, &mut [[[T; LANES]; LANES]]) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let mut tiles = Large::zeros(TILE * n_tiles(n_panels));
        let mut rest = &mut tiles[..];
        let mut of_panels = Vec::with_capacity(n_panels);
        for number in 0..n_panels {
            let (own, others) = rest.split_at_mut(TILE * (n_panels - number));
            of_panels.push(own.as_chunks_mut().0.as_chunks_mut().0);
            rest = others;
        }
        of_panels.into_par_iter().enumerate().try_for_each(|(number, tiles)| fill(number, tiles))?;
        Ok(PanelPairs { n_panels, tiles })
    }

    /// The tile of two panels, whichever comes first.
    #[inline(always)]
    pub(super) fn tile(&self, one: usize, other: usize) -> &[T; TILE] {
        let (low, high) = (one.min(other), one.max(other));
        let before = low * self.n_panels - low * low.saturating_sub(1) / 2;
        self.tiles[TILE * (before + high - low)..].first_chunk().expect("a tile")
    }
}
