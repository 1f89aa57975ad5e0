//! Errors of the predictions for the out-of-bag rows.
//!
//! The error is a mean over the targets: the relative root squared error of a numeric target, the error rate of a
//! nominal target. For labels this mean is the Hamming loss. Label sets of a hierarchy are one target, whose error is
//! the Hamming loss weighted by the shares of the labels.

use super::walk::Walk;
use crate::oob::{LeafPredictions, OobView, OutOfBagRows, mean};
use crate::oob::{Numeric, Targets};
use ferrank_data::labels::compare;
use ferrank_data::profile::MISSING_U16;

/// Errors up to this are rounding noise; errors are relative to those of the mean.
pub(super) const NO_ERROR: f64 = 1e-12;

/// How the errors of the targets are combined into one number.
pub(super) struct ErrorScale {
    /// n_numeric; sum of squares around the mean of the out-of-bag rows; 0 for a constant target.
    spread: Vec<f64>,
    /// n_nominal; the error of a misclassified row of weight 1.
    mistake: Vec<f64>,
    /// n_sets; the error of a row of weight 1 with all labels wrong.
    difference: Vec<f64>,
    /// Number of targets with an error.
    n_targets: f64,
}

impl ErrorScale {
    pub(super) fn new(targets: &Targets<'_>, rows: &OutOfBagRows) -> Self {
        let spread = |y: &Numeric<'_>| {
            let known = rows.iter().map(|row| (y.at(row), targets.weight(row))).filter(|(value, _)| !value.is_nan());
            let Some(mean) = mean(y, targets, rows.iter().map(|row| (row, 1))) else { return 0.0 };
            let mut values = known.clone().map(|(value, _)| value);
            let first = values.next();
            // The mean of equal values may differ from them by rounding.
            if values.all(|value| Some(value) == first) {
                return 0.0;
            }
            known.map(|(value, weight)| weight * (value - mean).powi(2)).sum()
        };
        let spread: Vec<f64> = targets.numeric.iter().map(spread).collect();
        let weight = |is_known: &dyn Fn(usize) -> bool| -> f64 {
            let known = rows.iter().filter(|&row| is_known(row));
            known.map(|row| targets.weight(row)).sum()
        };
        let nominal = targets.nominal.iter().map(|(codes, _)| weight(&|row| codes[row] != MISSING_U16));
        let sets = targets.sets.iter().map(|sets| weight(&|row| sets.labels.of(row).is_some()));
        let (nominal, sets): (Vec<f64>, Vec<f64>) = (nominal.collect(), sets.collect());
        let n_targets = spread.iter().chain(&nominal).chain(&sets).filter(|&&size| size > 0.0).count() as f64;
        let share = |&weight: &f64| if weight > 0.0 { 1.0 / (n_targets * weight) } else { 0.0 };
        let (mistake, difference) = (nominal.iter().map(share).collect(), sets.iter().map(share).collect());
        ErrorScale { spread, mistake, difference, n_targets }
    }

    /// Returns true if some targets are nominal or label sets.
    fn has_mistakes(&self) -> bool {
        !self.mistake.is_empty() || !self.difference.is_empty()
    }

    /// The error of the prediction of `leaf` for `row` on nominal targets and label sets.
    fn mistakes(&self, targets: &Targets<'_>, row: usize, leaves: &LeafPredictions, leaf: usize) -> f64 {
        let (classes, predicted_sets) = leaves.classes_and_sets(leaf);
        let mut sum = 0.0;
        for (((codes, _), &class), mistake) in targets.nominal.iter().zip(classes).zip(&self.mistake) {
            let code = codes[row];
            sum += if code != class && code != MISSING_U16 { *mistake } else { 0.0 };
        }
        for ((sets, predicted), difference) in targets.sets.iter().zip(predicted_sets).zip(&self.difference) {
            if let Some(set) = sets.labels.of(row) {
                let predicted = predicted.as_deref().unwrap_or(&[]);
                sum += compare(set, predicted, &sets.shares).0 * difference;
            }
        }
        targets.weight(row) * sum
    }
}

/// The errors of a tree, and their changes by each permuted feature.
pub(super) struct ErrorSums {
    /// n_numeric
    squares: Vec<f64>,
    mistakes: f64,
    /// n_columns x n_numeric
    square_changes: Vec<f64>,
    /// n_columns
    mistake_changes: Vec<f64>,
    group: Group,
}

/// A group of rows.
#[derive(Default)]
struct Group {
    weights: Vec<f64>,
    /// n_rows x n_numeric; NaN where missing.
    values: Vec<f64>,
    /// n_rows x n_numeric; squared errors.
    squares: Vec<f64>,
    mistakes: Vec<f64>,
}

/// The weighted squared error of predicting `mean`; 0 if the value is missing.
#[inline(always)]
fn square(value: f64, mean: f64, weight: f64) -> f64 {
    let error = value - mean;
    if error.is_nan() { 0.0 } else { weight * error * error }
}

impl ErrorSums {
    pub(super) fn new(scale: &ErrorScale, n_columns: usize) -> Self {
        let n_numeric = scale.spread.len();
        ErrorSums {
            squares: vec![0.0; n_numeric],
            mistakes: 0.0,
            square_changes: vec![0.0; n_columns * n_numeric],
            mistake_changes: vec![0.0; n_columns],
            group: Group::default(),
        }
    }

    /// Adds the errors of `rows` at the leaves in `walk`, and the changes by their detours.
    pub(super) fn add(&mut self, scale: &ErrorScale, view: &OobView<'_>, rows: &[u32], walk: &Walk) {
        let OobView { targets, predictions: leaves, .. } = *view;
        self.group.weights.clear();
        self.group.weights.extend(rows.iter().map(|&row| targets.weight(row as usize)));
        match targets.numeric.len() {
            0 => {}
            // With a constant nothing loops over the targets.
            1 => self.add_squares(1, targets, leaves.means(), rows, walk),
            n => self.add_squares(n, targets, leaves.means(), rows, walk),
        }
        if scale.has_mistakes() {
            self.add_mistakes(scale, targets, leaves, rows, walk);
        }
    }

    /// Adds squared errors of the `n` numeric targets. Each loop does one thing only, so that many of its reads, which
    /// are scattered, are under way at once.
    #[inline(always)]
    fn add_squares(&mut self, n: usize, targets: &Targets<'_>, means: &[f64], rows: &[u32], walk: &Walk) {
        let of = |number: usize| number * n..(number + 1) * n;
        let Group { weights, values, squares, .. } = &mut self.group;
        let (sums, changes) = (&mut self.squares[..n], &mut self.square_changes[..]);
        values.clear();
        for &row in rows {
            values.extend(targets.numeric[..n].iter().map(|target| target.at(row as usize)));
        }
        squares.clear();
        for ((values, &weight), &leaf) in values.chunks_exact(n).zip(&*weights).zip(walk.leaves()) {
            let means = &means[of(leaf as usize)];
            squares.extend(values.iter().zip(means).map(|(&value, &mean)| square(value, mean, weight)));
        }
        for squares in squares.chunks_exact(n) {
            sums.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
        }
        for detour in walk.detours() {
            let (row, column) = (detour.row(), detour.column());
            let (values, squares, means) = (&values[of(row)], &squares[of(row)], &means[of(detour.leaf())]);
            let changes = changes[of(column)].iter_mut().zip(values).zip(squares).zip(means);
            for (((change, &value), &without), &mean) in changes {
                *change += square(value, mean, weights[row]) - without;
            }
        }
    }

    fn add_mistakes(
        &mut self,
        scale: &ErrorScale,
        targets: &Targets<'_>,
        leaves: &LeafPredictions,
        rows: &[u32],
        walk: &Walk,
    ) {
        let of = |row: usize, leaf| scale.mistakes(targets, rows[row] as usize, leaves, leaf);
        let mistakes = &mut self.group.mistakes;
        mistakes.clear();
        mistakes.extend((0..rows.len()).zip(walk.leaves()).map(|(row, &leaf)| of(row, leaf as usize)));
        mistakes.iter().for_each(|mistakes| self.mistakes += mistakes);
        for detour in walk.detours() {
            let row = detour.row();
            self.mistake_changes[detour.column()] += of(row, detour.leaf()) - mistakes[row];
        }
    }

    /// The relative increase of the error for each column; the increase itself if there is no error.
    pub(super) fn importances(&self, scale: &ErrorScale) -> Vec<f64> {
        let n_numeric = self.squares.len();
        let error = |square_changes: &[f64], mistake_change: f64| {
            let relative = |j: usize| {
                let squares = self.squares[j] + square_changes.get(j).copied().unwrap_or(0.0);
                if scale.spread[j] > 0.0 { (squares.max(0.0) / scale.spread[j]).sqrt() } else { 0.0 }
            };
            let numeric: f64 = (0..n_numeric).map(relative).sum();
            numeric / scale.n_targets.max(1.0) + (self.mistakes + mistake_change)
        };
        let base = error(&[], 0.0);
        let importance = |column: usize| {
            let changes = &self.square_changes[column * n_numeric..(column + 1) * n_numeric];
            if changes.iter().all(|change| *change == 0.0) && self.mistake_changes[column] == 0.0 {
                return 0.0;
            }
            let increase = error(changes, self.mistake_changes[column]) - base;
            if base > NO_ERROR { increase / base } else { increase }
        };
        (0..self.mistake_changes.len()).map(importance).collect()
    }
}
