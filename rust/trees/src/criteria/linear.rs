//! The mean squared error of linear models on both sides (Robnik-Šikonja and Kononenko 1999 Eq. 17, 18).
//!
//! The error of least squares follows from the products of the columns over the rows of a side, which add up; so no model
//! is fitted for each cut. At most [`MOST_CUTS`] cuts of a feature are tried at once, then those around the best of them.
//! Whether a side has a model or the mean is decided as in leaves.

use super::SideSums;
use crate::model::{Design, RANK_TOLERANCE, is_model_better, may_have_model};

/// Most cuts of a feature that are tried at once.
const MOST_CUTS: usize = 32;

/// Most numeric features of models; with more of them the mean squared error is that of the means.
pub(crate) const MOST_COLUMNS: usize = 64;

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
    if !may_have_model(n as usize, varying.len()) {
        return of_mean;
    }
    let scale: Vec<f64> = varying.iter().map(|&i| centered(i, i).sqrt()).collect();
    let product = |a: usize, b: usize| centered(varying[a], varying[b]) / (scale[a] * scale[b]);
    let target = |a: usize| (with_target[varying[a]] - values[varying[a]] * sums[1] / n) / scale[a];
    let (explained, rank) = explained(varying.len(), product, target);
    let of_model = (of_mean - explained).max(0.0);
    if is_model_better(of_model, of_mean, n as usize, rank) { of_model } else { of_mean }
}

/// The sum of squares that least squares explain, and the number of columns that do not depend on those before them.
///
/// Columns of length 1 with these `product`s are made orthogonal one after the other (Cholesky's method); those that are
/// nearly sums of others are left out.
fn explained(n_columns: usize, product: impl Fn(usize, usize) -> f64, target: impl Fn(usize) -> f64) -> (f64, usize) {
    // Of each column that is kept: its number, its components along those before it, its own length, its part of the target.
    let mut kept: Vec<(usize, Vec<f64>, f64, f64)> = Vec::with_capacity(n_columns);
    let mut sum = 0.0;
    for column in 0..n_columns {
        let mut along: Vec<f64> = Vec::with_capacity(kept.len());
        for (other, components, length, _) in &kept {
            let shared: f64 = along.iter().zip(components).map(|(a, b)| a * b).sum();
            along.push((product(column, *other) - shared) / length);
        }
        let left = product(column, column) - along.iter().map(|part| part * part).sum::<f64>();
        if left <= RANK_TOLERANCE {
            continue;
        }
        let length = left.sqrt();
        let part = (target(column) - along.iter().zip(&kept).map(|(a, other)| a * other.3).sum::<f64>()) / length;
        sum += part * part;
        kept.push((column, along, length, part));
    }
    (sum, kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_depend_on_others_explain_nothing_more() {
        // Of the columns (1, 0), (0.6, 0.8) and the first again, for the target (2, 1).
        let columns = [[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]];
        let product = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let of = |n| explained(n, |a, b| product(columns[a], columns[b]), |a| product(columns[a], [2.0, 1.0]));
        assert_eq!(of(1), (4.0, 1));
        let (sum, rank) = of(3);
        assert!((sum - 5.0).abs() < 1e-12 && rank == 2);
    }
}
