//! Predictions for the rows that a forest was grown on, each by the trees that have it out of bag (Breiman 2001).

use std::ops::Range;

use ferrank_data::profile::MISSING_U16;
use ferrank_data::schema::Kind;
use ferrank_data::store::{Code, CodeStore, Slot, TargetColumn};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;
use rayon::prelude::*;

use super::head::{Head, KeptTarget};
use super::walk::{RoutedTree, RowCodes, rows_of_block};
use crate::context::GrowContext;
use crate::oob::OutOfBagRows;
use crate::view::View;

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
#[derive(Debug)]
pub struct OobPredictions {
    /// Why they are not known.
    unknown: Option<String>,
    n_components: usize,
    /// n_rows x n_components; NaN in rows that no tree has out of bag.
    values: Vec<f64>,
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

/// A tree on the codes of the training data, and its out-of-bag rows.
pub(super) struct OobTree {
    pub(super) tree: RoutedTree,
    pub(super) rows: OutOfBagRows,
}

/// The trees of an ensemble.
pub(super) struct OobRows<'a> {
    pub(super) context: GrowContext<'a>,
    pub(super) trees: Vec<OobTree>,
    /// The targets of the run that they predict.
    pub(super) targets: Vec<usize>,
    /// The components of each target of the run.
    pub(super) components: Vec<Range<usize>>,
}

impl OobPredictions {
    pub(super) fn new(head: &Head, context: GrowContext<'_>, budget: &Budget) -> Self {
        let n_components = head.n_components();
        let mut oob = OobPredictions { unknown: None, n_components, values: Vec::new(), scores: Vec::new() };
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
            oob.values = vec![f64::NAN; n];
        }
        oob
    }

    /// Forgets the predictions, because of `reason`.
    pub(super) fn give_up(&mut self, reason: &str) {
        self.unknown = Some(reason.into());
        self.values = Vec::new();
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

    /// Predicts the rows of an ensemble.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub(super) fn add(&mut self, mut ensemble: OobRows<'_>) -> Result<()> {
        let features = tested(&mut ensemble.trees);
        let store = ensemble.context.store;
        let is_narrow = features.iter().all(|&feature| matches!(store.slots[feature as usize], Slot::Narrow(_)));
        match is_narrow {
            true => ensemble.predict::<u8>(&features, self.n_components, &mut self.values),
            false => ensemble.predict::<u16>(&features, self.n_components, &mut self.values),
        }
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

/// The features that trees test, ascending. In the steps of the trees, columns become positions among them.
fn tested(trees: &mut [OobTree]) -> Vec<u32> {
    let steps = trees.iter().flat_map(|tree| &tree.tree.packed.steps);
    let mut features: Vec<u32> = Vec::new();
    for step in steps {
        if features.len() <= step.column as usize {
            features.resize(step.column as usize + 1, 0);
        }
        features[step.column as usize] = 1;
    }
    let mut n_tested = 0;
    for position in &mut features {
        n_tested += *position;
        *position = n_tested - *position;
    }
    for tree in trees.iter_mut() {
        tree.tree.packed.steps.iter_mut().for_each(|step| step.column = features[step.column as usize]);
    }
    let ends = features.iter().skip(1).copied().chain([n_tested]);
    (0..).zip(features.iter().copied().zip(ends)).filter(|(_, (start, end))| start < end).map(|(f, _)| f).collect()
}

impl OobRows<'_> {
    fn predict<C: Code>(&self, features: &[u32], n_components: usize, values: &mut [f64]) -> Result<()> {
        let n_all = values.len() / n_components;
        let n_rows = rows_of_block(n_all, features.len().max(n_components), rayon::current_num_threads());
        let blocks = values.par_chunks_mut(n_rows * n_components).enumerate();
        blocks.try_for_each(|(number, values)| {
            self.context.monitor.check()?;
            let first = number * n_rows;
            let n = values.len() / n_components;
            let codes = gather::<C>(self.context.store, first, n, features);
            let codes = RowCodes { codes: &codes, n_columns: features.len() };
            let (mut sums, mut counts) = (vec![0.0; values.len()], vec![0u32; n]);
            let (mut rows, mut leaves) = (Vec::new(), Vec::new());
            for OobTree { tree, rows: out_of_bag } in &self.trees {
                rows.clear();
                rows.extend((0..n as u32).filter(|&row| out_of_bag.contains(first + row as usize)));
                leaves.clear();
                leaves.resize(rows.len(), 0);
                tree.leaves(&codes, &rows, &mut leaves);
                tree.add(&rows, &leaves, n_components, &mut sums);
                rows.iter().for_each(|&row| counts[row as usize] += 1);
            }
            for (row, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                for range in self.targets.iter().map(|&target| self.components[target].clone()) {
                    let cells = row * n_components + range.start..row * n_components + range.end;
                    for (value, sum) in values[cells.clone()].iter_mut().zip(&sums[cells]) {
                        *value = sum / f64::from(count);
                    }
                }
            }
            Ok(())
        })
    }
}

/// The codes of `n` rows of `store` from row `first` on, row after row.
fn gather<C: Code>(store: &CodeStore, first: usize, n: usize, features: &[u32]) -> Vec<C> {
    let view = View::from_codes(store, first);
    let rows: Vec<u32> = (0..n as u32).collect();
    let mut codes = vec![C::MISSING; n * features.len()];
    let (mut narrow, mut wide) = (Vec::<u8>::new(), Vec::<u16>::new());
    let mut write = |column: usize, read: &mut dyn Iterator<Item = C>| {
        for (row, code) in read.enumerate() {
            codes[row * features.len() + column] = code;
        }
    };
    for (column, &feature) in features.iter().enumerate() {
        match store.slots[feature as usize] {
            Slot::Narrow(slot) => {
                write(column, &mut view.take(slot, &rows, &mut narrow).iter().map(|&code| widen(code)))
            }
            Slot::Wide(slot) => {
                write(column, &mut view.take(slot, &rows, &mut wide).iter().map(|&code| C::from_u16(code)));
            }
            Slot::Sparse(number) => {
                write(column, &mut view.take_sparse(number, &rows, &mut wide).iter().map(|&code| C::from_u16(code)));
            }
        }
    }
    codes
}

/// A code of one byte as one of another type; missing stays missing.
fn widen<C: Code>(code: u8) -> C {
    if code == u8::MISSING { C::MISSING } else { C::from_u16(u16::from(code)) }
}
