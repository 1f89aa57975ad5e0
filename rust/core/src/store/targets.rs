//! The values of the targets and the weights of the rows, as they are in the data.

use std::ops::Deref;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt16Array};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};

use super::Keep;
use crate::column::{MISSING, categories, numeric_values};
use crate::error::Result;
use crate::intake::Intake;
use crate::profile::{Categories, ColumnProfile, MISSING_U16};

/// Numbers of consecutive rows: in memory, or in a file that is mapped.
#[derive(Debug, Clone)]
pub(crate) enum Values<T: ArrowNativeType> {
    Held(Vec<T>),
    Mapped(ScalarBuffer<T>),
}

impl<T: ArrowNativeType> Default for Values<T> {
    fn default() -> Self {
        Values::Held(Vec::new())
    }
}

impl<T: ArrowNativeType> Deref for Values<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Values::Held(values) => values,
            Values::Mapped(values) => values,
        }
    }
}

impl<T: ArrowNativeType> Values<T> {
    /// The values to append to, which are in memory from now on.
    pub(crate) fn held(&mut self) -> &mut Vec<T> {
        if let Values::Mapped(values) = self {
            *self = Values::Held(values.to_vec());
        }
        match self {
            Values::Held(values) => values,
            Values::Mapped(_) => unreachable!("held a line above"),
        }
    }

    /// `pieces` one after the other; a single one stays as it is.
    fn joined(mut pieces: Vec<Self>, keep: Keep<'_>) -> Result<Self> {
        if pieces.len() == 1 {
            return Ok(pieces.swap_remove(0));
        }
        let slices: Vec<&[T]> = pieces.iter().map(|piece| &piece[..]).collect();
        Ok(match keep {
            Keep::Memory => Values::Held(slices.concat()),
            Keep::Scratch(scratch) => Values::Mapped(scratch.values(slices.into_iter())?),
        })
    }

    /// The values `first .. first + count`, as Arrow holds them.
    fn slice(&self, first: usize, count: usize) -> ScalarBuffer<T> {
        match self {
            Values::Held(values) => ScalarBuffer::from(values[first..first + count].to_vec()),
            Values::Mapped(values) => values.slice(first, count),
        }
    }
}

/// The values of one target.
#[derive(Debug, Clone)]
pub(crate) enum TargetColumn {
    /// n_rows; NaN where missing.
    Numeric(Values<f64>),
    /// n_rows codes, [`MISSING_U16`] where missing.
    Nominal {
        /// The categories.
        categories: Categories,
        /// n_rows.
        codes: Values<u16>,
    },
}

/// Appends the targets in `batch`.
pub(crate) fn add_targets(targets: &mut [TargetColumn], intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
    targets.iter_mut().zip(&intake.problem.targets).try_for_each(|(target, attribute)| {
        target.add(batch, attribute.column).map_err(|error| intake.in_column(attribute.column, error))
    })
}

impl TargetColumn {
    /// The column that `profile` describes, with room for `rows` rows.
    pub(crate) fn empty(profile: &ColumnProfile, rows: usize) -> Self {
        match profile {
            ColumnProfile::Numeric(_) => TargetColumn::Numeric(Values::Held(Vec::with_capacity(rows))),
            ColumnProfile::Nominal(nominal) => TargetColumn::Nominal {
                categories: Categories::new(nominal.counts.keys().cloned()),
                codes: Values::Held(Vec::with_capacity(rows)),
            },
        }
    }

    fn add(&mut self, batch: &RecordBatch, column: usize) -> Result<()> {
        match self {
            TargetColumn::Numeric(values) => numeric_values(batch.column(column), values.held()),
            TargetColumn::Nominal { categories: names, codes } => {
                let read = categories(batch.column(column))?;
                let code: Vec<u16> = read.texts.iter().map(|text| names.code(text).unwrap_or(MISSING_U16)).collect();
                codes.held().extend(read.index.iter().map(|&position| match position {
                    MISSING => MISSING_U16,
                    _ => code[position as usize],
                }));
                Ok(())
            }
        }
    }
}

/// The targets and weights of consecutive rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    /// n_targets.
    pub(crate) targets: Vec<TargetColumn>,
    /// n_rows; empty without weights.
    pub(crate) weights: Values<f64>,
}

impl Answers {
    /// Appends those in `batch`.
    pub(super) fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
        add_targets(&mut self.targets, intake, batch)?;
        if let Some(column) = intake.problem.weight {
            self.weights.held().extend(intake.weights(batch, column)?);
        }
        Ok(())
    }

    /// Those of all `pieces`, one after the other; `none` are of the same kinds and have no rows.
    pub(super) fn joined(none: Answers, mut pieces: Vec<Answers>, keep: Keep<'_>) -> Result<Self> {
        let mut targets = none.targets;
        for (t, target) in targets.iter_mut().enumerate() {
            match target {
                TargetColumn::Numeric(values) => {
                    let of = |piece: &mut Answers| match &mut piece.targets[t] {
                        TargetColumn::Numeric(values) => std::mem::take(values),
                        TargetColumn::Nominal { .. } => Values::default(),
                    };
                    *values = Values::joined(pieces.iter_mut().map(of).collect(), keep)?;
                }
                TargetColumn::Nominal { codes, .. } => {
                    let of = |piece: &mut Answers| match &mut piece.targets[t] {
                        TargetColumn::Nominal { codes, .. } => std::mem::take(codes),
                        TargetColumn::Numeric(_) => Values::default(),
                    };
                    *codes = Values::joined(pieces.iter_mut().map(of).collect(), keep)?;
                }
            }
        }
        let weights = pieces.into_iter().map(|piece| piece.weights).collect();
        Ok(Answers { targets, weights: Values::joined(weights, keep)? })
    }
    /// Those of the rows `first .. first + count`, as Arrow columns: the targets, then the weights if there
    /// are some.
    pub(super) fn columns(&self, first: usize, count: usize) -> Vec<ArrayRef> {
        let numbers = |values: &Values<f64>| Arc::new(Float64Array::new(values.slice(first, count), None)) as ArrayRef;
        let targets = self.targets.iter().map(|target| match target {
            TargetColumn::Numeric(values) => numbers(values),
            TargetColumn::Nominal { codes, .. } => Arc::new(UInt16Array::new(codes.slice(first, count), None)),
        });
        let weights = (!self.weights.is_empty()).then(|| numbers(&self.weights));
        targets.chain(weights).collect()
    }
}
