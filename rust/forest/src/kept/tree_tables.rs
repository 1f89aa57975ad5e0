//! The trees of a forest, grown or read, as tables of their nodes.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::grown::GrownTree;

/// The trees of a forest.
pub(super) enum Trees {
    /// With the schema of their tables.
    Grown(SchemaRef, Vec<GrownTree>),
    /// Tables of nodes, which were checked: at least one.
    Read(Vec<RecordBatch>),
}

impl Trees {
    /// Number of trees.
    pub(super) fn len(&self) -> usize {
        match self {
            Trees::Grown(_, trees) => trees.len(),
            Trees::Read(batches) => batches.len(),
        }
    }

    /// The table of the nodes of tree number `tree`, made at each call if the tree was grown.
    pub(super) fn batch(&self, tree: usize) -> RecordBatch {
        match self {
            Trees::Grown(schema, trees) => RecordBatch::try_new(schema.clone(), trees[tree].columns())
                .expect("the columns of all trees are those of the schema"),
            Trees::Read(batches) => batches[tree].clone(),
        }
    }

    /// The tables of the nodes of all trees.
    pub(super) fn batches(&self) -> impl Iterator<Item = RecordBatch> {
        (0..self.len()).map(|tree| self.batch(tree))
    }

    /// The schema of the tables.
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Trees::Grown(schema, _) => schema.clone(),
            Trees::Read(batches) => batches[0].schema(),
        }
    }

    /// Bytes that the trees take.
    pub(super) fn n_bytes(&self) -> usize {
        match self {
            Trees::Grown(_, trees) => trees.iter().map(GrownTree::n_bytes).sum(),
            Trees::Read(batches) => batches.iter().map(RecordBatch::get_array_memory_size).sum(),
        }
    }
}
