//! From values to components: centred, scaled by the square root of the weight, and rounded to a grid on which sums are
//! exact.

use crate::pairs::CountField;
use ferrank_data::labels::LabelColumn;
use ferrank_data::profile::MISSING_U16;
use ferrank_data::store::{Columns, Origin, TargetColumn};

/// A power of two. Sums of numbers rounded to its multiples are exact.
#[derive(Debug, Clone, Copy)]
struct Grid(f64);

impl Grid {
    /// The finest grid on which sums of `count` numbers of magnitude up to `max` are exact.
    fn for_sums(max: f64, count: usize) -> Self {
        // 2^51 units leave two bits for the rounding itself.
        let unit = (max.max(f64::MIN_POSITIVE) * count.max(1) as f64).log2().ceil() as i32 - 51;
        Grid(2f64.powi(unit.max(-1020)))
    }

    /// Ties go to even numbers of steps. For up to 2^51 steps, which is what a grid is made for, f64 rounds a sum with
    /// `INTEGERS` to integers: half of the CPU time of `round_ties_even`, which is a call on x86-64 without SSE4.1.
    fn round(self, value: f64) -> f64 {
        const INTEGERS: f64 = 1.5 * (1u64 << 52) as f64;
        ((value / self.0 + INTEGERS) - INTEGERS) * self.0
    }
}

/// The value of a row; `None` where it is missing.
type Value<'a> = Box<dyn Fn(usize) -> Option<f64> + Send + Sync + 'a>;

/// The values of one component before scaling.
pub(super) struct Raw<'a> {
    value: Value<'a>,
    min: f64,
    max: f64,
}

impl<'a> Raw<'a> {
    pub(super) fn numeric(values: &'a [f64]) -> Self {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Raw { value: number(values), min, max }
    }

    pub(super) fn indicator(codes: &'a [u16], class: u32) -> Self {
        Raw { value: is_class(codes, class), min: 0.0, max: 1.0 }
    }

    pub(super) fn label(labels: &'a LabelColumn, label: u32) -> Self {
        Raw { value: has_label(labels, label), min: 0.0, max: 1.0 }
    }
}

fn number(values: &[f64]) -> Value<'_> {
    Box::new(|row| (!values[row].is_nan()).then_some(values[row]))
}

fn is_class(codes: &[u16], class: u32) -> Value<'_> {
    Box::new(move |row| (codes[row] != MISSING_U16).then_some(f64::from(u32::from(codes[row]) == class)))
}

fn has_label(labels: &LabelColumn, label: u32) -> Value<'_> {
    Box::new(move |row| labels.has(row, label).map(f64::from))
}

/// How a column's values become a dense component.
#[derive(Debug)]
pub(super) struct Dense {
    pub(super) origin: Origin,
    /// The class or label whose indicator it is; 0 for numbers.
    pub(super) which: u32,
    pub(super) scaling: Scaling,
}

impl Dense {
    /// The values of the component before scaling, read from `columns`.
    pub(super) fn raw<'a>(&self, columns: Columns<'a>) -> Value<'a> {
        match columns.of(self.origin) {
            TargetColumn::Numeric(values) => number(values),
            TargetColumn::Nominal { codes, .. } => is_class(codes, self.which),
            TargetColumn::Labels(labels) => has_label(labels, self.which),
        }
    }

    /// The component of the value `y`, times the `weight` of the row.
    #[inline(always)]
    pub(super) fn value(&self, y: f64, weight: f64) -> f64 {
        let Scaling { scale, middle, mean, grid, .. } = self.scaling;
        grid.round(weight * scale * (y - middle - mean))
    }

    /// The layout of counts and the component in one number.
    pub(super) fn count_field(&self) -> Option<CountField> {
        let Scaling { most, grid, .. } = self.scaling;
        CountField::new(grid.0.log2() as i32, most.log2().ceil() as i32)
    }
}

/// The centre and the scale of a component.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    scale: f64,
    middle: f64,
    mean: f64,
    /// The greatest magnitude.
    most: f64,
    grid: Grid,
}

/// The scale and the grid of row weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighing {
    scale: f64,
    grid: Grid,
    count_field: Option<CountField>,
}

impl Weighing {
    /// At least a step of the grid, so that no side of a test with examples is without weight.
    pub(super) fn of(self, weight: f64) -> f64 {
        let rounded = self.grid.round(weight / self.scale);
        if weight > 0.0 { rounded.max(self.grid.0) } else { 0.0 }
    }

    pub(super) fn count_field(self) -> Option<CountField> {
        self.count_field
    }
}

/// Row weights, scaled to at most 1 and rounded to a grid; and weighted statistics of columns.
pub(super) struct RowWeights<'a> {
    /// n_rows
    weights: &'a [f64],
    pub(super) weighing: Option<Weighing>,
    rows: usize,
}

impl<'a> RowWeights<'a> {
    pub(super) fn new(weights: &'a [f64], rows: usize) -> Self {
        let max = weights.iter().copied().fold(0.0, f64::max);
        if weights.iter().all(|&w| w == max) {
            return RowWeights { weights, weighing: None, rows };
        }
        // The greatest weight is scaled to (1/2, 1], so that no sum overflows. The scale is a power of two, so that
        // equal sums of weights stay equal.
        let scale = max.log2().ceil().exp2();
        let weighing = Weighing { scale, grid: Grid::for_sums(1.0, rows), count_field: None };
        let count_field = CountField::of_weights(weights.iter().map(|&weight| weighing.of(weight)));
        RowWeights { weights, weighing: Some(Weighing { count_field, ..weighing }), rows }
    }

    fn of(&self, row: usize) -> f64 {
        self.weighing.map_or(1.0, |weighing| weighing.of(self.weights[row]))
    }

    /// The weighted mean of `value` over the rows where it is known; `max` bounds its magnitude.
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

    /// The scaling of a numeric component with this `share` of the impurity; `None` if the values are constant.
    pub(super) fn component(&self, raw: &Raw<'_>, share: f64) -> Option<Scaling> {
        if raw.min >= raw.max {
            return None;
        }
        let (middle, mean) = self.centre(raw);
        // Relative to the spread, so that squares neither overflow nor underflow. Halves cannot overflow.
        let spread = 2.0 * (raw.max / 2.0 - raw.min / 2.0).min(f64::MAX / 2.0);
        let square = |row: usize| (raw.value)(row).map(|y| ((y - middle - mean) / spread).powi(2));
        let variance = self.mean(1.0, square);
        (variance > 0.0).then(|| self.centred(raw, share.sqrt() / variance.sqrt() / spread, middle, mean))
    }

    /// The scaling of a component with weight `omega`.
    pub(super) fn scaled(&self, raw: &Raw<'_>, omega: f64) -> Scaling {
        let (middle, mean) = self.centre(raw);
        self.centred(raw, omega.sqrt(), middle, mean)
    }

    /// The middle of the range, and the mean relative to it.
    fn centre(&self, raw: &Raw<'_>) -> (f64, f64) {
        let middle = f64::midpoint(raw.min, raw.max);
        (middle, self.mean(raw.max - middle, |row| (raw.value)(row).map(|y| y - middle)))
    }

    fn centred(&self, raw: &Raw<'_>, scale: f64, middle: f64, mean: f64) -> Scaling {
        let farthest = (raw.max - middle - mean).max(middle + mean - raw.min);
        let most = farthest * scale;
        Scaling { scale, middle, mean, most, grid: Grid::for_sums(most, self.rows) }
    }

    /// The Gini index of the classes.
    pub(super) fn gini(&self, codes: &[u16], classes: usize) -> f64 {
        let mut weight = vec![0.0; classes];
        for (row, &code) in codes.iter().enumerate() {
            if code != MISSING_U16 {
                weight[usize::from(code)] += self.of(row);
            }
        }
        gini(&weight)
    }

    /// ω of each label, without the share of the target: the share of the label over its variance; 0 if all rows or no
    /// rows have the label.
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

/// The Gini index of classes with these weights.
fn gini(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total * (1.0 - w / total)).sum()
}
