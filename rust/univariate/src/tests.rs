//! Scores against values computed by hand, and the same bits for any threads and chunks.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::{TableSource, cut};
use ferrank_ranking::{Ranking, RunOptions};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

use crate::{UnivariateParams, UnivariateScore, accumulate};

fn numbers(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn rank(columns: &[(&str, ArrayRef)], params: &UnivariateParams, rows: usize, threads: usize) -> Result<Ranking> {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let source = TableSource::new("table", batch.schema(), cut(batch, rows).collect()).unwrap();
    let options = RunOptions::default().with_threads(threads);
    accumulate(&source, &Roles::new(Targets::Last(1)), params, &options, &Monitor::default())?.ranking()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

#[test]
fn scores_of_classes_are_those_of_their_formulas() {
    let class: ArrayRef = Arc::new(StringArray::from(vec!["n", "n", "p", "p", "p", "p", "n", "p"]));
    let a = numbers(&[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    let scores = UnivariateScore::ALL[..5].to_vec();
    let params = UnivariateParams::default().with_scores(scores);
    let found = rank(&[("a", a), ("class", class)], &params, 100, 1).unwrap();
    let value = |number: usize| found.scores[number].importance[0];
    // n, p: 2, 1 of 0, and 1, 4 of 1.
    let h = |p: f64| -(p * p.log2() + (1.0 - p) * (1.0 - p).log2());
    let gain = h(3.0 / 8.0) - 3.0 / 8.0 * h(1.0 / 3.0) - 5.0 / 8.0 * h(0.2);
    close(value(0), gain);
    close(value(1), gain / h(3.0 / 8.0));
    let expected: [[f64; 2]; 2] = [[9.0 / 8.0, 15.0 / 8.0], [15.0 / 8.0, 25.0 / 8.0]];
    let counts: [[f64; 2]; 2] = [[2.0, 1.0], [1.0, 4.0]];
    let cells = (0..4).map(|i| (i / 2, i % 2));
    close(value(2), cells.map(|(i, j)| (counts[i][j] - expected[i][j]).powi(2) / expected[i][j]).sum::<f64>());
    close(value(3), gain * std::f64::consts::LN_2);
    close(value(4), 6.0 / 8.0 - 5.0 / 8.0);
}

#[test]
fn missing_values_scale_the_score_by_the_share_of_the_known_ones() {
    let class: ArrayRef = Arc::new(StringArray::from(vec!["n", "n", "p", "p"]));
    let params = UnivariateParams::default().with_scores(vec![UnivariateScore::InformationGain]);
    let a = numbers(&[0.0, f64::NAN, 1.0, f64::NAN]);
    let found = rank(&[("a", a), ("class", class)], &params, 100, 1).unwrap();
    close(found.scores[0].importance[0], 0.5);
}

#[test]
fn mse_is_the_share_that_the_best_split_explains() {
    let y = numbers(&[1.0, 2.0, 3.0, 10.0]);
    let words: ArrayRef = Arc::new(StringArray::from(vec!["b", "b", "c", "a"]));
    let params = UnivariateParams::default().with_scores(vec![UnivariateScore::Mse]);
    let found = rank(&[("a", numbers(&[5.0, 6.0, 7.0, 8.0])), ("words", words), ("y", y)], &params, 100, 1).unwrap();
    let spread: f64 = [1.0f64, 2.0, 3.0, 10.0].iter().map(|y| (y - 4.0).powi(2)).sum();
    close(found.scores[0].importance[0], 1.0 - 2.0 / spread);
    close(found.scores[0].importance[1], 1.0 - 2.0 / spread);
}

#[test]
fn accuracy_groups_categories_by_the_best_pair_of_classes() {
    let class: ArrayRef = Arc::new(StringArray::from(vec!["x", "x", "y", "y", "z", "z", "x", "z"]));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "b", "b", "c", "c", "d", "d"]));
    let params = UnivariateParams::default().with_scores(vec![UnivariateScore::Accuracy]);
    let found = rank(&[("words", words), ("class", class)], &params, 100, 1).unwrap();
    // x for a and d, z for b and c: 2 + 1 + 0 + 2 + … of 8; without a split 3 of 8.
    close(found.scores[0].importance[0], (5.0 - 3.0) / 8.0);
}

#[test]
fn threads_and_chunks_change_no_bit() {
    let value = |row: u32, salt: u32| f64::from((row * 7919 + salt * 104_729) % 1009) / 7.0;
    let column = |salt| numbers(&(0..500).map(|row| value(row, salt)).collect::<Vec<f64>>());
    let y = numbers(&(0..500).map(|row| value(row, 1) * value(row, 2)).collect::<Vec<f64>>());
    let columns = [("a", column(1)), ("b", column(2)), ("c", column(3)), ("y", y)];
    let params =
        UnivariateParams::default().with_scores(vec![UnivariateScore::MutualInformation, UnivariateScore::Mse]);
    let bits = |rows, threads| -> Vec<u64> {
        let found = rank(&columns, &params, rows, threads).unwrap();
        found.scores.iter().flat_map(|score| &score.importance).map(|value| value.to_bits()).collect()
    };
    assert_eq!(bits(500, 1), bits(7, 3));
}

#[test]
fn scores_that_are_not_for_a_target_are_named() {
    let params = UnivariateParams::default().with_scores(vec![UnivariateScore::Chi2]);
    let error = rank(&[("a", numbers(&[1.0, 2.0])), ("y", numbers(&[1.0, 2.0]))], &params, 10, 1).unwrap_err();
    let expected = "scores: chi2 is not for the target 'y', which is a number; use mutual_information or mse";
    assert_eq!(error.to_string(), expected);
}
