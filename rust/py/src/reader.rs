//! Streams of record batches from Python objects, by protocol.

use arrow_array::RecordBatchReader;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatchReader;
use pyo3_arrow::input::AnyRecordBatch;

/// The stream of an object of the Arrow PyCapsule interface, or of a bare stream capsule.
pub(crate) fn reader(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    match data.cast::<PyCapsule>() {
        Ok(capsule) => PyRecordBatchReader::from_arrow_pycapsule(capsule)?.into_reader(),
        Err(_) => data.extract::<AnyRecordBatch>()?.into_reader(),
    }
}
