//! Compressed batches, unpacked to a file: what they unpack to has no bound in memory.

use std::io::Read;

use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, DictionaryBatch, RecordBatch};
use flatbuffers::FlatBufferBuilder;

use super::super::checked::Checked;
use super::claims::{NOT_PACKED, range, unpacked_length};
use super::described::Description;
use ferrank_runtime::scratch::Scratch;

/// Buffers begin at multiples of so many bytes.
pub(super) const ALIGN: usize = 64;

/// The buffers of `batch`, which are compressed and in `body`, unpacked to `n_bytes` of a file in `scratch`, and the
/// description of a batch that they are those of.
pub(super) fn unpacked(
    batch: &RecordBatch<'_>,
    body: &[u8],
    n_bytes: usize,
    scratch: &Scratch,
) -> Checked<(Buffer, FlatBufferBuilder<'static>)> {
    with_description(batch, body, n_bytes, scratch, |description| description.batch())
}

/// As [`unpacked`], for the `values` of a dictionary.
pub(super) fn unpacked_dictionary(
    dictionary: &DictionaryBatch<'_>,
    values: &RecordBatch<'_>,
    body: &[u8],
    n_bytes: usize,
    scratch: &Scratch,
) -> Checked<(Buffer, FlatBufferBuilder<'static>)> {
    with_description(values, body, n_bytes, scratch, |description| {
        description.dictionary(dictionary.id(), dictionary.isDelta())
    })
}

fn with_description(
    batch: &RecordBatch<'_>,
    body: &[u8],
    n_bytes: usize,
    scratch: &Scratch,
    describe: impl FnOnce(Description<'_>) -> FlatBufferBuilder<'static>,
) -> Checked<(Buffer, FlatBufferBuilder<'static>)> {
    let codec = batch.compression().ok_or("a batch that is not compressed")?.codec();
    let mut room = scratch.room(n_bytes.max(1)).map_err(|error| error.to_string())?;
    let mut buffers = Vec::new();
    let mut at = 0;
    for buffer in batch.buffers().iter().flatten() {
        let packed = range(buffer).and_then(|range| body.get(range)).ok_or("a buffer lies outside its batch")?;
        let length = unpacked_length(packed, codec)?;
        let into = room.get_mut(at..at + length).ok_or("a batch is larger than it claims")?;
        if length > 0 {
            unpack(packed, codec, into)?;
        }
        buffers.push(arrow_ipc::Buffer::new(at as i64, length as i64));
        at += length.next_multiple_of(ALIGN);
    }
    let nodes: Vec<_> = batch.nodes().iter().flatten().copied().collect();
    let counts: Vec<i64> = batch.variadicBufferCounts().iter().flatten().collect();
    let description = Description { rows: batch.length(), nodes: &nodes, buffers: &buffers, counts: &counts };
    Ok((Scratch::filled(room), describe(description)))
}

/// Unpacks the buffer `packed`, which claims to hold as many bytes as `into`.
fn unpack(packed: &[u8], codec: CompressionType, into: &mut [u8]) -> Checked<()> {
    let (claim, packed) = packed.split_first_chunk::<8>().ok_or("a compressed buffer is cut off")?;
    if i64::from_le_bytes(*claim) == NOT_PACKED {
        into.copy_from_slice(packed);
        return Ok(());
    }
    let broken = |error: std::io::Error| format!("a compressed buffer: {error}");
    let whole = match codec {
        CompressionType::ZSTD => zstd::bulk::decompress_to_buffer(packed, into).map_err(broken)? == into.len(),
        CompressionType::LZ4_FRAME => {
            let mut frames = lz4_flex::frame::FrameDecoder::new(packed);
            frames.read_exact(into).map_err(broken)?;
            frames.read(&mut [0]).map_err(broken)? == 0
        }
        _ => return Err("a compression of an unknown kind".into()),
    };
    if whole { Ok(()) } else { Err("a compressed buffer does not hold what it claims".into()) }
}
