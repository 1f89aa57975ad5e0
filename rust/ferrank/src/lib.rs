//! Feature ranking with ensembles of predictive clustering trees and with the Relief family, over Arrow record
//! batches.
//!
//! ```text
//! source ──▶ profile ──▶ code store ──▶ bag ──▶ tree ──▶ contribution ──▶ accumulator ──▶ ranking
//!            (pass 1)    (pass 2)       (rows of a tree)  (per tree)
//! source ──▶ profile ──▶ rows ──▶ neighbours ──▶ contribution ──▶ accumulator ──▶ ranking
//!                                 (of queries)   (per block of queries)
//! ```
//!
//! | symbol in the papers | Rust | Python |
//! |---|---|---|
//! | descriptive attributes X, D of them | [`schema::Problem::features`] | `X`, `n_features_in_` |
//! | targets Y, T of them | [`schema::Problem::targets`] | `y`, `target` |
//! | ensemble of N trees | [`ForestParams::n_estimators`] | `n_estimators` |
//! | importance of a feature, imp(x) | [`ranking::ScoreRanking::importance`] | `feature_importances_` |
//! | k neighbours, m iterations | [`ReliefParams::n_neighbors`], [`ReliefParams::n_iterations`] | `n_neighbors`, `n_iterations` |
//! | level of supervision w | [`ForestParams::supervision`] | `supervision` |
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! use ferrank::prelude::*;
//!
//! let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..200).map(f).collect::<Float64Array>()) as ArrayRef;
//! let batch = RecordBatch::try_from_iter([
//!     ("noise", column(&|i| f64::from(i * 37 % 101))),
//!     ("signal", column(&|i| f64::from(i * 53 % 97))),
//!     ("y", column(&|i| 2.0 * f64::from(i * 53 % 97))),
//! ])
//! .unwrap();
//! let table = TableSource::new("table", batch.schema(), vec![batch])?;
//! let roles = Roles::new(Targets::Named(vec!["y".into()]));
//! let settings = Settings::from(ForestParams::default());
//! let ranking = rank(&table, &roles, &settings, &RunOptions::default(), &Monitor::default())?;
//! assert_eq!(ranking.scores[0].rank, [2, 1]);
//! # Ok::<(), ferrank::Error>(())
//! ```
//!
//! The work is done in crates of their own, which depend on each other in this order: `ferrank-runtime` (errors,
//! progress, memory), `ferrank-arff`, `ferrank-data` (tables), `ferrank-measures`, `ferrank-ranking` (contributions and rankings),
//! `ferrank-neighbors`, `ferrank-forest`, `ferrank-relief`, `ferrank-association`, `ferrank-trees`. This crate offers what their users need.

pub mod early_stopping;
pub mod knn;
pub mod prelude;
pub mod run;
pub mod settings;
pub mod stream;

pub use ferrank_association as association;
pub use ferrank_association::AssociationParams;
pub use ferrank_data::{
    category_check, closed_sets, hierarchy, inspect, intake, integer_targets, profile, schema, source,
};
pub use ferrank_forest as forest;
pub use ferrank_forest::ForestParams;
pub use ferrank_measures as measures;
pub use ferrank_ranking::{RunOptions, rank_intervals, ranking, relevance};
pub use ferrank_relief as relief;
pub use ferrank_relief::ReliefParams;
pub use ferrank_runtime::{Error, Result, budget, monitor};
pub use ferrank_trees as trees;
pub use ferrank_univariate as univariate;
pub use run::rank;
pub use settings::Settings;

/// Parts of a run, on as many machines as there are, add up to the whole:
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let settings = Settings::from(ForestParams::default().with_n_estimators(10));
/// let part = |trees| accumulate(&table, &roles, &settings, &RunOptions::default().with_keys(Some(trees)), &monitor);
/// let mut accumulator: Accumulator = part(0..6)?;
/// accumulator.merge(&part(4..10)?)?;
/// assert_eq!(accumulator.ranking()?, rank(&table, &roles, &settings, &RunOptions::default(), &monitor)?);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[doc(inline)]
pub use ferrank_ranking::Accumulator;
/// Runs that differ in a setting or in the data have different identities, and do not add up:
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let settings = Settings::from(ForestParams::default().with_n_estimators(10));
/// let run = |settings: &Settings| accumulate(&table, &roles, settings, &RunOptions::default(), &monitor);
/// let (one, other) = (run(&settings)?, run(&ReliefParams::default().into())?);
/// assert_eq!(one.identity().n_keys(), 10);
/// assert_ne!(one.identity().fingerprint(), other.identity().fingerprint());
/// # Ok::<(), ferrank::Error>(())
/// ```
#[doc(inline)]
pub use ferrank_ranking::Identity;
/// A ranking has an entry for each score:
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let settings = Settings::from(ForestParams::default().with_n_estimators(10));
/// let Ranking { features, scores, .. } = rank(&table, &roles, &settings, &RunOptions::default(), &monitor)?;
/// assert_eq!(features, ["x", "z"]);
/// assert_eq!(scores[0].rank, [1, 2]);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[doc(inline)]
pub use ferrank_ranking::Ranking;
