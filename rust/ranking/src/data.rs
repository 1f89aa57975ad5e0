//! The data of a run, as far as contributions and settings depend on it.

use ferrank_data::profile::Profile;
use ferrank_data::schema::{Attribute, Kind, Problem, Task};
use serde::{Deserialize, Serialize};

/// A column by name.
///
/// ```
/// use ferrank_data::schema::Kind;
/// use ferrank_ranking::Column;
///
/// let column = Column { name: "colour".into(), kind: Kind::Nominal };
/// assert_eq!(serde_json::to_string(&column)?, r#"{"name":"colour","kind":"nominal"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// How its values are read.
    pub kind: Kind,
}

/// The columns, rows and profile of a run.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: fn(i32) -> i32| Arc::new((0..40).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i / 20)), ("z", column(|i| i % 4)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # use ferrank_data::intake::{Unlabelled, View};
/// # use ferrank_data::profile::Profile;
/// # use ferrank_data::schema::{Roles, Targets};
/// # use ferrank_data::source::TableSource;
/// # use ferrank_runtime::monitor::Monitor;
/// # let source = TableSource::new("table", batch.schema(), vec![batch])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&source, &roles, Unlabelled::Error);
/// # let problem = view.problem()?;
/// # let intake = view.intake(&problem, &monitor);
/// use ferrank_ranking::RunData;
///
/// // 40 rows; x has two values, z four.
/// let data = RunData::new(&problem, &Profile::new(&intake, 255)?);
/// assert_eq!((data.rows, data.features[1].name.as_str()), (40, "z"));
/// assert_eq!(data.entropies, [1.0, 2.0]);
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunData {
    /// What is predicted.
    pub task: Task,
    /// The features, in input order.
    pub features: Vec<Column>,
    /// n_features; the entropy of the values of each in bits, see
    /// [`ColumnProfile::entropy`](ferrank_data::profile::ColumnProfile::entropy).
    pub entropies: Vec<f64>,
    /// The targets.
    pub targets: Vec<Column>,
    /// Factor between the mean weight of a label's parents and its own; `None` where the target has no hierarchy.
    pub hierarchy_decay: Option<f64>,
    /// Rows that take part.
    pub rows: u64,
    /// Rows of which all targets are missing.
    pub unlabelled: u64,
    /// The column of groups; `None`: rows have none.
    pub groups: Option<String>,
    /// Hash of the profile, in hexadecimal digits.
    pub profile: String,
}

impl RunData {
    /// The data of a problem and the profile of all rows.
    pub fn new(problem: &Problem, profile: &Profile) -> Self {
        let columns = |attributes: &[Attribute]| {
            attributes.iter().map(|column| Column { name: column.name.clone(), kind: column.kind }).collect()
        };
        RunData {
            task: problem.task,
            features: columns(&problem.features),
            entropies: profile.features.iter().map(|column| column.entropy(profile.counts.kept)).collect(),
            targets: columns(&problem.targets),
            hierarchy_decay: problem.labels.as_ref().map(|labels| labels.decay),
            rows: profile.counts.kept,
            unlabelled: profile.counts.unlabelled,
            groups: profile.groups.as_ref().map(|groups| groups.name.clone()),
            profile: format!("{:032x}", profile.digest()),
        }
    }

    /// The shape that settings are checked against. Weights of rows are not part of it.
    pub fn shape(&self) -> DataShape {
        DataShape {
            task: self.task,
            n_rows: Some(self.rows),
            n_features: self.features.len(),
            n_targets: self.targets.len(),
            is_weighted: false,
            is_grouped: self.groups.is_some(),
        }
    }

    /// Returns true for data that a run can have: at least a feature, a row, and a target unless the task has none.
    pub(crate) fn is_valid(&self) -> bool {
        let has_targets = !self.targets.is_empty();
        let has_entropies = self.entropies.len() == self.features.len();
        !self.features.is_empty() && has_entropies && has_targets != (self.task == Task::Unsupervised) && self.rows > 0
    }
}

/// What settings are checked against.
///
/// ```
/// # use arrow_schema::{DataType, Field, Schema};
/// # let schema = Schema::new(["x", "z", "y"].map(|name| Field::new(name, DataType::Float64, true)).to_vec());
/// use ferrank_data::schema::{Problem, Roles, Targets};
/// use ferrank_ranking::DataShape;
///
/// // Columns are known before the first row is read.
/// let shape = DataShape::new(&Problem::resolve(&schema, &Roles::new(Targets::Last(1)), "table")?);
/// assert_eq!((shape.n_features, shape.n_targets, shape.n_rows), (2, 1, None));
/// assert_eq!(shape.with_rows(60).n_rows, Some(60));
/// # Ok::<(), ferrank_runtime::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataShape {
    /// What is predicted.
    pub task: Task,
    /// Rows that take part; `None` before a row is read.
    pub n_rows: Option<u64>,
    /// Number of features.
    pub n_features: usize,
    /// Number of targets.
    pub n_targets: usize,
    /// True if there is a column of row weights.
    pub is_weighted: bool,
    /// True if there is a column of groups.
    pub is_grouped: bool,
}

impl DataShape {
    /// The shape of `problem` before a row is read.
    pub fn new(problem: &Problem) -> Self {
        DataShape {
            task: problem.task,
            n_rows: None,
            n_features: problem.features.len(),
            n_targets: problem.targets.len(),
            is_weighted: problem.weight.is_some(),
            is_grouped: problem.groups.is_some(),
        }
    }

    /// The shape with `n_rows` rows.
    pub fn with_rows(self, n_rows: u64) -> Self {
        DataShape { n_rows: Some(n_rows), ..self }
    }
}
