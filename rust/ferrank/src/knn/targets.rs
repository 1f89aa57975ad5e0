//! The targets of training and test rows.

use ferrank_data::labels::LabelColumn;
use ferrank_data::schema::Task;
use ferrank_data::store::{TargetColumn, label_code};
use ferrank_runtime::budget::Budget;
use ferrank_runtime::error::Result;

/// What is to be predicted.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::knn::{KnnParams, neighbors};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let params = KnnParams::new(2, vec![vec![1.0, 0.0]]);
/// let found = neighbors(&table, &table, &roles, &params, 1, &Monitor::default())?;
/// assert_eq!((found.targets[0].name.as_str(), found.targets[0].weight), ("y", 1.0));
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug)]
pub struct Target {
    /// Of the target or label.
    pub name: String,
    /// What a label of a hierarchy weighs; all others 1.
    pub weight: f64,
    /// In both sources.
    pub values: TargetPair,
}

/// The values of one target in both sources; nominal ones have the same categories.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank::prelude::*;
/// use ferrank::knn::{KnnParams, TargetPair, neighbors};
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let roles = Roles::new(Targets::Last(1));
/// let params = KnnParams::new(2, vec![vec![1.0, 0.0]]);
/// let found = neighbors(&table, &table, &roles, &params, 1, &Monitor::default())?;
/// let TargetPair::Numeric { train, .. } = &found.targets[0].values else { panic!("y is a number") };
/// assert_eq!(train[..3], [0.0, 2.0, 4.0]);
/// # Ok::<(), ferrank::Error>(())
/// ```
#[derive(Debug)]
pub enum TargetPair {
    /// Numbers; NaN where missing.
    Numeric {
        /// n_train
        train: Vec<f64>,
        /// n_test
        test: Vec<f64>,
    },
    /// Numbers of categories; `None` where missing.
    Nominal {
        /// Names of the categories.
        categories: Vec<String>,
        /// n_train
        train: Vec<Option<u16>>,
        /// n_test
        test: Vec<Option<u16>>,
    },
    /// True if rows have a label; `None` where missing.
    Label {
        /// n_train
        train: Vec<Option<bool>>,
        /// n_test
        test: Vec<Option<bool>>,
    },
}

impl Target {
    pub(super) fn new(task: Task, name: &str, train: TargetColumn, test: TargetColumn) -> Result<Vec<Self>> {
        match (train, test) {
            (TargetColumn::Labels(train), TargetColumn::Labels(test)) => {
                let of_part = |part: &LabelColumn| part.shares().iter().filter(|share| **share > 0.0).count();
                let values = (of_part(&train) + of_part(&test)).saturating_mul(train.len() + test.len());
                let bytes = values.saturating_mul(size_of::<Option<bool>>());
                Budget::check_early(None, bytes, "each label of all rows")?;
                Ok(Target::from_hierarchy(&train, &test))
            }
            (train, test) => {
                let values = TargetPair::new(task, name, train, test)?;
                Ok(vec![Target { name: name.to_string(), weight: 1.0, values }])
            }
        }
    }

    fn from_hierarchy(train: &LabelColumn, test: &LabelColumn) -> Vec<Self> {
        let hierarchy = &train.hierarchy;
        let label = |((number, name), weight): ((u32, &String), &f64)| {
            let has = |column: &LabelColumn| (0..column.len()).map(|row| column.has(row, number)).collect();
            let (train, test): (Vec<Option<bool>>, Vec<Option<bool>>) = (has(train), has(test));
            let occurs = train.iter().chain(&test).any(|has| *has == Some(true));
            let values = TargetPair::Label { train, test };
            occurs.then(|| Target { name: name.clone(), weight: *weight, values })
        };
        (0..).zip(hierarchy.names()).zip(hierarchy.weights()).filter_map(label).collect()
    }
}

impl TargetPair {
    fn new(task: Task, name: &str, train: TargetColumn, test: TargetColumn) -> Result<Self> {
        let present = if task == Task::MultiLabel { Some(label_code(&train, name)?) } else { None };
        Ok(match (train, test) {
            (TargetColumn::Numeric(train), TargetColumn::Numeric(test)) => {
                TargetPair::Numeric { train: train.into_held(), test: test.into_held() }
            }
            (TargetColumn::Nominal { categories, codes: train }, TargetColumn::Nominal { codes: test, .. }) => {
                let known = |code: u16| Some(code).filter(|code| usize::from(*code) < categories.names.len());
                match present {
                    None => TargetPair::Nominal {
                        train: train.iter().copied().map(known).collect(),
                        test: test.iter().copied().map(known).collect(),
                        categories: categories.names,
                    },
                    Some(present) => {
                        let has = |code: u16| known(code).map(|code| f64::from(code) == present);
                        TargetPair::Label {
                            train: train.iter().copied().map(has).collect(),
                            test: test.iter().copied().map(has).collect(),
                        }
                    }
                }
            }
            _ => unreachable!("a target is of one kind in both sources"),
        })
    }
}
