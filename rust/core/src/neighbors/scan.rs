//! Tiles of rows going past queries.

use pulp::Arch;

use super::kernel::{Block, Measure, Sight, bits};
use super::lists::{Ground, Lists};
use super::panels::{Error, LANES, Layout, Panel, Panels};
use crate::error::Result;
use crate::monitor::Monitor;

/// Bytes of panels that stay in the cache while queries go past them.
const CACHED_BYTES: usize = 384 << 10;
/// Most panels whose lists are worked on together.
pub(crate) const GROUP: usize = 16;

/// What measuring panels takes.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) monitor: &'a Monitor,
    pub(crate) arch: Arch,
}

impl Scan<'_> {
    /// Panels that stay in the cache.
    pub(crate) fn cached(self) -> usize {
        (CACHED_BYTES / (self.layout.searched_bytes() * LANES)).max(1)
    }

    /// Empty lists of the `k` nearest of each class for all of `queries`, by groups of panels; `error` says
    /// how far the distances from a row of a given A may be off.
    pub(crate) fn lists(
        self,
        queries: &Panels,
        group: usize,
        k: usize,
        n_classes: usize,
        error: impl Fn(f64) -> Error,
    ) -> Vec<Lists> {
        let groups = (0..queries.len()).step_by(group).map(|first| first..(first + group).min(queries.len()));
        groups.map(|panels| Lists::new(self.layout, queries, panels, k, n_classes, &error)).collect()
    }

    /// Groups of panels of `queries` that are enough for all threads.
    pub(crate) fn group(queries: &Panels) -> usize {
        GROUP.min(queries.len().div_ceil(4 * rayon::current_num_threads())).max(1)
    }

    /// Offers the rows of `tile` to the queries of `lists`.
    pub(crate) fn pass(self, ground: impl Ground, queries: &Panels, tile: &Panels, lists: &mut Lists) -> Result<()> {
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

    /// Measures two panels; gives a bit for each line of `block` in which some distance passes a gate.
    pub(crate) fn measure(
        self,
        one: Panel<'_>,
        other: Panel<'_>,
        gates: &[f32; LANES],
        other_gates: Option<&[f32; LANES]>,
        block: &mut Block,
    ) -> u16 {
        let sight = Sight { layout: self.layout, one, other, gates, other_gates };
        sight.measure_near(self.arch, block).unwrap_or_else(|| Measure { sight, block }.run(self.arch))
    }
}
