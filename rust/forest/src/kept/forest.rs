//! A forest whose trees are kept.

use std::sync::OnceLock;

use arrow_array::RecordBatch;
use ferrank_runtime::error::Result;

use super::head::{Head, KeptFeature, KeptTarget};
use super::out_of_bag::OobPredictions;
use super::router::Router;

/// A forest whose trees are kept, which predicts.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Float64Type;
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_forest::{ForestParams, KeptForest, Output, accumulate_and_keep};
/// use ferrank_ranking::RunOptions;
/// use ferrank_runtime::monitor::Monitor;
///
/// let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..200).map(f).collect::<Float64Array>()) as ArrayRef;
/// let columns = [("x", column(&|i| f64::from(i * 37 % 101))), ("y", column(&|i| f64::from(i * 37 % 101)))];
/// let batch = RecordBatch::try_from_iter(columns).unwrap();
/// let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, params) = (Roles::new(Targets::Last(1)), ForestParams::default().with_n_estimators(20));
/// let (options, monitor) = (RunOptions::default(), Monitor::default());
/// let (_, forest) = accumulate_and_keep(&source, &roles, &params, &options, &monitor)?;
/// let mut found = Vec::new();
/// forest.predict(&source, Output::default(), 1, &monitor, |batch| Ok(found.push(batch)))?;
/// assert!((found[0].column(0).as_primitive::<Float64Type>().value(1) - 37.0).abs() < 2.0);
/// assert_eq!(KeptForest::from_ipc(forest.to_ipc()?)?.n_trees(), 20);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct KeptForest {
    pub(super) head: Head,
    /// A table of nodes for each tree.
    pub(super) batches: Vec<RecordBatch>,
    /// What routes rows, once some are predicted.
    router: OnceLock<Router>,
    /// What the out-of-bag rows get, as long as it is known.
    oob: Option<OobPredictions>,
}

impl KeptForest {
    /// The forest of trees that fit `head`.
    pub(super) fn new(head: Head, batches: Vec<RecordBatch>, oob: Option<OobPredictions>) -> Self {
        KeptForest { head, batches, router: OnceLock::new(), oob }
    }

    /// What routes rows, made by the current pool at the first call.
    pub(super) fn router(&self) -> Result<&Router> {
        if let Some(router) = self.router.get() {
            return Ok(router);
        }
        let router = Router::new(&self.head, &self.batches)?;
        Ok(self.router.get_or_init(|| router))
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.batches.len()
    }

    /// The features, in the order of the training data.
    pub fn features(&self) -> &[KeptFeature] {
        &self.head.features
    }

    /// The targets.
    pub fn targets(&self) -> &[KeptTarget] {
        &self.head.targets
    }

    /// The table of the nodes of each tree.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// What the forest is beside its nodes, as in its file: JSON.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) if it cannot be written, which does not occur.
    pub fn description(&self) -> Result<String> {
        self.head.to_json()
    }

    /// Takes the predictions for the rows that the forest was grown on; `None` for a forest that was read.
    pub fn take_oob(&mut self) -> Option<OobPredictions> {
        self.oob.take()
    }

    /// Predictions for the rows that the forest was grown on; `None` for a forest that was read.
    pub fn oob(&self) -> Option<&OobPredictions> {
        self.oob.as_ref()
    }
}
