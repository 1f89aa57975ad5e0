//! Growing one tree: top-down, depth first, with an explicit stack.
//!
//! The examples of a node are a range of the bag. A split divides the range in two and keeps the order of rows, so that
//! sums are added up in the order of rows wherever the rows are stored.
//!
//! ```text
//! while the stack is not empty:
//!     pop a node; if its codes fit the next cache, copy them together and grow the subtree there; if pairs hold
//!         the sums of its examples, make these and grow the subtree of them
//!     draw features until enough of them vary; search the best test of each   (search, group, feature_search, sum_search; plain, two_examples, few_examples, sparse)
//!     divide the examples by the best test; push the right child, then the left one   (partition)
//! ```
//!
//! Memory: for each thread 20 bytes for each row of the bag, and as many for a partition or, where pairs are read by row, 16 for
//! each row; the sums of the nodes on the stack, copies of the codes and pairs of nodes that fit the caches, and the entries of
//! sparse features in a node.

mod feature_codes;
mod feature_search;
mod few_examples;
mod group;
mod node;
mod node_entries;
mod partition;
mod plain;
mod search;
mod sparse;
mod state;
mod sum_search;
mod two_examples;

pub(super) use state::{Grower, LEAST_GAIN, SubtreeRoot, SubtreeRows};

use std::mem::swap;
use std::ops::Range;

use super::bag::Bag;
use super::context::GrowContext;
use super::criterion::EXAMPLES;
use super::pairs::PairLayout;
use super::scores::SplitScores;
use super::tree_buffer::TreeBuffer;
use super::view::{CASCADE, View};
use ferrank_data::store::bands::BAND;
use ferrank_runtime::error::Result;
use ferrank_runtime::random::ROOT;
use state::{KnownSums, PendingNode};

/// Plain nodes of more examples read pairs by row and move their rows alone, which takes a third of the cycles of moving both:
/// 1.06x on two classes (100k x 20). The pairs of fewer examples take less of the inner cache if they lie together.
const MOST_IN_ORDER: usize = 512;

/// Pairs of nodes with fewer examples are not repacked: their subtrees are too small to gain from it.
const LEAST_REPACKED: usize = 4;

impl Grower<'_> {
    /// Grows the tree with number `tree` on `bag`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn grow(&mut self, bag: &Bag, tree: u64) -> Result<&TreeBuffer> {
        let GrowContext { store, space, .. } = self.context;
        self.tree = tree;
        self.tree_buffer.clear();
        self.totals.clear();
        self.pool.rewind(self.whole);
        self.items.take(bag, self.criterion.is_single().then_some(&space.block.dense[..]));
        let examples = 0..bag.rows.len();
        let (mark, tracked) = (self.whole, self.tracked.all());
        let sums = KnownSums::Nothing;
        let root = PendingNode { examples, depth: 0, path: ROOT, mark, sums, tracked, by_row: false };
        let stage = CASCADE.iter().filter(|&&bytes| store.rows * self.row_bytes <= bytes).count();
        self.subtree(View::from_store(store, &space.block), stage, root)?;
        Ok(&self.tree_buffer)
    }

    /// Grows the tree with number `tree` on `bag` and adds its splits to `scores`. The tree that is returned is empty unless
    /// `keeps_nodes`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn score(
        &mut self,
        bag: &Bag,
        tree: u64,
        scores: SplitScores,
        keeps_nodes: bool,
    ) -> Result<(SplitScores, &TreeBuffer)> {
        self.with_scores(scores, keeps_nodes, |grower| grower.grow(bag, tree).map(drop))
    }

    fn below(&mut self, below: SubtreeRows<'_>, place: SubtreeRoot<'_>) -> Result<()> {
        let SubtreeRows { chunk, block, counts } = below;
        let SubtreeRoot { tree, depth, path, constant_features, tracked: (first, last) } = place;
        self.tree = tree;
        self.tree_buffer.clear();
        self.totals.clear();
        self.pool.rewind(self.whole);
        constant_features.iter().for_each(|&feature| self.pool.mark_constant(feature));
        self.items.take_first(counts, self.criterion.is_single().then_some(&block.dense[..]));
        let examples = 0..counts.len();
        let (mark, tracked) = (self.pool.mark(), first..last);
        let root = PendingNode { examples, depth, path, mark, sums: KnownSums::Nothing, tracked, by_row: false };
        let stage = CASCADE.iter().filter(|&&bytes| counts.len() * self.row_bytes <= bytes).count();
        self.subtree(View::from_chunk(chunk, block, &[]), stage, root)
    }

    /// Grows the subtree at `place`, whose root has number 0, and adds its splits to `scores`. The tree that is returned is
    /// empty unless `keeps_nodes`.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn score_below(
        &mut self,
        below: SubtreeRows<'_>,
        place: SubtreeRoot<'_>,
        scores: SplitScores,
        keeps_nodes: bool,
    ) -> Result<(SplitScores, &TreeBuffer)> {
        self.with_scores(scores, keeps_nodes, |grower| grower.below(below, place))
    }

    /// Adds the splits of what `grow` grows to `scores`.
    fn with_scores(
        &mut self,
        scores: SplitScores,
        keeps_nodes: bool,
        grow: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(SplitScores, &TreeBuffer)> {
        (self.scores, self.keeps_nodes) = (Some(scores), keeps_nodes);
        let done = grow(self);
        self.keeps_nodes = true;
        let scores = self.scores.take().expect("it was put there");
        done.map(|()| (scores, &self.tree_buffer))
    }

    /// Grows the subtree of `root`, whose rows are numbered as in `view`.
    fn subtree(&mut self, view: View<'_>, stage: usize, root: PendingNode) -> Result<()> {
        let is_plain = self.is_plain && self.items.are_pairs();
        let is_sparse_plain = is_plain && self.entries.is_some() && !self.kernels.is_at_random();
        let plain = view.chunk().filter(|_| is_plain && self.entries.is_none());
        if let Some(chunk) = plain
            && !root.by_row
            && !self.kernels.is_at_random()
            && root.examples.len() > MOST_IN_ORDER
        {
            let mut pairs = std::mem::take(&mut self.buffers.pairs_by_row);
            self.items.spread_pairs(root.examples.clone(), chunk.rows, &mut pairs);
            let done = self.subtree(view.with_pairs(&pairs), stage, PendingNode { by_row: true, ..root });
            self.buffers.pairs_by_row = pairs;
            return done;
        }
        let mut stack = vec![root];
        while let Some(mut pending) = stack.pop() {
            self.pool.rewind(pending.mark);
            if let Some(layout) = self.layout_of(&pending) {
                self.pair_subtree(view, stage, pending, layout)?;
                continue;
            }
            let n = pending.examples.len();
            if pending.by_row && n <= MOST_IN_ORDER {
                self.items.collect_pairs(pending.examples.clone(), view.pairs);
                pending.by_row = false;
            }
            if let KnownSums::Single(node) = &mut pending.sums {
                self.items.layout = Some(node.layout);
                if let PairLayout::Classes(fields) = node.layout
                    && !fields.has_plain_count()
                    && !pending.by_row
                    && n >= LEAST_REPACKED
                {
                    *node = self.items.repack(pending.examples.clone(), *node, fields);
                }
            }
            if let Some(next) = (stage..CASCADE.len()).rev().find(|&next| n * self.row_bytes <= CASCADE[next])
                && self.is_copy_worthwhile(n)
            {
                self.gather_subtree(view, next, pending)?;
                continue;
            }
            let (examples, tracked, by_row) = (pending.examples.clone(), pending.tracked.clone(), pending.by_row);
            let is_split = match plain {
                _ if is_sparse_plain => self.sparse_node(view, pending, &mut stack)?,
                Some(chunk) => self.plain_node(view, chunk, pending, &mut stack)?,
                None => self.node(view, pending, &mut stack)?,
            };
            if is_split {
                continue;
            }
            if by_row {
                self.items.collect_pairs(examples.clone(), view.pairs);
            }
            if !tracked.is_empty() {
                self.predict(view, examples.clone(), tracked);
            }
            if self.keeps_leaf_sums {
                self.tree_buffer.leaf_sums.push(self.items.node(examples.clone()).sum());
            }
            if self.keeps_members {
                self.keep_members(view, examples);
            }
        }
        Ok(())
    }

    /// Returns true if a subtree of `n` rows fetches more from memory than a copy of their codes does.
    ///
    /// The copy fetches [`BAND`] codes of a row at a time, the subtree a code for each candidate and level. Without copies a
    /// fit takes 1.2 to 1.9 times as long (20k x 200, 100k x 50, 1M x 20).
    fn is_copy_worthwhile(&self, n: usize) -> bool {
        n >= 64 && self.row_bytes <= BAND * self.per_node * n.ilog2() as usize
    }

    /// Copies the codes of `pending` together and grows its subtree there.
    fn gather_subtree(&mut self, view: View<'_>, stage: usize, pending: PendingNode) -> Result<()> {
        let mut copy = std::mem::take(&mut self.gathered[stage]);
        let are_pairs = self.items.are_pairs();
        let rows = &mut self.items.rows[pending.examples.clone()];
        view.gather(rows, &mut copy.codes);
        // All that is needed of the block is in the pairs.
        if !are_pairs {
            view.block.gather(rows, &mut copy.block);
        }
        copy.pairs.clear();
        if pending.by_row {
            copy.pairs.extend(rows.iter().map(|&row| view.pairs[row as usize]));
        }
        copy.origin.clear();
        if self.keeps_members || view.needs_origin() {
            copy.origin.extend(rows.iter().map(|&row| view.origin(row)));
        }
        rows.iter_mut().enumerate().for_each(|(local, row)| *row = local as u32);
        let done = self.subtree(
            view.copied(&copy.codes, &copy.block, &copy.origin).with_pairs(&copy.pairs),
            stage + 1,
            pending,
        );
        self.gathered[stage] = copy;
        done
    }

    /// Returns the layout of pairs that hold the sums of `pending`; `None` if no layout does, or if its examples are pairs already.
    #[inline(always)]
    fn layout_of(&mut self, pending: &PendingNode) -> Option<PairLayout> {
        if self.makes_pairs && !self.items.are_pairs() { self.first_layout(pending) } else { None }
    }

    fn first_layout(&mut self, pending: &PendingNode) -> Option<PairLayout> {
        let Grower { criterion, items, totals, .. } = self;
        let sums = match pending.sums {
            KnownSums::Any(start) => Some(&totals[start..]),
            _ => None,
        };
        let layout = match criterion.is_one_target_of_classes() {
            true => PairLayout::Classes(items.class_tables.start(criterion.classes(sums))?),
            false => criterion.pair_layout()?,
        };
        let examples = match sums {
            Some(sums) => sums[EXAMPLES],
            None => items.counts[pending.examples.clone()].iter().map(|&count| f64::from(count)).sum(),
        };
        (examples <= layout.most_examples()).then_some(layout)
    }

    /// Makes the examples of `pending` pairs with this `layout`, and grows its subtree.
    ///
    /// Gain in speed: 2.0x on 3 classes, 1.9x on 4, 1.7x on 5 and 6, 1.2x on 10; 1.9x with row weights of 1 and 2, 1.3x with
    /// others; 1.17x on two targets (100k x 20). Pairs with fields for the classes of the node alone: 1.06x on 10 and 20 classes,
    /// 1.035x on 5.
    #[inline(never)]
    fn pair_subtree(
        &mut self,
        view: View<'_>,
        stage: usize,
        mut pending: PendingNode,
        layout: PairLayout,
    ) -> Result<()> {
        if let KnownSums::Any(start) = pending.sums {
            self.totals.truncate(start);
        }
        self.items.make_pairs(pending.examples.clone(), layout, view.block);
        pending.sums = KnownSums::Single(self.items.node(pending.examples.clone()));
        swap(&mut self.kernels, &mut self.other_kernels);
        let done = self.subtree(view, stage, pending);
        swap(&mut self.kernels, &mut self.other_kernels);
        self.items.layout = None;
        done
    }

    /// Predicts the tracked rows of a leaf.
    fn predict(&mut self, view: View<'_>, examples: Range<usize>, tracked: Range<usize>) {
        // With components that are missing in some rows, each node predicts them.
        if self.criterion.is_partial() {
            return;
        }
        let total = &mut self.buffers.total;
        match self.items.are_pairs() {
            true => self.items.write_sums(&self.criterion, total, self.items.node(examples)),
            false => self.items.examples(examples, view).total(self.arch, &self.criterion, total),
        }
        self.tracked.predict(tracked, total);
    }

    /// Records the rows of a leaf in ascending order.
    fn keep_members(&mut self, view: View<'_>, examples: Range<usize>) {
        let (members, items) = (&mut self.tree_buffer.members, &self.items);
        let (start, rows) = (members.len(), items.rows[examples.clone()].iter().map(|&row| view.origin(row)));
        members.extend(rows.zip(examples.map(|position| items.count(position))));
        // Rarely, a test without gain has changed their order.
        let members = &mut self.tree_buffer.members[start..];
        if !members.is_sorted() {
            members.sort_unstable();
        }
        self.tree_buffer.member_ends.push(self.tree_buffer.members.len() as u32);
    }
}
