//! Lower bounds of the distances between all rows, each pair compared once.
//!
//! Where rows are wide, comparing byte codes costs more than storing the result, a level of one byte for each pair.

use super::panel_pairs::{PanelPairs, TILE, n_tiles};
use super::quantized::{QuantizedDistances, Scale, any_is_large, levels};
use crate::byte_codes::{ByteCodes, are_supported};
use crate::bytes::{Bytes, WithBytes, dispatch};
use crate::layout::{LANES, Layout};
use crate::panels::{Panel, Panels};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::pages::prefetch;
use pulp::Arch;

/// Rows of fewer bytes are compared as fast as a stored level is loaded.
const FEWEST_BYTES: usize = 64;
/// Tiles between the one that is read and the one that is prefetched.
const AHEAD: usize = 12;

/// The levels of all pairs of rows.
#[derive(Debug)]
pub(super) struct PairwiseBounds {
    pub(super) scale: Scale,
    pairs: PanelPairs<u8>,
}

/// Bytes of the bounds of `n` panels; `None` where they would not be faster.
pub(super) fn bytes(layout: &Layout, n: usize) -> Option<usize> {
    let is_worthwhile = are_supported(layout) && ByteCodes::code_bytes(layout) >= FEWEST_BYTES;
    is_worthwhile.then(|| TILE * n_tiles(n))
}

impl PairwiseBounds {
    /// Compares all rows of `panels`, for a search of the `k` nearest of each class. `None` where the classes are too
    /// small for a search by byte codes.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(super) fn new(
        layout: &Layout,
        panels: &Panels,
        k: usize,
        arch: Arch,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let scale = if any_is_large(panels, k) { Scale::new(layout, arch, panels, panels, k) } else { None };
        let Some(scale) = scale else { return Ok(None) };
        let panels: Vec<Panel<'_>> = (0..panels.len()).map(|number| panels.panel(layout, number)).collect();
        let fill = |number: usize, tiles: &mut [QuantizedDistances]| {
            monitor.check()?;
            dispatch(arch, Compare { one: panels[number], others: &panels[number..], scale, tiles });
            Ok(())
        };
        Ok(Some(PairwiseBounds { scale, pairs: PanelPairs::new(panels.len(), fill)? }))
    }

    /// The levels between the rows of panel `one` and those of panel `other`; prefetches tiles that follow.
    #[inline(always)]
    pub(super) fn levels<S: Bytes>(&self, simd: S, one: usize, other: usize) -> QuantizedDistances {
        if other + AHEAD < self.pairs.n_panels {
            prefetch(self.pairs.tile(one, other + AHEAD));
        }
        let tile = pulp::cast(*self.pairs.tile(one, other));
        if one <= other { tile } else { transposed(simd, tile) }
    }
}

/// Transposes a tile: a perfect shuffle of its lines for each bit of a line's number.
#[inline(always)]
fn transposed<S: Bytes>(simd: S, mut tile: QuantizedDistances) -> QuantizedDistances {
    for _ in 0..LANES.ilog2() {
        let mut shuffled = [[0; LANES]; LANES];
        for line in 0..LANES / 2 {
            [shuffled[2 * line], shuffled[2 * line + 1]] = simd.interleave(tile[line], tile[LANES / 2 + line]);
        }
        tile = shuffled;
    }
    tile
}

/// Compares the rows of a panel with those of others, into a tile for each.
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
