//! Any source to an Arrow file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, Schema};
use tempfile::NamedTempFile;

use super::ChunkSource;
use super::dictionary::Stored;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

/// Writes all rows of `source` to an uncompressed Arrow IPC file at `path`, chunk by chunk, and returns
/// their number. The file appears, or replaces its predecessor, only when complete.
///
/// Dictionaries of texts, numbers, times and Booleans become one dictionary per column with 32-bit keys, whatever those of
/// the chunks are; others become plain columns.
///
/// # Errors
/// The errors of reading the source, a folder that cannot be written, a full disk, or a request to stop.
pub fn write_ipc(source: &dyn ChunkSource, path: &Path, monitor: &Monitor) -> Result<u64> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, source) => Error::file(path, source),
        other => Error::Data(format!("{}: {other}", source.name())),
    };
    let schema = source.schema();
    let mut columns: Vec<Stored> = schema.fields().iter().map(|field| Stored::new(field.data_type())).collect();
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .zip(&columns)
        .map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type()))
        .collect();
    let stored = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let file = unfinished(path).map_err(|e| Error::file(path, e))?;
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let mut writer =
        FileWriter::try_new_with_options(BufWriter::new(file.as_file()), &stored, options).map_err(failed)?;
    let mut rows = 0;
    for chunk in source.chunks()? {
        monitor.check()?;
        let chunk = chunk?;
        let arrays = chunk.columns().iter().zip(&mut columns).map(|(array, column)| column.store(array));
        let arrays: Vec<ArrayRef> = arrays.collect::<std::result::Result<_, _>>().map_err(failed)?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.num_rows()));
        let chunk = RecordBatch::try_new_with_options(stored.clone(), arrays, &options).map_err(failed)?;
        writer.write(&chunk).map_err(failed)?;
        rows += chunk.num_rows() as u64;
    }
    writer.finish().map_err(failed)?;
    drop(writer);
    file.persist(path).map_err(|e| Error::file(path, e.error))?;
    Ok(rows)
}

/// A file beside `path` that vanishes unless it is given that name. Devices and pipes are refused: it would replace them.
pub fn unfinished(path: &Path) -> std::io::Result<NamedTempFile<File>> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(std::io::Error::other("is a device or a pipe; name a file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ferrank-").suffix(".arrow");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a plain new file gets: the process's mask is applied to it.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
