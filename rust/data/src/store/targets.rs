//! The values of the targets, and of features where they are kept, and the weights of the rows, as they are in the
//! data.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt16Array, UInt64Array};
use rayon::prelude::*;

use crate::column::{MISSING, categories, numeric_values};
use crate::intake::{CHUNK_ROWS, Intake};
use crate::labels::LabelColumn;
use crate::profile::{Categories, ColumnProfile, MISSING_U16, Profile};
use crate::schema::{Attribute, Problem};
use crate::values::{Keep, Values};
use ferrank_runtime::error::{Error, Result};

/// The values of one target, or of one feature.
///
/// ```
/// use ferrank_data::profile::{Categories, MISSING_U16};
/// use ferrank_data::store::{TargetColumn, Values};
///
/// let categories = Categories::new(["blue", "red"].into_iter().map(String::from));
/// let colours = TargetColumn::Nominal { categories, codes: Values::Held(vec![1, MISSING_U16, 0]) };
/// let numbers = TargetColumn::Numeric(Values::Held(vec![2.5, f64::NAN, 0.5]));
/// for column in [colours, numbers] {
///     assert_eq!([0, 1, 2].map(|row| column.is_known(row)), [true, false, true]);
/// }
/// ```
#[derive(Debug, Clone)]
pub enum TargetColumn {
    /// n_rows; NaN where missing.
    Numeric(Values<f64>),
    /// n_rows codes, [`MISSING_U16`] where missing.
    Nominal {
        /// The categories.
        categories: Categories,
        /// n_rows.
        codes: Values<u16>,
    },
    /// Closed label sets.
    Labels(LabelColumn),
}

/// What a column of values is.
///
/// ```
/// use ferrank_data::store::Origin;
///
/// let origins = [Origin::Feature(0), Origin::Target(2), Origin::Feature(1)];
/// let targets: Vec<usize> = origins.into_iter().filter_map(Origin::target).collect();
/// assert_eq!(targets, [2]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The target with this number.
    Target(usize),
    /// The feature with this number.
    Feature(usize),
}

impl Origin {
    /// The number of the target, if it is one.
    pub fn target(self) -> Option<usize> {
        match self {
            Origin::Target(target) => Some(target),
            Origin::Feature(_) => None,
        }
    }
}

/// The values and the weights of some rows.
///
/// ```
/// use ferrank_data::store::{Columns, Origin, TargetColumn, Values};
///
/// let column = |values: [f64; 3]| TargetColumn::Numeric(Values::Held(values.to_vec()));
/// let (targets, values) = ([column([1.0, 2.0, 3.0])], [column([0.5, 0.5, f64::NAN])]);
/// let columns = Columns { targets: &targets, values: &values, weights: &[] };
/// assert!(columns.of(Origin::Feature(0)).has_missing());
/// assert!(!columns.of(Origin::Target(0)).has_missing());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// n_targets.
    pub targets: &'a [TargetColumn],
    /// n_features; empty where they are not kept.
    pub values: &'a [TargetColumn],
    /// n_rows; empty without weights.
    pub weights: &'a [f64],
}

impl<'a> Columns<'a> {
    /// The column of `origin`.
    pub fn of(self, origin: Origin) -> &'a TargetColumn {
        match origin {
            Origin::Target(target) => &self.targets[target],
            Origin::Feature(feature) => &self.values[feature],
        }
    }
}

/// The targets of `problem`, in the source called `name`, without rows but with a capacity of `rows`.
///
/// # Errors
/// [`Error::Data`] where the labels found make no hierarchy.
pub fn empty_targets(problem: &Problem, profile: &Profile, rows: usize, name: &str) -> Result<Vec<TargetColumn>> {
    let in_column = |column: &str, error| match error {
        Error::Data(message) => Error::Data(format!("{name}: column '{column}': {message}")),
        other => other,
    };
    (profile.targets.iter().zip(&problem.targets))
        .map(|(profile, target)| TargetColumn::empty(profile, rows).map_err(|error| in_column(&target.name, error)))
        .collect()
}

/// Appends the values in `batch` to `columns`: the targets, or the targets and then the features.
pub fn add_values(columns: &mut [TargetColumn], intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
    let Problem { targets, features, .. } = intake.problem;
    let attributes: Vec<&Attribute> = targets.iter().chain(features).take(columns.len()).collect();
    columns.par_iter_mut().zip(attributes).try_for_each(|(column, attribute)| {
        column.add(batch, attribute.column, intake.memory).map_err(|error| intake.in_column(attribute.column, error))
    })
}

impl TargetColumn {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            TargetColumn::Numeric(values) => values.len(),
            TargetColumn::Nominal { codes, .. } => codes.len(),
            TargetColumn::Labels(labels) => labels.len(),
        }
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the value of a row is known.
    pub fn is_known(&self, row: usize) -> bool {
        match self {
            TargetColumn::Numeric(values) => !values[row].is_nan(),
            TargetColumn::Nominal { codes, .. } => codes[row] != MISSING_U16,
            TargetColumn::Labels(labels) => labels.of(row).is_some(),
        }
    }

    /// Returns true if the value of some row is not.
    pub fn has_missing(&self) -> bool {
        (0..self.len()).any(|row| !self.is_known(row))
    }

    /// Classes or labels that a row has, on average.
    pub fn n_listed(&self) -> usize {
        match self {
            TargetColumn::Numeric(_) => 0,
            TargetColumn::Nominal { .. } => 1,
            TargetColumn::Labels(labels) => labels.mean_len(),
        }
    }

    /// The same on average over the rows of the block of [`CHUNK_ROWS`] rows that has most.
    pub fn most_listed(&self) -> usize {
        match self {
            TargetColumn::Labels(labels) => labels.most_mean_len(CHUNK_ROWS),
            _ => self.n_listed(),
        }
    }

    /// Bytes of label sets.
    pub fn label_bytes(&self) -> usize {
        match self {
            TargetColumn::Labels(labels) => labels.label_bytes(),
            _ => 0,
        }
    }

    /// Lets clones have label sets in common, which may be large.
    pub fn share(&mut self) {
        if let TargetColumn::Labels(labels) = self {
            labels.share();
        }
    }

    /// Bytes that the value of a row takes, on average.
    pub fn row_bytes(&self) -> usize {
        match self {
            TargetColumn::Numeric(_) => size_of::<f64>(),
            TargetColumn::Nominal { .. } => size_of::<u16>(),
            TargetColumn::Labels(labels) => size_of::<u32>() * (1 + labels.mean_len()),
        }
    }

    /// The column that `profile` describes, without rows but with a capacity of `rows`.
    ///
    /// # Errors
    /// [`Error::Data`] where the labels found make no hierarchy.
    pub fn empty(profile: &ColumnProfile, rows: usize) -> Result<Self> {
        Ok(match profile {
            ColumnProfile::Numeric(_) => TargetColumn::Numeric(Values::Held(Vec::with_capacity(rows))),
            ColumnProfile::Nominal(nominal) => TargetColumn::Nominal {
                categories: Categories::new(nominal.counts.keys().cloned()),
                codes: Values::Held(Vec::with_capacity(rows)),
            },
            ColumnProfile::Labels(labels) => TargetColumn::Labels(LabelColumn::new(labels.hierarchy()?, rows)),
        })
    }

    fn add(&mut self, batch: &RecordBatch, column: usize, memory: Option<u64>) -> Result<()> {
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
            TargetColumn::Labels(labels) => labels.add(batch.column(column), memory),
        }
    }
}

/// The values, weights and groups of consecutive rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    /// The targets, then the features if their values are kept.
    pub columns: Vec<TargetColumn>,
    /// n_rows; empty without weights.
    pub weights: Values<f64>,
    /// n_rows; the hashes of the groups, empty without groups.
    pub groups: Values<u64>,
}

impl Answers {
    /// Appends those in `batch`.
    pub(super) fn add(&mut self, intake: &Intake<'_>, batch: &RecordBatch) -> Result<()> {
        add_values(&mut self.columns, intake, batch)?;
        if let Some(column) = intake.problem.weight {
            self.weights.held().extend(intake.weights(batch, column)?);
        }
        if let Some(groups) = &intake.problem.groups {
            self.groups.held().extend(intake.groups(batch, groups)?);
        }
        Ok(())
    }

    /// Concatenates `pieces`; `none` has columns of the same kinds and no rows.
    pub(super) fn joined(none: Answers, mut pieces: Vec<Answers>, keep: Keep<'_>) -> Result<Self> {
        let mut columns = none.columns;
        for (c, column) in columns.iter_mut().enumerate() {
            let of = pieces.iter_mut().map(|piece| &mut piece.columns[c]);
            match column {
                TargetColumn::Numeric(values) => {
                    let of = of.map(|piece| match piece {
                        TargetColumn::Numeric(values) => std::mem::take(values),
                        _ => Values::default(),
                    });
                    *values = Values::joined(of.collect(), keep)?;
                }
                TargetColumn::Nominal { codes, .. } => {
                    let of = of.map(|piece| match piece {
                        TargetColumn::Nominal { codes, .. } => std::mem::take(codes),
                        _ => Values::default(),
                    });
                    *codes = Values::joined(of.collect(), keep)?;
                }
                TargetColumn::Labels(labels) => {
                    let of = of.filter_map(|piece| match piece {
                        TargetColumn::Labels(labels) => Some(std::mem::replace(labels, labels.none())),
                        _ => None,
                    });
                    *labels = labels.joined(of.collect(), keep)?;
                }
            }
        }
        let (weights, groups) = pieces.into_iter().map(|piece| (piece.weights, piece.groups)).unzip();
        Ok(Answers { columns, weights: Values::joined(weights, keep)?, groups: Values::joined(groups, keep)? })
    }

    /// The rows `first .. first + count` as Arrow columns: the values, then the weights and the groups if there are any.
    pub(super) fn columns(&self, first: usize, count: usize) -> Vec<ArrayRef> {
        let numbers = |values: &Values<f64>| Arc::new(Float64Array::new(values.slice(first, count), None)) as ArrayRef;
        let columns = self.columns.iter().map(|column| match column {
            TargetColumn::Numeric(values) => numbers(values),
            TargetColumn::Nominal { codes, .. } => Arc::new(UInt16Array::new(codes.slice(first, count), None)),
            TargetColumn::Labels(labels) => labels.slice(first, count),
        });
        let weights = (!self.weights.is_empty()).then(|| numbers(&self.weights));
        let hashes = |groups: &Values<u64>| Arc::new(UInt64Array::new(groups.slice(first, count), None)) as ArrayRef;
        let groups = (!self.groups.is_empty()).then(|| hashes(&self.groups));
        columns.chain(weights).chain(groups).collect()
    }
}

/// The code of the category that means "has the label": the second one. If a label column has a single value, no row
/// has the label, unless the value is "1", "true" or "yes".
///
/// # Errors
/// [`Error::Data`] if the column called `name` has more than two values.
pub fn label_code(column: &TargetColumn, name: &str) -> Result<f64> {
    let TargetColumn::Nominal { categories, .. } = column else { unreachable!("labels are nominal") };
    match categories.names.as_slice() {
        [only] if matches!(only.to_lowercase().as_str(), "1" | "true" | "yes") => Ok(0.0),
        names if names.len() <= 2 => Ok(1.0),
        names => Err(Error::Data(format!(
            "the label '{name}' has {} values ({}, …); a label has two",
            names.len(),
            names[..3].join(", ")
        ))),
    }
}
