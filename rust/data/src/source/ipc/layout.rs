//! Where the messages of a file or stream lie.

use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{MessageHeader, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::checked::Checked;

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
    pub(super) blocks: Vec<Block>,
    /// Rows of all batches.
    pub(super) rows: u64,
    /// Where the messages end.
    pub(super) end: usize,
}

pub(super) fn is_file(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns true if `bytes` begin with the marker of a stream, or (before Arrow 0.15) with its schema.
pub(super) fn is_stream(bytes: &[u8]) -> bool {
    bytes.starts_with(&CONTINUATION)
        || prefix(bytes, 0).ok().flatten().is_some_and(|metadata| {
            root_as_message(&bytes[metadata]).is_ok_and(|message| message.header_type() == MessageHeader::Schema)
        })
}

impl Layout {
    pub(super) fn read(bytes: &[u8]) -> Checked<Self> {
        if is_file(bytes) { Self::from_file(bytes) } else { Self::from_stream(bytes) }
    }

    fn from_file(bytes: &[u8]) -> Checked<Self> {
        let end = bytes.strip_suffix(MAGIC).ok_or("the footer is missing")?;
        let (rest, length) = end.split_last_chunk::<4>().ok_or("the footer is missing")?;
        let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| "the footer has a negative length")?;
        let start = rest.len().checked_sub(length).ok_or("the footer is longer than the file")?;
        let footer = root_as_footer(&rest[start..]).map_err(|e| format!("the footer: {e}"))?;
        let schema = schema_of(footer.schema().ok_or("the footer has no schema")?)?;
        let mut blocks = Vec::new();
        let mut rows = 0_u64;
        let mut claimed = 0_usize;
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
            let described = prefix(bytes, offset)?.filter(|range| range.end <= offset + metadata);
            let block = Block { metadata: described.ok_or("a block has no message")?, body: offset + metadata..end };
            rows = rows.checked_add(rows_of(bytes, &block)?).ok_or("too many rows")?;
            blocks.push(block);
        }
        Ok(Layout { schema, blocks, rows, end: start })
    }

    fn from_stream(bytes: &[u8]) -> Checked<Self> {
        let mut layout = Self::begin(bytes)?;
        while layout.extend(bytes)? {}
        Ok(layout)
    }

    /// The messages of a stream that are whole; those behind one that is cut off or damaged are left out.
    pub(super) fn from_cut_stream(bytes: &[u8]) -> Checked<Self> {
        let mut layout = Self::begin(bytes)?;
        while layout.extend(bytes).unwrap_or(false) {}
        Ok(layout)
    }

    /// The schema of a stream, with no batch yet.
    fn begin(bytes: &[u8]) -> Checked<Self> {
        let block = message(bytes, 0)?.ok_or("there is no schema")?;
        let described = root_as_message(&bytes[block.metadata.clone()]).map_err(|e| format!("a message: {e}"))?;
        let schema = described.header_as_schema().ok_or("the schema does not come first")?;
        Ok(Layout { schema: schema_of(schema)?, blocks: Vec::new(), rows: 0, end: block.body.end })
    }

    /// Takes the next message of a stream; true if there was one.
    fn extend(&mut self, bytes: &[u8]) -> Checked<bool> {
        let Some(block) = message(bytes, self.end)? else { return Ok(false) };
        self.rows = self.rows.checked_add(rows_of(bytes, &block)?).ok_or("too many rows")?;
        self.end = block.body.end;
        self.blocks.push(block);
        Ok(true)
    }
}

/// The message at `at`; `None` at the end of a stream.
fn message(bytes: &[u8], at: usize) -> Checked<Option<Block>> {
    let Some(metadata) = prefix(bytes, at)? else { return Ok(None) };
    let message = root_as_message(&bytes[metadata.clone()]).map_err(|e| format!("a message: {e}"))?;
    let length = usize::try_from(message.bodyLength()).map_err(|_| "a message has a negative length")?;
    let end = metadata.end.checked_add(length).filter(|end| *end <= bytes.len());
    let body = metadata.end..end.ok_or("a message is longer than the file")?;
    Ok(Some(Block { metadata, body }))
}

/// Where the flatbuffer of the message at `at` lies; `None` at the end of a stream.
fn prefix(bytes: &[u8], at: usize) -> Checked<Option<Range<usize>>> {
    let four = |at: usize| bytes.get(at..)?.first_chunk::<4>().copied();
    if at == bytes.len() {
        return Ok(None);
    }
    let first = four(at).ok_or("a message is cut off")?;
    let (length, start) = match first {
        CONTINUATION => (four(at + 4).ok_or("a message is cut off")?, at + 8),
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

fn schema_of(described: arrow_ipc::Schema<'_>) -> Checked<SchemaRef> {
    if !described.endianness().equals_to_target_endianness() {
        return Err("its byte order is not this machine's; write it again here".into());
    }
    Ok(Arc::new(fb_to_schema(described)))
}

fn rows_of(bytes: &[u8], block: &Block) -> Checked<u64> {
    let message = root_as_message(&bytes[block.metadata.clone()]).map_err(|e| format!("a message: {e}"))?;
    match message.header_as_record_batch() {
        Some(batch) => u64::try_from(batch.length()).map_err(|_| "a batch has a negative number of rows".into()),
        None if message.header_type() == MessageHeader::DictionaryBatch => Ok(0),
        None => Err("a message is neither a batch nor a dictionary".into()),
    }
}
