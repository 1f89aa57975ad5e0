//! Scores: ways to turn trees into importances of features.
//!
//! A [`Score`] is a setting. Its implementation is a [`ScoreMethod`] in a file of its own, which [`Score::method`]
//! looks up. A method declares what it needs and makes an [`Observer`] for each tree. The observer sees every split,
//! then the whole tree with its out-of-bag rows if the method needs them, and ends as the tree's contribution.
//!
//! To add a score, add its file, its variant of [`Score`], and its lines in [`Score::all`] and [`Score::method`].
//!
//! Memory: a number for each feature, score and thread.

mod coverage;
mod genie3;
pub(crate) mod permutation;
mod symbolic;

use std::collections::BTreeMap;

use ferrank_data::schema::Task;
use ferrank_ranking::{Contribution, Vector};
use ferrank_runtime::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::oob::{OobSize, OobView};
use crate::params::ForestParams;
use crate::tree_buffer::{BufferedSplit, TreeBuffer};

/// A way to turn trees into importances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Score {
    /// Impurity decrease (Petković et al. 2020a, Eq. 2).
    Genie3,
    /// Sum of `decay^depth` over the splits (Petković et al. 2020a, Eq. 1).
    Symbolic {
        /// In (0, 1]; 1 counts the splits.
        decay: f64,
    },
    /// The share of the bag that reaches the splits (Petković et al. 2023, Eq. 2).
    Coverage,
    /// Increase of the out-of-bag error when the feature is permuted (Petković et al. 2020a, Eq. 3).
    Permutation,
}

impl Score {
    /// All scores; `decay` is the setting of [`Score::Symbolic`].
    fn all(decay: f64) -> [Score; 4] {
        [Score::Genie3, Score::Symbolic { decay }, Score::Coverage, Score::Permutation]
    }

    /// The implementation of the score.
    pub(crate) fn method(self) -> Box<dyn ScoreMethod> {
        match self {
            Score::Genie3 => Box::new(genie3::Genie3),
            Score::Symbolic { decay } => Box::new(symbolic::Symbolic { decay }),
            Score::Coverage => Box::new(coverage::Coverage),
            Score::Permutation => Box::new(permutation::Permutation),
        }
    }

    /// The score's name in settings and results.
    pub fn name(self) -> &'static str {
        self.method().name()
    }

    /// The score called `name`; `decay` is the setting of [`Score::Symbolic`].
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such score, or `decay` is out of range where it applies.
    pub fn parse(name: &str, decay: f64) -> Result<Self> {
        let score = Score::all(decay).into_iter().find(|score| score.name() == name);
        let unknown = || Error::Setting(format!("score: unknown score '{name}'; use {}", Score::names()));
        let score = score.ok_or_else(unknown)?;
        score.method().validate_setting()?;
        Ok(score)
    }

    /// The names of all scores, for messages.
    pub(crate) fn names() -> String {
        let names = Score::all(1.0).map(Score::name);
        let (last, others) = names.split_last().expect("there are scores");
        format!("{} or {last}", others.join(", "))
    }
}

/// Returns true if one of `scores` reads out-of-bag rows.
pub(crate) fn need_oob(scores: &[Score]) -> bool {
    scores.iter().any(|score| score.method().needs_oob())
}

/// What a score declares of itself, and its observer.
pub(crate) trait ScoreMethod {
    /// The name in settings and results.
    fn name(&self) -> &'static str;

    /// Checks the score's own setting.
    fn validate_setting(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that the score is defined under `params` for `task`.
    fn validate(&self, _params: &ForestParams, _task: Task) -> Result<()> {
        Ok(())
    }

    /// Returns true if [`Observer::on_tree`] is to be called. Trees are then kept until they are complete.
    fn needs_oob(&self) -> bool {
        false
    }

    /// Returns true if the importances can be reported by target.
    fn is_by_target(&self) -> bool {
        false
    }

    /// Bytes that [`Observer::on_tree`] needs for a tree of this size, besides the tree and its rows.
    fn oob_bytes(&self, _size: &OobSize) -> usize {
        0
    }

    /// A new observer of a tree.
    fn observer(&self, size: ScoreSize) -> Box<dyn Observer>;
}

/// The score of one tree while it grows.
pub(crate) trait Observer: Send {
    /// Takes a split; splits come in preorder.
    fn on_split(&mut self, _split: &SplitEvent<'_>) {}

    /// Takes the complete tree with its out-of-bag rows, after all splits. Called if the method needs it.
    fn on_tree(&mut self, _tree: &OobView<'_>) -> Result<()> {
        Ok(())
    }

    /// What the tree contributes.
    fn harvest(self: Box<Self>) -> Harvest;
}

/// What an observer sees of a split.
#[derive(Debug)]
pub(crate) struct SplitEvent<'a> {
    pub(crate) feature: u32,
    pub(crate) depth: u32,
    /// Share of the tree's weight that reaches the node.
    pub(crate) share: f64,
    /// Impurity decrease.
    pub(crate) gain: f64,
    /// n_targets; their parts of the gain. Empty unless requested.
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
struct FeatureSums(Vec<Option<f64>>);

impl FeatureSums {
    fn new(n_features: usize) -> Self {
        FeatureSums(vec![None; n_features])
    }

    fn add(&mut self, feature: u32, value: f64) {
        *self.0[feature as usize].get_or_insert(0.0) += value;
    }

    /// The sums of the features that have one.
    fn into_vector(self) -> Vector {
        Vector::sparse((0..).zip(self.0).filter_map(|(feature, sum)| Some((feature, sum?))).collect())
    }
}

/// The observers of one tree, one for each score.
pub(crate) struct SplitScores {
    /// Weight of the root, whose split comes first.
    root: Option<f64>,
    observers: Vec<Box<dyn Observer>>,
}

impl SplitScores {
    pub(crate) fn new(scores: &[Score], size: ScoreSize) -> Self {
        let observers = scores.iter().map(|score| score.method().observer(size)).collect();
        SplitScores { root: None, observers }
    }

    /// Adds a split of a node of this depth and weight; `gain_by_target` are the targets' parts of its gain.
    pub(crate) fn on_split(&mut self, depth: u32, weight: f64, split: &BufferedSplit, gain_by_target: &[f64]) {
        let root = *self.root.get_or_insert(weight);
        let BufferedSplit { feature, gain, .. } = *split;
        let event = SplitEvent { feature, depth, share: weight / root, gain, gain_by_target };
        self.observers.iter_mut().for_each(|observer| observer.on_split(&event));
    }

    /// Adds the splits of `tree`, which may be a subtree.
    pub(crate) fn add_splits(&mut self, tree: &TreeBuffer) {
        let splits = || tree.nodes.iter().filter_map(|node| node.split.as_ref().map(|split| (node, split)));
        let mut gains = &tree.gain_by_target[..];
        let n_targets = if gains.is_empty() { 0 } else { gains.len() / splits().count() };
        for (node, split) in splits() {
            let (of_split, rest) = gains.split_at(n_targets);
            self.on_split(node.depth, node.weight, split, of_split);
            gains = rest;
        }
    }

    /// Shows the complete tree to all observers.
    ///
    /// # Errors
    /// The first error of an observer.
    pub(crate) fn on_tree(&mut self, tree: &OobView<'_>) -> Result<()> {
        self.observers.iter_mut().try_for_each(|observer| observer.on_tree(tree))
    }

    /// A vector for each score, followed by those of the scores that are reported by target.
    pub(crate) fn harvest(self) -> Contribution {
        let harvests: Vec<Harvest> = self.observers.into_iter().map(Observer::harvest).collect();
        let (mut vectors, by_target): (Contribution, Vec<_>) =
            harvests.into_iter().map(|Harvest { importances, by_target }| (importances, by_target)).unzip();
        vectors.extend(by_target.into_iter().flatten());
        vectors
    }
}

/// Sums by feature and target.
#[derive(Debug, Default)]
struct TargetSums(BTreeMap<u32, Vec<f64>>);

impl TargetSums {
    fn add(&mut self, feature: u32, values: impl ExactSizeIterator<Item = f64>) {
        let sums = self.0.entry(feature).or_insert_with(|| vec![0.0; values.len()]);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    /// A vector for each of `n_targets` targets.
    fn into_vectors(self, n_targets: usize) -> Vec<Vector> {
        let vector = |target: usize| Vector {
            features: Some(self.0.keys().copied().collect()),
            values: self.0.values().map(|values| values[target]).collect(),
        };
        (0..n_targets).map(vector).collect()
    }
}
