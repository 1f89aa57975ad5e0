//! The names of the measures.

use serde::{Deserialize, Serialize};

/// A measure of multi-label prediction.
///
/// ```
/// use ferrank_measures::Measure;
///
/// assert_eq!(Measure::PooledAuprc.name(), "pooled_auprc");
/// assert!(Measure::PooledAuprc.higher_is_better() && !Measure::RankingLoss.higher_is_better());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The mean over the labels of the area under the precision-recall curve.
    AverageAuprc,
    /// The area under the precision-recall curve of all pairs of a row and a label.
    PooledAuprc,
    /// The mean over the labels of the area under the ROC curve.
    AverageAuroc,
    /// Precision over all pairs of a row and a label.
    MicroPrecision,
    /// Recall over all pairs of a row and a label.
    MicroRecall,
    /// F1 over all pairs of a row and a label.
    MicroF1,
    /// The mean over the rows of the share of predicted labels that are in the set.
    MultilabelPrecision,
    /// The mean over the rows of the share of labels that are predicted.
    MultilabelRecall,
    /// The mean over the rows of F1.
    MultilabelF1,
    /// The mean over the rows of the Jaccard index.
    MultilabelAccuracy,
    /// The share of labels that are wrong.
    HammingLoss,
    /// The share of rows whose set is predicted exactly.
    SubsetAccuracy,
    /// The share of rows that do not have the label with the highest score.
    OneError,
    /// The mean number of labels above the last label of the set.
    Coverage,
    /// The mean share of pairs of a label of the set and another label that are in the wrong order.
    RankingLoss,
}

/// Whose definitions of one error, coverage and ranking loss are used; see the documentation of the crate.
///
/// ```
/// use ferrank_measures::{Conventions, Judge, LabelSets, Measure, Predictions};
///
/// let (mut sets, mut predictions) = (LabelSets::default(), Predictions::new(2));
/// sets.push([1]);
/// predictions.push([(0, 0.8), (1, 0.2)], [0]);
/// // The label of the row comes second: one label is above it, and its rank is 2.
/// let coverage = |conventions| Judge::new(&sets, &predictions, &[Measure::Coverage], conventions).judge(&[0]);
/// assert_eq!(coverage(Conventions::Textbook), [1.0]);
/// assert_eq!(coverage(Conventions::Clus), [2.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conventions {
    /// Those of the textbooks.
    Textbook,
    /// Those of the system CLUS.
    Clus,
}

impl Measure {
    /// All measures, in the order of tables.
    pub const ALL: [Measure; 15] = [
        Measure::AverageAuprc,
        Measure::PooledAuprc,
        Measure::AverageAuroc,
        Measure::MicroPrecision,
        Measure::MicroRecall,
        Measure::MicroF1,
        Measure::MultilabelPrecision,
        Measure::MultilabelRecall,
        Measure::MultilabelF1,
        Measure::MultilabelAccuracy,
        Measure::HammingLoss,
        Measure::SubsetAccuracy,
        Measure::OneError,
        Measure::Coverage,
        Measure::RankingLoss,
    ];

    /// The measure's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            Measure::AverageAuprc => "average_auprc",
            Measure::PooledAuprc => "pooled_auprc",
            Measure::AverageAuroc => "average_auroc",
            Measure::MicroPrecision => "micro_precision",
            Measure::MicroRecall => "micro_recall",
            Measure::MicroF1 => "micro_f1",
            Measure::MultilabelPrecision => "multilabel_precision",
            Measure::MultilabelRecall => "multilabel_recall",
            Measure::MultilabelF1 => "multilabel_f1",
            Measure::MultilabelAccuracy => "multilabel_accuracy",
            Measure::HammingLoss => "hamming_loss",
            Measure::SubsetAccuracy => "subset_accuracy",
            Measure::OneError => "one_error",
            Measure::Coverage => "coverage",
            Measure::RankingLoss => "ranking_loss",
        }
    }

    /// Returns true if a higher value means better predictions.
    pub fn higher_is_better(self) -> bool {
        !matches!(self, Measure::HammingLoss | Measure::OneError | Measure::Coverage | Measure::RankingLoss)
    }

    /// Returns true if the measure depends on the order of the labels of a row.
    pub(crate) fn is_of_order(self) -> bool {
        matches!(self, Measure::OneError | Measure::Coverage | Measure::RankingLoss)
    }

    /// Returns true if the measure is a mean over the labels.
    pub(crate) fn is_of_labels(self) -> bool {
        matches!(self, Measure::AverageAuprc | Measure::AverageAuroc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_settings() {
        use serde::de::IntoDeserializer;
        use serde::de::value::{Error, StrDeserializer};

        for measure in Measure::ALL {
            let name: StrDeserializer<'_, Error> = measure.name().into_deserializer();
            assert_eq!(Measure::deserialize(name), Ok(measure));
        }
    }
}
