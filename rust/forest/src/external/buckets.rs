//! Buckets: rows of nodes that fit into memory, kept on disk until their subtrees are grown.
//!
//! All buckets are in one temporary file, each in pieces. A row is a record: its codes band by band, its multiplicity,
//! and its targets, feature values and weight as in the data. Instead of label sets, a record has the number of the row
//! in the store.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use arrow_buffer::Buffer;
use bytemuck::Pod;

use super::access::Parts;
use super::bucket::Bucket;
use super::parts;
use super::upper_tree::{State, UpperTree};
use crate::context::GrowContext;
use crate::oob::{GatheredCodes, OutOfBagRows};
use crate::router::Reached;
use crate::view::View;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Chunk, CodeStore, Columns, Stored as StoredCode, TargetColumn, Values};
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

/// Most bytes of a bucket that are written at once.
const PIECE: usize = 32 << 10;

/// The file of all buckets of some trees.
pub(super) struct Buckets<'a> {
    records: Records<'a>,
    scratch: &'a Scratch,
    /// Bytes of a bucket that are buffered and written at once.
    piece: usize,
    /// The file and its length.
    file: Mutex<(File, usize)>,
}

/// All buckets, complete.
pub(super) struct Stored<'a> {
    records: Records<'a>,
    place: Place<'a>,
}

/// Where complete buckets are.
enum Place<'a> {
    /// In this file.
    File(Buffer),
    /// In parts of the data set; out-of-bag codes are written to temporary files.
    Parts(&'a dyn Parts, &'a Scratch),
}

/// The layout of rows in the file.
struct Records<'a> {
    store: &'a CodeStore,
    /// Bytes of a record.
    size: usize,
}

/// Rows that were read back.
pub(super) struct Rows {
    pub(super) chunk: Chunk,
    pub(super) counts: Vec<u32>,
    pub(super) targets: Vec<TargetColumn>,
    /// The values of the features; empty if features are not components.
    pub(super) values: Vec<TargetColumn>,
    pub(super) weights: Vec<f64>,
    /// n_rows; the numbers of the rows in the store, if some target has label sets.
    numbers: Vec<u64>,
}

impl Rows {
    /// The values and weights.
    pub(super) fn columns(&self) -> Columns<'_> {
        Columns { targets: &self.targets, values: &self.values, weights: &self.weights }
    }
}

impl<'a> Buckets<'a> {
    /// A file for the buckets of `trees`, which together buffer up to `waiting` bytes.
    pub(super) fn new(
        context: GrowContext<'a>,
        scratch: &'a Scratch,
        trees: &[UpperTree],
        waiting: usize,
    ) -> Result<Self> {
        let store = context.store;
        let nodes = trees.iter().flat_map(|tree| &tree.nodes);
        let count = nodes.filter(|node| matches!(node.state, State::Bucket(_))).count();
        let file = Mutex::new((scratch.file()?, 0));
        let piece = PIECE.min(waiting / count.max(1));
        Ok(Buckets { records: Records { store, size: Records::size_of(store) }, scratch, piece, file })
    }

    /// Adds the examples of a block that reached the node. `base` is the number of row 0 of the block in the store.
    pub(super) fn add(&self, bucket: &mut Bucket, reached: &Reached<'_>, base: usize) -> Result<()> {
        self.records.write(reached, base, &mut bucket.waiting);
        bucket.rows += reached.range.len();
        if bucket.waiting.len() >= self.piece { self.flush(bucket) } else { Ok(()) }
    }

    fn flush(&self, bucket: &mut Bucket) -> Result<()> {
        let bytes = std::mem::take(&mut bucket.waiting);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, length) = &mut *file;
        file.write_all(&bytes).map_err(|e| self.scratch.failed(e))?;
        bucket.pieces.push((*length, *length + bytes.len()));
        *length += bytes.len();
        Ok(())
    }

    /// Writes what the buckets of `trees` still buffer.
    pub(super) fn finish(self, trees: &mut [UpperTree]) -> Result<Stored<'a>> {
        for node in trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
            if let State::Bucket(bucket) = &mut node.state {
                self.flush(bucket)?;
            }
        }
        let (file, _) = self.file.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Stored { place: Place::File(self.scratch.map(&file)?), records: self.records })
    }
}

impl<'a> Stored<'a> {
    /// The buckets that `parts` have collected of the rows of `store`.
    pub(super) fn in_parts(store: &'a CodeStore, parts: &'a dyn Parts, scratch: &'a Scratch) -> Self {
        Stored { records: Records { store, size: Records::size_of(store) }, place: Place::Parts(parts, scratch) }
    }

    /// The codes of `rows`, which are out of the bag of tree number `tree`; `None` if the store has them.
    pub(super) fn out_of_bag(&self, tree: u64, rows: &OutOfBagRows) -> Result<Option<GatheredCodes>> {
        match self.place {
            Place::File(_) => Ok(None),
            Place::Parts(parts, scratch) => parts::out_of_bag(self.records.store, tree, rows, parts, scratch).map(Some),
        }
    }

    /// The records of `bucket`, piece by piece.
    pub(super) fn pieces(&self, bucket: &Bucket) -> Vec<u8> {
        let Place::File(bytes) = &self.place else { return Vec::new() };
        bucket.pieces.iter().flat_map(|&(start, end)| &bytes[start..end]).copied().collect()
    }

    /// The rows of `bucket`.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for more labels than can be counted.
    pub(super) fn take(&self, bucket: &Bucket) -> Result<Rows> {
        let mut rows = match &self.place {
            Place::File(bytes) => {
                let mut rows = self.records.allocate(bucket.rows);
                let mut first = 0;
                for &(start, end) in &bucket.pieces {
                    first = self.records.read(&bytes[start..end], first, &mut rows);
                }
                rows
            }
            Place::Parts(parts, _) => {
                let mut pieces: Vec<Vec<u8>> = Vec::new();
                parts.bucket(bucket.number, &mut |bytes| {
                    pieces.push(bytes.to_vec());
                    Ok(())
                })?;
                let n_bytes: usize = pieces.iter().map(Vec::len).sum();
                let mut rows = self.records.allocate(n_bytes / self.records.size);
                // Each piece goes once it is read.
                pieces.into_iter().fold(0, |first, piece| self.records.read(&piece, first, &mut rows));
                rows
            }
        };
        for (column, all) in rows.targets.iter_mut().zip(self.records.store.targets.iter()) {
            if let (TargetColumn::Labels(labels), TargetColumn::Labels(all)) = (column, all) {
                *labels = all.gather(rows.numbers.iter().map(|&row| row as usize))?;
            }
        }
        Ok(rows)
    }
}

impl Records<'_> {
    fn size_of(store: &CodeStore) -> usize {
        let value = |column: &TargetColumn| match column {
            TargetColumn::Labels(_) => 0,
            column => column.row_bytes(),
        };
        let values = store.targets.iter().chain(store.values.iter()).map(value).sum::<usize>();
        let weight = if store.weights.is_empty() { 0 } else { size_of::<f64>() };
        let number = if has_labels(store) { size_of::<u64>() } else { 0 };
        store.row_bytes() + size_of::<u32>() + values + weight + number
    }

    /// Appends the examples of a block that reached the node to `out`.
    fn write(&self, reached: &Reached<'_>, base: usize, out: &mut Vec<u8>) {
        let Reached { items, range, view, .. } = reached;
        let rows = reached.rows();
        let start = out.len();
        out.resize(start + rows.len() * self.size, 0);
        let bytes = &mut out[start..];
        let mut fields = Fields { size: self.size, at: 0 };
        let chunk = &self.store.chunks[0];
        for band in 0..chunk.narrow.len() {
            fields.put_band::<u8>(bytes, *view, band, rows);
        }
        for band in 0..chunk.wide.len() {
            fields.put_band::<u16>(bytes, *view, band, rows);
        }
        fields.put(bytes, range.clone().map(|position| items.count(position)));
        let numbers = rows.iter().map(|&row| base + row as usize);
        for column in self.store.targets.iter().chain(self.store.values.iter()) {
            match column {
                TargetColumn::Numeric(values) => fields.put(bytes, numbers.clone().map(|row| values[row])),
                TargetColumn::Nominal { codes, .. } => fields.put(bytes, numbers.clone().map(|row| codes[row])),
                TargetColumn::Labels(_) => {}
            }
        }
        if !self.store.weights.is_empty() {
            fields.put(bytes, numbers.clone().map(|row| self.store.weights[row]));
        }
        if has_labels(self.store) {
            fields.put(bytes, numbers.map(|row| row as u64));
        }
    }

    /// Buffers of zeros for `n` rows.
    fn allocate(&self, n: usize) -> Rows {
        let store = self.store;
        let mut chunk = Chunk { rows: n, ..Chunk::default() };
        chunk.narrow.resize(store.chunks[0].narrow.len(), n);
        chunk.wide.resize(store.chunks[0].wide.len(), n);
        let allocate = |column: &TargetColumn| match column {
            TargetColumn::Numeric(_) => TargetColumn::Numeric(Values::Held(vec![0.0; n])),
            TargetColumn::Nominal { categories, .. } => {
                TargetColumn::Nominal { categories: categories.clone(), codes: Values::Held(vec![0; n]) }
            }
            TargetColumn::Labels(labels) => TargetColumn::Labels(labels.none()),
        };
        Rows {
            chunk,
            counts: vec![0; n],
            targets: store.targets.iter().map(allocate).collect(),
            values: store.values.iter().map(allocate).collect(),
            weights: vec![0.0; if store.weights.is_empty() { 0 } else { n }],
            numbers: vec![0; if has_labels(store) { n } else { 0 }],
        }
    }

    /// Reads the records in `bytes` into `rows` from row `first` on. Returns the row after them.
    fn read(&self, bytes: &[u8], first: usize, rows: &mut Rows) -> usize {
        let end = first + bytes.len() / self.size;
        let mut fields = Fields { size: self.size, at: 0 };
        for cells in rows.chunk.narrow.iter_mut() {
            fields.get(bytes, &mut cells[first..end]);
        }
        for cells in rows.chunk.wide.iter_mut() {
            fields.get(bytes, &mut cells[first..end]);
        }
        fields.get(bytes, &mut rows.counts[first..end]);
        for column in rows.targets.iter_mut().chain(&mut rows.values) {
            match column {
                TargetColumn::Numeric(values) => fields.get(bytes, &mut values.held()[first..end]),
                TargetColumn::Nominal { codes, .. } => fields.get(bytes, &mut codes.held()[first..end]),
                TargetColumn::Labels(_) => {}
            }
        }
        if !rows.weights.is_empty() {
            fields.get(bytes, &mut rows.weights[first..end]);
        }
        if !rows.numbers.is_empty() {
            fields.get(bytes, &mut rows.numbers[first..end]);
        }
        end
    }
}

/// Returns true if some target of `store` has label sets.
fn has_labels(store: &CodeStore) -> bool {
    store.targets.iter().any(|target| matches!(target, TargetColumn::Labels(_)))
}

/// The fields of records, in order.
struct Fields {
    /// Bytes of a record.
    size: usize,
    /// Start of the next field.
    at: usize,
}

impl Fields {
    /// The start of the next field, a `T`, in each record.
    fn next<T>(&mut self) -> impl Fn(usize) -> usize + use<T> {
        let (at, size) = (self.at, self.size);
        self.at += size_of::<T>();
        move |row| row * size + at
    }

    /// Writes `values` into the next field of the records.
    fn put<T: Pod>(&mut self, bytes: &mut [u8], values: impl Iterator<Item = T>) {
        let start = self.next::<T>();
        for (row, value) in values.enumerate() {
            bytes[start(row)..][..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        }
    }

    /// Writes the codes of `rows` in `band` into the next field of the records.
    fn put_band<C: StoredCode>(&mut self, bytes: &mut [u8], view: View<'_>, band: usize, rows: &[u32]) {
        let start = self.next::<[C; BAND]>();
        view.band(band, rows, |row, codes: &[C; BAND]| {
            bytes[start(row)..][..size_of::<[C; BAND]>()].copy_from_slice(bytemuck::bytes_of(codes));
        });
    }

    /// Reads the next field of each record.
    fn get<T: Pod>(&mut self, bytes: &[u8], values: &mut [T]) {
        let start = self.next::<T>();
        for (row, value) in values.iter_mut().enumerate() {
            *value = bytemuck::pod_read_unaligned(&bytes[start(row)..][..size_of::<T>()]);
        }
    }
}
