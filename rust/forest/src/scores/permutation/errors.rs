//! Errors of the predictions for the out-of-bag rows.
//!
//! The error is a mean over the targets: the relative root squared error of a numeric target, the error rate of a
//! nominal target. For labels this mean is the Hamming loss. Label sets of a hierarchy are one target, whose error is
//! the Hamming loss weighted by the shares of the labels.
//!
//! The terms of rows are rounded to [fixed point](FixedPoint), so that sums have the same bits in any order of the rows: a
//! tree can be judged leaf by leaf.

use super::walk::Walk;
use crate::oob::{LeafPredictions, OutOfBagRows, mean};
use crate::oob::{Numeric, Targets};
use ferrank_data::labels::compare;
use ferrank_data::profile::MISSING_U16;

/// Errors up to this are rounding noise; errors are relative to those of the mean.
pub(super) const NO_ERROR: f64 = 1e-12;

/// A scale of fixed-point numbers. All sums of them are exact.
#[derive(Clone, Copy)]
struct FixedPoint {
    /// Steps in 1, a power of two.
    scale: f64,
}

impl FixedPoint {
    /// For terms of up to `most` in absolute value, and up to `total` together.
    fn new(most: f64, total: f64) -> Self {
        /// So that the scale is finite, also where all terms are 0.
        const MOST_BITS: f64 = 1000.0;
        // Terms have 50 bits, which rounding needs; sums and their differences 61.
        let bits = (50.0 - most.log2().ceil()).min(61.0 - total.log2().ceil());
        FixedPoint { scale: bits.min(MOST_BITS).exp2() }
    }

    /// The nearest number of steps. A conversion of types would also be right, but is not vectorized.
    #[inline(always)]
    fn steps(self, value: f64) -> i64 {
        // Up to 2^51 in absolute value, a number that this is added to is rounded to an integer, in its lowest bits.
        const INTEGERS: f64 = 1.5 * (1u64 << 52) as f64;
        ((value * self.scale + INTEGERS).to_bits() as i64).wrapping_sub(INTEGERS.to_bits() as i64)
    }

    fn value(self, steps: i64) -> f64 {
        steps as f64 / self.scale
    }
}

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
    /// Of the squared errors of a numeric target.
    squares: FixedPoint,
    /// Of the errors of a row on nominal targets and label sets.
    mistakes: FixedPoint,
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
        let (mistake, difference): (Vec<f64>, Vec<f64>) =
            (nominal.iter().map(share).collect(), sets.iter().map(share).collect());
        let weights = || rows.iter().map(|row| targets.weight(row));
        let (most, total) = (weights().fold(0.0, f64::max), weights().sum::<f64>());
        // Values are within 1 of 0, and so are their means.
        let squares = FixedPoint::new(4.0 * most, 4.0 * total);
        // All labels of a set together weigh 1.
        let mistakes = FixedPoint::new(most * mistake.iter().chain(&difference).sum::<f64>(), 1.0);
        ErrorScale { spread, mistake, difference, n_targets, squares, mistakes }
    }

    /// Returns true if some targets are nominal or label sets.
    fn has_mistakes(&self) -> bool {
        !self.mistake.is_empty() || !self.difference.is_empty()
    }

    /// The error of the prediction of `leaf` for `row` on nominal targets and label sets.
    fn mistakes(&self, targets: &Targets<'_>, row: usize, leaves: &LeafPredictions, leaf: usize) -> i64 {
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
        self.mistakes.steps(targets.weight(row) * sum)
    }
}

/// What the errors of rows at leaves follow from.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) scale: &'a ErrorScale,
    pub(super) targets: &'a Targets<'a>,
    pub(super) leaves: &'a LeafPredictions,
}

impl<'a> Judge<'a> {
    /// The squared errors of the numeric targets of `row` at `leaf`.
    fn squares(self, row: u32, leaf: usize) -> impl Iterator<Item = i64> + use<'a> {
        let (row, Judge { scale, targets, leaves }) = (row as usize, self);
        let n = targets.numeric.len();
        let means = &leaves.means()[leaf * n..(leaf + 1) * n];
        let both = targets.numeric.iter().zip(means);
        both.map(move |(target, &mean)| square(scale.squares, target.at(row), mean, targets.weight(row)))
    }

    /// The error of the prediction of `leaf` for `row` on nominal targets and label sets.
    fn mistakes(self, row: u32, leaf: usize) -> i64 {
        let Judge { scale, targets, leaves } = self;
        if scale.has_mistakes() { scale.mistakes(targets, row as usize, leaves, leaf) } else { 0 }
    }
}

/// The errors of a tree, and their changes by each permuted feature, all in steps of the fixed point of the scale.
pub(super) struct ErrorSums {
    /// n_numeric
    squares: Vec<i64>,
    mistakes: i64,
    /// n_columns x n_numeric
    square_changes: Vec<i64>,
    /// n_columns
    mistake_changes: Vec<i64>,
    group: Group,
}

/// A group of rows.
#[derive(Default)]
struct Group {
    weights: Vec<f64>,
    /// n_rows x n_numeric; NaN where missing.
    values: Vec<f64>,
    /// n_rows x n_numeric; squared errors.
    squares: Vec<i64>,
    /// n_rows; empty if no target has mistakes.
    mistakes: Vec<i64>,
}

/// The weighted squared error of predicting `mean`; 0 if the value is missing.
#[inline(always)]
fn square(fixed: FixedPoint, value: f64, mean: f64, weight: f64) -> i64 {
    let error = value - mean;
    fixed.steps(if error.is_nan() { 0.0 } else { weight * error * error })
}

impl ErrorSums {
    pub(super) fn new(scale: &ErrorScale, n_columns: usize) -> Self {
        let n_numeric = scale.spread.len();
        ErrorSums {
            squares: vec![0; n_numeric],
            mistakes: 0,
            square_changes: vec![0; n_columns * n_numeric],
            mistake_changes: vec![0; n_columns],
            group: Group::default(),
        }
    }

    /// Adds the errors of a group of `rows` at the leaves in `walk`, and the changes by their detours.
    pub(super) fn add(&mut self, judge: Judge<'_>, rows: &[u32], walk: &Walk) {
        let Judge { scale, targets, leaves } = judge;
        self.group.weights.clear();
        self.group.weights.extend(rows.iter().map(|&row| targets.weight(row as usize)));
        match targets.numeric.len() {
            0 => {}
            // With a constant nothing loops over the targets.
            1 => self.add_squares(1, scale.squares, targets, leaves.means(), rows, walk),
            n => self.add_squares(n, scale.squares, targets, leaves.means(), rows, walk),
        }
        if scale.has_mistakes() {
            self.add_mistakes(judge, rows, walk);
        }
    }

    /// Adds squared errors of the `n` numeric targets. Each loop does one thing only, so that many of its reads, which
    /// are scattered, are under way at once.
    #[inline(always)]
    fn add_squares(
        &mut self,
        n: usize,
        fixed: FixedPoint,
        targets: &Targets<'_>,
        means: &[f64],
        rows: &[u32],
        walk: &Walk,
    ) {
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
            squares.extend(values.iter().zip(means).map(|(&value, &mean)| square(fixed, value, mean, weight)));
        }
        for squares in squares.chunks_exact(n) {
            sums.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
        }
        for detour in walk.detours() {
            let (row, column) = (detour.row(), detour.column());
            let (values, squares, means) = (&values[of(row)], &squares[of(row)], &means[of(detour.leaf())]);
            let changes = changes[of(column)].iter_mut().zip(values).zip(squares).zip(means);
            for (((change, &value), &without), &mean) in changes {
                *change += square(fixed, value, mean, weights[row]) - without;
            }
        }
    }

    fn add_mistakes(&mut self, Judge { scale, targets, leaves }: Judge<'_>, rows: &[u32], walk: &Walk) {
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

    /// Adds the error of `row` at `leaf`.
    pub(super) fn stay(&mut self, judge: Judge<'_>, row: u32, leaf: usize) {
        let sums = self.squares.iter_mut();
        sums.zip(judge.squares(row, leaf)).for_each(|(sum, square)| *sum += square);
        self.mistakes += judge.mistakes(row, leaf);
    }

    /// Adds the error of `row` at `leaf`, where it is if `column` is permuted, to the change by that.
    pub(super) fn arrive(&mut self, judge: Judge<'_>, row: u32, leaf: usize, column: usize) {
        self.change(judge, row, leaf, column, 1);
    }

    /// Takes the error of `row` at its `leaf` from the change by `column`, because it arrives elsewhere if that is
    /// permuted.
    pub(super) fn depart(&mut self, judge: Judge<'_>, row: u32, leaf: usize, column: usize) {
        self.change(judge, row, leaf, column, -1);
    }

    fn change(&mut self, judge: Judge<'_>, row: u32, leaf: usize, column: usize, times: i64) {
        let n = self.squares.len();
        let changes = self.square_changes[column * n..(column + 1) * n].iter_mut();
        changes.zip(judge.squares(row, leaf)).for_each(|(change, square)| *change += times * square);
        self.mistake_changes[column] += times * judge.mistakes(row, leaf);
    }

    /// The relative increase of the error for each column; the increase itself if there is no error.
    pub(super) fn importances(&self, scale: &ErrorScale) -> Vec<f64> {
        let n_numeric = self.squares.len();
        let error = |square_changes: &[i64], mistake_change: i64| {
            let relative = |j: usize| {
                let squares = self.squares[j] + square_changes.get(j).copied().unwrap_or(0);
                if scale.spread[j] > 0.0 { (scale.squares.value(squares) / scale.spread[j]).sqrt() } else { 0.0 }
            };
            let numeric: f64 = (0..n_numeric).map(relative).sum();
            numeric / scale.n_targets.max(1.0) + scale.mistakes.value(self.mistakes + mistake_change)
        };
        let base = error(&[], 0);
        let importance = |column: usize| {
            let changes = &self.square_changes[column * n_numeric..(column + 1) * n_numeric];
            if changes.iter().all(|change| *change == 0) && self.mistake_changes[column] == 0 {
                return 0.0;
            }
            let increase = error(changes, self.mistake_changes[column]) - base;
            if base > NO_ERROR { increase / base } else { increase }
        };
        (0..self.mistake_changes.len()).map(importance).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_is_as_fine_as_sums_allow() {
        for (most, total) in [(4.0, 4e3), (4.0, 4e8), (1e-9, 1.0), (1e300, 1e303), (3e-280, 1e-277)] {
            let fixed = FixedPoint::new(most, total);
            for share in [1.0, 0.7, -1.0 / 3.0, 1e-7, 0.0] {
                let (value, steps) = (most * share, fixed.steps(most * share));
                assert!((fixed.value(steps) - value).abs() <= 0.5 / fixed.scale);
                assert!((steps.unsigned_abs() as f64) <= (1u64 << 50) as f64);
            }
            // As many of the greatest terms as the total allows.
            assert!(fixed.steps(most) as f64 * (total / most) <= (1u64 << 61) as f64);
            assert!(total / most > 1e4 || 1.0 / fixed.scale <= most * (0.5f64).powi(49));
        }
        assert_eq!(FixedPoint::new(0.0, 0.0).steps(0.0), 0);
    }
}
