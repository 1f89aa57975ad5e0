//! A selection of the rows of a data set.

use ferrank_data::schema::Problem;
use ferrank_data::source::ChunkSource;
use ferrank_ranking::ScanSummary;
use ferrank_runtime::error::{Result, check};
use ferrank_runtime::monitor::Monitor;

use crate::all_targets::{AllTargets, are_needed};
use crate::obstacles::check_rows;
use crate::params::ReliefParams;

/// Rows of a data set, and what must be known of all of its rows.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Float64Array, RecordBatch};
/// # use ferrank_data::{intake::{Unlabelled, View}, profile::{Place, profile}};
/// # use ferrank_data::{schema::{Roles, Targets}, source::TableSource};
/// # use ferrank_ranking::RunOptions;
/// # use ferrank_runtime::monitor::Monitor;
/// # let column = |f: fn(i32) -> i32| Arc::new((0..80).map(|i| f64::from(f(i))).collect::<Float64Array>()) as ArrayRef;
/// # let columns = [("x", column(|i| i * 7 % 31)), ("z", column(|i| i % 5)), ("y", column(|i| i))];
/// # let batch = RecordBatch::try_from_iter(columns).unwrap();
/// # let all = TableSource::new("table", batch.schema(), vec![batch.clone()])?;
/// # let (roles, monitor) = (Roles::new(Targets::Last(1)), Monitor::default());
/// # let view = View::new(&all, &roles, Unlabelled::Error);
/// # let (problem, profile) = (view.problem()?, profile(view, 0, Place::default(), 1, &monitor)?);
/// use ferrank_relief::ReliefParams;
/// use ferrank_relief::selection::{Selection, accumulate, nearest, queries};
///
/// // P-values need the targets of all rows, also of those that are not selected.
/// let params = ReliefParams::default().with_n_neighbors(vec![2]).with_target_draws(20);
/// let options = RunOptions::default().with_profile(Some(&profile)).with_keys(Some(0..1));
/// # let (queries, every) = (queries(&problem, &params, &options, &profile)?, (0..80).collect::<Vec<u32>>());
/// let numbers = nearest(&all, &roles, &params, &options, (&every, &queries), &monitor)?;
/// # let batches = numbers.iter().map(|&row| batch.slice(row as usize, 1)).collect();
/// # let rows = TableSource::new("some", batch.schema(), batches)?;
/// let selection = Selection { numbers: &numbers, targets: Some(&all) };
/// assert!(accumulate(&rows, &roles, &params, &options, selection, &monitor).is_ok());
/// let without = Selection { targets: None, ..selection };
/// assert!(accumulate(&rows, &roles, &params, &options, without, &monitor).is_err());
/// # Ok::<(), ferrank_data::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    /// n_rows; the numbers of the rows in the data set, ascending.
    pub numbers: &'a [u32],
    /// The targets and groups of all rows of the data set, in columns of the same names; `None` if they are not
    /// [needed](crate::selection::Beside::targets).
    pub targets: Option<&'a dyn ChunkSource>,
}

impl Selection<'_> {
    pub(crate) fn check(&self, scan: &ScanSummary<'_>, problem: &Problem, params: &ReliefParams) -> Result<()> {
        check_rows(self.numbers, scan, problem, params)?;
        check(
            self.targets.is_some() || !are_needed(problem, params, &scan.profile),
            "targets: give those of all rows, on which the targets of these rows depend",
        )
    }

    /// The targets of all rows and the numbers of those of the selection, if they are needed.
    pub(crate) fn targets(
        &self,
        scan: &ScanSummary<'_>,
        problem: &Problem,
        params: &ReliefParams,
        monitor: &Monitor,
    ) -> Result<Option<(AllTargets, Vec<u32>)>> {
        let Some(source) = self.targets.filter(|_| are_needed(problem, params, &scan.profile)) else { return Ok(None) };
        let all = AllTargets::read(source, problem, &scan.profile, params.unlabelled, monitor)?;
        Ok(Some((all, self.numbers.to_vec())))
    }
}
