//! What leaves predict for the out-of-bag rows, and how wrong that is.
//!
//! The error is the mean over the targets of the relative root squared error (numeric) and the share of
//! mistakes (nominal); on labels that mean is the Hamming loss.

use super::OutOfBag;
use crate::forest::grown::Grown;
use crate::profile::MISSING_U16;
use crate::store::{CodeStore, TargetColumn};

/// Errors up to this are what rounding leaves of none; they are relative to that of the mean.
const NO_ERROR: f64 = 1e-12;

/// The targets a tree predicts, by kind.
pub(crate) struct Targets<'a> {
    numeric: Vec<Numeric<'a>>,
    /// Codes, and the number of classes.
    nominal: Vec<(&'a [u16], usize)>,
    weights: &'a [f64],
    /// Positions of the targets among those of the store.
    subset: Vec<usize>,
}

/// A numeric target seen on the scale from −1 to 1: errors are relative, and squares do not overflow.
struct Numeric<'a> {
    values: &'a [f64],
    middle: f64,
    half_range: f64,
}

impl<'a> Numeric<'a> {
    fn new(values: &'a [f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let half_range = high / 2.0 - low / 2.0;
        Numeric {
            values,
            middle: f64::midpoint(low, high),
            half_range: if half_range > 0.0 { half_range } else { 1.0 },
        }
    }

    /// NaN where missing.
    #[inline(always)]
    fn at(&self, row: usize) -> f64 {
        (self.values[row] - self.middle) / self.half_range
    }
}

impl<'a> Targets<'a> {
    /// Targets `subset` of `store`.
    pub(crate) fn new(store: &'a CodeStore, subset: &[usize]) -> Self {
        let mut targets =
            Targets { numeric: Vec::new(), nominal: Vec::new(), weights: &store.weights, subset: subset.to_vec() };
        for &target in subset {
            match &store.targets[target] {
                TargetColumn::Numeric(values) => targets.numeric.push(Numeric::new(values)),
                TargetColumn::Nominal { categories, codes } => targets.nominal.push((codes, categories.names.len())),
            }
        }
        targets
    }

    /// The same targets, on the same scales, of other rows: those of these columns of the store's targets.
    pub(crate) fn over<'b>(&self, columns: &'b [TargetColumn], weights: &'b [f64]) -> Targets<'b> {
        let mut targets = Targets { numeric: Vec::new(), nominal: Vec::new(), weights, subset: self.subset.clone() };
        let mut scales = self.numeric.iter();
        for &target in &self.subset {
            match (&columns[target], scales.clone().next()) {
                (TargetColumn::Numeric(values), Some(&Numeric { middle, half_range, .. })) => {
                    scales.next();
                    targets.numeric.push(Numeric { values, middle, half_range });
                }
                (TargetColumn::Nominal { categories, codes }, _) => {
                    targets.nominal.push((codes, categories.names.len()));
                }
                (TargetColumn::Numeric(_), None) => unreachable!("columns of the same kinds"),
            }
        }
        targets
    }

    /// Whether some value is missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.numeric.iter().any(|y| y.values.iter().any(|value| value.is_nan()))
            || self.nominal.iter().any(|(codes, _)| codes.contains(&MISSING_U16))
    }

    fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }
}

/// What is predicted for the rows of a leaf, row by row.
#[derive(Debug, Default)]
pub(crate) struct LeafSums {
    /// n_numeric; weighted sum and weight of the values that are known.
    numeric: Vec<(f64, f64)>,
    /// n_nominal; weight by class.
    nominal: Vec<Vec<f64>>,
}

impl LeafSums {
    pub(crate) fn new(targets: &Targets<'_>) -> Self {
        LeafSums {
            numeric: vec![(0.0, 0.0); targets.numeric.len()],
            nominal: targets.nominal.iter().map(|(_, classes)| vec![0.0; *classes]).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numeric.is_empty() && self.nominal.is_empty()
    }

    /// Adds `count` copies of `row`; rows come in ascending order.
    pub(crate) fn add(&mut self, targets: &Targets<'_>, row: usize, count: u32) {
        let weight = f64::from(count) * targets.weight(row);
        for ((sum, total), y) in self.numeric.iter_mut().zip(&targets.numeric) {
            let value = y.at(row);
            if !value.is_nan() {
                *sum += weight * value;
                *total += weight;
            }
        }
        for (weights, (codes, _)) in self.nominal.iter_mut().zip(&targets.nominal) {
            if codes[row] != MISSING_U16 {
                weights[usize::from(codes[row])] += weight;
            }
        }
    }

    /// Means of the numeric targets.
    fn means(&self) -> impl Iterator<Item = Option<f64>> {
        self.numeric.iter().map(|&(sum, total)| (total > 0.0).then(|| sum / total))
    }

    /// Most frequent classes of the nominal targets.
    fn classes(&self) -> impl Iterator<Item = Option<u16>> {
        self.nominal.iter().map(|weights| {
            let most = weights.iter().copied().fold(0.0, f64::max);
            (most > 0.0).then(|| weights.iter().position(|&weight| weight == most))?.map(|class| class as u16)
        })
    }
}

/// What each leaf predicts: the mean, and the most frequent class (the first of equals).
pub(super) struct Leaves {
    n_numeric: usize,
    n_nominal: usize,
    /// Predictions for leaves where nothing is known.
    whole_means: Vec<f64>,
    whole_classes: Vec<u16>,
    /// n_leaves x n_numeric
    means: Vec<f64>,
    /// n_leaves x n_nominal
    classes: Vec<u16>,
    /// Weights by class, all 0.
    counts: Vec<f64>,
}

/// One leaf's predictions.
#[derive(Clone, Copy)]
pub(super) struct Prediction<'a> {
    means: &'a [f64],
    classes: &'a [u16],
}

impl Leaves {
    /// None yet; `everyone` are the sums of the whole bag.
    pub(super) fn new(targets: &Targets<'_>, everyone: &LeafSums) -> Self {
        Leaves {
            n_numeric: targets.numeric.len(),
            n_nominal: targets.nominal.len(),
            whole_means: everyone.means().map(|mean| mean.unwrap_or(0.0)).collect(),
            whole_classes: everyone.classes().map(|class| class.unwrap_or(0)).collect(),
            means: Vec::new(),
            classes: Vec::new(),
            counts: vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)],
        }
    }

    /// Adds the leaf whose members have these sums.
    pub(super) fn add(&mut self, sums: &LeafSums) {
        self.means.extend(sums.means().zip(&self.whole_means).map(|(mean, whole)| mean.unwrap_or(*whole)));
        self.classes.extend(sums.classes().zip(&self.whole_classes).map(|(class, whole)| class.unwrap_or(*whole)));
    }

    /// Adds the leaves of `grown`, whose members are rows of `targets`.
    pub(super) fn add_members(&mut self, targets: &Targets<'_>, grown: &Grown) {
        for members in grown.leaf_members() {
            for (y, whole) in targets.numeric.iter().zip(&self.whole_means) {
                let known = members.iter().map(|&(row, count)| (row as usize, count));
                self.means.push(mean(y, targets, known).unwrap_or(*whole));
            }
            for ((y, _), whole) in targets.nominal.iter().zip(&self.whole_classes) {
                self.classes.push(majority(y, targets, members, &mut self.counts).unwrap_or(*whole));
            }
        }
    }

    pub(super) fn of(&self, leaf: u32) -> Prediction<'_> {
        let leaf = leaf as usize;
        Prediction {
            means: &self.means[leaf * self.n_numeric..(leaf + 1) * self.n_numeric],
            classes: &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal],
        }
    }
}

/// Weighted mean over the members whose value is known.
fn mean(values: &Numeric<'_>, targets: &Targets<'_>, members: impl Iterator<Item = (usize, u32)>) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, count) in members {
        let value = values.at(row);
        if !value.is_nan() {
            let weight = f64::from(count) * targets.weight(row);
            sum += weight * value;
            total += weight;
        }
    }
    (total > 0.0).then(|| sum / total)
}

/// The class of most weight among the members whose class is known; `counts` is scratch of zeros.
fn majority(codes: &[u16], targets: &Targets<'_>, members: &[(u32, u32)], counts: &mut [f64]) -> Option<u16> {
    let mut best: Option<(f64, u16)> = None;
    for &(row, count) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            counts[usize::from(code)] += f64::from(count) * targets.weight(row as usize);
        }
    }
    for &(row, _) in members {
        let code = codes[row as usize];
        if code != MISSING_U16 {
            let weight = std::mem::take(&mut counts[usize::from(code)]);
            if best.is_none_or(|(most, first)| weight > most || (weight == most && code < first)) {
                best = Some((weight, code));
            }
        }
    }
    best.map(|(_, code)| code)
}

/// How the errors of the targets make one number.
pub(super) struct Errors {
    /// n_numeric; sum of squares around the mean of the rows looked at, 0 where a target says nothing.
    spread: Vec<f64>,
    /// n_nominal; what a mistake on a row of weight 1 adds.
    mistake: Vec<f64>,
    /// Targets that count.
    n_targets: f64,
}

impl Errors {
    pub(super) fn new(targets: &Targets<'_>, rows: &OutOfBag) -> Self {
        let spread = |y: &Numeric<'_>| {
            let Some(mean) = mean(y, targets, rows.iter().map(|row| (row, 1))) else { return 0.0 };
            let known = rows.iter().filter(|&row| !y.at(row).is_nan());
            known.map(|row| targets.weight(row) * (y.at(row) - mean).powi(2)).sum()
        };
        let spread: Vec<f64> = targets.numeric.iter().map(spread).collect();
        let weight = |(codes, _): &(&[u16], usize)| -> f64 {
            let known = rows.iter().filter(|&row| codes[row] != MISSING_U16);
            known.map(|row| targets.weight(row)).sum()
        };
        let weights: Vec<f64> = targets.nominal.iter().map(weight).collect();
        let n_targets = spread.iter().chain(&weights).filter(|&&size| size > 0.0).count() as f64;
        let mistake = weights.iter().map(|&w| if w > 0.0 { 1.0 / (n_targets * w) } else { 0.0 }).collect();
        Errors { spread, mistake, n_targets }
    }

    /// Share of the error rate that `prediction` makes for `row` on the nominal targets.
    fn mistakes(&self, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) -> f64 {
        let mut sum = 0.0;
        for (((codes, _), &class), mistake) in targets.nominal.iter().zip(prediction.classes).zip(&self.mistake) {
            let code = codes[row];
            sum += if code != class && code != MISSING_U16 { *mistake } else { 0.0 };
        }
        targets.weight(row) * sum
    }
}

/// Errors of the tree as it is, and how they change with each feature.
pub(super) struct Sums {
    /// n_numeric
    squares: Vec<f64>,
    mistakes: f64,
    /// n_places x n_numeric
    square_changes: Vec<f64>,
    /// n_places
    mistake_changes: Vec<f64>,
    row: RowErrors,
}

/// The row at hand.
#[derive(Default)]
struct RowErrors {
    weight: f64,
    /// n_numeric; NaN where missing.
    values: Vec<f64>,
    /// n_numeric
    squares: Vec<f64>,
    mistakes: f64,
}

impl RowErrors {
    /// Squared error of predicting `mean` for numeric target `j`.
    #[inline(always)]
    fn square(&self, j: usize, mean: f64) -> f64 {
        let error = self.values[j] - mean;
        if error.is_nan() { 0.0 } else { self.weight * error * error }
    }
}

impl Sums {
    pub(super) fn new(errors: &Errors, n_places: usize) -> Self {
        let n_numeric = errors.spread.len();
        Sums {
            squares: vec![0.0; n_numeric],
            mistakes: 0.0,
            square_changes: vec![0.0; n_places * n_numeric],
            mistake_changes: vec![0.0; n_places],
            row: RowErrors::default(),
        }
    }

    /// Adds the errors of `row`, which becomes the row at hand.
    pub(super) fn add(&mut self, errors: &Errors, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) {
        let at_hand = &mut self.row;
        at_hand.weight = targets.weight(row);
        at_hand.values.clear();
        at_hand.values.extend(targets.numeric.iter().map(|target| target.at(row)));
        at_hand.squares.clear();
        for (j, &mean) in prediction.means.iter().enumerate() {
            let square = at_hand.square(j, mean);
            at_hand.squares.push(square);
            self.squares[j] += square;
        }
        at_hand.mistakes = errors.mistakes(targets, row, prediction);
        self.mistakes += at_hand.mistakes;
    }

    /// Adds the change for the row at hand, `row`, when the feature at `place` leads it to `prediction`.
    pub(super) fn add_change(
        &mut self,
        errors: &Errors,
        targets: &Targets<'_>,
        row: usize,
        place: usize,
        prediction: Prediction<'_>,
    ) {
        let n_numeric = self.squares.len();
        let changes = &mut self.square_changes[place * n_numeric..(place + 1) * n_numeric];
        for ((j, change), &mean) in changes.iter_mut().enumerate().zip(prediction.means) {
            *change += self.row.square(j, mean) - self.row.squares[j];
        }
        self.mistake_changes[place] += errors.mistakes(targets, row, prediction) - self.row.mistakes;
    }

    /// The relative increase of the error for each place; the increase itself if there is no error.
    pub(super) fn importances(&self, errors: &Errors) -> Vec<f64> {
        let n_numeric = self.squares.len();
        let error = |square_changes: &[f64], mistake_change: f64| {
            let relative = |j: usize| {
                let squares = self.squares[j] + square_changes.get(j).copied().unwrap_or(0.0);
                if errors.spread[j] > 0.0 { (squares.max(0.0) / errors.spread[j]).sqrt() } else { 0.0 }
            };
            let numeric: f64 = (0..n_numeric).map(relative).sum();
            numeric / errors.n_targets.max(1.0) + (self.mistakes + mistake_change)
        };
        let base = error(&[], 0.0);
        let importance = |place: usize| {
            let changes = &self.square_changes[place * n_numeric..(place + 1) * n_numeric];
            if changes.iter().all(|change| *change == 0.0) && self.mistake_changes[place] == 0.0 {
                return 0.0;
            }
            let increase = error(changes, self.mistake_changes[place]) - base;
            if base > NO_ERROR { increase / base } else { increase }
        };
        (0..self.mistake_changes.len()).map(importance).collect()
    }
}
