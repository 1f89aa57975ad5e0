//! Who is near whom: the search that Relief and the judgement of rankings share.
//!
//! ```text
//! rows to panels of 16, in f32 and in bytes    panels
//! guess from a sample how far neighbours are   reach
//! for each pair of panels                      scan
//!     pairs whose bytes are near, or all       coarse (with bytes)
//!     their distances                          pairs, kernel
//!     offer those that pass a gate             lists
//! settle the order of the candidates in f64    lists
//! ```
//!
//! Fast distances choose, exact ones decide: bytes and kernel let nobody go who could be among the k nearest, by
//! the bounds on their errors; where a doubt is left, sums in f64, rounded to 12 decimals, settle the order, and
//! equals go to the lower row. Whoever searches says what the differences are: how rows become panels and
//! how far these may err (`Panels::of`, `Error`), and how an exact distance is summed up (`Ground`).

// Bytes are compared on x86-64 alone; elsewhere the kernel measures all pairs.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod bytes;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod coarse;
pub(crate) mod kernel;
pub(crate) mod lists;
mod pairs;
pub(crate) mod panels;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod reach;
pub(crate) mod scan;
