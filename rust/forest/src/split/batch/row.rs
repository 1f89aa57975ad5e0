//! A candidate feature of a batch.

/// A candidate feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) feature: u32,
    /// Position of the random cut between the least and the greatest key, from 0 to 1.
    pub(super) share: f64,
    /// Gain of the best cut, or of the random cut; −1 if the constraint forbids all.
    pub(super) gain: f64,
    /// The random cut.
    pub(super) threshold: f64,
}
