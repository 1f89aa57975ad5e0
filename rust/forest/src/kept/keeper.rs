//! Taking trees while they are grown.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
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
use super::out_of_bag::{OobPredictions, OobTree};
use crate::context::GrowContext;
use crate::oob::{LeafOfRow, OutOfBagRows};
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
    oob: Option<OobPredictions>,
    /// The tree whose out-of-bag rows are added next; trees that came before their turn.
    next: u64,
    waiting: BTreeMap<u64, OobTree>,
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

    /// Takes the trees of an ensemble, from number `first` on, for the targets `of_run`, which are `subset` in the store of
    /// `context`.
    pub(crate) fn ensemble<'a>(
        &'a self,
        context: GrowContext<'a>,
        first: u64,
        (of_run, subset): (&[usize], &[usize]),
    ) -> EnsembleKeeper<'a> {
        let components = self.head.components();
        let targets = of_run.iter().map(|&target| (target, components[target].start as u32)).collect();
        let mut state = self.state();
        state.next = first;
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

    /// Takes tree number `tree`, with its out-of-bag rows and their leaves if [`has_oob`](Self::has_oob).
    pub(crate) fn add(
        &self,
        tree: u64,
        grown: &TreeBuffer,
        rows: Option<(&OutOfBagRows, &LeafOfRow)>,
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
        let predicted = rows.map(|(rows, leaf_of_row)| {
            let leaves = (0..).zip(&grown.nodes).filter(|(_, node)| node.split.is_none());
            let components = self.keeper.head.components_of_tree(tree as usize);
            let rows: Vec<u32> = rows.iter().map(|row| row as u32).collect();
            OobTree {
                leaves: rows.iter().map(|&row| leaf_of_row.leaf(row)).collect(),
                rows,
                leaf_nodes: leaves.map(|(number, _)| number).collect(),
                values: Nodes::new(&batch).leaf_values(components),
            }
        });
        let mut state = self.keeper.state();
        state.batches.insert(tree, batch);
        if let Some(predicted) = predicted {
            state.waiting.insert(tree, predicted);
            state.add_waiting();
        }
        Ok(())
    }

    /// Returns true if the predictions for out-of-bag rows are known.
    pub(crate) fn has_oob(&self) -> bool {
        self.has_oob
    }

    /// Completes the predictions for out-of-bag rows, once all trees were taken.
    pub(crate) fn finish(self) {
        let components = self.keeper.head.components();
        let own: Vec<Range<usize>> = self.targets.iter().map(|&(target, _)| components[target].clone()).collect();
        if let Some(oob) = &mut self.keeper.state().oob {
            oob.average(&own);
        }
    }
}

impl State {
    /// Adds the trees whose turn it is: in the order of their numbers, so that sums have the same bits for any number of
    /// threads.
    fn add_waiting(&mut self) {
        while let Some(tree) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Some(oob) = &mut self.oob {
                oob.add(&tree);
            }
        }
    }
}
