//! The codes of the out-of-bag rows of a tree, where the store does not have them: the data set is in parts.
//!
//! They are in a temporary file, for each block of [`CHUNK_ROWS`] rows of the data set band by band.

use super::OutOfBagRows;
use crate::code_records::CodeRecords;
use ferrank_data::intake::CHUNK_ROWS;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Chunk, Code, CodeStore};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::scratch::{Scratch, ScratchFile};

/// The codes of the out-of-bag rows of a tree.
pub(crate) struct GatheredCodes {
    file: ScratchFile,
    /// n_blocks; start in the file, and rows.
    blocks: Vec<(u64, usize)>,
    /// Numbers of bands of codes of one byte, and of two.
    n_narrow: usize,
    n_wide: usize,
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
        let (mut found, mut end) = (Vec::new(), 0);
        rows.by_block(|_, block| {
            found.push((end, block.len()));
            end += (block.len() * store.row_bytes()) as u64;
            Ok(())
        })?;
        let mut blocks = Blocks { records: CodeRecords::new(store), blocks: &found, done: 0, waiting: Vec::new() };
        let file = scratch.random_access()?;
        source(&mut |bytes| blocks.add(bytes, &file))?;
        if blocks.done < found.len() || !blocks.waiting.is_empty() {
            return Err(Error::Data(format!("parts gave the codes of other rows than the {} out of bag", rows.len())));
        }
        let Chunk { narrow, wide, .. } = &store.chunks[0];
        let (n_narrow, n_wide) = (narrow.len(), wide.len());
        Ok(GatheredCodes { file, blocks: found, n_narrow, n_wide })
    }

    /// The rows of the block that starts with row `base`.
    ///
    /// # Errors
    /// [`Error::File`](ferrank_runtime::error::Error::File) if the file cannot be read.
    pub(super) fn chunk(&self, base: usize) -> Result<Chunk> {
        let (mut at, rows) = self.blocks[base / CHUNK_ROWS];
        let mut chunk = Chunk { rows, ..Chunk::default() };
        chunk.narrow.resize(self.n_narrow, rows);
        chunk.wide.resize(self.n_wide, rows);
        chunk.narrow.iter_mut().try_for_each(|cells| self.read(&mut at, cells))?;
        chunk.wide.iter_mut().try_for_each(|cells| self.read(&mut at, cells))?;
        Ok(chunk)
    }

    /// The codes of the rows of the block that starts with row `base` in `band`.
    ///
    /// # Errors
    /// As for [`GatheredCodes::chunk`].
    pub(super) fn band<C: Code>(&self, base: usize, band: usize) -> Result<Vec<[C; BAND]>> {
        let (start, rows) = self.blocks[base / CHUNK_ROWS];
        let before = match size_of::<C>() {
            1 => 0,
            _ => self.n_narrow * BAND,
        };
        let mut at = start + (rows * (before + band * size_of::<[C; BAND]>())) as u64;
        let mut cells = vec![[C::default(); BAND]; rows];
        self.read(&mut at, &mut cells)?;
        Ok(cells)
    }

    /// Reads `cells` from byte `at` on, and moves that to their end.
    fn read<C: Code>(&self, at: &mut u64, cells: &mut [[C; BAND]]) -> Result<()> {
        self.file.read(*at, bytemuck::cast_slice_mut(cells))?;
        *at += size_of_val(cells) as u64;
        Ok(())
    }
}

/// Rows that arrive in any pieces, and are written block by block.
struct Blocks<'a> {
    records: CodeRecords,
    /// n_blocks; start in the file, and rows.
    blocks: &'a [(u64, usize)],
    /// Number of blocks that are written.
    done: usize,
    /// The bytes of rows that are not yet a block.
    waiting: Vec<u8>,
}

impl Blocks<'_> {
    fn add(&mut self, bytes: &[u8], to: &ScratchFile) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(&(mut at, rows)) = self.blocks.get(self.done) {
            let end = start + rows * self.records.row_bytes();
            let Some(block) = self.waiting.get(start..end) else { break };
            let chunk = self.records.read(rows, block)?;
            let mut write = |cells: &[u8]| {
                to.write(at, cells)?;
                at += cells.len() as u64;
                Ok(())
            };
            chunk.narrow.iter().try_for_each(|cells| write(bytemuck::cast_slice(cells)))?;
            chunk.wide.iter().try_for_each(|cells| write(bytemuck::cast_slice(cells)))?;
            (start, self.done) = (end, self.done + 1);
        }
        self.waiting.drain(..start);
        Ok(())
    }
}
