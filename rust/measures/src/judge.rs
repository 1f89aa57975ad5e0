//! The measures of rows that are assigned to predictions.

use crate::measure::{Conventions, Measure};
use crate::predictions::{LabelSets, Predictions};
use crate::row_terms::{Orders, RowTerms, Terms, share};
use crate::tallies::Tallies;

/// Measures how well predictions fit rows.
///
/// ```
/// use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
///
/// let mut sets = LabelSets::default();
/// [vec![0], vec![0, 1], vec![]].into_iter().for_each(|set| sets.push(set));
/// let mut predictions = Predictions::new(2);
/// predictions.push([(0, 1.0), (1, 0.5)], [0]);
/// predictions.push([(1, 0.2)], []);
/// let mut judge = Judge::new(&sets, &predictions, &[Measure::SubsetAccuracy], Conventions::Textbook);
/// assert_eq!(judge.judge(&[0, 0, 1]), [2.0 / 3.0]);
/// // Under another prediction of the last row.
/// assert_eq!(judge.judge_with(&[(2, 0)]), [1.0 / 3.0]);
/// ```
pub struct Judge<'a> {
    terms: Terms<'a>,
    /// n_rows; with mean 1.
    row_weights: Vec<f64>,
    measures: &'a [Measure],
    is_clus: bool,
    /// `None` if no area is wanted.
    tallies: Option<Tallies>,
    /// The rows judged last: the prediction and the terms of each.
    assigned: Vec<u32>,
    of_rows: Vec<RowTerms>,
    /// Buffers.
    ranks: Vec<u32>,
    replaced: Vec<(u32, RowTerms)>,
}

impl<'a> Judge<'a> {
    /// The `measures` of rows with these label `sets`, whose `predictions` are given later.
    pub fn new(
        sets: &'a LabelSets,
        predictions: &'a Predictions,
        measures: &'a [Measure],
        conventions: Conventions,
    ) -> Self {
        let orders = measures.iter().any(|measure| measure.is_of_order());
        let by_label = measures.iter().any(|measure| measure.is_of_labels());
        let with_areas = by_label || measures.contains(&Measure::PooledAuprc);
        let orders = orders.then(|| Orders::new(predictions, conventions));
        Judge {
            terms: Terms { sets, predictions, label_weights: vec![1.0; predictions.n_labels()], orders },
            row_weights: vec![1.0; sets.len()],
            measures,
            is_clus: conventions == Conventions::Clus,
            tallies: with_areas.then(|| Tallies::new(predictions, by_label)),
            assigned: Vec::new(),
            of_rows: Vec::new(),
            ranks: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// The same, with weights of the labels, which are not negative.
    pub fn with_label_weights(mut self, weights: Vec<f64>) -> Self {
        self.terms.label_weights = weights;
        self
    }

    /// The same, with weights of the rows, which are not negative. Only their ratios count.
    pub fn with_row_weights(mut self, mut weights: Vec<f64>) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        if mean > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= mean);
        }
        self.row_weights = weights;
        self
    }

    /// The measures where each row has the prediction whose number is in `assigned`, n_rows.
    pub fn judge(&mut self, assigned: &[u32]) -> Vec<f64> {
        self.assigned.clear();
        self.assigned.extend_from_slice(assigned);
        let rows = assigned.iter().enumerate();
        self.of_rows.clear();
        let (terms, ranks) = (&self.terms, &mut self.ranks);
        self.of_rows.extend(rows.map(|(row, &prediction)| terms.of(row, prediction as usize, ranks)));
        self.values()
    }

    /// The measures where some rows have other predictions than in the last [`judge`](Self::judge): pairs of a row, each
    /// once, and the number of a prediction.
    pub fn judge_with(&mut self, changes: &[(u32, u32)]) -> Vec<f64> {
        self.replaced.clear();
        for &(row, prediction) in changes {
            let terms = self.terms.of(row as usize, prediction as usize, &mut self.ranks);
            let before = std::mem::replace(&mut self.assigned[row as usize], prediction);
            self.replaced.push((before, std::mem::replace(&mut self.of_rows[row as usize], terms)));
        }
        let values = self.values();
        for (&(row, _), &(prediction, terms)) in changes.iter().zip(&self.replaced) {
            (self.assigned[row as usize], self.of_rows[row as usize]) = (prediction, terms);
        }
        values
    }

    /// For each label the areas under its precision-recall and ROC curves, of the rows judged last; `None` unless their
    /// averages are among the measures.
    pub fn areas_by_label(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let by_label = self.measures.iter().any(|measure| measure.is_of_labels());
        self.tallies.as_ref().filter(|_| by_label).map(|tallies| tallies.areas(self.terms.predictions))
    }

    /// The area under the pooled precision-recall curve, of the rows judged last, where all labels have the weight 1;
    /// `None` unless areas are among the measures.
    pub fn unweighted_pooled_area(&self) -> Option<f64> {
        let weights = vec![1.0; self.terms.predictions.n_labels()];
        self.tallies.as_ref().map(|tallies| tallies.pooled_area(self.terms.predictions, &weights))
    }

    fn values(&mut self) -> Vec<f64> {
        let Terms { sets, predictions, label_weights, .. } = &self.terms;
        let mut sums = RowTerms::default();
        self.row_weights.iter().zip(&self.of_rows).for_each(|(&weight, row)| sums.add(weight, row));
        if let Some(tallies) = &mut self.tallies {
            tallies.count(sets, &self.row_weights, predictions, &self.assigned);
        }
        let all: f64 = self.row_weights.iter().sum();
        let (auprc, auroc) = self.areas_by_label().unwrap_or_default();
        let total: f64 = label_weights.iter().sum();
        let average =
            |areas: &[f64]| areas.iter().zip(label_weights).map(|(area, weight)| area * weight).sum::<f64>() / total;
        let value = |measure: &Measure| match measure {
            Measure::AverageAuprc => average(&auprc),
            Measure::AverageAuroc => average(&auroc),
            Measure::PooledAuprc => {
                self.tallies.as_ref().map_or(f64::NAN, |tallies| tallies.pooled_area(predictions, label_weights))
            }
            Measure::MicroPrecision => share(sums.both, sums.says),
            Measure::MicroRecall => share(sums.both, sums.has),
            Measure::MicroF1 => share(2.0 * sums.both, sums.says + sums.has),
            Measure::MultilabelPrecision => sums.precision / all,
            Measure::MultilabelRecall => sums.recall / all,
            Measure::MultilabelF1 => sums.f1 / all,
            Measure::MultilabelAccuracy => sums.accuracy / all,
            Measure::HammingLoss => sums.differs / all / total,
            Measure::SubsetAccuracy => sums.equal / all,
            Measure::OneError => sums.one_error / all,
            Measure::Coverage if self.is_clus => share(sums.coverage, self.weight_of_labelled()),
            Measure::Coverage => sums.coverage / all,
            Measure::RankingLoss => sums.ranking_loss / all,
        };
        self.measures.iter().map(value).collect()
    }

    /// The weight of the rows that have a label.
    fn weight_of_labelled(&self) -> f64 {
        let has_labels = |row: usize| !self.terms.sets.of(row).is_empty();
        (0..self.row_weights.len()).filter(|&row| has_labels(row)).map(|row| self.row_weights[row]).sum()
    }
}
