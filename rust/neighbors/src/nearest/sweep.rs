//! The nearest rows as a sink of pairs: bounds from byte codes first, the kernel where these leave too many.

use std::ops::Range;

use pulp::Arch;

use super::byte_search::ByteSearch;
use super::kernel_search::KernelSearch;
use super::nearest_k::NearestK;
use super::pairwise_bounds::PairwiseBounds;
use super::pairwise_distances::PairwiseDistances;
use super::quantized::Scale;
use crate::layout::Layout;
use crate::panels::Panels;
use crate::sink::{ExactDistance, PairSink};
use crate::tile::Tile;

/// Most tiles that go without byte codes after byte codes did not help.
const MOST_SKIPPED: u32 = 31;

/// Lower bounds of the distances between some queries and rows; none where values have no byte codes.
///
/// ```
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::nearest::{Bounds, NearestK, NearestParams};
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::scan::Scan;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{error_of, layout_of, panels_of};
/// # use ferrank_runtime::monitor::Monitor;
/// # use pulp::Arch;
///
/// // Enough features for byte codes.
/// let mut rows = Rows::with_capacity(3, 32);
/// [0.0, 0.5, 0.875].into_iter().zip(0..).for_each(|(value, number)| rows.add([number]).fill(value));
/// # let space = Space::new(vec![Shape::Numeric; 32], [const { None }; 32].into(), Vec::new(), 1);
/// # let (layout, monitor, arch) = (layout_of(&space), Monitor::default(), Arch::new());
/// # let scan = Scan { layout: &layout, monitor: &monitor, arch };
/// # let exact = DistanceContext { space: &space, queries: &rows, rows: &rows };
/// let panels = panels_of(&layout, &space, &rows);
/// # let (params, error) = (NearestParams { k: 1, unordered: 0 }, |sum| error_of(&layout, sum));
/// # let mut lists = [NearestK::new(&layout, &panels, 0..1, params, 1, error)];
/// // All sinks of the scan share the bounds; the neighbors are exact all the same.
/// let bounds = Bounds::new(&layout, arch, &panels, &panels, 1);
/// scan.offer(exact, [&panels, &panels], bounds, &mut lists, |lists| lists.finish(exact))?;
/// let found = lists[0].neighbors().flat_map(|(_, of_classes)| of_classes.flatten());
/// assert_eq!(found.collect::<Vec<u32>>(), [1, 2, 1]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    bytes: Option<(Scale, Option<&'a PairwiseBounds>)>,
    distances: Option<&'a PairwiseDistances>,
}

impl<'a> Bounds<'a> {
    /// Bounds of the distances from which `k` neighbors of each class are searched.
    pub fn new(layout: &Layout, arch: Arch, queries: &Panels, rows: &Panels, k: usize) -> Self {
        let bytes = Scale::new(layout, arch, queries, rows, k).map(|scale| (scale, None));
        Bounds { bytes, distances: None }
    }

    /// Bounds that were computed for all pairs.
    pub(super) fn from_pairwise(pairwise: &'a PairwiseBounds) -> Self {
        Bounds { bytes: Some((pairwise.scale, Some(pairwise))), distances: None }
    }

    /// The distances of all pairs, which need no bounds.
    pub(super) fn from_distances(distances: &'a PairwiseDistances) -> Self {
        Bounds { bytes: None, distances: Some(distances) }
    }
}

/// Buffers of a search, reused from tile to tile.
#[derive(Default)]
pub struct Sweep {
    byte_search: ByteSearch,
    kernel_search: KernelSearch,
    backoff: Backoff,
}

/// Says when to try byte codes again: each time they did not help doubles the wait.
#[derive(Debug, Default)]
struct Backoff {
    /// Tiles to skip after the last attempt.
    skipped: u32,
    /// Tiles still to skip.
    left: u32,
}

impl Backoff {
    /// Returns true if byte codes are to be tried for this tile.
    fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    fn record(&mut self, helped: bool) {
        self.skipped = if helped { 0 } else { (2 * self.skipped + 1).min(MOST_SKIPPED) };
        self.left = self.skipped;
    }
}

impl PairSink for NearestK {
    type Shared<'a> = Bounds<'a>;
    type Buffers = Sweep;

    fn panels(&self) -> Range<usize> {
        NearestK::panels(self)
    }

    fn take<D: ExactDistance>(&mut self, arch: Arch, tile: Tile<'_, D>, bounds: Bounds<'_>, buffers: &mut Sweep) {
        if let Some(bytes) = bounds.bytes
            && buffers.backoff.is_due()
        {
            let helped = buffers.byte_search.run(arch, bytes, tile, self);
            buffers.backoff.record(helped);
            if helped {
                return;
            }
        }
        buffers.kernel_search.run(arch, bounds.distances, tile, self);
    }
}
