//! The best test of a single feature of a node.

use pulp::Arch;

use super::feature_codes::{extremes, highest_known};
use super::state::{Buffers, CodeBuffer, NodeTotals};
use crate::candidates::Candidate;
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::params::Ensemble;
use crate::split::examples::Examples;
use crate::split::kernel::Kernels;
use crate::split::missing::replace;
use crate::split::node::Node;
use crate::split::random_test::{random_sided_cut, random_subset};
use crate::split::scan;
use crate::split::search::Search;
use crate::split::single;
use crate::split::{Cut, SplitConstraint};
use crate::tree_buffer::{CodeTest, MissingSide, NodeTest};
use crate::view::View;
use ferrank_data::profile::Scale;
use ferrank_data::store::Code;
use ferrank_runtime::random::Stream;

/// The inputs of the search of a feature in a node of any size.
pub(super) struct FeatureSearch<'a> {
    pub(super) context: GrowContext<'a>,
    pub(super) kernels: Kernels,
    pub(super) arch: Arch,
    pub(super) criterion: &'a Criterion,
    pub(super) examples: Examples<'a>,
    pub(super) view: View<'a>,
    pub(super) feature: u32,
    pub(super) open: NodeTotals,
    /// Examples and weight of the node.
    pub(super) size: (f64, f64),
}

impl FeatureSearch<'_> {
    /// Returns true if the feature varies in the node, and its best test. `buffer` has the codes of the feature.
    pub(super) fn run<C: Code>(
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
        let is_informative = context.is_informative();
        if !is_informative && coding.has_missing && codes.contains(&C::MISSING) {
            let layout = match open {
                NodeTotals::Single(node) => Some(node.layout),
                NodeTotals::Any => None,
            };
            buffers.known.take_known(examples, layout, codes);
            examples = buffers.known.examples(0..codes.len(), view);
            let (known, known_weight);
            if let NodeTotals::Single(node) = &mut open {
                *node = single::Node::new(examples.pairs, node.layout);
                (known, known_weight) = (node.examples(), node.weight());
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
        let has_missing = high == C::MISSING;
        let high = if has_missing { highest_known(arch, codes) } else { high };
        let constraint = SplitConstraint { min_leaf: context.params.min_samples_leaf as f64, missing };
        let search = NodeSearch { kernels, arch, open, criterion, examples, node, constraint };
        let at_random = context.params.ensemble == Ensemble::ExtraTrees;
        let (n_codes, scratch) = (coding.n_codes(), &mut buffers.scratch);
        let found = match (&coding.scale, at_random) {
            (Scale::Numeric(_), false) => {
                let highest = has_missing.then_some(high);
                search.best_cut(codes, n_codes, highest, bins, scratch).map(|cut| (cut.gain, cut.test()))
            }
            (Scale::Numeric(cuts), true) => {
                let ends = (low.index(), high.index());
                let (code, missing) = random_sided_cut(&cuts.values, ends, has_missing, random);
                if missing == MissingSide::Left {
                    replace(codes, C::MISSING, low);
                }
                let gain = search.gain_of_cut(codes, n_codes, C::from_u16(code), scratch);
                gain.map(|gain| (gain, NodeTest { test: CodeTest::Cut(code), missing }))
            }
            (Scale::Nominal(_), _) => {
                // A missing value is one more category.
                let missing = has_missing.then_some(n_codes as u16);
                if let Some(missing) = missing {
                    replace(codes, C::MISSING, C::from_u16(missing));
                }
                let n_codes = n_codes + usize::from(has_missing);
                let present = &mut buffers.present;
                let subset = match open {
                    NodeTotals::Single(node) if !at_random => {
                        let (codes, categories) = (codes.iter().copied(), &mut buffers.categories);
                        single::best_subset(
                            arch,
                            (codes, n_codes),
                            examples.pairs.iter().copied(),
                            node,
                            constraint,
                            bins,
                            (categories, 0.0),
                        )
                    }
                    _ => {
                        present.open(criterion, examples, codes, n_codes);
                        match at_random {
                            true => present.given(criterion, constraint, &random_subset(present.codes.len(), random)),
                            false => present.best(criterion, constraint),
                        }
                    }
                };
                subset.map(|subset| subset.test(missing))
            }
        };
        (true, found.map(|(gain, test)| Candidate { gain: share * gain, feature, test }))
    }
}

/// The search of a cut, with the sums of the node in either form.
struct NodeSearch<'a> {
    kernels: Kernels,
    arch: Arch,
    open: NodeTotals,
    criterion: &'a Criterion,
    examples: Examples<'a>,
    node: &'a Node,
    constraint: SplitConstraint,
}

impl<'a> NodeSearch<'a> {
    fn search<C>(&self, codes: &'a [C], n_codes: usize) -> Search<'a, C> {
        let NodeSearch { criterion, examples, node, constraint, .. } = *self;
        Search { criterion, examples, codes, n_codes, missing: None, node, constraint }
    }

    /// The best cut. If values are missing in the node, `highest` is the highest code that is known there, and missing
    /// values in `codes` are replaced.
    fn best_cut<C: Code>(
        &self,
        codes: &mut [C],
        n_codes: usize,
        highest: Option<C>,
        bins: &mut single::Bins,
        scratch: &mut scan::Scratch,
    ) -> Option<Cut> {
        let NodeSearch { arch, criterion, examples, node, constraint, .. } = *self;
        if let NodeTotals::Single(node) = self.open {
            let codes = (codes.iter().copied(), n_codes);
            return single::best_cut(arch, codes, examples.pairs.iter().copied(), node, constraint, bins);
        }
        let missing = highest.map(|code| code.index() as u16 + 1);
        if let Some(missing) = missing {
            replace(codes, C::MISSING, C::from_u16(missing));
        }
        let n_codes = n_codes + usize::from(missing.is_some());
        let kernel = self.kernels.for_feature(criterion, examples, node, n_codes);
        Search { missing, ..self.search(codes, n_codes) }.best_cut(kernel, arch, scratch)
    }

    /// The gain of the cut above the code `cut`; `None` if the constraint forbids it.
    fn gain_of_cut<C: Code>(&self, codes: &[C], n_codes: usize, cut: C, scratch: &mut scan::Scratch) -> Option<f64> {
        let NodeSearch { arch, examples, constraint, .. } = *self;
        let found = match self.open {
            NodeTotals::Single(node) => single::given_cut(arch, codes, examples.pairs, node, constraint, cut),
            NodeTotals::Any => self.search(codes, n_codes).given_cut(self.kernels.for_cut(), arch, cut, scratch),
        };
        found.map(|cut| cut.gain)
    }
}
