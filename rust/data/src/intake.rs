//! The rows that take part, batch by batch: what the passes over a source have in common.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use serde::{Deserialize, Serialize};

use crate::column::{known_rows, numeric_values};
use crate::groups::group_hashes;
use crate::schema::{Attribute, Problem, Roles};
use crate::source::{ChunkSource, cut};
use ferrank_runtime::error::{Error, Result};
use ferrank_runtime::monitor::{Monitor, Phase};
use ferrank_runtime::with_methods;

/// Most rows handled at once; also the height of a chunk of the code store.
pub const CHUNK_ROWS: usize = 65_536;

/// What becomes of rows whose targets are all missing.
///
/// ```
/// use ferrank_data::intake::{Counts, Unlabelled};
///
/// let counts = Counts { rows: 10, unlabelled: 2, weightless: 0, kept: 8 };
/// assert!(counts.taking_part("table", Unlabelled::Error).is_err());
/// assert_eq!(counts.taking_part("table", Unlabelled::Ignore)?, 8);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unlabelled {
    /// They are an error that says how many there are.
    Error,
    /// They are left out.
    Ignore,
    /// They take part where no target is needed (Petković et al. 2023).
    Use,
}

/// A source seen through a problem.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Intake, Unlabelled, View};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let view = View::new(&table, &roles, Unlabelled::Error);
/// let problem = view.problem()?;
/// let intake: Intake<'_> = view.intake(&problem, &monitor);
/// assert_eq!(intake.count()?.kept, 60);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
pub struct Intake<'a> {
    /// The rows.
    pub source: &'a dyn ChunkSource,
    /// The columns in their roles.
    pub problem: &'a Problem,
    /// Without a target no row has one, and all of them take part.
    pub unlabelled: Unlabelled,
    /// Progress, and the request to stop.
    pub monitor: &'a Monitor,
    /// The limit of memory for texts and label sets, as [`Budget::new`](ferrank_runtime::budget::Budget::new) takes it.
    pub memory: Option<u64>,
}

impl<'a> Intake<'a> {
    /// The rows of `source` in the roles of `problem`, with no limit of memory of their own.
    pub fn new(
        source: &'a dyn ChunkSource,
        problem: &'a Problem,
        unlabelled: Unlabelled,
        monitor: &'a Monitor,
    ) -> Self {
        Intake { source, problem, unlabelled, monitor, memory: None }
    }

    with_methods! {
        with_memory => memory: Option<u64>;
    }
}

/// Numbers of rows that a pass has read and left out.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Counts, Unlabelled, View};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let view = View::new(&table, &roles, Unlabelled::Error);
/// let problem = view.problem()?;
/// let counts = view.intake(&problem, &monitor).count()?;
/// assert_eq!(counts, Counts { rows: 60, unlabelled: 0, weightless: 0, kept: 60 });
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the source.
    pub rows: u64,
    /// Rows of which every target is missing.
    pub unlabelled: u64,
    /// Rows left out because their weight is 0, of those that would take part.
    pub weightless: u64,
    /// Rows that take part.
    pub kept: u64,
}

impl Counts {
    /// # Errors
    /// [`Error::Data`] if some rows of the source called `name` have no target where that is an error.
    pub fn labelled(self, name: &str, unlabelled: Unlabelled) -> Result<()> {
        if self.unlabelled == 0 || unlabelled != Unlabelled::Error {
            return Ok(());
        }
        if self.unlabelled == self.rows {
            return Err(Error::Data(format!(
                "{name}: none of {} rows has a target value; fill some in, or give another target",
                self.rows
            )));
        }
        Err(Error::Data(format!(
            "{name}: {} of {} rows have no target value; leave them out with unlabelled=\"ignore\", let them take part \
             with unlabelled=\"use\" in a forest (with supervision=0.5, for example) or in Relief, or fill them in",
            self.unlabelled, self.rows
        )))
    }

    /// The number of rows that take part, at least 1, of the source called `name`.
    ///
    /// # Errors
    /// [`Error::Data`] if there are none, or some without a target where that is an error.
    pub fn taking_part(self, name: &str, unlabelled: Unlabelled) -> Result<u64> {
        self.labelled(name, unlabelled)?;
        if self.rows > 0 && self.unlabelled == self.rows && unlabelled == Unlabelled::Use {
            return Err(Error::Data(format!(
                "{name}: none of {} rows has a target value; fill some in, or leave the target out and ask for the task \
                 unsupervised",
                self.rows
            )));
        }
        match self.kept {
            0 if self.rows == 0 => Err(Error::Data(format!("{name}: there are no rows (0 samples)"))),
            0 => {
                Err(Error::Data(format!("{name}: none of {} rows has a target value and a weight above 0", self.rows)))
            }
            rows => Ok(rows),
        }
    }
}

/// Checks that the `rows` rows of the source called `name` can be numbered with 32 bits, as `what` requires.
///
/// # Errors
/// [`Error::Data`] if they are too many.
pub fn numbered(rows: u64, name: &str, what: &str) -> Result<()> {
    if rows < u64::from(u32::MAX) {
        return Ok(());
    }
    Err(Error::Data(format!("{name}: {rows} rows; {what} takes at most {}, take a part", u32::MAX - 1)))
}

impl Intake<'_> {
    /// Hands every row with a target and a weight to `each`, at most [`CHUNK_ROWS`] at a time.
    pub fn pass(&self, phase: Phase, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Counts> {
        self.monitor.enter(phase, self.source.rows_hint().unwrap_or(0));
        let mut counts = Counts::default();
        for batch in self.source.chunks()? {
            for part in cut(batch?, CHUNK_ROWS) {
                self.monitor.check()?;
                let rows = part.num_rows() as u64;
                each(&self.keep(part, &mut counts)?)?;
                self.monitor.advance(rows);
            }
        }
        Ok(counts)
    }

    /// Counts the rows.
    pub fn count(&self) -> Result<Counts> {
        self.pass(Phase::Profiling, |_| Ok(()))
    }

    /// For each row of the source whether it takes part.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn taking_part(&self) -> Result<Vec<bool>> {
        let mut taking_part = Vec::new();
        for batch in self.source.chunks()? {
            self.monitor.check()?;
            taking_part.extend(self.kept(&batch?, &mut Counts::default())?);
        }
        Ok(taking_part)
    }

    /// The numbers of the rows that take part, ascending; `None`: all. `counts` are those of the source.
    ///
    /// # Errors
    /// Errors of reading.
    pub(crate) fn rows_taking_part(&self, counts: Counts) -> Result<Option<Vec<usize>>> {
        if counts.kept == counts.rows {
            return Ok(None);
        }
        let takes_part = self.taking_part()?;
        Ok(Some((0..takes_part.len()).filter(|&row| takes_part[row]).collect()))
    }

    fn keep(&self, batch: RecordBatch, counts: &mut Counts) -> Result<RecordBatch> {
        let keep = self.kept(&batch, counts)?;
        if keep.iter().all(|k| *k) {
            return Ok(batch);
        }
        filter_record_batch(&batch, &BooleanArray::from(keep)).map_err(|e| Error::Data(e.to_string()))
    }

    /// For each row of `batch` whether it takes part; adds the rows to `counts`.
    fn kept(&self, batch: &RecordBatch, counts: &mut Counts) -> Result<Vec<bool>> {
        let rows = batch.num_rows();
        let mut labelled = vec![false; rows];
        for target in &self.problem.targets {
            let known = known_rows(batch.column(target.column)).map_err(|e| self.in_column(target.column, e))?;
            for (any, known) in labelled.iter_mut().zip(known) {
                *any |= known;
            }
        }
        let mut keep = labelled;
        counts.rows += rows as u64;
        if !self.problem.targets.is_empty() {
            counts.unlabelled += keep.iter().filter(|labelled| !**labelled).count() as u64;
        }
        if self.problem.targets.is_empty() || self.unlabelled == Unlabelled::Use {
            keep.fill(true);
        }
        if let Some(column) = self.problem.weight {
            let first = counts.rows - rows as u64;
            for (keep, weight) in keep.iter_mut().zip(self.weights_of(batch, column, first)?) {
                counts.weightless += (*keep && weight == 0.0) as u64;
                *keep &= weight > 0.0;
            }
        }
        counts.kept += keep.iter().filter(|keep| **keep).count() as u64;
        Ok(keep)
    }

    /// The error of a pass that read other rows than the pass before.
    pub fn changed(&self) -> Error {
        Error::Data(format!("{}: the data changed while they were read", self.source.name()))
    }

    /// The weights of rows that take part.
    pub fn weights(&self, batch: &RecordBatch, column: usize) -> Result<Vec<f64>> {
        self.weights_of(batch, column, 0)
    }

    /// The weights of the rows of `batch`, checked; the first row has the number `first` in the source.
    fn weights_of(&self, batch: &RecordBatch, column: usize, first: u64) -> Result<Vec<f64>> {
        let mut weights = Vec::with_capacity(batch.num_rows());
        numeric_values(batch.column(column), &mut weights).map_err(|e| self.in_column(column, e))?;
        match (first..).zip(&weights).find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0)) {
            None => Ok(weights),
            Some((row, bad)) => Err(self.in_column(
                column,
                Error::Data(format!(
                    "the row weight {bad} was found in row {row}; weights must be finite and not negative"
                )),
            )),
        }
    }

    /// The hash of the group of each row of `batch`, in the column `groups`.
    ///
    /// # Errors
    /// [`Error::Data`] that names the column if a row has no group.
    pub fn groups(&self, batch: &RecordBatch, groups: &Attribute) -> Result<Vec<u64>> {
        group_hashes(batch.column(groups.column)).map_err(|error| self.in_column(groups.column, error))
    }

    /// `error` with the source and the column named, and that it is a target if it is one.
    pub fn in_column(&self, column: usize, error: Error) -> Error {
        let name = self.source.schema().field(column).name().clone();
        let role = if self.problem.targets.iter().any(|target| target.column == column) { "target" } else { "column" };
        match error {
            Error::Data(message) => Error::Data(format!("{}: {role} '{name}': {message}", self.source.name())),
            other => other,
        }
    }
}

/// A part of a data set, seen through roles.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # let column = |f: &dyn Fn(i32) -> f64| Arc::new((0..60).map(f).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(&f64::from)), ("z", column(&|i| f64::from(i * 37 % 60))), ("y", column(&|i| f64::from(2 * i)))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// use ferrank_data::intake::{Unlabelled, View};
/// use ferrank_data::schema::{Roles, Targets};
/// use ferrank_data::source::TableSource;
/// use ferrank_runtime::monitor::Monitor;
///
/// let table = TableSource::new("table", batch.schema(), vec![batch])?;
/// let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// let view = View::new(&table, &roles, Unlabelled::Error);
/// let problem = view.problem()?;
/// assert_eq!(problem.features.len(), 2);
/// assert_eq!(view.with_alone(Some(0)).problem()?.targets, problem.targets);
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct View<'a> {
    /// The rows.
    pub source: &'a dyn ChunkSource,
    /// What its columns are.
    pub roles: &'a Roles,
    /// What becomes of rows without any target.
    pub unlabelled: Unlabelled,
    /// Number of the target that alone counts, so that rows without it take no part, and the other targets
    /// neither; `None`: all count.
    pub alone: Option<usize>,
}

impl<'a> View<'a> {
    /// The rows of `source` in their `roles`, for which all targets count.
    pub fn new(source: &'a dyn ChunkSource, roles: &'a Roles, unlabelled: Unlabelled) -> Self {
        View { source, roles, unlabelled, alone: None }
    }

    with_methods! {
        with_alone => alone: Option<usize>;
    }

    /// # Errors
    /// The errors of [`Problem::resolve`].
    pub fn problem(&self) -> Result<Problem> {
        let problem = Problem::resolve(&self.source.schema(), self.roles, self.source.name())?;
        match self.alone {
            None => Ok(problem),
            Some(target) if target < problem.targets.len() => Ok(problem.alone(target)),
            Some(target) => Err(Error::Setting(format!(
                "target: there is no target number {target}; there are {}",
                problem.targets.len()
            ))),
        }
    }
}

impl<'a> View<'a> {
    /// The rows that take part in `problem`, the one of this view.
    pub fn intake(self, problem: &'a Problem, monitor: &'a Monitor) -> Intake<'a> {
        let unlabelled = if self.alone.is_some() { Unlabelled::Ignore } else { self.unlabelled };
        Intake::new(self.source, problem, unlabelled, monitor)
    }
}
