//! Taking trees while they are grown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use ferrank_data::profile::Scale;
use ferrank_data::schema::Problem;
use ferrank_data::store::CodeStore;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result, check};

use super::forest::KeptForest;
use super::head::{Head, KEY};
use super::leaf_values::LeafPredictor;
use super::nodes::{Nodes, ValueTest, columns, fields};
use super::out_of_bag::{OobPredictions, OobRows, OobTree};
use super::walk::RoutedTree;
use crate::context::GrowContext;
use crate::oob::{OutOfBagRows, PackedTree};
use crate::params::ForestParams;
use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer, cut_on_values};

/// Takes the trees of a run.
pub(crate) struct Keeper {
    head: Head,
    schema: SchemaRef,
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batches: BTreeMap<u64, RecordBatch>,
    /// The trees of the current ensemble, to predict their out-of-bag rows.
    trees: BTreeMap<u64, OobTree>,
    oob: Option<OobPredictions>,
}

/// Takes the trees of an ensemble of a run.
pub(crate) struct EnsembleKeeper<'a> {
    keeper: &'a Keeper,
    context: GrowContext<'a>,
    /// The targets of the run that trees predict, and the first component of each.
    targets: Vec<(usize, u32)>,
    /// The targets in the store.
    subset: Vec<usize>,
    /// n_features; the number in the head of each category that the store has. Numbers ascend as codes do.
    numbers: Vec<Vec<u16>>,
    has_oob: bool,
}

impl Keeper {
    /// For the forest that is grown on `store` with these settings.
    ///
    /// # Errors
    /// [`Error::Setting`] for settings without a forest that can be kept.
    pub(crate) fn new(problem: &Problem, store: &CodeStore, params: &ForestParams, budget: &Budget) -> Result<Self> {
        check(
            !params.shadows,
            "keep_trees: trees with shadows test values of other rows; leave shadows or keep_trees out",
        )?;
        let head = Head::new(problem, store, params)?;
        let metadata = HashMap::from([(KEY.to_string(), head.to_json()?)]);
        Ok(Keeper {
            schema: Arc::new(Schema::new_with_metadata(fields(), metadata)),
            head,
            budget: *budget,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the trees of an ensemble for the targets `of_run`, which are `subset` in the store of `context`.
    pub(crate) fn ensemble<'a>(
        &'a self,
        context: GrowContext<'a>,
        of_run: &[usize],
        subset: &[usize],
    ) -> EnsembleKeeper<'a> {
        let components = self.head.components();
        let targets = of_run.iter().map(|&target| (target, components[target].start as u32)).collect();
        let mut state = self.state();
        if state.oob.is_none() {
            state.oob = Some(OobPredictions::new(&self.head, context, &self.budget));
        }
        // Rows without a target take no part in the ensemble of this target, so that rows have other numbers.
        let has_all_rows = context.store.rows as u64 == self.head.n_rows;
        if let Some(oob) = state.oob.as_mut().filter(|_| !has_all_rows) {
            oob.give_up("per_target: rows without a target have no part in its trees");
        }
        let has_oob = state.oob.as_ref().is_some_and(OobPredictions::is_known);
        let codings = context.store.codings.iter().zip(&self.head.features);
        let numbers = codings.map(|(coding, feature)| match (&coding.scale, &feature.categories) {
            (Scale::Nominal(own), Some(all)) => {
                let number = |name: &String| all.binary_search(name).map_or(0, |number| number as u16);
                own.names.iter().map(number).collect()
            }
            _ => Vec::new(),
        });
        EnsembleKeeper { keeper: self, context, targets, subset: subset.to_vec(), numbers: numbers.collect(), has_oob }
    }

    /// The forest, whose out-of-bag predictions are judged by the targets in `store`.
    pub(crate) fn finish(self, store: &CodeStore) -> KeptForest {
        let State { batches, mut oob, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(oob) = &mut oob {
            oob.judge(&self.head, store);
        }
        KeptForest::new(self.head, batches.into_values().collect(), oob)
    }
}

impl<'a> EnsembleKeeper<'a> {
    /// What computes the predictions of leaves, on one thread.
    pub(crate) fn predictor(&self) -> LeafPredictor<'a> {
        let targets = self.subset.iter().zip(&self.targets).map(|(&of_store, &(_, first))| (of_store, first));
        LeafPredictor::new(self.context.store, targets.collect())
    }

    /// Takes tree number `tree`, of which these rows are out of bag.
    pub(crate) fn add(
        &self,
        tree: u64,
        grown: &TreeBuffer,
        rows: OutOfBagRows,
        predictor: &mut LeafPredictor<'_>,
    ) -> Result<()> {
        let codings = &self.context.store.codings;
        let test = |split: &BufferedSplit| match (&codings[split.feature as usize].scale, &split.test) {
            (Scale::Numeric(cuts), CodeTest::Cut(code)) => ValueTest::Cut(cut_on_values(cuts, *code)),
            (Scale::Nominal(_), CodeTest::Cut(_)) => {
                ValueTest::Categories(self.numbers[split.feature as usize].clone())
            }
            (Scale::Nominal(_), CodeTest::Subset(codes)) => {
                let numbers = &self.numbers[split.feature as usize];
                ValueTest::Categories(codes.iter().map(|&code| numbers[usize::from(code)]).collect())
            }
            (Scale::Numeric(_), CodeTest::Subset(_)) => unreachable!("a numeric feature has cuts"),
        };
        let columns = columns(grown, test, predictor.leaves(grown))?;
        let batch = RecordBatch::try_new(self.keeper.schema.clone(), columns)
            .map_err(|error| Error::Data(format!("keep_trees: {error}")))?;
        let routed = self.has_oob.then(|| {
            let mut packed = PackedTree::default();
            packed.add_tree(None, grown);
            let leaves = (0..).zip(&grown.nodes).filter(|(_, node)| node.split.is_none());
            let leaf_nodes = leaves.map(|(number, _)| number).collect();
            let components = self.keeper.head.components_of_tree(tree as usize);
            RoutedTree { packed, leaf_nodes, values: Nodes::new(&batch).leaf_values(components) }
        });
        let mut state = self.keeper.state();
        state.batches.insert(tree, batch);
        if let Some(tree_of_codes) = routed {
            state.trees.insert(tree, OobTree { tree: tree_of_codes, rows });
        }
        Ok(())
    }

    /// Predicts the out-of-bag rows of all trees that were taken.
    ///
    /// # Errors
    /// [`Interrupted`](Error::Interrupted) on request.
    pub(crate) fn finish(self) -> Result<()> {
        let mut state = self.keeper.state();
        let trees: Vec<OobTree> = std::mem::take(&mut state.trees).into_values().collect();
        let components = self.keeper.head.components();
        let of_run: Vec<usize> = self.targets.iter().map(|&(target, _)| target).collect();
        let rows = OobRows { context: self.context, trees, targets: of_run, components };
        match state.oob.as_mut().filter(|oob| oob.is_known()) {
            Some(oob) => oob.add(rows),
            None => Ok(()),
        }
    }
}
