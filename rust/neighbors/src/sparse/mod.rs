//! Sparse rows: most values are the usual one of their feature, as a rule 0, and only the others are held.
//!
//! Two rows with the usual value of a feature do not differ in it, and adding 0 changes no sum. So sums over the features
//! in which either row has another value, in order, have the same bits as sums over all features. It makes no difference
//! where the values come from: sparse rows of SciPy, sparse ARFF, a dense table full of zeros.
//!
//! Memory: 12 bytes for each value held, and as much again during a search for neighbors.

mod search;

use std::ops::Range;

pub use search::Index;

use super::ranks::{to_mid_ranks, to_weighted_mid_ranks};
use super::rows::Rows;
use super::space::{Scale, Space};
use ferrank_data::profile::ColumnProfile;

/// Rows are held sparse where at most one in this many values is not the usual one. Dense rows are faster from about one
/// in eight.
const RARE: usize = 16;

/// The usual value of each feature, and the number of other values.
///
/// ```
/// use ferrank_data::profile::{ColumnProfile, NominalProfile};
/// use ferrank_neighbors::space::Scale;
/// use ferrank_neighbors::sparse::Usual;
///
/// // Of 40 rows `n` have "yes", the others "no".
/// let usual = |n: u64| {
///     let counts = [("no".to_string(), 40 - n), ("yes".to_string(), n)].into();
///     let profile = ColumnProfile::Nominal(NominalProfile { missing: 0, counts });
///     let scale = Scale::from_profile(&profile);
///     Usual::new(&[profile], &[scale], 40)
/// };
/// // One in 20 is rare, one in 10 is not.
/// assert!(usual(2).is_worthwhile(40, 1 << 20) && !usual(4).is_worthwhile(40, 1 << 20));
/// // Which category is usual makes no difference.
/// assert!(usual(38).is_worthwhile(40, 1 << 20));
/// ```
#[derive(Debug, Default)]
pub struct Usual {
    /// n_features; never missing.
    values: Vec<f64>,
    /// Number of features that are not constant.
    varied: usize,
    /// Number of values that are not the usual one of their feature.
    others: usize,
}

/// All rows.
///
/// ```
/// # use ferrank_data::profile::{ColumnProfile, NominalProfile};
/// # let counts = |no, yes| [("no".to_string(), no), ("yes".to_string(), yes)].into();
/// # let profile = |no, yes| ColumnProfile::Nominal(NominalProfile { missing: 0, counts: counts(no, yes) });
/// # let profiles = [profile(3, 1), profile(1, 3)];
/// # let scales = [0, 1].map(|feature: usize| Scale::from_profile(&profiles[feature]));
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::space::{Scale, Shape, Space};
/// use ferrank_neighbors::sparse::{SparseRows, Usual};
///
/// // Category 0 is usual in feature 0, category 1 in feature 1. Rows 1 and 2 have an unusual one each.
/// let mut rows = Rows::with_capacity(4, 2);
/// rows.add(0..4).copy_from_slice(&[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
/// let mut sparse = SparseRows::new(Usual::new(&profiles, &scales, 4));
/// sparse.append(&rows);
/// assert_eq!(sparse.columns(&[1]), [[1.0, 1.0, 0.0, 1.0]]);
///
/// // Rows 0 and 3 have usual values alone, so that there is nothing to compare.
/// let space = Space::new(vec![Shape::Nominal; 2], vec![None, None], Vec::new(), 1);
/// let compared = |a, b| {
///     let mut found = Vec::new();
///     sparse.differences(&space, a, b, |feature, difference| found.push((feature, difference)));
///     found
/// };
/// assert_eq!((compared(0, 3), compared(0, 1)), (vec![], vec![(0, 1.0)]));
/// ```
#[derive(Debug)]
pub struct SparseRows {
    usual: Usual,
    /// n_rows + 1; where the entries of a row start.
    starts: Vec<usize>,
    /// n_entries; ascending within a row.
    features: Vec<u32>,
    /// n_entries
    values: Vec<f64>,
}

impl Usual {
    /// The usual values of `n_rows` rows with these profiles and scales.
    pub fn new(profiles: &[ColumnProfile], scales: &[Scale], n_rows: usize) -> Self {
        let mut usual = Usual::default();
        for (profile, scale) in profiles.iter().zip(scales) {
            let (value, count) = match (profile, scale) {
                (ColumnProfile::Numeric(numeric), Scale::Numeric { low, high }) if numeric.zeros > 0 => {
                    (Scale::normalize(0.0, *low, *high), numeric.zeros as usize)
                }
                (ColumnProfile::Numeric(numeric), Scale::Ranked { .. }) => (0.0, numeric.zeros as usize),
                (ColumnProfile::Nominal(nominal), Scale::Nominal(_)) => {
                    let most = nominal.counts.values().enumerate().max_by_key(|(_, count)| **count);
                    most.map_or((0.0, 0), |(code, &count)| (code as f64, count as usize))
                }
                (_, Scale::Constant) => (0.0, n_rows),
                _ => (0.0, 0),
            };
            usual.values.push(value);
            usual.varied += usize::from(!matches!(scale, Scale::Constant));
            usual.others += n_rows - count;
        }
        usual
    }

    /// The same usual value for all features.
    #[cfg(test)]
    pub fn constant(value: f64, n_features: usize) -> Self {
        Usual { values: vec![value; n_features], ..Usual::default() }
    }

    /// Returns true if sparse rows take at most `bytes` for `n_rows` rows and are faster to search.
    pub fn is_worthwhile(&self, n_rows: usize, bytes: usize) -> bool {
        self.others.saturating_mul(RARE) <= n_rows * self.varied && self.others.saturating_mul(24) <= bytes
    }
}

impl SparseRows {
    /// Creates an empty table of features with these usual values.
    pub fn new(usual: Usual) -> Self {
        let (features, values) = (Vec::with_capacity(usual.others), Vec::with_capacity(usual.others));
        SparseRows { usual, starts: vec![0], features, values }
    }

    /// Appends `rows`, whose numbers follow those already present.
    pub fn append(&mut self, rows: &Rows) {
        for row in rows.values().chunks_exact(rows.width) {
            for (feature, (value, usual)) in row.iter().zip(&self.usual.values).enumerate() {
                if value != usual {
                    self.features.push(feature as u32);
                    self.values.push(*value);
                }
            }
            self.starts.push(self.features.len());
        }
    }

    /// Replaces the values of `features`, usual ones too, by their mid-ranks. Rows count with these `weights`, or 1 each
    /// without weights.
    pub fn rank(&mut self, features: &[usize], weights: &[f64]) {
        let mut starts = vec![0; self.usual.values.len() + 1];
        self.features.iter().for_each(|&feature| starts[feature as usize + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let mut next = starts.clone();
        let mut entries = vec![0; self.features.len()];
        for (entry, &feature) in self.features.iter().enumerate() {
            entries[next[feature as usize]] = entry;
            next[feature as usize] += 1;
        }
        let n_rows = self.len();
        let mut column = Vec::new();
        for &feature in features {
            let entries = &entries[starts[feature]..starts[feature + 1]];
            column.clear();
            if !weights.is_empty() {
                // Weights are added up in the order of the rows, as where all values are held.
                column.resize(n_rows, self.usual.values[feature]);
                let row = |entry: usize| self.starts.partition_point(|start| *start <= entry) - 1;
                let rows: Vec<usize> = entries.iter().map(|&entry| row(entry)).collect();
                rows.iter().zip(entries).for_each(|(&row, &entry)| column[row] = self.values[entry]);
                to_weighted_mid_ranks(&mut column, weights);
                let mut is_usual = vec![true; n_rows];
                for (&row, &entry) in rows.iter().zip(entries) {
                    (self.values[entry], is_usual[row]) = (column[row], false);
                }
                self.usual.values[feature] = is_usual.iter().position(|usual| *usual).map_or(0.0, |row| column[row]);
                continue;
            }
            column.extend(entries.iter().map(|&entry| self.values[entry]));
            let usual = &mut self.usual.values[feature];
            *usual = to_mid_ranks(&mut column, (*usual, n_rows - entries.len()));
            entries.iter().zip(&column).for_each(|(&entry, &rank)| self.values[entry] = rank);
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a row that are held, as (feature, value).
    fn row(&self, number: u32) -> impl Iterator<Item = (usize, f64)> {
        let entries = self.entries(number);
        self.features[entries.clone()].iter().map(|&feature| feature as usize).zip(self.values[entries].iter().copied())
    }

    fn entries(&self, number: u32) -> Range<usize> {
        self.starts[number as usize]..self.starts[number as usize + 1]
    }

    /// Calls `each` with every feature in which either of rows `a` and `b` has an unusual value, in order, and their
    /// difference.
    pub fn differences(&self, space: &Space, a: u32, b: u32, mut each: impl FnMut(usize, f64)) {
        let (a_class, b_class) = (space.class(a), space.class(b));
        let (mut of_a, mut of_b) = (self.row(a).peekable(), self.row(b).peekable());
        loop {
            let next = |row: Option<&(usize, f64)>| row.map_or(usize::MAX, |entry| entry.0);
            let feature = next(of_a.peek()).min(next(of_b.peek()));
            let Some(&usual) = self.usual.values.get(feature) else { return };
            let x = of_a.next_if(|entry| entry.0 == feature).map_or(usual, |entry| entry.1);
            let y = of_b.next_if(|entry| entry.0 == feature).map_or(usual, |entry| entry.1);
            each(feature, space.apart(feature, (x, a_class), (y, b_class)));
        }
    }

    /// Calls `each` with all rows as dense ones, `together` at a time.
    pub fn expand<E>(&self, together: usize, mut each: impl FnMut(&Rows) -> Result<(), E>) -> Result<(), E> {
        let n_rows = self.len() as u32;
        let mut rows = Rows::with_capacity(together.min(self.len()), self.usual.values.len());
        for first in (0..n_rows).step_by(together) {
            rows.clear();
            for number in first..n_rows.min(first + together as u32) {
                let values = rows.add([number]);
                values.copy_from_slice(&self.usual.values);
                self.row(number).for_each(|(feature, value)| values[feature] = value);
            }
            each(&rows)?;
        }
        Ok(())
    }

    /// The columns of `features`, each over all rows.
    pub fn columns(&self, features: &[usize]) -> Vec<Vec<f64>> {
        let mut columns: Vec<Vec<f64>> = features.iter().map(|&i| vec![self.usual.values[i]; self.len()]).collect();
        let mut place = vec![usize::MAX; self.usual.values.len()];
        features.iter().enumerate().for_each(|(column, &feature)| place[feature] = column);
        for number in 0..self.len() as u32 {
            for (feature, value) in self.row(number) {
                if let Some(column) = columns.get_mut(place[feature]) {
                    column[number as usize] = value;
                }
            }
        }
        columns
    }
}
