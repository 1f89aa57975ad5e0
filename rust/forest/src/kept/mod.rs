//! Forests that are kept: their trees as Arrow tables, predictions for new rows and for the out-of-bag rows.
//!
//! ```text
//! tree of codes       keeper, leaf_values    while trees are grown: tests on values, what leaves predict
//! trees               grown, tree_tables     as they were grown, until a table of their nodes is asked for
//! Arrow file          nodes, storage         a record batch for each tree, mapped when it is read
//! new rows            codes, walk, predict   values to codes of the forest's own cuts, then down the trees
//! out-of-bag rows     out_of_bag             each row by the trees that have it out of bag, when they are asked for
//! ```
//!
//! New rows go down a tree by codes, side by side (`walk`), out-of-bag rows as for a score, in a
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
//! An uncompressed Arrow IPC file. The key `ferrank:forest` of the schema's metadata holds a JSON object: `format` (2),
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
//! The key `ferrank:checksum` of the footer's metadata holds the XXH3-64 of the bytes up to the end of the last batch, in
//! hexadecimal digits.
//!
//! A file is foreign bytes: all of it is checked when it is read, so that a damaged one is an error.
//!
//! Memory: 13 bytes for each node of a tree that was grown to predict one number, and for prediction 12 for each node
//! and 4 more for each leaf; the codes of the training rows until they are forgotten. Out-of-bag predictions take a
//! number for each row and component, and 8 bytes for each out-of-bag row of the trees that are walked at a time.

mod codes;
mod forest;
mod grown;
mod head;
mod importance;
mod keeper;
mod leaf_values;
mod nodes;
mod out_of_bag;
mod predict;
mod router;
mod storage;
#[cfg(test)]
mod tests;
mod tree_tables;
mod walk;

pub use forest::KeptForest;
pub use head::{KeptFeature, KeptTarget};
pub use importance::{Interaction, Trend};
pub use out_of_bag::{OobPredictions, OobScore};
pub use predict::Output;

pub(crate) use keeper::{EnsembleKeeper, Keeper};
pub(crate) use leaf_values::LeafPredictor;
