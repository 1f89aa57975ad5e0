//! The leaves of new rows, and what these predict.

use arrow_array::RecordBatch;
use rayon::prelude::*;

use crate::tree::{Feature, Tree, Value};
use ferrank_data::category_check::CategoryCheck;
use ferrank_data::column::{MISSING, categories, check_finite, numeric_values};
use ferrank_data::intake::{Intake, Unlabelled};
use ferrank_data::profile::{Categories, MISSING_U16};
use ferrank_data::schema::{Attribute, Kind, Problem};
use ferrank_data::source::ChunkSource;
use ferrank_runtime::error::Result;
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::threads::pool;

/// What a tree says of some rows.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> f64| Arc::new((0..40).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let class = (0..40).map(|row| Some(if row < 20 { "low" } else { "high" })).collect::<StringArray>();
/// # let columns = [("x", column(f64::from)), ("noise", column(|row| f64::from(row * 7 % 5))), ("y", Arc::new(class) as _)];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let tree = ferrank_trees::grow(&source, &roles, &Default::default(), 1, &monitor)?;
/// let predictions = tree.predict(&source, 1, &monitor)?;
/// assert_eq!((predictions.leaves[0], predictions.leaves[39]), (1, 2));
/// assert_eq!(tree.classes[predictions.values[0] as usize], "low");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Predictions {
    /// n_rows; number of the leaf that each row reaches.
    pub leaves: Vec<u32>,
    /// n_rows; the number of the class, or the predicted number.
    pub values: Vec<f64>,
}

/// The values of a feature in some rows.
enum Column {
    Numeric(Vec<f64>),
    Nominal(Vec<u16>),
}

impl Tree {
    /// Predicts the rows of `source`, whose columns are found by name, on a pool of `threads` threads.
    ///
    /// Categories that the tree has not seen are as missing.
    ///
    /// # Errors
    /// A column is missing or of another kind, a value is infinite, or the source cannot be read;
    /// [`Interrupted`](ferrank_runtime::error::Error::Interrupted) on request.
    pub fn predict(&self, source: &dyn ChunkSource, threads: usize, monitor: &Monitor) -> Result<Predictions> {
        let problem = self.problem().elsewhere(source)?;
        let known: Vec<Option<Categories>> = self.features.iter().map(Feature::known_categories).collect();
        let names = self.features.iter().map(|feature| feature.categories.as_deref());
        let category_check = CategoryCheck::new(source, problem.features.iter().zip(names));
        let intake = Intake::new(source, &problem, Unlabelled::Error, monitor);
        pool(threads)?.install(|| {
            let mut predictions = Predictions::default();
            intake.pass(Phase::Coding, |batch| {
                category_check.check(batch)?;
                let columns = columns(&intake, batch, &known)?;
                let found: Vec<(u32, f64)> =
                    (0..batch.num_rows()).into_par_iter().map(|row| self.predict_row(&columns, row)).collect();
                predictions.leaves.extend(found.iter().map(|(leaf, _)| leaf));
                predictions.values.extend(found.iter().map(|(_, value)| value));
                Ok(())
            })?;
            Ok(predictions)
        })
    }

    /// The features as columns whose place is not known yet.
    fn problem(&self) -> Problem {
        let attribute = |feature: &Feature| Attribute {
            name: feature.name.clone(),
            column: 0,
            kind: if feature.categories.is_some() { Kind::Nominal } else { Kind::Numeric },
        };
        Problem {
            task: self.task,
            features: self.features.iter().map(attribute).collect(),
            targets: Vec::new(),
            weight: None,
            groups: None,
            labels: None,
        }
    }

    fn predict_row(&self, columns: &[Column], row: usize) -> (u32, f64) {
        let leaf = self.leaf(|feature| match &columns[feature as usize] {
            Column::Numeric(values) => Value::Number(values[row]),
            Column::Nominal(codes) => Value::Category(codes[row]),
        });
        let node = &self.nodes[leaf as usize];
        let number = |feature: u32| match &columns[feature as usize] {
            Column::Numeric(values) => values[row],
            Column::Nominal(_) => f64::NAN,
        };
        (leaf, node.model.as_ref().map_or(node.prediction, |model| model.predict(number)))
    }
}

impl Feature {
    fn known_categories(&self) -> Option<Categories> {
        self.categories.as_ref().map(|names| Categories::new(names.iter().cloned()))
    }
}

fn columns(intake: &Intake<'_>, batch: &RecordBatch, known: &[Option<Categories>]) -> Result<Vec<Column>> {
    let read = |(attribute, known): (&Attribute, &Option<Categories>)| {
        let column = match known {
            None => read_numbers(batch, attribute.column),
            Some(known) => read_categories(batch, attribute.column, known),
        };
        column.map_err(|error| intake.in_column(attribute.column, error))
    };
    intake.problem.features.par_iter().zip(known).map(read).collect()
}

fn read_numbers(batch: &RecordBatch, column: usize) -> Result<Column> {
    let mut values = Vec::with_capacity(batch.num_rows());
    numeric_values(batch.column(column), &mut values)?;
    check_finite(&values)?;
    Ok(Column::Numeric(values))
}

fn read_categories(batch: &RecordBatch, column: usize, known: &Categories) -> Result<Column> {
    let found = categories(batch.column(column))?;
    let codes: Vec<u16> = found.texts.iter().map(|text| known.code(text).unwrap_or(MISSING_U16)).collect();
    let code = |&position: &u32| if position == MISSING { MISSING_U16 } else { codes[position as usize] };
    Ok(Column::Nominal(found.index.iter().map(code).collect()))
}
