//! Weighted sums of the differences of pairs, for each feature.
//!
//! Sums belong to a block of queries; estimates add up blocks in their order. Within a block, pairs are added in the
//! order of (row, query). So sums depend neither on where the rows were held nor on the number of threads. Differences of
//! categories have weights whose sums are exact, and may be [counted](counts) in any order.
//!
//! Standard errors need more: how the sums change with the rows of each group. In the slot of the group that the queries
//! of the block are in stand the sums themselves, in those of other groups what the neighbors in the group change.

mod counts;
mod kernel;
mod lists;

use std::ops::Range;

use pulp::Arch;

use super::outline::Outline;
pub(crate) use counts::Codes;
use counts::{Counted, Terms, Weight};
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::space::Space;
use ferrank_neighbors::sparse::SparseRows;
use ferrank_ranking::{Contribution, Vector};
use kernel::{Parts, Position, Term};
pub(crate) use lists::ListSums;

/// The sums of a block of queries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// n_schemes; number of queries, each with its weight, less the influence that their pairs miss to 1.
    pub(crate) queries: Vec<f64>,
    /// n_vectors x n_features
    vectors: Vec<f64>,
    /// n_schemes x n_metrics; distances of the targets.
    pub(crate) targets: Vec<f64>,
}

/// What groups of rows make of the sums of a block.
#[derive(Debug, Default)]
struct GroupSums {
    /// The group of the queries.
    own: usize,
    /// n_groups x n_schemes
    queries: Vec<f64>,
    /// n_groups x n_schemes x n_metrics
    targets: Vec<f64>,
    /// n_groups x n_vectors x n_features
    vectors: Vec<f64>,
}

/// A query and one of its neighbors.
#[derive(Debug, Clone, Copy)]
struct Pair {
    row: u32,
    query: u32,
    /// Number of the pair, which its weights and changes stand under.
    number: u32,
}

/// A block of queries at work: its pairs, and the sums so far.
#[derive(Debug)]
pub(crate) struct Block {
    pairs: Vec<Pair>,
    /// n_pairs x n_vectors; NaN where the distance of the features replaces an unknown distance of the targets.
    weights: Vec<f64>,
    /// n_rows x n_units, of the rows pushed last; the weights of a scheme for a share of 1, NaN as in `weights`.
    units: Vec<f64>,
    /// What the differences of pairs add to the sums of groups: for each group and scheme n_units numbers of vectors
    /// among those of all groups, and weights, NaN as in `weights`.
    changes: Vec<(u32, f64)>,
    /// n_pairs; end of each pair's changes. Empty without standard errors.
    ends: Vec<usize>,
    n_vectors: usize,
    n_metrics: usize,
    /// True if all weights are known and rounded.
    is_rounded: bool,
    /// Number of pairs that are added.
    done: usize,
    sums: Sums,
    groups: GroupSums,
    differences: Vec<f64>,
}

/// The weights of new pairs, to be set, and the sums that do not depend on features.
pub(crate) struct Weights<'a> {
    /// n_rows x n_vectors
    pub(crate) weights: &'a mut [f64],
    /// n_rows x n_units
    pub(crate) units: &'a mut [f64],
    /// n_schemes; number of queries.
    pub(crate) queries: &'a mut [f64],
}

/// Bytes of a pair, from the lists of neighbors to the last sum.
pub(crate) fn pair_bytes(n_vectors: usize) -> usize {
    // A row changes sums by its own differences, and by those of the row that moves up for it.
    const CHANGES: usize = 2;
    let sum = size_of::<f64>() + size_of::<Term<1>>() + 2 * CHANGES * size_of::<(u32, f64)>();
    size_of::<u32>() + size_of::<Pair>() + size_of::<usize>() + size_of::<Position<'_>>() + n_vectors * sum
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

/// Where the changes of pair number `number` stand, of pairs whose changes have these `ends`; nowhere without standard
/// errors.
fn changes_of(ends: &[usize], number: u32) -> Range<usize> {
    let number = number as usize;
    ends.get(number).map_or(0..0, |&end| number.checked_sub(1).map_or(0, |before| ends[before])..end)
}

impl Block {
    /// Starts the sums over `width` features of a block of queries of this `weight` in group `group`, without pairs.
    pub(crate) fn new(outline: &Outline, width: usize, weight: f64, group: usize) -> Self {
        let (n_schemes, n_metrics, n_vectors) = (outline.schemes.len(), outline.n_distances(), outline.n_vectors());
        let sums = Sums {
            queries: vec![weight; n_schemes],
            vectors: vec![0.0; n_vectors * width],
            targets: vec![0.0; n_schemes * n_metrics],
        };
        let slots = |n: usize| vec![0.0; outline.n_groups() * n];
        let groups = GroupSums {
            own: group,
            queries: slots(n_schemes),
            targets: slots(sums.targets.len()),
            vectors: slots(sums.vectors.len()),
        };
        Block {
            pairs: Vec::new(),
            weights: Vec::new(),
            units: Vec::new(),
            changes: Vec::new(),
            ends: Vec::new(),
            n_vectors,
            n_metrics,
            is_rounded: false,
            done: 0,
            sums,
            groups,
            differences: vec![0.0; width],
        }
    }

    /// Adds the pairs of `query` and `rows`; returns their weights.
    pub(crate) fn push(&mut self, query: u32, rows: &[u32]) -> Weights<'_> {
        let first = self.weights.len();
        self.pairs.extend((self.pairs.len() as u32..).zip(rows).map(|(number, &row)| Pair { row, query, number }));
        self.weights.resize(first + rows.len() * self.n_vectors, 0.0);
        self.units.resize(rows.len() * (1 + self.n_metrics), 0.0);
        let Block { weights, units, sums, .. } = self;
        Weights { weights: &mut weights[first..], units, queries: &mut sums.queries }
    }

    /// Adds the target distances of the last `n` pairs, whose weights are set, where they are known.
    pub(crate) fn add_known_targets(&mut self, n: usize) {
        let Block { weights, sums, n_vectors, n_metrics, .. } = self;
        if *n_metrics == 0 {
            return;
        }
        let first = weights.len() - n * *n_vectors;
        for weights in weights[first..].chunks_exact(*n_vectors) {
            if !weights[*n_vectors - 1].is_nan() {
                add_targets(weights, *n_metrics, &mut sums.targets);
            }
        }
    }

    /// Adds the changes through the pair with row number `place` of those pushed last, each of a group, a scheme and a
    /// share: what the differences of the pair would change if the rows of the group counted that much more.
    pub(crate) fn change(&mut self, place: usize, factor: f64, changes: impl Iterator<Item = (usize, usize, f64)>) {
        let Block { units, changes: all, ends, groups, n_metrics, n_vectors, .. } = self;
        let n_schemes = self.sums.queries.len();
        let n_units = 1 + *n_metrics;
        let units = &units[place * n_units..][..n_units];
        for (group, scheme, share) in changes.filter(|(group, _, share)| *group != groups.own && *share != 0.0) {
            groups.queries[group * n_schemes + scheme] -= share * (1.0 - factor);
            if !units[*n_metrics].is_nan() {
                let targets = &mut groups.targets[(group * n_schemes + scheme) * *n_metrics..][..*n_metrics];
                targets.iter_mut().zip(&units[1..]).for_each(|(target, unit)| *target += share * unit);
            }
            let first = (group * *n_vectors + scheme * n_units) as u32;
            all.extend((first..).zip(units).map(|(vector, unit)| (vector, share * unit)));
        }
        ends.push(all.len());
    }

    /// Rounds weights so that sums of differences of categories, which are 0 or 1, are exact in any order.
    pub(crate) fn round_weights(&mut self) {
        // Of each scheme the first weight, which is the largest: the others are it times distances of targets or covariates,
        // and what these are does not change by what all are rounded.
        let n_units = 1 + self.n_metrics;
        let changes = self.changes.iter().filter(|(vector, _)| (*vector as usize).is_multiple_of(n_units));
        let firsts = self.weights.iter().step_by(n_units).chain(changes.map(|(_, weight)| weight));
        let known = firsts.filter(|weight| !weight.is_nan());
        let rounding = Weight::new(known.fold(0.0, |sum, weight| sum + weight.abs()));
        self.weights.iter_mut().for_each(|weight| *weight = rounding.round(*weight));
        self.changes.iter_mut().for_each(|(_, weight)| *weight = rounding.round(*weight));
        self.is_rounded = !self.weights.iter().any(|weight| weight.is_nan());
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
    /// pushed. `codes` are those of all rows, if weights are [rounded](Block::round_weights).
    pub(crate) fn add(blocks: &mut [Block], arch: Arch, context: DistanceContext<'_>, codes: Option<&Codes>) {
        let (mut parts, mut counted) = (Parts::default(), Vec::new());
        for block in &mut *blocks {
            let pairs = block.next(context.rows.span().1);
            block.substitute(arch, context, pairs.clone());
            block.add_to((&mut parts, codes.map(|_| &mut counted)), context, pairs);
        }
        parts.add(arch, context);
        if let Some(codes) = codes {
            counts::add(arch, codes, context.rows.width, &mut counted);
        }
        for block in blocks.iter_mut().filter(|block| block.done == block.pairs.len()) {
            (block.pairs, block.weights, block.units) = (Vec::new(), Vec::new(), Vec::new());
            (block.changes, block.ends, block.done) = (Vec::new(), Vec::new(), 0);
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
        for place in pairs {
            let pair = self.pairs[place];
            if self.is_unknown(pair) {
                let [query, row] = context.pair(pair.query, pair.row);
                context.space.differences(arch, query, row, &mut self.differences);
                self.substitute_pair(pair, context.space.distance_of(&self.differences));
            }
        }
    }

    /// Returns true if a target of `pair` is unknown, and the distance of the features not yet in its place.
    fn is_unknown(&self, pair: Pair) -> bool {
        self.weights[(pair.number as usize + 1) * self.n_vectors - 1].is_nan()
    }

    /// Sets the weights of `pair`, which has an unknown target, by the distance of the features, and adds the distance to
    /// the sums of the targets.
    fn substitute_pair(&mut self, pair: Pair, distance: f64) {
        let changes = changes_of(&self.ends, pair.number);
        let Block { weights, changes: all, sums, groups, n_vectors, n_metrics, .. } = self;
        let (number, n_units) = (pair.number as usize, 1 + *n_metrics);
        substitute(&mut weights[number * *n_vectors..][..*n_vectors], *n_metrics, &mut sums.targets, || distance);
        for change in all[changes].chunks_exact_mut(n_units) {
            let (first, weight) = change[0];
            // Of a group and a scheme, whose distances stand without the sum of differences that comes before.
            let first = first as usize / n_units * *n_metrics;
            for ((_, changed), target) in change[1..].iter_mut().zip(&mut groups.targets[first..]) {
                *changed = weight * distance;
                *target += *changed;
            }
        }
    }

    /// Hands `pairs` and the sums that they are added to on to `counted`, if there is such and they can be counted, or else
    /// to `parts`.
    fn add_to<'a>(
        &'a mut self,
        (parts, counted): (&mut Parts<'a>, Option<&mut Vec<Counted<'a>>>),
        context: DistanceContext<'_>,
        pairs: Range<usize>,
    ) {
        let Block { pairs: all, weights, changes, ends, is_rounded, sums, groups, n_vectors, differences, .. } = self;
        let position = |pair: &Pair| Position {
            query: context.queries.position(pair.query),
            row: context.rows.position(pair.row),
            is_complete: context.space.is_complete_row(pair.query) && context.space.is_complete_row(pair.row),
            weights: &weights[pair.number as usize * *n_vectors..][..*n_vectors],
            changes: &changes[changes_of(ends, pair.number)],
        };
        let positions: Vec<Position<'_>> = all[pairs].iter().map(position).collect();
        let (sums, others, n_features) = (&mut sums.vectors, &mut groups.vectors, differences.len());
        if *is_rounded
            && let Some(counted) = counted
            && let Some(terms) = Terms::new(context, &positions, *n_vectors, others.len() / n_features)
        {
            counted.push(Counted { terms, sums, others });
            return;
        }
        parts.push(&positions, sums, others, n_features);
    }

    /// Adds all pairs, whose rows are among the sparse `rows`.
    pub(crate) fn add_sparse(&mut self, rows: &SparseRows, space: &Space) {
        let n_features = self.differences.len();
        let n_vectors = self.n_vectors;
        for place in self.done..self.pairs.len() {
            let pair = self.pairs[place];
            if self.is_unknown(pair) {
                let mut sum = 0.0;
                rows.differences(space, pair.query, pair.row, |feature, difference| {
                    sum += space.weight(feature) * difference
                });
                self.substitute_pair(pair, sum / space.divisor());
            }
            let changed = changes_of(&self.ends, pair.number);
            let weights = &self.weights[pair.number as usize * n_vectors..][..n_vectors];
            rows.differences(space, pair.query, pair.row, |feature, difference| {
                for (vector, &weight) in self.sums.vectors.chunks_exact_mut(n_features).zip(weights) {
                    vector[feature] += weight * difference;
                }
                for (vector, weight) in &self.changes[changed.clone()] {
                    self.groups.vectors[*vector as usize * n_features + feature] += weight * difference;
                }
            });
        }
        self.done = self.pairs.len();
    }

    /// The contribution of the block: queries and distances of the targets by scheme, the sums over features, and all of
    /// these by group.
    pub(crate) fn finish(self) -> Contribution {
        let Sums { queries, targets, vectors } = self.sums;
        let mut groups = self.groups;
        let own = groups.own;
        let to_own = |all: &mut [f64], sums: &[f64]| {
            all[own * sums.len()..].iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        };
        to_own(&mut groups.queries, &queries);
        to_own(&mut groups.targets, &targets);
        to_own(&mut groups.vectors, &vectors);
        let vectors = vectors.chunks_exact(self.differences.len()).map(<[f64]>::to_vec);
        let groups = [groups.queries, groups.targets, groups.vectors];
        [queries, targets].into_iter().chain(vectors).chain(groups).map(Vector::dense).collect()
    }
}
