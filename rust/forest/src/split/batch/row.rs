//! A row of a batch: a candidate feature, or one of the two sides of its missing values.

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
