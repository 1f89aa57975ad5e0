//! Settings of a search for neighbors under rankings, and their checks.

use ferrank_data::intake::Unlabelled;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::with_methods;
use serde::Deserialize;

/// Choices where the papers leave one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conventions {
    /// Numeric features are scaled by the training rows alone, and test values outside of their range count
    /// as its nearest end. A missing value differs as is expected of one drawn from the known training
    /// values: (x − mean)² + variance for numbers, 1 − P(x) for categories.
    Textbook,
    /// As in CLUS: numeric features are scaled by training and test rows together. A missing value differs
    /// as much as it can: by max(x, 1 − x), and by 1 for categories or where both miss it.
    Clus,
}

/// What to search for.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct KnnParams {
    /// Number of neighbors of each test row.
    pub n_neighbors: usize,
    /// n_rankings x n_features; importances.
    pub rankings: Vec<Vec<f64>>,
    /// Where the papers are silent.
    pub conventions: Conventions,
    /// What becomes of rows without any target, of both sources.
    pub unlabelled: Unlabelled,
}

impl KnnParams {
    /// Searches for `n_neighbors` neighbors under each of the `rankings`, with textbook conventions. A row without any
    /// target is an error.
    pub fn new(n_neighbors: usize, rankings: Vec<Vec<f64>>) -> Self {
        KnnParams { n_neighbors, rankings, conventions: Conventions::Textbook, unlabelled: Unlabelled::Error }
    }

    with_methods! {
        with_conventions => conventions: Conventions;
        with_unlabelled => unlabelled: Unlabelled;
    }

    pub(super) fn validate(&self, n_features: usize) -> Result<()> {
        check(self.n_neighbors > 0, "n_neighbors: at least 1 neighbor is needed")?;
        check(
            self.unlabelled != Unlabelled::Use,
            "unlabelled: rows without a target neither predict nor are predicted; use error or ignore",
        )?;
        for importances in &self.rankings {
            check(
                importances.len() == n_features,
                format!("rankings: {} importances for {n_features} features", importances.len()),
            )?;
            check(importances.iter().all(|importance| importance.is_finite()), "rankings: importances must be finite")?;
        }
        Ok(())
    }
}
