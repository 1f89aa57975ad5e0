//! Settings of the univariate ranker.

use ferrank_data::intake::Unlabelled;
use ferrank_data::schema::{Kind, Problem, Task};
use ferrank_ranking::{DataShape, settings};
use ferrank_runtime::error::{Result, check};
use serde::{Deserialize, Serialize};

/// A score of a feature alone.
///
/// ```
/// use ferrank_univariate::UnivariateScore;
///
/// assert_eq!(UnivariateScore::GainRatio.name(), "gain_ratio");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnivariateScore {
    /// H(y) − H(y | x), in bits.
    InformationGain,
    /// Information gain over H(x) (Quinlan 1986).
    GainRatio,
    /// Pearson's χ².
    Chi2,
    /// Mutual information of codes, in nats, also with numeric targets.
    MutualInformation,
    /// Increase of the accuracy by the best split in two.
    Accuracy,
    /// Share of the variance that the best split in two explains.
    Mse,
}

impl UnivariateScore {
    /// All scores.
    pub const ALL: [UnivariateScore; 6] = [
        UnivariateScore::InformationGain,
        UnivariateScore::GainRatio,
        UnivariateScore::Chi2,
        UnivariateScore::MutualInformation,
        UnivariateScore::Accuracy,
        UnivariateScore::Mse,
    ];

    /// The name in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            UnivariateScore::InformationGain => "information_gain",
            UnivariateScore::GainRatio => "gain_ratio",
            UnivariateScore::Chi2 => "chi2",
            UnivariateScore::MutualInformation => "mutual_information",
            UnivariateScore::Accuracy => "accuracy",
            UnivariateScore::Mse => "mse",
        }
    }

    /// The definition in a few words.
    pub fn definition(self) -> &'static str {
        match self {
            UnivariateScore::InformationGain => "decrease of the entropy of the class, in bits",
            UnivariateScore::GainRatio => "decrease of the entropy of the class over the entropy of the feature",
            UnivariateScore::Chi2 => "Pearson's χ² of values and classes",
            UnivariateScore::MutualInformation => "mutual information of values and targets, in nats",
            UnivariateScore::Accuracy => "increase of the accuracy by the best split in two",
            UnivariateScore::Mse => "share of the variance that the best split in two explains",
        }
    }

    /// Returns true if the score is defined for targets of this kind.
    pub(crate) fn takes(self, kind: Kind) -> bool {
        match self {
            UnivariateScore::MutualInformation => kind != Kind::Labels,
            UnivariateScore::Mse => kind == Kind::Numeric,
            _ => kind == Kind::Nominal,
        }
    }
}

settings! {
    /// Settings of the univariate ranker.
    ///
    /// ```
    /// use ferrank_univariate::{UnivariateParams, UnivariateScore};
    ///
    /// let params = UnivariateParams::default().with_scores(vec![UnivariateScore::Chi2]);
    /// assert_eq!(params.n_bins, 10);
    /// ```
    pub struct UnivariateParams {
        /// Scores; the first one is the main one.
        scores, with_scores: Vec<UnivariateScore> = vec![UnivariateScore::MutualInformation];
        /// Greatest number of intervals of a numeric feature, 2 to 65,535; cut at quantiles.
        n_bins, with_n_bins: usize = 10;
        /// Rows without any target.
        unlabelled, with_unlabelled: Unlabelled = Unlabelled::Error;
    }
}

impl UnivariateParams {
    /// Checks the settings against the data.
    pub(crate) fn validate(&self, shape: &DataShape) -> Result<()> {
        let names = || UnivariateScore::ALL.map(UnivariateScore::name).join(", ");
        check(!self.scores.is_empty(), format!("scores: none given; use some of {}", names()))?;
        for (i, score) in self.scores.iter().enumerate() {
            check(!self.scores[..i].contains(score), format!("scores: '{}' is given twice", score.name()))?;
        }
        check((2..=65_535).contains(&self.n_bins), format!("n_bins: {} is not in 2 … 65535", self.n_bins))?;
        check(
            self.unlabelled != Unlabelled::Use,
            "unlabelled: univariate scores need targets; use \"ignore\" or \"error\"",
        )?;
        check(shape.task != Task::Unsupervised, "ranker: univariate scores need a target; name one")?;
        check(!shape.is_grouped, "groups: not for ranker='univariate', whose rows have no bags; leave groups out")
    }

    /// Checks that all scores are defined for all targets.
    pub(crate) fn validate_targets(&self, problem: &Problem) -> Result<()> {
        for target in &problem.targets {
            if let Some(score) = self.scores.iter().find(|score| !score.takes(target.kind)) {
                let takes = |other: &&UnivariateScore| other.takes(target.kind);
                let others: Vec<&str> = UnivariateScore::ALL.iter().filter(takes).map(|other| other.name()).collect();
                let (what, others) = match target.kind {
                    Kind::Numeric => ("a number", format!("use {}", others.join(" or "))),
                    Kind::Nominal => ("a class", format!("use {}", others.join(", "))),
                    Kind::Labels => ("a set of labels", "rank by the forest".to_string()),
                };
                return check(
                    false,
                    format!(
                        "scores: {} is not for the target '{}', which is {what}; {others}",
                        score.name(),
                        target.name
                    ),
                );
            }
        }
        Ok(())
    }
}
