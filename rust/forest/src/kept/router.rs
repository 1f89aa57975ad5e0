//! Routes rows down all trees of a kept forest.

use std::ops::Range;

use arrow_array::{Array, RecordBatch};
use ferrank_runtime::error::{Error, Result};
use rayon::prelude::*;

use super::codes::RowCoder;
use super::head::Head;
use super::nodes::Nodes;
use super::walk::RoutedTree;
use crate::oob::{Link, PackedTree};
use crate::tree_buffer::{BufferedSplit, CodeTest, KNOWN};

/// Routes rows down all trees.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) coder: RowCoder,
    pub(super) trees: Vec<RoutedTree>,
}

impl Router {
    /// For trees that were checked.
    ///
    /// # Errors
    /// [`Error::Data`] if a feature has more cuts than codes.
    pub(super) fn new(head: &Head, batches: &[RecordBatch]) -> Result<Self> {
        let coder = RowCoder::new(head, batches.iter().map(Nodes::new)).map_err(Error::Data)?;
        let tree = |(number, batch)| routed(&Nodes::new(batch), &coder, head.components_of_tree(number));
        let trees = batches.par_iter().enumerate().map(tree).collect();
        Ok(Router { coder, trees })
    }
}

/// The tree that routes rows coded by `coder`, and may predict `components`.
fn routed(nodes: &Nodes<'_>, coder: &RowCoder, components: Range<usize>) -> RoutedTree {
    let (mut packed, mut leaf_nodes) = (PackedTree::default(), Vec::with_capacity(nodes.len() / 2 + 1));
    let mut links: Vec<Option<Link>> = vec![None];
    for node in 0..nodes.len() {
        // In preorder the last link leads to the next node.
        let link = links.pop().flatten();
        if nodes.is_leaf(node) {
            packed.add_leaf(link);
            leaf_nodes.push(node as u32);
            continue;
        }
        let feature = nodes.feature.value(node);
        let test = match nodes.cut.is_valid(node) {
            true if nodes.cut.value(node) == f64::INFINITY => CodeTest::Cut(KNOWN),
            true => CodeTest::Cut(coder.code_of_cut(feature, nodes.cut.value(node))),
            false => CodeTest::Subset(nodes.categories(node).to_vec()),
        };
        let split = BufferedSplit {
            feature: coder.column_of(feature),
            test,
            missing_left: nodes.missing_left.value(node),
            gain: 0.0,
            children: [0; 2],
        };
        links.extend(packed.add_split(link, &split).map(Some).into_iter().rev());
    }
    RoutedTree { packed, leaf_nodes, values: nodes.leaf_values(components) }
}
