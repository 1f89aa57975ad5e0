//! What a batch claims about itself, checked before it is decoded.
//!
//! A failed allocation ends the process and cannot be caught, so no length may reach the decoder that
//! the file cannot back.

use std::ops::Range;

use arrow_ipc::{CompressionType, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::super::checked::Checked;

/// The length that a buffer claims where it is stored as it is.
pub(super) const NOT_PACKED: i64 = -1;

/// Where buffers begin, in bytes; the format prescribes it.
const ALIGNMENT: i64 = 8;

/// Most rows of a batch whose columns take no memory for their rows.
const BARE_ROWS: i64 = 1 << 20;

/// Checks `batch`, whose buffers are in a body of `length` bytes. `schema` is that of its columns; `None` for the values
/// of a dictionary.
pub(super) fn check(batch: &RecordBatch<'_>, schema: Option<&Schema>, length: usize) -> Checked<()> {
    if batch.length() < 0 {
        return Err("a batch has a negative number of rows".into());
    }
    let bare = schema.is_some_and(|schema| !schema.fields().iter().any(|field| takes_room(field.data_type())));
    if bare && batch.length() > BARE_ROWS {
        return Err(format!("a batch without data claims {} rows", batch.length()));
    }
    let nodes = batch.nodes().ok_or("a batch without columns")?;
    if nodes.iter().any(|node| node.null_count() < 0 || node.length() < node.null_count()) {
        return Err("a column claims more nulls than rows".into());
    }
    let buffers = batch.buffers().ok_or("a batch without buffers")?;
    if batch.variadicBufferCounts().iter().flatten().any(|count| count < 0 || count > buffers.len() as i64) {
        return Err("a column claims more buffers than there are".into());
    }
    let outside = |buffer: &&arrow_ipc::Buffer| range(buffer).is_none_or(|range| range.end > length);
    if buffers.iter().any(|buffer| outside(&buffer)) {
        return Err("a buffer lies outside its batch".into());
    }
    if buffers.iter().any(|buffer| buffer.length() > 0 && buffer.offset() % ALIGNMENT != 0) {
        return Err(format!("a buffer does not begin at a multiple of {ALIGNMENT} bytes"));
    }
    Ok(())
}

/// Bytes that the buffers of a compressed `batch` take once they are unpacked, each with `align` bytes more at most;
/// those of any other take none. `batch` is [checked](check).
pub(super) fn unpacked(batch: &RecordBatch<'_>, body: &[u8], align: usize) -> Checked<usize> {
    let Some(compression) = batch.compression() else { return Ok(0) };
    let (mut packed, mut unpacked) = (0, 0_usize);
    for buffer in batch.buffers().iter().flatten() {
        let bytes = range(buffer).and_then(|range| body.get(range)).ok_or("a buffer lies outside its batch")?;
        packed += bytes.len();
        let more = unpacked_length(bytes, compression.codec())? + align;
        unpacked = unpacked.checked_add(more).ok_or("a batch is too large")?;
    }
    if packed > body.len() {
        return Err("its compressed buffers overlap".into());
    }
    Ok(unpacked)
}

/// Where `buffer` lies in its body.
pub(super) fn range(buffer: &arrow_ipc::Buffer) -> Option<Range<usize>> {
    let (start, length) = (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
    Some(start..start.checked_add(length)?)
}

/// Returns true if a column of this type stores something for each row, so that the decoder's check of its
/// buffers bounds the number of rows.
fn takes_room(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Null
            | DataType::Struct(_)
            | DataType::RunEndEncoded(..)
            | DataType::FixedSizeList(..)
            | DataType::FixedSizeBinary(0)
    )
}

/// The unpacked length that a compressed buffer claims, in bytes, if its codec can reach it.
pub(super) fn unpacked_length(bytes: &[u8], codec: CompressionType) -> Checked<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let (claim, packed) = bytes.split_first_chunk::<8>().ok_or("a compressed buffer is cut off")?;
    let claim = i64::from_le_bytes(*claim);
    if claim == NOT_PACKED {
        return Ok(packed.len());
    }
    // LZ4 grows by 255 at most; ZSTD's blocks of 128 KiB take 4 bytes at least.
    let growth = if codec == CompressionType::ZSTD { 32_768 } else { 255 };
    let most = packed.len().saturating_mul(growth).saturating_add(131_072);
    usize::try_from(claim)
        .ok()
        .filter(|claim| *claim <= most)
        .ok_or_else(|| format!("a buffer of {} compressed bytes claims to hold {claim}", packed.len()))
}
