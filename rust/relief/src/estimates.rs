//! Importances from the sums over blocks of queries, with standard errors.
//!
//! Importances are ratios of sums: W = Σ wᵦ / m, or Eq. 12 of RReliefF. Standard errors come from the linear terms of the
//! ratios, over the blocks, whose queries are a random sample.

use std::ops::Range;

use super::outline::Outline;
use super::params::{ReliefParams, ReliefScore};
use super::targets::TargetMetric;
use ferrank_ranking::{Estimate, Form, Part, RunData, ScoreRanking, effective};
use ferrank_runtime::error::{Error, Result};

/// A probability below this is 0 but for rounding; probabilities conditional on it count as 0.
const NEGLIGIBLE: f64 = 1e-12;

/// Number of keys of a complete run: its blocks of queries, and one for `myopic`.
pub(super) fn n_keys(data: &RunData, params: &ReliefParams) -> u64 {
    n_blocks(data, params) + u64::from(params.scores.contains(&ReliefScore::Myopic))
}

/// Number of blocks of queries. The contribution of `myopic` has this number as its key.
pub(super) fn n_blocks(data: &RunData, params: &ReliefParams) -> u64 {
    let queries = params.queries(data.rows).unwrap_or(0);
    let requested = params.scores.contains(&ReliefScore::Relief);
    if requested { Outline::from_run(data, params).n_blocks(queries) } else { 0 }
}

/// The vectors of the contribution of `key`.
pub(super) fn forms(data: &RunData, params: &ReliefParams, key: u64) -> Vec<Form> {
    match key < n_blocks(data, params) {
        true => Outline::from_run(data, params).forms(),
        false => vec![Form::Dense(data.features.len())],
    }
}

/// The keys of the blocks of queries, and the key of `myopic` if it is requested.
pub(super) fn populations(data: &RunData, params: &ReliefParams) -> Vec<Range<u64>> {
    let n_blocks = n_blocks(data, params);
    vec![0..n_blocks, n_blocks..n_keys(data, params)]
}

/// The scores in the order of the settings.
pub(super) fn scores(
    data: &RunData,
    params: &ReliefParams,
    populations: &[Vec<Part<'_>>],
) -> Result<Vec<ScoreRanking>> {
    let [blocks, myopic] = populations else { unreachable!("blocks of queries, and myopic") };
    let none = |what: &str| Error::Data(format!("the accumulator has no {what}; merge those that have"));
    let mut scores = Vec::new();
    for score in &params.scores {
        match score {
            ReliefScore::Relief => {
                let outline = Outline::from_run(data, params);
                if blocks.is_empty() {
                    return Err(none("block of queries"));
                }
                let estimates = estimates(blocks, &outline).into_iter();
                scores.extend(estimates.zip(outline.names()).map(|(estimate, name)| estimate.rank(&name)));
            }
            ReliefScore::Myopic => {
                if myopic.is_empty() {
                    return Err(none("contribution of myopic"));
                }
                scores.push(Estimate::mean(myopic, 0, data.features.len()).rank(score.name()));
            }
        }
    }
    Ok(scores)
}

/// The sums of blocks of queries.
trait Block {
    /// Number of queries of a scheme, less the influence that their pairs miss to 1.
    fn queries(&self, scheme: usize) -> f64;
    /// Sum number `number` of distances of the targets.
    fn target(&self, number: usize) -> f64;
    /// Sum number `number` of differences in a feature.
    fn sum(&self, number: usize, feature: usize) -> f64;
}

impl Block for Part<'_> {
    fn queries(&self, scheme: usize) -> f64 {
        self.sums[0].values[scheme]
    }

    fn target(&self, number: usize) -> f64 {
        self.sums[1].values[number]
    }

    fn sum(&self, number: usize, feature: usize) -> f64 {
        self.sums[2 + number].values[feature]
    }
}

/// One estimate for each score, in the order of [`Outline::names`].
fn estimates(blocks: &[Part<'_>], outline: &Outline) -> Vec<Estimate> {
    let Outline { schemes, metrics, shares, n_features } = outline;
    let mut estimates = Vec::new();
    for scheme in 0..schemes.len() {
        let queries = |block: &Part<'_>| block.queries(scheme);
        let ratio = |n: usize, feature: usize| {
            let near = scheme * (1 + metrics.len());
            let sum = |number: usize| move |block: &Part<'_>| block.sum(number, feature);
            let target = |block: &Part<'_>| block.target(scheme * metrics.len() + n);
            Linear::difference(blocks, queries, sum(near), sum(near + 1 + n), target)
        };
        match metrics.first() {
            None => estimates.push(estimate(blocks, *n_features, |feature| {
                Linear::mean(blocks, queries, |block| block.sum(scheme, feature))
            })),
            Some(TargetMetric::Target(_)) => estimates.push(estimate(blocks, *n_features, |feature| {
                Linear::average((0..metrics.len()).map(|n| (shares[n], ratio(n, feature))))
            })),
            Some(_) => {
                estimates.extend((0..metrics.len()).map(|n| estimate(blocks, *n_features, |feature| ratio(n, feature))))
            }
        }
    }
    estimates
}

fn estimate(blocks: &[Part<'_>], n_features: usize, of: impl Fn(usize) -> Linear) -> Estimate {
    let n = effective(blocks);
    let (mean, variance) = (0..n_features)
        .map(|feature| {
            let Linear { value, terms } = of(feature);
            let squares: f64 = terms.iter().map(|term| term * term).sum();
            (value, if n > 1.0 { n / (n - 1.0) * squares } else { f64::NAN })
        })
        .unzip();
    Estimate { mean, variance }
}

/// A function of sums over blocks, and its linear terms by block.
struct Linear {
    value: f64,
    /// n_blocks; they sum to 0.
    terms: Vec<f64>,
}

impl Linear {
    /// Σ sum / Σ queries.
    fn mean(blocks: &[Part<'_>], queries: impl Fn(&Part<'_>) -> f64, sum: impl Fn(&Part<'_>) -> f64) -> Self {
        let all: f64 = blocks.iter().map(&queries).sum();
        let value = blocks.iter().map(&sum).sum::<f64>() / all;
        Linear { value, terms: blocks.iter().map(|block| (sum(block) - value * queries(block)) / all).collect() }
    }

    /// P(both) / P(target) − (P(feature) − P(both)) / (1 − P(target)) (Robnik-Šikonja and Kononenko 1999 Eq. 12).
    fn difference(
        blocks: &[Part<'_>],
        queries: impl Fn(&Part<'_>) -> f64,
        feature: impl Fn(&Part<'_>) -> f64,
        both: impl Fn(&Part<'_>) -> f64,
        target: impl Fn(&Part<'_>) -> f64,
    ) -> Self {
        let total = |of: &dyn Fn(&Part<'_>) -> f64| blocks.iter().map(of).sum::<f64>();
        let all_queries = total(&queries);
        let (all_both, all_target) = (total(&both), total(&target));
        let given =
            |joint: f64, condition: f64| if condition > NEGLIGIBLE * all_queries { joint / condition } else { 0.0 };
        let differ = given(all_both, all_target);
        let agree = given(total(&feature) - all_both, all_queries - all_target);
        let terms = blocks.iter().map(|block| {
            given(both(block) - differ * target(block), all_target)
                - given(
                    feature(block) - both(block) - agree * (queries(block) - target(block)),
                    all_queries - all_target,
                )
        });
        Linear { value: differ - agree, terms: terms.collect() }
    }

    /// The weighted mean of `parts`, whose weights sum to 1.
    fn average(parts: impl Iterator<Item = (f64, Linear)>) -> Self {
        parts.fold(Linear { value: 0.0, terms: Vec::new() }, |mut mean, (share, part)| {
            mean.terms.resize(part.terms.len(), 0.0);
            mean.value += share * part.value;
            mean.terms.iter_mut().zip(part.terms).for_each(|(mean, term)| *mean += share * term);
            mean
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_leaves_of_a_condition_does_not_count() {
        // The targets of all pairs differ, but for rounding: those that agree say nothing.
        let sums = Vec::new();
        let block = Part { weight: 1.0, sums: &sums };
        let found = |target: f64, both: f64| Linear::difference(&[block], |_| 3.0, |_| 1.5, |_| both, |_| target).value;
        assert_eq!(found(3.0, 1.5), 0.5);
        assert!((found(3.0f64.next_down(), 1.5f64.next_down()) - 0.5).abs() < 1e-9);
    }
}
