//! Shadows: a second feature for each feature, with the same values in other rows.
//!
//! With the setting `shadows`, trees choose among features and shadows. From [`MANY`] features on, the shadows of all
//! trees are one permutation of the rows, so that an irrelevant feature and its shadow have the same law. With fewer
//! features, one permutation would not show that law: [`TREES`] consecutive trees are a block that sees the same shadows.
//! What the importances of shadows say about those of features is in [`relevance`](ferrank_ranking::relevance). A
//! permutation for each tree would not do: the mean over trees would only say how much a feature is used by chance on
//! average, not how much that varies from one such feature to the next.
//!
//! Memory: the codes of all features twice, and eight bytes for each row.

use std::ops::Range;

use ferrank_data::schema::Task;
use ferrank_ranking::relevance::{Relevance, from_blocks, from_one_permutation};
use ferrank_ranking::{Contribution, Part, RunData, Vector};
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::random::{Purpose, Stream, stream};

use crate::params::ForestParams;

/// Number of consecutive trees that see the same shadows, where features are few.
const TREES: usize = 20;
/// The number of features from which on all trees see the same shadows.
///
/// In simulations with 200 rows and no relevant feature, the law from blocks has false discoveries in .33 of the tables
/// with 200 features, .46 with 500 and all with 5,000; that from one permutation in .08, .13 and none.
const MANY: usize = 150;
/// The least number of trees that p-values are computed from.
const LEAST_TREES: usize = 10 * TREES;

/// The number of the first tree that sees the same shadows as tree number `tree`.
pub(crate) fn block(tree: u64, n_features: usize, params: &ForestParams) -> u64 {
    let in_ensemble = tree % params.n_estimators as u64;
    tree - if n_features < MANY { in_ensemble % TREES as u64 } else { in_ensemble }
}

/// The trees with numbers below `n_trees`, in ranges of which each sees the same shadows; all of them without shadows.
pub(crate) fn rounds(n_trees: u64, n_features: usize, params: &ForestParams) -> Vec<Range<u64>> {
    let mut rounds: Vec<Range<u64>> = Vec::new();
    for tree in 0..n_trees {
        match rounds.last_mut() {
            Some(round) if !params.shadows || block(tree, n_features, params) == round.start => round.end += 1,
            _ => rounds.push(tree..tree + 1),
        }
    }
    rounds
}

/// The random stream of the shadows of a block.
pub(crate) fn random(block: u64, params: &ForestParams) -> Stream {
    stream(params.seed, Purpose::Shadows, block, 0)
}

/// Checks that shadows say something, if there are some.
pub(crate) fn validate(params: &ForestParams, task: Task) -> Result<()> {
    if !params.shadows {
        return Ok(());
    }
    check(
        params.n_estimators >= LEAST_TREES,
        format!(
            "shadows: p-values need at least {LEAST_TREES} trees, and there are {}; set n_estimators, to 600 for example",
            params.n_estimators
        ),
    )?;
    check(
        !params.clusters(task),
        "shadows: where features are clustered, each predicts itself, and no shadow does; set supervision to 1, or leave \
         shadows out",
    )
}

/// The vectors of a tree with those of the `n_scores` scores for shadows at the end; features from `first` on are shadows.
pub(crate) fn apart(vectors: Contribution, n_scores: usize, first: usize) -> Contribution {
    let (mut own, mut shadows) = (Vec::with_capacity(vectors.len() + n_scores), Vec::with_capacity(n_scores));
    for (number, vector) in vectors.into_iter().enumerate() {
        let (features, of_shadows): (Vec<_>, Vec<_>) = vector.entries().partition(|&(feature, _)| feature < first);
        let sparse = |entries: Vec<(usize, f64)>, first: usize| {
            Vector::sparse(entries.into_iter().map(|(feature, value)| ((feature - first) as u32, value)).collect())
        };
        own.push(sparse(features, 0));
        if number < n_scores {
            shadows.push(sparse(of_shadows, first));
        }
    }
    own.append(&mut shadows);
    own
}

/// The relevance of features by all `n_scores` scores together; the vectors of shadows are from number `first` on.
pub(crate) fn relevance(
    data: &RunData,
    params: &ForestParams,
    ensembles: &[Vec<Part<'_>>],
    (first, n_scores): (usize, usize),
) -> Option<Relevance> {
    let n_features = data.features.len();
    let of_score = |trees: &Vec<Part<'_>>, s: usize| match n_features < MANY {
        true => from_blocks(data, trees, [s, first + s], |tree| block(tree, n_features, params)),
        false => from_one_permutation(data, trees, [s, first + s]),
    };
    let parts = ensembles.iter().flat_map(|trees| (0..n_scores).map(move |s| of_score(trees, s)));
    Relevance::joined(&parts.collect::<Option<Vec<Relevance>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_a_block_are_of_one_ensemble() {
        let params = ForestParams::default().with_n_estimators(210);
        let blocks: Vec<u64> = [0, 19, 20, 199, 209, 210, 229, 230].map(|tree| block(tree, MANY - 1, &params)).into();
        assert_eq!(blocks, [0, 0, 20, 180, 200, 210, 210, 230]);
        let blocks: Vec<u64> = [0, 19, 209, 210, 419, 420].map(|tree| block(tree, MANY, &params)).into();
        assert_eq!(blocks, [0, 0, 0, 210, 210, 420]);
    }

    #[test]
    fn a_round_is_a_block_or_all_trees() {
        let params = ForestParams::default().with_n_estimators(210);
        let ends = |n_features, params: &ForestParams| -> Vec<(u64, u64)> {
            rounds(45, n_features, params).iter().map(|round| (round.start, round.end)).collect()
        };
        assert_eq!(ends(3, &params), [(0, 45)]);
        let params = ForestParams { shadows: true, ..params };
        assert_eq!(ends(MANY, &params), [(0, 45)]);
        assert_eq!(ends(3, &params), [(0, 20), (20, 40), (40, 45)]);
    }

    #[test]
    fn shadows_come_after_all_vectors_of_features() {
        let vectors = [vec![(0, 1.0), (3, 2.0)], vec![(2, 3.0)], vec![(1, 4.0), (2, 5.0)]].map(Vector::sparse);
        let expected = [vec![(0, 1.0)], vec![], vec![(1, 4.0)], vec![(1, 2.0)], vec![(0, 3.0)]].map(Vector::sparse);
        assert_eq!(apart(vectors.into(), 2, 2), expected);
    }
}
