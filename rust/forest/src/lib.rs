//! The forest ranker: ensembles of predictive clustering trees (Petković et al. 2020a, §2.1, Petković et al. 2020b, §3,
//! Petković et al. 2023, §4), and the scores they give to features.
//!
//! Modules follow the steps of the work:
//!
//! | step | modules |
//! |---|---|
//! | settings | [`params`](ForestParams), [`scores`](Score) |
//! | targets → components of one impurity | `space`, `criterion` |
//! | rows of a tree | `bag` |
//! | growth | `grow`, with `pool` (candidate features), `items` (examples), `view` (codes), `split` (kernels) |
//! | growth where memory does not hold the rows | `external` |
//! | tree → importances | `scores`; `oob` and `router` for out-of-bag rows |
//! | accumulators | `ranker`, `estimates`; `parts` for data sets in parts |
//!
//! Vocabulary: a *component* is a numeric target or the indicator of a class or label; the *criterion* is the weighted
//! sum of the variances of all components; a *code* is a small integer that stands for a value of a feature; a
//! *constraint* is the least size of a child; a *kernel* is a fast way to search cuts.
//!
//! Differences from the papers: gains tie when they agree to 36 binary digits, so that rounding
//! noise does not choose between equal tests. Ties between features are broken at random, from the node's own stream.
//! Examples with a missing value follow the heavier branch.
//!
//! Memory: the codes of all features, a byte or two each, the components of each row, and for each thread a bag and
//! the buffers of a tree; see `external` for data sets that do not fit.

mod bag;
mod candidates;
mod context;
mod criterion;
mod estimates;
mod external;
mod grow;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod items;
mod oob;
mod params;
mod parts;
mod pool;
mod ranker;
mod router;
mod score;
mod scores;
mod space;
mod split;
#[cfg(test)]
mod tests;
mod tree;
mod tree_buffer;
mod validation;
mod view;

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

pub use params::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Ties};
pub use parts::{Coded, code};
pub use score::Score;
pub use tree::{Node, Split, Test, Tree};

use bag::Bag;
use context::GrowContext;
use ferrank_data::intake::{Intake, Unlabelled, numbered};
use ferrank_data::profile::Scale;
use ferrank_data::schema::{Problem, Roles, names};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
use ferrank_ranking::Ranking;
use ferrank_ranking::{Accumulator, Checkpoint, Contribution, DataShape, Identity};
use ferrank_ranking::{RunOptions, ScanSummary};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::scratch::Scratch;
use ferrank_runtime::threads::pool;
use grow::Grower;
use oob::OobContext;
use pulp::Arch;
use scores::{SplitScores, need_oob, score_size};
use space::{Plan, Space};
use tracing::info;
use tree_buffer::{BufferedNode, CodeTest, TreeBuffer};

/// Ranks the features of `source` with an ensemble of trees, on a pool of `threads` threads.
///
/// The same arguments give the same bits, whatever the number of threads, the chunking of the rows,
/// and the container they come in.
///
/// # Errors
/// What is wrong with a setting, a column or a value; [`Error::Interrupted`] once `monitor` was
/// asked to stop.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Ranking> {
    accumulate(source, roles, params, &RunOptions { threads, ..RunOptions::default() }, monitor)?.ranking()
}

/// Grows the trees that `options` request. Each tree is a contribution under its number.
///
/// With `per_target`, trees are numbered target by target.
///
/// # Errors
/// The errors of [`rank`], and what is wrong with `options`.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    options: &RunOptions<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate(&DataShape::new(&problem))?;
    pool(options.threads)?.install(|| {
        let intake = Intake { source, problem: &problem, unlabelled: params.treatment(), monitor };
        let scan = options.scan(&intake, params.max_bins)?;
        params.validate(&DataShape::new(&problem).with_rows(scan.rows))?;
        let identity = Identity::new(params.clone(), &problem, &scan.profile);
        let asked = options.keys(identity.n_keys())?;
        let checkpoint = Checkpoint::open(identity, options.resume, monitor)?;
        let missing = checkpoint.missing(asked.clone());
        if !missing.is_empty() {
            let resources = Resources { budget: Budget::new(options.memory), scratch: Scratch::new(options.temp_dir) };
            let prepared = Prepared::read(&intake, scan, params, Some(&resources))?;
            monitor.enter(Phase::Growing, asked.end - asked.start);
            monitor.advance(asked.end - asked.start - missing.len() as u64);
            prepared.contribute(&missing, params, &checkpoint, monitor, |target| {
                // Rows without this target take no part in its trees.
                let problem = problem.alone(target);
                let silent = Monitor::default();
                let unlabelled = Unlabelled::Ignore;
                let intake = Intake { source, problem: &problem, unlabelled, monitor: &silent };
                Prepared::profile(&intake, &single_target(params), Some(&resources))
            })?;
        }
        checkpoint.close()
    })
}

/// Grows tree number `tree` of the ensemble that [`rank`] grows with the same arguments.
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
        let prepared = Prepared::profile(
            &Intake { source, problem: &problem, unlabelled: params.treatment(), monitor },
            params,
            None,
        )?;
        let all: Vec<usize> = (0..problem.targets.len()).collect();
        let space = prepared.space(&all, params)?.hold(&prepared.store);
        let context = GrowContext { store: &prepared.store, space: &space, params, monitor };
        let mut worker = TreeWorker::new(context);
        worker.draw(tree as u64);
        Ok(prepared.describe(worker.grower.grow(&worker.bag, tree as u64)?))
    })
}

/// The settings of the ensemble of a single target of several.
fn single_target(params: &ForestParams) -> ForestParams {
    ForestParams { target_weights: None, by_target: false, unlabelled: Unlabelled::Ignore, ..params.clone() }
}

/// Resources of a run besides threads.
#[derive(Debug, Clone)]
struct Resources {
    budget: Budget,
    scratch: Scratch,
}

/// A source that was read and coded.
#[derive(Debug)]
struct Prepared {
    problem: Problem,
    store: CodeStore,
    /// Resources for growth in external memory, where memory does not hold the store and the bags.
    outside: Option<Resources>,
}

impl Prepared {
    /// Profiles and codes the rows of `intake`.
    fn profile(intake: &Intake<'_>, params: &ForestParams, resources: Option<&Resources>) -> Result<Self> {
        let options = RunOptions::default();
        let scan = options.scan(intake, params.max_bins)?;
        params.validate(&DataShape::new(intake.problem).with_rows(scan.rows))?;
        Prepared::read(intake, scan, params, resources)
    }

    /// Codes the rows of `intake`, which was scanned before. Codes are in memory, unless they do not fit the budget of
    /// `resources`.
    fn read(
        intake: &Intake<'_>,
        scan: ScanSummary<'_>,
        params: &ForestParams,
        resources: Option<&Resources>,
    ) -> Result<Self> {
        let (rows, counts) = (scan.rows, scan.counts);
        if resources.is_none() || need_oob(&params.scores) {
            numbered(rows, intake.source.name(), "a tree in memory, or a score of out-of-bag rows,")?;
        }
        let problem = intake.problem;
        let book = Codebook::of(&scan.profile, problem, params.clusters(problem.task), intake.source.name())?;
        // It holds a sample of the rows.
        drop(scan);
        let outside =
            resources.filter(|resources| !external::holds_all(rows, &book, params, resources.budget.left())).cloned();
        match &outside {
            None => info!("memory plan: the codes of {rows} rows are held in memory"),
            Some(Resources { scratch, .. }) => {
                info!(
                    "memory plan: the codes of {rows} rows are kept in temporary files in {}",
                    scratch.folder().display()
                );
            }
        }
        let keep = outside.as_ref().map_or(Keep::Memory, |resources| Keep::Scratch(&resources.scratch));
        let part = Part::of(intake, &book, counts, keep)?;
        let store = CodeStore::of_parts(book, vec![part], keep)?;
        Ok(Prepared { problem: problem.clone(), store, outside })
    }

    fn space(&self, subset: &[usize], params: &ForestParams) -> Result<Space> {
        let names = names(&self.problem.targets);
        let plan = Plan {
            task: self.problem.task,
            subset,
            names: &names,
            weights: params.target_weights.as_deref(),
            supervision: params.share_of_targets(self.problem.task),
        };
        Space::new(&self.store, &plan)
    }

    /// Grows `trees`, by their numbers in the whole run. `without` prepares the rows that have a target, where
    /// it is missing in others and each target has its own ensemble.
    fn contribute(
        &self,
        trees: &[u64],
        params: &ForestParams,
        checkpoint: &Checkpoint,
        monitor: &Monitor,
        without: impl Fn(usize) -> Result<Prepared>,
    ) -> Result<()> {
        let n_targets = self.problem.targets.len();
        if !params.per_target {
            return self.grow(&(0..n_targets).collect::<Vec<usize>>(), trees, params, checkpoint, monitor);
        }
        for target in 0..n_targets {
            let own = target * params.n_estimators..(target + 1) * params.n_estimators;
            let trees: Vec<u64> = trees.iter().copied().filter(|&tree| own.contains(&(tree as usize))).collect();
            if trees.is_empty() {
                continue;
            }
            // Where features are components, too, rows without this target take part all the same.
            let has_missing = !params.clusters(self.problem.task) && self.store.targets[target].has_missing();
            match has_missing {
                true => without(target)?.grow(&[0], &trees, &single_target(params), checkpoint, monitor)?,
                false => self.grow(&[target], &trees, &single_target(params), checkpoint, monitor)?,
            }
        }
        Ok(())
    }

    /// Grows `trees` for the targets `subset`.
    fn grow(
        &self,
        subset: &[usize],
        trees: &[u64],
        params: &ForestParams,
        checkpoint: &Checkpoint,
        monitor: &Monitor,
    ) -> Result<()> {
        let space = self.space(subset, params)?;
        if let Some(Resources { budget, scratch }) = &self.outside {
            let context = GrowContext { store: &self.store, space: &space, params, monitor };
            return external::grow(context, budget, scratch, subset, trees, &|tree, vectors| {
                checkpoint.add(tree, vectors)
            });
        }
        let space = space.hold(&self.store);
        let context = GrowContext { store: &self.store, space: &space, params, monitor };
        let oob = need_oob(&params.scores).then(|| OobContext::new(context, subset, None));
        let idle = Mutex::new(Vec::new());
        let free = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        trees.par_iter().with_max_len(1).try_for_each(|&tree| {
            let worker = free().pop();
            let mut worker = worker.unwrap_or_else(|| TreeWorker::new(context));
            checkpoint.add(tree, worker.tree(oob.as_ref(), tree)?)?;
            monitor.advance(1);
            free().push(worker);
            Ok(())
        })
    }

    /// A grown tree with tests on the values of the source.
    fn describe(&self, grown: &TreeBuffer) -> Tree {
        let test = |feature: usize, test: &CodeTest| match (&self.store.codings[feature].scale, test) {
            (Scale::Numeric(cuts), CodeTest::Cut(code)) => Test::Cut(cuts.cuts[usize::from(*code)]),
            (Scale::Nominal(categories), CodeTest::Subset(codes)) => {
                Test::Subset(codes.iter().map(|&code| categories.names[usize::from(code)].clone()).collect())
            }
            _ => unreachable!("numeric features are cut, nominal ones parted"),
        };
        let node = |node: &BufferedNode| Node {
            depth: node.depth as usize,
            n_examples: node.examples as u64,
            split: node.split.as_ref().map(|split| Split {
                feature: split.feature as usize,
                test: test(split.feature as usize, &split.test),
                missing_left: split.missing_left,
                gain: split.gain,
                children: (split.children[0] as usize, split.children[1] as usize),
            }),
        };
        Tree { nodes: grown.nodes.iter().map(node).collect() }
    }
}

/// Buffers with which a thread grows its trees.
struct TreeWorker<'a> {
    context: GrowContext<'a>,
    bag: Bag,
    grower: Grower<'a>,
}

impl<'a> TreeWorker<'a> {
    fn new(context: GrowContext<'a>) -> Self {
        TreeWorker { context, bag: Bag::default(), grower: Grower::new(context, Arch::new()) }
    }

    /// Draws the bag of tree number `tree`.
    fn draw(&mut self, tree: u64) {
        let (rows, params) = (self.context.store.rows, self.context.params);
        match params.bootstraps() {
            true => self.bag.take_bootstrap(params.seed, tree, rows, params.rows_per_tree(rows as u64)),
            false => self.bag.take_all(rows),
        }
    }

    /// Grows tree number `tree` and scores the features; `oob` is needed by scores that read out-of-bag rows.
    fn tree(&mut self, oob: Option<&OobContext<'_>>, tree: u64) -> Result<Contribution> {
        let GrowContext { params, monitor, .. } = self.context;
        monitor.check()?;
        self.draw(tree);
        let mut scores = SplitScores::new(params, score_size(self.context));
        let Some(oob) = oob else {
            return Ok(self.grower.score(&self.bag, tree, scores)?.harvest());
        };
        let grown = self.grower.grow(&self.bag, tree)?;
        scores.add_splits(grown);
        let mut complete = oob.tree();
        complete.add_tree(None, grown, &oob.targets);
        scores.on_tree(&oob.view(tree, &mut complete, &oob.rows(&self.bag)))?;
        Ok(scores.harvest())
    }
}
