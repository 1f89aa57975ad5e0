//! A row of a batch: a candidate feature, or one of the two sides of its missing values.

use pulp::Simd;

use crate::tree_buffer::MissingSide;

/// A candidate feature. A feature with missing values in the node has a row for each side of them, the right side
/// first, or one row for a random test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) feature: u32,
    /// Position of the random cut between the least and the greatest key, from 0 to 1.
    pub(super) share: f64,
    /// Gain of the best cut, or of the random cut; −1 if the constraint forbids all.
    pub(super) gain: f64,
    /// The random cut.
    pub(super) threshold: f64,
    pub(super) missing: MissingSide,
    /// From this key on, a cut has all known values on the left.
    pub(super) highest: f64,
    /// True if keys stand for categories.
    pub(super) is_nominal: bool,
}

/// What goes through the rows of keys, compiled for each number of vectors of a row.
pub(in crate::split) trait OnVectors {
    fn run<S: Simd, const VECTORS: usize>(self, simd: S);
}

/// Runs `on_rows` for rows of `width` keys.
#[inline(always)]
pub(in crate::split) fn by_width<S: Simd>(simd: S, width: usize, on_rows: impl OnVectors) {
    match width / S::F64_LANES {
        1 => on_rows.run::<S, 1>(simd),
        2 => on_rows.run::<S, 2>(simd),
        3 => on_rows.run::<S, 3>(simd),
        4 => on_rows.run::<S, 4>(simd),
        5 => on_rows.run::<S, 5>(simd),
        6 => on_rows.run::<S, 6>(simd),
        7 => on_rows.run::<S, 7>(simd),
        _ => on_rows.run::<S, 8>(simd),
    }
}
