//! A source made of a Python function that gives a fresh stream for each pass.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use ferrank::source::{ChunkSource, Chunks};
use ferrank::{Error, Result};
use pyo3::prelude::*;

use crate::reader::reader;

/// Files that pyarrow reads. The GIL is held only to make a stream; batches come by the C interface.
pub(crate) struct FactorySource {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Number of rows, where the file says so.
    pub(crate) rows: Option<u64>,
    /// `() -> object with __arrow_c_stream__`
    pub(crate) make: Py<PyAny>,
    /// `(message: str) -> str`: words an error of the stream for people.
    pub(crate) explain: Py<PyAny>,
}

impl FactorySource {
    fn error(&self, what: &str) -> Error {
        let explained = Python::attach(|py| self.explain.call1(py, (what,))?.extract::<String>(py));
        Error::Data(format!("{}: {}", self.name, explained.as_deref().unwrap_or(what)))
    }
}

impl ChunkSource for FactorySource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let stream = Python::attach(|py| reader(self.make.bind(py).call0()?.as_any()))
            .map_err(|e| self.error(&e.to_string()))?;
        // What the metadata say beyond the stream's own is known from the first look at the file.
        let whole = |batch: RecordBatch| batch.with_schema(self.schema.clone());
        if whole(RecordBatch::new_empty(stream.schema())).is_err() {
            return Err(Error::Data(format!("{}: its columns changed between two passes", self.name)));
        }
        Ok(Box::new(stream.map(move |batch| batch.and_then(whole).map_err(|e| self.error(&e.to_string())))))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        self.rows
    }
}
