//! Weighted sums of the differences of pairs, for each feature.
//!
//! Sums belong to a block of queries; estimates add up blocks in their order. Within a block, pairs are added in the
//! order of (row, query). So sums depend neither on where the rows were held nor on the number of threads.

mod plain;

use std::ops::Range;

use pulp::Arch;

use super::outline::Outline;
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::space::{AddTimes, Space};
use ferrank_neighbors::sparse::SparseRows;
use ferrank_ranking::{Contribution, Vector};
use plain::{Parts, Position, Term};

/// The sums of a block of queries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// n_schemes; number of queries, less the influence that their pairs miss to 1.
    pub(crate) queries: Vec<f64>,
    /// n_vectors x n_features
    vectors: Vec<f64>,
    /// n_schemes x n_metrics; distances of the targets.
    pub(crate) targets: Vec<f64>,
}

/// A query and one of its neighbors.
#[derive(Debug, Clone, Copy)]
struct Pair {
    row: u32,
    query: u32,
    /// Position of the pair's weights.
    weights: u32,
}

/// A block of queries at work: its pairs, and the sums so far.
#[derive(Debug)]
pub(crate) struct Block {
    pairs: Vec<Pair>,
    /// n_pairs x n_vectors; NaN where the distance of the features replaces an unknown distance of the targets.
    weights: Vec<f64>,
    n_vectors: usize,
    n_metrics: usize,
    /// Number of pairs that are added.
    done: usize,
    sums: Sums,
    differences: Vec<f64>,
}

/// Bytes of a pair, from the lists of neighbors to the last sum.
pub(crate) fn pair_bytes(n_vectors: usize) -> usize {
    size_of::<u32>()
        + size_of::<Pair>()
        + size_of::<Position<'_>>()
        + n_vectors * (size_of::<f64>() + size_of::<Term<1>>())
}

/// Adds the weights of a pair that contain distances of the targets to `sums`.
pub(crate) fn add_targets(weights: &[f64], n_metrics: usize, sums: &mut [f64]) {
    if n_metrics > 0 {
        let schemes = weights.chunks_exact(1 + n_metrics);
        sums.chunks_exact_mut(n_metrics).zip(schemes).for_each(|(sums, weights)| {
            sums.iter_mut().zip(&weights[1..]).for_each(|(sum, weight)| *sum += weight);
        });
    }
}

/// Sets the weights of a pair with an unknown target by the distance of the features, and adds them to the `sums` of
/// the targets.
fn substitute(weights: &mut [f64], n_metrics: usize, sums: &mut [f64], distance: impl FnOnce() -> f64) {
    if weights[weights.len() - 1].is_nan() {
        let distance = distance();
        for weights in weights.chunks_exact_mut(1 + n_metrics) {
            let weight = weights[0] * distance;
            weights[1..].fill(weight);
        }
        add_targets(weights, n_metrics, sums);
    }
}

/// Mean of `differences`, added up in the order of features.
fn mean(differences: &[f64]) -> f64 {
    differences.iter().sum::<f64>() / differences.len() as f64
}

impl Block {
    /// Starts the sums of a block of `n_queries` queries, without pairs.
    pub(crate) fn new(outline: &Outline, n_queries: usize) -> Self {
        let (n_schemes, n_metrics, n_vectors) = (outline.schemes.len(), outline.metrics.len(), outline.n_vectors());
        let sums = Sums {
            queries: vec![n_queries as f64; n_schemes],
            vectors: vec![0.0; n_vectors * outline.n_features],
            targets: vec![0.0; n_schemes * n_metrics],
        };
        let differences = vec![0.0; outline.n_features];
        Block { pairs: Vec::new(), weights: Vec::new(), n_vectors, n_metrics, done: 0, sums, differences }
    }

    /// Adds the pairs of `query` and `rows`; returns their weights, to be set, and the sums.
    pub(crate) fn push(&mut self, query: u32, rows: &[u32]) -> (&mut [f64], &mut Sums) {
        let first = self.weights.len();
        self.pairs.extend((self.pairs.len() as u32..).zip(rows).map(|(weights, &row)| Pair { row, query, weights }));
        self.weights.resize(first + rows.len() * self.n_vectors, 0.0);
        (&mut self.weights[first..], &mut self.sums)
    }

    /// Sorts the pairs by (row, query), the order in which they are added.
    pub(crate) fn sort(&mut self) {
        // Single words sort fastest, and few pairs share a row.
        let mut order: Vec<u64> =
            (0..).zip(&self.pairs).map(|(number, pair)| u64::from(pair.row) << 32 | number).collect();
        order.sort_unstable();
        let mut pairs: Vec<Pair> = order.into_iter().map(|word| self.pairs[word as u32 as usize]).collect();
        pairs.chunk_by_mut(|a, b| a.row == b.row).for_each(|same| same.sort_unstable_by_key(|pair| pair.query));
        self.pairs = pairs;
    }

    /// Adds the pairs of `blocks` whose row is among `context.rows`; rows must come in order. Frees the pairs of a block
    /// once all are added: a rule may push, sort and add the pairs of one tile of rows after the other. Such tiles have
    /// to begin at the same rows wherever these are held, because distances of the targets are added up when pairs are
    /// pushed.
    pub(crate) fn add(blocks: &mut [Block], arch: Arch, context: DistanceContext<'_>) {
        let mut parts = Parts::default();
        for block in &mut *blocks {
            let pairs = block.next(context.rows.span().1);
            block.substitute(arch, context, pairs.clone());
            if context.space.is_plain() {
                block.add_plain(context, pairs, &mut parts);
            } else {
                block.add_differences(arch, context, pairs);
            }
        }
        parts.add(arch, context);
        for block in blocks.iter_mut().filter(|block| block.done == block.pairs.len()) {
            (block.pairs, block.weights, block.done) = (Vec::new(), Vec::new(), 0);
        }
    }

    /// The pairs to be added whose row is before `end`.
    fn next(&mut self, end: u32) -> Range<usize> {
        let pairs = self.done..self.done + self.pairs[self.done..].partition_point(|pair| pair.row < end);
        self.done = pairs.end;
        pairs
    }

    /// Sets the weights of those of `pairs` with an unknown target.
    fn substitute(&mut self, arch: Arch, context: DistanceContext<'_>, pairs: Range<usize>) {
        let n_vectors = self.n_vectors;
        for pair in &self.pairs[pairs] {
            let weights = &mut self.weights[pair.weights as usize * n_vectors..][..n_vectors];
            substitute(weights, self.n_metrics, &mut self.sums.targets, || {
                let [query, row] = context.pair(pair.query, pair.row);
                context.space.differences(arch, query, row, &mut self.differences);
                mean(&self.differences)
            });
        }
    }

    /// Hands `pairs` and the sums that they are added to on to `parts`.
    fn add_plain<'a>(&'a mut self, context: DistanceContext<'_>, pairs: Range<usize>, parts: &mut Parts<'a>) {
        let n_vectors = self.n_vectors;
        let Block { pairs: all, weights, sums, differences, .. } = self;
        let positions = all[pairs].iter().map(|pair| {
            let weights = &weights[pair.weights as usize * n_vectors..][..n_vectors];
            (context.queries.position(pair.query), context.rows.position(pair.row), weights)
        });
        let positions: Vec<Position<'_>> = positions.collect();
        parts.push(&positions, &mut sums.vectors, differences.len());
    }

    fn add_differences(&mut self, arch: Arch, context: DistanceContext<'_>, pairs: Range<usize>) {
        let (n_features, n_vectors) = (self.differences.len(), self.n_vectors);
        let Block { pairs: all, weights, sums, differences, .. } = self;
        for pair in &all[pairs] {
            let [query, row] = context.pair(pair.query, pair.row);
            context.space.differences(arch, query, row, differences);
            let weights = &weights[pair.weights as usize * n_vectors..][..n_vectors];
            for (vector, &weight) in sums.vectors.chunks_exact_mut(n_features).zip(weights) {
                if weight != 0.0 {
                    arch.dispatch(AddTimes { sums: vector, weight, by: differences });
                }
            }
        }
    }

    /// Adds all pairs, whose rows are among the sparse `rows`.
    pub(crate) fn add_sparse(&mut self, rows: &SparseRows, space: &Space) {
        let n_features = self.differences.len();
        let n_vectors = self.n_vectors;
        for pair in &self.pairs[self.done..] {
            let weights = &mut self.weights[pair.weights as usize * n_vectors..][..n_vectors];
            let distance = || {
                let mut sum = 0.0;
                rows.differences(space, pair.query, pair.row, |_, difference| sum += difference);
                sum / n_features as f64
            };
            substitute(weights, self.n_metrics, &mut self.sums.targets, distance);
            rows.differences(space, pair.query, pair.row, |feature, difference| {
                for (vector, &weight) in self.sums.vectors.chunks_exact_mut(n_features).zip(&*weights) {
                    vector[feature] += weight * difference;
                }
            });
        }
        self.done = self.pairs.len();
    }

    /// The contribution of the block: queries and distances of the targets by scheme, then the sums over features.
    pub(crate) fn finish(self) -> Contribution {
        let Sums { queries, targets, vectors } = self.sums;
        let vectors = vectors.chunks_exact(self.differences.len()).map(<[f64]>::to_vec);
        [queries, targets].into_iter().chain(vectors).map(Vector::dense).collect()
    }
}
