//! The component space: every task as one weighted sum of variances.
//!
//! A numeric variable is one dense component; so is one with two classes. A variable with more classes
//! is one indicator for each class, and a label set is one for each label: an example then carries a
//! short list of the indicators that are 1. The weight of a label of a hierarchy is its share of all labels'
//! weights.
//!
//! Variables are the targets and, under semi-supervision, the features (Petković et al. 2023, Eq. 1): with the
//! supervision level w, targets share w among them and features 1 − w. Where a variable is missing for
//! some rows, its components count the rows that know it (a *partial* component). A dense one has
//! its own weight as one more number of the row, 0 where it is missing; indicators that are
//! missing in the same rows share one such weight. So all sums are plain sums of rows.
//!
//! Components are centred, scaled by the square root of their weight, and rounded to a power of two
//! so coarse that every partial sum over a bag is exact in f64, whatever the order of summation.
//!
//! Memory: 8 bytes for each dense component of a row (16 for a partial one), 4 for each indicator that
//! is 1. With features as components that is 16 bytes for each of their values, since the values
//! themselves are kept beside their codes. A space describes how values become components. The components of all
//! rows are [held](Space::hold), or computed a block at a time where memory does not hold them.

mod scaling;

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use ferrank_data::schema::Task;
use ferrank_data::store::{CodeStore, Columns, Origin, TargetColumn};
use ferrank_runtime::error::{Error, Result};
use scaling::{Dense, Raw, RowWeights, Weighing};

/// Up to so many labels are kept dense: adding a few numbers side by side is then cheaper
/// than following a list.
const DENSE_LABELS: usize = 8;
/// Rows that are laid out together.
const ROWS: usize = 256;

/// The components of a problem and their values.
#[derive(Debug)]
pub(crate) struct Space {
    /// Which target each dense component belongs to, those of features to none; partial ones last.
    /// n_dense.
    pub(crate) dense_target: Vec<Option<usize>>,
    /// Of the dense components, those known for all rows.
    pub(crate) n_whole: usize,
    /// Which target each indicator belongs to; partial ones last. n_indicators.
    pub(crate) indicator_target: Vec<Option<usize>>,
    /// ω of each indicator; dense components have theirs worked in. n_indicators.
    pub(crate) indicator_weight: Vec<f64>,
    /// The group of each partial indicator: which of the weights counts its rows.
    pub(crate) indicator_group: Vec<u32>,
    /// A column of each of these groups; its values are missing in the same rows as those of the others.
    groups: Vec<Origin>,
    /// How row weights become those of the block; `None` if all are 1.
    weighing: Option<Weighing>,
    /// n_dense; how values become components.
    dense: Vec<Dense>,
    /// For each column that has indicators, that of each class or label; [`NONE`] for none.
    listed: Vec<(Origin, Vec<u32>)>,
    /// The values, for all rows; for none where the data are larger than memory.
    pub(crate) block: Block,
}

/// No indicator.
const NONE: u32 = u32::MAX;

/// Component values of some rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    /// Numbers of a row.
    pub(crate) width: usize,
    /// n_rows x width; row weight times scaled value of each dense component, the whole ones first;
    /// then the weight with which the row counts for each partial one, and for each group of indicators.
    pub(crate) dense: Vec<f64>,
    /// n_rows; row weights, empty if all are 1.
    pub(crate) weights: Vec<f64>,
    /// n_rows + 1 offsets into `indicators`; empty if there are none.
    pub(crate) starts: Vec<usize>,
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
        &self.indicators[self.starts[row]..self.starts[row + 1]]
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
                to.starts.push(to.indicators.len());
            }
        }
    }
}

/// What a space is made of.
pub(crate) struct Plan<'a> {
    pub(crate) task: Task,
    /// The targets.
    pub(crate) subset: &'a [usize],
    /// Names of all targets.
    pub(crate) names: &'a [String],
    /// Weights of all targets; `None`: 1 each.
    pub(crate) weights: Option<&'a [f64]>,
    /// The share of the targets in the impurity; the features have the rest.
    pub(crate) supervision: f64,
}

/// A target or a feature.
struct Variable<'a> {
    column: &'a TargetColumn,
    origin: Origin,
    /// The variable's share of the impurity of the whole data.
    share: f64,
    /// One label of several, of two values.
    is_label: bool,
}

/// The components of a variable.
struct Parts<'a> {
    variable: &'a Variable<'a>,
    /// Known for all rows.
    is_whole: bool,
    dense: Vec<Dense>,
    /// Indicators, by class or label: ω of each, or none.
    omegas: Vec<Option<f64>>,
}

impl Space {
    /// The space that `plan` makes of `store`.
    ///
    /// A component that is constant over the rows weighs nothing and is left out. The block stays empty:
    /// see [`hold`](Self::hold).
    ///
    /// # Errors
    /// [`Error::Data`] for a label with more than two values.
    pub(crate) fn new(store: &CodeStore, plan: &Plan<'_>) -> Result<Self> {
        let row_weights = RowWeights::new(&store.weights, store.rows);
        let variables = plan.variables(store)?;
        let lists_labels = plan.task == Task::MultiLabel && plan.subset.len() > DENSE_LABELS;
        let parts: Vec<Parts<'_>> = (variables.par_iter())
            .filter(|variable| variable.share > 0.0)
            .map(|variable| variable.parts(&row_weights, lists_labels))
            .collect();
        let mut space = Space {
            dense_target: Vec::new(),
            n_whole: 0,
            indicator_target: Vec::new(),
            indicator_weight: Vec::new(),
            indicator_group: Vec::new(),
            groups: Vec::new(),
            weighing: row_weights.weighing,
            dense: Vec::new(),
            listed: Vec::new(),
            block: Block::default(),
        };
        let mut groups = Groups::default();
        let (whole, partial): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.is_whole);
        for part in whole.into_iter().chain(partial) {
            space.dense_target.extend(part.dense.iter().map(|_| part.variable.origin.target()));
            space.n_whole += if part.is_whole { part.dense.len() } else { 0 };
            if !part.omegas.is_empty() {
                let listed = space.list(&part, &mut groups);
                space.listed.push((part.variable.origin, listed));
            }
            space.dense.extend(part.dense);
        }
        space.groups = groups.members;
        Ok(space)
    }

    /// Numbers the indicators of `part`. Returns the number of each class or label, [`NONE`] for none.
    fn list(&mut self, part: &Parts<'_>, groups: &mut Groups) -> Vec<u32> {
        let group = (!part.is_whole).then(|| groups.of(part.variable));
        let number = |omega: &Option<f64>| {
            let Some(omega) = omega else { return NONE };
            self.indicator_weight.push(*omega);
            self.indicator_target.push(part.variable.origin.target());
            self.indicator_group.extend(group);
            self.indicator_weight.len() as u32 - 1
        };
        part.omegas.iter().map(number).collect()
    }

    /// Puts the values for all rows of `store` into the block.
    pub(crate) fn hold(mut self, store: &CodeStore) -> Self {
        let mut block = Block::default();
        self.values(store.columns(), 0..store.rows, &mut block);
        self.block = block;
        self
    }

    /// The component values of `rows` of `columns`, into `block`.
    pub(crate) fn values(&self, columns: Columns<'_>, rows: Range<usize>, block: &mut Block) {
        block.weights.clear();
        if let Some(weighing) = self.weighing {
            block.weights.extend(columns.weights[rows.clone()].iter().map(|&weight| weighing.of(weight)));
        }
        self.lay_out(columns, rows.clone(), block);
        self.list_indicators(columns, rows, block);
    }

    /// The dense components, and the weights that count for partial ones.
    fn lay_out(&self, columns: Columns<'_>, rows: Range<usize>, block: &mut Block) {
        let (width, first, n_rows) = (self.width(), rows.start, rows.len());
        let Block { dense, weights, .. } = block;
        block.width = width;
        dense.clear();
        dense.resize(n_rows * width, 0.0);
        let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
        let raw: Vec<_> = self.dense.iter().map(|dense| dense.raw(columns)).collect();
        dense.par_chunks_mut((ROWS * width).max(1)).enumerate().for_each(|(tile, cells)| {
            let tile = tile * ROWS..n_rows.min((tile + 1) * ROWS);
            let mut fill = |column: usize, value: &dyn Fn(usize) -> f64| {
                cells[column..].iter_mut().step_by(width).zip(tile.clone()).for_each(|(to, i)| *to = value(i));
            };
            let own = |i: usize, known: bool| if known { weight(i) } else { 0.0 };
            for (c, (dense, raw)) in self.dense.iter().zip(&raw).enumerate() {
                fill(c, &|i| raw(first + i).map_or(0.0, |y| dense.value(y, weight(i))));
            }
            for (c, raw) in (self.dense.len()..).zip(&raw[self.n_whole..]) {
                fill(c, &|i| own(i, raw(first + i).is_some()));
            }
            for (c, &origin) in (width - self.groups.len()..).zip(&self.groups) {
                let column = columns.of(origin);
                fill(c, &|i| own(i, column.is_known(first + i)));
            }
        });
    }

    /// The indicators of each row.
    fn list_indicators(&self, columns: Columns<'_>, rows: Range<usize>, block: &mut Block) {
        block.starts.clear();
        block.indicators.clear();
        if self.listed.is_empty() {
            return;
        }
        block.starts.reserve_exact(rows.len() + 1);
        block.starts.push(0);
        for row in rows {
            for (origin, indicators) in &self.listed {
                let mut add = |place: usize| match indicators.get(place) {
                    None | Some(&NONE) => {}
                    Some(&indicator) => block.indicators.push(indicator),
                };
                match columns.of(*origin) {
                    TargetColumn::Numeric(_) => {}
                    TargetColumn::Nominal { codes, .. } => add(usize::from(codes[row])),
                    TargetColumn::Labels(labels) => {
                        labels.of(row).unwrap_or(&[]).iter().for_each(|&label| add(label as usize));
                    }
                }
            }
            block.starts.push(block.indicators.len());
        }
    }

    /// Numbers of a row of the block.
    pub(crate) fn width(&self) -> usize {
        2 * self.dense.len() - self.n_whole + self.groups.len()
    }

    /// Number of groups of partial indicators.
    pub(crate) fn n_groups(&self) -> usize {
        self.groups.len()
    }

    /// Bytes that the components of a row take, on average over the rows of `columns`.
    pub(crate) fn row_bytes(&self, columns: Columns<'_>) -> usize {
        let listed: usize = self.listed.iter().map(|(origin, _)| columns.of(*origin).n_listed()).sum();
        let indicators = if self.listed.is_empty() { 0 } else { size_of::<usize>() + size_of::<u32>() * listed };
        size_of::<f64>() * (self.width() + usize::from(self.is_weighted())) + indicators
    }

    /// Returns true if rows have weights that differ.
    pub(crate) fn is_weighted(&self) -> bool {
        self.weighing.is_some()
    }

    /// Number of dense components.
    pub(crate) fn n_dense(&self) -> usize {
        self.dense_target.len()
    }
}

impl Plan<'_> {
    fn variables<'a>(&self, store: &'a CodeStore) -> Result<Vec<Variable<'a>>> {
        let weight = |target: usize| self.weights.map_or(1.0, |weights| weights[target]);
        let total: f64 = self.subset.iter().map(|&target| weight(target)).sum();
        let is_label = self.task == Task::MultiLabel;
        let mut variables = Vec::with_capacity(self.subset.len() + store.values.len());
        for &target in self.subset {
            let column = &store.targets[target];
            if let (true, TargetColumn::Nominal { categories, .. }) = (is_label, column)
                && categories.names.len() > 2
            {
                return Err(Error::Data(format!(
                    "the label '{}' has {} values ({}, …); a label has two",
                    self.names[target],
                    categories.names.len(),
                    categories.names[..3].join(", ")
                )));
            }
            let share = self.supervision * (weight(target) / total);
            variables.push(Variable { column, origin: Origin::Target(target), share, is_label });
        }
        let share = (1.0 - self.supervision) / store.values.len().max(1) as f64;
        let feature = |(number, column)| Variable { column, origin: Origin::Feature(number), share, is_label: false };
        variables.extend(store.values.iter().enumerate().map(feature));
        Ok(variables)
    }
}

impl Variable<'_> {
    fn parts<'a>(&'a self, rows: &RowWeights<'_>, lists_labels: bool) -> Parts<'a> {
        let of = |which: u32| move |scaling| Dense { origin: self.origin, which, scaling };
        let (mut dense, mut omegas) = (Vec::new(), Vec::new());
        match self.column {
            TargetColumn::Numeric(values) => dense.extend(rows.component(&Raw::numeric(values), self.share).map(of(0))),
            TargetColumn::Nominal { categories, codes } => {
                let classes = categories.names.len();
                let gini = rows.gini(codes, classes);
                let omega = self.share / gini;
                match classes {
                    0 | 1 => {}
                    // In a part of the data set it may be constant, or known for no row.
                    _ if gini.is_nan() || gini == 0.0 => {}
                    // Of two classes one says all; its variance is half of the Gini index.
                    2 if self.is_label && lists_labels => omegas = vec![None, Some(2.0 * omega)],
                    2 => dense.push(of(1)(rows.scaled(&Raw::indicator(codes, 1), 2.0 * omega))),
                    _ => omegas = vec![Some(omega); classes],
                }
            }
            TargetColumn::Labels(labels) => {
                let weights = rows.label_weights(labels).into_iter();
                let of_labels: Vec<Option<f64>> =
                    weights.map(|weight| (weight > 0.0).then_some(self.share * weight)).collect();
                if of_labels.iter().flatten().count() > DENSE_LABELS {
                    omegas = of_labels;
                } else {
                    let component = |(label, omega): (u32, Option<f64>)| {
                        Some(of(label)(rows.scaled(&Raw::label(labels, label), omega?)))
                    };
                    dense.extend((0..).zip(of_labels).filter_map(component));
                }
            }
        }
        Parts { variable: self, is_whole: !self.column.has_missing(), dense, omegas }
    }
}

/// Partial indicators, grouped by the rows where they are missing.
#[derive(Default)]
struct Groups {
    by_pattern: FxHashMap<Vec<u64>, u32>,
    /// A member of each.
    members: Vec<Origin>,
}

impl Groups {
    /// The group of the indicators of `variable`.
    fn of(&mut self, variable: &Variable<'_>) -> u32 {
        let column = variable.column;
        let word = |rows: std::ops::Range<usize>| {
            rows.enumerate().fold(0, |word, (bit, row)| word | u64::from(column.is_known(row)) << bit)
        };
        let n_rows = column.len();
        let pattern = (0..n_rows).step_by(64).map(|start| word(start..n_rows.min(start + 64))).collect();
        *self.by_pattern.entry(pattern).or_insert_with(|| {
            self.members.push(variable.origin);
            self.members.len() as u32 - 1
        })
    }
}
