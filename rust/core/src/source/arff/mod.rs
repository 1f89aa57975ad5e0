//! ARFF, dense and sparse, read as a stream.

use std::path::Path;

use arrow_schema::SchemaRef;

use super::{ChunkSource, Chunks};
use crate::error::Result;

/// An ARFF file.
#[derive(Debug)]
pub struct ArffSource {
    name: String,
    schema: SchemaRef,
}

impl ArffSource {
    /// Reads the header of the ARFF file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or its header is not ARFF.
    pub fn open(_path: &Path) -> Result<Self> {
        todo!()
    }
}

impl ChunkSource for ArffSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        todo!()
    }

    fn name(&self) -> &str {
        &self.name
    }
}
