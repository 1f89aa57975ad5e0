//! The names of the scores. Their implementations are in [`scores`](crate::scores).

use serde::{Deserialize, Serialize};

/// A way to turn trees into importances.
///
/// ```
/// use ferrank_forest::{ForestParams, Score};
///
/// let params = ForestParams::default().with_scores(vec![Score::Genie3, Score::Coverage]);
/// assert_eq!(params.scores.iter().map(|score| score.name()).collect::<Vec<_>>(), ["genie3", "coverage"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Score {
    /// Impurity decrease (Petković et al. 2020a, Eq. 2).
    Genie3,
    /// Sum of `decay^depth` over the splits (Petković et al. 2020a, Eq. 1); the decay is a setting of the forest.
    Symbolic,
    /// The share of the bag that reaches the splits (Petković et al. 2023, Eq. 2).
    Coverage,
    /// Increase of the out-of-bag error when the feature is permuted (Petković et al. 2020a, Eq. 3).
    Permutation,
    /// Impurity decrease measured with out-of-bag rows (Li et al. 2019).
    MdiOob,
}

impl Score {
    const ALL: [Score; 5] = [Score::Genie3, Score::Symbolic, Score::Coverage, Score::Permutation, Score::MdiOob];

    /// The score's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            Score::Genie3 => "genie3",
            Score::Symbolic => "symbolic",
            Score::Coverage => "coverage",
            Score::Permutation => "permutation",
            Score::MdiOob => "mdi_oob",
        }
    }

    /// The names of all scores, for messages.
    pub(crate) fn names() -> String {
        let names = Score::ALL.map(Score::name);
        let (last, others) = names.split_last().expect("there are scores");
        format!("{} or {last}", others.join(", "))
    }
}
