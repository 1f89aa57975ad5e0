//! Linear models of leaves: least squares by the singular value decomposition, in the numeric features.
//!
//! Columns are scaled to [0, 1] by the values of the node; missing values are at the mean of the others; features that are
//! constant in the node are left out. Directions whose singular value is below 10⁻⁵ of the largest are left out, so
//! that features that depend on each other share their coefficients (the shortest solution).
//!
//! Predictions stay within the targets of the leaf's rows: planes through few rows are steep, and a new row need not be
//! among them.
//!
//! Few rows: a model must have more than twice as many rows as columns, and with v directions its mean squared error
//! times (n + v) / (n − v) (Quinlan 1992) must be below that of the mean; otherwise the leaf predicts the mean. The paper
//! is silent on that, and a model with as many coefficients as rows has no error at all.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use crate::node_rows::{NodeRows, NodeTarget, mean};
use ferrank_neighbors::space::Scale;

/// Directions with less than this share of the largest variance are left out.
pub(crate) const RANK_TOLERANCE: f64 = 1e-10;

/// Most iterations of the decomposition, for each column; about three are usual.
const MOST_ITERATIONS: usize = 1000;

/// A linear model: intercept + Σ coefficient · value, kept within the numbers that its rows have.
///
/// ```
/// use ferrank_trees::{LinearModel, Term};
///
/// let term = Term { feature: 1, coefficient: 2.0, mean: 0.5 };
/// let model = LinearModel { intercept: 1.0, terms: vec![term], low: 0.0, high: 10.0 };
/// assert_eq!(model.predict(|feature| if feature == 1 { 3.0 } else { 0.0 }), 7.0);
/// assert_eq!(model.predict(|_| f64::NAN), 2.0);
/// assert_eq!(model.predict(|_| 1000.0), 10.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearModel {
    /// The prediction where all values are 0.
    pub intercept: f64,
    /// By feature, ascending.
    pub terms: Vec<Term>,
    /// Least prediction: the lowest target of the rows.
    pub low: f64,
    /// Greatest prediction: the highest target of the rows.
    pub high: f64,
}

/// What a feature adds to a linear model.
///
/// ```
/// use ferrank_trees::Term;
///
/// assert_eq!(Term { feature: 0, coefficient: 2.0, mean: 0.5 }.coefficient, 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// Number of the feature.
    pub feature: u32,
    /// Change of the prediction for a unit of the feature.
    pub coefficient: f64,
    /// The value that stands for a missing one.
    pub mean: f64,
}

impl LinearModel {
    /// The prediction for a row with these values by feature; NaN is missing.
    pub fn predict(&self, value: impl Fn(u32) -> f64) -> f64 {
        let terms = self.terms.iter().map(|term| {
            let value = value(term.feature);
            term.coefficient * if value.is_nan() { term.mean } else { value }
        });
        // Not `clamp`, which panics where a tree that was read has other limits.
        (self.intercept + terms.sum::<f64>()).max(self.low).min(self.high)
    }
}

/// Returns true if `n` rows are enough for a model of `n_columns` columns.
pub(crate) fn may_have_model(n: usize, n_columns: usize) -> bool {
    n_columns > 0 && n > 2 * n_columns
}

/// Returns true if a model of rank `rank` with this sum of squared errors is better than the mean, on `n` rows.
pub(crate) fn is_model_better(of_model: f64, of_mean: f64, n: usize, rank: usize) -> bool {
    rank > 0 && corrected(of_model, n, rank) < of_mean
}

/// An error on the rows of a model as it is expected on others (Quinlan 1992).
pub(crate) fn corrected(error: f64, n: usize, rank: usize) -> f64 {
    error * (n + rank) as f64 / (n - rank) as f64
}

/// The numeric features of a node as columns of a model.
#[derive(Debug)]
pub(crate) struct Design {
    columns: Vec<DesignColumn>,
    /// n x n_columns
    values: Vec<f64>,
}

/// How a feature becomes a column: (value − low) / (high − low) less its mean.
#[derive(Debug)]
struct DesignColumn {
    feature: u32,
    low: f64,
    high: f64,
    /// Of the scaled values.
    mean: f64,
}

impl Design {
    /// The columns of the numeric features that vary in `node`.
    pub(crate) fn new(node: &NodeRows<'_>) -> Self {
        let (columns, values): (Vec<DesignColumn>, Vec<Vec<f64>>) =
            (0..node.table.features.len()).filter_map(|feature| column(node, feature)).unzip();
        let rows = (0..node.len()).flat_map(|row| values.iter().map(move |column| column[row]));
        Design { values: rows.collect(), columns }
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// The values of a row, n_columns.
    pub(crate) fn row(&self, position: usize) -> &[f64] {
        let p = self.n_columns();
        &self.values[position * p..][..p]
    }
}

/// The column of a numeric feature with at least two values in `node`, and its centered values.
fn column(node: &NodeRows<'_>, feature: usize) -> Option<(DesignColumn, Vec<f64>)> {
    let values = node.numbers(feature)?;
    let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let (low, high) =
        known.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
    let scaled: Vec<f64> = known.iter().map(|&value| Scale::normalize(value, low, high)).collect();
    let mean = mean(&scaled);
    let center = |value: f64| if value.is_nan() { 0.0 } else { Scale::normalize(value, low, high) - mean };
    let column = DesignColumn { feature: feature as u32, low, high, mean };
    (low < high).then(|| (column, values.into_iter().map(center).collect()))
}

/// The model of a node and its mean squared error on other rows, as expected; `None` where the mean is better.
pub(crate) fn fit(node: &NodeRows<'_>) -> Option<(LinearModel, f64)> {
    let NodeTarget::Numbers { centered, mean, squares } = &node.target else { return None };
    let design = Design::new(node);
    let (n, p) = (node.len(), design.n_columns());
    if !may_have_model(n, p) {
        return None;
    }
    let target = DVector::from_column_slice(centered);
    let mut matrix = DMatrix::from_row_slice(n, p, &design.values);
    let scale: Vec<f64> = matrix.column_iter().map(|column| column.norm()).collect();
    matrix.column_iter_mut().zip(&scale).for_each(|(mut column, scale)| column /= *scale);
    let svd = matrix.clone().try_svd(true, true, f64::EPSILON, MOST_ITERATIONS * p)?;
    let least = RANK_TOLERANCE.sqrt() * svd.singular_values.max();
    let rank = svd.rank(least);
    let coefficients = svd.solve(&target, least).ok()?;
    let errors = (&target - matrix * &coefficients).norm_squared();
    if !is_model_better(errors, *squares, n, rank) {
        return None;
    }
    let slopes = coefficients.iter().zip(&scale).map(|(coefficient, scale)| coefficient / scale);
    let (low, high) = centered.iter().fold((0.0f64, 0.0f64), |(low, high), &y| (low.min(y), high.max(y)));
    Some((design.model(*mean, slopes, [mean + low, mean + high]), corrected(errors, n, rank) / n as f64))
}

impl Design {
    /// The model with these slopes of the scaled columns, which predicts `mean` at their means.
    fn model(&self, mean: f64, slopes: impl Iterator<Item = f64>, [low, high]: [f64; 2]) -> LinearModel {
        let term = |(column, slope): (&DesignColumn, f64)| {
            let coefficient = slope / (column.high - column.low);
            Term { feature: column.feature, coefficient, mean: column.low + column.mean * (column.high - column.low) }
        };
        let terms: Vec<Term> =
            self.columns.iter().zip(slopes).map(term).filter(|term| term.coefficient != 0.0).collect();
        let at_means: f64 = terms.iter().map(|term| term.coefficient * term.mean).sum();
        LinearModel { intercept: mean - at_means, terms, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Outcome, Table};

    #[test]
    fn a_linear_target_has_its_coefficients() {
        let column = |f: fn(f64) -> f64| (0..20).map(|row| f(f64::from(row))).collect::<Vec<f64>>();
        let (x, z) = (column(|row| row * row), column(|row| row % 7.0));
        let target = x.iter().zip(&z).map(|(x, z)| 3.0 * x - 2.0 * z + 1.0).collect();
        let constant = Column::Numeric(vec![5.0; 20]);
        let table = Table {
            features: vec![Column::Numeric(x), constant, Column::Numeric(z)],
            categories: vec![None; 3],
            outcome: Outcome::Numbers(target),
            classes: Vec::new(),
            n_rows: 20,
        };
        let rows: Vec<u32> = (0..20).collect();
        let (model, error) = fit(&NodeRows::new(&table, &rows)).unwrap();
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
        assert_eq!(model.terms.iter().map(|term| term.feature).collect::<Vec<_>>(), [0, 2]);
        [model.intercept, model.terms[0].coefficient, model.terms[1].coefficient, error]
            .into_iter()
            .zip([1.0, 3.0, -2.0, 0.0])
            .for_each(|(found, expected)| close(found, expected));
        // Four rows are too few for two columns.
        assert!(fit(&NodeRows::new(&table, &rows[..4])).is_none());
    }
}
