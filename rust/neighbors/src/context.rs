//! Exact distances between queries and rows of a distance space.

use super::gaps::MOST_INTERPOLATED;
use super::rows::Rows;
use super::space::{Example, Space};
use crate::sink::ExactDistance;
use crate::space::rounded;

/// The values that exact distances are computed from.
///
/// ```
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::space::{Shape, Space};
///
/// // Two numbers and a category: both rows have the same numbers.
/// let mut rows = Rows::with_capacity(2, 3);
/// rows.add(0..2).copy_from_slice(&[0.0, 0.5, 1.0, 0.0, 0.5, 2.0]);
/// let space = Space::new(vec![Shape::Numeric, Shape::Numeric, Shape::Nominal], vec![None, None, None], Vec::new(), 1);
/// let context = DistanceContext { space: &space, queries: &rows, rows: &rows };
/// assert_eq!(context.distance(0, 1), 0.333333333333);
/// let [query, row] = context.pair(0, 1);
/// assert_eq!([0, 1, 2].map(|feature| space.difference(feature, query, row)), [0.0, 0.0, 1.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DistanceContext<'a> {
    /// The features and their differences.
    pub space: &'a Space,
    /// The values of the queries.
    pub queries: &'a Rows,
    /// The values of the rows.
    pub rows: &'a Rows,
}

impl<'a> DistanceContext<'a> {
    /// Row `number` of `rows` with its class.
    pub fn example(self, rows: &'a Rows, number: u32) -> Example<'a> {
        self.space.example(number, rows.row(number))
    }

    /// A query and a row.
    #[inline]
    pub fn pair(self, query: u32, row: u32) -> [Example<'a>; 2] {
        [self.example(self.queries, query), self.example(self.rows, row)]
    }

    /// The distance between query `a` and row `b`, rounded to 12 decimals.
    pub fn distance(self, a: u32, b: u32) -> f64 {
        let mut sums = Vec::with_capacity(1);
        self.space.distances(self.example(self.queries, a), &[self.example(self.rows, b)], &mut sums);
        rounded(sums[0], self.space.divisor())
    }
}

impl ExactDistance for DistanceContext<'_> {
    fn divisor(self) -> f64 {
        self.space.divisor()
    }

    #[inline]
    fn is_excluded(self, query: u32, row: u32) -> bool {
        self.space.excludes(query, row)
    }

    fn n_excluded(self, query: u32) -> usize {
        self.space.n_excluded(query)
    }

    fn beyond_means(self, query: u32, row: u32, [of_query, of_row]: [&[u32]; 2]) -> f64 {
        let [a, b] = self.pair(query, row);
        let is_exact = of_query.len() + of_row.len() > MOST_INTERPOLATED;
        let beyond = |&feature: &u32| self.space.beyond_means(feature as usize, a, b, is_exact);
        let of_row = of_row.iter().filter(|&&feature| !a.values[feature as usize].is_nan());
        of_query.iter().chain(of_row).map(beyond).sum()
    }

    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>) {
        let others: Vec<Example<'_>> = rows.iter().map(|row| self.example(self.rows, *row)).collect();
        self.space.distances(self.example(self.queries, query), &others, out);
    }
}
