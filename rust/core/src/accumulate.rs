//! Contributions of trees or blocks of queries, and what their sum says.
//!
//! A contribution is keyed by the number of its tree or block. Sums are taken in the order of keys, so
//! they do not depend on which was done first.

use std::collections::BTreeMap;

use crate::ranking::ScoreRanking;

/// What one tree adds to the importances: for each score, (feature, value) by ascending feature.
pub(crate) type Contribution = Vec<Vec<(u32, f64)>>;

/// Standard errors to either side of an importance that make its 95 % interval.
const INTERVAL: f64 = 1.96;

/// Contributions by key.
#[derive(Debug)]
pub(crate) struct Accumulator<C> {
    contributions: BTreeMap<u64, C>,
}

impl<C> Default for Accumulator<C> {
    fn default() -> Self {
        Accumulator { contributions: BTreeMap::new() }
    }
}

/// Importances, with their variances. Both n_features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: Vec<f64>,
    /// Of the mean; NaN with a single contribution, or where there is none to tell.
    pub(crate) variance: Vec<f64>,
}

impl<C> Accumulator<C> {
    /// Takes the contribution of `key`.
    pub(crate) fn insert(&mut self, key: u64, contribution: C) {
        self.contributions.insert(key, contribution);
    }

    /// The contributions, in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &C> {
        self.contributions.values()
    }
}

impl Accumulator<Contribution> {
    /// The estimate for score number `score`.
    pub(crate) fn estimate(&self, score: usize, n_features: usize) -> Estimate {
        let n = self.contributions.len() as f64;
        let entries = || self.values().flat_map(|scores| &scores[score]);
        let mut mean = vec![0.0; n_features];
        entries().for_each(|&(feature, value)| mean[feature as usize] += value);
        mean.iter_mut().for_each(|mean| *mean /= n);
        // Trees that do not use a feature add 0 to it, and so their mean squared to the spread.
        let mut squares = vec![0.0; n_features];
        let mut present = vec![0u32; n_features];
        for &(feature, value) in entries() {
            squares[feature as usize] += (value - mean[feature as usize]).powi(2);
            present[feature as usize] += 1;
        }
        let variance = |(i, squares): (usize, f64)| {
            let spread = squares + (n - f64::from(present[i])) * mean[i] * mean[i];
            if n > 1.0 { spread / (n - 1.0) / n } else { f64::NAN }
        };
        let variance = squares.into_iter().enumerate().map(variance).collect();
        Estimate { mean, variance }
    }
}

impl Estimate {
    /// The weighted mean of estimates that are independent of each other.
    pub(crate) fn average(parts: &[(f64, Estimate)]) -> Estimate {
        let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let n_features = parts[0].1.mean.len();
        let mut average = Estimate { mean: vec![0.0; n_features], variance: vec![0.0; n_features] };
        for (weight, part) in parts {
            let share = weight / total;
            for i in 0..n_features {
                average.mean[i] += share * part.mean[i];
                average.variance[i] += share * share * part.variance[i];
            }
        }
        average
    }

    /// Ranks the features by their mean.
    pub(crate) fn rank(self, score: &str) -> ScoreRanking {
        let std_error: Vec<f64> = self.variance.iter().map(|variance| variance.sqrt()).collect();
        ScoreRanking {
            score: score.to_string(),
            rank: ranks(&self.mean),
            rank_interval: rank_intervals(&self.mean, &std_error),
            importance: self.mean,
            std_error,
            by_target: Vec::new(),
        }
    }
}

/// Ranks from 1 for the greatest; equals share the smallest of theirs.
fn ranks(importance: &[f64]) -> Vec<u32> {
    let mut descending = importance.to_vec();
    descending.sort_unstable_by(|a, b| b.total_cmp(a));
    importance.iter().map(|value| 1 + descending.partition_point(|other| other > value) as u32).collect()
}

/// Best and worst rank that the 95 % intervals of the importances allow (Klein, Wright and Wieczorek
/// 2020): 1 + the number of features surely above, and n_features − the number surely below.
///
/// Without standard errors every rank is possible.
pub(crate) fn rank_intervals(importance: &[f64], std_error: &[f64]) -> Vec<(u32, u32)> {
    let n = importance.len() as u32;
    if std_error.iter().any(|error| error.is_nan()) {
        return vec![(1, n); importance.len()];
    }
    let end = |side: f64| importance.iter().zip(std_error).map(move |(value, error)| value + side * INTERVAL * error);
    let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = (end(-1.0).collect(), end(1.0).collect());
    let bounds: Vec<(f64, f64)> = lows.iter().copied().zip(highs.iter().copied()).collect();
    lows.sort_unstable_by(f64::total_cmp);
    highs.sort_unstable_by(f64::total_cmp);
    let interval = |(low, high): (f64, f64)| {
        let above = n - lows.partition_point(|other| *other <= high) as u32;
        let below = highs.partition_point(|other| *other < low) as u32;
        (1 + above, n - below)
    };
    bounds.into_iter().map(interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_miss_a_feature_count_as_zero() {
        let mut accumulator = Accumulator::<Contribution>::default();
        accumulator.insert(1, vec![vec![(0, 1.0), (2, 4.0)]]);
        accumulator.insert(0, vec![vec![(0, 3.0)]]);
        let estimate = accumulator.estimate(0, 3);
        assert_eq!(estimate.mean, [2.0, 0.0, 2.0]);
        assert_eq!(estimate.variance, [1.0, 0.0, 4.0]);
    }

    #[test]
    fn equal_importances_share_the_smallest_rank() {
        assert_eq!(ranks(&[0.5, 2.0, 0.5, 0.0]), [2, 1, 2, 4]);
    }

    #[test]
    fn intervals_of_rank_follow_the_overlap_of_importances() {
        // Intervals: [8, 12], [7, 9], [-1, 1]
        let found = rank_intervals(&[10.0, 8.0, 0.0], &[2.0 / 1.96, 1.0 / 1.96, 1.0 / 1.96]);
        assert_eq!(found, [(1, 2), (1, 2), (3, 3)]);
        assert_eq!(rank_intervals(&[1.0, 2.0], &[f64::NAN, f64::NAN]), [(1, 2), (1, 2)]);
    }

    #[test]
    fn averages_weigh_means_and_variances() {
        let estimate = |mean, variance| Estimate { mean: vec![mean], variance: vec![variance] };
        let average = Estimate::average(&[(1.0, estimate(2.0, 4.0)), (3.0, estimate(6.0, 0.0))]);
        assert_eq!(average, estimate(5.0, 0.25));
    }
}
