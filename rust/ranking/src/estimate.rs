//! Importances with standard errors, and the ranks that they allow.

use crate::contribution::Part;
use crate::quantile::quantile;
use crate::ranking::ScoreRanking;

/// The confidence of rank intervals, which hold for all features at once.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Importances and their variances.
///
/// ```
/// use ferrank_ranking::Estimate;
///
/// let estimate = Estimate::new(vec![10.0, 8.0, 0.0], vec![0.01; 3]);
/// // Any rank is possible while the variance over samples of rows is unknown.
/// assert_eq!(estimate.clone().rank("genie3").rank_interval, [(1, 3); 3]);
/// let ranking = estimate.with_sampling(vec![0.25; 3], f64::INFINITY).rank("genie3");
/// assert_eq!(ranking.rank, [1, 2, 3]);
/// assert_eq!(ranking.rank_interval, [(1, 2), (1, 2), (3, 3)]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// n_features; the importances.
    pub mean: Vec<f64>,
    /// n_features; variance of the mean over trees or queries, the rows being fixed. NaN with a single part.
    pub monte_carlo: Vec<f64>,
    /// n_features; variance over samples of rows from the same population, including `monte_carlo`. NaN where unknown.
    pub sampling: Vec<f64>,
    /// Degrees of freedom of `sampling`.
    pub freedom: f64,
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
        let monte_carlo = squares.into_iter().enumerate().map(variance).collect();
        Estimate::new(mean, monte_carlo)
    }

    /// Importances with their Monte Carlo variances, and an unknown variance over samples of rows.
    pub fn new(mean: Vec<f64>, monte_carlo: Vec<f64>) -> Estimate {
        Estimate { sampling: vec![f64::NAN; mean.len()], freedom: f64::INFINITY, mean, monte_carlo }
    }

    /// The same importances with their variance over samples of rows, which has `freedom` degrees of freedom.
    pub fn with_sampling(self, sampling: Vec<f64>, freedom: f64) -> Estimate {
        Estimate { sampling, freedom, ..self }
    }

    /// The same importances with an unknown variance over samples of rows.
    pub fn without_sampling(self) -> Estimate {
        Estimate::new(self.mean, self.monte_carlo)
    }

    /// The weighted mean of estimates whose trees are independent of each other. They have the rows in common, so that
    /// its variance over samples of rows is unknown.
    pub fn average(parts: &[(f64, Estimate)]) -> Estimate {
        let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let n_features = parts[0].1.mean.len();
        let mut average = Estimate::new(vec![0.0; n_features], vec![0.0; n_features]);
        for (weight, part) in parts {
            let share = weight / total;
            for i in 0..n_features {
                average.mean[i] += share * part.mean[i];
                average.monte_carlo[i] += share * share * part.monte_carlo[i];
            }
        }
        average
    }

    /// The estimates of the features at `places` alone.
    pub fn select(mut self, places: &[usize]) -> Self {
        for values in [&mut self.mean, &mut self.monte_carlo, &mut self.sampling] {
            *values = places.iter().map(|&place| values[place]).collect();
        }
        self
    }

    /// Ranks the features by their mean.
    pub fn rank(self, score: &str) -> ScoreRanking {
        let root = |variances: &[f64]| -> Vec<f64> { variances.iter().map(|variance| variance.sqrt()).collect() };
        let (standard_error, monte_carlo_error) = (root(&self.sampling), root(&self.monte_carlo));
        ScoreRanking {
            score: score.to_string(),
            rank: ranks(&self.mean),
            rank_interval: rank_intervals(&self.mean, &standard_error, self.freedom),
            importance: self.mean,
            standard_error,
            monte_carlo_error,
            freedom: self.freedom,
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
    let rank = |&value: &f64| 1 + descending.partition_point(|&other| other > value) as u32;
    importance.iter().map(remembering_last(rank)).collect()
}

/// `function`, which is not asked again where the argument is that of the call before: many features have the importance 0.
fn remembering_last<A: Copy + PartialEq, B: Copy>(function: impl Fn(&A) -> B) -> impl FnMut(&A) -> B {
    let mut last: Option<(A, B)> = None;
    move |argument| match last {
        Some((before, result)) if before == *argument => result,
        _ => last.insert((*argument, function(argument))).1,
    }
}

/// Best and worst rank of each feature: 1 + the number of features surely above, and n_features − the number surely
/// below (Klein, Wright and Wieczorek 2020). All of them hold at once with a probability of at least 95 %.
///
/// The confidence intervals of the importances hold at once by Šidák's level 1 − 0.95^(1/n_features), with quantiles of
/// Student's t. Without standard errors every rank is possible.
pub fn rank_intervals(importance: &[f64], standard_error: &[f64], freedom: f64) -> Vec<(u32, u32)> {
    let n = importance.len() as u32;
    if standard_error.iter().any(|error| error.is_nan()) {
        return vec![(1, n); importance.len()];
    }
    let width = quantile(0.5 + 0.5 * CONFIDENCE.powf(1.0 / f64::from(n)), freedom);
    let end = |side: f64| importance.iter().zip(standard_error).map(move |(value, error)| value + side * width * error);
    let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = (end(-1.0).collect(), end(1.0).collect());
    let bounds: Vec<(f64, f64)> = lows.iter().copied().zip(highs.iter().copied()).collect();
    lows.sort_unstable_by(f64::total_cmp);
    highs.sort_unstable_by(f64::total_cmp);
    let interval = |&(low, high): &(f64, f64)| {
        let above = n - lows.partition_point(|&other| other <= high) as u32;
        let below = highs.partition_point(|&other| other < low) as u32;
        (1 + above, n - below)
    };
    bounds.iter().map(remembering_last(interval)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contribution::Vector;

    #[test]
    fn trees_that_miss_a_feature_count_as_zero() {
        let trees = [vec![Vector::sparse(vec![(0, 3.0)])], vec![Vector::sparse(vec![(0, 1.0), (2, 4.0)])]];
        let parts = trees.each_ref().map(|sums| Part { key: 0, weight: 1.0, sums });
        let estimate = Estimate::mean(&parts, 0, 3);
        assert_eq!(estimate.mean, [2.0, 0.0, 2.0]);
        assert_eq!(estimate.monte_carlo, [1.0, 0.0, 4.0]);
        assert!(estimate.sampling.iter().all(|variance| variance.is_nan()));
    }

    #[test]
    fn a_part_counts_as_often_as_its_weight_says() {
        // Means 1 and 4 with the weights 3 and 1: 1.75, and a spread of 9 · 0.75² + 2.25² = 10.125.
        let sums = [vec![Vector::sparse(vec![(0, 3.0)])], vec![Vector::sparse(vec![(0, 4.0)])]];
        let parts = [Part { key: 0, weight: 3.0, sums: &sums[0] }, Part { key: 1, weight: 1.0, sums: &sums[1] }];
        assert_eq!(effective(&parts), 1.6);
        let estimate = Estimate::mean(&parts, 0, 2);
        assert_eq!(estimate.mean, [1.75, 0.0]);
        assert!((estimate.monte_carlo[0] - 10.125 / 0.6 / 10.0).abs() < 1e-12, "{:?}", estimate.monte_carlo);
    }

    #[test]
    fn equal_importances_share_the_smallest_rank() {
        assert_eq!(ranks(&[0.5, 2.0, 0.5, 0.0]), [2, 1, 2, 4]);
    }

    #[test]
    fn intervals_of_rank_follow_the_overlap_of_importances() {
        // With three features and many degrees of freedom the half width is 2.388 standard errors.
        // Intervals: [8, 12], [7, 9], [-1, 1]
        let width = quantile(0.5 + 0.5 * 0.95f64.cbrt(), f64::INFINITY);
        assert!((width - 2.388).abs() < 1e-3, "{width}");
        let errors = [2.0 / width, 1.0 / width, 1.0 / width];
        assert_eq!(rank_intervals(&[10.0, 8.0, 0.0], &errors, f64::INFINITY), [(1, 2), (1, 2), (3, 3)]);
        // With few degrees of freedom intervals are wider.
        assert_eq!(rank_intervals(&[10.0, 8.0, 0.0], &errors, 1.0), [(1, 3), (1, 3), (1, 3)]);
        assert_eq!(rank_intervals(&[1.0, 2.0], &[f64::NAN, f64::NAN], 9.0), [(1, 2), (1, 2)]);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        assert!((quantile(0.975, 4.0) - 2.776).abs() < 1e-3);
        assert!((quantile(0.975, 1e9) - 1.960).abs() < 1e-3);
        assert_eq!(quantile(0.975, 0.0), f64::INFINITY);
    }

    #[test]
    fn none_of_equal_importances_is_surely_above_another() {
        assert_eq!(rank_intervals(&[1.0, 0.0, 1.0], &[0.0; 3], 9.0), [(1, 2), (3, 3), (1, 2)]);
    }

    #[test]
    fn averages_weigh_means_and_variances() {
        let estimate = |mean, variance| Estimate::new(vec![mean], vec![variance]);
        let average = Estimate::average(&[(1.0, estimate(2.0, 4.0)), (3.0, estimate(6.0, 0.0))]);
        assert_eq!((average.mean, average.monte_carlo), (vec![5.0], vec![0.25]));
    }
}
