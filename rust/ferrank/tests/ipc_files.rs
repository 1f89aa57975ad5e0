//! Arrow files and streams: what is written is read, and what is damaged is refused.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, LargeStringArray, ListArray, NullArray,
    RecordBatch, StringArray, StringViewArray, UInt8Array,
};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{DataType, Field, Schema};
use ferrank_data::source::{ChunkSource, TableSource, open, spill, write_ipc};
use ferrank_runtime::error::Error;
use ferrank_runtime::monitor::Monitor;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;

/// Three rows of most types a column can have.
fn batch(start: i64) -> RecordBatch {
    let text = |name: &str| Some(format!("{name}{start}"));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int", Arc::new(Int64Array::from(vec![Some(start), None, Some(-1)]))),
        ("float", Arc::new(Float32Array::from(vec![0.5, f32::NAN, -2.0]))),
        ("byte", Arc::new(UInt8Array::from(vec![1, 2, 255]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("text", Arc::new(StringArray::from(vec![text("a"), None, text("b")]))),
        ("large", Arc::new(LargeStringArray::from(vec![text("c"), None, text("d")]))),
        ("view", Arc::new(StringViewArray::from_iter(vec![text("longer than twelve bytes"), None, text("e")]))),
        ("nominal", Arc::new(["x", "y", "x"].into_iter().collect::<DictionaryArray<Int8Type>>())),
        ("nothing", Arc::new(NullArray::new(3))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// The bytes of `batches` as a file or a stream.
fn bytes(batches: &[RecordBatch], stream: bool, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .with_dictionary_handling(DictionaryHandling::Delta)
        .try_with_compression(compression)
        .unwrap();
    let mut bytes = Vec::new();
    let schema = batches[0].schema();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    bytes
}

fn saved(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("table.arrow");
    // A new file each time: the old one may still be mapped.
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn read(path: &Path) -> Result<Vec<RecordBatch>, Error> {
    open(path, None)?.chunks()?.collect()
}

#[test]
fn files_and_streams_give_back_their_batches() {
    let folder = TempDir::new().unwrap();
    let batches = [batch(1), batch(2), batch(3)];
    for stream in [false, true] {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let path = saved(&folder, &bytes(&batches, stream, compression));
            let source = open(&path, None).unwrap();
            assert_eq!(source.rows_hint(), Some(9));
            assert_eq!(source.schema(), batches[0].schema());
            for _pass in 0..2 {
                let back: Vec<_> = source.chunks().unwrap().map(Result::unwrap).collect();
                assert_eq!(format!("{back:?}"), format!("{batches:?}"), "stream {stream}, {compression:?}");
            }
        }
    }
}

#[test]
fn streams_from_before_the_continuation_marker_are_read() {
    let folder = TempDir::new().unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let table = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let options = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut stream, &table.schema(), options).unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    drop(writer);
    assert_ne!(stream[..4], [0xff; 4]);
    assert_eq!(read(&saved(&folder, &stream)).unwrap(), [table]);
}

/// Columns that can be read in pieces, with so many rows that a batch of them is.
fn large(rows: usize) -> RecordBatch {
    let number = |i: usize| (i % 7 != 3).then_some(i as i64);
    let text = |i: usize| (i % 5 != 1).then(|| "ab".repeat(i % 4));
    let items = |i: usize| (i % 3 != 2).then(|| (0..i % 4).map(move |n| (n != 1).then_some((i + n) as i32)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int", Arc::new((0..rows).map(number).collect::<Int64Array>())),
        ("flag", Arc::new((0..rows).map(|i| (i % 11 != 0).then_some(i % 2 == 0)).collect::<BooleanArray>())),
        ("text", Arc::new((0..rows).map(text).collect::<StringArray>())),
        ("large", Arc::new((0..rows).map(text).collect::<LargeStringArray>())),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..rows).map(items)))),
        ("nominal", Arc::new((0..rows).map(|i| ["x", "y"][i % 2]).collect::<DictionaryArray<Int8Type>>())),
        ("nothing", Arc::new(NullArray::new(rows))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn concatenated(batches: &[RecordBatch]) -> RecordBatch {
    arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap()
}

#[test]
fn large_batches_are_read_in_pieces_and_unpacked_to_a_file() {
    let folder = TempDir::new().unwrap();
    let table = large(400_003);
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let path = saved(&folder, &bytes(std::slice::from_ref(&table), false, compression));
        let source = open(&path, None).unwrap();
        let read: Vec<_> = source.chunks().unwrap().map(Result::unwrap).collect();
        assert!(read.len() > 3, "{} pieces", read.len());
        assert_eq!(concatenated(&read), table, "{compression:?}");
        let some: Vec<_> = source.chunks_of(&[1, 4]).unwrap().map(Result::unwrap).collect();
        assert_eq!(concatenated(&some), table.project(&[1, 4]).unwrap(), "{compression:?}");
    }
}

#[test]
fn a_dictionary_that_unpacks_to_much_is_read() {
    let folder = TempDir::new().unwrap();
    let values = StringArray::from(vec!["a".repeat(9 << 20), "b".to_string()]);
    let keys = arrow_array::Int8Array::from(vec![1, 0, 1]);
    let column: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
    let table = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let path = saved(&folder, &bytes(std::slice::from_ref(&table), true, Some(CompressionType::ZSTD)));
    assert_eq!(read(&path).unwrap(), [table]);
}

fn nominal(values: &[Option<&str>]) -> RecordBatch {
    let mut builder = StringDictionaryBuilder::<Int8Type>::new();
    values.iter().for_each(|value| builder.append_option(*value));
    let column: ArrayRef = Arc::new(builder.finish());
    RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap()
}

fn texts(batches: &[RecordBatch]) -> Vec<Option<String>> {
    let texts = batches.iter().flat_map(|batch| {
        let text = arrow_cast::cast(batch.column(0), &DataType::Utf8).unwrap();
        text.as_string::<i32>().iter().map(|t| t.map(String::from)).collect::<Vec<_>>()
    });
    texts.collect()
}

#[test]
fn dictionaries_that_change_between_batches_survive() {
    let folder = TempDir::new().unwrap();
    let batches =
        [nominal(&[Some("x"), None, Some("y")]), nominal(&[Some("z"), Some("x")]), nominal(&[Some("y"), None])];
    let expected = texts(&batches);

    // A stream that replaces its dictionaries, read as it is and through a spill.
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    assert_eq!(texts(&read(&saved(&folder, &stream)).unwrap()), expected);
    let spilled = spill("stream", batches[0].schema(), batches.iter().cloned().map(Ok), None).unwrap();
    assert_eq!(texts(&spilled.chunks().unwrap().map(Result::unwrap).collect::<Vec<_>>()), expected);

    // A file, whose one dictionary grows.
    let path = folder.path().join("out.arrow");
    assert_eq!(write_ipc(&spilled, &path, &Monitor::default()).unwrap(), 7);
    let back = read(&path).unwrap();
    assert_eq!(texts(&back), expected);
    let dictionary = back[2].column(0).as_dictionary::<Int32Type>();
    assert_eq!(dictionary.values().as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["x", "y", "z"]);
}

#[test]
fn a_spilled_stream_can_be_read_again_and_again() {
    let batches = [batch(1), batch(2)];
    let source = spill("stream", batches[0].schema(), batches.iter().cloned().map(Ok), None).unwrap();
    assert_eq!((source.name(), source.rows_hint()), ("stream", Some(6)));
    for _pass in 0..2 {
        let back: Vec<_> = source.chunks().unwrap().map(Result::unwrap).collect();
        assert_eq!(format!("{back:?}"), format!("{batches:?}"));
    }
    let empty = spill("stream", batches[0].schema(), std::iter::empty(), None).unwrap();
    assert_eq!(empty.chunks().unwrap().count(), 0);
}

#[test]
fn a_spill_reports_what_stops_it() {
    let schema = batch(1).schema();
    let broken = [Ok(batch(1)), Err(Error::Data("the source broke".into()))];
    assert_eq!(spill("s", schema.clone(), broken.into_iter(), None).unwrap_err().to_string(), "the source broke");
    let other = Arc::new(Schema::new(vec![Field::new("a", DataType::Int8, true)]));
    assert!(matches!(spill("s", other, [Ok(batch(1))].into_iter(), None), Err(Error::Data(_))));
    let nowhere = Path::new("/nowhere/at/all");
    let error = spill("s", schema, std::iter::empty(), Some(nowhere)).unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if path == nowhere), "{error}");
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out.arrow");
    std::fs::write(&path, "before").unwrap();
    let table = TableSource::new("table", batch(1).schema(), vec![batch(1), batch(2)]).unwrap();

    let stopped = Monitor::default();
    stopped.stop();
    assert!(matches!(write_ipc(&table, &path, &stopped), Err(Error::Interrupted)));
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    assert_eq!(write_ipc(&table, &path, &Monitor::default()).unwrap(), 6);
    assert_eq!(read(&path).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 6);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    // Onto the file that is being read.
    let source = open(&path, None).unwrap();
    assert_eq!(write_ipc(source.as_ref(), &path, &Monitor::default()).unwrap(), 6);
    assert_eq!(read(&path).unwrap().len(), 2);

    let missing = folder.path().join("no/such/folder.arrow");
    assert!(matches!(write_ipc(&table, &missing, &Monitor::default()), Err(Error::File { .. })));
}

/// Reads damaged bytes. Anything but a panic, an endless loop or a huge allocation will do; an error
/// has to name the file.
fn read_damaged(folder: &TempDir, damaged: &[u8]) -> Option<usize> {
    let path = saved(folder, damaged);
    match read(&path) {
        Ok(batches) => Some(batches.iter().map(RecordBatch::num_rows).sum()),
        Err(error) => {
            assert!(error.to_string().contains("table.arrow"), "{error}");
            None
        }
    }
}

#[test]
fn files_cut_anywhere_are_refused() {
    let folder = TempDir::new().unwrap();
    for compression in [None, Some(CompressionType::ZSTD)] {
        let file = bytes(&[batch(1), batch(2)], false, compression);
        for length in 0..file.len() {
            assert_eq!(read_damaged(&folder, &file[..length]), None, "cut at {length} of {}", file.len());
        }
        let stream = bytes(&[batch(1), batch(2)], true, compression);
        let mut whole = 0;
        for length in 0..stream.len() {
            // A stream may end between two messages; then it has the rows of its whole batches.
            if let Some(rows) = read_damaged(&folder, &stream[..length]) {
                assert!(rows % 3 == 0, "cut at {length}");
                whole += 1;
            }
        }
        assert!(whole <= 8, "{whole} cuts went unnoticed");
    }
}

#[test]
fn flipped_bytes_never_take_the_process_down() {
    let folder = TempDir::new().unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut refused = 0;
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for stream in [false, true] {
            let good = bytes(&[batch(1), batch(2)], stream, compression);
            for _variant in 0..2_000 {
                let mut damaged = good.clone();
                for _flip in 0..rng.random_range(1..8) {
                    let at = rng.random_range(0..damaged.len());
                    damaged[at] = match rng.random_range(0..4) {
                        0 => 0,
                        1 => 0xff,
                        2 => 0x7f,
                        _ => rng.random(),
                    };
                }
                refused += usize::from(read_damaged(&folder, &damaged).is_none());
            }
        }
    }
    assert!(refused > 1_000, "only {refused} of 12,000 damaged files were refused");
}

#[test]
fn a_compressed_buffer_cannot_claim_more_than_it_can_hold() {
    let folder = TempDir::new().unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from(vec![7; 10_000]));
    let table = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let mut file = bytes(&[table], false, Some(CompressionType::ZSTD));
    let claim = 80_000_i64.to_le_bytes();
    let at = file.windows(8).position(|window| window == claim).unwrap();
    file[at..at + 8].copy_from_slice(&(1_i64 << 50).to_le_bytes());
    let error = read(&saved(&folder, &file)).unwrap_err();
    assert!(error.to_string().contains("claims to hold 1125899906842624"), "{error}");
}

#[test]
fn rows_without_data_are_not_believed() {
    let folder = TempDir::new().unwrap();
    let column: ArrayRef = Arc::new(NullArray::new(1 << 40));
    let table = RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap();
    let error = read(&saved(&folder, &bytes(&[table], false, None))).unwrap_err();
    assert!(error.to_string().contains("1099511627776 rows"), "{error}");
}

#[test]
fn a_file_that_is_written_to_or_cut_short_is_an_error_and_one_in_its_place_is_not() {
    let folder = TempDir::new().unwrap();
    let content = bytes(&[batch(0), batch(3)], false, None);
    let rows = |source: &dyn ChunkSource| -> Result<usize, Error> {
        source.chunks()?.map(|chunk| chunk.map(|chunk| chunk.num_rows())).sum()
    };
    let changed = |source: &dyn ChunkSource| rows(source).unwrap_err().to_string();
    let path = saved(&folder, &content);
    let source = open(&path, None).unwrap();
    let mut pass = source.chunks().unwrap();
    assert!(pass.next().unwrap().is_ok());
    File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(pass.next().unwrap().unwrap_err().to_string().contains("the file was changed while it was read"));
    assert!(pass.next().is_none());
    assert!(changed(&*source).contains("the file was changed"));

    std::fs::write(&path, &content).unwrap();
    let source = open(&path, None).unwrap();
    assert_eq!(rows(&*source).unwrap(), 6);
    File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    assert!(changed(&*source).contains("the file was changed"));

    std::fs::write(&path, &content).unwrap();
    let source = open(&path, None).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(rows(&*source).unwrap(), 6);
    std::fs::write(&path, "another file").unwrap();
    assert_eq!(rows(&*source).unwrap(), 6);
}
