//! The component space: every task as one weighted sum of variances.
//!
//! A numeric variable is one dense component, and so is a variable with two classes. A variable with more classes has
//! an indicator for each class, and a label set has one for each label. A row then has a short list of the indicators
//! that are 1. The weight of a label of a hierarchy is its share of the weights of all labels.
//!
//! Variables are the targets and, under semi-supervision, the features (Petković et al. 2023, Eq. 1). With supervision
//! level w, targets share w among them, and features share 1 − w. If a variable is missing for some rows, its
//! components are *partial*: they count the rows where the variable is known. A partial dense component has its own
//! weight as one more number of the row, 0 where it is missing. Indicators that are missing in the same rows share one
//! such weight. All sums are therefore plain sums of rows.
//!
//! Components are centred, scaled by the square root of their weight, and rounded to multiples of a power of two. The
//! multiples are so coarse that every partial sum over a bag is exact in f64, whatever the order of additions.
//!
//! A space describes how values become components. The components of all rows are [held](Space::hold) in memory, or
//! computed a block at a time for data larger than memory.
//!
//! Memory: 8 bytes for each dense component of a row (16 for a partial one), 4 for each indicator that is 1. With
//! features as components, each of their values takes 16 bytes, because the values are kept beside their codes.

mod block;
mod groups;
mod outcome;
mod plan;
mod scaling;

use std::ops::Range;

use rayon::prelude::*;

use crate::pairs::CountField;
use ferrank_data::schema::Task;
use ferrank_data::store::{CodeStore, Columns, Origin, TargetColumn};
use ferrank_runtime::error::Result;
use groups::Groups;
use plan::{Components, DENSE_LABELS};
use scaling::{Dense, RowWeights, Weighing};

pub(crate) use block::Block;
pub(crate) use outcome::{Indicator, NO_SHARE, Outcome};
pub(crate) use plan::Plan;

/// Rows whose dense components are computed together.
const ROWS: usize = 256;

/// The components of a problem, and their values.
#[derive(Debug)]
pub(crate) struct Space {
    /// n_dense; the target of each dense component, `None` for a component of a feature. Partial components come last.
    pub(crate) dense_target: Vec<Option<usize>>,
    /// Number of dense components known for all rows.
    pub(crate) n_whole: usize,
    /// n_indicators; the target of each indicator, `None` for an indicator of a feature. Partial indicators come last.
    pub(crate) indicator_target: Vec<Option<usize>>,
    /// n_indicators; ω of each. The values of dense components are already scaled by theirs.
    pub(crate) indicator_weight: Vec<f64>,
    /// The group of each partial indicator, which has the weight of its rows.
    pub(crate) indicator_group: Vec<u32>,
    /// The impurity of the training data: the sum of the shares of all variables that vary.
    pub(crate) impurity: f64,
    /// True if the only components are the indicators of the classes of a target, which is known for all rows.
    pub(crate) is_classes: bool,
    /// n_groups; a column of each group. All columns of a group are missing in the same rows.
    groups: Vec<Origin>,
    /// How row weights become weights of the block; `None` if all are 1.
    weighing: Option<Weighing>,
    /// n_dense; how values become components.
    dense: Vec<Dense>,
    /// Columns with indicators, and the indicator of each class or label; [`NONE`] for none.
    listed: Vec<(Origin, Vec<u32>)>,
    /// The values of all rows; empty if the data are larger than memory.
    pub(crate) block: Block,
}

/// No indicator.
const NONE: u32 = u32::MAX;

impl Space {
    /// The space that `plan` makes of `store`, with an empty block; see [`hold`](Self::hold).
    ///
    /// Components that are constant over the rows are left out.
    ///
    /// # Errors
    /// [`Error::Data`](ferrank_runtime::error::Error::Data) for a label with more than two values.
    pub(crate) fn new(store: &CodeStore, plan: &Plan<'_>) -> Result<Self> {
        let row_weights = RowWeights::new(&store.weights, store.rows);
        let variables = plan.variables(store)?;
        let lists_labels = plan.task == Task::MultiLabel && plan.subset.len() > DENSE_LABELS;
        let components: Vec<Components<'_>> = (variables.par_iter())
            .filter(|variable| variable.share > 0.0)
            .map(|variable| variable.components(&row_weights, lists_labels))
            .collect();
        let mut space = Space {
            dense_target: Vec::new(),
            n_whole: 0,
            indicator_target: Vec::new(),
            indicator_weight: Vec::new(),
            indicator_group: Vec::new(),
            impurity: components.iter().map(|part| part.impurity).sum(),
            is_classes: matches!(&components[..], [part] if part.is_classes()),
            groups: Vec::new(),
            weighing: row_weights.weighing,
            dense: Vec::new(),
            listed: Vec::new(),
            block: Block::default(),
        };
        let mut groups = Groups::default();
        let (whole, partial): (Vec<_>, Vec<_>) = components.into_iter().partition(|part| part.is_whole);
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
    fn list(&mut self, part: &Components<'_>, groups: &mut Groups) -> Vec<u32> {
        let group = (!part.is_whole).then(|| groups.number(part.variable));
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

    /// Returns true if the values of all rows are in the block.
    pub(crate) fn is_held(&self) -> bool {
        self.block.width > 0 || !self.block.starts.is_empty() || !self.block.indicators.is_empty()
    }

    /// A block with the values of `row` of `columns`, the columns of the store, and the place of the row there. `one` is
    /// a buffer.
    pub(crate) fn block_with<'a>(&'a self, columns: Columns<'_>, row: usize, one: &'a mut Block) -> (&'a Block, usize) {
        if self.is_held() {
            return (&self.block, row);
        }
        self.values(columns, row..row + 1, one);
        (one, 0)
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
        if !self.is_classes {
            block.starts.reserve_exact(rows.len() + 1);
            block.starts.push(0);
        }
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
            if !self.is_classes {
                block.starts.push(block.indicators.len());
            }
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
        self.bytes_of(self.n_listed(columns))
    }

    /// The same on average over the rows of the block of `CHUNK_ROWS` rows that has most.
    pub(crate) fn most_row_bytes(&self, columns: Columns<'_>) -> usize {
        self.bytes_of(self.listed.iter().map(|(origin, _)| columns.of(*origin).most_listed()).sum())
    }

    /// Bytes that the components of a row take with `n_listed` indicators.
    fn bytes_of(&self, n_listed: usize) -> usize {
        let listed = size_of::<u32>() * n_listed;
        let starts = if self.listed.is_empty() || self.is_classes { 0 } else { size_of::<usize>() };
        size_of::<f64>() * (self.width() + usize::from(self.is_weighted())) + starts + listed
    }

    /// The layout of counts and row weights in one number, or of counts and the first component if rows weigh 1.
    pub(crate) fn count_field(&self) -> Option<CountField> {
        match self.weighing {
            Some(weighing) => weighing.count_field(),
            None => self.dense.first().and_then(Dense::count_field),
        }
    }

    /// Returns true if rows have weights that differ.
    pub(crate) fn is_weighted(&self) -> bool {
        self.weighing.is_some()
    }

    /// The target of a component, `None` for a component of a feature; indicators come after dense components.
    pub(crate) fn target_of(&self, component: usize) -> Option<usize> {
        match component.checked_sub(self.n_dense()) {
            None => self.dense_target[component],
            Some(indicator) => self.indicator_target[indicator],
        }
    }

    /// Indicators of a row that are 1, on average over the rows of `columns`.
    pub(crate) fn n_listed(&self, columns: Columns<'_>) -> usize {
        self.listed.iter().map(|(origin, _)| columns.of(*origin).n_listed()).sum()
    }

    /// Number of dense components.
    pub(crate) fn n_dense(&self) -> usize {
        self.dense_target.len()
    }
}
