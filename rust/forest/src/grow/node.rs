//! Growing a node: its sums, the test whether it may be split, and its children.

use std::ops::Range;

use super::state::{Grower, KnownSums, LEAST_GAIN, NodeTotals, Partition, PendingNode};
use crate::context::LARGE_NODE;
use crate::criterion::WEIGHT;
use crate::pairs::{Pair, PairLayout};
use crate::params::Ensemble;
use crate::tree_buffer::BufferedNode;
use crate::view::View;
use ferrank_runtime::error::Result;
use ferrank_runtime::random::child;

impl Grower<'_> {
    /// Grows the node `pending`. If it is split, its children are pushed to the stack, the left one last, and true is
    /// returned.
    pub(super) fn node(&mut self, view: View<'_>, pending: PendingNode, stack: &mut Vec<PendingNode>) -> Result<bool> {
        self.check(pending.examples.len())?;
        let range = pending.examples.clone();
        let open = self.open(view, &pending);
        let (examples, weight) = match open {
            NodeTotals::Single(node) => (node.examples(), node.weight()),
            NodeTotals::Any => (self.buffers.node.examples(), self.buffers.node.weight()),
        };
        if self.criterion.is_partial() && !pending.tracked.is_empty() {
            self.tracked.predict(pending.tracked.clone(), &self.buffers.node.total);
        }
        self.keep_node(&pending, examples, weight);
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
        let Some(partition) = self.partition(view, range.clone(), found, open, weight) else { return Ok(false) };
        self.split(&pending, weight, partition, stack);
        Ok(true)
    }

    /// Keeps the node `pending` if nodes are kept.
    pub(super) fn keep_node(&mut self, pending: &PendingNode, examples: f64, weight: f64) {
        if self.keeps_nodes {
            self.tree_buffer.nodes.push(BufferedNode { depth: pending.depth, examples, weight, is_split: false });
        }
    }

    pub(super) fn may_split(&self, view: View<'_>, pending: &PendingNode, examples: f64) -> bool {
        self.context.params.may_split(examples, pending.depth) && !self.is_pure(view, pending)
    }

    /// Scores and keeps the split of the node `pending`, the last one that was kept, and pushes its children to the stack,
    /// the left one last.
    pub(super) fn split(
        &mut self,
        pending: &PendingNode,
        weight: f64,
        partition: Partition,
        stack: &mut Vec<PendingNode>,
    ) {
        let Partition { split, middle, sums } = partition;
        let tracked_middle = self.tracked.part(pending.tracked.clone(), &split);
        if let Some(scores) = &mut self.scores {
            scores.on_split(pending.depth, weight, &split, &self.buffers.gain_by_target);
        }
        if self.keeps_nodes {
            self.tree_buffer.splits.push(split);
            self.tree_buffer.nodes.last_mut().expect("the node was kept").is_split = true;
        }
        let mark = self.pool.mark();
        let right = (middle..pending.examples.end, tracked_middle..pending.tracked.end);
        let left = (pending.examples.start..middle, pending.tracked.start..tracked_middle);
        for (side, (examples, tracked)) in [(1, right), (0, left)] {
            let (depth, path) = (pending.depth + 1, child(pending.path, side == 1));
            stack.push(PendingNode { examples, depth, path, mark, sums: sums[side], tracked, by_row: pending.by_row });
        }
    }

    /// Determines the sums of `pending`.
    fn open(&mut self, view: View<'_>, pending: &PendingNode) -> NodeTotals {
        let total = &mut self.buffers.node.total;
        match pending.sums {
            KnownSums::Single(node) => return NodeTotals::Single(node),
            KnownSums::Nothing if self.items.are_pairs() => {
                return NodeTotals::Single(self.items.node(pending.examples.clone()));
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

    pub(super) fn check(&mut self, examples: usize) -> Result<()> {
        self.since_check += examples + 1;
        if self.since_check > LARGE_NODE {
            self.since_check = 0;
            self.context.monitor.check()?;
        }
        Ok(())
    }

    /// Returns true if all examples have the same component values.
    fn is_pure(&self, view: View<'_>, pending: &PendingNode) -> bool {
        let range = pending.examples.clone();
        if let Some(layout) = self.items.layout {
            let rows = &self.items.rows[range.clone()];
            return match pending.by_row {
                true => are_pure(rows.iter().map(|&row| view.pairs[row as usize]), layout),
                false => are_pure(self.items.pairs[range].iter().copied(), layout),
            };
        }
        let block = view.block;
        if !block.weights.is_empty() {
            return self.is_pure_in_weights(view, range);
        }
        let first = self.items.rows[range.start] as usize;
        self.items.rows[range].iter().all(|&row| {
            let row = row as usize;
            block.dense(row) == block.dense(first) && block.indicators(row) == block.indicators(first)
        })
    }

    /// The same where rows have weights. Values are multiplied by them and rounded, so that equal ones differ by rounding
    /// noise: no gain exceeds the variance of the node.
    fn is_pure_in_weights(&self, view: View<'_>, range: Range<usize>) -> bool {
        let (criterion, total, block) = (&self.criterion, &self.buffers.node.total, view.block);
        if criterion.is_partial() || !criterion.indicator_weight.is_empty() {
            return false;
        }
        let all = total[WEIGHT];
        let means = || criterion.dense(total).iter().map(|sum| sum / all);
        let mut spread = 0.0;
        self.items.rows[range.clone()].iter().zip(&self.items.counts[range]).all(|(&row, &count)| {
            let (row, weight) = (row as usize, block.weight(row as usize));
            let squares = block.dense(row).iter().zip(means()).map(|(value, mean)| (value - mean * weight).powi(2));
            spread += f64::from(count) * squares.sum::<f64>() / weight;
            spread <= 0.25 * LEAST_GAIN * all
        })
    }
}

/// Returns true if the examples `pairs` of a node have the same value.
#[inline(always)]
fn are_pure(mut pairs: impl Iterator<Item = Pair> + Clone, layout: PairLayout) -> bool {
    if !layout.has_plain_count() {
        return are_pure_in_fields(pairs, layout);
    }
    let Some([count, sum]) = pairs.next() else { return true };
    pairs.all(|[c, s]| s * count == sum * c)
}

/// The same where the first number of a pair is not the count alone.
#[inline(never)]
fn are_pure_in_fields(mut pairs: impl Iterator<Item = Pair> + Clone, layout: PairLayout) -> bool {
    let count_of = |pair: Pair| layout.count_and_weight(pair[0]).0;
    match layout {
        PairLayout::Component | PairLayout::Classes(_) | PairLayout::Two(_) => {
            let Some([first, second]) = pairs.next() else { return true };
            let count = count_of([first, second]);
            pairs.all(|pair| {
                let ([f, s], c) = (pair, count_of(pair));
                f * count == first * c && s * count == second * c
            })
        }
        // As in `is_pure_in_weights`.
        PairLayout::Weighted(field) => {
            let (mut all, mut sum, mut spread) = (0.0, 0.0, 0.0);
            for [first, second] in pairs.clone() {
                all += field.count_and_weight(first).1;
                sum += second;
            }
            let mean = sum / all;
            pairs.all(|[first, sum]| {
                let (_, weight) = field.count_and_weight(first);
                spread += (sum - mean * weight).powi(2) / weight;
                spread <= 0.25 * LEAST_GAIN * all
            })
        }
    }
}
