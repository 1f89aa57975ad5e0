//! Forest rankings by the public interface: the same bits for the same data, importances of small
//! tables, and errors that say what is wrong.

mod cases;
mod errors;
mod laws;

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_forest::{ForestParams, Score, rank};
use ferrank_ranking::Ranking;
use ferrank_runtime::error::Error;
use ferrank_runtime::monitor::Monitor;

const SCORES: [Score; 4] = [Score::Genie3, Score::Symbolic, Score::Coverage, Score::Permutation];

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn numbers(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn roles(targets: &[&str]) -> Roles {
    let targets = Targets::Named(targets.iter().map(|name| name.to_string()).collect());
    Roles::new(targets)
}

fn source(batches: Vec<RecordBatch>) -> TableSource {
    TableSource::new("table", batches[0].schema(), batches).unwrap()
}

fn ranked(batch: &RecordBatch, roles: &Roles, params: &ForestParams) -> Result<Ranking, Error> {
    rank(&source(vec![batch.clone()]), roles, params, 1, &Monitor::default())
}

fn message(batch: &RecordBatch, roles: &Roles, params: &ForestParams) -> String {
    ranked(batch, roles, params).unwrap_err().to_string()
}

fn few_trees(scores: &[Score]) -> ForestParams {
    ForestParams::default().with_n_estimators(3).with_scores(scores.to_vec())
}

/// All numbers of a ranking, to the bit.
fn bits(ranking: &Ranking) -> Vec<u64> {
    let numbers =
        ranking.scores.iter().flat_map(|s| s.importance.iter().chain(&s.monte_carlo_error).chain(&s.by_target));
    numbers.map(|number| number.to_bits()).collect()
}

/// Two features that matter, two that cannot.
fn plain(rows: usize) -> RecordBatch {
    let row = || (0..rows).map(|row| row as f64);
    table(vec![
        ("a", numbers(row().map(|x| x * 7.0 % 31.0))),
        ("constant", numbers(row().map(|_| 4.0))),
        ("b", texts((0..rows).map(|row| ["x", "y", "z"][row * row % 3]))),
        ("missing", Arc::new(Float64Array::new_null(rows))),
        ("y", numbers(row().map(|x| (x * 7.0 % 31.0).sin() + (x * x % 3.0)))),
        ("z", numbers(row().map(|x| x * 7.0 % 31.0))),
    ])
}
