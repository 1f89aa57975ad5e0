//! A data set that was read and coded, and the ensembles that are grown on it.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::context::GrowContext;
use crate::external;
use crate::kept::{EnsembleKeeper, Keeper};
use crate::model_error::RowSample;
use crate::oob::{OobContext, OobPlace};
use crate::params::ForestParams;
use crate::scores::oob_needs;
use crate::shadows;
use crate::space::{Plan, Space};
use crate::tree::{Node, Split, Test, Tree};
use crate::tree_buffer::{BufferedNode, BufferedSplit, CodeTest, KNOWN, TreeBuffer, cut_on_values};
use crate::tree_worker::TreeWorker;
use ferrank_data::intake::{Intake, Unlabelled, numbered};
use ferrank_data::profile::Scale;
use ferrank_data::schema::{Problem, names};
use ferrank_data::store::{CodeStore, Codebook, Keep, Part, TargetColumn};
use ferrank_ranking::{Checkpoint, DataShape, RunOptions, ScanSummary};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::scratch::Scratch;
use tracing::info;

/// The settings of the ensemble of a single target, with `per_target`.
pub(crate) fn single_target(params: &ForestParams) -> ForestParams {
    ForestParams { target_weights: None, by_target: false, unlabelled: Unlabelled::Ignore, ..params.clone() }
}

/// The memory and the disk space of a run.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    pub(crate) budget: Budget,
    pub(crate) scratch: Scratch,
}

impl Resources {
    pub(crate) fn new(options: &RunOptions<'_>) -> Self {
        Resources { budget: Budget::new(options.memory), scratch: Scratch::new(options.temp_dir) }
    }
}

/// A data set that was read and coded.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) problem: Problem,
    pub(crate) store: CodeStore,
    /// True if the rows are a part of the data set.
    pub(crate) is_part: bool,
    /// The resources for growth in external memory, if memory does not hold the store and the bags.
    pub(crate) outside: Option<Resources>,
}

impl Prepared {
    /// Scans the rows of `intake` and codes them.
    pub(crate) fn profile(intake: &Intake<'_>, params: &ForestParams, resources: Option<&Resources>) -> Result<Self> {
        let options = RunOptions::default();
        let scan = options.scan(intake, params.max_bins)?;
        params.validate(&DataShape::new(intake.problem).with_rows(scan.rows))?;
        Prepared::read(intake, scan, params, resources)
    }

    /// Codes the rows of `intake`, which were scanned before. Codes are in memory, unless they do not fit the budget of
    /// `resources`.
    pub(crate) fn read(
        intake: &Intake<'_>,
        scan: ScanSummary<'_>,
        params: &ForestParams,
        resources: Option<&Resources>,
    ) -> Result<Self> {
        let (rows, counts, is_part) = (scan.rows, scan.counts, scan.is_part());
        if resources.is_none() || params.shadows || oob_needs(params).is_some() {
            numbered(rows, intake.source.name(), "a tree in memory, shadows, or a score of out-of-bag rows,")?;
        }
        let problem = intake.problem;
        let book = Codebook::new(&scan.profile, problem, params.clusters(problem.task), intake.source.name())?;
        let book = if scan.is_of_intake() { book.for_rows_of(&scan.profile) } else { book };
        // The scan holds a sample of the rows.
        drop(scan);
        let holds = |book: &Codebook| {
            resources.is_none_or(|r| external::holds_all(rows, book, params, |bytes| r.budget.left_for(bytes)))
        };
        // Growth in external memory reads all codes of a row.
        let (book, held) = match book.is_sparse() {
            true => {
                let compressed = book.clone().compressed();
                let held = holds(&compressed);
                (if held { compressed } else { book }, held)
            }
            false => {
                let held = holds(&book);
                (book, held)
            }
        };
        let outside = resources.filter(|_| !held).cloned();
        match &outside {
            None => info!("memory plan: the codes of {rows} rows are held in memory"),
            Some(Resources { scratch, .. }) => info!(
                "memory plan: the codes of {rows} rows are kept in temporary files in {}",
                scratch.folder().display()
            ),
        }
        let keep = outside.as_ref().map_or(Keep::Memory, |resources| Keep::Scratch(&resources.scratch));
        if let Some(Resources { budget, .. }) = &outside {
            budget.check(external::block_bytes(rows, &book), "the label sets of a block of rows")?;
        }
        let part = Part::new(intake, &book, counts, keep)?;
        let store = CodeStore::from_parts(book, vec![part], keep)?;
        if held {
            // What a plan knows of label sets is a mean over all labels; the components of rows are as many as their labels.
            let components = store.targets.iter().map(TargetColumn::label_bytes).sum();
            Budget::check_early(intake.memory, components, "the label sets of rows as components")?;
        }
        Prepared::new(params, problem.clone(), store, is_part, outside)
    }

    /// A data set whose codes are in `store`.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::error::Error::Setting) if no bags can be drawn from the groups.
    pub(crate) fn new(
        params: &ForestParams,
        problem: Problem,
        mut store: CodeStore,
        is_part: bool,
        outside: Option<Resources>,
    ) -> Result<Self> {
        params.validate_groups(&problem, &store)?;
        if params.shadows {
            store.share();
        }
        Ok(Prepared { problem, store, is_part, outside })
    }

    /// What takes the trees that are grown on the data set.
    ///
    /// # Errors
    /// [`Error::Setting`](ferrank_runtime::error::Error::Setting) if they cannot be kept.
    pub(crate) fn keeper(&self, params: &ForestParams, resources: &Resources) -> Result<Keeper> {
        check(
            self.outside.is_none(),
            "keep_trees: not for trees whose rows do not fit into memory; raise memory_limit, or leave keep_trees out",
        )?;
        Keeper::new(&self.problem, &self.store, params, &resources.budget)
    }

    pub(crate) fn space(&self, subset: &[usize], params: &ForestParams) -> Result<Space> {
        let names = names(&self.problem.targets);
        let plan = Plan {
            task: self.problem.task,
            subset,
            names: &names,
            weights: params.target_weights.as_deref(),
            supervision: params.share_of_targets(self.problem.task),
            feature_weights: params.feature_weights.as_deref(),
        };
        Space::new(&self.store, &plan)
    }

    /// Grows `trees`, by their numbers in the whole run. If each target has an ensemble and a target is missing in some
    /// rows, `without` prepares the other rows. `keeper` takes the trees.
    pub(crate) fn contribute(
        &self,
        trees: &[u64],
        params: &ForestParams,
        (checkpoint, keeper): (&Checkpoint, Option<&Keeper>),
        monitor: &Monitor,
        without: impl Fn(usize) -> Result<Prepared>,
    ) -> Result<()> {
        let n_targets = self.problem.targets.len();
        if !params.per_target {
            let all: Vec<usize> = (0..n_targets).collect();
            return self.grow(&all, trees, params, (checkpoint, keeper.map(|keeper| (keeper, &all[..]))), monitor);
        }
        for target in 0..n_targets {
            let own = target * params.n_estimators..(target + 1) * params.n_estimators;
            let trees: Vec<u64> = trees.iter().copied().filter(|&tree| own.contains(&(tree as usize))).collect();
            if trees.is_empty() {
                continue;
            }
            // With features as components, rows without this target take part too.
            let has_missing = !params.clusters(self.problem.task) && self.store.targets[target].has_missing();
            let (of_run, params) = ([target], single_target(params));
            let takers = (checkpoint, keeper.map(|keeper| (keeper, &of_run[..])));
            match has_missing {
                true => without(target)?.grow(&[0], &trees, &params, takers, monitor)?,
                false => self.grow(&[target], &trees, &params, takers, monitor)?,
            }
        }
        Ok(())
    }

    /// Grows `trees` for the targets `subset`. A keeper takes them with the numbers of these targets in the run.
    pub(crate) fn grow(
        &self,
        subset: &[usize],
        trees: &[u64],
        params: &ForestParams,
        (checkpoint, keeper): (&Checkpoint, Option<(&Keeper, &[usize])>),
        monitor: &Monitor,
    ) -> Result<()> {
        let space = self.space(subset, params)?;
        let space = if self.outside.is_none() { space.hold(&self.store) } else { space };
        if !params.shadows {
            let context = GrowContext { store: &self.store, space: &space, params, monitor };
            let ensemble = keeper.map(|(keeper, of_run)| keeper.ensemble(&self.store, (of_run, subset)));
            return self.grow_in(context, subset, trees, (checkpoint, ensemble.as_ref()));
        }
        let block = |&tree: &u64| shadows::block(tree, self.store.codings.len(), params);
        for trees in trees.chunk_by(|a, b| block(a) == block(b)) {
            monitor.check()?;
            let sources = self.store.draw_shadows(&mut shadows::random(block(&trees[0]), params));
            let store = match &self.outside {
                None => self.store.with_shadows(&sources, Keep::Memory, self.store.rows)?,
                Some(Resources { budget, scratch }) => {
                    // Cells and the places that they come from.
                    let window = budget.left() / 2 / (self.store.row_bytes() + 16);
                    self.store.with_shadows(&sources, Keep::Scratch(scratch), window)?
                }
            };
            drop(sources);
            let context = GrowContext { store: &store, space: &space, params, monitor };
            self.grow_in(context, subset, trees, (checkpoint, None))?;
        }
        Ok(())
    }

    /// Grows `trees` in `context`.
    fn grow_in(
        &self,
        context: GrowContext<'_>,
        subset: &[usize],
        trees: &[u64],
        (checkpoint, keeper): (&Checkpoint, Option<&EnsembleKeeper<'_>>),
    ) -> Result<()> {
        let GrowContext { params, monitor, .. } = context;
        if let Some(Resources { budget, scratch }) = &self.outside {
            let sample = RowSample::new(context, subset, self.is_part);
            return external::grow(context, budget, scratch, (subset, sample.as_ref()), trees, &|tree, vectors| {
                checkpoint.add(tree, vectors)
            });
        }
        let oob = oob_needs(params).map(|needs| OobContext::new(context, needs, subset, OobPlace::Memory));
        let sample = RowSample::new(context, subset, self.is_part);
        let idle = Mutex::new(Vec::new());
        let free = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        trees.par_iter().with_max_len(1).try_for_each(|&tree| {
            let worker = free().pop();
            let mut worker = worker.unwrap_or_else(|| TreeWorker::new(context, sample.as_ref()).keep(keeper));
            checkpoint.add(tree, worker.contribution(oob.as_ref(), tree)?)?;
            monitor.advance(1);
            free().push(worker);
            Ok(())
        })
    }

    /// The grown tree with tests on values instead of codes.
    pub(crate) fn describe(&self, grown: &TreeBuffer) -> Tree {
        let test = |feature: usize, test: &CodeTest| match (&self.store.codings[feature].scale, test) {
            (Scale::Numeric(cuts), CodeTest::Cut(code)) => Test::Cut(cut_on_values(cuts, *code)),
            (Scale::Nominal(categories), CodeTest::Cut(KNOWN)) => Test::Subset(categories.names.clone()),
            (Scale::Nominal(categories), CodeTest::Subset(codes)) => {
                Test::Subset(codes.iter().map(|&code| categories.names[usize::from(code)].clone()).collect())
            }
            _ => unreachable!("a numeric feature has cuts, a nominal one subsets"),
        };
        let split = |split: &BufferedSplit, [left, right]: [u32; 2]| Split {
            feature: split.feature as usize,
            test: test(split.feature as usize, &split.test),
            missing_left: split.missing_left,
            gain: split.gain,
            children: (left as usize, right as usize),
        };
        let nodes = grown.nodes.iter().zip(grown.splits_of_nodes()).zip(grown.children());
        let node = |((node, of_node), children): ((&BufferedNode, Option<&BufferedSplit>), _)| Node {
            depth: node.depth as usize,
            n_examples: node.examples as u64,
            split: of_node.zip(children).map(|(of_node, children)| split(of_node, children)),
        };
        Tree { nodes: nodes.map(node).collect() }
    }
}
