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

use super::kernel::{Block, Table, bits, line, word};
use super::panels::{Common, LANES, Layout, Panel};

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
/// Sums that a pair's are kept in: many short ones make small errors.
const SUMS: usize = 64;
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
    rows: &'a [f32],
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

/// From one row to the next, and where its nominal values start.
fn stride(layout: &Layout) -> (usize, usize) {
    let numeric = layout.n_numeric.next_multiple_of(LANES);
    (numeric + layout.halves.len(), numeric)
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
}

impl Coarse {
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

/// Vectors that compare bytes.
pub(super) trait Bytes: Simd {
    /// Sums of the differences of the bytes of each word.
    fn apart(self, a: Self::u64s, b: Self::u64s) -> Self::u64s;
    /// Words below 2³¹ as numbers: those of `even` at even lanes, those of `odd` at odd ones.
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s;
}

#[cfg(target_arch = "x86_64")]
impl Bytes for pulp::x86::V4 {
    #[inline(always)]
    fn apart(self, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        pulp::cast(self.avx512bw._mm512_sad_epu8(pulp::cast(a), pulp::cast(b)))
    }

    #[inline(always)]
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s {
        let odd = self.avx512f._mm512_slli_epi64::<32>(pulp::cast(odd));
        let all = self.avx512f._mm512_or_si512(pulp::cast(even), odd);
        pulp::cast(self.avx512f._mm512_cvtepi32_ps(all))
    }
}

#[cfg(target_arch = "x86_64")]
impl Bytes for pulp::x86::V3 {
    #[inline(always)]
    fn apart(self, a: Self::u64s, b: Self::u64s) -> Self::u64s {
        pulp::cast(self.avx2._mm256_sad_epu8(pulp::cast(a), pulp::cast(b)))
    }

    #[inline(always)]
    fn numbers(self, even: Self::u64s, odd: Self::u64s) -> Self::f32s {
        let odd = self.avx2._mm256_slli_epi64::<32>(pulp::cast(odd));
        let all = self.avx2._mm256_or_si256(pulp::cast(even), odd);
        pulp::cast(self.avx._mm256_cvtepi32_ps(all))
    }
}

/// Where a row's word stands in a line of a panel: even rows first, so that two vectors of words make one of
/// numbers.
fn place(row: usize) -> usize {
    row / 2 + row % 2 * (LANES / 2)
}

/// Where looking pays.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// Panels that go by after the last look in vain.
    skipped: u32,
    /// How many of them are still to come.
    left: u32,
}

/// Two panels, and the distances that matter.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) one: Panel<'a>,
    pub(crate) other: Panel<'a>,
    pub(crate) gates: &'a [f32; LANES],
    pub(crate) other_gates: Option<&'a [f32; LANES]>,
}

impl Sight<'_> {
    /// Fills `block` by measuring those pairs alone that may pass a gate; gives a bit for each of its lines in
    /// which some distance does. `None` if the kernel is to measure all of them.
    pub(crate) fn measure(self, arch: Arch, block: &mut Block) -> Option<u16> {
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

/// Steps between the bytes of `Q` rows from `first` on and those of the other panel.
#[inline(always)]
pub(super) fn apart<S: Bytes, const V: usize, const W: usize, const Q: usize>(
    simd: S,
    ones: &[u64],
    others: &[u64],
    first: usize,
) -> Table<S, W, Q> {
    let mut sums = [[simd.splat_u64s(0); V]; Q];
    for (others, ones) in others.as_chunks::<LANES>().0.iter().zip(ones.as_chunks::<LANES>().0) {
        let mut line = [simd.splat_u64s(0); V];
        line.copy_from_slice(&S::as_simd_u64s(others).0[..V]);
        let mut next = sums;
        for q in 0..Q {
            let one = simd.splat_u64s(ones[place(first + q)]);
            for v in 0..V {
                next[q][v] = simd.add_u64s(sums[q][v], simd.apart(line[v], one));
            }
        }
        sums = next;
    }
    // No closures here and below: they would not be compiled for the vectors at hand.
    let mut apart = [[simd.splat_f32s(0.0); W]; Q];
    for q in 0..Q {
        for w in 0..W {
            apart[q][w] = simd.numbers(sums[q][w], sums[q][w + W]);
        }
    }
    apart
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

/// The kernel's distance of two rows.
#[inline(always)]
pub(super) fn distance<S: Simd>(simd: S, layout: &Layout, one: (Panel<'_>, usize), other: (Panel<'_>, usize)) -> f32 {
    let (stride, first_nominal) = stride(layout);
    let ((one, line), (other, lane)) = (one, other);
    let a = &one.coarse.rows[line * stride..(line + 1) * stride];
    let b = &other.coarse.rows[lane * stride..(lane + 1) * stride];
    let ((a, nominal_a), (b, nominal_b)) = (a.split_at(first_nominal), b.split_at(first_nominal));
    let mut common = match S::F32_LANES {
        16 => least::<S, { SUMS / 16 }, { LANES / 16 }>(simd, a, b),
        8 => least::<S, { SUMS / 8 }, { LANES / 8 }>(simd, a, b),
        _ => least::<S, { SUMS / 4 }, { LANES / 4 }>(simd, a, b),
    };
    if !layout.halves.is_empty() {
        common += alike(&layout.halves, nominal_a, nominal_b);
    }
    (one.sums[line] + other.sums[lane]) - 2.0 * common
}

/// Half the weights of the values that are equal.
fn alike(halves: &[f32], a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    for ((a, b), halves) in a.chunks(SUMS).zip(b.chunks(SUMS)).zip(halves.chunks(SUMS)) {
        for (((sum, a), b), half) in sums.iter_mut().zip(a).zip(b).zip(halves) {
            *sum += if a == b { *half } else { 0.0 };
        }
    }
    sums.iter().sum()
}

/// The sum of the smaller ones of numbers: of [`SUMS`] in `V` vectors side by side, then of [`LANES`] in `W`.
#[inline(always)]
fn least<S: Simd, const V: usize, const W: usize>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [simd.splat_f32s(0.0); V];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    for (a, b) in a.iter().zip(b) {
        sums = add_least::<S, V, V>(simd, sums, a, b);
    }
    for (a, b) in a_rest.as_chunks::<LANES>().0.iter().zip(b_rest.as_chunks::<LANES>().0) {
        sums = add_least::<S, V, W>(simd, sums, a, b);
    }
    let mut total = sums[0];
    for sum in &sums[1..] {
        total = simd.add_f32s(total, *sum);
    }
    simd.reduce_sum_f32s(total)
}

/// Adds the smaller ones of `a` and `b`, which are `N` vectors, to the first `N` sums.
#[inline(always)]
fn add_least<S: Simd, const V: usize, const N: usize>(
    simd: S,
    sums: [S::f32s; V],
    a: &[f32],
    b: &[f32],
) -> [S::f32s; V] {
    let (a, b) = (line::<S, N>(simd, a), line::<S, N>(simd, b));
    let mut next = sums;
    for n in 0..N {
        next[n] = simd.add_f32s(sums[n], simd.min_f32s(a[n], b[n]));
    }
    next
}
