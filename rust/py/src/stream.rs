//! Streams of batches in Python: immutable values; each batch gives a new one.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::RunOptions;
use ferrank::stream::Stream as Core;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::to_py;
use crate::exit::detach;
use crate::input::Source;
use crate::run::Run;
use crate::{results, roles, settings};

/// The state after the batches so far.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Stream(pub(crate) Arc<Core>);

#[pymethods]
impl Stream {
    /// An empty stream for columns with these roles and the ranker that the settings name.
    #[staticmethod]
    fn start(py: Python<'_>, roles: &Bound<'_, PyDict>, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (roles, ranker) = (roles::ranked_roles(roles, settings)?, settings::ranker(settings)?);
        let stream = Core::new(ranker, roles, settings::stream(settings)?);
        stream.map(|stream| Stream(Arc::new(stream))).map_err(|e| to_py(py, e))
    }

    /// The stream that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let stream = detach(py, || Core::from_bytes(data));
        stream.map(|stream| Stream(Arc::new(stream))).map_err(|e| to_py(py, e))
    }

    /// The stream as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detach(py, || self.0.to_bytes()).map_err(|e| to_py(py, e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Number of complete blocks, and of rows without a target.
    #[getter]
    fn counts(&self) -> (u64, u64) {
        self.0.counts()
    }

    /// Takes copies of the rows of `batch`, on `threads` threads, within `memory` bytes and with temporary files
    /// in the folder `temp_dir`; the result is another `Stream`.
    #[pyo3(signature = (batch, threads, memory=None, temp_dir=None))]
    fn push(&self, batch: &Source, threads: usize, memory: Option<u64>, temp_dir: Option<PathBuf>) -> PyResult<Run> {
        let (stream, batch) = (self.0.clone(), batch.0.clone());
        Run::start(
            move |monitor| {
                let options =
                    RunOptions::default().with_threads(threads).with_memory(memory).with_temp_dir(temp_dir.as_deref());
                stream.push(&*batch, &options, monitor)
            },
            |py, stream| Ok(Bound::new(py, Stream(Arc::new(stream)))?.into_any()),
        )
    }

    /// Ranks by the complete blocks, or by the rows there are where no block is complete.
    #[pyo3(signature = (threads, memory=None, temp_dir=None))]
    fn ranking(&self, threads: usize, memory: Option<u64>, temp_dir: Option<PathBuf>) -> PyResult<Run> {
        let stream = self.0.clone();
        Run::start(
            move |monitor| {
                let options =
                    RunOptions::default().with_threads(threads).with_memory(memory).with_temp_dir(temp_dir.as_deref());
                stream.ranking(&options, monitor)
            },
            |py, ranking| Ok(results::ranking(py, ranking, None)?.into_any()),
        )
    }
}
