//! Growing one tree: top-down, depth first, with an explicit stack.
//!
//! The examples of a node are a range of the bag. A split parts the range in two, keeping the order
//! of rows, so that sums are taken in row order wherever the rows lie.
//!
//! ```text
//! while nodes wait:
//!     take the last; if its codes fit the next cache, copy them together and grow the subtree there
//!     draw features until enough of them vary; search the best test of each            (search; plain)
//!     take the best one, part the examples, and let both children wait, the left one last   (part)
//! ```
//!
//! Memory: for each thread 20 bytes for each row of the bag, twice, the sums of the nodes that wait, and copies of the
//! codes of nodes that fit the caches.

use std::ops::Range;

use pulp::Arch;

mod feature_codes;
mod part;
mod plain;
mod search;
mod state;

pub(super) use state::{Grower, LEAST_GAIN, SubtreeRoot, SubtreeRows};

use super::bag::Bag;
use super::candidates::SplitCandidates;
use super::context::{GrowContext, LARGE_NODE};
use super::criterion::Criterion;
use super::items::Items;
use super::params::Ensemble;
use super::pool::FeaturePool;
use super::scores::{SplitScores, need_oob};
use super::split::batch::Batch;
use super::split::dense::LeftSides;
use super::split::gram::Gram;
use super::split::kernel::Kernels;
use super::split::multi_feature::MultiFeatureHistogram;
use super::split::nominal::PresentCategories;
use super::split::random_thresholds::RandomThresholds;
use super::split::single;
use super::split::{node, scan};
use super::tree_buffer::{BufferedNode, TreeBuffer};
use super::view::{CASCADE, View};
use feature_codes::FeatureCodes;
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{ROOT, child};
use state::{Buffers, CodeBuffer, KnownSums, NodeTotals, Partition, PendingNode};

impl<'a> Grower<'a> {
    pub(crate) fn new(context: GrowContext<'a>, arch: Arch) -> Self {
        let (store, space) = (context.store, context.space);
        let criterion = Criterion::new(space);
        let is_single = criterion.is_single();
        let pool = FeaturePool::new(store.codings.iter().map(|coding| coding.n_codes() < 2));
        let most_codes = |narrow: bool| {
            let codings = store.codings.iter().filter(|coding| coding.is_narrow() == narrow);
            codings.map(|coding| coding.n_codes()).max().unwrap_or(0)
        };
        let features = FeatureCodes::all(context);
        Grower {
            context,
            tree: 0,
            arch,
            is_single,
            kernels: Kernels::new(arch, &criterion, context.params.ensemble == Ensemble::ExtraTrees),
            is_plain: is_single && !context.params.by_target && features.iter().all(|find| find.fits_batch),
            features,
            per_node: context.params.features_per_node(store.codings.len()),
            row_bytes: store.row_bytes() + if is_single { 0 } else { space.row_bytes(store.columns()) },
            keeps_members: need_oob(&context.params.scores),
            items: Items::default(),
            whole: pool.mark(),
            pool,
            totals: Vec::new(),
            tree_buffer: TreeBuffer::default(),
            scores: None,
            since_check: 0,
            narrow: CodeBuffer::new(most_codes(true)),
            wide: CodeBuffer::new(most_codes(false)),
            buffers: Buffers {
                known: Items::default(),
                node: node::Node::default(),
                known_node: node::Node::default(),
                scratch: scan::Scratch::new(&criterion),
                present: PresentCategories::default(),
                batch: Batch::default(),
                histograms: single::Histograms::new(),
                side_by_side: Vec::new(),
                alone: Vec::new(),
                thresholds: RandomThresholds::default(),
                multi_feature: MultiFeatureHistogram::default(),
                lefts: LeftSides::default(),
                gram: Gram::default(),
                candidates: SplitCandidates::default(),
                batch_candidates: SplitCandidates::default(),
                sides: Vec::new(),
                left: Vec::new(),
                total: Vec::new(),
                spill: Items::default(),
            },
            criterion,
            gathered: Default::default(),
        }
    }

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
        self.items.take(bag, self.is_single.then_some(&space.block.dense[..]));
        let examples = 0..bag.rows.len();
        let root =
            PendingNode { examples, depth: 0, path: ROOT, parent: None, mark: self.whole, sums: KnownSums::Nothing };
        let stage = CASCADE.iter().filter(|&&bytes| store.rows * self.row_bytes <= bytes).count();
        self.subtree(View::from_store(store, &space.block), stage, root)?;
        Ok(&self.tree_buffer)
    }

    /// Adds the splits of the tree with number `tree` to `scores`, and keeps nothing of it.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn score(&mut self, bag: &Bag, tree: u64, scores: SplitScores) -> Result<SplitScores> {
        self.with_scores(scores, |grower| grower.grow(bag, tree).map(drop))
    }

    /// Grows the subtree at `place`; its nodes number from there.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn grow_below(&mut self, below: SubtreeRows<'_>, place: SubtreeRoot<'_>) -> Result<&TreeBuffer> {
        let SubtreeRows { chunk, block, counts } = below;
        let SubtreeRoot { tree, depth, path, constant_features } = place;
        self.tree = tree;
        self.tree_buffer.clear();
        self.totals.clear();
        self.pool.rewind(self.whole);
        constant_features.iter().for_each(|&feature| self.pool.mark_constant(feature));
        self.items.take_first(counts, self.is_single.then_some(&block.dense[..]));
        let examples = 0..counts.len();
        let root =
            PendingNode { examples, depth, path, parent: None, mark: self.pool.mark(), sums: KnownSums::Nothing };
        let stage = CASCADE.iter().filter(|&&bytes| counts.len() * self.row_bytes <= bytes).count();
        self.subtree(View::from_chunk(chunk, block, &[]), stage, root)?;
        Ok(&self.tree_buffer)
    }

    /// Adds the splits of the subtree at `place` to `scores`, and keeps nothing of it.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(crate) fn score_below(
        &mut self,
        below: SubtreeRows<'_>,
        place: SubtreeRoot<'_>,
        scores: SplitScores,
    ) -> Result<SplitScores> {
        self.with_scores(scores, |grower| grower.grow_below(below, place).map(drop))
    }

    /// Lets `scores` take what `grow` grows.
    fn with_scores(&mut self, scores: SplitScores, grow: impl FnOnce(&mut Self) -> Result<()>) -> Result<SplitScores> {
        self.scores = Some(scores);
        let done = grow(self);
        let scores = self.scores.take().expect("it was put there");
        done.map(|()| scores)
    }

    /// Grows everything below `root`, whose rows are numbered as in `view`.
    fn subtree(&mut self, view: View<'_>, stage: usize, root: PendingNode) -> Result<()> {
        let mut stack = vec![root];
        let plain = view.chunk().filter(|_| self.is_plain);
        while let Some(pending) = stack.pop() {
            self.pool.rewind(pending.mark);
            let n = pending.examples.len();
            if let Some(next) = (stage..CASCADE.len()).rev().find(|&next| n * self.row_bytes <= CASCADE[next]) {
                // Only worthwhile where the subtree reads the codes more than once.
                if n >= 64 {
                    self.gather_subtree(view, next, pending)?;
                    continue;
                }
            }
            let examples = pending.examples.clone();
            let is_split = match plain {
                Some(chunk) => self.plain_node(view, chunk, pending, &mut stack)?,
                None => self.node(view, pending, &mut stack)?,
            };
            if !is_split && self.keeps_members {
                self.keep_members(view, examples);
            }
        }
        Ok(())
    }

    /// Copies the codes of `pending` together and grows its subtree there.
    fn gather_subtree(&mut self, view: View<'_>, stage: usize, pending: PendingNode) -> Result<()> {
        let mut copy = std::mem::take(&mut self.gathered[stage]);
        let rows = &mut self.items.rows[pending.examples.clone()];
        view.gather(rows, &mut copy.codes);
        // Pairs hold all values of a single component.
        if !self.is_single {
            view.block.gather(rows, &mut copy.block);
        }
        copy.origin.clear();
        if self.keeps_members {
            copy.origin.extend(rows.iter().map(|&row| view.origin(row)));
        }
        rows.iter_mut().enumerate().for_each(|(local, row)| *row = local as u32);
        let done = self.subtree(View::from_chunk(&copy.codes, &copy.block, &copy.origin), stage + 1, pending);
        self.gathered[stage] = copy;
        done
    }

    /// Records the rows of a leaf in ascending order.
    fn keep_members(&mut self, view: View<'_>, examples: Range<usize>) {
        let start = self.tree_buffer.members.len();
        for i in examples {
            let count = if self.is_single { self.items.pairs[i][0] as u32 } else { self.items.counts[i] };
            self.tree_buffer.members.push((view.origin(self.items.rows[i]), count));
        }
        // A test without gain may have parted them.
        self.tree_buffer.members[start..].sort_unstable();
        self.tree_buffer.member_ends.push(self.tree_buffer.members.len() as u32);
    }

    /// Makes a node of `pending`; if it is split, its children go to the stack, the left one last.
    fn node(&mut self, view: View<'_>, pending: PendingNode, stack: &mut Vec<PendingNode>) -> Result<bool> {
        self.check(pending.examples.len())?;
        let range = pending.examples.clone();
        let open = self.open(view, &pending);
        let (examples, weight) = match open {
            NodeTotals::Single(node) => (node.examples, node.examples),
            NodeTotals::Any => (self.buffers.node.examples(), self.buffers.node.weight()),
        };
        let number = self.number(&pending, examples, weight);
        if !self.may_split(view, &pending, examples) {
            return Ok(false);
        }
        let params = self.context.params;
        if let NodeTotals::Any = open {
            let examples = self.items.examples(range.clone(), view);
            let node = &mut self.buffers.node;
            node.open(&self.criterion);
            if params.ensemble == Ensemble::ExtraTrees && self.kernels.in_batch(range.len()) {
                node.set_values(self.arch, &self.criterion, examples);
            }
        }
        let Some(found) = self.search(view, &pending, open, (examples, weight))? else { return Ok(false) };
        let Some(parted) = self.part(view, range.clone(), found, open, weight) else { return Ok(false) };
        self.split(&pending, number, weight, parted, stack);
        Ok(true)
    }

    /// Numbers the node of `pending`, and keeps it where nodes are kept.
    fn number(&mut self, pending: &PendingNode, examples: f64, weight: f64) -> u32 {
        let number = self.tree_buffer.nodes.len() as u32;
        if self.scores.is_none() {
            if let Some((parent, side)) = pending.parent {
                let split = self.tree_buffer.nodes[parent as usize].split.as_mut().expect("a parent is split");
                split.children[side] = number;
            }
            self.tree_buffer.nodes.push(BufferedNode { depth: pending.depth, examples, weight, split: None });
        }
        number
    }

    fn may_split(&self, view: View<'_>, pending: &PendingNode, examples: f64) -> bool {
        let params = self.context.params;
        examples >= (2 * params.min_samples_leaf) as f64
            && params.max_depth.is_none_or(|most| (pending.depth as usize) < most)
            && !self.is_pure(view, pending.examples.clone())
    }

    /// Keeps or adds up the split of the node of `pending`, whose children go to the stack, the left one last.
    fn split(
        &mut self,
        pending: &PendingNode,
        number: u32,
        weight: f64,
        parted: Partition,
        stack: &mut Vec<PendingNode>,
    ) {
        let Partition { split, middle, sums } = parted;
        match &mut self.scores {
            None => self.tree_buffer.nodes[number as usize].split = Some(split),
            Some(scores) => {
                scores.on_split(pending.depth, weight, &split, &self.tree_buffer.gain_by_target);
                self.tree_buffer.gain_by_target.clear();
            }
        }
        let mark = self.pool.mark();
        for (side, examples) in [(1, middle..pending.examples.end), (0, pending.examples.start..middle)] {
            let (depth, path) = (pending.depth + 1, child(pending.path, side == 1));
            stack.push(PendingNode { examples, depth, path, parent: Some((number, side)), mark, sums: sums[side] });
        }
    }

    /// The sums of `pending`.
    fn open(&mut self, view: View<'_>, pending: &PendingNode) -> NodeTotals {
        let total = &mut self.buffers.node.total;
        match pending.sums {
            KnownSums::Single(node) => return NodeTotals::Single(node),
            KnownSums::Nothing if self.is_single => {
                return NodeTotals::Single(single::Node::new(&self.items.pairs[pending.examples.clone()]));
            }
            KnownSums::Nothing => {
                self.items.examples(pending.examples.clone(), view).total(self.arch, &self.criterion, total);
            }
            KnownSums::Any(start) => {
                total.clear();
                total.extend(self.totals.drain(start..));
            }
        }
        NodeTotals::Any
    }

    fn check(&mut self, examples: usize) -> Result<()> {
        self.since_check += examples + 1;
        if self.since_check > LARGE_NODE {
            self.since_check = 0;
            self.context.monitor.check()?;
        }
        Ok(())
    }

    /// Returns true if all examples have the same component values.
    fn is_pure(&self, view: View<'_>, range: Range<usize>) -> bool {
        if self.is_single {
            let pairs = &self.items.pairs[range];
            let [count, sum] = pairs[0];
            return pairs.iter().all(|&[c, s]| s * count == sum * c);
        }
        let block = view.block;
        if !block.weights.is_empty() {
            // Values carry the row weights; equal ones are found by a gain of nothing.
            return false;
        }
        let first = self.items.rows[range.start] as usize;
        self.items.rows[range].iter().all(|&row| {
            let row = row as usize;
            block.dense(row) == block.dense(first) && block.indicators(row) == block.indicators(first)
        })
    }
}
