//! Rankings: importances of all features under each score, with standard errors and ranks.

use ferrank_data::schema::Task;

use crate::quantile::quantile;
use crate::relevance::Relevance;

/// The result of a run.
///
/// ```
/// use ferrank_ranking::{Accumulator, Ranking, Vector};
#[doc = include_str!("example_run.txt")]
///
/// let mut run = Accumulator::new(identity);
/// run.insert(0, vec![Vector::dense(vec![1.0, 3.0])])?;
/// let Ranking { features, scores, model_error, .. } = run.ranking()?;
/// let best = scores[0].rank.iter().position(|&rank| rank == 1).unwrap();
/// assert_eq!(features[best], "z");
/// assert_eq!(model_error, Err("the ranker makes no predictions"));
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ranking {
    /// What was predicted.
    pub task: Task,
    /// Rows that took part.
    pub n_rows: u64,
    /// Number of rows without any target value, used or not.
    pub n_unlabelled: u64,
    /// Names of the features, in input order.
    pub features: Vec<String>,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// What the importances say about the relevance of each feature; `None` where nothing does.
    pub relevance: Option<Relevance>,
    /// One entry for each score requested, in that order.
    pub scores: Vec<ScoreRanking>,
    /// How well the model behind the importances predicts each target, in their order; targets that do not vary are
    /// left out. Otherwise the reason why that is not known.
    pub model_error: Result<Vec<ModelError>, &'static str>,
}

/// The error of a model for a target, on rows that it has not seen, and that of a constant prediction for these rows.
///
/// ```
/// use ferrank_ranking::ranking::ModelError;
///
/// let unknown = ModelError::new("y", "error rate");
/// assert!(unknown.error.is_nan() && !unknown.is_better);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelError {
    /// Name of the target.
    pub target: String,
    /// Name of the measure.
    pub measure: String,
    /// The error of the model.
    pub error: f64,
    /// The error of the constant prediction.
    pub guess: f64,
    /// Standard error of the difference between the two.
    pub standard_error: f64,
    /// The squared error of the predicted mean, or of the predicted shares of classes or labels (Brier score), relative
    /// to that of the constant prediction: 1 − R².
    pub squared_error: f64,
    /// True if the model predicts better than the constant, at 95 % confidence, by either of the two errors.
    pub is_better: bool,
    /// Number of rows that all of this is computed from.
    pub n_rows: usize,
}

impl ModelError {
    /// An error for `target` of which only the measure is known yet.
    pub fn new(target: &str, measure: &str) -> Self {
        let (target, measure, nan) = (target.to_string(), measure.to_string(), f64::NAN);
        let (error, guess, standard_error, squared_error) = (nan, nan, nan, nan);
        ModelError { target, measure, error, guess, standard_error, squared_error, is_better: false, n_rows: 0 }
    }

    /// Returns true if the model predicts one of its targets better than the constant, at the error rate `alpha` for all of
    /// them together (Bonferroni).
    pub fn any_is_better(errors: &[ModelError], alpha: f64) -> bool {
        let width = -quantile(alpha / errors.len() as f64, f64::INFINITY);
        let is_surely_better = |error: &ModelError| error.guess - error.error > width * error.standard_error;
        errors.iter().any(|error| error.is_better && (errors.len() == 1 || is_surely_better(error)))
    }
}

/// Importances under one score. Vectors are in feature order.
///
/// ```
/// use ferrank_ranking::{Estimate, ScoreRanking};
///
/// let estimate = Estimate::new(vec![0.2, 0.9, 0.2], vec![1e-4; 3]);
/// let ScoreRanking { rank, standard_error, .. } = estimate.rank("genie3");
/// assert_eq!(rank, [2, 1, 2]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ScoreRanking {
    /// Name of the score.
    pub score: String,
    /// n_features; mean over trees or queries.
    pub importance: Vec<f64>,
    /// n_features; how far other rows from the same population would move the importance. NaN where unknown.
    pub standard_error: Vec<f64>,
    /// n_features; how far more trees or queries on the same rows would move it. NaN with a single tree or query.
    pub monte_carlo_error: Vec<f64>,
    /// Degrees of freedom of `standard_error`.
    pub freedom: f64,
    /// n_features; 1 is the most important. Equal importances share the smallest of their ranks.
    pub rank: Vec<u32>,
    /// n_features; best and worst rank that standard errors allow, for all features at once at 95 %. Every rank is
    /// possible where errors are unknown, and by importances from rows of training under a model that predicts nothing.
    pub rank_interval: Vec<(u32, u32)>,
    /// n_features x n_targets, row-major: the part of the importance that each target makes.
    /// Empty unless requested.
    pub by_target: Vec<f64>,
}

impl ScoreRanking {
    /// Lets the importances say nothing about the order of features.
    pub(crate) fn allow_every_rank(&mut self) {
        self.rank_interval.fill((1, self.importance.len() as u32));
    }
}
