//! The rows of a node that are written to disk.

use crate::pieces::Pieces;

/// The rows of a node that are written to disk.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    pub(super) rows: usize,
    pub(super) records: Pieces,
}
