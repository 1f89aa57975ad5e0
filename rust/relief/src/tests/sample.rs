//! Rankings of some of the rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::{ChunkSource, SampledSource, TableSource};
use ferrank_ranking::RunOptions;
use ferrank_runtime::monitor::Monitor;

use super::uniform;
use crate::{Iterations, ReliefParams, accumulate, rank};

fn table(rows: u64) -> TableSource {
    let column = |which: u64| -> ArrayRef {
        Arc::new((0..rows).map(|row| uniform(which * 1_000_000 + row)).collect::<Float64Array>())
    };
    let batch = RecordBatch::try_from_iter([("a", column(1)), ("b", column(2)), ("y", column(3))]).unwrap();
    TableSource::new("table", batch.schema(), vec![batch]).unwrap()
}

#[test]
fn rows_that_are_not_drawn_take_no_part() {
    let (source, monitor) = (table(500), Monitor::default());
    let roles = Roles::new(Targets::Last(1));
    let params = ReliefParams::default().with_seed(3).with_n_iterations(vec![Iterations::Share(0.5)]);
    let sample = SampledSource::new(&source, 3, 200, 500);
    let batches = sample.chunks().unwrap().map(Result::unwrap).collect();
    let alone = TableSource::new("table", source.schema(), batches).unwrap();
    let expected = rank(&alone, &roles, &params, 1, &monitor).unwrap();
    for drawn in [Iterations::Count(200), Iterations::Share(0.4)] {
        let found = rank(&source, &roles, &params.clone().with_max_samples(drawn), 1, &monitor).unwrap();
        assert_eq!(found.scores[0].importance, expected.scores[0].importance);
    }
    let all = rank(&source, &roles, &params, 1, &monitor).unwrap();
    assert_ne!(all.scores[0].importance, expected.scores[0].importance);
    let more = rank(&source, &roles, &params.with_max_samples(Iterations::Count(501)), 1, &monitor).unwrap();
    assert_eq!(all.scores[0].importance, more.scores[0].importance);
}

#[test]
fn a_part_of_the_blocks_does_not_draw_rows() {
    let options = RunOptions::default().with_keys(Some(0..1));
    let params = ReliefParams::default().with_max_samples(Iterations::Count(20));
    let failed = accumulate(&table(50), &Roles::new(Targets::Last(1)), &params, &options, &Monitor::default());
    assert!(failed.unwrap_err().to_string().starts_with("max_samples: "));
}
