//! Importances by measures of label sets.
//!
//! The importance of a feature is the relative increase of a measure e when the feature is permuted, (e(OOB_i) − e(OOB))
//! / e(OOB), and its negative where more is better (Petković et al. 2023, Eq. 4); the increase itself if e(OOB) is 0.
//! Rows with a label that is not known are left out. The scores of labels are their shares in the leaf; the predicted
//! labels are those that the tree predicts for other purposes, so that the Hamming loss is the error of
//! [`errors`](super::errors). Labels that no row of the data set has are none.
//!
//! Most measures are no sums over rows, so that each is computed from the leaves of all rows. Only rows that a permuted
//! feature leads to another leaf have other terms than before.
//!
//! Memory: detours of at most [`DETOURS_PER_ROW`] features for each row, on average. Rows are walked again for further
//! features.

use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::TargetColumn;
use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
use ferrank_runtime::error::Result;

use super::errors::NO_ERROR;
use super::ring::Ring;
use super::walk::{Walk, walk_all};
use crate::context::GrowContext;
use crate::oob::{OobSize, OobView};
use crate::paired::WalkedCode;

/// The number of detours that are held at once, for each row. Paths rarely have more; those of tests do.
const DETOURS_PER_ROW: usize = if cfg!(test) { 2 } else { 16 };

/// Importances of features: (feature, value) by ascending feature.
type Importances = Vec<(u32, f64)>;

/// For each of `measures` the importances of the features that `view.tree` tests.
///
/// # Errors
/// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request,
/// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full.
pub(crate) fn importances(view: &OobView<'_>, measures: &[Measure]) -> Result<Vec<Importances>> {
    let features = &view.tree.columns.features;
    let rows = view.rows_with_all_labels();
    let weight: f64 = rows.iter().map(|row| view.targets.weight(row)).sum();
    let mut importances = vec![Vec::with_capacity(features.len()); measures.len()];
    if features.is_empty() || weight <= 0.0 {
        return Ok(importances);
    }
    let ring = Ring::new(view, &rows, &view.tree.columns)?;
    let labels = Labels::new(view);
    let (sets, predictions) = (labels.sets(view, ring.rows()), labels.predictions(view));
    let weights = ring.rows().iter().map(|&row| view.targets.weight(row as usize)).collect();
    let judge = Judge::new(&sets, &predictions, measures, Conventions::Textbook);
    let mut judge = judge.with_label_weights(labels.weights).with_row_weights(weights);
    let mut first = 0;
    while first < features.len() {
        let mut detours = Detours::new(first, features.len(), ring.rows().len());
        match view.tree.columns.is_narrow() {
            true => detours.walk::<u8>(view, &ring)?,
            false => detours.walk::<u16>(view, &ring)?,
        }
        let before = judge.judge(&detours.leaves);
        for (column, &feature) in features.iter().enumerate().take(detours.end).skip(first) {
            view.context.monitor.check()?;
            let changes = detours.of(column);
            let after = if changes.is_empty() { before.clone() } else { judge.judge_with(&changes) };
            for (place, measure) in measures.iter().enumerate() {
                importances[place].push((feature, relative_loss(*measure, before[place], after[place])));
            }
        }
        first = detours.end;
    }
    importances.iter_mut().for_each(|importances| importances.sort_unstable_by_key(|&(feature, _)| feature));
    Ok(importances)
}

fn relative_loss(measure: Measure, before: f64, after: f64) -> f64 {
    let loss = if measure.higher_is_better() { before - after } else { after - before };
    if before > NO_ERROR { loss / before } else { loss }
}

/// The expected size of a tree and its labels.
pub(crate) struct JudgedSize {
    /// Expected number of leaves.
    pub(crate) leaves: f64,
    /// Expected numbers of rows in the bag and out of it.
    pub(crate) in_bag: f64,
    pub(crate) out_of_bag: f64,
    pub(crate) n_labels: usize,
    /// Labels of a row, on average.
    pub(crate) labels_per_row: usize,
}

impl JudgedSize {
    /// The tree of `size` over the labels of the store of `context`.
    pub(super) fn new(size: &OobSize, context: GrowContext<'_>) -> Self {
        let (mut n_labels, mut labels_per_row) = (0, 0);
        for target in context.store.targets.iter() {
            let (labels, per_row) = match target {
                TargetColumn::Labels(labels) => (labels.hierarchy.names().len(), labels.mean_len()),
                _ => (1, 1),
            };
            (n_labels, labels_per_row) = (n_labels + labels, labels_per_row + per_row);
        }
        let (leaves, out_of_bag) = (size.leaves, size.out_of_bag);
        JudgedSize { leaves, in_bag: size.n_rows as f64 - out_of_bag, out_of_bag, n_labels, labels_per_row }
    }

    /// Bytes that [`importances`] takes, besides the codes of rows.
    pub(crate) fn bytes(&self) -> f64 {
        let JudgedSize { leaves, in_bag, out_of_bag, n_labels, labels_per_row } = *self;
        let listed = (leaves * n_labels as f64).min(in_bag * labels_per_row as f64);
        // Shares, whose vectors have half their size to spare; scores, predicted labels, ranks and tallies.
        let of_leaves = 48.0 * leaves + listed * (24 + 40) as f64;
        // The leaf, the terms twice, the weight, the set and the detours.
        let row = 4 + 2 * size_of::<[f64; 13]>() + 8 + 8 + 4 * labels_per_row + DETOURS_PER_ROW * size_of::<Entry>();
        of_leaves + out_of_bag * row as f64 + 64.0 * n_labels.min(labels_per_row.saturating_mul(in_bag as usize)) as f64
    }
}

/// The labels that some rows of the data set have, with numbers of their own.
struct Labels {
    /// For each set target and label the number; [`NONE`] for a label that no row has.
    numbers: Vec<Vec<u32>>,
    /// n_labels
    weights: Vec<f64>,
}

const NONE: u32 = u32::MAX;

impl Labels {
    fn new(view: &OobView<'_>) -> Self {
        // Each nominal target is a label.
        let mut weights = vec![1.0; view.targets.nominal.len()];
        let of_sets = view.targets.sets.iter().map(|sets| {
            let number = |(share, &weight): (&f64, &f64)| {
                if *share == 0.0 {
                    return NONE;
                }
                weights.push(weight);
                weights.len() as u32 - 1
            };
            sets.shares.iter().zip(sets.labels.hierarchy.weights()).map(number).collect()
        });
        let numbers = of_sets.collect();
        Labels { numbers, weights }
    }

    /// The sets of `rows`, all of which are known.
    fn sets(&self, view: &OobView<'_>, rows: &[u32]) -> LabelSets {
        let (targets, mut sets) = (view.targets, LabelSets::default());
        for row in rows.iter().map(|&row| row as usize) {
            let classes = targets.nominal.iter().map(|(codes, _)| codes[row]);
            let of_sets = targets.sets.iter().map(|sets| sets.labels.of(row).unwrap_or(&[]));
            sets.push(self.set(&targets.present, classes, of_sets));
        }
        sets
    }

    /// The predictions of all leaves.
    fn predictions(&self, view: &OobView<'_>) -> Predictions {
        let (targets, leaves) = (view.targets, view.predictions);
        let mut predictions = Predictions::new(self.weights.len());
        let Some(shares) = leaves.shares() else { return predictions };
        for leaf in 0..leaves.len() {
            let of_nominal = (0..).zip(shares.of_nominal(leaf));
            let of_sets = self.numbers.iter().enumerate().flat_map(|(number, labels)| {
                shares.of_set(leaf, number).iter().map(|&(label, share)| (labels[label as usize], share))
            });
            let (classes, sets) = leaves.classes_and_sets(leaf);
            let sets = sets.iter().map(|set| set.as_deref().unwrap_or(&[]));
            predictions.push(of_nominal.chain(of_sets), self.set(&targets.present, classes.iter().copied(), sets));
        }
        predictions
    }

    /// The labels that nominal targets of these `classes` and `sets` are, ascending.
    fn set<'a>(
        &'a self,
        present: &'a [u16],
        classes: impl Iterator<Item = u16> + 'a,
        sets: impl Iterator<Item = &'a [u32]> + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let of_classes = (0..).zip(classes).zip(present);
        let of_classes = of_classes.filter(|((_, class), present)| class == *present && *class != MISSING_U16);
        let of_sets = self.numbers.iter().zip(sets);
        let of_sets = of_sets.flat_map(|(numbers, set)| set.iter().map(|&label| numbers[label as usize]));
        of_classes.map(|((label, _), _)| label).chain(of_sets)
    }
}

/// A row that reaches another leaf when a feature is permuted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    column: u32,
    /// The position of the row in the ring.
    row: u32,
    leaf: u32,
}

/// The leaf of each row, and the detours of some columns.
struct Detours {
    first: usize,
    /// One past the last column whose detours are held.
    end: usize,
    /// The most entries that are held.
    most: usize,
    /// n_rows
    leaves: Vec<u32>,
    /// By column and row, once all rows have been walked.
    entries: Vec<Entry>,
}

impl Detours {
    /// Those of columns from `first` on, as many as can be held; at most up to `end`.
    fn new(first: usize, end: usize, n_rows: usize) -> Self {
        let most = n_rows * DETOURS_PER_ROW;
        Detours { first, end, most, leaves: vec![0; n_rows], entries: Vec::new() }
    }

    fn walk<C: WalkedCode>(&mut self, view: &OobView<'_>, ring: &Ring) -> Result<()> {
        walk_all::<C>(view, ring, |position, rows, walk, _| {
            self.add(position, rows.len(), walk);
            Ok(())
        })?;
        self.entries.sort_unstable();
        Ok(())
    }

    /// Adds `n` rows from `position` on.
    fn add(&mut self, position: usize, n: usize, walk: &Walk) {
        self.leaves[position..position + n].copy_from_slice(&walk.leaves()[..n]);
        for detour in walk.detours() {
            let column = detour.column();
            if (self.first..self.end).contains(&column) {
                let (row, leaf) = ((position + detour.row()) as u32, detour.leaf() as u32);
                self.entries.push(Entry { column: column as u32, row, leaf });
            }
        }
        while self.entries.len() > self.most && self.end > self.first + 1 {
            self.drop_last_half();
        }
    }

    /// Drops the detours of the last columns, about half of all.
    fn drop_last_half(&mut self) {
        self.entries.sort_unstable();
        let middle = self.entries[self.entries.len() / 2].column as usize;
        self.end = middle.max(self.first + 1);
        let kept = self.entries.partition_point(|entry| (entry.column as usize) < self.end);
        self.entries.truncate(kept);
    }

    /// The rows that reach another leaf when the feature of `column` is permuted, and these leaves.
    fn of(&self, column: usize) -> Vec<(u32, u32)> {
        let start = self.entries.partition_point(|entry| (entry.column as usize) < column);
        let own = self.entries[start..].iter().take_while(|entry| entry.column as usize == column);
        own.map(|entry| (entry.row, entry.leaf)).collect()
    }
}
