//! Rows as records of bytes, as they are written to temporary files and move between machines.
//!
//! A record has the [codes](CodeRecords) of a row, its multiplicity, and its targets, feature values and weight as in the
//! data. Instead of label sets, it has the number of the row in the store.

use bytemuck::Pod;

use crate::code_records::{CodeRecords, read_cell};
use crate::router::Reached;
use crate::view::View;
use ferrank_data::store::bands::BAND;
use ferrank_data::store::{Chunk, CodeStore, Columns, Stored, TargetColumn, Values};
use ferrank_runtime::error::Result;

/// Most bytes of records that are read back at once.
const MOST_AT_ONCE: usize = 256 << 10;

/// The layout of the records of rows of a store.
pub(crate) struct RowRecords<'a> {
    store: &'a CodeStore,
    codes: CodeRecords,
    /// Bytes of a record.
    size: usize,
}

/// Rows that were read back.
pub(crate) struct Rows {
    pub(crate) chunk: Chunk,
    pub(crate) counts: Vec<u32>,
    pub(crate) targets: Vec<TargetColumn>,
    /// The values of the features; empty if features are not components.
    pub(crate) values: Vec<TargetColumn>,
    pub(crate) weights: Vec<f64>,
    /// n_rows; the numbers of the rows in the store, if some target has label sets.
    numbers: Vec<u64>,
}

impl Rows {
    /// The values and weights.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns { targets: &self.targets, values: &self.values, weights: &self.weights }
    }
}

/// Rows that are being read back.
pub(crate) struct RowReader<'a> {
    records: &'a RowRecords<'a>,
    rows: Rows,
    /// Number of rows that were read.
    done: usize,
}

impl RowReader<'_> {
    /// Reads the records in `bytes`.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.done = self.records.read(bytes, self.done, &mut self.rows);
    }

    /// The rows, complete.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for more labels than can be counted.
    pub(crate) fn finish(self) -> Result<Rows> {
        let mut rows = self.rows;
        for (column, all) in rows.targets.iter_mut().zip(self.records.store.targets.iter()) {
            if let (TargetColumn::Labels(labels), TargetColumn::Labels(all)) = (column, all) {
                *labels = all.gather(rows.numbers.iter().map(|&row| row as usize))?;
            }
        }
        Ok(rows)
    }
}

impl<'a> RowRecords<'a> {
    /// Records of rows of `store`.
    pub(crate) fn new(store: &'a CodeStore) -> Self {
        let value = |column: &TargetColumn| match column {
            TargetColumn::Labels(_) => 0,
            column => column.row_bytes(),
        };
        let values = store.targets.iter().chain(store.values.iter()).map(value).sum::<usize>();
        let weight = if store.weights.is_empty() { 0 } else { size_of::<f64>() };
        let number = if has_labels(store) { size_of::<u64>() } else { 0 };
        let codes = CodeRecords::new(store);
        RowRecords { store, size: codes.row_bytes() + size_of::<u32>() + values + weight + number, codes }
    }

    /// Number of the records in so many bytes.
    pub(crate) fn count(&self, bytes: usize) -> usize {
        bytes / self.size
    }

    /// Cuts `records` into pieces that are read back at once.
    pub(crate) fn pieces<'r>(&self, records: &'r [u8]) -> impl Iterator<Item = &'r [u8]> {
        records.chunks((MOST_AT_ONCE / self.size).max(1) * self.size)
    }

    /// Reads `n` rows.
    pub(crate) fn reader(&self, n: usize) -> RowReader<'_> {
        RowReader { records: self, rows: self.allocate(n), done: 0 }
    }

    /// Appends the examples that reached a node to `out`. `number` gives the number in the store of a row of the view.
    pub(crate) fn write(&self, reached: &Reached<'_>, number: impl Fn(u32) -> usize, out: &mut Vec<u8>) {
        let Reached { items, range, view, .. } = reached;
        let rows = reached.rows();
        let start = out.len();
        out.resize(start + rows.len() * self.size, 0);
        let bytes = &mut out[start..];
        let mut fields = Fields { size: self.size, at: 0 };
        for (band, &n_codes) in self.codes.narrow.iter().enumerate() {
            fields.put_band::<u8>(bytes, *view, (band, n_codes), rows);
        }
        for (band, &n_codes) in self.codes.wide.iter().enumerate() {
            fields.put_band::<u16>(bytes, *view, (band, n_codes), rows);
        }
        fields.put(bytes, range.clone().map(|position| items.count(position)));
        let numbers = rows.iter().map(|&row| number(row));
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
        let allocate = |column: &TargetColumn| match column {
            TargetColumn::Numeric(_) => TargetColumn::Numeric(Values::Held(vec![0.0; n])),
            TargetColumn::Nominal { categories, .. } => {
                TargetColumn::Nominal { categories: categories.clone(), codes: Values::Held(vec![0; n]) }
            }
            TargetColumn::Labels(labels) => TargetColumn::Labels(labels.none()),
        };
        Rows {
            chunk: self.codes.chunk(n),
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
        for (cells, &n_codes) in rows.chunk.narrow.iter_mut().zip(&self.codes.narrow) {
            fields.get_band(bytes, &mut cells[first..end], n_codes);
        }
        for (cells, &n_codes) in rows.chunk.wide.iter_mut().zip(&self.codes.wide) {
            fields.get_band(bytes, &mut cells[first..end], n_codes);
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
    /// The start of the next field, which takes `bytes` bytes, in each record.
    fn next(&mut self, bytes: usize) -> impl Fn(usize) -> usize + use<> {
        let (at, size) = (self.at, self.size);
        self.at += bytes;
        move |row| row * size + at
    }

    /// Writes `values` into the next field of the records.
    fn put<T: Pod>(&mut self, bytes: &mut [u8], values: impl Iterator<Item = T>) {
        let start = self.next(size_of::<T>());
        for (row, value) in values.enumerate() {
            bytes[start(row)..][..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        }
    }

    /// Writes the first `n_codes` codes of `rows` in `band` into the next field of the records.
    fn put_band<C: Stored>(&mut self, bytes: &mut [u8], view: View<'_>, (band, n_codes): (usize, usize), rows: &[u32]) {
        let length = n_codes * size_of::<C>();
        let start = self.next(length);
        match n_codes {
            BAND => view.band(band, rows, |row, codes: &[C; BAND]| {
                bytes[start(row)..][..size_of::<[C; BAND]>()].copy_from_slice(bytemuck::bytes_of(codes));
            }),
            _ => view.band(band, rows, |row, codes: &[C; BAND]| {
                bytes[start(row)..][..length].copy_from_slice(bytemuck::cast_slice(&codes[..n_codes]));
            }),
        }
    }

    /// Reads the next field of each record, the first `n_codes` codes of a band.
    fn get_band<C: Pod>(&mut self, bytes: &[u8], cells: &mut [[C; BAND]], n_codes: usize) {
        let start = self.next(n_codes * size_of::<C>());
        for (row, cell) in cells.iter_mut().enumerate() {
            read_cell(cell, n_codes, &bytes[start(row)..]);
        }
    }

    /// Reads the next field of each record.
    fn get<T: Pod>(&mut self, bytes: &[u8], values: &mut [T]) {
        let start = self.next(size_of::<T>());
        for (row, value) in values.iter_mut().enumerate() {
            *value = bytemuck::pod_read_unaligned(&bytes[start(row)..][..size_of::<T>()]);
        }
    }
}
