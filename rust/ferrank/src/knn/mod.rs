//! The nearest training rows of each test row, under the weights of rankings: what a ranking is judged by
//! (mlc-ranking Eq. 4, mtr-ranking Eq. 11, ssl-ranking §6.4).
//!
//! ```text
//! read both sources on one scale         read
//! for each ranking
//!     rows to panels, weighted           panels (of metric)
//!     the k nearest of each test row     search, with the room `neighbors`
//! ```
//!
//! The distance is Σ w d², with d the difference of two values of a feature, in [0, 1], and w = max(importance,
//! 0) over the sum of these; all weigh the same if none is above 0. Distances are compared to 12 decimals, and
//! equals go to the lower training row. What predictions are made of the neighbours, and how good these are,
//! is left to the caller, who gets the targets as well.
//!
//! The papers say neither how values are scaled nor what becomes of missing ones, so there are two
//! [`Conventions`].
//!
//! Memory: 8 bytes a value of both sources, and 4 a value of the training rows in the panels of one ranking.

mod metric;
mod panels;
mod read;
mod search;
#[cfg(test)]
mod tests;

use ferrank_data::intake::Unlabelled;
use ferrank_data::labels::LabelColumn;
use ferrank_data::schema::{Problem, Roles, Task};
use ferrank_data::source::ChunkSource;
use ferrank_data::store::{TargetColumn, label_code};
use ferrank_runtime::error::{Error, Result, check};
use ferrank_runtime::monitor::Monitor;
use ferrank_runtime::threads::pool;
use metric::Metric;
use read::Pair;
use search::Search;

/// What is done where the papers are silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conventions {
    /// Numeric features are scaled by the training rows alone, and test values outside of their range count
    /// as its nearest end. A missing value differs as is expected of one drawn from the known training
    /// values: (x − mean)² + variance for numbers, 1 − P(x) for categories.
    Textbook,
    /// As in CLUS: numeric features are scaled by training and test rows together. A missing value differs
    /// as much as it can: by max(x, 1 − x), and by 1 for categories or where both miss it.
    Clus,
}

impl Conventions {
    /// The conventions called `name`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "textbook" => Ok(Conventions::Textbook),
            "clus" => Ok(Conventions::Clus),
            _ => Err(Error::Setting(format!("conventions: '{name}' is unknown; use textbook or clus"))),
        }
    }
}

/// What to search for.
#[derive(Debug, Clone)]
pub struct KnnParams {
    /// Neighbours of each test row.
    pub n_neighbors: usize,
    /// n_rankings x n_features; importances.
    pub rankings: Vec<Vec<f64>>,
    /// Where the papers are silent.
    pub conventions: Conventions,
    /// What becomes of rows without any target, of both sources.
    pub unlabelled: Unlabelled,
}

/// Neighbours, and the targets of both sources.
#[derive(Debug)]
pub struct Neighbors {
    /// What is to be predicted.
    pub task: Task,
    /// The targets; of a hierarchy each label that a row of either source has.
    pub targets: Vec<Target>,
    /// Training rows that take part.
    pub n_train: usize,
    /// Test rows that take part.
    pub n_test: usize,
    /// n_rankings; n_test x n_neighbors training rows, nearest first.
    pub rows: Vec<Vec<u32>>,
    /// n_rankings; n_test x n_neighbors squared distances.
    pub distances: Vec<Vec<f64>>,
}

/// What is to be predicted.
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
    /// Whether rows have a label; `None` where missing.
    Label {
        /// n_train
        train: Vec<Option<bool>>,
        /// n_test
        test: Vec<Option<bool>>,
    },
}

/// Finds the neighbours that the rows of `test` have in `train`, on a pool of `threads` threads.
///
/// The columns of `test` are found by name; those that `train` lacks are not used. The same arguments give
/// the same bits, whatever the number of threads, the chunking of the rows, and the container they come in.
///
/// # Errors
/// What is wrong with a setting, a column or a value; [`Error::Interrupted`] once `monitor` was asked to stop.
pub fn neighbors(
    train: &dyn ChunkSource,
    test: &dyn ChunkSource,
    roles: &Roles,
    params: &KnnParams,
    threads: usize,
    monitor: &Monitor,
) -> Result<Neighbors> {
    let problem = Problem::resolve(&train.schema(), roles, train.name())?;
    params.validate(problem.features.len())?;
    check(!problem.targets.is_empty(), "task: rankings are judged by a target, the task unsupervised has none")?;
    let elsewhere = read::elsewhere(&problem, test)?;
    pool(threads)?.install(|| {
        let pair = Pair::read([(train, &problem), (test, &elsewhere)], params, monitor)?;
        check(
            params.n_neighbors <= pair.train.numbers.len(),
            format!(
                "n_neighbors: {} neighbours of {} training rows in {}; ask for fewer",
                params.n_neighbors,
                pair.train.numbers.len(),
                train.name()
            ),
        )?;
        let (mut rows, mut distances) = (Vec::new(), Vec::new());
        for importances in &params.rankings {
            let metric = Metric::new(&pair.features, importances);
            let search = Search { pair: &pair, metric: &metric, k: params.n_neighbors, monitor };
            let (found, apart) = search.run()?;
            rows.push(found);
            distances.push(apart);
        }
        Ok(Neighbors {
            task: problem.task,
            n_train: pair.train.numbers.len(),
            n_test: pair.test.numbers.len(),
            targets: pair.targets,
            rows,
            distances,
        })
    })
}

impl KnnParams {
    fn validate(&self, n_features: usize) -> Result<()> {
        check(self.n_neighbors > 0, "n_neighbors: at least 1 neighbour is needed")?;
        check(
            self.unlabelled != Unlabelled::Use,
            "unlabelled: rows without a target neither predict nor are predicted; use error or ignore",
        )?;
        for importances in &self.rankings {
            check(
                importances.len() == n_features,
                format!("rankings: {} importances for {n_features} features", importances.len()),
            )?;
            check(importances.iter().all(|importance| importance.is_finite()), "rankings: importances must be finite")?;
        }
        Ok(())
    }
}

impl Target {
    fn of(task: Task, name: &str, train: TargetColumn, test: TargetColumn) -> Result<Vec<Self>> {
        match (train, test) {
            (TargetColumn::Labels(train), TargetColumn::Labels(test)) => Ok(Target::of_hierarchy(&train, &test)),
            (train, test) => {
                let values = TargetPair::new(task, name, train, test)?;
                Ok(vec![Target { name: name.to_string(), weight: 1.0, values }])
            }
        }
    }

    fn of_hierarchy(train: &LabelColumn, test: &LabelColumn) -> Vec<Self> {
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
