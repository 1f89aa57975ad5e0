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
//!
//! ```
//! use ferrank_neighbors::nearest::{NearestParams, NeighborLists, Search};
//! use ferrank_neighbors::rows::Rows;
//! use ferrank_neighbors::space::{Shape, Space};
//! use ferrank_neighbors::space_panels::layout_of;
//! use ferrank_neighbors::table::Table;
//! use ferrank_runtime::monitor::Monitor;
//!
//! // A number and a category; rows 0, 2 and 4 are of class 0, rows 1 and 3 of class 1.
//! let mut rows = Rows::with_capacity(5, 2);
//! rows.add(0..5).copy_from_slice(&[0.0, 0.0, 0.1, 0.0, 0.3, 0.0, 0.6, 0.0, 0.2, 1.0]);
//! let space = Space::new(vec![Shape::Numeric, Shape::Nominal], vec![None, None], vec![0, 1, 0, 1, 0], 2);
//! let (layout, monitor) = (layout_of(&space), Monitor::default());
//! let params = NearestParams { k: 1, unordered: 0 };
//! let search = Search { space: &space, layout: &layout, params, monitor: &monitor, arch: Default::default() };
//! let found: NeighborLists = search.of_all(&rows, 0)?;
//! assert_eq!(found.of(0).collect::<Vec<_>>(), [[2], [1]]);
//!
//! // Some rows alone are queries.
//! let mut queries = Rows::with_capacity(1, 2);
//! queries.add_some(&rows, &[3]);
//! let found = search.among(&Table::Held(rows), &queries)?;
//! assert_eq!(found.of(3).collect::<Vec<_>>(), [[2], [1]]);
//! # Ok::<(), ferrank_runtime::Error>(())
//! ```

// Bytes are compared on x86-64 alone; elsewhere the kernel measures all pairs.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod byte_search;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod coded_rows;
mod kernel_search;
mod nearest_k;
mod neighbor_lists;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod pairwise_bounds;
mod pairwise_distances;
mod panel_pairs;
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
