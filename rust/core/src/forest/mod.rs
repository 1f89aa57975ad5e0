//! The forest ranker: ensembles of predictive clustering trees (mtr-ranking §2.1, mlc-ranking §3,
//! ssl-ranking §4), and the scores they give to features.
//!
//! The rooms follow the steps: [`params`](ForestParams) → `space` (targets to components) → `bag` →
//! `grow` (with `pool`, `view`, `split`, `moments`) → `scores`, `permutation`.
//!
//! Where we differ from the papers: gains tie when they agree to 36 binary digits, so that rounding
//! noise does not choose between equal tests; ties between features are drawn; examples that miss a
//! feature follow the heavier branch.

mod bag;
mod contest;
mod estimates;
mod grow;
mod grown;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod items;
mod moments;
mod params;
mod passes;
mod permutation;
mod pool;
mod scores;
mod space;
mod split;
#[cfg(test)]
mod tests;
mod tree;
mod view;

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

pub(crate) use estimates::{forms, n_keys, scores};
pub use params::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Score, Ties};
pub use tree::{Node, Split, Test, Tree};

use crate::accumulate::{Accumulator, Contribution, Identity, Ledger, Settings, Vector};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::intake::{Intake, Unlabelled, numbered};
use crate::monitor::{Monitor, Phase};
use crate::profile::Scale;
use crate::ranking::Ranking;
use crate::run::{Met, Options};
use crate::schema::{Problem, Roles, names};
use crate::scratch::Scratch;
use crate::source::ChunkSource;
use crate::store::{CodeStore, Codebook, Keep, Part};
use crate::threads::pool;
use bag::Bag;
use grow::{Ground, Grower};
use grown::{CodeTest, Grown, GrownNode};
use pulp::Arch;
use scores::Tally;
use space::{Space, has_missing};

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
    accumulate(source, roles, params, &Options { threads, ..Options::default() }, monitor)?.ranking()
}

/// Grows the trees that `options` ask for, each of which is a contribution under its number.
///
/// With `per_target`, trees are numbered target by target.
///
/// # Errors
/// Those of [`rank`], and what is wrong with `options`.
pub fn accumulate(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    options: &Options<'_>,
    monitor: &Monitor,
) -> Result<Accumulator> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate_shape(problem.features.len(), problem.targets.len())?;
    pool(options.threads)?.install(|| {
        let intake = Intake { source, problem: &problem, monitor };
        let met = options.meet(&intake, params.max_bins, params.unlabelled)?;
        params.validate(met.rows, problem.features.len(), problem.targets.len())?;
        let identity = Identity::new(Settings::Forest(params.clone()), &problem, &met.profile);
        let asked = options.keys(identity.n_keys())?;
        let ledger = Ledger::open(identity, options.resume, monitor)?;
        let missing = ledger.missing(asked.clone());
        let means = Means { budget: Budget::new(options.memory), scratch: Scratch::new(options.scratch) };
        let mut growth = Growth { asked: asked.end - asked.start, missing, ledger: &ledger, params, monitor };
        let read = || Prepared::read(&intake, met, params, Some(&means));
        match params.per_target {
            false => growth.all(read)?,
            true => growth.per_target(&intake, &means, read)?,
        }
        ledger.close()
    })
}

/// The trees that are still to be grown.
struct Growth<'a> {
    /// Number of trees asked for.
    asked: u64,
    /// Numbers of those that the ledger does not have.
    missing: Vec<u64>,
    ledger: &'a Ledger,
    params: &'a ForestParams,
    monitor: &'a Monitor,
}

impl Growth<'_> {
    /// Says that trees are grown from here on, and how many there are already.
    fn begin(&self) {
        self.monitor.enter(Phase::Growing, self.asked);
        self.monitor.advance(self.asked - self.missing.len() as u64);
    }

    /// One ensemble for all targets together.
    fn all<'b>(&self, read: impl FnOnce() -> Result<Prepared<'b>>) -> Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let prepared = read()?;
        self.begin();
        let all: Vec<usize> = (0..prepared.problem.targets.len()).collect();
        prepared.grow(&all, &self.missing, self.params, self.ledger, self.monitor)
    }

    /// One ensemble for each target.
    fn per_target<'b>(
        &mut self,
        intake: &Intake<'b>,
        means: &Means,
        read: impl FnOnce() -> Result<Prepared<'b>>,
    ) -> Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let prepared = read()?;
        self.begin();
        let params = ForestParams { target_weights: None, by_target: false, ..self.params.clone() };
        let n_trees = self.params.n_estimators as u64;
        for target in 0..prepared.problem.targets.len() {
            let own = target as u64 * n_trees..(target as u64 + 1) * n_trees;
            let trees: Vec<u64> = self.missing.iter().copied().filter(|tree| own.contains(tree)).collect();
            if !has_missing(&prepared.store.targets[target]) {
                prepared.grow(&[target], &trees, &params, self.ledger, self.monitor)?;
            } else if !trees.is_empty() {
                // Rows without this target take no part in its trees.
                let mut problem = prepared.problem.clone();
                problem.targets = vec![problem.targets.swap_remove(target)];
                let params = ForestParams { unlabelled: Unlabelled::Ignore, ..params.clone() };
                let silent = Monitor::default();
                let intake = Intake { problem: &problem, monitor: &silent, ..*intake };
                let prepared = Prepared::profile(&intake, &params, Some(means))?;
                prepared.grow(&[0], &trees, &params, self.ledger, self.monitor)?;
            }
        }
        Ok(())
    }
}

/// Grows tree number `tree` of the ensemble that [`rank`] grows with the same arguments.
///
/// With `per_target`, trees are numbered target by target.
///
/// # Errors
/// Those of [`rank`], and [`Error::Setting`] if there is no such tree.
pub fn grow_tree(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    tree: usize,
    monitor: &Monitor,
) -> Result<Tree> {
    let mut problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate_shape(problem.features.len(), problem.targets.len())?;
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
        let prepared = Prepared::profile(&Intake { source, problem: &problem, monitor }, params, None)?;
        let all: Vec<usize> = (0..problem.targets.len()).collect();
        let space = prepared.space(&all, params)?.hold(&prepared.store);
        let ground = Ground { store: &prepared.store, space: &space, params, monitor };
        let mut bench = Bench::new(ground);
        bench.draw(tree as u64);
        Ok(prepared.describe(bench.grower.grow(&bench.bag, tree as u64)?))
    })
}

/// What a run may use besides threads.
struct Means {
    budget: Budget,
    scratch: Scratch,
}

/// A source, read and coded.
struct Prepared<'a> {
    problem: &'a Problem,
    store: CodeStore,
    /// Where memory does not hold the store and the bags: what trees are grown with.
    outside: Option<&'a Means>,
}

impl<'a> Prepared<'a> {
    /// Profiles and codes what `intake` gives.
    fn profile(intake: &Intake<'a>, params: &ForestParams, means: Option<&'a Means>) -> Result<Self> {
        let options = Options::default();
        let met = options.meet(intake, params.max_bins, params.unlabelled)?;
        params.validate(met.rows, intake.problem.features.len(), intake.problem.targets.len())?;
        Prepared::read(intake, met, params, means)
    }

    /// Codes what `intake` gives, which was met before: in memory, unless `means` say that it does not fit.
    fn read(intake: &Intake<'a>, met: Met<'_>, params: &ForestParams, means: Option<&'a Means>) -> Result<Self> {
        let (rows, counts) = (met.rows, met.counts);
        if means.is_none() || params.scores.contains(&Score::Permutation) {
            numbered(rows, intake.source.name(), "a tree in memory, or the permutation score,")?;
        }
        let book = Codebook::of(&met.profile, intake.problem.weight.is_some());
        // It holds a sample of the rows.
        drop(met);
        let outside = means.filter(|means| !passes::holds_all(rows, &book, params, means.budget.left()));
        let keep = outside.map_or(Keep::Memory, |means| Keep::Scratch(&means.scratch));
        let part = Part::of(intake, &book, counts, keep)?;
        Ok(Prepared { problem: intake.problem, store: CodeStore::of_parts(book, vec![part], keep)?, outside })
    }

    fn space(&self, subset: &[usize], params: &ForestParams) -> Result<Space> {
        let names = names(&self.problem.targets);
        Space::new(&self.store, subset, &names, self.problem.task, params.target_weights.as_deref())
    }

    /// Grows `trees` for the targets `subset`.
    fn grow(
        &self,
        subset: &[usize],
        trees: &[u64],
        params: &ForestParams,
        ledger: &Ledger,
        monitor: &Monitor,
    ) -> Result<()> {
        let space = self.space(subset, params)?;
        if let Some(Means { budget, scratch }) = self.outside {
            let ground = Ground { store: &self.store, space: &space, params, monitor };
            return passes::grow(ground, budget, scratch, subset, trees, &|tree, vectors| ledger.add(tree, vectors));
        }
        let space = space.hold(&self.store);
        let ground = Ground { store: &self.store, space: &space, params, monitor };
        let idle = Mutex::new(Vec::new());
        let free = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        trees.par_iter().with_max_len(1).try_for_each(|&tree| {
            let bench = free().pop();
            let mut bench = bench.unwrap_or_else(|| Bench::new(ground));
            ledger.add(tree, bench.tree(subset, tree)?)?;
            monitor.advance(1);
            free().push(bench);
            Ok(())
        })
    }

    /// A grown tree in the words of the source.
    fn describe(&self, grown: &Grown) -> Tree {
        let test = |feature: usize, test: &CodeTest| match (&self.store.codings[feature].scale, test) {
            (Scale::Numeric(cuts), CodeTest::Cut(code)) => Test::Cut(cuts.cuts[usize::from(*code)]),
            (Scale::Nominal(categories), CodeTest::Subset(codes)) => {
                Test::Subset(codes.iter().map(|&code| categories.names[usize::from(code)].clone()).collect())
            }
            _ => unreachable!("numeric features are cut, nominal ones parted"),
        };
        let node = |node: &GrownNode| Node {
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

/// What a thread grows its trees with.
struct Bench<'a> {
    ground: Ground<'a>,
    bag: Bag,
    grower: Grower<'a>,
}

impl<'a> Bench<'a> {
    fn new(ground: Ground<'a>) -> Self {
        Bench { ground, bag: Bag::default(), grower: Grower::new(ground, Arch::new()) }
    }

    /// Draws the bag of tree number `tree`.
    fn draw(&mut self, tree: u64) {
        let (rows, params) = (self.ground.store.rows, self.ground.params);
        match params.bootstraps() {
            true => self.bag.take_bootstrap(params.seed, tree, rows, params.rows_per_tree(rows as u64)),
            false => self.bag.take_all(rows),
        }
    }

    /// Grows tree number `tree` for the targets `subset`, and scores the features.
    fn tree(&mut self, subset: &[usize], tree: u64) -> Result<Contribution> {
        let Ground { store, params, monitor, .. } = self.ground;
        monitor.check()?;
        self.draw(tree);
        let grown = self.grower.grow(&self.bag, tree)?;
        let by_target = params.by_target.then_some(store.targets.len());
        let mut tally = Tally::new(&params.scores, store.codings.len(), by_target);
        tally.add_all(grown);
        let mut vectors = tally.finish();
        for (score, vector) in params.scores.iter().zip(&mut vectors) {
            if *score == Score::Permutation {
                *vector = Vector::sparse(permutation::of_tree(self.ground, subset, grown, &self.bag, tree)?);
            }
        }
        Ok(vectors)
    }
}
