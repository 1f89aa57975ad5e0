//! The names of the scores. Their implementations are in [`scores`](crate::scores).

use ferrank_runtime::error::{Error, Result, check};
use serde::{Deserialize, Serialize};

/// A way to turn trees into importances.
///
/// ```
/// use ferrank_forest::{ForestParams, Score};
///
/// let params = ForestParams::default().with_scores(vec![Score::Genie3, Score::Coverage]);
/// assert_eq!(params.scores.iter().map(|score| score.name()).collect::<Vec<_>>(), ["genie3", "coverage"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Score {
    /// Impurity decrease (Petković et al. 2020a, Eq. 2).
    Genie3,
    /// Sum of `decay^depth` over the splits (Petković et al. 2020a, Eq. 1).
    Symbolic {
        /// In (0, 1]; 1 counts the splits.
        decay: f64,
    },
    /// The share of the bag that reaches the splits (Petković et al. 2023, Eq. 2).
    Coverage,
    /// Increase of the out-of-bag error when the feature is permuted (Petković et al. 2020a, Eq. 3).
    Permutation,
}

impl Score {
    /// All scores; `decay` is the setting of [`Score::Symbolic`].
    fn all(decay: f64) -> [Score; 4] {
        [Score::Genie3, Score::Symbolic { decay }, Score::Coverage, Score::Permutation]
    }

    /// The score's name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            Score::Genie3 => "genie3",
            Score::Symbolic { .. } => "symbolic",
            Score::Coverage => "coverage",
            Score::Permutation => "permutation",
        }
    }

    /// The score called `name`; `decay` is the setting of [`Score::Symbolic`].
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such score, or `decay` is out of range where it applies.
    pub fn parse(name: &str, decay: f64) -> Result<Self> {
        let score = Score::all(decay).into_iter().find(|score| score.name() == name);
        let unknown = || Error::Setting(format!("score: unknown score '{name}'; use {}", Score::names()));
        let score = score.ok_or_else(unknown)?;
        if let Score::Symbolic { decay } = score {
            check(decay > 0.0 && decay <= 1.0, format!("decay: {decay} is not in (0, 1]"))?;
        }
        Ok(score)
    }

    /// The names of all scores, for messages.
    pub(crate) fn names() -> String {
        let names = Score::all(1.0).map(Score::name);
        let (last, others) = names.split_last().expect("there are scores");
        format!("{} or {last}", others.join(", "))
    }
}
