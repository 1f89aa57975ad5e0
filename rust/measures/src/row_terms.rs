//! What a row adds to the measures that are means over rows, or ratios of sums over rows.

use std::ops::Range;

use ferrank_data::labels::compare;

use crate::measure::Conventions;
use crate::predictions::{LabelSets, Predictions};

/// The terms of a row, or their weighted sums over rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowTerms {
    /// Weights of the labels that are both in the set and predicted, in the set, and predicted.
    pub(crate) both: f64,
    pub(crate) has: f64,
    pub(crate) says: f64,
    pub(crate) precision: f64,
    pub(crate) recall: f64,
    pub(crate) f1: f64,
    pub(crate) accuracy: f64,
    /// Weight of the labels that are in one of the two sets only.
    pub(crate) differs: f64,
    pub(crate) equal: f64,
    pub(crate) one_error: f64,
    pub(crate) coverage: f64,
    pub(crate) ranking_loss: f64,
}

impl RowTerms {
    /// Adds the terms of a row of this `weight`.
    pub(crate) fn add(&mut self, weight: f64, row: &RowTerms) {
        self.both += weight * row.both;
        self.has += weight * row.has;
        self.says += weight * row.says;
        self.precision += weight * row.precision;
        self.recall += weight * row.recall;
        self.f1 += weight * row.f1;
        self.accuracy += weight * row.accuracy;
        self.differs += weight * row.differs;
        self.equal += weight * row.equal;
        self.one_error += weight * row.one_error;
        self.coverage += weight * row.coverage;
        self.ranking_loss += weight * row.ranking_loss;
    }

    /// The terms of a row with the labels `set` for which the labels `said` are predicted, without those of orders.
    pub(crate) fn of_sets(set: &[u32], said: &[u32], label_weights: &[f64]) -> Self {
        let weight = |labels: &[u32]| -> f64 { labels.iter().map(|&label| label_weights[label as usize]).sum() };
        let (has, says) = (weight(set), weight(said));
        let (differs, both) = compare(set, said, label_weights);
        let is_empty = has == 0.0 && says == 0.0;
        let mean = |part: f64, whole: f64| if is_empty { 1.0 } else { share(part, whole) };
        RowTerms {
            both,
            has,
            says,
            precision: mean(both, says),
            recall: mean(both, has),
            f1: mean(2.0 * both, has + says),
            accuracy: mean(both, has + says - both),
            differs,
            equal: f64::from(set == said),
            ..RowTerms::default()
        }
    }
}

/// `part` of `whole`; 0 if there is nothing to divide by.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The orders of the labels under each prediction.
pub(crate) struct Orders {
    conventions: Conventions,
    n_labels: usize,
    /// For each label of each prediction whose score is not 0: how many labels have at least its score.
    at_least: Vec<u32>,
    /// For the same labels, with [`Conventions::Clus`]: the place, where equal scores are in the order of the labels.
    places: Vec<u32>,
    /// n_predictions; the label with the highest score, the first of equals.
    top: Vec<u32>,
}

impl Orders {
    pub(crate) fn new(predictions: &Predictions, conventions: Conventions) -> Self {
        let n_listed = predictions.scores.len();
        let (mut at_least, mut places, mut top) = (vec![0; n_listed], Vec::new(), Vec::new());
        if conventions == Conventions::Clus {
            places = vec![0; n_listed];
        }
        let mut order: Vec<usize> = Vec::new();
        for prediction in 0..predictions.len() {
            let range = predictions.listed.range(prediction);
            order.clear();
            order.extend(range);
            let scores = &predictions.scores;
            // Stable, so that the first of equals comes first.
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            top.push(order.first().map_or(0, |&first| predictions.listed.all()[first]));
            let mut end = 0;
            for equal in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
                end += equal.len() as u32;
                equal.iter().for_each(|&entry| at_least[entry] = end);
            }
            if conventions == Conventions::Clus {
                (1..).zip(&order).for_each(|(place, &entry)| places[entry] = place);
            }
        }
        Orders { conventions, n_labels: predictions.n_labels(), at_least, places, top }
    }

    /// Sets the terms of orders of a row with the labels `set` under `prediction`. `ranks` is a buffer.
    pub(crate) fn set_terms(
        &self,
        terms: &mut RowTerms,
        set: &[u32],
        (predictions, prediction): (&Predictions, usize),
        ranks: &mut Vec<u32>,
    ) {
        let (listed, range) = (predictions.listed.of(prediction), predictions.listed.range(prediction));
        let is_clus = self.conventions == Conventions::Clus;
        let has = |labels: &[u32], label: u32| labels.binary_search(&label).is_ok();
        let top = self.top[prediction];
        let is_there = has(set, top);
        let is_right = if is_clus { is_there == has(predictions.sets.of(prediction), top) } else { is_there };
        terms.one_error = f64::from(!is_right);
        ranks.clear();
        self.ranks(&self.at_least, set, (listed, range.clone()), |_, _| self.n_labels as u32, ranks);
        let last = ranks.iter().copied().max().unwrap_or(0);
        terms.coverage = f64::from(if is_clus { last } else { last.saturating_sub(1) });
        if is_clus {
            ranks.clear();
            // Labels with the score 0 follow all others, in their own order.
            let place = |label: u32, below: usize| (listed.len() + label as usize - below) as u32 + 1;
            self.ranks(&self.places, set, (listed, range), place, ranks);
        }
        terms.ranking_loss = wrong_share(ranks, self.n_labels);
    }

    /// Collects the rank of each label of `set`: that in `of_listed`, or `unlisted` of the label and the number of
    /// `listed` labels below it.
    fn ranks(
        &self,
        of_listed: &[u32],
        set: &[u32],
        (listed, range): (&[u32], Range<usize>),
        unlisted: impl Fn(u32, usize) -> u32,
        ranks: &mut Vec<u32>,
    ) {
        let of_listed = &of_listed[range];
        ranks.extend(set.iter().map(|&label| match listed.binary_search(&label) {
            Ok(place) => of_listed[place],
            Err(below) => unlisted(label, below),
        }));
    }
}

/// The share of pairs, of a label of a set and one of the other labels, in which the other label is not below the first;
/// `ranks` are those of the labels of the set, where equals have the rank of the last.
fn wrong_share(ranks: &mut [u32], n_labels: usize) -> f64 {
    ranks.sort_unstable();
    let (mut wrong, mut n_own) = (0u64, 0u64);
    for equal in ranks.chunk_by(|a, b| a == b) {
        n_own += equal.len() as u64;
        wrong += equal.len() as u64 * (u64::from(equal[0]) - n_own);
    }
    share(wrong as f64, n_own as f64 * (n_labels as f64 - n_own as f64))
}

/// The label sets of rows and what is predicted for each of them.
pub(crate) struct Terms<'a> {
    pub(crate) sets: &'a LabelSets,
    pub(crate) predictions: &'a Predictions,
    pub(crate) label_weights: Vec<f64>,
    /// `None` if no measure depends on the order of labels.
    pub(crate) orders: Option<Orders>,
}

impl Terms<'_> {
    /// The terms of `row` under `prediction`. `ranks` is a buffer.
    pub(crate) fn of(&self, row: usize, prediction: usize, ranks: &mut Vec<u32>) -> RowTerms {
        let set = self.sets.of(row);
        let mut terms = RowTerms::of_sets(set, self.predictions.sets.of(prediction), &self.label_weights);
        if let Some(orders) = &self.orders {
            orders.set_terms(&mut terms, set, (self.predictions, prediction), ranks);
        }
        terms
    }
}
