//! Exact nearest neighbours among rows of mixed, missing and sparse values.
//!
//! Relief and the judgement of rankings share this search.
//!
//! ```text
//! rows ──▶ panels of 16 rows ──▶ lower bounds from byte codes ──▶ distances in f32 ──▶ lists refined in f64
//! ```
//!
//! | term | module | what |
//! |---|---|---|
//! | row, table | [`rows`], [`table`], [`sparse`] | rows in memory, read anew for each pass, or by their unusual values |
//! | distance space | [`space`], [`missing`], [`context`] | differences by feature, expected differences of missing values |
//! | panel | [`layout`], [`panels`], [`space_panels`] | 16 rows of one class, feature by feature, in f32 |
//! | byte codes | [`byte_codes`], `bytes`, `quantized`, [`pairwise_bounds`] | values rounded to bytes, and lower bounds of distances from them |
//! | kernel | [`kernel`], `pairs`, `vectors` | distances in f32: 16 rows by 16, or pair by pair |
//! | scan | [`scan`], `tile`, `sweep`, `by_bytes`, `by_kernel` | tiles of rows against panels of queries |
//! | list | [`lists`], [`search`], [`neighbours`] | candidates of each query and class, and their final order |
//!
//! Fast distances choose, exact ones decide: the bounds on the errors of byte codes and kernel make sure that no row
//! which could be among the k nearest is left out. Sums in f64 in the order of the features, rounded to 12 decimals,
//! decide the order ([`lists::ExactDistance`]); equal distances go to the lower row.
//!
//! Memory: for each row 4 bytes a feature in panels, 4 for the kernel of pairs, 8 as values, and a byte for its code.
//!
//! ```
//! use ferrank_neighbors::layout::LANES;
//! use ferrank_neighbors::space::rounded;
//!
//! assert_eq!(LANES, 16);
//! // The mean over three features, to 12 decimals.
//! assert_eq!(rounded(1.0, 3), 0.333333333333);
//! ```

// Bytes are compared on x86-64 alone; elsewhere the kernel measures all pairs.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod by_bytes;
mod by_kernel;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub mod byte_codes;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod bytes;
pub mod context;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
pub mod kernel;
pub mod layout;
pub mod lists;
pub mod missing;
pub mod neighbours;
mod pairs;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub mod pairwise_bounds;
pub mod panels;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod quantized;
mod row_parts;
pub mod rows;
pub mod scan;
pub mod search;
pub mod space;
pub mod space_panels;
pub mod sparse;
mod sweep;
pub mod table;
#[cfg(test)]
mod tests;
mod tile;
mod vectors;
