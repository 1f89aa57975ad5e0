//! The seam between distances and what is done with them: a scan offers pairs of rows, a sink takes them.
//!
//! A [`Scan`](crate::scan::Scan) walks over all rows in [tiles](crate::tile) and hands each tile to the sink of its
//! queries. The sink holds the rule of the neighborhood: which pairs count. [`NearestK`](crate::nearest::NearestK)
//! keeps lists of candidates and measures as few pairs as it can. A sink of all pairs within a radius measures each
//! tile by [`Tile::measure`] and adds up what it wants, so that it never holds n² pairs.
//!
//! Distances from panels are sums of differences in f32, off by at most [`error_of`](crate::space_panels::error_of) the
//! query. A sink decides by their bounds ([`lowest`](crate::layout::Error::lowest) and
//! [`highest`](crate::layout::Error::highest)) where these leave no doubt, and by [`ExactDistance`] elsewhere. Its
//! result then depends neither on tiles nor on vector instructions.
//!
//! ```
//! use std::ops::Range;
//!
//! use ferrank_neighbors::context::DistanceContext;
//! use ferrank_neighbors::layout::{Error, NO_ROW};
//! use ferrank_neighbors::panels::Panels;
//! use ferrank_neighbors::rows::Rows;
//! use ferrank_neighbors::scan::Scan;
//! use ferrank_neighbors::sink::{ExactDistance, PairSink, distance_key};
//! use ferrank_neighbors::space::{Shape, Space};
//! use ferrank_neighbors::space_panels::{error_of, layout_of, panels_of};
//! use ferrank_neighbors::tile::Tile;
//! use ferrank_runtime::monitor::Monitor;
//! use pulp::Arch;
//!
//! /// Counts the pairs that are at most 1/4 apart.
//! struct Near {
//!     panels: Range<usize>,
//!     n: usize,
//! }
//!
//! impl PairSink for Near {
//!     type Shared<'a> = ();
//!     type Buffers = Vec<[[f32; 16]; 16]>;
//!
//!     fn panels(&self) -> Range<usize> {
//!         self.panels.clone()
//!     }
//!
//!     fn take<D: ExactDistance>(&mut self, arch: Arch, tile: Tile<'_, D>, _: (), lines: &mut Self::Buffers) {
//!         let (exact, divisor) = (tile.exact, tile.exact.divisor());
//!         let highest = divisor / 4.0;
//!         let mut sums = Vec::new();
//!         tile.measure(arch, lines, |panel, lines| {
//!             for (q, &query) in tile.queries.numbers.iter().enumerate().filter(|(_, query)| **query != NO_ROW) {
//!                 // Distances in f32 leave out what is surely too far away; the others are measured in f64.
//!                 let error: Error = error_of(tile.layout, tile.queries.sums[q].into());
//!                 let rows = tile.rows[panel].numbers.iter().zip(&lines[q]);
//!                 let may_be_near = |&(&row, &distance): &(&u32, &f32)| {
//!                     row != NO_ROW && !exact.is_excluded(query, row) && error.lowest(distance) <= highest
//!                 };
//!                 let rows: Vec<u32> = rows.filter(may_be_near).map(|(row, _)| *row).collect();
//!                 exact.distances(query, &rows, &mut sums);
//!                 let is_near = |&&sum: &&f64| distance_key(sum, divisor) <= distance_key(highest, divisor);
//!                 self.n += sums.iter().filter(is_near).count();
//!             }
//!         });
//!     }
//! }
//!
//! let mut rows = Rows::with_capacity(4, 1);
//! rows.add(0..4).copy_from_slice(&[0.0, 0.25, 0.75, 1.0]);
//! let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
//! let (layout, monitor, arch) = (layout_of(&space), Monitor::default(), Arch::new());
//! let panels: Panels = panels_of(&layout, &space, &rows);
//! let scan = Scan { layout: &layout, monitor: &monitor, arch };
//! let mut sinks: Vec<Near> = scan.groups(&panels).map(|panels| Near { panels, n: 0 }).collect();
//! let exact = DistanceContext { space: &space, queries: &rows, rows: &rows };
//! scan.offer(exact, [&panels, &panels], (), &mut sinks, |_| ())?;
//! assert_eq!(sinks.iter().map(|sink| sink.n).sum::<usize>(), 4);
//! # Ok::<(), ferrank_runtime::Error>(())
//! ```

use std::ops::Range;

use pulp::Arch;

use crate::panels::Panel;
use crate::tile::Tile;

/// Distances are compared in units of 1 / `DECIMALS`.
pub const DECIMALS: f64 = 1e12;

/// Distances in f64, which decide where those in f32 leave a doubt.
///
/// ```
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::sink::{ExactDistance, distance_key};
/// use ferrank_neighbors::space::{Shape, Space};
///
/// // From row 0 it is 0.1 + 0.2 to row 1 and 0.3 to row 2: sums that differ in the last bit alone.
/// let mut rows = Rows::with_capacity(3, 2);
/// rows.add(0..3).copy_from_slice(&[0.0, 0.0, 0.1, 0.2, 0.3, 0.0]);
/// let space = Space::new(vec![Shape::Numeric; 2], vec![None, None], Vec::new(), 1);
/// let exact = DistanceContext { space: &space, queries: &rows, rows: &rows };
/// let mut sums = Vec::new();
/// exact.distances(0, &[1, 2], &mut sums);
/// assert_ne!(sums[0], sums[1]);
/// assert_eq!(distance_key(sums[0], exact.divisor()), distance_key(sums[1], exact.divisor()));
/// assert!(exact.is_excluded(0, 0) && !exact.is_excluded(0, 1));
/// ```
pub trait ExactDistance: Copy + Sync {
    /// The divisor that turns a sum of differences into a distance, which is then rounded to 12 decimals.
    fn divisor(self) -> f64;

    /// Returns true if the row is no neighbor of the query however near it is: the query itself, or a row of its group.
    fn is_excluded(self, query: u32, row: u32) -> bool;

    /// Number of rows that are excluded for the query, at most.
    fn n_excluded(self, query: u32) -> usize;

    /// What the differences of missing values add to those of the means in their place: the query misses the first of these
    /// features, the row the second. 0 where there are no missing values.
    fn beyond_means(self, _query: u32, _row: u32, _gaps: [&[u32]; 2]) -> f64 {
        0.0
    }

    /// Sets `out` to the sums of differences, in the order of features, between the query and each of `rows`.
    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>);
}

/// The sum of differences that makes one unit of [`distance_key`].
pub fn key_unit(divisor: f64) -> f64 {
    divisor / DECIMALS
}

/// The distance `sum / divisor` in units of 1e-12. Rows with equal keys are equally far away.
pub fn distance_key(sum: f64, divisor: f64) -> u64 {
    (sum / divisor * DECIMALS).round_ties_even() as u64
}

impl<D: ExactDistance> Tile<'_, D> {
    /// The distance in f32 of two rows, given by their panels and lanes, of which `distance` is measured with means in the place
    /// of few missing values.
    #[inline]
    pub(super) fn with_gaps(&self, line: usize, rows: &Panel<'_>, lane: usize, distance: f32) -> f32 {
        let gaps = [self.queries.gaps(line), rows.gaps(lane)];
        if gaps.iter().all(|gaps| gaps.is_empty()) {
            return distance;
        }
        distance + self.exact.beyond_means(self.queries.numbers[line], rows.numbers[lane], gaps) as f32
    }
}

/// Takes the pairs of some queries and all rows.
///
/// ```
/// # use ferrank_neighbors::context::DistanceContext;
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::scan::Scan;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{layout_of, panels_of};
/// # use ferrank_runtime::monitor::Monitor;
/// # use pulp::Arch;
/// use std::ops::Range;
///
/// use ferrank_neighbors::layout::NO_ROW;
/// use ferrank_neighbors::sink::{ExactDistance, PairSink};
/// use ferrank_neighbors::tile::Tile;
///
/// /// Counts pairs.
/// struct Count(Range<usize>, usize);
///
/// impl PairSink for Count {
///     type Shared<'a> = ();
///     type Buffers = ();
///
///     fn panels(&self) -> Range<usize> {
///         self.0.clone()
///     }
///
///     fn take<D: ExactDistance>(&mut self, _: Arch, tile: Tile<'_, D>, _: (), _: &mut ()) {
///         let count = |numbers: &[u32; 16]| numbers.iter().filter(|&&number| number != NO_ROW).count();
///         let n_rows: usize = tile.rows.iter().map(|panel| count(panel.numbers)).sum();
///         self.1 += count(tile.queries.numbers) * n_rows;
///     }
/// }
///
/// // 20 rows; each is also paired with itself.
/// # let mut rows = Rows::with_capacity(20, 1);
/// # rows.add(0..20).fill(0.5);
/// # let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// # let (layout, monitor, arch) = (layout_of(&space), Monitor::default(), Arch::new());
/// # let panels = panels_of(&layout, &space, &rows);
/// # let scan = Scan { layout: &layout, monitor: &monitor, arch };
/// # let exact = DistanceContext { space: &space, queries: &rows, rows: &rows };
/// let mut sinks: Vec<Count> = scan.groups(&panels).map(|group| Count(group, 0)).collect();
/// scan.offer(exact, [&panels, &panels], (), &mut sinks, |_| ())?;
/// assert_eq!(sinks.iter().map(|sink| sink.1).sum::<usize>(), 20 * 20);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
pub trait PairSink: Send {
    /// What all sinks of a scan share while some rows are offered, such as bounds of distances.
    type Shared<'a>: Copy + Sync;
    /// Buffers that a thread reuses from tile to tile.
    type Buffers: Default;

    /// Numbers of the panels that hold the sink's queries.
    fn panels(&self) -> Range<usize>;

    /// Takes all pairs of `tile`. Tiles come in no promised order; each pair comes once.
    fn take<D: ExactDistance>(
        &mut self,
        arch: Arch,
        tile: Tile<'_, D>,
        shared: Self::Shared<'_>,
        buffers: &mut Self::Buffers,
    );
}
