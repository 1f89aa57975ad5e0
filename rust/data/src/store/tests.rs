use crate::profile::{Categories, MISSING_U8, MISSING_U16};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::intake::Unlabelled;
use crate::schema::{Problem, Roles, Targets};
use crate::source::TableSource;
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::random::{Purpose, stream};
use ferrank_runtime::scratch::Scratch;

/// `rows` with one column of each kind, a target and weights; a row is left out if its target is
/// missing or its weight 0.
fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("few", Arc::new(rows.iter().map(|row| row.few).collect::<Float64Array>())),
        ("many", Arc::new(rows.iter().map(|row| Some(row.many)).collect::<Float64Array>())),
        ("word", Arc::new(rows.iter().map(|row| row.word.as_deref()).collect::<StringArray>())),
        ("y", Arc::new(rows.iter().map(|row| row.y).collect::<Float64Array>())),
        ("w", Arc::new(rows.iter().map(|row| Some(row.w)).collect::<Float64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

#[derive(Debug, Clone)]
struct Row {
    few: Option<f64>,
    many: f64,
    word: Option<String>,
    y: Option<f64>,
    w: f64,
}

impl Row {
    /// Row number `i` of a long table.
    fn numbered(i: usize) -> Self {
        Row {
            few: (i % 11 != 10).then_some((i % 3) as f64),
            many: ((i * 7_919) % 1_000_003) as f64,
            word: (!i.is_multiple_of(13)).then(|| format!("w{}", i % 290)),
            y: (!i.is_multiple_of(5)).then_some(i as f64),
            w: (i % 7) as f64,
        }
    }
}

fn rows(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    let row = (
        prop::option::weighted(0.9, prop_oneof![Just(-1.5), Just(0.0), Just(-0.0), Just(7.0)]),
        -1e6..1e6f64,
        prop::option::weighted(0.9, 0..300u32),
        prop::option::weighted(0.9, -5.0..5.0f64),
        prop_oneof![1 => Just(0.0), 4 => 0.0..9.0f64],
    );
    let row = row.prop_map(|(few, many, word, y, w)| Row { few, many, word: word.map(|i| format!("w{i}")), y, w });
    vec(row, count)
}

/// Profile and store of `batch`, read in pieces that begin at `borders`.
fn coded(batch: &RecordBatch, borders: &[usize], max_bins: usize) -> (Profile, CodeStore) {
    kept(batch, borders, max_bins, Keep::Memory)
}

fn kept(batch: &RecordBatch, borders: &[usize], max_bins: usize, keep: Keep<'_>) -> (Profile, CodeStore) {
    with_intake(batch, borders, |intake| of_intake(intake, max_bins, keep))
}

fn of_intake(intake: &Intake<'_>, max_bins: usize, keep: Keep<'_>) -> (Profile, CodeStore) {
    let profile = Profile::new(intake, max_bins).unwrap();
    let store = CodeStore::new(intake, &profile, profile.counts, false, keep).unwrap();
    (profile, store)
}

fn with_intake<T>(batch: &RecordBatch, borders: &[usize], work: impl FnOnce(&Intake<'_>) -> T) -> T {
    with_memory(None, batch, borders, work)
}

fn with_memory<T>(
    memory: Option<u64>,
    batch: &RecordBatch,
    borders: &[usize],
    work: impl FnOnce(&Intake<'_>) -> T,
) -> T {
    let pieces = borders.windows(2).map(|pair| batch.slice(pair[0], pair[1] - pair[0])).collect();
    let source = TableSource::new("table", batch.schema(), pieces).unwrap();
    let roles = Roles::new(Targets::Named(vec!["y".into()])).with_weight(Some("w".into()));
    let problem = Problem::resolve(&batch.schema(), &roles, "table").unwrap();
    let monitor = Monitor::default();
    work(&Intake { memory, ..Intake::new(&source, &problem, Unlabelled::Ignore, &monitor) })
}

/// A store of several chunks: there is little memory.
fn in_chunks(batch: &RecordBatch, borders: &[usize], max_bins: usize) -> (Profile, CodeStore) {
    with_memory(Some(1 << 20), batch, borders, |intake| of_intake(intake, max_bins, Keep::Memory))
}

/// All codes of a feature, missing as 65,535.
fn column(store: &CodeStore, feature: usize) -> Vec<u16> {
    let of_chunk = |chunk: &Chunk| -> Vec<u16> {
        let widen = |code: u8| if code == MISSING_U8 { MISSING_U16 } else { u16::from(code) };
        let code = |row| match store.slots[feature] {
            Slot::Narrow(slot) => widen(chunk.narrow.column(slot).at(row)),
            Slot::Wide(slot) => chunk.wide.column(slot).at(row),
            Slot::Sparse(_) => panic!("no feature is sparse"),
        };
        (0..chunk.rows).map(code).collect()
    };
    store.chunks.iter().flat_map(of_chunk).collect()
}

/// Position of each value among the distinct ones.
fn positions<T: PartialOrd + Clone>(values: &[Option<T>]) -> Vec<u16> {
    let mut distinct: Vec<T> = values.iter().flatten().cloned().collect();
    distinct.sort_by(|a, b| a.partial_cmp(b).unwrap());
    distinct.dedup();
    let position = |value: &Option<T>| match value {
        Some(value) => distinct.iter().position(|other| other == value).unwrap() as u16,
        None => MISSING_U16,
    };
    values.iter().map(position).collect()
}

fn check(rows: &[Row], store: &CodeStore, profile: &Profile) {
    let kept: Vec<&Row> = rows.iter().filter(|row| row.y.is_some() && row.w > 0.0).collect();
    assert_eq!((store.rows, store.weights.len()), (kept.len(), kept.len()));
    assert_eq!(column(store, 0), positions(&kept.iter().map(|row| row.few).collect::<Vec<_>>()));
    assert_eq!(column(store, 2), positions(&kept.iter().map(|row| row.word.clone()).collect::<Vec<_>>()));
    assert_eq!(**store.weights, kept.iter().map(|row| row.w).collect::<Vec<_>>());
    let TargetColumn::Numeric(y) = &store.targets[0] else { panic!("numbers") };
    assert_eq!(**y, kept.iter().map(|row| row.y.unwrap()).collect::<Vec<_>>());
    let unlabelled = rows.iter().filter(|row| row.y.is_none()).count() as u64;
    assert_eq!((profile.counts.rows, profile.counts.unlabelled), (rows.len() as u64, unlabelled));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn codes_are_naive_ones_for_any_chunking(
        rows in rows(5..400),
        cuts in vec(any::<Index>(), 0..6),
        max_bins in 4..300usize,
    ) {
        prop_assume!(rows.iter().any(|row| row.y.is_some() && row.w > 0.0));
        let batch = batch(&rows);
        let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(rows.len() + 1)).collect();
        borders.extend([0, rows.len()]);
        borders.sort_unstable();
        let (profile, whole) = coded(&batch, &[0, rows.len()], max_bins);
        check(&rows, &whole, &profile);
        let (profile, parts) = coded(&batch, &borders, max_bins);
        check(&rows, &parts, &profile);
        for feature in 0..3 {
            prop_assert_eq!(column(&whole, feature), column(&parts, feature));
        }
        let many = column(&whole, 1);
        prop_assert!(usize::from(*many.iter().max().unwrap()) < max_bins);
    }
}

#[test]
fn with_little_memory_chunks_end_at_65_536_kept_rows_wherever_batches_do() {
    let rows: Vec<Row> = (0..200_000).map(Row::numbered).collect();
    let batch = batch(&rows);
    let (profile, store) = in_chunks(&batch, &[0, 1, 65_535, 65_537, 150_000, 200_000], 255);
    check(&rows, &store, &profile);
    let heights: Vec<usize> = store.chunks.iter().map(|chunk| chunk.rows).collect();
    assert_eq!(heights, [65_536, 65_536, store.rows - 131_072]);
    // More rows than are sampled for quantiles.
    let (_, whole) = coded(&batch, &[0, 200_000], 255);
    assert_eq!(whole.chunks.len(), 1);
    check(&rows, &whole, &profile);
    assert!(column(&store, 1).iter().all(|&code| code < 255));
}

#[test]
fn a_store_in_scratch_files_and_one_of_parts_are_those_in_memory() {
    let rows: Vec<Row> = (0..150_000).map(Row::numbered).collect();
    let whole = batch(&rows);
    let scratch = Scratch::new(None);
    for max_bins in [255, 1000] {
        let (profile, memory) = coded(&whole, &[0, 150_000], max_bins);
        let (_, disk) = kept(&whole, &[0, 70_000, 150_000], max_bins, Keep::Scratch(&scratch));
        let of_intake = |intake: &Intake<'_>| Codebook::new(&profile, intake.problem, false, "table").unwrap();
        let book = with_intake(&whole, &[0, 150_000], of_intake);
        let parts: Vec<Part> = [0, 40_001, 40_001 + 70_000, 150_000]
            .windows(2)
            .map(|pair| {
                with_intake(&whole.slice(pair[0], pair[1] - pair[0]), &[0, pair[1] - pair[0]], |intake| {
                    let counts = Profile::new(intake, 0).unwrap().counts;
                    let part = Part::new(intake, &book, counts, Keep::Memory).unwrap();
                    let mut bytes = Vec::new();
                    part.write(&book, &mut bytes).unwrap();
                    Part::read(&book, bytes.into()).unwrap()
                })
            })
            .collect();
        let parted = CodeStore::from_parts(book, parts, Keep::Memory).unwrap();
        for store in [disk, parted] {
            check(&rows, &store, &profile);
            assert_eq!(store.row_bytes(), memory.row_bytes());
            for feature in 0..3 {
                assert_eq!(column(&store, feature), column(&memory, feature));
            }
        }
    }
}

#[test]
fn a_part_of_another_store_is_refused() {
    let batch = batch(&[Row { few: None, many: 1.0, word: None, y: Some(1.0), w: 1.0 }]);
    with_intake(&batch, &[0, 1], |intake| {
        let profile = Profile::new(intake, 10).unwrap();
        let book = Codebook::new(&profile, intake.problem, false, "table").unwrap();
        let mut bytes = Vec::new();
        Part::new(intake, &book, profile.counts, Keep::Memory).unwrap().write(&book, &mut bytes).unwrap();
        let problem = Problem { weight: None, ..intake.problem.clone() };
        let unweighted = Codebook::new(&profile, &problem, false, "table").unwrap();
        assert!(Part::read(&unweighted, bytes.clone().into()).unwrap_err().to_string().contains("other columns"));
        bytes.truncate(bytes.len() / 2);
        assert!(Part::read(&book, bytes.into()).unwrap_err().to_string().contains("damaged"));
    });
}

#[test]
fn label_sets_and_values_of_features_come_back_from_a_part_and_from_disk() {
    let labels =
        |row: usize| (!row.is_multiple_of(4)).then(|| (0..row % 4).map(move |label| Some(format!("a/{label}"))));
    let mut sets = ListBuilder::new(StringBuilder::new());
    (0..100).for_each(|row| sets.append_option(labels(row)));
    let few = (0..100).map(|row| (row % 9 > 0).then_some(f64::from(row % 5))).collect::<Float64Array>();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("few", Arc::new(few) as ArrayRef, true),
        ("sets", Arc::new(sets.finish()) as ArrayRef, true),
    ])
    .unwrap();
    let coded = |rows: std::ops::Range<usize>, keep: Keep<'_>, book: Option<&Codebook>| {
        let part = batch.slice(rows.start, rows.len());
        let source = TableSource::new("table", part.schema(), vec![part]).unwrap();
        let problem =
            Problem::resolve(&batch.schema(), &Roles::new(Targets::Named(vec!["sets".into()])), "table").unwrap();
        let monitor = Monitor::default();
        let intake = Intake::new(&source, &problem, Unlabelled::Use, &monitor);
        let profile = Profile::new(&intake, 255).unwrap();
        let book = book.cloned().unwrap_or_else(|| Codebook::new(&profile, &problem, true, "table").unwrap());
        (Part::new(&intake, &book, profile.counts, keep).unwrap(), book)
    };
    let scratch = Scratch::new(None);
    let (memory, book) = coded(0..100, Keep::Memory, None);
    let (disk, _) = coded(0..100, Keep::Scratch(&scratch), None);
    let sent = |rows| {
        let mut bytes = Vec::new();
        coded(rows, Keep::Memory, Some(&book)).0.write(&book, &mut bytes).unwrap();
        Part::read(&book, bytes.into()).unwrap()
    };
    let parts = vec![sent(0..33), sent(33..100)];
    let values = |parts: Vec<Part>, keep| {
        let store = CodeStore::from_parts(book.clone(), parts, keep).unwrap();
        let [TargetColumn::Labels(sets)] = &store.targets[..] else { panic!() };
        let [TargetColumn::Numeric(few)] = &store.values[..] else { panic!() };
        let sets: Vec<_> = (0..100).map(|row| sets.of(row).map(<[u32]>::to_vec)).collect();
        (sets, few.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    };
    let expected = values(vec![memory], Keep::Memory);
    assert_eq!(expected.0[..4], [None, Some(vec![0, 1]), Some(vec![0, 1, 2]), Some(vec![0, 1, 2, 3])]);
    assert_eq!(values(vec![disk], Keep::Scratch(&scratch)), expected);
    assert_eq!(values(parts, Keep::Scratch(&scratch)), expected);
}

#[test]
fn the_only_value_of_a_label_says_whether_all_rows_have_it() {
    let code = |names: &[&str]| {
        let categories = Categories::new(names.iter().map(|name| name.to_string()));
        label_code(&TargetColumn::Nominal { categories, codes: Values::default() }, "l")
    };
    for name in ["1", "True", "yes"] {
        assert_eq!(code(&[name]).unwrap(), 0.0, "{name}");
    }
    // None of the rows has the label.
    assert_eq!(code(&["0"]).unwrap(), 1.0);
    assert_eq!(code(&["0", "1"]).unwrap(), 1.0);
    assert!(code(&["a", "b", "c"]).unwrap_err().to_string().contains("'l' has 3 values"));
}

#[test]
fn shadows_are_the_codes_of_other_rows_in_memory_and_in_files() {
    // Two chunks, narrow and wide codes, missing values.
    let all: Vec<Row> = (0..110_000).map(Row::numbered).collect();
    let (_, mut store) = in_chunks(&batch(&all), &[0, all.len()], 400);
    assert!(store.chunks.len() > 1);
    let n_features = store.codings.len();
    let sources = store.draw_shadows(&mut stream(5, Purpose::Shadows, 0, 0));
    let mut sorted = sources.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..store.rows as u32));
    let scratch = Scratch::new(None);
    let copied = store.with_shadows(&sources, Keep::Memory, store.rows).unwrap();
    store.share();
    let shared = store.with_shadows(&sources, Keep::Memory, store.rows).unwrap();
    let by_chunk = store.with_shadows(&sources, Keep::Scratch(&scratch), 1).unwrap();
    let at_once = store.with_shadows(&sources, Keep::Scratch(&scratch), store.rows).unwrap();
    for both in [copied, shared, by_chunk, at_once] {
        assert_eq!((both.codings.len(), both.rows), (2 * n_features, store.rows));
        for feature in 0..n_features {
            let own = column(&store, feature);
            assert_eq!(column(&both, feature), own);
            let expected: Vec<u16> = sources.iter().map(|&source| own[source as usize]).collect();
            assert_eq!(column(&both, n_features + feature), expected);
        }
    }
}
