//! The search that measures all pairs of a tile by the kernel.

use pulp::{Arch, Simd, WithSimd};

use super::GROUPS_PER_NEIGHBOR;
use super::nearest_k::NearestK;
use super::pairwise_distances::PairwiseDistances;
use crate::kernel::Lines;
use crate::layout::{LANES, NO_ROW};
use crate::sink::ExactDistance;
use crate::tile::Tile;
use crate::vectors::{bits, word};

/// Panels whose rows have a bit each in a word.
const MARKED: usize = u64::BITS as usize / LANES;

/// Buffers of a search, reused from tile to tile.
#[derive(Default)]
pub(super) struct KernelSearch {
    /// n_row_panels; distances in f32.
    distances: Vec<Lines>,
    /// n_groups; the smallest distance of each query and lane in a group of panels, with the excess of the row.
    smallest: Vec<Lines>,
    scratch: Vec<f32>,
}

impl KernelSearch {
    /// Pushes the rows that may be among the nearest to the lists of the queries, by distances that are `known` or
    /// measured here.
    pub(super) fn run(
        &mut self,
        arch: Arch,
        known: Option<&PairwiseDistances>,
        tile: Tile<'_, impl ExactDistance>,
        lists: &mut NearestK,
    ) {
        let class = tile.rows[0].class;
        let queries = (0..LANES).filter(|line| tile.queries.numbers[*line] != NO_ROW);
        // Bounds are for queries that have no threshold yet: to note them for others took a quarter of the time.
        let without =
            |&line: &usize| lists.threshold(tile.exact, lists.position(tile.query_panel, line), class) == f32::MAX;
        let excluded = queries.filter(without).map(|line| tile.exact.n_excluded(tile.queries.numbers[line])).max();
        let groups = excluded
            .map_or(0, |excluded| (GROUPS_PER_NEIGHBOR * (lists.k() + excluded)).div_ceil(LANES).min(tile.rows.len()));
        let KernelSearch { distances, smallest, .. } = self;
        smallest.clear();
        smallest.resize(groups, [[f32::INFINITY; LANES]; LANES]);
        let mut note = |number: usize, lines: &Lines| {
            if groups == 0 {
                return;
            }
            let excess = tile.rows[number].excess();
            for (smallest, line) in smallest[number % groups].iter_mut().zip(lines) {
                for ((smallest, distance), excess) in smallest.iter_mut().zip(line).zip(excess) {
                    *smallest = smallest.min(distance + excess);
                }
            }
        };
        match known {
            None => tile.measure(arch, distances, note),
            Some(known) => {
                distances.resize(tile.rows.len(), [[0.0; LANES]; LANES]);
                for (number, lines) in distances.iter_mut().enumerate() {
                    known.copy(tile.query_panel, tile.first_row_panel + number, lines);
                    note(number, lines);
                }
            }
        }
        arch.dispatch(Offer { buffers: self, tile, lists });
    }

    /// A distance in f32 that at least `n` rows do not exceed, but by the excess of the query in `line`.
    fn kth_bound(&mut self, line: usize, n: usize) -> f32 {
        let scratch = &mut self.scratch;
        scratch.clear();
        self.smallest.iter().for_each(|smallest| scratch.extend_from_slice(&smallest[line]));
        if scratch.len() < n {
            return f32::MAX;
        }
        // Infinite where there are fewer rows.
        scratch.select_nth_unstable_by(n - 1, f32::total_cmp).1.min(f32::MAX)
    }
}

/// Pushes rows that were measured.
struct Offer<'a, 'b, D> {
    buffers: &'a mut KernelSearch,
    tile: Tile<'b, D>,
    lists: &'a mut NearestK,
}

impl<D: ExactDistance> WithSimd for Offer<'_, '_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Offer { buffers, tile, lists } = self;
        let class = tile.rows[0].class;
        for line in (0..LANES).filter(|line| tile.queries.numbers[*line] != NO_ROW) {
            let query = lists.position(tile.query_panel, line);
            let mut threshold = lists.threshold(tile.exact, query, class);
            if threshold == f32::MAX {
                let excluded = tile.exact.n_excluded(tile.queries.numbers[line]);
                let first = buffers.kth_bound(line, lists.k() + excluded);
                let excess = tile.queries.excess()[line];
                threshold = lists.threshold_at(tile.exact, query, first + excess).min(f32::MAX);
            }
            let threshold = simd.splat_f32s(threshold);
            'rows: for (panels, rows) in buffers.distances.chunks(MARKED).zip(tile.rows.chunks(MARKED)) {
                let mut marks = 0;
                for (number, distances) in panels.iter().enumerate() {
                    for (part, &distances) in S::as_simd_f32s(&distances[line]).0.iter().enumerate() {
                        let lanes = u64::from(word(simd, simd.less_than_or_equal_f32s(distances, threshold)));
                        marks |= lanes << (number * LANES + part * S::F32_LANES);
                    }
                }
                for position in bits(marks) {
                    let (panel, lane) = (position as usize / LANES, position as usize % LANES);
                    let distance = tile.with_gaps(line, &rows[panel], lane, panels[panel][line][lane]);
                    if !lists.push(tile.exact, query, class, (distance, rows[panel].numbers[lane])) {
                        break 'rows;
                    }
                }
            }
        }
    }
}
