//! The state of growth: the grower, its buffers, and the nodes on the stack.

use std::ops::Range;

use ferrank_data::store::{Chunk, Slot, Stored};
use pulp::Arch;

use super::feature_codes::{CodeSets, FeatureTable};
use super::node_entries::NodeEntries;
use crate::candidates::SplitCandidates;
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::items::Items;
use crate::model_error::{RowSample, TrackedRows};
use crate::pairs::Pair;
use crate::params::Ensemble;
use crate::pool::{FeaturePool, Mark};
use crate::scores::{SplitScores, oob_needs};
use crate::space::Block;
use crate::split::batch::{Batch, FewSums};
use crate::split::dense::LeftSides;
use crate::split::few_examples::FewExamples;
use crate::split::gram::Gram;
use crate::split::kernel::Kernels;
use crate::split::multi_feature::MultiFeatureHistogram;
use crate::split::node_sums::NodeSums;
use crate::split::nominal::PresentCategories;
use crate::split::random_thresholds::RandomThresholds;
use crate::split::{node, scan, single};
use crate::tree_buffer::{BufferedSplit, NodeTest, TreeBuffer};
use crate::view::{CASCADE, View};

/// Decreases below this are rounding noise: the impurity of the whole data is 1.
pub(crate) const LEAST_GAIN: f64 = 1e-18;

/// The rows of a subtree, read from disk.
#[derive(Clone, Copy)]
pub(crate) struct SubtreeRows<'a> {
    pub(crate) chunk: &'a Chunk,
    pub(crate) block: &'a Block,
    /// The multiplicity of each row in the bag.
    pub(crate) counts: &'a [u32],
}

/// The root of a subtree.
#[derive(Clone, Copy)]
pub(crate) struct SubtreeRoot<'a> {
    /// The number of the tree.
    pub(crate) tree: u64,
    pub(crate) depth: u32,
    pub(crate) path: u64,
    /// Features known to be constant at the root of the subtree.
    pub(crate) constant_features: &'a [u32],
    /// The range of the tracked rows.
    pub(crate) tracked: (usize, usize),
}

/// A node on the stack, which is still to be grown.
pub(super) struct PendingNode {
    /// The range of the examples in the items.
    pub(super) examples: Range<usize>,
    pub(super) depth: u32,
    pub(super) path: u64,
    pub(super) mark: Mark,
    pub(super) sums: KnownSums,
    /// The range of the tracked rows.
    pub(super) tracked: Range<usize>,
    /// True if the view has the pairs of the examples, by row.
    pub(super) by_row: bool,
}

/// The sums of a node that are known from the split of its parent.
#[derive(Clone, Copy)]
pub(super) enum KnownSums {
    Nothing,
    Single(single::Node),
    /// The totals from this position to the end.
    Any(usize),
}

/// The sums of a node.
#[derive(Clone, Copy)]
pub(super) enum NodeTotals {
    Single(single::Node),
    /// The sums are in the buffers, in the layout of [`Criterion`].
    Any,
}

/// Grows trees one after the other. Buffers are reused, because allocating memory costs more than filling it.
pub(crate) struct Grower<'a> {
    pub(super) context: GrowContext<'a>,
    /// The number of the tree.
    pub(super) tree: u64,
    pub(super) arch: Arch,
    pub(super) criterion: Criterion,
    /// True if the examples of nodes that are small enough for it become pairs.
    pub(super) makes_pairs: bool,
    /// The choice for the node that is grown.
    pub(super) kernels: Kernels,
    /// The other choice: for nodes whose examples are pairs, or for those whose examples are not.
    pub(super) other_kernels: Kernels,
    pub(super) features: FeatureTable<'a>,
    /// True if nodes whose examples are pairs are [`plain`](super::plain): features all fit a batch, and gains are not
    /// reported by target.
    pub(super) is_plain: bool,
    /// Number of varying features to search in a node.
    pub(super) per_node: usize,
    /// The most rows of a batch for each feature.
    pub(super) rows_per_feature: usize,
    /// The rows that the tree predicts.
    pub(crate) tracked: TrackedRows<'a>,
    pub(super) keeps_members: bool,
    pub(super) keeps_leaf_sums: bool,
    pub(super) keeps_contrasts: bool,
    pub(super) row_bytes: usize,
    pub(super) items: Items,
    pub(super) pool: FeaturePool,
    /// The entries of a node, if some features have sparse slots.
    pub(super) entries: Option<NodeEntries<'a>>,
    /// The state of the pool at the root.
    pub(super) whole: Mark,
    /// The sums of the nodes on the stack; those of the top node come last.
    pub(super) totals: Vec<f64>,
    pub(super) tree_buffer: TreeBuffer,
    pub(super) keeps_nodes: bool,
    /// Takes the splits during growth.
    pub(super) scores: Option<SplitScores>,
    pub(super) since_check: usize,
    pub(super) narrow: CodeBuffer<u8>,
    pub(super) wide: CodeBuffer<u16>,
    pub(super) buffers: Buffers,
    /// The copies for each stage of the cascade.
    pub(super) gathered: [GatheredRows; CASCADE.len()],
}

impl<'a> Grower<'a> {
    pub(crate) fn new(context: GrowContext<'a>, arch: Arch) -> Self {
        let (store, space) = (context.store, context.space);
        let criterion = Criterion::new(space);
        let is_single = criterion.is_single();
        let has_pairs = criterion.pair_layout().is_some() || criterion.is_one_target_of_classes();
        let pool = FeaturePool::new(context.constant_features(), store.is_sparse);
        let most_codes = |is_of_type: fn(&Slot) -> bool| {
            let codings = store.codings.iter().zip(&store.slots).filter(|(_, slot)| is_of_type(slot));
            codings.map(|(coding, _)| coding.n_codes()).max().unwrap_or(0)
        };
        let entries = NodeEntries::new(store);
        let at_random = context.params.ensemble == Ensemble::ExtraTrees;
        let features = FeatureTable::new(context, arch, is_single && !at_random && entries.is_none());
        let needs = oob_needs(context.params);
        let rows_per_feature = if features.have_missing() { 2 } else { 1 };
        let is_plain = !context.params.by_target && features.fit_batch();
        Grower {
            context,
            tree: 0,
            arch,
            makes_pairs: has_pairs && is_plain && !at_random,
            kernels: Kernels::new(arch, &criterion, at_random),
            other_kernels: Kernels::for_pairs(arch),
            is_plain,
            features,
            rows_per_feature,
            per_node: context.features_per_node(),
            tracked: TrackedRows::new(None),
            row_bytes: store.row_bytes() + if is_single { 0 } else { space.row_bytes(store.columns()) },
            keeps_members: needs.is_some_and(|needs| needs.predictions),
            keeps_leaf_sums: false,
            keeps_contrasts: needs.is_some_and(|needs| needs.contrasts),
            items: Items::default(),
            whole: pool.mark(),
            pool,
            totals: Vec::new(),
            tree_buffer: TreeBuffer::default(),
            keeps_nodes: true,
            scores: None,
            since_check: 0,
            narrow: CodeBuffer::new(most_codes(|slot| matches!(slot, Slot::Narrow(_)))),
            wide: CodeBuffer::new(most_codes(|slot| !matches!(slot, Slot::Narrow(_)))),
            entries,
            buffers: Buffers::new(&criterion),
            criterion,
            gathered: Default::default(),
        }
    }
}

impl<'a> Grower<'a> {
    /// The same, which records the rows of leaves, whether or not a score needs them.
    pub(crate) fn with_members(mut self) -> Self {
        self.keeps_members = true;
        self
    }

    /// The same, which records the sums of leaves, of trees with a single component.
    pub(crate) fn with_leaf_sums(mut self) -> Self {
        debug_assert!(self.criterion.is_single(), "other trees have sums of more components");
        self.keeps_leaf_sums = true;
        self
    }

    /// The same, whose trees predict the rows of `sample`.
    pub(crate) fn track(mut self, sample: Option<&'a RowSample<'a>>) -> Self {
        self.tracked = TrackedRows::new(sample);
        self
    }
}

/// The codes and the values of rows, copied together.
#[derive(Default)]
pub(super) struct GatheredRows {
    pub(super) codes: Chunk,
    pub(super) block: Block,
    pub(super) origin: Vec<u32>,
    /// The pair of each row, if they are by row.
    pub(super) pairs: Vec<Pair>,
}

/// Buffers that are reused from node to node.
pub(super) struct Buffers {
    pub(super) known: Items,
    pub(super) node: node::Node,
    pub(super) known_node: node::Node,
    pub(super) scratch: scan::Scratch,
    pub(super) present: PresentCategories,
    pub(super) categories: single::Categories,
    pub(super) code_sets: CodeSets,
    /// n_codes; true for the codes of a subset that goes left.
    pub(super) goes_left: Vec<bool>,
    pub(super) batch: Batch,
    pub(super) few: FewExamples,
    /// The drawn features that vary in a node of two examples.
    pub(super) varying: Vec<u32>,
    pub(super) histograms: single::Histograms,
    /// Drawn features whose histograms are filled in one pass, with their slots.
    pub(super) side_by_side: Vec<(u32, usize)>,
    /// Drawn features that are searched one by one.
    pub(super) alone: Vec<u32>,
    pub(super) thresholds: RandomThresholds,
    pub(super) multi_feature: MultiFeatureHistogram,
    /// The left sides of cuts that were found together.
    pub(super) lefts: LeftSides,
    pub(super) gram: Gram,
    pub(super) few_sums: FewSums,
    /// The sums of the examples by the code of a sparse feature.
    pub(super) feature_sums: NodeSums,
    pub(super) candidates: SplitCandidates<TestSource>,
    pub(super) sides: Vec<u8>,
    pub(super) left: Vec<f64>,
    /// The part of each target in the gain of a split; empty unless it is reported.
    pub(super) gain_by_target: Vec<f64>,
    pub(super) total: Vec<f64>,
    pub(super) spill: Items,
    /// n_rows; the pair of each row of the bag, where rows are not copied.
    pub(super) pairs_by_row: Vec<Pair>,
}

impl Buffers {
    fn new(criterion: &Criterion) -> Self {
        Buffers {
            known: Items::default(),
            node: node::Node::default(),
            known_node: node::Node::default(),
            scratch: scan::Scratch::new(criterion),
            present: PresentCategories::default(),
            categories: single::Categories::default(),
            code_sets: CodeSets::default(),
            goes_left: Vec::new(),
            batch: Batch::default(),
            few: FewExamples::default(),
            varying: Vec::new(),
            histograms: single::Histograms::new(),
            side_by_side: Vec::new(),
            alone: Vec::new(),
            thresholds: RandomThresholds::default(),
            multi_feature: MultiFeatureHistogram::default(),
            lefts: LeftSides::default(),
            gram: Gram::default(),
            few_sums: FewSums::default(),
            feature_sums: NodeSums::default(),
            candidates: SplitCandidates::default(),
            sides: Vec::new(),
            left: Vec::new(),
            gain_by_target: Vec::new(),
            total: Vec::new(),
            spill: Items::default(),
            pairs_by_row: Vec::new(),
        }
    }
}

/// Buffers for codes of one type.
pub(super) struct CodeBuffer<C> {
    pub(super) codes: Vec<C>,
    pub(super) bins: single::Bins,
}

impl<C: Stored> CodeBuffer<C> {
    pub(super) fn new(n_codes: usize) -> Self {
        CodeBuffer { codes: Vec::new(), bins: single::Bins::new(n_codes) }
    }

    /// Reads the codes of `rows` in the column at `slot`.
    pub(super) fn take(&mut self, view: View<'_>, slot: usize, rows: &[u32]) -> &mut Vec<C> {
        view.take(slot, rows, &mut self.codes)
    }
}

impl CodeBuffer<u16> {
    /// Reads the codes of `rows` of sparse feature number `number`.
    pub(super) fn take_sparse(&mut self, view: View<'_>, number: usize, rows: &[u32]) -> &mut Vec<u16> {
        view.take_sparse(number, rows, &mut self.codes)
    }
}

/// The examples of a node, divided by a split.
pub(super) struct Partition {
    pub(super) split: BufferedSplit,
    /// The start of the right side.
    pub(super) middle: usize,
    /// The sums of the left and the right side.
    pub(super) sums: [KnownSums; 2],
}

/// The best test of a candidate, or a reference to it.
pub(super) enum TestSource {
    /// The number of the candidate in the batch.
    Batch(usize),
    Alone(NodeTest),
}
