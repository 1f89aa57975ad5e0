//! What leaves predict for the out-of-bag rows, and how wrong that is.
//!
//! The error is the mean over the targets of the relative root squared error (numeric) and the share of
//! mistakes (nominal); on labels that mean is the Hamming loss. Label sets of a hierarchy are one target,
//! whose error is the Hamming loss with the labels' shares for weights. A leaf predicts the labels that
//! more than half of its members have, so with each label those above it.

use crate::forest::bag::Bag;
use crate::forest::grown::Grown;
use crate::labels::{LabelColumn, compare};
use crate::profile::MISSING_U16;
use crate::store::{CodeStore, TargetColumn};

/// Errors up to this are what rounding leaves of none; they are relative to that of the mean.
const NO_ERROR: f64 = 1e-12;

/// The targets a tree predicts, by kind.
pub(super) struct Targets<'a> {
    numeric: Vec<Numeric<'a>>,
    /// Codes, and the number of classes.
    nominal: Vec<(&'a [u16], usize)>,
    sets: Vec<Sets<'a>>,
    weights: &'a [f64],
}

/// Label sets, and the share of each label.
struct Sets<'a> {
    labels: &'a LabelColumn,
    shares: Vec<f64>,
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
    pub(super) fn new(store: &'a CodeStore, subset: &[usize]) -> Self {
        let mut targets =
            Targets { numeric: Vec::new(), nominal: Vec::new(), sets: Vec::new(), weights: &store.weights };
        for &target in subset {
            match &store.targets[target] {
                TargetColumn::Numeric(values) => targets.numeric.push(Numeric::new(values)),
                TargetColumn::Nominal { categories, codes } => targets.nominal.push((codes, categories.names.len())),
                TargetColumn::Labels(labels) => targets.sets.push(Sets { labels, shares: labels.shares() }),
            }
        }
        targets
    }

    fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }
}

/// What each leaf predicts: the mean, the most frequent class (the first of equals), and the labels that
/// most have.
pub(super) struct Leaves {
    n_numeric: usize,
    n_nominal: usize,
    n_sets: usize,
    /// n_leaves x n_numeric
    means: Vec<f64>,
    /// n_leaves x n_nominal
    classes: Vec<u16>,
    /// n_leaves x n_sets; ascending labels.
    sets: Vec<Vec<u32>>,
}

/// One leaf's predictions.
#[derive(Clone, Copy)]
pub(super) struct Prediction<'a> {
    means: &'a [f64],
    classes: &'a [u16],
    sets: &'a [Vec<u32>],
}

impl Leaves {
    pub(super) fn new(targets: &Targets<'_>, tree: &Grown, bag: &Bag) -> Self {
        let (n_numeric, n_nominal, n_sets) = (targets.numeric.len(), targets.nominal.len(), targets.sets.len());
        let (means, classes, sets) = (Vec::new(), Vec::new(), Vec::new());
        let mut leaves = Leaves { n_numeric, n_nominal, n_sets, means, classes, sets };
        let everyone: Vec<(u32, u32)> = bag.rows.iter().copied().zip(bag.counts.iter().copied()).collect();
        let means: Vec<f64> = targets.numeric.iter().map(|y| mean(y, targets, &everyone).unwrap_or(0.0)).collect();
        let mut counts = vec![0.0; targets.nominal.iter().map(|(_, classes)| *classes).max().unwrap_or(0)];
        let classes: Vec<u16> =
            targets.nominal.iter().map(|(y, _)| majority(y, targets, &everyone, &mut counts).unwrap_or(0)).collect();
        let n_labels = targets.sets.iter().map(|sets| sets.shares.len()).max().unwrap_or(0);
        let mut weights = vec![0.0; n_labels];
        let sets: Vec<Vec<u32>> = (targets.sets.iter())
            .map(|sets| most_have(sets.labels, targets, &everyone, &mut weights).unwrap_or_default())
            .collect();
        for members in tree.leaf_members() {
            for (y, whole) in targets.numeric.iter().zip(&means) {
                leaves.means.push(mean(y, targets, members).unwrap_or(*whole));
            }
            for ((y, _), whole) in targets.nominal.iter().zip(&classes) {
                leaves.classes.push(majority(y, targets, members, &mut counts).unwrap_or(*whole));
            }
            for (y, whole) in targets.sets.iter().zip(&sets) {
                let set = most_have(y.labels, targets, members, &mut weights);
                leaves.sets.push(set.unwrap_or_else(|| whole.clone()));
            }
        }
        leaves
    }

    pub(super) fn of(&self, leaf: u32) -> Prediction<'_> {
        let leaf = leaf as usize;
        Prediction {
            means: &self.means[leaf * self.n_numeric..(leaf + 1) * self.n_numeric],
            classes: &self.classes[leaf * self.n_nominal..(leaf + 1) * self.n_nominal],
            sets: &self.sets[leaf * self.n_sets..(leaf + 1) * self.n_sets],
        }
    }
}

/// Weighted mean over the members whose value is known.
fn mean(values: &Numeric<'_>, targets: &Targets<'_>, members: &[(u32, u32)]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for &(row, count) in members {
        let value = values.at(row as usize);
        if !value.is_nan() {
            let weight = f64::from(count) * targets.weight(row as usize);
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

/// The labels that more than half of the members have, by weight, of those whose labels are known;
/// `weights` is scratch of zeros.
fn most_have(
    labels: &LabelColumn,
    targets: &Targets<'_>,
    members: &[(u32, u32)],
    weights: &mut [f64],
) -> Option<Vec<u32>> {
    let (mut found, mut total) = (Vec::new(), 0.0);
    for &(row, count) in members {
        if let Some(set) = labels.of(row as usize) {
            let weight = f64::from(count) * targets.weight(row as usize);
            total += weight;
            for &label in set {
                if weights[label as usize] == 0.0 {
                    found.push(label);
                }
                weights[label as usize] += weight;
            }
        }
    }
    found.sort_unstable();
    found.retain(|&label| std::mem::take(&mut weights[label as usize]) > total / 2.0);
    (total > 0.0).then_some(found)
}

/// How the errors of the targets make one number.
pub(super) struct Errors {
    /// n_numeric; sum of squares around the mean of the rows looked at, 0 where a target says nothing.
    spread: Vec<f64>,
    /// n_nominal; what a mistake on a row of weight 1 adds.
    mistake: Vec<f64>,
    /// n_sets; what a row of weight 1 adds that has all labels for none.
    difference: Vec<f64>,
    /// Targets that count.
    n_targets: f64,
}

impl Errors {
    pub(super) fn new(targets: &Targets<'_>, rows: &[u32]) -> Self {
        let members: Vec<(u32, u32)> = rows.iter().map(|&row| (row, 1)).collect();
        let spread = |y: &Numeric<'_>| {
            let Some(mean) = mean(y, targets, &members) else { return 0.0 };
            let known = rows.iter().map(|&row| row as usize).filter(|&row| !y.at(row).is_nan());
            known.map(|row| targets.weight(row) * (y.at(row) - mean).powi(2)).sum()
        };
        let spread: Vec<f64> = targets.numeric.iter().map(spread).collect();
        let weight = |is_known: &dyn Fn(usize) -> bool| -> f64 {
            let known = rows.iter().map(|&row| row as usize).filter(|&row| is_known(row));
            known.map(|row| targets.weight(row)).sum()
        };
        let nominal = targets.nominal.iter().map(|(codes, _)| weight(&|row| codes[row] != MISSING_U16));
        let sets = targets.sets.iter().map(|sets| weight(&|row| sets.labels.of(row).is_some()));
        let (nominal, sets): (Vec<f64>, Vec<f64>) = (nominal.collect(), sets.collect());
        let n_targets = spread.iter().chain(&nominal).chain(&sets).filter(|&&size| size > 0.0).count() as f64;
        let share = |&weight: &f64| if weight > 0.0 { 1.0 / (n_targets * weight) } else { 0.0 };
        let (mistake, difference) = (nominal.iter().map(share).collect(), sets.iter().map(share).collect());
        Errors { spread, mistake, difference, n_targets }
    }

    /// Share of the error rate that `prediction` makes for `row` on the nominal targets and label sets.
    fn mistakes(&self, targets: &Targets<'_>, row: usize, prediction: Prediction<'_>) -> f64 {
        let mut sum = 0.0;
        for (((codes, _), &class), mistake) in targets.nominal.iter().zip(prediction.classes).zip(&self.mistake) {
            let code = codes[row];
            sum += if code != class && code != MISSING_U16 { *mistake } else { 0.0 };
        }
        for ((sets, predicted), difference) in targets.sets.iter().zip(prediction.sets).zip(&self.difference) {
            if let Some(set) = sets.labels.of(row) {
                sum += compare(set, predicted, &sets.shares).0 * difference;
            }
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
