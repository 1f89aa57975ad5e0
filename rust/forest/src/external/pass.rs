//! A pass over the store: the rows of each block find their nodes.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::buckets::Buckets;
use super::upper_tree::{Histogram, State, UpperNode, UpperTree, is_single};
use crate::bag::Bag;
use crate::grow::GrowContext;
use crate::items::{Items, LEFT, MISSING, RIGHT, tell_sides};
use crate::moments::Shape;
use crate::permutation::{LeafSums, Targets};
use crate::space::Block;
use crate::split::scan::Examples;
use crate::tree_buffer::BufferedSplit;
use crate::view::View;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::{Slot, Stored};
use ferrank_runtime::error::Result;

/// Passes over a store.
pub(super) struct Passes<'a> {
    context: GrowContext<'a>,
    shape: Shape,
    is_single: bool,
    idle: Mutex<Vec<Walker>>,
}

/// What a thread finds nodes with.
#[derive(Default)]
struct Walker {
    bag: Bag,
    items: Items,
    spill: Items,
    sides: Vec<u8>,
    narrow: Vec<u8>,
    wide: Vec<u16>,
}

/// The examples of a node in a block.
pub(super) struct Reached<'a> {
    pub(super) items: &'a Items,
    pub(super) range: Range<usize>,
    pub(super) view: View<'a>,
    /// The store's number of row 0.
    pub(super) base: usize,
}

impl<'a> Passes<'a> {
    pub(super) fn new(context: GrowContext<'a>) -> Self {
        let shape = Shape::of(context.space);
        Passes { context, is_single: is_single(context.space, &shape), shape, idle: Mutex::default() }
    }

    /// Adds up what the open nodes wait for.
    pub(super) fn sum(&self, tops: &mut [UpperTree]) -> Result<()> {
        self.pass(tops, UpperNode::waits, |node, found, narrow, wide| {
            let State::Open { next, .. } = &mut node.state else { return Ok(()) };
            let rows = &found.items.rows[found.range.clone()];
            let examples = found.items.examples(found.range.clone(), found.view);
            for histogram in next {
                match self.context.store.slots[histogram.feature as usize] {
                    Slot::Narrow(slot) => self.add(histogram, take(narrow, found.view, slot, rows), examples),
                    Slot::Wide(slot) => self.add(histogram, take(wide, found.view, slot, rows), examples),
                }
            }
            Ok(())
        })
    }

    fn add<C: Stored>(&self, histogram: &mut Histogram, codes: &[C], examples: Examples<'_>) {
        histogram.add(&self.shape, examples, codes);
    }

    /// Puts the rows of buckets on disk; sums up the `targets` of those in leaves, if there are some.
    pub(super) fn collect(
        &self,
        tops: &mut [UpperTree],
        buckets: &Buckets<'_>,
        targets: Option<&Targets<'_>>,
    ) -> Result<()> {
        let wanted = |node: &UpperNode| match node.state {
            State::Leaf(_) => targets.is_some(),
            State::Bucket(_) => true,
            _ => false,
        };
        self.pass(tops, wanted, |node, found, _, _| match (&mut node.state, targets) {
            (State::Bucket(bucket), _) => buckets.add(bucket, &found),
            (State::Leaf(sums), Some(targets)) => {
                if sums.is_empty() {
                    *sums = LeafSums::new(targets);
                }
                for position in found.range {
                    let row = found.base + found.items.rows[position] as usize;
                    sums.add(targets, row, found.items.count(position));
                }
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// Hands the examples of each node for which `wanted` holds to `visit`, block by block.
    fn pass(
        &self,
        tops: &mut [UpperTree],
        wanted: impl Fn(&UpperNode) -> bool + Sync,
        visit: impl Fn(&mut UpperNode, Reached<'_>, &mut Vec<u8>, &mut Vec<u16>) -> Result<()> + Sync,
    ) -> Result<()> {
        let GrowContext { store, space, params, monitor } = self.context;
        let draws = params.rows_per_tree(store.rows as u64);
        let mut tops: Vec<(&mut UpperTree, Vec<bool>)> = tops
            .iter_mut()
            .map(|top| {
                let wanted = on_the_way(&top.nodes, &wanted);
                (top, wanted)
            })
            .filter(|(_, wanted)| wanted[0])
            .collect();
        let mut block = Block::default();
        for (number, base) in (0..store.rows).step_by(CHUNK_ROWS).enumerate() {
            let rows = base..store.rows.min(base + CHUNK_ROWS);
            space.values(store.columns(), rows.clone(), &mut block);
            let view = View::from(store, base, &block);
            tops.par_iter_mut().with_max_len(1).try_for_each(|(top, wanted)| {
                monitor.check()?;
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut walker = idle.unwrap_or_default();
                match params.bootstraps() {
                    true => walker.bag.take_blocks(params.seed, top.number, store.rows, draws, number..number + 1),
                    false => walker.bag.take_all(rows.len()),
                }
                walker.items.take(&walker.bag, self.is_single.then_some(&block.dense[..]));
                let done = self.walk(&mut walker, view, base, top, wanted, &visit);
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(walker);
                done
            })?;
        }
        Ok(())
    }

    /// Parts the rows of a block by the tree so far.
    fn walk(
        &self,
        walker: &mut Walker,
        view: View<'_>,
        base: usize,
        top: &mut UpperTree,
        wanted: &[bool],
        visit: &(impl Fn(&mut UpperNode, Reached<'_>, &mut Vec<u8>, &mut Vec<u16>) -> Result<()> + Sync),
    ) -> Result<()> {
        let mut stack = vec![(0, 0..walker.items.rows.len())];
        while let Some((n, range)) = stack.pop() {
            if range.is_empty() || !wanted[n] {
                continue;
            }
            if let State::Split { split, .. } = &top.nodes[n].state {
                self.sides(walker, view, range.clone(), split);
                let Walker { items, sides, spill, .. } = &mut *walker;
                let middle = items.partition(range.clone(), sides, spill);
                let [left, right] = split.children.map(|child| child as usize);
                stack.extend([(right, middle..range.end), (left, range.start..middle)]);
                continue;
            }
            let Walker { items, narrow, wide, .. } = &mut *walker;
            visit(&mut top.nodes[n], Reached { items, range, view, base }, narrow, wide)?;
        }
        Ok(())
    }

    /// Where each example goes.
    fn sides(&self, walker: &mut Walker, view: View<'_>, range: Range<usize>, split: &BufferedSplit) {
        let store = self.context.store;
        let Walker { items, sides, narrow, wide, .. } = walker;
        let rows = &items.rows[range];
        let has_missing = store.codings[split.feature as usize].has_missing;
        let any = match store.slots[split.feature as usize] {
            Slot::Narrow(slot) => tell_sides(take(narrow, view, slot, rows), &split.test, has_missing, sides),
            Slot::Wide(slot) => tell_sides(take(wide, view, slot, rows), &split.test, has_missing, sides),
        };
        if any {
            let follow = if split.missing_left { LEFT } else { RIGHT };
            sides.iter_mut().filter(|side| **side == MISSING).for_each(|side| *side = follow);
        }
    }
}

/// The codes of `rows` in the column at `slot`.
fn take<'a, C: Stored>(codes: &'a mut Vec<C>, view: View<'_>, slot: usize, rows: &[u32]) -> &'a [C] {
    codes.resize(rows.len(), C::default());
    view.codes(slot, rows, codes);
    codes
}

/// For each node whether it is `wanted` or one below it is.
fn on_the_way(nodes: &[UpperNode], wanted: impl Fn(&UpperNode) -> bool) -> Vec<bool> {
    let mut found: Vec<bool> = nodes.iter().map(wanted).collect();
    for n in (0..nodes.len()).rev() {
        if let State::Split { split, .. } = &nodes[n].state {
            found[n] |= split.children.iter().any(|&child| found[child as usize]);
        }
    }
    found
}
