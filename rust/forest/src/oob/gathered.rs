//! The codes of the out-of-bag rows of a tree, where the store does not have them: the data set is in parts.
//!
//! They are in a temporary file, a chunk for each block of [`CHUNK_ROWS`] rows of the data set.

use std::fs::File;
use std::io::{BufWriter, Write};

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};

use super::OutOfBagRows;
use crate::code_records;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::bands::{BAND, Bands};
use ferrank_data::store::{Chunk, Code, CodeStore};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::scratch::Scratch;

/// The codes of the out-of-bag rows of a tree.
pub(crate) struct GatheredCodes {
    /// n_blocks
    chunks: Vec<Chunk>,
}

impl GatheredCodes {
    /// Takes the codes of `rows` in ascending order from `source`, which calls its argument with the bytes of any numbers
    /// of them. Bands are those of `store`.
    ///
    /// # Errors
    /// Those of `source`; [`Error::Data`](ferrank_runtime::error::Error::Data) for other numbers of rows;
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the disk is full.
    pub(crate) fn take(
        store: &CodeStore,
        rows: &OutOfBagRows,
        scratch: &Scratch,
        source: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Self> {
        let mut counts = Vec::new();
        rows.by_block(|_, block| {
            counts.push(block.len());
            Ok(())
        })?;
        let mut blocks = Blocks { store, counts: &counts, done: 0, waiting: Vec::new() };
        let file = scratch.file()?;
        let mut to = BufWriter::new(&file);
        source(&mut |bytes| blocks.add(bytes, &mut to, scratch))?;
        if blocks.done < counts.len() || !blocks.waiting.is_empty() {
            return Err(Error::Data(format!("parts gave the codes of other rows than the {} out of bag", rows.len())));
        }
        to.flush().map_err(|error| scratch.failed(error))?;
        drop(to);
        let mut bytes = Bytes { all: scratch.map(&file)?, at: 0 };
        let of = |&rows: &usize| Chunk {
            rows,
            narrow: bytes.bands(rows, store.chunks[0].narrow.len()),
            wide: bytes.bands(rows, store.chunks[0].wide.len()),
        };
        Ok(GatheredCodes { chunks: counts.iter().map(of).collect() })
    }

    /// The rows of the block that starts with row `base`.
    pub(crate) fn chunk(&self, base: usize) -> &Chunk {
        &self.chunks[base / CHUNK_ROWS]
    }
}

/// Rows that arrive in any pieces, and are written block by block.
struct Blocks<'a> {
    store: &'a CodeStore,
    /// n_blocks; rows of each.
    counts: &'a [usize],
    /// Number of blocks that are written.
    done: usize,
    /// The bytes of rows that are not yet a block.
    waiting: Vec<u8>,
}

impl Blocks<'_> {
    fn add(&mut self, bytes: &[u8], to: &mut BufWriter<&File>, scratch: &Scratch) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(&rows) = self.counts.get(self.done) {
            let end = start + rows * self.store.row_bytes();
            let Some(block) = self.waiting.get(start..end) else { break };
            let chunk = code_records::read(self.store, rows, block)?;
            let mut write = |cells: &[u8]| to.write_all(cells).map_err(|error| scratch.failed(error));
            chunk.narrow.iter().try_for_each(|cells| write(bytemuck::cast_slice(cells)))?;
            chunk.wide.iter().try_for_each(|cells| write(bytemuck::cast_slice(cells)))?;
            (start, self.done) = (end, self.done + 1);
        }
        self.waiting.drain(..start);
        Ok(())
    }
}

/// A file that is read from its start to its end.
struct Bytes {
    all: Buffer,
    at: usize,
}

impl Bytes {
    fn bands<C: Code + ArrowNativeType>(&mut self, rows: usize, n_bands: usize) -> Bands<C> {
        let band = |_| {
            let codes = ScalarBuffer::new(self.all.clone(), self.at / size_of::<C>(), rows * BAND);
            self.at += rows * size_of::<[C; BAND]>();
            codes
        };
        Bands::mapped(rows, (0..n_bands).map(band).collect())
    }
}
