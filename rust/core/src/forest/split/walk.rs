//! Examples with labels alone, walked in the order of their codes: what they add up to is written down and judged
//! side by side, since no guess tells where a code ends.

use pulp::Simd;

use super::single::GainOf;
use super::{Cut, STEP};
use crate::forest::moments::ties;

/// Sums of the left side after each example in order, in whole vectors.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Codes, and one more that is infinite.
    pub(super) keys: Vec<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) squares: Vec<f64>,
    pub(super) cross: Vec<f64>,
    gains: Vec<f64>,
}

impl Walk {
    /// Room for `n` examples.
    pub(super) fn start(&mut self, n: usize) {
        let Walk { keys, weights, squares, cross, gains } = self;
        let whole = n.next_multiple_of(STEP);
        keys.clear();
        keys.resize(whole + 1, f64::INFINITY);
        [weights, squares, cross, gains].into_iter().for_each(|sums| sums.resize(whole, 0.0));
    }

    /// The best cut; `squares` are those of the node.
    #[inline(always)]
    pub(super) fn best_cut<S: Simd>(&mut self, simd: S, gain: GainOf, weight: f64, squares: f64) -> Option<Cut> {
        let none = simd.splat_f64s(-1.0);
        let (all, two, node_squares) = (simd.splat_f64s(weight), simd.splat_f64s(2.0), simd.splat_f64s(squares));
        let whole = self.gains.len();
        let (keys, next) = (S::as_simd_f64s(&self.keys[..whole]).0, S::as_simd_f64s(&self.keys[1..]).0);
        let (weights, squares) = (S::as_simd_f64s(&self.weights).0, S::as_simd_f64s(&self.squares).0);
        let cross = S::as_simd_f64s(&self.cross).0;
        let gains = S::as_mut_simd_f64s(&mut self.gains).0;
        let mut most = none;
        for (i, out) in gains.iter_mut().enumerate() {
            // Σ ω·(C_L − c·share)², as one by one.
            let share = simd.div_f64s(weights[i], all);
            let crossed = simd.mul_f64s(simd.mul_f64s(two, share), cross[i]);
            let shared = simd.mul_f64s(simd.mul_f64s(share, share), node_squares);
            let quality = simd.add_f64s(simd.sub_f64s(squares[i], crossed), shared);
            let found = gain.of_quality(simd, weights[i], quality);
            *out = simd.select_f64s(simd.less_than_f64s(keys[i], next[i]), found, none);
            most = simd.max_f64s(most, *out);
        }
        let most = simd.reduce_max_f64s(most);
        let first = self.gains.iter().position(|&gain| most >= 0.0 && ties(gain, most))?;
        Some(Cut { gain: most, code: self.keys[first] as u16 })
    }
}
