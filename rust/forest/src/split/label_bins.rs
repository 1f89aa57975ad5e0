//! Cuts of large nodes for labels alone, known for all rows, of weight 1.
//!
//! Labels are counted by code as integers, and counts are added up code by code. Examples need not be sorted.

use std::slice::from_ref;

use pulp::Simd;

use super::examples::Examples;
use super::missing::better;
use super::search::Search;
use super::{Best, Cut, STEP};
use crate::criterion::Criterion;
use ferrank_data::store::Code;

/// The most bytes of counts, which fit the second cache.
const MOST_BYTES: usize = 1 << 20;

/// Counts of labels by code: zeros between searches.
#[derive(Debug, Default)]
pub(super) struct LabelBins {
    /// n_codes; the number of examples. Not used for at most [`FEW`] classes, whose counts add up to it.
    examples: Vec<u32>,
    /// n_codes x width; the counts of labels. The width is n_indicators, padded to whole vectors.
    labels: Vec<u32>,
    /// width; the counts of the left side.
    left: Vec<u32>,
    /// width; the counts of the left side as floating-point numbers.
    sums: Vec<f64>,
    /// width; the counts of the node.
    totals: Vec<f64>,
    /// width; ω, 0 for labels that all examples have.
    omega: Vec<f64>,
    /// n_codes x width, [`STEP`] or twice that; the counts of labels that are no more than [`FEW`], which are added up in
    /// registers.
    few: Vec<f64>,
}

/// The most labels whose counts of the left side stay in registers.
const FEW: usize = 2 * STEP;

/// Returns true if counting `n` rows is faster than adding them up in order, as measured. `examples` is the number of
/// rows counted with multiplicity.
pub(super) fn is_worthwhile(criterion: &Criterion, n: usize, examples: f64, n_codes: usize) -> bool {
    let n_labels = criterion.indicator_weight.len();
    examples <= f64::from(i32::MAX)
        && 8 * n >= n_codes * (8 + n_labels / 5)
        && size_of::<u32>() * n_codes * n_labels <= MOST_BYTES
}

impl LabelBins {
    /// The best cut.
    #[inline(always)]
    pub(super) fn best_cut<S: Simd, C: Code>(&mut self, simd: S, search: Search<'_, C>) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, constraint, missing } = search;
        if criterion.indicator_weight.len() <= FEW {
            let width = criterion.indicator_weight.len().next_multiple_of(STEP);
            return match width / S::F64_LANES {
                1 => self.best_of_few::<S, C, 1>(simd, search),
                2 => self.best_of_few::<S, C, 2>(simd, search),
                4 => self.best_of_few::<S, C, 4>(simd, search),
                8 => self.best_of_few::<S, C, 8>(simd, search),
                _ => self.best_of_few::<S, C, FEW>(simd, search),
            };
        }
        let width = criterion.indicator_weight.len().next_multiple_of(2 * STEP);
        self.examples.resize(n_codes, 0);
        self.labels.resize(n_codes * width, 0);
        match criterion.is_classes {
            true => self.count(examples, codes, width, |row| from_ref(examples.block.class(row))),
            false => self.count(examples, codes, width, |row| examples.block.indicators(row)),
        }
        let LabelBins { examples, labels, left, sums, totals, omega, .. } = self;
        sums.resize(width, 0.0);
        totals.clear();
        totals.extend_from_slice(criterion.indicators(&node.total));
        totals.resize(width, 0.0);
        omega.clear();
        let own = |(label, &omega): (usize, &f64)| if node.weighted[label] > 0.0 { omega } else { 0.0 };
        omega.extend(criterion.indicator_weight.iter().enumerate().map(own));
        omega.resize(width, 0.0);
        let n_known = search.n_known();
        let (examples, missing_examples) = examples.split_at_mut(n_known);
        let (labels, missing_labels) = labels.split_at_mut(n_known * width);
        let (mut missing_left, mut right) = (false, None);
        loop {
            let mut best = Best::new(node.weight(), node.examples(), constraint);
            left.clear();
            left.resize(width, 0);
            let mut count = 0.0;
            if missing_left {
                left.copy_from_slice(&missing_labels[..width]);
                count = f64::from(missing_examples[0]);
            }
            for (code, (&examples, labels)) in examples.iter().zip(labels.chunks_exact(width)).enumerate() {
                if examples == 0 {
                    continue;
                }
                count += f64::from(examples);
                for ((left, sum), label) in left.iter_mut().zip(&mut *sums).zip(labels) {
                    *left += label;
                    // All counts are below 2³¹, and signed integers are converted faster.
                    *sum = f64::from(*left as i32);
                }
                let quality = quality(simd, sums, totals, omega, count / node.weight());
                best.offer(code, quality, count, count);
            }
            if missing.is_none() || missing_left {
                self.examples.fill(0);
                self.labels.fill(0);
                return if missing_left { better(right, best.cut(), n_known - 1) } else { best.cut() };
            }
            (missing_left, right) = (true, best.cut());
        }
    }

    /// The best cut where labels are at most [`FEW`]. The counts of the left side stay in `VECTORS` registers.
    #[inline(always)]
    fn best_of_few<S: Simd, C: Code, const VECTORS: usize>(&mut self, simd: S, search: Search<'_, C>) -> Option<Cut> {
        let Search { criterion, examples, codes, n_codes, node, constraint, missing } = search;
        self.examples.resize(n_codes, 0);
        self.few.resize(n_codes * VECTORS * S::F64_LANES, 0.0);
        match (criterion.is_classes, VECTORS * S::F64_LANES) {
            (true, STEP) => self.count_classes::<C, STEP>(examples, codes),
            (true, _) => self.count_classes::<C, FEW>(examples, codes),
            (false, STEP) => self.count_few::<C, STEP>(examples, codes),
            (false, _) => self.count_few::<C, FEW>(examples, codes),
        }
        let (mut totals, mut omega) = ([0.0; FEW], [0.0; FEW]);
        for (label, &count) in criterion.indicators(&node.total).iter().enumerate() {
            totals[label] = count;
            omega[label] = if node.weighted[label] > 0.0 { criterion.indicator_weight[label] } else { 0.0 };
        }
        let (totals, omega) = (S::as_simd_f64s(&totals).0, S::as_simd_f64s(&omega).0);
        let n_known = search.n_known();
        let rows = S::as_simd_f64s(&self.few).0.as_chunks::<VECTORS>().0;
        let (mut missing_left, mut right) = (false, None);
        loop {
            let mut best = Best::new(node.weight(), node.examples(), constraint);
            let (mut left, mut count) = ([simd.splat_f64s(0.0); VECTORS], 0.0);
            if missing_left {
                left = rows[n_known];
                count = if criterion.is_classes { sum(simd, &left) } else { f64::from(self.examples[n_known]) };
            }
            for (code, row) in rows[..n_known].iter().enumerate() {
                let examples = if criterion.is_classes { sum(simd, row) } else { f64::from(self.examples[code]) };
                if examples == 0.0 {
                    continue;
                }
                count += examples;
                let shares = simd.splat_f64s(count / node.weight());
                let mut squares = simd.splat_f64s(0.0);
                for v in 0..VECTORS {
                    left[v] = simd.add_f64s(left[v], row[v]);
                    let difference = simd.sub_f64s(left[v], simd.mul_f64s(totals[v], shares));
                    squares = simd.add_f64s(squares, simd.mul_f64s(omega[v], simd.mul_f64s(difference, difference)));
                }
                best.offer(code, simd.reduce_sum_f64s(squares), count, count);
            }
            if missing.is_none() || missing_left {
                self.examples.fill(0);
                self.few.fill(0.0);
                return if missing_left { better(right, best.cut(), n_known - 1) } else { best.cut() };
            }
            (missing_left, right) = (true, best.cut());
        }
    }

    /// Counts examples and at most `WIDTH` labels code by code.
    #[inline(never)]
    fn count_few<C: Code, const WIDTH: usize>(&mut self, examples: Examples<'_>, codes: &[C]) {
        let (examples_by_code, labels_by_code) = (&mut self.examples[..], self.few.as_chunks_mut::<WIDTH>().0);
        for ((&row, &count), code) in examples.rows.iter().zip(examples.counts).zip(codes) {
            let code = code.index();
            examples_by_code[code] += count;
            for &label in examples.block.indicators(row as usize) {
                labels_by_code[code][label as usize % WIDTH] += f64::from(count);
            }
        }
    }

    /// Counts classes, at most `WIDTH`, code by code.
    #[inline(never)]
    fn count_classes<C: Code, const WIDTH: usize>(&mut self, examples: Examples<'_>, codes: &[C]) {
        let (classes, by_code) = (&examples.block.indicators[..], self.few.as_chunks_mut::<WIDTH>().0);
        for ((&row, &count), code) in examples.rows.iter().zip(examples.counts).zip(codes) {
            by_code[code.index()][classes[row as usize] as usize % WIDTH] += f64::from(count);
        }
    }

    /// Counts examples and labels code by code. `labels_of` gives the labels of a row.
    #[inline(never)]
    fn count<'a, C: Code>(
        &mut self,
        examples: Examples<'a>,
        codes: &[C],
        width: usize,
        labels_of: impl Fn(usize) -> &'a [u32],
    ) {
        let (examples_by_code, labels_by_code) = (&mut self.examples[..], &mut self.labels[..]);
        for ((&row, &count), code) in examples.rows.iter().zip(examples.counts).zip(codes) {
            let code = code.index();
            examples_by_code[code] += count;
            let labels = &mut labels_by_code[code * width..][..width];
            for &label in labels_of(row as usize) {
                labels[label as usize] += count;
            }
        }
    }
}

/// The sum of `vectors`.
#[inline(always)]
fn sum<S: Simd, const VECTORS: usize>(simd: S, vectors: &[S::f64s; VECTORS]) -> f64 {
    let mut sums = vectors[0];
    for &vector in &vectors[1..] {
        sums = simd.add_f64s(sums, vector);
    }
    simd.reduce_sum_f64s(sums)
}

/// Σ ω·(C_L − c·share)² with C_L the `sums` of the left side, c the `totals` of the node, and `share` the share of the
/// weight on the left.
#[inline(always)]
fn quality<S: Simd>(simd: S, sums: &[f64], totals: &[f64], omega: &[f64], share: f64) -> f64 {
    let shares = simd.splat_f64s(share);
    let (sums, totals, omega) = (S::as_simd_f64s(sums).0, S::as_simd_f64s(totals).0, S::as_simd_f64s(omega).0);
    let mut squares = simd.splat_f64s(0.0);
    for ((&sum, &total), &omega) in sums.iter().zip(totals).zip(omega) {
        let difference = simd.sub_f64s(sum, simd.mul_f64s(total, shares));
        squares = simd.add_f64s(squares, simd.mul_f64s(omega, simd.mul_f64s(difference, difference)));
    }
    simd.reduce_sum_f64s(squares)
}
