//! Contributions of trees or of blocks of queries, and the rankings that they add up to.
//!
//! ```text
//! ranker ──▶ contributions ──▶ accumulator ──▶ ranking
//!            (by key)          (merge, save)   (importances, errors, ranks)
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`ranker`] | the interface of a ranker; nothing here names one |
//! | [`settings!`] | the settings of a ranker, each declared once |
//! | [`run`] | how a run is carried out, and its first pass over the data |
//! | [`contribution`] | the numbers of one tree or of one block of queries |
//! | [`data`], [`identity`] | settings, columns and profile, which must be the same for what is merged |
//! | [`accumulator`] | contributions by key; merging is set union |
//! | [`ipc`] | accumulators as Arrow streams |
//! | [`checkpoint`] | contributions as they are computed, in a file from which a killed run resumes |
//! | [`condensed`] | contributions of an endless stream, added up in a bounded number of parts |
//! | [`estimate`] | importances, their standard errors and ranks |
//! | [`relevance`] | p-values from importances and those of shadows |
//! | [`ranking`] | the result |
//!
//! Sums are taken in the order of the keys, so a ranking has the same bits whichever thread, process or machine
//! computed a contribution, and whenever.
//!
//! ```
//! use ferrank_ranking::{Estimate, Part, Vector};
//!
//! // Two trees; the second one does not use feature 1.
//! let trees = [vec![Vector::dense(vec![4.0, 1.0])], vec![Vector::sparse(vec![(0, 2.0)])]];
//! let parts: Vec<Part<'_>> = (0..).zip(&trees).map(|(key, sums)| Part { key, weight: 1.0, sums }).collect();
//! assert_eq!(Estimate::mean(&parts, 0, 2).mean, [3.0, 0.5]);
//! ```

pub mod accumulator;
pub mod checkpoint;
pub mod condensed;
pub mod contribution;
pub mod data;
pub mod estimate;
pub mod identity;
pub mod ipc;
mod quantile;
pub mod ranker;
pub mod ranking;
pub mod relevance;
pub mod run;
mod settings;

#[doc(hidden)] // for `settings!`
pub use ferrank_runtime::with_methods;

pub use accumulator::Accumulator;
pub use checkpoint::Checkpoint;
pub use condensed::{Condensed, most_parts};
pub use contribution::{Contribution, Form, Part, Vector};
pub use data::{Column, DataShape, RunData};
pub use estimate::{Estimate, effective, rank_intervals};
pub use identity::Identity;
pub use quantile::quantile;
pub use ranker::{ParseRanker, Ranker};
pub use ranking::{ModelError, Ranking, ScoreRanking};
pub use run::{RunOptions, ScanSummary};
