//! The exact k nearest neighbours, of every class, of some rows among all rows.
//!
//! Where all rows are queries and in memory, each pair is measured once and offered to both of its rows.
//! Otherwise tiles of rows go past a block of queries. Either way the lists are the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pulp::Arch;
use rayon::prelude::*;

use super::kernel::{Block, Measure, bits};
use super::lists::{Ground, Lists};
use super::panels::{LANES, Layout, Panel, Panels};
use super::rows::{Rows, Table};
use super::space::Space;
use crate::error::Result;
use crate::monitor::{Monitor, Phase};

/// Bytes of panels that stay in the cache while queries go past them.
const CACHED_BYTES: usize = 384 << 10;
/// Most panels whose lists are worked on together.
const GROUP: usize = 16;

/// Nearest first, by class, for each query.
pub(crate) type Neighbours = HashMap<u32, Vec<Vec<u32>>>;

/// What a search needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) space: &'a Space,
    pub(crate) layout: &'a Layout,
    /// Neighbours wanted of each class.
    pub(crate) k: usize,
    pub(crate) monitor: &'a Monitor,
    pub(crate) arch: Arch,
}

impl Search<'_> {
    /// The neighbours of `queries` among the rows of `table`.
    pub(crate) fn among(self, table: &Table<'_>, queries: &Rows) -> Result<Neighbours> {
        let panels = Panels::new(self.layout, self.space, queries);
        let group = GROUP.min(panels.len().div_ceil(4 * rayon::current_num_threads())).max(1);
        let mut lists = self.lists(&panels, group);
        table.pass(Phase::Searching, |rows| {
            let tile = Panels::new(self.layout, self.space, rows);
            let ground = Ground { space: self.space, queries, rows };
            lists.par_iter_mut().try_for_each(|lists| {
                self.pass(ground, &panels, &tile, lists)?;
                match table {
                    Table::Held(_) => lists.finish(ground),
                    Table::Sparse(_) | Table::Streamed(_) => lists.settle_all(ground),
                }
                Ok(())
            })
        })?;
        Ok(lists.into_iter().flat_map(Lists::neighbours).collect())
    }

    /// The neighbours of all `rows` among themselves.
    pub(crate) fn of_all(self, rows: &Rows) -> Result<Neighbours> {
        let panels = Panels::new(self.layout, self.space, rows);
        let ground = Ground { space: self.space, queries: rows, rows };
        let lists: Vec<Mutex<Lists>> =
            self.lists(&panels, self.cached().clamp(1, GROUP)).into_iter().map(Mutex::new).collect();
        let pairs = rounds(lists.len());
        self.monitor.enter(Phase::Searching, rows.numbers.len() as u64);
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let share = |done: usize| (done * rows.numbers.len() / pairs.len()) as u64;
        (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).try_for_each(|_| {
            while let Some(&(a, b)) = pairs.get(next.fetch_add(1, Relaxed)) {
                let mut one = lock(&lists[a]);
                match a == b {
                    true => self.within(ground, &panels, &mut one)?,
                    false => self.between(ground, &panels, &mut one, &mut lock(&lists[b]))?,
                }
                let done = done.fetch_add(1, Relaxed);
                self.monitor.advance(share(done + 1) - share(done));
            }
            Ok(())
        })?;
        let mut lists: Vec<Lists> =
            lists.into_iter().map(|lists| lists.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
        lists.par_iter_mut().try_for_each(|lists| {
            self.monitor.check()?;
            lists.finish(ground);
            Ok(())
        })?;
        Ok(lists.into_iter().flat_map(Lists::neighbours).collect())
    }

    /// Panels that stay in the cache.
    fn cached(self) -> usize {
        (CACHED_BYTES / (self.layout.row_bytes() * LANES)).max(1)
    }

    fn lists(self, panels: &Panels, group: usize) -> Vec<Lists> {
        let groups = (0..panels.len()).step_by(group).map(|first| (first, (first + group).min(panels.len())));
        let new = |(first, end)| Lists::new(self.layout, panels, first, end, self.k, self.space.n_classes);
        groups.map(new).collect()
    }

    /// Offers the rows of `tile` to the queries of `lists`.
    fn pass(self, ground: Ground<'_>, queries: &Panels, tile: &Panels, lists: &mut Lists) -> Result<()> {
        let cached = self.cached();
        let mut block = Block::default();
        for start in (0..tile.len()).step_by(cached) {
            for query in lists.panels() {
                self.monitor.check()?;
                let one = queries.panel(self.layout, query);
                for other in (start..(start + cached).min(tile.len())).map(|number| tile.panel(self.layout, number)) {
                    let passed = self.measure(one, other, lists.gates(query, other.class), None, &mut block);
                    for row in bits(passed) {
                        lists.offer(ground, (query, row), other, &block, row);
                    }
                }
            }
        }
        Ok(())
    }

    /// Offers the rows of `lists` to each other.
    fn within(self, ground: Ground<'_>, panels: &Panels, lists: &mut Lists) -> Result<()> {
        let mut block = Block::default();
        for a in lists.panels() {
            self.monitor.check()?;
            let one = panels.panel(self.layout, a);
            for b in a..lists.panels().end {
                let other = panels.panel(self.layout, b);
                let other_gates = (a != b).then(|| lists.gates(b, one.class));
                let passed = self.measure(one, other, lists.gates(a, other.class), other_gates, &mut block);
                for row in bits(passed) {
                    lists.offer(ground, (a, row), other, &block, row);
                    lists.offer_back(ground, b, one, &block, row);
                }
            }
        }
        Ok(())
    }

    /// Offers the rows of two different lists to each other.
    fn between(self, ground: Ground<'_>, panels: &Panels, these: &mut Lists, those: &mut Lists) -> Result<()> {
        let mut block = Block::default();
        for a in these.panels() {
            self.monitor.check()?;
            let one = panels.panel(self.layout, a);
            for b in those.panels() {
                let other = panels.panel(self.layout, b);
                let (gates, other_gates) = (these.gates(a, other.class), Some(those.gates(b, one.class)));
                let passed = self.measure(one, other, gates, other_gates, &mut block);
                for row in bits(passed) {
                    these.offer(ground, (a, row), other, &block, row);
                    those.offer_back(ground, b, one, &block, row);
                }
            }
        }
        Ok(())
    }

    fn measure(
        self,
        one: Panel<'_>,
        other: Panel<'_>,
        gates: &[f32; LANES],
        other_gates: Option<&[f32; LANES]>,
        block: &mut Block,
    ) -> u16 {
        Measure { layout: self.layout, one, other, gates, other_gates, block }.run(self.arch)
    }
}

fn lock(lists: &Mutex<Lists>) -> MutexGuard<'_, Lists> {
    lists.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All pairs (a, b), a ≤ b < n, in an order in which neighbours have nothing in common, so that threads
/// that take one after the other do not wait for each other.
fn rounds(n: usize) -> Vec<(usize, usize)> {
    let round = |sum: usize| {
        (0..n).filter_map(move |a| {
            let b = (sum + n - a) % n;
            (a <= b).then_some((a, b))
        })
    };
    (0..n).flat_map(round).collect()
}
