//! What is fuzzed: each target takes any bytes, and neither panics nor runs on without end.
//!
//! `cargo +nightly fuzz run TARGET` lets libFuzzer guide them by coverage; `rust/ferrank/tests/fuzz.rs` runs the same
//! functions on any toolchain, from the same corpus.

use std::panic::{catch_unwind, set_hook};
use std::path::Path;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use ferrank::forest::{KeptForest, Output};
use ferrank::hierarchy::Hierarchy;
use ferrank::inspect::inspect;
use ferrank::monitor::Monitor;
use ferrank::profile::Profile;
use ferrank::run::{accumulate, read_accumulator};
use ferrank::schema::{Roles, Targets};
use ferrank::source::{ChunkSource, IpcSource, TableSource, open, read_json};
use ferrank::{ForestParams, RunOptions, Settings};
use xxhash_rust::xxh3::xxh3_64;

/// A target, which takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name; the corpus has a folder for each.
pub const TARGETS: [(&str, Target); 11] = [
    ("arff", arff),
    ("numbers", numbers),
    ("hierarchy", hierarchy),
    ("label_xml", label_xml),
    ("ipc", ipc),
    ("json", json),
    ("profile", profile),
    ("accumulator", accumulator),
    ("ledger", ledger),
    ("kept_forest", kept_forest),
    ("parquet", parquet),
];

/// Runs `target` under libFuzzer with a panic hook of our own. The hook of libFuzzer aborts at every panic, even at a panic
/// of the Arrow decoder that is caught and turned into an error; here only a panic that `target` does not catch aborts.
pub fn guided(target: Target, bytes: &[u8]) {
    static HOOK: Once = Once::new();
    static LAST: Mutex<String> = Mutex::new(String::new());
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    HOOK.call_once(|| set_hook(Box::new(move |panic| *last() = panic.to_string())));
    if catch_unwind(|| target(bytes)).is_err() {
        eprintln!("{}", last());
        std::process::abort();
    }
}

/// ARFF files: headers, dense and sparse rows.
pub fn arff(bytes: &[u8]) {
    let _ = ferrank_arff::is_arff(bytes);
    if let Ok(header) = ferrank_arff::Header::read(bytes) {
        // Few rows to a batch, so that there are several.
        header.batches(bytes, 3).take_while(Result::is_ok).for_each(drop);
    }
}

/// Numbers in text are those that Rust reads there.
pub fn numbers(bytes: &[u8]) {
    let text: String = String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect();
    let file = format!("@relation r\n@attribute a numeric\n@data\n{text}\n");
    let Ok(header) = ferrank_arff::Header::read(file.as_bytes()) else { return };
    let Some(Ok(batch)) = header.batches(file.as_bytes(), 3).next() else { return };
    let column = batch.column(0).as_any().downcast_ref::<Float64Array>().expect("a number");
    if let (Ok(number), 1) = (text.trim().parse::<f64>(), column.len())
        && !number.is_nan()
    {
        assert_eq!(column.value(0).to_bits(), number.to_bits(), "{text}");
    }
}

/// Hierarchies as paths, and as CLUS writes them in a header.
pub fn hierarchy(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Hierarchy::from_domain(&text, 0.75);
    if let Ok(hierarchy) = Hierarchy::from_paths(text.lines(), 0.75) {
        let edges: Vec<_> = hierarchy.edges().collect();
        let again = Hierarchy::from_edges(&edges, 0.75).expect("edges of a hierarchy");
        assert_eq!(again.names().len(), hierarchy.names().len());
    }
}

/// Label files of MULAN.
pub fn label_xml(bytes: &[u8]) {
    let data = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@data\n1,0\n";
    with_file("t.arff", data.as_bytes(), |path| {
        let labels = path.with_extension("xml");
        std::fs::write(&labels, bytes).expect("a file");
        let _ = open(path, Some(&labels)).map(|source| source.chunks().map(|chunks| chunks.for_each(drop)));
    });
}

/// Arrow files and streams: what is read from memory is what is read from a file in pieces.
pub fn ipc(bytes: &[u8]) {
    let Ok(memory) = IpcSource::from_buffer("bytes".into(), bytes.to_vec().into()) else { return };
    let whole = rows(&memory, None);
    if let Ok(source) = TableSource::new("table", memory.schema(), whole.clone().into_iter().collect()) {
        let _ = inspect(&source, &Monitor::default());
    }
    with_file("t.arrow", bytes, |path| {
        let Ok(file) = IpcSource::open(path) else { return };
        let all: Vec<usize> = (0..file.schema().fields().len()).collect();
        for columns in [None, Some(&all[..])] {
            if let (Some(whole), Some(read)) = (&whole, rows(&file, columns)) {
                assert_eq!(*whole, read);
            }
        }
    });
}

fn rows(source: &dyn ChunkSource, columns: Option<&[usize]>) -> Option<RecordBatch> {
    let chunks = match columns {
        Some(columns) => source.chunks_of(columns),
        None => source.chunks(),
    };
    let batches: Vec<_> = chunks.ok()?.collect::<Result<_, _>>().ok()?;
    concat_batches(batches.first()?.schema_ref(), &batches).ok()
}

/// JSON: lines of objects, and lists of them.
pub fn json(bytes: &[u8]) {
    with_file("t.json", bytes, |path| {
        let _ = read_json(path, "t.json", None, &Monitor::default());
    });
}

/// Profiles, with a checksum that is right.
pub fn profile(bytes: &[u8]) {
    let stream = &bytes[..bytes.len().saturating_sub(8)];
    let whole = [stream, &xxh3_64(stream).to_le_bytes()].concat();
    if let Ok(profile) = Profile::from_ipc(whole) {
        let _ = profile.to_ipc().map(Profile::from_ipc);
    }
}

/// Accumulators, which have checksums of their own.
pub fn accumulator(bytes: &[u8]) {
    if let Ok(accumulator) = read_accumulator(bytes.to_vec(), "bytes") {
        let _ = accumulator.ranking();
    }
}

/// Files from which a run goes on.
pub fn ledger(bytes: &[u8]) {
    with_file("run.ferrank", bytes, |path| {
        let options = RunOptions::default().with_threads(1).with_resume(Some(path));
        let (table, roles, settings) = run();
        let found = accumulate(table, roles, settings, &options, &Monitor::default());
        if let Ok(found) = found {
            static WANT: OnceLock<Vec<u8>> = OnceLock::new();
            let want = WANT.get_or_init(|| {
                let options = RunOptions::default().with_threads(1);
                accumulate(table, roles, settings, &options, &Monitor::default()).unwrap().to_ipc().unwrap()
            });
            assert!(*want == found.to_ipc().unwrap(), "a resumed run has other bits");
        }
    });
}

/// Kept forests, which predict the rows of a table.
pub fn kept_forest(bytes: &[u8]) {
    let Ok(forest) = KeptForest::from_ipc(bytes.to_vec()) else { return };
    let _ = (forest.description(), forest.interactions(), forest.trends());
    for output in [Output::default(), Output::Shares, Output::Leaves] {
        let _ = forest.predict(&run().0, output, 1, &Monitor::default(), |_| Ok(()));
    }
}

/// Parquet files, which are recognised by their content.
pub fn parquet(bytes: &[u8]) {
    with_file("t.parquet", bytes, |path| {
        let Ok(file) = open(path, None) else { return };
        let all: Vec<usize> = (0..file.schema().fields().len()).collect();
        let whole = rows(&*file, None);
        assert_eq!(whole, rows(&*file, Some(&all)));
        if let (Some(whole), Some(n_rows)) = (whole, file.rows_hint()) {
            assert_eq!(whole.num_rows() as u64, n_rows, "other rows than the footer says");
        }
    });
}

/// What the ledger is of, and what a kept forest predicts.
fn run() -> &'static (TableSource, Roles, Settings) {
    static RUN: OnceLock<(TableSource, Roles, Settings)> = OnceLock::new();
    RUN.get_or_init(|| {
        let numbers = |by: usize| Arc::new((0..40).map(|i| (i * by % 97) as f64).collect::<Float64Array>()) as ArrayRef;
        let words = (0..40).map(|i| Some(["x", "y", "z"][i * 7 % 3])).collect::<StringArray>();
        let columns = [("a", numbers(37)), ("word", Arc::new(words) as ArrayRef), ("y", numbers(5))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let table = TableSource::new("table", batch.schema(), vec![batch]).unwrap();
        (table, Roles::new(Targets::Last(1)), ForestParams::default().with_n_estimators(3).into())
    })
}

/// Calls `use_it` with the path of a file `name` with this content.
fn with_file(name: &str, content: &[u8], use_it: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("a file");
    use_it(&path);
}

/// A file from which the run of the target `ledger` goes on, and its accumulator.
pub fn whole_ledger() -> (Vec<u8>, Vec<u8>) {
    let (table, roles, settings) = run();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.ferrank");
    let options = RunOptions::default().with_threads(1).with_resume(Some(&path));
    let found = accumulate(table, roles, settings, &options, &Monitor::default()).expect("a run");
    (std::fs::read(&path).expect("its file"), found.to_ipc().expect("its contributions"))
}
