//! Importances from the contributions of trees.

use std::collections::BTreeMap;
use std::ops::Range;

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::companions::{COMPANIONS, has_companions, subsample, variance_factor};
use super::model_error;
use super::params::ForestParams;
use super::scores::{Variant, variants};
use super::shadows;
use ferrank_ranking::relevance::Relevance;
use ferrank_ranking::{Estimate, Form, ModelError, Part, RunData, ScoreRanking, Vector};
use ferrank_runtime::error::{Error, Result};

/// The number of trees of a complete run.
pub(super) fn n_keys(data: &RunData, params: &ForestParams) -> u64 {
    (params.n_estimators as u64).saturating_mul(n_ensembles(data, params) as u64)
}

/// The forms of the vectors of tree number `tree`: one for each score, those by target, one for each score of shadows,
/// those of the model error, and one for each score of each companion.
pub(super) fn forms(data: &RunData, params: &ForestParams, tree: u64) -> Vec<Form> {
    let has_companions = has_companions(tree, params);
    let companions = if has_companions { COMPANIONS * variants(params).len() } else { 0 };
    let sparse = Form::Sparse(data.features.len());
    let mut forms = vec![sparse; n_importances(data, params)];
    forms.extend(model_error::forms(data, params));
    forms.resize(forms.len() + companions, sparse);
    forms
}

/// The relevance of features, if there are shadows.
pub(super) fn relevance(data: &RunData, params: &ForestParams, ensembles: &[Vec<Part<'_>>]) -> Option<Relevance> {
    let n_scores = variants(params).len();
    let first = n_importances(data, params) - n_scores;
    if params.shadows { shadows::relevance(data, params, ensembles, (first, n_scores)) } else { None }
}

/// Number of vectors of a tree, without those of its companions.
fn n_own(data: &RunData, params: &ForestParams) -> usize {
    n_importances(data, params) + model_error::forms(data, params).len()
}

/// Number of vectors of importances of a tree, which come first.
fn n_importances(data: &RunData, params: &ForestParams) -> usize {
    let variants = variants(params);
    let by_target = if is_by_target(params) { data.targets.len() * n_by_target(&variants) } else { 0 };
    let shadows = if params.shadows { variants.len() } else { 0 };
    variants.len() + by_target + shadows
}

/// The error of the forest by target; otherwise the reason why it is not known.
pub(super) fn model_error(
    data: &RunData,
    params: &ForestParams,
    ensembles: &[Vec<Part<'_>>],
) -> std::result::Result<Vec<ModelError>, &'static str> {
    match model_error::unknown(data, params) {
        Some(reason) => Err(reason),
        None => model_error::estimate(data, params, ensembles, n_importances(data, params)),
    }
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
    let shares: Vec<f64> = (0..ensembles.len()).map(|ensemble| weight(ensemble) / total).collect();
    let variants = variants(params);
    let rankings = variants.iter().enumerate().map(|(s, Variant { score, name, .. })| {
        let estimates = ensembles.iter().map(|trees| Estimate::mean(trees, s, n_features));
        let parts: Vec<(f64, Estimate)> = (0..ensembles.len()).map(weight).zip(estimates).collect();
        let by_target: Vec<f64> = match (params.by_target && score.method().is_by_target(), params.per_target) {
            (false, _) => Vec::new(),
            (true, true) => (0..n_features)
                .flat_map(|i| parts.iter().map(move |(weight, part)| weight / total * part.mean[i]))
                .collect(),
            (true, false) => {
                let first = variants.len() + data.targets.len() * n_by_target(&variants[..s]);
                let of_target = |target: usize| Estimate::mean(&ensembles[0], first + target, n_features).mean;
                let columns: Vec<Vec<f64>> = (0..data.targets.len()).map(of_target).collect();
                (0..n_features).flat_map(|i| columns.iter().map(move |column| column[i])).collect()
            }
        };
        let estimate = match params.per_target {
            true => Estimate::average(&parts),
            false => parts.into_iter().next().map(|(_, estimate)| estimate).expect("one ensemble"),
        };
        let estimate = match data.rows > 1 && has_companions(0, params) {
            true => with_sampling(estimate, data, params, ensembles, s, &shares),
            false => estimate,
        };
        let mut ranking = estimate.rank(name);
        ranking.by_target = by_target;
        ranking
    });
    Ok(rankings.collect())
}

/// `estimate` of score number `score` with its variance over samples of rows, from the companions of the trees of all
/// `ensembles`, whose `shares` sum to 1. Unknown unless two subsamples have two trees each.
fn with_sampling(
    estimate: Estimate,
    data: &RunData,
    params: &ForestParams,
    ensembles: &[Vec<Part<'_>>],
    score: usize,
    shares: &[f64],
) -> Estimate {
    let (n_features, n_scores, own) = (data.features.len(), variants(params).len(), n_own(data, params));
    let mut groups: BTreeMap<u64, Vec<(f64, Vec<&Vector>)>> = BTreeMap::new();
    for (trees, &share) in ensembles.iter().zip(shares) {
        let trees: Vec<&Part<'_>> = trees.iter().filter(|tree| has_companions(tree.key, params)).collect();
        for group in trees.chunk_by(|a, b| subsample(a.key, params) == subsample(b.key, params)) {
            let number = |which: usize| own + which * n_scores + score;
            let companions = group.iter().flat_map(|tree| (0..COMPANIONS).map(move |which| &tree.sums[number(which)]));
            groups.entry(subsample(group[0].key, params)).or_default().push((share, companions.collect()));
        }
    }
    // With an ensemble for each target, a subsample counts if all ensembles have companions on it.
    let groups: Vec<Group> = (groups.values().filter(|parts| parts.len() == ensembles.len()))
        .filter_map(|parts| Group::new(parts, n_features))
        .collect();
    let freedom = groups.len() as f64 - 1.0;
    if freedom < 1.0 {
        return estimate;
    }
    let factor = variance_factor(data.rows);
    let sampling = |feature: usize| {
        let mean = groups.iter().map(|group| group.mean[feature]).sum::<f64>() / groups.len() as f64;
        let between = groups.iter().map(|group| (group.mean[feature] - mean).powi(2)).sum::<f64>() / freedom;
        if mean == 0.0 && between == 0.0 {
            // No companion uses the feature, so that chance decides whether a tree does.
            return estimate.mean[feature].powi(2) + estimate.monte_carlo[feature];
        }
        let within = groups.iter().map(|group| group.variance[feature]).sum::<f64>() / groups.len() as f64;
        factor * positive_part(between - within, (2.0 / freedom).sqrt() * between) + estimate.monte_carlo[feature]
    };
    let sampling = (0..n_features).map(sampling).collect();
    estimate.with_sampling(sampling, freedom)
}

/// The mean importances over the companions on a subsample, and the variances of these means over companions.
struct Group {
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Group {
    /// The group of companions with these vectors, ensemble by ensemble with its share; `None` for a single companion.
    fn new(parts: &[(f64, Vec<&Vector>)], n_features: usize) -> Option<Self> {
        let mut group = Group { mean: vec![0.0; n_features], variance: vec![0.0; n_features] };
        for (share, trees) in parts {
            let n = trees.len() as f64;
            if trees.len() < 2 {
                return None;
            }
            let (mut sums, mut squares) = (vec![0.0; n_features], vec![0.0; n_features]);
            for (feature, value) in trees.iter().flat_map(|vector| vector.entries()) {
                sums[feature] += value;
                squares[feature] += value * value;
            }
            for feature in 0..n_features {
                let mean = sums[feature] / n;
                group.mean[feature] += share * mean;
                let spread = (squares[feature] - n * mean * mean).max(0.0);
                group.variance[feature] += share * share * spread / (n - 1.0) / n;
            }
        }
        Some(group)
    }
}

/// The expectation of a variance that was estimated as `value` with standard error `error`: the mean of the part above 0
/// of a normal distribution, the posterior mean under a flat prior (as Athey, Tibshirani and Wager 2019 do). A mere cut
/// at 0 would claim no error at all where the noise of the trees hides it.
fn positive_part(value: f64, error: f64) -> f64 {
    if error <= 0.0 {
        return value.max(0.0);
    }
    let (normal, z) = (Normal::standard(), value / error);
    // Far below 0 both vanish, and the mean approaches error / |z|.
    if z < -30.0 { error / -z } else { value + error * normal.pdf(z) / normal.cdf(z) }
}

fn n_ensembles(data: &RunData, params: &ForestParams) -> usize {
    if params.per_target { data.targets.len() } else { 1 }
}

/// Returns true if the contributions of trees are reported by target.
fn is_by_target(params: &ForestParams) -> bool {
    params.by_target && !params.per_target
}

/// The number of those that can be reported by target.
fn n_by_target(variants: &[Variant]) -> usize {
    variants.iter().filter(|variant| variant.score.method().is_by_target()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variance_is_never_negative_and_is_itself_where_it_is_sure() {
        assert!((positive_part(5.0, 0.01) - 5.0).abs() < 1e-12);
        assert_eq!((positive_part(5.0, 0.0), positive_part(-5.0, 0.0)), (5.0, 0.0));
        // The mean of the absolute value of a standard normal variable.
        assert!((positive_part(0.0, 1.0) - (2.0 / std::f64::consts::PI).sqrt()).abs() < 1e-9);
        for value in [-3.0, -10.0, -29.9, -30.1, -1e3, -1e9] {
            let found = positive_part(value, 1.0);
            assert!(found > 0.0 && found < 1.01 / -value, "{value}: {found}");
        }
    }

    #[test]
    fn the_mean_of_a_group_weighs_ensembles_and_its_variance_their_trees() {
        let vectors = [vec![(0, 1.0)], vec![(0, 3.0)], vec![(1, 4.0)], vec![]].map(Vector::sparse);
        let parts = [(0.25, vec![&vectors[0], &vectors[1]]), (0.75, vec![&vectors[2], &vectors[3]])];
        let group = Group::new(&parts, 2).unwrap();
        assert_eq!(group.mean, [0.5, 1.5]);
        // Two trees at 1 and 3, and at 4 and 0: variances of their means 1 and 4.
        assert_eq!(group.variance, [0.0625, 0.5625 * 4.0]);
        assert!(Group::new(&[(1.0, vec![&vectors[0]])], 2).is_none());
    }
}
