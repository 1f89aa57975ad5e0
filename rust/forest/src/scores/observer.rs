//! The interface of a score: what it declares, and how it observes a tree.

use std::collections::BTreeMap;

use ferrank_data::schema::Task;
use ferrank_ranking::Vector;
use ferrank_runtime::error::Result;

use crate::context::GrowContext;
use crate::oob::{OobNeeds, OobPart, OobSize, OobView};
use crate::params::ForestParams;

/// The implementation of a score: what it declares, and its observer.
pub(crate) trait ScoreMethod {
    /// Checks that the score is defined under `params` for `task`, beside what [`oob_needs`](Self::oob_needs) asks for.
    fn validate(&self, _params: &ForestParams, _task: Task) -> Result<()> {
        Ok(())
    }

    /// What [`Observer::on_tree`] reads besides the splits; `None` if it is not to be called. Trees, or parts of them, are
    /// kept until they are complete if it is, and an ensemble without a bootstrap is an error.
    fn oob_needs(&self, _params: &ForestParams) -> Option<OobNeeds> {
        None
    }

    /// Returns true if importances are shares of the impurity of the training data.
    fn is_share_of_impurity(&self) -> bool {
        false
    }

    /// Returns true if the importances can be reported by target.
    fn is_by_target(&self) -> bool {
        false
    }

    /// Bytes that [`Observer::on_tree`] needs for a tree of this size, besides the tree and its rows; of an upper tree
    /// whose leaves do not count, what [`Observer::on_upper`] needs.
    fn oob_bytes(&self, _size: &OobSize, _context: GrowContext<'_>) -> usize {
        0
    }

    /// What the names of the importances have beside the name of the score, which are several if `params` ask for several.
    fn suffixes(&self, _params: &ForestParams) -> Vec<String> {
        vec![String::new()]
    }

    /// A new observer of a tree that grows under `params`.
    fn observer(&self, params: &ForestParams, size: ScoreSize) -> Box<dyn Observer>;
}

/// The score of one tree while it grows.
pub(crate) trait Observer: Send {
    /// Takes a split; splits come in preorder.
    fn on_split(&mut self, _split: &SplitEvent<'_>) {}

    /// Takes the complete tree with its out-of-bag rows, after all splits. Called if the method needs it, unless the tree
    /// comes [in parts](Observer::on_upper).
    fn on_tree(&mut self, _tree: &OobView<'_>) -> Result<()> {
        Ok(())
    }

    /// Takes the upper part of a tree with all out-of-bag rows, before all splits. Instead of the leaves for which `grows`
    /// is true, the tree has subtrees, which [come one by one](Observer::on_part).
    fn on_upper(&mut self, _upper: &OobView<'_>, _grows: &[bool]) -> Result<()> {
        Ok(())
    }

    /// Takes a subtree; subtrees come in preorder.
    fn on_part(&mut self, _part: &OobPart<'_>) -> Result<()> {
        Ok(())
    }

    /// The contribution of the tree, to each of the [`suffixes`](ScoreMethod::suffixes).
    fn harvest(self: Box<Self>) -> Vec<Harvest>;
}

/// A split as observers see it.
#[derive(Debug)]
pub(crate) struct SplitEvent<'a> {
    pub(crate) feature: u32,
    pub(crate) depth: u32,
    /// The share of the weight of the tree that reaches the node.
    pub(crate) share: f64,
    /// Impurity decrease.
    pub(crate) gain: f64,
    /// n_targets; the part of each target in the gain. Empty unless requested.
    pub(crate) gain_by_target: &'a [f64],
}

/// Dimensions of importances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoreSize {
    pub(crate) n_features: usize,
    /// Number of targets that importances are reported by; 0 if they are not.
    pub(crate) n_targets: usize,
}

/// The contribution of a tree to one score.
#[derive(Debug)]
pub(crate) struct Harvest {
    pub(crate) importances: Vector,
    /// n_targets, for methods with [`ScoreMethod::is_by_target`].
    pub(crate) by_target: Vec<Vector>,
}

impl From<Vector> for Harvest {
    fn from(importances: Vector) -> Self {
        Harvest { importances, by_target: Vec::new() }
    }
}

/// Sums by feature.
#[derive(Debug)]
pub(super) struct FeatureSums(Vec<Option<f64>>);

impl FeatureSums {
    pub(super) fn new(n_features: usize) -> Self {
        FeatureSums(vec![None; n_features])
    }

    pub(super) fn add(&mut self, feature: u32, value: f64) {
        *self.0[feature as usize].get_or_insert(0.0) += value;
    }

    /// The sums of the features that were added to.
    pub(super) fn into_vector(self) -> Vector {
        Vector::sparse((0..).zip(self.0).filter_map(|(feature, sum)| Some((feature, sum?))).collect())
    }
}

/// Sums by feature and target.
#[derive(Debug, Default)]
pub(super) struct TargetSums(BTreeMap<u32, Vec<f64>>);

impl TargetSums {
    pub(super) fn add(&mut self, feature: u32, values: impl ExactSizeIterator<Item = f64>) {
        let sums = self.0.entry(feature).or_insert_with(|| vec![0.0; values.len()]);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    /// A vector for each of `n_targets` targets.
    pub(super) fn into_vectors(self, n_targets: usize) -> Vec<Vector> {
        let vector = |target: usize| Vector {
            features: Some(self.0.keys().copied().collect()),
            values: self.0.values().map(|values| values[target]).collect(),
        };
        (0..n_targets).map(vector).collect()
    }
}
