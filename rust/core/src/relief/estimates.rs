//! Importances from the sums over blocks of queries, with standard errors.
//!
//! Importances are ratios of sums, W = Σ wᵦ / m or RReliefF's Eq. 12. Their standard errors are those of the
//! ratios' linear terms over the blocks, whose queries are a random part of all.

use super::sums::{Kind, Plan, Sums};
use super::targets::Apart;
use crate::accumulate::{Accumulator, Estimate};

/// A probability below this is 0 but for rounding, and what is conditional on it counts 0.
const NOTHING: f64 = 1e-12;

impl Accumulator<Sums> {
    /// One estimate for each column of scores, in the order of [`Plan::names`].
    pub(crate) fn estimates(&self, plan: &Plan, n_features: usize) -> Vec<Estimate> {
        let blocks: Vec<&Sums> = self.values().collect();
        let mut estimates = Vec::new();
        for scheme in 0..plan.schemes.len() {
            match &plan.kind {
                Kind::Classes { .. } => estimates.push(estimate(&blocks, n_features, |feature| {
                    Linear::mean(&blocks, |sums| (sums.vectors[scheme * n_features + feature], sums.queries[scheme]))
                })),
                Kind::Distances { targets, apart } => {
                    let ratio = |n: usize, feature: usize| {
                        let near = scheme * (1 + apart.len());
                        let vector = |number: usize| move |sums: &Sums| sums.vectors[number * n_features + feature];
                        let target = |sums: &Sums| sums.targets[scheme * apart.len() + n];
                        let queries = |sums: &Sums| sums.queries[scheme];
                        Linear::difference(&blocks, queries, vector(near), vector(near + 1 + n), target)
                    };
                    match apart.first() {
                        Some(Apart::Target(_)) => estimates.push(estimate(&blocks, n_features, |feature| {
                            Linear::average((0..apart.len()).map(|n| (targets.shares[n], ratio(n, feature))))
                        })),
                        _ => estimates.extend(
                            (0..apart.len()).map(|n| estimate(&blocks, n_features, |feature| ratio(n, feature))),
                        ),
                    }
                }
            }
        }
        estimates
    }
}

fn estimate(blocks: &[&Sums], n_features: usize, of: impl Fn(usize) -> Linear) -> Estimate {
    let n = blocks.len() as f64;
    let (mean, variance) = (0..n_features)
        .map(|feature| {
            let Linear { value, terms } = of(feature);
            let squares: f64 = terms.iter().map(|term| term * term).sum();
            (value, if n > 1.0 { n / (n - 1.0) * squares } else { f64::NAN })
        })
        .unzip();
    Estimate { mean, variance }
}

/// A function of sums over blocks, and what each block adds to its linear term.
struct Linear {
    value: f64,
    /// n_blocks; they sum up to 0.
    terms: Vec<f64>,
}

impl Linear {
    /// Σ sum / Σ queries, of the sum and the number of queries of each block.
    fn mean(blocks: &[&Sums], of: impl Fn(&Sums) -> (f64, f64)) -> Self {
        let all: f64 = blocks.iter().map(|block| of(block).1).sum();
        let value = blocks.iter().map(|block| of(block).0).sum::<f64>() / all;
        let term = |block: &&Sums| {
            let (sum, queries) = of(block);
            (sum - value * queries) / all
        };
        Linear { value, terms: blocks.iter().map(term).collect() }
    }

    /// P(both) / P(target) − (P(feature) − P(both)) / (1 − P(target)) (relieff-trees Eq. 12).
    fn difference(
        blocks: &[&Sums],
        queries: impl Fn(&Sums) -> f64,
        feature: impl Fn(&Sums) -> f64,
        both: impl Fn(&Sums) -> f64,
        target: impl Fn(&Sums) -> f64,
    ) -> Self {
        let total = |of: &dyn Fn(&Sums) -> f64| blocks.iter().map(|block| of(block)).sum::<f64>();
        let all_queries = total(&queries);
        let (all_both, all_target) = (total(&both), total(&target));
        let given =
            |joint: f64, condition: f64| if condition > NOTHING * all_queries { joint / condition } else { 0.0 };
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

    /// The weighted mean of `parts`, whose weights sum up to 1.
    fn average(parts: impl Iterator<Item = (f64, Linear)>) -> Self {
        parts.fold(Linear { value: 0.0, terms: Vec::new() }, |mut mean, (share, part)| {
            mean.terms.resize(part.terms.len(), 0.0);
            mean.value += share * part.value;
            mean.terms.iter_mut().zip(part.terms).for_each(|(mean, term)| *mean += share * term);
            mean
        })
    }
}
