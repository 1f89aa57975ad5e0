//! Passes over the store, which route the rows of each block to the nodes of the upper trees.

use std::sync::{Mutex, PoisonError};

use pulp::Arch;
use rayon::prelude::*;

use super::buckets::Buckets;
use super::upper_tree::{FeatureSums, State, UpperNode, UpperTree};
use crate::bag::{Bag, BagPlan};
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::oob::{LeafTotals, Node, PackedTree, Targets};
use crate::router::{OnCodes, Reached, Router};
use crate::row_records::RowRecords;
use crate::space::Block;
use crate::split::examples::Examples;
use crate::split::node_sums::NodeSums;
use crate::view::View;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::{Code, CodeStore};
use ferrank_runtime::error::Result;

/// Passes over a store.
pub(super) struct Passes<'a> {
    context: GrowContext<'a>,
    bags: BagPlan<'a>,
    /// The number of row 0 of the store among the rows of the bags.
    first: usize,
    criterion: Criterion,
    arch: Arch,
    idle: Mutex<Vec<Walker>>,
}

/// Buffers of a thread.
#[derive(Default)]
struct Walker {
    bag: Bag,
    router: Router,
}

impl<'a> Passes<'a> {
    pub(super) fn new(context: GrowContext<'a>) -> Self {
        Passes::of_part(context, context.bags(), 0)
    }

    /// Passes over the store of a part of the rows of `bags`, from row `first` on.
    pub(super) fn of_part(context: GrowContext<'a>, bags: BagPlan<'a>, first: usize) -> Self {
        let criterion = Criterion::new(context.space);
        Passes { context, bags, first, arch: Arch::new(), criterion, idle: Mutex::default() }
    }

    /// Adds the examples of all rows to the sums of the open nodes.
    pub(super) fn sum(&self, trees: &mut [UpperTree]) -> Result<()> {
        let (arch, criterion, slots) = (self.arch, &self.criterion, &self.context.store.slots);
        self.pass(trees, UpperNode::waits, |node, reached, _| {
            let State::Open { next, .. } = &mut node.state else { return Ok(()) };
            let examples = reached.examples();
            for FeatureSums { feature, sums } in next {
                reached.with_codes(slots[*feature as usize], AddExamples { sums, arch, criterion, examples });
            }
            Ok(())
        })
    }

    /// Writes the rows of buckets to disk. Adds up the `targets` of the rows in leaves, if given.
    pub(super) fn collect(
        &self,
        trees: &mut [UpperTree],
        buckets: &Buckets<'_>,
        targets: Option<&Targets<'_>>,
    ) -> Result<()> {
        let wanted = |node: &UpperNode| match node.state {
            State::Leaf(_) => targets.is_some(),
            State::Bucket(_) => true,
            _ => false,
        };
        self.pass(trees, wanted, |node, reached, base| match (&mut node.state, targets) {
            (State::Bucket(bucket), _) => buckets.add(bucket, reached, base),
            (State::Leaf(totals), Some(targets)) => {
                if totals.is_empty() {
                    *totals = LeafTotals::new(targets);
                }
                for position in reached.range.clone() {
                    let row = base + reached.items.rows[position] as usize;
                    totals.add(targets, row, reached.items.count(position));
                }
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// Adds the number of each row that reaches a bucket, and its multiplicity, to what waits there.
    pub(super) fn members(&self, trees: &mut [UpperTree]) -> Result<()> {
        let is_bucket = |node: &UpperNode| matches!(node.state, State::Bucket(_));
        self.pass(trees, is_bucket, |node, reached, base| {
            let State::Bucket(bucket) = &mut node.state else { return Ok(()) };
            bucket.rows += reached.range.len();
            for position in reached.range.clone() {
                let row = (self.first + base) as u32 + reached.items.rows[position];
                bucket.records.waiting.extend_from_slice(bytemuck::bytes_of(&[row, reached.items.count(position)]));
            }
            Ok(())
        })
    }

    /// Adds the record of each row that reaches a bucket to what waits there.
    pub(super) fn records(&self, trees: &mut [UpperTree]) -> Result<()> {
        let records = RowRecords::new(self.context.store);
        let is_bucket = |node: &UpperNode| matches!(node.state, State::Bucket(_));
        self.pass(trees, is_bucket, |node, reached, base| {
            let State::Bucket(bucket) = &mut node.state else { return Ok(()) };
            records.write(reached, |row| base + row as usize, &mut bucket.records.waiting);
            Ok(())
        })
    }

    /// Calls `visit` for each node for which `wanted` returns true, with its examples, block by block. The last
    /// argument is the number of row 0 of the block in the store.
    fn pass(
        &self,
        trees: &mut [UpperTree],
        wanted: impl Fn(&UpperNode) -> bool + Sync,
        visit: impl Fn(&mut UpperNode, &mut Reached<'_>, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let GrowContext { store, space, monitor, .. } = self.context;
        let (bags, first) = (self.bags, self.first);
        let mut trees: Vec<(&mut UpperTree, Frontier)> = trees
            .iter_mut()
            .map(|tree| {
                let frontier = Frontier::new(&tree.nodes, &wanted, store);
                (tree, frontier)
            })
            .filter(|(_, frontier)| frontier.is_wanted())
            .collect();
        let mut block = Block::default();
        // The blocks of a part are those of the whole, as far as it has their rows.
        let mut base = 0;
        while base < store.rows {
            let rows = base..store.rows.min((first + base + 1).next_multiple_of(CHUNK_ROWS) - first);
            let drawn = first + rows.start..first + rows.end;
            let end = rows.end;
            space.values(store.columns(), rows, &mut block);
            let view = View::from_block(store, base, &block);
            trees.par_iter_mut().with_max_len(1).try_for_each(|(tree, frontier)| {
                monitor.check()?;
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut walker = idle.unwrap_or_default();
                bags.take_rows(tree.number, drawn.clone(), &mut walker.bag);
                let Walker { bag, router } = &mut walker;
                router.items.take(bag, self.criterion.is_single().then_some(&block.dense[..]));
                let done = frontier.packed.apply(view, router, |node, reached| match frontier.node(node) {
                    Some(n) => visit(&mut tree.nodes[n], reached, base),
                    None => Ok(()),
                });
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(walker);
                done
            })?;
            base = end;
        }
        Ok(())
    }
}

/// Adds examples to the sums by the code of a feature.
struct AddExamples<'a> {
    sums: &'a mut NodeSums,
    arch: Arch,
    criterion: &'a Criterion,
    examples: Examples<'a>,
}

impl OnCodes for AddExamples<'_> {
    fn run<C: Code>(self, codes: &[C]) {
        self.sums.add(self.arch, self.criterion, self.examples, codes);
    }
}

/// The part of an upper tree that leads to wanted nodes.
struct Frontier {
    packed: PackedTree,
    /// The node at each leaf of `packed`, if that node is wanted.
    nodes: Vec<Option<usize>>,
}

impl Frontier {
    /// Omits the subtrees without `wanted` nodes. Wanted nodes are not split.
    fn new(nodes: &[UpperNode], wanted: impl Fn(&UpperNode) -> bool, store: &CodeStore) -> Self {
        let wanted = on_the_way(nodes, wanted);
        let mut frontier = Frontier { packed: PackedTree::default(), nodes: Vec::new() };
        let mut stack = vec![(0, None)];
        while let Some((n, link)) = stack.pop() {
            match &nodes[n].state {
                State::Split { split, children, .. } if wanted[n] => {
                    let links = frontier.packed.add_split(link, split);
                    stack.extend([1, 0].map(|side| (children[side] as usize, Some(links[side]))));
                }
                _ => {
                    frontier.packed.add_leaf(link);
                    frontier.nodes.push(wanted[n].then_some(n));
                }
            }
        }
        frontier.packed.finish(store);
        frontier
    }

    /// Returns true if some node is wanted.
    fn is_wanted(&self) -> bool {
        self.nodes.iter().any(Option::is_some)
    }

    fn node(&self, node: Node) -> Option<usize> {
        match node {
            Node::Split(..) => None,
            Node::Leaf(leaf) => self.nodes[leaf as usize],
        }
    }
}

/// For each node, true if it or a node below it is `wanted`.
fn on_the_way(nodes: &[UpperNode], wanted: impl Fn(&UpperNode) -> bool) -> Vec<bool> {
    let mut found: Vec<bool> = nodes.iter().map(wanted).collect();
    for n in (0..nodes.len()).rev() {
        if let State::Split { children, .. } = &nodes[n].state {
            found[n] |= children.iter().any(|&child| found[child as usize]);
        }
    }
    found
}
