//! Out-of-bag rows: the rows that are not in the bag of a tree, and the tree that routes them.
//!
//! A score that reads out-of-bag rows gets an [`OobView`] of each complete tree. Growth in external memory does not hold
//! all nodes of a tree, and shows it in parts: an [`OobView`] of the upper tree, whose leaves stand for subtrees, and then
//! these one by one, each an [`OobPart`]. Only where memory is ample, or where a leaf may predict what rows of other
//! subtrees have ([`OobContext::is_in_parts`]), it assembles the whole tree, in preorder from splits, leaves and subtrees
//! ([`OobTree`]).
//!
//! Memory: the tree, 16 bytes for a split, and the contrasts of its splits and the predictions of its leaves if a score
//! reads them; a bit for each row.

mod gathered;
mod leaf_totals;
mod packed;
mod predictions;
mod rows;
mod shares;
mod targets;

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use ferrank_data::store::bands::BAND;
use ferrank_data::store::{CodeStore, Stored};

use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::router::{Reached, Router};
use crate::space::Block;
use crate::tree_buffer::{BufferedSplit, TreeBuffer};
use crate::view::View;
pub(crate) use gathered::GatheredCodes;
pub(crate) use leaf_totals::LeafTotals;
pub(crate) use packed::{Link, Node, PackedTree, TreeColumns};
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
    place: OobPlace<'a>,
}

/// Where the out-of-bag rows of a tree are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OobPlace<'a> {
    /// All rows are in memory.
    Memory,
    /// Rows are in temporary files. Memory holds a whole tree, and the codes of its out-of-bag rows by feature.
    Held(&'a Scratch),
    /// Rows are in temporary files.
    Outside(&'a Scratch),
}

impl<'a> OobPlace<'a> {
    /// The folder of temporary files, if rows are outside memory.
    pub(crate) fn scratch(self) -> Option<&'a Scratch> {
        match self {
            OobPlace::Memory => None,
            OobPlace::Held(scratch) | OobPlace::Outside(scratch) => Some(scratch),
        }
    }

    /// The folder of temporary files for codes by feature, if memory does not hold these.
    pub(crate) fn outside(self) -> Option<&'a Scratch> {
        match self {
            OobPlace::Memory | OobPlace::Held(_) => None,
            OobPlace::Outside(scratch) => Some(scratch),
        }
    }
}

impl<'a> OobContext<'a> {
    /// The context of trees that predict the targets `subset`.
    pub(crate) fn new(context: GrowContext<'a>, needs: OobNeeds, subset: &[usize], place: OobPlace<'a>) -> Self {
        let targets = Targets::new(context.store, subset);
        let has_missing = subset.iter().any(|&target| context.store.targets[target].has_missing());
        OobContext { context, needs, has_missing, targets, place }
    }

    /// A tree without nodes.
    pub(crate) fn tree(&self) -> OobTree {
        let OobNeeds { predictions, shares, .. } = self.needs;
        let leaves = LeafPredictions::new(&self.targets, predictions && self.has_missing, shares);
        OobTree { packed: PackedTree::default(), needs: self.needs, leaves, contrasts: Contrasts::default() }
    }

    /// The totals of a node without rows.
    pub(crate) fn no_totals(&self) -> LeafTotals {
        LeafTotals::new(&self.targets)
    }

    /// The targets, if predictions of leaves are needed.
    pub(crate) fn predicted(&self) -> Option<&Targets<'a>> {
        self.needs.predictions.then_some(&self.targets)
    }

    /// Returns true if trees outside memory are shown in parts.
    pub(crate) fn is_in_parts(&self) -> bool {
        matches!(self.place, OobPlace::Outside(_)) && self.needs.allow_parts(self.has_missing)
    }

    /// The view of the complete `tree` with number `number`. `codes` are those of its out-of-bag `rows`, where the store
    /// does not have them.
    pub(crate) fn view<'b>(
        &'b self,
        number: u64,
        tree: &'b OobTree,
        rows: &'b OutOfBagRows,
        codes: Option<&'b GatheredCodes>,
    ) -> OobView<'b> {
        let OobContext { has_missing, place, .. } = *self;
        OobView { of: self.tree_view(tree), number, has_missing, rows, codes, place }
    }

    /// The view of the complete `subtree` that takes the place of leaf number `leaf` of an upper tree, after
    /// `splits_before` of its splits in preorder.
    pub(crate) fn part<'b>(&'b self, subtree: &'b OobTree, leaf: usize, splits_before: usize) -> OobPart<'b> {
        OobPart { of: self.tree_view(subtree), leaf, splits_before }
    }

    fn tree_view<'b>(&'b self, tree: &'b OobTree) -> TreeView<'b> {
        let OobTree { packed, leaves, contrasts, .. } = tree;
        TreeView { context: self.context, tree: packed, predictions: leaves, contrasts, targets: &self.targets }
    }
}

/// What scores read of a complete tree, besides its splits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OobNeeds {
    /// The predictions of the leaves.
    pub(crate) predictions: bool,
    /// The shares of labels in the leaves, in addition to the predictions.
    pub(crate) shares: bool,
    /// The contrasts of the splits.
    pub(crate) contrasts: bool,
}

impl OobNeeds {
    /// Returns true if a tree can be shown in parts: no score looks at all rows at once, and each leaf predicts from its
    /// own rows, because no target `is_missing` in some rows.
    pub(crate) fn allow_parts(self, is_missing: bool) -> bool {
        let needs_whole = self.shares || (self.predictions && is_missing);
        !needs_whole
    }

    /// What either needs.
    pub(crate) fn and(self, other: OobNeeds) -> Self {
        OobNeeds {
            predictions: self.predictions || other.predictions,
            shares: self.shares || other.shares,
            contrasts: self.contrasts || other.contrasts,
        }
    }
}

/// A tree, an upper tree or a subtree.
#[derive(Clone, Copy)]
pub(crate) struct TreeView<'a> {
    pub(crate) context: GrowContext<'a>,
    pub(crate) tree: &'a PackedTree,
    /// Empty unless they are needed. In an upper tree, a leaf that a subtree takes the place of predicts nothing.
    pub(crate) predictions: &'a LeafPredictions,
    /// Empty unless they are needed.
    pub(crate) contrasts: &'a Contrasts,
    pub(crate) targets: &'a Targets<'a>,
}

/// A subtree of a tree that is shown in parts.
pub(crate) struct OobPart<'a> {
    pub(crate) of: TreeView<'a>,
    /// The number of the leaf of the upper tree that it takes the place of.
    pub(crate) leaf: usize,
    /// The number of splits of the upper tree that come before it.
    pub(crate) splits_before: usize,
}

/// A complete tree, or an upper tree, and its out-of-bag rows.
pub(crate) struct OobView<'a> {
    of: TreeView<'a>,
    /// The number of the tree.
    pub(crate) number: u64,
    has_missing: bool,
    /// The rows that are not in the bag.
    pub(crate) rows: &'a OutOfBagRows,
    /// Their codes, where the store does not have them.
    codes: Option<&'a GatheredCodes>,
    pub(crate) place: OobPlace<'a>,
}

impl<'a> Deref for OobView<'a> {
    type Target = TreeView<'a>;

    fn deref(&self) -> &TreeView<'a> {
        &self.of
    }
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

    /// The out-of-bag rows whose classes and label sets are all known.
    pub(crate) fn rows_with_all_labels(&self) -> Cow<'a, OutOfBagRows> {
        if !self.has_missing {
            return Cow::Borrowed(self.rows);
        }
        let mut rows = self.rows.clone();
        rows.retain(|row| self.targets.all_labels_known(row));
        Cow::Owned(rows)
    }

    /// Calls `each` with the position of each of out-of-bag `rows` of the block that starts with row `base`, and its codes
    /// in `band`.
    ///
    /// # Errors
    /// [`Error::File`](ferrank_runtime::error::Error::File) if a temporary file cannot be read.
    pub(crate) fn band<C: Stored>(
        &self,
        (base, rows): (usize, &[u32]),
        band: usize,
        mut each: impl FnMut(usize, &[C; BAND]),
    ) -> Result<()> {
        match self.codes {
            None => View::from_codes(self.context.store, base).band(band, rows, each),
            Some(codes) => {
                let cells = codes.band::<C>(base, band)?;
                let places = self.rows.places(base, rows);
                places.into_iter().enumerate().for_each(|(position, place)| each(position, &cells[place as usize]));
            }
        }
        Ok(())
    }

    /// Routes out-of-bag `rows` of the block that starts with row `base` down the tree, as [`PackedTree::apply`] does.
    /// `block` has the values of all rows of the block; `own` is a buffer. Views that are visited know the
    /// [origin](View::origin) of their rows.
    ///
    /// # Errors
    /// As for [`OobView::band`], and the first error of `visit`.
    pub(crate) fn apply_to_block(
        &self,
        (base, rows): (usize, &[u32]),
        (block, own): (&Block, &mut Block),
        router: &mut Router,
        visit: impl FnMut(Node, &mut Reached<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.codes {
            None => {
                router.items.take_once(rows.iter().copied());
                self.tree.apply(View::from_block(self.context.store, base, block), router, visit)
            }
            Some(codes) => {
                let (chunk, origins) = (codes.chunk(base)?, self.rows.numbers(base));
                block.gather(rows, own);
                router.items.take_once(self.rows.places(base, rows).into_iter());
                self.tree.apply(View::from_chunk(&chunk, own, &origins), router, visit)
            }
        }
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

    /// Returns true if the tree is more than a leaf.
    pub(crate) fn has_splits(&self) -> bool {
        !self.packed.steps.is_empty()
    }

    /// Completes the tree, over the features that it tests.
    pub(crate) fn finish(&mut self, store: &CodeStore) {
        self.packed.finish(store);
        self.leaves.finish();
    }

    /// Completes the tree, with `columns` for all features instead of those that it tests.
    pub(crate) fn finish_over(&mut self, store: &CodeStore, columns: &Arc<TreeColumns>) {
        self.packed.finish_over(store, columns);
        self.leaves.finish();
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
    /// Expected number of leaves; 0 of a tree that is shown in parts.
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
        (self.leaves * OobSize::bytes_of_leaf(self.n_targets) as f64) as usize + self.n_rows / 8
    }

    /// Bytes of the tree for each leaf.
    pub(crate) fn bytes_of_leaf(n_targets: usize) -> usize {
        // Vectors grow by doubling, and so have on average half their size to spare.
        (16 + 8 * n_targets) * 3 / 2
    }
}
