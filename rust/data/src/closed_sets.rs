//! The closed label sets of all rows of a source, for those who compare them elsewhere.

use crate::intake::{Intake, Unlabelled};
use crate::labels::LabelColumn;
use crate::profile::Profile;
use crate::schema::{Problem, Roles, Task};
use crate::source::ChunkSource;
use crate::store::{TargetColumn, add_values, empty_targets};
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::{Monitor, Phase};

/// Which labels each row has, those above them counted.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::builder::{ListBuilder, StringBuilder};
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// use ferrank_data::closed_sets::{ClosedSets, closed_sets};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let mut sets = ListBuilder::new(StringBuilder::new());
/// sets.append_value([Some("animal/koala")]);
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
/// let batch = RecordBatch::try_from_iter([("x", x), ("y", Arc::new(sets.finish()) as _)]).unwrap();
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let ClosedSets { names, labels, .. } = closed_sets(&table, &Roles::new(Targets::Last(1)), &Monitor::default())?;
/// assert_eq!((names, labels), (vec!["animal".to_string(), "animal/koala".to_string()], vec![0, 1]));
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug)]
pub struct ClosedSets {
    /// n_labels; the names of the hierarchy's labels, ascending.
    pub names: Vec<String>,
    /// n_labels; what each weighs, as a share of what all labels that some row has weigh together; 0 for the
    /// others.
    pub shares: Vec<f64>,
    /// n_rows + 1 offsets into `labels`.
    pub starts: Vec<u32>,
    /// Numbers of labels, row after row, ascending within a row.
    pub labels: Vec<u32>,
    /// n_rows; true if the labels of a row are known. One of which they are not has none here.
    pub known: Vec<bool>,
}

/// Reads the label sets of all rows of `source` in two passes, also of rows whose other targets or weights are missing.
///
/// # Errors
/// [`Error::Setting`](ferrank_runtime::error::Error::Setting) for any task but the hierarchical one; what is wrong with
/// a role, the hierarchy or a set.
pub fn closed_sets(source: &dyn ChunkSource, roles: &Roles, monitor: &Monitor) -> Result<ClosedSets> {
    let problem = Problem::resolve(&source.schema(), roles, source.name())?;
    check(
        problem.task == Task::Hierarchical,
        format!("task: label sets are closed in a hierarchy, and the task is {}", problem.task.name()),
    )?;
    let problem = Problem { features: Vec::new(), weight: None, groups: None, ..problem };
    let intake = Intake::new(source, &problem, Unlabelled::Use, monitor);
    let profile = Profile::new(&intake, 0)?;
    let mut columns = empty_targets(&problem, &profile, profile.counts.kept as usize, source.name())?;
    intake.pass(Phase::Coding, |batch| add_values(&mut columns, &intake, batch))?;
    match columns.pop() {
        Some(TargetColumn::Labels(column)) => Ok(ClosedSets::new(&column)),
        _ => unreachable!("the target of a hierarchical task is a column of label sets"),
    }
}

impl ClosedSets {
    fn new(column: &LabelColumn) -> Self {
        let mut sets = ClosedSets {
            names: column.hierarchy.names().to_vec(),
            shares: column.shares(),
            starts: Vec::with_capacity(column.len() + 1),
            labels: Vec::new(),
            known: Vec::with_capacity(column.len()),
        };
        sets.starts.push(0);
        for set in (0..column.len()).map(|row| column.of(row)) {
            sets.known.push(set.is_some());
            sets.labels.extend_from_slice(set.unwrap_or(&[]));
            // No more than in the column, whose offsets are as wide.
            sets.starts.push(sets.labels.len() as u32);
        }
        sets
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, Float64Array, RecordBatch};

    use super::*;
    use crate::schema::Targets;
    use crate::source::TableSource;

    fn table() -> TableSource {
        let mut sets = ListBuilder::new(StringBuilder::new());
        sets.append_value([Some("a/b"), Some("d")]);
        sets.append_null();
        sets.append_value([] as [Option<&str>; 0]);
        sets.append_value([Some("a")]);
        let x: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::INFINITY), None, None, Some(0.5)]));
        let columns = [("x", x.clone(), true), ("z", x, true), ("y", Arc::new(sets.finish()) as ArrayRef, true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        TableSource::new("t", batch.schema(), vec![batch.slice(0, 1), batch.slice(1, 3)]).unwrap()
    }

    #[test]
    fn rows_have_the_labels_above_theirs_and_features_are_not_read() {
        let roles = Roles::new(Targets::Named(vec!["y".into()])).with_hierarchy_decay(0.5);
        let sets = closed_sets(&table(), &roles, &Monitor::default()).unwrap();
        assert_eq!(sets.names, ["a", "a/b", "d"]);
        assert_eq!(sets.shares, [0.4, 0.2, 0.4]);
        assert_eq!((sets.starts, sets.labels), (vec![0, 3, 3, 3, 4], vec![0, 1, 2, 0]));
        assert_eq!(sets.known, [true, false, true, true]);
    }

    #[test]
    fn other_tasks_have_no_hierarchy() {
        let roles = Roles::new(Targets::Named(vec!["x".into()])).with_drop(vec!["y".into()]);
        let error = closed_sets(&table(), &roles, &Monitor::default()).unwrap_err().to_string();
        assert!(error.contains("the task is regression"), "{error}");
    }
}
