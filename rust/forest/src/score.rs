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
    /// All scores.
    pub const ALL: &[Score] = &[Score::Genie3, Score::Symbolic, Score::Coverage, Score::Permutation, Score::MdiOob];

    /// The score's name in settings and results.
    pub fn name(self) -> &'static str {
        self.description().0
    }

    /// The score's definition in a few words, for readers of a ranking.
    pub fn definition(self) -> &'static str {
        self.description().1
    }

    /// Returns true if the importance of a feature that says nothing about the targets has mean 0 over samples of rows.
    pub fn is_zero_by_chance(self) -> bool {
        matches!(self, Score::Permutation | Score::MdiOob)
    }

    /// Name and definition.
    fn description(self) -> (&'static str, &'static str) {
        match self {
            Score::Genie3 => ("genie3", "impurity decrease"),
            Score::Symbolic => ("symbolic", "tests, weighted by depth"),
            Score::Coverage => ("coverage", "share of examples that reach the tests"),
            Score::Permutation => ("permutation", "increase of out-of-bag error"),
            Score::MdiOob => ("mdi_oob", "impurity decrease on out-of-bag rows"),
        }
    }

    /// The names of all scores, for messages.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = Score::ALL.iter().map(|score| score.name()).collect();
        let (last, others) = names.split_last().expect("there are scores");
        format!("{} or {last}", others.join(", "))
    }
}
