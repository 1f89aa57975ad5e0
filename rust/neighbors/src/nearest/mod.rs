//! The exact k nearest neighbors, of each class, of some rows among all rows.
//!
//! ```text
//! for each tile (16 queries, some rows of one class):
//!     where values have byte codes: measure the rows whose lower bound is below the query's threshold
//!     elsewhere, or if these are too many: measure all by the kernel, 16 by 16
//!     push rows at most as far away as the threshold to the query's list
//! refine the lists by exact distances
//! ```
//!
//! Lower bounds and distances in f32 only choose candidates; [`ExactDistance`](crate::sink::ExactDistance) decides the
//! order. So the lists are the same for all tiles, threads and vector instructions.

// Bytes are compared on x86-64 alone; elsewhere the kernel measures all pairs.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod byte_search;
mod kernel_search;
mod nearest_k;
mod neighbor_lists;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod pairwise_bounds;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod quantized;
mod search;
mod sweep;

pub use nearest_k::{NearestK, NearestParams, bytes};
pub use neighbor_lists::NeighborLists;
pub use search::Search;
pub use sweep::Bounds;

/// Groups of rows whose smallest distances bound the k-th nearest, for each neighbor that is searched.
const GROUPS_PER_NEIGHBOR: usize = 2;
