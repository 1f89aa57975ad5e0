//! Rows held by what is unusual beside the same rows with all their values.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};

use super::laws::{Way, ranked, uneven, with_weights};
use super::uniform;
use crate::limits::{LIMITS, Limits};
use crate::{DistanceFeatures, FeatureRef, Iterations, Missing, ReliefParams, ReliefScore, Scaling};

/// Numbers and words, nearly all of them 0 and "no", some missing, and rows that are alike.
fn table(rows: usize, seed: u64) -> RecordBatch {
    let number = |column: u64, row: usize| uniform(ferrank_runtime::random::mix([seed, column, row as u64]));
    let rare = |column: u64, row: usize| number(column + 1000, row) < 0.04;
    let floats = |column: u64| -> ArrayRef {
        let value = |row: usize| match (rare(column, row), column % 5, number(column, row)) {
            (false, ..) => Some(0.0),
            (true, 0, x) if x < 0.3 => None,
            (true, 1, x) => Some((x * 4.0).floor() - 2.0),
            (true, _, x) => Some(x * 1e3),
        };
        Arc::new((0..rows).map(value).collect::<Float64Array>())
    };
    let words = |column: u64| -> ArrayRef {
        let word = |row: usize| match (rare(column, row), number(column, row)) {
            (false, _) => Some("no"),
            (true, x) if x < 0.2 => None,
            (true, x) => Some(if x < 0.6 { "yes" } else { "maybe" }),
        };
        Arc::new((0..rows).map(word).collect::<StringArray>())
    };
    let target = |row| number(7, row) + f64::from(rare(1, row));
    let class = |row| ["a", "b", "c"][(number(8, row) * 2.0 + f64::from(rare(1, row))) as usize];
    let mut columns: Vec<(String, ArrayRef)> = (0..40).map(|column| (format!("x{column}"), floats(column))).collect();
    columns.extend((40..46).map(|column| (format!("x{column}"), words(column))));
    columns.push(("y".into(), Arc::new((0..rows).map(|row| Some(target(row))).collect::<Float64Array>())));
    columns.push(("class".into(), Arc::new((0..rows).map(|row| Some(class(row))).collect::<StringArray>())));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// Weights of every third feature in distances.
fn every_third() -> DistanceFeatures {
    let weight = |column: i64| (FeatureRef::Position(column), if column % 2 == 0 { 1.0 } else { 0.3 });
    DistanceFeatures::Weighted((0..46).step_by(3).map(weight).collect())
}

#[test]
fn sparse_rows_have_the_bits_of_dense_ones() {
    let dense: Way = (Limits { rows: 0, ..LIMITS }, 300, 2);
    let cases = [
        (0, Iterations::All, Scaling::Range, Missing::Expected),
        (1, Iterations::Count(41), Scaling::Range, Missing::Informative),
        (2, Iterations::All, Scaling::Rank, Missing::Expected),
    ];
    for (seed, n_iterations, scaling, missing) in cases {
        let batch = table(300, seed);
        let weighted = with_weights(&batch, uneven);
        for (batch, target) in [(&batch, "class"), (&batch, "y"), (&weighted, "class"), (&weighted, "y")] {
            let mut params = ReliefParams {
                n_neighbors: vec![1, 9],
                sigma: vec![None, Some(3.0)],
                n_iterations: vec![n_iterations],
                scaling,
                missing,
                distance_features: if seed == 0 { DistanceFeatures::All } else { every_third() },
                ..ReliefParams::default()
            };
            if target == "class" {
                params.scores.push(ReliefScore::Myopic);
            }
            // As text, which differs for all numbers and is the same for NaN, the standard error of an estimate without one.
            let text = |way| format!("{:?}", ranked(batch, &[target], &params, way).scores);
            let expected = text(dense);
            for way in [(LIMITS, 300, 1), (LIMITS, 77, 3), (Limits { group: 20_000, ..LIMITS }, 300, 2)] {
                assert_eq!(expected, text(way), "{target}, {way:?}");
            }
        }
    }
}
