//! Forests that are kept: growth, files, predictions.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_pyarrow::{IntoPyArrow, Table};
use arrow_schema::SchemaRef;
use ferrank::forest::{self, KeptForest, OobPredictions, Output};
use ferrank::source::ChunkSource;
use ferrank::{Error, RunOptions, profile::Profile};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::accumulator::Accumulator;
use crate::error::{bug, to_py};
use crate::exit::detach;
use crate::input::Source;
use crate::run::Run;
use crate::{roles, settings};

/// A forest whose trees are kept.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Forest(Arc<KeptForest>);

#[pymethods]
impl Forest {
    /// The forest in the file at `path`, which is mapped.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        detach(py, || KeptForest::open(&path)).map(|forest| Forest(Arc::new(forest))).map_err(|e| to_py(py, e))
    }

    /// The forest that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: PyBackedBytes) -> PyResult<Self> {
        detach(py, || KeptForest::from_ipc(data.to_vec()))
            .map(|forest| Forest(Arc::new(forest)))
            .map_err(|e| to_py(py, e))
    }

    /// The forest as an Arrow file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detach(py, || self.0.to_ipc()).map_err(|e| to_py(py, e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the forest to an Arrow file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detach(py, || self.0.save(&path)).map_err(|e| to_py(py, e))
    }

    /// Number of trees.
    #[getter]
    fn n_trees(&self) -> usize {
        self.0.n_trees()
    }

    /// What the forest is beside its nodes: JSON.
    fn description(&self, py: Python<'_>) -> PyResult<String> {
        self.0.description().map_err(|e| to_py(py, e))
    }

    /// The nodes of all trees, and the number of nodes of each tree.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Vec<usize>)> {
        let batches = self.0.batches().collect::<Vec<_>>();
        let lengths = batches.iter().map(|batch| batch.num_rows()).collect();
        let schema = batches[0].schema();
        Ok((table(py, batches, schema)?, lengths))
    }

    /// Bytes of the codes of the rows that the forest was grown on, and bytes of its nodes.
    fn n_bytes(&self) -> (usize, usize) {
        (self.0.row_bytes(), self.0.node_bytes())
    }

    /// Why out-of-bag rows cannot be predicted; None if they can.
    #[getter]
    fn no_oob(&self) -> Option<&str> {
        self.0.no_oob()
    }

    /// Predicts the rows that are out of bag. The result is a tuple of the predictions, n_rows x n_components, and of the
    /// measure and the score of each target.
    fn oob(&self) -> PyResult<Run> {
        let forest = self.0.clone();
        Run::start(move |monitor| forest.oob(monitor), oob_as_tuple)
    }

    /// Releases the codes of all rows, without which none are out of bag.
    fn forget_rows(&self) {
        self.0.forget_rows();
    }

    /// Predicts the rows of `source` on `threads` threads; `what` is "values", "shares" or "leaves". The result is an Arrow
    /// table, or with `path` the number of rows that were written to this Arrow file.
    #[pyo3(signature = (source, what, threshold, threads, path=None))]
    fn predict(
        &self,
        source: &Source,
        what: &str,
        threshold: f64,
        threads: usize,
        path: Option<PathBuf>,
    ) -> PyResult<Run> {
        let (forest, source) = (self.0.clone(), source.0.clone());
        let output = match what {
            "shares" => Output::Shares,
            "leaves" => Output::Leaves,
            _ => Output::Values { threshold },
        };
        if let Some(path) = path {
            return Run::start(
                move |monitor| forest.predict_to(&*source, output, threads, &path, monitor),
                |py, rows| Ok(rows.into_pyobject(py)?.into_any()),
            );
        }
        Run::start(
            move |monitor| {
                let mut batches = Vec::new();
                forest.predict(&*source, output, threads, monitor, |batch| {
                    batches.push(batch);
                    Ok(())
                })?;
                Ok((batches, forest.output_schema(output)?))
            },
            |py, (batches, schema)| table(py, batches, schema),
        )
    }

    /// The pairs of features that occur together on paths, at most `most`: their numbers and their gains.
    fn interactions(&self, py: Python<'_>, most: usize) -> Vec<(u32, u32, f64)> {
        let found = detach(py, || self.0.interactions());
        found.iter().take(most).map(|pair| (pair.features.0, pair.features.1, pair.gain)).collect()
    }

    /// Which way numeric features work: numbers of features and components, and trends.
    fn trends(&self, py: Python<'_>) -> Vec<(u32, u32, f64)> {
        let found = detach(py, || self.0.trends());
        found.iter().map(|one| (one.feature, one.component, one.trend)).collect()
    }
}

/// Grows a forest and keeps it; the result is an `Accumulator` and a `Forest`.
///
/// Arguments as for `accumulate`.
#[pyfunction]
#[pyo3(signature = (source, roles, settings, threads, memory=None, temp_dir=None, profile=None))]
pub(crate) fn accumulate_and_keep(
    source: &Source,
    roles: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    threads: usize,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    profile: Option<PyBackedBytes>,
) -> PyResult<Run> {
    let (source, roles, ranker) =
        (source.0.clone(), roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
    Run::start(
        move |monitor| {
            let profile = profile.map(|bytes| Profile::from_ipc(bytes.to_vec())).transpose()?;
            let ferrank::Settings::Forest(params) = &ranker else {
                return Err(Error::Setting("keep_trees: a forest has trees, other rankers have none".into()));
            };
            let source: &dyn ChunkSource = &*source;
            let options = RunOptions::default()
                .with_threads(threads)
                .with_memory(memory)
                .with_temp_dir(temp_dir.as_deref())
                .with_profile(profile.as_ref())
                .with_is_profiled(profile.is_some());
            forest::accumulate_and_keep(source, &roles, params, &options, monitor)
        },
        |py, (accumulator, forest)| {
            let (accumulator, forest) = (Accumulator::new(accumulator), Forest(Arc::new(forest)));
            Ok((Bound::new(py, accumulator)?, Bound::new(py, forest)?).into_pyobject(py)?.into_any())
        },
    )
}

/// Predictions n_rows x n_components, and the measure and the score of each target.
fn oob_as_tuple(py: Python<'_>, oob: OobPredictions) -> PyResult<Bound<'_, PyAny>> {
    let scores: Vec<(&str, f64)> = oob.scores().iter().map(|score| (score.measure, score.value)).collect();
    let n_components = oob.n_components();
    let values = oob.into_values();
    let n_rows = values.len() / n_components.max(1);
    let values = PyArray1::from_vec(py, values).reshape([n_rows, n_components])?;
    Ok((values, scores).into_pyobject(py)?.into_any())
}

/// A table of pyarrow.
fn table(py: Python<'_>, batches: Vec<RecordBatch>, schema: SchemaRef) -> PyResult<Bound<'_, PyAny>> {
    Table::try_new(batches, schema).map_err(|error| bug(py, &error.to_string()))?.into_pyarrow(py)
}
