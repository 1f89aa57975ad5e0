//! A table already in memory.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::chunking::{conform, pieces};
use super::{ChunkSource, Chunks};
use ferrank_runtime::error::{Error, Result};

/// Record batches held in memory.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::source::{ChunkSource, TableSource};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch.slice(0, 20), batch.slice(20, 40)])?;
/// assert_eq!((table.name(), table.rows_hint()), ("table", Some(60)));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TableSource {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl TableSource {
    /// A source called `name` in messages.
    ///
    /// # Errors
    /// A batch whose columns are not those of `schema`.
    pub fn new(name: impl Into<String>, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let name = name.into();
        let batches = batches
            .into_iter()
            .enumerate()
            .map(|(number, batch)| {
                conform(batch, &schema).ok_or_else(|| {
                    let number = number + 1;
                    Error::Data(format!("{name}: the columns of batch {number} are not those of the table"))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(TableSource { name, schema, batches })
    }
}

impl ChunkSource for TableSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(Box::new(self.batches.iter().flat_map(|batch| pieces(batch.clone())).map(Ok)))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.batches.iter().map(|batch| batch.num_rows() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, NullArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn a_large_batch_comes_in_pieces() {
        let column: ArrayRef = Arc::new(NullArray::new(150_000));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let table = TableSource::new("table", batch.schema(), vec![batch.clone(), batch.slice(0, 0)]).unwrap();
        let rows: Vec<usize> = table.chunks().unwrap().map(|chunk| chunk.unwrap().num_rows()).collect();
        assert_eq!(rows, [65_536, 65_536, 18_928]);
        assert_eq!(table.rows_hint(), Some(150_000));
    }

    #[test]
    fn a_batch_of_other_columns_is_refused() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let other = Arc::new(Schema::new(vec![Field::new("b", DataType::Int32, true)]));
        let error = TableSource::new("table", other, vec![batch]).unwrap_err();
        assert!(error.to_string().contains("batch 1"), "{error}");
    }
}
