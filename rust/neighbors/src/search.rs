//! The exact k nearest neighbours, of every class, of some rows among all rows.
//!
//! Tiles of rows go past the queries; where all rows are in memory they are one tile.

use pulp::Arch;

use super::context::DistanceContext;
use super::neighbours::Neighbours;
use super::rows::Rows;
use super::space::Space;
use super::table::Table;
use crate::layout::Layout;
use crate::lists::{Lists, NearestParams};
use crate::pairwise_bounds::{self, PairwiseBounds};
use crate::panels::Panels;
use crate::scan::Scan;
use crate::space_panels::{error_of, panels_of};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};

/// What a search needs to know.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The features and their differences.
    pub space: &'a Space,
    /// Where features stand in panels.
    pub layout: &'a Layout,
    /// Which neighbours.
    pub wanted: NearestParams,
    /// Progress, and the request to stop.
    pub monitor: &'a Monitor,
    /// Vector instructions of this machine.
    pub arch: Arch,
}

impl Search<'_> {
    /// The neighbours of `queries` among the rows of `table`.
    pub fn among(self, table: &Table<'_>, queries: &Rows) -> Result<Neighbours> {
        let panels = panels_of(self.layout, self.space, queries);
        let mut lists = self.lists(&panels);
        table.pass(Phase::Searching, |rows| {
            let tile = panels_of(self.layout, self.space, rows);
            let context = DistanceContext { space: self.space, queries, rows };
            self.scan().offer(context, &panels, &tile, &mut lists, |lists| match table {
                Table::Held(_) => lists.finish(context),
                Table::Sparse(_) | Table::Streamed(_) => lists.refine_all(context),
            })
        })?;
        Ok(self.neighbours(&lists))
    }

    /// The neighbours of all `rows` among themselves; `room` bytes may be used for that.
    pub fn of_all(self, rows: &Rows, room: usize) -> Result<Neighbours> {
        let panels = panels_of(self.layout, self.space, rows);
        let mut lists = self.lists(&panels);
        let context = DistanceContext { space: self.space, queries: rows, rows };
        self.monitor.enter(Phase::Searching, rows.numbers.len() as u64);
        let is_worthwhile = pairwise_bounds::bytes(self.layout, panels.len()).is_some_and(|bytes| bytes <= room);
        let pairwise = match is_worthwhile {
            true => PairwiseBounds::new(self.layout, &panels, self.wanted.k, self.arch, self.monitor)?,
            false => None,
        };
        let scan = Scan { pairwise: pairwise.as_ref(), ..self.scan() };
        scan.offer(context, &panels, &panels, &mut lists, |lists| {
            lists.finish(context);
            self.monitor.advance(lists.n_queries() as u64);
        })?;
        Ok(self.neighbours(&lists))
    }

    fn neighbours(self, lists: &[Lists]) -> Neighbours {
        let mut neighbours = Neighbours::new(self.space.n_classes);
        lists.iter().flat_map(Lists::neighbours).for_each(|(query, rows)| neighbours.add(query, rows));
        neighbours.sorted()
    }

    fn scan(&self) -> Scan<'_> {
        Scan { layout: self.layout, monitor: self.monitor, arch: self.arch, pairwise: None }
    }

    fn lists(&self, panels: &Panels) -> Vec<Lists> {
        self.scan().lists(panels, self.wanted, self.space.n_classes, |sum| error_of(self.layout, sum))
    }
}
