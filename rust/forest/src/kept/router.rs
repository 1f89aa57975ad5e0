//! Routes rows down all trees of a kept forest.

use ferrank_runtime::error::{Error, Result};
use rayon::prelude::*;

use super::codes::RowCoder;
use super::head::Head;
use super::nodes::Nodes;
use super::tree_tables::Trees;
use super::walk::RoutedTree;
/// Routes rows down all trees.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) coder: RowCoder,
    pub(super) trees: Vec<RoutedTree>,
}

impl Router {
    /// For `trees` that fit `head`.
    ///
    /// # Errors
    /// [`Error::Data`] if a feature has more cuts than codes.
    pub(super) fn new(head: &Head, trees: &Trees) -> Result<Self> {
        let coder = RowCoder::new(head, trees.batches()).map_err(Error::Data)?;
        let tree = |tree| {
            let code_of_cut = |feature, cut| coder.code_of_cut(feature, cut);
            let (batch, components) = (trees.batch(tree), head.components_of_tree(tree));
            RoutedTree::new(&Nodes::new(&batch), components, |feature| coder.column_of(feature), code_of_cut)
        };
        let trees = (0..trees.len()).into_par_iter().map(tree).collect();
        Ok(Router { coder, trees })
    }
}
