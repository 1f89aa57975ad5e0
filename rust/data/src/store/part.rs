//! A part of a store: consecutive rows, in memory or in an Arrow file.
//!
//! The file has a record batch for each chunk. Its columns are the bands, codes of one byte first, each
//! cell eight codes of a row; then the targets, numbers, codes of categories or lists of labels, and the
//! features the same way, where their values are kept; then the row weights and the hashes of the rows' groups, if
//! there are some. It holds nothing of
//! what the codes mean: that is the codebook's.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt64Type};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use rayon::prelude::*;

use super::Chunk;
use super::bands::{BAND, Bands};
use super::code::Code;
use super::codebook::{Codebook, Slot};
use super::coder::Coder;
use super::entries::{CodedEntries, Entries};
use super::matrix::{MatrixCoder, places};
use super::targets::{Answers, TargetColumn};
use crate::intake::{CHUNK_ROWS, Counts, Intake};
use crate::labels::{self, LabelColumn};
use crate::reservation::Reservation;
use crate::rest::RestIntake;
use crate::source::{ChunkSource, IpcSource};
use crate::sparse::SparseIntake;
use crate::values::{Keep, Values};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Phase;

/// Bytes of the codes of a chunk that is written to a file, of which one is held at a time.
const CHUNK_BYTES: usize = 8 << 20;

/// The codes of all rows are one chunk if they take at most this part of the memory.
const MOST_SHARE: usize = 16;

/// What messages call a part.
const WHAT: &str = "a part of the code store";

/// How the names of columns of codes begin in a part's file.
const CODES: &str = "codes ";

/// Consecutive rows, as codes.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::Profile, schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// use ferrank_data::store::{CodeStore, Codebook, Keep, Part};
///
/// # let column = |n: i32| Arc::new((0..8).map(|i| f64::from(i % n)).collect::<Float64Array>()) as ArrayRef;
/// # let batch = RecordBatch::try_from_iter([("x", column(5)), ("y", column(8))]).unwrap();
/// # let source = |batch: RecordBatch| TableSource::new("table", batch.schema(), vec![batch]);
/// # let pieces = [source(batch.slice(0, 3))?, source(batch.slice(3, 5))?];
/// # let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&table, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// # let profile = Profile::new(&intake, 255)?;
/// // Pieces of three and of five rows are coded apart, as on two machines.
/// let book = Codebook::new(&profile, &problem, false, "table")?;
/// let mut parts = Vec::new();
/// for piece in &pieces {
///     let intake = View::new(piece, &roles, Unlabelled::Error).intake(&problem, &monitor);
///     let mut bytes = Vec::new();
///     Part::new(&intake, &book, intake.count()?, Keep::Memory)?.write(&book, &mut bytes)?;
///     parts.push(Part::read(&book, bytes.into())?);
/// }
/// let store = CodeStore::from_parts(book, parts, Keep::Memory)?;
/// assert_eq!((store.rows, &store.firsts[..]), (8, &[0, 3][..]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Part {
    pub(super) chunks: Vec<Chunk>,
    /// Together the values and weights of the rows of all chunks, in any pieces.
    pub(super) answers: Vec<Answers>,
    /// The entries of sparse features, if they alone are kept.
    pub(super) entries: Option<Entries>,
}

impl Part {
    /// Codes what `intake` gives by `book`; `counts` is what the profile found there.
    ///
    /// # Errors
    /// Besides the errors of reading: [`Error::Data`] if the pass meets other rows than the profile did,
    /// [`Error::Resource`] and [`Error::File`] if the disk is too small or full.
    pub fn new(intake: &Intake<'_>, book: &Codebook, counts: Counts, keep: Keep<'_>) -> Result<Self> {
        let rows = counts.kept as usize;
        match keep {
            Keep::Memory => {
                let (mut chunks, mut answers) = (Vec::new(), Vec::new());
                let reservation = Reservation::new(intake.memory);
                let entries = fill(intake, book, counts, held_height(intake, book, rows), |chunk, of_rows| {
                    reservation.hold(of_rows.columns.iter().map(TargetColumn::label_bytes).sum(), labels::WHAT)?;
                    chunks.extend(chunk);
                    answers.push(of_rows);
                    Ok(())
                })?;
                Ok(Part { chunks, answers, entries: (!book.zeros.is_empty()).then_some(entries) })
            }
            Keep::Scratch(scratch) => {
                scratch.check((rows * book.written_bytes()) as u64, &format!("the codes of {rows} rows"))?;
                let file = scratch.file()?;
                let failed = |error| match error {
                    ArrowError::IoError(_, source) => scratch.failed(source),
                    other => Error::Data(format!("{}: {other}", intake.source.name())),
                };
                let row_bytes = book.row_bytes() + book.label_bytes();
                let height = (CHUNK_BYTES / row_bytes.max(1)).clamp(1, CHUNK_ROWS).next_power_of_two();
                encode_to(intake, book, (counts, height.min(CHUNK_ROWS)), BufWriter::new(&file), failed)?;
                Part::read(book, scratch.map(&file)?)
            }
        }
    }

    /// What [`Part::write`] writes of [`Part::new`], of which memory has a chunk at a time.
    ///
    /// # Errors
    /// As for [`Part::new`].
    pub fn encode(intake: &Intake<'_>, book: &Codebook, counts: Counts) -> Result<Vec<u8>> {
        let failed = |error: ArrowError| Error::Data(format!("{}: {error}", intake.source.name()));
        let mut bytes = Vec::with_capacity(counts.kept as usize * book.written_bytes());
        encode_to(intake, book, (counts, CHUNK_ROWS), &mut bytes, failed)?;
        Ok(bytes)
    }

    /// Writes the part as an Arrow file.
    pub fn write(self, book: &Codebook, to: impl Write) -> Result<()> {
        let failed = |error: ArrowError| Error::Data(format!("{WHAT}: {error}"));
        let answers = Answers::joined(book.no_answers(), self.answers, Keep::Memory)?;
        let mut writer = FileWriter::try_new(to, &book.schema()).map_err(failed)?;
        let mut first = 0;
        for chunk in self.chunks {
            let rows = chunk.rows;
            writer.write(&batch(book, chunk, &answers, first).map_err(failed)?).map_err(failed)?;
            first += rows;
        }
        writer.finish().map_err(failed)
    }

    /// The values and weights of the part in `bytes`, which [`Part::write`] wrote, for [`Part::read_without_codes`].
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are damaged.
    pub fn without_codes(bytes: Buffer) -> Result<Vec<u8>> {
        let failed = |error: ArrowError| Error::Data(format!("{WHAT}: {error}"));
        let source = IpcSource::from_buffer(WHAT.into(), bytes)?;
        let schema = source.schema();
        let is_kept = |&column: &usize| !schema.field(column).name().starts_with(CODES);
        let kept: Vec<usize> = (0..schema.fields().len()).filter(is_kept).collect();
        let mut written = Vec::new();
        let mut writer = FileWriter::try_new(&mut written, &schema.project(&kept).map_err(failed)?).map_err(failed)?;
        for batch in source.batches() {
            writer.write(&batch?.project(&kept).map_err(failed)?).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        drop(writer);
        Ok(written)
    }

    /// The part in `bytes` that [`Part::without_codes`] returned for a part with a codebook like `book`.
    ///
    /// # Errors
    /// As for [`Part::read`].
    pub fn read_without_codes(book: &Codebook, bytes: Buffer) -> Result<Self> {
        Part::read(&book.without_codes(), bytes)
    }

    /// Writes `chunks`, coded by `book`, without values and weights, for [`Part::read_codes`].
    pub fn write_codes(book: &Codebook, chunks: Vec<Chunk>, to: impl Write) -> Result<()> {
        Part { chunks, answers: Vec::new(), entries: None }.write(&book.only_codes(), to)
    }

    /// The chunks in `bytes` that [`Part::write_codes`] wrote with a codebook like `book`.
    ///
    /// # Errors
    /// As for [`Part::read`].
    pub fn read_codes(book: &Codebook, bytes: Buffer) -> Result<Vec<Chunk>> {
        Ok(Part::read(&book.only_codes(), bytes)?.chunks)
    }

    /// The part in `bytes`, an Arrow file that was written with a codebook like `book`. It keeps them.
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are damaged, or of another codebook.
    pub fn read(book: &Codebook, bytes: Buffer) -> Result<Self> {
        let source = IpcSource::from_buffer(WHAT.into(), bytes)?;
        let mut part = Part::default();
        for batch in source.batches() {
            let batch = batch?;
            if batch.schema().fields() != book.schema().fields() || batch.columns().iter().any(|c| c.null_count() > 0) {
                return Err(Error::Data(format!("{WHAT}: it was coded for other columns")));
            }
            let (narrow, wide) = book.n_bands();
            let (codes, answers) = batch.columns().split_at(narrow + wide);
            part.chunks.push(Chunk {
                rows: batch.num_rows(),
                narrow: bands(batch.num_rows(), &codes[..narrow]),
                wide: bands(batch.num_rows(), &codes[narrow..]),
            });
            part.answers.push(book.answers(answers)?);
        }
        Ok(part)
    }
}

/// The height of chunks in memory. Upper nodes are searched faster where all rows are in one chunk: 1.09x down to depth 6
/// (100k x 50). What is then made chunk by chunk should take little of the memory.
fn held_height(intake: &Intake<'_>, book: &Codebook, rows: usize) -> usize {
    let is_little = || rows * book.row_bytes() <= Budget::new(intake.memory).left() / MOST_SHARE;
    if rows <= CHUNK_ROWS || is_little() { rows } else { CHUNK_ROWS }
}

/// Writes what `intake` gives, coded by `book`, as an Arrow file with a batch for each `height` rows.
fn encode_to(
    intake: &Intake<'_>,
    book: &Codebook,
    (counts, height): (Counts, usize),
    to: impl Write,
    failed: impl Fn(ArrowError) -> Error,
) -> Result<()> {
    let mut writer = FileWriter::try_new(to, &book.schema()).map_err(&failed)?;
    fill(intake, book, counts, height, |chunk, mut answers| {
        let chunk = chunk.expect("values come with their chunk");
        answers.columns.iter_mut().for_each(TargetColumn::share);
        writer.write(&batch(book, chunk, &answers, 0).map_err(&failed)?).map_err(&failed)
    })?;
    writer.finish().map_err(&failed)
}

/// Hands the rows of `intake` to `each`: their values and weights as they are read, and each chunk of `height` rows with the
/// last of these. Chunks of at most [`CHUNK_ROWS`] rows come with all of theirs. Returns the entries of the features in sparse
/// slots.
fn fill(
    intake: &Intake<'_>,
    book: &Codebook,
    counts: Counts,
    height: usize,
    each: impl FnMut(Option<Chunk>, Answers) -> Result<()>,
) -> Result<Entries> {
    // The values of features, if they are kept, are read from batches.
    let sparse = if book.n_kept() == book.n_targets { SparseIntake::new(intake)? } else { None };
    let entries = match &sparse {
        Some(sparse) => {
            let entries = CodedEntries::new(sparse, book)?;
            fill_by_batch(&sparse.rest(), (book, &sparse.columns_beside()), (entries, None), counts, height, each)?
        }
        None => {
            let places =
                if book.n_kept() == book.n_targets { places(intake, book) } else { vec![None; book.slots.len()] };
            let rest = RestIntake::new(intake, |feature| book.ranked(feature).is_none() && places[feature].is_none());
            let matrix = MatrixCoder::new(intake, &places, &rest, counts)?;
            let others = (CodedEntries::empty(book), matrix.as_ref());
            fill_by_batch(&rest.intake(), (book, &rest.columns), others, counts, height, each)?
        }
    };
    Ok(entries.into_entries())
}

/// Hands the rows of `intake` to `each` as [`fill`] does. The features that have `columns` are in the batches of `intake`, the
/// others in `entries` or a `matrix`, or their codes in `book`.
fn fill_by_batch(
    intake: &Intake<'_>,
    (book, columns): (&Codebook, &[Option<usize>]),
    (mut entries, matrix): (CodedEntries, Option<&MatrixCoder<'_>>),
    counts: Counts,
    height: usize,
    mut each: impl FnMut(Option<Chunk>, Answers) -> Result<()>,
) -> Result<CodedEntries> {
    let mut left = counts.kept as usize;
    let (mut chunk, mut answers) = (book.chunk(height.min(left)), book.no_answers());
    // The rows of the chunk whose codes are complete, and those that were read.
    let (mut coded, mut offset) = (0, 0);
    let found = intake.pass(Phase::Coding, |batch| {
        if batch.num_rows() > left - offset {
            return Err(intake.changed());
        }
        let mut done = 0;
        while done < batch.num_rows() {
            let rows = (batch.num_rows() - done).min(chunk.rows - offset);
            // A slice costs an allocation for each column.
            let part = if rows < batch.num_rows() { batch.slice(done, rows) } else { batch.clone() };
            let first_row = counts.kept as usize - left;
            let coder = Coder::new(intake, &part, book, columns);
            coder.fill(&mut chunk, offset, &mut entries.sparse, first_row + offset)?;
            answers.add(intake, &part)?;
            (done, offset) = (done + part.num_rows(), offset + part.num_rows());
            let is_full = offset == chunk.rows;
            if !is_full && offset - coded < CHUNK_ROWS {
                continue;
            }
            let [narrow, wide]: [fn(&Slot) -> bool; 2] =
                [|slot| matches!(slot, Slot::Narrow(_)), |slot| matches!(slot, Slot::Wide(_))];
            let first = first_row + coded;
            let mut cells = chunk.rows_mut(coded..offset);
            entries.fill_bands(&mut cells, first);
            book.fill_ranked(&mut cells.narrow, first, narrow);
            book.fill_ranked(&mut cells.wide, first, wide);
            if let Some(matrix) = matrix {
                matrix.fill(book, &mut cells.narrow, first, narrow)?;
                matrix.fill(book, &mut cells.wide, first, wide)?;
            }
            coded = offset;
            let full = is_full.then(|| {
                (left, coded, offset) = (left - offset, 0, 0);
                std::mem::replace(&mut chunk, book.chunk(height.min(left)))
            });
            each(full, std::mem::replace(&mut answers, book.no_answers()))?;
        }
        Ok(())
    })?;
    if found == counts { Ok(entries) } else { Err(intake.changed()) }
}

impl Codebook {
    /// Writes the codes that ranks gave into `bands`, those with a slot that is `wanted`. The first row of
    /// the bands is `first_row`.
    fn fill_ranked<C: Code>(&self, bands: &mut [&mut [[C; BAND]]], first_row: usize, wanted: fn(&Slot) -> bool) {
        let features = self.features_at(wanted);
        bands.par_iter_mut().zip(features.par_chunks(BAND)).for_each(|(cells, features)| {
            for (lane, &feature) in features.iter().enumerate() {
                if let Some(codes) = self.ranked(feature) {
                    codes.emit(first_row..first_row + cells.len(), |row, code| cells[row][lane] = code);
                }
            }
        });
    }

    /// The columns of a part's file.
    fn schema(&self) -> SchemaRef {
        let (narrow, wide) = self.n_bands();
        let band = |bytes: usize| move |n: usize| Field::new(format!("{CODES}{bytes}.{n}"), cell(bytes), false);
        let values = self.no_answers().columns.into_iter().enumerate().map(|(t, column)| {
            let kind = match column {
                TargetColumn::Numeric(_) => DataType::Float64,
                TargetColumn::Nominal { .. } => DataType::UInt16,
                TargetColumn::Labels(_) => LabelColumn::data_type(),
            };
            Field::new(format!("values {t}"), kind, false)
        });
        let weight = self.weighted.then(|| Field::new("weight", DataType::Float64, false));
        let group = self.grouped.then(|| Field::new("group", DataType::UInt64, false));
        let codes = (0..narrow).map(band(1)).chain((0..wide).map(band(2)));
        let fields = codes.chain(values).chain(weight).chain(group);
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The least bytes that a row takes in a file of this schema.
    fn written_bytes(&self) -> usize {
        let width = |field: &FieldRef| match field.data_type() {
            DataType::FixedSizeBinary(n) => *n as usize,
            other => other.primitive_width().unwrap_or(0),
        };
        self.schema().fields().iter().map(width).sum()
    }

    /// Those in `columns`, which are of the right types.
    fn answers(&self, columns: &[ArrayRef]) -> Result<Answers> {
        let mut answers = self.no_answers();
        for (values, column) in answers.columns.iter_mut().zip(columns) {
            match values {
                TargetColumn::Numeric(values) => {
                    *values = Values::Mapped(column.as_primitive::<Float64Type>().values().clone())
                }
                TargetColumn::Nominal { codes, .. } => {
                    *codes = Values::Mapped(column.as_primitive::<UInt16Type>().values().clone());
                }
                TargetColumn::Labels(labels) => *labels = labels.read(column.as_list())?,
            }
        }
        let mut rest = columns[self.n_kept()..].iter();
        if let Some(weights) = self.weighted.then(|| rest.next()).flatten() {
            answers.weights = Values::Mapped(weights.as_primitive::<Float64Type>().values().clone());
        }
        if let Some(hashes) = self.grouped.then(|| rest.next()).flatten() {
            answers.groups = Values::Mapped(hashes.as_primitive::<UInt64Type>().values().clone());
        }
        Ok(answers)
    }
}

/// A cell of codes of `bytes` bytes.
fn cell(bytes: usize) -> DataType {
    DataType::FixedSizeBinary((BAND * bytes) as i32)
}

/// A chunk as a record batch, with the targets of `answers` from row `first` on.
fn batch(
    book: &Codebook,
    chunk: Chunk,
    answers: &Answers,
    first: usize,
) -> std::result::Result<RecordBatch, ArrowError> {
    fn arrays<C: Code>(bands: Bands<C>) -> impl Iterator<Item = std::result::Result<ArrayRef, ArrowError>> {
        let size = size_of::<[C; BAND]>() as i32;
        let buffers = bands.into_shared().buffers().into_iter().map(ScalarBuffer::into_inner);
        buffers.map(move |bytes| Ok(Arc::new(FixedSizeBinaryArray::try_new(size, bytes, None)?) as ArrayRef))
    }
    let codes = arrays(chunk.narrow).chain(arrays(chunk.wide));
    let mut columns = codes.collect::<std::result::Result<Vec<_>, _>>()?;
    columns.extend(answers.columns(first, chunk.rows));
    let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows));
    RecordBatch::try_new_with_options(book.schema(), columns, &options)
}

/// The bands in `columns`, of `rows` rows.
fn bands<C: Code>(rows: usize, columns: &[ArrayRef]) -> Bands<C> {
    Bands::mapped(
        rows,
        columns.iter().map(|column| aligned(column.as_fixed_size_binary().values().clone(), rows * BAND)).collect(),
    )
}

/// The first `count` numbers in `bytes`, copied only if they do not lie as the processor wants them.
fn aligned<T: ArrowNativeType>(bytes: Buffer, count: usize) -> ScalarBuffer<T> {
    match bytes.as_ptr().align_offset(align_of::<T>()) {
        0 => ScalarBuffer::new(bytes, 0, count),
        _ => ScalarBuffer::new(Buffer::from_slice_ref(&bytes[..]), 0, count),
    }
}
