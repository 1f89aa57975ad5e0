//! Parts that are searched apart find the rows that count among all.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use super::laws::{table, with_groups};
use crate::selection::{Selection, accumulate, beside, nearest, obstacle, queries, values};
use crate::{Iterations, Missing, ReliefParams, ReliefScore, Scaling};
use ferrank_data::intake::{Unlabelled, View};
use ferrank_data::profile::{Place, Profile, profile};
use ferrank_data::schema::{Problem, Roles, Targets};
use ferrank_data::source::{ChunkSource, TableSource};
use ferrank_neighbors::ranks::to_mid_ranks;
use ferrank_ranking::{Accumulator, RunOptions};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Rows by ascending number.
type Rows = (Vec<u32>, RecordBatch);

fn source(batch: &RecordBatch) -> TableSource {
    TableSource::new("table", batch.schema(), vec![batch.clone()]).unwrap()
}

fn roles(batch: &RecordBatch, target: &str) -> Roles {
    let drop = ["y", "class"].iter().filter(|name| **name != target).map(|name| name.to_string()).collect();
    let groups = batch.column_by_name("g").map(|_| "g".to_string());
    Roles::new(Targets::Named(vec![target.into()])).with_drop(drop).with_groups(groups)
}

fn profile_of(batch: &RecordBatch, roles: &Roles) -> Profile {
    let source = source(batch);
    let view = View::new(&source, roles, Unlabelled::Error);
    profile(view, 0, Place::default(), 1, &Monitor::default()).unwrap()
}

fn at((numbers, batch): &Rows, places: Vec<u32>) -> Rows {
    let kept = places.iter().map(|&place| numbers[place as usize]).collect();
    (kept, take_record_batch(batch, &UInt32Array::from(places)).unwrap())
}

/// The rows of all parts, each once.
fn joined(parts: &[Rows]) -> Rows {
    let all = concat_batches(&parts[0].1.schema(), parts.iter().map(|(_, batch)| batch)).unwrap();
    let numbers: Vec<u32> = parts.iter().flat_map(|(numbers, _)| numbers).copied().collect();
    let mut places: Vec<u32> = (0..numbers.len() as u32).collect();
    places.sort_by_key(|&place| numbers[place as usize]);
    places.dedup_by_key(|place| numbers[*place as usize]);
    at(&(numbers, all), places)
}

/// The contributions of `keys` from `n_parts` parts.
fn apart(
    batch: &RecordBatch,
    target: &str,
    params: &ReliefParams,
    keys: (u64, u64),
    n_parts: usize,
) -> Result<Accumulator> {
    let (roles, monitor) = (roles(batch, target), Monitor::default());
    let profile = profile_of(batch, &roles);
    let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(keys.0..keys.1));
    let problem = View::new(&source(batch), &roles, Unlabelled::Error).problem()?;
    let drawn = queries(&problem, params, &options, &profile)?;
    let n_rows = batch.num_rows();
    let beside = beside(&problem, params, &profile);
    let all: Rows = ((0..n_rows as u32).collect(), with_ranks(batch, &roles, &beside.ranked));
    let targets = source(batch);
    let queried = at(&all, drawn.clone());
    let found = (0..n_parts).map(|part| {
        let rows = (part * n_rows / n_parts) as u32..((part + 1) * n_rows / n_parts) as u32;
        let rows = joined(&[queried.clone(), at(&all, rows.collect())]);
        let places = nearest(&source(&rows.1), &roles, params, &options, (&rows.0, &drawn), &monitor)?;
        Ok(at(&rows, places))
    });
    let (numbers, rows) = joined(&found.collect::<Result<Vec<Rows>>>()?);
    let targets = (!beside.targets.is_empty()).then_some(&targets as &dyn ChunkSource);
    accumulate(&source(&rows), &roles, params, &options, Selection { numbers: &numbers, targets }, &monitor)
}

/// `batch` with the ranks of the features called `ranked` in the place of their values.
fn with_ranks(batch: &RecordBatch, roles: &Roles, ranked: &[String]) -> RecordBatch {
    let source = source(batch);
    let found = values(View::new(&source, roles, Unlabelled::Error), ranked, &Monitor::default()).unwrap();
    let (schema, mut columns) = (batch.schema(), batch.columns().to_vec());
    for (name, mut column) in ranked.iter().zip(found) {
        to_mid_ranks(&mut column, (0.0, 0));
        let known = column.iter().map(|rank| (!rank.is_nan()).then_some(*rank));
        columns[schema.index_of(name).unwrap()] = Arc::new(known.collect::<Float64Array>());
    }
    RecordBatch::try_new(schema, columns).unwrap()
}

/// The table without gaps in features.
fn known() -> RecordBatch {
    table(400, 3).project(&[0, 2, 4, 5, 6]).unwrap()
}

#[test]
fn parts_searched_apart_give_the_bits_of_all_rows() {
    let some = |n| ReliefParams::default().with_n_iterations(vec![Iterations::Count(n)]);
    let informative = some(60).with_missing(Missing::Informative);
    let default = informative.clone().with_scaling(Scaling::Rank).with_target_draws(20);
    for (batch, params) in [
        (known(), some(60)),
        (with_groups(&known()), some(400)),
        (table(400, 3), informative),
        (table(400, 3), default.clone()),
        (with_groups(&table(400, 3)), default),
    ] {
        for target in ["y", "class"] {
            let roles = roles(&batch, target);
            let whole = crate::rank(&source(&batch), &roles, &params, 1, &Monitor::default()).unwrap();
            let n_keys =
                crate::accumulate(&source(&batch), &roles, &params, &RunOptions::default(), &Monitor::default());
            let n_keys = n_keys.unwrap().identity().n_keys();
            let problem = Problem::resolve(&batch.schema(), &roles, "table").unwrap();
            assert_eq!(obstacle(&problem, &params, &profile_of(&batch, &roles)), None);
            for n_parts in [1, 2, 7] {
                let mut first = apart(&batch, target, &params, (0, n_keys / 2), n_parts).unwrap();
                first.merge(&apart(&batch, target, &params, (n_keys / 2, n_keys), n_parts).unwrap()).unwrap();
                // As text, because errors may be NaN.
                let [found, whole] = [&first.ranking().unwrap(), &whole].map(|ranking| format!("{ranking:?}"));
                assert_eq!(found, whole, "{target} in {n_parts} parts");
            }
        }
    }
}

#[test]
fn what_needs_all_rows_is_refused() {
    let params = ReliefParams::default();
    let refused = |batch: &RecordBatch, target: &str, params: &ReliefParams, what: &str| {
        let error = apart(batch, target, params, (0, 1), 2).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(&table(400, 3), "y", &params, "missing: the difference of a missing value");
    let both = vec![ReliefScore::Relief, ReliefScore::Myopic];
    refused(&known(), "class", &params.with_scores(both), "scores: myopic compares all rows");
}

#[test]
fn rows_that_are_not_there_are_found_out() {
    let batch = known();
    let (roles, monitor) = (roles(&batch, "y"), Monitor::default());
    let profile = profile_of(&batch, &roles);
    let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(0..1));
    let of = |numbers: &[u32], params: &ReliefParams| {
        let rows = source(&batch.slice(0, 30));
        let selection = Selection { numbers, targets: None };
        accumulate(&rows, &roles, params, &options, selection, &monitor).unwrap_err().to_string()
    };
    let accumulated = |numbers: &[u32]| of(numbers, &ReliefParams::default());
    assert!(accumulated(&(0..30).collect::<Vec<u32>>()).contains("lack a query of block 0"));
    assert!(accumulated(&[3, 2]).contains("numbers: give one for each of 30 rows"));
    let numbers: Vec<u32> = (0..30).collect();
    let drawn = of(&numbers, &ReliefParams::default().with_target_draws(20));
    assert!(drawn.contains("targets: give those of all rows"), "{drawn}");
}
