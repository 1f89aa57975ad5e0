//! The memory plan of growth in external memory: bytes of sums, rows of a bucket, trees at a time.

use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::criterion::Criterion;
use crate::model_error::RowSample;
use crate::oob::{OobNeeds, OobSize};
use crate::pairs::Pair;
use crate::params::ForestParams;
use crate::scores::oob_needs;
use crate::scores::permutation::{self, measured::JudgedSize};
use crate::split::node_sums::SumLayout;
use crate::tree_buffer::{BufferedNode, BufferedSplit};
use crate::view::CASCADE;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::profile::{Coding, ColumnProfile};
use ferrank_data::store::Codebook;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use tracing::debug;

/// The least number of rows of a bucket for which growth in external memory is feasible.
const LEAST_ROWS: usize = 4096;
/// Disk space for the rows of buckets, as a multiple of all rows.
const DISK: usize = 3;

/// Sizes that fit the memory and the disk.
#[derive(Debug)]
pub(crate) struct MemoryPlan {
    /// Bytes of the sums of all open nodes in a pass.
    pub(super) sums: usize,
    /// Rows of a bucket.
    pub(super) bucket_rows: usize,
    /// Number of trees that are finished together.
    pub(super) at_once: usize,
    /// True if memory holds each of these trees whole, and the codes of its out-of-bag rows by feature.
    pub(super) holds_oob: bool,
    /// Distinct rows of a node for each of its examples.
    pub(super) rows_per_draw: f64,
    /// Examples of a bag.
    examples: f64,
    /// Rows of a bag.
    bag_rows: f64,
    n_rows: usize,
}

impl MemoryPlan {
    /// Divides the memory that `budget` leaves.
    ///
    /// # Errors
    /// [`Error::Resource`](ferrank_runtime::error::Error::Resource) with the least memory that is enough.
    pub(crate) fn new(context: GrowContext<'_>, budget: &Budget) -> Result<Self> {
        let store = context.store;
        let threads = rayon::current_num_threads();
        let mut per_row = bytes_per_row(context, false);
        // The memory of a thread for a block in a pass, and for the copies of a subtree.
        let codes: usize = CASCADE[1..].iter().sum();
        let block = CHUNK_ROWS.min(store.rows) * (context.space.most_row_bytes(store.columns()) + 8);
        let fixed = threads * (CHUNK_ROWS * 48 + codes) + block;
        // The bag of a thread as groups, and the multiplicity of each.
        let fixed = fixed + threads * 12 * store.groups.as_ref().map_or(0, |groups| groups.len());
        // A bit for each row, for the rows out of the bag of a thread; with out-of-bag scores they are counted there.
        let needs = oob_needs(context.params);
        let tracks = context.params.bootstraps() && needs.is_none();
        let fixed = fixed + if tracks { threads * store.rows / 8 } else { 0 };
        let node = context.features_per_node() * sums_bytes(context);
        let least = fixed + node.max(threads * LEAST_ROWS * per_row);
        let mut judging = needs.map_or(0, |needs| oob_bytes(context, needs, false));
        let left = budget.left();
        if left < least + judging {
            return Err(budget.too_small(least + judging, "growing trees"));
        }
        // As much memory is left for subtrees. Permutation over parts takes 0.8 times the CPU time (5,000,000 x 50, with growth).
        let held = needs.filter(|needs| needs.predictions).map(|needs| oob_bytes(context, needs, true));
        let held = held.filter(|held| threads * held <= (left - least) / 2);
        if let Some(held) = held {
            (judging, per_row) = (held, bytes_per_row(context, true));
        }
        let at_once = ((left - least) / judging.max(1)).min(threads);
        let most = left - fixed - at_once * judging;
        let mut bucket_rows = most / threads / per_row;
        if bucket_rows * store.row_bytes() > CASCADE[0] {
            bucket_rows = bucket_rows.saturating_sub(CASCADE[0] / per_row).max(CASCADE[0] / store.row_bytes());
        }
        // Rows of a bucket have numbers of 32 bits.
        let bucket_rows = bucket_rows.min(u32::MAX as usize - 1);
        let whole = if held.is_some() { "whole trees with their out-of-bag rows, " } else { "" };
        debug!("memory plan: {whole}subtrees of up to {bucket_rows} rows in memory, {most} bytes of sums");
        Ok(MemoryPlan { at_once, holds_oob: held.is_some(), ..MemoryPlan::with_sizes(bucket_rows, most, context) })
    }

    /// A plan with these rows of a bucket and bytes of sums.
    pub(super) fn with_sizes(bucket_rows: usize, sums: usize, context: GrowContext<'_>) -> Self {
        let n_rows = context.store.rows;
        let (examples, bag_rows) = bag_size(context.params, n_rows as u64);
        // How often the rows of a node are drawn varies little if rows are drawn on their own.
        let rows_per_draw = if context.store.groups.is_some() { 1.0 } else { bag_rows / examples };
        MemoryPlan { sums, bucket_rows, at_once: 1, holds_oob: false, rows_per_draw, examples, bag_rows, n_rows }
    }

    /// Returns true if the rows of a node with this number of `examples` fit into memory.
    pub(super) fn fits(&self, examples: f64) -> bool {
        // The share of distinct rows varies by chance; more rows vary less.
        let rows = examples * self.rows_per_draw;
        rows + 4.0 * rows.sqrt() <= self.bucket_rows as f64
    }

    /// The number of trees whose rows fit on the disk together.
    pub(super) fn trees_on_disk(&self) -> usize {
        ((DISK * self.n_rows) as f64 / self.bag_rows) as usize
    }
}

/// Returns true if memory holds the store of `rows` rows, and the bags and trees of all threads. `left_for` returns the
/// bytes that are left for so many.
pub(crate) fn holds_all(
    rows: u64,
    book: &Codebook,
    params: &ForestParams,
    left_for: impl FnOnce(usize) -> usize,
) -> bool {
    let needed = bytes_in_memory(rows, book, params, rayon::current_num_threads());
    rows < u64::from(u32::MAX) && needed <= left_for(needed as usize) as f64
}

/// Bytes of the label sets of a block of rows as components, which growth in external memory holds in any case.
pub(crate) fn block_bytes(rows: u64, book: &Codebook) -> usize {
    usize::try_from(rows).unwrap_or(CHUNK_ROWS).min(CHUNK_ROWS) * book.label_bytes() / 2
}

/// Bytes of a grown tree for each leaf. For each leaf but the first there is a node that is split.
const BYTES_OF_LEAF: usize = 2 * size_of::<BufferedNode>() + size_of::<BufferedSplit>();

/// Bytes of the store of `rows` rows, and of the bags and trees of so many `threads`.
pub(crate) fn bytes_in_memory(rows: u64, book: &Codebook, params: &ForestParams, threads: usize) -> f64 {
    // Entries alone, and then with those of shadows.
    let entries = if params.shadows { 3 * book.entry_bytes() } else { book.entry_bytes() };
    // The value itself, and its component with a weight of its own.
    let codes = if params.shadows { 2 * book.row_bytes() + 16 } else { book.row_bytes() };
    let store = codes + 24 * (book.n_kept() + 1) + book.label_bytes() + book.group_bytes();
    // Rows, counts and pairs, twice, because a partition needs a copy, or pairs by row; nodes.
    let bag = 8 + 2 * 20 + 2 + BYTES_OF_LEAF;
    let threads = threads.min(params.n_estimators);
    let share = (params.rows_per_tree(rows) as f64 / rows as f64).min(1.0);
    let out_of_bag = size_of::<Pair>() as f64;
    // The rows that trees predict.
    let sample = RowSample::bytes(rows, book.row_bytes());
    // What is known of each feature while a tree grows.
    let features = if entries > 0 { threads * 40 * book.codings.len() } else { 0 };
    (sample + entries + features) as f64
        + threads as f64 * judged_bytes(rows, params, book)
        + rows as f64 * (store as f64 + threads as f64 * (bag as f64 * share + out_of_bag * (1.0 - share)))
}

/// Bytes that measures of label sets take in a tree, if some are asked for.
fn judged_bytes(rows: u64, params: &ForestParams, book: &Codebook) -> f64 {
    if params.permutation_measures.is_empty() {
        return 0.0;
    }
    let (examples, in_bag) = bag_size(params, rows);
    let leaves = most_leaves(params, in_bag, examples);
    // Targets are labels, or one of them is label sets.
    let labels_per_row = book.n_kept() + book.label_bytes() / 8;
    let n_labels = if book.label_bytes() > 0 { usize::MAX } else { book.n_kept() };
    JudgedSize { leaves, in_bag, out_of_bag: rows as f64 - in_bag, n_labels, labels_per_row }.bytes()
}

/// Bytes that growth over parts takes of the rows of `book` whose codes are elsewhere: `targets` and weights of `row_bytes`,
/// as they come and as they are kept, and for scores that read out-of-bag rows what these need of a tree.
pub(crate) fn bytes_over_parts(
    rows: u64,
    (targets, row_bytes): (&[ColumnProfile], usize),
    book: &Codebook,
    params: &ForestParams,
) -> f64 {
    let tree = oob_needs(params).map_or(0.0, |needs| {
        let (examples, bag_rows) = bag_size(params, rows);
        let whole = !needs.allow_parts(targets.iter().any(|target| target.missing() > 0));
        let size = OobSize {
            leaves: if whole { most_leaves(params, bag_rows, examples) } else { 0.0 },
            out_of_bag: rows as f64 - bag_rows,
            n_features: book.codings.len() * if params.shadows { 2 } else { 1 },
            n_targets: targets.len(),
            n_rows: rows as usize,
            is_narrow: are_narrow(&book.codings),
        };
        let judged = match params.permutation_measures.is_empty() {
            true => 0.0,
            false => {
                let OobSize { leaves, out_of_bag, .. } = size;
                let (n_labels, labels_per_row) = (targets.len(), targets.len());
                JudgedSize { leaves, in_bag: bag_rows, out_of_bag, n_labels, labels_per_row }.bytes()
            }
        };
        let permuted = if needs.predictions { permutation::bytes_of_rows(&size) } else { 0.0 };
        size.tree_bytes() as f64 + judged + permuted
    });
    2.0 * rows as f64 * row_bytes as f64 + tree
}

/// The number of examples in a bag that is drawn from `rows` rows, and the expected number of distinct rows in it.
fn bag_size(params: &ForestParams, rows: u64) -> (f64, f64) {
    let n = rows as f64;
    if !params.bootstraps() {
        return (n, n);
    }
    let draws = params.rows_per_tree(rows) as f64;
    (draws, -n * (-draws / n).exp_m1())
}

/// The greatest number of leaves of a tree whose bag has `rows` distinct rows and `examples` examples.
fn most_leaves(params: &ForestParams, rows: f64, examples: f64) -> f64 {
    let of_depth = params.max_depth.map_or(f64::INFINITY, |depth| (depth as f64).exp2());
    rows.min(examples / params.min_samples_leaf.max(1) as f64).min(of_depth)
}

/// Bytes of the sums of a node for one feature.
fn sums_bytes(context: GrowContext<'_>) -> usize {
    let most = context.store.codings.iter().map(|coding| coding.n_codes()).max().unwrap_or(0);
    SumLayout::new(&Criterion::new(context.space)).bytes(most)
}

/// Bytes that growing a subtree takes for each of its rows, in trees that `is_held` says are held whole.
fn bytes_per_row(context: GrowContext<'_>, is_held: bool) -> usize {
    let store = context.store;
    let values = store.targets.iter().chain(store.values.iter()).map(|column| column.row_bytes());
    let raw = store.row_bytes() + values.sum::<usize>() + if store.weights.is_empty() { 0 } else { 8 } + 4;
    let components = context.space.row_bytes(store.columns());
    // Rows, counts or pairs, twice, because a partition needs a copy; codes and sides.
    let items = 2 * 20 + 4;
    let known = if store.codings.iter().any(|coding| coding.has_missing) { 20 } else { 0 };
    let own = components + items + known;
    // Nodes are kept only for scores that read out-of-bag rows.
    let Some(needs) = oob_needs(context.params) else { return raw + own };
    let members = if needs.predictions { 8 + 4 } else { 0 };
    let n_rows = LEAST_ROWS as f64;
    let n_listed = context.space.n_listed(store.columns());
    let contrasts = Contrasts::bytes(&Criterion::new(context.space), n_rows, n_rows, n_listed) / n_rows;
    let contrasts = if needs.contrasts { (1.5 * contrasts) as usize } else { 0 };
    let nodes = BYTES_OF_LEAF + members + contrasts;
    if is_held || !is_in_parts(context, needs) {
        return raw + own + nodes;
    }
    // The subtree is held a second time, packed, and a third time for rows to walk down. Out-of-bag rows are read after
    // the rows of the bag are dropped; each has a number and a multiplicity, twice because a partition needs a copy, and a
    // side.
    let walked = if needs.predictions { permutation::bytes_of_leaf(are_narrow(&store.codings)) } else { 0 };
    let packed = OobSize::bytes_of_leaf(store.targets.len()) + contrasts + walked;
    let plan = MemoryPlan::with_sizes(0, 0, context);
    let outside = (store.rows as f64 - plan.bag_rows) / plan.bag_rows.max(1.0);
    let others = if needs.contrasts { (outside * (raw + components + 2 * 8 + 3) as f64) as usize } else { 0 };
    own + nodes + packed + raw.max(others)
}

/// Returns true if all codes fit in a byte.
fn are_narrow(codings: &[Coding]) -> bool {
    codings.iter().all(Coding::is_narrow)
}

/// Returns true if trees are shown to scores in parts, whichever targets they predict.
fn is_in_parts(context: GrowContext<'_>, needs: OobNeeds) -> bool {
    needs.allow_parts(context.store.targets.iter().any(|target| target.has_missing()))
}

/// Bytes that a tree and its out-of-bag rows take for the scores that read them, which `needs` describes; of a tree that
/// is shown in parts, besides the subtree that is at work. `is_held` if memory holds whole trees and the codes of these
/// rows by feature.
fn oob_bytes(context: GrowContext<'_>, needs: OobNeeds, is_held: bool) -> usize {
    let GrowContext { store, params, .. } = context;
    let plan = MemoryPlan::with_sizes(0, 0, context);
    let size = OobSize {
        leaves: match is_in_parts(context, needs) && !is_held {
            true => 0.0,
            false => most_leaves(params, plan.bag_rows, plan.examples),
        },
        out_of_bag: store.rows as f64 - plan.bag_rows,
        n_features: store.codings.len(),
        n_targets: store.targets.len(),
        n_rows: store.rows,
        is_narrow: are_narrow(&store.codings),
    };
    // The codes by feature, of one band twice.
    let codes = if is_held { size.out_of_bag as usize * store.row_bytes() } else { 0 };
    codes
        + size.tree_bytes()
        + params.scores.iter().map(|score| score.method().oob_bytes(&size, context)).sum::<usize>()
}
