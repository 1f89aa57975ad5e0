//! The error of the forest, from the residuals of its trees.

use std::collections::BTreeMap;

use super::STRIDE;
use crate::params::ForestParams;
use ferrank_data::schema::Kind;
use ferrank_ranking::{Column, ModelError, Part, RunData};
use rustc_hash::FxHashMap;

/// Sums of shares that differ by less are equal.
const EQUAL: f64 = 1e-9;

/// The error of the forest by target, from the trees of all `ensembles`. `first` is the number of the vector with the
/// weights of the tracked rows. Targets for which no error is known are left out.
pub(crate) fn estimate(
    data: &RunData,
    params: &ForestParams,
    ensembles: &[Vec<Part<'_>>],
    first: usize,
) -> Vec<ModelError> {
    let error = |(number, target): (usize, &Column)| {
        let (trees, vector) = match params.per_target {
            true => (ensembles.get(number)?, first + 1),
            false => (ensembles.first()?, first + 1 + number),
        };
        let rows = rows(trees, first, vector)?;
        let (measure, error): (_, fn(&Row) -> Option<RowError>) = match target.kind {
            Kind::Numeric => ("relative squared error", Row::square),
            Kind::Nominal => ("error rate", Row::mistake),
            Kind::Labels => ("Hamming loss", Row::hamming_loss),
        };
        let errors: Vec<RowError> = rows.iter().filter_map(error).collect();
        summary(&target.name, measure, target.kind == Kind::Numeric, &errors)
    };
    data.targets.iter().enumerate().filter_map(error).collect()
}

/// A row that was out of bag, with the sums of its entries for a target over the trees of a forest.
struct Row {
    weight: f64,
    /// Number of trees that have it out of bag.
    n_trees: f64,
    /// Numbers of entries, ascending, and their sums.
    sums: Vec<(u32, f64)>,
}

/// The error of the forest for a row, and that of the constant prediction.
struct RowError {
    weight: f64,
    error: f64,
    guess: f64,
}

/// The rows with the weights and entries of two vectors of `trees`. `None` if there are no entries, as of a constant
/// target.
fn rows(trees: &[Part<'_>], weights: usize, vector: usize) -> Option<Vec<Row>> {
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    let mut sums: FxHashMap<u32, f64> = FxHashMap::default();
    for tree in trees {
        for (number, weight) in tree.sums.get(weights)?.entries() {
            let row = rows.entry(number as u32).or_insert(Row { weight, n_trees: 0.0, sums: Vec::new() });
            row.n_trees += 1.0;
        }
        for (place, value) in tree.sums.get(vector)?.entries() {
            *sums.entry(place as u32).or_insert(0.0) += value;
        }
    }
    let mut places: Vec<u32> = sums.keys().copied().collect();
    places.sort_unstable();
    for place in places {
        rows.get_mut(&(place % STRIDE))?.sums.push((place / STRIDE, sums[&place]));
    }
    (!sums.is_empty()).then(|| rows.into_values().collect())
}

impl Row {
    fn sum(&self, entry: u32) -> Option<f64> {
        self.sums.iter().find(|(number, _)| *number == entry).map(|(_, sum)| *sum)
    }

    /// `None` if the target is missing.
    fn square(&self) -> Option<RowError> {
        let [guess, error] = [self.sum(0)?, self.sum(1)?].map(|sum| (sum / self.n_trees).powi(2));
        Some(RowError { weight: self.weight, error, guess })
    }

    /// `None` if the target is missing.
    fn mistake(&self) -> Option<RowError> {
        let guess = self.sum(0).unwrap_or(0.0) / self.n_trees;
        let wrong = || self.sums.iter().filter(|(entry, _)| *entry > 0).map(|(_, sum)| *sum);
        let most = wrong().fold(0.0, f64::max);
        let of_truth = self.n_trees - wrong().sum::<f64>();
        let error = match of_truth - most {
            difference if difference > EQUAL => 0.0,
            difference if difference < -EQUAL => 1.0,
            _ => {
                let n_equal = wrong().filter(|share| share + EQUAL > most).count() as f64;
                n_equal / (n_equal + 1.0)
            }
        };
        (guess >= 0.0).then_some(RowError { weight: self.weight, error, guess })
    }

    /// `None` if the target is missing.
    fn hamming_loss(&self) -> Option<RowError> {
        let guess = self.sum(0)? / self.n_trees;
        let loss = |pair: &[(u32, f64)]| match pair {
            // The entries of a label follow each other.
            &[(entry, wrong), (_, times_share)] if entry % 2 == 1 => {
                let is_wrong = match wrong - self.n_trees / 2.0 {
                    difference if difference > EQUAL => 1.0,
                    difference if difference < -EQUAL => 0.0,
                    _ => 0.5,
                };
                is_wrong * times_share / wrong
            }
            _ => 0.0,
        };
        Some(RowError { weight: self.weight, error: self.sums.windows(2).map(loss).sum(), guess })
    }
}

/// The mean errors over rows. `None` with fewer than two rows, or if the constant prediction of a number has no error.
fn summary(target: &str, measure: &str, is_relative: bool, rows: &[RowError]) -> Option<ModelError> {
    let weight: f64 = rows.iter().map(|row| row.weight).sum();
    let mean = |of: &dyn Fn(&RowError) -> f64| rows.iter().map(|row| row.weight * of(row)).sum::<f64>() / weight;
    let (error, guess) = (mean(&|row| row.error), mean(&|row| row.guess));
    if rows.len() < 2 || (is_relative && guess <= 0.0) {
        return None;
    }
    // The error relative to that of the constant prediction is a ratio, whose residuals those of the difference are.
    let (unit, slope) = if is_relative { (guess, error / guess) } else { (1.0, 1.0) };
    let residual = |row: &RowError| (row.error - error) - slope * (row.guess - guess);
    let squares: f64 = rows.iter().map(|row| (row.weight * residual(row)).powi(2)).sum();
    let n = rows.len() as f64;
    let standard_error = (squares * n / (n - 1.0)).sqrt() / weight / unit;
    Some(ModelError::new(target, measure, error / unit, guess / unit, standard_error, rows.len()))
}
