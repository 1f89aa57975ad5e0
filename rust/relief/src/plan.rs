//! The weight of a pair of rows in each sum of ReliefF or RReliefF (Robnik-Šikonja and Kononenko 1999 figures 3 and 4).
//!
//! A neighborhood gives each neighbor of a query a share. The share times a factor of the targets is the weight with
//! which the pair's differences are added to a sum over features.

use super::influence::Influence;
use super::outline::Outline;
use super::sums::{Block, add_targets};
use super::targets::Targets;
use ferrank_neighbors::space::Space;

/// How the targets of a pair become weights.
#[derive(Debug)]
pub(crate) enum Kind {
    /// ReliefF: hits count against a feature, misses for it, by the prior of their class. One sum for each scheme.
    Classes {
        /// n_classes; shares of the rows.
        priors: Vec<f64>,
    },
    /// RReliefF: for each scheme a sum of differences, and one of differences times target distance for each target
    /// metric.
    Distances(Targets),
}

/// The sums to compute, and what their weights depend on.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) outline: Outline,
    pub(crate) kind: Kind,
    /// Set where some rows have no target.
    pub(crate) influence: Option<Influence>,
}

impl Plan {
    fn n_metrics(&self) -> usize {
        self.outline.metrics.len()
    }

    /// Starts the sums of a block of `n_queries` queries, without pairs.
    pub(crate) fn block(&self, n_queries: usize) -> Block {
        Block::new(&self.outline, n_queries)
    }

    /// Adds the pairs of `query` and `rows`, which are of `class`, to `block`. `shares` holds for each scheme the shares
    /// of the first rows; rows without a share do not count in the scheme.
    pub(crate) fn push(
        &self,
        block: &mut Block,
        space: &Space,
        query: u32,
        (class, rows): (usize, &[u32]),
        shares: &[Vec<f64>],
    ) {
        let n_vectors = self.outline.n_vectors();
        let (weights, sums) = block.push(query, rows);
        self.weigh(query, [class, space.class(query)], rows, shares, weights);
        self.apply_influence(query, rows, weights, &mut sums.queries);
        for weights in weights.chunks_exact(n_vectors) {
            if !weights[n_vectors - 1].is_nan() {
                add_targets(weights, self.n_metrics(), &mut sums.targets);
            }
        }
    }

    /// Sets the weights of `rows`, which are of the first class given; the query is of the second.
    fn weigh(&self, query: u32, [class, own]: [usize; 2], rows: &[u32], shares: &[Vec<f64>], weights: &mut [f64]) {
        let n_vectors = self.outline.n_vectors();
        for (number, shares) in shares.iter().enumerate() {
            for ((weights, &row), &share) in weights.chunks_exact_mut(n_vectors).zip(rows).zip(shares) {
                match &self.kind {
                    Kind::Classes { .. } if class == own => weights[number] = -share,
                    Kind::Classes { priors } => weights[number] = share * priors[class] / (1.0 - priors[own]),
                    Kind::Distances(targets) => {
                        let weights = &mut weights[number * (1 + self.n_metrics())..];
                        weights[0] = share;
                        for (weight, &metric) in weights[1..].iter_mut().zip(&self.outline.metrics) {
                            *weight = share * targets.distance(metric, query, row);
                        }
                    }
                }
            }
        }
    }

    /// Multiplies weights by the influence of the pair. What a pair loses is taken from the number of `queries`. NaN
    /// marks weights that need the distance of the features in place of an unknown distance of the targets.
    fn apply_influence(&self, query: u32, rows: &[u32], weights: &mut [f64], queries: &mut [f64]) {
        let Some(influence) = &self.influence else { return };
        for (weights, &row) in weights.chunks_exact_mut(self.outline.n_vectors()).zip(rows) {
            let (factor, known) = influence.of_pair(query, row);
            for (weights, queries) in weights.chunks_exact_mut(1 + self.n_metrics()).zip(&mut *queries) {
                *queries -= weights[0] * (1.0 - factor);
                weights[0] *= factor;
                weights[1..].iter_mut().for_each(|weight| *weight = if known { *weight * factor } else { f64::NAN });
            }
        }
    }
}
