//! A complete tree in compact form, which routes rows to its nodes.
//!
//! Splits are numbered in preorder, and so are leaves. A tree is assembled in preorder from splits, leaves and
//! subtrees, which may have been grown elsewhere.
//!
//! Memory: 16 bytes for each split, and a bit for each category of a tested subset.

use std::sync::Arc;

use crate::paired::{PairedTree, Subset, WalkedCode};
use crate::router::{GoesLeft, Reached, Router};
use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer};
use crate::view::View;
use ferrank_data::store::{Code, CodeStore, Slot};
use ferrank_runtime::error::Result;

/// A compact tree. A branch is the position of a step or the number of a leaf.
#[derive(Default)]
pub(crate) struct PackedTree {
    /// The splits in preorder.
    pub(crate) steps: Vec<Step>,
    pub(crate) columns: Arc<TreeColumns>,
    n_leaves: u32,
    /// The categories that go left, for each test of a subset.
    subsets: Vec<Subset>,
}

/// A split of a [`PackedTree`].
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Position of the feature in [`TreeColumns`]; the feature itself until the tree is complete.
    pub(crate) column: u32,
    /// The highest code that goes left, plus 1 and [`MISSING_LEFT`] if missing values go left. With [`SUBSET`], the
    /// number of the subset.
    test: u32,
    /// The left and the right branch; see [`LEAF`].
    pub(crate) branches: [u32; 2],
}

/// A branch of a step whose node is still to be added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    step: u32,
    side: usize,
}

/// A node that rows reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// The number of a split, in preorder, and the position of the first example on its right side.
    Split(u32, usize),
    /// The number of a leaf, in preorder.
    Leaf(u32),
}

/// Marks the number of a leaf.
pub(crate) const LEAF: u32 = 1 << 31;
const SUBSET: u32 = 1 << 31;
/// Marks a test whose missing values go left. Codes are then increased by 1, so that the code of a missing value wraps
/// to 0.
const MISSING_LEFT: u32 = 1 << 16;

impl PackedTree {
    fn lead(&mut self, link: Option<Link>, to: u32) {
        if let Some(Link { step, side }) = link {
            self.steps[step as usize].branches[side] = to;
        }
    }

    /// Adds the split that `link` leads to. Returns the branches to its children.
    pub(crate) fn add_split(&mut self, link: Option<Link>, split: &BufferedSplit) -> [Link; 2] {
        let test = match &split.test {
            CodeTest::Cut(cut) if split.missing_left => (u32::from(*cut) + 1) | MISSING_LEFT,
            CodeTest::Cut(cut) => u32::from(*cut),
            CodeTest::Subset(codes) => {
                self.subsets.push(Subset::new(codes, split.missing_left));
                (self.subsets.len() as u32 - 1) | SUBSET
            }
        };
        let step = self.steps.len() as u32;
        self.steps.push(Step { column: split.feature, test, branches: [LEAF; 2] });
        self.lead(link, step);
        [0, 1].map(|side| Link { step, side })
    }

    pub(crate) fn add_leaf(&mut self, link: Option<Link>) {
        self.lead(link, self.n_leaves | LEAF);
        self.n_leaves += 1;
    }

    /// Adds a whole tree, or the subtree that `link` leads to.
    pub(crate) fn add_tree(&mut self, link: Option<Link>, tree: &TreeBuffer) {
        let mut links = vec![link];
        for split in tree.splits_of_nodes() {
            // In preorder the last link leads to the next node.
            let link = links.pop().flatten();
            match split {
                Some(split) => links.extend(self.add_split(link, split).map(Some).into_iter().rev()),
                None => self.add_leaf(link),
            }
        }
    }

    /// Completes the tree: replaces features by columns, which are the tested ones.
    pub(crate) fn finish(&mut self, store: &CodeStore) {
        let columns = Arc::new(TreeColumns::new(&self.steps, store));
        self.finish_over(store, &columns);
    }

    /// Completes the tree: replaces features by their positions in `columns`, which may have others, too.
    pub(crate) fn finish_over(&mut self, store: &CodeStore, columns: &Arc<TreeColumns>) {
        self.columns = Arc::clone(columns);
        for step in &mut self.steps {
            step.column = self.columns.position(store.slots[step.column as usize]) as u32;
        }
    }

    /// The tree for rows with codes of type `C`, which can represent the codes of all features. Leaves have the same
    /// numbers.
    pub(crate) fn paired<C: WalkedCode>(&self) -> PairedTree<C> {
        let mut tree = PairedTree::new(2 * self.steps.len() + 1);
        let mut branches = vec![if self.steps.is_empty() { LEAF } else { 0 }];
        while let Some(branch) = branches.pop() {
            if branch & LEAF != 0 {
                tree.add_leaf();
                continue;
            }
            let Step { column, test, branches: [left, right] } = self.steps[branch as usize];
            match test & SUBSET {
                0 => {
                    let missing_left = test & MISSING_LEFT != 0;
                    tree.add_cut(column, (test as u16).wrapping_sub(u16::from(missing_left)), missing_left);
                }
                _ => tree.add_subset(column, self.subsets[(test & !SUBSET) as usize].clone()),
            }
            branches.extend([right, left]);
        }
        tree
    }

    /// Returns true if `code` goes left from `step`. `SUBSETS` is true if some tests are on subsets; otherwise the
    /// compiler omits a branch.
    #[inline(always)]
    fn goes_left<C: Code, const SUBSETS: bool>(&self, step: Step, code: C) -> bool {
        if SUBSETS && step.test & SUBSET != 0 {
            return self.subsets[(step.test & !SUBSET) as usize].has(code);
        }
        // The code of a missing value is the highest number of the type, so that adding 1 gives 0.
        let code = (code.index() as u16).wrapping_add((step.test >> 16) as u16);
        C::from_u16(code) <= C::from_u16(step.test as u16)
    }

    /// Routes the examples of `router`, whose rows are numbered as in `view`, down the tree. Calls `visit` in preorder
    /// for each node that some examples reach, with these examples: those on the left side of a split, then those on the
    /// right side, each in the order of their rows. Each row of `router` needs its multiplicity or its pair.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub(crate) fn apply(
        &self,
        view: View<'_>,
        router: &mut Router,
        mut visit: impl FnMut(Node, &mut Reached<'_>) -> Result<()>,
    ) -> Result<()> {
        let root = if self.steps.is_empty() { LEAF } else { 0 };
        let mut stack = vec![(root, 0..router.items.rows.len())];
        while let Some((node, range)) = stack.pop() {
            if range.is_empty() {
                continue;
            }
            let number = node & !LEAF;
            if node & LEAF != 0 {
                visit(Node::Leaf(number), &mut router.reached(range, view))?;
                continue;
            }
            let step = self.steps[number as usize];
            let slot = self.columns.slot(step.column as usize);
            let middle = match step.test & SUBSET {
                0 => router.part(range.clone(), view, slot, Rule::<false> { tree: self, step }),
                _ => router.part(range.clone(), view, slot, Rule::<true> { tree: self, step }),
            };
            visit(Node::Split(number, middle), &mut router.reached(range.clone(), view))?;
            let [left, right] = step.branches;
            stack.extend([(right, middle..range.end), (left, range.start..middle)]);
        }
        Ok(())
    }
}

/// The test of a step, on a subset if `SUBSET`.
struct Rule<'a, const SUBSET: bool> {
    tree: &'a PackedTree,
    step: Step,
}

impl<const SUBSET: bool> GoesLeft for Rule<'_, SUBSET> {
    fn goes_left<C: Code>(&self, code: C) -> bool {
        self.tree.goes_left::<C, SUBSET>(self.step, code)
    }
}

/// The features that a tree tests: those with codes of one byte, those with codes of two bytes, then sparse ones.
#[derive(Default)]
pub(crate) struct TreeColumns {
    /// The feature of each column.
    pub(crate) features: Vec<u32>,
    /// The slots of the features with codes of one byte, and with codes of two bytes, ascending.
    pub(crate) narrow: Vec<usize>,
    pub(crate) wide: Vec<usize>,
    /// The numbers of the sparse features, ascending.
    pub(crate) sparse: Vec<usize>,
}

impl TreeColumns {
    /// The columns of the features in `steps`.
    fn new(steps: &[Step], store: &CodeStore) -> Self {
        let mut tested = vec![false; store.slots.len()];
        steps.iter().for_each(|step| tested[step.column as usize] = true);
        TreeColumns::of(&tested, store)
    }

    /// The columns of all features.
    pub(crate) fn all(store: &CodeStore) -> Self {
        TreeColumns::of(&vec![true; store.slots.len()], store)
    }

    /// The columns of the features that are `tested`.
    fn of(tested: &[bool], store: &CodeStore) -> Self {
        let (mut columns, mut wide_features, mut sparse_features) = (TreeColumns::default(), Vec::new(), Vec::new());
        for ((feature, slot), _) in (0..).zip(&store.slots).zip(tested).filter(|(_, tested)| **tested) {
            match *slot {
                Slot::Narrow(slot) => {
                    columns.features.push(feature);
                    columns.narrow.push(slot);
                }
                Slot::Wide(slot) => {
                    wide_features.push(feature);
                    columns.wide.push(slot);
                }
                Slot::Sparse(number) => {
                    sparse_features.push(feature);
                    columns.sparse.push(number);
                }
            }
        }
        columns.features.extend(wide_features);
        columns.features.extend(sparse_features);
        columns
    }

    pub(crate) fn len(&self) -> usize {
        self.features.len()
    }

    /// Returns true if all codes fit in a byte, and rows can be walked down the tree by codes of a byte.
    pub(crate) fn is_narrow(&self) -> bool {
        self.wide.is_empty() && self.sparse.is_empty() && self.len() <= u8::MOST_COLUMNS
    }

    /// The position of the column in `slot`, which must be tested.
    fn position(&self, slot: Slot) -> usize {
        let position = match slot {
            Slot::Narrow(slot) => self.narrow.binary_search(&slot),
            Slot::Wide(slot) => self.wide.binary_search(&slot).map(|position| self.narrow.len() + position),
            Slot::Sparse(number) => {
                let first = self.narrow.len() + self.wide.len();
                self.sparse.binary_search(&number).map(|position| first + position)
            }
        };
        position.expect("the feature is tested")
    }

    /// The slot of the column at `position`.
    fn slot(&self, position: usize) -> Slot {
        let (narrow, wide) = (self.narrow.len(), self.wide.len());
        match position {
            _ if position < narrow => Slot::Narrow(self.narrow[position]),
            _ if position < narrow + wide => Slot::Wide(self.wide[position - narrow]),
            _ => Slot::Sparse(self.sparse[position - narrow - wide]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tested_column_is_found_where_it_was_put() {
        let columns = TreeColumns { features: vec![3, 5, 0, 9], narrow: vec![2, 4], wide: vec![0], sparse: vec![7] };
        let slots = [Slot::Narrow(2), Slot::Narrow(4), Slot::Wide(0), Slot::Sparse(7)];
        for (position, slot) in slots.into_iter().enumerate() {
            assert_eq!((columns.position(slot), columns.slot(position)), (position, slot));
        }
    }
}
