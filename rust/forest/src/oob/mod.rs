//! Out-of-bag rows: the rows that are not in the bag of a tree, and the tree that routes them.
//!
//! A score that reads out-of-bag rows gets an [`OobView`] of each complete tree. The tree is assembled in preorder from
//! splits, leaves and subtrees ([`OobTree`]), because growth in external memory never holds all of its nodes.
//!
//! Memory: the tree, 16 bytes for a split, and the contrasts of its splits and the predictions of its leaves if a score
//! reads them; a bit for each row.

mod leaf_totals;
mod packed;
mod predictions;
mod rows;
mod targets;

use std::borrow::Cow;

use ferrank_data::intake::CHUNK_ROWS;
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

use crate::bag::Bag;
use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::tree_buffer::{BufferedSplit, TreeBuffer};
pub(crate) use leaf_totals::LeafTotals;
pub(crate) use packed::{LEAF, Link, Node, PackedTree};
pub(crate) use predictions::{LeafPredictions, mean};
pub(crate) use rows::OutOfBagRows;
pub(crate) use targets::{Numeric, Targets};

/// What is shared by the out-of-bag views of all trees of an ensemble.
pub(crate) struct OobContext<'a> {
    context: GrowContext<'a>,
    needs: OobNeeds,
    /// The targets that trees predict.
    pub(crate) targets: Targets<'a>,
    has_missing: bool,
    /// The folder of temporary files, if the rows do not fit into memory.
    scratch: Option<&'a Scratch>,
}

impl<'a> OobContext<'a> {
    /// The context of trees that predict the targets `subset`.
    pub(crate) fn new(
        context: GrowContext<'a>,
        needs: OobNeeds,
        subset: &[usize],
        scratch: Option<&'a Scratch>,
    ) -> Self {
        let targets = Targets::new(context.store, subset);
        OobContext { context, needs, has_missing: targets.has_missing(), targets, scratch }
    }

    /// A tree without nodes.
    pub(crate) fn tree(&self) -> OobTree {
        let leaves = LeafPredictions::new(&self.targets, self.needs.predictions && self.has_missing);
        OobTree { packed: PackedTree::default(), needs: self.needs, leaves, contrasts: Contrasts::default() }
    }

    /// The targets, if predictions of leaves are needed.
    pub(crate) fn predicted(&self) -> Option<&Targets<'a>> {
        self.needs.predictions.then_some(&self.targets)
    }

    /// The view of the complete `tree` with number `number`.
    pub(crate) fn view<'b>(&'b self, number: u64, tree: &'b mut OobTree, rows: &'b OutOfBagRows) -> OobView<'b> {
        tree.packed.finish(self.context.store);
        tree.leaves.finish();
        let OobTree { packed, leaves, contrasts, .. } = tree;
        let &OobContext { context, ref targets, has_missing, scratch, .. } = self;
        OobView { context, number, tree: packed, predictions: leaves, contrasts, targets, has_missing, rows, scratch }
    }
}

/// The rows that are not in the bag of tree number `tree`. The bag is drawn again, block by block.
///
/// # Errors
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
pub(crate) fn rows_of_tree(context: GrowContext<'_>, tree: u64) -> Result<OutOfBagRows> {
    let GrowContext { store, monitor, .. } = context;
    let bags = context.bags();
    let (mut rows, mut bag) = (OutOfBagRows::candidates(bags, tree), Bag::default());
    for (block, base) in (0..store.rows).step_by(CHUNK_ROWS).enumerate() {
        monitor.check()?;
        bags.take_block(tree, block, &mut bag);
        rows.remove(base, &bag);
    }
    Ok(rows)
}

/// What scores read of a complete tree, besides its splits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OobNeeds {
    /// The predictions of the leaves.
    pub(crate) predictions: bool,
    /// The contrasts of the splits.
    pub(crate) contrasts: bool,
}

impl OobNeeds {
    /// What either needs.
    pub(crate) fn and(self, other: OobNeeds) -> Self {
        OobNeeds { predictions: self.predictions || other.predictions, contrasts: self.contrasts || other.contrasts }
    }
}

/// A complete tree and its out-of-bag rows.
pub(crate) struct OobView<'a> {
    pub(crate) context: GrowContext<'a>,
    /// The number of the tree.
    pub(crate) number: u64,
    pub(crate) tree: &'a PackedTree,
    /// Empty unless they are needed.
    pub(crate) predictions: &'a LeafPredictions,
    /// Empty unless they are needed.
    pub(crate) contrasts: &'a Contrasts,
    pub(crate) targets: &'a Targets<'a>,
    has_missing: bool,
    /// The rows that are not in the bag.
    pub(crate) rows: &'a OutOfBagRows,
    /// The folder of temporary files, if the rows do not fit into memory.
    pub(crate) scratch: Option<&'a Scratch>,
}

impl<'a> OobView<'a> {
    /// The out-of-bag rows with a target.
    pub(crate) fn labelled_rows(&self) -> Cow<'a, OutOfBagRows> {
        if !self.has_missing {
            return Cow::Borrowed(self.rows);
        }
        let mut rows = self.rows.clone();
        rows.retain(|row| self.targets.some_known(row));
        Cow::Owned(rows)
    }
}

/// A tree that is assembled in preorder: its splits, their contrasts and the predictions of its leaves.
pub(crate) struct OobTree {
    packed: PackedTree,
    needs: OobNeeds,
    leaves: LeafPredictions,
    contrasts: Contrasts,
}

impl OobTree {
    /// Adds the split that `link` leads to, with its `contrasts`. Returns the branches to its children.
    pub(crate) fn add_split(&mut self, link: Option<Link>, split: &BufferedSplit, contrasts: &Contrasts) -> [Link; 2] {
        self.leaves.add_split();
        self.contrasts.append(contrasts);
        self.packed.add_split(link, split)
    }

    /// Adds a leaf with the totals of its members.
    pub(crate) fn add_leaf(&mut self, link: Option<Link>, totals: &LeafTotals) {
        self.packed.add_leaf(link);
        if self.needs.predictions {
            self.leaves.add(totals);
        }
    }

    /// Adds a tree or a subtree that was grown with what is needed. `targets` are those of its rows.
    pub(crate) fn add_tree(&mut self, link: Option<Link>, tree: &TreeBuffer, targets: &Targets<'_>) {
        self.packed.add_tree(link, tree);
        self.contrasts.append(&tree.contrasts);
        if self.needs.predictions {
            self.leaves.add_members(targets, tree);
        }
    }
}

/// The expected size of a tree in external memory.
#[derive(Debug)]
pub(crate) struct OobSize {
    /// Expected number of leaves.
    pub(crate) leaves: f64,
    /// Expected number of out-of-bag rows.
    pub(crate) out_of_bag: f64,
    pub(crate) n_features: usize,
    pub(crate) n_targets: usize,
    /// Number of rows of the store.
    pub(crate) n_rows: usize,
    /// True if all codes fit in a byte.
    pub(crate) is_narrow: bool,
}

impl OobSize {
    /// Bytes of the tree and of its out-of-bag rows.
    pub(crate) fn tree_bytes(&self) -> usize {
        // Vectors grow by doubling, and so have on average half their size to spare.
        (self.leaves * (16 + 8 * self.n_targets) as f64 * 1.5) as usize + self.n_rows / 8
    }
}
