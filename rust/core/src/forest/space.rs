//! The component space: every task as one weighted sum of variances (DESIGN §3).
//!
//! A numeric target is one dense component; so is a target with two classes. A target with more
//! classes is one indicator for each class, and a label set is one for each label: an example then
//! carries a short list of the indicators that are 1. Where targets are missing for some rows, all
//! components are dense and each keeps its own count.
//!
//! Components are centred, scaled by the square root of their weight, and rounded to a power of two
//! so coarse that every partial sum over a bag is exact in f64, whatever the order of summation.

use crate::error::{Error, Result};
use crate::profile::MISSING_U16;
use crate::schema::Task;
use crate::store::{CodeStore, TargetColumn};

/// Up to so many two-valued labels are kept dense: adding a few numbers side by side is then cheaper
/// than following a list.
const DENSE_LABELS: usize = 8;

/// The components of a problem and their values.
#[derive(Debug)]
pub(crate) struct Space {
    /// The targets' part: which target each dense component belongs to. n_dense.
    pub(crate) dense_target: Vec<usize>,
    /// Which target each indicator belongs to. n_indicators.
    pub(crate) indicator_target: Vec<usize>,
    /// ω of each indicator; dense components have theirs worked in. n_indicators.
    pub(crate) indicator_weight: Vec<f64>,
    /// Whether some component is unknown for some row.
    pub(crate) partial: bool,
    /// The values, for all rows.
    pub(crate) block: Block,
}

/// Component values of some rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    /// Dense components of a row.
    pub(crate) width: usize,
    /// n_rows x width; row weight times scaled value, NaN where unknown.
    pub(crate) dense: Vec<f64>,
    /// n_rows; row weights, empty if all are 1.
    pub(crate) weights: Vec<f64>,
    /// n_rows + 1 offsets into `indicators`; empty if there are none.
    pub(crate) starts: Vec<u32>,
    /// Numbers of the indicators that are 1, row after row, ascending within a row.
    pub(crate) indicators: Vec<u32>,
}

impl Block {
    /// The weight of a row.
    #[inline(always)]
    pub(crate) fn weight(&self, row: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[row] }
    }

    /// Bytes that the components of a row take, on average.
    pub(crate) fn row_bytes(&self) -> usize {
        let rows = self.starts.len().saturating_sub(1).max(1);
        8 * (self.width + usize::from(!self.weights.is_empty())) + 4 * self.indicators.len() / rows
    }

    /// The dense components of a row.
    #[inline(always)]
    pub(crate) fn dense(&self, row: usize) -> &[f64] {
        &self.dense[row * self.width..(row + 1) * self.width]
    }

    /// The indicators of a row.
    #[inline(always)]
    pub(crate) fn indicators(&self, row: usize) -> &[u32] {
        if self.starts.is_empty() {
            return &[];
        }
        &self.indicators[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Copies the values of `rows`, in that order, into `to`.
    pub(crate) fn gather(&self, rows: &[u32], to: &mut Block) {
        to.width = self.width;
        to.dense.clear();
        to.dense.reserve(rows.len() * self.width);
        to.weights.clear();
        to.starts.clear();
        to.indicators.clear();
        if self.width > 0 {
            rows.iter().for_each(|&row| to.dense.extend_from_slice(self.dense(row as usize)));
        }
        if !self.weights.is_empty() {
            to.weights.extend(rows.iter().map(|&row| self.weights[row as usize]));
        }
        if !self.starts.is_empty() {
            to.starts.push(0);
            for &row in rows {
                to.indicators.extend_from_slice(self.indicators(row as usize));
                to.starts.push(to.indicators.len() as u32);
            }
        }
    }
}

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

/// A target's values of one component before scaling; `None` where missing.
struct Raw<'a> {
    value: Box<dyn Fn(usize) -> Option<f64> + Sync + 'a>,
    min: f64,
    max: f64,
}

impl Space {
    /// The space of targets `subset` of `store` for `task`; `weights` are those of the targets.
    ///
    /// A component that is constant over the rows weighs nothing and is left out.
    ///
    /// # Errors
    /// [`Error::Data`] for a label with more than two values; `names` are the targets' names.
    pub(crate) fn new(
        store: &CodeStore,
        subset: &[usize],
        names: &[String],
        task: Task,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        let total: f64 = weights.map_or(subset.len() as f64, |w| subset.iter().map(|&t| w[t]).sum());
        let share = |target: usize| weights.map_or(1.0, |w| w[target]) / total;
        let row_weights = RowWeights::new(&store.weights, store.rows);
        let partial = subset.iter().any(|&target| has_missing(&store.targets[target]));
        let sparse_labels = task == Task::MultiLabel && subset.len() > DENSE_LABELS && !partial;

        let mut dense = Vec::new();
        let mut space = Space {
            dense_target: Vec::new(),
            indicator_target: Vec::new(),
            indicator_weight: Vec::new(),
            partial,
            block: Block::default(),
        };
        // Indicator of each code of each target, u32::MAX for none.
        let mut indicator_of: Vec<(usize, Vec<u32>)> = Vec::new();
        for &target in subset {
            let column = &store.targets[target];
            match column {
                TargetColumn::Numeric(values) => {
                    if let Some(component) = row_weights.component(&Raw::numeric(values), share(target)) {
                        dense.push(component);
                        space.dense_target.push(target);
                    }
                }
                TargetColumn::Nominal { categories, codes } => {
                    let classes = categories.names.len();
                    if task == Task::MultiLabel && classes > 2 {
                        return Err(Error::Data(format!(
                            "the label '{}' has {classes} values ({}, …); a label has two",
                            names[target],
                            categories.names[..3].join(", ")
                        )));
                    }
                    if classes < 2 {
                        continue;
                    }
                    let gini = row_weights.gini(codes, classes);
                    if gini.is_nan() || gini == 0.0 {
                        // In a part of the data set it may be constant, or known for no row.
                        continue;
                    }
                    if classes > 2 && !partial {
                        let first = space.indicator_weight.len() as u32;
                        indicator_of.push((target, (first..first + classes as u32).collect()));
                        space.indicator_weight.extend(vec![share(target) / gini; classes]);
                        space.indicator_target.extend(vec![target; classes]);
                    } else if sparse_labels {
                        indicator_of.push((target, vec![u32::MAX, space.indicator_weight.len() as u32]));
                        space.indicator_weight.push(share(target) / (gini / 2.0));
                        space.indicator_target.push(target);
                    } else {
                        // Of two classes one says all; its variance is half of the Gini index.
                        let first = if classes == 2 { 1 } else { 0 };
                        for class in first..classes {
                            let omega = share(target) / if classes == 2 { gini / 2.0 } else { gini };
                            dense.push(row_weights.scaled(&Raw::indicator(codes, class as u16), omega));
                            space.dense_target.push(target);
                        }
                    }
                }
            }
        }
        space.block = row_weights.block(store.rows, dense);
        space.block.set_indicators(store, &indicator_of);
        Ok(space)
    }

    /// Number of dense components.
    pub(crate) fn n_dense(&self) -> usize {
        self.dense_target.len()
    }
}

impl Block {
    fn set_indicators(&mut self, store: &CodeStore, indicator_of: &[(usize, Vec<u32>)]) {
        if indicator_of.is_empty() {
            return;
        }
        self.starts.reserve_exact(store.rows + 1);
        self.starts.push(0);
        for row in 0..store.rows {
            for (target, indicators) in indicator_of {
                let TargetColumn::Nominal { codes, .. } = &store.targets[*target] else { continue };
                match indicators[usize::from(codes[row])] {
                    u32::MAX => {}
                    indicator => self.indicators.push(indicator),
                }
            }
            self.starts.push(self.indicators.len() as u32);
        }
    }
}

/// Whether the target is unknown for some row.
pub(crate) fn has_missing(column: &TargetColumn) -> bool {
    match column {
        TargetColumn::Numeric(values) => values.iter().any(|v| v.is_nan()),
        TargetColumn::Nominal { codes, .. } => codes.contains(&MISSING_U16),
    }
}

impl<'a> Raw<'a> {
    fn numeric(values: &'a [f64]) -> Self {
        let value = |row: usize| (!values[row].is_nan()).then_some(values[row]);
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Raw { value: Box::new(value), min, max }
    }

    fn indicator(codes: &'a [u16], class: u16) -> Self {
        let value = move |row: usize| (codes[row] != MISSING_U16).then_some(f64::from(codes[row] == class));
        Raw { value: Box::new(value), min: 0.0, max: 1.0 }
    }
}

/// Row weights on a grid, none above 1, and what they weigh.
struct RowWeights {
    /// n_rows; empty if all are 1.
    weights: Vec<f64>,
    rows: usize,
}

impl RowWeights {
    fn new(weights: &[f64], rows: usize) -> Self {
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

    fn of(&self, row: usize) -> f64 {
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

    /// The component of a target with weight `share`, or `None` if it is constant.
    fn component(&self, raw: &Raw<'_>, share: f64) -> Option<Vec<f64>> {
        if raw.min >= raw.max {
            return None;
        }
        let (middle, mean) = self.centre(raw);
        // Relative to the spread, so that squares neither overflow nor vanish. Halves cannot overflow.
        let spread = 2.0 * (raw.max / 2.0 - raw.min / 2.0).min(f64::MAX / 2.0);
        let square = |row: usize| (raw.value)(row).map(|y| ((y - middle - mean) / spread).powi(2));
        let variance = self.mean(1.0, square);
        (variance > 0.0).then(|| self.centred(raw, share.sqrt() / variance.sqrt() / spread, middle, mean))
    }

    /// The component of `raw` with weight `omega`.
    fn scaled(&self, raw: &Raw<'_>, omega: f64) -> Vec<f64> {
        let (middle, mean) = self.centre(raw);
        self.centred(raw, omega.sqrt(), middle, mean)
    }

    /// The middle of the range, and the mean counted from there.
    fn centre(&self, raw: &Raw<'_>) -> (f64, f64) {
        let middle = f64::midpoint(raw.min, raw.max);
        (middle, self.mean(raw.max - middle, |row| (raw.value)(row).map(|y| y - middle)))
    }

    fn centred(&self, raw: &Raw<'_>, scale: f64, middle: f64, mean: f64) -> Vec<f64> {
        let farthest = (raw.max - middle - mean).max(middle + mean - raw.min);
        let grid = Grid::for_sums(farthest * scale, self.rows);
        let value = |row: usize| match (raw.value)(row) {
            Some(y) => grid.round(self.of(row) * scale * (y - middle - mean)),
            None => f64::NAN,
        };
        (0..self.rows).map(value).collect()
    }

    /// Gini index of the classes.
    fn gini(&self, codes: &[u16], classes: usize) -> f64 {
        let mut weight = vec![0.0; classes];
        for (row, &code) in codes.iter().enumerate() {
            if code != MISSING_U16 {
                weight[usize::from(code)] += self.of(row);
            }
        }
        let total: f64 = weight.iter().sum();
        weight.iter().map(|w| w / total * (1.0 - w / total)).sum()
    }

    /// The block of `columns`, row by row.
    fn block(self, rows: usize, columns: Vec<Vec<f64>>) -> Block {
        let width = columns.len();
        let dense = match width {
            1 => columns.into_iter().flatten().collect(),
            _ => {
                let mut dense = vec![0.0; rows * width];
                for (c, column) in columns.iter().enumerate() {
                    dense[c..].iter_mut().step_by(width).zip(column).for_each(|(to, from)| *to = *from);
                }
                dense
            }
        };
        Block { width, dense, weights: self.weights, starts: Vec::new(), indicators: Vec::new() }
    }
}
