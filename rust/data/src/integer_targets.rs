//! Targets of few distinct integers, which stand for classes.
//!
//! A column of integers may hold quantities or codes of classes, and its type does not tell which. As scikit-learn's
//! `type_of_target` does, few distinct values are taken for classes, and several targets of 0 and 1 for labels. That
//! takes a look at the values, so it is no part of [`Problem::resolve`], which sees the schema alone: what is found
//! here goes into [`Roles::classes`] and [`Roles::task`].

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};

use crate::column::numbers;
use crate::schema::{Attribute, Kind, Problem, Roles, Task};
use crate::source::{ChunkSource, INTEGERS};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::Monitor;

/// Most distinct values of a target of classes.
pub const MOST_CLASSES: usize = 20;

/// The distinct values of the targets that have few integers.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
/// use ferrank_data::integer_targets::IntegerTargets;
/// use ferrank_data::schema::{Problem, Roles, Targets, Task};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let x = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5])) as ArrayRef;
/// let y = Arc::new(Int32Array::from(vec![3, 7, 3])) as ArrayRef;
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", y)]).unwrap();
/// let table = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
/// let found = IntegerTargets::find(&table, &Roles::new(Targets::Last(1)), &Monitor::default())?;
/// assert_eq!(found.classes(), ["y"]);
/// let roles = found.applied(Roles::new(Targets::Last(1)));
/// assert_eq!(Problem::resolve(&batch.schema(), &roles, "table")?.task, Task::Classification);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerTargets {
    /// Each target with its distinct values, ascending; `None`: it is not of integers, or has more than 20 of them.
    pub targets: Vec<(String, Option<Vec<i64>>)>,
}

impl IntegerTargets {
    /// Reads the targets of `source` that are of integers. Without a look at the rows where none is, or where the
    /// roles say what the task is.
    ///
    /// # Errors
    /// The errors of [`Problem::resolve`] that are about targets, the errors of reading the source, or a request to stop.
    pub fn find(source: &dyn ChunkSource, roles: &Roles, monitor: &Monitor) -> Result<Self> {
        let schema = source.schema();
        let targets = match roles.task {
            Some(_) => Vec::new(),
            None => Problem::resolve_targets(&schema, roles, source.name())?,
        };
        let mut found: Vec<Found> =
            targets.iter().map(|target| Found::new(target, schema.field(target.column))).collect();
        if found.iter().any(Found::is_open) {
            let mut columns: Vec<usize> = targets.iter().map(|target| target.column).collect();
            columns.sort_unstable();
            for chunk in source.chunks_of(&columns)? {
                let chunk = chunk?;
                monitor.check()?;
                for (target, found) in targets.iter().zip(&mut found) {
                    let place = columns.partition_point(|column| *column < target.column);
                    found.add(chunk.column(place))?;
                }
                if !found.iter().any(Found::is_open) {
                    break;
                }
            }
        }
        Ok(IntegerTargets {
            targets: targets.into_iter().zip(found).map(|(target, found)| (target.name, found.values())).collect(),
        })
    }

    /// What was found in all `parts` of a data set, which have the same targets.
    pub fn merged(parts: impl IntoIterator<Item = IntegerTargets>) -> Self {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return IntegerTargets { targets: Vec::new() } };
        for part in parts {
            for ((_, mine), (_, other)) in all.targets.iter_mut().zip(part.targets) {
                *mine = mine.take().zip(other).and_then(|(mine, other)| {
                    let mut both = [mine, other].concat();
                    both.sort_unstable();
                    both.dedup();
                    (both.len() <= MOST_CLASSES).then_some(both)
                });
            }
        }
        all
    }

    /// The targets whose integers stand for classes.
    pub fn classes(&self) -> Vec<String> {
        // A target without a value is neither.
        let with_values = self.targets.iter().filter(|(_, values)| values.as_ref().is_some_and(|v| !v.is_empty()));
        with_values.map(|(name, _)| name.clone()).collect()
    }

    /// True if all targets, and more than one, are of 0 and 1.
    pub fn are_labels(&self) -> bool {
        let is_label = |(_, values): &(String, Option<Vec<i64>>)| {
            values
                .as_ref()
                .is_some_and(|values| !values.is_empty() && values.iter().all(|value| [0, 1].contains(value)))
        };
        self.targets.len() > 1 && self.targets.iter().all(is_label)
    }

    /// `roles`, in which the targets of few integers are classes or labels.
    pub fn applied(&self, roles: Roles) -> Roles {
        let task = if self.are_labels() { Some(Task::MultiLabel) } else { roles.task };
        roles.with_classes(self.classes()).with_task(task)
    }
}

/// True if the numbers of a column may be integers by its type, or by what its file says.
pub fn may_be_integers(field: &Field) -> bool {
    let data_type = field.data_type();
    data_type.is_integer() || (data_type.is_numeric() && field.metadata().contains_key(INTEGERS))
}

/// What is found of one target.
enum Found {
    /// Few distinct values, so far.
    Few(Vec<i64>),
    /// Booleans: 0 and 1.
    Booleans,
    /// No integers, or many.
    Other,
}

impl Found {
    fn new(target: &Attribute, field: &Field) -> Self {
        match field.data_type() {
            DataType::Boolean => Found::Booleans,
            // Without any value it is as good as integers: a part of a data set may lack all.
            DataType::Null => Found::Few(Vec::new()),
            _ if target.kind == Kind::Numeric && may_be_integers(field) => Found::Few(Vec::new()),
            _ => Found::Other,
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Found::Few(_))
    }

    fn add(&mut self, array: &ArrayRef) -> Result<()> {
        let Found::Few(values) = self else { return Ok(()) };
        let Some(integers) = integers(array)? else {
            *self = Found::Other;
            return Ok(());
        };
        for value in integers {
            if !values.contains(&value) {
                values.push(value);
                if values.len() > MOST_CLASSES {
                    *self = Found::Other;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn values(self) -> Option<Vec<i64>> {
        match self {
            Found::Few(mut values) => {
                values.sort_unstable();
                Some(values)
            }
            Found::Booleans => Some(vec![0, 1]),
            Found::Other => None,
        }
    }
}

/// The known values of `array`; `None` if some are no integers of 64 bits.
fn integers(array: &ArrayRef) -> Result<Option<Vec<i64>>> {
    if array.data_type().is_integer() {
        let integers = cast(array, &DataType::Int64).map_err(|error| Error::Data(error.to_string()))?;
        let fit = integers.null_count() == array.null_count();
        return Ok(fit.then(|| integers.as_primitive::<Int64Type>().iter().flatten().collect()));
    }
    let mut buffer = Vec::new();
    let numbers = numbers(array, &mut buffer)?.iter().filter(|number| !number.is_nan());
    Ok(numbers.map(|&number| (number as i64 as f64 == number).then_some(number as i64)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};

    use super::*;
    use crate::schema::Targets;
    use crate::source::TableSource;

    fn found(columns: Vec<(&str, ArrayRef)>) -> (IntegerTargets, Problem) {
        let n_targets = columns.len();
        let x = Arc::new(Float64Array::from(vec![0.5; columns[0].1.len()])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([vec![("x", x)], columns].concat()).unwrap();
        let table = TableSource::new("table", batch.schema(), vec![batch.clone()]).unwrap();
        let roles = || Roles::new(Targets::Last(n_targets));
        let found = IntegerTargets::find(&table, &roles(), &Monitor::default()).unwrap();
        let problem = Problem::resolve(&batch.schema(), &found.applied(roles()), "table").unwrap();
        (found, problem)
    }

    fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(values.into_iter().collect::<Int64Array>())
    }

    #[test]
    fn twenty_distinct_integers_are_classes_and_twenty_one_are_not() {
        let of = |most: i64| found(vec![("y", integers((0..100).map(|row| row % most)))]).1.task;
        assert_eq!((of(20), of(21)), (Task::Classification, Task::Regression));
    }

    #[test]
    fn fractions_and_columns_without_a_value_are_no_classes() {
        let halves = Arc::new(Float64Array::from(vec![0.0, 1.0])) as ArrayRef;
        let none = Arc::new(Int64Array::from(vec![None, None])) as ArrayRef;
        for column in [halves, none] {
            let (found, problem) = found(vec![("y", column)]);
            assert!(found.classes().is_empty());
            assert_eq!(problem.task, Task::Regression);
        }
    }

    #[test]
    fn several_targets_of_0_and_1_are_labels_and_others_are_classes_one_by_one() {
        let bits = integers([0, 1, 1]);
        let flags = Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef;
        assert_eq!(found(vec![("a", bits.clone()), ("b", flags)]).1.task, Task::MultiLabel);
        let numbers = Arc::new(Float64Array::from(vec![0.5, 1.0, 2.0])) as ArrayRef;
        let (_, problem) = found(vec![("a", bits), ("b", integers([5, 7, 7])), ("c", numbers)]);
        assert_eq!(problem.task, Task::MultiTarget);
        let kinds: Vec<Kind> = problem.targets.iter().map(|target| target.kind).collect();
        assert_eq!(kinds, [Kind::Nominal, Kind::Nominal, Kind::Numeric]);
    }

    #[test]
    fn parts_together_may_have_too_many() {
        let part = |values: std::ops::Range<i64>| found(vec![("y", integers(values))]).0;
        assert_eq!(IntegerTargets::merged([part(0..15), part(10..20)]).classes(), ["y"]);
        assert!(IntegerTargets::merged([part(0..15), part(10..21)]).classes().is_empty());
        assert!(IntegerTargets::merged([part(0..15), part(0..30)]).classes().is_empty());
    }
}
