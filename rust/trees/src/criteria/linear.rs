//! The mean squared error of linear models on both sides (Robnik-Šikonja and Kononenko 1999 Eq. 17, 18).
//!
//! The error of least squares follows from the products of the columns over the rows of a side, which add up; so no model
//! is fitted for each cut. At most [`MOST_CUTS`] cuts of a feature are tried, evenly spread over those that there are.
//! Whether a side has a model or the mean is decided as in leaves.

use nalgebra::{DMatrix, DVector};

use super::SideSums;
use crate::model::{Design, RANK_TOLERANCE, is_model_better, most_iterations};

/// Most cuts of a feature that are tried.
const MOST_CUTS: usize = 32;

/// 1 − MSE / R, R the mean squared error of the node's mean. The sums of a side are n, Σ y, Σ y², Σ x, Σ x y and Σ x x'.
pub(crate) struct LinearCriterion<'a> {
    /// n; the target less its mean.
    pub(crate) centered: &'a [f64],
    /// Sum of the squares of `centered`, above 0.
    pub(crate) squares: f64,
    /// The numeric features of the node.
    pub(crate) design: Design,
}

impl SideSums for LinearCriterion<'_> {
    fn len(&self) -> usize {
        let p = self.design.n_columns();
        3 + 2 * p + p * p
    }

    fn most_cuts(&self) -> usize {
        MOST_CUTS
    }

    fn add(&self, sums: &mut [f64], position: u32) {
        let (x, y) = (self.design.row(position as usize), self.centered[position as usize]);
        let (target, rest) = sums.split_at_mut(3);
        let (columns, products) = rest.split_at_mut(2 * x.len());
        [1.0, y, y * y].into_iter().zip(target).for_each(|(value, sum)| *sum += value);
        let (values, with_target) = columns.split_at_mut(x.len());
        values.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        with_target.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * y);
        for (sums, a) in products.chunks_exact_mut(x.len().max(1)).zip(x) {
            sums.iter_mut().zip(x).for_each(|(sum, b)| *sum += a * b);
        }
    }

    fn estimate(&self, left: &[f64], right: &[f64]) -> f64 {
        let p = self.design.n_columns();
        1.0 - (side_error(left, p) + side_error(right, p)) / self.squares
    }
}

/// The sum of squared errors of the predictor that a side has.
fn side_error(sums: &[f64], p: usize) -> f64 {
    let n = sums[0];
    let of_mean = (sums[2] - sums[1] * sums[1] / n).max(0.0);
    let (values, with_target, products) = (&sums[3..3 + p], &sums[3 + p..3 + 2 * p], &sums[3 + 2 * p..]);
    let centered = |i: usize, j: usize| products[i * p + j] - values[i] * values[j] / n;
    // A column whose variance is that of rounding is constant on this side.
    let varying: Vec<usize> = (0..p).filter(|&i| centered(i, i) > RANK_TOLERANCE * n).collect();
    let scale: Vec<f64> = varying.iter().map(|&i| centered(i, i).sqrt()).collect();
    let matrix =
        DMatrix::from_fn(varying.len(), varying.len(), |a, b| centered(varying[a], varying[b]) / (scale[a] * scale[b]));
    let covariance = varying.iter().zip(&scale).map(|(&i, scale)| (with_target[i] - values[i] * sums[1] / n) / scale);
    let covariance = DVector::from_iterator(varying.len(), covariance);
    let Some((explained, rank)) = explained(matrix, &covariance) else { return of_mean };
    let of_model = (of_mean - explained).max(0.0);
    if is_model_better(of_model, of_mean, n as usize, rank) { of_model } else { of_mean }
}

/// The sum of squares that least squares explain, and their rank; `None` if the decomposition fails.
fn explained(matrix: DMatrix<f64>, covariance: &DVector<f64>) -> Option<(f64, usize)> {
    if matrix.is_empty() {
        return Some((0.0, 0));
    }
    let eigen = matrix.try_symmetric_eigen(f64::EPSILON, most_iterations(covariance.len()))?;
    let largest = eigen.eigenvalues.max();
    let projected = eigen.eigenvectors.transpose() * covariance;
    let kept = eigen.eigenvalues.iter().zip(projected.iter()).filter(|(value, _)| **value > RANK_TOLERANCE * largest);
    Some(kept.fold((0.0, 0), |(sum, rank), (value, part)| (sum + part * part / value, rank + 1)))
}
