//! Predictions for the rows that a forest was grown on, each by the trees that have it out of bag (Breiman 2001).
//!
//! They are made when they are asked for, from the codes of the rows and from bags that are drawn again: to walk the rows
//! while trees are grown would make growth take 1.2 to 1.3 times as long.

use std::ops::Range;
use std::sync::Arc;

use ferrank_data::profile::{MISSING_U16, Scale};
use ferrank_data::schema::Kind;
use ferrank_data::store::{CodeStore, TargetColumn};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;
use rayon::prelude::*;

use super::head::{Head, KeptTarget};
use super::leaf_values::LeafValues;
use super::nodes::Nodes;
use super::tree_tables::Trees;
use crate::bag::{Bag, BagPlan};
use crate::context::LARGE_NODE;
use crate::oob::{Link, Node, OutOfBagRows, PackedTree};
use crate::params::ForestParams;
use crate::router::Router;
use crate::tree_buffer::BufferedSplit;
use crate::view::View;

/// Trees that each thread walks before their predictions are added.
const TREES_AT_ONCE: usize = 4;

/// Predictions for the rows that a forest was grown on.
///
/// ```
/// use ferrank_forest::{KeptForest, OobPredictions};
/// use ferrank_runtime::monitor::Monitor;
///
/// fn mean(forest: &KeptForest) -> ferrank_runtime::Result<f64> {
///     let oob: OobPredictions = forest.oob(&Monitor::default())?;
///     Ok(oob.values().iter().sum::<f64>() / oob.values().len() as f64)
/// }
/// # let _ = mean;
/// ```
#[derive(Debug)]
pub struct OobPredictions {
    n_components: usize,
    /// n_rows x n_components
    values: Vec<f64>,
    scores: Vec<OobScore>,
}

/// How well a target is predicted in the rows that are out of bag.
///
/// ```
/// use ferrank_forest::OobScore;
///
/// let is_good = |score: &OobScore| score.measure == "accuracy" && score.value > 0.9;
/// # let _ = is_good;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OobScore {
    /// The name of the target.
    pub target: String,
    /// `R²` of numbers, `accuracy` of classes, `label accuracy` of label sets: 1 − Hamming loss.
    pub measure: &'static str,
    /// The value; NaN if it is not defined, as for a constant target.
    pub value: f64,
    /// Number of rows that it is of.
    pub n_rows: u64,
}

/// The rows that a forest was grown on.
#[derive(Debug)]
pub(super) struct TrainingRows {
    store: CodeStore,
    params: ForestParams,
    threads: usize,
}

/// The out-of-bag rows of a tree, and the leaf that each of them reaches.
struct Walked {
    rows: Vec<u32>,
    leaves: Vec<u32>,
    /// n_leaves; the number of the node of each leaf.
    leaf_nodes: Vec<u32>,
    values: LeafValues,
}

/// Why the rows of `store` cannot be predicted out of bag, if they cannot.
pub(super) fn obstacle(head: &Head, store: &CodeStore, params: &ForestParams, budget: &Budget) -> Option<String> {
    let n_components = head.n_components();
    let n = store.rows.saturating_mul(n_components);
    if n_components == 0 {
        Some("task: there is no target".into())
    } else if !params.bootstraps() {
        Some("bootstrap: no row is out of bag without it".into())
    } else if head.per_target && !params.clusters(head.task) && store.targets.iter().any(TargetColumn::has_missing) {
        Some("per_target: rows without a target have no part in its trees".into())
    } else if n.saturating_mul(size_of::<f64>()) > budget.left() / 2 {
        Some(format!("memory_limit: {n_components} numbers for each of {} rows do not fit; raise it", store.rows))
    } else {
        None
    }
}

impl TrainingRows {
    /// The rows of `store`, on which a forest was grown with these settings.
    pub(super) fn new(store: CodeStore, params: &ForestParams, threads: usize) -> Self {
        // Values of features are for growth alone.
        let store = CodeStore { values: Arc::default(), ..store };
        TrainingRows { store, params: params.clone(), threads }
    }

    /// Bytes of the codes.
    pub(super) fn n_bytes(&self) -> usize {
        self.store.code_bytes()
    }

    /// Predicts the rows by `trees`, which were grown on them.
    pub(super) fn predict(&self, head: &Head, trees: &Trees, monitor: &Monitor) -> Result<OobPredictions> {
        pool(self.threads)?.install(|| self.predict_in_pool(head, trees, monitor))
    }

    fn predict_in_pool(&self, head: &Head, trees: &Trees, monitor: &Monitor) -> Result<OobPredictions> {
        let store = &self.store;
        let n_components = head.n_components();
        monitor.enter(Phase::Predicting, trees.len() as u64);
        let mut values = vec![0.0; store.rows * n_components];
        let mut counts = vec![0u32; store.rows];
        let numbers: Vec<usize> = (0..trees.len()).collect();
        for ensemble in numbers.chunks(head.n_estimators.max(1)) {
            let components = head.components_of_tree(ensemble[0]);
            counts.fill(0);
            for some in ensemble.chunks(TREES_AT_ONCE * self.threads.max(1)) {
                let walk = |router: &mut Router, &tree: &usize| {
                    monitor.check()?;
                    let walked = self.walk(tree, &Nodes::new(&trees.batch(tree)), components.clone(), router, monitor);
                    monitor.advance(1);
                    walked
                };
                let walked = some.par_iter().map_init(Router::default, walk).collect::<Result<Vec<Walked>>>()?;
                // In the order of trees, so that sums have the same bits for any number of threads.
                for Walked { rows, leaves, leaf_nodes, values: of_leaves } in walked {
                    of_leaves.add(&leaf_nodes, (&rows, &leaves), n_components, &mut values);
                    rows.iter().for_each(|&row| counts[row as usize] += 1);
                }
            }
            for (values, &count) in values.chunks_exact_mut(n_components).zip(&counts) {
                values[components.clone()].iter_mut().for_each(|value| *value /= f64::from(count));
            }
        }
        let mut oob = OobPredictions { n_components, values, scores: Vec::new() };
        oob.judge(head, store);
        Ok(oob)
    }

    /// Walks the out-of-bag rows of tree number `tree` down its `nodes`.
    fn walk(
        &self,
        tree: usize,
        nodes: &Nodes<'_>,
        components: Range<usize>,
        router: &mut Router,
        monitor: &Monitor,
    ) -> Result<Walked> {
        let bags = BagPlan::new(&self.store, &self.params);
        let mut bag = Bag::default();
        bags.take(tree as u64, &mut bag);
        let rows = OutOfBagRows::outside(bags, tree as u64, &bag);
        let (packed, leaf_nodes) = self.packed(nodes);
        router.items.take_once(rows.iter().map(|row| row as u32));
        let (n, values) = (rows.len(), nodes.leaf_values(components));
        let mut walked = Walked { rows: Vec::with_capacity(n), leaves: Vec::with_capacity(n), leaf_nodes, values };
        packed.apply(View::from_codes(&self.store, 0), router, |node, reached| {
            if reached.range.len() > LARGE_NODE {
                monitor.check()?;
            }
            if let Node::Leaf(leaf) = node {
                walked.rows.extend_from_slice(reached.rows());
                walked.leaves.resize(walked.rows.len(), leaf);
            }
            Ok(())
        })?;
        Ok(walked)
    }

    /// The tree of `nodes`, for the codes of the store, and the number of the node of each leaf.
    fn packed(&self, nodes: &Nodes<'_>) -> (PackedTree, Vec<u32>) {
        let (mut packed, mut leaf_nodes) = (PackedTree::default(), Vec::with_capacity(nodes.len() / 2 + 1));
        // In preorder the last link leads to the next node.
        let mut links: Vec<Option<Link>> = vec![None];
        for node in 0..nodes.len() {
            let link = links.pop().flatten();
            if nodes.is_leaf(node) {
                packed.add_leaf(link);
                leaf_nodes.push(node as u32);
                continue;
            }
            let feature = nodes.feature.value(node);
            let test = nodes.code_test(node, |cut| match &self.store.codings[feature as usize].scale {
                Scale::Numeric(cuts) => cuts.code(cut),
                Scale::Nominal(_) => unreachable!("a nominal feature has no cuts"),
            });
            let split = BufferedSplit { feature, test, missing_left: nodes.missing_left.value(node), gain: 0.0 };
            links.extend(packed.add_split(link, &split).map(Some).into_iter().rev());
        }
        packed.finish(&self.store);
        (packed, leaf_nodes)
    }
}

impl OobPredictions {
    /// The predictions, n_rows x n_components: means, and shares of classes and labels. NaN in rows that no tree has out of
    /// bag. Rows are those that take part, in their order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The predictions.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Number of predictions for a row.
    pub fn n_components(&self) -> usize {
        self.n_components
    }

    /// How well each target is predicted.
    pub fn scores(&self) -> &[OobScore] {
        &self.scores
    }

    /// Computes the scores from the targets in `store`.
    fn judge(&mut self, head: &Head, store: &CodeStore) {
        let targets = head.targets.iter().zip(head.components()).zip(store.targets.iter());
        let score = |((target, range), column): ((&KeptTarget, Range<usize>), &TargetColumn)| {
            let rows = (0..store.rows).map(|row| {
                let weight = store.weights.get(row).copied().unwrap_or(1.0);
                (row, weight, &self.values[row * self.n_components..][range.clone()])
            });
            let rows =
                rows.filter(|(row, _, predicted)| column.is_known(*row) && predicted.iter().all(|x| !x.is_nan()));
            judge(target, column, rows)
        };
        self.scores = targets.map(score).collect();
    }
}

/// The score of a target, from rows with their weights and predictions.
fn judge<'a>(
    target: &KeptTarget,
    column: &TargetColumn,
    rows: impl Iterator<Item = (usize, f64, &'a [f64])> + Clone,
) -> OobScore {
    let n_rows = rows.clone().count() as u64;
    let weights: f64 = rows.clone().map(|(_, weight, _)| weight).sum();
    let mean = |of: &dyn Fn(usize, &[f64]) -> f64| {
        rows.clone().map(|(row, weight, predicted)| weight * of(row, predicted)).sum::<f64>() / weights
    };
    let (measure, value) = match column {
        TargetColumn::Numeric(values) => {
            let center = mean(&|row, _| values[row]);
            let [error, spread] = [
                mean(&|row, predicted| (values[row] - predicted[0]).powi(2)),
                mean(&|row, _| (values[row] - center).powi(2)),
            ];
            ("R²", if spread > 0.0 { 1.0 - error / spread } else { f64::NAN })
        }
        TargetColumn::Nominal { codes, .. } => {
            let is_right =
                |row: usize, predicted: &[f64]| codes[row] != MISSING_U16 && most(predicted) == usize::from(codes[row]);
            ("accuracy", mean(&|row, predicted| f64::from(is_right(row, predicted))))
        }
        TargetColumn::Labels(labels) => {
            let n_right = |row: usize, predicted: &[f64]| {
                let set = labels.of(row).unwrap_or(&[]);
                let has = |label: usize| set.binary_search(&(label as u32)).is_ok();
                let right = predicted.iter().enumerate().filter(|&(label, &share)| (share > 0.5) == has(label));
                right.count() as f64 / predicted.len().max(1) as f64
            };
            ("label accuracy", mean(&n_right))
        }
    };
    debug_assert!(target.kind != Kind::Numeric || measure == "R²");
    OobScore { target: target.name.clone(), measure, value, n_rows }
}

/// The position of the greatest number, the first of equal ones.
pub(super) fn most(shares: &[f64]) -> usize {
    let mut best = 0;
    for (number, share) in shares.iter().enumerate() {
        if *share > shares[best] {
            best = number;
        }
    }
    best
}
