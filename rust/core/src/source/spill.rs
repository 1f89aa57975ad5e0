//! Streams that can be read only once, kept in a scratch file.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::IpcSource;
use crate::error::Result;

/// Writes `batches` to an unlinked scratch file and maps it.
///
/// `scratch` is the folder for the file; `None`: the system's temporary folder.
///
/// # Errors
/// The first error of `batches`, a batch of another schema, or a full disk.
pub fn spill(
    _name: &str,
    _schema: SchemaRef,
    _batches: impl Iterator<Item = Result<RecordBatch>>,
    _scratch: Option<&Path>,
) -> Result<IpcSource> {
    todo!()
}
