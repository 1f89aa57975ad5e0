//! What Relief's distances are measured on.

use super::rows::Rows;
use super::space::{Example, Space};
use ferrank_neighbors::lists;

/// A space, and where rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) space: &'a Space,
    /// Where the queries are.
    pub(crate) queries: &'a Rows,
    /// Where the rows are that are not settled yet.
    pub(crate) rows: &'a Rows,
}

impl<'a> Ground<'a> {
    pub(crate) fn example(self, of: &'a Rows, number: u32) -> Example<'a> {
        Example { values: of.row(number), class: self.space.class(number) }
    }

    /// A query, and a row.
    #[inline]
    pub(crate) fn pair(self, query: u32, row: u32) -> [Example<'a>; 2] {
        [self.example(self.queries, query), self.example(self.rows, row)]
    }
}

impl lists::Ground for Ground<'_> {
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
