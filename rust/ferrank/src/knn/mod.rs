//! The nearest training rows of each test row under the weights of rankings, by which rankings are evaluated
//! (Petković et al. 2020b Eq. 4, Petković et al. 2020a Eq. 11, Petković et al. 2023 §6.4).
//!
//! ```text
//! read both sources on one scale         read
//! for each ranking
//!     rows to panels, weighted           panels (of metric)
//!     the k nearest of each test row     search, by `ferrank-neighbors`
//! ```
//!
//! The distance is Σ w d², with d the difference of two values of a feature, in [0, 1], and w = max(importance,
//! 0) over the sum of these; all weigh the same if none is above 0. Distances are compared to 12 decimals, and
//! ties go to the training row with the lower number. Callers get the targets, too, make the predictions and evaluate
//! them.
//!
//! The papers do not define the scale of values and the treatment of missing values, so there are two
//! [`Conventions`].
//!
//! Memory: 8 bytes a value of both sources, and 4 a value of the training rows in the panels of one ranking.

mod metric;
mod panels;
mod params;
mod read;
mod search;
mod targets;
#[cfg(test)]
mod tests;

use ferrank_data::schema::{Problem, Roles, Task};
use ferrank_data::source::ChunkSource;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::threads::pool;
pub use params::{Conventions, KnnParams};
pub use targets::{Target, TargetPair};

use metric::Metric;
use read::Pair;
use search::Search;

/// NeighborLists, and the targets of both sources.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::knn::{KnnParams, neighbors};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let params = KnnParams::new(2, vec![vec![1.0, 0.0]]);
/// let found = neighbors(&table, &table, &roles, &params, 1, &Monitor::default())?;
/// // Under a ranking by `x` alone, the nearest rows of row 0 are itself and the next one.
/// assert_eq!(found.rows[0][..2], [0, 1]);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Neighbors {
    /// What is to be predicted.
    pub task: Task,
    /// The targets; of a hierarchy each label that a row of either source has.
    pub targets: Vec<Target>,
    /// Training rows that take part.
    pub n_train: usize,
    /// Test rows that take part.
    pub n_test: usize,
    /// n_rankings; n_test x n_neighbors training rows, nearest first.
    pub rows: Vec<Vec<u32>>,
    /// n_rankings; n_test x n_neighbors squared distances.
    pub distances: Vec<Vec<f64>>,
}

/// Finds the neighbors that the rows of `test` have in `train`, on a pool of `threads` threads.
///
/// The columns of `test` are found by name; columns that `train` does not have are not used. The same arguments give
/// the same bits, whatever the number of threads, the chunking of the rows, and the container they come in.
///
/// # Errors
/// An invalid setting, column or value; [`Error::Interrupted`](crate::Error::Interrupted) when `monitor`
/// requests a stop.
pub fn neighbors(
    train: &dyn ChunkSource,
    test: &dyn ChunkSource,
    roles: &Roles,
    params: &KnnParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Neighbors> {
    let problem = Problem::resolve(&train.schema(), roles, train.name())?;
    params.validate(problem.features.len())?;
    check(!problem.targets.is_empty(), "task: rankings are judged by a target, the task unsupervised has none")?;
    let elsewhere = problem.elsewhere(test)?;
    pool(threads)?.install(|| {
        let pair = Pair::read([(train, &problem), (test, &elsewhere)], params, monitor)?;
        check(
            params.n_neighbors <= pair.train.numbers.len(),
            format!(
                "n_neighbors: {} neighbors of {} training rows in {}; ask for fewer",
                params.n_neighbors,
                pair.train.numbers.len(),
                train.name()
            ),
        )?;
        let (mut rows, mut distances) = (Vec::new(), Vec::new());
        for importances in &params.rankings {
            let metric = Metric::new(&pair.features, importances);
            let search = Search { pair: &pair, metric: &metric, k: params.n_neighbors, monitor };
            let (found, apart) = search.run()?;
            rows.push(found);
            distances.push(apart);
        }
        Ok(Neighbors {
            task: problem.task,
            n_train: pair.train.numbers.len(),
            n_test: pair.test.numbers.len(),
            targets: pair.targets,
            rows,
            distances,
        })
    })
}
