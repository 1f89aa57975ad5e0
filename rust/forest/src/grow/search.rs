//! The best test of a node.

use std::ops::Range;

use super::feature_search::FeatureSearch;
use super::state::{Buffers, Grower, NodeTotals, PendingNode, TestSource};
use crate::candidates::{Candidate, SplitCandidates};
use crate::params::Ensemble;
use crate::split::SplitConstraint;
use crate::split::kernel::Kernel;
use crate::tree_buffer::NodeTest;
use crate::view::View;
use ferrank_data::store::Slot;
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, Stream, stream};

impl Grower<'_> {
    /// The best test over the features drawn for the node, whose number of examples and weight are `size`.
    pub(super) fn search(
        &mut self,
        view: View<'_>,
        pending: &PendingNode,
        open: NodeTotals,
        size: (f64, f64),
    ) -> Result<Option<Candidate>> {
        let range = pending.examples.clone();
        let mut random = stream(self.context.params.seed, Purpose::Node, self.tree, pending.path);
        let mut candidates = std::mem::take(&mut self.buffers.candidates);
        let in_batch = self.kernels.in_batch(range.len());
        let most = self.per_node.min(self.pool.len());
        self.buffers.batch.start(if in_batch { range.len() } else { 0 }, self.rows_per_feature * most);
        self.buffers.lefts.clear();
        let is_placed = self.place_present(view, &range, &mut random);
        let (mut pool, per_node) = (std::mem::take(&mut self.pool), self.per_node);
        let visit = |feature, random: &mut Stream| {
            self.context.check_large(range.len())?;
            if let Some((varies, found)) = self.sparse_candidate(view, &range, feature, open, random) {
                found.into_iter().for_each(|found| candidates.push(found.map(TestSource::Alone)));
                return Ok(varies);
            }
            let n_codes = self.features.n_codes(feature);
            let kernel = self.kernels.for_group(&self.criterion, view.block, range.len(), n_codes);
            match kernel.filter(|_| self.features.fits_batch(feature)) {
                Some(Kernel::Batch) => return Ok(self.add_to_batch(view, range.clone(), feature, random)),
                Some(_) => return Ok(self.add_to_group(view, range.clone(), feature, random, &mut candidates)),
                None => {}
            }
            let (varies, found) = self.candidate(view, range.clone(), feature, open, size, random);
            found.into_iter().for_each(|found| candidates.push(found.map(TestSource::Alone)));
            Ok(varies)
        };
        let drawn = match is_placed {
            true => pool.try_draw_placed(per_node, &mut random, visit),
            false => pool.try_draw(per_node, &mut random, visit),
        };
        self.pool = pool;
        drawn?;
        if in_batch {
            self.judge_batch(view, range.clone(), open, &mut candidates);
        } else if self.kernels.may_join() {
            self.judge_group(view, range.clone(), &mut candidates);
        }
        let best = candidates.best(self.context.params.ties, &mut random);
        self.buffers.candidates = candidates;
        Ok(best.map(|best| best.map(|test| self.test_of(view, range, test))))
    }

    /// Starts the draw of a node with the examples in `range` among the features that may vary there, if finding these takes
    /// little time. Returns true if it did.
    fn place_present(&mut self, view: View<'_>, range: &Range<usize>, random: &mut Stream) -> bool {
        let Some(entries) = &mut self.entries else { return false };
        entries.start(view, &self.items.rows[range.clone()], self.per_node);
        entries.place_present(&mut self.pool, random)
    }

    /// The test that was found in the node with the examples in `range`.
    #[inline]
    pub(super) fn test_of(&mut self, view: View<'_>, range: Range<usize>, source: TestSource) -> NodeTest {
        let Grower { context, items, narrow, wide, buffers, features, .. } = self;
        let (rows, pairs, batch) = (&items.rows[range.clone()], &items.pairs, &mut buffers.batch);
        let cut = match source {
            TestSource::Batch(candidate) => {
                batch.choose(candidate);
                batch.cut(candidate)
            }
            TestSource::Alone(test) => return test,
        };
        // Looked up only if need be: small numeric nodes are many.
        if !features.is_nominal(cut.feature) {
            return context.test_of(&cut);
        }
        let ranks = batch.keys(cut.feature).expect("the feature is a candidate");
        let (pairs, ranks, n_codes) = (&pairs[range], (ranks, cut.key), features.n_codes(cut.feature));
        match features.slot(cut.feature) {
            Slot::Narrow(slot) => {
                let codes = narrow.take(view, slot, rows).iter().copied();
                buffers.code_sets.subset_up_to(n_codes, ranks, codes, pairs)
            }
            Slot::Wide(slot) => {
                let codes = wide.take(view, slot, rows).iter().copied();
                buffers.code_sets.subset_up_to(n_codes, ranks, codes, pairs)
            }
            Slot::Sparse(number) => {
                let codes = wide.take_sparse(view, number, rows).iter().copied();
                buffers.code_sets.subset_up_to(n_codes, ranks, codes, pairs)
            }
        }
    }

    /// Adds `feature` to the batch. Returns true if it varies in the node.
    fn add_to_batch(&mut self, view: View<'_>, range: Range<usize>, feature: u32, random: &mut Stream) -> bool {
        let Grower { items, narrow, wide, buffers, features, .. } = self;
        let (rows, batch) = (&items.rows[range], &mut buffers.batch);
        let slot = features.slot(feature);
        if let Some(chunk) = view.chunk().filter(|_| !matches!(slot, Slot::Sparse(_))) {
            return features.take(chunk, rows, feature, batch, random);
        }
        match slot {
            Slot::Narrow(slot) => {
                features.take_codes(narrow.take(view, slot, rows).iter().copied(), feature, batch, random)
            }
            Slot::Wide(slot) => {
                features.take_codes(wide.take(view, slot, rows).iter().copied(), feature, batch, random)
            }
            Slot::Sparse(number) => {
                features.take_codes(wide.take_sparse(view, number, rows).iter().copied(), feature, batch, random)
            }
        }
    }

    /// Judges the tests of the batch.
    fn judge_batch(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        open: NodeTotals,
        candidates: &mut SplitCandidates<TestSource>,
    ) {
        let arch = self.arch;
        let constraint = self.constraint();
        let examples = self.items.examples(range, view);
        let Buffers { batch, gram, few_sums, node, .. } = &mut self.buffers;
        if batch.is_empty() {
            return;
        }
        let few = self.kernels.few_sums().filter(|_| matches!(open, NodeTotals::Any));
        let few = few.filter(|&kind| few_sums.open(kind, &self.criterion, examples, node));
        if let (NodeTotals::Any, None, false) = (open, few, node.has_values()) {
            gram.open(arch, &self.criterion, examples, node, batch.width());
        }
        let at_random = self.context.params.ensemble == Ensemble::ExtraTrees;
        match (open, at_random) {
            (NodeTotals::Single(node), true) => batch.judge_random(arch, examples.pairs, node, constraint),
            (NodeTotals::Single(node), false) => batch.judge(arch, examples.pairs, node, constraint),
            (NodeTotals::Any, true) if node.has_values() => {
                batch.judge_random_values(arch, &self.criterion, node, examples.counts, constraint);
            }
            (NodeTotals::Any, true) => batch.judge_random_products(arch, gram, node.examples(), constraint),
            (NodeTotals::Any, false) if let Some(kind) = few => {
                batch.judge_sums(arch, kind, few_sums, (&self.criterion, node), constraint);
            }
            (NodeTotals::Any, false) => batch.judge_products(arch, gram, node.examples(), constraint),
        }
        for (candidate, feature, gain) in batch.judged() {
            candidates.push(Candidate { gain, feature, test: TestSource::Batch(candidate) });
        }
    }

    /// The constraint on the splits of a feature of which no example is left out.
    pub(super) fn constraint(&self) -> SplitConstraint {
        SplitConstraint { min_leaf: self.context.params.min_samples_leaf as f64, missing: 0.0 }
    }

    /// Returns true if `feature` varies in the node, and its best test.
    fn candidate(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        feature: u32,
        open: NodeTotals,
        size: (f64, f64),
        random: &mut Stream,
    ) -> (bool, Option<Candidate>) {
        let Grower { context, kernels, arch, criterion, items, narrow, wide, buffers, .. } = self;
        let rows = &items.rows[range.clone()];
        let examples = items.examples(range, view);
        let search = FeatureSearch {
            context: *context,
            kernels: *kernels,
            arch: *arch,
            criterion,
            examples,
            view,
            feature,
            open,
            size,
        };
        match context.store.slots[feature as usize] {
            Slot::Narrow(slot) => {
                narrow.take(view, slot, rows);
                search.run(narrow, buffers, random)
            }
            Slot::Wide(slot) => {
                wide.take(view, slot, rows);
                search.run(wide, buffers, random)
            }
            Slot::Sparse(number) => {
                wide.take_sparse(view, number, rows);
                search.run(wide, buffers, random)
            }
        }
    }
}
