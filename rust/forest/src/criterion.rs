//! Sums over the examples of a node, and the gain of a split from the sums of one side.
//!
//! Sums lie flat in one vector, so that adding, subtracting and merging are loops over numbers:
//! examples, weight, one sum for each number of a row of the block (dense components, then the weights
//! of those that are missing in some rows), then one for each indicator.
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
#[derive(Debug, Clone, Default)]
pub(crate) struct Criterion {
    /// Dense components that are known for all rows.
    pub(crate) n_whole: usize,
    /// Dense components, after those, that have their own weights.
    pub(crate) n_partial: usize,
    /// n_indicators; ω of each.
    pub(crate) indicator_weight: Vec<f64>,
    /// The group of each of the last indicators, those that have weights of their own.
    pub(crate) indicator_group: Vec<u32>,
    /// Number of groups.
    pub(crate) n_groups: usize,
    /// Whether rows have weights that differ.
    pub(crate) is_weighted: bool,
}

impl Criterion {
    pub(crate) fn new(space: &Space) -> Self {
        Criterion {
            n_whole: space.n_whole,
            n_partial: space.n_dense() - space.n_whole,
            indicator_weight: space.indicator_weight.clone(),
            indicator_group: space.indicator_group.clone(),
            n_groups: space.n_groups(),
            is_weighted: space.is_weighted(),
        }
    }

    /// Numbers of a row of the block.
    pub(crate) fn width(&self) -> usize {
        self.n_whole + 2 * self.n_partial + self.n_groups
    }

    /// Number of sums.
    pub(crate) fn len(&self) -> usize {
        FIRST + self.width() + self.indicator_weight.len()
    }

    /// Returns true if some components have weights of their own.
    pub(crate) fn is_partial(&self) -> bool {
        self.n_partial + self.n_groups > 0
    }

    /// Returns true if there is a single component, known for all rows, and rows weigh 1. An example is then a pair of
    /// numbers.
    pub(crate) fn is_single(&self) -> bool {
        self.is_ordered() && !self.is_partial() && !self.is_weighted
    }

    /// Returns true if there are labels alone, known for all rows, and rows weigh 1.
    pub(crate) fn is_labels(&self) -> bool {
        self.width() == 0 && !self.is_weighted && !self.indicator_weight.is_empty()
    }

    /// Returns true if the categories of a nominal feature have an order in which the best subset is a
    /// prefix: there is but one mean to order by (Breiman et al. 1984, Theorem 4.5).
    pub(crate) fn is_ordered(&self) -> bool {
        self.n_dense() == 1 && self.indicator_weight.is_empty()
    }

    pub(crate) fn n_dense(&self) -> usize {
        self.n_whole + self.n_partial
    }

    /// Indicators that are known for all rows; they come first.
    pub(crate) fn n_whole_indicators(&self) -> usize {
        self.indicator_weight.len() - self.indicator_group.len()
    }

    pub(crate) fn dense<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST..FIRST + self.n_dense()]
    }

    /// The sums of a whole row of the block.
    pub(crate) fn row<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST..FIRST + self.width()]
    }

    /// The weight that counts for a dense component.
    pub(crate) fn weight_of_dense(&self, sums: &[f64], component: usize) -> f64 {
        match component.checked_sub(self.n_whole) {
            None => sums[WEIGHT],
            Some(partial) => sums[FIRST + self.n_dense() + partial],
        }
    }

    /// The weight that counts for an indicator.
    pub(crate) fn weight_of_indicator(&self, sums: &[f64], indicator: usize) -> f64 {
        match indicator.checked_sub(self.n_whole_indicators()) {
            None => sums[WEIGHT],
            Some(partial) => sums[FIRST + self.n_dense() + self.n_partial + self.indicator_group[partial] as usize],
        }
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
        let (dense, indicators) = sums[FIRST..].split_at_mut(self.width());
        for (sum, &value) in dense.iter_mut().zip(block.dense(row)) {
            *sum += count * value;
        }
        for &indicator in block.indicators(row) {
            indicators[indicator as usize] += weight;
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
        for c in 0..self.n_dense() {
            let [own_left, own] = [left, total].map(|sums| self.weight_of_dense(sums, c));
            each(c, decrease(left[FIRST + c], own_left, total[FIRST + c], own));
        }
        let (counts_left, counts) = (self.indicators(left), self.indicators(total));
        for (l, omega) in self.indicator_weight.iter().enumerate() {
            let [own_left, own] = [left, total].map(|sums| self.weight_of_indicator(sums, l));
            each(self.n_dense() + l, omega * decrease(counts_left[l], own_left, counts[l], own));
        }
    }
}

/// Gains tie down to this share of the greatest: 1 − 2⁻³⁶. Two tests that part the same examples have
/// equal gains, and rounding noise must not choose between them.
pub(crate) const TIE: f64 = 1.0 - 1.0 / (1u64 << 36) as f64;

/// Returns true if `gain` is as good as `most`, the greatest there is.
#[inline(always)]
pub(crate) fn ties(gain: f64, most: f64) -> bool {
    gain >= most * TIE
}
