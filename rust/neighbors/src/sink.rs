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

use std::ops::Range;

use pulp::Arch;

use crate::tile::Tile;

/// Distances are compared in units of 1 / `DECIMALS`.
pub const DECIMALS: f64 = 1e12;

/// Distances in f64, which decide where those in f32 leave a doubt.
pub trait ExactDistance: Copy + Sync {
    /// The divisor that turns a sum of differences into a distance, which is then rounded to 12 decimals.
    fn divisor(self) -> usize;

    /// Returns true if the row is no neighbor of the query however near it is: the query itself, or a row of its group.
    fn is_excluded(self, query: u32, row: u32) -> bool;

    /// Number of rows that are excluded for the query, at most.
    fn n_excluded(self, query: u32) -> usize;

    /// Sets `out` to the sums of differences, in the order of features, between the query and each of `rows`.
    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>);
}

/// The sum of differences that makes one unit of [`distance_key`].
pub fn key_unit(divisor: usize) -> f64 {
    divisor as f64 / DECIMALS
}

/// The distance `sum / divisor` in units of 1e-12. Rows with equal keys are equally far away.
pub fn distance_key(sum: f64, divisor: usize) -> u64 {
    (sum / divisor as f64 * DECIMALS).round_ties_even() as u64
}

/// Takes the pairs of some queries and all rows.
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
