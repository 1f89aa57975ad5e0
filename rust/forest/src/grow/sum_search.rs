//! Sparse features of large nodes with any components: sums by code, those of the examples whose value is 0 by subtraction.
//!
//! Gain in speed: 1.8x on five classes, 2.7x on three targets, 3.7x with extra trees (5k x 5k, 1 % filled).

use std::ops::Range;

use super::state::{Buffers, Grower, NodeTotals};
use crate::candidates::Candidate;
use crate::split::node_sums::{SumLayout, SumSearch};
use crate::view::View;
use ferrank_runtime::random::Stream;

impl Grower<'_> {
    /// Returns true if `feature` varies in the node with the examples in `range`, and its best test. `None` if another
    /// search takes less time.
    pub(super) fn sparse_candidate(
        &mut self,
        view: View<'_>,
        range: &Range<usize>,
        feature: u32,
        open: NodeTotals,
        random: &mut Stream,
    ) -> Option<(bool, Option<Candidate>)> {
        let Grower { context, arch, criterion, items, buffers, entries, wide, kernels, .. } = self;
        let entries = entries.as_mut().filter(|entries| !entries.by_row && !kernels.in_batch(range.len()))?;
        let number = entries.codes().number(feature)?;
        let zero = entries.codes().zeros[number];
        let coding = &context.store.codings[feature as usize];
        if coding.n_codes() * criterion.len() > range.len() {
            return None;
        }
        let found = entries.of(number);
        wide.codes.clear();
        wide.codes.extend(found.iter().map(|entry| entry.code));
        let Buffers { known, node, feature_sums: sums, .. } = buffers;
        let positions = found.iter().map(|entry| entry.position as usize);
        known.take_at(items.examples(range.clone(), view), items.layout, positions);
        sums.reset(SumLayout::new(criterion), coding.n_codes());
        sums.add(*arch, criterion, known.examples(0..wide.codes.len(), view), &wide.codes);
        match open {
            NodeTotals::Single(node) => sums.add_rest(zero.into(), &node.pair),
            NodeTotals::Any => sums.add_rest(zero.into(), &node.total),
        }
        let sums = sums.to_full();
        Some(SumSearch { arch: *arch, criterion, feature, coding, sums: &sums }.run(context.params, random))
    }
}
