//! The forest ranker: ensembles of predictive clustering trees (Petković et al. 2020a, §2.1, Petković et al. 2020b, §3,
//! Petković et al. 2023, §4), and the scores they give to features.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! use ferrank_data::schema::{Roles, Targets};
//! use ferrank_data::source::TableSource;
//! use ferrank_forest::{ForestParams, rank};
//! use ferrank_runtime::monitor::Monitor;
//!
//! let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..200).map(f).collect::<Float64Array>()) as ArrayRef;
//! let batch = RecordBatch::try_from_iter([
//!     ("noise", column(&|i| f64::from(i * 37 % 101))),
//!     ("signal", column(&|i| f64::from(i * 53 % 97))),
//!     ("y", column(&|i| 2.0 * f64::from(i * 53 % 97))),
//! ])
//! .unwrap();
//! let source = TableSource::new("table", batch.schema(), vec![batch])?;
//! let params = ForestParams::default().with_n_estimators(20);
//! let ranking = rank(&source, &Roles::new(Targets::Last(1)), &params, 1, &Monitor::default())?;
//! assert_eq!(ranking.scores[0].rank, [2, 1]);
//! # Ok::<(), ferrank_runtime::Error>(())
//! ```
//!
//! Modules follow the steps of the work:
//!
//! | step | modules |
//! |---|---|
//! | settings | [`params`](ForestParams), [`score`](Score), `validation` |
//! | read and code the data | `prepared`; `parts` for data sets in parts |
//! | targets → components of one impurity | `space`, `criterion`, `pairs`, `contrasts` |
//! | rows of a tree | `bag`; `companions` for trees from which standard errors follow |
//! | growth | `grow`, with `pool` (candidate features), `items` (examples), `view` (codes), `split` (kernels) |
//! | growth of trees whose rows do not fit into memory | `external` |
//! | tree → importances | `tree_worker`, `scores`; `oob`, `router` and `paired` for out-of-bag rows |
//! | tree → error of the forest | `model_error` |
//! | accumulators | `ranker`, `estimates` |
//! | forests that predict, and their files | [`kept`](KeptForest) |
//!
//! # Vocabulary
//!
//! - A *component* is a numeric target, or the indicator of a class or label.
//! - The *criterion* is the weighted sum of the variances of all components.
//! - A *code* is a small integer that represents a value of a feature.
//! - An *example* is a row of the bag with its multiplicity.
//! - A *constraint* is the least size of a child.
//! - A *kernel* is a fast search of cuts for a special case.
//!
//! # Differences from the papers
//!
//! - Gains tie if they agree to 36 binary digits, so that rounding noise does not choose between equal tests.
//! - Ties between features are broken at random, with the random stream of the node.
//! - A missing value of a feature is information (Twala, Jones and Hand 2008): each test is tried with the missing values
//!   on the left and on the right, and whether the value is known is a test of its own. Of equal gains, that with the
//!   missing values on the right is taken. Extra trees draw one of the three at random; among categories, a missing
//!   value is one more. CLUS sends an example with a missing value down both branches in proportion, so that a feature
//!   whose missing values tell the target is not found. With [`Missing::Ignore`], missing values are left out of the
//!   gain, which is scaled by the known share, and their examples go to the heavier child whole.
//!
//! # Memory
//!
//! The codes of all features, one or two bytes each, the components of each row, and for each thread a bag and the
//! buffers of a tree. See `external` for data sets that do not fit into memory.

pub mod apart;
mod bag;
mod candidates;
mod code_records;
mod companion_scores;
mod companions;
mod context;
mod contrasts;
mod criterion;
mod estimates;
mod exchange;
mod external;
mod feature_order;
mod grow;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod items;
mod kept;
mod model_error;
mod oob;
mod paired;
mod pairs;
mod params;
mod parts;
mod pieces;
mod pool;
mod prepared;
mod ranker;
mod router;
mod row_records;
mod score;
mod scores;
mod shadows;
mod space;
mod split;
#[cfg(test)]
mod tests;
mod tree;
mod tree_buffer;
mod tree_worker;
mod validation;
mod view;

pub use kept::*;
pub use params::*;
pub use parts::{Coded, Coder};
pub use score::Score;
pub use tree::{Node, Split, Test, Tree};

use context::GrowContext;
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::CodePlan;
use ferrank_data::schema::{Problem, Roles};
use ferrank_data::source::ChunkSource;
use ferrank_ranking::{Accumulator, Checkpoint, DataShape, Identity, Ranking, RunOptions};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;
use prepared::{Prepared, Resources, single_target};
use tree_worker::TreeWorker;

/// Ranks the features of `source` with an ensemble of trees, on a pool of `threads` threads.
///
/// The same arguments give the same bits, whatever the number of threads and the batches of the source.
///
/// # Errors
/// An error that describes the invalid setting, column or value; [`Error::Interrupted`] on request of `monitor`.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, params, &RunOptions::default().with_threads(threads), monitor)?.ranking()
}

/// Grows the trees that `options` request. Each tree is a contribution under its number.
///
/// With `per_target`, trees are numbered target by target.
///
/// # Errors
/// The errors of [`rank`], and an error that describes an invalid option.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    Ok(grow_forest(source, roles, params, options, monitor, false)?.0)
}

/// Grows all trees, as [`accumulate`] does, and keeps them.
///
/// # Errors
/// The errors of [`rank`], and [`Error::Setting`] for what a forest cannot be kept with: shadows, a file to resume, some of
/// the trees, rows that are a part of the data set, or codes that do not fit into memory.
pub fn accumulate_and_keep(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<(Accumulator, KeptForest)> {
    check(options.resume.is_none(), "resume: it has no trees to keep; leave resume or keep_trees out")?;
    check(options.keys.is_none(), "keep_trees: not for some of the trees of a run; rank all rows together")?;
    let (accumulator, forest) = grow_forest(source, roles, params, options, monitor, true)?;
    match forest {
        Some(forest) => Ok((accumulator, forest)),
        None => Err(Error::Setting("n_estimators: there are no trees to keep; use at least 1".into())),
    }
}

fn grow_forest(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
    keeps_trees: bool,
) -> Result<(Accumulator, Option<KeptForest>)> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    pool(options.threads)?.install(|| {
        let intake = Intake::new(source, &problem, params.treatment(), monitor).with_memory(options.memory);
        // Thresholds of kept trees are values, random cuts are drawn among values, and features that are components are coded
        // from batches.
        let with_cuts = keeps_trees || params.ensemble == Ensemble::ExtraTrees || params.clusters(problem.task);
        let scan = options.scan(&intake, CodePlan { max_bins: params.max_bins, with_cuts })?;
        params.validate(&DataShape::new(&problem).with_rows(scan.rows))?;
        check(
            !params.shadows || !scan.is_part(),
            "shadows: not for rankings of parts of the rows; rank all rows together, or leave shadows out",
        )?;
        // Rows that are a part of the data set say nothing about the spread of the whole.
        let params = &params.clone().with_standard_errors(params.standard_errors && !scan.is_part());
        let identity = Identity::new(params.clone(), &problem, &scan.profile);
        let requested = options.keys(identity.n_keys())?;
        let checkpoint = Checkpoint::open(identity, options.resume, options.memory, monitor)?;
        let missing = checkpoint.missing(requested.clone());
        let mut forest = None;
        if !missing.is_empty() {
            let resources = Resources::new(options);
            let prepared = Prepared::read(&intake, scan, params, Some(&resources))?;
            monitor.enter(Phase::Growing, requested.end - requested.start);
            monitor.advance(requested.end - requested.start - missing.len() as u64);
            let keeper = keeps_trees.then(|| prepared.keeper(params, &resources)).transpose()?;
            prepared.contribute(&missing, params, (&checkpoint, keeper.as_ref()), monitor, |target| {
                // Rows without this target take no part in its trees.
                let problem = problem.alone(target);
                let silent = Monitor::default();
                let unlabelled = Unlabelled::Ignore;
                let intake = Intake::new(source, &problem, unlabelled, &silent).with_memory(options.memory);
                let own = Prepared::profile(&intake, &single_target(params), Some(&resources))?;
                Ok(Prepared { is_part: prepared.is_part, ..own })
            })?;
            forest = keeper.map(|keeper| keeper.finish(prepared.store, params, options.threads));
        }
        Ok((checkpoint.close()?, forest))
    })
}

/// Grows the tree with number `tree` of the ensemble that [`rank`] grows with the same arguments.
///
/// With `per_target`, trees are numbered target by target.
///
/// # Errors
/// The errors of [`rank`], and [`Error::Setting`] if there is no such tree.
pub fn grow_tree(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    tree: usize,
    monitor: &Monitor,
) -> Result<Tree> {
    let mut problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    check(!params.shadows, "shadows: a tree is described without; leave shadows out")?;
    let ensembles = if params.per_target { problem.targets.len() } else { 1 };
    if tree >= params.n_estimators * ensembles {
        return Err(Error::Setting(format!(
            "tree: there is no tree {tree}; the ensemble has trees 0 … {}",
            params.n_estimators * ensembles - 1
        )));
    }
    if params.per_target {
        problem.targets = vec![problem.targets.swap_remove(tree / params.n_estimators)];
    }
    pool(1)?.install(|| {
        let prepared = Prepared::profile(&Intake::new(source, &problem, params.treatment(), monitor), params, None)?;
        let all: Vec<usize> = (0..problem.targets.len()).collect();
        let space = prepared.space(&all, params)?.hold(&prepared.store);
        let context = GrowContext { store: &prepared.store, space: &space, params, monitor };
        Ok(prepared.describe(TreeWorker::new(context, None).grow(tree as u64)?))
    })
}
