//! Tiles of rows going past queries.

use pulp::Arch;
use rayon::prelude::*;

use super::layout::{Error, Layout};
use super::lists::{ExactDistance, Lists, NearestParams};
use super::pairwise_bounds::PairwiseBounds;
use super::panels::Panels;
use super::quantized::Scale;
use super::sweep::Sweep;
use super::tile::Piece;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Most panels whose lists are worked on together.
const GROUP: usize = 16;

/// What measuring panels takes.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    /// Where features stand in panels.
    pub layout: &'a Layout,
    /// Progress, and the request to stop.
    pub monitor: &'a Monitor,
    /// Vector instructions of this machine.
    pub arch: Arch,
    /// Where the rows are the queries, and all pairs were compared.
    pub pairwise: Option<&'a PairwiseBounds>,
}

impl Scan<'_> {
    /// Empty lists of the nearest of each class for all of `queries`, by groups of panels that are enough for
    /// all threads; `error` says how far the distances from a row of a given A may be off.
    pub fn lists(
        self,
        queries: &Panels,
        wanted: NearestParams,
        n_classes: usize,
        error: impl Fn(f64) -> Error,
    ) -> Vec<Lists> {
        let group = GROUP.min(queries.len().div_ceil(4 * rayon::current_num_threads())).max(1);
        let groups = (0..queries.len()).step_by(group).map(|first| first..(first + group).min(queries.len()));
        groups.map(|panels| Lists::new(self.layout, queries, panels, wanted, n_classes, &error)).collect()
    }

    /// Offers the rows of `tile` to the queries of all `lists`, each of which is then dealt with by `end`.
    pub fn offer(
        self,
        context: impl ExactDistance,
        queries: &Panels,
        tile: &Panels,
        lists: &mut [Lists],
        end: impl Fn(&mut Lists) + Sync,
    ) -> Result<()> {
        let pieces = Piece::of(self.layout, tile);
        let scale = match self.pairwise {
            Some(pairwise) => Some(pairwise.scale),
            None => lists.first().and_then(|l| Scale::of(self.layout, self.arch, queries, tile, l.k())),
        };
        let bounds = scale.map(|scale| (scale, self.pairwise));
        lists.par_iter_mut().try_for_each_init(Sweep::default, |sweep, lists| {
            for piece in &pieces {
                for number in lists.panels() {
                    self.monitor.check()?;
                    sweep.run(
                        (self.layout, self.arch),
                        bounds,
                        context,
                        (number, queries.panel(self.layout, number)),
                        piece,
                        lists,
                    );
                }
            }
            end(lists);
            Ok(())
        })
    }
}
