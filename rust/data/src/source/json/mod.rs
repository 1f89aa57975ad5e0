//! JSON files: an object on each line, or one list of objects.
//!
//! The file is read twice. The first time tells the columns and their types from all rows ([`types`]); the second time
//! its rows are copied to a scratch file in Arrow's format, from which a ranking reads them. A key that a row leaves out
//! is missing there. Text is a time where all texts of the column are a day, or a day and a time to the second.
//!
//! Memory: a batch, and the longest row, which has at most 64 MiB.

mod rows;
mod types;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;

use super::chunking::rows_per_chunk;
use super::file::InputFile;
use super::{IpcSource, spill};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;
use rows::Rows;
use types::Columns;

/// Bytes of text of a batch.
const BATCH_BYTES: usize = 16 << 20;

/// The rows of the JSON file at `path`, called `name`, kept in a file in `scratch`.
///
/// # Errors
/// The file cannot be read or is no JSON, a column has values of several types, or the disk is full.
pub fn read_json(path: &Path, name: &str, scratch: Option<&Path>, monitor: &Monitor) -> Result<IpcSource> {
    let file = InputFile::open(path)?.called(name);
    let failed = |what: String| Error::Data(format!("{name}: {what}"));
    let (mut rows, mut columns) = (Rows::new(file.text()), Columns::default());
    loop {
        let number = rows.number + 1;
        let Some(row) = rows.next().map_err(failed)? else { break };
        columns.add(row, number).map_err(failed)?;
        monitor.check()?;
    }
    let schema = Arc::new(columns.schema().map_err(failed)?);
    if schema.fields().is_empty() {
        return Err(failed("there is no column in it; use an object on each line, or one list of objects".into()));
    }
    let most = rows_per_chunk(schema.fields().len());
    let reader = ReaderBuilder::new(schema.clone()).with_batch_size(most);
    let mut decoder = reader.build_decoder().map_err(|e| failed(e.to_string()))?;
    let mut rows = Rows::new(file.text());
    let mut batches = std::iter::from_fn(|| {
        let batch = monitor.check().and_then(|()| batch(&mut rows, &mut decoder, most).map_err(failed));
        batch.transpose()
    });
    spill(name, schema, &mut batches, scratch)
}

/// The next rows; none at the end.
fn batch(
    rows: &mut Rows<impl Read>,
    decoder: &mut Decoder,
    most: usize,
) -> std::result::Result<Option<RecordBatch>, String> {
    let (mut n_rows, mut n_bytes) = (0, 0);
    while n_rows < most && n_bytes < BATCH_BYTES {
        let number = rows.number + 1;
        let Some(row) = rows.next()? else { break };
        n_rows += 1;
        n_bytes += row.len();
        decoder.decode(row).map_err(|error| format!("row {number}: {error}"))?;
    }
    decoder.flush().map_err(|error| error.to_string())
}
