//! Rows of a node on their way to disk.

/// Rows of a node on their way to disk.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    pub(super) rows: usize,
    pub(super) waiting: Vec<u8>,
    /// Where in the file its pieces start and end.
    pub(super) pieces: Vec<(usize, usize)>,
}
