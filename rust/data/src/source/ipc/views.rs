//! How much text views stand for, found before they are decoded.
//!
//! Any number of views may share one text. The decoder checks the text of each, so that a file of a megabyte could keep it
//! busy for hours.

use std::vec::IntoIter;

use arrow_ipc::{MetadataVersion, RecordBatch};
use arrow_schema::{DataType, UnionMode};

use super::super::checked::Checked;
use super::super::valid::{MOST_TEXT, check_shared};
use super::claims;

/// Bytes of a view, of which the first four are the length of its text.
const VIEW: usize = 16;

/// Returns true if values of this type may be views, or lists of them.
pub(super) fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::Dictionary(..) => false,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_views(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_views(field.data_type())),
        DataType::RunEndEncoded(_, values) => has_views(values.data_type()),
        _ => false,
    }
}

/// The buffers of a batch that is not compressed, column by column.
struct Buffers<'a> {
    body: &'a [u8],
    version: MetadataVersion,
    buffers: IntoIter<arrow_ipc::Buffer>,
    /// Number of buffers of text of each column of views.
    counts: IntoIter<i64>,
}

/// Checks the views of `batch`, which is [checked](claims::check), not compressed, and has columns of these types.
pub(super) fn check<'t>(
    batch: &RecordBatch<'_>,
    body: &[u8],
    version: MetadataVersion,
    mut types: impl Iterator<Item = &'t DataType>,
) -> Checked<()> {
    let buffers: Vec<_> = batch.buffers().iter().flatten().copied().collect();
    let counts: Vec<i64> = batch.variadicBufferCounts().iter().flatten().collect();
    let mut buffers = Buffers { body, version, buffers: buffers.into_iter(), counts: counts.into_iter() };
    types.try_for_each(|data_type| buffers.column(data_type))
}

impl Buffers<'_> {
    fn next(&mut self) -> Checked<&[u8]> {
        let buffer = self.buffers.next().ok_or("a batch has too few buffers")?;
        claims::range(&buffer)
            .and_then(|range| self.body.get(range))
            .ok_or_else(|| "a buffer lies outside its batch".into())
    }

    fn skip(&mut self, count: usize) -> Checked<()> {
        (0..count).try_for_each(|_| self.next().map(drop))
    }

    fn column(&mut self, data_type: &DataType) -> Checked<()> {
        match data_type {
            DataType::Null => Ok(()),
            DataType::Utf8View | DataType::BinaryView => self.views(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => self.skip(3),
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                self.skip(2)?;
                self.column(item.data_type())
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                self.skip(3)?;
                self.column(item.data_type())
            }
            DataType::FixedSizeList(item, _) => {
                self.skip(1)?;
                self.column(item.data_type())
            }
            DataType::Struct(fields) => {
                self.skip(1)?;
                fields.iter().try_for_each(|field| self.column(field.data_type()))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.column(ends.data_type())?;
                self.column(values.data_type())
            }
            DataType::Union(fields, mode) => {
                let is_old = self.version < MetadataVersion::V5;
                self.skip(1 + usize::from(is_old) + usize::from(*mode == UnionMode::Dense))?;
                fields.iter().try_for_each(|(_, field)| self.column(field.data_type()))
            }
            _ => self.skip(2),
        }
    }

    fn views(&mut self) -> Checked<()> {
        self.skip(1)?;
        let lengths = self.next()?.chunks_exact(VIEW).filter_map(|view| view.first_chunk::<4>());
        let all: usize = lengths.map(|length| u32::from_le_bytes(*length) as usize).sum();
        let count = self.counts.next().and_then(|count| usize::try_from(count).ok());
        let mut stored = 0;
        for _ in 0..count.ok_or("a column of views does not say how many buffers it has")? {
            stored += self.next()?.len();
        }
        check_shared(all, stored, MOST_TEXT, "bytes of text")
    }
}
