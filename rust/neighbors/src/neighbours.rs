//! Who the neighbours of queries are.

/// The nearest rows of each query, by class, nearest first.
#[derive(Debug, Default, PartialEq)]
pub struct Neighbours {
    n_classes: usize,
    /// (query, its place), by query.
    queries: Vec<(u32, u32)>,
    /// Where the list of each place and class ends.
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl Neighbours {
    /// None yet.
    pub fn new(n_classes: usize) -> Self {
        Neighbours { n_classes, ..Neighbours::default() }
    }

    /// Adds a query, which is not there, with its list of each class.
    pub fn add<L: IntoIterator<Item = u32>>(&mut self, query: u32, lists: impl IntoIterator<Item = L>) {
        self.queries.push((query, self.queries.len() as u32));
        for list in lists {
            self.rows.extend(list);
            self.ends.push(self.rows.len());
        }
    }

    /// To be asked from now on.
    pub fn sorted(mut self) -> Self {
        self.queries.sort_unstable();
        self
    }

    /// The lists of `query`, one for each class; it is one of the queries.
    pub fn of(&self, query: u32) -> impl Iterator<Item = &[u32]> {
        let found = self.queries.binary_search_by_key(&query, |(query, _)| *query).expect("one of the queries");
        let first = self.queries[found].1 as usize * self.n_classes;
        (first..first + self.n_classes).map(|list| {
            let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.rows[start..self.ends[list]]
        })
    }
}
