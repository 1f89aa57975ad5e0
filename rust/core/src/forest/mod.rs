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

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

pub use params::{Ensemble, ForestParams, MaxFeatures, MaxSamples, Score, Ties};
pub use tree::{Node, Split, Test, Tree};

use crate::Resources;
use crate::accumulate::{Accumulator, Contribution, Estimate};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::intake::{Intake, Unlabelled};
use crate::monitor::{Monitor, Phase};
use crate::profile::{Profile, Scale};
use crate::ranking::{Ranking, ScoreRanking};
use crate::schema::{Problem, Roles, names};
use crate::source::ChunkSource;
use crate::scratch::Scratch;
use crate::store::{CodeStore, Codebook, Keep, Part};
use crate::threads::pool;
use bag::Bag;
use grow::{Ground, Grower};
use grown::{CodeTest, Grown, GrownNode};
use pulp::Arch;
use scores::Tally;
use space::{Space, has_missing};

/// Ranks the features of `source` with an ensemble of trees, within these `resources`.
///
/// The same data and settings give the same bits, whatever the resources, the chunking of the rows, and the
/// container they come in.
///
/// # Errors
/// What is wrong with a setting, a column or a value; [`Error::Interrupted`] once `monitor` was
/// asked to stop.
pub fn rank(
    source: &dyn ChunkSource,
    roles: &Roles,
    params: &ForestParams,
    resources: &Resources,
    monitor: &Monitor,
) -> Result<Ranking> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    params.validate_shape(problem.features.len(), problem.targets.len())?;
    let means = Means::of(resources);
    pool(resources.threads)?.install(|| {
        let prepared = Prepared::read(source, &problem, params, Some(&means), monitor)?;
        let n_trees = params.n_estimators * if params.per_target { problem.targets.len() } else { 1 };
        monitor.enter(Phase::Growing, n_trees as u64);
        let scores = match params.per_target {
            false => {
                let all: Vec<usize> = (0..problem.targets.len()).collect();
                prepared.ensemble(&all, 0, params, monitor)?.scores
            }
            true => rank_per_target(source, &prepared, params, monitor)?,
        };
        Ok(Ranking {
            task: problem.task,
            n_rows: prepared.store.rows as u64,
            n_unlabelled: prepared.n_unlabelled,
            features: names(&problem.features),
            targets: names(&problem.targets),
            scores,
        })
    })
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
        let prepared = Prepared::read(source, &problem, params, None, monitor)?;
        let all: Vec<usize> = (0..problem.targets.len()).collect();
        let space = prepared.space(&all, params)?.hold(&prepared.store);
        let ground = Ground { store: &prepared.store, space: &space, params, monitor };
        let mut bench = Bench::new(ground);
        bench.draw(tree as u64);
        Ok(prepared.describe(bench.grower.grow(&bench.bag, tree as u64)?))
    })
}

/// One ensemble for each target, importances averaged with the target weights.
fn rank_per_target(
    source: &dyn ChunkSource,
    prepared: &Prepared<'_>,
    params: &ForestParams,
    monitor: &Monitor,
) -> Result<Vec<ScoreRanking>> {
    let n_targets = prepared.problem.targets.len();
    let weight = |target: usize| params.target_weights.as_ref().map_or(1.0, |weights| weights[target]);
    let mut ensembles = Vec::with_capacity(n_targets);
    for target in 0..n_targets {
        let first_tree = (target * params.n_estimators) as u64;
        let ensemble = if has_missing(&prepared.store.targets[target]) {
            // Rows without this target take no part in its trees.
            let mut problem = prepared.problem.clone();
            problem.targets = vec![problem.targets.swap_remove(target)];
            let params = ForestParams { unlabelled: Unlabelled::Ignore, target_weights: None, ..params.clone() };
            let silent = Monitor::default();
            let prepared = Prepared::read(source, &problem, &params, prepared.means, &silent)?;
            prepared.ensemble(&[0], first_tree, &params, monitor)?
        } else {
            let params = ForestParams { target_weights: None, ..params.clone() };
            prepared.ensemble(&[target], first_tree, &params, monitor)?
        };
        ensembles.push((weight(target), ensemble));
    }
    let n_features = prepared.problem.features.len();
    let total: f64 = ensembles.iter().map(|(weight, _)| weight).sum();
    let rankings = params.scores.iter().enumerate().map(|(s, score)| {
        let parts: Vec<(f64, Estimate)> =
            ensembles.iter().map(|(weight, ensemble)| (*weight, ensemble.estimates[s].clone())).collect();
        let mut ranking = Estimate::average(&parts).rank(score.name());
        if params.by_target && *score == Score::Genie3 {
            ranking.by_target = (0..n_features)
                .flat_map(|i| parts.iter().map(move |(weight, part)| weight / total * part.mean[i]))
                .collect();
        }
        ranking
    });
    Ok(rankings.collect())
}

/// A source, read and coded.
struct Prepared<'a> {
    problem: &'a Problem,
    store: CodeStore,
    n_unlabelled: u64,
    means: Option<&'a Means>,
    /// Whether memory does not hold the store and the bags.
    is_outside: bool,
}

/// What a run may use besides threads.
struct Means {
    budget: Budget,
    scratch: Scratch,
}

impl Means {
    fn of(resources: &Resources) -> Self {
        Means { budget: Budget::new(resources.memory), scratch: Scratch::new(resources.scratch.as_deref()) }
    }
}

/// What an ensemble says.
struct EnsembleResult {
    /// One for each score.
    estimates: Vec<Estimate>,
    scores: Vec<ScoreRanking>,
}

impl<'a> Prepared<'a> {
    /// Profiles and codes `source`: in memory if there are no `means` that say otherwise.
    fn read(
        source: &dyn ChunkSource,
        problem: &'a Problem,
        params: &ForestParams,
        means: Option<&'a Means>,
        monitor: &Monitor,
    ) -> Result<Self> {
        let intake = Intake { source, problem, monitor };
        let profile = Profile::of(&intake, params.max_bins)?;
        let rows = profile.counts.taking_part(source.name(), params.unlabelled)?;
        params.validate(rows, problem.features.len(), problem.targets.len())?;
        let n_unlabelled = profile.counts.unlabelled;
        let book = Codebook::of(&profile, problem.weight.is_some());
        let counts = profile.counts;
        drop(profile);
        let holds = |means: &&Means| passes::holds_all(rows, &book, params, means.budget.left());
        let outside = means.filter(|means| !holds(means));
        let keep = outside.map_or(Keep::Memory, |means| Keep::Scratch(&means.scratch));
        let part = Part::of(&intake, &book, counts, keep)?;
        let store = CodeStore::of_parts(book, vec![part], keep)?;
        Ok(Prepared { problem, store, n_unlabelled, means, is_outside: outside.is_some() })
    }

    fn space(&self, subset: &[usize], params: &ForestParams) -> Result<Space> {
        let names = names(&self.problem.targets);
        Space::new(&self.store, subset, &names, self.problem.task, params.target_weights.as_deref())
    }

    /// Grows `trees` with all rows in memory.
    fn inside(&self, ground: Ground<'_>, subset: &[usize], trees: &[u64]) -> Result<Vec<TreeResult>> {
        let idle = Mutex::new(Vec::new());
        let free = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let grow = |&tree: &u64| {
            let bench = free().pop();
            let mut bench = bench.unwrap_or_else(|| Bench::new(ground));
            let result = bench.tree(subset, tree);
            free().push(bench);
            result
        };
        trees.par_iter().with_max_len(1).map(grow).collect()
    }

    /// Grows `trees` in passes over the store.
    fn outside(&self, ground: Ground<'_>, subset: &[usize], trees: &[u64], means: &Means) -> Result<Vec<TreeResult>> {
        let results = Mutex::new(BTreeMap::new());
        let done = || results.lock().unwrap_or_else(PoisonError::into_inner);
        passes::grow(ground, &means.budget, &means.scratch, subset, trees, &|tree, result| {
            done().insert(tree, result);
            Ok(())
        })?;
        Ok(std::mem::take(&mut *done()).into_values().collect())
    }

    /// Grows trees number `first_tree` and following for the targets `subset`.
    fn ensemble(
        &self,
        subset: &[usize],
        first_tree: u64,
        params: &ForestParams,
        monitor: &Monitor,
    ) -> Result<EnsembleResult> {
        let space = self.space(subset, params)?;
        let trees: Vec<u64> = (first_tree..first_tree + params.n_estimators as u64).collect();
        let contributions = match self.means.filter(|_| self.is_outside) {
            Some(means) => {
                let ground = Ground { store: &self.store, space: &space, params, monitor };
                self.outside(ground, subset, &trees, means)?
            }
            None => {
                let space = space.hold(&self.store);
                self.inside(Ground { store: &self.store, space: &space, params, monitor }, subset, &trees)?
            }
        };
        let n_features = self.problem.features.len();
        let n_targets = self.problem.targets.len();
        let mut accumulator = Accumulator::<Contribution>::default();
        let mut by_target = vec![0.0; if params.by_target { n_features * n_targets } else { 0 }];
        for (tree, result) in (first_tree..).zip(contributions) {
            for (feature, parts) in result.by_target {
                let sums = &mut by_target[feature as usize * n_targets..][..n_targets];
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            accumulator.insert(tree, result.scores);
        }
        by_target.iter_mut().for_each(|sum| *sum /= params.n_estimators as f64);
        let estimates: Vec<Estimate> =
            (0..params.scores.len()).map(|score| accumulator.estimate(score, n_features)).collect();
        let scores = params.scores.iter().zip(&estimates).map(|(score, estimate)| {
            let mut ranking = estimate.clone().rank(score.name());
            if *score == Score::Genie3 {
                ranking.by_target = std::mem::take(&mut by_target);
            }
            ranking
        });
        let scores = scores.collect();
        Ok(EnsembleResult { estimates, scores })
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
    fn tree(&mut self, subset: &[usize], tree: u64) -> Result<TreeResult> {
        let Ground { store, params, monitor, .. } = self.ground;
        monitor.check()?;
        self.draw(tree);
        let grown = self.grower.grow(&self.bag, tree)?;
        let mut tally = Tally::new(grown.nodes[0].weight, &params.scores, store.codings.len(), params.by_target);
        tally.add_all(grown);
        let (mut scores, by_target) = tally.finish();
        for (score, values) in params.scores.iter().zip(&mut scores) {
            if *score == Score::Permutation {
                *values = permutation::of_tree(self.ground, subset, grown, &self.bag, tree)?;
            }
        }
        monitor.advance(1);
        Ok(TreeResult { scores, by_target })
    }
}

/// What one tree gives.
#[derive(Debug, PartialEq)]
struct TreeResult {
    scores: Contribution,
    /// (feature, n_targets values); empty unless asked for.
    by_target: Vec<(u32, Vec<f64>)>,
}
