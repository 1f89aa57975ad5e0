//! Where the messages of a file or stream lie.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{KeyValue, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::super::checked::Checked;
use super::bytes::Bytes;
use super::schema;

const MAGIC: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];

/// A dictionary or record batch.
#[derive(Debug)]
pub(super) struct Block {
    /// The flatbuffer that describes it.
    pub(super) metadata: Range<usize>,
    /// Its buffers.
    pub(super) body: Range<usize>,
}

/// The messages in the order in which they are to be decoded.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    /// The metadata of a file's footer.
    pub(super) footer: HashMap<String, String>,
    pub(super) blocks: Vec<Block>,
    /// Rows of all batches.
    pub(super) rows: u64,
    /// True if a batch or a dictionary is compressed.
    pub(super) is_compressed: bool,
    /// Where the messages end.
    pub(super) end: usize,
}

pub(super) fn is_file(bytes: &Bytes) -> Checked<bool> {
    Ok(bytes.few(0..MAGIC.len())? == MAGIC)
}

/// Returns true if `bytes` begin with the marker of a stream, or (before Arrow 0.15) with its schema.
pub(super) fn is_stream(bytes: &Bytes) -> bool {
    let begins = || -> Checked<bool> {
        if bytes.four(0)? == Some(CONTINUATION) {
            return Ok(true);
        }
        let Some(metadata) = prefix(bytes, 0)? else { return Ok(false) };
        let metadata = bytes.few(metadata)?;
        Ok(root_as_message(&metadata).is_ok_and(|message| message.header_type() == MessageHeader::Schema))
    };
    begins().unwrap_or(false)
}

impl Layout {
    pub(super) fn read(bytes: &Bytes) -> Checked<Self> {
        if is_file(bytes)? { Self::from_file(bytes) } else { Self::from_stream(bytes) }
    }

    fn from_file(bytes: &Bytes) -> Checked<Self> {
        let tail = bytes.few(bytes.len().saturating_sub(MAGIC.len() + 4)..bytes.len())?;
        let end = tail.strip_suffix(MAGIC).ok_or("the footer is missing")?;
        let length = end.first_chunk::<4>().ok_or("the footer is missing")?;
        let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| "the footer has a negative length")?;
        let behind = bytes.len() - tail.len();
        let start = behind.checked_sub(length).ok_or("the footer is longer than the file")?;
        let footer = bytes.few(start..behind)?;
        let footer = root_as_footer(&footer).map_err(|e| format!("the footer: {e}"))?;
        let schema = schema_of(footer.schema().ok_or("the footer has no schema")?, length)?;
        let pairs = footer.custom_metadata();
        schema::check_metadata(pairs.iter().flatten(), length)?;
        let text = |pair: KeyValue<'_>| Some((pair.key()?.to_string(), pair.value()?.to_string()));
        let own = pairs.iter().flatten().filter_map(text).collect();
        let mut blocks = Vec::new();
        let mut rows = 0_u64;
        let mut claimed = 0_usize;
        let mut is_compressed = false;
        for block in footer.dictionaries().iter().flatten().chain(footer.recordBatches().iter().flatten()) {
            let part = |value: i64| usize::try_from(value).map_err(|_| "a block has a negative position");
            let (offset, metadata) = (part(block.offset())?, part(block.metaDataLength().into())?);
            let body = part(block.bodyLength())?;
            let end = offset.checked_add(metadata).and_then(|at| at.checked_add(body)).filter(|at| *at <= start);
            let end = end.ok_or("a block lies outside the file")?;
            // Blocks that share their bytes would let a small file claim any number of rows.
            claimed += metadata + body;
            if claimed > bytes.len() {
                return Err("its blocks overlap".into());
            }
            let described = prefix(bytes, offset)?.ok_or("a block has no message")?;
            // Otherwise the buffers would be read from another place than where they were written.
            if described.end != offset + metadata {
                return Err("the footer and a message disagree on the length of the message".into());
            }
            let block = Block { metadata: described, body: offset + metadata..end };
            let described = bytes.few(block.metadata.clone())?;
            let message = message_of(&described)?;
            if usize::try_from(message.bodyLength()) != Ok(body) {
                return Err("the footer and a message disagree on the length of its body".into());
            }
            let (more, packed) = rows_of(message)?;
            rows = rows.checked_add(more).ok_or("too many rows")?;
            is_compressed |= packed;
            blocks.push(block);
        }
        Ok(Layout { schema, footer: own, blocks, rows, is_compressed, end: start })
    }

    fn from_stream(bytes: &Bytes) -> Checked<Self> {
        let mut layout = Self::begin(bytes)?;
        while layout.extend(bytes)? {}
        Ok(layout)
    }

    /// The messages of a stream that are whole; those behind one that is cut off or damaged are left out.
    pub(super) fn from_cut_stream(bytes: &Bytes) -> Checked<Self> {
        let mut layout = Self::begin(bytes)?;
        while layout.extend(bytes).unwrap_or(false) {}
        Ok(layout)
    }

    /// The schema of a stream, with no batch yet.
    fn begin(bytes: &Bytes) -> Checked<Self> {
        let (schema, block) = first_schema(bytes, 0)?;
        let (footer, blocks, end) = (HashMap::new(), Vec::new(), block.body.end);
        Ok(Layout { schema, footer, blocks, rows: 0, is_compressed: false, end })
    }

    /// Takes the next message of a stream; true if there was one.
    fn extend(&mut self, bytes: &Bytes) -> Checked<bool> {
        let Some((block, metadata)) = message(bytes, self.end)? else { return Ok(false) };
        let (rows, packed) = rows_of(message_of(&metadata)?)?;
        self.rows = self.rows.checked_add(rows).ok_or("too many rows")?;
        self.is_compressed |= packed;
        self.end = block.body.end;
        self.blocks.push(block);
        Ok(true)
    }
}

/// The schema at the begin of a file, which its footer repeats.
pub(super) fn schema_of_file(bytes: &Bytes) -> Checked<SchemaRef> {
    // Writers fill up to a multiple of 8 or 64 bytes.
    let starts = (MAGIC.len().next_multiple_of(8)..=64).step_by(8);
    for at in starts {
        if bytes.four(at)? != Some([0; 4]) {
            return first_schema(bytes, at).map(|(schema, _)| schema);
        }
    }
    Err("there is no schema at the begin".into())
}

/// The schema in the message at `at`.
fn first_schema(bytes: &Bytes, at: usize) -> Checked<(SchemaRef, Block)> {
    let (block, metadata) = message(bytes, at)?.ok_or("there is no schema")?;
    let described = message_of(&metadata)?;
    let schema = described.header_as_schema().ok_or("the schema does not come first")?;
    Ok((schema_of(schema, metadata.len())?, block))
}

/// The message at `at` and its flatbuffer; `None` at the end of a stream.
fn message(bytes: &Bytes, at: usize) -> Checked<Option<(Block, Vec<u8>)>> {
    let Some(metadata) = prefix(bytes, at)? else { return Ok(None) };
    let described = bytes.few(metadata.clone())?;
    let message = message_of(&described)?;
    let length = usize::try_from(message.bodyLength()).map_err(|_| "a message has a negative length")?;
    let end = metadata.end.checked_add(length).filter(|end| *end <= bytes.len());
    let body = metadata.end..end.ok_or("a message is longer than the file")?;
    Ok(Some((Block { metadata, body }, described)))
}

/// Where the flatbuffer of the message at `at` lies; `None` at the end of a stream.
fn prefix(bytes: &Bytes, at: usize) -> Checked<Option<Range<usize>>> {
    if at == bytes.len() {
        return Ok(None);
    }
    let first = bytes.four(at)?.ok_or("a message is cut off")?;
    let (length, start) = match first {
        CONTINUATION => (bytes.four(at + 4)?.ok_or("a message is cut off")?, at + 8),
        _ => (first, at + 4),
    };
    match i32::from_le_bytes(length) {
        0 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| "a message has a negative length")?;
            let range = start..start.checked_add(length).ok_or("a message is longer than the file")?;
            if range.end > bytes.len() {
                return Err("a message is longer than the file".into());
            }
            Ok(Some(range))
        }
    }
}

/// The message in `described`, whose version must be one that this decoder reads.
fn message_of(described: &[u8]) -> Checked<Message<'_>> {
    let message = root_as_message(described).map_err(|e| format!("a message: {e}"))?;
    match message.version() {
        MetadataVersion::V4 | MetadataVersion::V5 => Ok(message),
        MetadataVersion(other) => Err(format!("its messages have version {}, 4 and 5 can be read", other + 1)),
    }
}

/// The schema that `n_bytes` bytes describe.
fn schema_of(described: arrow_ipc::Schema<'_>, n_bytes: usize) -> Checked<SchemaRef> {
    if !described.endianness().equals_to_target_endianness() {
        return Err("its byte order is not this machine's; write it again here".into());
    }
    schema::check(described, n_bytes)?;
    let schema = fb_to_schema(described);
    schema::check_types(&schema)?;
    Ok(Arc::new(schema))
}

/// The rows of a message, and whether they are compressed.
fn rows_of(message: Message<'_>) -> Checked<(u64, bool)> {
    if let Some(batch) = message.header_as_record_batch() {
        let rows = u64::try_from(batch.length()).map_err(|_| "a batch has a negative number of rows")?;
        return Ok((rows, batch.compression().is_some()));
    }
    match message.header_as_dictionary_batch() {
        Some(dictionary) => Ok((0, dictionary.data().is_some_and(|values| values.compression().is_some()))),
        None => Err("a message is neither a batch nor a dictionary".into()),
    }
}
