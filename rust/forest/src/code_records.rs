//! Codes of rows as bytes, row by row, as they move between machines: the bands of one byte, then those of two.

use bytemuck::Pod;

use ferrank_data::store::{Chunk, CodeStore};
use ferrank_runtime::error::{Error, Result};

/// Appends the codes of a row of `chunk`.
pub(crate) fn write(chunk: &Chunk, row: usize, bytes: &mut Vec<u8>) {
    chunk.narrow.iter().for_each(|cells| bytes.extend_from_slice(bytemuck::cast_slice(&cells[row..=row])));
    chunk.wide.iter().for_each(|cells| bytes.extend_from_slice(bytemuck::cast_slice(&cells[row..=row])));
}

/// The codes of `n` rows from `bytes`, in bands like those of `store`.
///
/// # Errors
/// [`Error::Data`](ferrank_runtime::error::Error::Data) if these are not the bytes of so many rows.
pub(crate) fn read(store: &CodeStore, n: usize, bytes: &[u8]) -> Result<Chunk> {
    let row_bytes = store.row_bytes();
    if bytes.len() != n * row_bytes {
        return Err(Error::Data(format!("{} bytes of codes for {n} rows of {row_bytes}", bytes.len())));
    }
    let mut chunk = Chunk { rows: n, ..Chunk::default() };
    chunk.narrow.resize(store.chunks[0].narrow.len(), n);
    chunk.wide.resize(store.chunks[0].wide.len(), n);
    let mut start = 0;
    for cells in chunk.narrow.iter_mut() {
        start = read_cells(cells, bytes, start, row_bytes);
    }
    for cells in chunk.wide.iter_mut() {
        start = read_cells(cells, bytes, start, row_bytes);
    }
    Ok(chunk)
}

/// Reads the cell at `start` of each row into `cells`. Returns the start of the next.
fn read_cells<T: Pod>(cells: &mut [T], bytes: &[u8], start: usize, row_bytes: usize) -> usize {
    for (row, cell) in cells.iter_mut().enumerate() {
        *cell = bytemuck::pod_read_unaligned(&bytes[row * row_bytes + start..][..size_of::<T>()]);
    }
    start + size_of::<T>()
}
