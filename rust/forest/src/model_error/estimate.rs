//! The error of the forest, from the residuals of its trees.

use std::collections::BTreeMap;

use super::STRIDE;
use crate::params::ForestParams;
use ferrank_data::schema::Kind;
use ferrank_ranking::{Column, ModelError, Part, RunData, quantile};
use rustc_hash::FxHashMap;

/// Sums of shares that differ by less are equal.
const EQUAL: f64 = 1e-9;
/// The probability with which the forest is said to be better than the constant prediction if it is not.
const LEVEL: f64 = 0.05;

/// The error of the forest by target, from the trees of all `ensembles`; otherwise the reason why it is not known.
/// `first` is the number of the vector with the weights of the tracked rows.
pub(crate) fn estimate(
    data: &RunData,
    params: &ForestParams,
    ensembles: &[Vec<Part<'_>>],
    first: usize,
) -> Result<Vec<ModelError>, &'static str> {
    let ensemble = |number: usize| &ensembles[if params.per_target { number } else { 0 }];
    let error = |(number, target): (usize, &Column)| {
        target_error(target, rows(ensemble(number), first, first + 1 + if params.per_target { 0 } else { number }))
    };
    let errors: Vec<ModelError> = data.targets.iter().enumerate().filter_map(error).collect();
    match errors.is_empty() {
        false => Ok(errors),
        true => Err("no row is predicted: no target varies, no tree has a split, or each is of a part of the rows"),
    }
}

/// A row that was out of bag, with the sums of its entries for a target over the trees of a forest.
struct Row {
    weight: f64,
    /// The number of its group; that of the row without groups.
    group: u64,
    /// Number of trees that have it out of bag.
    n_trees: f64,
    /// Numbers of entries, ascending, and their sums.
    sums: Vec<(u32, f64)>,
}

/// The errors of the forest for a row, and those of the constant prediction.
struct RowError {
    weight: f64,
    group: u64,
    error: f64,
    guess: f64,
    /// Sums of the squared errors of the forest, and of the constant prediction.
    squares: [f64; 2],
}

/// The rows with the weights and entries of two vectors of `trees`.
fn rows(trees: &[Part<'_>], weights: usize, vector: usize) -> Vec<Row> {
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    let mut sums: FxHashMap<u32, f64> = FxHashMap::default();
    for tree in trees {
        for (place, value) in tree.sums.get(weights).into_iter().flat_map(|vector| vector.entries()) {
            let (entry, number) = (place as u32 / STRIDE, place as u32 % STRIDE);
            let (group, n_trees) = (u64::from(number), 0.0);
            let row = rows.entry(number).or_insert(Row { weight: 0.0, group, n_trees, sums: Vec::new() });
            match entry {
                0 => (row.weight, row.n_trees) = (value, row.n_trees + 1.0),
                _ => row.group = value as u64,
            }
        }
        for (place, value) in tree.sums.get(vector).into_iter().flat_map(|vector| vector.entries()) {
            *sums.entry(place as u32).or_insert(0.0) += value;
        }
    }
    let mut places: Vec<u32> = sums.keys().copied().collect();
    places.sort_unstable();
    for place in places {
        if let Some(row) = rows.get_mut(&(place % STRIDE)) {
            row.sums.push((place / STRIDE, sums[&place]));
        }
    }
    rows.into_values().filter(|row| row.n_trees > 0.0).collect()
}

/// The error for `target` on `rows`. `None` if the target has no entries, as a constant target, or if the constant
/// prediction is right in all rows.
fn target_error(target: &Column, mut rows: Vec<Row>) -> Option<ModelError> {
    // Rows without the target have no entries.
    rows.retain(|row| !row.sums.is_empty());
    let (measure, errors): (_, Vec<RowError>) = match target.kind {
        Kind::Numeric => ("relative squared error", rows.iter().filter_map(Row::number).collect()),
        Kind::Nominal => ("error rate", {
            let shares = ClassShares::new(&rows);
            rows.iter().filter_map(|row| row.class(&shares)).collect()
        }),
        Kind::Labels => ("Hamming loss", rows.iter().filter_map(Row::labels).collect()),
    };
    if errors.len() < 2 {
        return None;
    }
    let squared = Comparison::of_ratio(&errors, |row| row.squares)?;
    let mut found = ModelError::new(&target.name, measure);
    (found.squared_error, found.n_rows) = (squared.error, errors.len());
    let shown = match target.kind {
        Kind::Numeric => {
            found.is_better = squared.is_better(LEVEL);
            squared
        }
        // A rare class may be recognized and yet never be the most probable one, and then the error rate is
        // that of guessing. The shares show it.
        Kind::Nominal | Kind::Labels => {
            let rate = Comparison::of_difference(&errors, |row| [row.error, row.guess]);
            found.is_better = [&rate, &squared].iter().any(|comparison| comparison.is_better(LEVEL / 2.0));
            rate
        }
    };
    (found.error, found.guess, found.standard_error) = (shown.error, shown.guess, shown.standard_error);
    Some(found)
}

impl Row {
    fn sum(&self, entry: u32) -> Option<f64> {
        self.sums.iter().find(|(number, _)| *number == entry).map(|(_, sum)| *sum)
    }

    fn row_error(&self, [error, guess]: [f64; 2], squares: [f64; 2]) -> RowError {
        RowError { weight: self.weight, group: self.group, error, guess, squares }
    }

    fn number(&self) -> Option<RowError> {
        let [guess, error] = [self.sum(0)?, self.sum(1)?].map(|sum| (sum / self.n_trees).powi(2));
        Some(self.row_error([error, guess], [error, guess]))
    }

    /// The number of the true class.
    fn true_class(&self) -> Option<u32> {
        self.sum(0).map(|sum| (sum / self.n_trees).round() as u32)
    }

    fn class(&self, classes: &ClassShares) -> Option<RowError> {
        let truth = self.true_class()?;
        let wrong = || self.sums.iter().filter(|(entry, _)| *entry > 0).map(|(_, sum)| *sum);
        let (most, all) = (wrong().fold(0.0, f64::max), wrong().sum::<f64>());
        let error = match self.n_trees - all - most {
            difference if difference > EQUAL => 0.0,
            difference if difference < -EQUAL => 1.0,
            _ => {
                let n_equal = wrong().filter(|share| share + EQUAL > most).count() as f64;
                n_equal / (n_equal + 1.0)
            }
        };
        let squares = (all.powi(2) + wrong().map(|share| share.powi(2)).sum::<f64>()) / self.n_trees.powi(2);
        let share = classes.shares.get(&truth).copied().unwrap_or(0.0);
        let of_guess = 1.0 - 2.0 * share + classes.shares.values().map(|share| share.powi(2)).sum::<f64>();
        Some(self.row_error([error, f64::from(truth != classes.most)], [squares, of_guess]))
    }

    fn labels(&self) -> Option<RowError> {
        let [guess, of_guess] = [self.sum(0)?, self.sum(1)?].map(|sum| sum / self.n_trees);
        let (mut error, mut squares) = (0.0, 0.0);
        // The two entries of a label follow each other.
        for pair in self.sums.windows(2) {
            if let &[(entry, wrong), (next, weighted)] = pair
                && entry >= 2
                && entry % 2 == 0
                && next == entry + 1
            {
                let is_wrong = match wrong - self.n_trees / 2.0 {
                    difference if difference > EQUAL => 1.0,
                    difference if difference < -EQUAL => 0.0,
                    _ => 0.5,
                };
                error += is_wrong * weighted / wrong;
                squares += wrong * weighted / self.n_trees.powi(2);
            }
        }
        Some(self.row_error([error, guess], [squares, of_guess]))
    }
}

/// The shares of the classes in the weight of rows.
struct ClassShares {
    shares: BTreeMap<u32, f64>,
    /// The most frequent class, of several the first.
    most: u32,
}

impl ClassShares {
    fn new(rows: &[Row]) -> Self {
        let mut shares = BTreeMap::new();
        for row in rows {
            if let Some(class) = row.true_class() {
                *shares.entry(class).or_insert(0.0) += row.weight;
            }
        }
        let total: f64 = shares.values().sum();
        shares.values_mut().for_each(|share| *share /= total);
        let mut most = (0.0, 0);
        for (&class, &share) in &shares {
            if share > most.0 + EQUAL {
                most = (share, class);
            }
        }
        ClassShares { shares, most: most.1 }
    }
}

/// The mean error of the forest beside that of the constant prediction.
struct Comparison {
    error: f64,
    guess: f64,
    standard_error: f64,
    /// Degrees of freedom of the standard error.
    freedom: f64,
}

impl Comparison {
    /// Compares the means of the two errors that `of` gives for each row.
    fn of_difference(rows: &[RowError], of: impl Fn(&RowError) -> [f64; 2]) -> Self {
        let [error, guess] = means(rows, &of);
        Comparison::with_residuals(rows, [error, guess], |row| {
            let [of_forest, of_guess] = of(row);
            (of_forest - error) - (of_guess - guess)
        })
    }

    /// The same in units of the mean error of the constant prediction; `None` if that is 0.
    fn of_ratio(rows: &[RowError], of: impl Fn(&RowError) -> [f64; 2]) -> Option<Self> {
        let [error, guess] = means(rows, &of);
        let ratio = error / guess;
        // The linear part of the ratio's error.
        let residual = |row: &RowError| {
            let [of_forest, of_guess] = of(row);
            (of_forest - ratio * of_guess) / guess
        };
        (guess > 0.0).then(|| Comparison::with_residuals(rows, [ratio, 1.0], residual))
    }

    /// The standard error is that of a sum over groups of rows. Its degrees of freedom are those of Satterthwaite (1946),
    /// so that few rows with large residuals count as few.
    fn with_residuals(rows: &[RowError], [error, guess]: [f64; 2], residual: impl Fn(&RowError) -> f64) -> Self {
        let mut groups: BTreeMap<u64, f64> = BTreeMap::new();
        for row in rows {
            *groups.entry(row.group).or_insert(0.0) += row.weight * residual(row);
        }
        let weight: f64 = rows.iter().map(|row| row.weight).sum();
        let (mut second, mut fourth) = (0.0, 0.0);
        for sum in groups.values() {
            second += sum.powi(2);
            fourth += sum.powi(4);
        }
        let n = groups.len() as f64;
        let standard_error = (second * n / (n - 1.0).max(1.0)).sqrt() / weight;
        // Where all residuals are 0, as for a forest without errors, each group is a degree of freedom but one.
        let freedom = if fourth > 0.0 { (second * second / fourth).min(n - 1.0) } else { n - 1.0 };
        Comparison { error, guess, standard_error, freedom }
    }

    fn is_better(&self, level: f64) -> bool {
        self.guess - self.error > quantile(1.0 - level, self.freedom) * self.standard_error
    }
}

/// The weighted means of the two errors that `of` gives for each row.
fn means(rows: &[RowError], of: impl Fn(&RowError) -> [f64; 2]) -> [f64; 2] {
    let weight: f64 = rows.iter().map(|row| row.weight).sum();
    [0, 1].map(|which| rows.iter().map(|row| row.weight * of(row)[which]).sum::<f64>() / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(weight: f64, group: u64, error: f64) -> RowError {
        RowError { weight, group, error, guess: 0.5, squares: [error, 0.5] }
    }

    fn compare(rows: &[RowError]) -> Comparison {
        Comparison::of_difference(rows, |row| [row.error, row.guess])
    }

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn rows_of_a_group_are_one_observation() {
        let errors = [0.0, 0.1, 0.4, 1.0, 0.2];
        let once: Vec<RowError> = (0..).zip(errors).map(|(group, error)| row(1.0, group, error)).collect();
        let twice: Vec<RowError> =
            (0..).zip(errors).flat_map(|(group, error)| [row(1.0, group, error), row(1.0, group, error)]).collect();
        let (once, twice) = (compare(&once), compare(&twice));
        assert!(is_close(once.error, 0.34) && is_close(once.guess, 0.5));
        // Residuals −0.34, −0.24, 0.06, 0.66 and −0.14 have squares that add up to 0.632.
        assert!(is_close(once.standard_error, (0.632_f64 / 4.0 / 5.0).sqrt()));
        assert!(is_close(twice.standard_error, once.standard_error) && is_close(twice.freedom, once.freedom));
    }

    #[test]
    fn a_forest_without_errors_is_better_than_guessing() {
        let ratio = |error: f64, n: u64| {
            let rows: Vec<RowError> = (0..n).map(|group| row(1.0, group, error)).collect();
            Comparison::of_ratio(&rows, |row| row.squares).unwrap()
        };
        assert!(ratio(0.0, 20).is_better(0.025));
        assert!(!ratio(0.5, 20).is_better(0.025) && !ratio(0.0, 1).is_better(0.025));
    }

    #[test]
    fn few_rows_with_large_residuals_count_as_few() {
        // The model is right in three rows more than the constant, of 1,000: chance has that in one of eight cases.
        let rows: Vec<RowError> =
            (0..1_000).map(|number| row(1.0, number, if number < 3 { 0.0 } else { 0.5 })).collect();
        let found = compare(&rows);
        assert!((found.guess - found.error) / found.standard_error > 1.645);
        assert!(found.freedom < 3.1 && !found.is_better(0.025));
    }

    #[test]
    fn the_standard_error_of_a_ratio_is_that_of_its_linear_part() {
        let rows: Vec<RowError> = (0..)
            .zip([0.1, 0.3, 0.2, 0.6])
            .map(|(group, error)| RowError { squares: [error, 2.0 * error], ..row(1.0, group, error) })
            .collect();
        let found = Comparison::of_ratio(&rows, |row| row.squares).unwrap();
        assert!(is_close(found.error, 0.5) && is_close(found.standard_error, 0.0));
        assert!(Comparison::of_ratio(&rows, |_| [0.0, 0.0]).is_none());
    }
}
