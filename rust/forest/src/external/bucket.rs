//! The rows of a node that are written to disk.

/// The rows of a node that are written to disk.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// The number of the bucket, where rows are in parts.
    pub(super) number: usize,
    pub(super) rows: usize,
    pub(super) waiting: Vec<u8>,
    /// Start and end of each piece in the file.
    pub(super) pieces: Vec<(usize, usize)>,
}
