//! Arrow IPC files and streams.
//!
//! A file is read into memory of our own, in pieces of at most 8 MiB where its batches are larger ([`window`]), and never
//! mapped: see [`super::file`]. A batch that unpacks to more than that, or cannot be read in pieces, is unpacked or copied
//! to a scratch file. A file is foreign bytes: every length and position it claims is checked against the file before
//! anything is allocated or read ([`claims`]), Arrow's own validation of offsets, dictionary keys and UTF-8 stays on, and
//! a panic of the decoder becomes an error ([`super::checked`]).
//!
//! A stream may end without its end marker, as the format allows, so one that is cut off between two
//! messages reads as a shorter stream.

mod bytes;
mod claims;
mod described;
mod layout;
mod schema;
mod sealed;
mod unpack;
mod views;
mod window;

pub use sealed::{is_sealed, write_sealed};

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{DictionaryBatch, MetadataVersion, RecordBatch as Described, root_as_message};
use arrow_schema::{DataType, SchemaRef};

use super::checked::{Checked, catch_decoder_panic};
use super::chunking::{pieces, sized};
use super::file::{InputFile, PIECE, Pool};
use super::{ChunkSource, Chunks, valid};
use bytes::Bytes;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::scratch::Scratch;
use layout::{Block, Layout};

/// An Arrow file or stream.
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
    bytes: Bytes,
    layout: Layout,
    /// True if some rows of a batch can be read without the others.
    can_cut: bool,
    /// True if columns, but for their dictionaries, have views.
    has_views: bool,
}

/// Bytes of the marker and the length before a message.
const PREFIX: usize = 8;

/// Bytes of the largest batch that is fetched while the one before it is worked on.
const MOST_AHEAD: usize = 128 << 20;

/// Bytes that are copied at a time.
const BLOCK: usize = sized(1 << 20, 100);

impl IpcSource {
    /// Opens the Arrow file or stream at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not Arrow, or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_file(InputFile::open(path)?)
    }

    /// As [`IpcSource::open`], for a file that messages call `name`.
    ///
    /// # Errors
    /// Those of [`IpcSource::open`].
    pub fn open_called(path: &Path, name: &str) -> Result<Self> {
        Self::from_file(InputFile::open(path)?.called(name))
    }

    pub(super) fn from_file(file: InputFile) -> Result<Self> {
        Self::laid_out(file.name.clone(), Bytes::File(file), Layout::read)
    }

    /// The file or stream in `buffer`, called `name`.
    pub fn from_buffer(name: String, buffer: Buffer) -> Result<Self> {
        Self::laid_out(name, Bytes::Memory(buffer), Layout::read)
    }

    /// The batches of the stream in `buffer` that are whole.
    pub fn from_cut_buffer(name: String, buffer: Buffer) -> Result<Self> {
        Self::laid_out(name, Bytes::Memory(buffer), Layout::from_cut_stream)
    }

    fn laid_out(name: String, bytes: Bytes, read: fn(&Bytes) -> Checked<Layout>) -> Result<Self> {
        match catch_decoder_panic(|| read(&bytes)) {
            Ok(layout) => {
                let has_views = layout.schema.fields().iter().any(|field| views::has_views(field.data_type()));
                Ok(IpcSource { name, can_cut: window::can_cut(&layout.schema), has_views, layout, bytes })
            }
            Err(what) => Err(failed(&name, &bytes, &what)),
        }
    }

    /// This source with [batches](Self::batches) that are never in pieces. Large ones of a file are copied to temporary files.
    pub fn with_whole_batches(mut self) -> Self {
        self.can_cut = false;
        self
    }

    /// The batches as they are in memory, whatever their size; those of a file that are large in pieces.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + Send + '_ {
        self.pass(None)
    }

    fn pass(&self, columns: Option<Vec<usize>>) -> impl Iterator<Item = Result<RecordBatch>> + Send + '_ {
        let mut pass = Pass {
            source: self,
            blocks: self.layout.blocks.iter(),
            dictionaries: HashMap::new(),
            columns,
            cut: None,
            pool: Pool::default(),
            scratch: Scratch::new(None),
        };
        std::iter::from_fn(move || pass.batch())
    }

    /// True if what is read may take much more memory than there are bytes.
    pub fn is_compressed(&self) -> bool {
        self.layout.is_compressed
    }

    /// Where each batch ends, and before them the schema: byte positions.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        let first = self.layout.blocks.first().map_or(self.layout.end, |block| block.metadata.start - PREFIX);
        std::iter::once(first).chain(self.layout.blocks.iter().map(|block| block.body.end))
    }

    /// Returns true if `file` begins like an Arrow file or stream.
    pub(super) fn recognises(file: &InputFile) -> bool {
        let bytes = Bytes::File(file.clone());
        layout::is_file(&bytes).unwrap_or(false) || layout::is_stream(&bytes)
    }
}

impl ChunkSource for IpcSource {
    fn schema(&self) -> SchemaRef {
        self.layout.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        Ok(in_pieces(self.pass(None)))
    }

    fn chunks_of(&self, columns: &[usize]) -> Result<Chunks<'_>> {
        Ok(in_pieces(self.pass(Some(columns.to_vec()))))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.layout.rows)
    }
}

fn in_pieces<'a>(batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'a) -> Chunks<'a> {
    Box::new(batches.flat_map(|batch| {
        let (batch, error) = batch.map_or_else(|e| (None, Some(Err(e))), |batch| (Some(batch), None));
        batch.into_iter().flat_map(pieces).map(Ok).chain(error)
    }))
}

struct Pass<'a> {
    source: &'a IpcSource,
    blocks: std::slice::Iter<'a, Block>,
    // Dictionaries as of the last message: a stream may replace or extend them between batches.
    dictionaries: HashMap<i64, ArrayRef>,
    /// Those that are wanted, if not all are.
    columns: Option<Vec<usize>>,
    cut: Option<Cut>,
    pool: Pool,
    scratch: Scratch,
}

/// A batch that is read in pieces.
struct Cut {
    message: Buffer,
    body: Range<usize>,
    /// Those that are still to be read.
    rows: Range<usize>,
    /// Rows of a piece.
    step: usize,
}

impl Pass<'_> {
    fn batch(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let found = match self.cut.take() {
                Some(cut) => catch_decoder_panic(|| self.piece(cut)).map(Some),
                None => {
                    let block = self.blocks.next()?;
                    self.fetch_next();
                    catch_decoder_panic(|| self.decode(block))
                }
            };
            match found {
                Ok(None) => {}
                Ok(Some(batch)) => return Some(Ok(batch)),
                Err(what) => {
                    self.blocks = [].iter();
                    return Some(Err(failed(&self.source.name, &self.source.bytes, &what)));
                }
            }
        }
    }

    /// Has the next batch brought into memory, while this one is worked on.
    fn fetch_next(&self) {
        if let (Bytes::File(file), Some(next), None) =
            (&self.source.bytes, self.blocks.as_slice().first(), &self.columns)
            && next.body.len() <= MOST_AHEAD
        {
            file.fetch(next.body.clone());
        }
    }

    /// The batch in `block`; `None` where it holds a dictionary, which is kept, or is read in pieces.
    fn decode(&mut self, block: &Block) -> Checked<Option<RecordBatch>> {
        let described = self.source.bytes.get(block.metadata.clone(), &self.pool)?;
        let message = root_as_message(&described).map_err(|e| e.to_string())?;
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            self.dictionary(dictionary, block.body.clone(), message.version())?;
            return Ok(None);
        }
        let batch = message.header_as_record_batch().ok_or("a message of an unknown kind")?;
        claims::check(&batch, Some(&self.source.layout.schema), block.body.len())?;
        let rows = usize::try_from(batch.length()).map_err(|_| "a batch has a negative number of rows")?;
        let is_large = block.body.len() > PIECE || self.columns.is_some();
        let is_file = matches!(self.source.bytes, Bytes::File(_));
        if is_file && is_large && self.source.can_cut && rows > 0 && batch.compression().is_none() {
            let step = window::step(rows, block.body.len(), PIECE);
            self.cut = Some(Cut { message: described, body: block.body.clone(), rows: 0..rows, step });
            return Ok(None);
        }
        let body = self.body(block.body.clone())?;
        let n_bytes = claims::unpacked(&batch, &body, unpack::ALIGN)?;
        if batch.compression().is_none() || (n_bytes <= PIECE && !self.source.has_views) {
            return self.read(&body, batch, message.version()).map(Some);
        }
        let (body, described) = unpack::unpacked(&batch, &body, n_bytes, &self.scratch)?;
        let batch = flatbuffers::root::<Described<'_>>(described.finished_data()).map_err(|e| e.to_string())?;
        self.read(&body, batch, message.version()).map(Some)
    }

    /// The next piece of a batch.
    fn piece(&mut self, cut: Cut) -> Checked<RecordBatch> {
        let Bytes::File(file) = &self.source.bytes else { return Err("a batch without a file".into()) };
        let message = root_as_message(&cut.message).map_err(|e| e.to_string())?;
        let batch = message.header_as_record_batch().ok_or("a message of an unknown kind")?;
        let version = message.version();
        let end = cut.rows.end.min(cut.rows.start + cut.step);
        let (body, described) = window::window(
            file,
            (&batch, cut.body.clone()),
            (&self.source.layout.schema, self.columns.as_deref()),
            cut.rows.start..end,
            (&self.pool, &self.scratch),
        )?;
        if end < cut.rows.end {
            self.cut = Some(Cut { rows: end..cut.rows.end, ..cut });
        }
        let batch = flatbuffers::root::<Described<'_>>(described.finished_data()).map_err(|e| e.to_string())?;
        self.read(&body, batch, version)
    }

    fn read(&self, body: &Buffer, batch: Described<'_>, version: MetadataVersion) -> Checked<RecordBatch> {
        let (schema, columns) = (self.source.layout.schema.clone(), self.columns.as_deref());
        if self.source.has_views {
            views::check(&batch, body, version, schema.fields().iter().map(|field| field.data_type()))?;
        }
        let batch = read_record_batch(body, batch, schema, &self.dictionaries, columns, &version);
        let batch = batch.map_err(|e| e.to_string())?;
        valid::check(&batch)?;
        Ok(batch)
    }

    fn dictionary(
        &mut self,
        dictionary: DictionaryBatch<'_>,
        body: Range<usize>,
        version: MetadataVersion,
    ) -> Checked<()> {
        let values = dictionary.data().ok_or("a dictionary without values")?;
        claims::check(&values, None, body.len())?;
        let body = self.body(body)?;
        let n_bytes = claims::unpacked(&values, &body, unpack::ALIGN)?;
        let schema = &self.source.layout.schema;
        #[allow(deprecated, reason = "the decoder looks them up in the same way")]
        let of_values = schema.fields_with_dict_id(dictionary.id());
        let of_values = of_values.first().and_then(|field| match field.data_type() {
            DataType::Dictionary(_, values) => Some(values.as_ref()),
            _ => None,
        });
        let has_views = of_values.is_some_and(views::has_views);
        let is_packed = values.compression().is_some();
        if !is_packed {
            views::check(&values, &body, version, of_values.into_iter())?;
        }
        let read = if !is_packed || (n_bytes <= PIECE && !has_views) {
            read_dictionary(&body, dictionary, schema, &mut self.dictionaries, &version)
        } else {
            let (body, described) = unpack::unpacked_dictionary(&dictionary, &values, &body, n_bytes, &self.scratch)?;
            let dictionary = flatbuffers::root::<DictionaryBatch<'_>>(described.finished_data());
            let dictionary = dictionary.map_err(|e| e.to_string())?;
            let values = dictionary.data().ok_or("a dictionary without values")?;
            views::check(&values, &body, version, of_values.into_iter())?;
            read_dictionary(&body, dictionary, schema, &mut self.dictionaries, &version)
        };
        read.map_err(|e| e.to_string())
    }

    /// The body of a message: in memory, or, where it is large and in a file, in a scratch file.
    fn body(&self, body: Range<usize>) -> Checked<Buffer> {
        match &self.source.bytes {
            Bytes::File(file) if body.len() > PIECE => {
                let mut room = self.scratch.room(body.len()).map_err(|error| error.to_string())?;
                for (number, into) in room.chunks_mut(BLOCK).enumerate() {
                    file.read_unchecked(body.start + number * BLOCK, into)?;
                }
                file.check().map_err(|error| error.to_string())?;
                Ok(Scratch::filled(room))
            }
            bytes => bytes.get(body, &self.pool),
        }
    }
}

/// The error for data that cannot be read, which are damaged unless their file was changed meanwhile.
fn failed(name: &str, bytes: &Bytes, what: &str) -> Error {
    match bytes {
        Bytes::File(file) => file.check().err().unwrap_or_else(|| damaged(name, what)),
        Bytes::Memory(_) => damaged(name, what),
    }
}

fn damaged(name: &str, what: &str) -> Error {
    Error::Data(format!("{name}: the Arrow data are damaged or cut off: {what}"))
}
