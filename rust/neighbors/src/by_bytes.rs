//! Rows that go past queries, of which bytes tell who may be near.
//!
//! ```text
//! the levels of all rows
//! for each query, where nobody is known yet:
//!     measure the k + 1 rows that seem nearest, and perhaps a few more
//! measure those that may be nearer than the k-th of these
//! offer whoever is
//! ```
//!
//! Who seems nearest is told from the least in each of several groups of rows, spread over the piece: as many
//! of them as are asked for are different rows, so that as many are at least that near, whatever the data.

use pulp::{Arch, Simd};

use super::bytes::{Bytes, WORD, WithBytes, dispatch};
use super::layout::{LANES, NOBODY};
use super::lists::{ExactDistance, Lists};
use super::pairs::{Row, distances};
use super::pairwise_bounds::PairwiseBounds;
use super::quantized::{BEYOND, Scale, budget, levels};
use super::row_parts::Parts;
use super::tile::{SPREAD, Tile};

/// Rows that are fetched together to be measured: one alone waits for memory.
const TOGETHER: usize = 4;

/// Reused from panel to panel.
#[derive(Default)]
pub(super) struct ByBytes {
    /// LANES lines, each of the levels of all rows of the piece, filled up with [`BEYOND`] to whole words.
    levels: Vec<[u8; WORD]>,
    least: Vec<[u8; WORD]>,
    words: Vec<(u32, u64)>,
    places: [Vec<u32>; 2],
    scratch: Vec<f32>,
    found: Vec<Candidate>,
}

/// A row that may be among the nearest of a query.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    query: usize,
    distance: f32,
    row: u32,
}

impl ByBytes {
    /// Offers the rows to the queries; none, and `false`, if bytes do not tell enough of them apart, or are not there.
    pub(super) fn run<G: ExactDistance>(
        &mut self,
        arch: Arch,
        (scale, pairwise): (Scale, Option<&PairwiseBounds>),
        past: Tile<'_, G>,
        lists: &mut Lists,
    ) -> bool {
        let budget = budget(past.others.len());
        dispatch(arch, Offer { by: self, scale, pairwise, past, lists, budget }).unwrap_or(false)
    }
}

/// Offers rows if no more than `budget` have to be measured.
struct Offer<'a, 'b, G> {
    by: &'a mut ByBytes,
    scale: Scale,
    pairwise: Option<&'b PairwiseBounds>,
    past: Tile<'b, G>,
    lists: &'a mut Lists,
    budget: usize,
}

impl<G: ExactDistance> WithBytes for Offer<'_, '_, G> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) -> bool {
        let Offer { by, scale, pairwise, past, lists, mut budget } = self;
        by.fill::<S, V, W, Q>(simd, (scale, pairwise), past);
        by.found.clear();
        let class = past.others[0].class;
        for line in (0..LANES).filter(|line| past.one.numbers[*line] != NOBODY) {
            let query = lists.place(past.number, line);
            let known = lists.threshold(past.context, query, class);
            if known < f32::MAX {
                let high = scale.level(known);
                if high == BEYOND {
                    return false;
                }
                by.collect(simd, line, [0, high, high]);
            } else {
                let first = by.seems(simd, line, lists.k() + 1);
                if first == BEYOND {
                    return false;
                }
                // Numeric values that are all known reach no farther.
                let quantization_error = past.quantization_error + past.one.byte_codes.quantization_error[line];
                let likely =
                    scale.level(lists.threshold_at(past.context, query, scale.end(first) + 2.0 * quantization_error));
                let likely = likely.min(BEYOND - 1);
                by.collect(simd, line, [0, first, likely]);
                let start = by.found.len();
                if !by.measure(simd, past, (line, query), 0, &mut budget) {
                    return false;
                }
                let kth = by.kth(start, lists.k());
                let reach = scale.level(kth.map_or(f32::MAX, |kth| lists.threshold_at(past.context, query, kth)));
                if reach == BEYOND {
                    return false;
                }
                by.drop_beyond(line, reach);
                if !by.measure(simd, past, (line, query), 1, &mut budget) {
                    return false;
                }
                by.places[0].clear();
                if reach > likely {
                    by.collect(simd, line, [likely + 1, reach, reach]);
                }
            }
            if !by.measure(simd, past, (line, query), 0, &mut budget) {
                return false;
            }
        }
        for &Candidate { query, distance, row } in &by.found {
            lists.take(past.context, query, class, (distance, row));
        }
        true
    }
}

impl ByBytes {
    #[inline(always)]
    fn fill<S: Bytes, const V: usize, const W: usize, const Q: usize>(
        &mut self,
        simd: S,
        (scale, pairwise): (Scale, Option<&PairwiseBounds>),
        past: Tile<'_, impl ExactDistance>,
    ) {
        // An odd number: lines at a power of two from each other would share a place in the cache.
        let n_words = (past.others.len() * LANES).div_ceil(WORD) | 1;
        self.levels.clear();
        self.levels.resize(LANES * n_words, [BEYOND; WORD]);
        let cells = self.levels.as_flattened_mut().as_chunks_mut::<LANES>().0;
        let n_cells = cells.len() / LANES;
        for (number, other) in past.others.iter().enumerate() {
            if let Some(pairwise) = pairwise {
                let levels = pairwise.levels(simd, past.number, past.first + number);
                for line in 0..LANES {
                    cells[line * n_cells + number] = levels[line];
                }
                continue;
            }
            for first in (0..LANES).step_by(Q) {
                let levels = levels::<S, V, W, Q>(simd, scale, [past.one.byte_codes, other.byte_codes], first);
                for q in 0..Q {
                    cells[(first + q) * n_cells + number] = levels[q];
                }
            }
        }
    }

    /// The levels for row `line` of the queries.
    #[inline(always)]
    fn line(&self, line: usize) -> &[[u8; WORD]] {
        let n_words = self.levels.len() / LANES;
        &self.levels[line * n_words..][..n_words]
    }

    /// As many rows as `n` have at most this level for row `line` of the queries.
    #[inline(always)]
    fn seems<S: Bytes>(&mut self, simd: S, line: usize, n: usize) -> u8 {
        let groups = (SPREAD * n).div_ceil(WORD).min(self.levels.len() / LANES);
        let mut least = std::mem::take(&mut self.least);
        least.clear();
        for group in 0..groups {
            let mut of_group = [BEYOND; WORD];
            for levels in self.line(line).iter().skip(group).step_by(groups) {
                for lane in 0..WORD {
                    of_group[lane] = of_group[lane].min(levels[lane]);
                }
            }
            least.push(of_group);
        }
        // From the highest bit to the lowest.
        let mut level = 0;
        for bit in (0..u8::BITS).rev() {
            let below = level | ((1 << bit) - 1);
            let mut found = 0;
            for least in &least {
                found += simd.at_most(least, below).count_ones() as usize;
            }
            if found < n {
                level |= 1 << bit;
            }
        }
        self.least = least;
        level
    }

    /// Notes the places of the rows whose level is at least the first of these and at most the last, those up to the
    /// second apart from those beyond.
    #[inline(always)]
    fn collect<S: Bytes>(&mut self, simd: S, line: usize, [low, middle, high]: [u8; 3]) {
        let mut words = std::mem::take(&mut self.words);
        let [mut near, mut far] = std::mem::take(&mut self.places);
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
            let place = start + marks.trailing_zeros();
            marks &= marks - 1;
            near[n_near] = place;
            far[number - n_near] = place;
            n_near += usize::from(levels[place as usize] <= middle);
            let done = marks == 0;
            let (next_start, next_marks) = words[next];
            start = if done { next_start } else { start };
            marks = if done { next_marks } else { marks };
            next += usize::from(done);
        }
        near.truncate(n_near);
        far.truncate(n - n_near);
        self.places = [near, far];
        self.words = words;
    }

    /// Forgets those of the farther places whose rows have a level above `high`.
    #[inline(always)]
    fn drop_beyond(&mut self, line: usize, high: u8) {
        let mut far = std::mem::take(&mut self.places[1]);
        let levels = self.line(line).as_flattened();
        far.retain(|&place| levels[place as usize] <= high);
        self.places[1] = far;
    }

    /// Measures the rows at the nearer places noted, or at the farther ones, from a query, which is in a line of the
    /// panel and has a place in lists; `false` if they are more than `budget`.
    #[inline(always)]
    fn measure<S: Simd, G: ExactDistance>(
        &mut self,
        simd: S,
        past: Tile<'_, G>,
        (line, query): (usize, usize),
        which: usize,
        budget: &mut usize,
    ) -> bool {
        let Some(left) = budget.checked_sub(self.places[which].len()) else { return false };
        *budget = left;
        let places = std::mem::take(&mut self.places[which]);
        let mut rest = &places[..];
        // As many sums at once as there are registers.
        if S::F32_LANES == LANES {
            let (together, single) = places.as_chunks::<TOGETHER>();
            for places in together {
                self.measure_together(simd, past, (line, query), places);
            }
            rest = single;
        }
        for place in rest.as_chunks::<1>().0 {
            self.measure_together(simd, past, (line, query), place);
        }
        self.places[which] = places;
        true
    }

    #[inline(always)]
    fn measure_together<S: Simd, G: ExactDistance, const N: usize>(
        &mut self,
        simd: S,
        past: Tile<'_, G>,
        (line, query): (usize, usize),
        places: &[u32; N],
    ) {
        let others = places.map(|place| {
            let (panel, lane) = (place as usize / LANES, place as usize % LANES);
            Row { panel: &past.others[panel], lane }
        });
        let one = Row { panel: &past.one, lane: line };
        let distances = distances(simd, past.layout, Parts::of(past.layout), one, others);
        for (other, distance) in others.iter().zip(distances) {
            let row = other.panel.numbers[other.lane];
            if !past.context.is_itself(past.one.numbers[line], row) {
                self.found.push(Candidate { query, distance, row });
            }
        }
    }

    /// The `k`-th least distance of those found from `start` on.
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
