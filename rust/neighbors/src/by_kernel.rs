//! Rows that go past queries, all of them measured by the kernel.

use pulp::{Arch, Simd, WithSimd};

use super::kernel::{Lines, Measure};
use super::layout::{LANES, NOBODY};
use super::lists::{ExactDistance, Lists};
use super::tile::{SPREAD, Tile};
use super::vectors::{bits, word};

/// Panels whose rows have a bit of a word.
const MARKED: usize = u64::BITS as usize / LANES;

/// Reused from panel to panel.
#[derive(Default)]
pub(super) struct ByKernel {
    /// One for each panel of the piece: how far its rows are.
    apart: Vec<Lines>,
    /// The least of each group of panels.
    least: Vec<Lines>,
    scratch: Vec<f32>,
}

impl ByKernel {
    /// Offers the rows to the queries.
    pub(super) fn run(&mut self, arch: Arch, past: Tile<'_, impl ExactDistance>, lists: &mut Lists) {
        let groups = (SPREAD * (lists.k() + 1)).div_ceil(LANES).min(past.others.len());
        self.apart.resize(past.others.len(), [[0.0; LANES]; LANES]);
        self.least.clear();
        self.least.resize(groups, [[f32::INFINITY; LANES]; LANES]);
        for (number, (&other, apart)) in past.others.iter().zip(&mut self.apart).enumerate() {
            arch.dispatch(Measure::new(past.layout, past.one, other, apart));
            let least = self.least[number % groups].as_flattened_mut();
            for (least, apart) in least.iter_mut().zip(apart.as_flattened()) {
                *least = least.min(*apart);
            }
        }
        arch.dispatch(Offer { by: self, past, lists });
    }

    /// As many rows as `n` are at most this far from row `line` of the queries.
    fn seems(&mut self, line: usize, n: usize) -> f32 {
        let scratch = &mut self.scratch;
        scratch.clear();
        self.least.iter().for_each(|least| scratch.extend_from_slice(&least[line]));
        if scratch.len() < n {
            return f32::MAX;
        }
        // Infinite where there are fewer rows.
        scratch.select_nth_unstable_by(n - 1, f32::total_cmp).1.min(f32::MAX)
    }
}

/// Offers rows that were measured.
struct Offer<'a, 'b, G> {
    by: &'a mut ByKernel,
    past: Tile<'b, G>,
    lists: &'a mut Lists,
}

impl<G: ExactDistance> WithSimd for Offer<'_, '_, G> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Offer { by, past, lists } = self;
        let (one, class) = (past.one, past.others[0].class);
        for line in (0..LANES).filter(|line| one.numbers[*line] != NOBODY) {
            let query = lists.place(past.number, line);
            let mut threshold = lists.threshold(past.context, query, class);
            if threshold == f32::MAX {
                let first = by.seems(line, lists.k() + 1);
                threshold = lists.threshold_at(past.context, query, first).min(f32::MAX);
            }
            let threshold = simd.splat_f32s(threshold);
            'rows: for (panels, others) in by.apart.chunks(MARKED).zip(past.others.chunks(MARKED)) {
                let mut marks = 0;
                for (number, apart) in panels.iter().enumerate() {
                    for (part, &apart) in S::as_simd_f32s(&apart[line]).0.iter().enumerate() {
                        let lanes = u64::from(word(simd, simd.less_than_or_equal_f32s(apart, threshold)));
                        marks |= lanes << (number * LANES + part * S::F32_LANES);
                    }
                }
                for place in bits(marks) {
                    let (panel, lane) = (place as usize / LANES, place as usize % LANES);
                    let candidate = (panels[panel][line][lane], others[panel].numbers[lane]);
                    if !lists.take(past.context, query, class, candidate) {
                        break 'rows;
                    }
                }
            }
        }
    }
}
