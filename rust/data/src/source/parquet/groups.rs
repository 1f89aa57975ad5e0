//! Row groups of a Parquet file.
//!
//! Reading columns side by side holds a page of each, and its dictionary: much where there are many. Then a few columns
//! of a row group are read at a time, and kept until all are there: in memory where that is little, else in scratch files.

use std::collections::VecDeque;
use std::io::{BufWriter, Error as IoError};
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Fields, Schema};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::column::page::PageIterator;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use rayon::prelude::*;
use rayon::{current_num_threads, current_thread_index};

use super::super::checked::{Checked, catch_decoder_panic};
use super::super::chunking::{rows_per_chunk, sized};
use super::super::file::InputFile;
use super::bytes::{MARK, Positioned, said};
use super::pages::{Column, OfColumn, Taken};
use super::types::Columns;
use ferrank_runtime::error::{Error, Result as RunResult};
use ferrank_runtime::scratch::Scratch;

/// What encrypted files end with.
const ENCRYPTED: &[u8; 4] = b"PARE";
/// Parts of a row group, each of which may be a file that is open.
const PARTS: usize = 256;
/// Bytes of a value that repeats, which takes next to nothing in a file, once it is read.
const VALUE_BYTES: usize = 8;
/// Bytes of texts that are too short to matter.
const SHORT: usize = 1 << 10;
/// Bytes of the reader of a column.
const READER_BYTES: usize = sized(12 << 10, 100);

/// How much is read at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes that a row group may take.
    pub(super) group: usize,
    /// Bytes that columns may take that are read at a time.
    pub(super) part: usize,
    /// Most bytes that a column takes while it is read.
    pub(super) column: usize,
    /// Bytes from which on several threads read columns.
    pub(super) shared: usize,
    /// Bytes that texts of rows may take that are read at a time.
    pub(super) texts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            group: sized(64 << 20, 2_000),
            part: sized(24 << 20, 1_000),
            column: sized(4 << 20, 500),
            shared: sized(1 << 20, 0),
            texts: sized(16 << 20, 100),
        }
    }
}

impl Limits {
    /// Bytes that a column of `size` bytes takes while it is read beside others: its reader, a page, its dictionary, and
    /// both unpacked.
    fn while_read(&self, size: usize) -> usize {
        size.saturating_mul(3).min(self.column) + READER_BYTES
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

/// A file whose footer was read.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) bytes: Positioned,
    pub(super) metadata: ParquetMetaData,
    pub(super) columns: Columns,
    pub(super) sizes: Sizes,
    pub(super) limits: Limits,
}

impl OpenFile {
    pub(super) fn new(file: InputFile) -> RunResult<Self> {
        let refused = |what| Err(Error::Data(format!("{}: {what}", file.name)));
        if !file.start(MARK.len())?.starts_with(MARK) {
            return refused("this is no Parquet file; give it the suffix of what it is");
        }
        let mut end = [0; ENCRYPTED.len()];
        file.read(file.len() - end.len(), &mut end)?;
        if end == *ENCRYPTED {
            return refused("the Parquet file is encrypted; write it without encryption");
        }
        let bytes = Positioned::new(file);
        let (metadata, columns, sizes) = bytes.decoded(|| {
            let metadata = ParquetMetaDataReader::decode_metadata(&bytes.footer()?).map_err(said)?;
            let columns = Columns::new(metadata.file_metadata(), bytes.name())?;
            let sizes = Sizes::new(&metadata, columns.schema.fields().len())?;
            Ok((metadata, columns, sizes))
        })?;
        Ok(OpenFile { bytes, metadata, columns, sizes, limits: Limits::default() })
    }

    /// The column `leaf`, as the file counts those within columns, of row group `number`.
    fn column(&self, number: usize, leaf: usize) -> Column<'_> {
        let group = self.metadata.row_group(number);
        Column { file: &self.bytes, described: group.column(leaf), rows: group.num_rows() as usize }
    }

    /// Bytes that a row may take of texts in the columns at `places` of row group `number`.
    fn widths(&self, number: usize, places: &[usize]) -> Checked<Vec<usize>> {
        let descriptor = self.metadata.file_metadata().schema_descr();
        let mut asked = vec![None; self.columns.schema.fields().len()];
        places.iter().enumerate().for_each(|(at, &place)| asked[place] = Some(at));
        let mut widths = vec![0_usize; places.len()];
        for leaf in 0..descriptor.num_columns() {
            if let Some(at) = asked[descriptor.get_column_root_idx(leaf)] {
                widths[at] = widths[at].saturating_add(self.column(number, leaf).row_bytes()?);
            }
        }
        Ok(widths)
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

/// The number of some rows, and their columns.
type Rows = (usize, Vec<ArrayRef>);

/// A row group that is being read.
pub(super) struct Group {
    parts: Vec<Part>,
    /// Rows that were not read.
    left: u64,
}

/// Some columns of a row group.
enum Part {
    Read(SideBySide),
    /// In memory, or mapped.
    Kept(VecDeque<Rows>),
}

impl Part {
    fn next(&mut self) -> Checked<Option<Rows>> {
        match self {
            Part::Read(columns) => columns.next(),
            Part::Kept(rows) => Ok(rows.pop_front()),
        }
    }
}

fn taken(next: Option<Result<RecordBatch, ArrowError>>) -> Checked<Option<Rows>> {
    let batch = next.transpose().map_err(|error| error.to_string())?;
    Ok(batch.map(|batch| (batch.num_rows(), batch.columns().to_vec())))
}

/// `rows` in pieces of `batch_rows` rows.
fn cut(rows: Rows, batch_rows: usize) -> impl Iterator<Item = Rows> {
    let (n_rows, columns) = rows;
    (0..n_rows).step_by(batch_rows).map(move |first| {
        let length = batch_rows.min(n_rows - first);
        (length, columns.iter().map(|column| column.slice(first, length)).collect())
    })
}

/// The next rows of all columns, of which `parts` are the next of some.
fn joined(parts: impl Iterator<Item = Option<Rows>>) -> Checked<Option<Rows>> {
    let parts: Vec<Rows> = parts.map(|rows| rows.unwrap_or_default()).collect();
    let n_rows = parts.first().map_or(0, |rows| rows.0);
    if parts.iter().any(|rows| rows.0 != n_rows) {
        return Err("the columns of a row group differ in length".into());
    }
    Ok((n_rows > 0).then(|| (n_rows, parts.into_iter().flat_map(|rows| rows.1).collect())))
}

impl Group {
    /// The columns at `places` of row group `number`.
    pub(super) fn open(file: &OpenFile, number: usize, places: &[usize], scratch: &Scratch) -> RunResult<Self> {
        let (rows, sizes) = &file.sizes.0[number];
        let limits = &file.limits;
        let widths = file.bytes.decoded(|| file.widths(number, places))?;
        let sizes: Vec<usize> = places
            .iter()
            .zip(&widths)
            .map(|(&place, &width)| {
                let repeated = if width > SHORT { width.saturating_mul(*rows as usize) } else { 0 };
                sizes[place].max(repeated)
            })
            .collect();
        let sum = |sizes: &mut dyn Iterator<Item = usize>| sizes.fold(0_usize, usize::saturating_add);
        let is_read = sum(&mut sizes.iter().map(|&size| limits.while_read(size))) <= limits.group;
        let parts = if is_read { iter::once(0..places.len()).collect() } else { limits.parts(&sizes) };
        // Rows of some columns whose texts fit.
        let fit = |part: &Range<usize>| (limits.texts / sum(&mut widths[part.clone()].iter().copied()).max(1)).max(1);
        let batch_rows = parts.iter().map(fit).fold(rows_per_chunk(places.len()), usize::min);
        let open = |part: Range<usize>, batch_rows| {
            file.bytes.decoded(|| SideBySide::open(file, number, &places[part.clone()], &sizes[part], batch_rows))
        };
        let is_small = sum(&mut sizes.iter().copied()) <= limits.group;
        let keep = |part: Range<usize>| {
            // Many rows of few columns take less time to decode; there is room for all that are asked for.
            let most = rows_per_chunk(1).min(*rows as usize).min(fit(&part));
            let columns = open(part, batch_rows * (most / batch_rows).max(1))?;
            match is_small {
                true => held(&file.bytes, columns, batch_rows),
                false => spooled(&file.bytes, columns, batch_rows, scratch),
            }
        };
        let parts = match is_read {
            true => vec![Part::Read(open(0..places.len(), batch_rows)?)],
            false => parts.into_iter().map(keep).collect::<RunResult<_>>()?,
        };
        Ok(Group { parts, left: *rows })
    }

    /// The next rows; none at the end.
    pub(super) fn next(&mut self) -> Checked<Option<Rows>> {
        let parts = self.parts.iter_mut().map(Part::next).collect::<Checked<Vec<_>>>()?;
        let rows = joined(parts.into_iter())?;
        let n_rows = rows.as_ref().map_or(0, |rows| rows.0 as u64);
        self.left = self.left.checked_sub(n_rows).ok_or("a row group has more rows than the footer says")?;
        if rows.is_none() && self.left > 0 {
            return Err("a row group has fewer rows than the footer says".into());
        }
        Ok(rows)
    }
}

/// Columns that are read side by side, by all threads of the pool where this is one of its threads.
struct SideBySide {
    readers: Vec<ParquetRecordBatchReader>,
    taken: Taken,
}

impl SideBySide {
    /// The columns at `places`, which have these `sizes`.
    fn open(file: &OpenFile, number: usize, places: &[usize], sizes: &[usize], batch_rows: usize) -> Checked<Self> {
        let metadata = &file.metadata;
        let taken = Taken::default();
        let pages = Pages { file, number, taken: &taken };
        let open = |part: Range<usize>| {
            let levels = file.columns.levels(metadata.file_metadata().schema_descr(), &places[part])?;
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, batch_rows, None).map_err(said)
        };
        let n_bytes = sizes.iter().copied().fold(0, usize::saturating_add);
        let n_threads = match current_thread_index() {
            Some(_) if n_bytes >= file.limits.shared => current_num_threads(),
            _ => 1,
        };
        let most = places.len().div_ceil(n_threads).max(1);
        let parts = (0..places.len().max(1)).step_by(most).map(|first| first..(first + most).min(places.len()));
        let readers = parts.map(open).collect::<Checked<_>>()?;
        Ok(SideBySide { readers, taken })
    }

    fn schema(&self) -> Schema {
        Schema::new(self.readers.iter().flat_map(|reader| reader.schema().fields().to_vec()).collect::<Fields>())
    }

    fn next(&mut self) -> Checked<Option<Rows>> {
        self.taken.store(0, Ordering::Relaxed);
        match &mut self.readers[..] {
            [reader] => taken(reader.next()),
            readers => {
                let next = |reader: &mut ParquetRecordBatchReader| catch_decoder_panic(|| taken(reader.next()));
                let parts: Checked<Vec<_>> = readers.par_iter_mut().map(next).collect();
                joined(parts?.into_iter())
            }
        }
    }
}

/// Keeps the columns in memory.
fn held(file: &Positioned, mut columns: SideBySide, batch_rows: usize) -> RunResult<Part> {
    let mut kept = VecDeque::new();
    while let Some(rows) = file.decoded(|| columns.next())? {
        kept.extend(cut(rows, batch_rows));
    }
    Ok(Part::Kept(kept))
}

/// Keeps the columns in a file.
fn spooled(file: &Positioned, mut columns: SideBySide, batch_rows: usize, scratch: &Scratch) -> RunResult<Part> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => scratch.failed(error),
        other => scratch.failed(IoError::other(other)),
    };
    let schema = Arc::new(columns.schema());
    let spool = scratch.file()?;
    let mut writer = StreamWriter::try_new(BufWriter::new(&spool), &schema).map_err(failed)?;
    while let Some((_, columns)) = file.decoded(|| columns.next())? {
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(failed)?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    drop(writer);
    let (mut decoder, mut mapped, mut kept) = (StreamDecoder::new(), scratch.map(&spool)?, VecDeque::new());
    while let Some(batch) = decoder.decode(&mut mapped).map_err(failed)? {
        kept.extend(cut((batch.num_rows(), batch.columns().to_vec()), batch_rows));
    }
    Ok(Part::Kept(kept))
}

/// The pages of a row group.
struct Pages<'a> {
    file: &'a OpenFile,
    number: usize,
    taken: &'a Taken,
}

impl RowGroups for Pages<'_> {
    fn num_rows(&self) -> usize {
        self.file.metadata.row_group(self.number).num_rows() as usize
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let pages = self.file.column(self.number, leaf).pages(self.taken.clone())?;
        Ok(Box::new(OfColumn(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.file.metadata.row_group(self.number)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.file.metadata
    }
}
