//! Walks over all pairs of queries and rows, tile by tile, in parallel over groups of queries.

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::layout::Layout;
use super::panels::Panels;
use super::sink::{ExactDistance, PairSink};
use super::tile::{RowBlock, Tile};
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::Monitor;

/// Most panels of queries that share a sink.
const GROUP: usize = 16;

/// What a walk over pairs needs.
///
/// ```
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::nearest::{Bounds, NearestK, NearestParams};
/// # use ferrank_neighbors::rows::Rows;
/// use ferrank_neighbors::scan::Scan;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{error_of, layout_of, panels_of};
/// # use ferrank_runtime::monitor::Monitor;
/// # use pulp::Arch;
///
/// // 40 rows make three panels, which are split among sinks.
/// # let mut rows = Rows::with_capacity(40, 1);
/// # (0..40).for_each(|number| rows.add([number]).fill(f64::from(number) / 39.0));
/// # let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// # let (layout, monitor, arch) = (layout_of(&space), Monitor::default(), Arch::new());
/// # let panels = panels_of(&layout, &space, &rows);
/// # let exact = DistanceContext { space: &space, queries: &rows, rows: &rows };
/// # let (params, error) = (NearestParams { k: 1, unordered: 0 }, |sum| error_of(&layout, sum));
/// let scan = Scan { layout: &layout, monitor: &monitor, arch };
/// let sink = |group| NearestK::new(&layout, &panels, group, params, 1, error);
/// let mut sinks: Vec<NearestK> = scan.groups(&panels).map(sink).collect();
/// assert_eq!(sinks.iter().map(NearestK::n_queries).sum::<usize>(), 40);
/// let bounds = Bounds::new(&layout, arch, &panels, &panels, 1);
/// scan.offer(exact, [&panels, &panels], bounds, &mut sinks, |lists| lists.finish(exact))?;
/// // A scan looks at the request to stop.
/// monitor.stop();
/// assert!(scan.offer(exact, [&panels, &panels], bounds, &mut sinks, |_| ()).is_err());
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    /// The columns of panels in which features are stored.
    pub layout: &'a Layout,
    /// Takes progress and the request to stop.
    pub monitor: &'a Monitor,
    /// Vector instructions of this machine.
    pub arch: Arch,
}

impl Scan<'_> {
    /// Splits the panels of `queries` into groups, enough of them to keep all threads busy.
    pub fn groups(self, queries: &Panels) -> impl Iterator<Item = Range<usize>> {
        let n = queries.len();
        let group = GROUP.min(n.div_ceil(4 * rayon::current_num_threads())).max(1);
        (0..n).step_by(group).map(move |first| first..(first + group).min(n))
    }

    /// Offers all `rows` to the queries of each of `sinks`, then calls `end` with the sink.
    ///
    /// # Errors
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn offer<K: PairSink>(
        self,
        exact: impl ExactDistance,
        [queries, rows]: [&Panels; 2],
        shared: K::Shared<'_>,
        sinks: &mut [K],
        end: impl Fn(&mut K) + Sync,
    ) -> Result<()> {
        let Scan { layout, monitor, arch } = self;
        let blocks = RowBlock::cut(layout, rows);
        sinks.par_iter_mut().try_for_each_init(K::Buffers::default, |buffers, sink| {
            for block in &blocks {
                for query_panel in sink.panels() {
                    monitor.check()?;
                    let tile = Tile {
                        layout,
                        exact,
                        query_panel,
                        queries: queries.panel(layout, query_panel),
                        first_row_panel: block.first,
                        rows: &block.panels,
                        quantization_error: block.quantization_error,
                    };
                    sink.take(arch, tile, shared, buffers);
                }
            }
            end(sink);
            Ok(())
        })
    }
}
