//! A stream as bytes: the length of a JSON object, in 8 bytes of little endian, and the object; the length of an
//! Arrow IPC stream and the stream, whose first batch is the reservoir and the others the block that is not
//! complete; then what was [condensed](ferrank_ranking), another Arrow IPC stream. The last two may be missing.

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use serde::{Deserialize, Serialize};

use super::reservoir::Reservoir;
use super::{Stream, StreamParams};
use crate::settings::{Settings, parse_ranker};
use ferrank_data::schema::Roles;
use ferrank_data::source::{ChunkSource, IpcSource};
use ferrank_ranking::Condensed;
use ferrank_runtime::error::{Error, Result};

const FORMAT: u32 = 1;
const NAME: &str = "stream";

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    settings: Settings,
    roles: Roles,
    params: StreamParams,
    name: String,
    /// Of the rows in the reservoir.
    numbers: Vec<u64>,
    n_blocks: u64,
    n_unlabelled: u64,
}

impl Stream {
    /// The stream as bytes, which [`from_bytes`](Self::from_bytes) reads.
    ///
    /// # Errors
    /// [`Error::Data`] if rows are too large for Arrow.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let head = Head {
            format: FORMAT,
            settings: self.settings.clone(),
            roles: self.roles.clone(),
            params: self.params,
            name: self.name.clone(),
            numbers: self.reservoir.numbers.clone(),
            n_blocks: self.n_blocks,
            n_unlabelled: self.n_unlabelled,
        };
        let head = serde_json::to_vec(&head).map_err(|e| Error::Data(format!("{NAME}: {e}")))?;
        let rows = self.rows().map_err(|e| Error::Data(format!("{NAME}: {e}")))?;
        let condensed = self.condensed.as_ref().map_or(Ok(Vec::new()), Condensed::to_ipc)?;
        let length = |bytes: &[u8]| (bytes.len() as u64).to_le_bytes();
        Ok([&length(&head)[..], &head, &length(&rows), &rows, &condensed].concat())
    }

    fn rows(&self) -> std::result::Result<Vec<u8>, ArrowError> {
        let Some(schema) = &self.schema else { return Ok(Vec::new()) };
        let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
        let none = RecordBatch::new_empty(schema.clone());
        writer.write(self.reservoir.rows().unwrap_or(&none))?;
        self.block.batches().iter().try_for_each(|batch| writer.write(batch))?;
        writer.into_inner()
    }

    /// The stream in `bytes`.
    ///
    /// # Errors
    /// [`Error::Data`] if they are something else, damaged, or cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::Data(format!("{NAME}: not what was saved; save it again"));
        let (head, rest) = part(bytes).ok_or_else(damaged)?;
        let head: Head = serde_json::from_slice(head).map_err(|_| damaged())?;
        let (rows, condensed) = part(rest).ok_or_else(damaged)?;
        let mut stream = Stream {
            name: head.name,
            n_blocks: head.n_blocks,
            n_unlabelled: head.n_unlabelled,
            ..Stream::new(head.settings, head.roles, head.params)?
        };
        if !rows.is_empty() {
            let source = IpcSource::from_buffer(NAME.into(), rows.to_vec().into())?;
            stream.schema = Some(source.schema());
            let mut batches = source.batches();
            let sampled = batches.next().transpose()?.filter(|rows| rows.num_rows() > 0);
            let ascend = head.numbers.is_sorted_by(|a, b| a < b);
            if !ascend || sampled.as_ref().map_or(0, RecordBatch::num_rows) != head.numbers.len() {
                return Err(damaged());
            }
            stream.reservoir = Reservoir::new(head.numbers, sampled);
            stream.block = batches.collect::<Result<_>>()?;
        }
        if !condensed.is_empty() {
            stream.condensed = Some(Condensed::from_ipc(condensed.to_vec(), NAME, &parse_ranker)?);
        }
        let is_whole = head.format == FORMAT
            && stream.condensed.is_some() == (stream.n_blocks > 0)
            && (stream.block.len() as u64) < stream.params.block_rows
            && stream.n_blocks.checked_mul(stream.params.block_rows).is_some();
        if is_whole { Ok(stream) } else { Err(damaged()) }
    }
}

/// Splits `bytes` after a part that is preceded by its length.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}
