//! A table already in memory.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{ChunkSource, Chunks};
use crate::error::{Error, Result};

/// Record batches held in memory.
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
    /// A batch whose schema is not `schema`.
    pub fn new(name: impl Into<String>, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let name = name.into();
        match batches.iter().position(|b| b.schema() != schema) {
            Some(number) => Err(Error::Data(format!(
                "{name}: batch {} has another schema than the table; give batches of one schema",
                number + 1
            ))),
            None => Ok(TableSource { name, schema, batches }),
        }
    }
}

impl ChunkSource for TableSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(Box::new(self.batches.iter().cloned().map(Ok)))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.batches.iter().map(|b| b.num_rows() as u64).sum())
    }
}
