//! Where Arrow data lie: in memory, or in a file that is read piece by piece.

use std::ops::Range;

use arrow_buffer::Buffer;

use super::super::checked::Checked;
use crate::source::file::{InputFile, Pool};

/// Arrow data.
#[derive(Debug)]
pub(super) enum Bytes {
    Memory(Buffer),
    File(InputFile),
}

impl Bytes {
    pub(super) fn len(&self) -> usize {
        match self {
            Bytes::Memory(buffer) => buffer.len(),
            Bytes::File(file) => file.len(),
        }
    }

    /// The bytes in `range`, which is within them; those of a file are in memory of `pool`.
    pub(super) fn get(&self, range: Range<usize>, pool: &Pool) -> Checked<Buffer> {
        match self {
            Bytes::Memory(buffer) => Ok(buffer.slice_with_length(range.start, range.len())),
            Bytes::File(file) => {
                let mut memory = pool.lend(range.len());
                file.read(range.start, memory.bytes()).map_err(|error| error.to_string())?;
                Ok(memory.into_buffer())
            }
        }
    }

    /// The bytes in `range`, as many of them as there are, in few bytes of memory.
    pub(super) fn few(&self, range: Range<usize>) -> Checked<Vec<u8>> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        match self {
            Bytes::Memory(buffer) => Ok(buffer[range].to_vec()),
            Bytes::File(file) => {
                let mut bytes = vec![0; range.len()];
                file.read(range.start, &mut bytes).map_err(|error| error.to_string())?;
                Ok(bytes)
            }
        }
    }

    /// Four bytes at `at`.
    pub(super) fn four(&self, at: usize) -> Checked<Option<[u8; 4]>> {
        Ok(self.few(at..at.saturating_add(4))?.first_chunk().copied())
    }
}
