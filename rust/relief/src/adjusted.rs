//! Importances adjusted for covariates (Le, Dawkins and McKinney 2020).
//!
//! Over the weighted pairs of a query and a neighbor, RReliefF's importance (Robnik-Šikonja and Kononenko 1999 Eq. 12) is
//!
//! ```text
//! W_f = cov(d_f, d_Y) / (p (1 − p))          p the mean of d_Y
//! ```
//!
//! for the differences d_f in a feature and the distance d_Y of the targets. With covariates C it is
//!
//! ```text
//! W_f = (cov(d_f, d_Y) − Σ_c b_c cov(d_f, d_c)) / (p (1 − p))        cov(d_C, d_C) b = cov(d_C, d_Y)
//! ```
//!
//! the covariance with what is left of d_Y after its regression on the d_c. That is the covariance of two residuals
//! (Frisch and Waugh 1933; Lovell 1963), of which the term of a pair is their product (d_f − f̂) (d_Y − ŷ), with f̂ and ŷ
//! the fits on 1 and the d_c. Expanded, it is a sum of the sums of a block.
//!
//! A covariate that follows from those before it, or that is constant, is left out.

use ferrank_ranking::Part;

use crate::estimates::{Entry, Linear, NEGLIGIBLE, Slot, add_times, total};
use crate::outline::Outline;

/// What is left of the mean square of a covariate's differences, as a share of it, below which the covariate follows from
/// others.
const LEAST_LEFT: f64 = 1e-9;

impl Linear {
    /// The importances by target distance number `metric`, adjusted for the covariates, if there are any.
    pub(crate) fn adjusted(blocks: &[Part<'_>], outline: &Outline, scheme: usize, metric: usize) -> Self {
        let plain = Linear::difference(blocks, outline, scheme, metric);
        if outline.covariates.is_empty() {
            return plain;
        }
        let (n_features, n_distances) = (outline.n_features, outline.n_distances());
        let (near, target) = (scheme * (1 + n_distances), scheme * n_distances + metric);
        let both = near + 1 + metric;
        let sum = |of: &dyn Fn(Slot<'_>) -> f64| blocks.iter().map(|block| of(Slot::of_block(*block))).sum::<f64>();
        let queries = sum(&|block| block.queries[scheme]);
        let p = sum(&|block| block.targets[target]) / queries;
        if !(p > NEGLIGIBLE && 1.0 - p > NEGLIGIBLE) {
            return plain;
        }
        // Means over the pairs.
        let mean = |number: usize| -> Vec<f64> {
            total(blocks, n_features, number).into_iter().map(|sum| sum / queries).collect()
        };
        let [of_feature, with_target] = [mean(near), mean(both)];
        let all: Vec<Covariate> = (outline.covariates.iter().enumerate())
            .map(|(i, &feature)| {
                let number = outline.metrics.len() + i;
                let (vector, distance) = (near + 1 + number, scheme * n_distances + number);
                let own = of_feature[feature];
                let mut covariance = mean(vector);
                let square = covariance[feature];
                add_times(&mut covariance, -own, &of_feature);
                Covariate { feature, vector, distance, mean: own, square, covariance }
            })
            .collect();
        let (covariates, solver) = Solver::new(all);
        if covariates.is_empty() {
            return plain;
        }
        let with_target = |feature: usize| with_target[feature] - of_feature[feature] * p;
        // d_Y ≈ intercept + Σ slope · d_c
        let slopes = solver.solve(covariates.iter().map(|covariate| with_target(covariate.feature)).collect());
        let means = || covariates.iter().map(|covariate| covariate.mean);
        let dot = |slopes: &[f64]| slopes.iter().zip(means()).map(|(slope, mean)| slope * mean).sum::<f64>();
        let intercept = p - dot(&slopes);
        let spread = p * (1.0 - p);
        let unit = 1.0 / (queries * spread);

        let mut adjusted = Linear {
            value: plain.value,
            queries: vec![(scheme, Vec::with_capacity(n_features))],
            targets: vec![(target, Vec::with_capacity(n_features))],
            sums: vec![(both, vec![unit; n_features]), (near, vec![-intercept * unit; n_features])],
            entries: Vec::new(),
        };
        for (covariate, slope) in covariates.iter().zip(&slopes) {
            add_times(&mut adjusted.value, -slope / spread, &covariate.covariance);
            adjusted.sums.push((covariate.vector, vec![-slope * unit; n_features]));
            // What the covariate's own sums make of the residuals of d_Y.
            let residual = covariates.iter().zip(&slopes).map(|(other, slope)| (other.vector, -slope));
            let sums = [(both, 1.0), (near, -intercept)].into_iter().chain(residual).collect();
            adjusted.entries.push(Entry { feature: covariate.feature, sums, factors: Vec::with_capacity(n_features) });
        }
        let mut intercepts = Vec::with_capacity(n_features);
        for (feature, &value) in adjusted.value.iter().enumerate() {
            // d_f ≈ own + Σ slope · d_c
            let of_feature_slopes = solver.solve(covariates.iter().map(|one| one.covariance[feature]).collect());
            let own = of_feature[feature] - dot(&of_feature_slopes);
            // The denominator p (1 − p) changes by 1 − 2p times what p does.
            let of_spread = value * (1.0 - 2.0 * p);
            adjusted.queries[0].1.push((own * intercept + p * of_spread) * unit - value / queries);
            adjusted.targets[0].1.push(-(own + of_spread) * unit);
            for (entry, slope) in adjusted.entries.iter_mut().zip(&of_feature_slopes) {
                entry.factors.push(-slope * unit);
            }
            intercepts.push(own);
        }
        for (covariate, slope) in covariates.iter().zip(&slopes) {
            let factors = intercepts.iter().map(|own| own * slope * unit).collect();
            adjusted.targets.push((covariate.distance, factors));
        }
        adjusted
    }
}

/// A covariate, with means over the pairs.
struct Covariate {
    /// Its position among the features.
    feature: usize,
    /// Number of its sums over features.
    vector: usize,
    /// Number of its distance among those of the schemes.
    distance: usize,
    mean: f64,
    /// Mean of the squared differences.
    square: f64,
    /// n_features; covariances with the differences of features.
    covariance: Vec<f64>,
}

/// The Cholesky factor of the covariances of covariates.
struct Solver {
    /// Row by row, each with one entry more than the one before.
    factor: Vec<Vec<f64>>,
}

impl Solver {
    /// Those of `covariates` that do not follow from others before them, and the solver of their equations.
    fn new(covariates: Vec<Covariate>) -> (Vec<Covariate>, Self) {
        let (mut kept, mut factor): (Vec<Covariate>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for covariate in covariates {
            let with_kept = kept.iter().map(|other| covariate.covariance[other.feature]).collect();
            let mut row = forward(&factor, with_kept);
            let left = covariate.covariance[covariate.feature] - row.iter().map(|value| value * value).sum::<f64>();
            if left > LEAST_LEFT * covariate.square {
                row.push(left.sqrt());
                factor.push(row);
                kept.push(covariate);
            }
        }
        (kept, Solver { factor })
    }

    /// The solution for this right side.
    fn solve(&self, right: Vec<f64>) -> Vec<f64> {
        let mut solution = forward(&self.factor, right);
        for i in (0..solution.len()).rev() {
            solution[i] /= self.factor[i][i];
            for j in 0..i {
                solution[j] -= self.factor[i][j] * solution[i];
            }
        }
        solution
    }
}

/// Solves the equations of the lower triangular `factor`.
fn forward(factor: &[Vec<f64>], mut right: Vec<f64>) -> Vec<f64> {
    for (i, row) in factor.iter().enumerate() {
        let known: f64 = row[..i].iter().zip(&right).map(|(factor, value)| factor * value).sum();
        right[i] = (right[i] - known) / row[i];
    }
    right
}

#[cfg(test)]
mod tests {
    use ferrank_ranking::Vector;

    use super::*;
    use crate::outline::Scheme;
    use crate::targets::TargetMetric;
    use crate::tests::uniform;

    const N_PAIRS: usize = 40;
    const N_FEATURES: usize = 6;
    /// Feature 4 is half of feature 3 but for what does not count, and feature 5 is constant.
    const COVARIATES: [usize; 4] = [3, 5, 1, 4];
    const SCHEME: usize = 1;
    const METRIC: usize = 1;

    fn outline() -> Outline {
        Outline {
            schemes: vec![Scheme::Near, Scheme::Nearest { k: 1, sigma: None }],
            metrics: vec![TargetMetric::Target(0), TargetMetric::Target(1)],
            n_draws: 0,
            has_groups: false,
            shares: vec![0.5, 0.5],
            n_features: N_FEATURES,
            covariates: COVARIATES.to_vec(),
        }
    }

    /// The differences of a pair in the features, and the distances of its targets.
    fn pair(number: usize) -> ([f64; N_FEATURES], [f64; 2]) {
        let drawn = |column: u64| uniform(ferrank_runtime::random::mix([column, number as u64]));
        let mut features = [0, 1, 2, 3, 3, 5].map(drawn);
        features[0] = 0.5 * (features[0] + features[1]);
        (features[4], features[5]) = (0.5 * features[3] + 1e-6 * drawn(4), 0.1);
        (features, [drawn(6), (drawn(7) + features[0] + features[1] + features[3]) / 4.0])
    }

    /// The sums of the pairs with these weights, all by the same scheme.
    fn sums(weights: &[(usize, f64)]) -> Vec<Vector> {
        let outline = outline();
        let n_distances = outline.n_distances();
        let mut queries = vec![0.0; outline.schemes.len()];
        let mut targets = vec![0.0; outline.schemes.len() * n_distances];
        let mut vectors = vec![vec![0.0; N_FEATURES]; outline.n_vectors()];
        for &(number, weight) in weights {
            let (features, apart) = pair(number);
            let distances: Vec<f64> = apart.into_iter().chain(COVARIATES.map(|feature| features[feature])).collect();
            queries[SCHEME] += weight;
            add_times(&mut targets[SCHEME * n_distances..], weight, &distances);
            let vectors = &mut vectors[SCHEME * (1 + n_distances)..];
            add_times(&mut vectors[0], weight, &features);
            for (vector, distance) in vectors[1..].iter_mut().zip(&distances) {
                add_times(vector, weight * distance, &features);
            }
        }
        [queries, targets].into_iter().chain(vectors).map(Vector::dense).collect()
    }

    fn adjusted(sums: &Vec<Vector>) -> Linear {
        Linear::adjusted(&[Part { key: 0, weight: 1.0, sums }], &outline(), SCHEME, METRIC)
    }

    fn all_but(changed: usize, weight: f64) -> Vec<Vector> {
        let weight_of = |number| if number == changed { weight } else { 1.0 };
        sums(&(0..N_PAIRS).map(|number| (number, weight_of(number))).collect::<Vec<_>>())
    }

    #[test]
    fn the_rest_of_the_distance_is_that_of_least_squares() {
        let column = |of: &dyn Fn([f64; N_FEATURES], [f64; 2]) -> f64| -> Vec<f64> {
            (0..N_PAIRS).map(pair).map(|(features, apart)| of(features, apart)).collect()
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // Gram and Schmidt, of what is constant and the two covariates that do not follow from others.
        let mut basis: Vec<Vec<f64>> = Vec::new();
        let without = |mut vector: Vec<f64>, basis: &[Vec<f64>]| {
            for one in basis {
                let factor = -dot(&vector, one) / dot(one, one);
                add_times(&mut vector, factor, one);
            }
            vector
        };
        for vector in [vec![1.0; N_PAIRS], column(&|features, _| features[3]), column(&|features, _| features[1])] {
            basis.push(without(vector, &basis));
        }
        let distance = column(&|_, apart| apart[METRIC]);
        let p = distance.iter().sum::<f64>() / N_PAIRS as f64;
        let rest = without(distance, &basis);
        let found = adjusted(&all_but(0, 1.0)).value;
        for feature in 0..N_FEATURES {
            let expected = dot(&column(&|features, _| features[feature]), &rest) / (N_PAIRS as f64 * p * (1.0 - p));
            assert!((found[feature] - expected).abs() < 1e-12, "{feature}: {} {expected}", found[feature]);
            assert!(COVARIATES.contains(&feature) == (expected.abs() < 1e-6));
        }
    }

    #[test]
    fn linear_terms_are_the_derivatives_by_the_weights_of_pairs() {
        let step = 1e-5;
        let mut terms = Vec::new();
        for number in 0..N_PAIRS {
            adjusted(&all_but(0, 1.0))
                .terms(Slot::of_block(Part { key: 0, weight: 1.0, sums: &sums(&[(number, 1.0)]) }), &mut terms);
            let [more, less] = [step, -step].map(|change| adjusted(&all_but(number, 1.0 + change)).value);
            for feature in 0..N_FEATURES {
                let expected = (more[feature] - less[feature]) / (2.0 * step);
                assert!((terms[feature] - expected).abs() < 1e-8, "{feature}: {} {expected}", terms[feature]);
            }
        }
    }
}
