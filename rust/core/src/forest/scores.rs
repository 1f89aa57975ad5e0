//! Scores: what a tree says about the features it tests (DESIGN §5).

use super::grown::{Grown, GrownNode, GrownSplit};
use super::params::Score;
use crate::accumulate::Vector;

/// The importances that a single tree gives by `score`, which is not the permutation score:
/// (feature, value) by ascending feature.
pub(crate) fn of_splits(score: Score, tree: &Grown, n_features: usize) -> Vec<(u32, f64)> {
    let root = &tree.nodes[0];
    let value = |node: &GrownNode, split: &GrownSplit| match score {
        Score::Genie3 => node.weight / root.weight * split.gain,
        Score::Symbolic { decay } => decay.powi(node.depth as i32),
        Score::Coverage => node.weight / root.weight,
        Score::Permutation => unreachable!("computed from out-of-bag rows"),
    };
    let mut sums = vec![None; n_features];
    for (node, split) in splits(tree) {
        *sums[split.feature as usize].get_or_insert(0.0) += value(node, split);
    }
    (0..).zip(sums).filter_map(|(feature, sum)| Some((feature, sum?))).collect()
}

/// `genie3` told apart by target: one vector for each.
pub(crate) fn genie3_by_target(tree: &Grown, n_targets: usize) -> Vec<Vector> {
    let root = &tree.nodes[0];
    let mut sums = std::collections::BTreeMap::new();
    for ((node, split), gains) in splits(tree).zip(tree.gain_by_target.chunks_exact(n_targets.max(1))) {
        let sum = sums.entry(split.feature).or_insert_with(|| vec![0.0; n_targets]);
        sum.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += node.weight / root.weight * gain);
    }
    let of_target = |target: usize| Vector {
        features: Some(sums.keys().copied().collect()),
        values: sums.values().map(|values: &Vec<f64>| values[target]).collect(),
    };
    (0..n_targets).map(of_target).collect()
}

fn splits(tree: &Grown) -> impl Iterator<Item = (&GrownNode, &GrownSplit)> {
    tree.nodes.iter().filter_map(|node| node.split.as_ref().map(|split| (node, split)))
}
