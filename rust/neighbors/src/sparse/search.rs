//! The exact k nearest neighbors, of each class, among sparse rows.
//!
//! ```text
//! sums[b] = distance of row b from a row of usual values only
//! for each unusual value x of the query                        in features that count in distances
//!     for each row b with an unusual value y of that feature   from an index by feature
//!         sums[b] += (|x − y| − |x − usual| − |y − usual|) times the weight of the feature
//! ```
//!
//! Together with the query's own distance from a row of usual values, these are its distances from all rows, but for the
//! order of additions. They choose candidates, which are then measured in the order of features.

use rayon::prelude::*;

use super::SparseRows;
use crate::nearest::NeighborLists;
use crate::sink::{distance_key, key_unit};
use crate::space::{Space, rounded};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// An index of sparse rows by feature, and sums of each row alone.
///
/// ```
/// # use ferrank_data::profile::{ColumnProfile, NominalProfile};
/// # let counts = |no, yes| [("no".to_string(), no), ("yes".to_string(), yes)].into();
/// # let profile = |no, yes| ColumnProfile::Nominal(NominalProfile { missing: 0, counts: counts(no, yes) });
/// # let profiles = [profile(3, 1), profile(1, 3)];
/// # let scales = [0, 1].map(|feature: usize| Scale::from_profile(&profiles[feature]));
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Scale, Shape, Space};
/// use ferrank_neighbors::sparse::{Index, SparseRows, Usual};
/// # use ferrank_runtime::monitor::Monitor;
///
/// // Rows 0 and 3 have the usual category in both features, row 1 has another one in feature 0, row 2 in feature 1.
/// let mut rows = Rows::with_capacity(4, 2);
/// rows.add(0..4).copy_from_slice(&[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
/// let mut sparse = SparseRows::new(Usual::new(&profiles, &scales, 4));
/// sparse.append(&rows);
/// # let (monitor, space) = (Monitor::default(), Space::new(vec![Shape::Nominal; 2], vec![None, None], Vec::new(), 1));
/// let index = Index::new(&sparse, &space);
/// assert_eq!(index.neighbors(&[1], 2, &monitor)?.of(1).collect::<Vec<_>>(), [[0, 3]]);
/// // How far rows 1 and 3 are from the nearer of rows 0 and 2.
/// assert_eq!(index.distances(&[1, 3], &[0, 2], &monitor)?, [0.5, 0.0]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
pub struct Index<'a> {
    rows: &'a SparseRows,
    space: &'a Space,
    /// n_features + 1; start of each feature in `entries`.
    starts: Vec<usize>,
    /// n_entries; row and value.
    entries: Vec<(u32, f64)>,
    /// n_rows; distance from a row of usual values only.
    alone: Vec<f64>,
    /// n_classes; row numbers of each class.
    members: Vec<Vec<u32>>,
    /// The largest number of entries of a row, and the largest of `alone`.
    most: (usize, f64),
}

impl<'a> Index<'a> {
    /// Indexes `rows` by feature.
    pub fn new(rows: &'a SparseRows, space: &'a Space) -> Self {
        let n_rows = rows.len() as u32;
        let mut starts = vec![0; space.shapes.len() + 1];
        let counted = rows.features.iter().filter(|&&feature| space.weight(feature as usize) > 0.0);
        counted.for_each(|&feature| starts[feature as usize + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); starts[space.shapes.len()]];
        let mut members = vec![Vec::new(); space.n_classes];
        for number in 0..n_rows {
            members[space.class(number)].push(number);
            for (feature, value) in rows.row(number).filter(|(feature, _)| space.weight(*feature) > 0.0) {
                entries[next[feature]] = (number, value);
                next[feature] += 1;
            }
        }
        let mut index = Index { rows, space, starts, entries, alone: Vec::new(), members, most: (0, 0.0) };
        let alone = |number| rows.row(number).map(|entry| space.weight(entry.0) * index.unusual(number, entry)).sum();
        index.alone = (0..n_rows).map(alone).collect();
        let widest = (0..n_rows).map(|number| rows.entries(number).len()).max().unwrap_or(0);
        index.most = (widest, index.alone.iter().copied().fold(0.0, f64::max));
        index
    }

    /// Difference between a value of row `number` and the usual one.
    fn unusual(&self, number: u32, (feature, value): (usize, f64)) -> f64 {
        let class = self.space.class(number);
        self.space.apart(feature, (value, class), (self.rows.usual.values[feature], class))
    }

    /// The `k` nearest rows of each class for each of `queries`.
    pub fn neighbors(&self, queries: &[u32], k: usize, monitor: &Monitor) -> Result<NeighborLists> {
        monitor.enter(Phase::Searching, queries.len() as u64);
        let search = |sums: &mut Vec<f64>, &query: &u32| {
            monitor.check()?;
            self.measure(query, sums);
            let lists = self.members.iter().map(|members| self.nearest(query, members, k, sums)).collect();
            monitor.advance(1);
            Ok(lists)
        };
        let found: Vec<Vec<Vec<u32>>> = queries.par_iter().map_init(Vec::new, search).collect::<Result<_>>()?;
        let mut neighbors = NeighborLists::new(self.members.len());
        queries.iter().zip(found).for_each(|(&query, lists)| neighbors.add(query, lists));
        Ok(neighbors.sorted())
    }

    /// The distance of each of `rows` from the nearest of `others`; infinite without others.
    pub fn distances(&self, rows: &[u32], others: &[u32], monitor: &Monitor) -> Result<Vec<f64>> {
        let divisor = self.space.divisor();
        let search = |sums: &mut Vec<f64>, &row: &u32| {
            monitor.check()?;
            self.measure(row, sums);
            let nearest = self.nearest(row, others, 1, sums);
            Ok(nearest.first().map_or(f64::INFINITY, |&other| rounded(self.sum(row, other), divisor)))
        };
        rows.par_iter().map_init(Vec::new, search).collect()
    }

    /// The sum of the weighted differences between two rows, in the order of features.
    fn sum(&self, a: u32, b: u32) -> f64 {
        let mut sum = 0.0;
        self.rows.differences(self.space, a, b, |feature, difference| sum += self.space.weight(feature) * difference);
        sum
    }

    /// Sets `sums` to the distances of all rows from `query`, up to [`Index::error`].
    fn measure(&self, query: u32, sums: &mut Vec<f64>) {
        sums.clear();
        sums.extend(self.alone.iter().map(|alone| alone + self.alone[query as usize]));
        let class = self.space.class(query);
        for (feature, x) in self.rows.row(query) {
            // Features without weight have no entries in the index.
            let weight = self.space.weight(feature);
            let from_usual = self.unusual(query, (feature, x));
            for &(row, y) in &self.entries[self.starts[feature]..self.starts[feature + 1]] {
                let apart = self.space.apart(feature, (x, class), (y, self.space.class(row)));
                sums[row as usize] += weight * (apart - from_usual - self.unusual(row, (feature, y)));
            }
        }
    }

    /// Bound on the rounding error of a sum by [`Index::measure`]: one unit in the last place for each addition. A
    /// difference is at most 1.
    fn error(&self, query: u32) -> f64 {
        let n = self.rows.entries(query).len();
        let additions = 4 * (n + self.most.0 + 1);
        let total = 4.0 * (self.alone[query as usize] + self.most.1) + n as f64;
        2.0 * additions as f64 * total * f64::EPSILON
    }

    /// The `k` nearest of `members`, nearest first.
    fn nearest(&self, query: u32, members: &[u32], k: usize, sums: &[f64]) -> Vec<u32> {
        let divisor = self.space.divisor();
        let others = || members.iter().copied().filter(|&row| !self.space.excludes(query, row));
        let mut found: Vec<f64> = others().map(|row| sums[row as usize]).collect();
        let threshold = match found.len() > k {
            true => {
                *found.select_nth_unstable_by(k - 1, f64::total_cmp).1 + 2.0 * self.error(query) + key_unit(divisor)
            }
            false => f64::INFINITY,
        };
        let measured = |row: u32| (distance_key(self.sum(query, row), divisor), row);
        let mut nearest: Vec<(u64, u32)> =
            others().filter(|row| sums[*row as usize] <= threshold).map(measured).collect();
        nearest.sort_unstable();
        nearest.truncate(k);
        nearest.into_iter().map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;
    use crate::space::Shape;
    use crate::sparse::Usual;

    #[test]
    fn the_bound_on_rounding_errors_counts_the_additions_of_the_row_with_most_entries() {
        // Rows 0 and 1 have an entry each, row 2 has them all.
        let n_features = 1_000;
        let value = |row: usize, feature: usize| match row {
            2 => 1.0 / (3.0 + feature as f64),
            _ => f64::from(feature == row),
        };
        let values: Vec<f64> = (0..3).flat_map(|row| (0..n_features).map(move |feature| value(row, feature))).collect();
        let mut sparse = SparseRows::new(Usual::constant(0.0, n_features));
        sparse.append(&Rows::from_values(n_features, &values));
        let space =
            Space::new(vec![Shape::Numeric; n_features], (0..n_features).map(|_| None).collect(), Vec::new(), 1);
        let index = Index::new(&sparse, &space);
        // Between rows 0 and 2: a unit in the last place for each of the additions.
        let sum: f64 = (0..n_features).map(|feature| value(2, feature)).sum();
        assert!(index.error(0) >= n_features as f64 * (1.0 + sum) * f64::EPSILON);
    }
}
