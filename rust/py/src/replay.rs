//! A pass over a source as a stream that owns what it reads.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use ferrank::source::ChunkSource;
use pyo3::prelude::*;

use crate::error::no_thread;
use crate::exit::Busy;

/// Batches of one pass, read by a thread of their own, one ahead.
pub(crate) struct Replay {
    schema: SchemaRef,
    batches: Mutex<Receiver<Result<RecordBatch, ArrowError>>>,
}

impl Replay {
    /// Starts a pass over `source`.
    pub(crate) fn start(source: Arc<dyn ChunkSource>) -> PyResult<Self> {
        let schema = source.schema();
        let (sender, batches) = sync_channel(1);
        let spawned = thread::Builder::new().name("ferrank-replay".into()).spawn(move || {
            let mut busy = Some(Busy::begin_or_sleep());
            let mut send = |batch| {
                // Nobody may ask for the rest before the interpreter ends.
                drop(busy.take());
                let sent = sender.send(batch);
                busy = Some(Busy::begin_or_sleep());
                sent
            };
            // The C interface ends a message, and the process, at a null byte, which may be in a value of a file.
            let failed =
                |error: ferrank::Error| ArrowError::ExternalError(error.to_string().replace('\0', "\\0").into());
            match source.chunks() {
                // The receiver is gone where the rest is not wanted.
                Ok(chunks) => {
                    let _ = chunks.map(|batch| batch.map_err(failed)).try_for_each(&mut send);
                }
                Err(error) => {
                    let _ = send(Err(failed(error)));
                }
            }
        });
        spawned.map_err(|error| Python::attach(|py| no_thread(py, &error)))?;
        Ok(Replay { schema, batches: Mutex::new(batches) })
    }
}

impl Iterator for Replay {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(busy) = Busy::begin() else {
            return Some(Err(ArrowError::ExternalError("the interpreter ends".into())));
        };
        // The thread that reads may need the GIL, which the caller may hold.
        let batches = &self.batches;
        Python::attach(|py| busy.detach(py, || batches.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()))
    }
}

impl RecordBatchReader for Replay {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
