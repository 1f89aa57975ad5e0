//! Importances with standard errors, and the ranks that they allow.

use crate::contribution::Part;
use crate::ranking::ScoreRanking;

/// Standard errors to either side of an importance that make its 95 % interval.
const INTERVAL: f64 = 1.96;

/// Importances, with their variances. Both n_features.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// n_features; the importances.
    pub mean: Vec<f64>,
    /// Of the mean; NaN with a single part, or where there is none to tell.
    pub variance: Vec<f64>,
}

impl Estimate {
    /// The mean of vector number `number` of `parts`, in the order of their sum; at least one.
    pub fn mean(parts: &[Part<'_>], number: usize, n_features: usize) -> Estimate {
        let n: f64 = parts.iter().map(|part| part.weight).sum();
        let all: f64 = parts.iter().map(|part| part.weight * part.weight).sum();
        let freedom = effective(parts) - 1.0;
        let entries = || parts.iter().flat_map(|part| part.sums[number].entries().map(|entry| (part.weight, entry)));
        let mut mean = vec![0.0; n_features];
        entries().for_each(|(_, (feature, value))| mean[feature] += value);
        mean.iter_mut().for_each(|mean| *mean /= n);
        // Trees that do not use a feature add 0 to it, and so their mean squared to the spread.
        let mut squares = vec![0.0; n_features];
        let mut present = vec![0.0; n_features];
        for (weight, (feature, value)) in entries() {
            squares[feature] += (value - weight * mean[feature]).powi(2);
            present[feature] += weight * weight;
        }
        let variance = |(i, squares): (usize, f64)| {
            let spread = squares + (all - present[i]) * mean[i] * mean[i];
            if freedom > 0.0 { spread / freedom / all } else { f64::NAN }
        };
        let variance = squares.into_iter().enumerate().map(variance).collect();
        Estimate { mean, variance }
    }

    /// The weighted mean of estimates that are independent of each other.
    pub fn average(parts: &[(f64, Estimate)]) -> Estimate {
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
    pub fn rank(self, score: &str) -> ScoreRanking {
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

/// Number of parts of equal weight that tell as much as `parts` do (Kish 1965, §11.7).
pub fn effective(parts: &[Part<'_>]) -> f64 {
    let total: f64 = parts.iter().map(|part| part.weight).sum();
    total * total / parts.iter().map(|part| part.weight * part.weight).sum::<f64>()
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
pub fn rank_intervals(importance: &[f64], std_error: &[f64]) -> Vec<(u32, u32)> {
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
    use crate::contribution::Vector;

    #[test]
    fn trees_that_miss_a_feature_count_as_zero() {
        let trees = [vec![Vector::sparse(vec![(0, 3.0)])], vec![Vector::sparse(vec![(0, 1.0), (2, 4.0)])]];
        let parts = trees.each_ref().map(|sums| Part { weight: 1.0, sums });
        let estimate = Estimate::mean(&parts, 0, 3);
        assert_eq!(estimate.mean, [2.0, 0.0, 2.0]);
        assert_eq!(estimate.variance, [1.0, 0.0, 4.0]);
    }

    #[test]
    fn a_part_counts_as_often_as_its_weight_says() {
        // Means 1 and 4 with the weights 3 and 1: 1.75, and a spread of 9 · 0.75² + 2.25² = 10.125.
        let sums = [vec![Vector::sparse(vec![(0, 3.0)])], vec![Vector::sparse(vec![(0, 4.0)])]];
        let parts = [Part { weight: 3.0, sums: &sums[0] }, Part { weight: 1.0, sums: &sums[1] }];
        assert_eq!(effective(&parts), 1.6);
        let estimate = Estimate::mean(&parts, 0, 2);
        assert_eq!(estimate.mean, [1.75, 0.0]);
        assert!((estimate.variance[0] - 10.125 / 0.6 / 10.0).abs() < 1e-12, "{:?}", estimate.variance);
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
    fn none_of_equal_importances_is_surely_above_another() {
        assert_eq!(rank_intervals(&[1.0, 0.0, 1.0], &[0.0; 3]), [(1, 2), (3, 3), (1, 2)]);
    }

    #[test]
    fn averages_weigh_means_and_variances() {
        let estimate = |mean, variance| Estimate { mean: vec![mean], variance: vec![variance] };
        let average = Estimate::average(&[(1.0, estimate(2.0, 4.0)), (3.0, estimate(6.0, 0.0))]);
        assert_eq!(average, estimate(5.0, 0.25));
    }
}
