//! The best test of a node.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rand::RngExt;

use super::feature_codes::FeatureCodes;
use super::state::{Buffers, CodeBuffer, Grower, NodeTotals, PendingNode, TestSource};
use crate::candidates::{Candidate, SplitCandidates};
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::params::Ensemble;
use crate::split::batch::threshold;
use crate::split::examples::Examples;
use crate::split::kernel::{Kernel, Kernels};
use crate::split::node_sums::random_subset;
use crate::split::nominal::Subset;
use crate::split::scan;
use crate::split::search::Search;
use crate::split::single;
use crate::split::{Cut, SplitConstraint};
use crate::tree_buffer::CodeTest;
use crate::view::View;
use ferrank_data::profile::Scale;
use ferrank_data::store::{Code, Slot};
use ferrank_runtime::error::Result;
use ferrank_runtime::random::{Purpose, Stream, stream};

impl Grower<'_> {
    /// The best test over the features drawn for the node, whose examples and weight are `size`.
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
        self.buffers.batch.start(if in_batch { range.len() } else { 0 }, most);
        self.buffers.lefts.clear();
        let mut pool = std::mem::take(&mut self.pool);
        let drawn = pool.try_draw(self.per_node, &mut random, |feature, random| {
            self.context.check_large(range.len())?;
            let FeatureCodes { n_codes, fits_batch, .. } = self.features[feature as usize];
            let kernel = self.kernels.for_group(&self.criterion, view.block, range.len(), n_codes);
            match kernel.filter(|_| fits_batch) {
                Some(Kernel::Batch) => return Ok(self.add_to_batch(view, range.clone(), feature, random)),
                Some(_) => return Ok(self.add_to_group(view, range.clone(), feature, random, &mut candidates)),
                None => {}
            }
            let (varies, found) = self.candidate(view, range.clone(), feature, open, size, random);
            if let Some(Candidate { gain, feature, test }) = found {
                candidates.push(Candidate { gain, feature, test: TestSource::Alone(test) });
            }
            Ok(varies)
        });
        self.pool = pool;
        drawn?;
        if in_batch {
            self.judge_batch(view, range, open, &mut candidates);
        } else if self.kernels.may_join() {
            self.judge_group(view, range, &mut candidates);
        }
        let best = candidates.best(self.context.params.ties, &mut random);
        self.buffers.candidates = candidates;
        Ok(best.map(|Candidate { gain, feature, test }| {
            let test = match test {
                TestSource::Batch(candidate) => self.context.test_of(&self.buffers.batch.cut(candidate)),
                TestSource::Alone(test) => test,
            };
            Candidate { gain, feature, test }
        }))
    }

    /// Takes `feature` into the batch. Returns true if it varies in the node.
    fn add_to_batch(&mut self, view: View<'_>, range: Range<usize>, feature: u32, random: &mut Stream) -> bool {
        let Grower { items, narrow, wide, buffers, features, .. } = self;
        let (rows, batch) = (&items.rows[range], &mut buffers.batch);
        let find = &features[feature as usize];
        if let Some(chunk) = view.chunk() {
            return find.take(chunk, rows, feature, batch, random);
        }
        match find.slot {
            Slot::Narrow(slot) => {
                find.take_codes(narrow.take(view, slot, rows).iter().copied(), feature, batch, random)
            }
            Slot::Wide(slot) => find.take_codes(wide.take(view, slot, rows).iter().copied(), feature, batch, random),
        }
    }

    /// Searches the tests of the batch.
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
        let Buffers { batch, gram, node, .. } = &mut self.buffers;
        if batch.is_empty() {
            return;
        }
        if let (NodeTotals::Any, false) = (open, node.has_values()) {
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
            (NodeTotals::Any, false) => batch.judge_products(arch, gram, node.examples(), constraint),
        }
        for (candidate, (feature, gain)) in batch.judged().enumerate() {
            candidates.push(Candidate { gain, feature, test: TestSource::Batch(candidate) });
        }
    }

    /// Adds `feature` to those that are searched together, and searches them when no more fit. Returns true if it varies
    /// in the node.
    fn add_to_group(
        &mut self,
        view: View<'_>,
        range: Range<usize>,
        feature: u32,
        random: &mut Stream,
        candidates: &mut SplitCandidates<TestSource>,
    ) -> bool {
        let Grower { context, arch, criterion, items, narrow, wide, buffers, features, .. } = self;
        let rows = &items.rows[range.clone()];
        let member = GroupMember { context: *context, arch: *arch, criterion, feature };
        let (varies, is_full) = match features[feature as usize].slot {
            Slot::Narrow(slot) => member.join(narrow.take(view, slot, rows), buffers, random),
            Slot::Wide(slot) => member.join(wide.take(view, slot, rows), buffers, random),
        };
        if is_full {
            self.judge_group(view, range, candidates);
        }
        varies
    }

    /// Searches the features taken so far.
    fn judge_group(&mut self, view: View<'_>, range: Range<usize>, candidates: &mut SplitCandidates<TestSource>) {
        let constraint = self.constraint();
        let examples = self.items.examples(range, view);
        let Buffers { thresholds, multi_feature, lefts, node, .. } = &mut self.buffers;
        let thresholds = thresholds.judge(self.arch, &self.criterion, examples, node, constraint, lefts);
        let best = multi_feature.best_cuts(self.arch, &self.criterion, examples, node, constraint, Some(lefts));
        for (feature, cut) in thresholds.chain(best) {
            candidates.push(Candidate { gain: cut.gain, feature, test: TestSource::Alone(CodeTest::Cut(cut.code)) });
        }
    }

    /// SplitConstraint where no example misses the feature.
    fn constraint(&self) -> SplitConstraint {
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
        }
    }
}

/// A feature of a node of any size.
struct FeatureSearch<'a> {
    context: GrowContext<'a>,
    kernels: Kernels,
    arch: Arch,
    criterion: &'a Criterion,
    examples: Examples<'a>,
    view: View<'a>,
    feature: u32,
    open: NodeTotals,
    /// Examples and weight of the node.
    size: (f64, f64),
}

impl FeatureSearch<'_> {
    /// Returns true if it varies, and its best test; `of_type` has its codes.
    fn run<C: Code>(
        self,
        buffer: &mut CodeBuffer<C>,
        buffers: &mut Buffers,
        random: &mut Stream,
    ) -> (bool, Option<Candidate>) {
        let FeatureSearch {
            context,
            kernels,
            arch,
            criterion,
            mut examples,
            view,
            feature,
            mut open,
            size: (all, all_weight),
        } = self;
        let CodeBuffer { codes, bins } = buffer;
        let coding = &context.store.codings[feature as usize];
        let mut node = &buffers.node;
        let (mut share, mut missing) = (1.0, 0.0);
        if coding.has_missing && codes.contains(&C::MISSING) {
            buffers.known.take_known(examples, codes);
            examples = buffers.known.examples(0..codes.len(), view);
            let (known, known_weight);
            if let NodeTotals::Single(node) = &mut open {
                *node = single::Node::new(examples.pairs);
                (known, known_weight) = (node.examples, node.examples);
            } else {
                examples.total(arch, criterion, &mut buffers.known_node.total);
                buffers.known_node.open(criterion);
                node = &buffers.known_node;
                (known, known_weight) = (node.examples(), node.weight());
            }
            (share, missing) = (known_weight / all_weight, all - known);
        }
        let (low, high) = extremes(arch, codes);
        if low >= high {
            return (false, None);
        }
        let search = NodeSearch {
            kernels,
            arch,
            open,
            search: Search {
                criterion,
                examples,
                codes,
                n_codes: coding.n_codes(),
                node,
                constraint: SplitConstraint { min_leaf: context.params.min_samples_leaf as f64, missing },
            },
        };
        let at_random = context.params.ensemble == Ensemble::ExtraTrees;
        let found = match (&coding.scale, at_random) {
            (Scale::Numeric(_), false) => search.best_cut(bins, &mut buffers.scratch).map(cut_test),
            (Scale::Numeric(cuts), true) => {
                let cut = random_cut(&cuts.values, low, high, random);
                search.given_cut(cut, &mut buffers.scratch).map(cut_test)
            }
            (Scale::Nominal(_), _) => {
                let Search { criterion, constraint, n_codes, .. } = search.search;
                buffers.present.open(criterion, examples, codes, n_codes);
                let subset = if at_random {
                    let chosen = random_subset(buffers.present.codes.len(), random);
                    buffers.present.given(criterion, constraint, &chosen)
                } else {
                    buffers.present.best(criterion, constraint)
                };
                subset.map(|Subset { gain, codes }| (gain, CodeTest::Subset(codes)))
            }
        };
        (true, found.map(|(gain, test)| Candidate { gain: share * gain, feature, test }))
    }
}

/// A search in either form of sums.
struct NodeSearch<'a, C> {
    kernels: Kernels,
    arch: Arch,
    open: NodeTotals,
    search: Search<'a, C>,
}

impl<C: Code> NodeSearch<'_, C> {
    fn best_cut(&self, bins: &mut single::Bins, scratch: &mut scan::Scratch) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, constraint, node } = self.search;
        match self.open {
            NodeTotals::Single(node) => {
                single::best_cut(self.arch, (codes.iter().copied(), n_codes), examples.pairs, node, constraint, bins)
            }
            NodeTotals::Any => {
                let kernel = self.kernels.for_feature(criterion, examples, node, n_codes);
                self.search.best_cut(kernel, self.arch, scratch)
            }
        }
    }

    fn given_cut(&self, cut: C, scratch: &mut scan::Scratch) -> Option<Cut> {
        let Search { examples, codes, constraint, .. } = self.search;
        match self.open {
            NodeTotals::Single(node) => single::given_cut(self.arch, codes, examples.pairs, node, constraint, cut),
            NodeTotals::Any => self.search.given_cut(self.kernels.for_cut(), self.arch, cut, scratch),
        }
    }
}

fn cut_test(cut: Cut) -> (f64, CodeTest) {
    (cut.gain, CodeTest::Cut(cut.code))
}

/// A feature that is to be searched together with others.
struct GroupMember<'a> {
    context: GrowContext<'a>,
    arch: Arch,
    criterion: &'a Criterion,
    feature: u32,
}

impl GroupMember<'_> {
    /// Adds the feature to the others, with a random cut where cuts are random. Returns whether it varies in the node, and
    /// whether no more features fit.
    fn join<C: Code>(self, codes: &[C], buffers: &mut Buffers, random: &mut Stream) -> (bool, bool) {
        let GroupMember { context, arch, criterion, feature } = self;
        let (low, high) = extremes(arch, codes);
        if low >= high {
            return (false, false);
        }
        let is_full = match context.values(feature) {
            Some(values) => buffers.thresholds.take(arch, feature, codes, random_cut(values, low, high, random)),
            None => {
                let n_codes = context.store.codings[feature as usize].n_codes();
                buffers.multi_feature.take(criterion, feature, codes, n_codes)
            }
        };
        (true, is_full)
    }
}

/// A cut uniform between the least and the greatest value (Geurts et al. 2006, Table 1).
fn random_cut<C: Code>(values: &[f64], low: C, high: C, random: &mut Stream) -> C {
    let (low, high) = (low.index(), high.index());
    let at = threshold(values[low], values[high], random.random());
    C::from_u16((low + values[low..high].partition_point(|&value| value <= at)) as u16 - 1)
}

/// Least and greatest of `codes`; (greatest, least) possible if there are none.
fn extremes<C: Code>(arch: Arch, codes: &[C]) -> (C, C) {
    struct Extremes<'a, C>(&'a [C]);
    impl<C: Code> WithSimd for Extremes<'_, C> {
        type Output = (C, C);
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> (C, C) {
            let (mut low, mut high) = (C::MISSING, C::default());
            for &code in self.0 {
                low = if code < low { code } else { low };
                high = if code > high { code } else { high };
            }
            (low, high)
        }
    }
    arch.dispatch(Extremes(codes))
}
