//! Who may be near at all, told from values rounded to bytes.
//!
//! A row's *slack* is how far its numeric values are in all from those of its bytes. By the triangle
//! inequality two rows are no nearer than their bytes less both slacks. Bytes are compared eight at a time,
//! 64 in the widest vectors, so that most pairs cost a sixth of what the kernel takes; those that may be near
//! are measured one by one, from rows in f32. Where these are many the kernel measures the whole panel.
//!
//! Nominal features only add to distances and are left out of the bound. Features that miss values are not
//! looked at here: where there are some, the kernel measures all pairs.

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::bytes::{Bytes, apart, place};
use super::kernel::{Block, Sight, bits, line, word};
use super::pairs::{distance, stride};
use super::panels::{Common, LANES, Layout};

/// Steps of a byte in [0, 1].
const STEPS: f32 = 255.0;
/// With fewer features the kernel is as fast.
const FEWEST_NUMERIC: usize = 32;
/// Most bytes of a row.
const MOST_BYTES: usize = 1 << 22;
/// Bytes of a word.
const OCTET: usize = 8;
/// A step, less what sums in f32 may be off.
const STEP: f32 = (1.0 - 1e-6) / STEPS;
/// Pairs of two panels beyond which the kernel is faster.
const MOST_PAIRS: u32 = 32;
/// Most panels that go by without a look after looks in vain.
const MOST_SKIPPED: u32 = 31;

/// The bytes of all panels, and their rows; empty where they do not serve.
#[derive(Debug)]
pub(super) struct Coarse {
    n_octets: usize,
    stride: usize,
    /// Panel after panel: n_octets x LANES
    octets: Vec<u64>,
    /// Panel after panel: LANES; less than any number for nobody.
    slack: Vec<f32>,
    /// Row after row: the numeric values, zeros up to a multiple of [`LANES`], and the nominal ones.
    rows: Vec<f32>,
}

/// Those of one panel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoarsePanel<'a> {
    /// n_octets x LANES
    pub(super) octets: &'a [u64],
    slack: &'a [f32],
    /// LANES x stride
    pub(super) rows: &'a [f32],
}

/// Those of one panel, to be written.
#[derive(Debug)]
pub(super) struct CoarseCells<'a> {
    octets: &'a mut [u64],
    slack: &'a mut [f32],
    rows: &'a mut [f32],
}

/// Whether rows have bytes.
pub(super) fn serves(layout: &Layout) -> bool {
    layout.common == Common::Least && layout.lacking.is_empty() && layout.n_numeric >= FEWEST_NUMERIC
}

/// Features whose bytes are compared: with more, sums would leave 31 bits.
fn n_bytes(layout: &Layout) -> usize {
    layout.n_numeric.min(MOST_BYTES)
}

impl Coarse {
    /// Of `n` rows that are all nobody.
    pub(super) fn new(layout: &Layout, n: usize) -> Self {
        if !serves(layout) {
            return Coarse { n_octets: 0, stride: 0, octets: Vec::new(), slack: Vec::new(), rows: Vec::new() };
        }
        let (n_octets, (stride, _)) = (n_bytes(layout).div_ceil(OCTET), stride(layout));
        Coarse {
            n_octets,
            stride,
            octets: vec![0; n * n_octets],
            slack: vec![f32::NEG_INFINITY; n],
            rows: vec![0.0; n * stride],
        }
    }

    pub(super) fn row_bytes(layout: &Layout) -> usize {
        if !serves(layout) {
            return 0;
        }
        n_bytes(layout).next_multiple_of(OCTET) + size_of::<f32>() * (stride(layout).0 + 1)
    }

    pub(super) fn panel(&self, number: usize) -> CoarsePanel<'_> {
        if self.slack.is_empty() {
            return CoarsePanel { octets: &[], slack: &[], rows: &[] };
        }
        let cut = |width: usize| number * width * LANES..(number + 1) * width * LANES;
        CoarsePanel {
            octets: &self.octets[cut(self.n_octets)],
            slack: &self.slack[cut(1)],
            rows: &self.rows[cut(self.stride)],
        }
    }

    /// One for each of `n_panels`.
    pub(super) fn panels_mut(&mut self, n_panels: usize) -> impl IndexedParallelIterator<Item = CoarseCells<'_>> {
        let (octets, rows) = ((self.n_octets * LANES).max(1), (self.stride * LANES).max(1));
        let mut cells: Vec<CoarseCells<'_>> = (self.octets.chunks_exact_mut(octets))
            .zip(self.slack.chunks_exact_mut(LANES))
            .zip(self.rows.chunks_exact_mut(rows))
            .map(|((octets, slack), rows)| CoarseCells { octets, slack, rows })
            .collect();
        cells.resize_with(n_panels, || CoarseCells { octets: &mut [], slack: &mut [], rows: &mut [] });
        cells.into_par_iter()
    }
}

impl CoarseCells<'_> {
    /// Takes `rows`, at most LANES of `width` values, of which the first are numeric.
    pub(super) fn fill(&mut self, layout: &Layout, rows: &[f32], width: usize) {
        let (stride, first_nominal) = stride(layout);
        for (lane, (row, slack)) in rows.chunks_exact(width).zip(self.slack.iter_mut()).enumerate() {
            let (numeric, nominal) = row.split_at(layout.n_numeric);
            let out = &mut self.rows[lane * stride..(lane + 1) * stride];
            out[..numeric.len()].copy_from_slice(numeric);
            out[first_nominal..].copy_from_slice(nominal);
            let mut sum = 0.0;
            for (octet, values) in numeric[..n_bytes(layout)].chunks(OCTET).enumerate() {
                let mut bytes = [0; OCTET];
                let mut lost = 0.0;
                for (byte, value) in bytes.iter_mut().zip(values) {
                    *byte = (value * STEPS + 0.5) as u8;
                    lost += (value - f32::from(*byte) / STEPS).abs();
                }
                self.octets[octet * LANES + place(lane)] = u64::from_le_bytes(bytes);
                sum += f64::from(lost);
            }
            // More by what the values in f32 and these sums may be off.
            *slack = (sum * (1.0 + 1e-6) + layout.n_numeric as f64 * f64::from(f32::EPSILON)) as f32;
        }
    }
}

/// Where looking pays.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// Panels that go by after the last look in vain.
    skipped: u32,
    /// How many of them are still to come.
    left: u32,
}

impl Sight<'_> {
    /// Fills `block` by measuring those pairs alone that may pass a gate; gives a bit for each of its lines in
    /// which some distance does. `None` if the kernel is to measure all of them.
    pub(crate) fn measure_near(self, arch: Arch, block: &mut Block) -> Option<u16> {
        if self.one.coarse.slack.is_empty() {
            return None;
        }
        let outlook = &mut block.outlook;
        if outlook.left > 0 {
            outlook.left -= 1;
            return None;
        }
        let lines = match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) => simd.vectorize(Look { simd, sight: self }),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) => simd.vectorize(Look { simd, sight: self }),
            _ => return None,
        };
        if lines.iter().map(|line| line.count_ones()).sum::<u32>() > MOST_PAIRS {
            outlook.skipped = (2 * outlook.skipped + 1).min(MOST_SKIPPED);
            outlook.left = outlook.skipped;
            return None;
        }
        outlook.skipped = 0;
        Some(arch.dispatch(Pairs { sight: self, lines, block }))
    }
}

/// The lanes of `other`, by line of `one`, whose bytes are near enough.
struct Look<'a, S> {
    simd: S,
    sight: Sight<'a>,
}

impl<S: Bytes> NullaryFnOnce for Look<'_, S> {
    type Output = [u16; LANES];

    #[inline(always)]
    fn call(self) -> [u16; LANES] {
        // As many sums as 32 registers have room for, and 16.
        match S::U64_LANES {
            8 => self.run::<2, 1, 8>(),
            _ => self.run::<4, 2, 2>(),
        }
    }
}

impl<S: Bytes> Look<'_, S> {
    #[inline(always)]
    fn run<const V: usize, const W: usize, const Q: usize>(self) -> [u16; LANES] {
        let Look { simd, sight } = self;
        let (one, other) = (sight.one.coarse, sight.other.coarse);
        let other_gates = line::<S, W>(simd, sight.other_gates.unwrap_or(&[f32::MIN; LANES]));
        let slacks = line::<S, W>(simd, other.slack);
        let step = simd.splat_f32s(STEP);
        let mut lines = [0; LANES];
        for first in (0..LANES).step_by(Q) {
            let apart = apart::<S, V, W, Q>(simd, one.octets, other.octets, first);
            for q in 0..Q {
                let slack = simd.splat_f32s(one.slack[first + q]);
                let gate = simd.splat_f32s(sight.gates[first + q]);
                let mut near = 0;
                for v in 0..W {
                    let slack = simd.add_f32s(slack, slacks[v]);
                    let least = simd.sub_f32s(simd.mul_f32s(apart[q][v], step), slack);
                    let most = simd.max_f32s(gate, other_gates[v]);
                    near |= word(simd, simd.less_than_or_equal_f32s(least, most)) << (v * S::F32_LANES);
                }
                lines[first + q] = near as u16;
            }
        }
        lines
    }
}

/// The pairs in `lines`, to be measured one by one.
struct Pairs<'a> {
    sight: Sight<'a>,
    lines: [u16; LANES],
    block: &'a mut Block,
}

impl WithSimd for Pairs<'_> {
    type Output = u16;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> u16 {
        let Pairs { sight, lines, block } = self;
        let Sight { layout, one, other, gates, other_gates } = sight;
        let mut passed = 0;
        for (line, &pairs) in lines.iter().enumerate().filter(|(_, pairs)| **pairs != 0) {
            let (mut hits, mut other_hits) = (0, 0);
            for lane in bits(pairs) {
                let distance = distance(simd, layout, (one, line), (other, lane));
                block.distances[line][lane] = distance;
                hits |= u16::from(distance <= gates[line]) << lane;
                other_hits |= u16::from(other_gates.is_some_and(|gates| distance <= gates[lane])) << lane;
            }
            (block.hits[line], block.other_hits[line]) = (hits, other_hits);
            passed |= u16::from(hits | other_hits != 0) << line;
        }
        passed
    }
}
