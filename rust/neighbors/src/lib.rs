//! Who is near whom: the search that Relief and the judgement of rankings share.
//!
//! ```text
//! rows to panels of 16, in f32 or in bytes          panels, coarse
//! for each panel of queries, and all rows of a class   scan, sweep
//!     how far rows are at least, from bytes            bytes, levels, mutual
//!     measure those that may be among the nearest      by_bytes, pairs
//!     or, where these are many, all of them            by_kernel, kernel
//!     offer them                                       lists
//! settle the order of the candidates in f64            lists
//! ```
//!
//! Fast distances choose, exact ones decide: bytes and kernel let nobody go who could be among the k nearest, by
//! the bounds on their errors; where a doubt is left, sums in f64, rounded to 12 decimals, settle the order, and
//! equals go to the lower row. Whoever searches says what the differences are: how rows become panels and
//! how far these may err (`Panels::of`, `Error`), and how an exact distance is summed up (`ExactDistance`).

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
