//! Prefix sums of examples in the order of their codes, for rows of weight 1.
//!
//! The sums after each example are recorded, and the gains of all cuts are computed in vectors. Cuts between examples
//! with the same code are masked, because branches at the ends of codes would be unpredictable.

use pulp::Simd;

use super::gain::GainFormula;
use super::{Cut, STEP, first_best};

/// The left side after each example in order, in whole vectors.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// The codes, padded with infinite ones, at least one.
    keys: Vec<f64>,
    counts: Vec<f64>,
    /// Gains times the weights of both sides; for labels, Σ ω·C_L² until [`measure_labels`](Self::measure_labels).
    qualities: Vec<f64>,
    /// Σ ω·C_L·c, for labels.
    cross: Vec<f64>,
    gains: Vec<f64>,
}

/// The record of an example.
pub(super) struct Step<'a> {
    pub(super) key: &'a mut f64,
    pub(super) count: &'a mut f64,
    pub(super) quality: &'a mut f64,
    pub(super) cross: &'a mut f64,
}

impl Prefixes {
    /// The records of `n` examples, in order.
    #[inline(always)]
    pub(super) fn steps(&mut self, n: usize) -> impl Iterator<Item = Step<'_>> {
        let Prefixes { keys, counts, qualities, cross, gains } = self;
        let whole = n.next_multiple_of(STEP);
        keys.clear();
        keys.resize(whole + 1, f64::INFINITY);
        [&mut *counts, &mut *qualities, &mut *cross, gains].into_iter().for_each(|sums| sums.resize(whole, 0.0));
        let cells = keys.iter_mut().zip(counts).zip(qualities).zip(cross).take(n);
        cells.map(|(((key, count), quality), cross)| Step { key, count, quality, cross })
    }

    /// Forbids the cuts after the first `n` examples but the last: those with a code up to that of the next example.
    pub(super) fn join_first(&mut self, n: usize) {
        let next = self.keys[n];
        self.keys[..n].fill(next);
    }

    /// Computes the qualities Σ ω·(C_L − c·r)² from the sums of labels. r is the share of the `examples` of the node on
    /// the left, and `squares` is Σ ω·c² of the node.
    #[inline(always)]
    pub(super) fn measure_labels<S: Simd>(&mut self, simd: S, examples: f64, squares: f64) {
        let (all, two, squares) = (simd.splat_f64s(examples), simd.splat_f64s(2.0), simd.splat_f64s(squares));
        let (counts, cross) = (S::as_simd_f64s(&self.counts).0, S::as_simd_f64s(&self.cross).0);
        let qualities = S::as_mut_simd_f64s(&mut self.qualities).0;
        for ((quality, &count), &cross) in qualities.iter_mut().zip(counts).zip(cross) {
            let share = simd.div_f64s(count, all);
            let crossed = simd.mul_f64s(simd.mul_f64s(two, share), cross);
            let shared = simd.mul_f64s(simd.mul_f64s(share, share), squares);
            *quality = simd.add_f64s(simd.sub_f64s(*quality, crossed), shared);
        }
    }

    /// The best cut.
    #[inline(always)]
    pub(super) fn best_cut<S: Simd>(&mut self, simd: S, gain: GainFormula) -> Option<Cut> {
        let none = simd.splat_f64s(-1.0);
        let whole = self.gains.len();
        let (keys, next) = (S::as_simd_f64s(&self.keys[..whole]).0, S::as_simd_f64s(&self.keys[1..]).0);
        let (counts, qualities) = (S::as_simd_f64s(&self.counts).0, S::as_simd_f64s(&self.qualities).0);
        let gains = S::as_mut_simd_f64s(&mut self.gains).0;
        let mut most = none;
        for (i, out) in gains.iter_mut().enumerate() {
            let found = gain.gains_of_qualities(simd, counts[i], qualities[i]);
            *out = simd.select_f64s(simd.less_than_f64s(keys[i], next[i]), found, none);
            most = simd.max_f64s(most, *out);
        }
        let most = simd.reduce_max_f64s(most);
        first_best(&self.gains, most).map(|first| Cut::new(most, self.keys[first] as u16))
    }
}
