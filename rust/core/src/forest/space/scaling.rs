//! Values to components: centred, scaled by the square root of their weight, and rounded to a grid on
//! which sums are exact.

use crate::labels::LabelColumn;
use crate::profile::MISSING_U16;

/// A power of two to which numbers are rounded so that sums of them are exact.
#[derive(Debug, Clone, Copy)]
struct Grid(f64);

impl Grid {
    /// For sums of up to `count` numbers of magnitude up to `max`.
    fn for_sums(max: f64, count: usize) -> Self {
        // 2^51 units leave room for the rounding itself.
        let unit = (max.max(f64::MIN_POSITIVE) * count.max(1) as f64).log2().ceil() as i32 - 51;
        Grid(2f64.powi(unit.max(-1020)))
    }

    fn round(self, value: f64) -> f64 {
        (value / self.0).round_ties_even() * self.0
    }
}

/// A variable's values of one component before scaling; `None` where missing.
pub(super) struct Raw<'a> {
    value: Box<dyn Fn(usize) -> Option<f64> + Send + Sync + 'a>,
    min: f64,
    max: f64,
}

impl<'a> Raw<'a> {
    pub(super) fn numeric(values: &'a [f64]) -> Self {
        let value = |row: usize| (!values[row].is_nan()).then_some(values[row]);
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Raw { value: Box::new(value), min, max }
    }

    pub(super) fn indicator(codes: &'a [u16], class: u16) -> Self {
        let value = move |row: usize| (codes[row] != MISSING_U16).then_some(f64::from(codes[row] == class));
        Raw { value: Box::new(value), min: 0.0, max: 1.0 }
    }

    pub(super) fn label(labels: &'a LabelColumn, label: u32) -> Self {
        let value = move |row: usize| labels.has(row, label).map(f64::from);
        Raw { value: Box::new(value), min: 0.0, max: 1.0 }
    }
}

/// A variable's values of one component as they are summed up.
pub(super) struct Component<'a> {
    raw: Raw<'a>,
    scale: f64,
    middle: f64,
    mean: f64,
    grid: Grid,
}

impl Component<'_> {
    /// The value in `row`, which weighs `weight`, times the weight; 0 where it is missing.
    pub(super) fn at(&self, row: usize, weight: f64) -> f64 {
        match (self.raw.value)(row) {
            Some(y) => self.grid.round(weight * self.scale * (y - self.middle - self.mean)),
            None => 0.0,
        }
    }

    /// Whether it is known in `row`.
    pub(super) fn is_known(&self, row: usize) -> bool {
        (self.raw.value)(row).is_some()
    }
}

/// Row weights on a grid, none above 1, and what they weigh.
pub(super) struct RowWeights {
    /// n_rows; empty if all are 1.
    pub(super) weights: Vec<f64>,
    rows: usize,
}

impl RowWeights {
    pub(super) fn new(weights: &[f64], rows: usize) -> Self {
        let max = weights.iter().copied().fold(0.0, f64::max);
        if weights.iter().all(|&w| w == max) {
            return RowWeights { weights: Vec::new(), rows };
        }
        // Scaled to (1/2, 1] at most, so that no sum overflows; by a power of two, so that weights that
        // were equal in sum stay so.
        let scale = max.log2().ceil().exp2();
        let grid = Grid::for_sums(1.0, rows);
        RowWeights { weights: weights.iter().map(|w| grid.round(w / scale)).collect(), rows }
    }

    pub(super) fn of(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }

    /// Weighted mean of `value` over the rows where it is known; `max` bounds its magnitude.
    fn mean(&self, max: f64, value: impl Fn(usize) -> Option<f64>) -> f64 {
        let grid = Grid::for_sums(max, self.rows);
        let (mut sum, mut weight) = (0.0, 0.0);
        for row in 0..self.rows {
            if let Some(value) = value(row) {
                sum += grid.round(self.of(row) * value);
                weight += self.of(row);
            }
        }
        sum / weight
    }

    /// The component of a variable with weight `share`, or `None` if it is constant.
    pub(super) fn component<'a>(&self, raw: Raw<'a>, share: f64) -> Option<Component<'a>> {
        if raw.min >= raw.max {
            return None;
        }
        let (middle, mean) = self.centre(&raw);
        // Relative to the spread, so that squares neither overflow nor vanish. Halves cannot overflow.
        let spread = 2.0 * (raw.max / 2.0 - raw.min / 2.0).min(f64::MAX / 2.0);
        let square = |row: usize| (raw.value)(row).map(|y| ((y - middle - mean) / spread).powi(2));
        let variance = self.mean(1.0, square);
        (variance > 0.0).then(|| self.centred(raw, share.sqrt() / variance.sqrt() / spread, middle, mean))
    }

    /// The component of `raw` with weight `omega`.
    pub(super) fn scaled<'a>(&self, raw: Raw<'a>, omega: f64) -> Component<'a> {
        let (middle, mean) = self.centre(&raw);
        self.centred(raw, omega.sqrt(), middle, mean)
    }

    /// The middle of the range, and the mean counted from there.
    fn centre(&self, raw: &Raw<'_>) -> (f64, f64) {
        let middle = f64::midpoint(raw.min, raw.max);
        (middle, self.mean(raw.max - middle, |row| (raw.value)(row).map(|y| y - middle)))
    }

    fn centred<'a>(&self, raw: Raw<'a>, scale: f64, middle: f64, mean: f64) -> Component<'a> {
        let farthest = (raw.max - middle - mean).max(middle + mean - raw.min);
        Component { grid: Grid::for_sums(farthest * scale, self.rows), raw, scale, middle, mean }
    }

    /// Gini index of the classes.
    pub(super) fn gini(&self, codes: &[u16], classes: usize) -> f64 {
        let mut weight = vec![0.0; classes];
        for (row, &code) in codes.iter().enumerate() {
            if code != MISSING_U16 {
                weight[usize::from(code)] += self.of(row);
            }
        }
        gini(&weight)
    }

    /// ω of each label but for the share of its target: the label's own share over its variance, and 0
    /// where all rows have the label, or none.
    pub(super) fn label_weights(&self, labels: &LabelColumn) -> Vec<f64> {
        let mut weight = vec![0.0; labels.hierarchy.names().len()];
        let mut total = 0.0;
        for row in 0..self.rows {
            if let Some(set) = labels.of(row) {
                total += self.of(row);
                set.iter().for_each(|&label| weight[label as usize] += self.of(row));
            }
        }
        let omega = |(share, weight): (f64, f64)| {
            let variance = gini(&[total - weight, weight]) / 2.0;
            if variance > 0.0 { share / variance } else { 0.0 }
        };
        labels.shares().into_iter().zip(weight).map(omega).collect()
    }
}

/// Gini index of classes of these weights.
fn gini(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total * (1.0 - w / total)).sum()
}
