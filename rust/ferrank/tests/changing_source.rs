//! A source whose rows change between two passes is an error where values show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use ferrank::prelude::*;
use ferrank::source::Chunks;

/// The first batch on the first pass, the second one on all others.
struct ChangingSource {
    batches: [RecordBatch; 2],
    is_read: AtomicBool,
}

impl ChangingSource {
    fn new(first: RecordBatch, later: RecordBatch) -> Self {
        ChangingSource { batches: [first, later], is_read: AtomicBool::new(false) }
    }
}

impl ChunkSource for ChangingSource {
    fn schema(&self) -> SchemaRef {
        self.batches[0].schema()
    }

    fn chunks(&self) -> Result<Chunks<'_>> {
        let batch = &self.batches[usize::from(self.is_read.swap(true, Ordering::Relaxed))];
        Ok(Box::new(std::iter::once(Ok(batch.clone()))))
    }

    fn name(&self) -> &str {
        "changing"
    }
}

/// Columns x, word and y; `x` and `word` end with the values given.
fn table(rows: usize, x: f64, word: &str) -> RecordBatch {
    let number = |row: usize| if row + 1 == rows { x } else { (row % 17) as f64 };
    let category = |row: usize| if row + 1 == rows { word } else { ["a", "b"][row % 2] };
    let columns: [(&str, ArrayRef); 3] = [
        ("x", Arc::new((0..rows).map(|row| Some(number(row))).collect::<Float64Array>())),
        ("word", Arc::new((0..rows).map(|row| Some(category(row))).collect::<StringArray>())),
        ("y", Arc::new((0..rows).map(|row| Some((row % 17) as f64)).collect::<Float64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn ranked(source: &ChangingSource, settings: &Settings) -> Result<Ranking> {
    let roles = Roles::new(Targets::Named(vec!["y".into()]));
    rank(source, &roles, settings, &RunOptions::default(), &Monitor::default())
}

#[test]
fn rows_that_change_between_passes_are_an_error() {
    let first = || table(100, 3.0, "a");
    let beyond_range = ("a number beyond the range", table(100, 17.5, "a"));
    let others = [
        ("a new category", table(100, 3.0, "c")),
        ("one row less", table(99, 3.0, "a")),
        ("one row more", table(101, 3.0, "a")),
    ];
    let check = |settings: &Settings, (change, later): &(&str, RecordBatch)| {
        let error = ranked(&ChangingSource::new(first(), later.clone()), settings).unwrap_err();
        assert!(error.to_string().contains("changing: the data changed"), "{change}: {error}");
    };
    let forest = Settings::from(ForestParams::default().with_n_estimators(2));
    let relief = Settings::from(ReliefParams::default());
    for settings in [&forest, &relief] {
        assert!(ranked(&ChangingSource::new(first(), first()), settings).is_ok());
        others.iter().for_each(|change| check(settings, change));
    }
    // Bins of a forest have no ends, so the number has one.
    check(&relief, &beyond_range);
}
