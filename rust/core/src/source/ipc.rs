//! Arrow IPC files and streams, memory-mapped.

use std::path::Path;

use arrow_schema::SchemaRef;

use super::{ChunkSource, Chunks};
use crate::error::Result;

/// A memory-mapped Arrow file or stream.
#[derive(Debug)]
pub struct IpcSource {
    name: String,
    schema: SchemaRef,
}

impl IpcSource {
    /// Maps the Arrow file or stream at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not Arrow.
    pub fn open(_path: &Path) -> Result<Self> {
        todo!()
    }

    pub(super) fn of(_mapping: super::mapping::Mapping) -> Result<Self> {
        todo!()
    }

    pub(super) fn recognises(bytes: &[u8]) -> bool {
        bytes.starts_with(b"ARROW1")
    }
}

impl ChunkSource for IpcSource {
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
