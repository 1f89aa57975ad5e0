//! Settings of a search for neighbors under rankings, and their checks.

use ferrank_data::intake::Unlabelled;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::with_methods;
use serde::Deserialize;

/// Choices where the papers leave one.
///
/// ```
/// use ferrank::knn::{Conventions, KnnParams};
///
/// let params = KnnParams::new(5, vec![vec![0.5, 0.1]]).with_conventions(Conventions::Clus);
/// assert_eq!(params.conventions, Conventions::Clus);
/// ```
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
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::knn::{KnnParams, neighbors};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let params = KnnParams::new(2, vec![vec![1.0, 0.0]]);
/// let found = neighbors(&table, &table, &roles, &params, 1, &Monitor::default())?;
/// assert_eq!((found.n_test, found.distances[0].len()), (60, 60 * 2));
/// # Ok::<(), ferrank::Error>(())
/// ```
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
