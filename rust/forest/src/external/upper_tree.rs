//! The upper part of a tree, whose nodes are split from sums alone.

use pulp::Arch;

use super::bucket::Bucket;
use super::memory_plan::MemoryPlan;
use crate::candidates::{Candidate, SplitCandidates};
use crate::context::GrowContext;
use crate::contrasts::Contrasts;
use crate::criterion::{Criterion, EXAMPLES, WEIGHT};
use crate::grow::LEAST_GAIN;
use crate::oob::LeafTotals;
use crate::params::Ensemble;
use crate::pool::FeaturePool;
use crate::scores::oob_needs;
use crate::split::node_sums::{NodeSums, SumLayout, SumSearch};
use crate::split::random_test::random_subset;
use crate::tree_buffer::BufferedSplit;
use ferrank_data::profile::Scale;
use ferrank_runtime::random::{Purpose, ROOT, child, stream};

/// The upper part of a tree. The root comes first, each node before its children.
#[derive(Debug)]
pub(super) struct UpperTree {
    /// The number of the tree.
    pub(super) number: u64,
    pub(super) nodes: Vec<UpperNode>,
}

#[derive(Debug)]
pub(super) struct UpperNode {
    pub(super) depth: u32,
    pub(super) path: u64,
    /// The sums of the examples; empty until they are known.
    pub(super) sums: Vec<f64>,
    /// The features known to be constant in the node, in the order in which they were found.
    pub(super) constant_features: Vec<u32>,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// The node is still to be split. The next pass computes the sums in `next`; those in `done` are complete.
    Open { next: Vec<FeatureSums>, done: Vec<FeatureSums> },
    Split {
        split: BufferedSplit,
        /// The numbers of the left and the right child.
        children: [u32; 2],
        gains: Vec<f64>,
        /// The contrasts of this split, if some score reads them.
        contrasts: Contrasts,
    },
    /// A leaf with the totals of its targets if some score reads predictions; otherwise empty.
    Leaf(LeafTotals),
    /// The rows of the node fit into memory.
    Bucket(Bucket),
}

impl State {
    fn leaf() -> Self {
        State::Leaf(LeafTotals::default())
    }
}

/// A feature, and the sums of the examples of a node by its codes.
#[derive(Debug)]
pub(super) struct FeatureSums {
    pub(super) feature: u32,
    pub(super) sums: NodeSums,
}

/// Chooses the open nodes whose sums the next pass computes. Returns true if there are any.
pub(super) fn open(trees: &mut [UpperTree], context: GrowContext<'_>, plan: &MemoryPlan) -> bool {
    let layout = SumLayout::new(&Criterion::new(context.space));
    let n_codes = |feature: u32| context.store.codings[feature as usize].n_codes();
    let held: usize = trees.iter().flat_map(|tree| &tree.nodes).map(UpperNode::bytes).sum();
    let mut left = plan.sums.saturating_sub(held);
    let mut any = false;
    for tree in trees {
        for n in 0..tree.nodes.len() {
            if !matches!(tree.nodes[n].state, State::Open { .. }) {
                continue;
            }
            let zeros = |feature: u32| FeatureSums { feature, sums: NodeSums::new(layout, n_codes(feature)) };
            let NodeDraw { unsummed, .. } = tree.draw(n, context);
            if unsummed.is_empty() {
                // All features are constant.
                tree.nodes[n].state = State::leaf();
                continue;
            }
            let bytes: usize = unsummed.iter().map(|&feature| layout.bytes(n_codes(feature))).sum();
            // At least one node is chosen, so that growth terminates.
            if bytes <= left || !any {
                left = left.saturating_sub(bytes);
                any = true;
                if let State::Open { next, .. } = &mut tree.nodes[n].state {
                    *next = unsummed.into_iter().map(zeros).collect();
                }
            }
        }
    }
    any
}

/// The result of drawing the features of a node.
struct NodeDraw {
    /// Drawn features whose sums are not known. How many of them are needed depends on which of them vary.
    unsummed: Vec<u32>,
    /// Features found to be constant.
    constant: Vec<u32>,
    best: Option<Candidate>,
}

impl UpperNode {
    fn new(depth: u32, path: u64, sums: Vec<f64>, constant_features: Vec<u32>) -> Self {
        UpperNode { depth, path, sums, constant_features, state: State::leaf() }
    }

    fn bytes(&self) -> usize {
        match &self.state {
            State::Open { next, done } => next.iter().chain(done).map(|feature| feature.sums.bytes()).sum(),
            _ => 0,
        }
    }

    /// Returns true if the next pass adds up sums of this node.
    pub(super) fn waits(&self) -> bool {
        matches!(&self.state, State::Open { next, .. } if !next.is_empty())
    }
}

impl UpperTree {
    pub(super) fn new(number: u64, context: GrowContext<'_>, plan: &MemoryPlan) -> Self {
        let examples = context.bags().n_examples(number) as f64;
        let mut root = UpperNode::new(0, ROOT, Vec::new(), Vec::new());
        root.state = state(examples, 0, context, plan);
        UpperTree { number, nodes: vec![root] }
    }

    /// Draws the features of node `n`. A feature whose sums are not known counts as varying.
    fn draw(&self, n: usize, context: GrowContext<'_>) -> NodeDraw {
        let (store, params) = (context.store, context.params);
        let node = &self.nodes[n];
        let State::Open { done, .. } = &node.state else { unreachable!("only open nodes draw features") };
        let criterion = Criterion::new(context.space);
        let mut pool = FeaturePool::new(context.constant_features(), store.is_sparse);
        node.constant_features.iter().for_each(|&feature| pool.mark_constant(feature));
        let mut random = stream(params.seed, Purpose::Node, self.number, node.path);
        let (mut unsummed, mut constant, mut best) = (Vec::new(), Vec::new(), SplitCandidates::default());
        pool.draw(context.features_per_node(), &mut random, |feature, random| {
            let coding = &store.codings[feature as usize];
            let Some(histogram) = done.iter().find(|histogram| histogram.feature == feature) else {
                unsummed.push(feature);
                // Consumes about as much of the stream as the draw of a test.
                match (&coding.scale, params.ensemble) {
                    (_, Ensemble::RandomForest | Ensemble::Bagging) => {}
                    (Scale::Numeric(_), _) => drop(rand::RngExt::random::<f64>(random)),
                    (Scale::Nominal(_), _) => drop(random_subset(coding.n_codes(), random)),
                }
                return true;
            };
            let sums = histogram.sums.to_full();
            let search = SumSearch { arch: Arch::new(), criterion: &criterion, feature, coding, sums: &sums };
            let (varies, found) = search.run(params, random);
            if !varies {
                constant.push(feature);
            }
            if let Some(found) = found {
                best.push(found);
            }
            varies
        });
        let best = if unsummed.is_empty() { best.best(params.ties, &mut random) } else { None };
        NodeDraw { unsummed, constant, best }
    }

    /// Takes the sums of a pass, and splits the nodes for which all sums are known.
    pub(super) fn choose(&mut self, context: GrowContext<'_>, plan: &MemoryPlan) {
        let criterion = Criterion::new(context.space);
        for n in 0..self.nodes.len() {
            let UpperNode { sums, state: State::Open { next, done }, .. } = &mut self.nodes[n] else { continue };
            if next.is_empty() {
                continue;
            }
            done.append(next);
            if sums.is_empty() {
                *sums = done[0].sums.to_full().total();
            }
            let NodeDraw { unsummed, constant, best } = self.draw(n, context);
            if !unsummed.is_empty() {
                continue;
            }
            let State::Open { done, .. } = std::mem::replace(&mut self.nodes[n].state, State::leaf()) else { continue };
            let Some(mut found) = best else { continue };
            let feature = found.feature;
            let Some(histogram) = done.iter().find(|histogram| histogram.feature == feature) else { continue };
            context.place_cut(&mut found.test.test, |cut| histogram.sums.next_code(cut));
            let (left, known) = histogram.sums.to_full().sides(&found.test);
            self.split(n, found, &constant, (left, known), context, &criterion, plan);
        }
    }

    /// Splits node `n` by `found`; `left` and `known` are the sums of the left side and of all examples that the test
    /// divides, see [`NodeSums::sides`]. The node becomes a leaf if the gain is rounding noise.
    #[allow(clippy::too_many_arguments)]
    fn split(
        &mut self,
        n: usize,
        found: Candidate,
        constant: &[u32],
        (mut left, known): (Vec<f64>, Vec<f64>),
        context: GrowContext<'_>,
        criterion: &Criterion,
        plan: &MemoryPlan,
    ) {
        let node = &self.nodes[n];
        let share = known[WEIGHT] / node.sums[WEIGHT];
        let gain = share * criterion.gain(&left, &known);
        if gain <= LEAST_GAIN {
            return;
        }
        let missing_left = found.test.missing_left(left[WEIGHT], known[WEIGHT] - left[WEIGHT]);
        let gains = match context.params.by_target {
            true => context.gains_by_target(criterion, &left, &known, share),
            false => Vec::new(),
        };
        let mut contrasts = Contrasts::default();
        if oob_needs(context.params).is_some_and(|needs| needs.contrasts) {
            contrasts.add(criterion, &left, &known);
        }
        if missing_left {
            // Nothing, unless missing values go to the heavier side.
            left.iter_mut().zip(&node.sums).zip(&known).for_each(|((left, all), known)| *left += all - known);
        }
        let right: Vec<f64> = node.sums.iter().zip(&left).map(|(all, left)| all - left).collect();
        let constant_features: Vec<u32> = node.constant_features.iter().chain(constant).copied().collect();
        let (depth, path) = (node.depth + 1, node.path);
        let first = self.nodes.len() as u32;
        for (sums, is_right) in [(left, false), (right, true)] {
            let state = state(sums[EXAMPLES], depth, context, plan);
            self.nodes.push(UpperNode {
                state,
                ..UpperNode::new(depth, child(path, is_right), sums, constant_features.clone())
            });
        }
        let children = [first, first + 1];
        let split = BufferedSplit { feature: found.feature, test: found.test.test, missing_left, gain };
        self.nodes[n].state = State::Split { split, children, gains, contrasts };
    }
}

/// The state of a new node with this number of `examples`.
fn state(examples: f64, depth: u32, context: GrowContext<'_>, plan: &MemoryPlan) -> State {
    match context.params.may_split(examples, depth) {
        false => State::leaf(),
        true if plan.fits(examples) => State::Bucket(Bucket::default()),
        true => State::Open { next: Vec::new(), done: Vec::new() },
    }
}
