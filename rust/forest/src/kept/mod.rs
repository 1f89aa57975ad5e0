//! Forests that are kept: their trees as Arrow tables, predictions for new rows and for the out-of-bag rows.
//!
//! ```text
//! tree of codes       keeper, leaf_values    while trees are grown: nodes with tests on values, what leaves predict
//! out-of-bag rows     out_of_bag             each row by the trees that have it out of bag
//! Arrow file          nodes, storage         one table of nodes, a record batch for each tree, mapped when it is read
//! new rows            codes, predict         values to codes of the forest's own cuts, then down the trees
//! ```
//!
//! Rows go down a tree as the out-of-bag rows of a score do: by codes, in a
//! [`PackedTree`](crate::oob::PackedTree). The codes of a kept forest are the numbers of its own cuts, so that a file
//! says nothing of bins: a test is a cut or a set of categories, by name.
//!
//! A leaf predicts the mean of each numeric target, and the share of each class or label, over its rows of the bag by
//! their weights. Where none of them has a known value of a target, the nearest node above it that has one predicts. The
//! forest predicts the mean over its trees, with `per_target` over the trees of the target. Of classes the one with the
//! greatest share is predicted, the first of equal ones; of labels those whose share is above a threshold. A label's
//! ancestors have at least its share, so that predicted sets are closed.
//!
//! Categories that no row of the training data has are as missing values.
//!
//! # File
//!
//! An uncompressed Arrow IPC file. The key `ferrank:forest` of the schema's metadata holds a JSON object: `format` (1),
//! `ferrank` (version), `task`, `n_rows`, `n_estimators`, `per_target`, `features` (`name`; `categories` of nominal ones,
//! ascending) and `targets` (`name`, `kind`, `values`: classes or labels, ascending; `edges` of a hierarchy; `positive`: the
//! number of the class that has the label, in multi-label tasks). Component numbers count through the targets: one for a
//! numeric target, one for each class or label of others. Each record batch is a tree; with `per_target`, tree `t` of
//! target `i` is batch `i · n_estimators + t`. Each row is a node; nodes are in preorder, so that the left child of a
//! node is the next one.
//!
//! | column | type | what |
//! |---|---|---|
//! | `feature` | uint32 | number of the tested feature; null for a leaf, as are the next five |
//! | `cut` | float64 | values up to it go left; infinite where all known values do; null for nominal features |
//! | `categories` | list of uint16 | numbers of the categories that go left, ascending; null for numeric features |
//! | `missing_left` | bool | true if rows with a missing value go left |
//! | `right` | uint32 | number of the right child |
//! | `gain` | float64 | impurity decrease; the impurity of all rows is 1 |
//! | `weight` | float64 | weight of the rows of the bag that reach the node |
//! | `n_examples` | uint64 | number of rows of the bag, with repetitions, that reach the node |
//! | `components` | list of uint32 | components that the leaf predicts, ascending; empty for splits |
//! | `values` | list of float64 | mean or share of each of these components; others are 0 |
//!
//! A file is foreign bytes: all of it is checked when it is read, so that a damaged one is an error.
//!
//! Memory: beside the file, 16 bytes for each split and 4 for each leaf; while trees are grown, a bit more for each row
//! and tree.

mod codes;
mod head;
mod importance;
mod keeper;
mod leaf_values;
mod nodes;
mod out_of_bag;
mod predict;
mod storage;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::OnceLock;

use arrow_array::RecordBatch;
use ferrank_runtime::error::{Error, Result};
use rayon::prelude::*;

pub use head::{KeptFeature, KeptTarget};
pub use importance::{Interaction, Trend};
pub use out_of_bag::{OobPredictions, OobScore};
pub use predict::Output;

pub(crate) use keeper::{EnsembleKeeper, Keeper};
pub(crate) use leaf_values::LeafPredictor;

use codes::RowCoder;
use head::Head;
use nodes::Nodes;
use walk::RoutedTree;

/// A forest whose trees are kept, which predicts.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Float64Type;
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_forest::{ForestParams, KeptForest, Output, accumulate_and_keep};
/// use ferrank_ranking::RunOptions;
/// use ferrank_runtime::monitor::Monitor;
///
/// let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..200).map(f).collect::<Float64Array>()) as ArrayRef;
/// let columns = [("x", column(&|i| f64::from(i * 37 % 101))), ("y", column(&|i| f64::from(i * 37 % 101)))];
/// let batch = RecordBatch::try_from_iter(columns).unwrap();
/// let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, params) = (Roles::new(Targets::Last(1)), ForestParams::default().with_n_estimators(20));
/// let (options, monitor) = (RunOptions::default(), Monitor::default());
/// let (_, forest) = accumulate_and_keep(&source, &roles, &params, &options, &monitor)?;
/// let mut found = Vec::new();
/// forest.predict(&source, Output::default(), 1, &monitor, |batch| Ok(found.push(batch)))?;
/// assert!((found[0].column(0).as_primitive::<Float64Type>().value(1) - 37.0).abs() < 2.0);
/// assert_eq!(KeptForest::from_ipc(forest.to_ipc()?)?.n_trees(), 20);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct KeptForest {
    head: Head,
    /// A table of nodes for each tree.
    batches: Vec<RecordBatch>,
    /// What routes rows, once some are predicted.
    router: OnceLock<Router>,
    /// What the out-of-bag rows get, as long as it is known.
    oob: Option<OobPredictions>,
}

/// Routes rows down all trees.
#[derive(Debug)]
struct Router {
    coder: RowCoder,
    trees: Vec<RoutedTree>,
}

impl KeptForest {
    /// What routes rows, made by the current pool at the first call.
    fn router(&self) -> Result<&Router> {
        if let Some(router) = self.router.get() {
            return Ok(router);
        }
        let coder = RowCoder::new(&self.head, self.batches.iter().map(Nodes::new)).map_err(Error::Data)?;
        let trees = self.batches.par_iter().map(|batch| Nodes::new(batch).routed(&coder)).collect();
        Ok(self.router.get_or_init(|| Router { coder, trees }))
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.batches.len()
    }

    /// The features, in the order of the training data.
    pub fn features(&self) -> &[KeptFeature] {
        &self.head.features
    }

    /// The targets.
    pub fn targets(&self) -> &[KeptTarget] {
        &self.head.targets
    }

    /// The table of the nodes of each tree.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// What the forest is beside its nodes, as in its file: JSON.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) if it cannot be written, which does not occur.
    pub fn description(&self) -> Result<String> {
        storage::head_to_json(&self.head)
    }

    /// Takes the predictions for the rows that the forest was grown on; `None` for a forest that was read.
    pub fn take_oob(&mut self) -> Option<OobPredictions> {
        self.oob.take()
    }

    /// Predictions for the rows that the forest was grown on; `None` for a forest that was read.
    pub fn oob(&self) -> Option<&OobPredictions> {
        self.oob.as_ref()
    }
}
