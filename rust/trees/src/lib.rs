//! A single decision or regression tree whose tests are chosen by Relief (Robnik-Šikonja and Kononenko 1999 §4).
//!
//! ```text
//! rows, column by column        table
//! for each node, depth first    grow, node_rows
//!     near rows, by Relief      near (of ferrank-relief's near_pairs)
//!     splits of each feature    bins, and their estimates: criteria
//!     the choice                select
//!     a linear model            model
//! prune by the m-estimate       prune
//! leaves of new rows            predict
//! JSON                          storage
//! ```
//!
//! Relief sees features that matter only together, and puts them near the root, which myopic measures do not; so trees
//! are smaller and say what depends on what. A combined selector starts with Relief, and goes over to the accuracy or
//! the mean squared error where the estimates of both agree; [`Split::selector`] tells which chose, for each node.
//!
//! Decisions where the paper is silent:
//!
//! - Relief estimates a feature as it is, on the scale of the node's rows. The split of the best feature is the one
//!   whose own estimate as a feature with two values is best, from the same near rows. The other selectors estimate a
//!   feature by its best split.
//! - Missing values: Relief expects their difference (Eq. 7, 8). Rows whose value is missing go with the side that has
//!   more of the others, and the split is estimated with them there. No row is divided.
//! - Estimates that differ by less than 10⁻¹⁰ are equal; then the most balanced split of a feature counts, then the
//!   lower cut, and the first feature.
//! - Correlations are over the features that can be split, at least three.
//! - Up to eight categories are grouped in all ways; see `bins` for more. Linear models: see `model`, and
//!   `criteria::linear` for their mean squared error.
//!
//! The tree is the same, to the bit, for any threads, batches and containers: nothing is drawn at random.
//!
//! Memory: 8 bytes a number and 2 a category, and for Relief at the root 17 more a value and 16 for each pair of near rows.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
//! use ferrank_data::schema::{Roles, Targets};
//! use ferrank_data::source::TableSource;
//! use ferrank_runtime::monitor::Monitor;
//! use ferrank_trees::{TreeParams, grow};
//!
//! // The class is whether exactly one of a and b is 1; c says nothing.
//! let bit = |row: u32, bit: u32| row >> bit & 1;
//! let column = |at: u32| Arc::new((0..64).map(|row| f64::from(bit(row, at))).collect::<Float64Array>()) as ArrayRef;
//! let class = (0..64).map(|row| Some(if bit(row, 0) != bit(row, 1) { "yes" } else { "no" })).collect::<StringArray>();
//! let columns = [("c", column(3)), ("a", column(0)), ("b", column(1)), ("y", Arc::new(class) as ArrayRef)];
//! let batch = RecordBatch::try_from_iter(columns)?;
//! let source = TableSource::new("table", batch.schema(), vec![batch])?;
//! let roles = Roles::new(Targets::Last(1));
//! let tree = grow(&source, &roles, &TreeParams::default(), 1, &Monitor::default())?;
//! assert_eq!(tree.nodes.len(), 7);
//! assert_eq!(tree.nodes[0].split.as_ref().unwrap().feature, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bins;
mod criteria;
mod grow;
mod model;
mod near;
mod node_rows;
mod params;
mod predict;
mod prune;
mod select;
mod storage;
mod table;
mod tree;

pub use model::{LinearModel, Term};
pub use params::{Leaves, Selector, TreeParams};
pub use predict::Predictions;
pub use tree::{Feature, Node, Split, Test, Tree};

use ferrank_data::intake::{Intake, numbered};
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::threads::pool;
use table::Table;
use tracing::info;

/// Grows and prunes a tree on the rows of `source`, on a pool of `threads` threads.
///
/// The same arguments give the same bits for any number of threads, any chunking of the rows and any container.
///
/// # Errors
/// An invalid setting, column or value;
/// [`Error::Interrupted`](ferrank_runtime::error::Error::Interrupted) when `monitor` requests a stop.
pub fn grow(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &TreeParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Tree> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&problem)?;
    pool(threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.unlabelled, monitor);
        let table = Table::read(&intake)?;
        numbered(table.n_rows as u64, source.name(), "a tree")?;
        let grown = grow::grow(&table, params, problem.task, monitor)?;
        let n_grown = grown.len();
        let nodes = prune::prune(grown, params.m);
        info!("a tree of {n_grown} nodes, of which {} are left after pruning", nodes.len());
        let features = problem.features.iter().zip(table.categories);
        let features = features.map(|(feature, categories)| Feature { name: feature.name.clone(), categories });
        Ok(Tree {
            task: problem.task,
            target: problem.targets[0].name.clone(),
            classes: table.classes,
            features: features.collect(),
            nodes,
        })
    })
}
