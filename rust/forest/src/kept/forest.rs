//! A forest whose trees are kept.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

use super::head::{Head, KeptFeature, KeptTarget};
use super::out_of_bag::{OobPredictions, TrainingRows};
use super::router::Router;
use super::tree_tables::Trees;

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
pub struct KeptForest {
    pub(super) head: Head,
    pub(super) trees: Trees,
    /// What routes rows, once some are predicted.
    router: OnceLock<Router>,
    /// The rows that it was grown on, as long as they may be predicted out of bag.
    rows: Mutex<Option<Arc<TrainingRows>>>,
    /// Why they cannot be.
    no_oob: Option<String>,
}

impl KeptForest {
    /// The forest of trees that fit `head`, with the rows that it was grown on, or why these cannot be predicted.
    pub(super) fn new(head: Head, trees: Trees, rows: std::result::Result<TrainingRows, String>) -> Self {
        let (rows, no_oob) = rows.map_or_else(|reason| (None, Some(reason)), |rows| (Some(Arc::new(rows)), None));
        KeptForest { head, trees, router: OnceLock::new(), rows: Mutex::new(rows), no_oob }
    }

    /// What routes rows, made by the current pool at the first call.
    pub(super) fn router(&self) -> Result<&Router> {
        if let Some(router) = self.router.get() {
            return Ok(router);
        }
        let router = Router::new(&self.head, &self.trees)?;
        Ok(self.router.get_or_init(|| router))
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// The features, in the order of the training data.
    pub fn features(&self) -> &[KeptFeature] {
        &self.head.features
    }

    /// The targets.
    pub fn targets(&self) -> &[KeptTarget] {
        &self.head.targets
    }

    /// The table of the nodes of tree number `tree`, made at each call if the tree was not read.
    ///
    /// # Panics
    /// If there is no such tree.
    pub fn batch(&self, tree: usize) -> RecordBatch {
        self.trees.batch(tree)
    }

    /// The tables of the nodes of all trees, one after the other.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> {
        self.trees.batches()
    }

    /// Bytes of memory that the nodes take, or their tables if the forest was read.
    pub fn node_bytes(&self) -> usize {
        self.trees.n_bytes()
    }

    /// What the forest is beside its nodes, as in its file: JSON.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) if it cannot be written, which does not occur.
    pub fn description(&self) -> Result<String> {
        self.head.to_json()
    }

    /// Predicts the rows that the forest was grown on, each by the trees that have it out of bag, on as many threads as the
    /// forest was grown on. The same forest gives the same bits.
    ///
    /// # Errors
    /// [`Error::Setting`] with [`no_oob`](Self::no_oob); [`Interrupted`](Error::Interrupted) on request.
    pub fn oob(&self, monitor: &Monitor) -> Result<OobPredictions> {
        if let Some(reason) = &self.no_oob {
            return Err(Error::Setting(reason.clone()));
        }
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rows = rows.ok_or_else(|| Error::Setting("oob: the rows of the forest were forgotten".into()))?;
        rows.predict(&self.head, &self.trees, monitor)
    }

    /// Why out-of-bag rows cannot be predicted: the setting, and what is wrong with it.
    pub fn no_oob(&self) -> Option<&str> {
        self.no_oob.as_deref()
    }

    /// Releases the codes of the rows that the forest was grown on, without which none are out of bag.
    pub fn forget_rows(&self) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Bytes of the codes of the rows that the forest was grown on, until they are forgotten.
    pub fn row_bytes(&self) -> usize {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.as_ref().map_or(0, |rows| rows.n_bytes())
    }
}

impl std::fmt::Debug for KeptForest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptForest").field("head", &self.head).field("n_trees", &self.n_trees()).finish_non_exhaustive()
    }
}
