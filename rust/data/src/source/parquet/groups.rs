//! Row groups of a Parquet file.
//!
//! Reading columns side by side holds a page of each, and its dictionary: much where there are many. Then a few columns
//! of a row group are read at a time, and kept until all are there: in memory where that is little, else in scratch files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use super::super::checked::Checked;
use super::super::chunking::rows_per_chunk;
use super::ParquetSource;
use super::bytes::{Positioned, said};
use ferrank_runtime::error::Result;
use ferrank_runtime::scratch::Scratch;

/// Parts of a row group, each of which may be a file that is open.
const PARTS: usize = 256;
/// Bytes of a value that repeats, which takes next to nothing in a file, once it is read.
const VALUE_BYTES: usize = 8;

/// How much is read at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes that a row group may take.
    pub(super) group: usize,
    /// Bytes that columns may take that are read at a time.
    pub(super) part: usize,
    /// Most bytes that a column takes while it is read.
    pub(super) column: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { group: 64 << 20, part: 24 << 20, column: 4 << 20 }
    }
}

impl Limits {
    /// Bytes that a column of `size` bytes takes while it is read beside others: a page, its dictionary, and both unpacked.
    fn while_read(&self, size: usize) -> usize {
        size.saturating_mul(3).min(self.column)
    }

    /// Which columns of these sizes are read at a time.
    fn parts(&self, sizes: &[usize]) -> Vec<Range<usize>> {
        let taken: Vec<usize> = sizes.iter().map(|&size| self.while_read(size)).collect();
        let most = self.part.max(taken.iter().sum::<usize>() / PARTS);
        let (mut parts, mut first, mut size) = (Vec::new(), 0, 0);
        for (column, &added) in taken.iter().enumerate() {
            if column > first && size + added > most {
                parts.push(first..column);
                (first, size) = (column, 0);
            }
            size += added;
        }
        parts.push(first..sizes.len());
        parts
    }
}

/// About how many bytes the columns of each row group take once they are read.
#[derive(Debug)]
pub(super) struct Sizes(Vec<(u64, Vec<usize>)>);

impl Sizes {
    pub(super) fn new(metadata: &ParquetMetaData, n_columns: usize) -> Checked<Self> {
        let descriptor = metadata.file_metadata().schema_descr();
        let of_group = |group: &RowGroupMetaData| {
            let rows = u64::try_from(group.num_rows()).ok()?;
            let mut sizes = vec![0_usize; n_columns];
            for (leaf, column) in group.columns().iter().enumerate() {
                let size = usize::try_from(column.uncompressed_size()).ok()?;
                let of_column = &mut sizes[descriptor.get_column_root_idx(leaf)];
                *of_column = of_column.saturating_add(size.max((rows as usize).saturating_mul(VALUE_BYTES)));
            }
            (group.num_columns() == descriptor.num_columns()).then_some((rows, sizes))
        };
        let groups: Option<Vec<_>> = metadata.row_groups().iter().map(of_group).collect();
        let groups = groups.ok_or("a row group has negative sizes, or not the columns of the schema")?;
        let rows = groups.iter().try_fold(0_u64, |sum, (rows, _)| sum.checked_add(*rows));
        if rows != u64::try_from(metadata.file_metadata().num_rows()).ok() {
            return Err("the row groups have not as many rows as the file".into());
        }
        Ok(Sizes(groups))
    }

    pub(super) fn rows(&self) -> u64 {
        self.0.iter().map(|(rows, _)| rows).sum()
    }
}

/// A row group that is being read.
pub(super) struct Group {
    parts: Vec<Part>,
    /// Rows that were not read.
    left: u64,
}

/// Some columns of a row group.
enum Part {
    Read(Box<ParquetRecordBatchReader>),
    Held(VecDeque<RecordBatch>),
    Spooled(Box<StreamReader<BufReader<File>>>),
}

impl Part {
    fn next(&mut self) -> Checked<Option<RecordBatch>> {
        let next = match self {
            Part::Read(reader) => reader.next(),
            Part::Held(batches) => batches.pop_front().map(Ok),
            Part::Spooled(reader) => reader.next(),
        };
        next.transpose().map_err(|error| error.to_string())
    }
}

impl Group {
    /// The columns at `places` of row group `number`.
    pub(super) fn open(source: &ParquetSource, number: usize, places: &[usize], scratch: &Scratch) -> Result<Self> {
        let (rows, sizes) = &source.sizes.0[number];
        let sizes: Vec<usize> = places.iter().map(|&place| sizes[place]).collect();
        let limits = &source.limits;
        let sum = |sizes: &mut dyn Iterator<Item = usize>| sizes.fold(0_usize, usize::saturating_add);
        let is_small = sum(&mut sizes.iter().copied()) <= limits.group;
        let batch_rows = rows_per_chunk(places.len());
        let part = |columns: &[usize]| source.file.decoded(|| read(source, number, columns, batch_rows));
        let parts = match limits.parts(&sizes) {
            // Side by side.
            parts
                if parts.len() == 1
                    || (!is_small && sum(&mut sizes.iter().map(|&size| limits.while_read(size))) <= limits.group) =>
            {
                vec![Part::Read(Box::new(part(places)?))]
            }
            parts => parts
                .into_iter()
                .map(|columns| {
                    let reader = part(&places[columns])?;
                    if is_small { held(&source.file, reader) } else { spooled(&source.file, reader, scratch) }
                })
                .collect::<Result<_>>()?,
        };
        Ok(Group { parts, left: *rows })
    }

    /// The number of the next rows, and their columns; none at the end.
    pub(super) fn next_columns(&mut self) -> Checked<Option<(usize, Vec<ArrayRef>)>> {
        let batches = self.parts.iter_mut().map(Part::next).collect::<Checked<Vec<_>>>()?;
        let n_rows = batches[0].as_ref().map_or(0, RecordBatch::num_rows);
        if batches.iter().any(|batch| batch.as_ref().map_or(0, RecordBatch::num_rows) != n_rows) {
            return Err("the columns of a row group differ in length".into());
        }
        self.left = self.left.checked_sub(n_rows as u64).ok_or("a row group has more rows than the footer says")?;
        if n_rows == 0 {
            return if self.left == 0 {
                Ok(None)
            } else {
                Err("a row group has fewer rows than the footer says".into())
            };
        }
        let columns = batches.into_iter().flatten().flat_map(|batch| batch.columns().to_vec());
        Ok(Some((n_rows, columns.collect())))
    }
}

/// Reads the columns at `places` side by side.
fn read(
    source: &ParquetSource,
    number: usize,
    places: &[usize],
    batch_rows: usize,
) -> Checked<ParquetRecordBatchReader> {
    let metadata = &source.metadata;
    let levels = source.columns.levels(metadata.file_metadata().schema_descr(), places)?;
    let pages = Pages { file: &source.file, metadata, number };
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, batch_rows, None).map_err(said)
}

/// Keeps the columns in memory.
fn held(file: &Positioned, reader: ParquetRecordBatchReader) -> Result<Part> {
    let batches =
        file.decoded(|| reader.collect::<std::result::Result<_, ArrowError>>().map_err(|error| error.to_string()))?;
    Ok(Part::Held(batches))
}

/// Keeps the columns in a file.
fn spooled(file: &Positioned, mut reader: ParquetRecordBatchReader, scratch: &Scratch) -> Result<Part> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => scratch.failed(error),
        other => scratch.failed(std::io::Error::other(other.to_string())),
    };
    let mut kept = scratch.file()?;
    let mut writer = StreamWriter::try_new(BufWriter::new(&kept), &reader.schema()).map_err(failed)?;
    while let Some(batch) = file.decoded(|| reader.next().transpose().map_err(|error| error.to_string()))? {
        writer.write(&batch).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    drop(writer);
    kept.rewind().map_err(|error| scratch.failed(error))?;
    let reader = StreamReader::try_new(BufReader::new(kept), None).map_err(failed)?;
    Ok(Part::Spooled(Box::new(reader)))
}

/// The pages of a row group.
struct Pages<'a> {
    file: &'a Positioned,
    metadata: &'a ParquetMetaData,
    number: usize,
}

impl Pages<'_> {
    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.number)
    }
}

impl RowGroups for Pages<'_> {
    fn num_rows(&self) -> usize {
        self.group().num_rows() as usize
    }

    fn column_chunks(&self, column: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let file = Arc::new(self.file.clone());
        let pages = SerializedPageReader::new(file, self.group().column(column), self.num_rows(), None)?;
        Ok(Box::new(OfColumn(Some(Box::new(pages)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of a column in one row group.
struct OfColumn(Option<Box<dyn PageReader>>);

impl Iterator for OfColumn {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OfColumn {}
