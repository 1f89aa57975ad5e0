//! The exact k nearest neighbours, of every class, of some rows among all rows.
//!
//! Where all rows are queries and in memory, each pair is measured once and offered to both of its rows. How far
//! neighbours are is then guessed from a sample, so that few rows are offered that do not stay; queries whose
//! guess was too low are searched for again. Otherwise tiles of rows go past a block of queries. Either way the
//! lists are the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pulp::Arch;
use rayon::prelude::*;

use super::ground::Ground;
use super::rows::{Rows, Table};
use super::space::Space;
use crate::error::Result;
use crate::monitor::{Monitor, Phase};
use crate::neighbors::kernel::{Block, bits};
use crate::neighbors::lists::Lists;
use crate::neighbors::panels::{Layout, Panel, Panels};
use crate::neighbors::reach::Reach;
use crate::neighbors::scan::{GROUP, Scan};

/// Pairs of a round.
const ROUND: usize = 8;

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
        let mut lists = self.lists(&panels, Scan::group(&panels));
        table.pass(Phase::Searching, |rows| {
            let tile = Panels::new(self.layout, self.space, rows);
            let ground = Ground { space: self.space, queries, rows };
            self.offer(ground, &panels, &tile, &mut lists, |lists| match table {
                Table::Held(_) => lists.finish(ground),
                Table::Sparse(_) | Table::Streamed(_) => lists.settle_all(ground),
            })
        })?;
        Ok(lists.into_iter().flat_map(Lists::neighbours).collect())
    }

    /// The neighbours of all `rows` among themselves.
    pub(crate) fn of_all(self, rows: &Rows) -> Result<Neighbours> {
        let panels = Panels::new(self.layout, self.space, rows);
        let ground = Ground { space: self.space, queries: rows, rows };
        let mut lists = self.lists(&panels, self.scan().cached().min(GROUP));
        self.guess(&panels, rows, &mut lists)?;
        let lists: Vec<Mutex<Lists>> = lists.into_iter().map(Mutex::new).collect();
        let rounds = rounds(lists.len());
        let n_pairs = lists.len() * (lists.len() + 1) / 2;
        self.monitor.enter(Phase::Searching, rows.numbers.len() as u64);
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let share = |done: usize| (done * rows.numbers.len() / n_pairs) as u64;
        (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).try_for_each(|_| {
            while let Some(round) = rounds.get(next.fetch_add(1, Relaxed)) {
                for &(a, b) in round {
                    let mut one = lock(&lists[a]);
                    match a == b {
                        true => self.within(ground, &panels, &mut one)?,
                        false => self.between(ground, &panels, &mut one, &mut lock(&lists[b]))?,
                    }
                    let done = done.fetch_add(1, Relaxed);
                    self.monitor.advance(share(done + 1) - share(done));
                }
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
        let mut missed: Vec<u32> = lists.iter().flat_map(Lists::missed).copied().collect();
        missed.sort_unstable();
        let mut found: Neighbours = lists.into_iter().flat_map(Lists::neighbours).collect();
        if !missed.is_empty() {
            let mut queries = Rows::default();
            queries.append_some(rows, &missed);
            found.extend(self.of_some(&queries, &panels, ground)?);
        }
        Ok(found)
    }

    /// Guesses from a sample how far the neighbours of all `rows` are.
    fn guess(self, panels: &Panels, rows: &Rows, lists: &mut [Lists]) -> Result<()> {
        let sample = Panels::sample(self.layout, self.space, rows, self.k);
        let sample: Vec<Panel<'_>> = (0..sample.len()).map(|number| sample.panel(self.layout, number)).collect();
        lists.par_iter_mut().try_for_each(|lists| {
            for number in lists.panels() {
                self.monitor.check()?;
                let one = panels.panel(self.layout, number);
                for sample in sample.chunk_by(|a, b| a.class == b.class) {
                    let gates = Reach { layout: self.layout, one, sample }.find(self.arch);
                    lists.guess(number, sample[0].class, gates);
                }
            }
            Ok(())
        })
    }

    /// The neighbours of `queries`, which are some of the rows in `panels`.
    fn of_some(self, queries: &Rows, panels: &Panels, ground: Ground<'_>) -> Result<Neighbours> {
        let some = Panels::new(self.layout, self.space, queries);
        let mut lists = self.lists(&some, Scan::group(&some));
        self.offer(ground, &some, panels, &mut lists, |lists| lists.finish(ground))?;
        Ok(lists.into_iter().flat_map(Lists::neighbours).collect())
    }

    /// Offers the rows of `tile` to all lists, each of which is then dealt with by `end`.
    fn offer(
        self,
        ground: Ground<'_>,
        queries: &Panels,
        tile: &Panels,
        lists: &mut [Lists],
        end: impl Fn(&mut Lists) + Sync,
    ) -> Result<()> {
        lists.par_iter_mut().try_for_each(|lists| {
            self.scan().pass(ground, queries, tile, lists)?;
            end(lists);
            Ok(())
        })
    }

    fn scan(&self) -> Scan<'_> {
        Scan { layout: self.layout, monitor: self.monitor, arch: self.arch }
    }

    fn lists(&self, panels: &Panels, group: usize) -> Vec<Lists> {
        self.scan().lists(panels, group, self.k, self.space.n_classes, |sum| self.layout.error(sum))
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
                let passed = self.scan().measure(one, other, lists.gates(a, other.class), other_gates, &mut block);
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
        let others: Vec<Panel<'_>> = those.panels().map(|b| panels.panel(self.layout, b)).collect();
        for a in these.panels() {
            self.monitor.check()?;
            let one = panels.panel(self.layout, a);
            for (b, &other) in those.panels().zip(&others) {
                let (gates, other_gates) = (these.gates(a, other.class), Some(those.gates(b, one.class)));
                let passed = self.scan().measure(one, other, gates, other_gates, &mut block);
                for row in bits(passed) {
                    these.offer(ground, (a, row), other, &block, row);
                    those.offer_back(ground, b, one, &block, row);
                }
            }
        }
        Ok(())
    }
}

fn lock(lists: &Mutex<Lists>) -> MutexGuard<'_, Lists> {
    lists.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All pairs (a, b), a ≤ b < n, in rounds that have one number in common, which stays in the cache of the thread
/// that takes the round. The numbers of rounds that follow each other are far apart, so that threads do not wait for
/// each other.
pub(super) fn rounds(n: usize) -> Vec<Vec<(usize, usize)>> {
    let round = |start: usize, a: usize| -> Vec<(usize, usize)> {
        let once = |apart: &usize| 2 * apart < n || (2 * apart == n && a < *apart);
        let others = (start..start + ROUND).filter(once).map(|apart| (a + apart) % n);
        others.map(|b| (a.min(b), a.max(b))).collect()
    };
    // About the golden section of n, and without a common factor.
    let step = (n * 5 / 8..).find(|&step| gcd(step, n) == 1).unwrap_or(1);
    let numbers = move || (0..n).map(move |turn| turn * step % n);
    (0..n / 2 + 1).step_by(ROUND).flat_map(|start| numbers().map(move |a| round(start, a))).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
