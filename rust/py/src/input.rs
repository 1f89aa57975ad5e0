//! Data from Python, by protocol: paths, Arrow tables and streams, NumPy arrays, sparse rows, factories of streams.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_pyarrow::{FromPyArrow, IntoPyArrow};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use ferrank::schema::Problem;
use ferrank::source::{self, ChunkSource, Chunks, JoinedSource, TableSource};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrays::ArraySource;
use crate::error::to_py;
use crate::exit::{calling, detach};
use crate::factory::FactorySource;
use crate::logs::configure;
use crate::reader::{imported, reader};
use crate::replay::Replay;
use crate::{results, roles};

/// Rows that can be read again and again.
#[pyclass(frozen, module = "ferrank._core")]
pub(crate) struct Source(pub(crate) Arc<dyn ChunkSource>);

impl Source {
    fn new(source: impl ChunkSource + 'static) -> Self {
        Source(Arc::new(source))
    }
}

#[pymethods]
impl Source {
    /// The Arrow, Parquet or ARFF file at `path`; `labels` is a MULAN label XML.
    #[staticmethod]
    #[pyo3(signature = (path, labels=None))]
    fn open(py: Python<'_>, path: PathBuf, labels: Option<PathBuf>) -> PyResult<Self> {
        let opened = detach(py, || source::open(&path, labels.as_deref()));
        Ok(Source(opened.map_err(|e| to_py(py, e))?.into()))
    }

    /// The Arrow file or stream at `path`, which messages call `name`.
    #[staticmethod]
    fn arrow(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<Self> {
        let opened = detach(py, || source::IpcSource::open_called(&path, name));
        Ok(Source::new(opened.map_err(|e| to_py(py, e))?))
    }

    /// The Parquet file at `path`; large row groups go by way of files in the folder `temp_dir`.
    #[staticmethod]
    #[pyo3(signature = (path, temp_dir=None))]
    fn parquet(py: Python<'_>, path: PathBuf, temp_dir: Option<PathBuf>) -> PyResult<Self> {
        // Opening may warn, and comes before the first run, which would ask for the level of the loggers.
        calling(|| configure(py))?;
        let opened = detach(py, || source::ParquetSource::open(&path, temp_dir.as_deref()));
        Ok(Source::new(opened.map_err(|e| to_py(py, e))?))
    }

    /// An object of the Arrow PyCapsule interface, its batches held as they are.
    #[staticmethod]
    fn table(py: Python<'_>, data: &Bound<'_, PyAny>, name: String) -> PyResult<Self> {
        let reader = reader(data)?;
        let schema = reader.schema();
        let batches: Result<Vec<_>, ArrowError> = detach(py, || reader.collect());
        let batches = batches.map_err(|e| to_py(py, ferrank::Error::Data(format!("{name}: {e}"))))?;
        Ok(Source::new(TableSource::new(name, schema, batches).map_err(|e| to_py(py, e))?))
    }

    /// Streams made by `make()`, one for each pass; `explain(message)` words their errors.
    #[staticmethod]
    #[pyo3(signature = (schema, make, explain, name, rows=None))]
    fn factory(
        schema: &Bound<'_, PyAny>,
        make: Py<PyAny>,
        explain: Py<PyAny>,
        name: String,
        rows: Option<u64>,
    ) -> PyResult<Self> {
        let schema = imported(schema.py(), || Schema::from_pyarrow_bound(schema))?;
        Ok(Source::new(FactorySource { name, schema: Arc::new(schema), rows, make, explain }))
    }

    /// The rows of all `parts`, one after the other.
    #[staticmethod]
    fn joined(py: Python<'_>, parts: Vec<PyRef<'_, Source>>, name: String) -> PyResult<Self> {
        let parts = parts.iter().map(|part| part.0.clone()).collect();
        Ok(Source::new(JoinedSource::new(name, parts).map_err(|e| to_py(py, e))?))
    }

    /// Arrays side by side, each with the names of its columns, or `None` for `x0`, `x1` …; `indptr`, `indices` and `data`
    /// for a sparse one, whose columns have names.
    #[staticmethod]
    fn arrays(columns: Vec<(Option<Vec<String>>, Bound<'_, PyAny>)>, name: String) -> PyResult<Self> {
        Ok(Source::new(ArraySource::new(name, columns)?))
    }

    /// The same rows, under another name in messages; `kept`, such as a temporary folder, lives as long as they do.
    fn keeping(&self, kept: Py<PyAny>, name: String) -> Self {
        Source::new(Kept { source: self.0.clone(), name, _kept: kept })
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// How messages call the source.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Number of rows where it is known without reading them.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.0.rows_hint()
    }

    /// One pass over the rows as an Arrow stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let replay: Box<dyn RecordBatchReader + Send> = Box::new(Replay::start(self.0.clone())?);
        replay.into_pyarrow(py)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// The task that `roles` make, and the features and targets with their kinds.
    fn resolve<'py>(&self, py: Python<'py>, roles: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let roles = roles::roles(roles)?;
        let problem = Problem::resolve(&self.0.schema(), &roles, self.0.name()).map_err(|e| to_py(py, e))?;
        results::problem(py, problem)
    }
}

/// A source beside an object that must live as long.
struct Kept {
    source: Arc<dyn ChunkSource>,
    name: String,
    _kept: Py<PyAny>,
}

impl Kept {
    /// `chunks`, in whose errors the source has the name of this one.
    fn renamed<'a>(&'a self, chunks: ferrank::Result<Chunks<'a>>) -> ferrank::Result<Chunks<'a>> {
        let renamed = |error| match error {
            ferrank::Error::Data(text) => ferrank::Error::Data(text.replace(self.source.name(), &self.name)),
            other => other,
        };
        Ok(Box::new(chunks.map_err(renamed)?.map(move |chunk| chunk.map_err(renamed))))
    }
}

impl ChunkSource for Kept {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn chunks(&self) -> ferrank::Result<Chunks<'_>> {
        self.renamed(self.source.chunks())
    }

    fn chunks_of(&self, columns: &[usize]) -> ferrank::Result<Chunks<'_>> {
        self.renamed(self.source.chunks_of(columns))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        self.source.rows_hint()
    }
}
