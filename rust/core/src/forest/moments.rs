//! Sums over the examples of a node, and the gain of a split from the sums of one side.
//!
//! Sums lie flat in one vector, so that adding, subtracting and merging are loops over numbers:
//! examples, weight, one sum for each dense component, then one for each indicator. Where targets
//! are missing, each dense component is followed up by its own weight instead.
//!
//! With node mean m and left sums (W_L, S_L), the decrease of a component's variance is
//! (S_L − m·W_L)² / (W_L·W_R): one division, and nothing cancels.

use super::space::{Block, Space};

/// Position of the number of examples, counted with multiplicity.
pub(crate) const EXAMPLES: usize = 0;
/// Position of the weight.
pub(crate) const WEIGHT: usize = 1;
/// Position of the first dense component.
pub(crate) const FIRST: usize = 2;

/// How the sums of a space are laid out and weighed.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) n_dense: usize,
    /// n_indicators; ω of each.
    pub(crate) indicator_weight: Vec<f64>,
    /// Each dense component has its own weight.
    pub(crate) partial: bool,
}

impl Shape {
    pub(crate) fn of(space: &Space) -> Self {
        Shape { n_dense: space.n_dense(), indicator_weight: space.indicator_weight.clone(), partial: space.partial }
    }

    /// Number of sums.
    pub(crate) fn len(&self) -> usize {
        FIRST + self.n_dense * if self.partial { 2 } else { 1 } + self.indicator_weight.len()
    }

    /// Whether the categories of a nominal feature have an order in which the best subset is a
    /// prefix: there is but one mean to order by (Breiman et al. 1984, Theorem 4.5).
    pub(crate) fn is_ordered(&self) -> bool {
        self.n_dense == 1 && self.indicator_weight.is_empty()
    }

    pub(crate) fn dense<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST..FIRST + self.n_dense]
    }

    /// Own weights of the dense components; only where targets are missing.
    pub(crate) fn dense_weights<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST + self.n_dense..FIRST + 2 * self.n_dense]
    }

    pub(crate) fn indicators<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[sums.len() - self.indicator_weight.len()..]
    }

    /// Adds `count` copies of row `row` of `block`.
    #[inline(always)]
    pub(crate) fn add(&self, sums: &mut [f64], block: &Block, row: usize, count: f64) {
        let weight = count * block.weight(row);
        sums[EXAMPLES] += count;
        sums[WEIGHT] += weight;
        let (dense, rest) = sums[FIRST..].split_at_mut(self.n_dense);
        if self.partial {
            for ((sum, own), &value) in dense.iter_mut().zip(rest).zip(block.dense(row)) {
                if !value.is_nan() {
                    *sum += count * value;
                    *own += weight;
                }
            }
            return;
        }
        for (sum, &value) in dense.iter_mut().zip(block.dense(row)) {
            *sum += count * value;
        }
        for &indicator in block.indicators(row) {
            rest[indicator as usize] += weight;
        }
    }

    /// Adds examples whose only component sums to `sum`, where row weights are 1.
    #[inline(always)]
    pub(crate) fn add_single(&self, sums: &mut [f64], count: f64, sum: f64) {
        sums[EXAMPLES] += count;
        sums[WEIGHT] += count;
        sums[FIRST] += sum;
    }

    /// The impurity decrease of splitting off `left` from `total`.
    pub(crate) fn gain(&self, left: &[f64], total: &[f64]) -> f64 {
        let mut gain = 0.0;
        self.gains(left, total, |_, part| gain += part);
        gain
    }

    /// The parts that make up the gain: dense components first, then indicators, by number.
    pub(crate) fn gains(&self, left: &[f64], total: &[f64], mut each: impl FnMut(usize, f64)) {
        let decrease = |sum_left: f64, left: f64, sum: f64, all: f64| {
            let right = all - left;
            if left > 0.0 && right > 0.0 { (sum_left - sum / all * left).powi(2) / (left * right) } else { 0.0 }
        };
        let (weight_left, weight) = (left[WEIGHT], total[WEIGHT]);
        for c in 0..self.n_dense {
            let (mut own_left, mut own) = (weight_left, weight);
            if self.partial {
                (own_left, own) = (self.dense_weights(left)[c], self.dense_weights(total)[c]);
            }
            each(c, decrease(left[FIRST + c], own_left, total[FIRST + c], own));
        }
        let (counts_left, counts) = (self.indicators(left), self.indicators(total));
        for (l, omega) in self.indicator_weight.iter().enumerate() {
            each(self.n_dense + l, omega * decrease(counts_left[l], weight_left, counts[l], weight));
        }
    }
}

/// Gains tie down to this share of the greatest: 1 − 2⁻³⁶. Two tests that part the same examples have
/// equal gains, and rounding noise must not choose between them.
pub(crate) const TIE: f64 = 1.0 - 1.0 / (1u64 << 36) as f64;

/// Whether `gain` is as good as `most`, the greatest there is.
#[inline(always)]
pub(crate) fn ties(gain: f64, most: f64) -> bool {
    gain >= most * TIE
}
