//! A row of weight w counts as w rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_select::take::take_record_batch;

use super::laws::{ranked, table, uneven, with_column, with_weights};
use crate::limits::LIMITS;
use crate::{NeighborhoodRule, ReliefParams, ReliefScore, Scaling, rank};
use ferrank_data::schema::{Roles, Targets};
use ferrank_data::source::TableSource;
use ferrank_runtime::monitor::Monitor;

const RULES: [NeighborhoodRule; 4] =
    [NeighborhoodRule::Surf, NeighborhoodRule::SurfStar, NeighborhoodRule::Multisurf, NeighborhoodRule::MultisurfStar];

fn importances(batch: &RecordBatch, target: &str, params: &ReliefParams) -> Vec<Vec<f64>> {
    let ranking = ranked(batch, &[target], params, (LIMITS, batch.num_rows(), 1));
    ranking.scores.into_iter().map(|score| score.importance).collect()
}

fn rows(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> RecordBatch {
    take_record_batch(batch, &rows.map(|row| row as u32).collect::<UInt32Array>()).unwrap()
}

fn assert_near(found: &[Vec<f64>], expected: &[Vec<f64>], what: &str) {
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-12, "{what}: {found} {expected}");
    }
}

/// All rules, with k such that it does not matter whether it counts rows or copies of rows.
fn settings() -> Vec<ReliefParams> {
    let nearest = [vec![1], vec![400]].map(|k| ReliefParams::default().with_n_neighbors(k));
    let rules = RULES.map(|rule| ReliefParams::default().with_neighborhood(rule));
    nearest.into_iter().chain(rules).collect()
}

/// Copies of a row are no neighbors of each other.
#[test]
fn whole_weights_are_repeated_rows() {
    let batch = table(70, 3);
    let names = (0..batch.num_rows()).map(|row| format!("g{row}"));
    let batch = with_column(&batch, "g", Arc::new(StringArray::from_iter_values(names)) as ArrayRef);
    let weight = |row: usize| [1, 3, 0, 1, 2, 5, 1][row % 7];
    let weighted = with_weights(&batch, |row| weight(row) as f64);
    let repeated = rows(&batch, (0..batch.num_rows()).flat_map(|row| std::iter::repeat_n(row, weight(row))));
    for params in settings() {
        for target in ["class", "y"] {
            for scaling in [Scaling::Range, Scaling::Rank] {
                let mut params = params.clone().with_scaling(scaling);
                if target == "class" {
                    params.scores.push(ReliefScore::Myopic);
                }
                let found = importances(&weighted, target, &params);
                assert_near(&found, &importances(&repeated, target, &params), &format!("{target}, {params:?}"));
                assert!(found != importances(&batch, target, &params));
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_are_left_out() {
    let batch = table(90, 4);
    let weighted = with_weights(&batch, uneven);
    let kept = rows(&weighted, (0..batch.num_rows()).filter(|&row| uneven(row) > 0.0));
    for params in settings() {
        assert_eq!(importances(&weighted, "class", &params), importances(&kept, "class", &params));
        assert_eq!(importances(&weighted, "y", &params), importances(&kept, "y", &params));
    }
}

#[test]
fn only_the_ratios_of_weights_matter() {
    let batch = table(90, 5);
    let some = |row: usize| 1.0 + uneven(row);
    for params in settings() {
        for target in ["class", "y"] {
            let expected = importances(&with_weights(&batch, some), target, &params);
            assert_eq!(importances(&with_weights(&batch, |row| some(row) / 1024.0), target, &params), expected);
            let large = importances(&with_weights(&batch, |row| some(row) * 1e290), target, &params);
            assert_near(&large, &expected, "large weights");
            let equal = importances(&with_weights(&batch, |_| 0.3), target, &params);
            assert_near(&equal, &importances(&batch, target, &params), "equal weights");
            let ones = importances(&with_weights(&batch, |_| 1.0), target, &params);
            assert_eq!(ones, importances(&batch, target, &params));
        }
    }
}

#[test]
fn what_is_no_weight_is_named_with_its_row() {
    let refused = |weight: &dyn Fn(usize) -> f64, params: &ReliefParams| {
        let batch = with_weights(&table(30, 6), weight);
        let source = TableSource::new("table", batch.schema(), vec![batch.slice(0, 7), batch.slice(7, 23)]).unwrap();
        let roles = Roles::new(Targets::Named(vec!["y".into()])).with_weight(Some("w".into()));
        rank(&source, &roles, params, 1, &Monitor::default()).unwrap_err().to_string()
    };
    let params = ReliefParams::default();
    for (bad, said) in [(-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let error = refused(&|row| if row == 11 { bad } else { 1.0 }, &params);
        assert!(error.contains(&format!("column 'w': the row weight {said} was found in row 11")), "{error}");
    }
    let error = refused(&|_| f64::MAX, &params);
    assert!(error.contains("the row weights have no finite sum"), "{error}");
    let error = refused(&|_| 1.0, &params.with_target_draws(20));
    assert!(error.starts_with("sample_weight: targets that are drawn anew"), "{error}");
}
