//! The component space: every task as one weighted sum of variances (DESIGN §3).
//!
//! A numeric target is one dense component; so is a target with two classes. A target with more
//! classes is one indicator for each class, and a label set is one for each label: an example then
//! carries a short list of the indicators that are 1. Where targets are missing for some rows, all
//! components are dense and each keeps its own count.
//!
//! Components are centred, scaled by the square root of their weight, and rounded to a power of two
//! so coarse that every partial sum over a bag is exact in f64, whatever the order of summation.

use std::ops::Range;

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
    /// How row weights become those of the block; `None` if all are 1.
    weighing: Option<Weighing>,
    /// n_dense; how values become components.
    dense: Vec<Dense>,
    /// For each target that has indicators, that of each code; [`NONE`] for none.
    indicators: Vec<(usize, Vec<u32>)>,
    /// The values, for all rows; for none where the data are larger than memory.
    pub(crate) block: Block,
}

/// No indicator.
const NONE: u32 = u32::MAX;

/// How row weights are brought onto a grid.
#[derive(Debug, Clone, Copy)]
struct Weighing {
    scale: f64,
    grid: Grid,
}

/// How a target's values become a dense component.
#[derive(Debug)]
struct Dense {
    target: usize,
    /// The class whose indicator it is, of a nominal target.
    class: u16,
    scale: f64,
    middle: f64,
    mean: f64,
    grid: Grid,
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
    /// A component that is constant over the rows weighs nothing and is left out. The block stays empty:
    /// see [`hold`](Self::hold).
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
        let mut space = Space {
            dense_target: Vec::new(),
            indicator_target: Vec::new(),
            indicator_weight: Vec::new(),
            partial,
            weighing: row_weights.weighing,
            dense: Vec::new(),
            indicators: Vec::new(),
            block: Block::default(),
        };
        for &target in subset {
            match &store.targets[target] {
                TargetColumn::Numeric(values) => {
                    let found = row_weights.component(&Raw::numeric(values), share(target));
                    space.dense.extend(found.map(|scaled| scaled.of(target, 0)));
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
                        space.indicators.push((target, (first..first + classes as u32).collect()));
                        space.indicator_weight.extend(vec![share(target) / gini; classes]);
                        space.indicator_target.extend(vec![target; classes]);
                    } else if sparse_labels {
                        space.indicators.push((target, vec![NONE, space.indicator_weight.len() as u32]));
                        space.indicator_weight.push(share(target) / (gini / 2.0));
                        space.indicator_target.push(target);
                    } else {
                        // Of two classes one says all; its variance is half of the Gini index.
                        let first = if classes == 2 { 1 } else { 0 };
                        for class in first..classes as u16 {
                            let omega = share(target) / if classes == 2 { gini / 2.0 } else { gini };
                            space
                                .dense
                                .push(row_weights.scaled(&Raw::indicator(codes, class), omega).of(target, class));
                        }
                    }
                }
            }
        }
        space.dense_target = space.dense.iter().map(|dense| dense.target).collect();
        Ok(space)
    }

    /// Puts the values for all rows of `store` into the block.
    pub(crate) fn hold(mut self, store: &CodeStore) -> Self {
        let mut block = Block::default();
        self.values(&store.targets, &store.weights, 0..store.rows, &mut block);
        self.block = block;
        self
    }

    /// The component values of `rows` of these `targets` and row `weights`, into `block`.
    pub(crate) fn values(&self, targets: &[TargetColumn], weights: &[f64], rows: Range<usize>, block: &mut Block) {
        let width = self.dense.len();
        block.width = width;
        block.weights.clear();
        if let Some(weighing) = self.weighing {
            block.weights.extend(weights[rows.clone()].iter().map(|&weight| weighing.of(weight)));
        }
        block.dense.clear();
        block.dense.resize(rows.len() * width, 0.0);
        for (c, dense) in self.dense.iter().enumerate() {
            let raw = Raw::of(&targets[dense.target], dense.class);
            for (i, row) in rows.clone().enumerate() {
                block.dense[i * width + c] = raw(row).map_or(f64::NAN, |y| dense.value(y, block.weight(i)));
            }
        }
        block.starts.clear();
        block.indicators.clear();
        if self.indicators.is_empty() {
            return;
        }
        block.starts.reserve_exact(rows.len() + 1);
        block.starts.push(0);
        for row in rows {
            for (target, indicators) in &self.indicators {
                let TargetColumn::Nominal { codes, .. } = &targets[*target] else { continue };
                match indicators[usize::from(codes[row])] {
                    NONE => {}
                    indicator => block.indicators.push(indicator),
                }
            }
            block.starts.push(block.indicators.len() as u32);
        }
    }

    /// Number of dense components.
    pub(crate) fn n_dense(&self) -> usize {
        self.dense_target.len()
    }

    /// Bytes that the components of a row take, on average over the `n_rows` rows of the data.
    pub(crate) fn row_bytes(&self, n_rows: usize) -> usize {
        8 * (self.n_dense() + usize::from(self.is_weighted())) + 4 * self.block.indicators.len() / n_rows.max(1)
    }

    /// Whether rows have weights that differ.
    pub(crate) fn is_weighted(&self) -> bool {
        self.weighing.is_some()
    }
}

impl Weighing {
    fn of(self, weight: f64) -> f64 {
        self.grid.round(weight / self.scale)
    }
}

impl Dense {
    /// The component of `y` in a row of this weight.
    #[inline(always)]
    fn value(&self, y: f64, weight: f64) -> f64 {
        self.grid.round(weight * self.scale * (y - self.middle - self.mean))
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
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Raw { value: Box::new(number(values)), min, max }
    }

    fn indicator(codes: &'a [u16], class: u16) -> Self {
        Raw { value: Box::new(is_class(codes, class)), min: 0.0, max: 1.0 }
    }

    /// The values of `column`, or whether they are `class`.
    fn of(column: &'a TargetColumn, class: u16) -> Box<dyn Fn(usize) -> Option<f64> + 'a> {
        match column {
            TargetColumn::Numeric(values) => Box::new(number(values)),
            TargetColumn::Nominal { codes, .. } => Box::new(is_class(codes, class)),
        }
    }
}

fn number(values: &[f64]) -> impl Fn(usize) -> Option<f64> + Sync {
    |row| (!values[row].is_nan()).then_some(values[row])
}

fn is_class(codes: &[u16], class: u16) -> impl Fn(usize) -> Option<f64> + Sync {
    move |row| (codes[row] != MISSING_U16).then_some(f64::from(codes[row] == class))
}

/// A component's place and scale.
struct Scaled {
    scale: f64,
    middle: f64,
    mean: f64,
    grid: Grid,
}

impl Scaled {
    fn of(self, target: usize, class: u16) -> Dense {
        let Scaled { scale, middle, mean, grid } = self;
        Dense { target, class, scale, middle, mean, grid }
    }
}

/// Row weights on a grid, none above 1, and what they weigh.
struct RowWeights<'a> {
    /// n_rows
    weights: &'a [f64],
    weighing: Option<Weighing>,
    rows: usize,
}

impl<'a> RowWeights<'a> {
    fn new(weights: &'a [f64], rows: usize) -> Self {
        let max = weights.iter().copied().fold(0.0, f64::max);
        if weights.iter().all(|&w| w == max) {
            return RowWeights { weights, weighing: None, rows };
        }
        // Scaled to (1/2, 1] at most, so that no sum overflows; by a power of two, so that weights that
        // were equal in sum stay so.
        let scale = max.log2().ceil().exp2();
        RowWeights { weights, weighing: Some(Weighing { scale, grid: Grid::for_sums(1.0, rows) }), rows }
    }

    fn of(&self, row: usize) -> f64 {
        self.weighing.map_or(1.0, |weighing| weighing.of(self.weights[row]))
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
    fn component(&self, raw: &Raw<'_>, share: f64) -> Option<Scaled> {
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
    fn scaled(&self, raw: &Raw<'_>, omega: f64) -> Scaled {
        let (middle, mean) = self.centre(raw);
        self.centred(raw, omega.sqrt(), middle, mean)
    }

    /// The middle of the range, and the mean counted from there.
    fn centre(&self, raw: &Raw<'_>) -> (f64, f64) {
        let middle = f64::midpoint(raw.min, raw.max);
        (middle, self.mean(raw.max - middle, |row| (raw.value)(row).map(|y| y - middle)))
    }

    fn centred(&self, raw: &Raw<'_>, scale: f64, middle: f64, mean: f64) -> Scaled {
        let farthest = (raw.max - middle - mean).max(middle + mean - raw.min);
        Scaled { scale, middle, mean, grid: Grid::for_sums(farthest * scale, self.rows) }
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
}
