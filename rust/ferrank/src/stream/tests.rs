use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, DictionaryArray, Float32Array, Float64Array, Int64Array, NullArray, StringArray};
use arrow_schema::DataType;

use super::reservoir::{Draw, Reservoir};
use super::*;
use ferrank_data::schema::Targets;
use ferrank_forest::ForestParams;
use ferrank_relief::ReliefParams;
use ferrank_runtime::random::mix;

const PARAMS: StreamParams = StreamParams { block_rows: 100, reservoir_rows: 60, half_life: None };

fn uniform(column: u64, row: u64) -> f64 {
    (mix([3, column, row]) >> 11) as f64 / (1u64 << 53) as f64
}

/// Rows `first` … `end` of a stream in which `y` follows `a` and `word`.
fn rows(first: u64, end: u64) -> RecordBatch {
    let word = |row: u64| ["x", "y", "z"][(uniform(2, row) * 3.0) as usize];
    let y = |row| uniform(0, row) + f64::from(u8::from(word(row) == "x"));
    let numbers = |of: &dyn Fn(u64) -> f64| -> ArrayRef { Arc::new((first..end).map(of).collect::<Float64Array>()) };
    let known = |row| (uniform(4, row) > 0.1).then(|| word(row));
    RecordBatch::try_from_iter_with_nullable([
        ("a", numbers(&|row| uniform(0, row)), true),
        ("b", numbers(&|row| uniform(1, row)), true),
        ("word", Arc::new((first..end).map(known).collect::<StringArray>()) as ArrayRef, true),
        ("y", numbers(&y), true),
    ])
    .unwrap()
}

fn table(batch: &RecordBatch) -> TableSource {
    TableSource::new("batch", batch.schema(), vec![batch.clone()]).unwrap()
}

fn push(stream: &Stream, batch: &RecordBatch) -> Result<Stream> {
    stream.push(&table(batch), &RunOptions::default().with_threads(2), &Monitor::default())
}

fn ranking(stream: &Stream) -> Ranking {
    stream.ranking(&RunOptions::default(), &Monitor::default()).unwrap()
}

/// All numbers of a ranking, also those that are NaN.
fn text(ranking: &Ranking) -> String {
    format!("{ranking:?}")
}

/// Streams have no standard errors.
fn forest() -> Settings {
    Settings::Forest(ForestParams::default().with_n_estimators(7).with_max_bins(30).with_standard_errors(false))
}

fn relief() -> Settings {
    Settings::Relief(ReliefParams::default().with_n_neighbors(vec![2, 5]))
}

fn stream(settings: Settings, params: StreamParams) -> Stream {
    Stream::new(settings, Roles::new(Targets::Named(vec!["y".into()])), params).unwrap()
}

fn fed(settings: Settings, params: StreamParams, cuts: &[u64]) -> Stream {
    let cuts = cuts.iter().zip(&cuts[1..]);
    cuts.fold(stream(settings, params), |stream, (&first, &end)| push(&stream, &rows(first, end)).unwrap())
}

#[test]
fn no_cutting_of_the_rows_changes_a_bit() {
    let params = StreamParams { half_life: Some(150.0), ..PARAMS };
    for settings in [forest(), relief()] {
        let once = ranking(&fed(settings.clone(), params, &[0, 350]));
        let by_one: Vec<u64> = (0..=350).collect();
        for cuts in [&[0, 100, 200, 300, 350][..], &[0, 1, 99, 101, 349, 350], &by_one] {
            assert_eq!(text(&ranking(&fed(settings.clone(), params, cuts))), text(&once));
        }
        assert_eq!(once.n_rows, 300);
    }
}

#[test]
fn a_first_block_is_ranked_as_its_rows_are() {
    for settings in [forest(), relief()] {
        let roles = Roles::new(Targets::Named(vec!["y".into()]));
        for end in [40, 100] {
            let batch = rows(0, end);
            let (options, monitor) = (RunOptions::default(), Monitor::default());
            let mut whole = crate::run::rank(&table(&batch), &roles, &settings, &options, &monitor).unwrap();
            let streamed = ranking(&fed(settings.clone(), PARAMS, &[0, end]));
            // A complete block says no error of its forest.
            whole.model_error = streamed.model_error.clone();
            assert_eq!(text(&streamed), text(&whole));
        }
    }
}

#[test]
fn a_stream_goes_on_from_its_bytes() {
    for settings in [forest(), relief()] {
        for cut in [0, 30, 100, 230] {
            let first = fed(settings.clone(), PARAMS, &[0, cut][usize::from(cut == 0)..]);
            let bytes = first.to_bytes().unwrap();
            let again = push(&Stream::from_bytes(&bytes).unwrap(), &rows(cut, 350)).unwrap();
            assert_eq!(text(&ranking(&again)), text(&ranking(&fed(settings.clone(), PARAMS, &[0, 350]))));
            for length in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
                assert!(Stream::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
            }
        }
    }
}

#[test]
fn no_stream_is_saved_with_a_full_block() {
    let mut stream = fed(forest(), PARAMS, &[0, 30]);
    for (block_rows, is_whole) in [(31, true), (30, false)] {
        stream.params.block_rows = block_rows;
        assert_eq!(Stream::from_bytes(&stream.to_bytes().unwrap()).is_ok(), is_whole);
    }
}

#[test]
fn a_reservoir_is_a_uniform_sample_of_all_rows() {
    let (n_seeds, n_rows, capacity) = (400, 200, 20);
    let mut counts = [0; 4];
    for seed in 0..n_seeds {
        let mut reservoir = Reservoir::default();
        for first in (0..n_rows).step_by(25) {
            let block = rows(first, first + 25);
            reservoir
                .take_in(&[block.slice(0, 5), block.slice(5, 20)], first, Draw { seed, rate: 0.0, capacity })
                .unwrap();
        }
        assert_eq!(reservoir.numbers.len(), capacity);
        let held = reservoir.rows().unwrap()["a"].as_primitive::<Float64Type>().values().to_vec();
        let wanted: Vec<f64> = reservoir.numbers.iter().map(|&row| uniform(0, row)).collect();
        assert_eq!(held, wanted);
        reservoir.numbers.iter().for_each(|row| counts[(row / 50) as usize] += 1);
    }
    // 2,000 of each quarter are expected, give or take 37.
    assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
}

#[test]
fn a_half_life_keeps_recent_rows_twice_as_often() {
    let mut counts = [0.0; 4];
    for seed in 0..400 {
        let mut reservoir = Reservoir::default();
        let draw = Draw { seed, rate: std::f64::consts::LN_2 / 500.0, capacity: 20 };
        for first in (0..2_000).step_by(500) {
            reservoir.take_in(&[rows(first, first + 500)], first, draw).unwrap();
        }
        reservoir.numbers.iter().for_each(|row| counts[(row / 500) as usize] += 1.0);
    }
    // So few of so many are drawn as if they were put back; each ratio has a standard error of about 4 %.
    for pair in counts.windows(2) {
        assert!((1.7..2.35).contains(&(pair[1] / pair[0])), "{counts:?}");
    }
}

#[test]
fn memory_holds_a_block_and_a_reservoir_and_few_sums() {
    let stream = fed(forest(), PARAMS, &(0..=250).map(|batch| batch * 20).collect::<Vec<_>>());
    assert_eq!((stream.block.len(), stream.reservoir.numbers.len(), stream.n_blocks), (0, 60, 50));
    let small = fed(forest(), PARAMS, &(0..=100).map(|batch| batch * 20).collect::<Vec<_>>());
    let bytes = |stream: &Stream| stream.to_bytes().unwrap().len();
    assert!(bytes(&stream) < bytes(&small) + 1_000, "{} {}", bytes(&small), bytes(&stream));
}

#[test]
fn types_that_go_together_are_united() {
    let batch = |a: ArrayRef, word: ArrayRef| {
        let n = a.len();
        let y: ArrayRef = Arc::new(Float64Array::from_iter_values((0..n).map(|row| row as f64)));
        RecordBatch::try_from_iter_with_nullable([("a", a, true), ("word", word, true), ("y", y, true)]).unwrap()
    };
    let words: DictionaryArray<Int32Type> = ["u", "v"].into_iter().collect();
    let batches = [
        batch(Arc::new(NullArray::new(2)), Arc::new(words)),
        batch(Arc::new(Int64Array::from(vec![1, 2])), Arc::new(NullArray::new(2))),
        batch(Arc::new(Float32Array::from(vec![Some(0.5), None])), Arc::new(StringArray::from(vec!["w", "u"]))),
    ];
    let all = batches.iter().fold(stream(forest(), PARAMS), |stream, batch| push(&stream, batch).unwrap());
    let types: Vec<DataType> = all.schema.clone().unwrap().fields().iter().map(|f| f.data_type().clone()).collect();
    assert_eq!(types, [DataType::Float64, DataType::LargeUtf8, DataType::Float64]);
    assert_eq!(ranking(&all).n_rows, 6);

    let said = |batch: RecordBatch| push(&all, &batch).unwrap_err().to_string();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    let error = said(batch(text.clone(), text.clone()));
    assert!(error.contains("'a' is of type LargeUtf8") && error.contains("Float64"), "{error}");
    let renamed = rows(0, 2);
    assert!(said(renamed).contains("'b' where the batches before have 'word'"));
    let short = batch(text.clone(), text.clone()).project(&[0, 2]).unwrap();
    assert!(said(short).contains("'y' where the batches before have 'word'"));
}

#[test]
fn a_batch_that_will_not_do_changes_nothing() {
    let first = fed(relief(), PARAMS, &[0, 130]);
    let mut columns = rows(130, 300).columns().to_vec();
    columns[1] = Arc::new(Float64Array::from_iter_values((130..300).map(|row| [1.0, f64::INFINITY][row / 299])));
    let bad = RecordBatch::try_new(rows(0, 1).schema(), columns).unwrap();
    let error = push(&first, &bad).unwrap_err().to_string();
    assert!(error.contains("column 'b'") && error.contains("inf"), "{error}");
    assert_eq!(ranking(&push(&first, &rows(130, 350)).unwrap()), ranking(&fed(relief(), PARAMS, &[0, 350])));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let said = |params| Stream::new(forest(), Roles::new(Targets::Last(1)), params).unwrap_err().to_string();
    assert!(said(StreamParams { block_rows: 0, ..PARAMS }).contains("block_rows: 0"));
    for half_life in [0.0, 99.0, f64::NAN, f64::INFINITY] {
        assert!(said(StreamParams { half_life: Some(half_life), ..PARAMS }).contains("half_life"));
    }
    let roles = Roles::new(Targets::Named(vec!["word".into()]));
    let params = ReliefParams::default().with_unlabelled(ferrank_data::Unlabelled::Use);
    let stream = Stream::new(Settings::Relief(params), roles, PARAMS).unwrap();
    assert!(push(&stream, &rows(0, 9)).unwrap_err().to_string().contains("unlabelled"));
    let none = super::tests::stream(forest(), PARAMS).ranking(&RunOptions::default(), &Monitor::default());
    assert!(none.unwrap_err().to_string().contains("no row"));
}
