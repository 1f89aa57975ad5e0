//! The best test of a single feature of a node.

use pulp::Arch;

use super::feature_codes::extremes;
use super::state::{Buffers, CodeBuffer, NodeTotals};
use crate::candidates::Candidate;
use crate::context::GrowContext;
use crate::criterion::Criterion;
use crate::params::Ensemble;
use crate::split::examples::Examples;
use crate::split::kernel::Kernels;
use crate::split::nominal::Subset;
use crate::split::random_test::{random_cut, random_subset};
use crate::split::scan;
use crate::split::search::Search;
use crate::split::single;
use crate::split::{Cut, SplitConstraint};
use crate::tree_buffer::CodeTest;
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
                let cut = random_cut(&cuts.values, low.index(), high.index(), random);
                search.given_cut(C::from_u16(cut as u16), &mut buffers.scratch).map(cut_test)
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

/// The search of a cut, with the sums of the node in either form.
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
