//! Tiles: the queries of one panel and a block of rows of one class, the unit of work of a scan.

use pulp::Arch;

use super::kernel::{Lines, Measure};
use super::layout::{LANES, Layout};
use super::panels::{Panel, Panels};

/// Most panels of a block of rows, so that what is written down for a panel of queries stays in the cache.
const MOST_PANELS: usize = 512;
/// Most differences of values in a tile; the request to stop is looked at between tiles.
const MOST_WORK: usize = 1 << 30;

/// Some panels of rows of one class.
pub(crate) struct RowBlock<'a> {
    /// Number of the first panel.
    pub(super) first: usize,
    pub(super) panels: Vec<Panel<'a>>,
    /// The largest quantization error of a row.
    pub(super) quantization_error: f32,
}

impl<'a> RowBlock<'a> {
    /// Cuts `rows` into blocks.
    pub(super) fn cut(layout: &'a Layout, rows: &'a Panels) -> Vec<Self> {
        let most = MOST_WORK / (LANES * LANES) / (layout.whole.len() + layout.with_missing.len()).max(1);
        let most = most.clamp(1, MOST_PANELS);
        let panels: Vec<Panel<'a>> = (0..rows.len()).map(|number| rows.panel(layout, number)).collect();
        let blocks = panels.chunk_by(|a, b| a.class == b.class).flat_map(|class| class.chunks(most));
        let mut first = 0;
        let block = |panels: &[Panel<'a>]| {
            let quantization_error =
                panels.iter().flat_map(|panel| panel.byte_codes.quantization_error).copied().fold(0.0, f32::max);
            let block = RowBlock { first, panels: panels.to_vec(), quantization_error };
            first += panels.len();
            block
        };
        blocks.map(block).collect()
    }
}

/// The pairs of the queries of a panel and some rows of one class.
///
/// ```
/// # use ferrank_neighbors::panels::Panel;
/// # use ferrank_neighbors::rows::Rows;
/// # use ferrank_neighbors::space::{Shape, Space};
/// # use ferrank_neighbors::space_panels::{layout_of, panels_of};
/// use ferrank_neighbors::context::DistanceContext;
/// use ferrank_neighbors::tile::Tile;
///
/// // 17 rows fill a panel and start another.
/// let mut rows = Rows::with_capacity(17, 1);
/// rows.add(0..17).iter_mut().enumerate().for_each(|(number, value)| *value = number as f64 / 16.0);
/// let space = Space::new(vec![Shape::Numeric], vec![None], Vec::new(), 1);
/// let layout = layout_of(&space);
/// let all = panels_of(&layout, &space, &rows);
/// let panels: Vec<Panel<'_>> = (0..all.len()).map(|number| all.panel(&layout, number)).collect();
/// let tile = Tile {
///     layout: &layout,
///     exact: DistanceContext { space: &space, queries: &rows, rows: &rows },
///     query_panel: 0,
///     queries: panels[0],
///     first_row_panel: 0,
///     rows: &panels,
///     quantization_error: 0.0,
/// };
/// // From query 3 to row 16, the first of panel 1.
/// let mut lines = Vec::new();
/// tile.measure(Default::default(), &mut lines, |_, _| ());
/// assert_eq!((lines[1][3][0], tile.exact.distance(3, 16)), (0.8125, 0.8125));
/// ```
#[derive(Clone, Copy)]
pub struct Tile<'a, D> {
    /// The columns of panels in which features are stored.
    pub layout: &'a Layout,
    /// Measures pairs in f64.
    pub exact: D,
    /// Number of the panel of queries.
    pub query_panel: usize,
    /// The panel of queries.
    pub queries: Panel<'a>,
    /// Number of the first panel of rows.
    pub first_row_panel: usize,
    /// Panels of rows, all of one class.
    pub rows: &'a [Panel<'a>],
    /// The largest quantization error of a row.
    pub quantization_error: f32,
}

impl<D> Tile<'_, D> {
    /// Sets `out` to the distances in f32 of all pairs, with means in the place of few missing values: for each panel of rows a
    /// line for each query. Calls `each` with the number of the panel of rows and its distances while they are in the cache.
    #[inline]
    pub fn measure(&self, arch: Arch, out: &mut Vec<Lines>, mut each: impl FnMut(usize, &Lines)) {
        out.resize(self.rows.len(), [[0.0; LANES]; LANES]);
        for (number, (&rows, lines)) in self.rows.iter().zip(out).enumerate() {
            arch.dispatch(Measure::new(self.layout, self.queries, rows, lines));
            each(number, lines);
        }
    }
}
