//! The result of a search.

/// The nearest rows of each query, by class, nearest first.
///
/// ```
/// use ferrank_neighbors::nearest::NeighborLists;
///
/// // Row 7 has two neighbors of class 0 and one of class 1; row 5 has none of class 1.
/// let mut lists = NeighborLists::new(2);
/// lists.add(7, [vec![3, 1], vec![2]]);
/// lists.add(5, [vec![1], vec![]]);
/// let lists = lists.sorted();
/// assert_eq!(lists.of(7).collect::<Vec<_>>(), [vec![3, 1], vec![2]]);
/// assert_eq!(lists.of(5).map(<[u32]>::len).collect::<Vec<_>>(), [1, 0]);
/// ```
#[derive(Debug, Default, PartialEq)]
pub struct NeighborLists {
    n_classes: usize,
    /// (query, its position), by query.
    queries: Vec<(u32, u32)>,
    /// n_queries x n_classes; end of the list of each position and class in `rows`.
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl NeighborLists {
    /// Creates a result without queries.
    pub fn new(n_classes: usize) -> Self {
        NeighborLists { n_classes, ..NeighborLists::default() }
    }

    /// Adds a new query with its list of each class.
    pub fn add<L: IntoIterator<Item = u32>>(&mut self, query: u32, lists: impl IntoIterator<Item = L>) {
        self.queries.push((query, self.queries.len() as u32));
        for list in lists {
            self.rows.extend(list);
            self.ends.push(self.rows.len());
        }
    }

    /// Sorts the queries, which [`NeighborLists::of`] searches.
    pub fn sorted(mut self) -> Self {
        self.queries.sort_unstable();
        self
    }

    /// The lists of `query`, one for each class.
    ///
    /// # Panics
    /// If `query` was not added.
    pub fn of(&self, query: u32) -> impl Iterator<Item = &[u32]> {
        let found = self.queries.binary_search_by_key(&query, |(query, _)| *query).expect("one of the queries");
        let first = self.queries[found].1 as usize * self.n_classes;
        (first..first + self.n_classes).map(|list| {
            let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.rows[start..self.ends[list]]
        })
    }
}
