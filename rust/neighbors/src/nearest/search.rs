//! Searches of Relief: queries among the rows of a table, or all rows among themselves.

use pulp::Arch;

use super::coded_rows::CodedRows;
use super::nearest_k::{NearestK, NearestParams};
use super::neighbor_lists::NeighborLists;
use super::pairwise_bounds::{self, PairwiseBounds};
use super::pairwise_distances::{self, PairwiseDistances};
use super::sweep::Bounds;
use crate::context::DistanceContext;
use crate::layout::{LANES, Layout};
use crate::panels::Panels;
use crate::rows::Rows;
use crate::scan::Scan;
use crate::space::Space;
use crate::space_panels::{error_of, members, panels_of};
use crate::table::Table;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// A search for the nearest rows of each class.
///
/// ```
/// use ferrank_neighbors::nearest::{NearestParams, Search};
/// use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::space::{Shape, Space};
/// use ferrank_neighbors::space_panels::layout_of;
/// use ferrank_runtime::monitor::Monitor;
///
/// // Row 2 is as far from row 0 as from row 1: the lower number is nearer.
/// let mut rows = Rows::with_capacity(3, 1);
/// rows.add(0..3).copy_from_slice(&[0.0, 1.0, 0.5]);
/// let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// let (layout, monitor) = (layout_of(&space), Monitor::default());
/// let params = NearestParams { k: 1, unordered: 0 };
/// let search = Search { space: &space, layout: &layout, params, monitor: &monitor, arch: Default::default() };
/// let found = search.of_all(&rows, 0)?;
/// assert_eq!(found.of(2).collect::<Vec<_>>(), [[0]]);
/// // More memory changes the time alone.
/// assert_eq!(search.of_all(&rows, usize::MAX)?, found);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The features and their differences.
    pub space: &'a Space,
    /// The columns of panels in which features are stored.
    pub layout: &'a Layout,
    /// The number of neighbors, and how many of them may be in any order.
    pub params: NearestParams,
    /// Takes progress and the request to stop.
    pub monitor: &'a Monitor,
    /// Vector instructions of this machine.
    pub arch: Arch,
}

impl Search<'_> {
    /// Finds the neighbors of `queries` among the rows of `table`.
    ///
    /// # Errors
    /// What reading the table gives, and [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn among(self, table: &Table<'_>, queries: &Rows) -> Result<NeighborLists> {
        let Search { space, layout, params, arch, .. } = self;
        let panels = panels_of(layout, space, queries);
        let mut lists = self.lists(&panels);
        table.pass(Phase::Searching, |rows| {
            let row_panels = panels_of(layout, space, rows);
            let exact = DistanceContext { space, queries, rows };
            let bounds = Bounds::new(layout, arch, &panels, &row_panels, params.k);
            self.scan().offer(exact, [&panels, &row_panels], bounds, &mut lists, |lists| match table {
                Table::Held(_) => lists.finish(exact),
                Table::Sparse(_) | Table::Spilled(_) | Table::Streamed(_) => lists.refine_all(exact),
            })
        })?;
        Ok(self.neighbors(&lists))
    }

    /// Finds the neighbors of all `rows` among themselves, in at most `budget` bytes beside the lists.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn of_all(self, rows: &Rows, budget: usize) -> Result<NeighborLists> {
        if let Some(found) = self.of_coded(rows, budget)? {
            return Ok(found);
        }
        let Search { space, layout, params, arch, monitor } = self;
        let panels = panels_of(layout, space, rows);
        let mut lists = self.lists(&panels);
        let exact = DistanceContext { space, queries: rows, rows };
        monitor.enter(Phase::Searching, rows.numbers.len() as u64);
        let pairwise = match pairwise_bounds::bytes(layout, panels.len()) {
            Some(bytes) if bytes <= budget => PairwiseBounds::new(layout, &panels, params.k, arch, monitor)?,
            _ => None,
        };
        let distances = match pairwise_distances::bytes(layout, panels.len()) {
            Some(bytes) if bytes <= budget => Some(PairwiseDistances::new(layout, &panels, arch, monitor)?),
            _ => None,
        };
        let bounds = match (&pairwise, &distances) {
            (Some(pairwise), _) => Bounds::from_pairwise(pairwise),
            (None, Some(distances)) => Bounds::from_distances(distances),
            (None, None) => Bounds::new(layout, arch, &panels, &panels, params.k),
        };
        self.scan().offer(exact, [&panels, &panels], bounds, &mut lists, |lists| {
            lists.finish(exact);
            monitor.advance(lists.n_queries() as u64);
        })?;
        Ok(self.neighbors(&lists))
    }

    /// As [`of_all`](Search::of_all), where rows are few and can be coded as integers.
    fn of_coded(self, rows: &Rows, budget: usize) -> Result<Option<NeighborLists>> {
        let Search { space, layout, params, arch, monitor } = self;
        let Some(bytes) = pairwise_distances::bytes(layout, rows.numbers.len().div_ceil(LANES) + space.n_classes)
        else {
            return Ok(None);
        };
        if bytes > budget {
            return Ok(None);
        }
        // Panels without values.
        let empty = Layout { n_classes: space.n_classes, ..Layout::default() };
        let panels = Panels::new(&empty, members(space, rows), |_, _| 0.0);
        let Some(coded) = CodedRows::new(layout, space, &panels, rows, arch) else { return Ok(None) };
        monitor.enter(Phase::Searching, rows.numbers.len() as u64);
        let distances = PairwiseDistances::of_coded(&coded, &panels, arch, monitor)?;
        let exact = DistanceContext { space, queries: rows, rows };
        let scan = Scan { layout: &empty, monitor, arch };
        let new = |group| NearestK::new(&empty, &panels, group, params, space.n_classes, |_| coded.error());
        let mut lists: Vec<NearestK> = scan.groups(&panels).map(new).collect();
        scan.offer(exact, [&panels, &panels], Bounds::from_distances(&distances), &mut lists, |lists| {
            lists.finish(exact);
            monitor.advance(lists.n_queries() as u64);
        })?;
        Ok(Some(self.neighbors(&lists)))
    }

    fn neighbors(self, lists: &[NearestK]) -> NeighborLists {
        let mut neighbors = NeighborLists::new(self.space.n_classes);
        lists.iter().flat_map(NearestK::neighbors).for_each(|(query, rows)| neighbors.add(query, rows));
        neighbors.sorted()
    }

    fn scan(&self) -> Scan<'_> {
        Scan { layout: self.layout, monitor: self.monitor, arch: self.arch }
    }

    fn lists(&self, panels: &Panels) -> Vec<NearestK> {
        let error = |sum| error_of(self.layout, sum);
        let groups = self.scan().groups(panels);
        groups
            .map(|group| NearestK::new(self.layout, panels, group, self.params, self.space.n_classes, error))
            .collect()
    }
}
