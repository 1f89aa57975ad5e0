//! Rankings: importances of all features under each score, with standard errors and ranks.

use ferrank_data::schema::Task;

/// The result of a run.
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
    /// One entry for each score requested, in that order.
    pub scores: Vec<ScoreRanking>,
}

/// Importances under one score. Vectors are in feature order.
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
    /// n_features; best and worst rank that standard errors allow, for all features at once at 95 %.
    pub rank_interval: Vec<(u32, u32)>,
    /// n_features x n_targets, row-major: the part of the importance that each target makes.
    /// Empty unless requested.
    pub by_target: Vec<f64>,
}
