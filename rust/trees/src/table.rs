//! The rows that a tree grows from, column by column in memory.

use ferrank_data::intake::Intake;
use ferrank_data::profile::{MISSING_U16, Profile};
use ferrank_data::schema::Problem;
use ferrank_data::store::{TargetColumn, add_values, empty_targets};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Phase;

/// The values of a feature.
#[derive(Debug)]
pub(crate) enum Column {
    /// n_rows; NaN where missing.
    Numeric(Vec<f64>),
    /// n_rows codes, [`MISSING_U16`] where missing.
    Nominal(Vec<u16>),
}

/// The values of the target.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Numbers of classes.
    Classes {
        /// n_rows
        codes: Vec<u16>,
        /// At least 1.
        n_classes: usize,
    },
    /// n_rows numbers.
    Numbers(Vec<f64>),
}

/// The data of a tree.
#[derive(Debug)]
pub(crate) struct Table {
    /// n_features
    pub(crate) features: Vec<Column>,
    /// n_features; the names of the categories of nominal features.
    pub(crate) categories: Vec<Option<Vec<String>>>,
    pub(crate) outcome: Outcome,
    /// Names of the classes; empty for numbers.
    pub(crate) classes: Vec<String>,
    pub(crate) n_rows: usize,
}

impl Table {
    /// Reads the rows that take part.
    ///
    /// # Errors
    /// What is wrong with a column, a value or the source.
    pub(crate) fn read(intake: &Intake<'_>) -> Result<Self> {
        let profile = Profile::new(intake, 0)?;
        let n_rows = profile.counts.taking_part(intake.source.name(), intake.unlabelled)?;
        let mut columns = empty_targets(intake.problem, &profile, n_rows as usize, intake.source.name())?;
        for feature in &profile.features {
            columns.push(TargetColumn::empty(feature, n_rows as usize)?);
        }
        let counts = intake.pass(Phase::Coding, |batch| add_values(&mut columns, intake, batch))?;
        if counts.kept != n_rows {
            return Err(intake.changed());
        }
        let mut columns = columns.into_iter();
        let (outcome, classes) = outcome(columns.next(), intake.problem)?;
        let (features, categories) = columns.map(feature).unzip();
        Ok(Table { features, categories, outcome, classes, n_rows: n_rows as usize })
    }
}

fn feature(column: TargetColumn) -> (Column, Option<Vec<String>>) {
    match column {
        TargetColumn::Numeric(values) => {
            // Adding 0 turns -0 into 0.
            (Column::Numeric(values.into_held().into_iter().map(|value| value + 0.0).collect()), None)
        }
        TargetColumn::Nominal { categories, codes } => (Column::Nominal(codes.into_held()), Some(categories.names)),
        TargetColumn::Labels(_) => unreachable!("label sets are no features"),
    }
}

fn outcome(column: Option<TargetColumn>, problem: &Problem) -> Result<(Outcome, Vec<String>)> {
    match column {
        Some(TargetColumn::Nominal { categories, codes }) => {
            let codes = codes.into_held();
            debug_assert!(!codes.contains(&MISSING_U16), "rows without a class take no part");
            let n_classes = categories.names.len().max(1);
            Ok((Outcome::Classes { codes, n_classes }, categories.names))
        }
        Some(TargetColumn::Numeric(values)) => {
            let values = values.into_held();
            let (low, high) =
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &y| (low.min(y), high.max(y)));
            match (high - low).is_finite() {
                true => Ok((Outcome::Numbers(values), Vec::new())),
                false => Err(Error::Data(format!(
                    "column '{}': from {low} to {high} is more than a number can hold; scale the target down",
                    problem.targets[0].name
                ))),
            }
        }
        _ => unreachable!("the task is classification or regression"),
    }
}
