//! The weight of a pair of rows in each sum of ReliefF or RReliefF (Robnik-Šikonja and Kononenko 1999 figures 3 and 4).
//!
//! A neighborhood gives each neighbor of a query a share. The share times a factor of the targets is the weight with
//! which the pair's differences are added to a sum over features.

use std::sync::Arc;

use super::covariates::Covariates;
use super::draws::Draws;
use super::influence::Influence;
use super::outline::Outline;
use super::sums::{Block, Weights};
use super::targets::{TargetMetric, Targets};
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
    Distances(Box<Distances>),
}

/// Distances between the targets of rows.
#[derive(Debug)]
pub(crate) struct Distances {
    pub(crate) targets: Targets,
    pub(crate) covariates: Covariates,
    pub(crate) draws: Draws,
    /// n_rows; the number of each row among those that the targets are of; empty if these are the rows.
    pub(crate) numbers: Vec<u32>,
}

impl Distances {
    /// Sets `units` to the distances of two rows by each of `metrics`, for their own targets and for each draw, and then in
    /// each covariate.
    fn units(&self, rows: [u32; 2], metrics: &[TargetMetric], units: &mut [f64]) {
        let numbers = rows.map(|row| if self.numbers.is_empty() { row } else { self.numbers[row as usize] });
        let (units, in_covariates) = units.split_at_mut(units.len() - self.covariates.len());
        if !in_covariates.is_empty() {
            self.covariates.differences(rows, in_covariates);
        }
        for (draw, units) in units.chunks_exact_mut(metrics.len()).enumerate() {
            let [query, row] = if draw == 0 { numbers } else { numbers.map(|row| self.draws.row(draw, row)) };
            for (unit, &metric) in units.iter_mut().zip(metrics) {
                *unit = self.targets.distance(metric, query, row);
            }
        }
    }
}

/// The shares that the rows of a list have in each scheme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares<'a> {
    /// n_schemes; of the first rows; other rows do not count in the scheme. They sum to the weight of the query.
    pub(crate) shares: &'a [Vec<f64>],
    /// n_schemes x n_rows; for each row of the list, the places of those in whose place it comes if they are left out.
    /// Empty without standard errors.
    pub(crate) replaced: &'a [Vec<Vec<u32>>],
}

/// The sums to compute, and what their weights depend on.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) outline: Outline,
    /// n_rows; the group of each row, for standard errors.
    pub(crate) groups: Vec<u8>,
    /// n_rows; empty where all rows have the weight 1.
    pub(crate) weights: Arc<Vec<f64>>,
    pub(crate) kind: Kind,
    /// Set where some rows have no target.
    pub(crate) influence: Option<Influence>,
}

impl Plan {
    fn n_metrics(&self) -> usize {
        self.outline.n_distances()
    }

    /// Returns true if all rows of a class have the same weight for a query.
    pub(crate) fn has_equal_weights(&self) -> bool {
        self.influence.is_none() && self.weights.is_empty() && matches!(self.kind, Kind::Classes { .. })
    }

    /// Starts the sums of a block with these queries, all of one group, without pairs.
    pub(crate) fn block(&self, queries: &[u32]) -> Block {
        self.block_of_width(queries, self.outline.n_features)
    }

    /// Starts the sums of a block as [`block`](Plan::block) does, over `width` columns in place of features.
    pub(crate) fn block_of_width(&self, queries: &[u32], width: usize) -> Block {
        let group = queries.first().map_or(0, |&query| self.group(query));
        let weight = queries.iter().fold(0.0, |sum, &query| sum + self.weight(query));
        Block::new(&self.outline, width, weight, group)
    }

    /// The weight of a row.
    #[inline]
    pub(crate) fn weight(&self, row: u32) -> f64 {
        self.weights.get(row as usize).copied().unwrap_or(1.0)
    }

    /// The shares of `rows` in each scheme, of which those by rank are `shares`, times the weight of `query`: a row counts
    /// with its weight among those of the list.
    pub(crate) fn weighted(&self, query: u32, rows: &[u32], shares: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let of_scheme = |shares: &Vec<f64>| {
            let mut shares: Vec<f64> = shares.iter().zip(rows).map(|(share, &row)| share * self.weight(row)).collect();
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share = *share / total * self.weight(query));
            shares
        };
        shares.iter().map(of_scheme).collect()
    }

    pub(crate) fn group(&self, row: u32) -> usize {
        usize::from(self.groups[row as usize])
    }

    /// Adds the pairs of `query` and `rows`, which are of `class`, to `block`.
    pub(crate) fn push(
        &self,
        block: &mut Block,
        space: &Space,
        query: u32,
        (class, rows): (usize, &[u32]),
        shares: Shares<'_>,
    ) {
        let mut weights = block.push(query, rows);
        self.weigh(query, [class, space.class(query)], rows, shares.shares, &mut weights);
        self.apply_influence(query, rows, weights);
        block.add_known_targets(rows.len());
        if !shares.replaced.is_empty() {
            self.push_changes(block, query, rows, shares);
        }
    }

    /// Sets the weights of `rows`, which are of the first class given; the query is of the second.
    fn weigh(
        &self,
        query: u32,
        [class, own]: [usize; 2],
        rows: &[u32],
        shares: &[Vec<f64>],
        Weights { weights, units, .. }: &mut Weights<'_>,
    ) {
        let (n_vectors, n_units) = (self.outline.n_vectors(), 1 + self.n_metrics());
        for (units, &row) in units.chunks_exact_mut(n_units).zip(rows) {
            self.units(query, row, [class, own], units);
        }
        for (number, shares) in shares.iter().enumerate() {
            let pairs = weights.chunks_exact_mut(n_vectors).zip(units.chunks_exact(n_units));
            for ((weights, units), &share) in pairs.zip(shares) {
                match &self.kind {
                    Kind::Classes { .. } if class == own => weights[number] = -share,
                    Kind::Classes { priors } => weights[number] = share * priors[class] / of_others(priors, own),
                    Kind::Distances(..) => {
                        let weights = &mut weights[number * n_units..][..n_units];
                        weights.iter_mut().zip(units).for_each(|(weight, unit)| *weight = share * unit);
                    }
                }
            }
        }
    }

    /// Sets `units` to the weights of a pair that has a share of 1; the row is of the first class given, the query of the
    /// second.
    #[inline]
    fn units(&self, query: u32, row: u32, [class, own]: [usize; 2], units: &mut [f64]) {
        match &self.kind {
            Kind::Classes { .. } if class == own => units[0] = -1.0,
            Kind::Classes { priors } => units[0] = priors[class] / of_others(priors, own),
            Kind::Distances(distances) => {
                units[0] = 1.0;
                distances.units([query, row], &self.outline.metrics, &mut units[1..]);
            }
        }
    }

    /// Sets `units` as [`units`](Plan::units) does, times the influence of the pair, and returns that influence. The
    /// `distance` of the features replaces an unknown distance of the targets.
    pub(crate) fn influenced_units(
        &self,
        (query, row): (u32, u32),
        classes: [usize; 2],
        distance: f64,
        units: &mut [f64],
    ) -> f64 {
        self.units(query, row, classes, units);
        let Some(influence) = &self.influence else { return 1.0 };
        let (factor, known) = influence.of_pair(query, row);
        if !known {
            units[1..].fill(distance);
        }
        units.iter_mut().for_each(|unit| *unit *= factor);
        factor
    }

    /// Multiplies weights by the influence of the pair. What a pair loses is taken from the number of queries. NaN
    /// marks weights that need the distance of the features in place of an unknown distance of the targets.
    fn apply_influence(&self, query: u32, rows: &[u32], Weights { weights, units, queries }: Weights<'_>) {
        let Some(influence) = &self.influence else { return };
        let n_units = 1 + self.n_metrics();
        let pairs = weights.chunks_exact_mut(self.outline.n_vectors()).zip(units.chunks_exact_mut(n_units));
        for ((weights, units), &row) in pairs.zip(rows) {
            let (factor, known) = influence.of_pair(query, row);
            let apply = |weights: &mut [f64]| {
                weights[0] *= factor;
                weights[1..].iter_mut().for_each(|weight| *weight = if known { *weight * factor } else { f64::NAN });
            };
            for (weights, queries) in weights.chunks_exact_mut(n_units).zip(&mut *queries) {
                *queries -= weights[0] * (1.0 - factor);
                apply(weights);
            }
            apply(units);
        }
    }

    /// Adds what the groups of `rows` change in the sums of `query`: the share of a row, and the same share less of the
    /// row that comes in its place if it is left out.
    fn push_changes(&self, block: &mut Block, query: u32, rows: &[u32], Shares { shares, replaced }: Shares<'_>) {
        for (place, &row) in rows.iter().enumerate() {
            let factor = self.influence.as_ref().map_or(1.0, |influence| influence.of_pair(query, row).0);
            let changes = shares.iter().zip(replaced).enumerate().flat_map(|(scheme, (shares, replaced))| {
                let own = shares.get(place).map(|&share| (self.group(row), scheme, share));
                let others = replaced[place].iter().map(move |&other| {
                    let other = other as usize;
                    (self.group(rows[other]), scheme, -shares[other])
                });
                own.into_iter().chain(others)
            });
            block.change(place, factor, changes);
        }
    }
}

/// 1 − P(`own`), the prior of all other classes together; 1 where these vanish beside it, so that each has the share 0.
pub(crate) fn of_others(priors: &[f64], own: usize) -> f64 {
    /// Of a smaller difference more than four digits are lost.
    const LITTLE: f64 = 1e-4;
    let rest = 1.0 - priors[own];
    if rest > LITTLE {
        return rest;
    }
    let others = (0..priors.len()).filter(|class| *class != own).map(|class| priors[class]).sum();
    if others > 0.0 { others } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::of_others;

    #[test]
    fn the_prior_of_others_keeps_its_digits() {
        assert_eq!(of_others(&[0.25, 0.5, 0.25], 1), 0.5);
        assert_eq!(of_others(&[1.0, 1e-17, 2e-17], 0), 1e-17 + 2e-17);
        assert_eq!(of_others(&[1.0, 0.0], 0), 1.0);
    }
}
