//! Some rows of a batch in a file, read without the others.
//!
//! The buffers of the rows are copied from their places in the file, and described as a batch of their own.

use std::ops::Range;

use arrow_buffer::Buffer;
use arrow_ipc::{FieldNode, RecordBatch};
use arrow_schema::{DataType, Schema};
use flatbuffers::FlatBufferBuilder;

use super::super::checked::Checked;
use super::claims;
use super::described::Description;
use super::unpack::ALIGN;
use crate::source::chunking::sized;
use crate::source::file::{InputFile, Pool};
use ferrank_runtime::scratch::Scratch;

/// Bits of a byte: where rows begin in a bitmap.
const BITS: usize = 8;
/// Rows that are read together, whatever they take.
const LEAST_ROWS: usize = sized(64, 8);
/// Bytes from which on rows are kept in a file.
const MOST_MEMORY: usize = sized(64 << 20, 400);

/// Returns true if some rows of columns of `schema` can be read without the others.
pub(super) fn can_cut(schema: &Schema) -> bool {
    fn of(data_type: &DataType) -> bool {
        match data_type {
            DataType::Null | DataType::Boolean | DataType::FixedSizeBinary(_) => true,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => true,
            DataType::List(field) | DataType::LargeList(field) => of(field.data_type()),
            DataType::Map(field, _) | DataType::FixedSizeList(field, _) => of(field.data_type()),
            DataType::Struct(fields) => fields.iter().all(|field| of(field.data_type())),
            DataType::Dictionary(keys, _) => of(keys),
            other => other.primitive_width().is_some(),
        }
    }
    schema.fields().iter().all(|field| of(field.data_type()))
}

/// Rows of a batch of `rows` rows and `n_bytes` that take about `piece` bytes.
pub(super) fn step(rows: usize, n_bytes: usize, piece: usize) -> usize {
    let fit = (rows as u128 * piece as u128 / n_bytes.max(1) as u128) as usize;
    (fit / LEAST_ROWS * LEAST_ROWS).max(LEAST_ROWS)
}

/// What is read.
enum Part {
    /// Bytes of the file.
    Read(Range<usize>),
    /// Bytes that were read and changed.
    Have(Vec<u8>),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Part::Read(range) => range.len(),
            Part::Have(bytes) => bytes.len(),
        }
    }
}

/// A column, and the part that is its bitmap of values that are there.
struct Node {
    rows: usize,
    bitmap: Option<usize>,
    /// Values that are not there, where no bitmap tells.
    missing: usize,
}

struct Window<'a> {
    file: &'a InputFile,
    /// Where the body of the batch lies in the file.
    body: Range<usize>,
    nodes: flatbuffers::VectorIter<'a, FieldNode>,
    buffers: flatbuffers::VectorIter<'a, arrow_ipc::Buffer>,
    parts: Vec<Part>,
    read: Vec<Node>,
}

/// The `rows` of `batch`, whose body is at `body` of `file` and which is [checked](claims::check): their bytes, and their
/// description. `rows` begins at a multiple of eight. `columns`, if not all, are those that are read; the others are
/// empty.
pub(super) fn window(
    file: &InputFile,
    (batch, body): (&RecordBatch<'_>, Range<usize>),
    (schema, columns): (&Schema, Option<&[usize]>),
    rows: Range<usize>,
    (pool, scratch): (&Pool, &Scratch),
) -> Checked<(Buffer, FlatBufferBuilder<'static>)> {
    let mut window = Window {
        file,
        body,
        nodes: batch.nodes().ok_or("a batch without columns")?.iter(),
        buffers: batch.buffers().ok_or("a batch without buffers")?.iter(),
        parts: Vec::new(),
        read: Vec::new(),
    };
    for (number, field) in schema.fields().iter().enumerate() {
        let is_wanted = columns.is_none_or(|columns| columns.contains(&number));
        window.column(field.data_type(), if is_wanted { rows.clone() } else { 0..0 })?;
    }
    window.copied(rows.len(), pool, scratch)
}

impl Window<'_> {
    /// Where the next buffer lies in the file.
    fn buffer(&mut self) -> Checked<Range<usize>> {
        let range = claims::range(self.buffers.next().ok_or("a batch has too few buffers")?);
        let range = range.ok_or("a buffer lies outside its batch")?;
        Ok(self.body.start + range.start..self.body.start + range.end)
    }

    /// Reads `bytes` of the next buffer.
    fn part(&mut self, bytes: Range<usize>) -> Checked<()> {
        let buffer = self.buffer()?;
        if bytes.is_empty() {
            self.parts.push(Part::Read(0..0));
            return Ok(());
        }
        if bytes.end > buffer.len() {
            return Err("a buffer is shorter than its column".into());
        }
        self.parts.push(Part::Read(buffer.start + bytes.start..buffer.start + bytes.end));
        Ok(())
    }

    fn column(&mut self, data_type: &DataType, rows: Range<usize>) -> Checked<()> {
        let node = self.nodes.next().ok_or("a batch has too few columns")?;
        if usize::try_from(node.length()).map_or(true, |length| length < rows.end) {
            return Err("a column has fewer rows than its batch".into());
        }
        let missing = if data_type.is_null() { rows.len() } else { 0 };
        let mut read = Node { rows: rows.len(), bitmap: None, missing };
        if !data_type.is_null() {
            let is_whole = node.null_count() == 0 || rows.is_empty();
            let bitmap = if is_whole { 0..0 } else { rows.start / BITS..rows.end.div_ceil(BITS) };
            read.bitmap = (!is_whole).then_some(self.parts.len());
            self.part(bitmap)?;
        }
        self.read.push(read);
        match data_type {
            DataType::Null => Ok(()),
            DataType::Boolean => self.part(rows.start / BITS..rows.end.div_ceil(BITS)),
            DataType::FixedSizeBinary(width) => self.fixed(usize::try_from(*width).unwrap_or(0), rows),
            DataType::Utf8 | DataType::Binary => self.text::<4>(rows),
            DataType::LargeUtf8 | DataType::LargeBinary => self.text::<8>(rows),
            DataType::List(field) | DataType::Map(field, _) => self.list::<4>(field.data_type(), rows),
            DataType::LargeList(field) => self.list::<8>(field.data_type(), rows),
            DataType::FixedSizeList(field, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                let end = rows.end.checked_mul(size).ok_or("a column is too long")?;
                self.column(field.data_type(), rows.start * size..end)
            }
            DataType::Struct(fields) => {
                fields.iter().try_for_each(|field| self.column(field.data_type(), rows.clone()))
            }
            DataType::Dictionary(keys, _) => self.fixed(keys.primitive_width().unwrap_or(0), rows),
            other => self.fixed(other.primitive_width().ok_or("a column of an unknown type")?, rows),
        }
    }

    fn fixed(&mut self, width: usize, rows: Range<usize>) -> Checked<()> {
        let end = rows.end.checked_mul(width).ok_or("a column is too long")?;
        self.part(rows.start * width..end)
    }

    fn text<const WIDTH: usize>(&mut self, rows: Range<usize>) -> Checked<()> {
        let bytes = self.offsets::<WIDTH>(rows, 1)?;
        self.part(bytes)
    }

    fn list<const WIDTH: usize>(&mut self, items: &DataType, rows: Range<usize>) -> Checked<()> {
        let items_of_rows = self.offsets::<WIDTH>(rows, BITS)?;
        self.column(items, items_of_rows)
    }

    /// Reads the offsets of `rows`, counts them from their first, or a multiple of `align` below it, and returns the
    /// range of what they lead to.
    fn offsets<const WIDTH: usize>(&mut self, rows: Range<usize>, align: usize) -> Checked<Range<usize>> {
        let buffer = self.buffer()?;
        if rows.is_empty() {
            self.parts.push(Part::Have(vec![0; WIDTH]));
            return Ok(0..0);
        }
        let (start, length) = (rows.start * WIDTH, (rows.len() + 1) * WIDTH);
        if start + length > buffer.len() {
            return Err("a buffer is shorter than its column".into());
        }
        let mut bytes = vec![0; length];
        self.file.read(buffer.start + start, &mut bytes).map_err(|error| error.to_string())?;
        let number = |bytes: &[u8]| -> i64 {
            let mut wide = [if bytes[WIDTH - 1] < 0x80 { 0 } else { 0xff }; 8];
            wide[..WIDTH].copy_from_slice(bytes);
            i64::from_le_bytes(wide)
        };
        let place = |bytes: &[u8]| usize::try_from(number(bytes)).map_err(|_| "an offset is negative");
        let (first, last) = (place(&bytes[..WIDTH])?, place(&bytes[length - WIDTH..])?);
        if first > last {
            return Err("the offsets of a column descend".into());
        }
        let base = first / align * align;
        for offset in bytes.chunks_exact_mut(WIDTH) {
            // What lies outside is found where the rows are decoded.
            let moved = number(offset).wrapping_sub(base as i64);
            offset.copy_from_slice(&moved.to_le_bytes()[..WIDTH]);
        }
        self.parts.push(Part::Have(bytes));
        Ok(base..last)
    }

    /// Copies the parts to one place.
    fn copied(self, rows: usize, pool: &Pool, scratch: &Scratch) -> Checked<(Buffer, FlatBufferBuilder<'static>)> {
        let n_bytes: usize = self.parts.iter().map(|part| part.len().next_multiple_of(ALIGN)).sum();
        let (mut memory, mut room) = (None, None);
        let bytes = if n_bytes <= MOST_MEMORY {
            memory.insert(pool.lend(n_bytes)).bytes()
        } else {
            &mut room.insert(scratch.room(n_bytes).map_err(|error| error.to_string())?)[..]
        };
        let mut buffers = Vec::with_capacity(self.parts.len());
        let mut at = 0;
        for part in &self.parts {
            let into = &mut bytes[at..at + part.len()];
            match part {
                Part::Read(range) if range.is_empty() => {}
                Part::Read(range) => self.file.read_unchecked(range.start, into)?,
                Part::Have(bytes) => into.copy_from_slice(bytes),
            }
            buffers.push(arrow_ipc::Buffer::new(at as i64, part.len() as i64));
            at += part.len().next_multiple_of(ALIGN);
        }
        self.file.check().map_err(|error| error.to_string())?;
        let nodes: Vec<FieldNode> = self
            .read
            .iter()
            .map(|node| {
                let missing = node.bitmap.map_or(node.missing, |part| {
                    let start = buffers[part].offset() as usize;
                    node.rows - ones(&bytes[start..], node.rows)
                });
                FieldNode::new(node.rows as i64, missing as i64)
            })
            .collect();
        let described = Description { rows: rows as i64, nodes: &nodes, buffers: &buffers, counts: &[] }.batch();
        let buffer = match (memory, room) {
            (Some(memory), _) => memory.into_buffer(),
            (None, Some(room)) => Scratch::filled(room),
            (None, None) => Buffer::from(&[] as &[u8]),
        };
        Ok((buffer, described))
    }
}

/// Number of ones among the first `n_bits` bits.
fn ones(bytes: &[u8], n_bits: usize) -> usize {
    let whole: usize = bytes[..n_bits / BITS].iter().map(|byte| byte.count_ones() as usize).sum();
    match n_bits % BITS {
        0 => whole,
        rest => whole + (bytes[n_bits / BITS] & ((1 << rest) - 1)).count_ones() as usize,
    }
}
