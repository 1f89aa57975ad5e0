//! How far all rows of a table are at least from each other, each pair compared once.
//!
//! Where rows are wide, comparing them costs more than writing down what came of it: a level, a byte a pair.

use pulp::Arch;
use rayon::prelude::*;

use super::byte_codes::{n_bytes, serves};
use super::bytes::{Bytes, WithBytes, dispatch};
use super::layout::{LANES, Layout};
use super::panels::{Panel, Panels};
use super::quantized::{QuantizedDistances, Scale, any_is_large, levels};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::pages::{Large, prefetch};

/// Rows of fewer bytes are compared as fast as they are looked up.
const FEWEST_BYTES: usize = 64;
/// Tiles that are read after one is asked for and before it is read.
const AHEAD: usize = 12;
/// Pairs of two panels.
const TILE: usize = LANES * LANES;

/// The levels of all pairs of rows.
#[derive(Debug)]
pub struct PairwiseBounds {
    pub(super) scale: Scale,
    n_panels: usize,
    /// For each panel its tiles with itself and those after it: the panel's rows x the others'.
    tiles: Large<u8>,
}

/// Bytes that those of `n` panels take; `None` where they would not serve.
pub fn bytes(layout: &Layout, n: usize) -> Option<usize> {
    let serve = serves(layout) && n_bytes(layout) >= FEWEST_BYTES;
    serve.then(|| TILE * (n * (n + 1) / 2))
}

impl PairwiseBounds {
    /// Those of `panels`, for the `k` nearest of each class; `None` where bytes do not serve to find them.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn new(layout: &Layout, panels: &Panels, k: usize, arch: Arch, monitor: &Monitor) -> Result<Option<Self>> {
        let scale = if any_is_large(panels, k) { Scale::of(layout, arch, panels, panels, k) } else { None };
        let Some(scale) = scale else { return Ok(None) };
        let n_panels = panels.len();
        let mut pairwise =
            PairwiseBounds { scale, n_panels, tiles: Large::zeros(TILE * (n_panels * (n_panels + 1) / 2)) };
        let mut rest = &mut pairwise.tiles[..];
        let mut of_panels = Vec::with_capacity(n_panels);
        for number in 0..n_panels {
            let (own, others) = rest.split_at_mut(TILE * (n_panels - number));
            of_panels.push(own);
            rest = others;
        }
        let panels: Vec<Panel<'_>> = (0..n_panels).map(|number| panels.panel(layout, number)).collect();
        of_panels.into_par_iter().enumerate().try_for_each(|(number, tiles)| {
            monitor.check()?;
            let tiles = tiles.as_chunks_mut().0.as_chunks_mut().0;
            dispatch(arch, Compare { one: panels[number], others: &panels[number..], scale, tiles });
            Ok(())
        })?;
        Ok(Some(pairwise))
    }

    /// The levels of the rows of panel `other` for those of panel `one`; what follows is asked for from the memory.
    #[inline(always)]
    pub(super) fn levels<S: Bytes>(&self, simd: S, one: usize, other: usize) -> QuantizedDistances {
        if other + AHEAD < self.n_panels {
            prefetch(self.tile(one, other + AHEAD));
        }
        let tile = pulp::cast(*self.tile(one, other));
        if one <= other { tile } else { turned(simd, tile) }
    }

    #[inline(always)]
    fn tile(&self, one: usize, other: usize) -> &[u8; TILE] {
        let (low, high) = (one.min(other), one.max(other));
        let before = low * self.n_panels - low * low.saturating_sub(1) / 2;
        self.tiles[TILE * (before + high - low)..].first_chunk().expect("a tile")
    }
}

/// Columns as lines: shuffled like two halves of a deck of cards, once for each bit of a line's number.
#[inline(always)]
fn turned<S: Bytes>(simd: S, mut tile: QuantizedDistances) -> QuantizedDistances {
    for _ in 0..LANES.ilog2() {
        let mut shuffled = [[0; LANES]; LANES];
        for line in 0..LANES / 2 {
            [shuffled[2 * line], shuffled[2 * line + 1]] = simd.interleave(tile[line], tile[LANES / 2 + line]);
        }
        tile = shuffled;
    }
    tile
}

/// Compares the rows of a panel with those of others, each of which has a tile.
struct Compare<'a> {
    one: Panel<'a>,
    others: &'a [Panel<'a>],
    scale: Scale,
    tiles: &'a mut [QuantizedDistances],
}

impl WithBytes for Compare<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) {
        let Compare { one, others, scale, tiles } = self;
        for (other, tile) in others.iter().zip(tiles) {
            for first in (0..LANES).step_by(Q) {
                let levels = levels::<S, V, W, Q>(simd, scale, [one.byte_codes, other.byte_codes], first);
                tile[first..first + Q].copy_from_slice(&levels);
            }
        }
    }
}
