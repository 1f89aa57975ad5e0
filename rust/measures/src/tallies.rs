//! Weights of rows with and without each label, by score, from which areas under curves follow.

use crate::areas::{precision_recall_area, roc_area};
use crate::predictions::{LabelSets, Predictions};

/// An entry is a label of a prediction whose score is not 0.
pub(crate) struct Tallies {
    /// The entries by descending score.
    order: Vec<u32>,
    /// The entries by label, by descending score within a label; empty unless it is needed.
    by_label: Vec<u32>,
    /// n_labels + 1 offsets into `by_label`.
    starts: Vec<usize>,
    /// n_entries; the prediction of each.
    owner: Vec<u32>,
    /// n_entries; weight of the rows that have the label.
    positives: Vec<f64>,
    /// n_predictions; weight of the rows.
    weights: Vec<f64>,
    /// n_labels; weight of the rows that have the label, and of those where its score is 0.
    totals: Vec<f64>,
    unlisted: Vec<f64>,
    /// Weight of all rows.
    all: f64,
}

/// Weights of rows with a label, and without it.
type Group = (f64, f64);

impl Tallies {
    /// Tallies of no rows. `by_label`: areas of single labels are needed.
    pub(crate) fn new(predictions: &Predictions, by_label: bool) -> Self {
        let scores = &predictions.scores;
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        let mut owner = vec![0; scores.len()];
        for prediction in 0..predictions.len() {
            owner[predictions.listed.range(prediction)].fill(prediction as u32);
        }
        let n_labels = predictions.n_labels();
        let (by_label, starts) = if by_label { distributed(&order, predictions) } else { (Vec::new(), Vec::new()) };
        Tallies {
            order,
            by_label,
            starts,
            owner,
            positives: vec![0.0; scores.len()],
            weights: vec![0.0; predictions.len()],
            totals: vec![0.0; n_labels],
            unlisted: vec![0.0; n_labels],
            all: 0.0,
        }
    }

    /// Counts rows with these `sets` and `weights`, each under the prediction in `assigned`.
    pub(crate) fn count(&mut self, sets: &LabelSets, weights: &[f64], predictions: &Predictions, assigned: &[u32]) {
        let sums = [&mut self.positives, &mut self.weights, &mut self.totals, &mut self.unlisted];
        sums.into_iter().for_each(|sums| sums.fill(0.0));
        self.all = 0.0;
        for (row, (&prediction, &weight)) in assigned.iter().zip(weights).enumerate() {
            let prediction = prediction as usize;
            self.all += weight;
            self.weights[prediction] += weight;
            let (listed, first) = (predictions.listed.of(prediction), predictions.listed.range(prediction).start);
            let mut at = 0;
            for &label in sets.of(row) {
                self.totals[label as usize] += weight;
                at += listed[at..].partition_point(|&other| other < label);
                match listed.get(at) {
                    Some(&other) if other == label => self.positives[first + at] += weight,
                    _ => self.unlisted[label as usize] += weight,
                }
            }
        }
    }

    fn negatives(&self, entry: usize) -> f64 {
        self.weights[self.owner[entry] as usize] - self.positives[entry]
    }

    /// The weight of the rows without `label` where its score is 0, given that of all others.
    fn unlisted_negatives(&self, label: usize, listed: f64) -> f64 {
        (self.all - self.totals[label] - listed).max(0.0)
    }

    /// For each label the areas under its precision-recall and ROC curves.
    pub(crate) fn areas(&self, predictions: &Predictions) -> (Vec<f64>, Vec<f64>) {
        let mut groups: Vec<Group> = Vec::new();
        let areas = (0..self.totals.len()).map(|label| {
            groups.clear();
            let entries = &self.by_label[self.starts[label]..self.starts[label + 1]];
            let mut listed = 0.0;
            self.group(
                entries,
                predictions,
                |entry| {
                    let negatives = self.negatives(entry);
                    listed += negatives;
                    (self.positives[entry], negatives)
                },
                &mut groups,
            );
            groups.push((self.unlisted[label], self.unlisted_negatives(label, listed)));
            let groups = || groups.iter().copied();
            (precision_recall_area(groups()), roc_area(groups()))
        });
        areas.unzip()
    }

    /// The area under the precision-recall curve of all pairs of a row and a label, which have the weights of the labels.
    pub(crate) fn pooled_area(&self, predictions: &Predictions, label_weights: &[f64]) -> f64 {
        let labels = predictions.listed.all();
        let (mut groups, mut listed) = (Vec::new(), vec![0.0; label_weights.len()]);
        self.group(
            &self.order,
            predictions,
            |entry| {
                let (label, negatives) = (labels[entry] as usize, self.negatives(entry));
                listed[label] += negatives;
                (label_weights[label] * self.positives[entry], label_weights[label] * negatives)
            },
            &mut groups,
        );
        let mut rest = (0.0, 0.0);
        for (label, (weight, listed)) in label_weights.iter().zip(listed).enumerate() {
            rest.0 += weight * self.unlisted[label];
            rest.1 += weight * self.unlisted_negatives(label, listed);
        }
        groups.push(rest);
        precision_recall_area(groups)
    }

    /// Adds up what `each` gives for those of `entries`, by descending score, that have the same score.
    fn group(
        &self,
        entries: &[u32],
        predictions: &Predictions,
        mut each: impl FnMut(usize) -> Group,
        groups: &mut Vec<Group>,
    ) {
        let score = |entry: u32| predictions.scores[entry as usize];
        for equal in entries.chunk_by(|&a, &b| score(a) == score(b)) {
            let parts = equal.iter().map(|&entry| each(entry as usize));
            groups.push(parts.fold((0.0, 0.0), |(gain, cost), part| (gain + part.0, cost + part.1)));
        }
    }
}

/// The entries of `order` by label, and where those of each label start.
fn distributed(order: &[u32], predictions: &Predictions) -> (Vec<u32>, Vec<usize>) {
    let labels = predictions.listed.all();
    let mut starts = vec![0; predictions.n_labels() + 1];
    labels.iter().for_each(|&label| starts[label as usize + 1] += 1);
    for label in 0..predictions.n_labels() {
        starts[label + 1] += starts[label];
    }
    let (mut next, mut by_label) = (starts.clone(), vec![0; order.len()]);
    for &entry in order {
        let place = &mut next[labels[entry as usize] as usize];
        by_label[*place] = entry;
        *place += 1;
    }
    (by_label, starts)
}
