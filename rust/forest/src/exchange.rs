//! Shadows of features in parts that keep their codes.
//!
//! The shadows of a row have the codes of another row, which may be in another part. Each part hands over the codes that
//! each part needs of it, in the order of the rows that need them, and takes what it needs from all parts.

use arrow_buffer::Buffer;
use rayon::prelude::*;

use crate::code_records::CodeRecords;
use ferrank_data::store::{Chunk, CodeStore};
use ferrank_runtime::error::{Error, Result};

/// The rows of parts, and the row that the shadows of each row have their codes from.
pub(crate) struct Exchange<'a> {
    /// n_parts; the first row of each part, ascending.
    pub(crate) firsts: &'a [usize],
    /// n_rows
    pub(crate) sources: &'a [u32],
}

impl Exchange<'_> {
    /// For each part, the codes that its shadows have from the rows of `store`, the part with number `from`.
    pub(crate) fn spread(&self, store: &CodeStore, from: usize) -> Vec<Vec<u8>> {
        let records = CodeRecords::new(store);
        let (first, own) = (self.firsts[from], self.firsts[from]..self.firsts[from] + store.rows);
        let wanted = |part: usize| {
            let end = self.firsts.get(part + 1).copied().unwrap_or(self.sources.len());
            let mut bytes = Vec::new();
            for row in
                self.sources[self.firsts[part]..end].iter().map(|&row| row as usize).filter(|row| own.contains(row))
            {
                let number = store.firsts.partition_point(|&chunk| chunk <= row - first) - 1;
                records.write(&store.chunks[number], row - first - store.firsts[number], &mut bytes);
            }
            bytes
        };
        (0..self.firsts.len()).into_par_iter().map(wanted).collect()
    }

    /// The codes of the shadows of the rows of `store`, the part with number `to`, from the `pieces` that all parts spread
    /// for it.
    ///
    /// # Errors
    /// [`Error::Data`] if they are of other rows.
    pub(crate) fn gather(&self, store: &CodeStore, to: usize, pieces: &[Buffer]) -> Result<Vec<Chunk>> {
        let records = CodeRecords::new(store);
        let row_bytes = records.row_bytes();
        let mut done = vec![0; pieces.len()];
        let mut rows = self.sources[self.firsts[to]..].iter();
        let mut chunk = |chunk: &Chunk| {
            let mut bytes = Vec::with_capacity(chunk.rows * row_bytes);
            for &row in rows.by_ref().take(chunk.rows) {
                let part = self.firsts.partition_point(|&first| first <= row as usize) - 1;
                let start = done[part];
                done[part] += row_bytes;
                bytes.extend_from_slice(pieces[part].get(start..start + row_bytes).ok_or_else(|| {
                    Error::Data(format!("part {part} gave too few codes for the shadows of part {to}"))
                })?);
            }
            records.read(chunk.rows, &bytes)
        };
        store.chunks.iter().map(&mut chunk).collect()
    }
}
