//! Tables as the rankers read them.
//!
//! ```text
//! file, table or stream ──▶ source ──▶ schema ──▶ intake ──▶ profile ──▶ store
//!                           (batches)  (roles)    (rows)     (pass 1)    (codes, pass 2)
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`source`] | rows that can be read again, as Arrow record batches |
//! | [`schema`] | roles of columns, and the task that the targets make |
//! | [`intake`] | the rows that take part in a ranking |
//! | [`matrix_features`] | features that are a matrix in memory, row by row |
//! | [`mod@column`] | columns of any Arrow type as numbers or categories |
//! | [`groups`] | rows that belong together, such as those of a patient |
//! | [`hierarchy`], [`labels`], [`closed_sets`] | label hierarchies, label sets, sets closed under their ancestors |
//! | [`category_check`] | new rows whose columns cannot hold the categories of the training data |
//! | [`profile`] | what one pass must know: counts, ranges, categories, cut points; profiles merge |
//! | [`store`], [`values`] | features as small integer codes, targets as they are; in memory or in scratch files |
//! | [`inspect`] | a description of each column |
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! use ferrank_data::schema::{Problem, Roles, Targets, Task};
//! use ferrank_data::source::{ChunkSource, TableSource};
//!
//! let column = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
//! let batch = RecordBatch::try_from_iter([("x", column(vec![1.0, 2.0])), ("y", column(vec![0.5, 1.5]))]).unwrap();
//! let table = TableSource::new("table", batch.schema(), vec![batch])?;
//! let roles = Roles::new(Targets::Named(vec!["y".into()]));
//! let problem = Problem::resolve(&table.schema(), &roles, table.name())?;
//! assert_eq!(problem.task, Task::Regression);
//! assert_eq!(problem.features[0].name, "x");
//! # Ok::<(), ferrank_data::Error>(())
//! ```

pub mod category_check;
pub mod closed_sets;
pub mod column;
pub mod groups;
pub mod hierarchy;
pub mod inspect;
pub mod intake;
pub mod integer_targets;
pub mod labels;
mod matrix_blocks;
pub mod matrix_features;
pub mod profile;
mod reservation;
mod rest;
mod row_labels;
pub mod schema;
pub mod source;
mod sparse;
#[cfg(test)]
mod sparse_tests;
pub mod store;
pub mod values;

pub use ferrank_runtime::{Error, Result};
pub use intake::{Counts, Unlabelled};
