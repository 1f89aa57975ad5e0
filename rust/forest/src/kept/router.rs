//! Routes rows down all trees of a kept forest.

use ferrank_runtime::error::{Error, Result};
use rayon::prelude::*;

use super::codes::RowCoder;
use super::head::Head;
use super::nodes::Nodes;
use super::tree_tables::Trees;
use super::walk::RoutedTree;
use crate::paired::WalkedCode;

/// Routes rows down all trees.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) coder: RowCoder,
    pub(super) trees: RoutedTrees,
}

/// All trees, for codes of one byte or of two.
#[derive(Debug)]
pub(super) enum RoutedTrees {
    Narrow(Vec<RoutedTree<u8>>),
    Wide(Vec<RoutedTree<u16>>),
}

impl Router {
    /// For `trees` that fit `head`.
    ///
    /// # Errors
    /// [`Error::Data`] if a feature has more cuts than codes.
    pub(super) fn new(head: &Head, trees: &Trees) -> Result<Self> {
        let coder = RowCoder::new(head, trees.batches()).map_err(Error::Data)?;
        let trees = match coder.is_narrow() && coder.n_columns() <= u8::MOST_COLUMNS {
            true => RoutedTrees::Narrow(routed(head, trees, &coder)),
            false => RoutedTrees::Wide(routed(head, trees, &coder)),
        };
        Ok(Router { coder, trees })
    }
}

/// `trees`, for codes that `coder` makes.
fn routed<C: WalkedCode>(head: &Head, trees: &Trees, coder: &RowCoder) -> Vec<RoutedTree<C>> {
    let tree = |tree| RoutedTree::new(&Nodes::new(&trees.batch(tree)), head.components_of_tree(tree), coder);
    (0..trees.len()).into_par_iter().map(tree).collect()
}
