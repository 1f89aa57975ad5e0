//! Numeric values rounded to bytes, for lower bounds of distances.
//!
//! The *quantization error* of a row is the sum of the distances between its values and its byte codes. By the
//! triangle inequality the distance of two rows is at least that of their byte codes less both quantization errors.
//! Bytes are compared 8 to a word, 64 in the widest vectors, in a sixth of the kernel's time.
//!
//! A value of a numeric feature with missing values has two bytes where these are not few, for the coordinates of a point of
//! a plane. A missing one is replaced by a [substitute](super::missing::MissingModel::substitute), whose distances are at most
//! the differences of the missing value.
//!
//! A category is one of four points of a plane that are equally far apart by the sum of absolute differences, just below 1.
//! With more than four categories some share a point, which the bound allows. In features without missing values it has a
//! bit in each of two words, which differ in at least one bit where points do, in others two bytes: a missing category is in
//! the middle; its distance from the others is part of the quantization error. With words in the place of bytes, 10,000 rows of
//! 100 features of three categories are ranked in .75 of the time.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::layout::{Common, LANES, Layout, cut};
use super::row_parts::{Cells, Parts, Transposed};
use super::vectors::word_position;
use ferrank_runtime::pages::Large;

/// Steps of a byte in [0, 1].
const STEPS: f32 = 255.0;
/// Fewer are not worth it, or not tried: with 16, 5,000 rows are ranked in 0.7 of the time, with 20, 10,000 rows in 0.5 of it.
const FEWEST_BYTES: usize = 16;
/// The bytes of categories, and those of a missing one.
const CATEGORIES: [[u8; 2]; 4] = [[0, MIDDLE], [2 * MIDDLE, MIDDLE], [MIDDLE, 0], [MIDDLE, 2 * MIDDLE]];
/// Half of the distance of two categories, in steps of a byte; the distance of a missing one from each.
const MIDDLE: u8 = 127;
/// The distance of two categories, in steps of a byte.
pub(super) const CATEGORY: u32 = 2 * MIDDLE as u32;
/// Most bytes of a row, with two for each category: with more, sums would not fit 31 bits.
const MOST_BYTES: usize = 1 << 22;
/// Bytes of a word.
const OCTET: usize = 8;
/// Bits of a word.
const BITS: usize = u64::BITS as usize;
/// The distance of one step of a byte, less the rounding errors of sums and limits.
pub(super) const STEP: f32 = (1.0 - 1e-6) / STEPS;
/// More steps than distances and quantization errors have.
const BASE: u64 = 1 << 40;
/// The offset of padding.
const BEYOND: u64 = 1 << 62;

/// The largest sum of steps and the [offset](ByteCodesPanel::offsets) of a row that may be within `distance` of a query with this
/// quantization error.
pub(super) fn limit(distance: f32, quantization_error: f32) -> u64 {
    let steps = (f64::from(distance) + f64::from(quantization_error)) / f64::from(STEP);
    BASE + (steps as u64).min(BASE)
}

/// The byte codes of all panels, and their rows in f32; empty where byte codes are not supported.
#[derive(Debug, Default)]
pub(super) struct ByteCodes {
    /// Panel after panel: n_octets x LANES
    octets: Large<u64>,
    /// Panel after panel: n_words x LANES, a line of low bits and one of high bits for each 64 categories.
    categories: Large<u64>,
    /// Panel after panel: LANES; negative infinity for padding.
    quantization_error: Vec<f32>,
    /// Panel after panel: LANES, at their [positions](word_position); what a comparison of rows starts from.
    offsets: Vec<u64>,
    /// Row after row, in [`Parts`]; NaN where missing.
    rows: Large<f32>,
}

/// The byte codes of one panel.
#[derive(Debug, Clone, Copy)]
pub struct ByteCodesPanel<'a> {
    /// n_octets x LANES
    pub(super) octets: &'a [u64],
    /// n_words x LANES
    pub(super) categories: &'a [u64],
    pub(super) quantization_error: &'a [f32],
    /// LANES; [`BASE`] less the steps of the quantization error of each row, beyond all limits for padding.
    pub(super) offsets: &'a [u64],
    /// LANES x stride
    pub(super) rows: &'a [f32],
}

/// The byte codes of one panel, to be written.
#[derive(Debug, Default)]
pub(super) struct ByteCodesCells<'a> {
    octets: &'a mut [u64],
    categories: &'a mut [u64],
    quantization_error: &'a mut [f32],
    offsets: &'a mut [u64],
    rows: &'a mut [f32],
}

/// Returns true if values have byte codes: on machines that compare bytes, for enough features and rows.
pub(super) fn are_supported(layout: &Layout) -> bool {
    let is_possible = cfg!(target_arch = "x86_64") && layout.common == Common::Least;
    is_possible && !layout.is_short && !layout.is_uneven && n_bytes(layout) >= FEWEST_BYTES
}

/// Bytes of a row, with two for each category.
pub(super) fn n_bytes(layout: &Layout) -> usize {
    n_in_octets(layout) + CATEGORIES[0].len() * n_in_words(layout)
}

/// Bytes of a row's numbers and of its categories in features with missing values, which have no bits in words.
fn n_in_octets(layout: &Layout) -> usize {
    let n_nominal = layout.with_missing.len() - layout.n_substituted();
    let n_numeric = layout.n_numeric + layout.coordinates * layout.n_substituted();
    (n_numeric + CATEGORIES[0].len() * n_nominal).min(MOST_BYTES)
}

/// Categories of a row that have bits in words: those in features without missing values.
fn n_in_words(layout: &Layout) -> usize {
    layout.halves.len().min((MOST_BYTES - n_in_octets(layout)) / CATEGORIES[0].len())
}

fn n_octets(layout: &Layout) -> usize {
    n_in_octets(layout).div_ceil(OCTET)
}

/// Two words for each 64 categories.
fn n_words(layout: &Layout) -> usize {
    2 * n_in_words(layout).div_ceil(BITS)
}

impl ByteCodes {
    /// Creates byte codes of `n` rows of padding.
    pub(super) fn new(layout: &Layout, n: usize) -> Self {
        if !are_supported(layout) {
            return ByteCodes::default();
        }
        ByteCodes {
            octets: Large::zeros(n * n_octets(layout)),
            categories: Large::zeros(n * n_words(layout)),
            quantization_error: vec![f32::NEG_INFINITY; n],
            offsets: vec![BEYOND; n],
            rows: Large::zeros(n * Parts::new(layout).stride),
        }
    }

    /// Returns true if the rows in f32 are held here.
    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The rows in f32 as panels: feature by feature.
    pub(super) fn transposed(&self, layout: &Layout) -> Transposed {
        let (parts, n) = (Parts::new(layout), self.quantization_error.len());
        let widths = [layout.whole.len(), layout.with_missing.len(), layout.n_expected()].map(|width| width * LANES);
        let mut all = widths.map(|width| Large::zeros(n / LANES * width));
        for (number, rows) in self.rows.chunks_exact(parts.stride * LANES).enumerate() {
            let [values, with_missing, expected] = &mut all;
            let [a, b, c] = widths.map(|width| number * width..(number + 1) * width);
            parts.transpose(layout, rows, [&mut values[a], &mut with_missing[b], &mut expected[c]]);
        }
        let [values, with_missing, expected] = all;
        Transposed { values, with_missing, expected }
    }

    /// Bytes of the codes of a row.
    pub(super) fn code_bytes(layout: &Layout) -> usize {
        OCTET * (n_octets(layout) + n_words(layout))
    }

    pub(super) fn row_bytes(layout: &Layout) -> usize {
        if !are_supported(layout) {
            return 0;
        }
        ByteCodes::code_bytes(layout) + OCTET + size_of::<f32>() * (Parts::new(layout).stride + 1)
    }

    pub(super) fn panel(&self, layout: &Layout, number: usize) -> ByteCodesPanel<'_> {
        if self.quantization_error.is_empty() {
            return ByteCodesPanel { octets: &[], categories: &[], quantization_error: &[], offsets: &[], rows: &[] };
        }
        ByteCodesPanel {
            octets: cut(&self.octets, number, n_octets(layout)),
            categories: cut(&self.categories, number, n_words(layout)),
            quantization_error: cut(&self.quantization_error, number, 1),
            offsets: cut(&self.offsets, number, 1),
            rows: cut(&self.rows, number, Parts::new(layout).stride),
        }
    }

    /// The parts of each of `n_panels`, to be written in parallel.
    pub(super) fn panels_mut(
        &mut self,
        layout: &Layout,
        n_panels: usize,
    ) -> impl IndexedParallelIterator<Item = ByteCodesCells<'_>> {
        let rows = (Parts::new(layout).stride * LANES).max(1);
        let mut cells: Vec<ByteCodesCells<'_>> = (self.quantization_error.chunks_exact_mut(LANES))
            .zip(self.offsets.chunks_exact_mut(LANES))
            .zip(self.rows.chunks_exact_mut(rows))
            .map(|((quantization_error, offsets), rows)| ByteCodesCells {
                quantization_error,
                offsets,
                rows,
                ..ByteCodesCells::default()
            })
            .collect();
        let [octets, words] = [n_octets(layout), n_words(layout)].map(|width| (width * LANES).max(1));
        cells.iter_mut().zip(self.octets.chunks_exact_mut(octets)).for_each(|(cells, octets)| cells.octets = octets);
        let categories = self.categories.chunks_exact_mut(words);
        cells.iter_mut().zip(categories).for_each(|(cells, categories)| cells.categories = categories);
        cells.resize_with(n_panels, ByteCodesCells::default);
        cells.into_par_iter()
    }
}

impl ByteCodesCells<'_> {
    /// Writes the row in lane number `lane`.
    pub(super) fn fill(&mut self, layout: &Layout, lane: usize, cells: &Cells<'_>) {
        let Some(quantization_error) = self.quantization_error.get_mut(lane) else { return };
        let (parts, n_in_octets) = (Parts::new(layout), n_in_octets(layout));
        parts.write(layout, cells, &mut self.rows[lane * parts.stride..(lane + 1) * parts.stride]);
        let (numeric, nominal) = cells.values.split_at(layout.n_numeric);
        let mut missing = 0.0;
        let together: Vec<f32>;
        let mut values = numeric;
        if n_in_octets > numeric.len() {
            let nominal = &cells.with_missing[layout.n_substituted()..];
            let bytes = nominal.iter().flat_map(|&category| {
                missing += if category.is_nan() { f64::from(MIDDLE) / f64::from(STEPS) } else { 0.0 };
                let code = CATEGORIES[category as usize % CATEGORIES.len()];
                if category.is_nan() { [MIDDLE; 2] } else { code }
            });
            let bytes = bytes.map(|byte| f32::from(byte) / STEPS);
            together = numeric.iter().chain(&*cells.points).copied().chain(bytes).collect();
            values = &together;
        }
        let of_words = nominal[..n_in_words(layout)].chunks(BITS).zip(self.categories.chunks_exact_mut(2 * LANES));
        for (categories, words) in of_words {
            for (bit, &category) in categories.iter().enumerate() {
                let category = category as u64;
                words[word_position(lane)] |= (category & 1) << bit;
                words[LANES + word_position(lane)] |= (category >> 1 & 1) << bit;
            }
        }
        let values = &values[..n_in_octets];
        let error = missing + Arch::new().dispatch(ToBytes { values, lane, octets: self.octets });
        let n_bytes = n_bytes(layout);
        // Plus the rounding errors of values and sums in f32.
        *quantization_error = (error * (1.0 + 1e-6) + n_bytes as f64 * f64::from(f32::EPSILON)) as f32;
        self.offsets[word_position(lane)] = BASE - (*quantization_error / STEP).ceil() as u64;
    }
}

/// Writes the byte codes of a row; returns its quantization error.
struct ToBytes<'a> {
    values: &'a [f32],
    lane: usize,
    /// n_octets x LANES
    octets: &'a mut [u64],
}

impl WithSimd for ToBytes<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let ToBytes { values, lane, octets } = self;
        let mut sums = [0.0; OCTET];
        let (whole, rest) = values.as_chunks::<OCTET>();
        for (values, octets) in whole.iter().zip(octets.chunks_exact_mut(LANES)) {
            octets[word_position(lane)] = octet(values, &mut sums);
        }
        if !rest.is_empty() {
            let mut last = [0.0; OCTET];
            last[..rest.len()].copy_from_slice(rest);
            octets[whole.len() * LANES + word_position(lane)] = octet(&last, &mut sums);
        }
        sums.iter().sum()
    }
}

/// The byte codes of `values`; adds the quantization error of each to `sums`.
#[inline(always)]
fn octet(values: &[f32; OCTET], sums: &mut [f64; OCTET]) -> u64 {
    let mut bytes = [0; OCTET];
    for ((byte, value), sum) in bytes.iter_mut().zip(values).zip(sums) {
        *byte = (value * STEPS + 0.5) as u8;
        *sum += f64::from((value - f32::from(*byte) / STEPS).abs());
    }
    u64::from_le_bytes(bytes)
}
