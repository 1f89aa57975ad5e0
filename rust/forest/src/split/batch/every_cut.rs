//! Every cut of each candidate: the sums of the left sides of all cuts, in vectors.

use bytemuck::cast_slice;
use pulp::{Simd, WithSimd};

use super::row::{OnVectors, Row, by_width};
use crate::pairs::Pair;
use crate::split::gain::{GainFormula, PairGain};
use crate::split::gram::{self, Gram};

/// 0, 1, 2, …
const POSITIONS: [f64; gram::MOST] = {
    let mut positions = [0.0; gram::MOST];
    let mut i = 0;
    while i < positions.len() {
        positions[i] = i as f64;
        i += 1;
    }
    positions
};

/// How the cuts of a candidate are judged.
pub(super) trait Measure: Copy {
    /// The gain of the cut just above each of `keys`, whose first `own.len()` are those of the examples; `own` is a buffer.
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], own: &mut [Pair]) -> [S::f64s; VECTORS];
}

/// `sum` plus `addend` where `is_added`. Vectors of 512 bits add under a mask, which takes one instruction in the place of two:
/// 1.1x on nodes of 17 to 64 examples. Others select faster from zero.
#[inline(always)]
fn add_where<S: Simd>(simd: S, is_added: S::m64s, sum: S::f64s, addend: S::f64s) -> S::f64s {
    if S::F64_LANES == 8 {
        return simd.select_f64s(is_added, simd.add_f64s(sum, addend), sum);
    }
    simd.add_f64s(sum, simd.select_f64s(is_added, addend, simd.splat_f64s(0.0)))
}

/// The sums of the left sides of the cuts just above each of `keys`, from the keys and the addends of the examples.
#[inline(always)]
pub(in crate::split) fn left_sums<S: Simd, const VECTORS: usize, const SUMS: usize>(
    simd: S,
    keys: &[f64],
    examples: impl Iterator<Item = (f64, [f64; SUMS])>,
) -> [[S::f64s; VECTORS]; SUMS] {
    let zero = simd.splat_f64s(0.0);
    let (vectors, _) = S::as_simd_f64s(keys);
    let vectors: [S::f64s; VECTORS] = std::array::from_fn(|v| vectors[v]);
    let mut sums = [[zero; VECTORS]; SUMS];
    for (key, addends) in examples {
        let key = simd.splat_f64s(key);
        let mut values = [zero; SUMS];
        for s in 0..SUMS {
            values[s] = simd.splat_f64s(addends[s]);
        }
        for v in 0..VECTORS {
            let left = simd.less_than_or_equal_f64s(key, vectors[v]);
            for s in 0..SUMS {
                sums[s][v] = add_where(simd, left, sums[s][v], values[s]);
            }
        }
    }
    sums
}

/// The gain follows from the sums of pairs.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, G> {
    pub(super) pairs: &'a [Pair],
    pub(super) gain: G,
}

impl<G: PairGain> Measure for Pairs<'_, G> {
    #[inline(always)]
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], _: &mut [Pair]) -> [S::f64s; VECTORS] {
        let examples = keys.iter().copied().zip(self.pairs.iter().copied());
        let [counts, mut sums] = left_sums::<S, VECTORS, 2>(simd, keys, examples);
        for v in 0..VECTORS {
            sums[v] = self.gain.gains(simd, counts[v], sums[v]);
        }
        sums
    }
}

/// Any components: example k, in the order of keys, adds G_kk + 2·Σ_j G_jk over the examples j before it.
#[derive(Clone, Copy)]
pub(super) struct Products<'a> {
    pub(super) gram: &'a Gram,
    pub(super) gain: GainFormula,
}

impl Measure for Products<'_> {
    #[inline(always)]
    fn gains<S: Simd, const VECTORS: usize>(self, simd: S, keys: &[f64], own: &mut [Pair]) -> [S::f64s; VECTORS] {
        let (zero, times) = (simd.splat_f64s(0.0), simd.splat_f64s(gram::MOST as f64));
        let (vectors, positions) = (S::as_simd_f64s(keys).0, S::as_simd_f64s(&POSITIONS).0);
        // Examples with the same key come in the order of their rows.
        let mut places = [zero; VECTORS];
        for v in 0..VECTORS {
            places[v] = simd.add_f64s(simd.mul_f64s(vectors[v], times), positions[v]);
        }
        let mut before = [zero; VECTORS];
        for (j, &place) in cast_slice(&places).iter().enumerate().take(own.len()) {
            let place = simd.splat_f64s(place);
            let (row, _) = S::as_simd_f64s(self.gram.row(j));
            for v in 0..VECTORS {
                let comes_after = simd.less_than_f64s(place, places[v]);
                before[v] = add_where(simd, comes_after, before[v], row[v]);
            }
        }
        for (k, (pair, before)) in own.iter_mut().zip(cast_slice::<_, f64>(&before)).enumerate() {
            *pair = [self.gram.counts()[k], self.gram.row(k)[k] + 2.0 * before];
        }
        let examples = keys.iter().copied().zip(own.iter().copied());
        let [counts, mut sums] = left_sums::<S, VECTORS, 2>(simd, keys, examples);
        for v in 0..VECTORS {
            let quality = simd.max_f64s(sums[v], zero);
            sums[v] = self.gain.gains_of_qualities(simd, counts[v], quality);
        }
        sums
    }
}

/// Judges every cut of the candidates in `rows`; see [`Batch`](super::Batch) for the fields.
pub(super) struct EveryCut<'a, M> {
    pub(super) n: usize,
    pub(super) width: usize,
    pub(super) rows: &'a mut [Row],
    pub(super) keys: &'a [f64],
    pub(super) gains: &'a mut [f64],
    pub(super) measure: M,
}

impl<M: Measure> WithSimd for EveryCut<'_, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_width(simd, self.width, self);
    }
}

impl<M: Measure> OnVectors for EveryCut<'_, M> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let EveryCut { n, width, rows, keys, gains, measure } = self;
        let lines = keys.chunks_exact(width).zip(gains.chunks_exact_mut(width));
        let mut own = [[0.0; 2]; gram::MOST];
        for (row, (keys, gains)) in rows.iter_mut().zip(lines) {
            let judged = measure.gains::<S, VECTORS>(simd, keys, &mut own[..n]);
            let (out, _) = S::as_mut_simd_f64s(gains);
            let mut most = simd.splat_f64s(-1.0);
            for v in 0..VECTORS {
                out[v] = judged[v];
                most = simd.max_f64s(most, out[v]);
            }
            row.gain = simd.reduce_max_f64s(most);
        }
    }
}
