//! Parquet files.
//!
//! A file is read row group by row group ([`groups`]), by copies of its pages, and never mapped: see [`super::file`]. It is
//! foreign bytes: what its footer claims is checked before rows are read, text is checked to be UTF-8, and a panic of the
//! decoder becomes an error.

mod bytes;
mod delta;
mod groups;
mod pages;
mod thrift;
mod types;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::checked::Checked;
use super::file::InputFile;
use super::{ChunkSource, Chunks, valid};
use bytes::MARK;
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::scratch::Scratch;
use groups::{Group, OpenFile};

/// A Parquet file.
///
/// ```no_run
/// use ferrank_data::source::{ChunkSource, ParquetSource};
///
/// let rows = ParquetSource::open("measurements.parquet".as_ref(), None)?;
/// assert!(rows.rows_hint().is_some());
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct ParquetSource {
    file: OpenFile,
    scratch: Option<PathBuf>,
}

impl ParquetSource {
    /// Opens the file at `path`; row groups that take much memory go by way of files in the folder `scratch`, or in the
    /// system's temporary one.
    ///
    /// # Errors
    /// It cannot be read, is no Parquet file, or its footer is damaged.
    pub fn open(path: &Path, scratch: Option<&Path>) -> Result<Self> {
        Self::from_file(InputFile::open(path)?, scratch)
    }

    pub(super) fn from_file(file: InputFile, scratch: Option<&Path>) -> Result<Self> {
        Ok(ParquetSource { file: OpenFile::new(file)?, scratch: scratch.map(PathBuf::from) })
    }

    pub(super) fn recognises(start: &[u8]) -> bool {
        start.starts_with(MARK)
    }

    /// A pass over the columns at these places.
    fn pass(&self, places: Vec<usize>) -> Result<Chunks<'_>> {
        self.file.bytes.check()?;
        let fields: Vec<_> = places.iter().map(|&place| self.file.columns.schema.field(place).clone()).collect();
        Ok(Box::new(Pass {
            source: self,
            schema: Arc::new(Schema::new(fields)),
            places,
            numbers: 0..self.file.metadata.num_row_groups(),
            group: None,
        }))
    }
}

impl ChunkSource for ParquetSource {
    fn schema(&self) -> SchemaRef {
        self.file.columns.schema.clone()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        self.pass((0..self.file.columns.schema.fields().len()).collect())
    }

    fn chunks_of(&self, columns: &[usize]) -> Result<Chunks<'_>> {
        self.pass(columns.to_vec())
    }

    fn name(&self) -> &str {
        self.file.bytes.name()
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.file.sizes.rows())
    }
}

struct Pass<'a> {
    source: &'a ParquetSource,
    /// Of the columns at `places`.
    schema: SchemaRef,
    places: Vec<usize>,
    /// Row groups that were not begun.
    numbers: Range<usize>,
    group: Option<Group>,
}

impl Pass<'_> {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let source = self.source;
        loop {
            let group = match &mut self.group {
                Some(group) => group,
                None => {
                    let Some(number) = self.numbers.next() else { return Ok(None) };
                    let scratch = Scratch::new(source.scratch.as_deref());
                    self.group.insert(Group::open(&source.file, number, &self.places, &scratch)?)
                }
            };
            let Some((n_rows, columns)) = source.file.bytes.decoded(|| group.next())? else {
                self.group = None;
                continue;
            };
            let schema = self.schema.clone();
            let batch = source.file.bytes.decoded(|| {
                let columns = columns.iter().zip(schema.fields());
                let columns: Checked<_> =
                    columns.map(|(column, field)| types::stored(column, field.data_type())).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
                let batch = RecordBatch::try_new_with_options(schema.clone(), columns?, &options);
                let batch = batch.map_err(|error| error.to_string())?;
                valid::check(&batch)?;
                Ok(batch)
            });
            return batch.map(Some);
        }
    }

    /// `error`, with the name of the column of the last row group that cannot be read, if there is one.
    fn blamed(&self, error: Error) -> Error {
        let Some(number) = self.numbers.start.checked_sub(1) else { return error };
        let (file, scratch) = (&self.source.file, Scratch::new(self.source.scratch.as_deref()));
        let failure = |some: Range<usize>| {
            let read = || {
                let mut group = Group::open(file, number, &self.places[some], &scratch)?;
                while file.bytes.decoded(|| group.next())?.is_some() {}
                Ok(())
            };
            read().err()
        };
        // The first half of those that are left, if it fails, else the second, so that many columns are read a few times.
        let mut some = 0..self.places.len();
        while some.len() > 1 {
            let middle = some.start + some.len() / 2;
            match failure(some.start..middle) {
                Some(_) => some.end = middle,
                None => some.start = middle,
            }
        }
        let name = some.clone().next().map(|place| self.schema.field(place).name());
        let blamed = name.zip(failure(some)).map(|(name, error)| file.bytes.in_column(error, name));
        blamed.unwrap_or(error)
    }
}

impl Iterator for Pass<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().map_err(|error| self.blamed(error));
        if next.is_err() {
            // Nothing comes after an error.
            (self.numbers, self.group) = (0..0, None);
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int8Type;
    use arrow_array::{
        Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, DurationSecondArray, Float64Array, Int8Array,
        Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow_cast::cast;
    use arrow_schema::DataType;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use rayon::ThreadPoolBuilder;
    use tempfile::TempDir;

    use super::groups::Limits;
    use super::*;
    use crate::row_labels::PANDAS;

    const ROWS: usize = 3_000;

    fn table() -> RecordBatch {
        let dictionary = |values: ArrayRef| -> ArrayRef {
            let keys = (0..ROWS).map(|row| (row % 7 != 3).then_some((row * row % values.len()) as i8));
            Arc::new(DictionaryArray::<Int8Type>::try_new(keys.collect::<Int8Array>(), values).unwrap())
        };
        let numbers = |by: usize| (0..ROWS).map(move |row| (row % 11 != 5).then_some((row * by % 97) as f64));
        let columns: [(&str, ArrayRef); 11] = [
            ("x", Arc::new(numbers(3).collect::<Float64Array>())),
            ("x.1", Arc::new(numbers(5).collect::<Float64Array>())),
            ("x.1.y", Arc::new((0..ROWS as i64).collect::<Int64Array>())),
            ("word", Arc::new((0..ROWS).map(|row| Some(format!("word {}", row % 1_000))).collect::<StringArray>())),
            ("text", dictionary(Arc::new(StringArray::from(vec!["b", "a", "c"])))),
            ("number", dictionary(Arc::new(Int64Array::from(vec![30, 10, 20])))),
            ("whether", dictionary(Arc::new(BooleanArray::from(vec![true, false])))),
            ("lasting", dictionary(Arc::new(DurationSecondArray::from(vec![3, 1])))),
            ("zoned", dictionary(Arc::new(TimestampMicrosecondArray::from(vec![3, 1]).with_timezone("+02:00")))),
            ("after", Arc::new(DurationSecondArray::from_iter_values(0..ROWS as i64))),
            ("y", Arc::new(numbers(7).collect::<Float64Array>())),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn write(folder: &TempDir, rows: &RecordBatch) -> PathBuf {
        let path = folder.path().join("t.parquet");
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2_000)).build();
        let file = fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
        writer.write(rows).unwrap();
        writer.close().unwrap();
        path
    }

    /// The rows as text, without time zones, which the names of categories do not have.
    fn shown(batches: &[RecordBatch], column: usize) -> Vec<Option<String>> {
        let text = |batch: &RecordBatch| {
            let values = batch.column(column);
            let values = match values.data_type() {
                DataType::Dictionary(_, kind) => cast(values, kind).unwrap(),
                _ => values.clone(),
            };
            let values = match values.data_type() {
                DataType::Timestamp(..) | DataType::Duration(_) => cast(&values, &DataType::Int64).unwrap(),
                _ => values,
            };
            let text = cast(&values, &DataType::Utf8).unwrap();
            text.as_string::<i32>().iter().map(|text| text.map(String::from)).collect::<Vec<_>>()
        };
        batches.iter().flat_map(text).collect()
    }

    #[test]
    fn rows_are_the_same_however_much_is_read_at_a_time() {
        let (folder, rows) = (TempDir::new().unwrap(), table());
        let path = write(&folder, &rows);
        let mut source = ParquetSource::open(&path, Some(folder.path())).unwrap();
        assert_eq!(source.rows_hint(), Some(ROWS as u64));
        let kinds = [4, 5, 6, 7, 8].map(|column| source.schema().field(column).data_type().to_string());
        let wanted = ["Utf8", "Int64", "Boolean", "Duration(s)", "Timestamp(µs)"];
        assert_eq!(kinds, wanted.map(|kind| format!("Dictionary(Int32, {kind})")));
        assert_eq!(source.schema().field(9).data_type(), rows.schema().field(9).data_type());
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        // Side by side; in memory, a few columns at a time; by way of files.
        for (group, part) in [(64 << 20, 24 << 20), (230_000, 60_000), (50_000, 40_000)] {
            source.file.limits = Limits { group, part, column: 10_000, shared: 0, texts: 10_000 };
            let read = || source.chunks().unwrap().collect::<Result<Vec<_>>>().unwrap();
            let found = read();
            for column in 0..rows.num_columns() {
                assert_eq!(shown(&found, column), shown(std::slice::from_ref(&rows), column), "{group} {column}");
            }
            assert_eq!(pool.install(read), found);
            let some: Vec<_> = source.chunks_of(&[2, 5]).unwrap().collect::<Result<_>>().unwrap();
            assert_eq!(shown(&some, 1), shown(&found, 5));
            let none: Vec<_> = source.chunks_of(&[]).unwrap().collect::<Result<_>>().unwrap();
            assert_eq!(none.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS);
        }
    }

    #[test]
    fn any_damage_is_an_error_or_gives_all_rows() {
        let folder = TempDir::new().unwrap();
        let whole = fs::read(write(&folder, &table().slice(0, 40))).unwrap();
        let path = folder.path().join("damaged.parquet");
        let mut n_errors = 0;
        let ends = (1..whole.len()).step_by(37).map(|end| whole[..end].to_vec());
        let flips = (0..whole.len()).step_by(7).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            bytes
        });
        for bytes in ends.chain(flips) {
            fs::write(&path, bytes).unwrap();
            let read = ParquetSource::open(&path, None).and_then(|source| {
                let rows = source.chunks()?.map(|batch| Ok(batch?.num_rows())).sum::<Result<usize>>()?;
                assert_eq!(Some(rows as u64), source.rows_hint());
                Ok(())
            });
            if let Err(error) = read {
                n_errors += 1;
                assert!(error.to_string().contains("damaged.parquet: "), "{error}");
            }
        }
        assert!(n_errors > 100, "{n_errors}");
    }

    #[test]
    fn text_that_is_not_utf_8_is_an_error() {
        let folder = TempDir::new().unwrap();
        let texts = |word: &str| {
            RecordBatch::try_from_iter([("a", Arc::new(StringArray::from(vec![word; 50])) as ArrayRef)]).unwrap()
        };
        let path = write(&folder, &texts("caffee"));
        let bytes = fs::read(&path).unwrap();
        let changed: Vec<u8> = match bytes.windows(6).position(|found| found == b"caffee") {
            Some(at) => [&bytes[..at + 5], b"\xe9", &bytes[at + 6..]].concat(),
            None => panic!("the word is not in the file"),
        };
        fs::write(&path, changed).unwrap();
        let error = ParquetSource::open(&path, None).unwrap().chunks().unwrap().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("t.parquet: column 'a' is damaged: "), "{error}");
        assert!(error.to_string().contains("UTF-8"), "{error}");
        let binary = RecordBatch::try_from_iter([("a", Arc::new(BinaryArray::from(vec![&b"\xe9"[..]])) as ArrayRef)]);
        let source = ParquetSource::open(&write(&folder, &binary.unwrap()), None).unwrap();
        assert_eq!(source.schema().field(0).data_type(), &DataType::Binary);
    }

    #[test]
    fn a_file_that_is_changed_is_an_error() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &table());
        let source = ParquetSource::open(&path, None).unwrap();
        let mut chunks = source.chunks().unwrap();
        assert!(chunks.next().unwrap().is_ok());
        fs::write(&path, b"PAR1").unwrap();
        let error = chunks.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("was changed while it was read"), "{error}");
        assert!(chunks.next().is_none());
        assert!(source.chunks().is_err());
    }

    #[test]
    fn a_file_that_the_system_does_not_read_is_not_called_damaged() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &table());
        // Of many files, the last are opened for each piece.
        let sources: Vec<_> = (0..20).map(|_| ParquetSource::open(&path, None).unwrap()).collect();
        let mut chunks = sources[19].chunks().unwrap();
        assert!(chunks.next().unwrap().is_ok());
        fs::remove_file(&path).unwrap();
        let error = chunks.next().unwrap().unwrap_err().to_string();
        assert!(!error.contains("damaged") && error.contains("No such file"), "{error}");
    }

    #[test]
    fn what_pandas_notes_about_a_frame_is_kept() {
        let folder = TempDir::new().unwrap();
        let rows = table();
        let note = r#"{"index_columns": ["word"]}"#;
        let schema = rows.schema().as_ref().clone().with_metadata([(PANDAS.into(), note.into())].into());
        let path = write(&folder, &rows.with_schema(Arc::new(schema)).unwrap());
        let schema = ParquetSource::open(&path, None).unwrap().schema();
        assert_eq!(schema.metadata().get(PANDAS).map(String::as_str), Some(note));
    }
}
