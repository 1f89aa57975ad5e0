//! What a batch claims about itself, checked before it is decoded.
//!
//! A failed allocation ends the process and cannot be caught, so no length may reach the decoder that
//! the file cannot back.

use arrow_ipc::{CompressionType, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::checked::Checked;

/// Most rows of a batch whose columns take no memory for their rows.
const BARE_ROWS: i64 = 1 << 20;

/// Checks `batch`, whose buffers are in `body`. `schema` is that of its columns; `None` for the values
/// of a dictionary.
pub(super) fn check(batch: &RecordBatch<'_>, schema: Option<&Schema>, body: &[u8]) -> Checked<()> {
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
    let codec = batch.compression().map(|compression| compression.codec());
    let mut packed = 0;
    let mut unpacked = 0_usize;
    for buffer in buffers {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let bytes = bytes.ok_or("a buffer lies outside its batch")?;
        if let Some(codec) = codec {
            packed += bytes.len();
            unpacked = unpacked.checked_add(unpacked_length(bytes, codec)?).ok_or("a batch is too large")?;
        }
    }
    if packed > body.len() {
        return Err("its compressed buffers overlap".into());
    }
    // The decoder's own allocation would end the process where this one can fail.
    Vec::<u8>::new().try_reserve_exact(unpacked).map_err(|_| format!("a batch would unpack to {unpacked} bytes"))
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
fn unpacked_length(bytes: &[u8], codec: CompressionType) -> Checked<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let (claim, packed) = bytes.split_first_chunk::<8>().ok_or("a compressed buffer is cut off")?;
    let claim = i64::from_le_bytes(*claim);
    if claim == -1 {
        return Ok(0);
    }
    // LZ4 grows by 255 at most; ZSTD's blocks of 128 KiB take 4 bytes at least.
    let growth = if codec == CompressionType::ZSTD { 32_768 } else { 255 };
    let most = packed.len().saturating_mul(growth).saturating_add(131_072);
    usize::try_from(claim)
        .ok()
        .filter(|claim| *claim <= most)
        .ok_or_else(|| format!("a buffer of {} compressed bytes claims to hold {claim}", packed.len()))
}
