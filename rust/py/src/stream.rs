//! Streams of batches in Python: a value that each batch makes a new one of.

use std::path::PathBuf;
use std::sync::Arc;

use ferrank::RunOptions;
use ferrank::stream::Stream as Core;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::to_py;
use crate::input::Source;
use crate::run::{Outcome, Run};
use crate::settings;

/// What is kept of the batches so far.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Stream(pub(crate) Arc<Core>);

#[pymethods]
impl Stream {
    /// No batch yet of columns with these roles, for the ranker that the settings name.
    #[staticmethod]
    fn start(py: Python<'_>, roles: &Bound<'_, PyDict>, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (roles, ranker) = (settings::ranked_roles(roles, settings)?, settings::ranker(settings)?);
        let stream = Core::new(ranker, roles, settings::stream(settings)?);
        stream.map(|stream| Stream(Arc::new(stream))).map_err(|e| to_py(py, e))
    }

    /// The stream in `data`, of which `to_bytes` made it.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let stream = py.detach(|| Core::from_bytes(data));
        stream.map(|stream| Stream(Arc::new(stream))).map_err(|e| to_py(py, e))
    }

    /// The stream as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(|e| to_py(py, e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Takes copies of the rows of `batch`, on `threads` threads, within `memory` bytes and with scratch files in
    /// the folder `scratch`; the result is another `Stream`.
    #[pyo3(signature = (batch, threads, memory=None, temp_dir=None))]
    fn push(&self, batch: &Source, threads: usize, memory: Option<u64>, temp_dir: Option<PathBuf>) -> PyResult<Run> {
        let (stream, batch) = (self.0.clone(), batch.0.clone());
        Run::start(move |monitor| {
            let options = RunOptions { threads, memory, temp_dir: temp_dir.as_deref(), ..RunOptions::default() };
            stream.push(&*batch, &options, monitor).map(|stream| Outcome::Stream(Arc::new(stream)))
        })
    }

    /// Ranks by what was summed up; where that is nothing yet, by the rows that there are.
    #[pyo3(signature = (threads, memory=None, temp_dir=None))]
    fn ranking(&self, threads: usize, memory: Option<u64>, temp_dir: Option<PathBuf>) -> PyResult<Run> {
        let stream = self.0.clone();
        Run::start(move |monitor| {
            let options = RunOptions { threads, memory, temp_dir: temp_dir.as_deref(), ..RunOptions::default() };
            stream.ranking(&options, monitor).map(Outcome::Ranking)
        })
    }
}
