//! Opening a file by its content.

use std::path::Path;

use super::ChunkSource;
use crate::error::Result;

/// Opens the file at `path`: Arrow IPC (file or stream) or ARFF, told by the content.
///
/// `labels` is a MULAN label XML; its columns are marked with [`ROLE`](super::ROLE) =
/// [`LABEL`](super::LABEL).
///
/// # Errors
/// The file cannot be read, is of another format (Parquet and CSV are opened through pyarrow), or a
/// label of the XML is not a column.
pub fn open(_path: &Path, _labels: Option<&Path>) -> Result<Box<dyn ChunkSource>> {
    todo!()
}
