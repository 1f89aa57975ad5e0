//! Taking trees while they are grown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Schema, SchemaRef};
use ferrank_data::profile::{Cuts, Scale};
use ferrank_data::schema::Problem;
use ferrank_data::store::CodeStore;
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Result, check};

use super::forest::KeptForest;
use super::grown::GrownTree;
use super::head::{Head, KEY, KeptTarget};
use super::leaf_values::LeafPredictor;
use super::nodes::fields;
use super::out_of_bag::{TrainingRows, obstacle};
use super::tree_tables::Trees;
use crate::params::ForestParams;
use crate::space::Space;
use crate::tree_buffer::{BufferedSplit, CodeTest, TreeBuffer};

/// Takes the trees of a run.
pub(crate) struct Keeper {
    head: Head,
    schema: SchemaRef,
    /// Why out-of-bag rows cannot be predicted, if they cannot.
    no_oob: Option<String>,
    trees: Mutex<BTreeMap<u64, GrownTree>>,
}

/// Takes the trees of an ensemble of a run.
pub(crate) struct EnsembleKeeper<'a> {
    keeper: &'a Keeper,
    store: &'a CodeStore,
    /// The targets of the run that trees predict, and the first component of each.
    targets: Vec<(usize, u32)>,
    /// The targets in the store.
    subset: Vec<usize>,
    /// n_features; the number in the head of each category that the store has. Numbers ascend as codes do.
    numbers: Vec<Vec<u16>>,
    /// n_features; the cuts that codes of numbers stand for.
    cuts: Arc<[Cuts]>,
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
        for (KeptTarget { name, .. }, column) in head.targets.iter().zip(store.targets.iter()) {
            check(
                (0..store.rows).any(|row| column.is_known(row)),
                format!("keep_trees: no row has the target '{name}', which cannot be predicted then; leave it out"),
            )?;
        }
        let metadata = HashMap::from([(KEY.to_string(), head.to_json()?)]);
        Ok(Keeper {
            schema: Arc::new(Schema::new_with_metadata(fields(), metadata)),
            no_oob: obstacle(&head, store, params, budget),
            head,
            trees: Mutex::default(),
        })
    }

    /// Takes the trees of an ensemble for the targets `of_run`, which are `subset` in `store`.
    pub(crate) fn ensemble<'a>(
        &'a self,
        store: &'a CodeStore,
        (of_run, subset): (&[usize], &[usize]),
    ) -> EnsembleKeeper<'a> {
        let components = self.head.components();
        let targets = of_run.iter().map(|&target| (target, components[target].start as u32)).collect();
        let codings = store.codings.iter().zip(&self.head.features);
        let numbers = codings.map(|(coding, feature)| match (&coding.scale, &feature.categories) {
            (Scale::Nominal(own), Some(all)) => {
                let number = |name: &String| all.binary_search(name).map_or(0, |number| number as u16);
                own.names.iter().map(number).collect()
            }
            _ => Vec::new(),
        });
        let cuts = store.codings.iter().map(|coding| match &coding.scale {
            Scale::Numeric(cuts) => cuts.clone(),
            Scale::Nominal(_) => Cuts::default(),
        });
        let (numbers, cuts) = (numbers.collect(), cuts.collect());
        EnsembleKeeper { keeper: self, store, targets, subset: subset.to_vec(), numbers, cuts }
    }

    /// The forest that was grown on `store` with these settings.
    pub(crate) fn finish(self, store: CodeStore, params: &ForestParams, threads: usize) -> KeptForest {
        let trees = self.trees.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect();
        let rows = self.no_oob.map_or_else(|| Ok(TrainingRows::new(store, params, threads)), Err);
        KeptForest::new(self.head, Trees::Grown(self.schema, trees), rows)
    }
}

impl<'a> EnsembleKeeper<'a> {
    /// What computes the predictions of leaves of trees that are grown in `space`, on one thread.
    pub(crate) fn predictor(&self, space: &Space) -> LeafPredictor<'a> {
        let targets = self.subset.iter().zip(&self.targets).map(|(&of_store, &(_, first))| (of_store, first));
        LeafPredictor::new(self.store, space, targets.collect())
    }

    /// Takes tree number `tree`.
    pub(crate) fn add(&self, tree: u64, grown: &TreeBuffer, predictor: &mut LeafPredictor<'_>) -> Result<()> {
        let categories_of = |split: &BufferedSplit| {
            let Scale::Nominal(_) = self.store.codings[split.feature as usize].scale else { return None };
            let numbers = &self.numbers[split.feature as usize];
            Some(match &split.test {
                CodeTest::Subset(codes) => codes.iter().map(|&code| numbers[usize::from(code)]).collect(),
                CodeTest::Cut(_) => numbers.clone(),
            })
        };
        let categories_of = self.numbers.iter().any(|numbers| !numbers.is_empty()).then_some(categories_of);
        let kept = GrownTree::new(grown, &self.cuts, categories_of, predictor.leaves(grown))?;
        self.keeper.trees.lock().unwrap_or_else(PoisonError::into_inner).insert(tree, kept);
        Ok(())
    }
}
