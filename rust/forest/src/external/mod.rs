//! Growth in external memory: trees over rows that memory does not hold.
//!
//! ```text
//! while a node of a tree is open                     upper trees
//!     one pass over the store: sums of the examples of open nodes by code, for the features they draw
//!     split each node by its best test               (upper_tree, split::node_sums)
//! a node whose rows fit the memory is a bucket
//! for each group of trees, as many as fit on the disk
//!     one pass over the store: rows of buckets to a scratch file     (buckets)
//!     for each tree: its rows out of the bag by bucket, if scores read them
//!         bucket by bucket: grow the subtree in memory, add up its splits in preorder, show it to scores
//! ```
//!
//! A pass reads the store once for all trees. Blocks of 65,536 rows are routed down each tree from its root, so that no
//! state of a row is kept between passes.
//!
//! The trees have the same bits as in memory: sums are exact, each node has its own random stream, and importances are
//! added up in preorder. The memory determines which nodes are buckets, but not the result.
//!
//! Memory: in a pass the sums of as many open nodes as fit; in growth the rows of one bucket for each thread.

pub(crate) mod access;
mod bucket;
mod buckets;
mod memory_plan;
pub(crate) mod part;
pub(crate) mod parts;
mod pass;
#[cfg(test)]
mod tests;
mod upper_tree;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pulp::Arch;
use rayon::prelude::*;

use super::companion_scores;
use super::companions;
use super::context::GrowContext;
use super::criterion::{Criterion, WEIGHT};
use super::grow::{Grower, SubtreeRoot, SubtreeRows};
use super::model_error::RowSample;
use super::oob::{GatheredCodes, OobContext, OobPlace, OobTree, OutOfBagRows, TreeColumns};
use super::scores::{SplitScores, oob_needs, score_size};
use super::space::Block;
use access::Parts;
use buckets::{Buckets, Stored};
use ferrank_ranking::Contribution;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;
use memory_plan::MemoryPlan;
pub(super) use memory_plan::{block_bytes, bytes_in_memory, bytes_over_parts, holds_all};
use pass::Passes;
use upper_tree::{State, UpperTree};

/// Grows `trees` for the targets `subset`, which predict the rows of `sample`. Calls `each` with the number and the
/// contribution of each complete tree.
///
/// # Errors
/// [`Error::Resource`](ferrank_runtime::error::Error::Resource) if the sums of a single node do not fit into memory,
/// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full,
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
pub(super) fn grow(
    context: GrowContext<'_>,
    budget: &Budget,
    scratch: &Scratch,
    (subset, sample): (&[usize], Option<&RowSample<'_>>),
    trees: &[u64],
    each: &(dyn Fn(u64, Contribution) -> Result<()> + Sync),
) -> Result<()> {
    grow_in(context, &MemoryPlan::new(context, budget)?, Place::Store(scratch), (subset, sample), trees, each)
}

/// Most bytes of sums in a request. Each part holds that many, and so does the task that adds up the sums of several
/// parts.
const SUMS_OF_PARTS: usize = 16 << 20;

/// Grows `trees` as [`grow`] does, over rows whose codes are in `parts`.
///
/// # Errors
/// As for [`grow`], and a part that does not answer.
pub(super) fn grow_over(
    context: GrowContext<'_>,
    budget: &Budget,
    (parts, scratch): (&dyn Parts, &Scratch),
    (subset, sample): (&[usize], Option<&RowSample<'_>>),
    trees: &[u64],
    each: &(dyn Fn(u64, Contribution) -> Result<()> + Sync),
) -> Result<()> {
    let mut plan = MemoryPlan::new(context, budget)?;
    plan.sums = plan.sums.min(SUMS_OF_PARTS);
    grow_in(context, &plan, Place::Parts(parts, scratch), (subset, sample), trees, each)
}

/// Where the codes are.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// In the store; buckets are written to temporary files.
    Store(&'a Scratch),
    /// In parts; what these give is written to temporary files.
    Parts(&'a dyn Parts, &'a Scratch),
}

impl<'a> Place<'a> {
    fn scratch(self) -> &'a Scratch {
        match self {
            Place::Store(scratch) | Place::Parts(_, scratch) => scratch,
        }
    }
}

fn grow_in(
    context: GrowContext<'_>,
    plan: &MemoryPlan,
    place: Place<'_>,
    (subset, sample): (&[usize], Option<&RowSample<'_>>),
    trees: &[u64],
    each: &(dyn Fn(u64, Contribution) -> Result<()> + Sync),
) -> Result<()> {
    let needs = oob_needs(context.params);
    let oob_place = if plan.holds_oob { OobPlace::Held(place.scratch()) } else { OobPlace::Outside(place.scratch()) };
    let oob = needs.map(|needs| OobContext::new(context, needs, subset, oob_place));
    let predicted = oob.as_ref().and_then(OobContext::predicted);
    let columns = Arc::new(if oob.is_some() { TreeColumns::all(context.store) } else { TreeColumns::default() });
    let passes = Passes::new(context);
    let numbers = trees.iter().flat_map(|&tree| std::iter::once(tree).chain(context.companions(tree)));
    let mut trees: Vec<UpperTree> = numbers.map(|number| UpperTree::new(number, context, plan)).collect();
    let contributions = Families::new(context);
    while upper_tree::open(&mut trees, context, plan) {
        match place {
            Place::Store(_) => passes.sum(&mut trees)?,
            Place::Parts(parts, _) => parts::sum(&mut trees, parts)?,
        }
        trees.par_iter_mut().for_each(|tree| tree.choose(context, plan));
    }
    let growers = Mutex::new(Vec::new());
    let idle = || growers.lock().unwrap_or_else(PoisonError::into_inner);
    for group in trees.chunks_mut(plan.trees_on_disk()) {
        // The sums of open nodes are no longer in memory here.
        let buckets = Buckets::new(context, place.scratch(), group, plan.sums)?;
        let stored = match place {
            Place::Store(_) => {
                passes.collect(group, &buckets, predicted)?;
                buckets.finish(context.store, group, None)?
            }
            Place::Parts(parts, scratch) => {
                parts::collect(group, parts, &buckets)?;
                if let Some(targets) = predicted {
                    parts::total(group, parts, targets, context.store.rows)?;
                }
                buckets.finish(context.store, group, Some((parts, scratch)))?
            }
        };
        for together in group.chunks_mut(plan.at_once) {
            together.par_iter_mut().with_max_len(1).try_for_each(|tree| {
                let grower = idle().pop();
                let mut grower = grower.unwrap_or_else(|| Grower::new(context, Arch::new()).track(sample));
                let result = finish(context, tree, &stored, (oob.as_ref(), &columns), &mut grower)?;
                idle().push(grower);
                let Some((number, contribution)) = contributions.add(tree.number, result) else { return Ok(()) };
                each(number, contribution)?;
                context.monitor.advance(1);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The vectors of trees and of their companions, until those of all of them are there.
struct Families<'a> {
    context: GrowContext<'a>,
    incomplete: Mutex<HashMap<u64, Vec<Option<Contribution>>>>,
}

impl<'a> Families<'a> {
    fn new(context: GrowContext<'a>) -> Self {
        Families { context, incomplete: Mutex::default() }
    }

    /// Adds the vectors of `tree`. Returns the number and the contribution of its tree once that is complete.
    fn add(&self, tree: u64, vectors: Contribution) -> Option<(u64, Contribution)> {
        let (number, place) = companions::family(tree);
        let vectors = if place == 0 { vectors } else { companion_scores::kept(vectors, tree, self.context) };
        let mut incomplete = self.incomplete.lock().unwrap_or_else(PoisonError::into_inner);
        let family =
            incomplete.entry(number).or_insert_with(|| vec![None; 1 + self.context.companions(number).count()]);
        family[place] = Some(vectors);
        if family.iter().any(Option::is_none) {
            return None;
        }
        let family = incomplete.remove(&number)?;
        Some((number, family.into_iter().flatten().flatten().collect()))
    }
}

/// How a tree is shown to scores that read out-of-bag rows.
enum Shown<'a> {
    /// No score reads them.
    Not,
    /// When it is complete.
    Whole(&'a OobContext<'a>, Box<OobTree>),
    /// Subtree by subtree, as soon as these are grown; with the numbers of splits and leaves of the upper tree before the
    /// next one.
    InParts { oob: &'a OobContext<'a>, splits: usize, leaves: usize },
}

/// Grows the subtrees of `tree`, adds up the scores of all splits and predicts the tracked rows. `columns` are the columns of
/// all features, for trees that are shown in parts.
fn finish(
    context: GrowContext<'_>,
    tree: &mut UpperTree,
    stored: &Stored<'_>,
    (oob, columns): (Option<&OobContext<'_>>, &Arc<TreeColumns>),
    grower: &mut Grower<'_>,
) -> Result<Contribution> {
    let mut scores = SplitScores::new(context.params, score_size(context));
    let mut block = Block::default();
    let is_tracked = grower.tracked.is_enabled() && !companions::is_companion(tree.number);
    let out_of_bag = (is_tracked || oob.is_some())
        .then(|| OutOfBagRows::among(context.bags(), tree.number, 0..context.store.rows, context.monitor));
    let out_of_bag = out_of_bag.transpose()?;
    grower.tracked.start(out_of_bag.as_ref().filter(|_| is_tracked));
    let mut shown = match (oob, &out_of_bag) {
        (Some(oob), Some(rows)) if oob.is_in_parts() => {
            show_upper(tree, stored, (oob, columns), rows, &mut scores)?;
            Shown::InParts { oob, splits: 0, leaves: 0 }
        }
        (Some(oob), _) => Shown::Whole(oob, Box::new(oob.tree())),
        _ => Shown::Not,
    };
    let predicts_in_splits = Criterion::new(context.space).is_partial();
    let mut stack = vec![(0, None, grower.tracked.all())];
    while let Some((n, link, tracked)) = stack.pop() {
        let node = &mut tree.nodes[n];
        match &mut node.state {
            State::Split { split, children, gains, contrasts } => {
                if predicts_in_splits && !tracked.is_empty() {
                    grower.tracked.predict(tracked.clone(), &node.sums);
                }
                let middle = grower.tracked.part(tracked.clone(), split);
                scores.on_split(node.depth, node.sums[WEIGHT], split, gains);
                let links = match &mut shown {
                    Shown::Whole(_, complete) => Some(complete.add_split(link, split, contrasts)),
                    Shown::InParts { splits, .. } => {
                        *splits += 1;
                        None
                    }
                    Shown::Not => None,
                };
                let tracked = [tracked.start..middle, middle..tracked.end];
                let child =
                    |side: usize| (children[side] as usize, links.map(|links| links[side]), tracked[side].clone());
                stack.extend([child(1), child(0)]);
            }
            State::Bucket(bucket) => {
                let rows = stored.take(bucket)?;
                let all = 0..rows.counts.len();
                context.space.values(rows.columns(), all, &mut block);
                let below = SubtreeRows { chunk: &rows.chunk, block: &block, counts: &rows.counts };
                let place = SubtreeRoot {
                    tree: tree.number,
                    depth: node.depth,
                    path: node.path,
                    constant_features: &node.constant_features,
                    tracked: (tracked.start, tracked.end),
                };
                match &mut shown {
                    Shown::Not => (scores, _) = grower.score_below(below, place, scores, false)?,
                    Shown::Whole(oob, complete) => {
                        let (scored, subtree) = grower.score_below(below, place, scores, true)?;
                        scores = scored;
                        complete.add_tree(link, subtree, &oob.targets.over(rows.columns()));
                    }
                    Shown::InParts { oob, splits, leaves } => {
                        let (scored, subtree) = grower.score_below(below, place, scores, true)?;
                        scores = scored;
                        let mut part = oob.tree();
                        part.add_tree(None, subtree, &oob.targets.over(rows.columns()));
                        part.finish_over(context.store, columns);
                        // The rows out of the bag take their place.
                        drop(rows);
                        scores.on_part(&oob.part(&part, *leaves, *splits))?;
                        *leaves += 1;
                    }
                }
            }
            State::Leaf(totals) => {
                // A root that is a leaf has no sums, and the tree predicts nothing.
                if !tracked.is_empty() && !node.sums.is_empty() {
                    grower.tracked.predict(tracked, &node.sums);
                }
                match &mut shown {
                    Shown::Whole(_, complete) => complete.add_leaf(link, totals),
                    Shown::InParts { leaves, .. } => *leaves += 1,
                    Shown::Not => {}
                }
            }
            State::Open { .. } => unreachable!("no node is open any more"),
        }
    }
    if let (Shown::Whole(oob, mut complete), Some(rows)) = (shown, &out_of_bag) {
        complete.finish(context.store);
        let codes = if complete.has_splits() { codes_of(stored, tree.number, rows)? } else { None };
        scores.on_tree(&oob.view(tree.number, &complete, rows, codes.as_ref()))?;
    }
    let mut vectors = scores.harvest();
    vectors.extend(grower.tracked.vectors());
    Ok(vectors)
}

/// Shows the upper part of `tree`, and all `rows` out of its bag.
fn show_upper(
    tree: &UpperTree,
    stored: &Stored<'_>,
    (oob, columns): (&OobContext<'_>, &Arc<TreeColumns>),
    rows: &OutOfBagRows,
    scores: &mut SplitScores,
) -> Result<()> {
    let (mut upper, mut grows) = (oob.tree(), Vec::new());
    let mut stack = vec![(0, None)];
    while let Some((n, link)) = stack.pop() {
        match &tree.nodes[n].state {
            State::Split { split, children, contrasts, .. } => {
                let links = upper.add_split(link, split, contrasts);
                stack.extend([1, 0].map(|side| (children[side] as usize, Some(links[side]))));
            }
            State::Leaf(totals) => {
                upper.add_leaf(link, totals);
                grows.push(false);
            }
            _ => {
                upper.add_leaf(link, &oob.no_totals());
                grows.push(true);
            }
        }
    }
    // A tree of a single leaf tests no feature.
    if !grows.contains(&true) && !upper.has_splits() {
        return Ok(());
    }
    upper.finish_over(stored.store, columns);
    let codes = codes_of(stored, tree.number, rows)?;
    scores.on_upper(&oob.view(tree.number, &upper, rows, codes.as_ref()), &grows)
}

/// The codes of `rows`, which are out of the bag of tree number `tree`; `None` if the store has them.
fn codes_of(stored: &Stored<'_>, tree: u64, rows: &OutOfBagRows) -> Result<Option<GatheredCodes>> {
    let of_parts = |(from, scratch)| parts::out_of_bag(stored.store, tree, rows, from, scratch);
    stored.parts.map(of_parts).transpose()
}
