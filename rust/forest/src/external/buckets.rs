//! Buckets: rows of nodes that fit into memory, kept on disk until their subtrees are grown.
//!
//! All buckets are in one temporary file, each in pieces.

use super::access::Parts;
use super::bucket::Bucket;
use super::upper_tree::{State, UpperTree};
use crate::context::GrowContext;
use crate::pieces::PieceFile;
use crate::router::Reached;
use crate::row_records::{RowRecords, Rows};
use ferrank_data::store::CodeStore;
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

/// The file of all buckets of some trees.
pub(super) struct Buckets<'a> {
    records: RowRecords<'a>,
    file: PieceFile,
}

/// All buckets, complete.
pub(super) struct Stored<'a> {
    pub(super) store: &'a CodeStore,
    records: RowRecords<'a>,
    file: PieceFile,
    /// Where the codes of other rows are, if the store does not have them, and the folder for those that are asked for.
    pub(super) parts: Option<(&'a dyn Parts, &'a Scratch)>,
}

impl<'a> Buckets<'a> {
    /// A file for the buckets of `trees`, which together buffer up to `waiting` bytes.
    pub(super) fn new(
        context: GrowContext<'a>,
        scratch: &'a Scratch,
        trees: &[UpperTree],
        waiting: usize,
    ) -> Result<Self> {
        let nodes = trees.iter().flat_map(|tree| &tree.nodes);
        let count = nodes.filter(|node| matches!(node.state, State::Bucket(_))).count();
        Ok(Buckets { records: RowRecords::new(context.store), file: PieceFile::new(scratch, count, waiting)? })
    }

    /// Adds the examples of a block that reached the node. `base` is the number of row 0 of the block in the store.
    pub(super) fn add(&self, bucket: &mut Bucket, reached: &Reached<'_>, base: usize) -> Result<()> {
        self.records.write(reached, |row| base + row as usize, &mut bucket.records.waiting);
        bucket.rows += reached.range.len();
        self.file.write(&mut bucket.records)
    }

    /// Adds the records of a part to the bucket.
    pub(super) fn add_records(&self, bucket: &mut Bucket, records: &[u8]) -> Result<()> {
        bucket.rows += self.records.count(records.len());
        self.records.pieces(records).try_for_each(|piece| self.file.append(&mut bucket.records, piece))
    }

    /// Writes what the buckets of `trees` still buffer. Other rows are in `parts`, if the store does not have them.
    pub(super) fn finish(
        self,
        store: &'a CodeStore,
        trees: &mut [UpperTree],
        parts: Option<(&'a dyn Parts, &'a Scratch)>,
    ) -> Result<Stored<'a>> {
        for node in trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
            if let State::Bucket(bucket) = &mut node.state {
                self.file.finish(&mut bucket.records)?;
            }
        }
        Ok(Stored { store, records: self.records, file: self.file, parts })
    }
}

impl Stored<'_> {
    /// The rows of `bucket`.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for more labels than can be counted.
    pub(super) fn take(&self, bucket: &Bucket) -> Result<Rows> {
        let mut rows = self.records.reader(bucket.rows);
        self.file.read(&bucket.records, |piece| {
            rows.read(piece);
            Ok(())
        })?;
        rows.finish()
    }
}
