//! What neighbours say about features: the sums of ReliefF and RReliefF (Robnik-Šikonja and Kononenko 1999 figures 3
//! and 4).
//!
//! Sums are kept by block of queries and added up in the order of blocks; within a block, in the order of
//! (row, query). So they do not depend on where the rows were or who summed them up when.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::influence::Influence;
use super::outline::Outline;
use super::targets::Targets;
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::neighbours::Neighbours;
use ferrank_neighbors::space::{AddTimes, Space};
use ferrank_neighbors::sparse::SparseRows;
use ferrank_ranking::{Contribution, Vector};

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
    Distances(Targets),
}

/// What is asked of the neighbours.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) outline: Outline,
    pub(crate) kind: Kind,
    /// Where some rows have no target.
    pub(crate) influence: Option<Influence>,
}

/// The sums of a block of queries.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// n_schemes; number of queries, each as far as its pairs have something to say.
    queries: Vec<f64>,
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
    /// n_pairs x n_vectors; not a number where the distance of the features is to stand in for that of the
    /// targets.
    weights: Vec<f64>,
    n_apart: usize,
    done: usize,
    sums: Sums,
    differences: Vec<f64>,
}

/// Bytes of a pair, from the lists of neighbours to the last sum.
pub(crate) fn pair_bytes(n_vectors: usize) -> usize {
    size_of::<u32>()
        + size_of::<Pair>()
        + size_of::<Place<'_>>()
        + n_vectors * (size_of::<f64>() + size_of::<Term<1>>())
}

/// Weights of the ranks 1 … n, which sum up to 1 (Robnik-Šikonja and Kononenko 1999 Eq. 13, 14).
pub(crate) fn rank_weights(n: usize, sigma: Option<f64>) -> Vec<f64> {
    // Times exp(1/σ²), lest all of them vanish.
    let raw = |rank: usize| sigma.map_or(1.0, |sigma| ((1.0 - (rank * rank) as f64) / sigma / sigma).exp());
    let weights: Vec<f64> = (1..=n).map(raw).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

impl Plan {
    fn n_apart(&self) -> usize {
        self.outline.apart.len()
    }

    fn n_vectors(&self) -> usize {
        self.outline.n_vectors()
    }

    /// The pairs of `queries`, which are a block, with nothing summed up over features yet.
    pub(crate) fn block(&self, queries: &[u32], neighbours: &Neighbours, space: &Space) -> Block {
        let n_features = space.shapes.len();
        let mut sums = Sums {
            queries: vec![queries.len() as f64; self.outline.schemes.len()],
            vectors: vec![0.0; self.n_vectors() * n_features],
            targets: vec![0.0; self.outline.schemes.len() * self.n_apart()],
        };
        let (mut pairs, mut weights) = (Vec::new(), Vec::new());
        for &query in queries {
            for (class, list) in neighbours.of(query).enumerate() {
                let first = weights.len();
                pairs.extend((pairs.len() as u32..).zip(list).map(|(weights, &row)| Pair { row, query, weights }));
                weights.resize(first + list.len() * self.n_vectors(), 0.0);
                let weights = &mut weights[first..];
                self.weigh(query, (class, space.class(query)), list, weights);
                self.influence_pairs(query, list, weights, &mut sums.queries);
            }
        }
        for pair in &pairs {
            let weights = &weights[pair.weights as usize * self.n_vectors()..][..self.n_vectors()];
            if !weights[self.n_vectors() - 1].is_nan() {
                add_targets(weights, self.n_apart(), &mut sums.targets);
            }
        }
        let pairs = in_order(&pairs);
        Block { pairs, weights, n_apart: self.n_apart(), done: 0, sums, differences: vec![0.0; n_features] }
    }

    /// Sets the weights of `query`'s neighbours in `list`, which are of the first of the two classes given;
    /// the query is of the other.
    fn weigh(&self, query: u32, (class, own): (usize, usize), list: &[u32], weights: &mut [f64]) {
        let n_vectors = self.n_vectors();
        let Outline { schemes, apart, .. } = &self.outline;
        for (number, scheme) in schemes.iter().enumerate() {
            let shares = rank_weights(scheme.k.min(list.len()), scheme.sigma);
            for ((weights, &row), share) in weights.chunks_exact_mut(n_vectors).zip(list).zip(shares) {
                match &self.kind {
                    Kind::Classes { .. } if class == own => weights[number] = -share,
                    Kind::Classes { priors } => weights[number] = share * priors[class] / (1.0 - priors[own]),
                    Kind::Distances(targets) => {
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

    /// Lets the pairs of `query` and the rows in `list` have the say that they have, and takes what they
    /// lack from `queries`.
    fn influence_pairs(&self, query: u32, list: &[u32], weights: &mut [f64], queries: &mut [f64]) {
        let Some(influence) = &self.influence else { return };
        for (weights, &row) in weights.chunks_exact_mut(self.n_vectors()).zip(list) {
            let (say, known) = influence.of_pair(query, row);
            for (weights, queries) in weights.chunks_exact_mut(1 + self.n_apart()).zip(&mut *queries) {
                *queries -= weights[0] * (1.0 - say);
                weights[0] *= say;
                weights[1..].iter_mut().for_each(|weight| *weight = if known { *weight * say } else { f64::NAN });
            }
        }
    }
}

/// `pairs` in the order of (row, query).
fn in_order(pairs: &[Pair]) -> Vec<Pair> {
    // Single words sort fastest, and few pairs share a row.
    let mut order: Vec<u64> = (0..).zip(pairs).map(|(number, pair)| u64::from(pair.row) << 32 | number).collect();
    order.sort_unstable();
    let mut ordered: Vec<Pair> = order.into_iter().map(|word| pairs[word as u32 as usize]).collect();
    ordered.chunk_by_mut(|a, b| a.row == b.row).for_each(|same| same.sort_unstable_by_key(|pair| pair.query));
    ordered
}

/// Adds the weights of a pair that tell targets apart.
fn add_targets(weights: &[f64], n_apart: usize, sums: &mut [f64]) {
    if n_apart > 0 {
        let parts = weights.chunks_exact(1 + n_apart);
        sums.chunks_exact_mut(n_apart).zip(parts).for_each(|(sums, weights)| {
            sums.iter_mut().zip(&weights[1..]).for_each(|(sum, weight)| *sum += weight);
        });
    }
}

/// Fills in the weights of a pair of which a target is unknown, with the distance of the features, and adds
/// them to the targets' `sums`.
fn substitute(weights: &mut [f64], n_apart: usize, sums: &mut [f64], distance: impl FnOnce() -> f64) {
    if weights[weights.len() - 1].is_nan() {
        let distance = distance();
        for weights in weights.chunks_exact_mut(1 + n_apart) {
            let weight = weights[0] * distance;
            weights[1..].fill(weight);
        }
        add_targets(weights, n_apart, sums);
    }
}

/// Mean of `differences`, added up in the order of features.
fn mean(differences: &[f64]) -> f64 {
    differences.iter().sum::<f64>() / differences.len() as f64
}

impl Block {
    /// Adds to `blocks` what those of their pairs say whose row is in `context.rows`; rows come in order.
    pub(crate) fn add(blocks: &mut [Block], arch: Arch, context: DistanceContext<'_>) {
        let mut parts = Parts::default();
        for block in blocks {
            let pairs = block.next(context.rows.span().1);
            block.substitute(arch, context, pairs.clone());
            if context.space.is_plain() {
                block.parts(context, pairs, &mut parts);
            } else {
                block.add_differences(arch, context, pairs);
            }
        }
        parts.add(arch, context);
    }

    /// The pairs to be added whose row is before `end`.
    fn next(&mut self, end: u32) -> Range<usize> {
        let pairs = self.done..self.done + self.pairs[self.done..].partition_point(|pair| pair.row < end);
        self.done = pairs.end;
        pairs
    }

    fn n_vectors(&self) -> usize {
        self.sums.vectors.len() / self.differences.len()
    }

    /// Fills in the weights of `pairs` that a target is unknown of.
    fn substitute(&mut self, arch: Arch, context: DistanceContext<'_>, pairs: Range<usize>) {
        let n_vectors = self.n_vectors();
        for pair in &self.pairs[pairs] {
            let weights = &mut self.weights[pair.weights as usize * n_vectors..][..n_vectors];
            substitute(weights, self.n_apart, &mut self.sums.targets, || {
                let [query, row] = context.pair(pair.query, pair.row);
                context.space.differences(arch, query, row, &mut self.differences);
                mean(&self.differences)
            });
        }
    }

    /// Tells `parts` what `pairs` add to each vector.
    fn parts<'a>(&'a mut self, context: DistanceContext<'_>, pairs: Range<usize>, parts: &mut Parts<'a>) {
        let n_vectors = self.n_vectors();
        let n_features = self.differences.len();
        let Block { pairs: all, weights, sums, .. } = self;
        let pairs = all[pairs].iter();
        let places = pairs.map(|pair| {
            let weights = &weights[pair.weights as usize * n_vectors..][..n_vectors];
            (context.queries.place(pair.query), context.rows.place(pair.row), weights)
        });
        let places: Vec<Place<'_>> = places.collect();
        let (mut first, mut rest) = (0, &mut sums.vectors[..]);
        while !rest.is_empty() {
            let n = [8, 4, 2].into_iter().find(|&n| first + n <= n_vectors).unwrap_or(1);
            let (sums, after) = rest.split_at_mut(n * n_features);
            match n {
                8 => parts.eight.push(Part::new(&places, first, sums)),
                4 => parts.four.push(Part::new(&places, first, sums)),
                2 => parts.two.push(Part::new(&places, first, sums)),
                _ => parts.one.push(Part::new(&places, first, sums)),
            }
            (first, rest) = (first + n, after);
        }
    }

    fn add_differences(&mut self, arch: Arch, context: DistanceContext<'_>, pairs: Range<usize>) {
        let (n_features, n_vectors) = (self.differences.len(), self.n_vectors());
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

    /// Adds what all pairs say, of `rows`.
    pub(crate) fn add_sparse(&mut self, rows: &SparseRows, space: &Space) {
        let n_features = self.differences.len();
        let n_vectors = self.sums.vectors.len() / n_features;
        for pair in &self.pairs[self.done..] {
            let weights = &mut self.weights[pair.weights as usize * n_vectors..][..n_vectors];
            let distance = || {
                let mut sum = 0.0;
                rows.differences(space, pair.query, pair.row, |_, difference| sum += difference);
                sum / n_features as f64
            };
            substitute(weights, self.n_apart, &mut self.sums.targets, distance);
            rows.differences(space, pair.query, pair.row, |feature, difference| {
                for (vector, &weight) in self.sums.vectors.chunks_exact_mut(n_features).zip(&*weights) {
                    vector[feature] += weight * difference;
                }
            });
        }
        self.done = self.pairs.len();
    }

    /// The sums: queries and distances of the targets by scheme, then the vectors.
    pub(crate) fn finish(self) -> Contribution {
        let Sums { queries, targets, vectors } = self.sums;
        let vectors = vectors.chunks_exact(self.differences.len()).map(<[f64]>::to_vec);
        [queries, targets].into_iter().chain(vectors).map(Vector::dense).collect()
    }
}

/// Where a query and its neighbour are, and the weights of their differences in each vector.
type Place<'a> = (u32, u32, &'a [f64]);

/// What is added to the vectors of some blocks, so many of them at once.
#[derive(Default)]
struct Parts<'a> {
    one: Vec<Part<'a, 1>>,
    two: Vec<Part<'a, 2>>,
    four: Vec<Part<'a, 4>>,
    eight: Vec<Part<'a, 8>>,
}

/// What is added to `N` vectors of a block, in this order.
struct Part<'a, const N: usize> {
    terms: Vec<Term<N>>,
    /// N x n_features
    sums: &'a mut [f64],
}

/// A pair that adds to `N` vectors: where its query and its row are, and its weights.
#[derive(Debug, Clone, Copy)]
struct Term<const N: usize> {
    query: u32,
    row: u32,
    weights: [f64; N],
}

impl<'a, const N: usize> Part<'a, N> {
    /// For the vectors from number `first` on, which are `sums`.
    fn new(places: &[Place<'_>], first: usize, sums: &'a mut [f64]) -> Self {
        let terms = places.iter().map(|&(query, row, weights)| {
            let weights = *weights[first..].first_chunk().expect("a weight for each vector");
            Term { query, row, weights }
        });
        Part { terms: terms.filter(|term| term.weights != [0.0; N]).collect(), sums }
    }
}

impl Parts<'_> {
    fn add(self, arch: Arch, context: DistanceContext<'_>) {
        let Parts { one, two, four, eight } = self;
        arch.dispatch(AddApart { context, parts: one });
        arch.dispatch(AddApart { context, parts: two });
        arch.dispatch(AddApart { context, parts: four });
        arch.dispatch(AddApart { context, parts: eight });
    }
}

/// Adds weighted differences in features that are all numeric; without fused operations, which round otherwise than
/// machines that have none.
///
/// A few features of all parts come before the next: rows are met again and again, and so much of each stays in the
/// cache. The sums of these features are in registers.
struct AddApart<'a, 'b, const N: usize> {
    context: DistanceContext<'a>,
    parts: Vec<Part<'b, N>>,
}

impl<const N: usize> WithSimd for AddApart<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // Half of the registers, of which wide vectors have 32.
        let most = if S::F64_LANES == 8 { 16 } else { 8 };
        let mut start = 0;
        if 16 * N <= most {
            start = self.slices::<S, 16>(simd, start);
        }
        if 8 * N <= most {
            start = self.slices::<S, 8>(simd, start);
        }
        if 4 * N <= most {
            start = self.slices::<S, 4>(simd, start);
        }
        if 2 * N <= most {
            start = self.slices::<S, 2>(simd, start);
        }
        start = self.slices::<S, 1>(simd, start);
        self.rest(simd, start);
    }
}

impl<const N: usize> AddApart<'_, '_, N> {
    /// Adds up slices of `V` vectors of features from `start` on; gives where less than a slice is left.
    #[inline(always)]
    fn slices<S: Simd, const V: usize>(&mut self, simd: S, mut start: usize) -> usize {
        let (width, wide) = (self.context.rows.width, V * S::F64_LANES);
        let (queries, rows) = (self.context.queries.values(), self.context.rows.values());
        while start + wide <= width {
            for Part { terms, sums } in &mut self.parts {
                let mut slices = [[simd.splat_f64s(0.0); V]; N];
                for n in 0..N {
                    slices[n].copy_from_slice(S::as_simd_f64s(&sums[n * width + start..][..wide]).0);
                }
                for term in terms {
                    let query = &S::as_simd_f64s(&queries[term.query as usize * width + start..][..wide]).0[..V];
                    let row = &S::as_simd_f64s(&rows[term.row as usize * width + start..][..wide]).0[..V];
                    for v in 0..V {
                        let apart = simd.abs_f64s(simd.sub_f64s(query[v], row[v]));
                        for (slice, weight) in slices.iter_mut().zip(term.weights) {
                            let weighted = simd.mul_f64s(simd.splat_f64s(weight), apart);
                            slice[v] = simd.add_f64s(slice[v], weighted);
                        }
                    }
                }
                for n in 0..N {
                    S::as_mut_simd_f64s(&mut sums[n * width + start..][..wide]).0.copy_from_slice(&slices[n]);
                }
            }
            start += wide;
        }
        start
    }

    /// Adds up the features from `start` on, which are less than a vector.
    #[inline(always)]
    fn rest<S: Simd>(&mut self, simd: S, start: usize) {
        let width = self.context.rows.width;
        if start == width {
            return;
        }
        let (queries, rows) = (self.context.queries.values(), self.context.rows.values());
        for Part { terms, sums } in &mut self.parts {
            let mut rests = [simd.splat_f64s(0.0); N];
            for n in 0..N {
                rests[n] = simd.partial_load_f64s(&sums[n * width..][start..width]);
            }
            for term in terms {
                let query = simd.partial_load_f64s(&queries[term.query as usize * width..][start..width]);
                let row = simd.partial_load_f64s(&rows[term.row as usize * width..][start..width]);
                let apart = simd.abs_f64s(simd.sub_f64s(query, row));
                for (rest, weight) in rests.iter_mut().zip(term.weights) {
                    let weighted = simd.mul_f64s(simd.splat_f64s(weight), apart);
                    *rest = simd.add_f64s(*rest, weighted);
                }
            }
            for n in 0..N {
                simd.partial_store_f64s(&mut sums[n * width..][start..width], rests[n]);
            }
        }
    }
}
