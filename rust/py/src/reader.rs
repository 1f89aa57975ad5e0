//! Arrays and streams of record batches from Python objects, by the Arrow PyCapsule interface.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi_stream::ArrowArrayStreamReader;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{ArrowException, FromPyArrow};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use ferrank::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::to_py;
use crate::exit::calling;

/// The stream of an object of the Arrow PyCapsule interface.
///
/// Text that is no UTF-8 and keys without a category are errors: those who hand arrays over do not check them, and
/// neither does their import.
pub(crate) fn reader(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let reader = imported(data.py(), || -> PyResult<Box<dyn RecordBatchReader + Send>> {
        if data.hasattr("__arrow_c_stream__")? {
            return Ok(Box::new(ArrowArrayStreamReader::from_pyarrow_bound(data)?));
        }
        let batch = RecordBatch::from_pyarrow_bound(data)?;
        let schema = batch.schema();
        Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    })?;
    Ok(Box::new(Checked(reader)))
}

/// The array of an object of the Arrow PyCapsule interface.
pub(crate) fn array(data: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(make_array(calling(|| ArrayData::from_pyarrow_bound(data))?))
}

/// What `import` gives, which panics where the name of a column is no UTF-8, and has a ValueError or an ArrowException
/// for all else that is no schema.
pub(crate) fn imported<T>(py: Python<'_>, import: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let refused = |why: &str| to_py(py, Error::Data(format!("data: the schema cannot be taken over; {why}")));
    match catch_unwind(AssertUnwindSafe(|| calling(import))) {
        Ok(Err(error)) if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<ArrowException>(py) => {
            let text = error.value(py).to_string();
            let is_text = text.to_lowercase().contains("utf-8");
            let advice =
                if is_text { "write its names and metadata as UTF-8" } else { "use types of Arrow's C interface" };
            Err(refused(&format!("{advice}: {text}")))
        }
        Ok(imported) => imported,
        Err(_) => Err(refused("write the names of columns as UTF-8")),
    }
}

/// A stream whose batches are checked.
struct Checked(Box<dyn RecordBatchReader + Send>);

impl Iterator for Checked {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(|batch| {
            // pyarrow hands over an empty slice from within a text with an offset beyond the text.
            if batch.num_rows() == 0 {
                return Ok(RecordBatch::new_empty(batch.schema()));
            }
            for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                let simple = field.data_type().is_primitive();
                if !simple && !matches!(field.data_type(), DataType::Boolean | DataType::Null) {
                    column.to_data().validate_full().map_err(|error| damaged(field.name(), &error))?;
                }
            }
            Ok(batch)
        }))
    }
}

impl RecordBatchReader for Checked {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

fn damaged(column: &str, error: &ArrowError) -> ArrowError {
    let text = "write text as UTF-8, and each key with a category";
    ArrowError::InvalidArgumentError(format!("the column '{column}' is damaged ({error}); {text}"))
}
