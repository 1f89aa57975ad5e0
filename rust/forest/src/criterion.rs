//! Sums over the examples of a node, and the gain of a split from the sums of one side.
//!
//! Sums are a flat vector, so that adding and subtracting are loops over numbers. They are the number of examples, the
//! weight, a sum for each number of a row of the block (dense components, then the weights of components and groups
//! that are missing in some rows), and a sum for each indicator.
//!
//! With node mean m and left sums (W_L, S_L), the decrease of the variance of a component is
//! (S_L − m·W_L)² / (W_L·W_R), which takes one division and has no cancellation.

use super::pairs::{CountField, Pair, PairLayout};
use super::space::{Block, Space};

/// Position of the number of examples, counted with multiplicity.
pub(crate) const EXAMPLES: usize = 0;
/// Position of the weight.
pub(crate) const WEIGHT: usize = 1;
/// Position of the first dense component.
pub(crate) const FIRST: usize = 2;

/// The layout and the weights of the sums over a space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Criterion {
    /// Number of dense components known for all rows.
    pub(crate) n_whole: usize,
    /// Number of dense components missing in some rows, which have their own weights; they come last.
    pub(crate) n_partial: usize,
    /// n_indicators; ω of each.
    pub(crate) indicator_weight: Vec<f64>,
    /// The group of each partial indicator; these come last.
    pub(crate) indicator_group: Vec<u32>,
    /// Number of groups of partial indicators.
    pub(crate) n_groups: usize,
    /// True if rows have weights that differ.
    pub(crate) is_weighted: bool,
    /// True if the indicators are the classes of a target that is known for all rows, of the same ω.
    pub(crate) is_classes: bool,
    /// The layout of counts and row weights in one number, or of counts and the first component if rows weigh 1.
    pub(crate) count_field: Option<CountField>,
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
            is_classes: space.is_classes,
            count_field: space.count_field(),
        }
    }

    /// Number of values of a row of the block.
    pub(crate) fn width(&self) -> usize {
        self.n_whole + 2 * self.n_partial + self.n_groups
    }

    /// Number of sums.
    pub(crate) fn len(&self) -> usize {
        FIRST + self.width() + self.indicator_weight.len()
    }

    /// Returns true if some components are missing in some rows, and so have weights of their own.
    pub(crate) fn is_partial(&self) -> bool {
        self.n_partial + self.n_groups > 0
    }

    /// Returns true if there is a single component, known for all rows, and rows weigh 1. All examples are then pairs.
    pub(crate) fn is_single(&self) -> bool {
        self.is_ordered() && !self.is_partial() && !self.is_weighted
    }

    /// The layout of pairs, if it is the same for all nodes. `None` if the sums of nodes do not fit pairs, or if the layout depends
    /// on the [classes](Self::is_one_target_of_classes) of the node.
    pub(crate) fn pair_layout(&self) -> Option<PairLayout> {
        match (self.n_whole, self.indicator_weight.len(), self.is_weighted) {
            _ if self.is_partial() => None,
            (1, 0, false) => Some(PairLayout::Component),
            (1, 0, true) => self.count_field.map(PairLayout::Weighted),
            (2, 0, false) => self.count_field.map(PairLayout::Two),
            _ => None,
        }
    }

    /// Returns true if the only target is one of classes and all rows weigh 1. The layout of pairs then depends on the classes
    /// that a node contains.
    pub(crate) fn is_one_target_of_classes(&self) -> bool {
        self.is_classes && self.is_labels() && !self.is_partial()
    }

    /// The classes that a node with these `sums` contains, ascending; all classes if the sums are not known.
    pub(crate) fn classes(&self, sums: Option<&[f64]>) -> impl Iterator<Item = u32> {
        let counts = sums.map(|sums| self.indicators(sums));
        let is_present = move |&class: &u32| counts.is_none_or(|counts| counts[class as usize] > 0.0);
        (0..self.indicator_weight.len() as u32).filter(is_present)
    }

    /// Returns true if there are labels alone, known for all rows, and rows weigh 1.
    pub(crate) fn is_labels(&self) -> bool {
        self.width() == 0 && !self.is_weighted && !self.indicator_weight.is_empty()
    }

    /// Returns true if the best subset of categories is a prefix in the order of their means (Breiman et al. 1984,
    /// Theorem 4.5). This holds for a single mean.
    pub(crate) fn is_ordered(&self) -> bool {
        self.n_dense() == 1 && self.indicator_weight.is_empty()
    }

    pub(crate) fn n_dense(&self) -> usize {
        self.n_whole + self.n_partial
    }

    /// Number of indicators known for all rows; they come first.
    pub(crate) fn n_whole_indicators(&self) -> usize {
        self.indicator_weight.len() - self.indicator_group.len()
    }

    /// The mean of a component, numbered as in [`gains`](Self::gains), over the examples for which it is known; `None`
    /// if it is known for none.
    pub(crate) fn mean(&self, sums: &[f64], component: usize) -> Option<f64> {
        let position = match component.checked_sub(self.n_dense()) {
            None => FIRST + component,
            Some(indicator) => FIRST + self.width() + indicator,
        };
        let weight = sums[self.weight_position(component)];
        (weight > 0.0).then(|| sums[position] / weight)
    }

    pub(crate) fn dense<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST..FIRST + self.n_dense()]
    }

    /// The sums of the numbers of a row of the block.
    pub(crate) fn row<'a>(&self, sums: &'a [f64]) -> &'a [f64] {
        &sums[FIRST..FIRST + self.width()]
    }

    /// The weight of the examples for which a dense component is known.
    pub(crate) fn weight_of_dense(&self, sums: &[f64], component: usize) -> f64 {
        sums[self.weight_position(component)]
    }

    /// The weight of the examples for which an indicator is known.
    pub(crate) fn weight_of_indicator(&self, sums: &[f64], indicator: usize) -> f64 {
        sums[self.weight_position(self.n_dense() + indicator)]
    }

    /// The position of the weight of the examples for which a component is known. Components are numbered as in
    /// [`gains`](Self::gains).
    pub(crate) fn weight_position(&self, component: usize) -> usize {
        let partial_dense = FIRST + self.n_dense();
        match component.checked_sub(self.n_dense()) {
            None if component < self.n_whole => WEIGHT,
            None => partial_dense + component - self.n_whole,
            Some(indicator) => match indicator.checked_sub(self.n_whole_indicators()) {
                None => WEIGHT,
                Some(partial) => partial_dense + self.n_partial + self.indicator_group[partial] as usize,
            },
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

    /// Sets `sums` to the sums that `pair` holds in this `layout`. `classes` are the classes that the fields of the pair count;
    /// empty for other layouts.
    pub(crate) fn set_pair(&self, sums: &mut Vec<f64>, pair: Pair, layout: PairLayout, classes: &[u32]) {
        sums.clear();
        sums.resize(self.len(), 0.0);
        (sums[EXAMPLES], sums[WEIGHT]) = layout.count_and_weight(pair[0]);
        match layout {
            PairLayout::Component | PairLayout::Weighted(_) => sums[FIRST] = pair[1],
            PairLayout::Two(field) => [sums[FIRST], sums[FIRST + 1]] = [field.count_and_sum(pair[0]).1, pair[1]],
            PairLayout::Classes(fields) => {
                classes
                    .iter()
                    .zip(fields.counts(pair))
                    .for_each(|(&class, count)| sums[FIRST + class as usize] = count);
            }
        }
    }

    /// Returns the pair of this `layout` that holds `sums`, the inverse of [`set_pair`](Self::set_pair).
    pub(crate) fn pair(&self, sums: &[f64], layout: PairLayout, classes: &[u32]) -> Pair {
        match layout {
            PairLayout::Component => [sums[EXAMPLES], sums[FIRST]],
            PairLayout::Weighted(field) => [field.weighted_number(sums[EXAMPLES], sums[WEIGHT]), sums[FIRST]],
            PairLayout::Two(field) => [field.number(sums[EXAMPLES], sums[FIRST]), sums[FIRST + 1]],
            PairLayout::Classes(fields) => {
                let counts = self.indicators(sums);
                fields.pair(sums[EXAMPLES], classes.iter().map(|&class| counts[class as usize]))
            }
        }
    }

    /// Returns the [`gain`](Self::gain) of a split from the pairs of the left side and of the node. Classes that have no field in
    /// this `layout` do not occur in the node and add nothing.
    #[inline(never)]
    pub(crate) fn gain_of_pairs(&self, left: Pair, total: Pair, layout: PairLayout) -> f64 {
        let [own, all] = [left, total].map(|pair| layout.count_and_weight(pair[0]).1);
        match layout {
            PairLayout::Component | PairLayout::Weighted(_) => decrease(left[1], own, total[1], all),
            PairLayout::Two(field) => {
                let [first, of_all] = [left, total].map(|pair| field.count_and_sum(pair[0]).1);
                decrease(first, own, of_all, all) + decrease(left[1], own, total[1], all)
            }
            PairLayout::Classes(fields) => {
                let counts = fields.counts(left).zip(fields.counts(total));
                // All are the same.
                let omega = self.indicator_weight[0];
                counts.fold(0.0, |gain, (count, total)| gain + omega * decrease(count, own, total, all))
            }
        }
    }

    /// The impurity decrease due to splitting `total` into `left` and the rest.
    pub(crate) fn gain(&self, left: &[f64], total: &[f64]) -> f64 {
        let mut gain = 0.0;
        self.gains(left, total, |_, part| gain += part);
        gain
    }

    /// Calls `each` with each component and its part of the gain: dense components, then indicators.
    pub(crate) fn gains(&self, left: &[f64], total: &[f64], mut each: impl FnMut(usize, f64)) {
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

    /// Calls `each` with each component and its contrast between `left` and the rest of `total`, times ω; components as
    /// in [`gains`](Self::gains).
    pub(crate) fn contrasts(&self, left: &[f64], total: &[f64], mut each: impl FnMut(usize, f64)) {
        for c in 0..self.n_dense() {
            let [own_left, own] = [left, total].map(|sums| self.weight_of_dense(sums, c));
            each(c, contrast(left[FIRST + c], own_left, total[FIRST + c], own));
        }
        let (counts_left, counts) = (self.indicators(left), self.indicators(total));
        for (l, omega) in self.indicator_weight.iter().enumerate() {
            let [own_left, own] = [left, total].map(|sums| self.weight_of_indicator(sums, l));
            each(self.n_dense() + l, omega * contrast(counts_left[l], own_left, counts[l], own));
        }
    }
}

/// The decrease of the variance of a component due to a split; 0 if a side is empty. `left` and `all` are the weights of the
/// left side and of both sides.
#[inline(always)]
fn decrease(sum_left: f64, left: f64, sum: f64, all: f64) -> f64 {
    let right = all - left;
    if left > 0.0 && right > 0.0 { (sum_left - sum / all * left).powi(2) / (left * right) } else { 0.0 }
}

/// The mean of the left side minus the mean of the right side of a split; 0 if a side is empty. `left` and `all` are the
/// weights of the left side and of both sides.
#[inline(always)]
pub(crate) fn contrast(sum_left: f64, left: f64, sum: f64, all: f64) -> f64 {
    let right = all - left;
    if left > 0.0 && right > 0.0 { (sum_left - sum / all * left) * all / (left * right) } else { 0.0 }
}

/// Gains of at least this share of the greatest gain tie: 1 − 2⁻³⁶. Two tests that divide the examples in the same way
/// have equal gains, and rounding noise must not choose between them.
pub(crate) const TIE: f64 = 1.0 - 1.0 / (1u64 << 36) as f64;

/// Returns true if `gain` ties with `most`, the greatest gain.
#[inline(always)]
pub(crate) fn ties(gain: f64, most: f64) -> bool {
    gain >= most * TIE
}
