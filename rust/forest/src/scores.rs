//! Scores: what a tree says about the features it tests (DESIGN §5).

use std::collections::BTreeMap;

use super::params::Score;
use super::tree_buffer::{BufferedSplit, TreeBuffer};
use ferrank_ranking::{Contribution, Vector};

/// What the splits of one tree add to the importances, split by split in preorder.
#[derive(Debug)]
pub(crate) struct SplitScores {
    /// Weight of the root, whose split comes first.
    root: Option<f64>,
    scores: Vec<Score>,
    /// For each score, n_features.
    sums: Vec<Vec<Option<f64>>>,
    /// Number of targets, and as many parts of `genie3` by feature, if asked for.
    by_target: Option<(usize, BTreeMap<u32, Vec<f64>>)>,
}

impl SplitScores {
    /// No splits yet; `by_target` is the number of targets where `genie3` is told apart by them. The permutation
    /// score is none of splits.
    pub(crate) fn new(scores: &[Score], n_features: usize, by_target: Option<usize>) -> Self {
        SplitScores {
            root: None,
            scores: scores.to_vec(),
            sums: scores.iter().map(|_| vec![None; n_features]).collect(),
            by_target: by_target.map(|n_targets| (n_targets, BTreeMap::new())),
        }
    }

    /// Adds a split of a node of this depth and weight; `gains` are the targets' parts of its gain.
    pub(crate) fn add(&mut self, depth: u32, weight: f64, split: &BufferedSplit, gains: &[f64]) {
        let root = *self.root.get_or_insert(weight);
        for (score, sums) in self.scores.iter().zip(&mut self.sums) {
            let value = match score {
                Score::Genie3 => weight / root * split.gain,
                Score::Symbolic { decay } => decay.powi(depth as i32),
                Score::Coverage => weight / root,
                Score::Permutation => continue,
            };
            *sums[split.feature as usize].get_or_insert(0.0) += value;
        }
        if let Some((_, by_target)) = &mut self.by_target {
            let sum = by_target.entry(split.feature).or_insert_with(|| vec![0.0; gains.len()]);
            sum.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += weight / root * gain);
        }
    }

    /// Adds the splits of `grown`, a tree or a subtree.
    pub(crate) fn add_all(&mut self, grown: &TreeBuffer) {
        let splits = || grown.nodes.iter().filter_map(|node| node.split.as_ref().map(|split| (node, split)));
        let mut gains = &grown.gain_by_target[..];
        let n_targets = if gains.is_empty() { 0 } else { gains.len() / splits().count() };
        for (node, split) in splits() {
            let (of_split, rest) = gains.split_at(n_targets);
            self.add(node.depth, node.weight, split, of_split);
            gains = rest;
        }
    }

    /// A vector for each score, and one for each target where they are told apart.
    pub(crate) fn finish(self) -> Contribution {
        let values = |sums: Vec<Option<f64>>| {
            Vector::sparse((0..).zip(sums).filter_map(|(feature, sum)| Some((feature, sum?))).collect())
        };
        let mut vectors: Contribution = self.sums.into_iter().map(values).collect();
        let (n_targets, by_target) = self.by_target.unwrap_or_default();
        vectors.extend((0..n_targets).map(|target| Vector {
            features: Some(by_target.keys().copied().collect()),
            values: by_target.values().map(|values| values[target]).collect(),
        }));
        vectors
    }
}
