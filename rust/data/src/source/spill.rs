//! Streams that can be read only once, kept in a scratch file.

use std::io::BufWriter;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};

use super::IpcSource;
use super::chunking::conform;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::scratch::Scratch;
use tracing::info;

/// Writes `batches` to a scratch file and maps it. The file has no name in its folder, so it is gone
/// with the source, also after a crash.
///
/// `scratch` is the folder for the file; `None`: the system's temporary folder.
///
/// The file holds the stream format, which unlike the file format lets dictionaries change from batch
/// to batch.
///
/// # Errors
/// The first error of `batches`, a batch of other columns, or a full disk.
pub fn spill(
    name: &str,
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    scratch: Option<&Path>,
) -> Result<IpcSource> {
    let scratch = Scratch::new(scratch);
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, source) => scratch.failed(source),
        other => Error::Data(format!("{name}: {other}")),
    };
    info!("{name}: can be read only once and is kept in a temporary file in {}", scratch.folder().display());
    let file = scratch.file()?;
    let mut writer = StreamWriter::try_new(BufWriter::new(&file), &schema).map_err(failed)?;
    for (number, batch) in batches.enumerate() {
        let batch = conform(batch?, &schema).ok_or_else(|| {
            Error::Data(format!("{name}: the columns of batch {} are not those of the stream", number + 1))
        })?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    drop(writer);
    IpcSource::from_buffer(name.to_string(), scratch.map(&file)?)
}
