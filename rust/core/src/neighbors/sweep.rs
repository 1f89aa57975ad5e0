//! Rows going past the queries of a panel.
//!
//! ```text
//! for each piece of the rows, of one class:
//!     how far each row is at least, by its bytes
//!     for each query, where nobody is known yet:
//!         measure the k + 1 rows that seem nearest, and perhaps a few more
//!     measure those that may be nearer than the k-th of these
//!     offer whoever is
//! ```
//!
//! Where bytes do not serve, or leave too many to be measured one by one, the kernel tells how far all are.
//!
//! Who seems nearest is told from the least in each of several groups of rows, spread over the piece: as many
//! of them as are asked for are different rows, so that as many are at least that near, whatever the data.

use pulp::{Arch, Simd, WithSimd};

use super::bytes::{Bytes, WithBytes, apart, dispatch};
use super::coarse::STEPS;
use super::kernel::{Lines, Measure, bits, line, word};
use super::lists::{Ground, Lists};
use super::mutual::Mutual;
use super::pairs::{Parts, Row, distances};
use super::panels::{LANES, Layout, NOBODY, Panel, Panels};
use super::scan::Scan;

/// Most panels of a piece: what is written down for a panel of queries stays in the cache.
const MOST_PANELS: usize = 512;
/// Most differences that are looked at without asking whether to stop.
const MOST_WORK: usize = 1 << 30;
/// Groups of a piece have so many rows, the least of each lane, for each that is asked for.
const SPREAD: usize = 2;
/// Panels whose rows have a bit of a word.
const MARKED: usize = u64::BITS as usize / LANES;
/// Up to so many are found by taking the least out.
const FEW: usize = 32;
/// Measuring a pair by itself takes so many times what the kernel takes for one.
const SINGLE_COST: usize = 12;
/// Rows that are fetched together to be measured: one alone waits for memory.
const TOGETHER: usize = 4;
/// Most panels that go by without a look at bytes after looks in vain.
const MOST_SKIPPED: u32 = 31;
/// A step of a byte, less what sums in f32 may be off.
const STEP: f32 = (1.0 - 1e-6) / STEPS;

/// Reused from panel to panel.
#[derive(Default)]
pub(crate) struct Sweep {
    /// One for each panel of the piece: how far its rows are at least, less the query's slack.
    apart: Vec<Lines>,
    /// The least of each group of panels.
    least: Vec<Lines>,
    /// A bit for each row of the piece.
    marks: Vec<u64>,
    places: [Vec<u32>; 2],
    scratch: Vec<f32>,
    found: Vec<Found>,
    outlook: Outlook,
}

/// A row that may be among the nearest of a query.
#[derive(Debug, Clone, Copy)]
struct Found {
    query: usize,
    distance: f32,
    row: u32,
}

/// Whether looking at bytes pays.
#[derive(Debug, Default)]
struct Outlook {
    /// Panels that go by after the last look in vain.
    skipped: u32,
    /// How many of them are still to come.
    left: u32,
}

impl Outlook {
    /// Whether to look now.
    fn is_good(&mut self) -> bool {
        let good = self.left == 0;
        self.left = self.left.saturating_sub(1);
        good
    }

    fn was(&mut self, good: bool) {
        self.skipped = if good { 0 } else { (2 * self.skipped + 1).min(MOST_SKIPPED) };
        self.left = self.skipped;
    }
}

/// Rows of one class that go past at once.
pub(crate) struct Piece<'a> {
    /// Number of the first panel.
    first: usize,
    panels: Vec<Panel<'a>>,
    /// The most of all of them.
    slack: f32,
}

impl<'a> Piece<'a> {
    /// All of `rows`.
    pub(super) fn of(layout: &'a Layout, rows: &'a Panels) -> Vec<Self> {
        let most = MOST_WORK / (LANES * LANES) / (layout.whole.len() + layout.lacking.len()).max(1);
        let most = most.clamp(1, MOST_PANELS);
        let panels: Vec<Panel<'a>> = (0..rows.len()).map(|number| rows.panel(layout, number)).collect();
        let pieces = panels.chunk_by(|a, b| a.class == b.class).flat_map(|class| class.chunks(most));
        let mut first = 0;
        let piece = |panels: &[Panel<'a>]| {
            let slack = panels.iter().flat_map(|panel| panel.coarse.slack).copied().fold(0.0, f32::max);
            let piece = Piece { first, panels: panels.to_vec(), slack };
            first += panels.len();
            piece
        };
        pieces.map(piece).collect()
    }
}

impl Sweep {
    /// Offers the rows of `piece` to the queries in panel `one`, which is number `number`.
    pub(crate) fn run(
        &mut self,
        scan: Scan<'_>,
        ground: impl Ground,
        (number, one): (usize, Panel<'_>),
        piece: &Piece<'_>,
        lists: &mut Lists,
    ) {
        let Piece { first, panels: others, slack } = piece;
        let groups = (SPREAD * (lists.k() + 1)).div_ceil(LANES).min(others.len());
        self.apart.resize(others.len(), [[0.0; LANES]; LANES]);
        let (layout, mutual) = (scan.layout, scan.mutual);
        let past = Past { layout, ground, number, one, first: *first, others, mutual, slack: *slack, groups };
        if self.outlook.is_good() && self.fill_from_bytes(scan.arch, past) {
            let budget = LANES * LANES * others.len() / SINGLE_COST;
            let good = scan.arch.dispatch(NearByBytes { sweep: self, past, lists, budget });
            self.outlook.was(good);
            if good {
                return;
            }
        }
        self.fill_from_kernel(scan.arch, past);
        scan.arch.dispatch(NearByKernel { sweep: self, past, lists });
    }

    fn start(&mut self, groups: usize) {
        self.least.clear();
        self.least.resize(groups, [[f32::INFINITY; LANES]; LANES]);
    }

    /// `false` where bytes do not serve.
    fn fill_from_bytes<G: Ground>(&mut self, arch: Arch, past: Past<'_, G>) -> bool {
        if past.one.coarse.slack.is_empty() {
            return false;
        }
        self.start(past.groups);
        let Sweep { apart, least, .. } = self;
        dispatch(arch, Fill { past, apart, least })
    }

    fn fill_from_kernel<G: Ground>(&mut self, arch: Arch, past: Past<'_, G>) {
        self.start(past.groups);
        let (layout, one) = (past.layout, past.one);
        for (number, (&other, apart)) in past.others.iter().zip(&mut self.apart).enumerate() {
            arch.dispatch(Measure::new(layout, one, other, apart));
            let least = self.least[number % past.groups].as_flattened_mut();
            for (least, apart) in least.iter_mut().zip(apart.as_flattened()) {
                *least = least.min(*apart);
            }
        }
    }
}

/// A panel of queries, and the rows that go past.
#[derive(Clone, Copy)]
struct Past<'a, G> {
    layout: &'a Layout,
    ground: G,
    number: usize,
    one: Panel<'a>,
    /// Number of the first of the others.
    first: usize,
    others: &'a [Panel<'a>],
    /// Where the rows are the queries, and all pairs were compared.
    mutual: Option<&'a Mutual>,
    /// The most slack that one of them has.
    slack: f32,
    groups: usize,
}

/// Writes down how far rows are by their bytes.
struct Fill<'a, G> {
    past: Past<'a, G>,
    apart: &'a mut [Lines],
    least: &'a mut [Lines],
}

impl<G> WithBytes for Fill<'_, G> {
    #[inline(always)]
    fn run<S: Bytes, const V: usize, const W: usize, const Q: usize>(self, simd: S) {
        let Fill { past, apart: out, least } = self;
        let step = simd.splat_f32s(STEP);
        let groups = least.len();
        for (number, (other, out)) in past.others.iter().zip(out).enumerate() {
            let slacks = line::<S, W>(simd, other.coarse.slack);
            let least = &mut least[number % groups];
            if let Some(mutual) = past.mutual {
                mutual.read(past.number, past.first + number, out);
            }
            for first in (0..LANES).step_by(Q) {
                let mut steps = [[simd.splat_f32s(0.0); W]; Q];
                if past.mutual.is_some() {
                    for q in 0..Q {
                        steps[q] = line::<S, W>(simd, &out[first + q]);
                    }
                } else {
                    steps = apart::<S, V, W, Q>(simd, past.one.coarse.octets, other.coarse.octets, first);
                }
                for q in 0..Q {
                    let out = S::as_mut_simd_f32s(&mut out[first + q]).0;
                    let least = S::as_mut_simd_f32s(&mut least[first + q]).0;
                    for w in 0..W {
                        out[w] = simd.sub_f32s(simd.mul_f32s(steps[q][w], step), slacks[w]);
                        least[w] = simd.min_f32s(least[w], out[w]);
                    }
                }
            }
        }
    }
}

/// Offers rows of which bytes were compared; none, and `false`, if more than `budget` would have to be measured.
struct NearByBytes<'a, 'b, G> {
    sweep: &'a mut Sweep,
    past: Past<'b, G>,
    lists: &'a mut Lists,
    budget: usize,
}

impl<G: Ground> WithSimd for NearByBytes<'_, '_, G> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let NearByBytes { sweep, past, lists, mut budget } = self;
        let (one, class) = (past.one, past.others[0].class);
        sweep.found.clear();
        for line in (0..LANES).filter(|line| one.numbers[*line] != NOBODY) {
            let query = lists.place(past.number, line);
            let slack = one.coarse.slack[line];
            let known = lists.gate(past.ground, query, class);
            let fits = if known < f32::MAX {
                sweep.collect(simd, line, [f32::MIN, known + slack, known + slack]);
                sweep.measure(simd, past, (line, query), 0, &mut budget)
            } else {
                let start = sweep.found.len();
                let first = sweep.seems(simd, line, lists.k() + 1);
                // Numeric values that are all known reach no farther.
                let likely = lists.gate_at(past.ground, query, first + 2.0 * past.slack + slack) + slack;
                sweep.collect(simd, line, [f32::MIN, first, likely.min(f32::MAX)]);
                if !sweep.measure(simd, past, (line, query), 0, &mut budget) {
                    return false;
                }
                let kth = sweep.kth(start, lists.k());
                let reach = kth.map_or(f32::MAX, |kth| lists.gate_at(past.ground, query, kth)) + slack;
                sweep.drop_beyond(line, reach);
                sweep.measure(simd, past, (line, query), 1, &mut budget) && {
                    reach <= likely || {
                        sweep.collect(simd, line, [likely.next_up(), reach, reach]);
                        sweep.measure(simd, past, (line, query), 0, &mut budget)
                    }
                }
            };
            if !fits {
                return false;
            }
        }
        for &Found { query, distance, row } in &sweep.found {
            lists.take(past.ground, query, class, (distance, row));
        }
        true
    }
}

/// Offers rows that the kernel measured.
struct NearByKernel<'a, 'b, G> {
    sweep: &'a mut Sweep,
    past: Past<'b, G>,
    lists: &'a mut Lists,
}

impl<G: Ground> WithSimd for NearByKernel<'_, '_, G> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let NearByKernel { sweep, past, lists } = self;
        let (one, class) = (past.one, past.others[0].class);
        for line in (0..LANES).filter(|line| one.numbers[*line] != NOBODY) {
            let query = lists.place(past.number, line);
            let mut gate = lists.gate(past.ground, query, class);
            if gate == f32::MAX {
                let first = sweep.seems(simd, line, lists.k() + 1);
                gate = lists.gate_at(past.ground, query, first).min(f32::MAX);
            }
            sweep.mark(simd, line, gate);
            for place in places(&sweep.marks) {
                let (panel, lane) = (place as usize / LANES, place as usize % LANES);
                let candidate = (sweep.apart[panel][line][lane], past.others[panel].numbers[lane]);
                if !lists.take(past.ground, query, class, candidate) {
                    break;
                }
            }
        }
    }
}

impl Sweep {
    /// As many rows as `n` are at most this far from row `line` of the queries, as it seems.
    #[inline(always)]
    fn seems<S: Simd>(&mut self, simd: S, line: usize, n: usize) -> f32 {
        let scratch = &mut self.scratch;
        scratch.clear();
        self.least.iter().for_each(|least| scratch.extend_from_slice(&least[line]));
        if scratch.len() < n {
            return f32::MAX;
        }
        // Infinite where there are fewer rows.
        let nth = match n <= FEW {
            true => nth_of_few(simd, scratch, n),
            false => *scratch.select_nth_unstable_by(n - 1, f32::total_cmp).1,
        };
        nth.min(f32::MAX)
    }

    /// Marks the rows that seem to be at most `high` away.
    #[inline(always)]
    fn mark<S: Simd>(&mut self, simd: S, line: usize, high: f32) {
        let high = simd.splat_f32s(high);
        self.marks.clear();
        for panels in self.apart.chunks(MARKED) {
            let mut marks = 0;
            for (number, apart) in panels.iter().enumerate() {
                for (part, &apart) in S::as_simd_f32s(&apart[line]).0.iter().enumerate() {
                    let lanes = u64::from(word(simd, simd.less_than_or_equal_f32s(apart, high)));
                    marks |= lanes << (number * LANES + part * S::F32_LANES);
                }
            }
            self.marks.push(marks);
        }
    }

    /// Notes the places of the rows that seem to be at least the first of these numbers away and at most the last,
    /// those up to the second apart from those beyond.
    #[inline(always)]
    fn collect<S: Simd>(&mut self, simd: S, line: usize, [low, middle, high]: [f32; 3]) {
        self.mark(simd, line, high);
        let [near, far] = &mut self.places;
        near.clear();
        far.clear();
        for place in places(&self.marks) {
            let apart = self.apart[place as usize / LANES][line][place as usize % LANES];
            if apart >= low {
                if apart <= middle { near.push(place) } else { far.push(place) }
            }
        }
    }

    /// Forgets those of the farther places whose rows seem to be beyond `high`.
    #[inline(always)]
    fn drop_beyond(&mut self, line: usize, high: f32) {
        let Sweep { places: [_, far], apart, .. } = self;
        far.retain(|&place| apart[place as usize / LANES][line][place as usize % LANES] <= high);
    }

    /// Measures the rows at the nearer places noted, or at the farther ones, from a query, which is in a line of the
    /// panel and has a place in lists; `false` if they are more than `budget`.
    #[inline(always)]
    fn measure<S: Simd, G: Ground>(
        &mut self,
        simd: S,
        past: Past<'_, G>,
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
    fn measure_together<S: Simd, G: Ground, const N: usize>(
        &mut self,
        simd: S,
        past: Past<'_, G>,
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
            if !past.ground.is_itself(past.one.numbers[line], row) {
                self.found.push(Found { query, distance, row });
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

/// Those that have a bit in `marks`.
#[inline(always)]
fn places(marks: &[u64]) -> impl Iterator<Item = u32> {
    (0..).step_by(u64::BITS as usize).zip(marks).flat_map(|(start, &marks)| bits(marks).map(move |bit| start + bit))
}

/// The `n`-th least of `values`, whole vectors, by taking the least out again and again.
#[inline(always)]
fn nth_of_few<S: Simd>(simd: S, values: &mut [f32], n: usize) -> f32 {
    let infinite = simd.splat_f32s(f32::INFINITY);
    let values = S::as_mut_simd_f32s(values).0;
    let mut left = n;
    loop {
        let mut least = infinite;
        for &values in &*values {
            least = simd.min_f32s(least, values);
        }
        let nth = simd.reduce_min_f32s(least);
        if nth == f32::INFINITY {
            return nth;
        }
        let least = simd.splat_f32s(nth);
        let mut taken = 0;
        for values in &mut *values {
            let equal = simd.equal_f32s(*values, least);
            taken += word(simd, equal).count_ones() as usize;
            *values = simd.select_f32s(equal, infinite, *values);
        }
        if taken >= left {
            return nth;
        }
        left -= taken;
    }
}
