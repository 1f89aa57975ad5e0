//! Sums of the differences of categories, which are 0 or 1: how many pairs of the same weight differ.
//!
//! Weights are [rounded](Weight) so that their sums are exact in any order, and so the same as those that are added up
//! pair by pair. Where all neighbors have the same share, a block has a few different weights.
//!
//! With categories as bytes and counts of 16 bits, a ranking of 500 rows of 20,000 columns of three categories takes 0.8 of
//! the time.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::kernel::Position;
use ferrank_neighbors::context::DistanceContext;
use ferrank_neighbors::rows::Rows;
use ferrank_neighbors::space::{Shape, Space};
use ferrank_runtime::pages::Large;

/// Features that are counted together.
const WIDE: usize = 64;
/// Different weights, but for their signs, of the pairs of a block.
const MOST_WEIGHTS: usize = 4;
/// Sums that are counted for: their counts fit the first-level cache.
const MOST_COUNTS: usize = 192;
/// A sum that no pair is added to, so far.
const NOT_REACHED: u32 = u32::MAX;

/// Rounds weights to multiples of a power of 2 of which sums up to the sum of all magnitudes are exact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// 3/2 · 2⁵² of these multiples: what is added to it is rounded.
    rounds: f64,
}

impl Weight {
    /// For weights with this sum of magnitudes.
    pub(super) fn new(sum: f64) -> Self {
        // The next power of 2 and once more: magnitudes are rounded up, too.
        let exponent = (sum.to_bits() >> (f64::MANTISSA_DIGITS - 1)) + 2;
        Weight { rounds: 1.5 * f64::from_bits(exponent.min(0x7fd) << (f64::MANTISSA_DIGITS - 1)) }
    }

    /// The nearest multiple; NaN where `weight` is.
    pub(super) fn round(self, weight: f64) -> f64 {
        (weight + self.rounds) - self.rounds
    }
}

/// The rows of a table of categories, as bytes.
#[derive(Debug)]
pub(crate) struct Codes {
    /// Bytes of a row; an odd number of cache lines, so that rows are not all at the same place of a cache.
    stride: usize,
    /// n_rows x stride
    bytes: Large<u8>,
}

impl Codes {
    /// `None` if there are other features, missing values, or more categories than a byte holds.
    pub(crate) fn new(arch: Arch, space: &Space, rows: &Rows) -> Option<Self> {
        let is_counted = |shape: &Shape| matches!(shape, Shape::Nominal | Shape::Constant);
        if !space.is_complete() || !space.shapes.iter().all(is_counted) {
            return None;
        }
        let stride = WIDE * (rows.width.div_ceil(WIDE) | 1);
        let mut bytes = Large::zeros(rows.numbers.len() * stride);
        let rows = bytes.par_chunks_exact_mut(stride).zip(rows.values().par_chunks_exact(rows.width.max(1)));
        let fit = rows.map(|(bytes, values)| arch.dispatch(ToBytes { values, bytes })).reduce(|| true, |a, b| a && b);
        fit.then_some(Codes { stride, bytes })
    }
}

/// Writes categories as bytes; returns false if one does not fit.
struct ToBytes<'a> {
    values: &'a [f64],
    bytes: &'a mut [u8],
}

impl WithSimd for ToBytes<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        /// 2⁵²: the bits of a whole number that is added to it are the lowest.
        const WHOLE: f64 = (1u64 << 52) as f64;
        let mut largest = 0.0;
        for (byte, &value) in self.bytes.iter_mut().zip(self.values) {
            *byte = (value + WHOLE).to_bits() as u8;
            largest = if value > largest { value } else { largest };
        }
        largest <= f64::from(u8::MAX)
    }
}

/// A pair: positions of both rows, and the ends of the counts that are raised by their difference, and of those that are lowered.
#[derive(Debug, Clone, Copy)]
struct Term {
    query: u32,
    row: u32,
    ends: [u32; 2],
}

/// The pairs of a block.
#[derive(Debug, Default)]
pub(super) struct Terms {
    terms: Vec<Term>,
    /// Numbers of counts, term by term.
    counts: Vec<u32>,
    /// For each count the number of the sum, first those of the block and then those of its groups, and the weight.
    sums: Vec<(u32, f64)>,
}

impl Terms {
    /// `None` if weights are too many, or counts too large. Queries are among the rows of `context`. Each pair has `n_vectors` weights, and there are `n_others`
    /// sums that pairs change.
    pub(super) fn new(
        context: DistanceContext<'_>,
        positions: &[Position<'_>],
        n_vectors: usize,
        n_others: usize,
    ) -> Option<Self> {
        let n_terms: usize = positions.iter().map(|position| n_vectors + position.changes.len()).sum();
        if n_terms > i16::MAX as usize {
            return None;
        }
        let mut found = Terms { terms: Vec::with_capacity(positions.len()), ..Terms::default() };
        let mut weights: Vec<f64> = Vec::new();
        let mut numbers = vec![NOT_REACHED; (n_vectors + n_others) * MOST_WEIGHTS];
        let mut lowered = Vec::new();
        for position in positions {
            let own = (0..).zip(position.weights.iter().copied());
            let changes = position.changes.iter().map(|&(number, weight)| (n_vectors as u32 + number, weight));
            lowered.clear();
            for (sum, weight) in own.chain(changes).filter(|(_, weight)| *weight != 0.0) {
                let place = weights.iter().position(|known| *known == weight.abs()).unwrap_or(weights.len());
                if place == weights.len() {
                    weights.push(weight.abs());
                }
                let number = numbers.get_mut(sum as usize * MOST_WEIGHTS + place).filter(|_| place < MOST_WEIGHTS)?;
                if *number == NOT_REACHED {
                    *number = found.sums.len() as u32;
                    found.sums.push((sum, weight.abs()));
                }
                if weight > 0.0 { found.counts.push(*number) } else { lowered.push(*number) }
            }
            let raised = found.counts.len() as u32;
            found.counts.append(&mut lowered);
            let Position { query, row, .. } = *position;
            let query = context.rows.position(context.queries.numbers[query as usize]);
            found.terms.push(Term { query, row, ends: [raised, found.counts.len() as u32] });
        }
        (found.sums.len() <= MOST_COUNTS).then_some(found)
    }
}

/// The pairs of a block and what they are added to.
pub(super) struct Counted<'a> {
    pub(super) terms: Terms,
    /// n_vectors x n_features
    pub(super) sums: &'a mut [f64],
    /// n_others x n_features
    pub(super) others: &'a mut [f64],
}

/// Adds all pairs of some blocks, whose vectors are `width` long.
pub(super) fn add(arch: Arch, codes: &Codes, width: usize, blocks: &mut [Counted<'_>]) {
    arch.dispatch(Add { codes, width, blocks });
}

struct Add<'a, 'b> {
    codes: &'a Codes,
    width: usize,
    blocks: &'a mut [Counted<'b>],
}

impl WithSimd for Add<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Add { codes: Codes { stride, bytes }, width, blocks } = self;
        let mut counts = vec![[0i16; WIDE]; MOST_COUNTS];
        for start in (0..width).step_by(WIDE) {
            let wide = WIDE.min(width - start);
            for Counted { terms: Terms { terms, counts: numbers, sums: of_counts }, sums, others } in &mut *blocks {
                counts[..of_counts.len()].fill([0; WIDE]);
                let codes = |row: u32| bytes[row as usize * stride + start..].first_chunk::<WIDE>();
                let mut first = 0;
                for &Term { query, row, ends: [raised, end] } in terms.iter() {
                    let Some((a, b)) = codes(query).zip(codes(row)) else { break };
                    let mut differ = [0i16; WIDE];
                    for i in 0..WIDE {
                        differ[i] = i16::from(a[i] != b[i]);
                    }
                    for &number in &numbers[first..raised as usize] {
                        let counts = &mut counts[number as usize];
                        for i in 0..WIDE {
                            counts[i] += differ[i];
                        }
                    }
                    for &number in &numbers[raised as usize..end as usize] {
                        let counts = &mut counts[number as usize];
                        for i in 0..WIDE {
                            counts[i] -= differ[i];
                        }
                    }
                    first = end as usize;
                }
                let n_vectors = sums.len() / width;
                for (&(number, weight), counts) in of_counts.iter().zip(&counts) {
                    let number = number as usize;
                    let sums = match number.checked_sub(n_vectors) {
                        None => &mut sums[number * width + start..][..wide],
                        Some(other) => &mut others[other * width + start..][..wide],
                    };
                    sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += weight * f64::from(count));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_rounded_weights_are_exact_in_any_order() {
        let weights: Vec<f64> = (1..500).map(|n| (f64::from(n * 37 % 101) / 101.0 - 0.3) * 1e-3).collect();
        let rounding = Weight::new(weights.iter().map(|weight| weight.abs()).sum());
        let rounded: Vec<f64> = weights.iter().map(|&weight| rounding.round(weight)).collect();
        for (weight, rounded) in weights.iter().zip(&rounded) {
            assert!((weight - rounded).abs() < 1e-16, "{weight} became {rounded}");
        }
        let forwards: f64 = rounded.iter().sum();
        assert_eq!(forwards, rounded.iter().rev().sum::<f64>());
        assert_eq!(forwards + 300.0 * rounded[0], (0..300).fold(forwards, |sum, _| sum + rounded[0]));
        assert!(rounding.round(f64::NAN).is_nan());
        assert_eq!(Weight::new(0.0).round(0.0), 0.0);
    }

    #[test]
    fn there_are_no_bytes_of_other_features() {
        let space = |shape| Space::new(vec![Shape::Nominal, shape], vec![None, None], Vec::new(), 1);
        let codes = |shape, values: &[f64]| {
            let mut rows = Rows::with_capacity(1, 2);
            rows.add([0]).copy_from_slice(values);
            Codes::new(Arch::new(), &space(shape), &rows)
        };
        let found = codes(Shape::Constant, &[255.0, 0.0]).expect("a byte for each category");
        assert_eq!((found.stride, &found.bytes[..3]), (WIDE, &[255, 0, 0][..]));
        assert!(codes(Shape::Nominal, &[0.0, 256.0]).is_none());
        assert!(codes(Shape::Numeric, &[0.0, 1.0]).is_none());
    }
}
