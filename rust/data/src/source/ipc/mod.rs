//! Arrow IPC files and streams, memory-mapped.
//!
//! Uncompressed columns point into the map and cost no memory; LZ4 and ZSTD ones are unpacked batch by
//! batch. A file is foreign bytes: every length and position it claims is checked against the file
//! before anything is allocated or read ([`claims`]), Arrow's own validation of offsets, dictionary
//! keys and UTF-8 stays on, and a panic of the decoder becomes an error ([`checked`]).
//!
//! A stream may end without its end marker, as the format allows, so one that is cut off between two
//! messages reads as a shorter stream.

mod checked;
mod claims;
mod layout;

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::root_as_message;
use arrow_schema::SchemaRef;

use super::chunking::pieces;
use super::mapping::Mapping;
use super::{ChunkSource, Chunks};
use checked::{Checked, catch_decoder_panic};
use ferrank_runtime::error::{Error, Result};
use layout::{Block, Layout};

/// A memory-mapped Arrow file or stream.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::source::{ChunkSource, IpcSource, TableSource, write_ipc};
/// use ferrank_runtime::monitor::Monitor;
///
/// let path = std::env::temp_dir().join(format!("ferrank-{}-doc.arrow", std::process::id()));
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// write_ipc(&table, &path, &Monitor::default())?;
/// assert_eq!(IpcSource::open(&path)?.rows_hint(), Some(60));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct IpcSource {
    name: String,
    buffer: Buffer,
    layout: Layout,
    /// The file, if the bytes are one.
    mapping: Option<Mapping>,
}

/// Bytes of the marker and the length before a message.
const PREFIX: usize = 8;

/// Bytes of the largest batch that is fetched while the one before it is worked on.
const MOST_AHEAD: usize = 128 << 20;

impl IpcSource {
    /// Maps the Arrow file or stream at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not Arrow, or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_mapping(Mapping::open(path)?)
    }

    /// Maps an open file, called `name`.
    pub(super) fn from_file(file: &File, name: &str) -> Result<Self> {
        Self::from_mapping(Mapping::from_file(file, name.to_string()).map_err(|e| Error::file(name, e))?)
    }

    pub(super) fn from_mapping(mapping: Mapping) -> Result<Self> {
        let source = Self::from_buffer(mapping.name.clone(), mapping.buffer())?;
        Ok(IpcSource { mapping: Some(mapping), ..source })
    }

    /// The file or stream in `buffer`, called `name`.
    pub fn from_buffer(name: String, buffer: Buffer) -> Result<Self> {
        Self::laid_out(name, buffer, Layout::read)
    }

    /// The batches of the stream in `buffer` that are whole.
    pub fn from_cut_buffer(name: String, buffer: Buffer) -> Result<Self> {
        Self::laid_out(name, buffer, Layout::from_cut_stream)
    }

    fn laid_out(name: String, buffer: Buffer, read: fn(&[u8]) -> Checked<Layout>) -> Result<Self> {
        let layout = catch_decoder_panic(|| read(&buffer)).map_err(|what| damaged(&name, &what))?;
        Ok(IpcSource { name, buffer, layout, mapping: None })
    }

    /// The batches as they are in the file, whatever their size.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + Send + '_ {
        let mut pass = Pass { source: self, blocks: self.layout.blocks.iter(), dictionaries: HashMap::new() };
        std::iter::from_fn(move || pass.batch())
    }

    /// Ok if the file is as it was when it was mapped.
    fn check(&self) -> Result<()> {
        self.mapping.as_ref().map_or(Ok(()), Mapping::check)
    }

    /// Where each batch ends, and before them the schema: byte positions.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        let first = self.layout.blocks.first().map_or(self.layout.end, |block| block.metadata.start - PREFIX);
        std::iter::once(first).chain(self.layout.blocks.iter().map(|block| block.body.end))
    }

    /// Returns true if `bytes` begin like an Arrow file or stream.
    pub(super) fn recognises(bytes: &[u8]) -> bool {
        layout::is_file(bytes) || layout::is_stream(bytes)
    }
}

impl ChunkSource for IpcSource {
    fn schema(&self) -> SchemaRef {
        self.layout.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(Box::new(self.batches().flat_map(|batch| {
            let (batch, error) = batch.map_or_else(|e| (None, Some(Err(e))), |batch| (Some(batch), None));
            batch.into_iter().flat_map(pieces).map(|piece| self.check().map(|()| piece)).chain(error)
        })))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.layout.rows)
    }
}

struct Pass<'a> {
    source: &'a IpcSource,
    blocks: std::slice::Iter<'a, Block>,
    // Dictionaries as of the last message: a stream may replace or extend them between batches.
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Pass<'_> {
    fn batch(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let block = self.blocks.next()?;
            if let Err(changed) = self.source.check() {
                self.blocks = [].iter();
                return Some(Err(changed));
            }
            if let (Some(mapping), Some(next)) = (&self.source.mapping, self.blocks.as_slice().first())
                && next.body.len() <= MOST_AHEAD
            {
                mapping.fetch(next.body.clone());
            }
            match catch_decoder_panic(|| self.decode(block)) {
                Ok(None) => {}
                Ok(Some(batch)) => return Some(Ok(batch)),
                Err(what) => {
                    self.blocks = [].iter();
                    return Some(Err(damaged(&self.source.name, &what)));
                }
            }
        }
    }

    /// The batch in `block`; `None` where it holds a dictionary, which is kept.
    fn decode(&mut self, block: &Block) -> Checked<Option<RecordBatch>> {
        let source = self.source;
        let message = root_as_message(&source.buffer[block.metadata.clone()]).map_err(|e| e.to_string())?;
        let body = source.buffer.slice_with_length(block.body.start, block.body.len());
        let schema = &source.layout.schema;
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            let values = dictionary.data().ok_or("a dictionary without values")?;
            claims::check(&values, None, &body)?;
            read_dictionary(&body, dictionary, schema, &mut self.dictionaries, &message.version())
                .map_err(|e| e.to_string())?;
            return Ok(None);
        }
        let batch = message.header_as_record_batch().ok_or("a message of an unknown kind")?;
        claims::check(&batch, Some(schema), &body)?;
        read_record_batch(&body, batch, schema.clone(), &self.dictionaries, None, &message.version())
            .map(Some)
            .map_err(|e| e.to_string())
    }
}

fn damaged(name: &str, what: &str) -> Error {
    Error::Data(format!("{name}: the Arrow data are damaged or cut off: {what}"))
}
