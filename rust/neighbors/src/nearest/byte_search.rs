//! The search that measures only the rows whose lower bound, from byte codes, is below the query's threshold.
//!
//! ```text
//! if all queries have a threshold: mark the pairs of the tile whose bound is below it, and measure these
//! else: compute the quantized lower bounds of all pairs of the tile
//! for each query:
//!     without a threshold: measure the k + e rows with the lowest bounds, take the k-th distance as threshold
//!     measure the rows whose bound is below the threshold
//! push the rows measured
//! ```
//!
//! Nearly all rows are compared with known thresholds where there are many: a comparison with a limit takes half of the time of a
//! bound that is written down.
//!
//! Of all rows, e are excluded for the query: itself and the rows of its group. The rows with the lowest bounds come from
//! the smallest bound in each of several sets of rows. The k + e smallest of these are different rows, so that at least
//! k + e rows are within their bound whatever the data.

use pulp::{Arch, Simd};

use super::GROUPS_PER_NEIGHBOR;
use super::nearest_k::NearestK;
use super::pairwise_bounds::PairwiseBounds;
use super::quantized::{BEYOND, Scale, budget, levels};
use crate::byte_codes::limit;
use crate::bytes::{Bytes, WORD, WithBytes, bytes_within, dispatch};
use crate::layout::{LANES, NO_ROW};
use crate::pairs::{Row, distances};
use crate::row_parts::Parts;
use crate::sink::ExactDistance;
use crate::tile::Tile;
use crate::vectors::{bits, row_of_word};

/// Rows that are measured together, so that the load of one row overlaps with that of the next.
const TOGETHER: usize = 4;

/// Buffers of a search, reused from tile to tile.
#[derive(Default)]
pub(super) struct ByteSearch {
    /// LANES lines, each with the levels of all rows of the tile, padded with [`BEYOND`] to whole words.
    levels: Vec<[u8; WORD]>,
    /// LANES lines, each with a bit for each row of the tile that may be within the query's threshold.
    marks: Vec<u16>,
    /// n_groups; the smallest level of each group of rows.
    smallest: Vec<[u8; WORD]>,
    /// First position of a word, and its bits.
    words: Vec<(u32, u64)>,
    /// Positions of the nearer rows and of the farther ones.
    positions: [Vec<u32>; 2],
    scratch: Vec<f32>,
    found: Vec<Candidate>,
}

/// A row that was measured, with its distance in f32.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    query: usize,
    distance: f32,
    row: u32,
}

impl ByteSearch {
    /// Pushes the rows that may be among the nearest to the lists of the queries. Returns false, without pushing any,
    /// if the bounds leave too many rows to measure, or there are no vectors that compare bytes.
    pub(super) fn run<D: ExactDistance>(
        &mut self,
        arch: Arch,
        (scale, pairwise): (Scale, Option<&PairwiseBounds>),
        tile: Tile<'_, D>,
        lists: &mut NearestK,
    ) -> bool {
        let budget = budget(tile.rows.len());
        dispatch(arch, Offer { buffers: self, scale, pairwise, tile, lists, budget }).unwrap_or(false)
    }
}

/// Pushes rows if no more than `budget` have to be measured.
struct Offer<'a, 'b, D> {
    buffers: &'a mut ByteSearch,
    scale: Scale,
    pairwise: Option<&'b PairwiseBounds>,
    tile: Tile<'b, D>,
    lists: &'a mut NearestK,
    budget: usize,
}

impl<D: ExactDistance> WithBytes for Offer<'_, '_, D> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) -> bool {
        let Offer { buffers, scale, pairwise, tile, lists, mut budget } = self;
        buffers.found.clear();
        let class = tile.rows[0].class;
        let mut thresholds = [0.0f32; LANES];
        for line in (0..LANES).filter(|line| tile.queries.numbers[*line] != NO_ROW) {
            thresholds[line] = lists.threshold(tile.exact, lists.position(tile.query_panel, line), class);
        }
        if pairwise.is_none() && thresholds.iter().all(|threshold| *threshold < f32::MAX) {
            buffers.mark::<S, V, Q>(simd, tile, &thresholds);
            for line in (0..LANES).filter(|line| tile.queries.numbers[*line] != NO_ROW) {
                let query = lists.position(tile.query_panel, line);
                buffers.collect_marked(line);
                if !buffers.measure(simd, tile, (line, query, thresholds[line]), 0, &mut budget) {
                    return false;
                }
            }
            buffers.push(tile.exact, lists, class);
            return true;
        }
        buffers.fill::<S, V, W, Q>(simd, (scale, pairwise), tile);
        for line in (0..LANES).filter(|line| tile.queries.numbers[*line] != NO_ROW) {
            let query = lists.position(tile.query_panel, line);
            let mut threshold = thresholds[line];
            if threshold < f32::MAX {
                let high = scale.level(threshold);
                if high == BEYOND {
                    return false;
                }
                buffers.collect(simd, line, [0, high, high]);
            } else {
                let excluded = tile.exact.n_excluded(tile.queries.numbers[line]);
                let first = buffers.kth_bound(simd, line, lists.k() + excluded);
                if first == BEYOND {
                    return false;
                }
                // Upper bound of the distance: exact where all features are numeric and nothing is missing.
                let quantization_error = tile.quantization_error + tile.queries.byte_codes.quantization_error[line];
                let likely =
                    scale.level(lists.threshold_at(tile.exact, query, scale.end(first) + 2.0 * quantization_error));
                let likely = likely.min(BEYOND - 1);
                buffers.collect(simd, line, [0, first, likely]);
                let start = buffers.found.len();
                if !buffers.measure(simd, tile, (line, query, threshold), 0, &mut budget) {
                    return false;
                }
                let kth = buffers.kth(start, lists.k());
                threshold = kth.map_or(f32::MAX, |kth| lists.threshold_at(tile.exact, query, kth));
                let reach = scale.level(threshold);
                if reach == BEYOND {
                    return false;
                }
                buffers.drop_beyond(line, reach);
                if !buffers.measure(simd, tile, (line, query, threshold), 1, &mut budget) {
                    return false;
                }
                buffers.positions[0].clear();
                if reach > likely {
                    buffers.collect(simd, line, [likely + 1, reach, reach]);
                }
            }
            if !buffers.measure(simd, tile, (line, query, threshold), 0, &mut budget) {
                return false;
            }
        }
        buffers.push(tile.exact, lists, class);
        true
    }
}

impl ByteSearch {
    /// Marks the rows that may be within the thresholds of the queries.
    #[inline(always)]
    fn mark<S: Bytes, const V: usize, const Q: usize>(
        &mut self,
        simd: S,
        tile: Tile<'_, impl ExactDistance>,
        thresholds: &[f32; LANES],
    ) {
        let (queries, n) = (tile.queries.byte_codes, tile.rows.len());
        let mut limits = [0; LANES];
        for (line, limit_of_line) in limits.iter_mut().enumerate() {
            *limit_of_line = limit(thresholds[line], queries.quantization_error[line]);
        }
        self.marks.resize(LANES * n, 0);
        for (number, other) in tile.rows.iter().enumerate() {
            let other = other.byte_codes;
            for first in (0..LANES).step_by(Q) {
                let within = bytes_within::<S, V, Q>(simd, [queries, other], first, &limits);
                for (q, within) in within.into_iter().enumerate() {
                    self.marks[(first + q) * n + number] = within;
                }
            }
        }
    }

    /// Sets the nearer rows to those that are marked for the query in `line`.
    #[inline(always)]
    fn collect_marked(&mut self, line: usize) {
        /// Panels whose marks are looked at together; most have none.
        const TOGETHER: usize = 32;
        let n = self.marks.len() / LANES;
        let near = &mut self.positions[0];
        near.clear();
        for (start, marks) in (0..).step_by(TOGETHER).zip(self.marks[line * n..][..n].chunks(TOGETHER)) {
            if marks.iter().fold(0, |all, marks| all | marks) == 0 {
                continue;
            }
            for (panel, &marks) in (start..).zip(marks) {
                near.extend(bits(marks.into()).map(|word| (panel * LANES + row_of_word(word as usize)) as u32));
            }
        }
    }

    /// Pushes the rows that were measured to the lists of `class`.
    fn push(&self, exact: impl ExactDistance, lists: &mut NearestK, class: usize) {
        for &Candidate { query, distance, row } in &self.found {
            lists.push(exact, query, class, (distance, row));
        }
    }

    #[inline(always)]
    fn fill<S: Bytes, const V: usize, const W: usize, const Q: usize>(
        &mut self,
        simd: S,
        (scale, pairwise): (Scale, Option<&PairwiseBounds>),
        tile: Tile<'_, impl ExactDistance>,
    ) {
        // An odd number: lines at a power of two from each other would share a position in the cache.
        let n_words = (tile.rows.len() * LANES).div_ceil(WORD) | 1;
        self.levels.clear();
        self.levels.resize(LANES * n_words, [BEYOND; WORD]);
        let cells = self.levels.as_flattened_mut().as_chunks_mut::<LANES>().0;
        let n_cells = cells.len() / LANES;
        for (number, other) in tile.rows.iter().enumerate() {
            if let Some(pairwise) = pairwise {
                let levels = pairwise.levels(simd, tile.query_panel, tile.first_row_panel + number);
                for line in 0..LANES {
                    cells[line * n_cells + number] = levels[line];
                }
                continue;
            }
            for first in (0..LANES).step_by(Q) {
                let levels = levels::<S, V, W, Q>(simd, scale, [tile.queries.byte_codes, other.byte_codes], first);
                for q in 0..Q {
                    cells[(first + q) * n_cells + number] = levels[q];
                }
            }
        }
    }

    /// The levels of all rows for the query in `line`.
    #[inline(always)]
    fn line(&self, line: usize) -> &[[u8; WORD]] {
        let n_words = self.levels.len() / LANES;
        &self.levels[line * n_words..][..n_words]
    }

    /// A level that at least `n` rows do not exceed, for the query in `line`.
    #[inline(always)]
    fn kth_bound<S: Bytes>(&mut self, simd: S, line: usize, n: usize) -> u8 {
        let groups = (GROUPS_PER_NEIGHBOR * n).div_ceil(WORD).min(self.levels.len() / LANES);
        let mut smallest = std::mem::take(&mut self.smallest);
        smallest.clear();
        for group in 0..groups {
            let mut of_group = [BEYOND; WORD];
            for levels in self.line(line).iter().skip(group).step_by(groups) {
                for lane in 0..WORD {
                    of_group[lane] = of_group[lane].min(levels[lane]);
                }
            }
            smallest.push(of_group);
        }
        // From the highest bit to the lowest.
        let mut level = 0;
        for bit in (0..u8::BITS).rev() {
            let below = level | ((1 << bit) - 1);
            let mut found = 0;
            for smallest in &smallest {
                found += simd.at_most(smallest, below).count_ones() as usize;
            }
            if found < n {
                level |= 1 << bit;
            }
        }
        self.smallest = smallest;
        level
    }

    /// Collects the positions of the rows whose level is in `low ..= high`: up to `middle` as nearer rows, beyond it as
    /// farther ones.
    #[inline(always)]
    fn collect<S: Bytes>(&mut self, simd: S, line: usize, [low, middle, high]: [u8; 3]) {
        let mut words = std::mem::take(&mut self.words);
        let [mut near, mut far] = std::mem::take(&mut self.positions);
        let line = self.line(line);
        words.resize(line.len() + 1, (0, 0));
        let (mut n_words, mut n) = (0, 0);
        for (start, levels) in (0..).step_by(WORD).zip(line) {
            let mut marks = simd.at_most(levels, high);
            if let Some(below) = low.checked_sub(1) {
                marks &= !simd.at_most(levels, below);
            }
            words[n_words] = (start, marks);
            n_words += usize::from(marks != 0);
            n += marks.count_ones() as usize;
        }
        let levels = line.as_flattened();
        near.resize(n, 0);
        far.resize(n, 0);
        let ((mut start, mut marks), mut next) = (words[0], 1);
        let mut n_near = 0;
        for number in 0..n {
            let position = start + marks.trailing_zeros();
            marks &= marks - 1;
            near[n_near] = position;
            far[number - n_near] = position;
            n_near += usize::from(levels[position as usize] <= middle);
            let done = marks == 0;
            let (next_start, next_marks) = words[next];
            start = if done { next_start } else { start };
            marks = if done { next_marks } else { marks };
            next += usize::from(done);
        }
        near.truncate(n_near);
        far.truncate(n - n_near);
        self.positions = [near, far];
        self.words = words;
    }

    /// Drops the farther rows whose level is above `high`.
    #[inline(always)]
    fn drop_beyond(&mut self, line: usize, high: u8) {
        let mut far = std::mem::take(&mut self.positions[1]);
        let levels = self.line(line).as_flattened();
        far.retain(|&position| levels[position as usize] <= high);
        self.positions[1] = far;
    }

    /// Measures the nearer rows (`which` = 0) or the farther ones (1) from a query, given by its line in the panel, its
    /// position in the lists and its threshold. Returns false if they are more than `budget`.
    #[inline(always)]
    fn measure<S: Simd, D: ExactDistance>(
        &mut self,
        simd: S,
        tile: Tile<'_, D>,
        query: (usize, usize, f32),
        which: usize,
        budget: &mut usize,
    ) -> bool {
        let Some(left) = budget.checked_sub(self.positions[which].len()) else { return false };
        *budget = left;
        let positions = std::mem::take(&mut self.positions[which]);
        let mut rest = &positions[..];
        // Only vectors of 16 have enough registers for the sums.
        if S::F32_LANES == LANES {
            let (together, single) = positions.as_chunks::<TOGETHER>();
            for positions in together {
                self.measure_together(simd, tile, query, positions);
            }
            rest = single;
        }
        for position in rest.as_chunks::<1>().0 {
            self.measure_together(simd, tile, query, position);
        }
        self.positions[which] = positions;
        true
    }

    #[inline(always)]
    fn measure_together<S: Simd, D: ExactDistance, const N: usize>(
        &mut self,
        simd: S,
        tile: Tile<'_, D>,
        (line, query, threshold): (usize, usize, f32),
        positions: &[u32; N],
    ) {
        let rows = positions.map(|position| {
            let (panel, lane) = (position as usize / LANES, position as usize % LANES);
            Row { panel: &tile.rows[panel], lane }
        });
        let query_row = Row { panel: &tile.queries, lane: line };
        let distances = distances(simd, tile.layout, Parts::new(tile.layout), query_row, rows);
        for (row, distance) in rows.iter().zip(distances) {
            if distance > threshold {
                continue;
            }
            let distance = tile.with_gaps(line, row.panel, row.lane, distance);
            let row = row.panel.numbers[row.lane];
            if !tile.exact.is_excluded(tile.queries.numbers[line], row) {
                self.found.push(Candidate { query, distance, row });
            }
        }
    }

    /// The `k`-th smallest distance of the rows measured since `start`.
    #[inline(always)]
    fn kth(&mut self, start: usize, k: usize) -> Option<f32> {
        let found = &self.found[start..];
        if found.len() < k {
            return None;
        }
        self.scratch.clear();
        self.scratch.extend(found.iter().map(|found| found.distance));
        Some(*self.scratch.select_nth_unstable_by(k - 1, f32::total_cmp).1)
    }
}
