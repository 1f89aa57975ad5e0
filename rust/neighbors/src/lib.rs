//! Exact nearest neighbors among rows of mixed, missing and sparse values.
//!
//! Relief and the evaluation of rankings by k-NN share this search.
//!
//! ```text
//! rows ──▶ panels of 16 rows ──▶ scan ──▶ tiles of pairs ──▶ a sink: the k nearest, or another neighborhood
//! ```
//!
//! | term | module | meaning |
//! |---|---|---|
//! | rows, table | [`rows`], [`table`], `columns`, [`sparse`], [`spilled`] | values in memory, read anew for each pass, without usual values, or in a temporary file |
//! | distance space | [`space`], [`ranks`], [`missing`], [`weights`], [`context`] | differences by feature and their weights, expected differences of missing values |
//! | panel | [`layout`], [`panels`], [`space_panels`] | 16 rows of one class, feature by feature, in f32 |
//! | gap | `gaps` | a missing value of a feature with few; panels hold a mean in its place |
//! | byte codes | `byte_codes`, `bytes` | values rounded to bytes and categories to two bits, for lower bounds of distances |
//! | coded rows | `nearest::coded_rows` | few rows with many features as integers of 16 bits and bytes, for the distances of all pairs |
//! | kernel | [`kernel`], `pairs`, `vectors` | distances in f32: 16 rows by 16, or pair by pair |
//! | scan, tile, sink | [`scan`], [`tile`], [`sink`] | all pairs of queries and rows, offered to what wants them |
//! | all pairs | [`all_pairs`], [`fixed`] | distances of all pairs in f64 and in fixed point, and sums of differences, for rules by radius |
//! | nearest | [`nearest`] | the sink of the k nearest, with lower bounds that skip work |
//!
//! Distances in f32 choose candidates, exact ones decide: bounds on the errors of byte codes and kernel keep every row
//! that could be among the k nearest. Sums in f64 in the order of the features, rounded to 12 decimals, decide the order
//! ([`sink::ExactDistance`]); of equally near rows the one with the lower number is nearer.
//!
//! Memory: for each row and feature 4 bytes in panels, 4 for distances of single pairs, 8 as values and 1 as byte code, or a
//! quarter of a byte for a category.
//!
//! ```
//! use ferrank_neighbors::missing::MissingModel;
//! use ferrank_neighbors::space::{Shape, Space, rounded};
//!
//! // A feature with the values 0, 1/2 and 1, and a missing one: it differs from 0 by 1/2 on average.
//! let model = MissingModel::new(&[0.0, 0.5, 1.0, f64::NAN], false, &[], 1).expect("values are known");
//! let space = Space::new(vec![Shape::Numeric], vec![Some(model)], Vec::new(), 1);
//! assert_eq!(space.apart(0, (0.0, 0), (f64::NAN, 0)), 0.5);
//! // A distance is the mean over features, to 12 decimals.
//! assert_eq!(rounded(1.0, 3.0), 0.333333333333);
//! ```

pub mod all_pairs;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod byte_codes;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod bytes;
mod columns;
pub mod context;
pub mod fixed;
mod gaps;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
pub mod kernel;
pub mod layout;
pub mod missing;
pub mod nearest;
mod pairs;
pub mod panels;
pub mod ranks;
mod row_parts;
pub mod rows;
pub mod scan;
pub mod sink;
pub mod space;
pub mod space_panels;
pub mod sparse;
pub mod spilled;
mod steps;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tile;
mod vectors;
pub mod weights;
