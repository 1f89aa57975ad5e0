//! Codes of rows as bytes, row by row, as they move between machines: the bands of one byte, then those of two.

use bytemuck::Pod;

use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Chunk, CodeStore, Slot};
use ferrank_runtime::error::{Error, Result};

/// The layout of the codes of a row. Of each band there are as many codes as features have a place in it.
#[derive(Debug)]
pub(crate) struct CodeRecords {
    /// n_bands each
    pub(crate) narrow: Vec<usize>,
    pub(crate) wide: Vec<usize>,
}

impl CodeRecords {
    /// Codes of rows of `store`.
    pub(crate) fn new(store: &CodeStore) -> Self {
        let chunk = &store.chunks[0];
        let mut records = CodeRecords { narrow: vec![0; chunk.narrow.len()], wide: vec![0; chunk.wide.len()] };
        for slot in &store.slots {
            let (in_bands, slot) = match *slot {
                Slot::Narrow(slot) => (&mut records.narrow, slot),
                Slot::Wide(slot) => (&mut records.wide, slot),
                Slot::Sparse(_) => continue,
            };
            in_bands[slot / BAND] = in_bands[slot / BAND].max(slot % BAND + 1);
        }
        records
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.narrow.iter().sum::<usize>() + size_of::<u16>() * self.wide.iter().sum::<usize>()
    }

    /// Appends the codes of a row of `chunk`.
    pub(crate) fn write(&self, chunk: &Chunk, row: usize, bytes: &mut Vec<u8>) {
        for (cells, &n_codes) in chunk.narrow.iter().zip(&self.narrow) {
            append(&cells[row], n_codes, bytes);
        }
        for (cells, &n_codes) in chunk.wide.iter().zip(&self.wide) {
            append(&cells[row], n_codes, bytes);
        }
    }

    /// The codes of `n` rows from `bytes`, in bands.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) if `bytes` has another length than `n` rows take.
    pub(crate) fn read(&self, n: usize, bytes: &[u8]) -> Result<Chunk> {
        let row_bytes = self.row_bytes();
        if bytes.len() != n * row_bytes {
            return Err(Error::Data(format!("{} bytes of codes for {n} rows of {row_bytes}", bytes.len())));
        }
        let mut chunk = self.chunk(n);
        let mut start = 0;
        for (cells, &n_codes) in chunk.narrow.iter_mut().zip(&self.narrow) {
            start = read_cells(cells, n_codes, bytes, (start, row_bytes));
        }
        for (cells, &n_codes) in chunk.wide.iter_mut().zip(&self.wide) {
            start = read_cells(cells, n_codes, bytes, (start, row_bytes));
        }
        Ok(chunk)
    }

    /// Room for the codes of `n` rows.
    pub(crate) fn chunk(&self, n: usize) -> Chunk {
        let mut chunk = Chunk { rows: n, ..Chunk::default() };
        chunk.narrow.resize(self.narrow.len(), n);
        chunk.wide.resize(self.wide.len(), n);
        chunk
    }
}

/// Appends the first `n_codes` of a cell.
fn append<C: Pod>(cell: &[C; BAND], n_codes: usize, bytes: &mut Vec<u8>) {
    match n_codes {
        BAND => bytes.extend_from_slice(bytemuck::bytes_of(cell)),
        _ => bytes.extend_from_slice(bytemuck::cast_slice(&cell[..n_codes])),
    }
}

/// Reads the first `n_codes` of `cell` from `bytes`, which start with them.
pub(crate) fn read_cell<C: Pod>(cell: &mut [C; BAND], n_codes: usize, bytes: &[u8]) {
    match n_codes {
        BAND => *cell = bytemuck::pod_read_unaligned(&bytes[..size_of::<[C; BAND]>()]),
        _ => {
            let cell: &mut [u8] = bytemuck::cast_slice_mut(&mut cell[..n_codes]);
            cell.copy_from_slice(&bytes[..cell.len()]);
        }
    }
}

/// Reads `n_codes` codes at `start` of each row into `cells`. Returns the start of the next.
fn read_cells<C: Pod>(
    cells: &mut [[C; BAND]],
    n_codes: usize,
    bytes: &[u8],
    (start, row_bytes): (usize, usize),
) -> usize {
    for (row, cell) in cells.iter_mut().enumerate() {
        read_cell(cell, n_codes, &bytes[row * row_bytes + start..]);
    }
    start + n_codes * size_of::<C>()
}
