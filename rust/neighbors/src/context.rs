//! What Relief's distances are measured on.

use super::rows::Rows;
use super::space::{Example, Space};
use crate::lists;
use crate::space::rounded;

/// A space, and where rows are.
#[derive(Debug, Clone, Copy)]
pub struct DistanceContext<'a> {
    /// The features and their differences.
    pub space: &'a Space,
    /// Where the queries are.
    pub queries: &'a Rows,
    /// Where the rows are that are not settled yet.
    pub rows: &'a Rows,
}

impl<'a> DistanceContext<'a> {
    /// A row with its class.
    pub fn example(self, of: &'a Rows, number: u32) -> Example<'a> {
        Example { values: of.row(number), class: self.space.class(number) }
    }

    /// A query, and a row.
    #[inline]
    pub fn pair(self, query: u32, row: u32) -> [Example<'a>; 2] {
        [self.example(self.queries, query), self.example(self.rows, row)]
    }

    /// The rounded distance between query `a` and row `b`.
    pub fn distance(self, a: u32, b: u32) -> f64 {
        let mut sums = Vec::with_capacity(1);
        self.space.distances(self.example(self.queries, a), &[self.example(self.rows, b)], &mut sums);
        rounded(sums[0], self.space.shapes.len())
    }
}

impl lists::ExactDistance for DistanceContext<'_> {
    /// Distances are means over features.
    fn whole(self) -> usize {
        self.space.shapes.len()
    }

    fn is_itself(self, query: u32, row: u32) -> bool {
        query == row
    }

    fn distances(self, query: u32, rows: &[u32], out: &mut Vec<f64>) {
        let others: Vec<Example<'_>> = rows.iter().map(|row| self.example(self.rows, *row)).collect();
        self.space.distances(self.example(self.queries, query), &others, out);
    }
}
