//! What neighbours say about features: the sums of ReliefF and RReliefF (relieff-trees figures 3 and 4),
//! and the importances and standard errors that follow from them.
//!
//! Sums are kept by block of queries and added up in the order of blocks; within a block, in the order of
//! (row, query). So they do not depend on where the rows were or who summed them up when.
//!
//! Importances are ratios of sums over blocks, W = Σ wᵦ / m or RReliefF's Eq. 12, and their standard
//! errors are those of the ratios' linear terms over the blocks, whose queries are a random part of all.

use pulp::Arch;

use super::lists::Ground;
use super::params::TargetDistance;
use super::search::Neighbours;
use super::space::{AddTimes, Space};
use super::targets::{Apart, Targets};
use crate::accumulate::{Accumulator, Estimate};

/// A probability below this is 0 but for rounding, and what is conditional on it counts 0.
const NOTHING: f64 = 1e-12;

/// How neighbours weigh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scheme {
    /// Neighbours of each class.
    pub(crate) k: usize,
    /// `None`: all weigh the same.
    pub(crate) sigma: Option<f64>,
}

/// What is summed up for each pair of a query and a neighbour.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Hits count against a feature, misses for it, by the prior of their class. One sum a scheme.
    Classes {
        /// n_classes; shares of the rows.
        priors: Vec<f64>,
    },
    /// Differences, and differences times the distance of the targets. For each scheme one sum, and one
    /// more for each way of telling targets apart.
    Distances {
        /// The targets.
        targets: Targets,
        /// Ways to tell them apart.
        apart: Vec<Apart>,
    },
}

/// What is asked of the neighbours.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) schemes: Vec<Scheme>,
    pub(crate) kind: Kind,
}

/// The sums of a block of queries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    queries: f64,
    /// n_vectors x n_features
    vectors: Vec<f64>,
    /// n_schemes x n_apart; distances of the targets.
    targets: Vec<f64>,
}

/// A query, one of its neighbours, and where the weights stand with which its differences go to each
/// vector.
#[derive(Debug, Clone, Copy)]
struct Pair {
    row: u32,
    query: u32,
    weights: u32,
}

/// A block of queries at work: its pairs, and the sums so far.
#[derive(Debug)]
pub(crate) struct Block {
    /// In the order of (row, query).
    pairs: Vec<Pair>,
    /// n_pairs x n_vectors
    weights: Vec<f64>,
    done: usize,
    sums: Sums,
    differences: Vec<f64>,
}

/// Weights of the ranks 1 … n, which sum up to 1 (relieff-trees Eq. 13, 14).
pub(crate) fn rank_weights(n: usize, sigma: Option<f64>) -> Vec<f64> {
    // Times exp(1/σ²), lest all of them vanish.
    let raw = |rank: usize| sigma.map_or(1.0, |sigma| ((1.0 - (rank * rank) as f64) / (sigma * sigma)).exp());
    let weights: Vec<f64> = (1..=n).map(raw).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

impl Plan {
    fn n_apart(&self) -> usize {
        match &self.kind {
            Kind::Classes { .. } => 0,
            Kind::Distances { apart, .. } => apart.len(),
        }
    }

    pub(crate) fn n_vectors(&self) -> usize {
        self.schemes.len() * (1 + self.n_apart())
    }

    /// The pairs of `queries`, which are a block, with nothing summed up over features yet.
    pub(crate) fn block(&self, queries: &[u32], neighbours: &Neighbours, space: &Space) -> Block {
        let n_features = space.shapes.len();
        let mut sums = Sums {
            queries: queries.len() as f64,
            vectors: vec![0.0; self.n_vectors() * n_features],
            targets: vec![0.0; self.schemes.len() * self.n_apart()],
        };
        let (mut pairs, mut weights) = (Vec::new(), Vec::new());
        for &query in queries {
            for (class, list) in neighbours[&query].iter().enumerate() {
                let first = weights.len();
                pairs.extend((pairs.len() as u32..).zip(list).map(|(weights, &row)| Pair { row, query, weights }));
                weights.resize(first + list.len() * self.n_vectors(), 0.0);
                self.weigh(query, (class, space.class(query)), list, &mut weights[first..]);
            }
        }
        for pair in &pairs {
            let weights = &weights[pair.weights as usize * self.n_vectors()..];
            self.add_targets(weights, &mut sums.targets);
        }
        pairs.sort_unstable_by_key(|pair| (pair.row, pair.query));
        Block { pairs, weights, done: 0, sums, differences: vec![0.0; n_features] }
    }

    /// Sets the weights of `query`'s neighbours in `list`, which are of the first of the two classes given;
    /// the query is of the other.
    fn weigh(&self, query: u32, (class, own): (usize, usize), list: &[u32], weights: &mut [f64]) {
        let n_vectors = self.n_vectors();
        for (number, scheme) in self.schemes.iter().enumerate() {
            let shares = rank_weights(scheme.k.min(list.len()), scheme.sigma);
            for ((weights, &row), share) in weights.chunks_exact_mut(n_vectors).zip(list).zip(shares) {
                match &self.kind {
                    Kind::Classes { .. } if class == own => weights[number] = -share,
                    Kind::Classes { priors } => weights[number] = share * priors[class] / (1.0 - priors[own]),
                    Kind::Distances { targets, apart } => {
                        let weights = &mut weights[number * (1 + apart.len())..];
                        weights[0] = share;
                        for (weight, &how) in weights[1..].iter_mut().zip(apart) {
                            *weight = share * targets.apart(how, query, row);
                        }
                    }
                }
            }
        }
    }

    /// Adds the weights of a pair that tell targets apart.
    fn add_targets(&self, weights: &[f64], sums: &mut [f64]) {
        let n_apart = self.n_apart();
        if n_apart > 0 {
            let parts = weights.chunks_exact(1 + n_apart);
            sums.chunks_exact_mut(n_apart).zip(parts).for_each(|(sums, weights)| {
                sums.iter_mut().zip(&weights[1..]).for_each(|(sum, weight)| *sum += weight);
            });
        }
    }

    /// Names of the columns of scores, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let differ = |f: &dyn Fn(&Scheme) -> String| self.schemes.iter().any(|scheme| f(scheme) != f(&self.schemes[0]));
        let (k_differs, sigma_differs) = (differ(&|s| s.k.to_string()), differ(&|s| format!("{:?}", s.sigma)));
        let sets: Vec<TargetDistance> = match &self.kind {
            Kind::Distances { apart, .. } if apart.len() > 1 => {
                apart.iter().filter_map(|how| if let Apart::Sets(set) = how { Some(*set) } else { None }).collect()
            }
            _ => Vec::new(),
        };
        let mut names = Vec::new();
        for scheme in &self.schemes {
            let mut name = "relief".to_string();
            if k_differs {
                name += &format!("_k{}", scheme.k);
            }
            if let (true, Some(sigma)) = (sigma_differs, scheme.sigma) {
                name += &format!("_sigma{sigma}");
            }
            match sets.is_empty() {
                true => names.push(name),
                false => names.extend(sets.iter().map(|set| format!("{name}_{}", set.name()))),
            }
        }
        names
    }
}

impl Block {
    /// Adds what the pairs whose row is in `ground.rows` say; rows come in order.
    pub(crate) fn add(&mut self, arch: Arch, ground: Ground<'_>) {
        let n_features = self.differences.len();
        let end = ground.rows.span().1;
        let n_vectors = self.sums.vectors.len() / n_features;
        while let Some(pair) = self.pairs.get(self.done).filter(|pair| pair.row < end) {
            let query = ground.example(ground.queries, pair.query);
            ground.space.differences(arch, query, ground.example(ground.rows, pair.row), &mut self.differences);
            let weights = &self.weights[pair.weights as usize * n_vectors..][..n_vectors];
            for (vector, &weight) in self.sums.vectors.chunks_exact_mut(n_features).zip(weights) {
                if weight != 0.0 {
                    arch.dispatch(AddTimes { sums: vector, weight, by: &self.differences });
                }
            }
            self.done += 1;
        }
    }

    pub(crate) fn finish(self) -> Sums {
        self.sums
    }
}

impl Accumulator<Sums> {
    /// One estimate for each column of scores, in the order of [`Plan::names`].
    pub(crate) fn estimates(&self, plan: &Plan, n_features: usize) -> Vec<Estimate> {
        let blocks: Vec<&Sums> = self.values().collect();
        let mut estimates = Vec::new();
        for scheme in 0..plan.schemes.len() {
            match &plan.kind {
                Kind::Classes { .. } => estimates.push(estimate(&blocks, n_features, |feature| {
                    Linear::mean(&blocks, |sums| sums.vectors[scheme * n_features + feature])
                })),
                Kind::Distances { targets, apart } => {
                    let ratio = |n: usize, feature: usize| {
                        let near = scheme * (1 + apart.len());
                        let vector = |number: usize| move |sums: &Sums| sums.vectors[number * n_features + feature];
                        let target = |sums: &Sums| sums.targets[scheme * apart.len() + n];
                        Linear::difference(&blocks, vector(near), vector(near + 1 + n), target)
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
    /// Σ sum / Σ queries.
    fn mean(blocks: &[&Sums], sum: impl Fn(&Sums) -> f64) -> Self {
        let queries: f64 = blocks.iter().map(|block| block.queries).sum();
        let value = blocks.iter().map(|block| sum(block)).sum::<f64>() / queries;
        Linear { value, terms: blocks.iter().map(|block| (sum(block) - value * block.queries) / queries).collect() }
    }

    /// P(both) / P(target) − (P(feature) − P(both)) / (1 − P(target)) (relieff-trees Eq. 12).
    fn difference(
        blocks: &[&Sums],
        feature: impl Fn(&Sums) -> f64,
        both: impl Fn(&Sums) -> f64,
        target: impl Fn(&Sums) -> f64,
    ) -> Self {
        let total = |of: &dyn Fn(&Sums) -> f64| blocks.iter().map(|block| of(block)).sum::<f64>();
        let queries = total(&|block| block.queries);
        let (all_both, all_target) = (total(&both), total(&target));
        let given = |joint: f64, condition: f64| if condition > NOTHING * queries { joint / condition } else { 0.0 };
        let differ = given(all_both, all_target);
        let agree = given(total(&feature) - all_both, queries - all_target);
        let terms = blocks.iter().map(|block| {
            given(both(block) - differ * target(block), all_target)
                - given(feature(block) - both(block) - agree * (block.queries - target(block)), queries - all_target)
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
