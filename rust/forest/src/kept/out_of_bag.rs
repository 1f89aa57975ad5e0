//! Predictions for the rows that a forest was grown on, each by the trees that have it out of bag (Breiman 2001).

use std::ops::Range;

use ferrank_data::profile::MISSING_U16;
use ferrank_data::schema::Kind;
use ferrank_data::store::{CodeStore, TargetColumn};
use ferrank_runtime::budget::Budget;

use super::head::{Head, KeptTarget};
use super::walk::LeafValues;
use crate::context::GrowContext;

/// Predictions for the rows that a forest was grown on.
///
/// ```
/// use ferrank_forest::OobPredictions;
///
/// let mean = |oob: &OobPredictions| -> Option<f64> {
///     let values = oob.values().ok()?;
///     Some(values.iter().sum::<f64>() / values.len() as f64)
/// };
/// # let _ = mean;
/// ```
#[derive(Debug, Default)]
pub struct OobPredictions {
    /// Why they are not known.
    unknown: Option<String>,
    n_components: usize,
    /// n_rows x n_components; sums over trees, and means after `average`. NaN in rows that no tree has out of bag.
    values: Vec<f64>,
    /// n_rows; the trees of an ensemble that have the row out of bag.
    counts: Vec<u32>,
    scores: Vec<OobScore>,
}

/// How well a target is predicted in the rows that are out of bag.
///
/// ```
/// use ferrank_forest::OobScore;
///
/// let is_good = |score: &OobScore| score.measure == "accuracy" && score.value > 0.9;
/// # let _ = is_good;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OobScore {
    /// The name of the target.
    pub target: String,
    /// `R²` of numbers, `accuracy` of classes, `label accuracy` of label sets: 1 − Hamming loss.
    pub measure: &'static str,
    /// The value; NaN if it is not defined, as for a constant target.
    pub value: f64,
    /// Number of rows that it is of.
    pub n_rows: u64,
}

/// The leaves that the out-of-bag rows of a tree reach, and what leaves predict.
pub(super) struct OobTree {
    /// The rows, ascending.
    pub(super) rows: Vec<u32>,
    /// The leaf of each of them.
    pub(super) leaves: Vec<u32>,
    /// The node of each leaf.
    pub(super) leaf_nodes: Vec<u32>,
    pub(super) values: LeafValues,
}

impl OobPredictions {
    pub(super) fn new(head: &Head, context: GrowContext<'_>, budget: &Budget) -> Self {
        let n_components = head.n_components();
        let mut oob = OobPredictions { unknown: None, n_components, ..OobPredictions::default() };
        let n = (head.n_rows as usize).saturating_mul(n_components);
        let left = budget.left();
        if n_components == 0 {
            oob.give_up("task: there is no target");
        } else if !context.params.bootstraps() {
            oob.give_up("bootstrap: no row is out of bag without it");
        } else if n.saturating_mul(size_of::<f64>()) > left / 2 {
            let what =
                format!("memory_limit: {n_components} numbers for each of {} rows do not fit; raise it", head.n_rows);
            oob.give_up(&what);
        } else {
            (oob.values, oob.counts) = (vec![0.0; n], vec![0; head.n_rows as usize]);
        }
        oob
    }

    /// Forgets the predictions, because of `reason`.
    pub(super) fn give_up(&mut self, reason: &str) {
        self.unknown = Some(reason.into());
        (self.values, self.counts) = (Vec::new(), Vec::new());
        self.scores.clear();
    }

    pub(super) fn is_known(&self) -> bool {
        self.unknown.is_none()
    }

    /// The predictions, n_rows x n_components: means, and shares of classes and labels. NaN in rows that no tree has out of
    /// bag. Rows are those that take part, in their order.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn values(&self) -> std::result::Result<&[f64], &str> {
        self.unknown.as_deref().map_or(Ok(&self.values), Err)
    }

    /// The predictions; none if they are not known.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Number of predictions for a row.
    pub fn n_components(&self) -> usize {
        self.n_components
    }

    /// How well each target is predicted.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn scores(&self) -> std::result::Result<&[OobScore], &str> {
        self.unknown.as_deref().map_or(Ok(&self.scores), Err)
    }

    /// Adds what a tree predicts. The sums have the same bits if trees come in the same order.
    pub(super) fn add(&mut self, tree: &OobTree) {
        if self.unknown.is_none() {
            let OobTree { rows, leaves, leaf_nodes, values } = tree;
            values.add(leaf_nodes, (rows, leaves), self.n_components, &mut self.values);
            rows.iter().for_each(|&row| self.counts[row as usize] += 1);
        }
    }

    /// Divides the sums of `components` by the number of trees that have the row out of bag. Called once for each
    /// ensemble, with the components that it predicts, after all of its trees were added.
    pub(super) fn average(&mut self, components: &[Range<usize>]) {
        if self.unknown.is_some() {
            return;
        }
        for (values, &count) in self.values.chunks_exact_mut(self.n_components).zip(&self.counts) {
            for range in components {
                values[range.clone()].iter_mut().for_each(|value| *value /= f64::from(count));
            }
        }
        self.counts.fill(0);
    }

    /// Computes the scores from the targets in `store`.
    pub(super) fn judge(&mut self, head: &Head, store: &CodeStore) {
        if self.unknown.is_some() {
            return;
        }
        let targets = head.targets.iter().zip(head.components()).zip(store.targets.iter());
        let score = |((target, range), column): ((&KeptTarget, Range<usize>), &TargetColumn)| {
            let rows = (0..store.rows).map(|row| {
                let weight = store.weights.get(row).copied().unwrap_or(1.0);
                (row, weight, &self.values[row * self.n_components..][range.clone()])
            });
            let rows =
                rows.filter(|(row, _, predicted)| column.is_known(*row) && predicted.iter().all(|x| !x.is_nan()));
            judge(target, column, rows)
        };
        self.scores = targets.map(score).collect();
    }
}

/// The score of a target, from rows with their weights and predictions.
fn judge<'a>(
    target: &KeptTarget,
    column: &TargetColumn,
    rows: impl Iterator<Item = (usize, f64, &'a [f64])> + Clone,
) -> OobScore {
    let n_rows = rows.clone().count() as u64;
    let weights: f64 = rows.clone().map(|(_, weight, _)| weight).sum();
    let mean = |of: &dyn Fn(usize, &[f64]) -> f64| {
        rows.clone().map(|(row, weight, predicted)| weight * of(row, predicted)).sum::<f64>() / weights
    };
    let (measure, value) = match column {
        TargetColumn::Numeric(values) => {
            let center = mean(&|row, _| values[row]);
            let [error, spread] = [
                mean(&|row, predicted| (values[row] - predicted[0]).powi(2)),
                mean(&|row, _| (values[row] - center).powi(2)),
            ];
            ("R²", if spread > 0.0 { 1.0 - error / spread } else { f64::NAN })
        }
        TargetColumn::Nominal { codes, .. } => {
            let is_right =
                |row: usize, predicted: &[f64]| codes[row] != MISSING_U16 && most(predicted) == usize::from(codes[row]);
            ("accuracy", mean(&|row, predicted| f64::from(is_right(row, predicted))))
        }
        TargetColumn::Labels(labels) => {
            let n_right = |row: usize, predicted: &[f64]| {
                let set = labels.of(row).unwrap_or(&[]);
                let has = |label: usize| set.binary_search(&(label as u32)).is_ok();
                let right = predicted.iter().enumerate().filter(|&(label, &share)| (share > 0.5) == has(label));
                right.count() as f64 / predicted.len().max(1) as f64
            };
            ("label accuracy", mean(&n_right))
        }
    };
    debug_assert!(target.kind != Kind::Numeric || measure == "R²");
    OobScore { target: target.name.clone(), measure, value, n_rows }
}

/// The position of the greatest number, the first of equal ones.
pub(super) fn most(shares: &[f64]) -> usize {
    let mut best = 0;
    for (number, share) in shares.iter().enumerate() {
        if *share > shares[best] {
            best = number;
        }
    }
    best
}
