//! Importances from the contributions of trees.

use std::ops::Range;

use super::params::ForestParams;
use ferrank_ranking::{Estimate, Form, Part, RunData, ScoreRanking};
use ferrank_runtime::error::{Error, Result};

/// The number of trees of a complete run.
pub(super) fn n_keys(data: &RunData, params: &ForestParams) -> u64 {
    (params.n_estimators as u64).saturating_mul(n_ensembles(data, params) as u64)
}

/// The forms of the vectors of a tree: one for each score, then those by target.
pub(super) fn forms(data: &RunData, params: &ForestParams) -> Vec<Form> {
    let by_target =
        if is_by_target(params) { data.targets.len() * n_by_target(params, params.scores.len()) } else { 0 };
    vec![Form::Sparse(data.features.len()); params.scores.len() + by_target]
}

/// The keys of each ensemble.
pub(super) fn populations(data: &RunData, params: &ForestParams) -> Vec<Range<u64>> {
    let n_trees = params.n_estimators as u64;
    (0..n_ensembles(data, params) as u64).map(|ensemble| ensemble * n_trees..(ensemble + 1) * n_trees).collect()
}

/// The importances from the trees of all `ensembles`, one ranking for each score.
///
/// With `per_target`, importances are the means over the ensembles, weighted with the target weights.
pub(super) fn scores(data: &RunData, params: &ForestParams, ensembles: &[Vec<Part<'_>>]) -> Result<Vec<ScoreRanking>> {
    let n_features = data.features.len();
    for (ensemble, trees) in ensembles.iter().enumerate() {
        let target = data.targets.get(ensemble).filter(|_| params.per_target);
        if trees.is_empty() {
            let which = target.map_or(String::new(), |target| format!(" of the target '{}'", target.name));
            return Err(Error::Data(format!("the accumulator has no tree{which}; merge those that have")));
        }
    }
    let weights = params.target_weights.as_ref().filter(|_| params.per_target);
    let weight = |ensemble: usize| weights.map_or(1.0, |weights| weights[ensemble]);
    let total: f64 = (0..ensembles.len()).map(weight).sum();
    let rankings = params.scores.iter().enumerate().map(|(s, score)| {
        let estimates = ensembles.iter().map(|trees| Estimate::mean(trees, s, n_features));
        let parts: Vec<(f64, Estimate)> = (0..ensembles.len()).map(weight).zip(estimates).collect();
        let by_target: Vec<f64> = match (params.by_target && score.method().is_by_target(), params.per_target) {
            (false, _) => Vec::new(),
            (true, true) => (0..n_features)
                .flat_map(|i| parts.iter().map(move |(weight, part)| weight / total * part.mean[i]))
                .collect(),
            (true, false) => {
                let first = params.scores.len() + data.targets.len() * n_by_target(params, s);
                let of_target = |target: usize| Estimate::mean(&ensembles[0], first + target, n_features).mean;
                let columns: Vec<Vec<f64>> = (0..data.targets.len()).map(of_target).collect();
                (0..n_features).flat_map(|i| columns.iter().map(move |column| column[i])).collect()
            }
        };
        let estimate = match params.per_target {
            true => Estimate::average(&parts),
            false => parts.into_iter().next().map(|(_, estimate)| estimate).expect("one ensemble"),
        };
        let mut ranking = estimate.rank(score.name());
        ranking.by_target = by_target;
        ranking
    });
    Ok(rankings.collect())
}

fn n_ensembles(data: &RunData, params: &ForestParams) -> usize {
    if params.per_target { data.targets.len() } else { 1 }
}

/// Returns true if the contributions of trees are reported by target.
fn is_by_target(params: &ForestParams) -> bool {
    params.by_target && !params.per_target
}

/// The number of the first `n` scores that can be reported by target.
fn n_by_target(params: &ForestParams, n: usize) -> usize {
    params.scores[..n].iter().filter(|score| score.method().is_by_target()).count()
}
