//! Any source to an Arrow file.

use std::path::Path;

use super::ChunkSource;
use crate::error::Result;
use crate::monitor::Monitor;

/// Writes all rows of `source` to an Arrow IPC file at `path`, chunk by chunk, and returns their
/// number. The file appears, or replaces its predecessor, only when complete.
///
/// # Errors
/// Those of reading the source, a folder that cannot be written, a full disk, or a request to stop.
pub fn write_ipc(_source: &dyn ChunkSource, _path: &Path, _monitor: &Monitor) -> Result<u64> {
    todo!()
}
