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
